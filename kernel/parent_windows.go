package kernel

import (
	"context"
	"syscall"
	"time"
)

// parentEvery is how often the parent process is looked for.
const parentEvery = 500 * time.Millisecond

// watchParent waits for the end of ctx (false) or of the parent process (true).
// Front ends on Windows pass an inherited handle of the process, not its id.
func watchParent(ctx context.Context, handle int) bool {
	for handle != 0 && ctx.Err() == nil {
		event, err := syscall.WaitForSingleObject(syscall.Handle(handle), uint32(parentEvery.Milliseconds()))
		if err != nil {
			break // not a handle that can be waited for
		}
		if event == syscall.WAIT_OBJECT_0 {
			return true
		}
	}
	<-ctx.Done()
	return false
}
