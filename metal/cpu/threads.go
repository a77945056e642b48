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
	wake    chan struct{}
	closed  atomic.Bool
	asleep  atomic.Int32
	wg      sync.WaitGroup

	_      [128]byte // what threads wait for has cache lines of its own
	epoch  atomic.Uint64
	region region // written while the epoch is even and inside is 0
	_      [128]byte
	inside atomic.Int32
}

// A task is one operation cut in parts, which threads share. Parts write disjoint
// outputs, so who takes which changes no bit.
type task interface {
	part(i int, s *scratch)
}

// region is a task being run. Each thread has a range of its parts, the same share of
// each task's: what one operation wrote, the next finds in the same thread's cache.
// A thread that has none left takes half of what another still has.
type region struct {
	task      task
	cancelled <-chan struct{}
	ended     atomic.Bool // a part panicked: no more are begun
	panicked  atomic.Pointer[any]
	ranges    []partRange // by thread, the caller's first
}

// partRange is a range of parts that have not been begun: first in the upper half, end
// in the lower. Its thread takes from the front, others from the back.
type partRange struct {
	atomic.Uint64
	_ [120]byte
}

func (r *partRange) set(first, end int) { r.Store(uint64(first)<<32 | uint64(end)) }

// take is the first part, -1 when there is none.
func (r *partRange) take() int {
	for {
		v := r.Load()
		first, end := v>>32, v&(1<<32-1)
		if first >= end {
			return -1
		}
		if r.CompareAndSwap(v, v+1<<32) {
			return int(first)
		}
	}
}

// steal is the later half of the range, which it loses.
func (r *partRange) steal() (first, end int) {
	for {
		v := r.Load()
		first, end := v>>32, v&(1<<32-1)
		if first >= end {
			return 0, 0
		}
		middle := first + (end-first)/2
		if r.CompareAndSwap(v, first<<32|middle) {
			return int(middle), int(end)
		}
	}
}

func (t *threads) start(n int) {
	t.helpers = n - 1
	t.wake = make(chan struct{}, n)
	t.region.ranges = make([]partRange, n)
	for i := range t.helpers {
		t.wg.Go(func() { t.help(i + 1) })
	}
}

func (t *threads) stop() {
	if !t.closed.Swap(true) {
		close(t.wake)
	}
	t.wg.Wait()
}

// help is the life of helper i, counted from 1.
func (t *threads) help(i int) {
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
			t.region.run(i, &s)
		}
		t.inside.Add(-1)
	}
}

const (
	spins  = 1200 // turns of a wait before it sleeps, of some 40 ns
	pauses = 1    // in a turn
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
			if i%64 == 63 {
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
	r.task, r.cancelled = task, cancelled
	r.ended.Store(false)
	r.panicked.Store(nil)
	for i := range r.ranges {
		r.ranges[i].set(parts*i/len(r.ranges), parts*(i+1)/len(r.ranges))
	}
	t.epoch.Add(1)
	for range min(int(t.asleep.Load()), parts-1) {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	r.run(0, s)
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

// run computes parts as the given thread until none is left to begin.
func (r *region) run(thread int, s *scratch) {
	defer func() {
		if v := recover(); v != nil {
			first := v // a copy, so that only a panic allocates
			r.panicked.CompareAndSwap(nil, &first)
			r.ended.Store(true)
		}
	}()
	own := &r.ranges[thread]
	for {
		i := own.take()
		if i < 0 {
			if !r.steal(thread) {
				return
			}
			continue
		}
		select {
		case <-r.cancelled:
			return
		default:
		}
		if r.ended.Load() {
			return
		}
		s.reset()
		r.task.part(i, s)
	}
}

// steal gives a thread that has no parts half of another's, if any has some.
func (r *region) steal(thread int) bool {
	for n := 1; n < len(r.ranges); n++ {
		if first, end := r.ranges[(thread+n)%len(r.ranges)].steal(); first < end {
			r.ranges[thread].set(first, end)
			return true
		}
	}
	return false
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
