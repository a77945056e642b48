package cell

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"syscall"
)

// syscallSymbols are what cells have of package syscall: what programs for every system
// name, its signals and errors. Those are variables here, for their values are each
// system's own and the declarations that cells are checked against aren't.
func syscallSymbols() map[string]reflect.Value {
	out := map[string]reflect.Value{
		"Signal": reflect.ValueOf((*syscall.Signal)(nil)), "Errno": reflect.ValueOf((*syscall.Errno)(nil)),
		"Getpid": reflect.ValueOf(syscall.Getpid), "Getppid": reflect.ValueOf(syscall.Getppid), "Getuid": reflect.ValueOf(syscall.Getuid), "Getgid": reflect.ValueOf(syscall.Getgid),
	}
	for name, s := range map[string]syscall.Signal{
		"SIGABRT": syscall.SIGABRT, "SIGALRM": syscall.SIGALRM, "SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT, "SIGKILL": syscall.SIGKILL,
		"SIGPIPE": syscall.SIGPIPE, "SIGQUIT": syscall.SIGQUIT, "SIGSEGV": syscall.SIGSEGV, "SIGTERM": syscall.SIGTERM,
	} {
		out[name] = reflect.ValueOf(s)
	}
	for name, e := range map[string]syscall.Errno{
		"EACCES": syscall.EACCES, "EADDRINUSE": syscall.EADDRINUSE, "EAGAIN": syscall.EAGAIN, "EBADF": syscall.EBADF, "EBUSY": syscall.EBUSY,
		"ECANCELED": syscall.ECANCELED, "ECHILD": syscall.ECHILD, "ECONNABORTED": syscall.ECONNABORTED, "ECONNREFUSED": syscall.ECONNREFUSED,
		"ECONNRESET": syscall.ECONNRESET, "EEXIST": syscall.EEXIST, "EHOSTUNREACH": syscall.EHOSTUNREACH, "EINPROGRESS": syscall.EINPROGRESS,
		"EINTR": syscall.EINTR, "EINVAL": syscall.EINVAL, "EIO": syscall.EIO, "EISDIR": syscall.EISDIR, "EMFILE": syscall.EMFILE,
		"ENAMETOOLONG": syscall.ENAMETOOLONG, "ENETUNREACH": syscall.ENETUNREACH, "ENOENT": syscall.ENOENT, "ENOMEM": syscall.ENOMEM, "ENOSPC": syscall.ENOSPC,
		"ENOSYS": syscall.ENOSYS, "ENOTCONN": syscall.ENOTCONN, "ENOTDIR": syscall.ENOTDIR, "ENOTEMPTY": syscall.ENOTEMPTY, "ENOTSUP": syscall.ENOTSUP,
		"EPERM": syscall.EPERM, "EPIPE": syscall.EPIPE, "ERANGE": syscall.ERANGE, "EROFS": syscall.EROFS, "ESRCH": syscall.ESRCH, "ETIMEDOUT": syscall.ETIMEDOUT,
		"EWOULDBLOCK": syscall.EWOULDBLOCK, "EXDEV": syscall.EXDEV,
	} {
		out[name] = reflect.ValueOf(e)
	}
	maps.Copy(out, systemSyscalls())
	return out
}

// syscallAPI declares what stdapi.zip lacks of syscallSymbols.
func syscallAPI() string {
	var b strings.Builder
	b.WriteString("\ntype Errno uintptr\nfunc (Errno) Error() string\nfunc (Errno) Is(target error) bool\nfunc (Errno) Temporary() bool\nfunc (Errno) Timeout() bool\n")
	symbols := syscallSymbols()
	for _, name := range slices.Sorted(maps.Keys(symbols)) {
		switch t := symbols[name].Type(); {
		case t.Kind() == reflect.Func:
			fmt.Fprintf(&b, "func %s%s\n", name, strings.TrimPrefix(strings.ReplaceAll(t.String(), "syscall.", ""), "func"))
		case t.Kind() != reflect.Pointer:
			fmt.Fprintf(&b, "var %s %s\n", name, t.Name())
		}
	}
	return b.String()
}
