//go:build !noasm

package cpu

// peakOf is the loops of a level.
func peakOf(level string) peak {
	switch level {
	case "AVX2":
		return peak{fmaPeakAVX2, 12 * 8, func(b []byte) { readPeakAVX2(&b[0], len(b)) }}
	case "AVX-512":
		return peak{fmaPeakAVX512, 12 * 16, func(b []byte) { readPeakAVX512(&b[0], len(b)) }}
	}
	return portablePeak
}
