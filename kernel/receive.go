package kernel

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// accept serves the connections to one channel.
func (s *Server) accept(ch Channel) {
	for {
		c, err := s.listeners[ch].Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.serve(ch, c) })
	}
}

// serve reads one connection until it ends. Its outbox writes beside it.
func (s *Server) serve(ch Channel, c Conn) {
	defer c.Close()
	if ch == Heartbeat {
		s.echo(c)
		return
	}
	var box *outbox
	var sub *subscriber
	if ch == IOPub {
		sub = newSubscriber(c)
		box = sub.outbox
	} else {
		box = newOutbox(c, nil)
	}
	identity := c.Identity()
	s.mu.Lock()
	if s.boxes == nil {
		s.mu.Unlock()
		return
	}
	s.boxes[box] = struct{}{}
	s.connections++
	connection := s.connections
	if !named(identity) {
		identity = fmt.Sprintf("\x00%d", connection)
	}
	s.mu.Unlock()
	s.wg.Go(box.run)
	if ch == IOPub {
		s.iopub.add(sub)
	} else {
		s.routers[ch].attach(identity, box)
	}
	defer func() {
		if ch == IOPub {
			s.iopub.remove(sub)
		} else {
			s.routers[ch].detach(identity, box)
		}
		box.close()
		s.mu.Lock()
		delete(s.boxes, box)
		s.mu.Unlock()
	}()
	for {
		frames, err := c.Read()
		if err != nil {
			s.log.Debug("connection ended", "channel", ch, "error", err)
			return
		}
		if ch == IOPub {
			s.iopub.subscription(sub, frames)
		} else if !s.receive(ch, c, connection, identity, frames) {
			return
		}
	}
}

// echo answers heartbeats.
func (s *Server) echo(c Conn) {
	stop := context.AfterFunc(s.ctx, func() { c.Close() })
	defer stop()
	for {
		frames, err := c.Read()
		if err != nil {
			return
		}
		if c.Write(frames) != nil || c.Flush() != nil {
			return
		}
	}
}

// receive checks one message and gives it to whom it is for; false when the server
// ends.
func (s *Server) receive(ch Channel, from Conn, connection int, identity string, frames [][]byte) bool {
	m, err := s.codec.Decode(frames)
	if err != nil {
		s.drop("message dropped", "channel", ch, "error", err)
		return true
	}
	// Two clients of one session may count their messages alike, so a msg_id by
	// itself is no replay when it comes over another connection.
	if !s.replays.fresh(string(m.Digest[:])) || !s.replays.fresh(fmt.Sprint(connection, " ", m.Header.MsgID)) {
		s.drop("message dropped: it came before", "channel", ch, "msg_id", m.Header.MsgID, "type", m.Header.MsgType)
		return true
	}
	if c, ok := from.(interface{ Prove() }); ok {
		c.Prove()
	}
	r := &request{Message: m, channel: ch, identity: identity, seq: s.received.Add(1)}
	if ch == Stdin {
		if m.Header.MsgType != "input_reply" || !s.inputs.deliver(r) {
			s.drop("message dropped: nobody waits for it", "channel", ch, "type", m.Header.MsgType)
		}
		return true
	}
	sh := s.control
	if ch == Shell {
		if sh = s.shell(m.Header.SubshellID); sh == nil {
			s.lost(r)
			return true
		}
	}
	switch s.handlers[m.Header.MsgType].where {
	case apart:
		if ch == Control {
			s.wg.Go(func() { s.handle(s.ctx, r) })
			return true
		}
	case aside:
		sh = s.asides
	case withComm:
		sh = s.commQueue
	}
	if !sh.put(r) {
		if s.ctx.Err() != nil {
			return false
		}
		s.lost(r)
	}
	return true
}

// replays remembers keys of the last messages, to drop one that is sent again.
type replays struct {
	mu   sync.Mutex
	seen map[[16]byte]struct{}
	ring [][16]byte
	next int
}

// replayWindow is the number of keys within which a replay is recognized; a message
// has two.
const replayWindow = 1 << 16

func (p *replays) fresh(key string) bool {
	sum := sha256.Sum256([]byte(key))
	k := [16]byte(sum[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, seen := p.seen[k]; seen {
		return false
	}
	if p.seen == nil {
		p.seen = map[[16]byte]struct{}{}
	}
	if len(p.ring) < replayWindow {
		p.ring = append(p.ring, k)
	} else {
		delete(p.seen, p.ring[p.next])
		p.ring[p.next] = k
		p.next = (p.next + 1) % replayWindow
	}
	p.seen[k] = struct{}{}
	return true
}

// limiter lets through a burst of lines and then a few a second, so that a peer that
// sends rubbish doesn't fill the disk with the log of it.
type limiter struct {
	mu      sync.Mutex
	tokens  float64
	last    time.Time
	skipped int
}

func (l *limiter) allow() (bool, int) {
	const burst, rate = 50, 5
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.tokens = min(burst, l.tokens+now.Sub(l.last).Seconds()*rate)
	l.last = now
	if l.tokens < 1 {
		l.skipped++
		return false, 0
	}
	l.tokens--
	n := l.skipped
	l.skipped = 0
	return true, n
}

// drop logs what outsiders caused.
func (s *Server) drop(msg string, args ...any) {
	ok, skipped := s.noise.allow()
	if !ok {
		return
	}
	if skipped > 0 {
		args = append(args, "lines_left_out", skipped)
	}
	s.log.Warn(msg, args...)
}
