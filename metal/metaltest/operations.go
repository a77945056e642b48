package metaltest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"deltafin/metal"
)

var operations = []operation{
	matMul(metal.F32), matMul(metal.BF16), matMul(metal.MX4),
	{name: "MatMuls",
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			var products []metal.Product
			var out []float32
			for i, outs := range manyOuts {
				w, _ := matrix(d, c, uint64(1+i), metal.BF16, outs, c.dim)
				products = append(products, metal.Product{Y: c.buffer(d, make([]float32, (hi-lo)*outs)), W: w})
			}
			q := d.Begin(context.Background())
			q.MatMuls(products, c.buffer(d, c.perRow(0, lo, hi, c.dim)), hi-lo)
			must(q.Wait())
			for r := range hi - lo {
				for i, outs := range manyOuts {
					out = append(out, products[i].Y.F[r*outs:(r+1)*outs]...)
				}
			}
			return out
		},
		want: func(c *testCase) (out []float64) {
			for r := range c.rows {
				x := wide(c.perRow(0, r, r+1, c.dim))
				for i, outs := range manyOuts {
					_, w := matrix(nil, c, uint64(1+i), metal.BF16, outs, c.dim)
					out = append(out, matvec(w, x)...)
				}
			}
			return out
		}},
	{name: "RMSNorm",
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			return rows(d, c, lo, hi, c.dim, func(q metal.Queue, y, x metal.Buffer) {
				q.RMSNorm(y, x, c.buffer(d, c.random(1, c.dim)), hi-lo, c.dim, 1e-5)
			})
		},
		want: wantRMSNorm},
	{name: "RMSNormInPlace",
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			return inPlace(d, c, lo, hi, c.dim, func(q metal.Queue, y metal.Buffer) {
				q.RMSNorm(y, y, c.buffer(d, c.random(1, c.dim)), hi-lo, c.dim, 1e-5)
			})
		}, want: wantRMSNorm},
	{name: "AttnRes",
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			y := c.buffer(d, make([]float32, (hi-lo)*c.dim))
			var vs []metal.Buffer
			for v := range uint64(4) {
				vs = append(vs, c.buffer(d, c.perRow(2+v, lo, hi, c.dim)))
			}
			q := d.Begin(context.Background())
			q.AttnRes(y, vs, c.buffer(d, c.random(1, c.dim)), hi-lo, c.dim, 1e-5)
			must(q.Wait())
			return y.F
		},
		want: func(c *testCase) (out []float64) {
			w := c.random(1, c.dim)
			for i := range c.rows {
				var scores []float64
				var vs [4][]float32
				for v := range vs {
					vs[v] = c.perRow(2+uint64(v), i, i+1, c.dim)
					scores = append(scores, inner(vs[v], w)/math.Sqrt(inner(vs[v], vs[v])/float64(c.dim)+1e-5))
				}
				p := softmax(scores)
				for j := range c.dim {
					s := 0.0
					for v := range vs {
						s += p[v] * float64(vs[v][j])
					}
					out = append(out, s)
				}
			}
			return out
		}},
	elementwise("Sigmoid", func(q metal.Queue, y, x, z metal.Buffer) { q.Sigmoid(y, x) },
		func(x, z float64) float64 { return sigmoid(x) }),
	elementwise("SiTU", func(q metal.Queue, y, x, z metal.Buffer) { q.SiTU(y, x, z, 4, 25) },
		func(x, z float64) float64 { return 4 * math.Tanh(x/4) * sigmoid(x) * 25 * math.Tanh(z/25) }),
	elementwise("SigmoidInPlace", func(q metal.Queue, y, x, z metal.Buffer) { copy(y.F, x.F); q.Sigmoid(y, y) },
		func(x, z float64) float64 { return sigmoid(x) }),
	elementwise("SiTUInPlace", func(q metal.Queue, y, x, z metal.Buffer) { copy(y.F, x.F); q.SiTU(y, y, z, 4, 25) },
		func(x, z float64) float64 { return 4 * math.Tanh(x/4) * sigmoid(x) * 25 * math.Tanh(z/25) }),
	elementwise("Add", func(q metal.Queue, y, x, z metal.Buffer) { copy(y.F, x.F); q.Add(y, z) },
		func(x, z float64) float64 { return x + z }),
	elementwise("MulSigmoid", func(q metal.Queue, y, x, z metal.Buffer) { copy(y.F, x.F); q.MulSigmoid(y, z) },
		func(x, z float64) float64 { return x * sigmoid(z) }),
	{name: "ShortConv", serial: true,
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			// The rows in two calls, so that the state between them is in it too.
			cut := (hi - lo) / 2
			x := c.buffer(d, c.perRow(0, lo, hi, c.dim))
			y := c.buffer(d, make([]float32, (hi-lo)*c.dim))
			w := c.buffer(d, c.random(1, 4*c.dim))
			a, b := d.NewBuffer(3*c.dim), d.NewBuffer(3*c.dim)
			q := d.Begin(context.Background())
			if cut > 0 {
				q.ShortConv(y.Slice(0, cut*c.dim), b, x.Slice(0, cut*c.dim), a, w, cut, c.dim)
				a, b = b, a
			}
			q.ShortConv(y.Slice(cut*c.dim, (hi-lo)*c.dim), b, x.Slice(cut*c.dim, (hi-lo)*c.dim), a, w, hi-lo-cut, c.dim)
			must(q.Wait())
			return y.F
		},
		want: func(c *testCase) (out []float64) {
			w := c.random(1, 4*c.dim)
			x := c.perRow(0, 0, c.rows, c.dim)
			for i := range c.rows {
				for ch := range c.dim {
					s := 0.0
					for tap := range 4 {
						if row := i - 3 + tap; row >= 0 {
							s += float64(w[ch*4+tap]) * float64(x[row*c.dim+ch])
						}
					}
					out = append(out, s*sigmoid(s))
				}
			}
			return out
		}},
	{name: "KDA", serial: true, run: runKDA, want: wantKDA, slow: true},
	{name: "KDAGate",
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			return rows(d, c, lo, hi, 2*c.dim, func(q metal.Queue, y, x metal.Buffer) {
				q.KDAGate(y, x, c.buffer(d, c.random(1, 2)), c.buffer(d, c.random(2, 2*c.dim)), -5, hi-lo, 2, c.dim)
			})
		},
		want: func(c *testCase) (out []float64) {
			alog, dt := c.random(1, 2), c.random(2, 2*c.dim)
			for i, x := range c.perRow(0, 0, c.rows, 2*c.dim) {
				ch := i % (2 * c.dim)
				out = append(out, -5*sigmoid(math.Exp(float64(alog[ch/c.dim]))*(float64(x)+float64(dt[ch]))))
			}
			return out
		}},
	{name: "MLA", serial: true, run: runMLA, want: wantMLA, slow: true},
	{name: "Experts", run: runExperts, want: wantExperts},
	{name: "Embed",
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			w, _ := matrix(d, c, 1, metal.BF16, 10, c.dim)
			y := c.buffer(d, make([]float32, (hi-lo)*c.dim))
			var ids []int
			for i := lo; i < hi; i++ {
				ids = append(ids, i*7%10)
			}
			q := d.Begin(context.Background())
			q.Embed(y, w, ids)
			must(q.Wait())
			return y.F
		},
		want: func(c *testCase) (out []float64) {
			_, w := matrix(nil, c, 1, metal.BF16, 10, c.dim)
			for i := range c.rows {
				id := i * 7 % 10
				out = append(out, w[id*c.dim:(id+1)*c.dim]...)
			}
			return out
		}},
}

func wantRMSNorm(c *testCase) (out []float64) {
	w := c.random(1, c.dim)
	for i := range c.rows {
		x := c.perRow(0, i, i+1, c.dim)
		for j := range x {
			out = append(out, float64(w[j])*float64(x[j])/math.Sqrt(inner(x, x)/float64(c.dim)+1e-5))
		}
	}
	return out
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// rows runs an operation from x[n][width] to y[n][width].
func rows(d metal.Device, c *testCase, lo, hi, width int, f func(q metal.Queue, y, x metal.Buffer)) []float32 {
	y := c.buffer(d, make([]float32, (hi-lo)*width))
	q := d.Begin(context.Background())
	f(q, y, c.buffer(d, c.perRow(0, lo, hi, width)))
	must(q.Wait())
	return y.F
}

// inPlace is rows where the output takes the input's place.
func inPlace(d metal.Device, c *testCase, lo, hi, width int, f func(q metal.Queue, y metal.Buffer)) []float32 {
	return rows(d, c, lo, hi, width, func(q metal.Queue, y, x metal.Buffer) {
		copy(y.F, x.F)
		f(q, y)
	})
}

func elementwise(name string, run func(q metal.Queue, y, x, z metal.Buffer), want func(x, z float64) float64) operation {
	return operation{name: name,
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			return rows(d, c, lo, hi, c.dim, func(q metal.Queue, y, x metal.Buffer) {
				run(q, y, x, c.buffer(d, c.perRow(1, lo, hi, c.dim)))
			})
		},
		want: func(c *testCase) (out []float64) {
			z := c.perRow(1, 0, c.rows, c.dim)
			for i, x := range c.perRow(0, 0, c.rows, c.dim) {
				out = append(out, want(float64(x), float64(z[i])))
			}
			return out
		}}
}

// matrix is random weights in a format, and their values.
func matrix(d metal.Device, c *testCase, stream uint64, f metal.Format, rows, cols int) (metal.Matrix, []float64) {
	values := c.random(stream, rows*cols)
	switch f {
	case metal.BF16:
		data := make([]byte, 0, 2*len(values))
		for i, v := range values {
			bits := math.Float32bits(v) &^ 0xffff
			values[i] = math.Float32frombits(bits)
			data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
		}
		return newMatrix(d, f, rows, cols, data, nil), wide(values)
	case metal.MX4:
		table := []float64{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}
		data, scales := make([]byte, rows*cols/2), make([]byte, rows*cols/32)
		out := make([]float64, rows*cols)
		for i := range scales {
			scales[i] = 120 + byte(math.Abs(float64(values[i]))*3)
		}
		for i := range data {
			data[i] = byte(math.Float32bits(values[i]) >> 5)
			out[2*i] = table[data[i]&15] * math.Exp2(float64(scales[2*i/32])-127)
			out[2*i+1] = table[data[i]>>4] * math.Exp2(float64(scales[2*i/32])-127)
		}
		return newMatrix(d, f, rows, cols, data, scales), out
	}
	return newMatrix(d, f, rows, cols, f32(values), nil), wide(values)
}

func newMatrix(d metal.Device, f metal.Format, rows, cols int, data, scales []byte) metal.Matrix {
	if d == nil { // the reference needs the values only
		return metal.Matrix{}
	}
	return d.NewMatrix(f, rows, cols, data, scales)
}

func matMul(f metal.Format) operation {
	cols := func(c *testCase) int {
		if f == metal.MX4 {
			return (c.dim + 31) / 32 * 32
		}
		return c.dim
	}
	const outs = 37
	return operation{name: fmt.Sprint("MatMul", f),
		run: func(d metal.Device, c *testCase, lo, hi int) []float32 {
			w, _ := matrix(d, c, 1, f, outs, cols(c))
			y := c.buffer(d, make([]float32, (hi-lo)*outs))
			q := d.Begin(context.Background())
			q.MatMul(y, c.buffer(d, c.perRow(0, lo, hi, cols(c))), w, hi-lo)
			must(q.Wait())
			return y.F
		},
		want: func(c *testCase) (out []float64) {
			_, w := matrix(nil, c, 1, f, outs, cols(c))
			for i := range c.rows {
				out = append(out, matvec(w, wide(c.perRow(0, i, i+1, cols(c))))...)
			}
			return out
		}}
}

func runKDA(d metal.Device, c *testCase, lo, hi int) []float32 {
	const heads = 2
	dim, n := c.dim, hi-lo
	width := heads * dim
	in := func(stream uint64, width int) metal.Buffer { return c.buffer(d, c.perRow(stream, lo, hi, width)) }
	g := in(3, width)
	for i := range g.F {
		g.F[i] = -float32(math.Abs(float64(g.F[i])))
	}
	o, to := c.buffer(d, make([]float32, n*width)), c.buffer(d, make([]float32, heads*dim*dim))
	from := c.buffer(d, c.random(9, heads*dim*dim))
	qs, ks, v, beta := in(0, width), in(1, width), in(2, width), in(4, heads)
	// The rows in two calls, the second in place, so that the state between them is
	// in the outputs too.
	cut := n / 2
	q := d.Begin(context.Background())
	part := func(lo, hi int, to, from metal.Buffer) {
		cut := func(b metal.Buffer, width int) metal.Buffer { return b.Slice(lo*width, hi*width) }
		q.KDA(cut(o, width), to, from, cut(qs, width), cut(ks, width), cut(v, width), cut(g, width), cut(beta, heads), hi-lo, heads, dim)
	}
	if cut > 0 {
		part(0, cut, to, from)
		from = to
	}
	part(cut, n, to, from)
	must(q.Wait())
	return o.F
}

func wantKDA(c *testCase) (out []float64) {
	const heads = 2
	dim := c.dim
	width := heads * dim
	S := wide(c.random(9, heads*dim*dim))
	unit := func(x []float32, scale float64) []float64 {
		y := wide(x)
		for i := range y {
			y[i] *= scale / math.Sqrt(inner(x, x)+1e-6)
		}
		return y
	}
	for r := range c.rows {
		row := func(stream uint64, width int) []float32 { return c.perRow(stream, r, r+1, width) }
		o := make([]float64, width)
		for h := range heads {
			head := func(v []float32) []float32 { return v[h*dim : (h+1)*dim] }
			q, k := unit(head(row(0, width)), 1/math.Sqrt(float64(dim))), unit(head(row(1, width)), 1)
			v, g, beta := head(row(2, width)), head(row(3, width)), float64(row(4, heads)[h])
			s := S[h*dim*dim : (h+1)*dim*dim]
			for j := range dim {
				t := 0.0
				for i := range dim {
					s[i*dim+j] *= math.Exp(-math.Abs(float64(g[i])))
					t += s[i*dim+j] * k[i]
				}
				for i := range dim {
					s[i*dim+j] += k[i] * beta * (float64(v[j]) - t)
					o[h*dim+j] += s[i*dim+j] * q[i]
				}
			}
		}
		out = append(out, o...)
	}
	return out
}

var mlaShape = metal.MLAShape{Heads: 2, Nope: 9, Rope: 5, V: 7, KVRank: 11, Scale: .25}

// mlaRows is how many positions stand before the rows of a case: past a block's end.
const mlaRows = metal.LatentBlock + 40

func runMLA(d metal.Device, c *testCase, lo, hi int) []float32 {
	s := mlaShape
	width := s.KVRank + s.Rope
	var cache []metal.Buffer
	for range 3 {
		cache = append(cache, d.NewBuffer(metal.LatentBlock*width))
	}
	w, _ := matrix(d, c, 5, metal.BF16, s.Heads*(s.Nope+s.V), s.KVRank)
	norm := c.buffer(d, c.random(6, s.KVRank))
	q := d.Begin(context.Background())
	q.Latent(cache, 0, c.buffer(d, c.random(7, mlaRows*width)), norm, mlaRows, s, 1e-6)
	q.Latent(cache, mlaRows, c.buffer(d, c.perRow(0, 0, hi, width)), norm, hi, s, 1e-6)
	o := c.buffer(d, make([]float32, (hi-lo)*s.Heads*s.V))
	q.MLA(o, c.buffer(d, c.perRow(1, lo, hi, s.Heads*(s.Nope+s.Rope))), cache, mlaRows+lo, w, hi-lo, s)
	must(q.Wait())
	return o.F
}

func wantMLA(c *testCase) (out []float64) {
	s := mlaShape
	width := s.KVRank + s.Rope
	_, w := matrix(nil, c, 5, metal.BF16, s.Heads*(s.Nope+s.V), s.KVRank)
	norm := c.random(6, s.KVRank)
	kv := append(c.random(7, mlaRows*width), c.perRow(0, 0, c.rows, width)...)
	for r := range c.rows {
		q := wide(c.perRow(1, r, r+1, s.Heads*(s.Nope+s.Rope)))
		for h := range s.Heads {
			qh := q[h*(s.Nope+s.Rope) : (h+1)*(s.Nope+s.Rope)]
			wh := w[h*(s.Nope+s.V)*s.KVRank : (h+1)*(s.Nope+s.V)*s.KVRank]
			var scores []float64
			var values [][]float64
			for p := range mlaRows + r + 1 {
				raw := kv[p*width : (p+1)*width]
				latent := make([]float64, s.KVRank)
				for i := range latent {
					latent[i] = float64(norm[i]) * float64(raw[i]) / math.Sqrt(inner(raw[:s.KVRank], raw[:s.KVRank])/float64(s.KVRank)+1e-6)
				}
				b := matvec(wh, latent)
				score := 0.0
				for i := range s.Nope {
					score += qh[i] * b[i]
				}
				for i := range s.Rope {
					score += qh[s.Nope+i] * float64(raw[s.KVRank+i])
				}
				scores, values = append(scores, score*float64(s.Scale)), append(values, b[s.Nope:])
			}
			p := softmax(scores)
			for j := range s.V {
				v := 0.0
				for t := range p {
					v += p[t] * values[t][j]
				}
				out = append(out, v)
			}
		}
	}
	return out
}

// manyOuts are the rows of MatMuls' matrices.
var manyOuts = []int{37, 1, 64}

const latentDim, interDim, experts = 64, 96, 4

func runExperts(d metal.Device, c *testCase, lo, hi int) []float32 {
	var jobs []metal.Expert
	n := hi - lo
	all, every := make([]int32, n), make([]int32, 0, experts*n)
	for i := range all {
		all[i] = int32(i)
	}
	perRow, weights := c.perRow(8, lo, hi, experts), make([]float32, 0, experts*n)
	outs := c.buffer(d, make([]float32, experts*n*latentDim))
	for e := range experts {
		w1, _ := matrix(d, c, 10+uint64(e), metal.MX4, interDim, latentDim)
		w3, _ := matrix(d, c, 20+uint64(e), metal.MX4, interDim, latentDim)
		w2, _ := matrix(d, c, 30+uint64(e), metal.MX4, latentDim, interDim)
		jobs = append(jobs, metal.Expert{W1: w1, W3: w3, W2: w2, Rows: all, Out: outs.Slice(e*n*latentDim, (e+1)*n*latentDim)})
		every = append(every, all...)
		for i := range n {
			weights = append(weights, perRow[i*experts+e])
		}
	}
	y := c.buffer(d, c.perRow(9, lo, hi, latentDim)) // Zero clears it
	q := d.Begin(context.Background())
	q.Experts(c.buffer(d, c.perRow(0, lo, hi, latentDim)), jobs, 4, 25)
	q.Zero(y)
	q.AddRows(y, outs, every, weights, latentDim)
	must(q.Wait())
	return y.F
}

func wantExperts(c *testCase) (out []float64) {
	for r := range c.rows {
		z, weights := wide(c.perRow(0, r, r+1, latentDim)), c.perRow(8, r, r+1, experts)
		y := make([]float64, latentDim)
		for e := range uint64(experts) {
			_, w1 := matrix(nil, c, 10+e, metal.MX4, interDim, latentDim)
			_, w3 := matrix(nil, c, 20+e, metal.MX4, interDim, latentDim)
			_, w2 := matrix(nil, c, 30+e, metal.MX4, latentDim, interDim)
			h, u := matvec(w1, z), matvec(w3, z)
			for i := range h {
				h[i] = 4 * math.Tanh(h[i]/4) * sigmoid(h[i]) * 25 * math.Tanh(u[i]/25)
			}
			for i, v := range matvec(w2, h) {
				y[i] += float64(weights[e]) * v
			}
		}
		out = append(out, y...)
	}
	return out
}

func f32(values []float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}

func inner(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

func matvec(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for i := range y {
		for j := range x {
			y[i] += w[i*len(x)+j] * x[j]
		}
	}
	return y
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softmax(s []float64) []float64 {
	p, sum := make([]float64, len(s)), 0.0
	for i := range s {
		p[i] = math.Exp(s[i])
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
