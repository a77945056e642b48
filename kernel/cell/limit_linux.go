package cell

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// limitMemory makes allocations fail, and so end the process at once, when they
// would exceed what it uses now by more than n bytes. RLIMIT_DATA counts writable
// private memory only: the address space that the Go runtime merely reserves
// doesn't count, as it would with RLIMIT_AS.
func limitMemory(n int64) {
	if n <= 0 {
		return
	}
	debug.SetMemoryLimit(n - n/10)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return
	}
	fields := bytes.Fields(statm)
	if len(fields) < 6 {
		return
	}
	pages, err := strconv.ParseUint(string(fields[5]), 10, 64)
	if err != nil {
		return
	}
	limit := pages*uint64(os.Getpagesize()) + uint64(n)
	var have unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_DATA, &have) == nil && have.Max < limit {
		limit = have.Max
	}
	unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
}
