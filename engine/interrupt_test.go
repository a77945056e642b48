package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"deltafin/engine"
	"deltafin/engine/enginetest"
	"deltafin/metal"
	"deltafin/metal/cpu"
)

// k3Widths is a model of two layers with K3's sizes of matrices and heads, but for the
// dense layer's, and few experts: 1.8 GB. With -short all are smaller.
func k3Widths(t testing.TB) (*engine.Model, *cancelling) {
	t.Helper()
	c := enginetest.Wide()
	if !testing.Short() {
		c.HiddenSize, c.RoutedExpertHiddenSize, c.MoEIntermediateSize, c.IntermediateSize = 7168, 3584, 3072, 3072
		c.NumAttentionHeads, c.LinearAttn.NumHeads, c.QLoRARank, c.KVLoRARank = 96, 96, 1536, 512
		c.NumExperts, c.NumExpertsPerToken, c.NumSharedExperts = 4, 3, 1
		c.NumHiddenLayers, c.LinearAttn.KDALayers, c.LinearAttn.FullAttnLayers = 2, []int{1}, []int{2}
	}
	snapshot, err := enginetest.OpenInMemory(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	device := &cancelling{Device: cpu.Open(cpu.Options{Threads: 2})}
	t.Cleanup(func() { device.Close(); snapshot.Close() })
	m, err := engine.Load(&c, snapshot, device, metal.BF16)
	if err != nil {
		t.Fatal(err)
	}
	return m, device
}

// cancelling is a device that calls cancel, in a goroutine, when the matrix product
// begins that at counts down to.
type cancelling struct {
	metal.Device
	cancel   func()
	at       int
	products int // since the last pass that ended
	done     chan struct{}
}

func (c *cancelling) Begin(ctx context.Context) metal.Queue {
	return cancellingQueue{c.Device.Begin(ctx), c}
}

type cancellingQueue struct {
	metal.Queue
	c *cancelling
}

func (q cancellingQueue) MatMul(y, x metal.Buffer, w metal.Matrix, n int) {
	q.c.product()
	q.Queue.MatMul(y, x, w, n)
}

func (q cancellingQueue) Experts(z metal.Buffer, jobs []metal.Expert, beta, lambda float32) {
	q.c.product()
	q.Queue.Experts(z, jobs, beta, lambda)
}

func (c *cancelling) product() {
	if c.products++; c.products == c.at {
		cancel, done := c.cancel, make(chan struct{})
		c.done = done
		go func() {
			defer close(done)
			cancel()
		}()
	}
}

// interrupt extends s by ids and cancels beside the at-th matrix product. It returns the
// error, how long Extend took to return from then on, and whether it came so far.
func (c *cancelling) interrupt(ctx context.Context, s *engine.Sequence, ids []int, o engine.ExtendOptions, at int) (err error, late time.Duration, came bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var asked time.Time
	c.cancel = func() { asked = time.Now(); cancel() }
	c.products, c.at, c.done = 0, at, nil
	err = s.Extend(ctx, ids, o)
	back := time.Now()
	c.at = 0
	if c.done == nil {
		return err, 0, false
	}
	<-c.done
	return err, back.Sub(asked), true
}

// Interrupted in any product of a prompt or a token, the sequence is where the last chunk
// was committed, and goes on from there to the same logits.
func TestInterruptedAtK3sWidths(t *testing.T) {
	m, device := k3Widths(t)
	prompt, next := []int{1, 500, 37, 4, 255, 90, 3, 7}, []int{11}
	o := engine.ExtendOptions{Chunk: 5}
	whole := m.NewSequence()
	for _, ids := range [][]int{prompt, next} {
		if err := whole.Extend(t.Context(), ids, o); err != nil {
			t.Fatal(err)
		}
	}

	stopped := 0
	step := 5 // products between the interruptions
	if testing.Short() {
		step = 1
	}
	read := m.NewSequence()
	if err := read.Extend(t.Context(), prompt, o); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		before *engine.Sequence
		ids    []int
	}{{m.NewSequence(), prompt}, {read, next}} {
		for at := 1; ; at += step {
			s := part.before.Fork()
			committed := s.Len()
			o.Progress = func(done, _ int) { committed = part.before.Len() + done }
			err, _, came := device.interrupt(t.Context(), s, part.ids, o, at)
			if !came {
				break
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if s.Len() != committed {
				t.Fatalf("product %d: %d tokens, %d were committed", at, s.Len(), committed)
			}
			if err != nil {
				stopped++
			}
			all := slices.Concat(prompt, next)
			if !slices.Equal(s.Tokens(), all[:s.Len()]) {
				t.Fatalf("product %d: tokens %v", at, s.Tokens())
			}
			if err := s.Extend(t.Context(), all[s.Len():], o); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.Logits(), whole.Logits()) {
				t.Fatalf("product %d: interrupted and continued: other logits", at)
			}
		}
	}
	if stopped == 0 {
		t.Error("nothing was interrupted")
	}
}

// How soon Extend returns after an interruption beside each product of a prompt, and of
// a token.
func BenchmarkInterrupt(b *testing.B) {
	m, device := k3Widths(b)
	ids := make([]int, 128)
	for i := range ids {
		ids[i] = i
	}
	for name, ids := range map[string][]int{"prompt": ids, "token": ids[:1]} {
		b.Run(name, func(b *testing.B) {
			var times []time.Duration
			for range b.N {
				for at := 1; ; at++ {
					_, late, came := device.interrupt(b.Context(), m.NewSequence(), ids, engine.ExtendOptions{}, at)
					if !came {
						break
					}
					times = append(times, late)
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)-1].Microseconds()), "max-µs")
		})
	}
}
