//go:build soak

package notebooks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
)

// TestSoak is a long working day of one kernel: thousands of cancelled generations
// and dozens of killed cells, with the same answer and the same engine all along.
func TestSoak(t *testing.T) {
	const cancellations, kills = 2000, 40
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	process, client := connect(t, ctx)
	execute := func(code string) *kerneltest.Exchange {
		t.Helper()
		x, err := client.Execute(ctx, code)
		if err != nil {
			t.Fatalf("%s: %v\nthe kernel said: %s", code, err, process.Log())
		}
		return x
	}
	var resident int64
	check := func(after string) {
		t.Helper()
		x := execute(`g := Generate("The capital of France is", Params{MaxTokens: 8, Quiet: true, Fresh: true}); fmt.Print(g.Stats.Loads, g.Text, "|", Memory().RSS)`)
		var loads int
		var rss int64
		out := x.Stream("stdout")
		if _, err := fmt.Sscanf(out, "%d Paris. The Eiffel T|%d", &loads, &rss); err != nil || loads != 1 {
			t.Fatalf("after %s: %q, %v", after, out, x.Content())
		}
		if resident == 0 {
			resident = rss
		}
		if rss > resident+512<<20 {
			t.Fatalf("after %s: the kernel grew from %d to %d bytes", after, resident, rss)
		}
	}
	check("the start")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range cancellations {
		x, err := client.Send(kernel.Shell, "execute_request", kerneltest.Cell(`Generate("Once upon a time", Params{MaxTokens: 100000, Quiet: true})`), "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond)
		if _, err := client.Request(ctx, kernel.Control, "interrupt_request", map[string]any{}); err != nil {
			t.Fatal(err)
		}
		// An interrupt that overtakes its cell finds nothing to stop: ask again.
		for waiting := true; waiting; {
			patience, done := context.WithTimeout(ctx, time.Second)
			if err := x.Wait(patience); err == nil {
				waiting = false
			} else if ctx.Err() != nil {
				t.Fatal(err)
			} else if _, err := client.Request(ctx, kernel.Control, "interrupt_request", map[string]any{}); err != nil {
				t.Fatal(err)
			}
			done()
		}
		if i%100 == 99 {
			check(fmt.Sprintf("%d cancellations", i+1))
		}
	}
	deadly := []string{
		"os.Exit(3)",
		"go func() { panic(\"there\") }(); time.Sleep(time.Minute)",
		"m := map[int]int{}; for range 8 { go func() { for i := range 1 << 30 { m[i%7] = i } }() }; time.Sleep(time.Minute)",
		"hoard := make([]byte, 1<<38); for i := range hoard { hoard[i] = 1 }",
	}
	for i := range kills {
		execute(deadly[i%len(deadly)])
		check(fmt.Sprintf("%d kills, the last %s", i+1, deadly[i%len(deadly)]))
	}
}
