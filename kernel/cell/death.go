package cell

import (
	"strings"

	"deltafin/kernel"
)

// gone is what every death means for the notebook.
const gone = "The process that ran the cell ended: variables of earlier cells are gone; weights, caches and traces are kept. The next cell runs in a fresh process."

// goneBetween is gone for a death while no cell ran.
const goneBetween = "Variables of earlier cells are gone; weights, caches and traces are kept. This cell runs in a fresh process."

// explainDeath turns what the Go runtime wrote at the end of a child, and its
// exit state, into the error of the cell that was running.
func explainDeath(state, crash string, killed bool) *kernel.CellError {
	fail := func(name, value string) *kernel.CellError {
		return &kernel.CellError{Name: name, Value: value, Traceback: []string{name + ": " + value, gone}}
	}
	if killed {
		return fail("interrupted", "the cell did not stop when interrupted, so its process was ended")
	}
	for line := range strings.Lines(crash) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "runtime: goroutine stack exceeds"), strings.HasPrefix(line, "fatal error: stack overflow"):
			return fail("stack overflow", "stack overflow: a function calls itself without end")
		case strings.HasPrefix(line, "runtime: out of memory"), strings.HasPrefix(line, "runtime: cannot allocate memory"),
			strings.HasPrefix(line, "fatal error: runtime: out of memory"), strings.HasPrefix(line, "fatal error: runtime: cannot allocate memory"),
			strings.HasPrefix(line, "fatal error: out of memory"):
			return fail("out of memory", "out of memory: the cell asked for more than its memory limit allows")
		case strings.HasPrefix(line, "fatal error: "):
			return fail("fatal error", strings.TrimPrefix(line, "fatal error: "))
		case strings.HasPrefix(line, "panic: "):
			v := strings.TrimPrefix(line, "panic: ")
			v, _, _ = strings.Cut(v, " [recovered")
			return fail("panic", v+" (in a goroutine)")
		case strings.HasPrefix(line, "SIGSEGV"), strings.HasPrefix(line, "unexpected fault address"):
			return fail("fatal error", "segmentation violation")
		}
	}
	if strings.Contains(state, "killed") {
		return fail("killed", "the operating system ended the process (signal: killed), most likely because memory ran out")
	}
	return fail("process ended", "the process that ran the cell ended ("+state+")")
}
