package kernel

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// replyQueueBytes bounds what waits for one front end on shell, control or
	// stdin. One that leaves more unread is disconnected.
	replyQueueBytes = 64 << 20

	// frameCost is counted for each queued message on top of its frames.
	frameCost = 256
)

// messageBytes is what a queued message is counted as.
func messageBytes(frames [][]byte) int {
	n := frameCost
	for _, f := range frames {
		n += len(f)
	}
	return n
}

// An outbox is the bounded queue of messages for one connection. Its run method is
// the goroutine that writes them; the server waits for it.
type outbox struct {
	conn    Conn
	written func(bytes int) // called after each written message; may be nil

	mu        sync.Mutex
	change    sync.Cond
	queue     []queued
	bytes     int // queued or being written
	essential int // of these, in essential messages
	ending    bool
	closed    bool

	done chan struct{} // closed when run has returned
}

// queued is one message of an outbox.
type queued struct {
	frames    [][]byte
	essential bool
}

func newOutbox(c Conn, written func(int)) *outbox {
	o := &outbox{conn: c, written: written, done: make(chan struct{})}
	o.change.L = &o.mu
	return o
}

// put queues a message if no more than limit bytes then wait, or none waits yet. It
// never blocks.
func (o *outbox) put(frames [][]byte, limit int) bool {
	n := messageBytes(frames)
	o.mu.Lock()
	defer o.mu.Unlock()
	return (o.bytes == 0 || o.bytes+n <= limit) && o.add(queued{frames, false}, n)
}

// putEssential queues a message if no more than limit bytes of essential messages
// then wait, or none of those waits yet, whatever else waits. It never blocks.
func (o *outbox) putEssential(frames [][]byte, limit int) bool {
	n := messageBytes(frames)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.essential > 0 && o.essential+n > limit || !o.add(queued{frames, true}, n) {
		return false
	}
	o.essential += n
	return true
}

// add queues a message of n bytes unless the outbox is at its end; o.mu is held.
func (o *outbox) add(q queued, n int) bool {
	if o.ending || o.closed {
		return false
	}
	o.queue = append(o.queue, q)
	o.bytes += n
	o.change.Broadcast()
	return true
}

// wait blocks until n more bytes fit below limit, for at most the given time and no
// longer than hurry; it says whether there is room (or nobody any more).
func (o *outbox) wait(hurry context.Context, n, limit int, most time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := func() bool { return o.closed || o.ending || o.bytes == 0 || o.bytes+n <= limit }
	if room() || most <= 0 {
		return room()
	}
	over := false
	end := func() {
		o.mu.Lock()
		over = true
		o.change.Broadcast()
		o.mu.Unlock()
	}
	defer time.AfterFunc(most, end).Stop()
	defer context.AfterFunc(hurry, end)()
	for !over && !room() {
		o.change.Wait()
	}
	return room()
}

// waiting is the number of bytes not yet written.
func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// run writes what is put, until the connection fails or close or end is called.
func (o *outbox) run() {
	defer close(o.done)
	defer o.close()
	var batch []queued
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.closed && !o.ending {
			o.change.Wait()
		}
		if o.closed || len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		batch, o.queue = o.queue, batch[:0]
		o.mu.Unlock()
		for i, q := range batch {
			n := messageBytes(q.frames)
			err := o.conn.Write(q.frames)
			if err == nil && i == len(batch)-1 {
				err = o.conn.Flush()
			}
			o.mu.Lock()
			if err != nil {
				o.queue = append(slices.Clone(batch[i:]), o.queue...)
				o.mu.Unlock()
				return
			}
			o.bytes -= n
			if q.essential {
				o.essential -= n
			}
			o.change.Broadcast()
			o.mu.Unlock()
			batch[i] = queued{}
			if o.written != nil {
				o.written(n)
			}
		}
		if cap(batch) > 4096 {
			batch = nil
		}
	}
}

// end closes the connection after what is queued has been written.
func (o *outbox) end() {
	o.mu.Lock()
	o.ending = true
	o.change.Broadcast()
	o.mu.Unlock()
}

// abandon takes what is queued and not yet being written.
func (o *outbox) abandon() []queued {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queue
	o.queue, o.closed = nil, true
	o.change.Broadcast()
	return q
}

// close closes the connection; what is queued stays for abandon.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.change.Broadcast()
	o.mu.Unlock()
	o.conn.Close()
}

const (
	// parkedFor, parkedBytes and parkedPeers bound the replies that are kept for
	// front ends that have gone away and may reconnect with the same identity.
	parkedFor   = time.Minute
	parkedBytes = 8 << 20
	parkedPeers = 64
)

// A router sends messages to front ends by identity, on shell, control and stdin. A
// front end that reconnects under its old identity gets its replies, also those sent
// meanwhile. Several connections with one identity all get them: the kernel can't
// tell a reconnection from a left-over.
type router struct {
	mu     sync.Mutex
	peers  map[string][]*outbox
	parked map[string]*parking
}

type parking struct {
	since    time.Time
	bytes    int
	messages [][][]byte
}

func newRouter() *router {
	return &router{peers: map[string][]*outbox{}, parked: map[string]*parking{}}
}

// attach makes a connection reachable by its identity.
func (rt *router) attach(identity string, o *outbox) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.peers[identity] = append(rt.peers[identity], o)
	if p := rt.parked[identity]; p != nil {
		delete(rt.parked, identity)
		if time.Since(p.since) < parkedFor {
			for _, m := range p.messages {
				o.put(m, replyQueueBytes)
			}
		}
	}
}

func (rt *router) detach(identity string, o *outbox) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	left := rt.peers[identity][:0]
	for _, p := range rt.peers[identity] {
		if p != o {
			left = append(left, p)
		}
	}
	if len(left) > 0 {
		rt.peers[identity] = left
		return
	}
	delete(rt.peers, identity)
	if named(identity) {
		for _, q := range o.abandon() {
			rt.park(identity, q.frames)
		}
	}
}

// send queues a message; it never blocks. A front end that doesn't read its replies
// is disconnected.
func (rt *router) send(identity string, frames [][]byte) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	sent := false
	for _, o := range rt.peers[identity] {
		if o.put(frames, replyQueueBytes) {
			sent = true
		} else {
			o.conn.Close() // its run and reader end by themselves
		}
	}
	if !sent && named(identity) {
		rt.park(identity, frames)
	}
}

func (rt *router) park(identity string, frames [][]byte) {
	now := time.Now()
	oldest := ""
	for id, p := range rt.parked {
		if now.Sub(p.since) >= parkedFor {
			delete(rt.parked, id)
		} else if oldest == "" || p.since.Before(rt.parked[oldest].since) {
			oldest = id
		}
	}
	p := rt.parked[identity]
	if p == nil {
		if len(rt.parked) >= parkedPeers {
			delete(rt.parked, oldest)
		}
		p = &parking{since: now}
		rt.parked[identity] = p
	}
	n := messageBytes(frames)
	if p.bytes+n <= parkedBytes {
		p.bytes += n
		p.messages = append(p.messages, frames)
	}
}

// named says whether an identity is one that a front end chose. ZeroMQ reserves a
// leading zero byte for the others.
func named(identity string) bool { return identity != "" && identity[0] != 0 }
