package rig

import (
	"context"
	"time"

	"deltafin/engine"
)

// A Measured is a text whose passes are timed, for benchmarks. Nothing of it is kept
// for later requests. It belongs to one goroutine.
type Measured struct {
	r *Rig
	s *engine.Sequence
}

// Measure is a new, empty text.
func (r *Rig) Measure() *Measured { return &Measured{r, r.model.NewSequence()} }

// Prefill computes ids after what m has, in a request's chunks, and returns the time
// that took. The error is the context's or one of Generate's.
func (m *Measured) Prefill(ctx context.Context, ids []int) (time.Duration, error) {
	done, err := m.r.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	begin := time.Now()
	err = m.s.Extend(ctx, ids, engine.ExtendOptions{})
	return time.Since(begin), err
}

// Decode computes the likeliest continuation of m of n tokens, one at a time, and
// returns the time that took. m stays as it is; stop ids don't end it. One more token
// comes before them, untimed, for it makes the copy's states; start, which may be nil,
// is called after it.
func (m *Measured) Decode(ctx context.Context, n int, start func()) (time.Duration, error) {
	done, err := m.r.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	s, id := m.s.Fork(), m.r.model.BOSTokenID
	var greedy engine.Sampler
	if logits := s.Logits(); logits != nil {
		id = greedy.Choose(logits, s.Len())
	}
	var begin time.Time
	for i := range n + 1 {
		if i == 1 {
			if start != nil {
				start()
			}
			begin = time.Now()
		}
		if err := s.Extend(ctx, []int{id}, engine.ExtendOptions{}); err != nil {
			return 0, err
		}
		id = greedy.Choose(s.Logits(), s.Len())
	}
	return time.Since(begin), nil
}
