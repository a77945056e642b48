//go:build !linux

package cell

import "runtime/debug"

// limitMemory makes the garbage collector work harder near n bytes: this system
// has no limit that a process's data can be held to.
func limitMemory(n int64) {
	if n > 0 {
		debug.SetMemoryLimit(n - n/10)
	}
}
