package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"deltafin/metal"
)

// An operation of metal.Queue at one of K3's sizes.
type operation struct {
	name, shape string
	weights     int64 // bytes of weights at most
	most        int   // rows at most
	parts       int   // it can be cut in so many
	// make says what n rows of a part, one of part equal ones, cost and, when real,
	// makes their operands.
	make func(k *kit, n, part int, real bool) work
}

func (o operation) String() string { return o.name + " " + o.shape }

// What functions cost, in floating-point operations: two for each of their fused
// multiply-adds, products and quotients, which share the units that do multiply-adds.
const (
	expFlops     = 26
	sigmoidFlops = expFlops + 10
	siluFlops    = expFlops + 18
	tanhFlops    = expFlops + 18 // its polynomial near zero is always computed too
	situFlops    = 2*tanhFlops + sigmoidFlops + 12
)

// K3's sizes, from docs/k3.md.
const (
	hidden   = 7168
	heads    = 96
	headDim  = 128
	width    = heads * headDim // of KDA's rows
	latent   = 3584
	inter    = 3072
	dense    = 33792
	experts  = 896
	topK     = 16
	kvRank   = 512
	rope     = 64
	vocab    = 163840
	blocks   = 8 // of an attention residual
	position = 4096
	allRows  = 1 << 20
)

var operations = []operation{
	matMul(metal.BF16, width, hidden), matMul(metal.BF16, hidden, width), matMul(metal.BF16, hidden, hidden),
	matMul(metal.BF16, latent, inter), matMul(metal.BF16, inter, latent), matMul(metal.BF16, vocab, hidden),
	matMul(metal.BF12, width, hidden), matMul(metal.BF12, hidden, hidden),
	matMul(metal.MX4, width, hidden), matMul(metal.MX4, hidden, hidden), matMul(metal.MX4, latent, inter), matMul(metal.MX4, inter, latent),
	matMul(metal.F32, width, hidden), matMul(metal.F32, hidden, hidden), matMul(metal.F32, latent, inter), matMul(metal.F32, inter, latent),
	{"Experts", fmt.Sprintf("%d of %d×%d", topK, latent, inter), topK * 3 * latent * inter * 17 / 32, 64, topK, makeExperts},
	{"KDA", fmt.Sprintf("%d×%d", heads, headDim), 0, allRows, heads / 3, makeKDA},
	{"MLA", fmt.Sprintf("%d heads, %d positions", heads, position), 2 * 2 * width * kvRank, position, heads / 3, makeMLA},
	{"AttnRes", fmt.Sprintf("%d blocks of %d", blocks, hidden), 0, allRows, 1, makeAttnRes},
	{"Route", fmt.Sprintf("%d of %d", topK, experts), 0, allRows, 1, makeRoute},
	elementwise("RMSNorm", hidden, 4, 2, func(q metal.Queue, o operands, n int) { q.RMSNorm(o.y, o.x, o.z.Slice(0, hidden), n, hidden, 1e-5) }),
	elementwise("RMSNorm", width, 4, 2, func(q metal.Queue, o operands, n int) {
		q.RMSNorm(o.y, o.x, o.z.Slice(0, headDim), n*heads, headDim, 1e-5)
	}),
	elementwise("SiTU", dense, situFlops, 3, func(q metal.Queue, o operands, n int) { q.SiTU(o.y, o.x, o.z, 4, 25) }),
	elementwise("SiTU", 2*inter, situFlops, 3, func(q metal.Queue, o operands, n int) { q.SiTU(o.y, o.x, o.z, 4, 25) }),
	{"MulSigmoid", fmt.Sprint(width), 0, allRows, 1, makeMulSigmoid},
	elementwise("Sigmoid", heads, sigmoidFlops, 2, func(q metal.Queue, o operands, n int) { q.Sigmoid(o.y, o.x) }),
	elementwise("KDAGate", width, sigmoidFlops+4, 2, func(q metal.Queue, o operands, n int) {
		q.KDAGate(o.y, o.x, o.z.Slice(0, heads), o.z.Slice(0, width), -5, n, heads, headDim)
	}),
	elementwise("Add", hidden, 1, 3, func(q metal.Queue, o operands, n int) { q.Add(o.y, o.z) }),
	elementwise("Zero", latent, 0, 1, func(q metal.Queue, o operands, n int) { q.Zero(o.y) }),
	{"ShortConv", fmt.Sprint(width), 0, allRows, 1, makeShortConv},
	{"AddRows", fmt.Sprint(latent), 0, allRows, 1, makeAddRows},
	{"Latent", fmt.Sprintf("%d and %d", kvRank, rope), 0, position, 1, makeLatent},
	{"Embed", fmt.Sprintf("%d×%d", vocab, hidden), 2 * vocab * hidden, allRows, 1, makeEmbed},
}

// kit makes operands.
type kit struct {
	device metal.Device
	memory int    // bytes that operands may take
	enough int    // bytes that no cache holds
	pool   []byte // BF16 values, of which all weights are made
	scales []byte // E8M0
}

// fill makes a pool of n bytes of weights.
func (k *kit) fill(n int64) {
	const pattern = 1 << 20
	k.pool, k.scales = make([]byte, n), make([]byte, n/16)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i+1 < min(len(k.pool), pattern); i += 2 {
		binary.LittleEndian.PutUint16(k.pool[i:], uint16(math.Float32bits(float32(r.NormFloat64())/64)>>16))
	}
	for done := pattern; done < len(k.pool); done *= 2 {
		copy(k.pool[done:], k.pool[:done])
	}
	for i := range k.scales {
		k.scales[i] = 120 + byte(i%4)
	}
}

// matrices are views of the pool: as many as no cache holds, or as there is room for.
// Fewer rows where not even one fits.
func (k *kit) matrices(f metal.Format, rows, cols int) []metal.Matrix {
	if f == metal.BF12 {
		return k.packed(rows, cols)
	}
	rows = min(rows, len(k.pool)/f.RowBytes(cols))
	size, groups := rows*f.RowBytes(cols), 0
	if f == metal.MX4 {
		groups = rows * cols / metal.MX4Group
	}
	n := max(1, min(len(k.pool)/size, (k.enough+size-1)/size))
	list := make([]metal.Matrix, n)
	for i := range list {
		at := i * groups % max(1, len(k.scales)-groups)
		list[i] = k.device.NewMatrix(f, rows, cols, k.pool[i*size:(i+1)*size], k.scales[at:at+groups])
	}
	return list
}

// packed is BF12 matrices: one, packed, and copies of it.
func (k *kit) packed(rows, cols int) []metal.Matrix {
	rows = min(rows, len(k.pool)/(2*cols))
	data, aside := metal.PackBF12(rows, cols, k.pool[:2*rows*cols])
	list := []metal.Matrix{k.device.NewMatrix(metal.BF12, rows, cols, data, aside)}
	for len(list) < k.copies(len(data)) {
		list = append(list, k.device.NewMatrix(metal.BF12, rows, cols, slices.Clone(data), aside))
	}
	return list
}

// matrixBytes is the size of a matrix, BF12's blocks aside not counted.
func matrixBytes(f metal.Format, rows, cols int) int {
	n := rows * f.RowBytes(cols)
	if f == metal.MX4 {
		n += rows * cols / metal.MX4Group
	}
	return n
}

// floats is a buffer of normal values.
func (k *kit) floats(n int) metal.Buffer {
	b := k.device.NewBuffer(n)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range min(n, 1<<16) {
		b.F[i] = float32(r.NormFloat64())
	}
	for done := 1 << 16; done < n; done *= 2 {
		copy(b.F[done:], b.F[:done])
	}
	return b
}

// copies is how many operands of size bytes no cache holds, within the memory.
func (k *kit) copies(size int) int {
	return max(1, min((k.enough+size-1)/size, k.memory/2/size))
}

func matMul(f metal.Format, rows, cols int) operation {
	return operation{"MatMul", fmt.Sprintf("%v %d×%d", f, rows, cols), int64(matrixBytes(f, rows, cols)), allRows, 64,
		func(k *kit, n, part int, real bool) work {
			rows := rows / part
			if fits := len(k.pool) / f.RowBytes(cols); rows > fits {
				rows = fits
			}
			w := work{flops: 2 * float64(n) * float64(rows*cols), bytes: float64(matrixBytes(f, rows, cols) + 4*n*(rows+cols))}
			if !real {
				return w
			}
			list := k.matrices(f, rows, cols)
			w.set = len(list) * matrixBytes(f, rows, cols)
			x, y := k.floats(n*cols), k.floats(n*rows)
			w.call = func(q metal.Queue, i int) { q.MatMul(y, x, list[i%len(list)], n) }
			return w
		}}
}

// makeExperts is top-k experts, each with n rows.
func makeExperts(k *kit, n, part int, real bool) work {
	jobs := topK / part
	size := 2*matrixBytes(metal.MX4, inter, latent) + matrixBytes(metal.MX4, latent, inter)
	w := work{flops: float64(jobs) * 2 * float64(n) * 3 * latent * inter, bytes: float64(jobs * (size + 4*n*2*latent))}
	if !real {
		return w
	}
	first, second := k.matrices(metal.MX4, inter, latent), k.matrices(metal.MX4, latent, inter)
	w.set = min(len(first)*matrixBytes(metal.MX4, inter, latent), len(k.pool))
	z, rows := k.floats(n*latent), make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	list := make([]metal.Expert, jobs)
	for i := range list {
		list[i].Rows, list[i].Out = rows, k.floats(n*latent)
	}
	next := 0
	take := func(from []metal.Matrix) metal.Matrix {
		next++
		return from[next%len(from)]
	}
	w.call = func(q metal.Queue, _ int) {
		for i := range list {
			list[i].W1, list[i].W3, list[i].W2 = take(first), take(first), take(second)
		}
		q.Experts(z, list, 4, 25)
	}
	return w
}

func makeKDA(k *kit, n, part int, real bool) work {
	heads := heads / part
	state := 4 * heads * headDim * headDim
	// S is decayed twice, for its error and for the rank one that is added: three products
	// and two fused multiply-adds for each element.
	w := work{flops: 10 * float64(n*heads*headDim*headDim), bytes: float64(2*state + 4*n*heads*(6*headDim+1))}
	if !real {
		return w
	}
	list := make([]metal.Buffer, k.copies(state)+1)
	for i := range list {
		list[i] = k.floats(state / 4)
	}
	w.set = len(list) * state
	row := func() metal.Buffer { return k.floats(n * heads * headDim) }
	o, qs, ks, v, g, beta := row(), row(), row(), row(), row(), k.floats(n*heads)
	for i := range g.F {
		g.F[i] = -abs(g.F[i])
	}
	for i := range beta.F {
		beta.F[i] = min(1, abs(beta.F[i]))
	}
	w.call = func(q metal.Queue, i int) {
		q.KDA(o, list[(i+1)%len(list)], list[i%len(list)], qs, ks, v, g, beta, n, heads, headDim)
	}
	return w
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

func makeMLA(k *kit, n, part int, real bool) work {
	s := metal.MLAShape{Heads: heads / part, Nope: headDim, Rope: rope, V: headDim, KVRank: kvRank, Scale: float32(1 / math.Sqrt(headDim+rope))}
	first := position - n
	var seen float64 // positions, all rows together
	for i := range n {
		seen += float64(first + i + 1)
	}
	cache := 4 * position * (kvRank + rope)
	kvB := matrixBytes(metal.BF16, s.Heads*2*headDim, kvRank)
	w := work{
		flops: 2 * float64(s.Heads) * (float64(n*kvRank*2*headDim) + seen*(2*kvRank+rope)),
		bytes: float64(cache + kvB + 4*n*s.Heads*(2*headDim+rope)),
	}
	if !real {
		return w
	}
	caches := make([][]metal.Buffer, k.copies(cache))
	for i := range caches {
		for range position / metal.LatentBlock {
			caches[i] = append(caches[i], k.floats(metal.LatentBlock*(kvRank+rope)))
		}
	}
	list := k.matrices(metal.BF16, s.Heads*2*headDim, kvRank)
	w.set = len(caches)*cache + len(list)*kvB
	o, qs := k.floats(n*s.Heads*headDim), k.floats(n*s.Heads*(headDim+rope))
	w.call = func(q metal.Queue, i int) { q.MLA(o, qs, caches[i%len(caches)], first, list[i%len(list)], n, s) }
	return w
}

func makeAttnRes(k *kit, n, _ int, real bool) work {
	w := work{flops: 6 * (blocks + 1) * float64(n*hidden), bytes: float64(4 * n * hidden * (blocks + 2))}
	if !real {
		return w
	}
	vs := make([]metal.Buffer, blocks+1)
	for i := range vs {
		vs[i] = k.floats(n * hidden)
	}
	y, proj := k.floats(n*hidden), k.floats(hidden)
	w.set = int(w.bytes)
	w.call = func(q metal.Queue, i int) { q.AttnRes(y, vs, proj, n, hidden, 1e-5) }
	return w
}

func makeRoute(k *kit, n, _ int, real bool) work {
	w := work{flops: sigmoidFlops * float64(n*experts), bytes: float64(4 * n * (experts + 2*topK))}
	if !real {
		return w
	}
	w.set = int(w.bytes)
	logits, bias := k.floats(n*experts), k.floats(experts)
	ids, weights := make([]int32, n*topK), make([]float32, n*topK)
	w.call = func(q metal.Queue, i int) { q.Route(ids, weights, logits, bias, n, experts, topK, true, 1) }
	return w
}

// operands of an elementwise operation: [n][width] each.
type operands struct{ y, x, z metal.Buffer }

// elementwise is an operation on n rows of width floats that does flops on each and
// touches so many buffers.
func elementwise(name string, width, flops, buffers int, call func(q metal.Queue, o operands, n int)) operation {
	shape := fmt.Sprint(width)
	if name == "RMSNorm" && width != hidden {
		shape = fmt.Sprintf("%d×%d", heads, headDim)
	}
	return operation{name, shape, 0, allRows, 1, func(k *kit, n, _ int, real bool) work {
		w := work{flops: float64(flops * n * width), bytes: float64(4 * buffers * n * width)}
		if !real {
			return w
		}
		w.set = int(w.bytes)
		o := operands{y: k.floats(n * width), x: k.floats(n * width), z: k.floats(n * width)}
		w.call = func(q metal.Queue, i int) { call(q, o, n) }
		return w
	}}
}

func makeMulSigmoid(k *kit, n, _ int, real bool) work {
	w := work{flops: (sigmoidFlops + 2) * float64(n*width), bytes: float64(4 * 3 * n * width)}
	if !real {
		return w
	}
	w.set = int(w.bytes)
	y, g := k.floats(n*width), k.floats(n*width)
	for i := range g.F {
		g.F[i] = 20 + abs(g.F[i]) // σ is 1: y would become subnormal, call by call
	}
	w.call = func(q metal.Queue, i int) { q.MulSigmoid(y, g) }
	return w
}

func makeShortConv(k *kit, n, _ int, real bool) work {
	w := work{flops: (8 + siluFlops) * float64(n*width), bytes: float64(4 * width * (2*n + 3 + 3 + 4))}
	if !real {
		return w
	}
	w.set = int(w.bytes)
	y, x, taps := k.floats(n*width), k.floats(n*width), k.floats(4*width)
	state := [2]metal.Buffer{k.floats(3 * width), k.floats(3 * width)}
	w.call = func(q metal.Queue, i int) { q.ShortConv(y, state[(i+1)%2], x, state[i%2], taps, n, width) }
	return w
}

func makeAddRows(k *kit, n, _ int, real bool) work {
	w := work{flops: 2 * float64(n*latent), bytes: float64(4 * 3 * n * latent)}
	if !real {
		return w
	}
	w.set = int(w.bytes)
	y, x := k.floats(n*latent), k.floats(n*latent)
	rows, weights := make([]int32, n), make([]float32, n)
	for i := range rows {
		rows[i] = int32(n - 1 - i)
	}
	w.call = func(q metal.Queue, i int) { q.AddRows(y, x, rows, weights, latent) }
	return w
}

func makeLatent(k *kit, n, _ int, real bool) work {
	s := metal.MLAShape{Heads: heads, Nope: headDim, Rope: rope, V: headDim, KVRank: kvRank}
	w := work{flops: 4 * float64(n*kvRank), bytes: float64(4 * 2 * n * (kvRank + rope))}
	if !real {
		return w
	}
	w.set = int(w.bytes)
	var cache []metal.Buffer
	for range (n + metal.LatentBlock - 1) / metal.LatentBlock {
		cache = append(cache, k.floats(metal.LatentBlock*(kvRank+rope)))
	}
	kv, norm := k.floats(n*(kvRank+rope)), k.floats(kvRank)
	w.call = func(q metal.Queue, i int) { q.Latent(cache, 0, kv, norm, n, s, 1e-6) }
	return w
}

func makeEmbed(k *kit, n, _ int, real bool) work {
	w := work{bytes: float64(n * hidden * (2 + 4))}
	if !real {
		return w
	}
	table := k.matrices(metal.BF16, vocab, hidden)[0]
	w.set = len(table.Data)
	y, r := k.floats(n*hidden), rand.New(rand.NewPCG(5, 6))
	ids := make([]int, n)
	w.call = func(q metal.Queue, i int) {
		for j := range ids {
			ids[j] = r.IntN(table.Rows)
		}
		q.Embed(y, table, ids)
	}
	return w
}
