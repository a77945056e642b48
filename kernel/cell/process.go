package cell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/display"
)

// keptCells is how many ended cells can still print. A goroutine of an older one
// prints into the oldest that is kept.
const keptCells = 256

// A process is one child, from its start to its death. Its goroutines (the one
// that waits for the process, the readers, one a call, one a cell that has output
// to show) end with it; wait returns when all have.
type process struct {
	options *Options
	link    *link
	cmd     *exec.Cmd
	stdin   io.Closer
	stdout  io.Closer
	crash   tail // what the child wrote to descriptor 2

	ctx    context.Context // cancelled at death; services run under it
	cancel context.CancelFunc
	gone   chan struct{} // closed when the child has been waited for
	state  string        // how it ended; set before gone is closed
	wg     sync.WaitGroup

	mu      sync.Mutex
	over    bool // wait has begun: nothing more is started
	killed  bool // by us, for not stopping
	told    bool // a cell's error was its death
	began   bool // a cell or a comm message has
	cells   map[uint64]*cellRun
	ended   []uint64 // cells that have ended and can still print, oldest first
	answers map[uint64]chan frame
	calls   map[uint64]*serviceCall
}

type serviceCall struct {
	cancel context.CancelFunc
	window chan struct{} // a token for each event on its way
}

// A cellRun carries one cell's outputs to the front end, in order. Its drainer
// runs only while there is something to show.
type cellRun struct {
	p    *process
	id   uint64
	out  kernel.Output
	done chan frame // capacity 1

	mu       sync.Mutex
	idle     sync.Cond
	queue    []frame
	draining bool
}

// startProcess starts a child and its goroutines.
func startProcess(command []string, o *Options) (*process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{
		options: o, ctx: ctx, cancel: cancel, gone: make(chan struct{}),
		cells: map[uint64]*cellRun{}, answers: map[uint64]chan frame{}, calls: map[uint64]*serviceCall{},
	}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env, p.cmd.Dir = o.Env, o.Dir
	p.cmd.Stderr = &p.crash
	p.cmd.WaitDelay = 200 * time.Millisecond // what the child started may hold its descriptors
	p.cmd.SysProcAttr = processAttributes()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cell: %w", err)
	}
	// Not StdoutPipe: Wait would close it before the last frames are read.
	r, w, err := os.Pipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cell: %w", err)
	}
	widen(r)
	p.cmd.Stdout = w
	p.stdin, p.stdout, p.link = stdin, r, newLink(bufio.NewReaderSize(r, 64<<10), stdin)

	started := make(chan error)
	p.wg.Go(func() {
		err := p.cmd.Start()
		w.Close()
		started <- err
		if err != nil {
			return
		}
		read := make(chan struct{})
		p.wg.Go(func() { defer close(read); p.read() })
		err = p.cmd.Wait()
		endGroup(p.cmd.Process.Pid)
		// What the child started itself may hold the pipe open.
		select {
		case <-read:
		case <-time.After(200 * time.Millisecond):
			r.SetReadDeadline(time.Now())
			<-read
		}
		r.Close()
		p.state = "exit status 0"
		if err != nil {
			p.state = err.Error()
		}
		p.cancel()
		close(p.gone)
	})
	if err := <-started; err != nil {
		cancel()
		r.Close()
		p.wg.Wait()
		return nil, fmt.Errorf("cell: start %s: %w", command[0], err)
	}
	p.link.send(frame{Op: opHello, Data: mustJSON(helloData{MemoryLimit: o.MemoryLimit, Modules: o.Modules})})
	return p, nil
}

// read takes the child's frames until its pipe ends. It never waits for a front
// end or a service: those have goroutines of their own.
func (p *process) read() {
	for {
		f, err := p.link.receive()
		if err != nil {
			// A frame that makes no sense ends the child; so does its exit.
			var fe *FrameError
			if errors.As(err, &fe) {
				fmt.Fprintf(&p.crash, "fatal error: %v\n", err)
				p.cmd.Process.Kill()
			}
			return
		}
		switch f.Op {
		case opStream, opDisplay, opUpdate, opResult, opPage, opClear, opCommOut, opExit:
			if run := p.cell(f.Cell); run != nil {
				run.push(f)
			}
		case opDone:
			p.mu.Lock()
			run := p.cells[f.ID]
			p.mu.Unlock()
			if run != nil {
				run.push(f)
			}
		case opInput:
			p.input(f)
		case opAnswer:
			p.mu.Lock()
			c := p.answers[f.ID]
			delete(p.answers, f.ID)
			p.mu.Unlock()
			if c != nil {
				c <- f
			}
		case opCall:
			p.call(f)
		case opEventAck:
			p.mu.Lock()
			c := p.calls[f.ID]
			p.mu.Unlock()
			if c != nil {
				select {
				case <-c.window:
				default:
				}
			}
		case opCancel:
			p.mu.Lock()
			c := p.calls[f.ID]
			p.mu.Unlock()
			if c != nil {
				c.cancel()
			}
		}
	}
}

// begin makes the place for the outputs of a cell or of a comm message, which is there
// until keep or finish.
func (p *process) begin(id uint64, out kernel.Output) *cellRun {
	run := &cellRun{p: p, id: id, out: out, done: make(chan frame, 1)}
	run.idle.L = &run.mu
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cells[id], p.began = run, true
	return run
}

// keep ends what begin began of a cell. Its goroutines can still print until keptCells
// others have ended after it.
func (p *process) keep(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, id)
	if len(p.ended) > keptCells {
		delete(p.cells, p.ended[0])
		p.ended = p.ended[1:]
	}
}

// finish ends what begin began, of a request whose goroutines have ended, so that it
// takes no ended cell's place.
func (p *process) finish(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.cells, id)
}

// cell finds the run that output belongs to: its own, or the oldest there is.
func (p *process) cell(id uint64) *cellRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	if run := p.cells[id]; run != nil {
		return run
	}
	if len(p.ended) > 0 {
		return p.cells[p.ended[0]]
	}
	var oldest *cellRun
	for _, run := range p.cells {
		if oldest == nil || run.id < oldest.id {
			oldest = run
		}
	}
	return oldest
}

func (p *process) ask(id uint64) chan frame {
	c := make(chan frame, 1)
	p.mu.Lock()
	p.answers[id] = c
	p.mu.Unlock()
	return c
}

func (p *process) forget(id uint64) {
	p.mu.Lock()
	delete(p.answers, id)
	p.mu.Unlock()
}

// A posting is a frame on its way to a child that may not be reading.
type posting struct {
	done chan struct{} // closed when it has been written, or can't be
	err  error
}

// post sends a frame beside the caller.
func (p *process) post(f frame) *posting {
	t := &posting{done: make(chan struct{})}
	p.spawn(func() {
		defer close(t.done)
		t.err = p.link.send(f)
	})
	return t
}

// await waits for the reply to the request id, which sent carries. When ctx is
// cancelled it interrupts the request, and kills the child where that doesn't help in
// time. The error is a *FrameError of sent.
func (p *process) await(ctx context.Context, id uint64, sent *posting, reply chan frame) (f frame, died bool, err error) {
	cancelled, posted := ctx.Done(), sent.done
	var grace <-chan time.Time
	for {
		select {
		case f := <-reply:
			return f, false, nil
		case <-posted:
			posted = nil
			if fe := (*FrameError)(nil); errors.As(sent.err, &fe) {
				return frame{}, false, fe
			}
		case <-p.gone:
			// The last frames were read before gone was closed.
			p.mu.Lock()
			run := p.cells[id]
			p.mu.Unlock()
			if run != nil {
				run.drain()
			}
			select {
			case f := <-reply:
				return f, false, nil
			default:
				return frame{}, true, nil
			}
		case <-cancelled:
			cancelled = nil
			t := time.NewTimer(p.options.InterruptGrace)
			defer t.Stop()
			grace = t.C
			// The pipe may be full when the child hangs: don't wait for it.
			p.spawn(func() {
				select {
				case <-sent.done:
					p.link.send(frame{Op: opInterrupt, ID: id})
				case <-p.gone:
				}
			})
		case <-grace:
			grace = nil
			p.mu.Lock()
			p.killed = true
			p.mu.Unlock()
			p.cmd.Process.Kill()
		}
	}
}

// hear waits for the reply to a question, no longer than ctx and without harm to a
// child that doesn't answer.
func (p *process) hear(ctx context.Context, id uint64, sent *posting, reply chan frame) (f frame, heard bool) {
	posted := sent.done
	for {
		select {
		case f := <-reply:
			return f, true
		case <-posted:
			if posted = nil; sent.err != nil {
				return frame{}, false
			}
		case <-p.gone:
			return frame{}, false
		case <-ctx.Done():
			return frame{}, false
		}
	}
}

// push queues one frame of the cell's output.
func (c *cellRun) push(f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, f)
	if !c.draining {
		c.draining = true
		c.p.wg.Go(c.show)
	}
}

// drain waits until everything queued has been shown.
func (c *cellRun) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.draining {
		c.idle.Wait()
	}
}

func (c *cellRun) show() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.draining = false
			c.queue = nil
			c.idle.Broadcast()
			c.mu.Unlock()
			return
		}
		batch := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, f := range batch {
			c.showOne(f)
		}
	}
}

func (c *cellRun) showOne(f frame) {
	switch f.Op {
	case opStream:
		c.out.Stream(f.Name, f.Text)
		c.p.link.send(frame{Op: opAck, Cell: f.Cell, Count: len(f.Text)})
	case opDisplay, opUpdate, opResult, opPage:
		var b display.Bundle
		if json.Unmarshal(f.Data, &b) != nil {
			return
		}
		switch f.Op {
		case opDisplay:
			c.out.Display(b, f.Name)
		case opUpdate:
			c.out.Update(b, f.Name)
		case opResult:
			c.out.Result(b)
		case opPage:
			c.out.Page(b)
		}
		c.p.link.send(frame{Op: opAck, Cell: f.Cell, Count: len(f.Data)})
	case opClear:
		c.out.Clear(f.Name == "wait")
	case opExit:
		c.out.Exit(f.Name == "keep")
	case opCommOut:
		var m kernel.CommMessage
		if json.Unmarshal(f.Data, &m) == nil {
			c.out.Comm(m)
		}
		c.p.link.send(frame{Op: opAck, Cell: f.Cell, Count: len(f.Data)})
	case opDone:
		c.done <- f
	}
}

// input asks the front end for a line on behalf of the cell, after what the cell
// printed so far.
func (p *process) input(f frame) {
	run := p.cell(f.Cell)
	if run == nil {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	p.mu.Lock()
	p.calls[f.ID] = &serviceCall{cancel: cancel}
	p.mu.Unlock()
	p.wg.Go(func() {
		defer cancel()
		run.drain()
		line, err := run.out.Input(ctx, f.Text, f.Name == "password")
		p.mu.Lock()
		delete(p.calls, f.ID)
		p.mu.Unlock()
		reply := frame{Op: opInputReply, ID: f.ID, Text: line}
		if err != nil {
			reply.Error = err.Error()
		}
		var fe *FrameError
		if err := p.link.send(reply); errors.As(err, &fe) {
			p.link.send(frame{Op: opInputReply, ID: f.ID, Error: fe.Error()})
		}
	})
}

// call runs one service call of a cell.
func (p *process) call(f frame) {
	ctx, cancel := context.WithCancel(p.ctx)
	c := &serviceCall{cancel: cancel, window: make(chan struct{}, eventWindow)}
	p.mu.Lock()
	p.calls[f.ID] = c
	p.mu.Unlock()
	p.wg.Go(func() {
		defer cancel()
		reply := frame{Op: opReturn, ID: f.ID}
		if p.options.Services == nil {
			reply.Error = "no lab in this process: nothing answers " + f.Name
		} else {
			var unsent atomic.Pointer[FrameError] // an event that is too large ends the call
			v, err := p.options.Services.Call(ctx, f.Name, f.Data, func(e json.RawMessage) {
				select {
				case c.window <- struct{}{}:
					var fe *FrameError
					if err := p.link.send(frame{Op: opEvent, ID: f.ID, Data: e}); errors.As(err, &fe) {
						unsent.CompareAndSwap(nil, fe)
						cancel()
					}
				case <-ctx.Done():
				}
			})
			if fe := unsent.Load(); fe != nil {
				err = fe
			}
			reply.Data = v
			if err != nil {
				reply.Error = err.Error()
				if reply.Error == "" {
					reply.Error = f.Name + " failed"
				}
			}
		}
		p.mu.Lock()
		delete(p.calls, f.ID)
		p.mu.Unlock()
		var fe *FrameError
		if err := p.link.send(reply); errors.As(err, &fe) {
			p.link.send(frame{Op: opReturn, ID: f.ID, Error: fe.Error()})
		}
	})
}

func (p *process) dead() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// spawn starts a goroutine that wait waits for.
func (p *process) spawn(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.wg.Go(f)
	}
}

// wait returns when the child and every goroutine that served it have ended.
func (p *process) wait() {
	<-p.gone
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.stdout.Close()
	p.wg.Wait()
}

// end asks the child to end by closing its standard input, kills it after grace,
// and waits.
func (p *process) end(grace time.Duration) {
	p.stdin.Close()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.gone:
	case <-t.C:
		p.cmd.Process.Kill()
	}
	p.wait()
}

// death says what ended the child, as the error of the cell that was running.
func (p *process) death(interrupted bool) *kernel.CellError {
	<-p.gone
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	return explainDeath(p.state, p.crash.String(), killed && interrupted)
}

// tell notes that a cell's error says that the child died.
func (p *process) tell() {
	p.mu.Lock()
	p.told = true
	p.mu.Unlock()
}

// untold is what ended a child that held something, where no cell's error says so.
func (p *process) untold() *kernel.CellError {
	p.mu.Lock()
	tell := p.began && !p.told
	p.mu.Unlock()
	if !tell {
		return nil
	}
	return p.death(true)
}

// tail keeps the first and the last bytes of what is written to it.
type tail struct {
	mu    sync.Mutex
	first []byte
	last  []byte
}

const tailBytes = 32 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if k := tailBytes - len(t.first); k > 0 {
		k = min(k, len(b))
		t.first = append(t.first, b[:k]...)
		b = b[k:]
	}
	t.last = append(t.last, b...)
	if len(t.last) > 2*tailBytes {
		t.last = append([]byte(nil), t.last[len(t.last)-tailBytes:]...)
	}
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.first) + string(t.last)
}
