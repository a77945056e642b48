package widget

import "sync"

// maxCalls bounds the clicks that wait for a slow callback.
const maxCalls = 100

// A listener runs a callback when something has happened: one call at a time, on a
// goroutine that lives while there are calls to make.
type listener struct {
	calls *sync.WaitGroup
	every bool // one call for each notify; otherwise one for all that came meanwhile

	mu      sync.Mutex
	f       func()
	waiting int
	running bool
}

// set replaces the callback; nil ends it. A call that has begun goes on.
func (l *listener) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f, l.waiting = f, 0
}

func (l *listener) notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return
	}
	if l.every {
		l.waiting = min(l.waiting+1, maxCalls)
	} else {
		l.waiting = 1
	}
	if !l.running {
		l.running = true
		l.calls.Go(l.run)
	}
}

func (l *listener) run() {
	// A callback may end its goroutine: those that wait are called on another.
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.running = l.waiting > 0; l.running {
			l.calls.Go(l.run)
		}
	}()
	for {
		l.mu.Lock()
		f := l.f
		if l.waiting == 0 || f == nil {
			l.waiting = 0
			l.mu.Unlock()
			return
		}
		l.waiting--
		l.mu.Unlock()
		f()
	}
}
