package cell

import (
	"bytes"
	"reflect"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"deltafin/internal/third_party/yaegi/interp"
	"deltafin/kernel"
)

// A cell whose goroutines all wait for each other ends with the Go runtime's words. The
// runtime itself never finds that here, since the child's own goroutines can always be
// woken. What is found is certain, and so some deadlocks aren't: every goroutine that
// cells have started, known by its label, must be in a channel operation of the
// interpreter or in one of the calls that lock in syncWait, on channels that cells have
// made; and nothing but these goroutines may be able to run a cell's code: no subshell,
// no widget's function, no timer's, finalizer's or signal's.

// A wait is one goroutine in an operation that may never end.
type wait struct {
	run     *interp.Run
	at      func() interp.TraceFrame
	foreign bool // on a channel that compiled code has made
}

// waits are the goroutines that wait.
type waits struct {
	stirred atomic.Bool // something else than goroutines may run code of cells
	mu      sync.Mutex
	serial  uint64 // changes whenever a goroutine begins or ends to wait
	now     map[*wait]bool
	made    map[weak.Pointer[byte]]bool // the channels that cells have made
}

// stirs names what runs code of cells without a goroutine of theirs, or takes a
// goroutine's label.
var stirs = regexp.MustCompile(`\b(AfterFunc|SetFinalizer|AddCleanup|Notify|NotifyContext|pprof|SetGoroutineLabels)\b`)

func newWaits() *waits {
	return &waits{now: map[*wait]bool{}, made: map[weak.Pointer[byte]]bool{}}
}

// channel notes that a cell made ch.
func (w *waits) channel(ch reflect.Value) {
	p := (*byte)(ch.UnsafePointer())
	key := weak.Make(p)
	w.mu.Lock()
	w.made[key] = true
	w.mu.Unlock()
	runtime.AddCleanup(p, w.forget, key)
}

func (w *waits) forget(key weak.Pointer[byte]) {
	w.mu.Lock()
	delete(w.made, key)
	w.mu.Unlock()
}

// begin notes that the calling goroutine of run is about to wait; it gives what to call
// when it has.
func (c *child) begin(run *interp.Run, at func() interp.TraceFrame, cases []reflect.SelectCase) (done func()) {
	if _, ok := c.labels.Load(profLabel()); !ok {
		return nil // what isn't counted among the goroutines isn't among those that wait
	}
	w := c.waits
	x := &wait{run: run, at: at}
	own := run.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range cases {
		if s.Dir == reflect.SelectDefault {
			return nil
		}
		p := s.Chan.UnsafePointer()
		if p == nil || p == reflect.ValueOf(own).UnsafePointer() {
			continue
		}
		if !w.made[weak.Make((*byte)(p))] {
			x.foreign = true
		}
	}
	w.now[x] = true
	w.serial++
	return func() {
		w.mu.Lock()
		delete(w.now, x)
		w.serial++
		w.mu.Unlock()
	}
}

// syncWait is a call of a method of package sync that waits for other goroutines.
func (c *child) syncWait(at string, try func() bool, call func()) {
	if try != nil && try() {
		return
	}
	o := c.current()
	done := c.begin(o.run, func() interp.TraceFrame {
		file, line, _ := strings.Cut(at, ":")
		n, _ := strconv.Atoi(line)
		return interp.TraceFrame{File: file, Line: n}
	}, nil)
	if done != nil {
		defer done()
	}
	call()
}

func (c *child) lock(at string, m *sync.Mutex)          { c.syncWait(at, m.TryLock, m.Lock) }
func (c *child) lockRW(at string, m *sync.RWMutex)      { c.syncWait(at, m.TryLock, m.Lock) }
func (c *child) readLock(at string, m *sync.RWMutex)    { c.syncWait(at, m.TryRLock, m.RLock) }
func (c *child) waitGroup(at string, g *sync.WaitGroup) { c.syncWait(at, nil, g.Wait) }
func (c *child) waitCond(at string, d *sync.Cond)       { c.syncWait(at, nil, d.Wait) }

// lockLocker is l.Lock, which for a type of a cell's own is the cell's code.
func (c *child) lockLocker(at string, l sync.Locker) {
	switch l := l.(type) {
	case *sync.Mutex:
		c.lock(at, l)
	case *sync.RWMutex:
		c.lockRW(at, l)
	default:
		l.Lock()
	}
}

// waitings are the child's functions for methods of package sync.
var waitings = map[string]string{
	"(sync.Locker).Lock":     "LockLocker",
	"(*sync.Mutex).Lock":     "Lock",
	"(*sync.RWMutex).Lock":   "LockRW",
	"(*sync.RWMutex).RLock":  "ReadLock",
	"(*sync.WaitGroup).Wait": "WaitGroup",
	"(*sync.Cond).Wait":      "WaitCond",
}

// still is the serial number of the waits while only goroutines of cells can run code
// of cells and some wait, none of them for compiled code.
func (c *child) still(o *cellOutput) (serial uint64, goroutines int, ok bool) {
	c.mu.Lock()
	alone := len(c.shells) == 1 && len(c.running) == 1 && c.running[o.id] == o && len(c.callbacks) == 0
	c.mu.Unlock()
	w := c.waits
	if !alone || w.stirred.Load() || o.calls.Load() > 0 || o.ctx.Err() != nil {
		return 0, 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	own := false
	for x := range w.now {
		if x.foreign {
			return 0, 0, false
		}
		own = own || x.run == o.run
	}
	return w.serial, len(w.now), own
}

// deadlockTick is how often a cell is looked at. Two looks that find the same come
// before the goroutines themselves are.
const deadlockTick = 100 * time.Millisecond

// watch ends the cell o when all goroutines wait for each other, until stop.
func (c *child) watch(o *cellOutput, code string) (stop func()) {
	if stirs.MatchString(code) {
		c.waits.stirred.Store(true)
	}
	if c.waits.stirred.Load() {
		return func() {}
	}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(deadlockTick)
		defer tick.Stop()
		last := uint64(0)
		for {
			select {
			case <-end:
				return
			case <-o.ctx.Done():
				return
			case <-tick.C:
			}
			serial, n, ok := c.still(o)
			if !ok {
				last = 0
				continue
			}
			if last != serial {
				last = serial
				continue
			}
			if !quiet() || labelled() != n {
				continue
			}
			if again, m, ok := c.still(o); ok && again == serial && m == n {
				o.finish(c.deadlock(o))
				return
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
	}
}

// quiet says whether no goroutine but the calling one runs or could.
func quiet() bool {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	if n == len(buf) {
		return false
	}
	return len(busy.FindAll(buf[:n], 2)) < 2
}

var (
	busy  = regexp.MustCompile(`(?m)^goroutine \d+ [^\n]*\[(running|runnable)`)
	count = regexp.MustCompile(`(?m)^(\d+) @[^\n]*\n# labels: \{[^\n]*"cell"`)
)

// labelled is how many goroutines belong to cells.
func labelled() int {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return -1
	}
	n := 0
	for _, m := range count.FindAllSubmatch(b.Bytes(), -1) {
		k, _ := strconv.Atoi(string(m[1]))
		n += k
	}
	return n
}

// deadlock is the error of o: where its goroutines wait.
func (c *child) deadlock(o *cellOutput) *kernel.CellError {
	const text = "all goroutines are asleep - deadlock!"
	e := &kernel.CellError{Name: "fatal error", Value: text, Traceback: []string{bold + "fatal error: " + reset + text}}
	w := c.waits
	var frames []interp.TraceFrame
	w.mu.Lock()
	for x := range w.now {
		if x.run == o.run {
			frames = append(frames, x.at())
		}
	}
	w.mu.Unlock()
	slices.SortFunc(frames, func(a, b interp.TraceFrame) int {
		if a.File != b.File {
			return strings.Compare(b.File, a.File)
		}
		return a.Line - b.Line
	})
	s := c.main()
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	for _, f := range slices.Compact(frames) {
		if src := s.source[f.File]; src != nil && len(e.Traceback) < 30 {
			e.Traceback = append(e.Traceback, src.mark(f.Line, 0)...)
		}
	}
	return e
}
