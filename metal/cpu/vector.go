package cpu

import (
	"unsafe"

	"deltafin/metal"
)

// vectors are the loops of one instruction set over vectors, none nil: portableVectors
// has the definitions, which the others equal bit for bit. Where several slices are
// given, all are as long as the first, which is the callers' duty; an output may be an
// input of the same element.
type vectors struct {
	expSum      func(y, x []float32, top float32) float32
	sigmoids    func(y, x []float32)
	silus       func(y, x []float32)
	mulSigmoids func(y, x []float32)
	situs       func(y, g, u []float32, beta, lambda, invBeta, invLambda float32)
	gates       func(y, x, bias []float32, rate, lower float32)
	adds        func(y, x []float32)
	addScaleds  func(y, x []float32, a float32)
	scales      func(y, x []float32, a float32)
	normScales  func(y, x, w []float32, a float32)
	sumSquares  func(x []float32) float32
	resDots     func(v, w []float32) (dot, squares float32)
	mix         func(y []float32, vs *[]float32, stride, offset int, p []float32)
	above       func(x []float32, limit float32) int
	largest     func(x []float32) float32

	// convolve16 and kdaStep32 are convolve and kdaStep for a multiple of 16 channels and
	// for 32 columns, or nil.
	convolve16 func(y, next, x, prev, w *float32, stride, rows, channels int)
	kdaStep32  func(to, from *float32, toStride, fromStride int, o, v, q, k, decay *float32, rows, ahead int, beta float32)
}

var portableVectors = vectors{
	expSum:      expSum,
	sigmoids:    sigmoids,
	silus:       silus,
	mulSigmoids: mulSigmoids,
	situs:       situs,
	gates:       gates,
	adds:        adds,
	addScaleds:  addScaleds,
	scales:      scales,
	normScales:  normScales,
	sumSquares:  sumSquares,
	resDots:     resDots,
	mix:         mix,
	above:       above,
	largest:     largest,
}

// expSum is y = e^(x−top) and the sum of y: element i goes to lane i mod 16, in ascending
// i, and lanes fold as dot's.
func expSum(y, x []float32, top float32) float32 {
	var acc [lanes]float32
	for i, v := range x[:len(y)] {
		y[i] = exp(v - top)
		acc[i%lanes] += y[i]
	}
	return fold(&acc)
}

// fold is the sum of 16 lanes: l+8, l+4, l+2, l+1.
func fold(acc *[lanes]float32) float32 {
	for w := lanes / 2; w > 0; w /= 2 {
		for l := range w {
			acc[l] += acc[l+w]
		}
	}
	return acc[0]
}

func sigmoids(y, x []float32) {
	for i, v := range x[:len(y)] {
		y[i] = sigmoid(v)
	}
}

func silus(y, x []float32) {
	for i, v := range x[:len(y)] {
		y[i] = silu(v)
	}
}

// mulSigmoids is y *= σ(x).
func mulSigmoids(y, x []float32) {
	for i, v := range x[:len(y)] {
		y[i] = float32(y[i] * sigmoid(v))
	}
}

// situs is y = β·tanh(g/β)·σ(g) · λ·tanh(u/λ), the quotients as products with the inverses.
func situs(y, g, u []float32, beta, lambda, invBeta, invLambda float32) {
	for i := range y {
		gate := float32(float32(beta*tanh(float32(g[i]*invBeta))) * sigmoid(g[i]))
		y[i] = float32(gate * float32(lambda*tanh(float32(u[i]*invLambda))))
	}
}

// gates is y = lower·σ(rate·(x+bias)).
func gates(y, x, bias []float32, rate, lower float32) {
	for i := range y {
		y[i] = float32(lower * sigmoid(float32(rate*(x[i]+bias[i]))))
	}
}

func adds(y, x []float32) {
	for i, v := range x[:len(y)] {
		y[i] += v
	}
}

// addScaleds is y += a·x, the product rounded.
func addScaleds(y, x []float32, a float32) {
	for i, v := range x[:len(y)] {
		y[i] += float32(a * v)
	}
}

func scales(y, x []float32, a float32) {
	for i, v := range x[:len(y)] {
		y[i] = float32(v * a)
	}
}

// normScales is y = w·(x·a).
func normScales(y, x, w []float32, a float32) {
	for i, v := range x[:len(y)] {
		y[i] = float32(w[i] * float32(v*a))
	}
}

func sumSquares(x []float32) float32 { return dot(x, x) }

// resDots is what a score of AttnRes needs of v.
func resDots(v, w []float32) (product, squares float32) { return dot(v, w), dot(v, v) }

// softmax is x = e^(x−max)/Σ, in place.
func (k *vectors) softmax(x []float32) {
	sum := k.expSum(x, x, k.largest(x))
	for i := range x {
		x[i] /= sum
	}
}

// rmsNorm is y = w·x/sqrt(mean(x²)+eps); y may be x.
func (k *vectors) rmsNorm(y, x, w []float32, eps float32) {
	k.normScales(y, x[:len(y)], w[:len(y)], 1/rootMean(k.sumSquares(x), len(x), eps))
}

// rootMean is sqrt(squares/n + eps).
func rootMean(squares float32, n int, eps float32) float32 { return sqrt(squares/float32(n) + eps) }

// unit is y = x/√(Σx²+1e-6)·scale.
func (k *vectors) unit(y, x []float32, scale float32) {
	k.scales(y, x[:len(y)], scale/sqrt(k.sumSquares(x)+1e-6))
}

func (k *vectors) situ(y, g, u []float32, beta, lambda float32) {
	k.situs(y, g[:len(y)], u[:len(y)], beta, lambda, 1/beta, 1/lambda)
}

// mix is y = Σ p[j]·vs[j][offset:offset+len(y)] by axpy from 0, for the len(p) slices that
// begin at vs and are stride bytes apart: the F of Buffers in a slice.
func mix(y []float32, vs *[]float32, stride, offset int, p []float32) {
	clear(y)
	for j, w := range p {
		v := *(*[]float32)(unsafe.Add(unsafe.Pointer(vs), j*stride))
		axpy(y, w, v[offset:])
	}
}

// mixed is mix of row i, dim floats, of each of vs.
func (k *vectors) mixed(y []float32, vs []metal.Buffer, i, dim int, p []float32) {
	for _, v := range vs {
		_ = v.F[i*dim : (i+1)*dim]
	}
	k.mix(y[:dim], &vs[0].F, int(unsafe.Sizeof(vs[0])), i*dim, p[:len(vs)])
}

// above is the index of the first x over limit, or len(x).
func above(x []float32, limit float32) int {
	for i, v := range x {
		if v > limit {
			return i
		}
	}
	return len(x)
}

// largest is the largest of x, of which there is one at least: either zero where that is
// zero. Values that are NaN are passed over but for the first.
func largest(x []float32) float32 {
	top := x[0]
	for _, v := range x[1:] {
		if v > top {
			top = v
		}
	}
	return top
}

// convolve is the sum of ShortConv before its SiLU, for rows rows of some channels; rows
// are stride floats apart. y may be x.
func (k *vectors) convolve(y, next, x, prev, w []float32, stride, rows, channels int) {
	_, _ = prev[2*stride+channels-1], next[2*stride+channels-1]
	if rows > 0 {
		_, _ = y[(rows-1)*stride+channels-1], x[(rows-1)*stride+channels-1]
	}
	first := 0
	if whole := channels &^ 15; k.convolve16 != nil && whole > 0 && rows > 0 {
		_ = w[whole*taps-1]
		k.convolve16(&y[0], &next[0], &x[0], &prev[0], &w[0], stride, rows, whole)
		first = whole
	}
	for ch := first; ch < channels; ch++ {
		w := w[ch*taps : (ch+1)*taps]
		a, b, p := prev[ch], prev[stride+ch], prev[2*stride+ch] // the rows before, oldest first
		for i := range rows {
			cur := x[i*stride+ch]
			s := fma(w[0], a, 0)
			s = fma(w[1], b, s)
			s = fma(w[2], p, s)
			y[i*stride+ch] = fma(w[3], cur, s)
			a, b, p = b, p, cur
		}
		next[ch], next[stride+ch], next[2*stride+ch] = a, b, p
	}
}

// kdaSpan is how many value columns kdaStep takes at most: their error and output stay
// in registers, and the 128 key rows of K3 in the nearest cache.
const kdaSpan = 32

// kdaStep advances some value columns of one head by one row (docs/k3.md, KDA):
// S ← diag(e^g)S, u = β(v − Sᵀk̂), S ← S + k̂uᵀ, o = Sᵀq̂, from S in from to S in to,
// which may be the same. Both begin at the first of the len(v) columns, key rows
// toStride and fromStride floats apart; q, k and decay, which is e^g, have one entry a
// key row. What the next call reads may be ahead floats after from: a hint.
func (kn *vectors) kdaStep(to, from []float32, toStride, fromStride int, o, v, q, k, decay []float32, beta float32, ahead int) {
	last, columns := len(k)-1, len(v)
	if columns < kdaSpan || kn.kdaStep32 == nil {
		kdaColumns(to, from, toStride, fromStride, o, v, q, k, decay, beta)
		return
	}
	_, _, _, _, _ = o[columns-1], q[last], decay[last], to[last*toStride+columns-1], from[last*fromStride+columns-1]
	kn.kdaStep32(&to[0], &from[0], toStride, fromStride, &o[0], &v[0], &q[0], &k[0], &decay[0], len(k), ahead, beta)
}

// kdaColumns is the definition of kdaStep. Sums run over ascending key rows.
func kdaColumns(to, from []float32, toStride, fromStride int, o, v, q, k, decay []float32, beta float32) {
	var errors, row [kdaSpan]float32
	u, s := errors[:len(v)], row[:len(v)]
	for i, key := range k {
		for j, f := range from[i*fromStride:][:len(v)] {
			s[j] = float32(f * decay[i])
		}
		axpy(u, key, s)
	}
	for j := range u {
		u[j] = float32(beta * (v[j] - u[j]))
	}
	clear(o)
	for i, key := range k {
		out := to[i*toStride:][:len(v)]
		for j, f := range from[i*fromStride:][:len(v)] {
			out[j] = float32(f*decay[i]) + float32(key*u[j])
		}
		axpy(o, q[i], out)
	}
}
