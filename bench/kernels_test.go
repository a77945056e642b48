package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"deltafin/metal"
	"deltafin/metal/cpu"
)

// Every operation runs, and gives figures that fit each other.
func TestKernels(t *testing.T) {
	levels := cpu.Levels()
	o := KernelOptions{Levels: levels[len(levels)-1:], Threads: []int{1, 2}, Rows: []int{1}, Runs: 1, Memory: 16 << 20, Least: 1}
	report, err := Kernels(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Limits) != 2 || len(report.Results) != 2*len(operations) {
		t.Fatalf("%d limits and %d results, want 2 and %d", len(report.Limits), len(report.Results), 2*len(operations))
	}
	for _, l := range report.Limits {
		if !(l.GFLOPS > 0) || len(l.Reads) != 4 || slices.ContainsFunc(l.Reads, func(r Read) bool { return !(r.GBps > 0) }) {
			t.Errorf("%+v", l)
		}
	}
	for i, r := range report.Results {
		s := r.Seconds
		if r.Op+" "+r.Shape != operations[i/2].String() || r.Threads != 1+i%2 || r.Rows != 1 || r.Runs != 1 {
			t.Errorf("result %d is of %s %s, %d threads", i, r.Op, r.Shape, r.Threads)
		}
		if !(0 < s.Low && s.Low <= s.Median && s.Median <= s.High) || !(r.GBps > 0) || !(r.Share > 0) || !(r.Part > 0 && r.Part <= 1) {
			t.Errorf("%+v", r)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	o.Ops, o.Status = []string{"route", "sigmoid 96"}, func(text string) {
		if strings.HasPrefix(text, "Sigmoid") {
			cancel()
		}
	}
	if report, err := Kernels(ctx, o); !errors.Is(err, context.Canceled) || len(report.Results) != 2 {
		t.Errorf("cancelled in the second operation: %+v, %v", report, err)
	}
}

// A part of an operation costs that part of the whole, for any that can be cut.
func TestParts(t *testing.T) {
	k := &kit{device: cpu.Open(cpu.Options{Threads: 1}), memory: 1 << 30, enough: 1}
	defer k.device.Close()
	k.pool = make([]byte, 8<<20)
	for _, op := range operations {
		whole := op.make(k, 3, 1, false)
		for part := 2; part <= op.parts; part *= 2 {
			if w := op.make(k, 3, part, false); math.Abs(w.flops*float64(part)/whole.flops-1) > .01 && op.weights <= int64(len(k.pool)) {
				t.Errorf("%v: 1/%d has %g operations, the whole %g", op, part, w.flops, whole.flops)
			}
		}
	}
}

// What operations cost, by the sizes of docs/k3.md.
func TestCosts(t *testing.T) {
	k := &kit{pool: make([]byte, 1<<30)[:1<<30]}
	for _, c := range []struct {
		op           string
		flops, bytes float64
	}{
		{"MatMul BF16 12288×7168", 2 * 12288 * 7168, 2*12288*7168 + 4*(12288+7168)},
		{"MatMul MX4 3072×3584", 2 * 3072 * 3584, 3072*(1792+112) + 4*(3072+3584)},
		{"Experts 16 of 3584×3072", 16 * 6 * 3072 * 3584, 16 * (17547264 + 2*4*3584)},
	} {
		at := slices.IndexFunc(operations, func(o operation) bool { return o.String() == c.op })
		if w := operations[at].make(k, 1, 1, false); w.flops != c.flops || w.bytes != c.bytes {
			t.Errorf("%s: %g operations and %g bytes, want %g and %g", c.op, w.flops, w.bytes, c.flops, c.bytes)
		}
	}
}

// Weights go round in more matrices than a cache holds, where there is room.
func TestMatrices(t *testing.T) {
	d := cpu.Open(cpu.Options{Threads: 1})
	defer d.Close()
	k := &kit{device: d, enough: 3 << 20}
	k.fill(4 << 20)
	for _, f := range []metal.Format{metal.BF16, metal.MX4, metal.F32} {
		list := k.matrices(f, 512, 1024)
		if size := 512 * f.RowBytes(1024); len(list)*size < k.enough {
			t.Errorf("%v: %d matrices of %d bytes", f, len(list), size)
		}
		if &list[0].Data[0] == &list[1].Data[0] {
			t.Errorf("%v: the same matrix twice", f)
		}
	}
	if list := k.matrices(metal.F32, 4096, 1024); len(list) != 1 || list[0].Rows != 1024 {
		t.Errorf("a matrix larger than the pool: %d of %d rows", len(list), list[0].Rows)
	}
}

func TestMemory(t *testing.T) {
	c := Caches{L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}
	l := Limit{Threads: 2, Reads: []Read{{From: "L1"}, {From: "L2"}, {From: "L3"}, {From: "DRAM"}}}
	for set, want := range map[int]string{1000: "L1", 1 << 20: "L2", 3 << 20: "L3", 1 << 30: "DRAM"} {
		if got := l.memory(c, set); got.From != want {
			t.Errorf("%d bytes come from %s, want %s", set, got.From, want)
		}
	}
}

func TestMatches(t *testing.T) {
	for asked, want := range map[string]bool{"matmul": true, "MX4 12288x7168": true, "mx4 12288×7168": true, "mx4 12288x7168": true, "experts": false, "bf16": false} {
		if got := Matches("MatMul MX4 12288×7168", asked); got != want {
			t.Errorf("%s: %v", asked, got)
		}
	}
}

func TestSpread(t *testing.T) {
	if s := spreadOf([]float64{3, 1, 10, 2}); s != (Spread{Median: 2.5, Low: 1, High: 10}) {
		t.Errorf("%+v", s)
	}
	if s := spreadOf([]float64{7}); s != (Spread{7, 7, 7}) {
		t.Errorf("%+v", s)
	}
}
