//go:build !noasm

package cpu

// peakOf is the loops of a level.
func peakOf(level string) peak {
	if level == "NEON" {
		return peak{fmaPeakNEON, 24 * 4, func(b []byte) { readPeakNEON(&b[0], len(b)) }}
	}
	return portablePeak
}
