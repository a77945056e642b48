package cpu

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA is a·b + c in unbounded precision, rounded once.
func exactFMA(a, b, c float32) float32 {
	p := new(big.Float).SetPrec(2000).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
	p.Add(p, big.NewFloat(float64(c)))
	f, _ := p.Float32()
	return f
}

func TestFMAIsRoundedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(a, b, c float32) {
		t.Helper()
		got, want := fma(a, b, c), exactFMA(a, b, c)
		if got != want {
			t.Fatalf("fma(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
	any := func() float32 { // every exponent, incl. subnormals
		for {
			f := math.Float32frombits(r.Uint32())
			if !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) {
				return f
			}
		}
	}
	for range samples(200_000) {
		check(any(), any(), any())
		a, b := any(), any()
		// An addend near the product, where rounding is delicate.
		c := float32(-float64(a) * float64(b))
		if math.IsInf(float64(c), 0) {
			continue
		}
		check(a, b, c)
		check(a, b, math.Float32frombits(math.Float32bits(c)^r.Uint32()&3))
	}
	// Sums that fall just beside the middle of two float32s: the product's last
	// bits decide, and a double rounding gets them wrong.
	wrong := 0
	for range samples(200_000) {
		c := math.Float32frombits(0x3f800000 | r.Uint32()&0x7fffff)
		e := float32(math.Ldexp(1, -24))
		a := e * (1 + float32(math.Ldexp(float64(r.IntN(2)*2-1), -23)))
		b := 1 + float32(math.Ldexp(float64(r.IntN(3)-1), -23))
		check(a, b, c)
		if float32(math.FMA(float64(a), float64(b), float64(c))) != exactFMA(a, b, c) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no case told a double rounding from a single one")
	}
	// Results in the subnormal range.
	for range samples(100_000) {
		a := math.Float32frombits(uint32(20+r.IntN(60))<<23 | r.Uint32()&0x7fffff)
		b := math.Float32frombits(uint32(20+r.IntN(60))<<23 | r.Uint32()&0x7fffff)
		c := math.Float32frombits(r.Uint32() & 0x80ffffff)
		check(a, b, c)
	}
}

func TestDotOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 15, 16, 17, 31, 32, 96, 100, 257} {
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		var acc [16]float32
		for i := range a {
			acc[i%16] = exactFMA(a[i], b[i], acc[i%16])
		}
		for w := 8; w > 0; w /= 2 {
			for l := range w {
				acc[l] += acc[l+w]
			}
		}
		if got := dot(a, b); got != acc[0] {
			t.Errorf("dot of %d: %x, want %x", n, got, acc[0])
		}
	}
}

func BenchmarkDot(b *testing.B) {
	x, y := make([]float32, 3584), make([]float32, 3584)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range x {
		x[i], y[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
	}
	var s float32
	for b.Loop() {
		s += dot(x, y)
	}
	b.ReportMetric(float64(b.N)*3584*2/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
