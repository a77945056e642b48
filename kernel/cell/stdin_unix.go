//go:build unix

package cell

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stdinPiped says whether os.Stdin is a pipe of the child's own.
const stdinPiped = true

// stdinPipe is os.Stdin: a pipe that is empty until something waits to read it.
type stdinPipe struct {
	mu   sync.Mutex
	r, w *os.File
}

// open makes os.Stdin a new pipe.
func (p *stdinPipe) open() error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		return err
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			unix.Close(fds[0])
			unix.Close(fds[1])
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.r, p.w = os.NewFile(uintptr(fds[0]), "/dev/stdin"), os.NewFile(uintptr(fds[1]), "stdin")
	os.Stdin = p.r
	return nil
}

// waitedFor says whether a goroutine is in a read of the pipe, which is empty. Package
// internal/poll holds a lock for as long as a read lasts, whose state is the first word
// of an os.File's file.
func (p *stdinPipe) waitedFor() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.r == nil {
		return false
	}
	const reading = 1 << 1
	state := atomic.LoadUint64(*(**uint64)(unsafe.Pointer(p.r)))
	return state&reading != 0 && p.size() == 0
}

// size is how many bytes are to be read. p.mu is held.
func (p *stdinPipe) size() (n int) {
	if raw, err := p.r.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), inputBytes) })
	}
	return n
}

// unread takes bytes that are in the pipe already.
func (p *stdinPipe) unread(b []byte) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.r == nil || p.size() == 0 {
		return 0
	}
	n, _ := p.r.Read(b)
	return n
}

// write gives what reads the pipe some bytes. It ends early with ctx.
func (p *stdinPipe) write(ctx context.Context, b []byte) {
	p.mu.Lock()
	w := p.w
	p.mu.Unlock()
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		w.SetWriteDeadline(time.Now())
		close(ended)
	})
	w.Write(b)
	if !stop() {
		<-ended // or it would end later writes too
		w.SetWriteDeadline(time.Time{})
	}
}

// wake ends the reads that wait, with an error. It gives up on what goes on reading.
func (p *stdinPipe) wake() {
	p.mu.Lock()
	r := p.r
	p.mu.Unlock()
	for n := 0; n < 100 && p.waitedFor(); n++ {
		r.SetReadDeadline(time.Now())
		time.Sleep(time.Millisecond)
	}
	r.SetReadDeadline(time.Time{})
}

// finish ends the pipe for what reads it, and makes os.Stdin another.
func (p *stdinPipe) finish() {
	p.mu.Lock()
	w := p.w
	p.mu.Unlock()
	if err := p.open(); err == nil {
		w.Close()
	}
}
