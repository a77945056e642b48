package cpu

import (
	"math/rand/v2"
	"testing"

	"deltafin/metal"
)

// BenchmarkVectors runs the operations that aren't matrix products at K3's sizes for
// one token, on one thread: the time of an element and of the bytes that must move.
func BenchmarkVectors(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, level := range Levels() {
		d := Open(Options{Threads: 1, Level: level})
		normal := func(n int) metal.Buffer {
			x := d.NewBuffer(n)
			for i := range x.F {
				x.F[i] = float32(r.NormFloat64())
			}
			return x
		}
		run := func(name string, elements, bytes int, f func(q metal.Queue, turn int)) {
			b.Run(level+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(bytes))
				q := d.Begin(b.Context())
				turn := 0
				for b.Loop() {
					f(q, turn)
					turn++
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(elements), "ns/elem")
			})
		}
		const hidden, inter, heads, dim, experts, k = 7168, 3072, 96, 128, 896, 16
		x, y, w := normal(hidden), normal(hidden), normal(hidden)
		g, u := normal(inter), normal(inter)
		run("Sigmoid", hidden, 8*hidden, func(q metal.Queue, _ int) { q.Sigmoid(y, x) })
		ones := d.NewBuffer(hidden)
		for i := range ones.F {
			ones.F[i] = 30 // so that what is multiplied again and again stays
		}
		run("MulSigmoid", hidden, 12*hidden, func(q metal.Queue, _ int) { q.MulSigmoid(w, ones) })
		run("SiTU", inter, 12*inter, func(q metal.Queue, _ int) { q.SiTU(y, g, u, 4, 25) })
		run("Add", hidden, 12*hidden, func(q metal.Queue, _ int) { q.Add(y, x) })
		run("RMSNorm", hidden, 12*hidden, func(q metal.Queue, _ int) { q.RMSNorm(y, x, w, 1, hidden, 1e-5) })
		var vs []metal.Buffer
		for range 9 {
			vs = append(vs, normal(hidden))
		}
		run("AttnRes", hidden, 4*hidden*len(vs), func(q metal.Queue, _ int) { q.AttnRes(y, vs, w, 1, hidden, 1e-5) })
		conv, prev, next, taps := normal(heads*dim), normal(3*heads*dim), normal(3*heads*dim), normal(4*heads*dim)
		run("ShortConv", heads*dim, 4*12*heads*dim, func(q metal.Queue, _ int) { q.ShortConv(conv, next, conv, prev, taps, 1, heads*dim) })
		ids, weights, bias := make([]int32, k), make([]float32, k), normal(experts)
		run("Route", experts, 8*experts, func(q metal.Queue, _ int) {
			q.Route(ids, weights, x.Slice(0, experts), bias, 1, experts, k, true, 1)
		})
		// As many states as keep one from staying in a cache.
		var states []metal.Buffer
		for range 24 {
			states = append(states, normal(heads*dim*dim))
		}
		o, qs, ks, v, gs, beta := normal(heads*dim), normal(heads*dim), normal(heads*dim), normal(heads*dim), normal(heads*dim), normal(heads)
		run("KDAGate", heads*dim, 12*heads*dim, func(q metal.Queue, _ int) { q.KDAGate(gs, v, beta, qs, -5, 1, heads, dim) })
		run("Memory", heads*dim*dim, 8*heads*dim*dim, func(q metal.Queue, turn int) {
			s := states[turn%len(states)]
			d.kernels.scales(s.F, s.F, 1) // what reading and writing alone takes
		})
		run("KDA", heads*dim*dim, 8*heads*dim*dim, func(q metal.Queue, turn int) {
			s := states[turn%len(states)]
			q.KDA(o, s, s, qs, ks, v, gs, beta, 1, heads, dim)
		})
		const rows = 64
		many := func(width int) metal.Buffer { return normal(rows * width) }
		o, qs, ks, v, gs, beta = many(heads*dim), many(heads*dim), many(heads*dim), many(heads*dim), many(heads*dim), many(heads)
		q := d.Begin(b.Context())
		q.KDAGate(gs, v, beta, qs, -5, rows, heads, dim)
		run("KDA64Rows", rows*heads*dim*dim, rows*8*heads*dim*dim, func(q metal.Queue, turn int) {
			s := states[turn%len(states)]
			q.KDA(o, s, s, qs, ks, v, gs, beta, rows, heads, dim)
		})
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
