package cpu

import "math"

// The exponential and its kin in fp32, built of single-rounded steps only, so that
// a vector version and every architecture give the same bits. A product that an
// addition may meet is converted explicitly, or a compiler could fuse the two. Errors against
// unbounded precision are at most 2 ulp (TestFunctionsWithinTwoUlp measures them).

const (
	log2e = 0x1.715476p+0
	ln2Hi = 0x1.62e4p-1 // 16 bits, so that n·ln2Hi is exact
	ln2Lo = 0x1.7f7d1cp-20
	magic = 0x1.8p23 // adding it rounds to an integer
)

// exp is e^x.
func exp(x float32) float32 {
	switch {
	case x != x:
		return x
	case x > 88.8:
		return float32(math.Inf(1))
	case x < -104:
		return 0
	}
	return scale(expParts(x))
}

// expParts is e^x as p·2^n: x = n·ln2 + h + lo with |h| ≤ ln2/2, and p = 1 + h +
// (h²·q(h) + lo) with the sum's rounding error carried.
func expParts(x float32) (p, n float32) {
	n = fma(x, log2e, magic) - magic
	r := fma(n, -ln2Hi, x)
	h := fma(n, -ln2Lo, r)
	lo := fma(n, -ln2Lo, r-h)
	q := float32(1.0 / 5040)
	q = fma(q, h, 1.0/720)
	q = fma(q, h, 1.0/120)
	q = fma(q, h, 1.0/24)
	q = fma(q, h, 1.0/6)
	q = fma(q, h, 0.5)
	s := 1 + h
	return s + (fma(float32(h*h), q, lo) + (h - (s - 1))), n
}

// scale is p·2^n, by two factors, so that a result that overflows or is subnormal is
// rounded once.
func scale(p, n float32) float32 {
	half := int32(n) >> 1
	return float32(float32(p*pow2(half)) * pow2(int32(n)-half))
}

// pow2 is 2^n for -126 ≤ n ≤ 127.
func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// sigmoid is 1/(1+e^-x) for x ≥ 0 and e^x/(1+e^x) below, the quotient corrected by
// its remainder and by what 1+e lost.
func sigmoid(x float32) float32 {
	e := exp(-abs(x))
	top := float32(1)
	if x < 0 {
		top = e
	}
	s := 1 + e
	lost := e - (s - 1)
	inverse := 1 / s
	y := float32(top * inverse)
	rest := fma(-y, lost, fma(-y, s, top))
	return fma(rest, inverse, y)
}

// tanh is x + x³·P(x²) near zero (P fitted at Chebyshev nodes, 4e-9 relative), and
// 1 − 2/(e^2x+1) beyond.
func tanh(x float32) float32 {
	a := abs(x)
	switch {
	case x != x:
		return x
	case a < 0.625:
		z := float32(x * x)
		p := float32(0.002292744815349579)
		p = fma(p, z, -0.008343945257365704)
		p = fma(p, z, 0.02176891826093197)
		p = fma(p, z, -0.053959257900714874)
		p = fma(p, z, 0.13333304226398468)
		p = fma(p, z, -0.3333333432674408)
		return fma(float32(x*z), p, x)
	case a > 10:
		return copysign(1, x)
	}
	return copysign(1-2/(exp(2*a)+1), x)
}

// silu is x/(1+e^-x), as sigmoid with x in the quotient. Below zero the power of two of
// e^x is left to the end, or a result near the subnormal ones would lose bits.
func silu(x float32) float32 {
	switch {
	case x > 100:
		return x
	case x < -120:
		x = -120 // gives −0
	}
	p, n := expParts(-abs(x))
	e := scale(p, n)
	s := 1 + e
	lost := e - (s - 1)
	inverse := 1 / s
	if !(x < 0) {
		p, n = 1, 0
	}
	top := float32(x * p)
	low := fma(x, p, -top)
	y := float32(top * inverse)
	rest := fma(-y, lost, fma(-y, s, top)) + low
	return scale(fma(rest, inverse, y), n)
}

// sqrt is correctly rounded: a float64 root has more than twice the bits of a float32.
func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func copysign(x, sign float32) float32 {
	return math.Float32frombits(math.Float32bits(x)&^(1<<31) | math.Float32bits(sign)&(1<<31))
}
