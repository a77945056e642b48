package kernel

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// gatedConn is a front end's connection that takes a message each time its gate
// lets one through. It counts what it has taken.
type gatedConn struct {
	Conn
	gate   chan struct{}
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	taken int
}

func newGatedConn() *gatedConn {
	return &gatedConn{gate: make(chan struct{}), closed: make(chan struct{})}
}

func (c *gatedConn) Write([][]byte) error {
	select {
	case <-c.gate:
	case <-c.closed:
		return errors.New("closed")
	}
	c.mu.Lock()
	c.taken++
	c.mu.Unlock()
	return nil
}
func (c *gatedConn) Flush() error { return nil }
func (c *gatedConn) Close() error { c.once.Do(func() { close(c.closed) }); return nil }

// subscribed is a broadcaster with one running subscriber to everything.
func subscribed(t *testing.T) (*broadcaster, *subscriber, *gatedConn) {
	t.Helper()
	b := &broadcaster{
		welcome:     func(topic string) [][]byte { return [][]byte{[]byte(topic)} },
		log:         func(msg string, args ...any) { t.Log(append([]any{msg}, args...)...) },
		subscribers: map[*subscriber]struct{}{},
	}
	c := newGatedConn()
	s := newSubscriber(c)
	s.topics[""] = struct{}{}
	b.add(s)
	var wg sync.WaitGroup
	wg.Go(s.run)
	t.Cleanup(func() { s.close(); wg.Wait() })
	return b, s, c
}

func (b *broadcaster) has(s *subscriber) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.subscribers[s]
	return ok
}

// A front end that reads is not disconnected after one output larger than its queue.
func TestStatusAfterLargeOutput(t *testing.T) {
	b, s, c := subscribed(t)
	b.publish(context.Background(), [][]byte{[]byte("stream"), make([]byte, 30<<20)}, false)
	b.publish(context.Background(), [][]byte{[]byte("status"), []byte("idle")}, true)
	if !b.has(s) {
		t.Fatal("the subscriber was disconnected")
	}
	c.gate <- struct{}{}
	c.gate <- struct{}{}
	s.end()
	<-s.done
	if c.taken != 2 || s.waiting() != 0 || s.essential != 0 {
		t.Errorf("took %d messages; %d bytes wait, %d of them essential", c.taken, s.waiting(), s.essential)
	}
}

// A subscriber that reads nothing is disconnected when statusQueueBytes of essential
// messages wait for it, and what it didn't read is no longer counted.
func TestStatusQueueIsBounded(t *testing.T) {
	b, s, _ := subscribed(t)
	idle := [][]byte{[]byte("status"), make([]byte, 1<<20)}
	for i := range statusQueueBytes >> 20 {
		if !b.has(s) {
			t.Fatalf("disconnected after %d MiB", i)
		}
		b.publish(context.Background(), idle, true)
	}
	if b.has(s) {
		t.Errorf("%d bytes of essential messages wait", s.waiting())
	}
}
