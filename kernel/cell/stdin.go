package cell

import (
	"context"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// stdinReader reads lines from the front end: for package fmt itself, and for os.Stdin
// by filling a pipe whenever something waits to read it.
type stdinReader struct {
	child  *child
	pipe   stdinPipe
	wanted atomic.Bool // a cell has named what may read os.Stdin
	mu     sync.Mutex
	rest   []byte // of the last line
}

// Read reads for the cell of the calling goroutine.
func (r *stdinReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.pipe.unread(b); n > 0 {
		return n, nil
	}
	if len(r.rest) == 0 {
		c := r.child.current()
		line, err := c.Input(c.ctx, "", false)
		if err != nil {
			return 0, err
		}
		r.rest = []byte(line + "\n")
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// readers are the names of what reads os.Stdin.
var readers = regexp.MustCompile(`\b(Stdin|Scan)`)

// stdinTick is how often a cell is asked whether something waits for os.Stdin: what
// waits in a read tells nobody.
const stdinTick = 5 * time.Millisecond

// stdinTicks is how often in a row a read must be seen waiting: one that has its bytes and
// is about to return looks the same, and on a busy machine for some milliseconds.
const stdinTicks = 6

// serve asks the front end of o, until stop, for what is read from os.Stdin. code is the
// cell's: sessions that don't name os.Stdin have nothing to serve.
func (r *stdinReader) serve(o *cellOutput, code string) (stop func()) {
	if readers.MatchString(code) {
		r.wanted.Store(true)
	}
	if !r.wanted.Load() || !stdinPiped {
		return func() {}
	}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(stdinTick)
		defer tick.Stop()
		waited := 0
		for {
			select {
			case <-end:
				return
			case <-o.ctx.Done():
				r.pipe.wake()
				return
			case <-tick.C:
			}
			if !r.pipe.waitedFor() {
				waited = 0
			} else if waited++; waited == stdinTicks {
				r.feed(o, end)
				waited = 0
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
	}
}

// feed gives what waits for os.Stdin a line, or its end where the front end gives none.
func (r *stdinReader) feed(o *cellOutput, end chan struct{}) {
	if !r.mu.TryLock() {
		return // package fmt asks
	}
	defer r.mu.Unlock()
	if len(r.rest) > 0 {
		r.pipe.write(o.ctx, r.rest)
		r.rest = nil
		return
	}
	ctx, cancel := context.WithCancel(o.ctx)
	defer cancel()
	answered := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-end:
			cancel()
		case <-answered:
		}
	})
	defer wg.Wait()
	defer close(answered)
	line, err := o.Input(ctx, "", false)
	switch {
	case err == nil:
		r.pipe.write(ctx, []byte(line+"\n"))
	case ctx.Err() == nil:
		o.Stream("stderr", "os.Stdin has ended: "+err.Error()+"\n")
		r.pipe.finish()
	}
}
