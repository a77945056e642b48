package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

const (
	peakAsmFile  = "peak_amd64.s"
	peakStubFile = "peak_amd64.go"
)

// peakAccumulators is how many sums are in flight: more than the latency of an FMA
// times the two that a core starts in a cycle.
const peakAccumulators = 12

// peakLoads is how many registers a step of the reading loop loads.
const peakLoads = 8

// generatePeak is all files of the loops that measure what a CPU can do at most.
func generatePeak() (map[string][]byte, error) {
	asm, stubs, err := generatePeakAMD64()
	armAsm, armStubs := generatePeakARM64()
	return map[string][]byte{peakAsmFile: asm, peakStubFile: stubs, peakARM64File: armAsm, peakARM64StubFile: armStubs}, err
}

func generatePeakAMD64() (asm, stubs []byte, err error) {
	g := &gen{Context: build.NewContext()}
	g.ConstraintExpr("!noasm")
	for _, isa := range []isa{avx2, avx512} {
		g.isa = isa
		g.fmaPeak()
		g.readPeak()
	}
	file, err := g.Result()
	if err != nil {
		return nil, nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, nil, err
	}
	c := printer.Config{Name: "metal/cpu/asm", Pkg: "cpu"}
	if asm, err = printer.NewGoAsm(c).Print(file); err != nil {
		return nil, nil, err
	}
	stubs, err = printer.NewStubs(c).Print(file)
	return asm, stubs, err
}

// writePeak writes all files to dir.
func writePeak(dir string) error {
	files, err := generatePeak()
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fmaPeak is FMAs that wait for nothing but themselves.
func (g *gen) fmaPeak() {
	g.function("fmaPeak", "func(x *float32, n int)",
		fmt.Sprintf("does n times %d multiply-adds of registers, with *x as both factors.", peakAccumulators*g.isa.wide))
	x := g.reg()
	g.VBROADCASTSS(operand.Mem{Base: g.Load(g.Param("x"), g.GP64())}, x)
	n := g.Load(g.Param("n"), g.GP64())
	var acc [peakAccumulators]reg.VecVirtual
	for i := range acc {
		acc[i] = g.reg()
		g.zero(acc[i])
	}
	label := "fmaPeak" + g.isa.suffix
	g.Label(label + "Loop")
	for i := range acc {
		g.VFMADD231PS(x, x, acc[i])
	}
	g.DECQ(n)
	g.JG(operand.LabelRef(label + "Loop"))
	g.VZEROUPPER()
	g.RET()
}

// readPeak loads memory and does nothing with it.
func (g *gen) readPeak() {
	step := peakLoads * 4 * g.isa.wide
	g.function("readPeak", "func(p *byte, n int)", fmt.Sprintf("loads n bytes, a multiple of %d.", step))
	p := g.Load(g.Param("p"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	label := "readPeak" + g.isa.suffix
	g.Label(label + "Loop")
	for i := range peakLoads {
		g.VMOVUPS(operand.Mem{Base: p, Disp: i * 4 * g.isa.wide}, g.reg())
	}
	g.ADDQ(operand.U32(step), p)
	g.SUBQ(operand.U32(step), n)
	g.JG(operand.LabelRef(label + "Loop"))
	g.VZEROUPPER()
	g.RET()
}
