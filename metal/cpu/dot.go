package cpu

import "math"

// Lanes is the number of partial sums of a dot product.
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
			s0 = step(x[0], y[0], s0)
			s1 = step(x[1], y[1], s1)
			s2 = step(x[2], y[2], s2)
			s3 = step(x[3], y[3], s3)
			s4 = step(x[4], y[4], s4)
			s5 = step(x[5], y[5], s5)
			s6 = step(x[6], y[6], s6)
			s7 = step(x[7], y[7], s7)
		}
		acc[g], acc[g+1], acc[g+2], acc[g+3] = float32(s0), float32(s1), float32(s2), float32(s3)
		acc[g+4], acc[g+5], acc[g+6], acc[g+7] = float32(s4), float32(s5), float32(s6), float32(s7)
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
	for i := range y {
		y[i] = float32(step(a, x[i], float64(y[i])))
	}
}

// fma is a·b + c rounded once to float32.
func fma(a, b, c float32) float32 { return float32(step(a, b, float64(c))) }

// step is fma with its float32 addend and result kept in float64s.
//
// The product of two float32s is exact in float64. Rounding the float64 sum s to
// float32 is the correct rounding of the exact sum, unless s lies just in the middle
// of two float32s: then the part that s lost decides, and roundOdd keeps it.
// For results under 2^-126 the middle lies elsewhere, so all of those go there.
func step(a, b float32, c float64) float64 {
	p := float64(a) * float64(b)
	s := p + c
	u := math.Float64bits(s) << 1
	if u&(1<<30-1) == 1<<29 || u < minNormal {
		s = roundOdd(p, c, s)
	}
	return float64(float32(s))
}

const minNormal = (1023 - 126) << 53 // bits of 2^-126 as float64, shifted left by one

// roundOdd is p + c rounded to odd: s, moved to the neighbour with an odd last bit
// when the sum is not exact. Its conversion to float32 rounds the exact sum.
//
//go:noinline
func roundOdd(p, c, s float64) float64 {
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
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
