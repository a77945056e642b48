//go:build unix

package cell

import (
	"reflect"
	"syscall"
)

// systemSyscalls are those of syscallSymbols that not every system has.
func systemSyscalls() map[string]reflect.Value {
	return map[string]reflect.Value{
		"Kill":    reflect.ValueOf(syscall.Kill),
		"SIGCONT": reflect.ValueOf(syscall.SIGCONT), "SIGSTOP": reflect.ValueOf(syscall.SIGSTOP), "SIGCHLD": reflect.ValueOf(syscall.SIGCHLD),
		"SIGUSR1": reflect.ValueOf(syscall.SIGUSR1), "SIGUSR2": reflect.ValueOf(syscall.SIGUSR2), "SIGWINCH": reflect.ValueOf(syscall.SIGWINCH),
	}
}
