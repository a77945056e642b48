//go:build unix

package cell

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts the child in a process group of its own, so that the
// front end's SIGINT reaches only the kernel, and so that what the cells start can
// be ended with the child.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends what is left of the process group that the child led.
func endGroup(child int) { unix.Kill(-child, unix.SIGKILL) }

// endOwnGroup ends the calling process, and with it what it started, where it
// leads a process group.
func endOwnGroup() {
	if pid := unix.Getpid(); unix.Getpgrp() == pid {
		unix.Kill(-pid, unix.SIGKILL)
	}
}
