package cell

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"deltafin/internal/third_party/yaegi/interp"
	"deltafin/kernel"
	"deltafin/kernel/display"
	"deltafin/kernel/wire"
)

// Bindings are what the child's program adds to plain Go.
type Bindings struct {
	// Exports gives the names that every cell sees without an import, and as
	// Package.Name: functions and variables as their values, a variable's value
	// being addressable, types as nil pointers to them ((*T)(nil)). It is called
	// when the child starts, and again for each subshell and after %reset. nil adds
	// nothing.
	Exports func(*Session) map[string]reflect.Value
	// Package is the package name of Exports; "" means lab.
	Package string
	// Docs documents the exports for Shift-Tab, by name; a method or field is
	// "Type.Name".
	Docs map[string]Doc
	// Comm takes the front ends' comm messages; nil knows no target and closes
	// what is opened.
	Comm func(context.Context, kernel.CommMessage, kernel.Output)
}

// Doc documents one name.
type Doc struct {
	Signature string // as in Go; "" derives it from the type
	Doc       string // plain text
}

// A Session is the child's side of everything that the exports need: calls into
// the kernel process and the output of the cell that is running. Its methods may
// be called from any goroutine.
type Session struct{ child *child }

// Call runs a method of the parent's Services with params marshalled to JSON.
// event, which may be nil, gets what the method streams, on the caller's
// goroutine, before Call returns. The method is cancelled with ctx, and with the
// cell when ctx is the cell's.
func (s *Session) Call(ctx context.Context, method string, params any, event func(json.RawMessage)) (json.RawMessage, error) {
	return s.child.call(ctx, method, params, event)
}

// Output is where the calling goroutine shows things: what Capture put there, or the
// output of the cell that it belongs to.
func (s *Session) Output() kernel.Output { return s.child.shows() }

// Cell is the output of the cell that the calling goroutine belongs to, or of the
// latest cell where it belongs to none, past any Capture.
func (s *Session) Cell() kernel.Output { return s.child.current() }

// Capture runs f; what f and goroutines that it starts print and show goes to to,
// which is comparable. They belong to the cell as before.
func (s *Session) Capture(to kernel.Output, f func()) { s.child.captured(to, f) }

// Callback makes f run as a part of the cell that the calling goroutine belongs to, on
// whatever goroutine it is called and when the cell has ended: what it shows and its
// panics are that cell's. An interrupt that finds no cell running ends it.
func (s *Session) Callback(f func()) func() { return s.child.callback(f) }

// Context is cancelled when the cell that the calling goroutine belongs to is
// interrupted.
func (s *Session) Context() context.Context { return s.child.current().ctx }

// A cellOutput is one cell in the child: the way to its output, and its
// cancellation. It implements kernel.Output.
type cellOutput struct {
	child *child
	of    *cellOutput // the cell whose output a callback's is; nil for a cell's own
	id    uint64
	stdin bool
	ctx   context.Context
	stop  context.CancelFunc
	run   *interp.Run
	label label
	calls atomic.Int32 // of the kernel process, that it waits for
	tic   atomic.Int64 // when what %time times began, in Unix nanoseconds; 0 for nothing

	silent  bool
	capture *display.Bundle // where a user expression goes

	mu      sync.Mutex
	over    bool // its statements have ended
	ended   bool // they were ended from within, with verdict
	verdict *kernel.CellError
	room    sync.Cond
	flying  int               // bytes that the parent has not shown yet
	partial map[string][]byte // an incomplete rune at the end of a stream

	captures map[kernel.Output]label // what marks the goroutines whose output goes elsewhere
}

var _ kernel.Output = (*cellOutput)(nil)

// root is the cell that the output belongs to, which counts what is on its way.
func (c *cellOutput) root() *cellOutput {
	if c.of != nil {
		return c.of
	}
	return c
}

// errStdin is what Input returns when the front end can't ask.
var errStdin = errors.New("this front end does not allow input requests")

// takeRoom waits until n more bytes may fly. An interrupted cell doesn't wait: it
// returns false and what it would have shown is dropped.
func (c *cellOutput) takeRoom(n int) bool {
	r := c.root()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.flying > 0 && r.flying+n > streamWindow {
		if c.ctx.Err() != nil {
			return false
		}
		r.room.Wait()
	}
	r.flying += n
	return true
}

func (c *cellOutput) shown(n int) {
	c = c.root()
	c.mu.Lock()
	c.flying -= n
	c.mu.Unlock()
	c.room.Broadcast()
}

// finish ends the cell from within, as os.Exit does and a panic of any goroutine.
// It says whether there was a cell to end: what happens in one that is being
// interrupted tells nobody anything.
func (c *cellOutput) finish(e *kernel.CellError) bool {
	if c.ctx.Err() != nil {
		return true
	}
	c.mu.Lock()
	over := c.over
	if !over && !c.ended {
		c.ended, c.verdict = true, e
	}
	c.mu.Unlock()
	if !over {
		c.interrupt()
	}
	return !over
}

// outcome is how the cell ended, when its statements ended with e.
func (c *cellOutput) outcome(e *kernel.CellError) *kernel.CellError {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.ended {
		return c.verdict
	}
	return e
}

// uncaught takes a panic that nothing recovered in a goroutine of the cell: it is
// the cell's error, or what a cell that is over says on its standard error.
func (c *cellOutput) uncaught(v any) {
	c.child.mu.Lock()
	s := c.child.shells[""]
	c.child.mu.Unlock()
	e := s.panicError(c.run, interp.Panic{Value: v})
	if !c.finish(e) {
		c.Stream("stderr", strings.Join(e.Traceback, "\n")+"\n")
	}
}

func (c *cellOutput) interrupt() {
	c.stop()
	c.run.Stop()
	r := c.root()
	r.mu.Lock() // so that no waiter misses the broadcast
	r.room.Broadcast()
	r.mu.Unlock()
}

// Write-sized pieces keep a frame small and the window fair.
const streamPiece = 128 << 10

// Stream writes text to the cell's stdout or stderr.
func (c *cellOutput) Stream(name, text string) {
	c.child.pipes.sync()
	c.stream(name, text)
}

func (c *cellOutput) stream(name, text string) {
	c.mu.Lock()
	if p := c.partial[name]; len(p) > 0 {
		text = string(p) + text
		delete(c.partial, name)
	}
	if k := wire.Unfinished(text); k > 0 {
		if c.partial == nil {
			c.partial = map[string][]byte{}
		}
		c.partial[name] = []byte(text[len(text)-k:])
		text = text[:len(text)-k]
	}
	c.mu.Unlock()
	for len(text) > 0 {
		n := min(len(text), streamPiece)
		if n < len(text) {
			n -= wire.Unfinished(text[:n])
		}
		if !c.takeRoom(n) {
			return
		}
		c.child.out.stream(c, name, text[:n])
		text = text[n:]
	}
}

// flushPartial shows an incomplete rune as what it is.
func (c *cellOutput) flushPartial() {
	for _, name := range []string{"stdout", "stderr"} {
		c.mu.Lock()
		p := c.partial[name]
		delete(c.partial, name)
		c.mu.Unlock()
		if len(p) > 0 {
			c.shown(-len("\uFFFD")) // takes room without waiting for it
			c.child.out.stream(c, name, "\uFFFD")
		}
	}
}

func (c *cellOutput) bundle(op, id string, b display.Bundle) {
	c.child.pipes.sync()
	c.flushPartial()
	data, err := json.Marshal(b)
	if err != nil {
		c.stream("stderr", "a displayed value can't be written as JSON: "+err.Error()+"\n")
		return
	}
	if !c.takeRoom(len(data)) {
		return
	}
	if err := c.child.out.send(frame{Op: op, Cell: c.id, Name: id, Data: data}); err != nil {
		c.shown(len(data))
		c.stream("stderr", err.Error()+"\n")
	}
}

func (c *cellOutput) Display(b display.Bundle, id string) { c.bundle(opDisplay, id, b) }
func (c *cellOutput) Update(b display.Bundle, id string)  { c.bundle(opUpdate, id, b) }
func (c *cellOutput) Result(b display.Bundle)             { c.bundle(opResult, "", b) }

func (c *cellOutput) Page(b display.Bundle) {
	if !c.silent {
		c.bundle(opPage, "", b)
	}
}

func (c *cellOutput) Exit(keep bool) {
	name := ""
	if keep {
		name = "keep"
	}
	c.child.out.send(frame{Op: opExit, Cell: c.id, Name: name})
}

func (c *cellOutput) Clear(wait bool) {
	c.child.pipes.sync()
	name := ""
	if wait {
		name = "wait"
	}
	c.child.out.send(frame{Op: opClear, Cell: c.id, Name: name})
}

func (c *cellOutput) Comm(m kernel.CommMessage) {
	data, err := json.Marshal(m)
	if err != nil {
		c.stream("stderr", "a comm message can't be written as JSON: "+err.Error()+"\n")
		return
	}
	if !c.takeRoom(len(data)) {
		return
	}
	if err := c.child.out.send(frame{Op: opCommOut, Cell: c.id, Data: data}); err != nil {
		c.shown(len(data))
		c.stream("stderr", err.Error()+"\n")
	}
}

func (c *cellOutput) Input(ctx context.Context, prompt string, password bool) (string, error) {
	if !c.stdin {
		return "", errStdin
	}
	c.child.pipes.sync()
	name := ""
	if password {
		name = "password"
	}
	id, reply := c.child.expect()
	defer c.child.forget(id)
	if err := c.child.out.send(frame{Op: opInput, ID: id, Cell: c.id, Text: prompt, Name: name}); err != nil {
		return "", err
	}
	select {
	case f := <-reply.events:
		if f.Error != "" {
			return "", errors.New(f.Error)
		}
		return f.Text, nil
	case <-ctx.Done():
		c.child.out.send(frame{Op: opCancel, ID: id})
		return "", ctx.Err()
	case <-c.ctx.Done():
		c.child.out.send(frame{Op: opCancel, ID: id})
		return "", c.ctx.Err()
	}
}

// streamWriter is a cell's stdout or stderr as an io.Writer: the writes of
// whichever cell the calling goroutine belongs to.
type streamWriter struct {
	child *child
	name  string
}

func (w streamWriter) Write(b []byte) (int, error) {
	w.child.shows().Stream(w.name, string(b))
	return len(b), nil
}
