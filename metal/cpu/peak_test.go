package cpu

import (
	"testing"
	"time"
)

// Every level's loops run and give a rate; each does the work that it counts.
func TestPeak(t *testing.T) {
	for _, level := range Levels() {
		for _, threads := range []int{1, 3} {
			if r := FMARate(level, threads, time.Millisecond); !(r > 1e6) {
				t.Errorf("%s, %d threads: %g FLOP/s", level, threads, r)
			}
			for _, size := range []int{1, 100_000, 5 << 20} {
				if r := ReadRate(level, threads, size, time.Millisecond); !(r > 1e6) {
					t.Errorf("%s, %d threads, %d bytes: %g bytes/s", level, threads, size, r)
				}
			}
		}
	}
}

// The portable reading loop reads every byte.
func TestReadPeak(t *testing.T) {
	b := make([]byte, readStep)
	for i := range b {
		b[i] = 1
		if got, want := readPeak(b), uint64(0x01)<<(8*(i%8)); got != want {
			t.Fatalf("byte %d: %x, want %x", i, got, want)
		}
		b[i] = 0
	}
}
