package cpu

import "deltafin/metal"

func (q *queue) Embed(y metal.Buffer, table metal.Matrix, ids []int) {
	dim := table.Cols
	q.each(len(ids), len(ids)*dim, func(i int) {
		widen(y.F[i*dim:(i+1)*dim], &table, ids[i])
	})
}

func (q *queue) MatMul(y, x metal.Buffer, w metal.Matrix, n int) {
	tasks, bounds := span(w.Rows, rowsPerTask(w.Rows, w.Cols*n))
	q.each(tasks, n*w.Rows*w.Cols, func(i int) {
		lo, hi := bounds(i)
		q.d.kernels.matRows(y.F[lo:], w.Rows, &w, lo, hi, x.F, n, make([]float32, w.Cols))
	})
}

// rowsPerTask cuts rows, each of cost multiply-adds, in tasks short enough to be
// shared evenly and to end soon after a cancellation: a multiple of four rows.
func rowsPerTask(rows, cost int) int {
	const taskCost = 256 << 10
	return (max(1, min((rows+7)/8, taskCost/max(cost, 1))) + 3) &^ 3
}

func (q *queue) RMSNorm(y, x, w metal.Buffer, n, dim int, eps float32) {
	q.each(n, n*dim, func(i int) {
		q.d.kernels.rmsNorm(y.F[i*dim:(i+1)*dim], x.F[i*dim:(i+1)*dim], w.F, eps)
	})
}

func (q *queue) AttnRes(y metal.Buffer, vs []metal.Buffer, normProj metal.Buffer, n, dim int, eps float32) {
	k := &q.d.kernels
	q.each(n, 3*n*dim*len(vs), func(i int) {
		s := q.d.scratch.get(len(vs))
		p := s.take(len(vs))
		for j, v := range vs {
			product, squares := k.resDots(v.F[i*dim:(i+1)*dim], normProj.F[:dim])
			p[j] = product / rootMean(squares, dim, eps)
		}
		k.softmax(p)
		k.mixed(y.F[i*dim:(i+1)*dim], vs, i, dim, p)
		q.d.scratch.put(s)
	})
}

// elements runs f over spans of n floats, each costing about cost multiply-adds.
func (q *queue) elements(n, cost int, f func(lo, hi int)) {
	tasks, bounds := span(n, (max(1, min(4096, (n+7)/8))+15)&^15)
	q.each(tasks, n*cost, func(i int) { f(bounds(i)) })
}

func (q *queue) Zero(y metal.Buffer) { clear(y.F) }

func (q *queue) Add(y, x metal.Buffer) {
	q.elements(len(x.F), 1, func(lo, hi int) {
		q.d.kernels.adds(y.F[lo:hi], x.F[lo:hi])
	})
}

func (q *queue) MulSigmoid(y, g metal.Buffer) {
	q.elements(len(g.F), 16, func(lo, hi int) {
		q.d.kernels.mulSigmoids(y.F[lo:hi], g.F[lo:hi])
	})
}

func (q *queue) Sigmoid(y, x metal.Buffer) {
	q.elements(len(x.F), 16, func(lo, hi int) {
		q.d.kernels.sigmoids(y.F[lo:hi], x.F[lo:hi])
	})
}

func (q *queue) SiTU(y, g, u metal.Buffer, beta, lambda float32) {
	q.elements(len(g.F), 48, func(lo, hi int) {
		q.d.kernels.situ(y.F[lo:hi], g.F[lo:hi], u.F[lo:hi], beta, lambda)
	})
}

func (q *queue) AddRows(y, x metal.Buffer, rows []int32, weights []float32, dim int) {
	q.each(len(rows), len(rows)*dim, func(i int) {
		q.d.kernels.addScaleds(y.F[int(rows[i])*dim:(int(rows[i])+1)*dim], x.F[i*dim:(i+1)*dim], weights[i])
	})
}
