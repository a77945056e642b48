package cpu

import "math"

// lanes is the number of partial sums of a dot product.
const lanes = 16

// dot is the one reduction order of every dot product: element i goes to lane i mod
// 16 by one correctly rounded fp32 FMA, in ascending i; then lanes fold as
// l+8, l+4, l+2, l+1. It depends on nothing else: not on the address, the batch
// or the thread. len(b) ≥ len(a).
func dot(a, b []float32) float32 {
	var acc [lanes]float32
	n := len(a)
	b = b[:n]
	whole := n &^ (lanes - 1)
	for g := 0; g < lanes; g += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 float64 // float32 values, kept wide
		for i := g; i < whole; i += lanes {
			x := a[i : i+8 : i+8]
			y := b[i : i+8 : i+8]
			// fma, written out: a call for each product would cost more than it.
			p0 := float64(x[0]) * float64(y[0])
			t0 := p0 + s0
			if delicate(t0) {
				t0 = roundOdd(p0, s0, t0)
			}
			s0 = float64(float32(t0))
			p1 := float64(x[1]) * float64(y[1])
			t1 := p1 + s1
			if delicate(t1) {
				t1 = roundOdd(p1, s1, t1)
			}
			s1 = float64(float32(t1))
			p2 := float64(x[2]) * float64(y[2])
			t2 := p2 + s2
			if delicate(t2) {
				t2 = roundOdd(p2, s2, t2)
			}
			s2 = float64(float32(t2))
			p3 := float64(x[3]) * float64(y[3])
			t3 := p3 + s3
			if delicate(t3) {
				t3 = roundOdd(p3, s3, t3)
			}
			s3 = float64(float32(t3))
			p4 := float64(x[4]) * float64(y[4])
			t4 := p4 + s4
			if delicate(t4) {
				t4 = roundOdd(p4, s4, t4)
			}
			s4 = float64(float32(t4))
			p5 := float64(x[5]) * float64(y[5])
			t5 := p5 + s5
			if delicate(t5) {
				t5 = roundOdd(p5, s5, t5)
			}
			s5 = float64(float32(t5))
			p6 := float64(x[6]) * float64(y[6])
			t6 := p6 + s6
			if delicate(t6) {
				t6 = roundOdd(p6, s6, t6)
			}
			s6 = float64(float32(t6))
			p7 := float64(x[7]) * float64(y[7])
			t7 := p7 + s7
			if delicate(t7) {
				t7 = roundOdd(p7, s7, t7)
			}
			s7 = float64(float32(t7))
		}
		acc[g+0] = float32(s0)
		acc[g+1] = float32(s1)
		acc[g+2] = float32(s2)
		acc[g+3] = float32(s3)
		acc[g+4] = float32(s4)
		acc[g+5] = float32(s5)
		acc[g+6] = float32(s6)
		acc[g+7] = float32(s7)
	}
	for i := whole; i < n; i++ {
		acc[i-whole] = fma(a[i], b[i], acc[i-whole])
	}
	for w := lanes / 2; w > 0; w /= 2 {
		for l := range w {
			acc[l] += acc[l+w]
		}
	}
	return acc[0]
}

// axpy is y[i] = fma(a, x[i], y[i]), the column-wise form of a dot product: called for
// ascending rows it sums each y[i] in that order. len(x) ≥ len(y).
func axpy(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	w := float64(a)
	for i, c := range y {
		p := w * float64(x[i])
		s := p + float64(c)
		if delicate(s) {
			s = roundOdd(p, float64(c), s)
		}
		y[i] = float32(s)
	}
}

// fma is a·b + c rounded once to float32.
//
// The product of two float32s is exact in float64. Rounding the float64 sum s to
// float32 is the correct rounding of the exact sum, unless s lies just in the middle
// of two float32s: then the part that s lost decides, and roundOdd keeps it.
func fma(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	if delicate(s) {
		s = roundOdd(p, float64(c), s)
	}
	return float32(s)
}

// delicate says whether s may lie in the middle of two float32s. For results under
// 2^-126, where float32s are sparser, that means any.
func delicate(s float64) bool {
	u := math.Float64bits(s) << 1
	return u&(1<<30-1) == 1<<29 || u < minNormal
}

const minNormal = (1023 - 126) << 53 // bits of 2^-126 as float64, shifted left by one

// roundOdd is p + c rounded to odd: s, moved to the neighbour with an odd last bit
// when the sum is not exact. Its conversion to float32 rounds the exact sum. (A sum
// that overflows or isn't a number stays so.)
//
//go:noinline
func roundOdd(p, c, s float64) float64 {
	t := s - p // the two-sum of Knuth: e is exactly p + c − s
	e := (p - (s - t)) + (c - t)
	bits := math.Float64bits(s)
	if e == 0 || bits&1 == 1 {
		return s
	}
	if (e > 0) == (s > 0) { // s is not 0: an inexact sum isn't
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}
