package zmtp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

const patience = 10 * time.Second

func listen(t *testing.T, kind SocketType, limits Limits) (*Listener, string) {
	t.Helper()
	l, err := Listen("tcp", "127.0.0.1:0", kind, limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().String()
}

func dial(t *testing.T, address string, kind SocketType, identity string) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := Dial(ctx, "tcp", address, kind, identity, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func accept(t *testing.T, l *Listener) *Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c *Conn, frames ...[]byte) {
	t.Helper()
	if err := c.Write(frames); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestMessages(t *testing.T) {
	l, address := listen(t, Router, Limits{})
	client := dial(t, address, Dealer, "me")
	server := accept(t, l)
	if server.Identity() != "me" || client.Identity() != "" {
		t.Errorf("identities %q and %q", server.Identity(), client.Identity())
	}
	for _, m := range [][][]byte{
		{{}}, {{1}, {}, {2, 3}},
		{bytes.Repeat([]byte("a"), 255), bytes.Repeat([]byte("b"), 256)},
		{bytes.Repeat([]byte("c"), smallFrame), bytes.Repeat([]byte("d"), smallFrame+1), bytes.Repeat([]byte("e"), 5<<20)},
	} {
		go func() {
			client.Write(m)
			client.Flush()
		}()
		got, err := server.Read()
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("message of %d frames: got %d, %v", len(m), len(got), err)
		}
	}
	client.Close()
	if _, err := server.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the peer's close: %v", err)
	}
}

// The sockets of zmq4, which share only the greeting with this package, understand
// it.
func TestForeignSockets(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, address := listen(t, Router, Limits{})
	dealer := zmq4.NewDealer(ctx, zmq4.WithID(zmq4.SocketIdentity("them")))
	defer dealer.Close()
	if err := dealer.Dial("tcp://" + address); err != nil {
		t.Fatal(err)
	}
	server := accept(t, l)
	if server.Identity() != "them" {
		t.Errorf("identity %q", server.Identity())
	}
	want := [][]byte{[]byte("a"), bytes.Repeat([]byte("b"), 1000)}
	if err := dealer.Send(zmq4.NewMsgFrom(want...)); err != nil {
		t.Fatal(err)
	}
	got, err := server.Read()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	send(t, server, got...)
	m, err := dealer.Recv()
	if err != nil || !reflect.DeepEqual(m.Frames, want) {
		t.Errorf("got %q, %v", m.Frames, err)
	}

	p, address := listen(t, XPub, Limits{})
	sub := zmq4.NewSub(ctx)
	defer sub.Close()
	if err := sub.Dial("tcp://" + address); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, "topic"); err != nil {
		t.Fatal(err)
	}
	publisher := accept(t, p)
	if got, err = publisher.Read(); err != nil || !reflect.DeepEqual(got, [][]byte{[]byte("\x01topic")}) {
		t.Errorf("subscription: %q, %v", got, err)
	}
	send(t, publisher, []byte("topic"), []byte("x"))
	if m, err = sub.Recv(); err != nil || !reflect.DeepEqual(m.Frames, [][]byte{[]byte("topic"), []byte("x")}) {
		t.Errorf("got %q, %v", m.Frames, err)
	}
}

func greeting() []byte {
	return append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'}, make([]byte, 48)...)
}

func ready(properties string) []byte {
	body := "\x05READY" + properties
	return append([]byte{flagCommand, byte(len(body))}, body...)
}

const dealer = "\x0bSocket-Type\x00\x00\x00\x06DEALER"

func TestCommands(t *testing.T) {
	l, address := listen(t, XPub, Limits{})
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	nc.Write(greeting())
	nc.Write(ready("\x0bsocket-TYPE\x00\x00\x00\x03SUB\x05Other\x00\x00\x00\x01x"))
	server := accept(t, l)
	nc.Write([]byte("\x04\x0c\x09SUBSCRIBEab\x04\x08\x06CANCELa\x04\x03\x02ab\x04\x09\x04PING\x00\x0axy\x00\x01z"))
	for _, want := range []string{"\x01ab", "\x00a", "z"} {
		if got, err := server.Read(); err != nil || len(got) != 1 || string(got[0]) != want {
			t.Errorf("want %q, got %q, %v", want, got, err)
		}
	}
	all := make([]byte, 64)
	io.ReadFull(nc, all)
	var head [2]byte
	io.ReadFull(nc, head[:])
	io.ReadFull(nc, make([]byte, head[1]))
	pong := make([]byte, 9)
	if _, err := io.ReadFull(nc, pong); err != nil || string(pong) != "\x04\x07\x04PONGxy" {
		t.Errorf("PONG: %q, %v", pong, err)
	}
}

// A peer that breaks the protocol or a limit gets an error, whatever it claims, and
// nothing is allocated for bytes that haven't come.
func TestLimits(t *testing.T) {
	limits := Limits{Message: 200_000, Frames: 3, Budget: NewBudget(150_000)}
	l, address := listen(t, Router, limits)
	for _, c := range []struct {
		name, bytes, want string
	}{
		{"long frame", "\x02\x40\x00\x00\x00\x00\x00\x00\x00", "message bytes: at most 200000"},
		{"negative frame", "\x02\xff\xff\xff\xff\xff\xff\xff\xff", "message bytes: at most 200000"},
		{"frames", "\x01\x00\x01\x00\x01\x00\x01\x00", "frames: at most 3"},
		{"flags", "\x08\x00", "frame flags 0x8"},
		{"command with more", "\x05\x00", "frame flags 0x5"},
		{"long command", "\x06\x00\x00\x00\x00\x00\x01\x00\x00", "command bytes: at most 4096"},
		{"command without name", "\x04\x00", "without a name"},
		{"command too short", "\x04\x02\x09a", "without a name"},
		{"budget", "\x02\x00\x00\x00\x00\x00\x03\x00\x00" + strings.Repeat("x", 0x30000), "unfinished bytes of all peers: at most 150000, got 196608"},
	} {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		nc.Write(greeting())
		nc.Write(ready(dealer))
		server := accept(t, l)
		go nc.Write([]byte(c.bytes))
		if _, err := server.Read(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", c.name, c.want, err)
		}
		nc.Close()
		server.Close()
	}
	if held := limits.Budget.held.Load(); held != 0 {
		t.Errorf("%d bytes of the budget are held", held)
	}
}

func TestBadHandshakes(t *testing.T) {
	refused := make(chan error, 100)
	l, err := Listen("tcp", "127.0.0.1:0", Router, Limits{Handshake: 200 * time.Millisecond}, func(err error) { refused <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good := string(greeting())
	for name, bytes := range map[string]string{
		"silent":          "",
		"half a greeting": good[:30],
		"another":         strings.Repeat("GET / HTTP/1.1\r\n", 10),
		"old version":     good[:10] + "\x01" + good[11:],
		"mechanism":       strings.Replace(good, "NULL", "PLAI", 1),
		"no READY":        good,
		"message":         good + "\x00\x05hello",
		"other command":   good + "\x04\x06\x05HELLO",
		"long READY":      good + "\x06\x7f\xff\xff\xff\xff\xff\xff\xff",
		"short READY":     good + string(ready("\x0bSocket-Type\x00\x00\x00\xffDEALER")),
		"shorter READY":   good + string(ready("\xff")),
		"no socket type":  good + string(ready("")),
		"unknown type":    good + string(ready("\x0bSocket-Type\x00\x00\x00\x03XYZ")),
		"wrong type":      good + string(ready("\x0bSocket-Type\x00\x00\x00\x03SUB")),
		"long identity":   good + "\x06\x00\x00\x00\x00\x00\x00\x01\x4d" + "\x05READY" + dealer + "\x08Identity\x00\x00\x01\x2c" + strings.Repeat("i", 300),
	} {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write([]byte(bytes))
		select {
		case err := <-refused:
			var he *HandshakeError
			if !errors.As(err, &he) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(patience):
			t.Errorf("%s: not refused", name)
		}
	}
}

// A full house of silent connections gives way, oldest first; proven peers stay and
// count against their own limit, and others give way to new ones.
func TestCrowd(t *testing.T) {
	l, address := listen(t, Router, Limits{Pending: 4, Peers: 3})
	for range 20 {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	}
	var peers []*Conn
	for range 3 {
		dial(t, address, Dealer, "")
		c := accept(t, l)
		c.Prove()
		peers = append(peers, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c, err := Dial(ctx, "tcp", address, Dealer, "", Limits{}); err == nil {
		c.Close()
		t.Error("a fourth peer was let in")
	}
	peers[0].Close()
	first := dial(t, address, Dealer, "")
	accept(t, l)
	for range 10 { // each turns the one before it out
		next := dial(t, address, Dealer, "")
		accept(t, l)
		if _, err := first.Read(); err == nil {
			t.Error("a message from nowhere")
		}
		first = next
	}
	for _, c := range peers[1:] {
		if err := c.Write([][]byte{[]byte("still here")}); err != nil || c.Flush() != nil {
			t.Errorf("a proven peer was turned out: %v", err)
		}
	}
}

// Handshakes that end together let no more peers in than there is room for.
func TestPeersInAHandshake(t *testing.T) {
	refused := make(chan error, 100)
	l, err := Listen("tcp", "127.0.0.1:0", Router, Limits{Pending: 4, Peers: 1}, func(err error) { refused <- err })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var conns []net.Conn
	for range 3 {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		// Half of a handshake is answered: the connection was admitted.
		nc.Write(greeting())
		if _, err := io.ReadFull(nc, make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, nc)
	}
	for _, nc := range conns {
		nc.Write(ready(dealer))
	}
	go func() {
		for range 3 {
			l.Accept()
		}
	}()
	for range 2 {
		select {
		case err := <-refused:
			var limit *LimitError
			if !errors.As(err, &limit) || limit.What != "connections" || limit.Max != 1 || limit.Got != 2 {
				t.Errorf("refused: %v", err)
			}
		case <-time.After(patience):
			t.Fatal("nobody was turned out for a second peer")
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.peers); n != 1 {
		t.Errorf("%d peers in a house for one", n)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen("unix", path, Router, Limits{}, nil)
	if err != nil {
		t.Skip("no unix sockets here: ", err)
	}
	if _, err := Listen("unix", path, Router, Limits{}, nil); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second listener: %v", err)
	}
	// A socket file that a dead process left is replaced.
	l.ln.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if l, err = Listen("unix", path, Router, Limits{}, nil); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

// bytesConn is a connection whose peer has already said everything.
type bytesConn struct{ *bytes.Reader }

func (bytesConn) Write(b []byte) (int, error)      { return len(b), nil }
func (bytesConn) Close() error                     { return nil }
func (bytesConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (bytesConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (bytesConn) SetDeadline(time.Time) error      { return nil }
func (bytesConn) SetReadDeadline(time.Time) error  { return nil }
func (bytesConn) SetWriteDeadline(time.Time) error { return nil }

// Whatever a peer sends, from its first byte on, it gets no more than an error.
func FuzzPeer(f *testing.F) {
	good := string(greeting())
	f.Add([]byte(good + string(ready(dealer)) + "\x01\x01a\x00\x01b"))
	f.Add([]byte(good + string(ready(dealer)) + "\x04\x0c\x09SUBSCRIBEab\x04\x09\x04PING\x00\x0axy"))
	f.Add([]byte(good + string(ready("\x0bSocket-Type\x00\x00\x00\x03XYZ"))))
	f.Add([]byte(good + "\x06\x7f\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte(good + string(ready(dealer)) + "\x02\x00\x00\x00\x00\x00\x02\x00\x00" + strings.Repeat("x", 0x20000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		limits := Limits{Message: 1 << 20, Frames: 100}.resolved()
		c, err := open(bytesConn{bytes.NewReader(b)}, Router, "", true, limits)
		if err != nil {
			return
		}
		for {
			m, err := c.Read()
			if err != nil {
				break
			}
			if len(m) == 0 || len(m) > 100 {
				t.Fatalf("a message of %d frames", len(m))
			}
		}
		if held := limits.Budget.held.Load(); held != 0 {
			t.Fatalf("%d bytes of the budget are held", held)
		}
	})
}
