package cpu

import "deltafin/metal"

// taps is the width of the short convolution: the current row and three before it.
const taps = 4

func (q *queue) ShortConv(y, next, x, prev, w metal.Buffer, n, c int) {
	q.elements(c, n*(taps+16), func(lo, hi int) {
		k := &q.d.kernels
		k.convolve(y.F[lo:], next.F[lo:], x.F[lo:], prev.F[lo:], w.F[lo*taps:hi*taps], c, n, hi-lo)
		for i := range n {
			row := y.F[i*c+lo : i*c+hi]
			k.silus(row, row)
		}
	})
}

func (q *queue) KDAGate(y, x, aLog, dtBias metal.Buffer, lower float32, n, heads, dim int) {
	q.each(heads, n*heads*dim*16, func(h int) {
		rate, bias := exp(aLog.F[h]), dtBias.F[h*dim:(h+1)*dim]
		for i := range n {
			at := (i*heads + h) * dim
			q.d.kernels.gates(y.F[at:at+dim], x.F[at:at+dim], bias, rate, lower)
		}
	})
}

// kdaRows is how many rows a task of KDA prepares at a time before it walks them.
const kdaRows = 32

func (q *queue) KDA(o, to, from, qs, ks, v, g, beta metal.Buffer, n, heads, dim int) {
	// An item is kdaSpan value columns of a head. The columns of S don't meet: each has its
	// own decay, error and output. A task is some items, in the order of memory; long
	// tasks prepare a head's rows once for all its columns.
	spans := (dim + kdaSpan - 1) / kdaSpan
	tasks, bounds := span(heads*spans, max(1, heads*spans/(8*q.d.threads)))
	q.each(tasks, 4*n*heads*dim*dim, func(task int) {
		s := q.d.scratch.get((3*kdaRows + kdaSpan) * dim)
		w := kdaWalk{k: &q.d.kernels.vectors, o: o.F, to: to.F, from: from.F, q: qs.F, v: v.F, beta: beta.F, n: n, heads: heads, dim: dim,
			local: s.take(kdaSpan * dim), qn: s.take(kdaRows * dim), kn: s.take(kdaRows * dim), decay: s.take(kdaRows * dim)}
		for lo, hi := bounds(task); lo < hi; {
			h := lo / spans
			end := min(hi, (h+1)*spans)
			w.head(h, (lo-h*spans)*kdaSpan, min((end-h*spans)*kdaSpan, dim), end < hi, ks.F, g.F)
			lo = end
		}
		q.d.scratch.put(s)
	})
}

// kdaWalk is a task of KDA: its operands and its working memory.
type kdaWalk struct {
	k             *vectors
	o, to, from   []float32
	q, v, beta    []float32
	n, heads, dim int

	local         []float32 // some columns of a state, between the first row and the last
	qn, kn, decay []float32 // of kdaRows rows
}

// head walks the rows for value columns lo … hi-1 of head h; more says that the task goes
// on with the next head.
func (w *kdaWalk) head(h, lo, hi int, more bool, ks, g []float32) {
	k, dim := w.k, w.dim
	state, in := w.to[h*dim*dim:(h+1)*dim*dim], w.from[h*dim*dim:(h+1)*dim*dim]
	scale := 1 / sqrt(float32(dim))
	for first := 0; first < w.n; first += kdaRows {
		rows := min(kdaRows, w.n-first)
		for r := range rows {
			at := ((first+r)*w.heads + h) * dim
			k.unit(w.qn[r*dim:(r+1)*dim], w.q[at:at+dim], scale)
			k.unit(w.kn[r*dim:(r+1)*dim], ks[at:at+dim], 1)
			k.expSum(w.decay[r*dim:(r+1)*dim], g[at:at+dim], 0)
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
