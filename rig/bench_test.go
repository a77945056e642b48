package rig

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func BenchmarkDecode(b *testing.B) {
	r := open(b)
	g, err := r.Generate(b.Context(), Request{Prompt: "The capital of France is", MaxTokens: 100}, nil)
	must(b, err)
	b.ReportMetric(g.Stats.DecodeTokensPerS, "tokens/s")
}

func BenchmarkPrefill(b *testing.B) {
	r := open(b)
	ids := make([]int, 512)
	for i := range ids {
		ids[i] = 300 + i*7
	}
	g, err := r.Generate(b.Context(), Request{IDs: ids}, nil)
	must(b, err)
	b.ReportMetric(g.Stats.PrefillTokensPerS, "tokens/s")
}

// The times of single tokens, with the garbage collector and without it: alone, and while
// the process passes on what a cell prints, whose messages are garbage.
func BenchmarkTokenTimes(b *testing.B) {
	r := open(b)
	print := map[string]any{"name": "stdout", "text": strings.Repeat("a line that a cell prints\n", 400)}
	for _, messages := range []int{0, 1000} { // a second
		for _, collect := range []int{100, -1} {
			b.Run(fmt.Sprintf("messages=%d/GOGC=%d", messages, collect), func(b *testing.B) {
				defer debug.SetGCPercent(debug.SetGCPercent(collect))
				runtime.GC()
				stop := make(chan struct{})
				var serving sync.WaitGroup
				if messages > 0 {
					serving.Go(func() {
						tick := time.NewTicker(time.Second / time.Duration(messages))
						defer tick.Stop()
						for {
							select {
							case <-stop:
								return
							case <-tick.C:
								text, err := json.Marshal(print)
								must(b, err)
								var back map[string]any
								must(b, json.Unmarshal(text, &back))
							}
						}
					})
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var times, collecting []time.Duration // of all tokens; of those in which a collection ended
				cycles := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
				metrics.Read(cycles)
				seen := cycles[0].Value.Uint64()
				for len(times) < 3000 {
					last := time.Time{}
					_, err := r.Generate(b.Context(), Request{Prompt: "Once upon a time", MaxTokens: 500, Temperature: 1, Seed: uint64(len(times))}, func(p Progress) {
						if now := time.Now(); p.IsToken {
							if !last.IsZero() {
								times = append(times, now.Sub(last))
								metrics.Read(cycles)
								if n := cycles[0].Value.Uint64(); n != seen {
									collecting, seen = append(collecting, now.Sub(last)), n
								}
							}
							last = time.Now()
						}
					})
					must(b, err)
				}
				runtime.ReadMemStats(&after)
				close(stop)
				serving.Wait()
				if slices.Sort(collecting); len(collecting) > 0 {
					b.ReportMetric(float64(collecting[len(collecting)/2].Microseconds()), "collecting-p50-µs")
				}
				slices.Sort(times)
				for name, at := range map[string]int{"p50-µs": len(times) / 2, "p99-µs": len(times) * 99 / 100, "p99.9-µs": len(times) * 999 / 1000, "max-µs": len(times) - 1} {
					b.ReportMetric(float64(times[at].Microseconds()), name)
				}
				b.ReportMetric(float64(after.NumGC-before.NumGC), "collections")
				b.ReportMetric(float64(after.PauseTotalNs-before.PauseTotalNs)/1e3, "paused-µs")
			})
		}
	}
}
