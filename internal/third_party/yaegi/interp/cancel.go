package interp

import (
	"fmt"
	"go/token"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
)

// A Run is one evaluation's cancellation: every frame that it calls, in any
// goroutine that it starts, belongs to it. Stop ends those frames at their next
// step and leaves the frames of other runs alone.
//
// (Added here: upstream counts evaluations for the whole interpreter, so that a
// cancelled one takes with it every closure and goroutine made before.)
type Run struct {
	stopped atomic.Bool
	done    chan struct{}
	wait    reflect.SelectCase

	// Uncaught, when set before the run begins, takes the panics that nothing
	// recovers in the goroutines that go statements start; those then end alone.
	Uncaught func(v any)

	// Waits, when set before the run begins, is told that the calling goroutine is
	// about to do one of these channel operations, none of which may be possible
	// yet. It may give what to call when one was done; at says where it is.
	Waits func(at func() TraceFrame, cases []reflect.SelectCase) (done func())

	// recovering has, by goroutine, what a call that is deferred may recover from,
	// and recovers is how many there are.
	recovering sync.Map
	recovers   atomic.Int32

	// trace has the positions of the latest panic, innermost first.
	trace atomic.Pointer[[]TraceFrame]
}

// NewRun returns a Run that has not been stopped.
func NewRun() *Run {
	r := &Run{done: make(chan struct{})}
	r.wait = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(r.done)}
	return r
}

// Stop may be called any number of times.
func (r *Run) Stop() {
	if r.stopped.CompareAndSwap(false, true) {
		close(r.done)
	}
}

// Stopped reports whether Stop was called.
func (r *Run) Stopped() bool { return r.stopped.Load() }

// Done is closed by Stop.
func (r *Run) Done() <-chan struct{} { return r.done }

// A TraceFrame is a place in interpreted code.
type TraceFrame struct {
	Func string
	File string
	Line int
	Col  int
}

// Trace returns where the last panic of the run went through, innermost first, and
// forgets it.
func (r *Run) Trace() []TraceFrame {
	if p := r.trace.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// deferredBy is what the call that has just been entered may recover from: nil unless
// the calling goroutine's function panics and has deferred it.
func (r *Run) deferredBy() *panicking {
	if r.recovers.Load() == 0 {
		return nil
	}
	if p, ok := r.recovering.LoadAndDelete(goroutineID()); ok {
		return p.(*panicking)
	}
	return nil
}

// goroutineID is the number of the calling goroutine.
func goroutineID() string {
	var buf [64]byte
	id, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), " [")
	return id
}

// choose is reflect.Select for the statement n.
func (r *Run) choose(n *node, cases []reflect.SelectCase) (int, reflect.Value, bool) {
	if r.Waits != nil {
		at := func() TraceFrame {
			p := n.interp.fset.Position(n.pos)
			return TraceFrame{File: p.Filename, Line: p.Line, Col: p.Column}
		}
		if done := r.Waits(at, cases); done != nil {
			defer done()
		}
	}
	return reflect.Select(cases)
}

// made tells the embedder of a new channel.
func (interp *Interpreter) made(ch reflect.Value) reflect.Value {
	if interp.Made != nil {
		interp.Made(ch)
	}
	return ch
}

// Catch, deferred at the top of a goroutine, hands a panic to Uncaught.
func (r *Run) Catch() {
	if r.Uncaught == nil {
		return
	}
	if v := recover(); v != nil {
		r.Uncaught(asGo(v))
	}
}

func (r *Run) addTrace(t TraceFrame) {
	var s []TraceFrame
	if p := r.trace.Load(); p != nil {
		s = *p
	}
	if len(s) < 64 {
		s = append(s[:len(s):len(s)], t)
		r.trace.Store(&s)
	}
}

func (r *Run) resetTrace() { r.trace.Store(nil) }

// entry is the run of a call that comes from compiled code, such as a comparison
// function that sort.Slice calls: the calling goroutine's, where the embedder can
// tell, else the closure's own.
func (interp *Interpreter) entry(f *frame) *Run {
	if interp.RunOf != nil {
		if r := interp.RunOf(); r != nil {
			return r
		}
	}
	return f.run
}

// SetFileSet makes the interpreter find positions in fset, so that several can
// compile one tree. Call it before anything is compiled.
func (interp *Interpreter) SetFileSet(fset *token.FileSet) { interp.fset = fset }

// Global is the variable of package main with this name, as it is now:
// addressable, so that a copy of the value is the variable itself.
func (interp *Interpreter) Global(name string) (reflect.Value, bool) {
	interp.mutex.RLock()
	defer interp.mutex.RUnlock()
	sc := interp.scopes[mainID]
	if sc == nil {
		return reflect.Value{}, false
	}
	s := sc.sym[name]
	if s == nil || s.kind != varSym || s.index < 0 || s.index >= len(interp.frame.data) {
		return reflect.Value{}, false
	}
	return interp.frame.data[s.index], true
}

// SetGlobal makes the variable of package main with this name be v. It reports
// false where there is none of v's type.
func (interp *Interpreter) SetGlobal(name string, v reflect.Value) bool {
	interp.mutex.RLock()
	defer interp.mutex.RUnlock()
	sc := interp.scopes[mainID]
	if sc == nil {
		return false
	}
	s := sc.sym[name]
	if s == nil || s.kind != varSym || s.index < 0 || s.index >= len(interp.frame.data) || interp.frame.data[s.index].Type() != v.Type() {
		return false
	}
	interp.frame.data[s.index] = v
	return true
}

// Call runs the function of package main that has this name, neither parameters
// nor results, as part of run.
func (interp *Interpreter) Call(run *Run, name string) (err error) {
	s := interp.scopes[mainID].sym[name]
	if s == nil || s.kind != funcSym {
		return fmt.Errorf("undefined: %s", name)
	}
	defer func() {
		if r := recover(); r != nil {
			err = Panic{Value: r, Stack: debug.Stack()}
		}
	}()
	f := newFrame(interp.frame, len(s.node.types), run)
	for i, t := range s.node.types {
		f.data[i] = reflect.New(t).Elem()
	}
	runCfg(s.node.child[3].start, f, s.node, nil)
	return nil
}

// A Func is a function of the interpreter as compiled code may call it.
type Func = func(in []reflect.Value) []reflect.Value

// Func gives the function of package main that has this name.
func (interp *Interpreter) Func(name string) (Func, bool) {
	s := interp.scopes[mainID].sym[name]
	if s == nil || s.kind != funcSym {
		return nil, false
	}
	def := s.node
	numRet := len(def.typ.ret)
	return func(in []reflect.Value) []reflect.Value {
		f := interp.frame
		fr := newFrame(f, len(def.types), interp.entry(f))
		fr.deferredBy = fr.run.deferredBy()
		for i, t := range def.types {
			fr.data[i] = reflect.New(t).Elem()
		}
		for i, d := range fr.data[numRet:min(numRet+len(in), len(fr.data))] {
			d.Set(in[i])
		}
		runCfg(def.child[3].start, fr, def, nil)
		return fr.data[:numRet]
	}, true
}

// InterfaceMethod is the method of the value in an interface, exported or not.
func InterfaceMethod(v reflect.Value, name string) reflect.Value {
	t := v.Type()
	for i := range t.NumMethod() {
		if t.Method(i).Name == name {
			return v.Method(i)
		}
	}
	return reflect.Value{}
}
