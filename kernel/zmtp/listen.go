package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Listener accepts connections for one socket. It owns the goroutines of the accept
// loop and the handshakes; Close ends and waits for them.
type Listener struct {
	ln     net.Listener
	kind   SocketType
	limits Limits
	refuse func(error)
	ready  chan *Conn
	done   chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	pending []net.Conn         // in a handshake, oldest first
	peers   map[*Conn]struct{} // accepted and not yet closed
}

// Listen binds a socket of a kind such as Router. network is "tcp" or "unix"
// (ZeroMQ's ipc). refuse, which may be nil, hears of each connection that was turned
// away. A unix socket's file that no process listens on any more is replaced.
func Listen(network, address string, kind SocketType, limits Limits, refuse func(error)) (*Listener, error) {
	if network == "unix" {
		if err := removeStale(address); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	if refuse == nil {
		refuse = func(error) {}
	}
	l := &Listener{
		ln: ln, kind: kind, limits: limits.resolved(), refuse: refuse,
		ready: make(chan *Conn), done: make(chan struct{}), peers: map[*Conn]struct{}{},
	}
	l.wg.Go(l.acceptLoop)
	return l, nil
}

// removeStale unlinks a socket file that nobody serves.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return nil // Listen says what is wrong with anything else
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("zmtp: listen unix %s: another process serves this socket", path)
	}
	return os.Remove(path)
}

// Addr is the bound address.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Accept returns the next connection whose handshake is done; net.ErrClosed after
// Close.
func (l *Listener) Accept() (*Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close stops accepting and ends the handshakes in progress. Connections that Accept
// returned stay open.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	for _, nc := range l.pending {
		nc.Close()
	}
	l.mu.Unlock()
	err := l.ln.Close()
	l.wg.Wait()
	return err
}

func (l *Listener) acceptLoop() {
	for {
		nc, err := l.ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			l.refuse(err) // out of descriptors, say: peers that leave make room
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-l.done:
				return
			}
		}
		if err := l.admit(nc); err != nil {
			nc.Close()
			if !errors.Is(err, net.ErrClosed) {
				l.refuse(err)
			}
			continue
		}
		l.wg.Go(func() { l.handshake(nc) })
	}
}

// admit makes room for one more handshake: the oldest one gives way, since an honest
// peer needs a millisecond. The error is a *LimitError, or net.ErrClosed.
func (l *Listener) admit(nc net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	if _, err := l.room(); err != nil {
		return err
	}
	if len(l.pending) >= l.limits.Pending {
		l.pending[0].Close()
		l.pending = l.pending[1:]
	}
	l.pending = append(l.pending, nc)
	return nil
}

// room says who is to give way for one more peer, nil meaning nobody. It is any that
// hasn't shown that it may be here: whoever fills the house turns out mostly his own,
// and an honest subscriber connects again. The error is a *LimitError where all have;
// l.mu is held.
func (l *Listener) room() (victim *Conn, err error) {
	if len(l.peers) < l.limits.Peers {
		return nil, nil
	}
	for c := range l.peers { // in random order
		if !c.proven.Load() {
			return c, nil
		}
	}
	return nil, &LimitError{"connections", uint64(l.limits.Peers), uint64(len(l.peers)) + 1}
}

func (l *Listener) leave(c *Conn) {
	l.mu.Lock()
	delete(l.peers, c)
	l.mu.Unlock()
}

func (l *Listener) handshake(nc net.Conn) {
	c, err := open(nc, l.kind, "", true, l.limits)
	l.mu.Lock()
	for i, p := range l.pending {
		if p == nc {
			l.pending = append(l.pending[:i], l.pending[i+1:]...)
			break
		}
	}
	var victim *Conn
	if err == nil {
		victim, err = l.room() // others may have become peers since admit
	}
	if err == nil {
		delete(l.peers, victim)
		l.peers[c] = struct{}{}
		c.listener = l
	}
	l.mu.Unlock()
	if victim != nil {
		l.refuse(&LimitError{"connections", uint64(l.limits.Peers), uint64(l.limits.Peers) + 1})
		victim.Close()
	}
	if err != nil {
		nc.Close()
		l.refuse(err)
		return
	}
	select {
	case l.ready <- c:
	case <-l.done:
		c.Close()
	}
}

// Dial connects to a listening socket as a client of the given kind; identity may be
// empty. It tries again while nobody listens yet, until ctx is done.
func Dial(ctx context.Context, network, address string, kind SocketType, identity string, limits Limits) (*Conn, error) {
	var d net.Dialer
	for {
		nc, err := d.DialContext(ctx, network, address)
		if err == nil {
			return open(nc, kind, identity, false, limits.resolved())
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(5 * time.Millisecond):
		}
	}
}
