// Package cpu is the CPU device: an operation a file, in portable Go. These
// definitions fix the bits: any faster version must equal them.
package cpu

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"deltafin/metal"
)

// Device computes on the CPU with a fixed number of goroutines, which it owns and
// Close ends. It implements metal.Device.
type Device struct {
	threads int
	kernels kernels
	scratch scratches
	work    chan *region
	wg      sync.WaitGroup
	close   sync.Once
}

// Options configures Open. The zero value uses every CPU the process may use.
type Options struct {
	Threads int    // computing goroutines; 0 means runtime.GOMAXPROCS
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
	d := &Device{threads: o.Threads}
	for _, k := range levels() {
		if o.Level == "" || o.Level == k.name {
			d.kernels = k
		}
	}
	if d.kernels.name == "" {
		panic("cpu: no level " + o.Level + " on this CPU")
	}
	if d.threads <= 0 {
		d.threads = runtime.GOMAXPROCS(0)
	}
	d.work = make(chan *region, d.threads)
	for range d.threads - 1 { // the caller of an operation is the last one
		d.wg.Go(func() {
			debug.SetPanicOnFault(true) // a mapped file that shrank: see region
			for r := range d.work {
				r.run()
				r.done.Done()
			}
		})
	}
	return d
}

func (d *Device) Name() string {
	plural := "s"
	if d.threads == 1 {
		plural = ""
	}
	return fmt.Sprintf("cpu, %d thread%s, %s", d.threads, plural, d.kernels.name)
}

func (d *Device) Threads() int { return d.threads }

func (d *Device) NewBuffer(n int) metal.Buffer { return metal.Buffer{F: make([]float32, n)} }

func (d *Device) Begin(ctx context.Context) metal.Queue {
	return &queue{d: d, ctx: ctx, cancelled: ctx.Done()}
}

func (d *Device) Close() error {
	d.close.Do(func() { close(d.work) })
	d.wg.Wait()
	return nil
}

// queue runs each operation when it is called. It belongs to one goroutine.
type queue struct {
	d         *Device
	ctx       context.Context
	cancelled <-chan struct{}
}

func (q *queue) Wait() error { return q.ctx.Err() }

// region is one operation cut in tasks, which threads take in turn. Tasks write
// disjoint outputs, so who takes which changes no bit.
//
// A task panics when it reads weights whose file has been cut short under its
// mapping. The operation then panics in its caller's goroutine, where it can be
// recovered.
type region struct {
	task      func(int)
	tasks     int64
	next      atomic.Int64
	cancelled <-chan struct{}
	done      sync.WaitGroup
	panicked  atomic.Pointer[any]
}

func (r *region) run() {
	defer func() {
		if v := recover(); v != nil {
			r.panicked.CompareAndSwap(nil, &v)
			r.next.Store(r.tasks)
		}
	}()
	for {
		i := r.next.Add(1) - 1
		if i >= r.tasks {
			return
		}
		select {
		case <-r.cancelled:
			return
		default:
		}
		r.task(int(i))
	}
}

// small is the number of multiply-adds under which waking a thread costs more than it saves.
const small = 16 << 10

// each runs task(0) … task(tasks-1), together about cost multiply-adds, on the
// device's threads, and returns when all have ended or the context has.
func (q *queue) each(tasks, cost int, task func(int)) {
	r := &region{task: task, tasks: int64(tasks), cancelled: q.cancelled}
	helpers := min(q.d.threads, tasks) - 1
	if cost < small {
		helpers = 0
	}
	r.done.Add(helpers)
	for range helpers {
		q.d.work <- r
	}
	r.run()
	r.done.Wait()
	if v := r.panicked.Load(); v != nil {
		panic(*v)
	}
}

// span cuts n items in tasks of at most size and returns their number and the i-th's bounds.
func span(n, size int) (tasks int, bounds func(i int) (lo, hi int)) {
	return (n + size - 1) / size, func(i int) (int, int) { return i * size, min((i+1)*size, n) }
}
