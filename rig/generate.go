package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"deltafin/engine"
	"deltafin/trace"
)

// A PromptError is a prompt that can't be computed.
type PromptError struct{ Want, Got string }

func (e *PromptError) Error() string { return fmt.Sprintf("prompt: want %s, got %s", e.Want, e.Got) }

// Generate runs one request. progress may be nil; it is called from one
// goroutine and should return soon. When ctx is cancelled Generate returns what
// it has with Finish "interrupted" and a nil error.
//
// The error is a *PromptError, an *engine.SettingError, *engine.TokenError or
// *engine.LengthError for a request that can't be run, or the expert source's.
func (r *Rig) Generate(ctx context.Context, q Request, progress func(Progress)) (*Generation, error) {
	return r.generate(ctx, q, nil, progress)
}

// Trace is Generate that also records the routes of every prompt and new token. It
// computes the whole prompt: kept states have no routes.
func (r *Rig) Trace(ctx context.Context, q Request, progress func(Progress)) (*Generation, *trace.Trace, error) {
	rec := newRecorder(r)
	q.Fresh = true
	g, err := r.generate(ctx, q, rec, progress)
	if err != nil {
		return nil, nil, err
	}
	return g, rec.trace(g), nil
}

func (r *Rig) generate(ctx context.Context, q Request, rec *recorder, progress func(Progress)) (*Generation, error) {
	begin := time.Now()
	o := r.options(q)
	if err := o.Check(); err != nil {
		return nil, err
	}
	ids, err := r.prompt(ctx, q)
	if err != nil && err == ctx.Err() {
		return r.finish(&Generation{PromptIDs: []int{}, IDs: []int{}, Finish: FinishInterrupted}, nil, begin), nil
	} else if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	g := &Generation{PromptIDs: ids, IDs: []int{}, Finish: FinishInterrupted}
	done, err := r.take(ctx)
	if errors.Is(err, ErrClosed) {
		return nil, err
	} else if err != nil {
		return r.finish(g, nil, begin), nil
	}
	defer done()

	run := newRun(r, rec)
	s, err := r.prefill(ctx, ids, q.Fresh, run, progress)
	defer func() { run.measure(g, s) }()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return r.finish(g, s, begin), nil
	} else if err != nil {
		return nil, err
	}

	var first, last time.Time
	o.Hook = &run.hook
	out, err := engine.Generate(ctx, s, r.tok, o, func(id int, text string) {
		if id >= 0 {
			last = time.Now()
			if first.IsZero() {
				first = last
			}
		}
		progress(Progress{PrefillDone: len(ids), PrefillTotal: len(ids), IsToken: id >= 0, Token: max(id, 0), Text: text})
	})
	if err != nil {
		return nil, err
	}
	g.Stats.Rounds = s.Len() - len(ids)
	if all := len(ids) + len(out.IDs); rec != nil && out.Finish != FinishInterrupted && s.Len() < min(all, r.model.MaxPositionEmbeddings) {
		// The last token was sampled, not computed; its routes are wanted.
		if err := s.Extend(ctx, out.IDs[len(out.IDs)-1:], engine.ExtendOptions{Hook: &run.hook}); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	g.IDs, g.Text, g.Finish = append(g.IDs, out.IDs...), out.Text, out.Finish
	if !first.IsZero() {
		g.Stats.TTFTSeconds = first.Sub(begin).Seconds()
	}
	if d := last.Sub(first).Seconds(); d > 0 {
		g.Stats.DecodeTokensPerS = float64(len(out.IDs)-1) / d
	}
	return r.finish(g, s, begin), nil
}

// options are q's, for the engine.
func (r *Rig) options(q Request) engine.GenerateOptions {
	return engine.GenerateOptions{
		MaxTokens: q.MaxTokens,
		Sampling:  engine.Sampling{Temperature: q.Temperature, TopP: q.TopP, TopK: q.TopK, Seed: q.Seed},
		StopIDs:   r.stopIDs(),
		Stop:      q.Stop,
	}
}

// stopIDs are <|end_of_msg|>, config's eos_token_id, and [EOS], the id before it.
func (r *Rig) stopIDs() []int { return []int{r.model.EOSTokenID, r.model.EOSTokenID - 1} }

// prompt is the token ids that q asks for, checked. Encoding a long text ends early
// when ctx does, or when the text outgrows the model.
func (r *Rig) prompt(ctx context.Context, q Request) ([]int, error) {
	var ids []int
	if q.Continue != "" {
		r.mu.Lock()
		tokens, ok := r.kept.tokens(q.Continue)
		r.mu.Unlock()
		if !ok {
			return nil, &PromptError{"Continue to name one of this engine's recent generations", fmt.Sprintf("%q", q.Continue)}
		}
		ids = append(ids, tokens...)
	}
	switch {
	case q.IDs != nil && (q.Prompt != "" || q.Segments != nil), q.Prompt != "" && q.Segments != nil:
		return nil, &PromptError{"text, ids or a conversation", "more than one of them"}
	case q.IDs != nil:
		ids = append(ids, q.IDs...)
	case q.Segments != nil:
		for _, s := range q.Segments {
			if s.Markup {
				ids = append(ids, r.tok.EncodeMarkup(s.Text)...)
			} else if err := r.encode(ctx, &ids, s.Text); err != nil {
				return nil, err
			}
		}
	default:
		if err := r.encode(ctx, &ids, q.Prompt); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, &PromptError{"at least one token", "an empty prompt"}
	}
	if err := r.model.Check(0, ids); err != nil {
		return nil, err
	}
	return ids, nil
}

// encode appends a text's tokens to ids.
func (r *Rig) encode(ctx context.Context, ids *[]int, text string) error {
	for part := range r.tok.EncodeParts(text) {
		*ids = append(*ids, part...)
		if err := ctx.Err(); err != nil {
			return err
		}
		if n := len(*ids); n > r.model.MaxPositionEmbeddings {
			return &PromptError{fmt.Sprintf("at most %d tokens, the model's positions", r.model.MaxPositionEmbeddings), fmt.Sprintf("a text of %d or more", n)}
		}
	}
	return nil
}

// prefill computes what no kept state has of ids, and keeps the state at their end
// for the next request. Also when it fails, the sequence is at what was committed.
func (r *Rig) prefill(ctx context.Context, ids []int, fresh bool, run *run, progress func(Progress)) (*engine.Sequence, error) {
	var s *engine.Sequence
	if !fresh {
		r.mu.Lock()
		s = r.kept.longest(ids)
		r.mu.Unlock()
	}
	if s == nil {
		s = r.model.NewSequence()
	}
	run.reused = s.Len()
	rest := ids[run.reused:]
	if len(rest) == 0 {
		return s, nil
	}
	begin := time.Now()
	defer func() {
		run.prefilled, run.prefillTime = s.Len()-run.reused, time.Since(begin)
	}()
	progress(Progress{PrefillDone: run.reused, PrefillTotal: len(ids)})
	err := s.Extend(ctx, rest, engine.ExtendOptions{Hook: &run.hook, Progress: func(done, _ int) {
		progress(Progress{PrefillDone: run.reused + done, PrefillTotal: len(ids)})
	}})
	if err != nil {
		return s, err
	}
	r.mu.Lock()
	r.kept.keep(s)
	r.mu.Unlock()
	return s, nil
}

// finish keeps the state and the tokens of g.
func (r *Rig) finish(g *Generation, s *engine.Sequence, begin time.Time) *Generation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s != nil {
		r.kept.keep(s)
	}
	g.ID = r.kept.record(slices.Concat(g.PromptIDs, g.IDs))
	g.Stats.PromptTokens, g.Stats.Tokens = len(g.PromptIDs), len(g.IDs)
	g.Stats.LoadSeconds, r.loaded = r.loaded.Seconds(), 0
	g.Stats.Loads = r.loads
	g.Stats.ElapsedSeconds = time.Since(begin).Seconds()
	_, g.Stats.PeakRSSBytes = residentBytes()
	return g
}

// Logits computes the row of logits after the prompt of q, and its n likeliest
// tokens.
func (r *Rig) Logits(ctx context.Context, q Request, n int) (top []TokenProb, logits []float32, err error) {
	ids, err := r.prompt(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	if n < 0 {
		return nil, nil, &engine.SettingError{Name: "n", Want: "a count from 0 up", Got: fmt.Sprint(n)}
	}
	done, err := r.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	s, err := r.prefill(ctx, ids, q.Fresh, newRun(r, nil), func(Progress) {})
	if err != nil {
		return nil, nil, err
	}
	logits = slices.Clone(s.Logits())
	all := engine.Sampling{}.Distribution(logits)
	for _, t := range all[:min(n, len(all))] {
		top = append(top, TokenProb{ID: t.ID, Text: r.tok.Decode([]int{t.ID}), Logit: logits[t.ID], Prob: t.Prob})
	}
	return top, logits, nil
}
