package cpu

import "deltafin/metal"

func (q *queue) Latent(cache []metal.Buffer, first int, kv, w metal.Buffer, n int, s metal.MLAShape, eps float32) {
	q.rows(n, n*(s.KVRank+s.Rope), simple{do: latent, vs: cache, first: first, x: kv.F, w: w.F[:s.KVRank], dim: s.KVRank + s.Rope, a: eps})
}

func latent(o *simple, part int, _ *scratch) {
	for i, hi := o.span(part); i < hi; i++ {
		row, position := o.row(o.x, i), o.first+i
		out := o.row(o.vs[position/metal.LatentBlock].F, position%metal.LatentBlock)
		normed := len(o.w)
		o.k.rmsNorm(out[:normed], row[:normed], o.w, o.a)
		copy(out[normed:], row[normed:])
	}
}

// MLA is defined head by head and row by row. The keys' half of kv_b is folded into
// the query by axpy; a score is dot(folded, [c|r])·scale. Each block of LatentBlock
// positions, counted from position 0, is summed by itself against its own maximum;
// blocks then merge in order, and the values' half takes the mean latent to the
// output. How rows, heads and blocks are shared among threads changes none of it.
func (q *queue) MLA(o, qs metal.Buffer, cache []metal.Buffer, first int, kvB metal.Matrix, n int, s metal.MLAShape) {
	const most = 2 << 20 // floats of folded queries at a time
	m := &q.mla
	width := s.KVRank + s.Rope
	head, rows := s.Nope+s.Rope, max(1, most/(s.Heads*width))
	for i := 0; i < n; i += rows {
		*m = mla{
			MLAShape: s, k: &q.d.kernels, cache: cache, kvB: kvB, width: width,
			o: o.F[i*s.Heads*s.V:], q: qs.F[i*s.Heads*head:], n: min(rows, n-i), first: first + i,
			folded: m.folded, means: m.means, states: m.states, blocks: m.blocks,
		}
		m.run(q)
	}
	m.o, m.q, m.cache, m.kvB = nil, nil, nil, metal.Matrix{} // scratch outlives them
}

// mla is an MLA being run: n rows at positions first …
type mla struct {
	metal.MLAShape
	k     *kernels
	o, q  []float32
	cache []metal.Buffer
	kvB   metal.Matrix
	width int
	n     int
	first int
	span  int // rows of a part of fold and unfold

	folded  []float32 // [n][Heads][width]
	means   []float32 // [Heads][n][KVRank]: sums so far; at last means, unzipped
	states  []float32 // [n][Heads][4]: the greatest score so far, the sum of weights, working memory
	blocks  []float32 // [blocks][n][Heads][blockFloats]: sums that wait to merge
	base    int       // the first of those blocks
	merging int       // their number
	phase   func(m *mla, i int, s *scratch)
}

func (m *mla) part(i int, s *scratch) { m.phase(m, i, s) }

func (m *mla) run(q *queue) {
	m.folded = grow(m.folded, m.n*m.Heads*m.width)
	m.means = grow(m.means, m.n*m.Heads*m.KVRank)
	m.states = grow(m.states, m.n*m.Heads*4)
	// Where there are enough, each thread has rows of its own.
	m.span = m.n
	if least := ownInputs / 2 * q.d.Threads(); m.n >= least {
		m.span = (m.n + 2*q.d.Threads() - 1) / (2 * q.d.Threads())
	}
	spans := (m.n + m.span - 1) / m.span
	m.do(q, (*mla).fold, spans*m.Heads, m.n*m.Heads*m.KVRank*m.Nope)

	last := m.first + m.n
	cost := m.n * last * m.Heads * (m.width + m.KVRank)
	blocks := (last + metal.LatentBlock - 1) / metal.LatentBlock
	if m.n >= 4*q.d.Threads() || blocks == 1 {
		m.do(q, (*mla).attendRow, m.n, cost)
	} else {
		// Few rows: threads share the blocks, and their sums merge afterwards.
		const most = 1 << 20 // floats of those sums
		step := max(q.d.Threads(), most/(m.n*m.Heads*m.blockFloats()))
		m.blocks = grow(m.blocks, min(step, blocks)*m.n*m.Heads*m.blockFloats())
		for m.base = 0; m.base < blocks; m.base += step {
			m.do(q, (*mla).attendBlock, min(step, blocks-m.base), cost/blocks*min(step, blocks-m.base))
			m.merging = min(step, blocks-m.base)
			m.do(q, (*mla).mergeBlocks, m.n*m.Heads, m.n*m.Heads*m.KVRank*m.merging)
		}
	}
	m.do(q, (*mla).unfold, spans*m.Heads, m.n*m.Heads*m.KVRank*m.V)
}

func (m *mla) do(q *queue, phase func(*mla, int, *scratch), parts, cost int) {
	m.phase = phase
	q.run(parts, cost, m)
}

// fold folds the keys' half of kv_b into some queries of a head.
func (m *mla) fold(part int, s *scratch) {
	h, lo, hi := m.rows(part)
	head, keys := m.Nope+m.Rope, h*(m.Nope+m.V)
	// A sum of rows may be taken in any order of columns: here in that of matrix products.
	c, sums := s.floats(m.Nope*m.KVRank), s.floats((hi-lo)*m.KVRank)
	m.k.widenRows(c, &m.kvB, keys, keys+m.Nope, s)
	clear(sums)
	m.k.mixes(sums, m.KVRank, m.q[(lo*m.Heads+h)*head:], m.Heads*head, hi-lo, c, m.KVRank, m.Nope, m.KVRank)
	for i := lo; i < hi; i++ {
		folded := m.folded[(i*m.Heads+h)*m.width:][:m.width]
		zip(folded[:m.KVRank], sums[(i-lo)*m.KVRank:])
		copy(folded[m.KVRank:], m.q[(i*m.Heads+h)*head+m.Nope:])
	}
}

// blockFloats is the size of a block's sum for one row and head: the weighted latents,
// the greatest score, the sum of weights.
func (m *mla) blockFloats() int { return m.KVRank + 2 }

// attendRow sums row i over its blocks, for all heads.
func (m *mla) attendRow(i int, s *scratch) {
	sums := s.floats(m.Heads * m.blockFloats())
	for b := 0; b*metal.LatentBlock <= m.first+i; b++ {
		m.attend(sums, i, b, s)
		for h := range m.Heads {
			m.merge(i, h, b, sums[h*m.blockFloats():][:m.blockFloats()])
		}
	}
	for h := range m.Heads {
		m.finish(i, h, s)
	}
}

// attendBlock sums block base+b for all rows and heads.
func (m *mla) attendBlock(b int, s *scratch) {
	size := m.Heads * m.blockFloats()
	for i := range m.n {
		if (m.base+b)*metal.LatentBlock <= m.first+i {
			m.attend(m.blocks[(b*m.n+i)*size:][:size], i, m.base+b, s)
		}
	}
}

// mergeBlocks takes the sums of attendBlock in, for one row and head.
func (m *mla) mergeBlocks(at int, s *scratch) {
	i, h := at/m.Heads, at%m.Heads
	last := (m.first + i) / metal.LatentBlock
	for b := range min(m.merging, last+1-m.base) {
		m.merge(i, h, m.base+b, m.blocks[((b*m.n+i)*m.Heads+h)*m.blockFloats():][:m.blockFloats()])
	}
	if m.base <= last && last < m.base+m.merging {
		m.finish(i, h, s)
	}
}

// attend is one block's sums for row i and all heads: sums[Heads][blockFloats].
func (m *mla) attend(sums []float32, i, b int, s *scratch) {
	n := min(metal.LatentBlock, m.first+i+1-b*metal.LatentBlock)
	p, rows := s.floats(m.Heads*metal.LatentBlock), m.cache[b].F
	defer s.release(p)
	// Tiles take four positions: some beyond n, of which nothing is used.
	m.k.dots(p, metal.LatentBlock, rows, m.width, (n+3)&^3, m.folded[i*m.Heads*m.width:], m.width, m.Heads, m.width, s)
	for h := range m.Heads {
		sum := sums[h*m.blockFloats():][:m.blockFloats()]
		sum[m.KVRank], sum[m.KVRank+1] = m.weigh(p[h*metal.LatentBlock:][:n])
		clear(sum[:m.KVRank])
	}
	m.k.mixes(sums, m.blockFloats(), p, metal.LatentBlock, m.Heads, rows, m.width, n, m.KVRank)
}

// weigh makes scores weights: e^(p·scale−top), and returns top and their sum.
func (m *mla) weigh(p []float32) (top, sum float32) {
	m.k.scales(p, p, m.Scale)
	top = m.k.largest(p)
	return top, m.k.expSum(p, p, top)
}

func (m *mla) mean(i, h int) []float32 { return m.means[(h*m.n+i)*m.KVRank:][:m.KVRank] }

// merge adds block b to what came before it.
func (m *mla) merge(i, h, b int, sum []float32) {
	part, blockTop, weight := sum[:m.KVRank], sum[m.KVRank], sum[m.KVRank+1]
	mean, state := m.mean(i, h), m.states[(i*m.Heads+h)*4:][:4]
	if b == 0 {
		copy(mean, part)
		state[0], state[1] = blockTop, weight
		return
	}
	top := max(state[0], blockTop)
	factors := state[2:]
	factors[0], factors[1] = state[0], blockTop
	m.k.expSum(factors, factors, top)
	old, add := factors[0], factors[1]
	state[0], state[1] = top, float32(state[1]*old)+float32(weight*add)
	m.k.scales(mean, mean, old)
	m.k.addScaleds(mean, part, add)
}

// finish divides by the weights' sum, and unzips the mean for kv_b.
func (m *mla) finish(i, h int, s *scratch) {
	mean, total := m.mean(i, h), m.states[(i*m.Heads+h)*4+1]
	whole := s.floats(m.KVRank)[:m.KVRank]
	defer s.release(whole)
	for j := range whole {
		whole[j] = mean[j] / total
	}
	m.k.unzipRows(mean, whole, m.KVRank, 1)
}

// unfold takes some mean latents of a head to its outputs.
func (m *mla) unfold(part int, s *scratch) {
	h, lo, hi := m.rows(part)
	first := h*(m.Nope+m.V) + m.Nope
	m.k.product(m.o[(lo*m.Heads+h)*m.V:], m.Heads*m.V, &m.kvB, first, first+m.V, m.means[(h*m.n+lo)*m.KVRank:], hi-lo, s)
}

// rows are the head and the rows of a part of fold or unfold.
func (m *mla) rows(part int) (h, lo, hi int) {
	lo = part / m.Heads * m.span
	return part % m.Heads, lo, min(m.n, lo+m.span)
}

// grow is s with at least n elements; what they are is not kept.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
