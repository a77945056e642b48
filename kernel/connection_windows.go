package kernel

import "io/fs"

// readableByOthers is unknown: a file's mode doesn't show its access list.
func readableByOthers(fs.FileInfo) bool { return false }
