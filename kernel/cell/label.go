package cell

import (
	"context"
	"runtime/pprof"
	"strconv"
	"unsafe"
)

// A goroutine inherits the profiler labels of the one that started it, and so
// they say which cell a goroutine belongs to, however long after the cell it
// prints. runtime/pprof sets labels but doesn't read them back; the runtime
// keeps this symbol reachable for packages that need to.
//
//go:linkname profLabel runtime/pprof.runtime_getProfLabel
func profLabel() unsafe.Pointer

// A label marks goroutines. Its context keeps the runtime's label set alive, so
// that no other label ever has the same address.
type label struct {
	ctx     context.Context
	pointer unsafe.Pointer
}

// setLabel marks the calling goroutine, and those it will start, with a new label.
func setLabel(n uint64) label {
	ctx := pprof.WithLabels(context.Background(), pprof.Labels("cell", strconv.FormatUint(n, 10)))
	pprof.SetGoroutineLabels(ctx)
	return label{ctx: ctx, pointer: profLabel()}
}

// clearLabel takes the mark off the calling goroutine.
func clearLabel() { pprof.SetGoroutineLabels(context.Background()) }
