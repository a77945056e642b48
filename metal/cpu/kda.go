package cpu

import "deltafin/metal"

// taps is the width of the short convolution: the current row and three before it.
const taps = 4

func (q *queue) ShortConv(y, next, x, prev, w metal.Buffer, n, c int) {
	q.elements(c, n*(taps+16), func(lo, hi int) {
		for ch := lo; ch < hi; ch++ {
			w := w.F[ch*taps : (ch+1)*taps]
			a, b, p := prev.F[ch], prev.F[c+ch], prev.F[2*c+ch] // the rows before, oldest first
			for i := range n {
				cur := x.F[i*c+ch]
				s := fma(w[0], a, 0)
				s = fma(w[1], b, s)
				s = fma(w[2], p, s)
				s = fma(w[3], cur, s)
				y.F[i*c+ch] = silu(s)
				a, b, p = b, p, cur
			}
			next.F[ch], next.F[c+ch], next.F[2*c+ch] = a, b, p
		}
	})
}

func (q *queue) KDAGate(y, x, aLog, dtBias metal.Buffer, lower float32, n, heads, dim int) {
	q.each(heads, n*heads*dim*16, func(h int) {
		rate := exp(aLog.F[h])
		for i := range n {
			for ch := h * dim; ch < (h+1)*dim; ch++ {
				j := i*heads*dim + ch
				y.F[j] = lower * sigmoid(rate*(x.F[j]+dtBias.F[ch]))
			}
		}
	})
}

// valueSpan is how many of a head's value columns one task walks. The columns of S
// don't meet: each has its own decay, error and output.
const valueSpan = 32

func (q *queue) KDA(o, to, from, qs, ks, v, g, beta metal.Buffer, n, heads, dim int) {
	spans, bounds := span(dim, valueSpan)
	q.each(heads*spans, 4*n*heads*dim*dim, func(task int) {
		h := task / spans
		lo, hi := bounds(task % spans)
		width := hi - lo
		s := to.F[h*dim*dim : (h+1)*dim*dim]
		in := from.F[h*dim*dim : (h+1)*dim*dim]
		for i := range dim {
			copy(s[i*dim+lo:i*dim+hi], in[i*dim+lo:i*dim+hi])
		}
		qn, kn, u := make([]float32, dim), make([]float32, dim), make([]float32, width)
		scale := 1 / sqrt(float32(dim))
		for i := range n {
			at := (i*heads + h) * dim
			unit(qn, qs.F[at:at+dim], scale)
			unit(kn, ks.F[at:at+dim], 1)
			q.d.kernels.kdaStep(s[lo:], u, o.F[at+lo:at+hi], qn, kn, v.F[at+lo:at+hi], g.F[at:at+dim], beta.F[i*heads+h], dim)
		}
	})
}

// unit is y = x/√(Σx²+1e-6)·scale.
func unit(y, x []float32, scale float32) {
	r := scale / sqrt(dot(x, x)+1e-6)
	for i := range x {
		y[i] = float32(x[i] * r)
	}
}

// kdaStep advances some value columns of one head by one row (docs/k3.md, KDA):
// S ← diag(e^g)S, u = β(v − Sᵀk̂), S ← S + k̂uᵀ, o = Sᵀq̂. s begins at the first of
// the len(v) columns, key rows stride floats apart; q, k and g have one entry a
// key row. Sums run over ascending key rows.
func (kn *kernels) kdaStep(s, u, o, q, k, v, g []float32, beta float32, stride int) {
	clear(u)
	for i := range k {
		row := s[i*stride : i*stride+len(v)]
		decay := exp(g[i])
		for j := range row {
			row[j] = float32(row[j] * decay)
		}
		kn.axpy(u, k[i], row)
	}
	for j := range u {
		u[j] = float32(beta * (v[j] - u[j]))
	}
	clear(o)
	for i := range k {
		row := s[i*stride : i*stride+len(v)]
		for j := range row {
			row[j] += float32(k[i] * u[j])
		}
		kn.axpy(o, q[i], row)
	}
}
