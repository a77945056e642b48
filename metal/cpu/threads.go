package cpu

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// threads are a device's computing goroutines. The caller of run computes too; the
// others wait for it in a spin of some 50 µs, which bridges the gap to a token's next
// operation, and then sleep: an idle device uses no CPU.
//
// A region is open while its epoch is odd. A helper enters it by counting itself in
// and then looking at the epoch again, so a region that is closed has no new guests,
// and it is over when the last has left. A helper that comes late finds nothing to
// do; nobody waits for one that sleeps.
type threads struct {
	helpers int
	mu      sync.Mutex // held by the run that has the helpers
	region  region     // written while the epoch is even and inside is 0
	epoch   atomic.Uint64
	inside  atomic.Int32
	asleep  atomic.Int32
	wake    chan struct{}
	closed  atomic.Bool
	wg      sync.WaitGroup
}

// A task is one operation cut in parts, which threads take in turn. Parts write
// disjoint outputs, so who takes which changes no bit.
type task interface {
	part(i int, s *scratch)
}

// region is a task being run.
type region struct {
	task      task
	parts     int64
	next      atomic.Int64
	cancelled <-chan struct{}
	panicked  atomic.Pointer[any]
}

func (t *threads) start(n int) {
	t.helpers = n - 1
	t.wake = make(chan struct{}, n)
	for range t.helpers {
		t.wg.Go(t.help)
	}
}

func (t *threads) stop() {
	if !t.closed.Swap(true) {
		close(t.wake)
	}
	t.wg.Wait()
}

// help is a helper's life.
func (t *threads) help() {
	debug.SetPanicOnFault(true) // a mapped file that shrank: see region.run
	var s scratch
	seen := uint64(0)
	for {
		e := t.await(seen)
		if e == 0 {
			return
		}
		seen = e
		t.inside.Add(1)
		if t.epoch.Load() == e {
			t.region.run(&s)
		}
		t.inside.Add(-1)
	}
}

const (
	spins  = 400 // turns of a wait before it sleeps, of some 100 ns
	pauses = 4   // in a turn
)

// patience is how many turns of a spin the caller waits for helpers, longer than a part
// takes: the system has stopped one then, and may let it run on the caller's CPU when
// that sleeps.
const patience = 10_000

// await is the next open epoch after seen, or 0 when the device is closed.
func (t *threads) await(seen uint64) uint64 {
	for i := 0; ; i++ {
		if e := t.epoch.Load(); e&1 == 1 && e != seen {
			return e
		}
		if t.closed.Load() {
			return 0
		}
		if i < spins {
			pause(pauses)
			if i%8 == 7 {
				runtime.Gosched() // others may want this thread
			}
			continue
		}
		t.asleep.Add(1)
		if e := t.epoch.Load(); e&1 == 0 || e == seen {
			<-t.wake
		}
		t.asleep.Add(-1)
		i = 0
	}
}

// run computes a task's parts, with the helpers' help unless it is small or another
// run has them, and returns when all have ended or it was cancelled.
//
// A part panics when it reads weights whose file has been cut short under its
// mapping. run then panics in its caller's goroutine, where it can be recovered.
func (t *threads) run(task task, parts int, small bool, cancelled <-chan struct{}, s *scratch) {
	if small || parts == 1 || t.helpers == 0 || !t.mu.TryLock() {
		for i := range parts {
			select {
			case <-cancelled:
				return
			default:
			}
			s.reset()
			task.part(i, s)
		}
		return
	}
	defer t.mu.Unlock()
	r := &t.region
	r.task, r.parts, r.cancelled = task, int64(parts), cancelled
	r.next.Store(0)
	r.panicked.Store(nil)
	t.epoch.Add(1)
	for range min(int(t.asleep.Load()), parts-1) {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	r.run(s)
	t.epoch.Add(1)
	for i := 0; t.inside.Load() != 0; i++ {
		if pause(pauses); i%64 == 63 {
			runtime.Gosched()
		}
		if i > patience {
			time.Sleep(20 * time.Microsecond)
		}
	}
	r.task, r.cancelled = nil, nil
	if v := r.panicked.Load(); v != nil {
		panic(*v)
	}
}

func (r *region) run(s *scratch) {
	defer func() {
		if v := recover(); v != nil {
			first := v // a copy, so that only a panic allocates
			r.panicked.CompareAndSwap(nil, &first)
			r.next.Store(r.parts)
		}
	}()
	for {
		i := r.next.Add(1) - 1
		if i >= r.parts {
			return
		}
		select {
		case <-r.cancelled:
			return
		default:
		}
		s.reset()
		r.task.part(int(i), s)
	}
}

// scratch is memory of one thread for the part it computes.
type scratch struct {
	buf  []float32
	used int
}

func (s *scratch) reset() { s.used = 0 }

// floats takes n floats, not cleared, valid until the part's end.
func (s *scratch) floats(n int) []float32 {
	n = (n + lanes - 1) &^ (lanes - 1) // every piece begins a cache line
	if s.used+n > len(s.buf) {
		s.buf = make([]float32, max(s.used+n, 2*len(s.buf), 1<<16)) // what was taken before keeps the old one
		s.used = 0
	}
	s.used += n
	return s.buf[s.used-n : s.used : s.used]
}

// release gives back what floats gave last.
func (s *scratch) release(f []float32) {
	if n := cap(f); n > 0 && s.used >= n && &s.buf[s.used-n] == unsafe.SliceData(f) {
		s.used -= n
	}
}
