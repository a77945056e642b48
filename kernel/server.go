// Package kernel is a Jupyter kernel server, protocol 5.5, for any Interpreter. It
// owns the protocol: the five channels, signatures, busy and idle, execution counts,
// the queue and its aborting, coalescing of output, input, comms, subshells and
// history. It knows neither the language nor what the cells compute.
//
// Nothing that a front end does, or doesn't do, may stop it: bad messages are
// dropped with a line in the log, handshakes have deadlines, every queue has a
// bound, and each connection has goroutines of its own.
package kernel

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"deltafin/kernel/wire"
)

// Options says what to serve, and where.
type Options struct {
	Connection  Connection   // the connection file's content
	Interpreter Interpreter  // required; Serve closes it, the caller where Listen fails
	Transport   Transport    // nil means ZeroMQ at Connection's addresses
	History     string       // folder that keeps the cells across sessions; "" means only in memory
	Log         *slog.Logger // dropped messages and the like; nil means none
	ParentPID   int          // Serve ends when this process does (Windows: a handle of it); 0 means none
}

// Server is one kernel: made by Listen, run by Serve, once.
type Server struct {
	interpreter Interpreter
	codec       *wire.Codec
	log         *slog.Logger
	parent      int
	session     string
	handlers    map[string]handler
	listeners   [channels]Listener
	routers     [channels]*router // shell, control, stdin
	iopub       *broadcaster
	flusher     *flusher
	inputs      inputs
	comms       comms
	history     *history
	control     *shell // runs the requests of the control channel
	asides      *shell // runs the questions that the server answers by itself
	questions   *shell // runs those to the interpreter that needn't wait for a cell
	commQueue   *shell // runs the comm messages
	replays     replays
	noise       limiter
	ballast     []byte

	ctx      context.Context // of the requests
	cancel   context.CancelFunc
	stopping chan struct{} // closed by a shutdown_request
	stopOnce sync.Once
	wg       sync.WaitGroup // every goroutine of the server

	received atomic.Uint64 // requests
	sent     atomic.Uint64 // messages

	smu   sync.Mutex // makes the order of states
	cells []*request // said to be busy, oldest first

	mu          sync.Mutex
	count       int // execution_count of the last stored cell
	shells      map[string]*shell
	subshells   []string // ids of the open subshells, oldest first
	boxes       map[*outbox]struct{}
	connections int // so far
}

// Serve runs a kernel until it is shut down by a front end, its parent process dies
// or ctx is done. All three are a good end: the error says only that it couldn't
// begin, or not end in good order.
func Serve(ctx context.Context, o Options) error {
	s, err := Listen(o)
	if err != nil {
		return err
	}
	return s.Serve(ctx)
}

// Listen binds the channels; with an error, o.Interpreter stays the caller's to close.
// The errors are *ConnectionError and those of binding, such as a port in use; a
// history folder that can't be used is a line in the log.
func Listen(o Options) (*Server, error) {
	if o.Interpreter == nil {
		return nil, errors.New("kernel: Options.Interpreter: want an interpreter, got none")
	}
	if o.Transport == nil {
		if err := o.Connection.check(); err != nil {
			return nil, err
		}
		o.Transport = zeroMQ{o.Connection}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		interpreter: o.Interpreter,
		codec:       wire.NewCodec(o.Connection.Key),
		log:         o.Log,
		parent:      o.ParentPID,
		session:     newID(),
		handlers:    handlers(),
		flusher:     newFlusher(),
		history:     openHistory(o.History, func(err error) { o.Log.Warn("the history is not complete", "error", err) }),
		comms:       comms{open: map[string]string{}},
		stopping:    make(chan struct{}),
		shells:      map[string]*shell{},
		boxes:       map[*outbox]struct{}{},
		ballast:     make([]byte, BallastBytes),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.control, s.shells[""] = s.newShell("control"), s.newShell("")
	s.asides, s.questions, s.commQueue = s.newShell("aside"), s.newShell("question"), s.newShell("comm")
	s.iopub = &broadcaster{welcome: s.welcome, log: s.drop, subscribers: map[*subscriber]struct{}{}}
	for ch := range channels {
		s.routers[ch] = newRouter()
		l, err := o.Transport.Listen(ch, func(err error) { s.drop("connection refused", "channel", ch, "error", err) })
		if err != nil {
			for _, l := range s.listeners[:ch] {
				l.Close()
			}
			return nil, err
		}
		s.listeners[ch] = l
	}
	s.publish("", "status", nil, json.RawMessage(`{"execution_state":"starting"}`), nil, true)
	return s, nil
}

// newID is a random identifier.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// timestamp is a header's date.
func timestamp() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// welcome makes the iopub_welcome for a new subscription.
func (s *Server) welcome(topic string) [][]byte {
	at := topic
	if at == "" {
		at = "kernel." + s.session + ".iopub_welcome"
	}
	return s.codec.Encode(&wire.Message{
		Identities: [][]byte{[]byte(at)},
		Header:     s.header("iopub_welcome"),
		Content:    wire.JSON(map[string]string{"subscription": topic}),
	})
}

// BallastBytes is how much untouched memory a process of the kernel holds on to, for
// the garbage collector to count: with a live heap of 5 MB it would otherwise run
// after every 5 MB that requests leave behind, and make one in fifty of them wait
// 2 ms. It costs address space, and as much garbage.
const BallastBytes = 16 << 20

func (s *Server) stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

const (
	// cellsEnd, flushEnd and interpreterEnd bound the parts of an orderly end.
	cellsEnd       = 500 * time.Millisecond
	flushEnd       = 500 * time.Millisecond
	interpreterEnd = 3 * time.Second
)

// Serve answers front ends until a shutdown_request, the parent's death, or the end
// of ctx. It closes the Interpreter and returns when all is stopped.
func (s *Server) Serve(ctx context.Context) error {
	for _, sh := range []*shell{s.shell(""), s.control, s.asides, s.questions, s.commQueue} {
		s.wg.Go(func() { sh.run(s.ctx) })
	}
	s.wg.Go(func() { s.flusher.run(s.ctx.Done()) })
	for ch := range channels {
		s.wg.Go(func() { s.accept(ch) })
	}
	gone := make(chan struct{})
	s.wg.Go(func() {
		if watchParent(s.ctx, s.parent) {
			close(gone)
		}
	})
	select {
	case <-ctx.Done():
	case <-s.stopping:
	case <-gone:
		s.log.Info("the parent process has ended", "pid", s.parent)
	}
	return s.close()
}

// close ends the cells, sends what is queued, and closes everything.
func (s *Server) close() error {
	s.cancel()
	s.mu.Lock()
	shells := []*shell{s.control, s.asides, s.questions, s.commQueue}
	for _, sh := range s.shells {
		shells = append(shells, sh)
	}
	s.mu.Unlock()
	for _, sh := range shells {
		sh.close()
	}
	deadline, cancel := context.WithTimeout(context.Background(), cellsEnd)
	defer cancel()
	for _, sh := range shells {
		select {
		case <-sh.done:
		case <-deadline.Done():
		}
	}
	for _, l := range s.listeners {
		l.Close()
	}
	s.endBoxes()

	closed := make(chan error, 1)
	go func() { closed <- s.interpreter.Close() }()
	var err error
	select {
	case err = <-closed:
	case <-time.After(interpreterEnd):
		err = fmt.Errorf("kernel: the interpreter did not close within %v", interpreterEnd)
	}
	s.history.close()
	all := make(chan struct{})
	go func() { s.wg.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(interpreterEnd):
		if err == nil {
			err = fmt.Errorf("kernel: a cell did not end within %v of the shutdown", interpreterEnd)
		}
	}
	return err
}

// endBoxes lets every connection send what is queued, and closes it.
func (s *Server) endBoxes() {
	s.mu.Lock()
	var boxes []*outbox
	for o := range s.boxes {
		boxes = append(boxes, o)
		o.end()
	}
	s.iopub.closeLagging()
	s.boxes = nil // connections that come now are closed at once
	s.mu.Unlock()
	timer := time.AfterFunc(flushEnd, func() {
		for _, o := range boxes {
			o.close()
		}
	})
	defer timer.Stop()
	for _, o := range boxes {
		<-o.done
	}
}
