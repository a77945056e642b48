package cell

import (
	"os"

	"golang.org/x/sys/unix"
)

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// pipeBytes is what the pipe of frames holds: some frames of a cell that prints
// without pause. The system's 64 KiB would have the halves wait for each other.
const pipeBytes = 1 << 20

// widen makes a pipe larger, where the system lets it.
func widen(pipe *os.File) {
	if raw, err := pipe.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
}
