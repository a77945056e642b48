//go:build !amd64 || noasm

package cpu

// peakOf is the loops of a level: the portable ones, which stand for NEON's too.
func peakOf(string) peak { return portablePeak }
