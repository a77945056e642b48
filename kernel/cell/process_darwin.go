package cell

import "syscall"

// processAttributes puts the child in a process group of its own, so that the
// front end's SIGINT reaches only the kernel.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
