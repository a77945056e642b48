package cpu

import (
	"unsafe"

	"deltafin/metal"
)

// A matrix product is defined as y = dot(unzip(w), unzip(x)) for each row of weights,
// widened, and each input. unzip is there for speed alone: weights come in pairs.

// pairs is the number of floats that unzip reorders at a time.
const pairs = 32

// unzip copies x to y with the even elements of each whole block of 32 before the odd
// ones; what is left at the end stays in order. y is not x.
func unzip(y, x []float32) {
	y = y[:len(x)]
	whole := len(x) &^ (pairs - 1)
	for b := 0; b < whole; b += pairs {
		in, out := x[b:b+pairs], y[b:b+pairs]
		for i := range pairs / 2 {
			out[i], out[pairs/2+i] = in[2*i], in[2*i+1]
		}
	}
	copy(y[whole:], x[whole:])
}

// zip is unzip's inverse, for len(y) floats.
func zip(y, x []float32) {
	x = x[:len(y)]
	whole := len(y) &^ (pairs - 1)
	for b := 0; b < whole; b += pairs {
		in, out := x[b:b+pairs], y[b:b+pairs]
		for i := range pairs / 2 {
			out[2*i], out[2*i+1] = in[i], in[pairs/2+i]
		}
	}
	copy(y[whole:], x[whole:])
}

// unzipRows is unzip for n rows of cols floats.
func (k *kernels) unzipRows(y, x []float32, cols, n int) {
	if k.unzip != nil && cols%pairs == 0 && cols*n > 0 {
		_, _ = y[n*cols-1], x[n*cols-1]
		k.unzip(&y[0], &x[0], n*cols)
		return
	}
	for i := range n {
		unzip(y[i*cols:], x[i*cols:(i+1)*cols])
	}
}

const (
	// few is the number of inputs under which each walks the weights by itself;
	// more share weights that are widened once.
	few = 3
	// A part of a product of many inputs: rows of weights, inputs at a time, and
	// columns at a time, so that weights, inputs and unfinished sums stay in the
	// second cache, and what a tile uses in the first.
	tileRows, tileInputs, tileColumns = 32, 96, 768
)

// product computes outputs lo … hi-1 of n inputs x[n][w.Cols], unzipped:
// y[i·yStride + r-lo].
func (k *kernels) product(y []float32, yStride int, w *metal.Matrix, lo, hi int, x []float32, n int, s *scratch) {
	whole := (hi - lo) &^ 3
	if k.tile == nil || w.Cols%pairs != 0 || w.Cols == 0 {
		whole = 0
	}
	if whole > 0 {
		_, _ = y[(n-1)*yStride+whole-1], x[n*w.Cols-1]
		if n <= few && w.Format != metal.F32 {
			k.productFew(y, yStride, w, lo, whole, x, n, s)
		} else {
			k.productMany(y, yStride, w, lo, whole, x, n, s)
		}
	}
	if lo+whole == hi {
		return
	}
	row := s.floats(w.Cols)[:w.Cols]
	for r := lo + whole; r < hi; r++ {
		k.widenRows(row, w, r, r+1, s)
		for i := range n {
			y[i*yStride+r-lo] = dot(row, x[i*w.Cols:])
		}
	}
}

// productFew is rows lo … lo+rows-1, a multiple of four, one input after the other.
func (k *kernels) productFew(y []float32, yStride int, w *metal.Matrix, lo, rows int, x []float32, n int, s *scratch) {
	cols, size := w.Cols, w.Format.RowBytes(w.Cols)
	step := rows
	if n > 1 {
		step = 8 // the second input finds the weights in a cache
	}
	for r := 0; r < rows; r += step {
		step = min(step, rows-r)
		data := w.Data[(lo+r)*size : (lo+r+step)*size]
		for i := range n {
			out, in := &y[i*yStride+r], &x[i*cols]
			switch w.Format {
			case metal.BF16:
				k.bf16Rows(out, &data[0], size, in, cols, step)
			case metal.BF12:
				k.productBF12(y[i*yStride+r:], w, lo+r, step, x[i*cols:(i+1)*cols], s)
			case metal.MX4:
				groups := cols / metal.MX4Group
				scales := w.Scales[(lo+r)*groups : (lo+r+step)*groups]
				k.mx4Rows(out, &data[0], size, &scales[0], groups, in, cols, step)
			}
		}
	}
}

// productBF12 is rows lo … lo+rows-1, a multiple of four, for one input. Where a row keeps a
// block aside, its group of rows stops, and that row alone takes the block's BF16.
func (k *kernels) productBF12(y []float32, w *metal.Matrix, lo, rows int, x []float32, s *scratch) {
	aside := w.Aside()
	size, exponents := w.Format.RowBytes(w.Cols), &w.Scales[0]
	blocks := w.Cols / pairs
	acc := s.floats(k.bf12Group * lanes)
	defer s.release(acc)
	for r := 0; r < rows; {
		// As many rows as have nothing aside in one call.
		n := 0
		for r+n < rows && aside.None(lo+r+n, min(4, rows-r-n)) {
			n += 4
		}
		if n > 0 {
			k.bf12Rows(&y[r], &acc[0], &w.Data[(lo+r)*size : (lo+r+n)*size][0], size, exponents, &x[0], w.Cols, n, tileFold)
			r += n
			continue
		}
		n = min(k.bf12Group, rows-r)
		data := w.Data[(lo+r)*size : (lo+r+n)*size]
		var next, end [8]int // of each row's blocks aside
		for j := range n {
			next[j], end[j] = aside.Row(lo + r + j)
		}
		for at, flags := 0, 0; ; flags = tileContinue {
			stop := blocks
			for j := range n {
				if next[j] < end[j] {
					stop = min(stop, aside.Block(next[j]))
				}
			}
			if stop == blocks {
				if at < blocks || flags == 0 {
					k.bf12Rows(&y[r], &acc[0], &data[at*metal.BF12BlockBytes], size, exponents, &x[at*pairs], (blocks-at)*pairs, n, flags|tileFold)
				} else {
					k.bf12Rows(&y[r], &acc[0], &data[0], size, exponents, &x[0], 0, n, flags|tileFold)
				}
				break
			}
			if stop > at || flags == 0 {
				k.bf12Rows(&y[r], &acc[0], &data[at*metal.BF12BlockBytes], size, exponents, &x[at*pairs], (stop-at)*pairs, n, flags)
			}
			var kept [8][lanes]float32
			for j := range n {
				if next[j] < end[j] && aside.Block(next[j]) == stop {
					copy(kept[j][:], acc[j*lanes:])
				}
			}
			k.bf12Rows(&y[r], &acc[0], &data[stop*metal.BF12BlockBytes], size, exponents, &x[stop*pairs], pairs, n, tileContinue)
			for j := range n {
				if next[j] < end[j] && aside.Block(next[j]) == stop {
					copy(acc[j*lanes:(j+1)*lanes], kept[j][:])
					k.bf16Block(&acc[j*lanes], &aside.BF16(next[j])[0], &x[stop*pairs])
					next[j]++
				}
			}
			at = stop + 1
		}
		r += n
	}
}

// productMany is rows lo … lo+rows-1, a multiple of four, of weights widened once for
// all inputs.
func (k *kernels) productMany(y []float32, yStride int, w *metal.Matrix, lo, rows int, x []float32, n int, s *scratch) {
	cols := w.Cols
	pieces := (cols + tileColumns - 1) / tileColumns
	width := ((cols+pieces-1)/pieces + pairs - 1) &^ (pairs - 1)
	wide := s.floats(min(rows, tileRows) * width)
	sums := s.floats(tileSums)
	if pieces > 1 {
		sums = s.floats(tileInputs * min(rows, tileRows) * lanes)
	}
	for r := 0; r < rows; r += tileRows {
		height := min(tileRows, rows-r)
		for i0 := 0; i0 < n; i0 += tileInputs {
			inputs := min(tileInputs, n-i0)
			for p := range pieces {
				from := p * width
				to := min(cols, from+width)
				if i0 == 0 || pieces > 1 {
					for j := range height {
						k.widenPart(wide[j*width:], w, lo+r+j, from, to)
					}
				}
				flags := 0
				if p > 0 {
					flags |= tileContinue
				}
				if p == pieces-1 {
					flags |= tileFold
				}
				acc := &sums[0]
				for i := 0; i < inputs; {
					tall := min(len(k.tile), inputs-i)
					if pieces > 1 {
						acc = &sums[i*height*lanes]
					}
					k.tile[tall-1](&y[(i0+i)*yStride+r], 4*yStride, acc, &wide[0], 4*width, &x[(i0+i)*cols+from], 4*cols, to-from, height/4, flags)
					i += tall
				}
			}
		}
	}
}

// tileSums is the floats that the largest tile keeps for four rows.
const tileSums = 6 * 4 * lanes

// What a tile does at its ends.
const (
	tileContinue = 1 << iota // begin with the sums of the columns before
	tileFold                 // fold the sums: these were the last columns
)

// widenRows is rows lo … hi-1 of w as floats, unzipped.
func (k *kernels) widenRows(y []float32, w *metal.Matrix, lo, hi int, s *scratch) {
	if k.tile != nil && w.Cols%pairs == 0 && w.Cols > 0 {
		for r := lo; r < hi; r++ {
			k.widenPart(y[(r-lo)*w.Cols:], w, r, 0, w.Cols)
		}
		return
	}
	row := s.floats(w.Cols)[:w.Cols]
	defer s.release(row)
	for r := lo; r < hi; r++ {
		widen(row, w, r)
		unzip(y[(r-lo)*w.Cols:], row)
	}
}

// widenPart is columns from … to-1 of row r as floats, unzipped; both are multiples of 32.
// It needs kernels that have tiles.
func (k *kernels) widenPart(y []float32, w *metal.Matrix, r, from, to int) {
	y = y[:to-from]
	size := w.Format.RowBytes(w.Cols)
	data := w.Data[r*size+w.Format.RowBytes(from) : r*size+w.Format.RowBytes(to)]
	switch w.Format {
	case metal.F32:
		k.unzip(&y[0], (*float32)(unsafe.Pointer(&data[0])), len(y)) // every CPU with kernels is little-endian
	case metal.BF16:
		k.bf16Widen(&y[0], &data[0], len(y))
	case metal.BF12:
		k.bf12Widen(&y[0], &data[0], &w.Scales[0], len(y))
		aside := w.Aside()
		lo, hi := aside.Row(r)
		for i := lo; i < hi; i++ {
			if at := aside.Block(i)*pairs - from; at >= 0 && at < len(y) {
				k.bf16Widen(&y[at], &aside.BF16(i)[0], pairs)
			}
		}
	case metal.MX4:
		groups := w.Cols / metal.MX4Group
		k.mx4Widen(&y[0], &data[0], &w.Scales[r*groups+from/metal.MX4Group], len(y))
	}
}
