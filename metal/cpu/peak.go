package cpu

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// peak is what one instruction set can do at most, as loops to be timed.
type peak struct {
	fma     func(x *float32, n int) // n steps of fmaStep multiply-adds that don't wait for memory
	fmaStep int
	read    func(b []byte) // loads all of b, a multiple of readStep bytes
}

// readStep is a multiple of what every read loads in a step.
const readStep = 512

var portablePeak = peak{fma: fmaPeak, fmaStep: 12, read: func(b []byte) { readPeak(b) }}

// fmaPeak is n steps of a multiplication and an addition in each of twelve sums that
// don't wait for each other.
//
//go:noinline
func fmaPeak(x *float32, n int) {
	a := *x
	var s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11 float32
	for range n {
		s0 = float32(s0*a) + a
		s1 = float32(s1*a) + a
		s2 = float32(s2*a) + a
		s3 = float32(s3*a) + a
		s4 = float32(s4*a) + a
		s5 = float32(s5*a) + a
		s6 = float32(s6*a) + a
		s7 = float32(s7*a) + a
		s8 = float32(s8*a) + a
		s9 = float32(s9*a) + a
		s10 = float32(s10*a) + a
		s11 = float32(s11*a) + a
	}
	*x = a + 0*(s0+s1+s2+s3+s4+s5+s6+s7+s8+s9+s10+s11)
}

// readPeak sums b in words, so that each is loaded.
//
//go:noinline
func readPeak(b []byte) uint64 {
	var s0, s1, s2, s3 uint64
	for ; len(b) >= 32; b = b[32:] {
		s0 += binary.LittleEndian.Uint64(b)
		s1 += binary.LittleEndian.Uint64(b[8:])
		s2 += binary.LittleEndian.Uint64(b[16:])
		s3 += binary.LittleEndian.Uint64(b[24:])
	}
	return s0 + s1 + s2 + s3
}

// FMARate measures how many floating-point operations a second (two for each
// multiply-add) this CPU reaches on so many threads with the instructions of a level,
// one of Levels, when nothing waits for memory. It takes about d.
func FMARate(level string, threads int, d time.Duration) float64 {
	p := peakOf(level)
	return 2 * rate(threads, d, func(int) func() int {
		x := float32(1e-3)
		return func() int {
			const steps = 100_000
			p.fma(&x, steps)
			return steps * p.fmaStep
		}
	})
}

// ReadRate measures how many bytes a second this CPU reads on so many threads with
// the instructions of a level, when each thread goes through its share of size bytes
// again and again: from the cache that holds them, or from memory. It takes about d,
// and the time to fill size bytes.
func ReadRate(level string, threads, size int, d time.Duration) float64 {
	p := peakOf(level)
	share := max(size/threads/readStep, 1) * readStep
	all := make([]byte, threads*share)
	for i := range all {
		all[i] = byte(i) // pages that were never written are one page of zeros
	}
	return rate(threads, d, func(thread int) func() int {
		b := all[thread*share:][:share]
		at := 0
		return func() int { // short enough to end in time
			n := min(1<<20, share-at)
			p.read(b[at : at+n])
			at = (at + n) % share
			return n
		}
	})
}

// rate runs the work of each thread, once at least, until d has passed, and returns what
// all of them did a second.
func rate(threads int, d time.Duration, work func(thread int) func() int) float64 {
	var wg sync.WaitGroup
	var total atomic.Int64
	start := make(chan struct{})
	for i := range threads {
		step := work(i)
		wg.Go(func() {
			runtime.LockOSThread() // a thread each, from the first step on
			defer runtime.UnlockOSThread()
			<-start
			n := 0
			for began := time.Now(); n == 0 || time.Since(began) < d; {
				n += step()
			}
			total.Add(int64(n))
		})
	}
	began := time.Now()
	close(start)
	wg.Wait()
	return float64(total.Load()) / time.Since(began).Seconds()
}
