package main

import (
	"fmt"
	"strings"
)

// The loops of a matrix product in NEON (product.go has those of amd64, and says how
// weights and inputs meet). A row's 16 lanes are four registers, so four rows' sums take
// half of the registers; a tile of more rows goes over its columns again for other lanes.

// params loads a function's parameters, a word each: "y R0" is y, to R0.
func (g *neon) params(list ...string) {
	for i, p := range list {
		name, register, _ := strings.Cut(p, " ")
		g.op("MOVD %s+%d(FP), %s", name, 8*i, register)
	}
}

// repeat runs body while the register, which body lessens, is not zero.
func (g *neon) repeat(label, register string, body func()) {
	g.op("CBZ %s, %sDone", register, label)
	g.line("%s:", label)
	body()
	g.op("CBNZ %s, %s", register, label)
	g.line("%sDone:", label)
}

// pair loads eight floats.
func (g *neon) pair(base string, bytes, v int) {
	g.op("FLDPQ %d(%s), (F%d, F%d)", bytes, base, v, v+1)
}

func (g *neon) storePair(v int, base string, bytes int) {
	g.op("FSTPQ (F%d, F%d), %d(%s)", v, v+1, bytes, base)
}

// fma is Vd += Vn · Vm.
func (g *neon) fma(d, n, m int) { g.op("VFMLA V%d.S4, V%d.S4, V%d.S4", m, n, d) }

// fmaScalar is Vd += Vn · Vm[0].
func (g *neon) fmaScalar(d, n, m int) {
	g.word(0x4f801000, fmt.Sprintf("FMLA V%d.4S, V%d.4S, V%d.S[0]", d, n, m), d, n, m)
}

// fold4 makes v[0] the sums of four rows, of each of which v has four lanes: those after
// l+8 and l+4. t and t+1 are spoilt.
func (g *neon) fold4(v [4]int, t int) {
	for i := 0; i < 4; i += 2 {
		g.op("VZIP1 V%d.D2, V%d.D2, V%d.D2", v[i+1], v[i], t)
		g.op("VZIP2 V%d.D2, V%d.D2, V%d.D2", v[i+1], v[i], t+1)
		g.add(v[i], t, t+1)
	}
	g.word(0x6e20d400, fmt.Sprintf("FADDP V%d.4S, V%d.4S, V%d.4S", v[0], v[0], v[2]), v[0], v[0], v[2])
}

// unpackNEON widens 32 weights at a source, and moves it on. It gives them eight at a
// time: V and V+1 meet the 32 bytes of x that begin at the byte at. It spoils V16 … V24,
// for BF16 V24 … V27, and R12 … R14; V27 … V31 are constants, of which BF16 has V31.
type unpackNEON func(source, scale string, use func(v, at int))

// unpacker sets the constants up: from the exponents at R14, for BF12.
func (g *neon) unpacker(format string) unpackNEON {
	switch format {
	case "mx4":
		g.setUpMX4()
		return g.unpackMX4
	case "bf12":
		g.setUpBF12()
		return g.unpackBF12
	}
	g.setUpBF16()
	return g.unpackBF16
}

func (g *neon) setUpBF16() {
	g.op("MOVD $0xffff0000, R12")
	g.op("VDUP R12, V31.S4")
}

// unpackBF16 widens pairs: the first is the lower half of a dword.
func (g *neon) unpackBF16(source, _ string, use func(v, at int)) {
	for h := range 2 {
		g.op("FLDPQ.P 32(%s), (F24, F25)", source)
		for i := range 2 {
			g.op("VSHL $16, V%d.S4, V%d.S4", 24+i, 26+i)
		}
		use(26, 32*h)
		for i := range 2 {
			g.op("VAND V31.B16, V%d.B16, V%d.B16", 24+i, 24+i)
		}
		use(24, 64+32*h)
	}
}

// tables are MXFP4's eight magnitudes, and the sign of each code in its value's upper byte.
func (g *neon) tables() {
	g.line("")
	for i, v := range []uint32{0, 0x3f000000, 0x3f800000, 0x3fc00000, 0x40000000, 0x40400000, 0x40800000, 0x40c00000, 0, 0, 0x80808080, 0x80808080} {
		g.line("DATA e2m1<>+%d(SB)/4, $0x%08x", 4*i, v)
	}
	g.line("GLOBL e2m1<>(SB), NOPTR|RODATA, $48")
}

// setUpMX4 keeps the magnitudes in V27 and V28, signs in V29, a mask in V30, zero in V31.
func (g *neon) setUpMX4() {
	g.op("MOVD $e2m1<>(SB), R12")
	g.op("VLD1 (R12), [V27.B16, V28.B16, V29.B16]")
	g.op("VMOVI $15, V30.B16")
	g.op("VEOR V31.B16, V31.B16, V31.B16")
}

// unpackMX4 widens 32 codes and multiplies them by their scale, exactly: eight magnitudes
// are scaled, of which BF16 keeps all bits, and their bytes make two tables.
func (g *neon) unpackMX4(source, scale string, use func(v, at int)) {
	// 2^(b-127) is the bits b<<23, and 1<<22 more where b is 0, a subnormal, or
	// 255, not a number: (b-1)>>63 and (b+1)>>8 are those.
	g.op("MOVBU.P 1(%s), R12", scale)
	g.op("SUB $1, R12, R13")
	g.op("LSR $63, R13")
	g.op("ADD $1, R12, R14")
	g.op("ORR R14>>8, R13")
	g.op("LSL $22, R13")
	g.op("ORR R12<<23, R13")
	g.op("VDUP R13, V20.S4")
	g.op("FMOVQ.P 16(%s), F16", source)
	g.mul(18, 27, 20)
	g.mul(19, 28, 20)
	g.op("VUZP2 V19.H8, V18.H8, V20.H8")
	g.op("VUZP1 V20.B16, V20.B16, V18.B16") // the lower bytes
	g.op("VUZP2 V20.B16, V20.B16, V19.B16")
	g.op("VORR V29.B16, V19.B16, V19.B16")
	g.op("VUSHR $4, V16.B16, V17.B16")
	g.op("VAND V30.B16, V16.B16, V16.B16")
	for odd := range 2 {
		g.lookUp(16+odd, 18, 19)
		g.join(64*odd, use)
	}
}

// lookUp takes 16 codes' lower bytes to V20 and their upper ones to V21.
func (g *neon) lookUp(codes, low, high int) {
	g.op("VTBL V%d.B16, [V%d.B16], V20.B16", codes, low)
	g.op("VTBL V%d.B16, [V%d.B16], V21.B16", codes, high)
}

// join makes floats of their upper halves' bytes, those in V20 and in V21.
func (g *neon) join(at int, use func(v, at int)) {
	g.op("VZIP1 V21.B16, V20.B16, V22.B16")
	g.op("VZIP2 V21.B16, V20.B16, V20.B16")
	for i, v := range []int{22, 20} {
		g.op("VZIP1 V%d.H8, V31.H8, V23.H8", v)
		// As VZIP2 would, but CPUs that shuffle in few places shift in others.
		g.word(0x6e613800, fmt.Sprintf("SHLL2 V24.4S, V%d.8H, $16", v), 24, v, 0)
		use(23, at+32*i)
	}
}

// setUpBF12 keeps the exponents' last bits in V27, the others in V28, masks in V29 and
// V30, zero in V31.
func (g *neon) setUpBF12() {
	g.op("VLD1 (R14), [V28.B16]")
	g.op("VSHL $7, V28.B16, V27.B16")
	g.op("VUSHR $1, V28.B16, V28.B16")
	g.op("VMOVI $128, V29.B16")
	g.op("VMOVI $15, V30.B16")
	g.op("VEOR V31.B16, V31.B16, V31.B16")
}

// unpackBF12 puts 32 weights together: the sign joins the exponent's upper bits in one
// byte, the mantissa its last bit in the other.
func (g *neon) unpackBF12(source, _ string, use func(v, at int)) {
	g.op("FMOVQ 32(%s), F16", source)
	g.op("VUSHR $4, V16.B16, V17.B16")
	g.op("VAND V30.B16, V16.B16, V16.B16")
	for odd := range 2 {
		g.op("FMOVQ.P %d(%s), F18", 16+16*odd, source) // over the codes, too
		g.lookUp(16+odd, 27, 28)
		g.op("VBIF V29.B16, V18.B16, V20.B16")
		g.op("VBIT V29.B16, V18.B16, V21.B16")
		g.join(64*odd, use)
	}
}

// rows is a matrix times one vector: y[r] = dot(w[r], x), four rows at a time. Their sums
// are V0 … V15; R1 … R4 are at the rows, R8 … R11 at their scales, R5 at x.
func (g *neon) rows(format string) {
	switch format {
	case "bf16":
		g.function("bf16Rows", "(y *float32, w *byte, stride int, x *float32, n, rows int)",
			"is y[r] = dot(w[r], x) for BF16 rows, stride bytes apart. x is unzipped; n is a multiple of 32, rows of 4.", 48)
		g.params("y R0", "w R22", "stride R7", "x R19", "n R20", "rows R21")
	case "mx4":
		g.function("mx4Rows", "(y *float32, w *byte, stride int, s *byte, scaleStride int, x *float32, n, rows int)",
			"is y[r] = dot(w[r], x) for MXFP4 rows, stride bytes apart, and their scales. x is unzipped; n is a multiple of 32, rows of 4.", 64)
		g.params("y R0", "w R22", "stride R7", "s R23", "scaleStride R15", "x R19", "n R20", "rows R21")
	case "bf12":
		g.function("bf12Rows", "(y, acc *float32, w *byte, stride int, exponents *byte, x *float32, n, rows, flags int)",
			"is y[r] = dot(w[r], x) for BF12 rows, stride bytes apart. x is unzipped; n is a multiple of 32, rows of 4.\n"+
				"By flags it begins with the lanes in acc, or with zero; and ends by leaving them there, or by folding them to y. rows is then no more than 4.", 72)
		g.params("y R0", "acc R24", "w R22", "stride R7", "exponents R14", "x R19", "n R20", "rows R21", "flags R25")
	}
	unpack := g.unpacker(format)
	g.repeat("group", "R21", func() {
		if format == "bf12" {
			g.op("TBZ $0, R25, zero")
			for v := 0; v < 16; v += 2 {
				g.pair("R24", 16*v, v)
			}
			g.op("B begin")
			g.line("zero:")
		}
		g.clear(16)
		g.line("begin:")
		pointers := func(base, stride string, first int) {
			g.op("MOVD %s, R%d", base, first)
			for r := first; r < first+3; r++ {
				g.op("ADD %s, R%d, R%d", stride, r, r+1)
			}
			g.op("ADD %s, R%d, %s", stride, first+3, base)
		}
		pointers("R22", "R7", 1)
		if format == "mx4" {
			pointers("R23", "R15", 8)
		}
		g.op("MOVD R19, R5")
		g.op("MOVD R20, R6")
		g.repeat("columns", "R6", func() {
			kept := format == "bf16" // there is room to keep x
			if kept {
				for i := range 4 {
					g.pair("R5", 32*i, 16+2*i)
				}
			}
			for r := range 4 {
				unpack(fmt.Sprintf("R%d", 1+r), fmt.Sprintf("R%d", 8+r), func(v, at int) {
					x, lane := 25, at%64/16
					if kept {
						x = 16 + at/16
					} else {
						g.pair("R5", at, x)
					}
					for i := range 2 {
						g.fma(4*r+lane+i, v+i, x+i)
					}
				})
			}
			g.op("ADD $128, R5")
			g.op("SUB $32, R6")
		})
		if format == "bf12" {
			g.op("TBNZ $1, R25, fold")
			for v := 0; v < 16; v += 2 {
				g.storePair(v, "R24", 16*v)
			}
			g.op("RET")
			g.line("fold:")
		}
		for a := 0; a < 16; a += 4 {
			g.add(a, a, a+2)
			g.add(a+1, a+1, a+3)
			g.add(a, a, a+1)
		}
		g.fold4([4]int{0, 4, 8, 12}, 1)
		g.op("FMOVQ.P F0, 16(R0)")
		g.op("SUB $4, R21")
	})
	g.op("RET")
}

// block is one block of BF16 weights more for one row's lanes.
func (g *neon) block() {
	g.function("bf16Block", "(acc *float32, w *byte, x *float32)", "adds 32 BF16 weights' products with x, unzipped, to a row's 16 lanes.", 24)
	g.params("acc R0", "w R1", "x R5")
	unpack := g.unpacker("bf16")
	for v := 0; v < 4; v += 2 {
		g.pair("R0", 16*v, v)
	}
	unpack("R1", "", func(v, at int) {
		g.pair("R5", at, 16)
		for i := range 2 {
			g.fma(at%64/16+i, v+i, 16+i)
		}
	})
	for v := 0; v < 4; v += 2 {
		g.storePair(v, "R0", 16*v)
	}
	g.op("RET")
}

// widen writes n weights as floats, unzipped.
func (g *neon) widen(format string) {
	switch format {
	case "bf16":
		g.function("bf16Widen", "(y *float32, w *byte, n int)", "widens n BF16 weights, unzipped. n is a multiple of 32.", 24)
		g.params("y R0", "w R1", "n R6")
	case "bf12":
		g.function("bf12Widen", "(y *float32, w, s *byte, n int)", "widens n BF12 weights, unzipped, with the exponents at s. n is a multiple of 32.", 32)
		g.params("y R0", "w R1", "s R14", "n R6")
	case "mx4":
		g.function("mx4Widen", "(y *float32, w, s *byte, n int)", "widens n MXFP4 weights, unzipped. n is a multiple of 32.", 32)
		g.params("y R0", "w R1", "s R8", "n R6")
	}
	unpack := g.unpacker(format)
	g.repeat("loop", "R6", func() {
		unpack("R1", "R8", func(v, at int) { g.storePair(v, "R0", at) })
		g.op("ADD $128, R0")
		g.op("SUB $32, R6")
	})
	g.op("RET")
}

// unzip is 32 floats at a time: even ones, then odd ones.
func (g *neon) unzip() {
	g.function("unzip", "(y, x *float32, n int)", "copies n floats, the even ones of each 32 before the odd ones. n is a multiple of 32.", 24)
	g.params("y R0", "x R1", "n R6")
	g.repeat("loop", "R6", func() {
		for i := range 4 {
			g.op("VLD2.P 32(R1), [V%d.S4, V%d.S4]", 2*i, 2*i+1)
		}
		for odd := range 2 {
			for i := range 2 {
				g.op("FSTPQ (F%d, F%d), %d(R0)", 4*i+odd, 4*i+2+odd, 64*odd+32*i)
			}
		}
		g.op("ADD $128, R0")
		g.op("SUB $32, R6")
	})
	g.op("RET")
}

// neonTall is the number of rows of x that a tile takes at most.
const neonTall = 6

// tile is four rows of w times xs rows of x, over and over for more rows of w. Of each
// row's lanes it takes some registers at a time: as many as leave room for xs rows.
func (g *neon) tile(xs int) {
	taken := []int{4, 2, 2, 1, 1, 1}[xs-1]
	g.function(fmt.Sprintf("tile%d", xs), "(y *float32, yStride int, acc *float32, w *float32, wStride int, x *float32, xStride int, n, groups, flags int)",
		fmt.Sprintf("is the dot products of %d rows of x with groups·4 rows of w, n floats each, a multiple of 16; strides in bytes.\n"+
			"By flags it begins with the lanes in acc, or with zero; and ends by leaving them there, or by folding them to y[x][w]. acc holds %d floats a group, or for one group when it begins with zero and folds.", xs, 4*xs*16), 80)
	// R1 … R4 are at rows of w, R5 … R10 at those of x, R12 counts columns.
	g.params("y R0", "yStride R14", "acc R15", "w R16", "wStride R17", "x R19", "xStride R20", "n R21", "groups R22", "flags R23")
	sum := func(i, r int) int { return (4*i + r) * taken }
	slot := func(i, r, lane int) int { return (4*i+r)*64 + 16*lane }
	firstX := 4 * xs * taken // the first register of x, after the sums
	// move loads the sums of a row's registers from lane on, or stores them.
	move := func(lane int, one, two func(v, at int)) {
		for i := range xs {
			for r := range 4 {
				if taken == 1 {
					one(sum(i, r), slot(i, r, lane))
				}
				for p := 0; p < taken-1; p += 2 {
					two(sum(i, r)+p, slot(i, r, lane+p))
				}
			}
		}
	}
	load := func(lane int) {
		move(lane, func(v, at int) { g.op("FMOVQ %d(R15), F%d", at, v) }, func(v, at int) { g.pair("R15", at, v) })
	}
	store := func(lane int) {
		move(lane, func(v, at int) { g.op("FMOVQ F%d, %d(R15)", v, at) }, func(v, at int) { g.storePair(v, "R15", at) })
	}
	g.repeat("group", "R22", func() {
		for lane := 0; lane < 4; lane += taken {
			part := fmt.Sprintf("part%d", lane)
			g.op("TBNZ $0, R23, %sContinue", part)
			g.clear(firstX)
			g.op("B %sBegin", part)
			g.line("%sContinue:", part)
			load(lane)
			g.line("%sBegin:", part)
			point := func(base, stride string, first, rows int) {
				g.op("ADD $%d, %s, R%d", 16*lane, base, first)
				for r := first + 1; r < first+rows; r++ {
					g.op("ADD %s, R%d, R%d", stride, r-1, r)
				}
			}
			point("R16", "R17", 1, 4)
			point("R19", "R20", 5, xs)
			// next is the next columns' lanes of a row.
			next := func(row, v int) {
				if taken == 1 {
					g.word(0x3ce06800, fmt.Sprintf("LDR Q%d, [X%d, X13]", v, row), v, row, 13)
					return
				}
				for p := taken - 2; p > 0; p -= 2 {
					g.pair(fmt.Sprintf("R%d", row), 16*p, v+p)
				}
				g.op("FLDPQ.P 64(R%d), (F%d, F%d)", row, v, v+1)
			}
			g.op("MOVD R21, R12")
			if taken == 1 {
				g.op("MOVD $0, R13") // bytes from the rows' begin
			}
			g.repeat(part+"Columns", "R12", func() {
				for i := range xs {
					next(5+i, firstX+i*taken)
				}
				ws := firstX + xs*taken
				for r := range 4 {
					w := ws
					if ws+2*taken <= 32 {
						w += r % 2 * taken
					}
					next(1+r, w)
					for i := range xs {
						for p := range taken {
							g.fma(sum(i, r)+p, w+p, firstX+i*taken+p)
						}
					}
				}
				if taken == 1 {
					g.op("ADD $64, R13")
				}
				g.op("SUB $16, R12")
			})
			if lane+taken < 4 {
				store(lane)
			}
		}
		g.op("TBNZ $1, R23, fold")
		store(4 - taken)
		g.op("B next")
		g.line("fold:")
		g.op("MOVD R0, R11")
		for i := range xs {
			var four [4]int
			for r := range 4 {
				a := sum(i, r)
				four[r] = a
				switch taken { // l+8, l+4
				case 4:
					g.add(a, a, a+2)
					g.add(a+1, a+1, a+3)
					g.add(a, a, a+1)
				case 2:
					g.pair("R15", slot(i, r, 0), firstX)
					g.add(a, firstX, a)
					g.add(a+1, firstX+1, a+1)
					g.add(a, a, a+1)
				case 1:
					g.pair("R15", slot(i, r, 0), firstX)
					g.op("FMOVQ %d(R15), F%d", slot(i, r, 2), firstX+2)
					g.add(firstX, firstX, firstX+2)
					g.add(a, firstX+1, a)
					g.add(a, firstX, a)
				}
			}
			g.fold4(four, firstX)
			g.op("FMOVQ F%d, (R11)", four[0])
			if i < xs-1 {
				g.op("ADD R14, R11")
			}
		}
		g.line("next:")
		g.op("ADD R17<<2, R16")
		g.op("ADD $16, R0")
		g.op("CMP $2, R23")
		g.op("BEQ same")
		g.op("ADD $%d, R15", 4*xs*64)
		g.line("same:")
		g.op("SUB $1, R22")
	})
	g.op("RET")
}

// mix is the column-wise product: y[q] = Σ p[q][i]·c[i], summed in ascending i.
func (g *neon) mix(qs int) {
	g.function(fmt.Sprintf("mix%d", qs), "(y *float32, yStride int, p *float32, pStride int, c *float32, cStride int, n, width int)",
		fmt.Sprintf("is y[q] = fma(p[q][i], c[i], y[q]) for %d rows of p, i ascending to n, from y's values; width is a multiple of 16, strides are in bytes.", qs), 64)
	// R5 … R10 are at rows of p; V24 … V29 hold their factors, V30 and V31 some of c.
	g.params("y R0", "yStride R1", "p R5", "pStride R2", "c R14", "cStride R15", "n R16", "width R17")
	for q := 1; q < qs; q++ {
		g.op("ADD R2, R%d, R%d", 4+q, 5+q)
	}
	sizes := []int{16}
	if qs < 4 { // more sums in flight
		sizes = []int{[]int{64, 32, 32}[qs-1], 16}
	}
	for _, floats := range sizes {
		label := fmt.Sprintf("width%d", floats)
		g.line("%s:", label)
		g.op("CMP $%d, R17", floats)
		g.op("BLT %sDone", label)
		held := floats / 4 // registers of one q
		move := func(do func(v, at int)) {
			g.op("MOVD R0, R11")
			for q := range qs {
				for v := 0; v < held; v += 2 {
					do(q*held+v, 16*v)
				}
				if q < qs-1 {
					g.op("ADD R1, R11")
				}
			}
		}
		move(func(v, at int) { g.pair("R11", at, v) })
		g.op("MOVD R14, R11")
		g.op("MOVD R16, R12")
		g.op("MOVD $0, R13") // bytes from the begin of p's rows
		g.repeat(label+"Rows", "R12", func() {
			for q := range qs {
				g.op("FMOVS (R%d)(R13), F%d", 5+q, 24+q)
			}
			for v := 0; v < held; v += 2 {
				g.pair("R11", 16*v, 30)
				for q := range qs {
					for i := range 2 {
						g.fmaScalar(q*held+v+i, 30+i, 24+q)
					}
				}
			}
			g.op("ADD R15, R11")
			g.op("ADD $4, R13")
			g.op("SUB $1, R12")
		})
		move(func(v, at int) { g.storePair(v, "R11", at) })
		g.op("ADD $%d, R0", 4*floats)
		g.op("ADD $%d, R14", 4*floats)
		g.op("SUB $%d, R17", floats)
		g.op("B %s", label)
		g.line("%sDone:", label)
	}
	g.op("RET")
}

// products writes them all.
func (g *neon) products() {
	g.tables()
	for _, format := range []string{"bf16", "bf12", "mx4"} {
		g.rows(format)
		g.widen(format)
	}
	g.block()
	g.unzip()
	for i := range neonTall {
		g.tile(i + 1)
		g.mix(i + 1)
	}
}
