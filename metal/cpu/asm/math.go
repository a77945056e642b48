package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

const (
	mathFile     = "vector_amd64.s"
	mathStubFile = "vector_amd64.go"
)

// generateMath is the files with what metal/cpu/vector.go defines: the exponential and
// its kin, and the loops over vectors that use them. Functions take any length: the
// last elements, under 16, are read and written through masks.
func generateMath() (asm, stubs []byte, err error) {
	g := &mathGen{gen: &gen{Context: build.NewContext()}, constants: map[string]operand.Mem{}}
	g.ConstraintExpr("!noasm")
	g.table()
	for _, isa := range []isa{avx2, avx512} {
		g.isa = isa
		g.expSum()
		g.elementwise("sigmoids", "y, x []float32", "is y = σ(x).", func(s *strip) {
			s.store("y", g.sigmoid(s.load("x")))
		})
		g.elementwise("silus", "y, x []float32", "is y = x·σ(x).", func(s *strip) {
			s.store("y", g.silu(s.load("x")))
		})
		g.elementwise("mulSigmoids", "y, x []float32", "is y *= σ(x).", func(s *strip) {
			s.store("y", g.mul(g.sigmoid(s.load("x")), s.load("y")))
		})
		g.elementwise("situs", "y, g, u []float32, beta, lambda, invBeta, invLambda float32", "is y = β·tanh(g/β)·σ(g) · λ·tanh(u/λ).", func(s *strip) {
			gate := s.load("g")
			t := g.mul(g.tanh(g.mul(gate, s.scalar("invBeta"))), s.scalar("beta"))
			t = g.mul(t, g.sigmoid(gate))
			up := g.mul(g.tanh(g.mul(s.load("u"), s.scalar("invLambda"))), s.scalar("lambda"))
			s.store("y", g.mul(t, up))
		})
		g.elementwise("gates", "y, x, bias []float32, rate, lower float32", "is y = lower·σ(rate·(x+bias)).", func(s *strip) {
			x := g.mul(g.add(s.load("x"), s.load("bias")), s.scalar("rate"))
			s.store("y", g.mul(g.sigmoid(x), s.scalar("lower")))
		})
		g.elementwise("adds", "y, x []float32", "is y += x.", func(s *strip) {
			s.store("y", g.add(s.load("y"), s.load("x")))
		})
		g.elementwise("addScaleds", "y, x []float32, a float32", "is y += a·x, the product rounded.", func(s *strip) {
			s.store("y", g.add(s.load("y"), g.mul(s.load("x"), s.scalar("a"))))
		})
		g.elementwise("scales", "y, x []float32, a float32", "is y = x·a.", func(s *strip) {
			s.store("y", g.mul(s.load("x"), s.scalar("a")))
		})
		g.elementwise("normScales", "y, x, w []float32, a float32", "is y = w·(x·a).", func(s *strip) {
			s.store("y", g.mul(g.mul(s.load("x"), s.scalar("a")), s.load("w")))
		})
		g.sums()
		g.mix()
		g.convolve()
		g.kdaStep()
		g.above()
		g.largest()
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

type vec = reg.VecVirtual

// mathGen writes functions of vectors. Its arithmetic is on registers of the instruction
// set's width; AVX-512 broadcasts a constant in its operand, AVX2 reads eight copies.
type mathGen struct {
	*gen
	constants map[string]operand.Mem
}

type mathConstant struct {
	name string
	bits uint32
}

// mathConstants are those of metal/cpu/math.go.
var mathConstants = []mathConstant{
	{"signBit", 1 << 31}, {"valueBits", 1<<31 - 1}, {"bias127", 127},
	{"one", bits(1)}, {"two", bits(2)},
	{"siluTop", bits(100)}, {"siluBottom", bits(-120)},
	{"expTop", bits(89)}, {"expBottom", bits(-104)},
	{"log2e", bits(0x1.715476p+0)}, {"magic", bits(0x1.8p23)}, {"minusLn2Hi", bits(-0x1.62e4p-1)}, {"minusLn2Lo", bits(-0x1.7f7d1cp-20)},
	{"exp7", bits(1.0 / 5040)}, {"exp6", bits(1.0 / 720)}, {"exp5", bits(1.0 / 120)}, {"exp4", bits(1.0 / 24)}, {"exp3", bits(1.0 / 6)}, {"half", bits(0.5)},
	{"tanhEdge", bits(0.625)},
	{"tanh13", bits(0.002292744815349579)}, {"tanh11", bits(-0.008343945257365704)}, {"tanh9", bits(0.02176891826093197)},
	{"tanh7", bits(-0.053959257900714874)}, {"tanh5", bits(0.13333304226398468)}, {"tanh3", bits(-0.3333333432674408)},
}

// table writes the constants.
func (g *mathGen) table() {
	words := func(name string, bits ...uint32) {
		g.constants[name] = g.StaticGlobal(name)
		g.DataAttributes(attr.NOPTR | attr.RODATA)
		for i, b := range bits {
			g.AddDatum(4*i, operand.U32(b))
		}
	}
	for _, c := range mathConstants {
		words(c.name, c.bits, c.bits, c.bits, c.bits, c.bits, c.bits, c.bits, c.bits)
	}
	masks, turn := make([]uint32, 32), make([]uint32, 16)
	for i := range 16 {
		masks[i] = math.MaxUint32
		turn[i] = uint32(4*(i%4) + i/4)
	}
	words("masks", masks...)
	words("turn", turn...)
}

func bits(f float32) uint32 { return math.Float32bits(f) }

func (g *mathGen) k(name string) operand.Mem {
	m, ok := g.constants[name]
	if !ok {
		panic("no constant " + name)
	}
	return m
}

// dup is a register with the constant.
func (g *mathGen) dup(name string) vec {
	v := g.reg()
	if g.isa.wide == 16 {
		g.VBROADCASTSS(g.k(name), v)
	} else {
		g.VMOVUPS(g.k(name), v)
	}
	return v
}

func (g *mathGen) move(a vec) vec {
	v := g.reg()
	g.VMOVAPS(a, v)
	return v
}

// with is dst = a op b, b a register or a constant's name.
func (g *mathGen) with(plain, broadcast func(...operand.Op), a vec, b any, dst vec) vec {
	switch b := b.(type) {
	case vec:
		plain(b, a, dst)
	case string:
		if g.isa.wide == 16 {
			broadcast(g.k(b), a, dst)
		} else {
			plain(g.k(b), a, dst)
		}
	}
	return dst
}

func (g *mathGen) mul(a vec, b any) vec { return g.with(g.VMULPS, g.VMULPS_BCST, a, b, g.reg()) }
func (g *mathGen) add(a vec, b any) vec { return g.with(g.VADDPS, g.VADDPS_BCST, a, b, g.reg()) }
func (g *mathGen) sub(a vec, b any) vec { return g.with(g.VSUBPS, g.VSUBPS_BCST, a, b, g.reg()) }
func (g *mathGen) div(a vec, b any) vec { return g.with(g.VDIVPS, g.VDIVPS_BCST, a, b, g.reg()) }
func (g *mathGen) and(a vec, b any) vec { return g.with(g.VANDPS, g.VANDPS_BCST, a, b, g.reg()) }
func (g *mathGen) or(a vec, b any) vec  { return g.with(g.VORPS, g.VORPS_BCST, a, b, g.reg()) }

// fma is c = a·b + c, in place.
func (g *mathGen) fma(a vec, b any, c vec) vec {
	return g.with(g.VFMADD231PS, g.VFMADD231PS_BCST, a, b, c)
}

// fnma is c = −a·b + c, in place.
func (g *mathGen) fnma(a vec, b any, c vec) vec {
	return g.with(g.VFNMADD231PS, g.VFNMADD231PS_BCST, a, b, c)
}

// horner is q = q·z + c, in place.
func (g *mathGen) horner(q, z vec, c string) vec {
	return g.with(g.VFMADD213PS, g.VFMADD213PS_BCST, z, c, q)
}

// atMost and atLeast let what is not a number pass: then x86 gives the operand that
// Go's order writes first, and x is it.
func (g *mathGen) atMost(x vec, limit string) vec {
	v := g.dup(limit)
	g.VMINPS(x, v, v)
	return v
}

func (g *mathGen) atLeast(x vec, limit string) vec {
	v := g.dup(limit)
	g.VMAXPS(x, v, v)
	return v
}

// choose is yes where sign's sign bit is set, else no.
func (g *mathGen) choose(sign, yes, no vec) vec {
	v := g.reg()
	if g.isa.wide == 16 {
		k := g.K()
		g.VPMOVD2M(sign, k)
		g.VBLENDMPS(yes, no, k, v)
	} else {
		g.VBLENDVPS(sign, yes, no, v)
	}
	return v
}

// exp is math.go's exp of an x that is already within its bounds or not a number.
func (g *mathGen) exp(x vec) vec { return g.scale(g.expParts(x)) }

func (g *mathGen) expParts(x vec) (p, n vec) {
	n = g.sub(g.fma(x, "log2e", g.dup("magic")), "magic")
	r := g.fma(n, "minusLn2Hi", g.move(x))
	h := g.fma(n, "minusLn2Lo", g.move(r))
	lo := g.fma(n, "minusLn2Lo", g.sub(r, h))
	q := g.dup("exp7")
	for _, c := range []string{"exp6", "exp5", "exp4", "exp3", "half"} {
		q = g.horner(q, h, c)
	}
	s := g.add(h, "one")
	lo = g.fma(g.mul(h, h), q, lo)
	return g.add(s, g.add(lo, g.sub(h, g.sub(s, "one")))), n
}

func (g *mathGen) scale(p, n vec) vec {
	if g.isa.wide == 16 {
		y := g.reg()
		g.VSCALEFPS(n, p, y)
		return y
	}
	i, half := g.reg(), g.reg()
	g.VCVTPS2DQ(n, i)
	g.VPSRAD(operand.Imm(1), i, half)
	g.VPSUBD(half, i, i)
	for _, part := range []vec{half, i} {
		g.VPADDD(g.k("bias127"), part, part)
		g.VPSLLD(operand.Imm(23), part, part)
		p = g.mul(p, part)
	}
	return p
}

func (g *mathGen) sigmoid(x vec) vec {
	e := g.exp(g.atLeast(g.or(x, "signBit"), "expBottom"))
	top := g.choose(x, e, g.dup("one"))
	s := g.add(e, "one")
	lost := g.sub(e, g.sub(s, "one"))
	inverse := g.div(g.dup("one"), s)
	y := g.mul(top, inverse)
	rest := g.fnma(y, lost, g.fnma(y, s, g.move(top)))
	return g.fma(rest, inverse, y)
}

func (g *mathGen) silu(x vec) vec {
	c := g.atLeast(x, "siluBottom")
	p, n := g.expParts(g.or(c, "signBit"))
	e := g.scale(p, n)
	s := g.add(e, "one")
	lost := g.sub(e, g.sub(s, "one"))
	inverse := g.div(g.dup("one"), s)
	p = g.choose(c, p, g.dup("one"))
	top := g.mul(c, p)
	y := g.mul(top, inverse)
	rest := g.fnma(y, lost, g.fnma(y, s, g.move(top)))
	low := g.with(g.VFMSUB213PS, g.VFMSUB213PS_BCST, c, top, p) // p·c − top
	y = g.fma(g.add(rest, low), inverse, y)
	y = g.choose(c, g.scale(y, n), y)
	if g.isa.wide == 16 {
		k := g.K()
		g.VCMPPS_BCST(operand.Imm(greaterThan), g.k("siluTop"), x, k)
		g.VMOVAPS(x, k, y)
		return y
	}
	far := g.reg()
	g.VCMPPS(operand.Imm(greaterThan), g.k("siluTop"), x, far)
	g.VBLENDVPS(far, x, y, y)
	return y
}

func (g *mathGen) tanh(x vec) vec {
	z := g.mul(x, x)
	p := g.dup("tanh13")
	for _, c := range []string{"tanh11", "tanh9", "tanh7", "tanh5", "tanh3"} {
		p = g.horner(p, z, c)
	}
	near := g.fma(g.mul(x, z), p, g.move(x))
	a := g.and(x, "valueBits")
	e := g.exp(g.atMost(g.add(a, a), "expTop"))
	far := g.sub(g.dup("one"), g.div(g.dup("two"), g.add(e, "one")))
	far = g.or(far, g.and(x, "signBit"))
	// a − edge is negative, and not a number never: near then.
	v := g.reg()
	if g.isa.wide == 16 {
		k := g.K()
		g.VCMPPS_BCST(operand.Imm(lessThan), g.k("tanhEdge"), a, k)
		g.VBLENDMPS(near, far, k, v)
	} else {
		less := g.reg()
		g.VCMPPS(operand.Imm(lessThan), g.k("tanhEdge"), a, less)
		g.VBLENDVPS(less, near, far, v)
	}
	return v
}

// Predicates of VCMPPS, false for what is not a number.
const (
	lessThan    = 0x11
	greaterThan = 0x1e
)

// strip is some lanes of a loop over vectors: a register of each.
type strip struct {
	g       *mathGen
	slices  []slice
	scalars map[string]vec
	part    int          // which register of 16 lanes
	mask    reg.Register // nil for all lanes
}

func (s *strip) at(name string) operand.Mem {
	for _, v := range s.slices {
		if v.name == name {
			return operand.Mem{Base: v.base, Disp: 4 * s.part * s.g.isa.wide}
		}
	}
	panic("no slice " + name)
}

func (s *strip) load(name string) vec {
	v := s.g.reg()
	s.g.loadMasked(s.at(name), s.mask, v)
	return v
}

func (g *mathGen) loadMasked(from operand.Mem, mask reg.Register, v vec) {
	switch {
	case mask == nil:
		g.VMOVUPS(from, v)
	case g.isa.wide == 16:
		g.VMOVUPS_Z(from, mask, v)
	default:
		g.VMASKMOVPS(from, mask, v)
	}
}

func (s *strip) store(name string, v vec) { s.g.storeMasked(v, s.mask, s.at(name)) }

func (g *mathGen) storeMasked(v vec, mask reg.Register, to operand.Mem) {
	switch {
	case mask == nil:
		g.VMOVUPS(v, to)
	case g.isa.wide == 16:
		g.VMOVUPS(v, mask, to)
	default:
		g.VMASKMOVPS(v, mask, to)
	}
}

// scalar is a parameter in all lanes.
func (s *strip) scalar(name string) vec { return s.scalars[name] }

// merge is acc[part] = fma(a, b, acc[part]) in the strip's lanes only: elsewhere even
// adding 0 could turn −0 to 0.
func (s *strip) merge(a, b vec, acc vec) {
	switch {
	case s.mask == nil:
		s.g.VFMADD231PS(b, a, acc)
	case s.g.isa.wide == 16:
		s.g.VFMADD231PS(b, a, s.mask, acc)
	default:
		sum := s.g.move(acc)
		s.g.VFMADD231PS(b, a, sum)
		s.g.VBLENDVPS(s.mask, sum, acc, acc)
	}
}

// tailMask is the mask of a register's lanes under n, which is less than 16.
func (g *mathGen) tailMask(n reg.Register, part int) reg.Register {
	at, v := g.GP64(), g.reg()
	g.LEAQ(g.k("masks").Offset(64+4*part*g.isa.wide), at)
	back := g.GP64()
	g.MOVQ(n, back)
	g.SHLQ(operand.Imm(2), back)
	g.SUBQ(back, at)
	g.VMOVUPS(operand.Mem{Base: at}, v)
	if g.isa.wide == 8 {
		return v
	}
	k := g.K()
	g.VPMOVD2M(v, k)
	return k
}

// strips runs body over n elements of the vectors, 16 lanes a turn, then for the rest.
func (g *mathGen) strips(label string, n reg.Register, slices []slice, scalars map[string]vec, body func(s *strip)) {
	label += g.isa.suffix
	turn := func(mask func(part int) reg.Register) {
		for part := range g.isa.parts() {
			if part > 0 && mask != nil {
				g.CMPQ(n, operand.Imm(uint64(part*g.isa.wide)))
				g.JLE(operand.LabelRef(label + "Done"))
			}
			s := &strip{g: g, slices: slices, scalars: scalars, part: part}
			if mask != nil {
				s.mask = mask(part)
			}
			body(s)
		}
	}
	g.SUBQ(operand.Imm(16), n)
	g.JL(operand.LabelRef(label + "Tail"))
	g.Label(label + "Loop")
	turn(nil)
	for _, s := range slices {
		g.ADDQ(operand.U8(64), s.base)
	}
	g.SUBQ(operand.Imm(16), n)
	g.JGE(operand.LabelRef(label + "Loop"))
	g.Label(label + "Tail")
	g.ADDQ(operand.Imm(16), n)
	g.JE(operand.LabelRef(label + "Done"))
	turn(func(part int) reg.Register { return g.tailMask(n, part) })
	g.Label(label + "Done")
}

// elementwise is a function of slices, y the first, and of float32 scalars.
func (g *mathGen) elementwise(name, parameters, doc string, body func(s *strip)) {
	g.function(name, "func("+parameters+")", doc+" The slices are as long as y.")
	g.strips(name, g.Load(g.Param("y").Len(), g.GP64()), g.bases(parameters), g.scalars(parameters), body)
	g.VZEROUPPER()
	g.RET()
}

// names are the parameters of a type, in order.
func names(parameters, of string) []string {
	var all, pending []string
	for _, p := range strings.Split(parameters, ", ") {
		name, kind, typed := strings.Cut(p, " ")
		pending = append(pending, name)
		if typed {
			if kind == of {
				all = append(all, pending...)
			}
			pending = nil
		}
	}
	return all
}

// bases loads the addresses of slices.
func (g *mathGen) bases(parameters string) []slice {
	var all []slice
	for _, name := range names(parameters, "[]float32") {
		all = append(all, slice{name, g.Load(g.Param(name).Base(), g.GP64())})
	}
	return all
}

// slice is where a parameter's current lanes are.
type slice struct {
	name string
	base reg.Register
}

// scalars broadcasts the float32 parameters.
func (g *mathGen) scalars(parameters string) map[string]vec {
	s := map[string]vec{}
	for _, name := range names(parameters, "float32") {
		s[name] = g.broadcast(name)
	}
	return s
}

func (g *mathGen) broadcast(param string) vec {
	v := g.reg()
	g.VBROADCASTSS(g.Load(g.Param(param), g.XMM()), v)
	return v
}

func (g *mathGen) accumulators(n int) []vec {
	v := make([]vec, n)
	for i := range v {
		v[i] = g.reg()
		g.zero(v[i])
	}
	return v
}

// foldTo leaves the sum of 16 lanes in a register's first lane: l+8, l+4, l+2, l+1.
func (g *mathGen) foldTo(acc []vec) reg.VecVirtual {
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
	return low
}

func (g *mathGen) expSum() {
	const parameters = "y, x []float32, top float32"
	g.function("expSum", "func("+parameters+") (sum float32)", "is y = e^(x−top), and the sum of y in the lanes of dot. x is as long as y.")
	n := g.Load(g.Param("y").Len(), g.GP64())
	acc := g.accumulators(g.isa.parts())
	g.strips("expSum", n, g.bases(parameters), g.scalars(parameters), func(s *strip) {
		y := g.exp(g.atLeast(g.atMost(g.sub(s.load("x"), s.scalar("top")), "expTop"), "expBottom"))
		s.store("y", y)
		if s.mask != nil && g.isa.wide == 16 {
			g.VADDPS(y, acc[0], s.mask, acc[0])
			return
		}
		if s.mask != nil {
			masked := g.reg()
			g.VANDPS(y, s.mask.(vec), masked) // sums are never −0, so adding 0 leaves them
			y = masked
		}
		g.VADDPS(y, acc[s.part], acc[s.part])
	})
	g.Store(g.foldTo(acc).AsX(), g.ReturnIndex(0))
	g.VZEROUPPER()
	g.RET()
}

// sums are sumSquares and resDots.
func (g *mathGen) sums() {
	g.function("sumSquares", "func(x []float32) (sum float32)", "is dot(x, x).")
	n := g.Load(g.Param("x").Len(), g.GP64())
	acc := g.accumulators(g.isa.parts())
	g.strips("sumSquares", n, g.bases("x []float32"), nil, func(s *strip) {
		x := s.load("x")
		s.merge(x, x, acc[s.part])
	})
	g.Store(g.foldTo(acc).AsX(), g.ReturnIndex(0))
	g.VZEROUPPER()
	g.RET()

	g.function("resDots", "func(v, w []float32) (dot, squares float32)", "is dot(v, w) and dot(v, v). w is as long as v.")
	n = g.Load(g.Param("v").Len(), g.GP64())
	acc = g.accumulators(g.isa.parts())
	squares := g.accumulators(g.isa.parts())
	g.strips("resDots", n, g.bases("v, w []float32"), nil, func(s *strip) {
		v := s.load("v")
		s.merge(v, s.load("w"), acc[s.part])
		s.merge(v, v, squares[s.part])
	})
	g.Store(g.foldTo(acc).AsX(), g.ReturnIndex(0))
	g.Store(g.foldTo(squares).AsX(), g.ReturnIndex(1))
	g.VZEROUPPER()
	g.RET()
}

// mix is a weighted sum of vectors, each read once: 64 columns at a time in registers,
// then 16.
func (g *mathGen) mix() {
	g.function("mix", "func(y []float32, vs *[]float32, stride, offset int, p []float32)",
		"is y = Σ p[j]·vs[j][offset:], ascending j, each a fused multiply-add from 0. The slices of vs are stride bytes apart, and reach offset + len(y).")
	y := g.Load(g.Param("y").Base(), g.GP64())
	n := g.Load(g.Param("y").Len(), g.GP64())
	vs := g.Load(g.Param("vs"), g.GP64())
	stride := g.Load(g.Param("stride"), g.GP64())
	offset := g.Load(g.Param("offset"), g.GP64())
	p := g.Load(g.Param("p").Base(), g.GP64())
	count := g.Load(g.Param("p").Len(), g.GP64())
	label := "mix" + g.isa.suffix
	chunk := func(name string, lanes int, mask func(part int) reg.Register) {
		acc := g.accumulators(lanes / g.isa.wide)
		masks := make([]reg.Register, len(acc))
		for i := range masks {
			if mask != nil {
				masks[i] = mask(i)
			}
		}
		slice, j := g.GP64(), g.GP64()
		g.MOVQ(vs, slice)
		g.XORQ(j, j)
		g.Label(label + name)
		v, w := g.GP64(), g.reg()
		g.MOVQ(operand.Mem{Base: slice}, v)
		g.VBROADCASTSS(operand.Mem{Base: p, Index: j, Scale: 4}, w)
		for i := range acc {
			at := operand.Mem{Base: v, Index: offset, Scale: 4, Disp: 4 * i * g.isa.wide}
			if masks[i] == nil {
				g.VFMADD231PS(at, w, acc[i])
				continue
			}
			x := g.reg()
			g.loadMasked(at, masks[i], x)
			g.VFMADD231PS(x, w, acc[i])
		}
		g.ADDQ(stride, slice)
		g.INCQ(j)
		g.CMPQ(j, count)
		g.JL(operand.LabelRef(label + name))
		for i := range acc {
			g.storeMasked(acc[i], masks[i], operand.Mem{Base: y, Disp: 4 * i * g.isa.wide})
		}
	}
	for _, lanes := range []int{64, 16} {
		next := fmt.Sprint(label, "Under", lanes)
		g.Label(fmt.Sprint(label, "From", lanes))
		g.CMPQ(n, operand.Imm(uint64(lanes)))
		g.JL(operand.LabelRef(next))
		chunk(fmt.Sprint("Each", lanes), lanes, nil)
		g.ADDQ(operand.I32(4*lanes), y)
		g.ADDQ(operand.I32(lanes), offset)
		g.SUBQ(operand.Imm(uint64(lanes)), n)
		g.JMP(operand.LabelRef(fmt.Sprint(label, "From", lanes)))
		g.Label(next)
	}
	g.TESTQ(n, n)
	g.JE(operand.LabelRef(label + "Done"))
	chunk("EachRest", 16, func(part int) reg.Register { return g.tailMask(n, part) })
	g.Label(label + "Done")
	g.VZEROUPPER()
	g.RET()
}

// convolve is the short convolution of as many channels as a register holds at a time;
// the weights of a channel lie together and are turned once for all rows.
func (g *mathGen) convolve() {
	g.function("convolve", "func(y, next, x, prev, w *float32, stride, rows, channels int)",
		"is the short convolution before its SiLU (convolve in vector.go). channels is a multiple of 16.")
	param := func(name string) reg.Register { return g.Load(g.Param(name), g.GP64()) }
	y, next, x, prev, w := param("y"), param("next"), param("x"), param("prev"), param("w")
	stride, channels := param("stride"), param("channels")
	g.SHLQ(operand.Imm(2), stride)
	rowOf := func(base reg.Register, i int) operand.Mem {
		if i == 0 {
			return operand.Mem{Base: base}
		}
		return operand.Mem{Base: base, Index: stride, Scale: uint8(i)}
	}
	label := "convolve" + g.isa.suffix
	g.Label(label + "Channels")
	g.CMPQ(channels, operand.Imm(0))
	g.JE(operand.LabelRef(label + "Done"))
	taps := g.turned(w)
	var before [3]vec
	for i := range before {
		before[i] = g.reg()
		g.VMOVUPS(rowOf(prev, i), before[i])
	}
	in, out, rows := g.GP64(), g.GP64(), g.GP64()
	g.MOVQ(x, in)
	g.MOVQ(y, out)
	g.Load(g.Param("rows"), rows)
	g.Label(label + "Rows")
	g.CMPQ(rows, operand.Imm(0))
	g.JE(operand.LabelRef(label + "Next"))
	cur := g.reg()
	g.VMOVUPS(operand.Mem{Base: in}, cur)
	s := g.accumulators(1)[0]
	for i, v := range []vec{before[0], before[1], before[2], cur} {
		g.VFMADD231PS(v, taps[i], s)
	}
	g.VMOVUPS(s, operand.Mem{Base: out})
	g.VMOVAPS(before[1], before[0])
	g.VMOVAPS(before[2], before[1])
	g.VMOVAPS(cur, before[2])
	g.ADDQ(stride, in)
	g.ADDQ(stride, out)
	g.DECQ(rows)
	g.JMP(operand.LabelRef(label + "Rows"))
	g.Label(label + "Next")
	for i := range before {
		g.VMOVUPS(before[i], rowOf(next, i))
	}
	for _, p := range []reg.Register{y, next, x, prev} {
		g.ADDQ(operand.Imm(uint64(4*g.isa.wide)), p)
	}
	g.ADDQ(operand.I32(16*g.isa.wide), w)
	g.SUBQ(operand.Imm(uint64(g.isa.wide)), channels)
	g.JMP(operand.LabelRef(label + "Channels"))
	g.Label(label + "Done")
	g.VZEROUPPER()
	g.RET()
}

// turned is the four taps of as many channels as a register holds, w[channel][4], a
// register a tap.
func (g *mathGen) turned(w reg.Register) [4]vec {
	var r, t, taps [4]vec
	for i := range r {
		r[i], t[i], taps[i] = g.reg(), g.reg(), g.reg()
		if g.isa.wide == 16 {
			g.VMOVUPS(operand.Mem{Base: w, Disp: 64 * i}, r[i])
		} else { // channels i and 4+i
			g.VMOVUPS(operand.Mem{Base: w, Disp: 16 * i}, r[i].AsX())
			g.VINSERTF128(operand.Imm(1), operand.Mem{Base: w, Disp: 16*i + 64}, r[i], r[i])
		}
	}
	g.VUNPCKLPS(r[1], r[0], t[0])
	g.VUNPCKHPS(r[1], r[0], t[1])
	g.VUNPCKLPS(r[3], r[2], t[2])
	g.VUNPCKHPS(r[3], r[2], t[3])
	g.VUNPCKLPD(t[2], t[0], taps[0])
	g.VUNPCKHPD(t[2], t[0], taps[1])
	g.VUNPCKLPD(t[3], t[1], taps[2])
	g.VUNPCKHPD(t[3], t[1], taps[3])
	if g.isa.wide == 16 { // lane 4i+j of a tap is channel 4j+i so far
		turn := g.reg()
		g.VMOVUPS(g.k("turn"), turn)
		for _, v := range taps {
			g.VPERMPS(v, turn, v)
		}
	}
	return taps
}

// kdaStep is a token's step of the delta rule for 32 value columns: the state is read
// twice, the second time from a near cache, and written once. Meanwhile the columns that
// come next are fetched from memory.
func (g *mathGen) kdaStep() {
	g.function("kdaStep32", "func(to, from *float32, toStride, fromStride int, o, v, q, k, decay *float32, rows, ahead int, beta float32)",
		"is kdaStep of 32 value columns. Its rows of from, ahead floats further, are prefetched.")
	param := func(name string) reg.Register { return g.Load(g.Param(name), g.GP64()) }
	to, from, toStride, fromStride := param("to"), param("from"), param("toStride"), param("fromStride")
	g.SHLQ(operand.Imm(2), toStride)
	g.SHLQ(operand.Imm(2), fromStride)
	q, k, decay, rows := param("q"), param("k"), param("decay"), param("rows")
	parts := 32 / g.isa.wide
	at := func(base reg.Register, p int) operand.Mem { return operand.Mem{Base: base, Disp: 4 * p * g.isa.wide} }
	entry := func(base, i reg.Register) vec {
		e := g.reg()
		g.VBROADCASTSS(operand.Mem{Base: base, Index: i, Scale: 4}, e)
		return e
	}
	label := "kdaStep32" + g.isa.suffix

	u := g.accumulators(parts)
	row, i := g.GP64(), g.GP64()
	g.MOVQ(from, row)
	g.XORQ(i, i)
	g.Label(label + "Error")
	d, key := entry(decay, i), entry(k, i)
	for p := range parts {
		s := g.reg()
		g.VMULPS(at(row, p), d, s)
		g.VFMADD231PS(s, key, u[p])
	}
	g.ADDQ(fromStride, row)
	g.INCQ(i)
	g.CMPQ(i, rows)
	g.JL(operand.LabelRef(label + "Error"))

	beta, v := g.broadcast("beta"), param("v")
	for p := range parts {
		value := g.reg()
		g.VMOVUPS(at(v, p), value)
		g.VSUBPS(u[p], value, u[p])
		g.VMULPS(beta, u[p], u[p])
	}

	sum, ahead := g.accumulators(parts), param("ahead")
	g.XORQ(i, i)
	g.Label(label + "Update")
	for line := range 2 {
		g.PREFETCHT0(operand.Mem{Base: from, Index: ahead, Scale: 4, Disp: 64 * line})
	}
	d, key = entry(decay, i), entry(k, i)
	query := entry(q, i)
	for p := range parts {
		s, add := g.reg(), g.reg()
		g.VMULPS(at(from, p), d, s)
		g.VMULPS(key, u[p], add)
		g.VADDPS(add, s, s)
		g.VMOVUPS(s, at(to, p))
		g.VFMADD231PS(s, query, sum[p])
	}
	g.ADDQ(fromStride, from)
	g.ADDQ(toStride, to)
	g.INCQ(i)
	g.CMPQ(i, rows)
	g.JL(operand.LabelRef(label + "Update"))
	o := param("o")
	for p := range parts {
		g.VMOVUPS(sum[p], at(o, p))
	}
	g.VZEROUPPER()
	g.RET()
}

// above searches 16 lanes at a time.
func (g *mathGen) above() {
	g.function("above", "func(x []float32, limit float32) (index int)", "is the index of the first x over limit, or len(x).")
	n := g.Load(g.Param("x").Len(), g.GP64())
	first := g.Load(g.Param("x").Base(), g.GP64())
	x := g.GP64()
	g.MOVQ(first, x)
	limit := g.broadcast("limit")
	label := "above" + g.isa.suffix
	found := g.GP32()
	g.strips("above", n, []slice{{"x", x}}, nil, func(s *strip) {
		v := s.load("x")
		if g.isa.wide == 16 {
			k := g.K()
			if s.mask != nil {
				g.VCMPPS(operand.Imm(greaterThan), limit, v, s.mask, k)
			} else {
				g.VCMPPS(operand.Imm(greaterThan), limit, v, k)
			}
			g.KMOVW(k, found)
		} else {
			c := g.reg()
			g.VCMPPS(operand.Imm(greaterThan), limit, v, c)
			if s.mask != nil {
				g.VANDPS(c, s.mask.(vec), c)
			}
			g.VMOVMSKPS(c, found)
		}
		g.TESTL(found, found)
		g.JNE(operand.LabelRef(fmt.Sprint(label, "Found", s.part)))
	})
	index := g.GP64()
	g.Load(g.Param("x").Len(), index)
	g.JMP(operand.LabelRef(label + "Return"))
	for part := g.isa.parts() - 1; part >= 0; part-- {
		g.Label(fmt.Sprint(label, "Found", part))
		if part > 0 {
			g.ADDQ(operand.Imm(uint64(4*part*g.isa.wide)), x)
		}
	}
	g.SUBQ(first, x)
	g.SHRQ(operand.Imm(2), x)
	g.BSFL(found, found)
	g.MOVL(found, index.As32())
	g.ADDQ(x, index)
	g.Label(label + "Return")
	g.Store(index, g.ReturnIndex(0))
	g.VZEROUPPER()
	g.RET()
}

// largest has the largest value so far in each lane; a comparison with NaN keeps it.
func (g *mathGen) largest() {
	g.function("largest", "func(x []float32) (top float32)", "is the largest of x, of which there is one at least; values that are NaN are passed over but for the first.")
	n := g.Load(g.Param("x").Len(), g.GP64())
	x := g.bases("x []float32")
	first := g.reg()
	g.VBROADCASTSS(operand.Mem{Base: x[0].base}, first)
	acc := g.reg()
	g.VMOVAPS(first, acc)
	g.strips("largest", n, x, nil, func(s *strip) {
		v := s.load("x")
		switch {
		case s.mask == nil:
			g.VMAXPS(acc, v, acc)
		case g.isa.wide == 16:
			g.VMAXPS(acc, v, s.mask, acc)
		default:
			g.VBLENDVPS(s.mask, v, first, v)
			g.VMAXPS(acc, v, acc)
		}
	})
	if g.isa.wide == 16 {
		half := g.YMM()
		g.VEXTRACTF32X8(operand.Imm(1), acc, half)
		g.VMAXPS(half, acc.AsY(), acc.AsY())
	}
	a, b := g.XMM(), g.XMM()
	g.VEXTRACTF128(operand.Imm(1), acc.AsY(), b)
	g.VMAXPS(b, acc.AsX(), a)
	g.VMAXPS(b, a, a)
	g.VMOVHLPS(a, a, b)
	g.VMAXPS(b, a, a)
	g.VMOVSHDUP(a, b)
	g.VMAXSS(b, a, a)
	g.Store(a, g.ReturnIndex(0))
	g.VZEROUPPER()
	g.RET()
}
