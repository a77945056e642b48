package cpu

import "deltafin/metal"

func (q *queue) Embed(y metal.Buffer, table metal.Matrix, ids []int) {
	dim := table.Cols
	q.each(len(ids), len(ids)*dim, func(i int) {
		widen(y.F[i*dim:(i+1)*dim], &table, ids[i])
	})
}

func (q *queue) RMSNorm(y, x, w metal.Buffer, n, dim int, eps float32) {
	q.each(n, n*dim, func(i int) {
		rmsNorm(y.F[i*dim:(i+1)*dim], x.F[i*dim:(i+1)*dim], w.F, eps)
	})
}

// rmsNorm is y = w·x/sqrt(mean(x²)+eps); y may be x.
func rmsNorm(y, x, w []float32, eps float32) {
	r := 1 / rootMeanSquare(x, eps)
	for i := range x {
		y[i] = float32(w[i] * (x[i] * r))
	}
}

func rootMeanSquare(x []float32, eps float32) float32 {
	return sqrt(dot(x, x)/float32(len(x)) + eps)
}

func (q *queue) AttnRes(y metal.Buffer, vs []metal.Buffer, normProj metal.Buffer, n, dim int, eps float32) {
	q.each(n, 3*n*dim*len(vs), func(i int) {
		at := func(v metal.Buffer) []float32 { return v.F[i*dim : (i+1)*dim] }
		p := make([]float32, len(vs))
		for j, v := range vs {
			p[j] = dot(at(v), normProj.F) / rootMeanSquare(at(v), eps)
		}
		softmax(p)
		out := at(y)
		clear(out)
		for j, v := range vs {
			q.d.kernels.axpy(out, p[j], at(v))
		}
	})
}

func softmax(x []float32) {
	top := x[0]
	for _, v := range x[1:] {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		x[i] = exp(v - top)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// elements runs f over spans of n floats, each costing about cost multiply-adds.
func (q *queue) elements(n, cost int, f func(lo, hi int)) {
	tasks, bounds := span(n, max(1, min(4096, (n+7)/8)))
	q.each(tasks, n*cost, func(i int) { f(bounds(i)) })
}

func (q *queue) Zero(y metal.Buffer) { clear(y.F) }

func (q *queue) Add(y, x metal.Buffer) {
	q.elements(len(x.F), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y.F[i] += x.F[i]
		}
	})
}

func (q *queue) MulSigmoid(y, g metal.Buffer) {
	q.elements(len(g.F), 16, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y.F[i] = float32(y.F[i] * sigmoid(g.F[i]))
		}
	})
}

func (q *queue) Sigmoid(y, x metal.Buffer) {
	q.elements(len(x.F), 16, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y.F[i] = sigmoid(x.F[i])
		}
	})
}

func (q *queue) SiTU(y, g, u metal.Buffer, beta, lambda float32) {
	q.elements(len(g.F), 48, func(lo, hi int) {
		situ(y.F[lo:hi], g.F[lo:hi], u.F[lo:hi], beta, lambda)
	})
}

func situ(y, g, u []float32, beta, lambda float32) {
	for i := range g {
		gate := beta * tanh(g[i]/beta) * sigmoid(g[i])
		y[i] = float32(gate * (lambda * tanh(u[i]/lambda)))
	}
}

func (q *queue) AddRows(y, x metal.Buffer, rows []int32, weights []float32, dim int) {
	q.each(len(rows), len(rows)*dim, func(i int) {
		out, in := y.F[int(rows[i])*dim:(int(rows[i])+1)*dim], x.F[i*dim:(i+1)*dim]
		for j := range out {
			out[j] += float32(weights[i] * in[j])
		}
	})
}
