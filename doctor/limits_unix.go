//go:build !windows

package doctor

import "syscall"

// descriptorLimit is how many files this process may have open; 0 is no limit.
func descriptorLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<40 {
		return 0
	}
	return uint64(limit.Cur)
}
