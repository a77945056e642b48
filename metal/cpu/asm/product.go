package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of a matrix product. Weights and inputs meet in blocks of 32, even
// elements before odd ones: a register of BF16 pairs or a byte of MXFP4 codes then
// gives its two lanes by a shift and a mask, with no shuffle.

// tables are constants in memory.
type tables struct {
	e2m1          operand.Mem // the value of each code
	e8m0          operand.Mem // of each scale
	topHalf, sign operand.Mem // masks of a dword
	signMantissa  operand.Mem // of BF16, as a dword
	nibble        operand.Mem // the lower half of each byte
	odd           operand.Mem // the odd dwords of two registers, for VPERMT2PS
	even          operand.Mem
	pick          operand.Mem // lanes 0, 4, 8, 12
}

func (g *gen) tables() tables {
	table := func(name string, v []uint32) operand.Mem {
		m := g.StaticGlobal(name)
		g.DataAttributes(attr.NOPTR | attr.RODATA)
		for i, w := range v {
			g.AddDatum(4*i, operand.U32(w))
		}
		return m
	}
	codes := []uint32{0, 0x3f000000, 0x3f800000, 0x3fc00000, 0x40000000, 0x40400000, 0x40800000, 0x40c00000}
	for _, c := range codes[:8:8] {
		codes = append(codes, c|1<<31)
	}
	var scales []uint32 // 2^(b-127): a subnormal where b is 0, and 255 is not a number
	for b := range uint32(256) {
		scales = append(scales, b<<23)
	}
	scales[0], scales[255] = 1<<22, 0x7fc00000
	var even, odd []uint32
	for i := range uint32(16) {
		even, odd = append(even, 2*i), append(odd, 2*i+1)
	}
	return tables{
		e8m0:         table("e8m0", scales),
		e2m1:         table("e2m1", codes),
		topHalf:      table("topHalf", []uint32{0xffff0000}),
		sign:         table("sign", []uint32{1 << 31}),
		signMantissa: table("signMantissa", []uint32{0x807f0000}),
		nibble:       table("nibbles", []uint32{0x0f0f0f0f, 0x0f0f0f0f, 0x0f0f0f0f, 0x0f0f0f0f}),
		even:         table("evenDwords", even),
		odd:          table("oddDwords", odd),
		pick:         table("everyFourth", []uint32{0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12}),
	}
}

// at is memory at a register, moved by bytes.
func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// pointers are rows at equal distances: two base registers and the distance reach
// six of them.
type pointers struct{ first, fourth, stride reg.Register }

func (g *gen) pointers(base, stride reg.Register, rows int) pointers {
	p := pointers{first: base, stride: stride}
	if rows > 3 {
		p.fourth = g.GP64()
		g.LEAQ(operand.Mem{Base: base, Index: stride, Scale: 2}, p.fourth)
		g.ADDQ(stride, p.fourth)
	}
	return p
}

// row is memory of the i-th row, moved by bytes.
func (p pointers) row(i, disp int) operand.Mem {
	base := p.first
	if i >= 3 {
		base, i = p.fourth, i-3
	}
	if i == 0 {
		return at(base, disp)
	}
	return operand.Mem{Base: base, Index: p.stride, Scale: uint8(i), Disp: disp}
}

func (g *gen) advance(p pointers, bytes int) {
	g.ADDQ(imm(bytes), p.first)
	if p.fourth != nil {
		g.ADDQ(imm(bytes), p.fourth)
	}
}

// broadcast is a dword of memory in every lane.
func (g *gen) broadcast(m operand.Mem) reg.VecVirtual {
	v := g.reg()
	g.VBROADCASTSS(m, v)
	return v
}

// fold4 is the sums of four accumulators of 16 lanes, side by side: l+8, l+4, l+2,
// l+1. Under AVX2 the accumulators are the l+8 already.
func (g *gen) fold4(acc [4]reg.VecVirtual) reg.VecVirtual {
	if g.isa.wide == 16 {
		pair := func(a, b reg.VecVirtual, low, high uint64) reg.VecVirtual {
			l, h := g.ZMM(), g.ZMM()
			g.VSHUFF32X4(operand.Imm(low), b, a, l)
			g.VSHUFF32X4(operand.Imm(high), b, a, h)
			g.VADDPS(h, l, l)
			return l
		}
		ab, cd := pair(acc[0], acc[1], 0x44, 0xee), pair(acc[2], acc[3], 0x44, 0xee)
		v := pair(ab, cd, 0x88, 0xdd) // four lanes of each
		t := g.ZMM()
		g.VPERMILPS(operand.Imm(0x0e), v, t)
		g.VADDPS(t, v, v)
		g.VPERMILPS(operand.Imm(0x01), v, t)
		g.VADDPS(t, v, v)
		out := g.ZMM()
		g.VPERMPS(v, g.pick, out)
		return out.AsX().(reg.VecVirtual)
	}
	pair := func(a, b reg.VecVirtual) reg.VecVirtual { // a's four lanes, then b's
		l, h := g.YMM(), g.YMM()
		g.VPERM2F128(operand.Imm(0x20), b, a, l)
		g.VPERM2F128(operand.Imm(0x31), b, a, h)
		g.VADDPS(h, l, l)
		return l
	}
	ab, cd := pair(acc[0], acc[1]), pair(acc[2], acc[3])
	l, h := g.YMM(), g.YMM()
	g.VSHUFPS(operand.Imm(0x44), cd, ab, l)
	g.VSHUFPS(operand.Imm(0xee), cd, ab, h)
	g.VADDPS(h, l, l) // a0 a1 c0 c1 | b0 b1 d0 d1
	g.VSHUFPS(operand.Imm(0xdd), l, l, h)
	g.VSHUFPS(operand.Imm(0x88), l, l, l)
	g.VADDPS(h, l, l) // a c a c | b d b d
	out := g.XMM()
	g.VEXTRACTF128(operand.Imm(1), l, out)
	g.VUNPCKLPS(out, l.AsX(), out)
	return out
}

// loop runs body while n is not zero; body's last instruction lessens it.
func (g *gen) loop(label string, n operand.Op, body func()) {
	g.CMPQ(n, operand.U8(0))
	g.JE(operand.LabelRef(label + "Done"))
	g.Label(label + "Again")
	body()
	g.JNE(operand.LabelRef(label + "Again"))
	g.Label(label + "Done")
}

// imm is an immediate that an instruction on 64 bits takes.
func imm(n int) operand.Constant {
	if n < 128 {
		return operand.U8(n)
	}
	return operand.U32(n)
}

func (g *gen) begin(name, signature, doc string) string {
	g.function(name, signature, doc)
	if g.isa.wide == 16 {
		g.pick = g.ZMM()
		g.VMOVUPS(g.t.pick, g.pick)
	}
	return name + g.isa.suffix
}

// rows is a matrix times one vector: y[r] = dot(w[r], x), some rows at a time.
func (g *gen) rows(format string) {
	signature := "func(y *float32, w *byte, stride int, x *float32, n, rows int)"
	doc := "is y[r] = dot(w[r], x) for BF16 rows, stride bytes apart. x is unzipped; n is a multiple of 32, rows of 4."
	switch format {
	case "bf12":
		signature = "func(y, acc *float32, w *byte, stride int, exponents *byte, x *float32, n, rows, flags int)"
		doc = "is y[r] = dot(w[r], x) for BF12 rows, stride bytes apart. x is unzipped; n is a multiple of 32, rows of 4.\n" +
			"By flags it begins with the lanes in acc, or with zero; and ends by leaving them there, or by folding them to y. rows is then no more than a group's, 4 or 8."
	case "mx4":
		signature = "func(y *float32, w *byte, stride int, s *byte, scaleStride int, x *float32, n, rows int)"
		doc = "is y[r] = dot(w[r], x) for MXFP4 rows, stride bytes apart, and their scales. x is unzipped; n is a multiple of 32, rows of 4."
	}
	label := g.begin(format+"Rows", signature, doc)
	y := g.Load(g.Param("y"), g.GP64())
	w := g.Load(g.Param("w"), g.GP64())
	stride := g.Load(g.Param("stride"), g.GP64())
	left := g.Load(g.Param("rows"), g.GP64())
	var scale, scaleStride reg.Register
	var unpack unpacker
	size, parts := 64, g.isa.parts()
	var acc0, flags operand.Op
	switch format {
	case "mx4":
		scale = g.Load(g.Param("s"), g.GP64())
		scaleStride = g.Load(g.Param("scaleStride"), g.GP64())
		unpack, size = g.unpackMX4(), 16
	case "bf12":
		acc0, flags = g.Load(g.Param("acc"), g.GP64()), g.param("flags")
		unpack, size = g.unpackBF12(g.Load(g.Param("exponents"), g.GP64())), 48
	default:
		unpack = g.unpackBF16()
	}
	sizes := []int{4}
	if g.isa.wide == 16 && format != "mx4" {
		sizes = []int{8, 4} // more sums in flight
	}
	for _, count := range sizes {
		group := fmt.Sprintf("%s%d", label, count)
		g.Label(group + "Rows")
		g.CMPQ(left, imm(count))
		g.JL(operand.LabelRef(group + "RowsDone"))
		acc := make([][]reg.VecVirtual, count)
		for r := range acc {
			acc[r] = g.lanes()
			for _, a := range acc[r] {
				g.zero(a)
			}
		}
		kept := func(r, p int) operand.Mem { return at(acc0.(reg.Register), 4*(r*16+p*g.isa.wide)) }
		if flags != nil {
			g.TESTQ(operand.U32(1), flags)
			g.JE(operand.LabelRef(group + "Start"))
			for r := range acc {
				for p, a := range acc[r] {
					g.VMOVUPS(kept(r, p), a)
				}
			}
			g.Label(group + "Start")
		}
		var halves [2]pointers
		for h := range count / 4 {
			base := g.GP64()
			g.MOVQ(w, base)
			if h == 1 {
				g.LEAQ(operand.Mem{Base: w, Index: stride, Scale: 4}, base)
			}
			halves[h] = g.pointers(base, stride, 4)
		}
		var scales pointers
		if scale != nil {
			base := g.GP64()
			g.MOVQ(scale, base)
			scales = g.pointers(base, scaleStride, 4)
		}
		// A group of rows is one stretch of memory. While a group is multiplied, the next one,
		// which lies behind it, is fetched in the order of memory: the hardware follows neither
		// eight rows at once nor rows shorter than a page. Where the next group is so near that
		// it would come too late, it is a later one.
		ahead, far := g.GP64(), g.GP64()
		g.LEAQ(operand.Mem{Base: w, Index: stride, Scale: uint8(count)}, ahead)
		g.LEAQ(at(w, 4096), far)
		g.CMPQ(ahead, far)
		g.CMOVQCS(far, ahead)
		x, n := g.Load(g.Param("x"), g.GP64()), g.Load(g.Param("n"), g.GP64())
		g.loop(group+"Columns", n, func() {
			var even, odd []reg.VecVirtual
			if format == "bf16" || g.isa.wide == 16 { // there is room to keep x
				for p := range parts {
					e, o := g.reg(), g.reg()
					g.VMOVUPS(at(x, 4*p*g.isa.wide), e)
					g.VMOVUPS(at(x, 64+4*p*g.isa.wide), o)
					even, odd = append(even, e), append(odd, o)
				}
			}
			for r := range count {
				var s operand.Mem
				if scale != nil {
					s = scales.row(r, 0)
				}
				if line := 64 * r; line < count*size {
					g.PREFETCHT0(at(ahead, line))
				}
				unpack(halves[r/4].row(r%4, 0), s, func(p int, e, o reg.VecVirtual) {
					if even == nil {
						g.VFMADD231PS(at(x, 4*p*g.isa.wide), e, acc[r][p])
						g.VFMADD231PS(at(x, 64+4*p*g.isa.wide), o, acc[r][p])
						return
					}
					g.VFMADD231PS(e, even[p], acc[r][p])
					g.VFMADD231PS(o, odd[p], acc[r][p])
				})
			}
			for h := range count / 4 {
				g.advance(halves[h], size)
			}
			g.ADDQ(imm(count*size), ahead)
			if scale != nil {
				g.advance(scales, 1)
			}
			g.ADDQ(operand.U8(128), x)
			g.SUBQ(operand.U8(32), n)
		})
		if flags != nil {
			g.TESTQ(operand.U32(2), flags)
			g.JNE(operand.LabelRef(group + "Fold"))
			for r := range acc {
				for p, a := range acc[r] {
					g.VMOVUPS(a, kept(r, p))
				}
			}
			g.JMP(operand.LabelRef(label + "Return"))
			g.Label(group + "Fold")
		}
		for h := range count / 4 {
			var four [4]reg.VecVirtual
			for r := range four {
				a := acc[4*h+r]
				if parts == 2 {
					g.VADDPS(a[1], a[0], a[0])
				}
				four[r] = a[0]
			}
			g.VMOVUPS(g.fold4(four), at(y, 16*h))
		}
		g.ADDQ(imm(4*count), y)
		g.LEAQ(operand.Mem{Base: w, Index: stride, Scale: 4}, w)
		if count == 8 {
			g.LEAQ(operand.Mem{Base: w, Index: stride, Scale: 4}, w)
		}
		if scale != nil {
			g.LEAQ(operand.Mem{Base: scale, Index: scaleStride, Scale: 4}, scale)
		}
		g.SUBQ(imm(count), left)
		g.JMP(operand.LabelRef(group + "Rows"))
		g.Label(group + "RowsDone")
	}
	g.Label(label + "Return")
	g.VZEROUPPER()
	g.RET()
}

// param is a parameter where it lies, for those that need no register.
func (g *gen) param(name string) operand.Mem {
	p, err := g.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// unpacker widens 32 weights and gives them a register at a time, even ones and odd ones.
type unpacker func(source, scale operand.Mem, use func(p int, even, odd reg.VecVirtual))

// unpackBF16 widens pairs: the first is the lower half of a dword.
func (g *gen) unpackBF16() unpacker {
	mask := g.broadcast(g.t.topHalf)
	return func(source, _ operand.Mem, use func(p int, even, odd reg.VecVirtual)) {
		for p := range g.isa.parts() {
			e, o := g.reg(), g.reg()
			source := source
			source.Disp += 4 * p * g.isa.wide
			if g.isa.wide == 16 {
				g.VPSLLD(operand.Imm(16), source, e)
				g.VPANDD(source, mask, o)
			} else {
				v := g.reg()
				g.VMOVDQU(source, v)
				g.VPSLLD(operand.Imm(16), v, e)
				g.VPAND(v, mask, o)
			}
			use(p, e, o)
		}
	}
}

// unpackMX4 widens 32 codes and multiplies them by their scale, exactly: the table
// of values is scaled, then each code looks up its own.
func (g *gen) unpackMX4() unpacker {
	table, scales := g.reg(), g.GP64()
	g.VMOVUPS(g.t.e2m1, table)
	g.LEAQ(g.t.e8m0, scales)
	var sign reg.VecVirtual
	if g.isa.wide == 8 {
		sign = g.broadcast(g.t.sign)
	}
	return func(source, scale operand.Mem, use func(p int, even, odd reg.VecVirtual)) {
		b, values := g.GP64(), g.reg()
		g.MOVBQZX(scale, b)
		g.VBROADCASTSS(operand.Mem{Base: scales, Index: b, Scale: 4}, values)
		g.VMULPS(table, values, values)
		for p := range g.isa.parts() {
			source := source
			source.Disp += p * g.isa.wide
			codes, high := g.reg(), g.reg()
			g.VPMOVZXBD(source, codes)
			g.VPSRLD(operand.Imm(4), codes, high)
			look := func(code reg.VecVirtual, shift uint64, from reg.VecVirtual) reg.VecVirtual {
				v := g.reg()
				g.VPERMPS(values, code, v) // by the lower 3 or 4 bits
				if g.isa.wide == 8 {
					s := g.reg()
					g.VPSLLD(operand.Imm(shift), from, s)
					g.VPAND(s, sign, s)
					g.VPOR(s, v, v)
				}
				return v
			}
			use(p, look(codes, 28, codes), look(high, 24, codes))
		}
	}
}

// unpackBF12 puts 32 weights together: sign and mantissa come from a byte, spread so
// that the sign fills the exponent's place, and the exponent from its table.
func (g *gen) unpackBF12(exponents reg.Register) unpacker {
	keep := g.broadcast(g.t.signMantissa)
	if g.isa.wide == 16 {
		table := g.ZMM()
		g.VPMOVZXBD(at(exponents, 0), table)
		g.VPSLLD(operand.U8(23), table, table)
		return func(source, _ operand.Mem, use func(p int, even, odd reg.VecVirtual)) {
			moved := func(by int) operand.Mem { m := source; m.Disp += by; return m }
			codes, high := g.ZMM(), g.ZMM()
			g.VPMOVZXBD(moved(32), codes)
			g.VPSRLD(operand.U8(4), codes, high)
			weights := func(code reg.VecVirtual, from operand.Mem) reg.VecVirtual {
				v, e := g.ZMM(), g.ZMM()
				g.VPMOVSXBD(from, v)
				g.VPSLLD(operand.U8(16), v, v)
				g.VPERMD(table, code, e)                   // by the lower 4 bits
				g.VPTERNLOGD(operand.U8(0xf8), keep, v, e) // e OR v AND keep
				return e
			}
			use(0, weights(codes, source), weights(high, moved(16)))
		}
	}
	table, nibble := g.XMM(), g.XMM()
	g.VMOVDQU(at(exponents, 0), table)
	g.VMOVDQU(g.t.nibble, nibble)
	return func(source, _ operand.Mem, use func(p int, even, odd reg.VecVirtual)) {
		moved := func(by int) operand.Mem { m := source; m.Disp += by; return m }
		even, odd := g.XMM(), g.XMM()
		g.VMOVDQU(moved(32), even)
		g.VPSRLW(operand.U8(4), even, odd)
		g.VPAND(nibble, even, even)
		g.VPAND(nibble, odd, odd)
		g.VPSHUFB(even, table, even)
		g.VPSHUFB(odd, table, odd)
		for p := range 2 {
			weights := func(e reg.VecVirtual, by int) reg.VecVirtual {
				v, x := g.YMM(), g.YMM()
				g.VPMOVSXBD(moved(by+8*p), v)
				g.VPSLLD(operand.U8(16), v, v)
				g.VPAND(keep, v, v)
				g.VPMOVZXBD(e, x)
				g.VPSLLD(operand.U8(23), x, x)
				g.VPOR(x, v, v)
				return v
			}
			use(p, weights(even, 0), weights(odd, 16))
			if p == 0 {
				g.VPSRLDQ(operand.U8(8), even, even)
				g.VPSRLDQ(operand.U8(8), odd, odd)
			}
		}
	}
}

// block is one block of BF16 weights more for one row's lanes.
func (g *gen) block() {
	g.function("bf16Block", "func(acc *float32, w *byte, x *float32)", "adds 32 BF16 weights' products with x, unzipped, to a row's 16 lanes.")
	acc, w, x := g.Load(g.Param("acc"), g.GP64()), g.Load(g.Param("w"), g.GP64()), g.Load(g.Param("x"), g.GP64())
	g.unpackBF16()(at(w, 0), operand.Mem{}, func(p int, even, odd reg.VecVirtual) {
		v := g.reg()
		g.VMOVUPS(at(acc, 4*p*g.isa.wide), v)
		g.VFMADD231PS(at(x, 4*p*g.isa.wide), even, v)
		g.VFMADD231PS(at(x, 64+4*p*g.isa.wide), odd, v)
		g.VMOVUPS(v, at(acc, 4*p*g.isa.wide))
	})
	g.VZEROUPPER()
	g.RET()
}

// nextColumns is how many columns of a row productMany widens at a time, at most.
const nextColumns = 768

// widen writes n weights as floats, unzipped.
func (g *gen) widen(format string) {
	signature := "func(y *float32, w *byte, n int)"
	doc := "widens n BF16 weights, unzipped. n is a multiple of 32."
	switch format {
	case "bf12":
		signature = "func(y *float32, w *byte, s *byte, n int)"
		doc = "widens n BF12 weights, unzipped, with the exponents at s. n is a multiple of 32."
	case "mx4":
		signature = "func(y *float32, w *byte, s *byte, n int)"
		doc = "widens n MXFP4 weights, unzipped. n is a multiple of 32."
	}
	g.function(format+"Widen", signature, doc)
	label := format + "Widen" + g.isa.suffix
	y, w := g.Load(g.Param("y"), g.GP64()), g.Load(g.Param("w"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	var s operand.Mem // of the next scale
	var get unpacker
	size := 64
	switch format {
	case "mx4":
		s = at(g.Load(g.Param("s"), g.GP64()), 0)
		get, size = g.unpackMX4(), 16
	case "bf12":
		get, size = g.unpackBF12(g.Load(g.Param("s"), g.GP64())), 48
	default:
		get = g.unpackBF16()
	}
	g.loop(label+"Loop", n, func() {
		g.PREFETCHT1(at(w, size*nextColumns/32)) // the same row's next piece: see productMany
		get(at(w, 0), s, func(p int, even, odd reg.VecVirtual) {
			g.VMOVUPS(even, at(y, 4*p*g.isa.wide))
			g.VMOVUPS(odd, at(y, 64+4*p*g.isa.wide))
		})
		g.ADDQ(imm(size), w)
		if s.Base != nil {
			g.INCQ(s.Base)
		}
		g.ADDQ(operand.U8(128), y)
		g.SUBQ(operand.U8(32), n)
	})
	g.VZEROUPPER()
	g.RET()
}

// unzip is 32 floats at a time: even ones, then odd ones.
func (g *gen) unzip() {
	g.function("unzip", "func(y, x *float32, n int)", "copies n floats, the even ones of each 32 before the odd ones. n is a multiple of 32.")
	label := "unzip" + g.isa.suffix
	y, x := g.Load(g.Param("y"), g.GP64()), g.Load(g.Param("x"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	var even, odd reg.VecVirtual
	if g.isa.wide == 16 {
		even, odd = g.ZMM(), g.ZMM()
		g.VMOVUPS(g.t.even, even)
		g.VMOVUPS(g.t.odd, odd)
	}
	g.loop(label+"Loop", n, func() {
		if g.isa.wide == 16 {
			a, b, e, o := g.ZMM(), g.ZMM(), g.ZMM(), g.ZMM()
			g.VMOVUPS(at(x, 0), a)
			g.VMOVUPS(at(x, 64), b)
			g.VMOVAPS(even, e)
			g.VMOVAPS(odd, o)
			g.VPERMI2PS(b, a, e)
			g.VPERMI2PS(b, a, o)
			g.VMOVUPS(e, at(y, 0))
			g.VMOVUPS(o, at(y, 64))
		} else {
			for h := range 2 {
				a, b, e, o := g.YMM(), g.YMM(), g.YMM(), g.YMM()
				g.VMOVUPS(at(x, 64*h), a)
				g.VMOVUPS(at(x, 64*h+32), b)
				g.VSHUFPS(operand.Imm(0x88), b, a, e)
				g.VSHUFPS(operand.Imm(0xdd), b, a, o)
				g.VPERMPD(operand.Imm(0xd8), e, e)
				g.VPERMPD(operand.Imm(0xd8), o, o)
				g.VMOVUPS(e, at(y, 32*h))
				g.VMOVUPS(o, at(y, 64+32*h))
			}
		}
		g.ADDQ(operand.U8(128), x)
		g.ADDQ(operand.U8(128), y)
		g.SUBQ(operand.U8(32), n)
	})
	g.VZEROUPPER()
	g.RET()
}

// tile is four rows of w times xs rows of x, over and over for more rows of w.
func (g *gen) tile(xs int) {
	name := fmt.Sprintf("tile%d", xs)
	label := g.begin(name, "func(y *float32, yStride int, acc *float32, w *float32, wStride int, x *float32, xStride int, n, groups, flags int)",
		fmt.Sprintf("is the dot products of %d rows of x with groups·4 rows of w, n floats each, a multiple of 16; strides in bytes.\n"+
			"By flags it begins with the lanes in acc, or with zero; and ends by leaving them there, or by folding them to y[x][w]. acc holds %d floats a group, or for one group when it begins with zero and folds.", xs, 4*xs*16))
	y := g.Load(g.Param("y"), g.GP64())
	yStride := g.Load(g.Param("yStride"), g.GP64())
	acc := g.Load(g.Param("acc"), g.GP64())
	wStride := g.Load(g.Param("wStride"), g.GP64())
	xStride := g.Load(g.Param("xStride"), g.GP64())
	groups := g.param("groups")
	left := groups // counted down in its own place: no register to spare
	flags := g.param("flags")
	wRows := g.param("w")
	step := 4 * g.isa.wide
	slot := func(i, r, half int) operand.Mem { return at(acc, ((i*4+r)*16+half*8)*4) }
	g.loop(label+"Groups", left, func() {
		for half := range g.isa.parts() {
			part := fmt.Sprintf("%s%d", label, half)
			sums := make([][4]reg.VecVirtual, xs)
			for i := range sums {
				for r := range 4 {
					sums[i][r] = g.reg()
				}
			}
			g.TESTQ(operand.U32(1), flags)
			g.JNE(operand.LabelRef(part + "Continue"))
			for i := range sums {
				for _, v := range sums[i] {
					g.zero(v)
				}
			}
			g.JMP(operand.LabelRef(part + "Start"))
			g.Label(part + "Continue")
			for i := range sums {
				for r, v := range sums[i] {
					g.VMOVUPS(slot(i, r, half), v)
				}
			}
			g.Label(part + "Start")
			wBase := g.GP64()
			g.MOVQ(wRows, wBase)
			w := g.pointers(wBase, wStride, 4)
			x := g.pointers(g.Load(g.Param("x"), g.GP64()), xStride, xs)
			n := g.Load(g.Param("n"), g.GP64())
			g.loop(part+"Columns", n, func() {
				if g.isa.wide == 16 {
					var four [4]reg.VecVirtual
					for r := range four {
						four[r] = g.reg()
						g.VMOVUPS(w.row(r, 0), four[r])
						g.PREFETCHT0(w.row(r, 512))
					}
					for i := range xs {
						v := g.reg()
						g.VMOVUPS(x.row(i, 0), v)
						for r := range four {
							g.VFMADD231PS(four[r], v, sums[i][r])
						}
					}
				} else {
					v := make([]reg.VecVirtual, xs)
					for i := range v {
						v[i] = g.reg()
						g.VMOVUPS(x.row(i, step*half), v[i])
					}
					for r := range 4 {
						m := g.reg()
						g.VMOVUPS(w.row(r, step*half), m)
						for i := range v {
							g.VFMADD231PS(m, v[i], sums[i][r])
						}
					}
				}
				g.advance(w, 64)
				g.advance(x, 64)
				g.SUBQ(operand.U8(16), n)
			})
			last := half == g.isa.parts()-1
			if last {
				g.TESTQ(operand.U32(2), flags)
				g.JNE(operand.LabelRef(label + "Fold"))
			}
			for i := range sums {
				for r, v := range sums[i] {
					g.VMOVUPS(v, slot(i, r, half))
				}
			}
			if !last {
				continue
			}
			g.JMP(operand.LabelRef(label + "Next"))
			g.Label(label + "Fold")
			out := g.GP64()
			g.MOVQ(y, out)
			for i := range sums {
				if g.isa.wide == 8 {
					for r, v := range sums[i] {
						g.VADDPS(slot(i, r, 0), v, v) // l+8
					}
				}
				g.VMOVUPS(g.fold4(sums[i]), at(out, 0))
				if i < xs-1 {
					g.ADDQ(yStride, out)
				}
			}
			g.Label(label + "Next")
		}
		next := g.GP64()
		g.MOVQ(wRows, next)
		g.LEAQ(operand.Mem{Base: next, Index: wStride, Scale: 4}, next)
		g.MOVQ(next, wRows)
		g.ADDQ(operand.U8(16), y)
		g.CMPQ(flags, operand.U8(2))
		g.JE(operand.LabelRef(label + "Same"))
		g.ADDQ(imm(4*xs*16*4), acc)
		g.Label(label + "Same")
		g.DECQ(left)
	})
	g.VZEROUPPER()
	g.RET()
}

// mix is the column-wise product: y[q] = Σ p[q][i]·c[i], summed in ascending i.
func (g *gen) mix(qs int) {
	name := fmt.Sprintf("mix%d", qs)
	g.function(name, "func(y *float32, yStride int, p *float32, pStride int, c *float32, cStride int, n, width int)",
		fmt.Sprintf("is y[q] = fma(p[q][i], c[i], y[q]) for %d rows of p, i ascending to n, from y's values; width is a multiple of 16, strides are in bytes.", qs))
	label := name + g.isa.suffix
	y := g.pointers(g.Load(g.Param("y"), g.GP64()), g.Load(g.Param("yStride"), g.GP64()), qs)
	pStride := g.Load(g.Param("pStride"), g.GP64())
	c := g.Load(g.Param("c"), g.GP64())
	cStride := g.Load(g.Param("cStride"), g.GP64())
	left := g.param("width")
	for _, floats := range []int{4 * g.isa.wide, 16} {
		group := fmt.Sprintf("%s%d", label, floats)
		g.Label(group + "Width")
		g.CMPQ(left, imm(floats))
		g.JL(operand.LabelRef(group + "WidthDone"))
		sums := make([][]reg.VecVirtual, qs)
		for q := range sums {
			for v := range floats / g.isa.wide {
				r := g.reg()
				g.VMOVUPS(y.row(q, 4*v*g.isa.wide), r)
				sums[q] = append(sums[q], r)
			}
		}
		p := g.pointers(g.Load(g.Param("p"), g.GP64()), pStride, qs)
		row := g.GP64()
		g.MOVQ(c, row)
		n := g.Load(g.Param("n"), g.GP64())
		g.loop(group+"Rows", n, func() {
			if g.isa.wide == 16 {
				var parts []reg.VecVirtual
				for v := range floats / g.isa.wide {
					r := g.reg()
					g.VMOVUPS(at(row, 4*v*g.isa.wide), r)
					parts = append(parts, r)
				}
				for q := range sums {
					w := g.broadcast(p.row(q, 0))
					for v := range parts {
						g.VFMADD231PS(parts[v], w, sums[q][v])
					}
				}
			} else {
				var w []reg.VecVirtual
				for q := range sums {
					w = append(w, g.broadcast(p.row(q, 0)))
				}
				for v := range floats / g.isa.wide {
					r := g.reg()
					g.VMOVUPS(at(row, 4*v*g.isa.wide), r)
					for q := range sums {
						g.VFMADD231PS(r, w[q], sums[q][v])
					}
				}
			}
			g.advance(p, 4)
			g.ADDQ(cStride, row)
			g.DECQ(n)
		})
		for q := range sums {
			for v, r := range sums[q] {
				g.VMOVUPS(r, y.row(q, 4*v*g.isa.wide))
			}
		}
		g.advance(y, 4*floats)
		g.ADDQ(imm(4*floats), c)
		g.SUBQ(imm(floats), left)
		g.JMP(operand.LabelRef(group + "Width"))
		g.Label(group + "WidthDone")
	}
	g.VZEROUPPER()
	g.RET()
}

// products writes them all.
func (g *gen) products() {
	for _, format := range []string{"bf16", "bf12", "mx4"} {
		g.rows(format)
		g.widen(format)
	}
	g.block()
	g.unzip()
	for i := range g.isa.tall() {
		g.tile(i + 1)
		g.mix(i + 1)
	}
}

// tall is the number of rows of x that a tile takes at most.
func (i isa) tall() int {
	if i.wide == 16 {
		return 6
	}
	return 3
}
