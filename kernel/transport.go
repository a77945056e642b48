package kernel

import (
	"fmt"
	"net"
	"sync"

	"deltafin/kernel/zmtp"
)

// Channel is one of a kernel's five sockets.
type Channel int

const (
	Shell Channel = iota
	Control
	Stdin
	IOPub
	Heartbeat
	channels
)

func (ch Channel) String() string {
	return [...]string{"shell", "control", "stdin", "iopub", "hb"}[ch]
}

// A Transport brings front ends' connections to the server. What the server does
// with them (routing, queues, subscriptions) is the same over every transport.
type Transport interface {
	// Listen begins to accept connections to one channel. refused hears why a
	// connection was turned away.
	Listen(ch Channel, refused func(error)) (Listener, error)
}

// Listener gives out the connections to one channel.
type Listener interface {
	// Accept waits for the next connection; it fails only after Close.
	Accept() (Conn, error)
	Close() error
}

// Conn carries multipart messages to and from one front end. One goroutine reads
// and another writes; Close ends both.
type Conn interface {
	// Identity is the routing identity that the peer chose, or "".
	Identity() string
	// Read returns the next message. On iopub it is a subscription: one frame, a
	// byte 1 (subscribe) or 0 (cancel) before the topic.
	Read() ([][]byte, error)
	// Write takes one message, Flush sends all that Write took.
	Write(frames [][]byte) error
	Flush() error
	Close() error
}

// zeroMQ is the Transport of real front ends.
type zeroMQ struct{ connection Connection }

func (t zeroMQ) Listen(ch Channel, refused func(error)) (Listener, error) {
	network, address := t.connection.Address(ch)
	kind := zmtp.Router
	if ch == IOPub {
		kind = zmtp.XPub
	}
	l, err := zmtp.Listen(network, address, kind, zmtp.Limits{}, refused)
	if err != nil {
		return nil, fmt.Errorf("kernel: bind %s: %w", ch, err)
	}
	return zmqListener{l}, nil
}

type zmqListener struct{ *zmtp.Listener }

func (l zmqListener) Accept() (Conn, error) { return l.Listener.Accept() }

// Memory is a Transport within the process, for tests and for notebooks run beside
// their kernel. The zero value is ready; it serves one Server.
type Memory struct {
	mu        sync.Mutex
	listeners [channels]*memoryListener
}

type memoryListener struct {
	conns chan Conn
	done  chan struct{}
	once  sync.Once
}

func (m *Memory) listener(ch Channel) *memoryListener {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listeners[ch] == nil {
		m.listeners[ch] = &memoryListener{conns: make(chan Conn), done: make(chan struct{})}
	}
	return m.listeners[ch]
}

// Listen implements Transport.
func (m *Memory) Listen(ch Channel, refused func(error)) (Listener, error) {
	return m.listener(ch), nil
}

// Dial connects to a channel, waiting until the server listens.
func (m *Memory) Dial(ch Channel, identity string) (Conn, error) {
	l := m.listener(ch)
	near, far := memoryPipe(identity)
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Accept() (Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// memoryConn is one end of a pipe that holds a few messages each way.
type memoryConn struct {
	identity string
	in, out  chan [][]byte
	done     chan struct{} // shared by the two ends
	once     *sync.Once
}

func memoryPipe(identity string) (near, far *memoryConn) {
	a, b := make(chan [][]byte, 16), make(chan [][]byte, 16)
	done, once := make(chan struct{}), new(sync.Once)
	return &memoryConn{identity, a, b, done, once}, &memoryConn{identity, b, a, done, once}
}

func (c *memoryConn) Identity() string { return c.identity }

func (c *memoryConn) Read() ([][]byte, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.done:
	}
	select { // what was sent before the close still arrives
	case m := <-c.in:
		return m, nil
	default:
		return nil, net.ErrClosed
	}
}

func (c *memoryConn) Write(frames [][]byte) error {
	select {
	case c.out <- frames:
		return nil
	case <-c.done:
		return net.ErrClosed
	}
}

func (c *memoryConn) Flush() error { return nil }

func (c *memoryConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}
