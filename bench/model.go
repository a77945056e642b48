package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"deltafin/engine"
	"deltafin/rig"
	"deltafin/tokenizer"
)

// ModelOptions says what to measure of a model.
type ModelOptions struct {
	Rig     rig.Options       // of each engine; its Threads are ignored
	Threads []int             // an engine for each; one at least
	Tokens  []int             // decode: the lengths of the texts before; prefill: of the prompts
	New     int               // decode: tokens a run
	Runs    int               // measurements of each, after one that isn't counted; 1 at least
	Ops     bool              // time the operations too, which costs a little
	Status  func(text string) // what is being done; nil tells nobody
}

// ModelResult is one line of a table: some measurements of one engine.
type ModelResult struct {
	Threads    int      `json:"threads"`
	Context    int      `json:"context"` // decode: tokens before
	Prompt     int      `json:"prompt"`  // prefill: its tokens
	TokensPerS Spread   `json:"tokens_per_s"`
	Runs       int      `json:"runs"`
	Ops        []OpTime `json:"ops,omitempty"` // of all runs
}

// ModelReport is what Decode and Prefill measured.
type ModelReport struct {
	Model   string        `json:"model"`
	Device  string        `json:"device"` // the last engine's
	Results []ModelResult `json:"results"`
}

// engines is one warm model for each number of threads.
type engines struct {
	rigs  []*rig.Rig
	times []*Times
}

func open(ctx context.Context, o ModelOptions) (*engines, error) {
	e := new(engines)
	for _, threads := range o.Threads {
		options, times := o.Rig, new(Times)
		options.Threads = threads
		if o.Ops {
			options.Watch = times.Watch
		}
		r, err := rig.Open(ctx, options)
		if err != nil {
			e.close()
			return nil, err
		}
		e.rigs, e.times = append(e.rigs, r), append(e.times, times)
	}
	return e, nil
}

func (e *engines) close() {
	for _, r := range e.rigs {
		r.Close()
	}
}

// measurement is one engine's of one length.
type measurement struct {
	result  ModelResult
	tokens  int // of a run
	rates   []float64
	total   time.Duration
	watched *Times                                                         // the engine's
	times   *Times                                                         // of this measurement's runs
	run     func(ctx context.Context, start func()) (time.Duration, error) // calls start where its time begins
}

// check refuses lengths that the model has no positions for.
func (o *ModelOptions) check(m rig.ModelInfo) error {
	for _, n := range o.Tokens {
		if n+o.New+1 > m.MaxPositions {
			return &engine.LengthError{Tokens: n + o.New + 1, Max: m.MaxPositions}
		}
	}
	return nil
}

// Decode measures the tokens a second of generating, after texts of random tokens.
// The error is rig.Open's, an *engine.LengthError or the context's; with the last, the
// report has what was measured before, or is nil.
func Decode(ctx context.Context, o ModelOptions) (*ModelReport, error) {
	return o.measure(ctx, func(r *rig.Rig, n int) (*measurement, error) {
		text := r.Measure()
		if n > 0 {
			o.status("computing the %d tokens before, %d threads", n, r.Info().Threads)
			if _, err := text.Prefill(ctx, randomIDs(r, n)); err != nil {
				return nil, err
			}
		}
		return &measurement{result: ModelResult{Context: n}, run: func(ctx context.Context, start func()) (time.Duration, error) {
			return text.Decode(ctx, o.New, start)
		}}, nil
	}, func(int) int { return o.New })
}

// Prefill measures the tokens a second of computing prompts of random tokens. The
// error is Decode's.
func Prefill(ctx context.Context, o ModelOptions) (*ModelReport, error) {
	return o.measure(ctx, func(r *rig.Rig, n int) (*measurement, error) {
		ids := randomIDs(r, n)
		return &measurement{result: ModelResult{Prompt: n}, run: func(ctx context.Context, start func()) (time.Duration, error) {
			start()
			return r.Measure().Prefill(ctx, ids)
		}}, nil
	}, func(n int) int { return n })
}

func (o *ModelOptions) status(format string, args ...any) {
	if o.Status != nil {
		o.Status(fmt.Sprintf(format, args...))
	}
}

// measure runs what prepare makes for each engine and length, by turns; tokens is how
// many tokens one run of a length computes.
func (o *ModelOptions) measure(ctx context.Context, prepare func(r *rig.Rig, n int) (*measurement, error), tokens func(n int) int) (*ModelReport, error) {
	e, err := open(ctx, *o)
	if err != nil {
		return nil, err
	}
	defer e.close()
	info := e.rigs[len(e.rigs)-1].Info()
	if err := o.check(info); err != nil {
		return nil, err
	}
	var all []*measurement
	for i, r := range e.rigs {
		for _, n := range o.Tokens {
			m, err := prepare(r, n)
			if err != nil {
				return nil, err
			}
			m.result.Threads = r.Info().Threads
			m.tokens, m.watched, m.times = tokens(n), e.times[i], new(Times)
			all = append(all, m)
		}
	}
	for i := range o.Runs + 1 {
		for _, m := range all {
			o.status("run %d of %d: %d threads, %d tokens", i, o.Runs, m.result.Threads, max(m.result.Context, m.result.Prompt))
			spent, err := m.run(ctx, m.watched.Reset)
			if err != nil {
				return o.report(info, all), err
			}
			if i > 0 { // the first is for the caches
				m.rates = append(m.rates, float64(m.tokens)/spent.Seconds())
				m.total += spent
				m.times.merge(m.watched)
			}
		}
	}
	return o.report(info, all), nil
}

// report is what was measured so far, and nil when that is nothing.
func (o *ModelOptions) report(info rig.ModelInfo, all []*measurement) *ModelReport {
	report := &ModelReport{Model: info.Name, Device: info.Device}
	for _, m := range all {
		if len(m.rates) == 0 {
			continue
		}
		m.result.TokensPerS, m.result.Runs = spreadOf(m.rates), len(m.rates)
		if o.Ops {
			m.result.Ops = m.times.List(m.total)
		}
		report.Results = append(report.Results, m.result)
	}
	if len(report.Results) == 0 {
		return nil
	}
	return report
}

// randomIDs are n ordinary tokens, the same each time.
func randomIDs(r *rig.Rig, n int) []int {
	random := rand.New(rand.NewPCG(1, 2))
	ids := make([]int, n)
	for i := range ids {
		ids[i] = random.IntN(r.Info().Vocab - tokenizer.SpecialCount)
	}
	return ids
}
