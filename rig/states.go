package rig

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"deltafin/engine"
)

// states keeps sequences of earlier requests, so that a prompt that extends one of
// them computes only what is new. A kept sequence is never extended itself: it is
// forked. The least recently used goes first.
type states struct {
	list    []kept // most recently used last
	texts   []text // most recent last
	prefix  string // of IDs: another engine's mean nothing here
	counter int    // of generations, the last one's number
}

func newStates(counter int) states {
	return states{prefix: fmt.Sprintf("%08x", rand.Uint32()), counter: counter}
}

type kept struct {
	seq   *engine.Sequence
	bytes int64
}

// text is the tokens of a finished generation, by its ID.
type text struct {
	id     string
	tokens []int
}

const (
	keptSequences = 16
	keptBytes     = 2 << 30 // four K3 states
	keptTexts     = 256
)

// longest returns a fork of the longest kept sequence that begins ids, or nil. One
// that is ids itself must have its logits.
func (s *states) longest(ids []int) *engine.Sequence {
	best := -1
	for i, k := range s.list {
		n := k.seq.Len()
		if n > len(ids) || n == len(ids) && k.seq.Logits() == nil || !slices.Equal(k.seq.Tokens(), ids[:n]) {
			continue
		}
		if best < 0 || n > s.list[best].seq.Len() {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	k := s.list[best]
	s.list = append(slices.Delete(s.list, best, best+1), k)
	return k.seq.Fork()
}

// keep keeps a fork of seq, without the memory that seq has for going on.
func (s *states) keep(seq *engine.Sequence) {
	if seq.Len() == 0 {
		return
	}
	for i, k := range s.list {
		if slices.Equal(k.seq.Tokens(), seq.Tokens()) {
			s.list = slices.Delete(s.list, i, i+1)
			if seq.Logits() == nil {
				seq = k.seq // the one that knows what comes next
			}
			break
		}
	}
	seq = seq.Fork()
	s.list = append(s.list, kept{seq, seq.Bytes()})
	total := int64(0)
	for i := len(s.list) - 1; i >= 0; i-- {
		total += s.list[i].bytes
		if len(s.list)-i > keptSequences || total > keptBytes && i < len(s.list)-1 {
			s.list = slices.Delete(s.list, 0, i+1)
			return
		}
	}
}

// record notes a generation's tokens and returns the ID that finds them again.
func (s *states) record(tokens []int) string {
	s.counter++
	t := text{fmt.Sprintf("%s-%d", s.prefix, s.counter), tokens}
	s.texts = append(s.texts, t)
	if len(s.texts) > keptTexts {
		s.texts = slices.Delete(s.texts, 0, 1)
	}
	return t.id
}

// tokens are a generation's, by its ID.
func (s *states) tokens(id string) ([]int, bool) {
	for _, t := range s.texts {
		if t.id == id {
			return t.tokens, true
		}
	}
	return nil, false
}
