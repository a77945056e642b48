package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"deltafin/metal"
)

// vectorCase makes a vector test's inputs.
type vectorCase struct {
	r     *rand.Rand
	whole [][]float32
}

// guardWord stands around every vector.
const guardWord = 12345.5

// edges are where the functions change their ways.
var edges = []float32{0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, 1e-38, -1e-38, 0.625, -0.625, math.Nextafter32(0.625, 0), 10, -10, 88.72283, 88.72284, 88.8, 89, 90,
	-87.33655, -87.4, -103.97, -103.98, -104, -104.5, 100, -108.5, -120, 1e30, -1e30, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), -float32(math.NaN())}

// vector is n values at any address, an odd one too, between guard words.
func (c *vectorCase) vector(n int) []float32 {
	b := make([]byte, 4*(n+16)+3)
	whole := unsafe.Slice((*float32)(unsafe.Pointer(&b[c.r.IntN(4)])), n+16)
	for i := range whole {
		whole[i] = guardWord
	}
	c.whole = append(c.whole, whole)
	v := whole[8 : 8+n : 8+n]
	for i := range v {
		switch c.r.IntN(12) {
		case 0:
			v[i] = math.Float32frombits(c.r.Uint32())
		case 1:
			v[i] = edges[c.r.IntN(len(edges))]
		case 2, 3:
			v[i] = float32(c.r.NormFloat64() * 40)
		default:
			v[i] = float32(c.r.NormFloat64())
		}
	}
	return v
}

// twin is a copy with guard words of its own.
func (c *vectorCase) twin(v []float32) []float32 {
	w := c.vector(len(v))
	copy(w, v)
	return w
}

func (c *vectorCase) guards(t *testing.T) {
	t.Helper()
	for _, w := range c.whole {
		for i, v := range w {
			if (i < 8 || i >= len(w)-8) && v != guardWord {
				t.Fatalf("written outside a vector of %d: at %d", len(w)-16, i-8)
			}
		}
	}
	c.whole = nil
}

// Every level's vector loops give the definitions' bits, for any values, lengths and
// addresses, and write nothing else.
func TestVectors(t *testing.T) {
	for _, level := range levels()[1:] {
		k, p := &level.vectors, &portableVectors
		for name, check := range map[string]func(t *testing.T, c *vectorCase, n int){
			"expSum": func(t *testing.T, c *vectorCase, n int) {
				x, top := c.vector(n), c.vector(1)[0]
				y, z := c.vector(n), c.vector(n)
				got, want := k.expSum(y, x, top), p.expSum(z, x, top)
				same(t, append(y, got), append(z, want))
			},
			"sigmoids":    unary(k.sigmoids, p.sigmoids),
			"silus":       unary(k.silus, p.silus),
			"mulSigmoids": unary(k.mulSigmoids, p.mulSigmoids),
			"adds":        unary(k.adds, p.adds),
			"addScaleds": func(t *testing.T, c *vectorCase, n int) {
				a := c.vector(1)[0]
				unary(func(y, x []float32) { k.addScaleds(y, x, a) }, func(y, x []float32) { p.addScaleds(y, x, a) })(t, c, n)
			},
			"scales": func(t *testing.T, c *vectorCase, n int) {
				a := c.vector(1)[0]
				unary(func(y, x []float32) { k.scales(y, x, a) }, func(y, x []float32) { p.scales(y, x, a) })(t, c, n)
			},
			"normScales": func(t *testing.T, c *vectorCase, n int) {
				a, w := c.vector(1)[0], c.vector(n)
				unary(func(y, x []float32) { k.normScales(y, x, w, a) }, func(y, x []float32) { p.normScales(y, x, w, a) })(t, c, n)
			},
			"gates": func(t *testing.T, c *vectorCase, n int) {
				s, bias := c.vector(2), c.vector(n)
				unary(func(y, x []float32) { k.gates(y, x, bias, s[0], s[1]) }, func(y, x []float32) { p.gates(y, x, bias, s[0], s[1]) })(t, c, n)
			},
			"situs": func(t *testing.T, c *vectorCase, n int) {
				s, g := c.vector(2), c.vector(n)
				unary(func(y, x []float32) { k.situ(y, g, x, s[0], s[1]) }, func(y, x []float32) { p.situ(y, g, x, s[0], s[1]) })(t, c, n)
				// tanh by itself, in either place.
				for i := range g {
					g[i] = 1000
				}
				unary(func(y, x []float32) { k.situ(y, g, x, 1, 1) }, func(y, x []float32) { p.situ(y, g, x, 1, 1) })(t, c, n)
			},
			"sumSquares": func(t *testing.T, c *vectorCase, n int) {
				x := c.vector(n)
				same(t, []float32{k.sumSquares(x)}, []float32{p.sumSquares(x)})
			},
			"resDots": func(t *testing.T, c *vectorCase, n int) {
				v, w := c.vector(n), c.vector(n)
				if c.r.IntN(4) == 0 { // products that round to −0
					for i := range v {
						v[i], w[i] = 1e-30, -1e-30
					}
				}
				a, b := k.resDots(v, w)
				x, y := p.resDots(v, w)
				same(t, []float32{a, b}, []float32{x, y})
			},
			"mix": func(t *testing.T, c *vectorCase, n int) {
				vs := make([]metal.Buffer, 1+c.r.IntN(10))
				row := c.r.IntN(3)
				for i := range vs {
					vs[i].F = c.vector((row + 1) * n)
				}
				weights := c.vector(len(vs))
				y, z := c.vector(n), c.vector(n)
				k.mixed(y, vs, row, n, weights)
				p.mixed(z, vs, row, n, weights)
				same(t, y, z)
			},
			"above": func(t *testing.T, c *vectorCase, n int) {
				x := c.vector(n)
				for range 20 {
					limit := float32(c.r.NormFloat64() * 100)
					if n > 0 && c.r.IntN(2) == 0 {
						limit = slices.Max(x[:1+c.r.IntN(n)])
					}
					if got, want := k.above(x, limit), p.above(x, limit); got != want {
						t.Fatalf("above %g: %d, want %d", limit, got, want)
					}
				}
			},
			"largest": func(t *testing.T, c *vectorCase, n int) {
				x := c.vector(n + 1)
				if got, want := k.largest(x), p.largest(x); got != want && !(got != got && want != want) {
					t.Fatalf("%g, want %g", got, want)
				}
				if n > 0 { // above all others, in any place
					for i := range x {
						x[i] = -1 - c.r.Float32()
					}
					at := 1 + c.r.IntN(n)
					x[at] = -.5
					if got := k.largest(x); got != -.5 {
						t.Fatalf("%g, want the %d-th of %d", got, at, n+1)
					}
				}
			},
			"convolve": func(t *testing.T, c *vectorCase, n int) {
				rows, stride := c.r.IntN(6), n+c.r.IntN(3)
				if n == 0 {
					return
				}
				prev, w := c.vector(3*stride), c.vector(4*n)
				x := c.vector(rows * stride)
				y, z := c.twin(x), c.twin(x) // in place
				if c.r.IntN(2) == 0 {
					y, z = c.vector(rows*stride), c.vector(rows*stride)
					copy(y, z) // what lies between the rows stays
				}
				next, after := c.vector(3*stride), c.vector(3*stride)
				copy(next, after)
				in := func(y []float32) []float32 {
					if c.r.IntN(2) == 0 {
						copy(y, x)
						return y
					}
					return x
				}
				k.convolve(y, next, in(y), prev, w, stride, rows, n)
				p.convolve(z, after, in(z), prev, w, stride, rows, n)
				for r := range rows {
					same(t, y[r*stride:r*stride+n], z[r*stride:r*stride+n])
				}
				same(t, next, after)
			},
			"kdaStep": func(t *testing.T, c *vectorCase, n int) {
				n = min(n, kdaSpan)
				if c.r.IntN(2) == 0 {
					n = kdaSpan
				}
				rows, stride, toStride := 1+c.r.IntN(40), n+c.r.IntN(3), n+c.r.IntN(3)
				from, q, key, decay, v, beta := c.vector(rows*stride), c.vector(rows), c.vector(rows), c.vector(rows), c.vector(n), c.vector(1)[0]
				to, o, out := c.vector(rows*toStride), c.vector(n), c.vector(n)
				want := c.twin(to)
				k.kdaStep(to, from, toStride, stride, o, v, q, key, decay, beta, c.r.IntN(100000))
				p.kdaStep(want, from, toStride, stride, out, v, q, key, decay, beta, 0)
				same(t, to, want)
				same(t, o, out)
				k.kdaStep(to, to, toStride, toStride, o, v, q, key, decay, beta, 0)
				p.kdaStep(want, want, toStride, toStride, out, v, q, key, decay, beta, 0)
				same(t, to, want)
				same(t, o, out)
			},
		} {
			t.Run(level.name+"/"+name, func(t *testing.T) {
				c := &vectorCase{r: rand.New(rand.NewPCG(1, 2))}
				for n := range 200 {
					for range 4 {
						check(t, c, n)
						c.guards(t)
					}
				}
				check(t, c, 7168)
				check(t, c, 5001)
				c.guards(t)
			})
		}
	}
}

// unary checks a function of y and x, apart and in place.
func unary(got, want func(y, x []float32)) func(t *testing.T, c *vectorCase, n int) {
	return func(t *testing.T, c *vectorCase, n int) {
		t.Helper()
		x, y := c.vector(n), c.vector(n)
		z := c.twin(y)
		got(y, x)
		want(z, x)
		same(t, y, z)
		y, z = c.twin(x), c.twin(x)
		got(y, y)
		want(z, z)
		same(t, y, z)
	}
}

// An operation allocates nothing once its scratch is as large as it needs.
func TestNothingAllocated(t *testing.T) {
	d := Open(Options{Threads: 2})
	defer d.Close()
	const n, dim, heads = 3, 64, 4
	width := heads * dim
	buffer := func(n int) metal.Buffer { return d.NewBuffer(n) }
	x, y, z, w := buffer(n*width), buffer(n*width), buffer(n*width), buffer(4*width)
	matrix := d.NewMatrix(metal.BF16, width, width, make([]byte, 2*width*width), nil)
	gate := d.NewMatrix(metal.MX4, dim, width, make([]byte, dim*width/2), make([]byte, dim*width/32))
	down := d.NewMatrix(metal.MX4, width, dim, make([]byte, dim*width/2), make([]byte, dim*width/32))
	state, prev := buffer(heads*dim*dim), buffer(3*width)
	shape := metal.MLAShape{Heads: heads, Nope: 32, Rope: 32, V: 32, KVRank: 32, Scale: 1}
	cache := []metal.Buffer{buffer(64 * dim), buffer(64 * dim), buffer(64 * dim)}
	kvB := d.NewMatrix(metal.BF16, heads*64, 32, make([]byte, 2*heads*64*32), nil)
	vs := []metal.Buffer{x, y}
	ids, rows, weights := []int{1, 2, 3}, []int32{0, 2}, []float32{1, 2}
	chosen, shares := make([]int32, n*4), make([]float32, n*4)
	jobs := []metal.Expert{{W1: gate, W3: gate, W2: down, Rows: rows, Out: buffer(2 * width)}}
	q := d.Begin(t.Context())
	if got := testing.AllocsPerRun(20, func() {
		q.Embed(z, matrix, ids)
		q.MatMul(y, x, matrix, n)
		q.RMSNorm(y, x, w, n, width, 1e-5)
		q.AttnRes(z, vs, w, n, width, 1e-5)
		q.Add(y, x)
		q.MulSigmoid(y, x)
		q.Sigmoid(y, x)
		q.SiTU(y, x, y, 4, 25)
		q.ShortConv(y, prev, x, prev.Slice(0, 3*width), w, n, width)
		q.KDAGate(y, x, w, w, -5, n, heads, dim)
		q.KDA(z, state, state, x, x, x, y, w, n, heads, dim)
		q.Latent(cache, 100, x, w, n, shape, 1e-6)
		q.MLA(z, x, cache, 100, kvB, n, shape)
		q.Route(chosen, shares, x, w, n, width, 4, true, 1)
		q.Experts(x, jobs, 4, 25)
		q.AddRows(y, x, rows, weights, width)
	}); got != 0 {
		t.Errorf("%g allocations", got)
	}
}
