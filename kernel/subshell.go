package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// queueBytes bounds the requests that wait for one shell; more are left in their
	// front end's connection. A request counts at least requestCost.
	queueBytes  = 256 << 20
	requestCost = 1 << 10

	// maxSubshells bounds the subshells that are open at once.
	maxSubshells = 256
)

// shell runs the requests of the main shell ("") or of a subshell one at a time, in
// the order of their arrival. Its run method is a goroutine of the server.
type shell struct {
	id     string
	server *Server

	mu       sync.Mutex
	change   sync.Cond
	queue    []*request
	bytes    int // cost of the queue
	closed   bool
	now      *request           // being handled, or nil
	began    time.Time          // when now did
	aborted  uint64             // executes that arrived no later than this are not run
	settling int                // interrupts that don't know yet how late that is: no execute is run
	cancel   context.CancelFunc // of the running request, or nil
	done     chan struct{}      // closed when run has returned
}

func (s *Server) newShell(id string) *shell {
	sh := &shell{id: id, server: s, done: make(chan struct{})}
	sh.change.L = &sh.mu
	return sh
}

// cost is what a request takes of queueBytes.
func cost(r *request) int { return max(requestCost, r.Size()) }

// put queues a request, waiting while the queue is full; false when the shell has
// been closed.
func (sh *shell) put(r *request) bool {
	n := cost(r)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for !sh.closed && sh.bytes > 0 && sh.bytes+n > queueBytes {
		sh.change.Wait()
	}
	if sh.closed {
		return false
	}
	sh.queue = append(sh.queue, r)
	sh.bytes += n
	sh.change.Broadcast()
	return true
}

func (sh *shell) run(ctx context.Context) {
	defer close(sh.done)
	for {
		sh.mu.Lock()
		for len(sh.queue) == 0 && !sh.closed {
			sh.change.Wait()
		}
		if sh.closed {
			sh.mu.Unlock()
			return
		}
		r := sh.queue[0]
		sh.queue[0] = nil
		sh.queue = sh.queue[1:]
		sh.bytes -= cost(r)
		sh.now, sh.began = r, time.Now()
		sh.change.Broadcast()
		if r.Header.MsgType == "execute_request" && (r.seq <= sh.aborted || sh.settling > 0) {
			sh.mu.Unlock()
			sh.server.abortReply(r)
			sh.finished()
			continue
		}
		rctx, cancel := context.WithCancel(ctx)
		interrupted, interrupt := context.WithCancel(context.Background())
		r.interrupted = interrupted
		sh.cancel = func() { cancel(); interrupt() }
		r.over = func() {
			sh.mu.Lock()
			for sh.settling > 0 { // what is sent after the reply is to run
				sh.change.Wait()
			}
			sh.cancel = nil
			sh.mu.Unlock()
		}
		sh.mu.Unlock()

		if r.Header.MsgType == "execute_request" {
			// What a widget was set to before the cell was sent is so in the cell.
			sh.server.commQueue.wait(rctx, r.seq, commWait)
		}
		sh.server.handle(rctx, r)
		cancel()
		sh.finished()
	}
}

// commWait bounds how long a cell waits for the comm messages that came before it.
const commWait = 5 * time.Second

// commHangs is how long a comm message has been handled when an interrupt is meant for
// it too; most take a millisecond.
const commHangs = 100 * time.Millisecond

func (sh *shell) finished() {
	sh.mu.Lock()
	sh.now = nil
	sh.change.Broadcast()
	sh.mu.Unlock()
}

// since is how long the request being handled has been so; 0 without one.
func (sh *shell) since() time.Duration {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.now == nil {
		return 0
	}
	return time.Since(sh.began)
}

// wait blocks until the requests that arrived before seq have been handled, for at
// most the given time and no longer than ctx.
func (sh *shell) wait(ctx context.Context, seq uint64, most time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	done := func() bool {
		return sh.closed || (sh.now == nil || sh.now.seq >= seq) && (len(sh.queue) == 0 || sh.queue[0].seq >= seq)
	}
	if done() || most <= 0 {
		return
	}
	over := false
	end := func() {
		sh.mu.Lock()
		over = true
		sh.change.Broadcast()
		sh.mu.Unlock()
	}
	defer time.AfterFunc(most, end).Stop()
	defer context.AfterFunc(ctx, end)()
	for !over && !done() {
		sh.change.Wait()
	}
}

// abort keeps the executes that arrived up to seq from running.
func (sh *shell) abort(seq uint64) {
	sh.mu.Lock()
	sh.aborted = max(sh.aborted, seq)
	sh.mu.Unlock()
}

// interrupt stops the running request and aborts the executes that were sent before it,
// some of which may still be on their way; it says whether there was any.
func (sh *shell) interrupt() bool {
	sh.mu.Lock()
	running := sh.cancel != nil || len(sh.queue) > 0
	if !running {
		sh.mu.Unlock()
		return false
	}
	sh.settling++
	if sh.cancel != nil {
		sh.cancel()
	}
	sh.mu.Unlock()
	sh.server.settle(interruptSettle)
	sh.mu.Lock()
	sh.settling--
	sh.change.Broadcast()
	sh.aborted = sh.server.received.Load()
	sh.mu.Unlock()
	return true
}

// stop stops the running request alone.
func (sh *shell) stop() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.cancel != nil {
		sh.cancel()
	}
}

// close ends the shell: the running request is cancelled, queued ones are dropped.
func (sh *shell) close() {
	sh.mu.Lock()
	sh.closed = true
	if sh.cancel != nil {
		sh.cancel()
	}
	sh.change.Broadcast()
	sh.mu.Unlock()
}

// rest takes what was queued when the shell closed.
func (sh *shell) rest() []*request {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	q := sh.queue
	sh.queue = nil
	return q
}

// shell finds a shell; nil when there is none of that id.
func (s *Server) shell(id string) *shell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shells[id]
}

// Interrupt stops the running cell of the main shell and aborts the cells queued behind
// it. When the main shell has none, it does so to the subshells, and stops what the
// interpreter runs for the comms. A comm message that has taken commHangs is stopped
// with either. It returns when it knows which cells were sent before it, within a few
// milliseconds.
func (s *Server) Interrupt() {
	if s.commQueue.since() >= commHangs {
		s.commQueue.stop()
	}
	if s.shell("").interrupt() {
		return
	}
	s.interpreter.Interrupt()
	var wg sync.WaitGroup
	for _, id := range s.subshellIDs() {
		if sh := s.shell(id); sh != nil {
			wg.Go(func() { sh.interrupt() })
		}
	}
	wg.Wait()
}

// interruptRequest interrupts one subshell when the request names it, in its header
// or content.
func (s *Server) interruptRequest(ctx context.Context, r *request) (any, error) {
	var q struct {
		SubshellID string `json:"subshell_id"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	if r.Header.SubshellID != "" {
		q.SubshellID = r.Header.SubshellID
	}
	sh := s.shell(q.SubshellID)
	if sh == nil {
		return nil, unknownSubshell(q.SubshellID)
	}
	if q.SubshellID == "" {
		s.Interrupt()
	} else {
		sh.interrupt()
	}
	return map[string]any{"status": "ok"}, nil
}

func unknownSubshell(id string) error {
	return &contentError{"subshell_id", "the id of an open subshell", fmt.Sprintf("%.100q", id)}
}

// subshellIDs lists the open subshells, oldest first.
func (s *Server) subshellIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.subshells)
}

func (s *Server) createSubshell(ctx context.Context, r *request) (any, error) {
	// Room is asked for before the interpreter opens anything, and again after it,
	// since others may have been created meanwhile.
	s.mu.Lock()
	err := s.subshellRoom()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	id := newID()
	if err := s.interpreter.OpenSubshell(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if err = s.subshellRoom(); err == nil {
		sh := s.newShell(id)
		s.shells[id] = sh
		s.subshells = append(s.subshells, id)
		s.wg.Go(func() { sh.run(s.ctx) })
	}
	s.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, s.interpreter.CloseSubshell(id))
	}
	return map[string]any{"status": "ok", "subshell_id": id}, nil
}

// subshellRoom says why no subshell can be opened; nil when one can. s.mu is held. A
// subshell that is opened under the same hold of it is one that close will see.
func (s *Server) subshellRoom() error {
	if s.ctx.Err() != nil {
		return errors.New("the kernel is shutting down")
	}
	if n := len(s.subshells); n >= maxSubshells {
		return fmt.Errorf("%d subshells are open; delete one first", n)
	}
	return nil
}

// deleteSubshell interrupts what runs in the subshell, aborts what is queued, and
// closes it.
func (s *Server) deleteSubshell(ctx context.Context, r *request) (any, error) {
	var q struct {
		SubshellID string `json:"subshell_id"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	s.mu.Lock()
	sh := s.shells[q.SubshellID]
	if sh != nil && sh.id != "" {
		delete(s.shells, sh.id)
		s.subshells = slices.DeleteFunc(s.subshells, func(id string) bool { return id == sh.id })
	}
	s.mu.Unlock()
	if sh == nil || sh.id == "" {
		return nil, unknownSubshell(q.SubshellID)
	}
	sh.close()
	select {
	case <-sh.done:
	case <-s.ctx.Done():
	}
	for _, r := range sh.rest() {
		if r.Header.MsgType == "execute_request" {
			s.abortReply(r)
		} else {
			s.lost(r)
		}
	}
	if err := s.interpreter.CloseSubshell(sh.id); err != nil {
		return nil, err
	}
	return map[string]any{"status": "ok"}, nil
}

// lost answers a request to a subshell that isn't open.
func (s *Server) lost(r *request) {
	s.status(r, "busy")
	if strings.HasSuffix(r.Header.MsgType, "_request") {
		s.replyError(r, "no such subshell", unknownSubshell(r.Header.SubshellID))
	}
	s.status(r, "idle")
}

func (s *Server) listSubshells(ctx context.Context, r *request) (any, error) {
	ids := s.subshellIDs()
	if ids == nil {
		ids = []string{}
	}
	return map[string]any{"status": "ok", "subshell_id": ids}, nil
}
