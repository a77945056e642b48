// Command asm writes metal/cpu's assembly: the loops of the dot products and of
// what feeds them, for AVX2 and for AVX-512. Each equals its portable definition bit
// for bit: the 16 lanes of a dot product are two YMM registers or one ZMM register.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"

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
		g.dot4("bf16Dot4", g.bf16)
		g.dot4("mx4Dot4", g.mx4)
		g.dot1x4()
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
	isa isa
	t   tables
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

// fold stores the sum of 16 lanes: l+8, l+4, l+2, l+1.
func (g *gen) fold(acc []reg.VecVirtual, to operand.Mem) {
	low := g.YMM()
	if g.isa.wide == 16 {
		high := g.YMM()
		g.VEXTRACTF32X8(operand.Imm(1), acc[0], high)
		g.VADDPS(high, acc[0].AsY(), low)
	} else {
		g.VADDPS(acc[1], acc[0], low)
	}
	x, y := low.AsX(), g.XMM()
	g.VEXTRACTF128(operand.Imm(1), low, y)
	g.VADDPS(y, x, x)
	g.VMOVHLPS(x, x, y)
	g.VADDPS(y, x, x)
	g.VMOVSHDUP(x, y)
	g.VADDSS(y, x, x)
	g.VMOVSS(x, to)
}

// function begins a function whose name ends with the instruction set.
func (g *gen) function(name, signature, doc string) {
	g.Function(name + g.isa.suffix)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr(signature)
	g.Doc(name + g.isa.suffix + " " + doc)
	g.Pragma("noescape")
}

// dot4 is four rows of weights times one vector: y[r] = dot(w[r], x). A step is 32
// columns, a half of it at a time where that saves registers.
func (g *gen) dot4(name string, f func(d *dotter)) {
	g.function(name, "func(y *float32, w *byte, wStride int, s *byte, sStride int, x *float32, n int)",
		"is y[r] = dot(w[r], x) for four rows of weights, wStride bytes apart, with scales sStride bytes apart. n is a multiple of 32.")
	d := &dotter{gen: g}
	d.y = g.Load(g.Param("y"), g.GP64())
	w := g.Load(g.Param("w"), g.GP64())
	wStride := g.Load(g.Param("wStride"), g.GP64())
	d.x = g.Load(g.Param("x"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	for r := range 4 {
		d.w[r] = w
		if r > 0 {
			d.w[r] = g.GP64()
			g.MOVQ(d.w[r-1], d.w[r])
			g.ADDQ(wStride, d.w[r])
		}
		d.acc[r] = g.lanes()
		for _, a := range d.acc[r] {
			g.zero(a)
		}
	}
	f(d)
	label := name + g.isa.suffix
	g.Label(label + "Loop")
	g.CMPQ(n, operand.U8(0))
	g.JE(operand.LabelRef(label + "Done"))
	d.step()
	g.ADDQ(operand.U8(128), d.x)
	g.SUBQ(operand.U8(32), n)
	g.JMP(operand.LabelRef(label + "Loop"))
	g.Label(label + "Done")
	for r := range 4 {
		g.fold(d.acc[r], operand.Mem{Base: d.y, Disp: 4 * r})
	}
	g.VZEROUPPER()
	g.RET()
}

// dotter is a dot4 being written.
type dotter struct {
	*gen
	y, x reg.Register
	w    [4]reg.Register
	acc  [4][]reg.VecVirtual
	step func() // 32 columns of four rows, and the weights' pointers moved on
}

func (g *gen) bf16(d *dotter) {
	wide := g.isa.wide
	d.step = func() {
		for c := 0; c < 32; c += wide {
			x := g.reg()
			g.VMOVUPS(operand.Mem{Base: d.x, Disp: 4 * c}, x)
			for r := range 4 {
				v := g.reg()
				g.VPMOVZXWD(operand.Mem{Base: d.w[r], Disp: 2 * c}, v)
				g.VPSLLD(operand.Imm(16), v, v)
				g.VFMADD231PS(v, x, d.acc[r][c/wide%g.isa.parts()])
			}
		}
		for r := range 4 {
			g.ADDQ(operand.U8(64), d.w[r])
		}
	}
}

// tables are constants in memory.
type tables struct{ high, low, nibble operand.Mem }

// tables of E2M1: the upper and lower byte of each code's BF16.
func (g *gen) tables() tables {
	table := func(name string, b [16]byte) operand.Mem {
		m := g.StaticGlobal(name)
		g.DataAttributes(attr.NOPTR | attr.RODATA)
		for i, v := range b {
			g.AddDatum(i, operand.U8(v))
		}
		return m
	}
	var high, low, nibble [16]byte
	for c, bits := range []uint16{0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0} {
		high[c], low[c] = byte(bits>>8), byte(bits)
		high[c+8], low[c+8] = byte(bits>>8)|0x80, byte(bits)
	}
	for i := range nibble {
		nibble[i] = 15
	}
	return tables{table("e2m1High", high), table("e2m1Low", low), table("nibbles", nibble)}
}

func (g *gen) mx4(d *dotter) {
	s := g.Load(g.Param("s"), g.GP64())
	sStride := g.Load(g.Param("sStride"), g.GP64())
	s3 := g.GP64()
	g.LEAQ(operand.Mem{Base: s, Index: sStride, Scale: 2}, s3)
	g.ADDQ(sStride, s3)
	high, low, mask := g.XMM(), g.XMM(), g.XMM()
	g.VMOVDQU(g.t.high, high)
	g.VMOVDQU(g.t.low, low)
	g.VMOVDQU(g.t.nibble, mask)
	scale := []operand.Mem{{Base: s}, {Base: s, Index: sStride, Scale: 1}, {Base: s, Index: sStride, Scale: 2}, {Base: s3}}
	wide := g.isa.wide
	d.step = func() {
		for r := range 4 {
			// 32 codes in order: even ones in the low nibbles.
			even, odd, codes := g.XMM(), g.XMM(), g.XMM()
			g.VMOVDQU(operand.Mem{Base: d.w[r]}, codes)
			g.VPSRLW(operand.Imm(4), codes, odd)
			g.VPAND(mask, odd, odd)
			g.VPAND(mask, codes, even)
			first, second := g.XMM(), g.XMM()
			g.VPUNPCKLBW(odd, even, first)
			g.VPUNPCKHBW(odd, even, second)
			// 2^(b-127) is the bits b<<23, and 1<<22 more where b is 0, a subnormal, or
			// 255, not a number.
			e, zero, nan, f := g.GP32(), g.GP32(), g.GP32(), g.XMM()
			g.MOVBLZX(scale[r], e)
			g.LEAL(operand.Mem{Base: e, Disp: -1}, zero)
			g.SHRL(operand.Imm(31), zero)
			g.LEAL(operand.Mem{Base: e, Disp: 1}, nan)
			g.SHRL(operand.Imm(8), nan)
			g.ORL(nan, zero)
			g.SHLL(operand.Imm(22), zero)
			g.SHLL(operand.Imm(23), e)
			g.ORL(zero, e)
			g.VMOVD(e, f)
			factor := g.reg()
			g.VBROADCASTSS(f, factor)
			for c := 0; c < 32; c += wide {
				source := first
				if c >= 16 {
					source = second
				}
				hi, lo, words := g.XMM(), g.XMM(), g.XMM()
				g.VPSHUFB(source, high, hi)
				g.VPSHUFB(source, low, lo)
				v := g.reg()
				if wide == 8 {
					if c%16 == 0 {
						g.VPUNPCKLBW(hi, lo, words)
					} else {
						g.VPUNPCKHBW(hi, lo, words)
					}
					g.VPMOVZXWD(words, v)
				} else {
					both, upper := g.YMM(), g.XMM()
					g.VPUNPCKLBW(hi, lo, both.AsX())
					g.VPUNPCKHBW(hi, lo, upper)
					g.VINSERTI32X4(operand.Imm(1), upper, both, both)
					g.VPMOVZXWD(both, v)
				}
				g.VPSLLD(operand.Imm(16), v, v)
				g.VMULPS(factor, v, v)
				g.VFMADD231PS(operand.Mem{Base: d.x, Disp: 4 * c}, v, d.acc[r][c/wide%g.isa.parts()])
			}
			g.ADDQ(operand.U8(16), d.w[r])
		}
		g.INCQ(s)
		g.INCQ(s3)
	}
}

// dot1x4 is one row of weights, widened, times four vectors.
func (g *gen) dot1x4() {
	g.function("f32Dot1x4", "func(y *float32, yStride int, w *float32, x *float32, xStride int, n int)",
		"is y[i] = dot(w, x[i]) for four vectors, xStride bytes apart; the results are yStride bytes apart. n is a multiple of 16.")
	y := g.Load(g.Param("y"), g.GP64())
	yStride := g.Load(g.Param("yStride"), g.GP64())
	w := g.Load(g.Param("w"), g.GP64())
	var x [4]reg.Register
	x[0] = g.Load(g.Param("x"), g.GP64())
	xStride := g.Load(g.Param("xStride"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	var acc [4][]reg.VecVirtual
	for i := range 4 {
		if i > 0 {
			x[i] = g.GP64()
			g.MOVQ(x[i-1], x[i])
			g.ADDQ(xStride, x[i])
		}
		acc[i] = g.lanes()
		for _, a := range acc[i] {
			g.zero(a)
		}
	}
	label := "f32Dot1x4" + g.isa.suffix
	g.Label(label + "Loop")
	g.CMPQ(n, operand.U8(0))
	g.JE(operand.LabelRef(label + "Done"))
	for p := range g.isa.parts() {
		v := g.reg()
		g.VMOVUPS(operand.Mem{Base: w, Disp: 4 * p * g.isa.wide}, v)
		for i := range 4 {
			g.VFMADD231PS(operand.Mem{Base: x[i], Disp: 4 * p * g.isa.wide}, v, acc[i][p])
		}
	}
	g.ADDQ(operand.U8(64), w)
	for i := range 4 {
		g.ADDQ(operand.U8(64), x[i])
	}
	g.SUBQ(operand.U8(16), n)
	g.JMP(operand.LabelRef(label + "Loop"))
	g.Label(label + "Done")
	for i := range 4 {
		g.fold(acc[i], operand.Mem{Base: y})
		if i < 3 {
			g.ADDQ(yStride, y)
		}
	}
	g.VZEROUPPER()
	g.RET()
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
