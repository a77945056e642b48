// Package cpu is the CPU device: an operation a file, in portable Go. These
// definitions fix the bits: any faster version must equal them.
package cpu

import (
	"context"
	"fmt"
	"sync/atomic"

	"deltafin/metal"
)

// Device computes on the CPU with a fixed number of goroutines, which it owns and
// Close ends. It implements metal.Device.
type Device struct {
	kernels kernels
	threads threads
}

// Options configures Open. The zero value uses the CPUs that the process may use.
type Options struct {
	Threads int    // computing goroutines; 0 means Processors
	Level   string // one of Levels; "" means the last of them, the fastest
}

// Levels are the instruction sets that this CPU has code for, "portable" first. All
// give the same bits.
func Levels() []string {
	var names []string
	for _, k := range levels() {
		names = append(names, k.name)
	}
	return names
}

// Open starts the device's goroutines.
func Open(o Options) *Device {
	d := new(Device)
	for _, k := range levels() {
		if o.Level == "" || o.Level == k.name {
			d.kernels = k
		}
	}
	if d.kernels.name == "" {
		panic("cpu: no level " + o.Level + " on this CPU")
	}
	if o.Threads <= 0 {
		o.Threads, _ = Processors()
	}
	d.threads.start(o.Threads)
	return d
}

func (d *Device) Name() string {
	plural := "s"
	if d.Threads() == 1 {
		plural = ""
	}
	return fmt.Sprintf("cpu, %d thread%s, %s", d.Threads(), plural, d.kernels.name)
}

func (d *Device) Threads() int { return d.threads.helpers + 1 }

func (d *Device) NewBuffer(n int) metal.Buffer { return metal.Buffer{F: make([]float32, n)} }

func (d *Device) Begin(ctx context.Context) metal.Queue {
	q := &queue{d: d}
	q.Reset(ctx)
	return q
}

func (d *Device) Close() error {
	d.threads.stop()
	return nil
}

// queue runs each operation when it is called. It belongs to one goroutine.
type queue struct {
	d         *Device
	ctx       context.Context
	cancelled <-chan struct{}
	scratch   scratch   // of the caller's thread
	unzipped  []float32 // an operation's inputs in the order of matrix products
	single    [1]metal.Product
	rates     []float32 // of KDAGate, by head

	// The operation being run: here, so that none is allocated.
	simple    simple
	notFinite atomic.Int64
	conv      shortConv
	kda       kda
	routing   routing
	unzipper  unzipper
	matMul    matMul
	experts   experts
	mla       mla
}

func (q *queue) Wait() error { return q.ctx.Err() }

func (q *queue) Reset(ctx context.Context) { q.ctx, q.cancelled = ctx, ctx.Done() }

// small is the number of multiply-adds under which waking a thread costs more than it saves.
const small = 96 << 10

// run computes t's parts, together about cost multiply-adds, on the device's threads,
// and returns when all have ended or the context has.
func (q *queue) run(parts, cost int, t task) {
	if parts > 0 {
		q.d.threads.run(t, parts, cost < small, q.cancelled, &q.scratch)
	}
}
