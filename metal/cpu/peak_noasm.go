//go:build !amd64 || noasm

package cpu

// peakOf is the loops of a level: there is one.
func peakOf(string) peak { return portablePeak }
