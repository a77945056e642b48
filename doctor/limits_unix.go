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

// freeBytes is the space for this user where a folder is; false when unknown.
func freeBytes(dir string) (int64, bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
