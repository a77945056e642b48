//go:build unix

package cell

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// stdPipes are the cells' os.Stdout and os.Stderr, and descriptor 1.
type stdPipes struct {
	out, err *stdPipe
	kept     []*os.File // or a finalizer would close descriptors 1 and 2
}

type stdPipe struct {
	name  string
	r     *os.File
	fd    int
	mu    sync.Mutex // held from reading bytes until they are in order with other output
	child *child
}

// claimStdio moves the frames to descriptors of their own, and gives the cells
// pipes instead: whatever writes to descriptor 1 lands in the cell's output, and
// never between frames. Descriptor 2 stays the parent's, for the Go runtime's
// last words.
func claimStdio() (in, out *os.File, p *stdPipes, err error) {
	own := func(fd int, name string) *os.File {
		var n int
		if n, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			return nil
		}
		return os.NewFile(uintptr(n), name)
	}
	if in = own(0, "frames in"); err != nil {
		return nil, nil, nil, err
	}
	if out = own(1, "frames out"); err != nil {
		return nil, nil, nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	if err = dup2(int(null.Fd()), 0); err != nil {
		return nil, nil, nil, err
	}
	null.Close()
	p = &stdPipes{kept: []*os.File{os.Stdout, os.Stderr}}
	var w, ew *os.File
	if p.out, w, err = newStdPipe("stdout"); err != nil {
		return nil, nil, nil, err
	}
	if p.err, ew, err = newStdPipe("stderr"); err != nil {
		return nil, nil, nil, err
	}
	if err = dup2(int(w.Fd()), 1); err != nil {
		return nil, nil, nil, err
	}
	os.Stdout, os.Stderr = w, ew
	return in, out, p, nil
}

func newStdPipe(name string) (*stdPipe, *os.File, error) {
	var fds [2]int
	syscall.ForkLock.RLock()
	err := unix.Pipe(fds[:])
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	// Only the reading end doesn't block: programs that cells start get the other.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, err
	}
	return &stdPipe{name: name, r: os.NewFile(uintptr(fds[0]), name), fd: fds[0]}, os.NewFile(uintptr(fds[1]), "/dev/"+name), nil
}

func (p *stdPipes) start(c *child) {
	for _, s := range []*stdPipe{p.out, p.err} {
		s.child = c
		go s.read()
	}
}

// sync delivers what was written to the pipes before it was called.
func (p *stdPipes) sync() {
	p.out.drain()
	p.err.drain()
}

// read delivers what is written, until the process ends.
func (s *stdPipe) read() {
	raw, err := s.r.SyscallConn()
	if err != nil {
		return
	}
	raw.Read(func(uintptr) bool { s.drain(); return false })
}

func (s *stdPipe) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var buf [16 << 10]byte
	for {
		n, err := unix.Read(s.fd, buf[:])
		if n <= 0 || err != nil {
			return
		}
		s.child.owner().stream(s.name, string(buf[:n]))
	}
}
