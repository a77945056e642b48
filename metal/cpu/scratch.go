package cpu

import "sync"

// scratch is a task's working memory, which the next task to ask gets again.
type scratch struct {
	floats []float32
	used   int
}

// take is the next n floats, with any content.
func (s *scratch) take(n int) []float32 {
	s.used += n
	return s.floats[s.used-n : s.used : s.used]
}

// scratches keeps what tasks have given back.
type scratches struct{ pool sync.Pool }

// get is a scratch of n floats.
func (p *scratches) get(n int) *scratch {
	s, _ := p.pool.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	if cap(s.floats) < n {
		s.floats = make([]float32, n)
	}
	s.floats, s.used = s.floats[:cap(s.floats)], 0
	return s
}

func (p *scratches) put(s *scratch) { p.pool.Put(s) }
