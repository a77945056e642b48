package cpu

import (
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"deltafin/metal"
	"deltafin/metal/metaltest"
)

func TestDevice(t *testing.T) {
	for _, level := range Levels() {
		t.Run(level, func(t *testing.T) {
			metaltest.TestDevice(t, func(threads int) metal.Device { return Open(Options{Threads: threads, Level: level}) })
		})
	}
}

// Queues of several goroutines share a device's threads.
func TestConcurrentQueues(t *testing.T) {
	d := Open(Options{Threads: 3})
	defer d.Close()
	x := d.NewBuffer(64)
	for i := range x.F {
		x.F[i] = float32(i)
	}
	data := make([]byte, 300*64*2)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for i := 1; i < len(data); i += 2 {
		data[i] = data[i]&0x80 | 0x3f // values around 1
	}
	w := d.NewMatrix(metal.BF16, 300, 64, data, nil)
	want := d.NewBuffer(300)
	q := d.Begin(t.Context())
	q.MatMul(want, x, w, 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			q := d.Begin(t.Context())
			y := d.NewBuffer(300)
			for range 50 {
				q.MatMul(y, x, w, 1)
				for i := range y.F {
					if y.F[i] != want.F[i] {
						t.Errorf("output %d: %g, want %g", i, y.F[i], want.F[i])
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// ulps is how many float32s lie between got and want.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	if got == w || math.IsNaN(float64(got)) && math.IsNaN(want) {
		return 0
	}
	step := math.Abs(float64(math.Nextafter32(w, float32(math.Inf(1)))) - float64(w))
	if math.IsInf(float64(w), 0) || math.IsInf(float64(got), 0) {
		return math.Inf(1)
	}
	return math.Abs(float64(got)-want) / step
}

// Errors are at most 2 ulp over all float32s: an even share of their bits, whole
// stretches where a function changes its way or its result is subnormal, overflows or
// saturates, and many of ordinary size.
func TestFunctionsWithinTwoUlp(t *testing.T) {
	for _, f := range functions {
		r := rand.New(rand.NewPCG(1, 2))
		var worst float64
		var at float32
		try := func(x float32) {
			if u := ulps(f.f(x), f.want(float64(x))); !(u <= worst) {
				worst, at = u, x
			}
		}
		stride := uint64(1<<32/samples(2_000_000)) | 1
		for bits := uint64(0); bits < 1<<32; bits += stride {
			try(math.Float32frombits(uint32(bits)))
		}
		for range samples(1_000_000) {
			try(float32(r.NormFloat64()))
			try(float32(r.NormFloat64() * 30))
		}
		for _, x := range edges {
			for i := range uint32(samples(10_000)) {
				try(math.Float32frombits(math.Float32bits(x) + i))
				try(math.Float32frombits(math.Float32bits(x) - i))
			}
		}
		t.Logf("%s: at most %.2f ulp, at %g", f.name, worst, at)
		if worst > 2 {
			t.Errorf("%s(%g) = %g, want %g: %.2f ulp", f.name, at, f.f(at), f.want(float64(at)), worst)
		}
	}
}

var functions = []struct {
	name string
	f    func(float32) float32
	want func(float64) float64
}{
	{"exp", exp, math.Exp},
	{"sigmoid", sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	{"silu", silu, func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0
		}
		return x / (1 + math.Exp(-x))
	}},
	{"tanh", tanh, math.Tanh},
}

// The reference of TestFunctionsWithinTwoUlp is right to a thousandth of an ulp: against
// unbounded precision.
func TestReferenceFunctions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	one := big.NewFloat(1)
	wide := func() *big.Float { return new(big.Float).SetPrec(300) }
	over := func(a, b *big.Float) *big.Float { return wide().Quo(a, b) }
	for _, f := range functions {
		check := func(x float32) {
			if x != x || math.IsInf(float64(x), 0) || math.Abs(float64(x)) > 700 {
				return
			}
			e := bigExp(wide().SetFloat64(float64(x)))
			exact := map[string]*big.Float{
				"exp":     e,
				"sigmoid": over(e, wide().Add(one, e)),
				"silu":    over(wide().Mul(e, big.NewFloat(float64(x))), wide().Add(one, e)),
			}[f.name]
			if f.name == "tanh" {
				square := wide().Mul(e, e)
				exact = over(wide().Sub(square, one), wide().Add(square, one))
			}
			want, _ := exact.Float64()
			if got := f.want(float64(x)); math.Abs(got-want) > math.Abs(want)*1e-13 {
				t.Fatalf("the reference of %s(%g) is %g, want %g", f.name, x, got, want)
			}
		}
		for _, x := range edges {
			check(x)
		}
		for range samples(4000) {
			check(float32(r.NormFloat64() * 30))
			check(math.Float32frombits(r.Uint32()))
		}
	}
}

// bigExp is e^x by Taylor's series of x/2^16, squared 16 times.
func bigExp(x *big.Float) *big.Float {
	wide := func() *big.Float { return new(big.Float).SetPrec(300) }
	z := wide().SetMantExp(x, -16)
	sum, term := wide().SetInt64(1), wide().SetInt64(1)
	for i := int64(1); i < 40; i++ {
		term.Quo(term.Mul(term, z), wide().SetInt64(i))
		sum.Add(sum, term)
	}
	for range 16 {
		sum.Mul(sum, sum)
	}
	return sum
}

// samples is n, or fewer in a short run.
func samples(n int) int {
	if testing.Short() {
		return n / 20
	}
	return n
}

// Every level widens every code at every scale, those that overflow too.
func TestWidenMX4(t *testing.T) {
	for _, k := range levels() {
		for scale := range 256 {
			codes, scales := make([]byte, 16), []byte{byte(scale)}
			for i := range codes {
				codes[i] = byte(2*i%16 | (2*i+1)%16<<4)
			}
			w := metal.Matrix{Format: metal.MX4, Rows: 1, Cols: 32, Data: codes, Scales: scales}
			got, unzipped := make([]float32, 32), make([]float32, 32)
			k.widenRows(unzipped, &w, 0, 1, new(scratch))
			zip(got, unzipped)
			for i, v := range got {
				wide := []float64{0, .5, 1, 1.5, 2, 3, 4, 6}[i%8] * math.Exp2(float64(scale)-127)
				if i%16 >= 8 {
					wide = -wide
				}
				want := float32(wide)
				if scale == 255 {
					want = float32(math.NaN())
				}
				if math.Float32bits(v) != math.Float32bits(want) && !(v != v && want != want) {
					t.Fatalf("%s: code %d at scale %d: %g, want %g", k.name, i%16, scale, v, want)
				}
			}
		}
	}
}

// Threads that have nothing to do sleep, and wake for the next operation.
func TestIdleThreadsSleep(t *testing.T) {
	d := Open(Options{Threads: 3})
	defer d.Close()
	w := d.NewMatrix(metal.BF16, 1024, 256, make([]byte, 2*1024*256), nil)
	x, y := d.NewBuffer(256), d.NewBuffer(1024)
	q := d.Begin(t.Context())
	for range 3 {
		q.MatMul(y, x, w, 1)
		for deadline := time.Now().Add(time.Minute); d.threads.asleep.Load() != 2; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d of 2 helpers sleep", d.threads.asleep.Load())
			}
		}
	}
}
