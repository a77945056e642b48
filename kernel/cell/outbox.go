package cell

import (
	"sync"
	"time"
	"unsafe"
)

// burst is how long written text may wait for more of it. The first text after a
// pause goes out at once, so that a cell that dies loses at most so much of its
// last words.
const burst = 2 * time.Millisecond

// An outbox sends the child's frames in order and gathers text written in bursts
// into larger frames.
type outbox struct {
	link *link
	wake chan struct{} // capacity 1: text is waiting

	mu   sync.Mutex
	text []byte
	cell *cellOutput
	name string
	last time.Time
}

func newOutbox(l *link) *outbox { return &outbox{link: l, wake: make(chan struct{}, 1)} }

// flusher sends what is waiting, until the process ends.
func (o *outbox) flusher() {
	for range o.wake {
		time.Sleep(burst)
		o.mu.Lock()
		o.flush()
		o.mu.Unlock()
	}
}

func (o *outbox) flush() {
	if len(o.text) == 0 {
		return
	}
	// send copies the text before it returns.
	o.link.send(frame{Op: opStream, Cell: o.cell.id, Name: o.name, Text: unsafe.String(unsafe.SliceData(o.text), len(o.text))})
	o.text = o.text[:0]
	o.cell, o.name = nil, ""
	o.last = time.Now()
}

func (o *outbox) stream(c *cellOutput, name, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cell != c || o.name != name || len(o.text)+len(text) > streamPiece {
		o.flush()
	}
	if len(text) >= streamPiece/2 && len(o.text) == 0 {
		o.link.send(frame{Op: opStream, Cell: c.id, Name: name, Text: text})
		o.last = time.Now()
		return
	}
	waiting := len(o.text) > 0
	o.cell, o.name = c, name
	o.text = append(o.text, text...)
	if waiting {
		return
	}
	if time.Since(o.last) > burst {
		o.flush()
		return
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) send(f frame) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	return o.link.send(f)
}
