package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"deltafin/metal"
	"deltafin/metal/cpu"
)

// KernelOptions says which kernels to measure. Empty slices mean all.
type KernelOptions struct {
	Ops     []string // parts of operations' names as Operations gives them, in any case
	Levels  []string // of cpu.Levels
	Threads []int    // empty means 1 and cpu.Processors
	Rows    []int    // empty means 1, 4, 16, 64 and 512
	Runs    int      // measurements of each; 0 means 5
	Memory  int64    // bytes that the operands may take together; 0 means 1 GiB

	// Least is how long a measurement takes at least; 0 means 20 ms.
	Least  time.Duration
	Status func(text string) // what is being done; nil tells nobody
}

// A Limit is what this machine does at most with a level's instructions: the best of
// some measurements.
type Limit struct {
	Level   string  `json:"level"`
	Threads int     `json:"threads"`
	GFLOPS  float64 `json:"gflop_per_s"` // two for each multiply-add
	Reads   []Read  `json:"reads"`       // from the nearest memory to the farthest
}

// Read is how fast a memory is read.
type Read struct {
	From  string  `json:"from"`  // "L1", "L2", "L3", "DRAM"
	Bytes int     `json:"bytes"` // what was read again and again, all threads together
	GBps  float64 `json:"gb_per_s"`
}

// KernelResult is one line of the table.
type KernelResult struct {
	Op      string  `json:"op"`
	Shape   string  `json:"shape"`
	Rows    int     `json:"rows"`
	Level   string  `json:"level"`
	Threads int     `json:"threads"`
	Seconds Spread  `json:"seconds"` // of a call
	GFLOPS  float64 `json:"gflop_per_s"`
	GBps    float64 `json:"gb_per_s"` // of what a call reads and writes, each byte once
	From    string  `json:"from"`     // the memory that holds it
	// Share is the least time that the machine's limits allow, the larger of the
	// arithmetic's and the memory's, ÷ the median.
	Share float64 `json:"share"`
	Bound string  `json:"bound"` // "FMA" or "memory": which of the two is larger
	// Part is 1, or how much of the matrix or of the heads was computed, where all
	// would take too long; the times are for all, in proportion.
	Part float64 `json:"part"`
	Runs int     `json:"runs"`
}

// KernelReport is what Kernels measured.
type KernelReport struct {
	Caches  Caches         `json:"caches"`
	Limits  []Limit        `json:"limits"`
	Results []KernelResult `json:"results"`
}

// Caches are the sizes of a CPU's caches in bytes: of one core's L1 and L2, and of the
// L3 that cores share. Where the system doesn't tell they are a guess.
type Caches struct {
	L1 int `json:"l1"`
	L2 int `json:"l2"`
	L3 int `json:"l3"`
}

// defaults fills in what zero values mean.
func (o *KernelOptions) defaults() {
	if len(o.Levels) == 0 {
		o.Levels = cpu.Levels()
	}
	if len(o.Threads) == 0 {
		n, _ := cpu.Processors()
		o.Threads = slices.Compact([]int{1, n})
	}
	if len(o.Rows) == 0 {
		o.Rows = []int{1, 4, 16, 64, 512}
	}
	if o.Runs == 0 {
		o.Runs = 5
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if o.Least == 0 {
		o.Least = 20 * time.Millisecond
	}
}

func (o *KernelOptions) status(format string, args ...any) {
	if o.Status != nil {
		o.Status(fmt.Sprintf(format, args...))
	}
}

// Operations names what Kernels measures: operation and shape.
func Operations() []string {
	var names []string
	for _, op := range operations {
		names = append(names, op.String())
	}
	return names
}

// Matches says whether a name of Operations is one that asked means: a part of it, in any
// case, with x for ×.
func Matches(name, asked string) bool {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "×", "x") }
	return strings.Contains(plain(name), plain(asked))
}

// Kernels measures operations at K3's sizes. All levels and numbers of threads run one
// operation by turns, o.Runs times. Weights are those of several matrices in turn, so
// that they come from memory and not from a cache. The error is the context's; the report then
// has what was measured before.
func Kernels(ctx context.Context, o KernelOptions) (*KernelReport, error) {
	o.defaults()
	report := &KernelReport{Caches: caches()}
	var engines []*kernelEngine
	defer func() {
		for _, e := range engines {
			e.device.Close()
		}
	}()
	for _, level := range o.Levels {
		for _, threads := range o.Threads {
			o.status("the limits of %s, %d threads", level, threads)
			limit := measureLimit(level, threads, report.Caches, o.Least)
			report.Limits = append(report.Limits, limit)
			engines = append(engines, &kernelEngine{device: cpu.Open(cpu.Options{Threads: threads, Level: level}), limit: limit})
			if err := ctx.Err(); err != nil {
				return report, err
			}
		}
	}
	var chosen []operation
	var largest int64
	for _, op := range operations {
		if len(o.Ops) == 0 || slices.ContainsFunc(o.Ops, func(asked string) bool { return Matches(op.String(), asked) }) {
			chosen = append(chosen, op)
			largest = max(largest, op.weights)
		}
	}
	k := &kit{device: engines[0].device, memory: int(o.Memory), enough: 4 * report.Caches.L3}
	k.fill(max(min(max(largest, int64(k.enough)), o.Memory/2), leastPool))
	for _, op := range chosen {
		for _, rows := range o.Rows {
			if rows > op.most {
				continue
			}
			results, err := o.measure(ctx, k, op, rows, engines, report.Caches)
			if err != nil {
				return report, err
			}
			report.Results = append(report.Results, results...)
		}
	}
	return report, nil
}

// leastPool holds any matrix that isn't cut to the memory: kv_b is the largest.
const leastPool = 2*2*width*kvRank + 1<<20

// kernelEngine is one level on one number of threads.
type kernelEngine struct {
	device *cpu.Device
	limit  Limit
}

// measureLimit takes about fifteen times d.
func measureLimit(level string, threads int, c Caches, d time.Duration) Limit {
	limit := Limit{Level: level, Threads: threads, Reads: []Read{
		{From: "L1", Bytes: threads * c.L1 / 2}, {From: "L2", Bytes: threads * (c.L1 + c.L2/2)}, {From: "L3", Bytes: threads*c.L2 + c.L3/4}, {From: "DRAM", Bytes: 4 * c.L3},
	}}
	for range 3 {
		limit.GFLOPS = max(limit.GFLOPS, cpu.FMARate(level, threads, d)/1e9)
		for i := range limit.Reads {
			r := &limit.Reads[i]
			r.GBps = max(r.GBps, cpu.ReadRate(level, threads, r.Bytes, d)/1e9)
		}
	}
	return limit
}

// memory is where a set of bytes lies that threads go through again and again.
func (l *Limit) memory(c Caches, set int) Read {
	sizes := []int{l.Threads * c.L1 * 3 / 4, l.Threads * c.L2, c.L3}
	for i, size := range sizes {
		if set <= size {
			return l.Reads[i]
		}
	}
	return l.Reads[len(l.Reads)-1]
}

// callSeconds is how long a call may take by a rough guess before only a part of the
// operation is computed.
const callSeconds = .3

// divide is by how much an operation of so many floating-point operations is cut for
// an engine.
func (e *kernelEngine) divide(flops float64) int {
	speed := 25e9 * float64(e.device.Threads())
	if e.limit.Level == "portable" {
		speed = 2e9 * float64(e.device.Threads())
	}
	n := 1
	for ; flops/speed/float64(n) > callSeconds && n < 64; n *= 2 {
	}
	return n
}

// measure is one operation at one number of rows on all engines.
func (o *KernelOptions) measure(ctx context.Context, k *kit, op operation, rows int, engines []*kernelEngine, c Caches) ([]KernelResult, error) {
	type subject struct {
		*kernelEngine
		part  int
		w     work
		calls int // of a measurement
		next  int
		times []float64
	}
	// Engines that compute the same part share its operands.
	made := map[int]work{}
	var subjects []*subject
	whole := op.make(k, rows, 1, false)
	for _, e := range engines {
		part := min(e.divide(whole.flops), op.parts)
		if _, ok := made[part]; !ok {
			made[part] = op.make(k, rows, part, true)
		}
		subjects = append(subjects, &subject{kernelEngine: e, part: part, w: made[part]})
	}
	run := func(s *subject) (time.Duration, error) {
		q := s.device.Begin(ctx)
		began := time.Now()
		for range s.calls {
			s.w.call(q, s.next)
			s.next++
		}
		err := q.Wait()
		return time.Since(began), err
	}
	for i := range o.Runs + 1 {
		for _, s := range subjects {
			o.status("%v, %d rows: %s, %d threads, run %d of %d", op, rows, s.limit.Level, s.limit.Threads, i, o.Runs)
			if i == 0 { // not counted: brings pages in and says how many calls a measurement is
				for s.calls = 1; ; s.calls *= 2 {
					spent, err := run(s)
					if err != nil {
						return nil, err
					}
					if spent >= o.Least || s.calls >= 1<<20 {
						break
					}
				}
				continue
			}
			spent, err := run(s)
			if err != nil {
				return nil, err
			}
			s.times = append(s.times, spent.Seconds()/float64(s.calls)*float64(s.part))
		}
	}
	var results []KernelResult
	for _, s := range subjects {
		r := KernelResult{Op: op.name, Shape: op.shape, Rows: rows, Level: s.limit.Level, Threads: s.limit.Threads, Seconds: spreadOf(s.times), Part: 1 / float64(s.part), Runs: o.Runs}
		r.GFLOPS, r.GBps = whole.flops/r.Seconds.Median/1e9, whole.bytes/r.Seconds.Median/1e9
		from := s.limit.memory(c, s.w.set)
		compute, memory := whole.flops/s.limit.GFLOPS/1e9, whole.bytes/from.GBps/1e9
		r.From, r.Bound, r.Share = from.From, "FMA", compute/r.Seconds.Median
		if memory > compute {
			r.Bound, r.Share = "memory", memory/r.Seconds.Median
		}
		results = append(results, r)
	}
	return results, nil
}

// work is an operation on operands that are there.
type work struct {
	flops float64 // of a call; 0 where a call is functions more than sums
	bytes float64 // that a call reads and writes, each once
	set   int     // bytes that calls go through in turn
	call  func(q metal.Queue, i int)
}

// usualCaches stand in where the system doesn't tell.
var usualCaches = Caches{L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}
