package cell

import "context"

// stdinPiped says whether os.Stdin is a pipe of the child's own.
const stdinPiped = false

// stdinPipe is nothing: os.Stdin is empty.
type stdinPipe struct{}

func (*stdinPipe) open() error                   { return nil }
func (*stdinPipe) waitedFor() bool               { return false }
func (*stdinPipe) unread([]byte) int             { return 0 }
func (*stdinPipe) write(context.Context, []byte) {}
func (*stdinPipe) wake()                         {}
func (*stdinPipe) finish()                       {}
