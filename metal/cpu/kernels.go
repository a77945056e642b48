package cpu

// kernels are the loops of one instruction set. Each equals its portable definition
// bit for bit; a nil function means the definition itself. Strides are in bytes.
type kernels struct {
	name string // "portable", "AVX2", "AVX-512", "NEON"

	// The loops of matrix products: see asm/product.go and asm/arm64product.go, which write them.
	bf16Rows  func(y *float32, w *byte, stride int, x *float32, n, rows int)
	mx4Rows   func(y *float32, w *byte, stride int, s *byte, scaleStride int, x *float32, n, rows int)
	bf12Rows  func(y, acc *float32, w *byte, stride int, exponents *byte, x *float32, n, rows, flags int)
	bf12Group int // the most rows of one call that keeps its lanes in acc
	bf16Block func(acc *float32, w *byte, x *float32)
	bf16Widen func(y *float32, w *byte, n int)
	bf12Widen func(y *float32, w, exponents *byte, n int)
	mx4Widen  func(y *float32, w, s *byte, n int)
	unzip     func(y, x *float32, n int)
	tile      []tileFunc // by the number of rows of x, from one
	mixTile   []mixFunc  // by the number of rows of p, from one

	// axpyWhole is axpy for n a multiple of 16.
	axpyWhole func(y *float32, a float32, x *float32, n int)

	vectors
}

type (
	tileFunc func(y *float32, yStride int, acc, w *float32, wStride int, x *float32, xStride, n, groups, flags int)
	mixFunc  func(y *float32, yStride int, p *float32, pStride int, c *float32, cStride, n, width int)
)

var portable = kernels{name: "portable", vectors: portableVectors}

// axpy is y[i] = fma(a, x[i], y[i]).
func (k *kernels) axpy(y []float32, a float32, x []float32) {
	if whole := len(y) &^ 15; k.axpyWhole != nil && whole > 0 {
		_ = x[whole-1]
		k.axpyWhole(&y[0], a, &x[0], whole)
		y, x = y[whole:], x[whole:]
	}
	axpy(y, a, x)
}

// dots is y[q·yStride + r] = dot(w[r], x[q]) for rows of w and qs rows of x, of n floats
// each; strides are in floats.
func (k *kernels) dots(y []float32, yStride int, w []float32, wStride, rows int, x []float32, xStride, qs, n int, s *scratch) {
	whole := 0
	if k.tile != nil && n%lanes == 0 && n > 0 {
		whole = rows &^ 3
	}
	if whole > 0 {
		_, _, _ = y[(qs-1)*yStride+whole-1], w[(whole-1)*wStride+n-1], x[(qs-1)*xStride+n-1]
		sums := s.floats(tileSums)
		for q := 0; q < qs; {
			tall := min(len(k.tile), qs-q)
			k.tile[tall-1](&y[q*yStride], 4*yStride, &sums[0], &w[0], 4*wStride, &x[q*xStride], 4*xStride, n, whole/4, tileFold)
			q += tall
		}
		s.release(sums)
	}
	for r := whole; r < rows; r++ {
		for q := range qs {
			y[q*yStride+r] = dot(w[r*wStride:r*wStride+n], x[q*xStride:])
		}
	}
}

// mixes adds p[q][i]·c[i] to y[q] for qs rows, i ascending to n, by axpy; width floats a
// row, strides are in floats.
func (k *kernels) mixes(y []float32, yStride int, p []float32, pStride, qs int, c []float32, cStride, n, width int) {
	whole := 0
	if k.mixTile != nil && n > 0 {
		whole = width &^ (lanes - 1)
	}
	if whole > 0 {
		_, _, _ = y[(qs-1)*yStride+whole-1], p[(qs-1)*pStride+n-1], c[(n-1)*cStride+whole-1]
		for q := 0; q < qs; {
			tall := min(len(k.mixTile), qs-q)
			k.mixTile[tall-1](&y[q*yStride], 4*yStride, &p[q*pStride], 4*pStride, &c[0], 4*cStride, n, whole)
			q += tall
		}
	}
	if whole == width {
		return
	}
	for q := range qs {
		for i := range n {
			axpy(y[q*yStride+whole:q*yStride+width], p[q*pStride+i], c[i*cStride+whole:])
		}
	}
}
