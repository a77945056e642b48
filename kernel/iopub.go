package kernel

import (
	"context"
	"strings"
	"sync"
	"time"
)

const (
	// outputQueueBytes bounds the output that waits for one subscriber, beyond a
	// first message of any size, and statusQueueBytes the messages beside it that
	// are never dropped.
	outputQueueBytes = 16 << 20
	statusQueueBytes = 8 << 20

	// allQueuesBytes bounds the queues of all subscribers together.
	allQueuesBytes = 256 << 20

	// A subscriber may hold the kernel's output up for patience in all; reading
	// patientRate bytes earns a second of it back. After that it is lagging: nobody
	// waits for it, and output that doesn't fit its queue is lost to it, until it
	// has read half of the queue.
	patience    = 2 * time.Second
	patientRate = 4 << 20

	// heldBytes bounds what is kept for the first subscriber.
	heldBytes = 1 << 20

	maxTopics     = 256  // of one subscriber
	maxTopicBytes = 1024 // of one subscription
)

// broadcaster sends messages to the subscribers of iopub. A slow subscriber slows
// the cells that print, within its patience; a dead one costs one such wait and one
// queue.
type broadcaster struct {
	welcome func(topic string) [][]byte
	log     func(msg string, args ...any)

	mu          sync.Mutex
	subscribers map[*subscriber]struct{}

	// What was published before anybody listened, newest last. A front end connects
	// each socket by itself, and tries again after 100 to 200 ms where it came before
	// the kernel: its first cell may end before its subscription is there.
	held      [][][]byte
	heldBytes int
	heard     bool // somebody has subscribed
}

// subscriber is one connection to iopub.
type subscriber struct {
	*outbox
	topics map[string]struct{} // guarded by broadcaster.mu

	smu       sync.Mutex
	allowance time.Duration // what is left of patience
	lagging   bool
	lost      int // messages
}

func newSubscriber(c Conn) *subscriber {
	s := &subscriber{topics: map[string]struct{}{}, allowance: patience}
	s.outbox = newOutbox(c, s.read)
	return s
}

// read credits a subscriber with what it has taken.
func (s *subscriber) read(n int) {
	s.smu.Lock()
	defer s.smu.Unlock()
	s.allowance = min(patience, s.allowance+time.Duration(n)*time.Second/patientRate)
	if s.lagging && s.waiting() < outputQueueBytes/2 {
		s.lagging = false
	}
}

// wait holds a publisher back until n bytes fit, unless the subscriber has used up
// its patience. since is when the publisher began to wait for the subscribers that are
// behind: one that still is when its turn comes has been so for as long.
func (s *subscriber) wait(hurry context.Context, n int, since time.Time) {
	s.smu.Lock()
	allowance, lagging := s.allowance, s.lagging
	s.smu.Unlock()
	if lagging || s.outbox.wait(hurry, n, outputQueueBytes, 0) {
		return
	}
	room := s.outbox.wait(hurry, n, outputQueueBytes, allowance-time.Since(since))
	s.smu.Lock()
	s.allowance = max(0, s.allowance-time.Since(since))
	if !room && hurry.Err() == nil {
		s.lagging = true
	}
	s.smu.Unlock()
}

func (b *broadcaster) add(s *subscriber) {
	b.mu.Lock()
	b.subscribers[s] = struct{}{}
	b.mu.Unlock()
}

func (b *broadcaster) remove(s *subscriber) {
	b.mu.Lock()
	delete(b.subscribers, s)
	b.mu.Unlock()
}

// subscription acts on what a subscriber sent: one frame, 1 or 0 and a topic. A new
// topic is welcomed, so that the front end knows from when on it misses nothing.
func (b *broadcaster) subscription(s *subscriber, frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 || len(frames[0]) > 1+maxTopicBytes {
		return
	}
	topic := string(frames[0][1:])
	b.mu.Lock()
	defer b.mu.Unlock()
	switch frames[0][0] {
	case 0:
		delete(s.topics, topic)
	case 1:
		if _, has := s.topics[topic]; has || len(s.topics) == maxTopics {
			return
		}
		s.topics[topic] = struct{}{}
		s.putEssential(b.welcome(topic), statusQueueBytes)
		if !b.heard {
			for _, frames := range b.held {
				if s.wants(string(frames[0])) {
					s.putEssential(frames, statusQueueBytes)
				}
			}
			b.held, b.heard = nil, true
		}
	}
}

// hold keeps a message for the first subscriber; b.mu is held.
func (b *broadcaster) hold(frames [][]byte) {
	b.held = append(b.held, frames)
	b.heldBytes += messageBytes(frames)
	for b.heldBytes > heldBytes {
		b.heldBytes -= messageBytes(b.held[0])
		b.held = b.held[1:]
	}
}

// wants says whether one of the subscriber's topics begins a message's topic.
func (s *subscriber) wants(topic string) bool {
	for t := range s.topics {
		if strings.HasPrefix(topic, t) {
			return true
		}
	}
	return false
}

// publish sends one message, its topic as first frame, to all who want it. Output
// (essential false) waits for subscribers that are behind, and is lost to lagging
// ones; an essential message is small and neither waits nor is lost. The wait ends
// when hurry is done.
func (b *broadcaster) publish(hurry context.Context, frames [][]byte, essential bool) {
	topic := string(frames[0])
	if !essential {
		b.waitForRoom(hurry, topic, messageBytes(frames))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.heard {
		b.hold(frames)
	}
	total := 0
	for s := range b.subscribers {
		if !s.wants(topic) {
			continue
		}
		switch {
		case essential:
			if !s.putEssential(frames, statusQueueBytes) {
				b.cut(s, "it doesn't read")
				continue
			}
		case !s.put(frames, outputQueueBytes):
			s.smu.Lock()
			s.lost++
			lost, left := s.lost, s.allowance
			s.smu.Unlock()
			if lost == 1 {
				b.log("a subscriber reads too slowly; output is lost to it", "waiting", s.waiting(), "patience_left", left)
			}
		}
		total += s.waiting()
	}
	if total > allQueuesBytes {
		var fullest *subscriber
		for s := range b.subscribers {
			if fullest == nil || s.waiting() > fullest.waiting() {
				fullest = s
			}
		}
		b.cut(fullest, "the queues of all subscribers are full")
	}
}

// closeLagging disconnects those who wouldn't take what is queued in time.
func (b *broadcaster) closeLagging() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subscribers {
		s.smu.Lock()
		lagging := s.lagging
		s.smu.Unlock()
		if lagging {
			s.close()
		}
	}
}

func (b *broadcaster) waitForRoom(hurry context.Context, topic string, n int) {
	var behind []*subscriber
	b.mu.Lock()
	for s := range b.subscribers {
		if s.waiting()+n > outputQueueBytes && s.wants(topic) {
			behind = append(behind, s)
		}
	}
	b.mu.Unlock()
	since := time.Now()
	for _, s := range behind {
		s.wait(hurry, n, since)
	}
}

// cut disconnects a subscriber; a live one reconnects and is welcomed again.
func (b *broadcaster) cut(s *subscriber, why string) {
	delete(b.subscribers, s)
	b.log("a subscriber was disconnected: "+why, "waiting", s.waiting())
	s.close()
}
