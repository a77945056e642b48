// Package metaltest holds what every metal.Device owes: results near a float64
// reference, independent of batch, threads and address, and an end soon after a
// cancellation.
package metaltest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"deltafin/metal"
)

// TestDevice runs the conformance tests on devices that open makes; threads is a hint
// that a GPU may ignore.
func TestDevice(t *testing.T, open func(threads int) metal.Device) {
	one, many := open(1), open(3)
	t.Cleanup(func() { one.Close(); many.Close() })
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			for seed := range uint64(op.seeds()) {
				testOperation(t, op, []metal.Device{one, many}, seed)
			}
		})
	}
	t.Run("Cancelled", func(t *testing.T) { testCancelled(t, many) })
	t.Run("RouteTies", func(t *testing.T) { testRouteTies(t, one) })
	t.Run("NotFinite", func(t *testing.T) { testNotFinite(t, many) })
}

// An operation computes n rows from random inputs that depend on the seed and the
// row only, so that a batch can be cut in any way.
type operation struct {
	name string
	// run computes rows lo … hi-1 of the case and returns the outputs, [hi-lo][width].
	run func(d metal.Device, c *testCase, lo, hi int) []float32
	// want is the float64 reference for all rows, nil if another test has it.
	want func(c *testCase) []float64
	// serial operations carry state from row to row: only prefixes may be compared.
	serial bool
	slow   bool
}

func (o *operation) seeds() int {
	if o.slow {
		return 3
	}
	return 8
}

type testCase struct {
	seed uint64
	rows int
	dim  int // varies with the seed; not a multiple of anything

	whole []metal.Buffer // every buffer of a run, with its guard words
}

// random is n normal values of a stream of the case.
func (c *testCase) random(stream uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(c.seed, stream))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// perRow is rows lo … hi-1 of width values each.
func (c *testCase) perRow(stream uint64, lo, hi, width int) []float32 {
	var v []float32
	for i := lo; i < hi; i++ {
		v = append(v, c.random(stream+uint64(i+1)<<8, width)...)
	}
	return v
}

// guard words stand before and after every buffer's values.
const (
	guard       = 12345.5
	guardBefore = 3
	guardAfter  = 4
)

// buffer puts values at an odd offset between guard words.
func (c *testCase) buffer(d metal.Device, values []float32) metal.Buffer {
	b := d.NewBuffer(guardBefore + len(values) + guardAfter)
	for i := range b.F {
		b.F[i] = guard
	}
	copy(b.F[guardBefore:], values)
	c.whole = append(c.whole, b)
	return b.Slice(guardBefore, guardBefore+len(values))
}

// checkGuards fails if the last run wrote outside a buffer.
func (c *testCase) checkGuards(t *testing.T) {
	t.Helper()
	for _, b := range c.whole {
		n := b.Len()
		for i, v := range b.F {
			if (i < guardBefore || i >= n-guardAfter) && v != guard {
				t.Fatalf("written outside a buffer of %d floats: at %d", n-guardBefore-guardAfter, i-guardBefore)
			}
		}
	}
	c.whole = nil
}

func testOperation(t *testing.T, op operation, devices []metal.Device, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 99))
	c := &testCase{seed: seed, rows: 1 + r.IntN(9), dim: 1 + r.IntN(150)}
	switch {
	case seed == 0:
		c.rows, c.dim = 1, 1
	case seed == 1 && !op.slow:
		c.rows, c.dim = 5, 5000 // enough work for several threads
	}
	all := op.run(devices[0], c, 0, c.rows)
	c.checkGuards(t)
	if op.want != nil {
		want := op.want(c)
		var top float64
		for _, w := range want {
			top = max(top, math.Abs(w))
		}
		for i := range want {
			if d := math.Abs(float64(all[i]) - want[i]); !(d <= 2e-5*top+1e-30) {
				t.Fatalf("%d rows of %d: output %d is %g, want %g", c.rows, c.dim, i, all[i], want[i])
			}
		}
	}
	width := len(all) / c.rows
	for _, d := range devices {
		for range 3 {
			lo, hi := 0, 1+r.IntN(c.rows)
			if !op.serial {
				lo = r.IntN(hi)
			}
			outputs := op.run(d, c, lo, hi)
			c.checkGuards(t)
			for i, got := range outputs {
				if want := all[lo*width+i]; math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("rows %d to %d of %d on %s: output %d is %x, alone or with others %x", lo, hi, c.rows, d.Name(), i, got, want)
				}
			}
		}
	}
}

func testCancelled(t *testing.T, d metal.Device) {
	ctx, cancel := context.WithCancel(context.Background())
	q := d.Begin(ctx)
	n := 256
	w := d.NewMatrix(metal.F32, n, n, make([]byte, 4*n*n), nil)
	x, y := d.NewBuffer(n*n), d.NewBuffer(n*n)
	q.MatMul(y, x, w, n)
	if err := q.Wait(); err != nil {
		t.Errorf("before: %v", err)
	}
	cancel()
	for i := range y.F {
		y.F[i] = guard
	}
	q.MatMul(y, x, w, n)
	if err := q.Wait(); err != context.Canceled {
		t.Errorf("after: %v", err)
	}
	for _, v := range y.F {
		if v != guard {
			t.Fatal("an operation that was asked for after the cancellation ran")
		}
	}
}

func testRouteTies(t *testing.T, d metal.Device) {
	c := new(testCase)
	logits := c.buffer(d, []float32{1, 3, 3, -2, 3, 1})
	bias := c.buffer(d, []float32{0, 0, 0, 9, 0, 0})
	ids, weights := make([]int32, 3), make([]float32, 3)
	q := d.Begin(context.Background())
	q.Route(ids, weights, logits, bias, 1, 6, 3, true, 2)
	if err := q.Wait(); err != nil {
		t.Fatal(err)
	}
	if ids[0] != 1 || ids[1] != 2 || ids[2] != 3 {
		t.Errorf("chose %v, want 1 and 2, the lower ids of the tied, and 3 for its bias", ids)
	}
	var sum float32
	for _, w := range weights {
		sum += w
	}
	if math.Abs(float64(sum)-2) > 1e-6 || weights[2] >= weights[0] {
		t.Errorf("weights %v: want a sum of 2, and the bias in the choice only", weights)
	}
}

func testNotFinite(t *testing.T, d metal.Device) {
	r := rand.New(rand.NewPCG(1, 2))
	inf := math.Inf(1)
	for _, n := range []int{1, 15, 1000, 100_000} {
		x := d.NewBuffer(n)
		for i := range x.F {
			x.F[i] = float32(r.NormFloat64()) * 1e30 // squares are infinite
		}
		q := d.Begin(context.Background())
		want := -1
		for _, v := range []float64{1, inf, -inf, math.NaN()} { // each before the one before
			if v != 1 {
				if want = r.IntN(n); n > 1 && x.F[n-1]-x.F[n-1] == 0 {
					x.F[n-1] = float32(inf)
				}
				x.F[want] = float32(v)
			}
			at := 7
			q.NotFinite(&at, x)
			if err := q.Wait(); err != nil {
				t.Fatal(err)
			}
			if at != want {
				t.Fatalf("%d floats: %d, want %d", n, at, want)
			}
			if want >= 0 {
				x.F[want] = 1
			}
		}
	}
}
