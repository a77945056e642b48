package cpu

import (
	"fmt"

	"deltafin/metal"
)

func (q *queue) MatMul(y, x metal.Buffer, w metal.Matrix, n int) {
	q.single[0] = metal.Product{Y: y, W: w}
	q.MatMuls(q.single[:], x, n)
	q.single[0] = metal.Product{}
}

func (q *queue) MatMuls(products []metal.Product, x metal.Buffer, n int) {
	cols, rows, threads := products[0].W.Cols, 0, q.d.Threads()
	for i := range products {
		if c := products[i].W.Cols; c != cols {
			panic(fmt.Sprintf("cpu: products of %d and of %d inputs", cols, c))
		}
		rows += products[i].W.Rows
	}
	m := &q.matMul
	m.k, m.products, m.x, m.cols, m.n = &q.d.kernels, products, x.F, cols, n
	m.panels = m.panels[:0]
	own := (n + threads - 1) / threads
	if own >= ownInputs && own*rows*cols <= ownMost {
		// Each thread has inputs of its own: those of the operations before and after.
		m.inputs, m.phase = own, (*matMul).all
		q.run((n+own-1)/own, n*rows*cols, m)
		m.products, m.x = nil, nil
		return
	}
	m.x = q.unzip(x.F, cols, n)
	// Inputs that the second cache doesn't hold come block by block, and all weights for
	// each: there are fewer bytes of weights than of inputs.
	const most = 256 << 10 // floats of inputs
	m.inputs, m.phase = n, (*matMul).panel
	if n*cols > most {
		m.inputs = min(n, tileInputs)
	}
	blocks := (n + m.inputs - 1) / m.inputs
	parts := max(partsEach, partsEach*threads/blocks)
	for i := range products {
		own := products[i].W.Rows
		m.panels = appendParts(m.panels, i, own, partRows(own, (parts*own+rows-1)/rows, cols*m.inputs, 8))
	}
	q.run(blocks*len(m.panels), n*rows*cols, m)
	m.products, m.x = nil, nil
}

const (
	ownInputs = 32       // a thread has inputs of its own in parts of so many at least,
	ownMost   = 32 << 20 // and of so many multiply-adds at most, to end soon after a cancellation
	partsEach = 4        // parts of a thread otherwise: some are left for another that is early
)

// matMul is a MatMuls being run.
type matMul struct {
	k        *kernels
	products []metal.Product
	x        []float32
	cols, n  int
	inputs   int       // of a part
	panels   []rowPart // parts for the same inputs
	phase    func(m *matMul, i int, s *scratch)
}

func (m *matMul) part(i int, s *scratch) { m.phase(m, i, s) }

// all is all products of some inputs, which are as they came.
func (m *matMul) all(i int, s *scratch) {
	first := i * m.inputs
	n := min(m.inputs, m.n-first)
	x := s.floats(n * m.cols)
	m.k.unzipRows(x, m.x[first*m.cols:(first+n)*m.cols], m.cols, n)
	used := s.used
	for j := range m.products {
		s.used = used
		p := &m.products[j]
		m.k.product(p.Y.F[first*p.W.Rows:], p.W.Rows, &p.W, 0, p.W.Rows, x, n, s)
	}
}

// panel is some rows of a product's weights for some inputs, unzipped.
func (m *matMul) panel(i int, s *scratch) {
	panel, first := m.panels[i%len(m.panels)], i/len(m.panels)*m.inputs
	p, n := &m.products[panel.of], min(m.inputs, m.n-first)
	m.k.product(p.Y.F[first*p.W.Rows+panel.lo:], p.W.Rows, &p.W, panel.lo, panel.hi, m.x[first*m.cols:], n, s)
}

// unzip is x[n][cols] in the order of matrix products, valid until the next call.
func (q *queue) unzip(x []float32, cols, n int) []float32 {
	q.unzipped = grow(q.unzipped, n*cols)
	q.unzipper = unzipper{&q.d.kernels, q.unzipped, x, cols}
	q.run(n, 4*n*cols, &q.unzipper)
	return q.unzipped[:n*cols]
}

// unzipper is an unzip being run; a part is a row.
type unzipper struct {
	k    *kernels
	y, x []float32
	cols int
}

func (u *unzipper) part(i int, _ *scratch) {
	lo, hi := i*u.cols, (i+1)*u.cols
	u.k.unzipRows(u.y[lo:hi], u.x[lo:hi], u.cols, 1)
}

// partRows cuts rows of outputs, each of cost multiply-adds, in so many parts, or in
// more, each short enough to end soon after a cancellation; a multiple of step rows.
func partRows(rows, parts, cost, step int) int {
	const most = 4 << 20 // multiply-adds of a part
	size := max(1, min((rows+parts-1)/max(parts, 1), most/max(cost, 1)))
	return (size + step - 1) / step * step
}

// rowPart is some output rows of one of several matrices.
type rowPart struct{ of, lo, hi int }

func appendParts(parts []rowPart, of, rows, size int) []rowPart {
	for lo := 0; lo < rows; lo += size {
		parts = append(parts, rowPart{of, lo, min(rows, lo+size)})
	}
	return parts
}
