//go:build noasm || !(amd64 || arm64)

package cpu

// peakOf is the loops of a level: there is the portable one alone.
func peakOf(string) peak { return portablePeak }
