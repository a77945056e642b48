package cpu

import (
	"fmt"
	"runtime"
)

// Processors is how many threads compute when nobody says otherwise: as many as
// runtime.GOMAXPROCS, which knows the CPUs that the process may run on, and no more than
// the CPUs' time that its control group allows. Threads beyond that make each other wait:
// all of a group stop when its time is used up. Go's own number is such a limit rounded
// up, and 2 at least.
//
// why says what made it less than the machine's CPUs, and is empty when nothing did. A
// limit that changes later counts for devices opened later.
func Processors() (n int, why string) { return processors(runtime.GOMAXPROCS(0), timeLimit()) }

// processors is Processors for a given runtime.GOMAXPROCS and time limit, in CPUs; 0 is
// none.
func processors(most int, limit float64) (n int, why string) {
	switch cpus := runtime.NumCPU(); {
	case limit > 0 && limit < float64(most):
		return max(1, int(limit)), fmt.Sprintf("the CPU limit of its control group is %.4g", limit)
	case most < cpus:
		return most, fmt.Sprintf("GOMAXPROCS, of %d CPUs", cpus)
	}
	return most, ""
}
