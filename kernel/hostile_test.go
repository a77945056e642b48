package kernel_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
	"deltafin/kernel/wire"
)

// deadSubscriber subscribes to everything and never reads.
func deadSubscriber(t *testing.T, k *running) kernel.Conn {
	t.Helper()
	conn, err := k.dial(k.ctx, kernel.IOPub, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.Write([][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A subscriber that doesn't read takes nothing from one that does, and its queue has
// a bound.
func TestDeadSubscribers(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		const subscribers, megabytes = 3, 96
		for range subscribers {
			deadSubscriber(t, k)
		}
		c := k.client(kerneltest.Options{})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell(fmt.Sprint("flood ", megabytes)), "")
		size := 0
		seen := 0
		if err := x.Until(k.ctx, func(outputs []*wire.Message) bool {
			for _, m := range outputs[seen:] {
				if m.Header.MsgType == "stream" {
					size += len(m.Content) - len(`{"name":"stdout","text":""}`) - bytes.Count(m.Content, []byte(`\n`))
					*m = wire.Message{Header: m.Header}
				}
			}
			seen = len(outputs)
			return seen > 0 && bytes.Contains(outputs[seen-1].Content, []byte("idle"))
		}); err != nil {
			t.Fatal(err)
		}
		equal(t, "bytes at the live subscriber", size, megabytes<<20)
		runtime.GC()
		runtime.ReadMemStats(&after)
		// The queues of the dead share their messages.
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 40<<20 {
			t.Errorf("the heap grew by %d MiB", grown>>20)
		}
		if !strings.Contains(k.log.String(), "output is lost to it") {
			t.Error("no log line about the slow subscribers")
		}
	})
}

// A subscriber that wakes up after its queue has been full sees how the cell ended.
func TestLaggingSubscriberSeesIdle(t *testing.T) {
	k := start(t, "tcp", kernel.Options{})
	slow := deadSubscriber(t, k)
	c := k.client(kerneltest.Options{})
	k.run(c, "flood 48")
	x := k.run(c, "print x")
	codec := wire.NewCodec(k.connection.Key)
	for {
		frames, err := slow.Read()
		if err != nil {
			t.Fatal(err)
		}
		m, err := codec.Decode(frames)
		if err != nil {
			t.Fatal(err)
		}
		if m.ParentHeader().MsgID == x.ID && bytes.Contains(m.Content, []byte("idle")) {
			return
		}
	}
}

// An interrupt stops a flood.
func TestInterruptFlood(t *testing.T) {
	k := start(t, "tcp", kernel.Options{})
	c := k.client(kerneltest.Options{})
	x := k.begin(c, "flood 100000000", "")
	k.server.Interrupt()
	equal(t, "ename", k.wait(x).Content()["ename"], "interrupted")
}

// Connections that say nothing, or nonsense, keep nobody else out.
func TestSilentConnections(t *testing.T) {
	k := start(t, "tcp", kernel.Options{})
	ready := append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'}, make([]byte, 48)...)
	for i := range 300 {
		ch := kernel.Channel(i % 5)
		network, address := k.connection.Address(ch)
		nc, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		switch i / 5 % 6 {
		case 1:
			nc.Write([]byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 64)))
		case 2:
			nc.Write(ready)
		case 3:
			nc.Write(append(ready, 4, 9, 5, 'R', 'E', 'A', 'D', 'Y', 11, 'S', 'o'))
		case 4:
			nc.Write(append(ready, 6, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
		case 5: // a good handshake, then a frame of 2^62 bytes
			meta := "\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
			nc.Write(append(append(append([]byte{}, ready...), 4, byte(len(meta))), meta...))
			nc.Write([]byte{2, 0x40, 0, 0, 0, 0, 0, 0, 0})
		}
	}
	c := k.client(kerneltest.Options{})
	equal(t, "stdout", k.run(c, "print here").Stream("stdout"), "here\n")
	equal(t, "control", k.request(c, kernel.Control, "kernel_info_request", nil)["status"], "ok")
}

// proving is a transport whose connections tell when their peer has proved itself.
type proving struct {
	*kernel.Memory
	proved chan kernel.Channel
}

type provingListener struct {
	kernel.Listener
	ch     kernel.Channel
	proved chan kernel.Channel
}

type provingConn struct {
	kernel.Conn
	prove func()
}

func (p proving) Listen(ch kernel.Channel, refused func(error)) (kernel.Listener, error) {
	l, err := p.Memory.Listen(ch, refused)
	return provingListener{l, ch, p.proved}, err
}

func (l provingListener) Accept() (kernel.Conn, error) {
	c, err := l.Listener.Accept()
	return provingConn{c, func() { l.proved <- l.ch }}, err
}

func (c provingConn) Prove() { c.prove() }

// A signed message proves a peer; one with a bad signature doesn't.
func TestSignedMessageProves(t *testing.T) {
	m := new(kernel.Memory)
	p := proving{m, make(chan kernel.Channel, 16)}
	k := start(t, "memory", kernel.Options{Transport: p})
	k.dial = kerneltest.InMemory(m)
	c := k.client(kerneltest.Options{})
	_, frames := c.Message("kernel_info_request", nil, nil)
	frames[1] = []byte(strings.Repeat("0", 64))
	if err := c.SendFrames(kernel.Shell, frames); err != nil {
		t.Fatal(err)
	}
	k.request(c, kernel.Control, "kernel_info_request", nil)
	equal(t, "proved first", <-p.proved, kernel.Control)
	k.request(c, kernel.Shell, "kernel_info_request", nil)
	equal(t, "proved next", <-p.proved, kernel.Shell)
}

// Peers that shake hands and then do nothing, as many as there is room for and more,
// keep no front end out, and a front end that is there stays.
func TestFullHouse(t *testing.T) {
	k := start(t, "tcp", kernel.Options{})
	before := k.client(kerneltest.Options{})
	equal(t, "stdout", k.run(before, "print early").Stream("stdout"), "early\n")
	for _, ch := range []kernel.Channel{kernel.Shell, kernel.Control, kernel.IOPub, kernel.Heartbeat} {
		for range 1100 {
			c, err := k.dial(k.ctx, ch, "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
	}
	c := k.client(kerneltest.Options{})
	equal(t, "stdout", k.run(c, "print here").Stream("stdout"), "here\n")
	// The old one's subscription may have given way, its shell may not.
	x := k.send(before, kernel.Shell, "kernel_info_request", nil, "")
	for x.Replies() == 0 {
		if k.ctx.Err() != nil {
			t.Fatal("no reply on a proven connection")
		}
		time.Sleep(time.Millisecond)
	}
}

// A front end that asks without reading its replies is disconnected in the end; the
// others don't notice.
func TestUnreadReplies(t *testing.T) {
	k := start(t, "tcp", kernel.Options{})
	c := k.client(kerneltest.Options{})
	k.run(c, "print "+strings.Repeat("x", 200<<10))
	deaf, err := k.dial(k.ctx, kernel.Shell, "deaf")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	const asked = 600 // 120 MB of replies
	for range asked {
		_, frames := c.Message("history_request", map[string]any{"hist_access_type": "tail", "n": 1}, nil)
		if deaf.Write(frames) != nil || deaf.Flush() != nil {
			break
		}
	}
	for !strings.Contains(k.log.String(), "connection ended") {
		if k.ctx.Err() != nil {
			t.Fatal("a front end that doesn't read is never disconnected")
		}
		time.Sleep(time.Millisecond)
	}
	equal(t, "stdout", k.run(c, "print here").Stream("stdout"), "here\n")
}

// Subscribers that come and go leave nothing behind.
func TestSubscribersComeAndGo(t *testing.T) {
	k := start(t, "tcp", kernel.Options{})
	c := k.client(kerneltest.Options{})
	// The server may still be taking c's own connections; what 250 subscribers leave
	// behind would be far more.
	before := runtime.NumGoroutine() + 10
	for range 5 {
		var conns []kernel.Conn
		for range 50 {
			conns = append(conns, deadSubscriber(t, k))
		}
		equal(t, "stdout", k.run(c, "print many").Stream("stdout"), "many\n")
		for _, conn := range conns {
			conn.Close()
		}
	}
	ctx, cancel := context.WithTimeout(k.ctx, patience)
	defer cancel()
	for runtime.NumGoroutine() > before && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, want %d at most", n, before)
	}
}

// A front end may send far more cells than anybody reads ahead.
func TestManyQueuedCells(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		var all []*kerneltest.Exchange
		for range 2000 {
			all = append(all, k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print x"), ""))
		}
		for i, x := range all {
			if got := k.wait(x).Content()["execution_count"]; got != float64(i+1) {
				t.Fatalf("cell %d: execution_count %v", i, got)
			}
		}
	})
}

// An interrupt is not held up by a subscriber that a cell waits for: the cell ends
// although the subscriber has patience left.
func TestInterruptWhileWaiting(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{Topics: []string{"kernel"}}) // status, not streams
	deadSubscriber(t, k)
	x := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("flood 1000000"), "")
	x.Until(k.ctx, func(outputs []*wire.Message) bool { return len(outputs) >= 2 })
	time.Sleep(100 * time.Millisecond) // by now the queue is full
	k.server.Interrupt()
	equal(t, "ename", k.wait(x).Content()["ename"], "interrupted")
	if strings.Contains(k.log.String(), "patience_left=0s") {
		t.Error("the cell went on until the subscriber's patience was used up")
	}
}
