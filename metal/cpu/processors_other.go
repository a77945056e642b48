//go:build !linux

package cpu

// timeLimit is how many CPUs' time the system allows this process: it has no such limits.
func timeLimit() float64 { return 0 }
