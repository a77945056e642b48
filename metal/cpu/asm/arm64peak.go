package main

const (
	peakARM64File     = "peak_arm64.s"
	peakARM64StubFile = "peak_arm64.go"
)

const (
	// neonPeakAccumulators is how many sums are in flight: more than the latency of an
	// FMA, four cycles, times the four that the widest cores start in one.
	neonPeakAccumulators = 24
	neonPeakPairs        = 8 // of registers that a step of the reading loop loads
)

// generatePeakARM64 is both files of NEON's loops.
func generatePeakARM64() (asm, stubs []byte) {
	g := newNEON()
	g.function("fmaPeak", "(x *float32, n int)", "does n times 96 multiply-adds of registers, with *x as both factors.", 16)
	g.op("MOVD x+0(FP), R0")
	g.op("MOVD n+8(FP), R1")
	g.op("FMOVS (R0), F31")
	g.op("VDUP V31.S[0], V31.S4")
	g.clear(neonPeakAccumulators)
	g.line("loop:")
	for i := range neonPeakAccumulators {
		g.op("VFMLA V31.S4, V31.S4, V%d.S4", i)
	}
	g.op("SUBS $1, R1")
	g.op("BGT loop")
	g.op("RET")

	g.function("readPeak", "(p *byte, n int)", "loads n bytes, a multiple of 256.", 16)
	g.op("MOVD p+0(FP), R0")
	g.op("MOVD n+8(FP), R1")
	g.line("loop:")
	for i := range neonPeakPairs {
		g.op("FLDPQ %d(R0), (F%d, F%d)", 32*i, 2*i, 2*i+1)
	}
	g.op("ADD $%d, R0", 32*neonPeakPairs)
	g.op("SUBS $%d, R1", 32*neonPeakPairs)
	g.op("BGT loop")
	g.op("RET")
	return g.asm.Bytes(), g.stubs.Bytes()
}
