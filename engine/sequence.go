package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"deltafin/metal"
)

// A Sequence is the state of one text: KDA states, latent caches, and the logits
// after its last token. It belongs to one goroutine.
//
// Extend commits whole chunks: when it is interrupted, the Sequence stays at the
// last committed token, and can be extended from there.
type Sequence struct {
	m      *Model
	tokens []int
	kda    []*kdaState      // by KDA layer: committed
	spare  []*kdaState      // by KDA layer: what a pass writes; nil until the first
	mla    [][]metal.Buffer // by MLA layer: blocks of LatentBlock positions
	logits []float32        // after the last token
	row    metal.Buffer     // where logits lie; empty after Fork, which copies them
	next   metal.Buffer     // where a pass writes the next ones
}

// NewSequence is an empty text.
func (m *Model) NewSequence() *Sequence {
	kda, mla := m.attentionLayers()
	s := &Sequence{m: m, kda: make([]*kdaState, kda), spare: make([]*kdaState, kda), mla: make([][]metal.Buffer, mla)}
	for i := range s.kda {
		s.kda[i] = m.newKDAState()
	}
	return s
}

// Len is the number of committed tokens.
func (s *Sequence) Len() int { return len(s.tokens) }

// Tokens are the committed tokens; the caller must not change them.
func (s *Sequence) Tokens() []int { return s.tokens }

// Logits is the row after the last committed token: nil for an empty text, and where
// Extend was interrupted before its last chunk. It holds until the next Extend; the
// caller must not change it.
func (s *Sequence) Logits() []float32 { return s.logits }

// Fork returns a second Sequence at the same place; each goes its own way. What
// they have in common is shared until one of them writes.
func (s *Sequence) Fork() *Sequence {
	for _, k := range s.kda {
		k.shared = true
	}
	f := &Sequence{m: s.m, tokens: slices.Clone(s.tokens), kda: slices.Clone(s.kda), spare: make([]*kdaState, len(s.spare)), mla: make([][]metal.Buffer, len(s.mla)), logits: slices.Clone(s.logits)}
	full, part := len(s.tokens)/metal.LatentBlock, len(s.tokens)%metal.LatentBlock
	for i, blocks := range s.mla {
		f.mla[i] = slices.Clone(blocks[:full]) // full blocks are never written again
		if part > 0 {
			tail := s.m.Device.NewBuffer(blocks[full].Len())
			copy(tail.F, blocks[full].F)
			f.mla[i] = append(f.mla[i], tail)
		}
	}
	return f
}

// Bytes is the memory of the Sequence's state, shared parts counted in full.
func (s *Sequence) Bytes() int64 {
	var floats int
	for i, k := range s.kda {
		n := k.QConv.Len() + k.KConv.Len() + k.VConv.Len() + k.S.Len()
		floats += n
		if s.spare[i] != nil {
			floats += n
		}
	}
	for _, blocks := range s.mla {
		for _, b := range blocks {
			floats += b.Len()
		}
	}
	return 4 * int64(floats+len(s.logits)+s.next.Len())
}

// ExtendOptions says how Extend goes about it. None of it changes a bit of the result.
type ExtendOptions struct {
	Chunk    int                   // rows at once; 0 means 256
	Hook     *Hook                 // nil watches nothing
	Progress func(done, total int) // after each committed chunk; nil tells nobody
}

// A TokenError is a token id that the model doesn't have.
type TokenError struct{ ID, Vocab int }

func (e *TokenError) Error() string {
	return fmt.Sprintf("engine: token id %d: want an id from 0 to %d", e.ID, e.Vocab-1)
}

// A LengthError is a text that is longer than the model's positions.
type LengthError struct{ Tokens, Max int }

func (e *LengthError) Error() string {
	return fmt.Sprintf("engine: the text would have %d tokens: this model has positions for %d", e.Tokens, e.Max)
}

// Check says whether ids can follow a text of the given number of tokens: the error
// is a *TokenError or a *LengthError.
func (m *Model) Check(after int, ids []int) error {
	for _, id := range ids {
		if id < 0 || id >= m.VocabSize {
			return &TokenError{id, m.VocabSize}
		}
	}
	if n := after + len(ids); n > m.MaxPositionEmbeddings {
		return &LengthError{n, m.MaxPositionEmbeddings}
	}
	return nil
}

// Extend computes ids after the committed tokens and commits them, chunk by chunk.
// The error is a *TokenError or *LengthError before anything is computed, the
// context's, the expert source's, or a *ValueError.
func (s *Sequence) Extend(ctx context.Context, ids []int, o ExtendOptions) error {
	if err := s.m.Check(len(s.tokens), ids); err != nil {
		return err
	}
	if o.Chunk <= 0 {
		o.Chunk = 256
	}
	if o.Hook == nil {
		o.Hook = &s.m.scratch.quiet
	}
	for done := 0; done < len(ids); {
		n := min(o.Chunk, len(ids)-done)
		if err := s.pass(ctx, ids[done:done+n], o.Hook, done+n == len(ids)); err != nil {
			return err
		}
		done += n
		if o.Progress != nil {
			o.Progress(done, len(ids))
		}
	}
	return nil
}

// pass computes and commits one chunk. Logits are computed for the last one, or for
// every row when the hook asks.
//
// Weights are read from mapped files. One that is cut short under the mapping makes
// the pass fail, not the process.
func (s *Sequence) pass(ctx context.Context, ids []int, hook *Hook, last bool) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			fault, ok := s.m.snapshot.Fault(v)
			if !ok {
				panic(v)
			}
			err = fault
		}
	}()
	m, n := s.m, len(ids)
	p := m.scratch.begin(ctx, m)
	p.s, p.hook, p.first, p.n = s, hook, len(s.tokens), n
	defer p.end()
	p.mixed, p.normed = p.rows(m.HiddenSize), p.rows(m.HiddenSize)
	p.routeIDs, p.routeWeights = grow(p.routeIDs, n*m.NumExpertsPerToken), grow(p.routeWeights, n*m.NumExpertsPerToken)

	x, err := m.forward(p, ids)
	if err != nil {
		return err
	}
	var logits metal.Buffer
	if (hook.Logits != nil || last) && s.next.Len() == 0 {
		s.next = m.Device.NewBuffer(m.VocabSize)
	}
	switch {
	case hook.Logits != nil:
		all := p.rows(m.VocabSize)
		p.q.MatMul(all, x, m.LMHead, n)
		if err := p.q.Wait(); err != nil {
			return err
		}
		hook.Logits(p.first, all.F)
		logits = s.next
		copy(logits.F, all.F[(n-1)*m.VocabSize:])
	case last:
		logits = s.next
		p.q.MatMul(logits, x.Slice((n-1)*m.HiddenSize, n*m.HiddenSize), m.LMHead, 1)
	}
	p.q.NotFinite(&p.notFinite, logits)
	if err := p.q.Wait(); err != nil {
		return err
	}
	if p.notFinite >= 0 {
		return &ValueError{Layer: m.NumHiddenLayers, Position: p.first + n - 1}
	}
	s.commit(ids, logits)
	return nil
}

// commit makes a finished pass part of the text.
func (s *Sequence) commit(ids []int, logits metal.Buffer) {
	for i, old := range s.kda {
		s.kda[i], s.spare[i] = s.spare[i], old
		if old.shared {
			s.spare[i] = nil
		}
	}
	s.tokens = append(s.tokens, ids...)
	s.logits = logits.F
	if logits.Len() > 0 {
		s.row, s.next = s.next, s.row
	}
}
