// Package zmtp speaks the ZeroMQ message transport protocol (ZMTP 3, NULL
// security) over connections of its own, for the server's sockets and for clients.
//
// The greeting, socket types and metadata are those of go-zeromq/zmq4. Its sockets
// and its framing are not used, because they trust the peer: an accept loop that
// waits for each handshake in turn lets silent connections stop a server, PUB has a
// queue without bound, XPUB doesn't show subscriptions, a frame's length is
// allocated before a byte of it has come, and a short READY command or an unknown
// socket type panics. Here every handshake has a goroutine and a deadline, what a
// peer can make the process hold is bounded by Limits, and queues are the caller's.
package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"
)

// The socket types that kernels and their front ends use.
const (
	Router = zmq4.Router
	Dealer = zmq4.Dealer
	XPub   = zmq4.XPub
	Sub    = zmq4.Sub
	Req    = zmq4.Req
)

// SocketType is a ZeroMQ socket type, such as Router.
type SocketType = zmq4.SocketType

// Limits bounds what peers can take. The zero value works.
type Limits struct {
	Message   int           // bytes of one message; 0 means 256 MiB
	Frames    int           // frames of one message; 0 means 4096
	Handshake time.Duration // time for a handshake; 0 means 10 s
	Stall     time.Duration // time without a byte in the midst of a message; 0 means 30 s
	Peers     int           // connections of one listener; 0 means 1024
	Pending   int           // handshakes of one listener at once; 0 means 256
	Budget    *Budget       // shared by unfinished messages; nil means one of 512 MiB for each listener
}

func (l Limits) resolved() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.Message, 256<<20)
	def(&l.Frames, 4096)
	def(&l.Peers, 1024)
	def(&l.Pending, 256)
	if l.Handshake == 0 {
		l.Handshake = 10 * time.Second
	}
	if l.Stall == 0 {
		l.Stall = 30 * time.Second
	}
	if l.Budget == nil {
		l.Budget = NewBudget(512 << 20)
	}
	return l
}

// Budget bounds the bytes that all unfinished messages of its connections hold
// together. Frames up to smallFrame are not counted: Limits.Peers bounds them.
type Budget struct {
	total int64
	held  atomic.Int64
}

// NewBudget returns a budget of n bytes.
func NewBudget(n int64) *Budget { return &Budget{total: n} }

// take asks for n bytes; the error is a *LimitError.
func (b *Budget) take(n int) error {
	if held := b.held.Add(int64(n)); held > b.total {
		b.give(n)
		return &LimitError{"unfinished bytes of all peers", uint64(b.total), uint64(held)}
	}
	return nil
}

func (b *Budget) give(n int) { b.held.Add(-int64(n)) }

// LimitError says that a peer, or all of them together, took more than Limits allows;
// its connection is of no further use.
type LimitError struct {
	What     string // "message bytes", "frames", "unfinished bytes of all peers", "command bytes", "identity bytes" or "connections"
	Max, Got uint64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("zmtp: %s: at most %d, got %d", e.What, e.Max, e.Got)
}

// HandshakeError says why a connection was refused.
type HandshakeError struct {
	Peer string
	Err  error
}

func (e *HandshakeError) Error() string {
	return fmt.Sprintf("zmtp: handshake with %s: %v", e.Peer, e.Err)
}

func (e *HandshakeError) Unwrap() error { return e.Err }

// smallFrame is the size up to which a frame is allocated at once.
const smallFrame = 64 << 10

// maxCommand bounds a command frame; READY with a socket type and identity is
// under 400 bytes.
const maxCommand = 4 << 10

// Conn is an open connection. One goroutine may read while others write.
type Conn struct {
	nc       net.Conn
	r        *bufio.Reader
	wmu      sync.Mutex // guards w: the reader answers PINGs
	w        *bufio.Writer
	limits   Limits
	identity string
	listener *Listener // or nil
	proven   atomic.Bool
	closed   atomic.Bool
}

// open performs the handshake; it closes nc when that fails.
func open(nc net.Conn, kind SocketType, identity string, server bool, limits Limits) (*Conn, error) {
	nc.SetDeadline(time.Now().Add(limits.Handshake))
	zc, err := zmq4.Open(nc, null{}, kind, zmq4.SocketIdentity(identity), server, nil)
	if err != nil {
		nc.Close()
		return nil, &HandshakeError{nc.RemoteAddr().String(), err}
	}
	nc.SetDeadline(time.Time{})
	return &Conn{
		nc:       nc,
		r:        bufio.NewReaderSize(nc, 16<<10),
		w:        bufio.NewWriterSize(nc, 32<<10),
		limits:   limits,
		identity: zc.Peer.Meta[metaIdentity],
	}, nil
}

// Identity is the routing identity that the peer gave, or "".
func (c *Conn) Identity() string { return c.identity }

// Prove marks the peer as one that may be here, as a signed message shows: it no
// longer gives way to others when the listener has as many peers as it takes.
func (c *Conn) Prove() { c.proven.Store(true) }

// Close ends the connection; a Read or Write in progress returns an error.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	if c.listener != nil {
		c.listener.leave(c)
	}
	return c.nc.Close()
}

const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// Read returns the next message. Commands are answered or skipped here; SUBSCRIBE
// and CANCEL come back as the messages that ZMTP 3.0 has for them: one frame, a byte
// 1 or 0 before the topic.
func (c *Conn) Read() ([][]byte, error) {
	var (
		frames [][]byte
		total  int
		held   int // bytes taken from the budget
	)
	defer func() { c.limits.Budget.give(held) }()
	for {
		flags, err := c.r.ReadByte()
		if err != nil {
			return nil, err
		}
		if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
			return nil, fmt.Errorf("zmtp: frame flags %#x", flags)
		}
		c.expectMore()
		size, err := c.readSize(flags)
		if err != nil {
			return nil, err
		}
		switch {
		case flags&flagCommand != 0:
			if size > maxCommand {
				return nil, &LimitError{"command bytes", maxCommand, size}
			}
		case size > uint64(c.limits.Message-total):
			return nil, &LimitError{"message bytes", uint64(c.limits.Message), uint64(total) + size}
		case len(frames) == c.limits.Frames:
			return nil, &LimitError{"frames", uint64(c.limits.Frames), uint64(len(frames)) + 1}
		}
		body, err := c.readBody(int(size), &held)
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			m, err := c.command(body)
			if m != nil || err != nil {
				return m, err
			}
			c.nc.SetReadDeadline(time.Time{})
			continue
		}
		total += len(body)
		frames = append(frames, body)
		if flags&flagMore == 0 {
			c.nc.SetReadDeadline(time.Time{})
			return frames, nil
		}
	}
}

// expectMore sets the deadline for the bytes that must follow.
func (c *Conn) expectMore() { c.nc.SetReadDeadline(time.Now().Add(c.limits.Stall)) }

func (c *Conn) readSize(flags byte) (uint64, error) {
	if flags&flagLong == 0 {
		b, err := c.r.ReadByte()
		return uint64(b), err
	}
	var b [8]byte
	_, err := io.ReadFull(c.r, b[:])
	return binary.BigEndian.Uint64(b[:]), err
}

// readBody reads size bytes into memory that grows only as they come.
func (c *Conn) readBody(size int, held *int) ([]byte, error) {
	if size <= smallFrame {
		b := make([]byte, size)
		_, err := io.ReadFull(c.r, b)
		return b, err
	}
	var b []byte
	for len(b) < size {
		n := min(size-len(b), max(smallFrame, len(b)))
		if err := c.limits.Budget.take(n); err != nil {
			return nil, err
		}
		*held += n
		grown := make([]byte, len(b)+n)
		copy(grown, b)
		for at := len(b); at < len(grown); {
			c.expectMore()
			k, err := c.r.Read(grown[at:])
			if err != nil {
				return nil, err
			}
			at += k
		}
		b = grown
	}
	return b, nil
}

// command acts on a command frame; a subscription is returned as a message.
func (c *Conn) command(body []byte) ([][]byte, error) {
	if len(body) == 0 || int(body[0]) > len(body)-1 {
		return nil, fmt.Errorf("zmtp: command of %d bytes without a name", len(body))
	}
	name, data := string(body[1:1+body[0]]), body[1+body[0]:]
	switch name {
	case zmq4.CmdSubscribe:
		return [][]byte{append([]byte{1}, data...)}, nil
	case zmq4.CmdCancel:
		return [][]byte{append([]byte{0}, data...)}, nil
	case zmq4.CmdPing:
		// two bytes of time to live, then up to 16 bytes to send back
		if len(data) >= 2 {
			return nil, c.writePong(data[2:min(len(data), 18)])
		}
	}
	return nil, nil
}

func (c *Conn) writePong(context []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if err := c.writeFrame(flagCommand, append([]byte("\x04PONG"), context...)); err != nil {
		return err
	}
	return c.w.Flush()
}

// Write buffers one message; Flush sends what is buffered.
func (c *Conn) Write(frames [][]byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	for i, f := range frames {
		var flags byte
		if i < len(frames)-1 {
			flags = flagMore
		}
		if err := c.writeFrame(flags, f); err != nil {
			return err
		}
	}
	return nil
}

// Flush sends the buffered messages.
func (c *Conn) Flush() error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return c.w.Flush()
}

func (c *Conn) writeFrame(flags byte, body []byte) error {
	var head [9]byte
	n := 2
	if len(body) > 255 {
		flags |= flagLong
		binary.BigEndian.PutUint64(head[1:], uint64(len(body)))
		n = 9
	} else {
		head[1] = byte(len(body))
	}
	head[0] = flags
	if _, err := c.w.Write(head[:n]); err != nil {
		return err
	}
	_, err := c.w.Write(body)
	return err
}

const (
	metaSocketType = "Socket-Type"
	metaIdentity   = "Identity"
)

// null is ZMTP's NULL mechanism with bounds on what the peer says in it.
type null struct{}

func (null) Type() zmq4.SecurityType                       { return zmq4.NullSecurity }
func (null) Encrypt(w io.Writer, data []byte) (int, error) { return w.Write(data) }
func (null) Decrypt(w io.Writer, data []byte) (int, error) { return w.Write(data) }

// Handshake exchanges the READY commands.
func (null) Handshake(c *zmq4.Conn, server bool) error {
	meta, err := c.Meta.MarshalZMTP()
	if err != nil {
		return err
	}
	if err := c.SendCmd(zmq4.CmdReady, meta); err != nil {
		return err
	}
	var head [9]byte
	if _, err := c.Read(head[:2]); err != nil {
		return err
	}
	size := uint64(head[1])
	if head[0]&flagLong != 0 {
		if _, err := c.Read(head[2:]); err != nil {
			return err
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if head[0]&^flagLong != flagCommand {
		return fmt.Errorf("frame flags %#x where a command was expected", head[0])
	}
	if size > maxCommand {
		return &LimitError{"command bytes", maxCommand, size}
	}
	body := make([]byte, size)
	if _, err := c.Read(body); err != nil {
		return err
	}
	const ready = "\x05READY"
	if !strings.HasPrefix(string(body), ready) {
		return fmt.Errorf("command %.20q where READY was expected", body)
	}
	return readMetadata(body[len(ready):], c.Peer.Meta)
}

// readMetadata parses the properties of a READY command into meta: socket type and
// identity only.
func readMetadata(b []byte, meta zmq4.Metadata) error {
	short := errors.New("READY ends within a property")
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			return short
		}
		name := string(b[1 : 1+n])
		size := binary.BigEndian.Uint32(b[1+n:])
		b = b[1+n+4:]
		if uint64(size) > uint64(len(b)) {
			return short
		}
		value := string(b[:size])
		b = b[size:]
		switch {
		case strings.EqualFold(name, metaSocketType):
			meta[metaSocketType] = value
		case strings.EqualFold(name, metaIdentity):
			if len(value) > 255 {
				return &LimitError{"identity bytes", 255, uint64(len(value))}
			}
			meta[metaIdentity] = value
		}
	}
	switch t := zmq4.SocketType(meta[metaSocketType]); t {
	case zmq4.Pair, zmq4.Pub, zmq4.Sub, zmq4.Req, zmq4.Rep, zmq4.Dealer, zmq4.Router, zmq4.Pull, zmq4.Push, zmq4.XPub, zmq4.XSub:
		return nil
	default:
		return fmt.Errorf("unknown socket type %.20q", t)
	}
}
