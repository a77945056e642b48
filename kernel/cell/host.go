package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/display"
)

// Options say how a Host runs its child. The zero value runs this executable
// with the argument "cell-child", without a memory limit and without services.
type Options struct {
	// Command is the child's argument vector; its main must call ChildMain. nil
	// means this executable with the argument "cell-child".
	Command []string
	// Env is the child's environment; nil means this process's.
	Env []string
	// Dir is the child's working directory; "" means this process's.
	Dir string
	// Modules is a directory for the modules that cells get. The Host has one of its
	// own in it, which Close removes; "" means one in the system's temporary directory.
	Modules string
	// MemoryLimit is how many bytes the child may allocate; 0 means no limit. On
	// Linux more than that ends the child at once; elsewhere the limit only makes
	// the garbage collector work harder near it.
	MemoryLimit int64
	// Services answers the cells' calls; nil means that every call fails.
	Services Services
	// Language is what kernel_info says. Name and the fields after it that are
	// empty are filled with Go's.
	Language kernel.Language
	// InterruptGrace is how long an interrupted cell may take to stop before its
	// process is killed; 0 means one second.
	InterruptGrace time.Duration
}

// A Host runs cells in a child process and implements kernel.Interpreter. Any
// method may be called from any goroutine. A child that dies takes the cells'
// variables with it; the next cell runs in a fresh one. Close ends the child and
// waits for everything that the Host started.
type Host struct {
	options Options

	mu      sync.Mutex
	child   *process // nil before the first and after a death
	lost    string   // what the next cell says first: how a child that no cell was running in ended
	closed  bool
	shells  map[string]bool // open subshells, opened again in a fresh child
	serial  uint64          // of cells and requests; never reused across children
	pending sync.WaitGroup  // the eager start
}

var _ kernel.Interpreter = (*Host)(nil)

// ErrClosed is returned by a Host that has been closed.
var ErrClosed = errors.New("cell: the interpreter is closed")

// New returns a Host and starts its child in the background.
func New(o Options) *Host {
	if o.InterruptGrace == 0 {
		o.InterruptGrace = time.Second
	}
	o.Language = fillLanguage(o.Language)
	o.Modules = sessionDir(o.Modules)
	h := &Host{options: o, shells: map[string]bool{}}
	h.pending.Go(func() { removeStale(o.Modules) })
	h.pending.Go(func() { h.process() })
	return h
}

func fillLanguage(l kernel.Language) kernel.Language {
	set := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	set(&l.Implementation, "deltafin")
	set(&l.Name, "go")
	set(&l.Version, trimGo(runtime.Version()))
	set(&l.MIMEType, "text/x-go")
	set(&l.FileExtension, ".go")
	set(&l.PygmentsLexer, "go")
	set(&l.CodeMirrorMode, "go")
	set(&l.NBConvertExporter, "script")
	return l
}

func trimGo(v string) string {
	if len(v) > 2 && v[:2] == "go" {
		return v[2:]
	}
	return v
}

// Language answers at once.
func (h *Host) Language() kernel.Language { return h.options.Language }

// process returns the live child, starting one where there is none.
func (h *Host) process() (*process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.child != nil && !h.child.dead() {
		return h.child, nil
	}
	if h.child != nil {
		h.child.wait()
		if e := h.child.untold(); e != nil {
			h.lost = "The process that held the variables ended between cells: " + e.Value + ".\n" + goneBetween + "\n"
		}
		h.child = nil
	}
	command := h.options.Command
	if command == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("cell: this program's own file: %w", err)
		}
		command = []string{self, "cell-child"}
	}
	p, err := startProcess(command, &h.options)
	if err != nil {
		return nil, err
	}
	for id := range h.shells {
		p.link.send(frame{Op: opRequest, Name: reqOpenShell, ID: h.nextLocked(), Text: id})
	}
	h.child = p
	return p, nil
}

func (h *Host) nextLocked() uint64 { h.serial++; return h.serial }

func (h *Host) next() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nextLocked()
}

// startError is a cell's where there is no child for it.
func startError(err error) *kernel.CellError {
	return &kernel.CellError{Name: "kernel error", Value: err.Error(), Traceback: []string{"The process that runs cells can't be started: " + err.Error()}}
}

// Execute runs one cell in the child. See kernel.Interpreter.
func (h *Host) Execute(ctx context.Context, c kernel.Cell, out kernel.Output) *kernel.CellError {
	p, err := h.process()
	if err != nil {
		return startError(err)
	}
	if !c.Silent {
		if lost := h.takeLost(); lost != "" {
			out.Stream("stderr", lost)
		}
	}
	id := h.next()
	run := p.begin(id, out)
	defer p.keep(id)
	data := mustJSON(executeData{Code: c.Code, Count: c.ExecutionCount, Subshell: c.Subshell, Silent: c.Silent, Stdin: c.AllowStdin})
	e, died, err := p.await(ctx, id, p.post(frame{Op: opExecute, ID: id, Data: data}), run.done)
	if err != nil {
		return &kernel.CellError{Name: "cell too large", Value: err.Error(), Traceback: []string{err.Error()}}
	}
	if died {
		run.drain()
		p.tell()
		return p.death(ctx.Err() != nil)
	}
	var d doneData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return kernelError(err).cellError()
	}
	return d.Error.cellError()
}

func (h *Host) takeLost() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost := h.lost
	h.lost = ""
	return lost
}

func (d *errorData) cellError() *kernel.CellError {
	if d == nil {
		return nil
	}
	return &kernel.CellError{Name: d.Name, Value: d.Value, Traceback: d.Traceback}
}

// request asks the child something that runs beside the cells, and decodes the
// answer into v, which may be nil. Completion and inspection wait no longer than ctx;
// of the others a cancelled ctx is an interrupt, as a cell's is.
func (h *Host) request(ctx context.Context, name, text string, params, v any) *kernel.CellError {
	p, err := h.process()
	if err != nil {
		return startError(err)
	}
	id := h.next()
	answer := p.ask(id)
	defer p.forget(id)
	sent := p.post(frame{Op: opRequest, Name: name, ID: id, Text: text, Data: mustJSON(params)})
	var f frame
	if name == reqComplete || name == reqInspect {
		var heard bool
		if f, heard = p.hear(ctx, id, sent, answer); !heard {
			return kernelError(fmt.Errorf("no answer to %s", name)).cellError()
		}
	} else {
		var died bool
		f, died, err = p.await(ctx, id, sent, answer)
		if err != nil {
			return kernelError(err).cellError()
		}
		if died {
			return p.death(ctx.Err() != nil)
		}
	}
	var a answerData
	if err := json.Unmarshal(f.Data, &a); err != nil {
		return kernelError(err).cellError()
	}
	if a.Error != nil {
		return a.Error.cellError()
	}
	if v != nil && a.Value != nil {
		if err := json.Unmarshal(a.Value, v); err != nil {
			return kernelError(err).cellError()
		}
	}
	return nil
}

// Evaluate computes one user expression.
func (h *Host) Evaluate(ctx context.Context, subshell, expression string) (display.Bundle, *kernel.CellError) {
	var b display.Bundle
	e := h.request(ctx, reqEvaluate, subshell, evaluateData{expression}, &b)
	return b, e
}

// Complete gives the completions of code at cursor.
func (h *Host) Complete(ctx context.Context, code string, cursor int) kernel.Completions {
	c := kernel.Completions{Start: cursor, End: cursor}
	h.request(ctx, reqComplete, "", cursorData{Code: code, Cursor: cursor}, &c)
	return c
}

// Inspect describes what stands at cursor.
func (h *Host) Inspect(ctx context.Context, code string, cursor, detail int) (display.Bundle, bool) {
	var r inspectData
	if e := h.request(ctx, reqInspect, "", cursorData{code, cursor, detail}, &r); e != nil {
		return display.Bundle{}, false
	}
	return r.Bundle, r.Found
}

// Comm delivers a comm message to the child. Its outputs go to out.
func (h *Host) Comm(ctx context.Context, m kernel.CommMessage, out kernel.Output) {
	p, err := h.process()
	if err != nil {
		return
	}
	id := h.next()
	run := p.begin(id, out)
	defer p.finish(id)
	answer := p.ask(id)
	defer p.forget(id)
	sent := p.post(frame{Op: opRequest, Name: reqComm, ID: id, Data: mustJSON(m)})
	if _, _, err := p.await(ctx, id, sent, answer); err != nil {
		out.Stream("stderr", err.Error()+"\n")
		return
	}
	run.drain()
}

// Interrupt asks the child to stop the widgets' callbacks, and waits for nothing.
func (h *Host) Interrupt() {
	h.mu.Lock()
	p := h.child
	h.mu.Unlock()
	if p != nil {
		p.post(frame{Op: opInterruptCallbacks})
	}
}

// OpenSubshell begins an evaluation context beside the main one.
func (h *Host) OpenSubshell(id string) error {
	h.mu.Lock()
	h.shells[id] = true
	h.mu.Unlock()
	if e := h.request(context.Background(), reqOpenShell, id, nil, nil); e != nil {
		return e
	}
	return nil
}

// CloseSubshell ends one.
func (h *Host) CloseSubshell(id string) error {
	h.mu.Lock()
	delete(h.shells, id)
	h.mu.Unlock()
	if e := h.request(context.Background(), reqCloseShell, id, nil, nil); e != nil {
		return e
	}
	return nil
}

// Close ends the child and waits for it and for every goroutine of the Host.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	p := h.child
	h.mu.Unlock()
	if p != nil {
		p.end(h.options.InterruptGrace)
	}
	h.pending.Wait()
	os.RemoveAll(h.options.Modules) // what can't go now is stale one day: see removeStale
	return nil
}
