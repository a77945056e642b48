package main

import (
	"fmt"
	"slices"
	"strings"
)

// lane4 is a loop's body over four lanes in single assignments; emit gives its values registers.
type lane4 struct {
	g     *neon
	steps []step
	value int
	base  map[string]string // slices' address registers
	fixed map[string]int    // registers that hold a value through the loop: scalars
}

// val is a value of four lanes.
type val int

// step is an instruction: in[spoilt] is also its output, unless spoilt is -1.
type step struct {
	write  func(d int, in []int)
	in     []val
	out    val
	spoilt int
}

func (b *lane4) step(spoilt int, write func(d int, in []int), in ...val) val {
	b.value++
	b.steps = append(b.steps, step{write, in, val(b.value), spoilt})
	return val(b.value)
}

// three is an instruction of Vd, Vn and Vm that Go's assembler lacks, two one of Vd and Vn.
func (b *lane4) three(code uint32, name string, n, m val) val {
	return b.step(-1, func(d int, in []int) {
		b.g.word(code, fmt.Sprintf("%s V%d.4S, V%d.4S, V%d.4S", name, d, in[0], in[1]), d, in[0], in[1])
	}, n, m)
}

func (b *lane4) two(code uint32, name, operand string, n val) val {
	return b.step(-1, func(d int, in []int) {
		b.g.word(code, fmt.Sprintf("%s V%d.4S, V%d.4S%s", name, d, in[0], operand), d, in[0], 0)
	}, n)
}

func (b *lane4) add(n, m val) val    { return b.three(0x4e20d400, "FADD", n, m) }
func (b *lane4) sub(n, m val) val    { return b.three(0x4ea0d400, "FSUB", n, m) }
func (b *lane4) mul(n, m val) val    { return b.three(0x6e20dc00, "FMUL", n, m) }
func (b *lane4) div(n, m val) val    { return b.three(0x6e20fc00, "FDIV", n, m) }
func (b *lane4) least(n, m val) val  { return b.three(0x4ea0f400, "FMIN", n, m) }
func (b *lane4) most(n, m val) val   { return b.three(0x4e20f400, "FMAX", n, m) }
func (b *lane4) over(n, m val) val   { return b.three(0x6ea0e400, "FCMGT", n, m) }
func (b *lane4) intAdd(n, m val) val { return b.three(0x4ea08400, "ADD", n, m) }
func (b *lane4) intSub(n, m val) val { return b.three(0x6ea08400, "SUB", n, m) }
func (b *lane4) negate(n val) val    { return b.two(0x6ea0f800, "FNEG", "", n) }
func (b *lane4) toInt(n val) val     { return b.two(0x4e21a800, "FCVTNS", "", n) }
func (b *lane4) halve(n val) val     { return b.two(0x4f3f0400, "SSHR", ", $1", n) }
func (b *lane4) signs(n val) val     { return b.two(0x4f210400, "SSHR", ", $31", n) }
func (b *lane4) exponent(n val) val  { return b.two(0x4f375400, "SHL", ", $23", n) }

func (b *lane4) bits(op string, n, m val) val {
	return b.step(-1, func(d int, in []int) { b.g.op("%s V%d.B16, V%d.B16, V%d.B16", op, in[1], in[0], d) }, n, m)
}

// fma is n·m + c, fnma c − n·m.
func (b *lane4) fma(n, m, c val) val  { return b.fused("VFMLA", n, m, c) }
func (b *lane4) fnma(n, m, c val) val { return b.fused("VFMLS", n, m, c) }

func (b *lane4) fused(op string, n, m, c val) val {
	return b.step(2, func(d int, in []int) { b.g.op("%s V%d.S4, V%d.S4, V%d.S4", op, in[1], in[0], d) }, n, m, c)
}

// choose is yes where the mask is set, else no.
func (b *lane4) choose(mask, yes, no val) val {
	return b.step(0, func(d int, in []int) { b.g.op("VBSL V%d.B16, V%d.B16, V%d.B16", in[2], in[1], d) }, mask, yes, no)
}

func (b *lane4) k(name string) val {
	at := slices.IndexFunc(mathConstants, func(c mathConstant) bool { return c.name == name })
	if at < 0 {
		panic("no constant " + name)
	}
	return b.step(-1, func(d int, _ []int) { b.g.op("FMOVQ %d(R15), F%d // %s", 16*at, d, name) })
}

func (b *lane4) load(slice string) val {
	return b.step(-1, func(d int, _ []int) { b.g.op("VLD1 (%s), [V%d.S4]", b.base[slice], d) })
}

func (b *lane4) store(slice string, v val) {
	b.step(-1, func(_ int, in []int) { b.g.op("VST1.P [V%d.S4], 16(%s)", in[0], b.base[slice]) }, v)
}

// scalar is a parameter in all lanes.
func (b *lane4) scalar(name string) val {
	r := b.fixed[name]
	return b.step(-1, func(d int, _ []int) { b.g.op("VMOV V%d.B16, V%d.B16", r, d) })
}

// emit writes the body. A value's register is free after its last use.
func (b *lane4) emit() {
	last := map[val]int{}
	for i, s := range b.steps {
		for _, v := range s.in {
			last[v] = i
		}
	}
	at, used := map[val]int{}, [24]bool{}
	for i, s := range b.steps {
		in := make([]int, len(s.in))
		for j, v := range s.in {
			in[j] = at[v]
		}
		free := func() {
			for _, v := range s.in {
				if last[v] == i {
					used[at[v]] = false
				}
			}
		}
		take := func() int {
			r := slices.Index(used[:], false)
			used[r] = true
			return r
		}
		var d int
		switch {
		case s.spoilt < 0:
			free()
			d = take()
		case last[s.in[s.spoilt]] == i && !slices.Contains(append(slices.Clone(s.in[:s.spoilt]), s.in[s.spoilt+1:]...), s.in[s.spoilt]):
			free()
			d = in[s.spoilt]
			used[d] = true
		default:
			d = take()
			b.g.op("VMOV V%d.B16, V%d.B16", in[s.spoilt], d)
			free()
		}
		s.write(d, in)
		if _, ok := last[s.out]; !ok {
			used[d] = false
		}
		at[s.out] = d
	}
}

func (b *lane4) exp(x val) val { return b.scale(b.expParts(x)) }

func (b *lane4) expParts(x val) (p, n val) {
	n = b.sub(b.fma(x, b.k("log2e"), b.k("magic")), b.k("magic"))
	r := b.fma(n, b.k("minusLn2Hi"), x)
	h := b.fma(n, b.k("minusLn2Lo"), r)
	lo := b.fma(n, b.k("minusLn2Lo"), b.sub(r, h))
	q := b.k("exp7")
	for _, c := range []string{"exp6", "exp5", "exp4", "exp3", "half"} {
		q = b.fma(q, h, b.k(c))
	}
	s := b.add(h, b.k("one"))
	lo = b.fma(b.mul(h, h), q, lo)
	return b.add(s, b.add(lo, b.sub(h, b.sub(s, b.k("one"))))), n
}

func (b *lane4) scale(p, n val) val {
	i := b.toInt(n)
	half := b.halve(i)
	for _, part := range []val{half, b.intSub(i, half)} {
		p = b.mul(p, b.exponent(b.intAdd(part, b.k("bias127"))))
	}
	return p
}

func (b *lane4) sigmoid(x val) val {
	e := b.exp(b.most(b.bits("VORR", x, b.k("signBit")), b.k("expBottom")))
	top := b.choose(b.signs(x), e, b.k("one"))
	s := b.add(e, b.k("one"))
	lost := b.sub(e, b.sub(s, b.k("one")))
	inverse := b.div(b.k("one"), s)
	y := b.mul(top, inverse)
	rest := b.fnma(y, lost, b.fnma(y, s, top))
	return b.fma(rest, inverse, y)
}

func (b *lane4) silu(x val) val {
	c := b.most(x, b.k("siluBottom"))
	p, n := b.expParts(b.bits("VORR", c, b.k("signBit")))
	e := b.scale(p, n)
	s := b.add(e, b.k("one"))
	lost := b.sub(e, b.sub(s, b.k("one")))
	inverse := b.div(b.k("one"), s)
	p = b.choose(b.signs(c), p, b.k("one"))
	top := b.mul(c, p)
	low := b.fma(c, p, b.negate(top))
	y := b.mul(top, inverse)
	rest := b.fnma(y, lost, b.fnma(y, s, top))
	y = b.fma(b.add(rest, low), inverse, y)
	y = b.choose(b.signs(c), b.scale(y, n), y)
	return b.choose(b.over(x, b.k("siluTop")), x, y)
}

func (b *lane4) tanh(x val) val {
	z := b.mul(x, x)
	p := b.k("tanh13")
	for _, c := range []string{"tanh11", "tanh9", "tanh7", "tanh5", "tanh3"} {
		p = b.fma(p, z, b.k(c))
	}
	near := b.fma(b.mul(x, z), p, x)
	a := b.bits("VAND", x, b.k("valueBits"))
	e := b.exp(b.least(b.add(a, a), b.k("expTop")))
	far := b.sub(b.k("one"), b.div(b.k("two"), b.add(e, b.k("one"))))
	far = b.bits("VORR", far, b.bits("VAND", x, b.k("signBit")))
	return b.choose(b.over(b.k("tanhEdge"), a), near, far)
}

// constantTable is mathConstants, four copies of each.
func (g *neon) constantTable() {
	g.line("")
	for i, c := range mathConstants {
		for lane := range 4 {
			g.line("DATA mathConstants<>+%d(SB)/4, $0x%08x", 16*i+4*lane, c.bits)
		}
	}
	g.line("GLOBL mathConstants<>(SB), NOPTR|RODATA, $%d", 16*len(mathConstants))
}

// elementwise is a function of slices, y the first, and of scalars; the slices' length is
// a multiple of 4.
func (g *neon) elementwise(name, parameters, doc string, body func(b *lane4)) {
	b := &lane4{g: g, base: map[string]string{}, fixed: map[string]int{}}
	vectors, scalars := names(parameters, "[]float32"), names(parameters, "float32")
	g.function(name, "("+parameters+")", doc+" The slices are as long as y, a multiple of 4.", 24*len(vectors)+4*len(scalars))
	g.op("MOVD y_len+8(FP), R6")
	for i, v := range vectors {
		b.base[v] = fmt.Sprintf("R%d", i)
		g.op("MOVD %s_base+%d(FP), R%d", v, 24*i, i)
	}
	for i, s := range scalars {
		b.fixed[s] = 28 + i
		g.op("FMOVS %s+%d(FP), F%d", s, 24*len(vectors)+4*i, 28+i)
		g.op("VDUP V%d.S[0], V%d.S4", 28+i, 28+i)
	}
	g.op("MOVD $mathConstants<>(SB), R15")
	g.op("CBZ R6, done")
	g.line("loop:")
	body(b)
	b.emit()
	for _, v := range vectors[1:] {
		g.op("ADD $16, %s", b.base[v])
	}
	g.op("SUB $4, R6")
	g.op("CBNZ R6, loop")
	g.line("done:")
	g.op("RET")
}

func (g *neon) math() {
	g.constantTable()
	g.elementwise("exps", "y, x []float32, top float32", "is y = e^(x−top).", func(b *lane4) {
		x := b.sub(b.load("x"), b.scalar("top"))
		b.store("y", b.exp(b.most(b.least(x, b.k("expTop")), b.k("expBottom"))))
	})
	g.elementwise("sigmoids", "y, x []float32", "is y = σ(x).", func(b *lane4) { b.store("y", b.sigmoid(b.load("x"))) })
	g.elementwise("silus", "y, x []float32", "is y = x·σ(x).", func(b *lane4) { b.store("y", b.silu(b.load("x"))) })
	g.elementwise("mulSigmoids", "y, x []float32", "is y *= σ(x).", func(b *lane4) {
		b.store("y", b.mul(b.sigmoid(b.load("x")), b.load("y")))
	})
	g.elementwise("situs", "y, g, u []float32, beta, lambda, invBeta, invLambda float32", "is y = β·tanh(g/β)·σ(g) · λ·tanh(u/λ).", func(b *lane4) {
		gate := b.load("g")
		t := b.mul(b.tanh(b.mul(gate, b.scalar("invBeta"))), b.scalar("beta"))
		t = b.mul(t, b.sigmoid(gate))
		up := b.mul(b.tanh(b.mul(b.load("u"), b.scalar("invLambda"))), b.scalar("lambda"))
		b.store("y", b.mul(t, up))
	})
	g.elementwise("gates", "y, x, bias []float32, rate, lower float32", "is y = lower·σ(rate·(x+bias)).", func(b *lane4) {
		x := b.mul(b.add(b.load("x"), b.load("bias")), b.scalar("rate"))
		b.store("y", b.mul(b.sigmoid(x), b.scalar("lower")))
	})
	g.elementwise("scales", "y, x []float32, a float32", "is y = x·a.", func(b *lane4) { b.store("y", b.mul(b.load("x"), b.scalar("a"))) })
	g.elementwise("normScales", "y, x, w []float32, a float32", "is y = w·(x·a).", func(b *lane4) {
		b.store("y", b.mul(b.mul(b.load("x"), b.scalar("a")), b.load("w")))
	})
	g.elementwise("adds", "y, x []float32", "is y += x.", func(b *lane4) { b.store("y", b.add(b.load("y"), b.load("x"))) })
	g.elementwise("addScaleds", "y, x []float32, a float32", "is y += a·x, the product rounded.", func(b *lane4) {
		b.store("y", b.add(b.load("y"), b.mul(b.load("x"), b.scalar("a"))))
	})
	g.dot()
	g.convolve()
	g.kdaStep()
}

// convolve takes four channels at a time: their taps in V0 … V3, the rows before in
// V4 … V6.
func (g *neon) convolve() {
	g.function("convolve", "(y, next, x, prev, w *float32, stride, rows, channels int)",
		"is the short convolution before its SiLU (convolve in vector.go). channels is a multiple of 16.", 64)
	for i, p := range strings.Fields("y next x prev w stride rows channels") {
		g.op("MOVD %s+%d(FP), R%d", p, 8*i, i)
	}
	g.op("LSL $2, R5")
	// before loads or stores the three rows.
	before := func(format, base string) {
		g.op("MOVD %s, R8", base)
		for v := 4; v < 7; v++ {
			g.op(format, v)
			g.op("ADD R5, R8")
		}
		g.op("ADD $16, %s", base)
	}
	g.op("CBZ R7, done")
	g.line("channels:")
	g.op("VLD4.P 64(R4), [V0.S4, V1.S4, V2.S4, V3.S4]")
	before("VLD1 (R8), [V%d.S4]", "R3")
	g.op("MOVD R2, R9")
	g.op("MOVD R0, R10")
	g.op("MOVD R6, R11")
	g.op("CBZ R11, next")
	g.line("rows:")
	g.op("VLD1 (R9), [V7.S4]")
	g.op("VEOR V8.B16, V8.B16, V8.B16")
	for i := range 4 {
		g.op("VFMLA V%d.S4, V%d.S4, V8.S4", 4+i, i)
	}
	g.op("VST1 [V8.S4], (R10)")
	for v := 4; v < 7; v++ {
		g.op("VMOV V%d.B16, V%d.B16", v+1, v)
	}
	g.op("ADD R5, R9")
	g.op("ADD R5, R10")
	g.op("SUB $1, R11")
	g.op("CBNZ R11, rows")
	g.line("next:")
	before("VST1 [V%d.S4], (R8)", "R1")
	g.op("ADD $16, R2")
	g.op("ADD $16, R0")
	g.op("SUB $4, R7")
	g.op("CBNZ R7, channels")
	g.line("done:")
	g.op("RET")
}

func (g *neon) dot() {
	g.function("dot", "(a, b *float32, n int) (sum float32)", "is dot(a, b). n is a multiple of 16.", 28)
	g.op("MOVD a+0(FP), R0")
	g.op("MOVD b+8(FP), R1")
	g.op("MOVD n+16(FP), R6")
	g.clear(4)
	g.op("CBZ R6, done")
	g.line("loop:")
	g.op("VLD1.P 64(R0), [V4.S4, V5.S4, V6.S4, V7.S4]")
	g.op("VLD1.P 64(R1), [V8.S4, V9.S4, V10.S4, V11.S4]")
	for i := range 4 {
		g.op("VFMLA V%d.S4, V%d.S4, V%d.S4", 8+i, 4+i, i)
	}
	g.op("SUB $16, R6")
	g.op("CBNZ R6, loop")
	g.line("done:")
	g.fold(0, "sum+24(FP)")
	g.op("RET")
}

// kdaStep holds the columns' errors in V0 … V7 and their outputs in V8 … V15.
func (g *neon) kdaStep() {
	g.function("kdaStep32", "(to, from *float32, toStride, fromStride int, o, v, q, k, decay *float32, rows, ahead int, beta float32)",
		"is kdaStep of 32 value columns, without its prefetch.", 92)
	for i, p := range strings.Fields("to from toStride fromStride o v q k decay rows") {
		g.op("MOVD %s+%d(FP), R%d", p, 8*i, i)
	}
	g.op("LSL $2, R2")
	g.op("LSL $2, R3")
	// row loads a key row of the state, decayed, to V16 … V23, and its key to V29.
	row := func(key string) {
		g.op("VLD1R.P 4(R12), [V28.S4]")
		g.op("VLD1R.P 4(%s), [V29.S4]", key)
		g.op("MOVD R10, R14")
		g.op("VLD1.P 64(R14), [V16.S4, V17.S4, V18.S4, V19.S4]")
		g.op("VLD1 (R14), [V20.S4, V21.S4, V22.S4, V23.S4]")
		g.op("ADD R3, R10")
		for i := 16; i < 24; i++ {
			g.mul(i, i, 28)
		}
	}
	begin := func(key string) {
		g.op("MOVD R1, R10")
		g.op("MOVD R7, %s", key)
		g.op("MOVD R8, R12")
		g.op("MOVD R9, R13")
	}
	begin("R11")
	g.clear(16)
	g.line("error:")
	row("R11")
	for i := range 8 {
		g.op("VFMLA V%d.S4, V29.S4, V%d.S4", 16+i, i)
	}
	g.op("SUB $1, R13")
	g.op("CBNZ R13, error")

	g.op("FMOVS beta+88(FP), F30")
	g.op("VDUP V30.S[0], V30.S4")
	for i := range 8 {
		g.op("VLD1.P 16(R5), [V16.S4]")
		g.word(0x4ea0d400, fmt.Sprintf("FSUB V%d.4S, V16.4S, V%d.4S", i, i), i, 16, i)
		g.mul(i, i, 30)
	}
	begin("R11")
	g.line("update:")
	row("R11")
	g.op("VLD1R.P 4(R6), [V30.S4]")
	for i := range 8 {
		t := 24 + i%4
		g.mul(t, i, 29)
		g.add(16+i, 16+i, t)
		g.op("VFMLA V%d.S4, V30.S4, V%d.S4", 16+i, 8+i)
	}
	g.op("MOVD R0, R14")
	g.op("VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R14)")
	g.op("VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R14)")
	g.op("ADD R2, R0")
	g.op("SUB $1, R13")
	g.op("CBNZ R13, update")
	g.op("VST1.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(R4)")
	g.op("VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R4)")
	g.op("RET")
}
