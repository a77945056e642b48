// Command asm writes metal/cpu's assembly: the loops of the dot products and of
// what feeds them, for AVX2, AVX-512 and NEON. Each equals its portable definition bit
// for bit: the 16 lanes of a dot product are two YMM registers, one ZMM register or
// four of NEON's.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	dir := flag.String("dir", "..", "where to write")
	flag.Parse()
	files, err := generateAll()
	if err != nil {
		log.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(*dir, name), data, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	if err := writePeak(*dir); err != nil {
		log.Fatal(err)
	}
}

const (
	asmFile  = "kernels_amd64.s"
	stubFile = "kernels_amd64.go"
)

// generateAll is every file that this program writes.
func generateAll() (map[string][]byte, error) {
	asm, stubs, err := generate()
	if err != nil {
		return nil, err
	}
	mathAsm, mathStubs, err := generateMath()
	armAsm, armStubs := generateARM64()
	return map[string][]byte{asmFile: asm, stubFile: stubs, mathFile: mathAsm, mathStubFile: mathStubs, arm64File: armAsm, arm64StubFile: armStubs}, err
}

// generate is both files of the dot products.
func generate() (asm, stubs []byte, err error) {
	g := &gen{Context: build.NewContext()}
	g.ConstraintExpr("!noasm")
	tables := g.tables()
	for _, isa := range []isa{avx2, avx512} {
		g.isa, g.t = isa, tables
		g.products()
		g.axpy()
	}
	file, err := g.Result()
	if err != nil {
		return nil, nil, err
	}
	c := printer.Config{Name: "metal/cpu/asm", Pkg: "cpu"}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	if asm, err = printer.NewGoAsm(c).Print(file); err != nil {
		return nil, nil, err
	}
	stubs, err = printer.NewStubs(c).Print(file)
	return asm, stubs, err
}

// isa is an instruction set: how many registers 16 lanes take.
type isa struct {
	suffix string
	wide   int // lanes of a register
}

var (
	avx2   = isa{"AVX2", 8}
	avx512 = isa{"AVX512", 16}
)

// parts is the number of registers that hold 16 lanes.
func (i isa) parts() int { return 16 / i.wide }

type gen struct {
	*build.Context
	isa  isa
	t    tables
	pick reg.VecVirtual // tables.pick, in functions that fold
}

func (g *gen) reg() reg.VecVirtual {
	if g.isa.wide == 16 {
		return g.ZMM()
	}
	return g.YMM()
}

func (g *gen) lanes() []reg.VecVirtual {
	v := make([]reg.VecVirtual, g.isa.parts())
	for i := range v {
		v[i] = g.reg()
	}
	return v
}

func (g *gen) zero(v reg.VecVirtual) {
	if g.isa.wide == 16 {
		g.VPXORD(v, v, v)
	} else {
		g.VXORPS(v, v, v)
	}
}

// function begins a function whose name ends with the instruction set.
func (g *gen) function(name, signature, doc string) {
	g.Function(name + g.isa.suffix)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr(signature)
	g.Doc(strings.Split(name+g.isa.suffix+" "+doc, "\n")...)
	g.Pragma("noescape")
}

func (g *gen) axpy() {
	g.function("axpy", "func(y *float32, a float32, x *float32, n int)", "is y[i] = fma(a, x[i], y[i]). n is a multiple of 16.")
	y := g.Load(g.Param("y"), g.GP64())
	one := g.Load(g.Param("a"), g.XMM())
	x := g.Load(g.Param("x"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	a := g.reg()
	g.VBROADCASTSS(one, a)
	label := "axpy" + g.isa.suffix
	g.Label(label + "Loop")
	g.CMPQ(n, operand.U8(0))
	g.JE(operand.LabelRef(label + "Done"))
	for p := range g.isa.parts() {
		v := g.reg()
		g.VMOVUPS(operand.Mem{Base: y, Disp: 4 * p * g.isa.wide}, v)
		g.VFMADD231PS(operand.Mem{Base: x, Disp: 4 * p * g.isa.wide}, a, v)
		g.VMOVUPS(v, operand.Mem{Base: y, Disp: 4 * p * g.isa.wide})
	}
	g.ADDQ(operand.U8(64), x)
	g.ADDQ(operand.U8(64), y)
	g.SUBQ(operand.U8(16), n)
	g.JMP(operand.LabelRef(label + "Loop"))
	g.Label(label + "Done")
	g.VZEROUPPER()
	g.RET()
}
