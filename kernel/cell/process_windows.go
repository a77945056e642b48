package cell

import "syscall"

// processAttributes puts the child in a process group of its own, so that Ctrl-C
// reaches only the kernel.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// endGroup does nothing: there is no group of processes to end.
func endGroup(int) {}

// endOwnGroup does nothing.
func endOwnGroup() {}
