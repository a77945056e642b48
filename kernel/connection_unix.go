//go:build !windows

package kernel

import "io/fs"

// readableByOthers says whether a file's mode lets others than its owner read it.
func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o044 != 0 }
