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
const kdaRows = 16

func (q *queue) KDA(o, to, from, qs, ks, v, g, beta metal.Buffer, n, heads, dim int) {
	// A task is some value columns of a head. The columns of S don't meet: each has its
	// own decay, error and output. A whole head, where there are enough of them, saves
	// preparing its rows for each part.
	width := dim
	if heads < 4*q.d.threads {
		width = kdaSpan
	}
	tasks, bounds := span(dim, width)
	scale := 1 / sqrt(float32(dim))
	q.each(heads*tasks, 4*n*heads*dim*dim, func(task int) {
		k := &q.d.kernels
		h := task / tasks
		lo, hi := bounds(task % tasks)
		s := q.d.scratch.get(3 * kdaRows * dim)
		qn, kn, decay := s.take(kdaRows*dim), s.take(kdaRows*dim), s.take(kdaRows*dim)
		state, in := to.F[h*dim*dim:(h+1)*dim*dim], from.F[h*dim*dim:(h+1)*dim*dim]
		for first := 0; first < n; first += kdaRows {
			rows := min(kdaRows, n-first)
			for r := range rows {
				at := ((first+r)*heads + h) * dim
				k.unit(qn[r*dim:(r+1)*dim], qs.F[at:at+dim], scale)
				k.unit(kn[r*dim:(r+1)*dim], ks.F[at:at+dim], 1)
				k.expSum(decay[r*dim:(r+1)*dim], g.F[at:at+dim], 0)
			}
			for lo := lo; lo < hi; lo += kdaSpan {
				hi := min(lo+kdaSpan, hi)
				source := in
				for r := range rows {
					at := ((first+r)*heads + h) * dim
					k.kdaStep(state[lo:], source[lo:], o.F[at+lo:at+hi], v.F[at+lo:at+hi],
						qn[r*dim:(r+1)*dim], kn[r*dim:(r+1)*dim], decay[r*dim:(r+1)*dim], beta.F[(first+r)*heads+h], dim)
					source = state
				}
			}
			in = state
		}
		q.d.scratch.put(s)
	})
}
