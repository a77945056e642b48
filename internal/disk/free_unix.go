//go:build !windows

package disk

import "syscall"

// Free is the space for this user where a folder is; false when unknown.
func Free(dir string) (int64, bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
