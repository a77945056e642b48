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

// Operations that give each thread rows of its own, or whole experts, when there are
// many: one thread, three threads and each row alone give the same bits.
func TestManyRows(t *testing.T) {
	const n, cols, inter = 200, 64, 3072
	shape := metal.MLAShape{Heads: 2, Nope: 16, Rope: 16, V: 16, KVRank: 64, Scale: .2}
	r := rand.New(rand.NewPCG(5, 6))
	values := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	bf16 := func(rows, cols int) []byte {
		b := make([]byte, 2*rows*cols)
		for i := range rows * cols {
			bits := math.Float32bits(float32(r.NormFloat64())) >> 16
			b[2*i], b[2*i+1] = byte(bits), byte(bits>>8)
		}
		return b
	}
	codes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	x, qs, latents := values(n*cols), values(n*shape.Heads*32), values(n*80)
	weights := [][]byte{bf16(40, cols), bf16(8, cols), bf16(100, cols)}
	kvB := bf16(2*32, 64)
	parts := make([][2][]byte, 12)
	for i := range parts {
		scales := codes(inter * cols / 32)
		for j := range scales {
			scales[j] = 120 + scales[j]%4
		}
		parts[i] = [2][]byte{codes(inter * cols / 2), scales}
	}
	// run is the outputs of rows lo … hi-1, row by row.
	run := func(d *Device, lo, hi int) []float32 {
		k := hi - lo
		buffer := func(v []float32) metal.Buffer {
			b := d.NewBuffer(len(v))
			copy(b.F, v)
			return b
		}
		q := d.Begin(t.Context())
		in := buffer(x[lo*cols : hi*cols])
		var products []metal.Product
		for _, w := range weights {
			rows := len(w) / 2 / cols
			products = append(products, metal.Product{Y: d.NewBuffer(k * rows), W: d.NewMatrix(metal.BF16, rows, cols, w, nil)})
		}
		q.MatMuls(products, in, k)
		var cache []metal.Buffer
		for range (hi + metal.LatentBlock - 1) / metal.LatentBlock {
			cache = append(cache, d.NewBuffer(metal.LatentBlock*80))
		}
		q.Latent(cache, 0, buffer(latents[:hi*80]), buffer(latents[:64]), hi, shape, 1e-6)
		o := d.NewBuffer(k * 32)
		q.MLA(o, buffer(qs[lo*64:hi*64]), cache, lo, d.NewMatrix(metal.BF16, 64, 64, kvB, nil), k, shape)
		all := make([]int32, k)
		for i := range all {
			all[i] = int32(i)
		}
		var jobs []metal.Expert
		for i := 0; i+2 < len(parts); i += 3 {
			m := func(i, rows, cols int) metal.Matrix {
				return d.NewMatrix(metal.MX4, rows, cols, parts[i][0], parts[i][1])
			}
			jobs = append(jobs, metal.Expert{W1: m(i, inter, cols), W3: m(i+1, inter, cols), W2: m(i+2, cols, inter), Rows: all, Out: d.NewBuffer(k * cols)})
		}
		q.Experts(in, jobs, 4, 25)
		if err := q.Wait(); err != nil {
			t.Fatal(err)
		}
		var out []float32
		for i := range k {
			for _, p := range products {
				out = append(out, p.Y.F[i*p.W.Rows:(i+1)*p.W.Rows]...)
			}
			out = append(out, o.F[i*32:(i+1)*32]...)
			for _, job := range jobs {
				out = append(out, job.Out.F[i*cols:(i+1)*cols]...)
			}
		}
		return out
	}
	for _, level := range Levels()[1:] {
		one, three := Open(Options{Threads: 1, Level: level}), Open(Options{Threads: 3, Level: level})
		want := run(one, 0, n)
		same(t, run(three, 0, n), want)
		width := len(want) / n
		for range 3 {
			i := r.IntN(n)
			same(t, run(three, i, i+1), want[i*width:(i+1)*width])
		}
		one.Close()
		three.Close()
	}
}
