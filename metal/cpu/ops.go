package cpu

import (
	"sync/atomic"

	"deltafin/metal"
)

// simple is an operation over rows or vectors being run: its operands, and do, which
// computes a part. A queue has one, so that running it allocates nothing.
type simple struct {
	k       *kernels
	do      func(o *simple, i int, s *scratch)
	y, x, w []float32
	u       []float32
	vs      []metal.Buffer
	table   metal.Matrix
	ids     []int
	rows    []int32
	n, dim  int
	first   int // position of the first row
	size    int // floats or rows of a part, where parts are spans
	a, b    float32
	least   *atomic.Int64
}

func (o *simple) part(i int, s *scratch) { o.do(o, i, s) }

// row is the i-th row of dim floats.
func (o *simple) row(x []float32, i int) []float32 { return x[i*o.dim : (i+1)*o.dim] }

// span is where the i-th span of n floats, or rows, lies.
func (o *simple) span(i int) (lo, hi int) { return i * o.size, min((i+1)*o.size, o.n) }

// each runs o's parts, together about cost multiply-adds.
func (q *queue) each(parts, cost int, o simple) {
	o.k = &q.d.kernels
	q.simple = o
	q.run(parts, cost, &q.simple)
	q.simple = simple{}
}

// spanSize cuts n floats, or channels, in parts for vectors.
func spanSize(n int) int { return (max(1, min(4096, (n+7)/8)) + 15) &^ 15 }

// elements runs o over spans of n floats, each costing about cost multiply-adds.
func (q *queue) elements(n, cost int, o simple) {
	o.n, o.size = n, spanSize(n)
	q.each((n+o.size-1)/o.size, n*cost, o)
}

// rows runs o over spans of n rows, together about cost multiply-adds.
func (q *queue) rows(n, cost int, o simple) {
	each := 2 * partsEach * q.d.Threads()
	o.n, o.size = n, (n+each-1)/each
	q.each((n+max(1, o.size)-1)/max(1, o.size), cost, o)
}

func (q *queue) Embed(y metal.Buffer, table metal.Matrix, ids []int) {
	q.rows(len(ids), 8*len(ids)*table.Cols, simple{do: embed, y: y.F, table: table, ids: ids, dim: table.Cols})
}

func embed(o *simple, part int, s *scratch) {
	for i, hi := o.span(part); i < hi; i++ {
		widen(o.row(o.y, i), &o.table, o.ids[i])
	}
}

func (q *queue) RMSNorm(y, x, w metal.Buffer, n, dim int, eps float32) {
	q.rows(n, 8*n*dim, simple{do: rmsNorm, y: y.F, x: x.F, w: w.F, dim: dim, a: eps})
}

func rmsNorm(o *simple, part int, _ *scratch) {
	for i, hi := o.span(part); i < hi; i++ {
		o.k.rmsNorm(o.row(o.y, i), o.row(o.x, i), o.w, o.a)
	}
}

func (q *queue) AttnRes(y metal.Buffer, vs []metal.Buffer, normProj metal.Buffer, n, dim int, eps float32) {
	q.rows(n, 3*n*dim*len(vs), simple{do: attnRes, y: y.F, vs: vs, w: normProj.F[:dim], dim: dim, a: eps})
}

func attnRes(o *simple, part int, s *scratch) {
	p := s.floats(len(o.vs))[:len(o.vs)]
	for i, hi := o.span(part); i < hi; i++ {
		for j, v := range o.vs {
			product, squares := o.k.resDots(o.row(v.F, i), o.w)
			p[j] = product / rootMean(squares, o.dim, o.a)
		}
		o.k.softmax(p)
		o.k.mixed(o.row(o.y, i), o.vs, i, o.dim, p)
	}
}

func (q *queue) Zero(y metal.Buffer) { clear(y.F) }

func (q *queue) Add(y, x metal.Buffer) { q.elements(len(x.F), 4, simple{do: add, y: y.F, x: x.F}) }

func add(o *simple, i int, _ *scratch) {
	lo, hi := o.span(i)
	o.k.adds(o.y[lo:hi], o.x[lo:hi])
}

func (q *queue) MulSigmoid(y, g metal.Buffer) {
	q.elements(len(g.F), 16, simple{do: mulSigmoid, y: y.F, x: g.F})
}

func mulSigmoid(o *simple, i int, _ *scratch) {
	lo, hi := o.span(i)
	o.k.mulSigmoids(o.y[lo:hi], o.x[lo:hi])
}

func (q *queue) Sigmoid(y, x metal.Buffer) {
	q.elements(len(x.F), 16, simple{do: sigmoidSpan, y: y.F, x: x.F})
}

func sigmoidSpan(o *simple, i int, _ *scratch) {
	lo, hi := o.span(i)
	o.k.sigmoids(o.y[lo:hi], o.x[lo:hi])
}

func (q *queue) SiTU(y, g, u metal.Buffer, beta, lambda float32) {
	q.elements(len(g.F), 48, simple{do: situ, y: y.F, x: g.F, u: u.F, a: beta, b: lambda})
}

func situ(o *simple, i int, _ *scratch) {
	lo, hi := o.span(i)
	o.k.situ(o.y[lo:hi], o.x[lo:hi], o.u[lo:hi], o.a, o.b)
}

func (q *queue) AddRows(y, x metal.Buffer, rows []int32, weights []float32, dim int) {
	n := len(y.F) / dim
	size := max(1, (n+2*q.d.Threads()-1)/(2*q.d.Threads()))
	q.each((n+size-1)/size, 8*len(rows)*dim, simple{do: addRows, y: y.F, x: x.F, w: weights, rows: rows, dim: dim, n: n, size: size})
}

// addRows is some rows of y.
func addRows(o *simple, part int, _ *scratch) {
	lo, hi := o.span(part)
	for i, r := range o.rows {
		if r := int(r); lo <= r && r < hi {
			o.k.addScaleds(o.row(o.y, r), o.row(o.x, i), o.w[i])
		}
	}
}

func (q *queue) NotFinite(at *int, x metal.Buffer) {
	q.notFinite.Store(int64(len(x.F)))
	q.elements(len(x.F), 4, simple{do: notFinite, x: x.F, least: &q.notFinite})
	if *at = int(q.notFinite.Load()); *at == len(x.F) {
		*at = -1
	}
}

// notFinite looks at single values only where their squares don't add up to a number.
func notFinite(o *simple, part int, _ *scratch) {
	lo, hi := o.span(part)
	x := o.x[lo:hi]
	if sum := o.k.sumSquares(x); sum-sum == 0 {
		return
	}
	for i, v := range x {
		if v-v == 0 {
			continue
		}
		at := int64(lo + i)
		for least := o.least.Load(); at < least && !o.least.CompareAndSwap(least, at); least = o.least.Load() {
		}
		return
	}
}
