package cpu

import "deltafin/metal"

// kernels are the loops of one instruction set. Each equals its portable definition
// bit for bit; a nil function means the definition itself.
type kernels struct {
	name string // "portable", "AVX2", "AVX-512"

	// bf16Dot4 and mx4Dot4 are y[r] = dot(w[r], x) for four rows of weights, n a multiple of 32.
	bf16Dot4, mx4Dot4 func(y *float32, w *byte, wStride int, s *byte, sStride int, x *float32, n int)
	// f32Dot1x4 is y[i] = dot(w, x[i]) for four vectors, n a multiple of 16.
	f32Dot1x4 func(y *float32, yStride int, w, x *float32, xStride, n int)
	// axpyWhole is axpy for n a multiple of 16.
	axpyWhole func(y *float32, a float32, x *float32, n int)

	vectors
}

var portable = kernels{name: "portable", vectors: portableVectors}

// matRows computes outputs lo … hi-1 of n vectors: y[i·yStride + r-lo] = dot(w[r],
// x[i·w.Cols:]). scratch holds w.Cols floats.
func (k *kernels) matRows(y []float32, yStride int, w *metal.Matrix, lo, hi int, x []float32, n int, scratch []float32) {
	cols, first := w.Cols, lo
	if n < 4 && k.dot4(w.Format) != nil && cols%32 == 0 && cols > 0 {
		dot4 := k.dot4(w.Format)
		size, groups := w.Format.RowBytes(cols), 0
		scale := &w.Data[0] // any address: BF16 has no scales
		if w.Format == metal.MX4 {
			groups = cols / metal.MX4Group
		}
		for ; lo+4 <= hi; lo += 4 {
			if groups > 0 {
				scale = &w.Scales[lo*groups : (lo+4)*groups][0]
			}
			weights := &w.Data[lo*size : (lo+4)*size][0]
			for i := range n {
				at := i*yStride + lo - first
				dot4(&y[at : at+4][0], weights, size, scale, groups, &x[i*cols : (i+1)*cols][0], cols)
			}
		}
	}
	for r := lo; r < hi; r++ {
		widen(scratch, w, r)
		k.dots(y[r-first:], yStride, scratch[:cols], x, cols, n)
	}
}

func (k *kernels) dot4(f metal.Format) func(y *float32, w *byte, wStride int, s *byte, sStride int, x *float32, n int) {
	switch f {
	case metal.BF16:
		return k.bf16Dot4
	case metal.MX4:
		return k.mx4Dot4
	}
	return nil
}

// dots is y[i·yStride] = dot(w, x[i·xStride:]) for n vectors.
func (k *kernels) dots(y []float32, yStride int, w, x []float32, xStride, n int) {
	if k.f32Dot1x4 == nil || n < 4 || len(w)%16 != 0 || len(w) == 0 {
		for i := range n {
			y[i*yStride] = dot(w, x[i*xStride:])
		}
		return
	}
	for i := 0; i < n; i += 4 {
		i = min(i, n-4) // the last four overlap those before: the same results again
		_, _ = y[(i+3)*yStride], x[(i+3)*xStride+len(w)-1]
		k.f32Dot1x4(&y[i*yStride], 4*yStride, &w[0], &x[i*xStride], 4*xStride, len(w))
	}
}

// axpy is y[i] = fma(a, x[i], y[i]).
func (k *kernels) axpy(y []float32, a float32, x []float32) {
	if whole := len(y) &^ 15; k.axpyWhole != nil && whole > 0 {
		_ = x[whole-1]
		k.axpyWhole(&y[0], a, &x[0], whole)
		y, x = y[whole:], x[whole:]
	}
	axpy(y, a, x)
}
