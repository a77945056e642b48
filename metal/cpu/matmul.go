package cpu

import "deltafin/metal"

func (q *queue) MatMul(y, x metal.Buffer, w metal.Matrix, n int) {
	// Inputs that the second cache doesn't hold come block by block, and all weights for
	// each: there are fewer bytes of weights than of inputs.
	const most = 256 << 10 // floats of inputs
	inputs := n
	if n*w.Cols > most {
		inputs = min(n, tileInputs)
	}
	in := q.unzip(x.F, w.Cols, n)
	rows := q.rowsPerPart(w.Rows, w.Cols*inputs)
	q.matMul = matMul{k: &q.d.kernels, y: y.F, x: in, w: w, n: n, inputs: inputs, rows: rows, panels: (w.Rows + rows - 1) / rows}
	q.run((n+inputs-1)/inputs*q.matMul.panels, n*w.Rows*w.Cols, &q.matMul)
	q.matMul = matMul{}
}

// matMul is a MatMul being run; a part is some rows of weights for some inputs.
type matMul struct {
	k            *kernels
	y, x         []float32 // x is unzipped
	w            metal.Matrix
	n            int
	inputs, rows int // of a part
	panels       int // parts for the same inputs
}

func (m *matMul) part(i int, s *scratch) {
	lo, first := i%m.panels*m.rows, i/m.panels*m.inputs
	hi, n := min(m.w.Rows, lo+m.rows), min(m.inputs, m.n-first)
	m.k.product(m.y[first*m.w.Rows+lo:], m.w.Rows, &m.w, lo, hi, m.x[first*m.w.Cols:], n, s)
}

// unzip is x[n][cols] in the order of matrix products, valid until the next call.
func (q *queue) unzip(x []float32, cols, n int) []float32 {
	if len(q.unzipped) < n*cols {
		q.unzipped = make([]float32, n*cols)
	}
	q.unzipper = unzipper{&q.d.kernels, q.unzipped, x, cols, n}
	q.run((n+unzipRows-1)/unzipRows, n*cols, &q.unzipper)
	return q.unzipped[:n*cols]
}

const unzipRows = 32 // rows of inputs in a part

type unzipper struct {
	k       *kernels
	y, x    []float32
	cols, n int
}

func (u *unzipper) part(i int, _ *scratch) {
	lo, hi := i*unzipRows, min(u.n, (i+1)*unzipRows)
	u.k.unzipRows(u.y[lo*u.cols:hi*u.cols], u.x[lo*u.cols:hi*u.cols], u.cols, hi-lo)
}

// rowsPerPart cuts rows, each of cost multiply-adds, in parts: enough of them to be
// shared evenly, few, since taking one costs threads a third of a microsecond, yet
// short enough to end soon after a cancellation; a multiple of eight rows.
func (q *queue) rowsPerPart(rows, cost int) int {
	const most = 4 << 20 // multiply-adds of a part
	even := (rows + 2*q.d.Threads() - 1) / (2 * q.d.Threads())
	return (max(1, min(even, most/max(cost, 1))) + 7) &^ 7
}
