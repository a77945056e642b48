package cell

import "golang.org/x/sys/unix"

const inputBytes = unix.TIOCINQ
