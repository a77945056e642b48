package cell

import "golang.org/x/sys/unix"

// inputBytes asks how many bytes a pipe holds.
const inputBytes = unix.TIOCINQ
