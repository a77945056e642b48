package cell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"

	"deltafin/internal/third_party/yaegi/interp"
	"deltafin/kernel"
)

// child is the state of the child process.
type child struct {
	bindings Bindings
	session  *Session
	link     *link
	out      *outbox
	pipes    *stdPipes
	stdin    *stdinReader
	modules  *modules
	waits    *waits
	handlers handlers
	ballast  []byte // see kernel.BallastBytes

	labels   sync.Map // unsafe.Pointer of a goroutine's label → *cellOutput
	captures sync.Map // likewise → capture, for those whose output goes elsewhere

	testing   sync.Mutex // held while %test runs
	testFlags map[string]*flag.Flag

	mu        sync.Mutex
	serial    uint64
	replies   map[uint64]*reply
	running   map[uint64]*cellOutput // cells and requests that can be interrupted
	latest    *cellOutput
	callbacks map[*cellOutput]bool // the callbacks that are running
	called    []*cellOutput        // the last keptCallbacks that have ended, oldest first
	shells    map[string]*shell
}

// A reply receives what answers a call: its events and its end.
type reply struct {
	events chan frame // never full: the parent's window is smaller
}

// ChildMain is the child's half: it takes frames from standard input until that
// ends, runs cells, and never returns while the parent lives. The process's own
// standard descriptors belong to the cells afterwards.
func ChildMain(b Bindings) error {
	in, out, pipes, err := claimStdio()
	if err != nil {
		return fmt.Errorf("cell: standard descriptors: %w", err)
	}
	// The front end's interrupt comes as a frame.
	signal.Ignore(os.Interrupt)
	l := newLink(bufio.NewReaderSize(in, 64<<10), out)
	hello, err := l.receive()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	var h helloData
	if hello.Op != opHello || json.Unmarshal(hello.Data, &h) != nil {
		return &FrameError{Op: hello.Op, Size: len(hello.Data), Reason: "want hello first"}
	}
	limitMemory(h.MemoryLimit)
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spare)
	debug.SetMaxStack(maxStack)

	if b.Package == "" {
		b.Package = "lab"
	}
	c := &child{
		bindings: b, modules: newModules(h.Modules), link: l, out: newOutbox(l), pipes: pipes, ballast: make([]byte, kernel.BallastBytes),
		waits: newWaits(), replies: map[uint64]*reply{}, running: map[uint64]*cellOutput{}, shells: map[string]*shell{}, callbacks: map[*cellOutput]bool{},
	}
	c.session = &Session{child: c}
	c.stdin = &stdinReader{child: c}
	if err := c.stdin.pipe.open(); err != nil {
		return fmt.Errorf("cell: standard input: %w", err)
	}
	c.testFlags = testingFlags()
	beProgram()
	c.latest = c.newCell(0, false)
	pipes.start(c)
	go c.out.flusher()
	if c.shells[""], err = newShell(c, nil); err != nil {
		return err
	}
	c.out.send(frame{Op: opReady})
	for {
		f, err := l.receive()
		if err != nil {
			// The parent has ended the child, or has ended.
			endOwnGroup()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c.take(f)
	}
}

// spare is how many more processors the child's scheduler has than cells know of:
// cells that keep all of theirs busy leave these to questions and interrupts, which
// would wait for a slice of 10 ms at each step.
const spare = 2

// processors is runtime.GOMAXPROCS for cells.
func processors(n int) int {
	if n > 0 {
		n += spare
	}
	return runtime.GOMAXPROCS(n) - spare
}

// maxStack bounds a goroutine's stack: endless recursion ends after a fraction of
// a second.
const maxStack = 256 << 20

func (c *child) newCell(id uint64, stdin bool) *cellOutput {
	o := &cellOutput{child: c, id: id, stdin: stdin, run: interp.NewRun()}
	o.run.Uncaught = o.uncaught
	o.run.Waits = func(at func() interp.TraceFrame, cases []reflect.SelectCase) func() { return c.begin(o.run, at, cases) }
	o.room.L = &o.mu
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// current is the cell that the calling goroutine belongs to, or owner.
func (c *child) current() *cellOutput {
	if o, ok := c.labels.Load(profLabel()); ok {
		return o.(*cellOutput)
	}
	return c.owner()
}

// owner is the cell that output of no cell's goroutine belongs to: the latest.
func (c *child) owner() *cellOutput {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// mark makes the calling goroutine, and those it starts, belong to o.
func (c *child) mark(o *cellOutput) {
	o.label = setLabel(o.id)
	c.labels.Store(o.label.pointer, o)
}

// unmark forgets o's mark, which no goroutine but the calling one has.
func (c *child) unmark(o *cellOutput) {
	c.labels.Delete(o.label.pointer)
	clearLabel()
}

func (c *child) take(f frame) {
	switch f.Op {
	case opExecute:
		var d executeData
		if err := json.Unmarshal(f.Data, &d); err != nil {
			c.done(f.ID, &kernel.CellError{Name: "kernel error", Value: err.Error()})
			return
		}
		o := c.newCell(f.ID, d.Stdin)
		c.mu.Lock()
		c.running[f.ID] = o
		s := c.shells[d.Subshell]
		c.mu.Unlock()
		if s == nil {
			c.done(f.ID, &kernel.CellError{Name: "kernel error", Value: fmt.Sprintf("no subshell %q", d.Subshell)})
			return
		}
		go s.execute(o, d)
	case opInterrupt:
		c.mu.Lock()
		o := c.running[f.ID]
		c.mu.Unlock()
		if o != nil {
			o.interrupt()
		}
	case opInterruptCallbacks:
		c.interruptCallbacks()
	case opAck:
		c.mu.Lock()
		o := c.running[f.Cell]
		if o == nil {
			o = c.byID(f.Cell)
		}
		c.mu.Unlock()
		if o != nil {
			o.shown(f.Count)
		}
	case opEvent, opReturn, opInputReply:
		c.mu.Lock()
		r := c.replies[f.ID]
		c.mu.Unlock()
		if r != nil {
			select {
			case r.events <- f:
			default:
				panic("cell: the parent sent more events than its window")
			}
		}
	case opRequest:
		o := c.newCell(f.ID, false)
		c.mu.Lock()
		c.running[f.ID] = o
		c.mu.Unlock()
		go c.request(o, f)
	}
}

// byID finds an ended cell, whose goroutines may still print. c.mu is held.
func (c *child) byID(id uint64) *cellOutput {
	if c.latest.id == id {
		return c.latest
	}
	var found *cellOutput
	c.labels.Range(func(_, v any) bool {
		if o := v.(*cellOutput); o.id == id {
			found = o.root()
		}
		return found == nil
	})
	return found
}

func (c *child) done(id uint64, e *kernel.CellError) {
	c.mu.Lock()
	o := c.running[id]
	delete(c.running, id)
	c.mu.Unlock()
	if o != nil {
		o.flushPartial()
	}
	if err := c.out.send(frame{Op: opDone, ID: id, Data: mustJSON(doneData{Error: toErrorData(e)})}); err != nil {
		c.out.send(frame{Op: opDone, ID: id, Data: mustJSON(doneData{Error: kernelError(err)})})
	}
}

// toErrorData is e, cut to what a front end can show.
func toErrorData(e *kernel.CellError) *errorData {
	if e == nil {
		return nil
	}
	c := clipError(e)
	return &errorData{Name: c.Name, Value: c.Value, Traceback: c.Traceback}
}

func kernelError(err error) *errorData {
	return toErrorData(&kernel.CellError{Name: "kernel error", Value: err.Error(), Traceback: []string{err.Error()}})
}

// request answers one request beside the cells.
func (c *child) request(o *cellOutput, f frame) {
	var a answerData
	v, e := c.guarded(o, f)
	if e != nil {
		a.Error = toErrorData(e)
	} else if v != nil {
		b, err := json.Marshal(v)
		if err != nil {
			a.Error = kernelError(err)
		}
		a.Value = b
	}
	c.mu.Lock()
	delete(c.running, f.ID)
	c.mu.Unlock()
	if err := c.out.send(frame{Op: opAnswer, ID: f.ID, Data: mustJSON(a)}); err != nil {
		c.out.send(frame{Op: opAnswer, ID: f.ID, Data: mustJSON(answerData{Error: kernelError(err)})})
	}
}

// guarded answers a request, and keeps a fault in answering from ending the cells.
func (c *child) guarded(o *cellOutput, f frame) (v any, e *kernel.CellError) {
	defer func() {
		if r := recover(); r != nil {
			v, e = nil, &kernel.CellError{Name: "kernel error", Value: fmt.Sprint(r), Traceback: []string{string(debug.Stack())}}
		}
	}()
	return c.answer(o, f)
}

func (c *child) answer(o *cellOutput, f frame) (v any, e *kernel.CellError) {
	bad := func(err error) *kernel.CellError { return &kernel.CellError{Name: "kernel error", Value: err.Error()} }
	c.mu.Lock()
	main := c.shells[""]
	sub := c.shells[f.Text]
	c.mu.Unlock()
	switch f.Name {
	case reqEvaluate:
		var d evaluateData
		if err := json.Unmarshal(f.Data, &d); err != nil {
			return nil, bad(err)
		}
		if sub == nil {
			return nil, bad(fmt.Errorf("no subshell %q", f.Text))
		}
		return sub.evaluate(o, d.Expression)
	case reqComplete:
		var d cursorData
		if err := json.Unmarshal(f.Data, &d); err != nil {
			return nil, bad(err)
		}
		main.table.lib.glance(o.ctx, d.Code)
		return main.complete(d.Code, d.Cursor), nil
	case reqInspect:
		var d cursorData
		if err := json.Unmarshal(f.Data, &d); err != nil {
			return nil, bad(err)
		}
		main.table.lib.glance(o.ctx, d.Code)
		b, found := main.inspect(d.Code, d.Cursor, d.Detail)
		return inspectData{b, found}, nil
	case reqComm:
		var m kernel.CommMessage
		if err := json.Unmarshal(f.Data, &m); err != nil {
			return nil, bad(err)
		}
		switch {
		case c.bindings.Comm != nil:
			c.mark(o)
			defer c.unmark(o)
			c.bindings.Comm(o.ctx, m, o)
		case m.Type == "comm_open":
			// Nobody has this target.
			o.Comm(kernel.CommMessage{Type: "comm_close", ID: m.ID, Data: json.RawMessage("{}")})
		}
		return nil, nil
	case reqOpenShell:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.shells[f.Text] != nil {
			return nil, nil
		}
		s, err := newShell(c, main)
		if err != nil {
			return nil, bad(err)
		}
		c.shells[f.Text] = s
		return nil, nil
	case reqCloseShell:
		if f.Text != "" {
			c.mu.Lock()
			delete(c.shells, f.Text)
			c.mu.Unlock()
		}
		return nil, nil
	}
	return nil, bad(fmt.Errorf("no request %q", f.Name))
}

// expect makes a number for a call and the place for its replies.
func (c *child) expect() (uint64, *reply) {
	r := &reply{events: make(chan frame, eventWindow+2)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	c.replies[c.serial] = r
	return c.serial, r
}

func (c *child) forget(id uint64) {
	c.mu.Lock()
	delete(c.replies, id)
	c.mu.Unlock()
}

func (c *child) call(ctx context.Context, method string, params any, event func(json.RawMessage)) (json.RawMessage, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: parameters: %w", method, err)
	}
	o := c.current()
	o.calls.Add(1)
	defer o.calls.Add(-1)
	id, r := c.expect()
	defer c.forget(id)
	if err := c.out.send(frame{Op: opCall, ID: id, Cell: o.id, Name: method, Data: data}); err != nil {
		return nil, err
	}
	done := ctx.Done()
	for {
		select {
		case f := <-r.events:
			if f.Op == opEvent {
				if event != nil {
					event(f.Data)
				}
				c.out.send(frame{Op: opEventAck, ID: id})
				continue
			}
			if f.Error != "" {
				if ctx.Err() != nil {
					return f.Data, ctx.Err()
				}
				return f.Data, &ServiceError{Method: method, Text: f.Error}
			}
			return f.Data, nil
		case <-done:
			// The method returns what it has, soon.
			done = nil
			c.out.send(frame{Op: opCancel, ID: id})
		}
	}
}
