package cpu

import "deltafin/metal"

// taps is the width of the short convolution: the current row and three before it.
const taps = 4

func (q *queue) ShortConv(y, next, x, prev, w metal.Buffer, n, c int) {
	o := &q.conv
	*o = shortConv{k: &q.d.kernels, y: y.F, next: next.F, x: x.F, prev: prev.F, w: w.F, n: n, c: c, size: spanSize(c)}
	q.run((c+o.size-1)/o.size, c*n*(taps+16), o)
	*o = shortConv{}
}

// shortConv is a ShortConv being run; a part is some channels.
type shortConv struct {
	k                   *kernels
	y, next, x, prev, w []float32
	n, c, size          int
}

func (o *shortConv) part(i int, _ *scratch) {
	lo, hi := i*o.size, min((i+1)*o.size, o.c)
	o.k.convolve(o.y[lo:], o.next[lo:], o.x[lo:], o.prev[lo:], o.w[lo*taps:hi*taps], o.c, o.n, hi-lo)
	for r := range o.n {
		row := o.y[r*o.c+lo : r*o.c+hi]
		o.k.silus(row, row)
	}
}

func (q *queue) KDAGate(y, x, aLog, dtBias metal.Buffer, lower float32, n, heads, dim int) {
	q.rates = grow(q.rates, heads)
	q.d.kernels.expSum(q.rates[:heads], aLog.F[:heads], 0)
	q.each(heads, n*heads*dim*16, simple{do: kdaGate, y: y.F, x: x.F, w: q.rates, u: dtBias.F, a: lower, n: n, size: heads, dim: dim})
}

// kdaGate is all rows of head h, as in KDA; size is the number of heads.
func kdaGate(o *simple, h int, _ *scratch) {
	rate, bias := o.w[h], o.row(o.u, h)
	for i := range o.n {
		at := i*o.size + h
		o.k.gates(o.row(o.y, at), o.row(o.x, at), bias, rate, o.a)
	}
}

// kdaRows is how many rows a task of KDA prepares at a time before it walks them.
const kdaRows = 32

func (q *queue) KDA(o, to, from, qs, ks, v, g, beta metal.Buffer, n, heads, dim int) {
	spans := (dim + kdaSpan - 1) / kdaSpan
	size := max(1, heads*spans/(8*q.d.Threads()))
	q.kda = kda{&q.d.kernels, o.F, to.F, from.F, qs.F, ks.F, v.F, g.F, beta.F, n, heads, dim, spans, size}
	q.run((heads*spans+size-1)/size, 4*n*heads*dim*dim, &q.kda)
	q.kda = kda{}
}

// kda is a KDA being run. An item is kdaSpan value columns of a head. The columns of S
// don't meet: each has its own decay, error and output. A part is some items, in the
// order of memory; long parts prepare a head's rows once for all its columns.
type kda struct {
	k             *kernels
	o, to, from   []float32
	q, ks, v, g   []float32
	beta          []float32
	n, heads, dim int
	spans, size   int // items of a head, and of a part
}

func (o *kda) part(i int, s *scratch) {
	w := kdaWalk{kda: o, local: s.floats(kdaSpan * o.dim), qn: s.floats(kdaRows * o.dim), kn: s.floats(kdaRows * o.dim), decay: s.floats(kdaRows * o.dim)}
	for lo, hi := i*o.size, min((i+1)*o.size, o.heads*o.spans); lo < hi; {
		h := lo / o.spans
		end := min(hi, (h+1)*o.spans)
		w.head(h, (lo-h*o.spans)*kdaSpan, min((end-h*o.spans)*kdaSpan, o.dim), end < hi)
		lo = end
	}
}

// kdaWalk is a part of a KDA and its working memory.
type kdaWalk struct {
	*kda
	local         []float32 // some columns of a state, between the first row and the last
	qn, kn, decay []float32 // of kdaRows rows
}

// head walks the rows for value columns lo … hi-1 of head h; more says that the task goes
// on with the next head.
func (w *kdaWalk) head(h, lo, hi int, more bool) {
	k, dim := w.k, w.dim
	state, in := w.to[h*dim*dim:(h+1)*dim*dim], w.from[h*dim*dim:(h+1)*dim*dim]
	scale := 1 / sqrt(float32(dim))
	for first := 0; first < w.n; first += kdaRows {
		rows := min(kdaRows, w.n-first)
		for r := range rows {
			at := ((first+r)*w.heads + h) * dim
			k.unit(w.qn[r*dim:(r+1)*dim], w.q[at:at+dim], scale)
			k.unit(w.kn[r*dim:(r+1)*dim], w.ks[at:at+dim], 1)
			k.expSum(w.decay[r*dim:(r+1)*dim], w.g[at:at+dim], 0)
		}
		for lo := lo; lo < hi; lo += kdaSpan {
			end := min(lo+kdaSpan, hi)
			ahead := 0
			if end < hi {
				ahead = kdaSpan
			} else if more && w.n == 1 {
				ahead = dim*dim - lo
			}
			source, sourceStride := in[lo:], dim
			for r := range rows {
				dest, destStride := w.local, kdaSpan
				if r == rows-1 {
					dest, destStride = state[lo:], dim
				}
				row := (first+r)*w.heads + h
				at := row * dim
				k.kdaStep(dest, source, destStride, sourceStride, w.o[at+lo:at+end], w.v[at+lo:at+end],
					w.qn[r*dim:(r+1)*dim], w.kn[r*dim:(r+1)*dim], w.decay[r*dim:(r+1)*dim], w.beta[row], ahead)
				source, sourceStride, ahead = dest, destStride, 0
			}
		}
		in = state
	}
}
