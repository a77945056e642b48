package cell

import (
	"bytes"
	"crypto/rand"
	"os"
	"sync"
)

// stdPipes are the cells' os.Stdout and os.Stderr. Windows has no descriptors to
// move: what a cell writes to the process's own handles is lost.
type stdPipes struct{ out, err *stdPipe }

type stdPipe struct {
	name  string
	r, w  *os.File
	token []byte // written by sync, taken out again by read

	mu    sync.Mutex
	seen  sync.Cond
	marks int // tokens read

	writing sync.Mutex
	sent    int // tokens written

	child *child
}

func claimStdio() (in, out *os.File, p *stdPipes, err error) {
	in, out = os.Stdin, os.Stdout
	p = &stdPipes{}
	if p.out, err = newStdPipe("stdout"); err != nil {
		return nil, nil, nil, err
	}
	if p.err, err = newStdPipe("stderr"); err != nil {
		return nil, nil, nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, nil, err
	}
	os.Stdin, os.Stdout, os.Stderr = null, p.out.w, p.err.w
	return in, out, p, nil
}

func newStdPipe(name string) (*stdPipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s := &stdPipe{name: name, r: r, w: w, token: make([]byte, 16)}
	rand.Read(s.token)
	s.seen.L = &s.mu
	return s, nil
}

func (p *stdPipes) start(c *child) {
	for _, s := range []*stdPipe{p.out, p.err} {
		s.child = c
		go s.read()
	}
}

// sync waits until what was written to the pipes before has been delivered.
func (p *stdPipes) sync() {
	p.out.sync()
	p.err.sync()
}

func (s *stdPipe) sync() {
	s.writing.Lock()
	s.sent++
	mine := s.sent
	s.w.Write(s.token)
	s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.marks < mine {
		s.seen.Wait()
	}
}

func (s *stdPipe) read() {
	var rest []byte
	buf := make([]byte, 16<<10)
	for {
		n, err := s.r.Read(buf)
		rest = append(rest, buf[:n]...)
		for {
			before, after, found := bytes.Cut(rest, s.token)
			if !found {
				break
			}
			if len(before) > 0 {
				s.child.owner().stream(s.name, string(before))
			}
			rest = after
			s.mu.Lock()
			s.marks++
			s.seen.Broadcast()
			s.mu.Unlock()
		}
		// A token may be cut in two.
		keep := 0
		for k := min(len(rest), len(s.token)-1); k > 0; k-- {
			if bytes.HasPrefix(s.token, rest[len(rest)-k:]) {
				keep = k
				break
			}
		}
		if n := len(rest) - keep; n > 0 {
			s.child.owner().stream(s.name, string(rest[:n]))
			rest = append([]byte(nil), rest[n:]...)
		}
		if err != nil {
			return
		}
	}
}
