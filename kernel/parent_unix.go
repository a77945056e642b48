//go:build unix

package kernel

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// parentEvery is how often the parent process is looked for.
const parentEvery = 500 * time.Millisecond

// watchParent waits for the end of ctx (false) or of the process pid (true). When
// pid is this process's parent, its end shows as a new parent, so that a pid taken
// by another process can't deceive; a grandparent (a shell lies between) is asked
// for by a null signal.
func watchParent(ctx context.Context, pid int) bool {
	if pid <= 1 {
		<-ctx.Done()
		return false
	}
	direct := os.Getppid() == pid
	tick := time.NewTicker(parentEvery)
	defer tick.Stop()
	for {
		if direct && os.Getppid() != pid || !direct && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
