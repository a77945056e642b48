package cpu

import (
	"fmt"
	"math"

	"deltafin/metal"
)

// e2m1 is the value of each four-bit code: sign, two bits of exponent, one of mantissa.
var e2m1 = [16]float32{0, .5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -.5, -1, -1.5, -2, -3, -4, -6}

// NewMatrix wraps weights in the checkpoint's bytes.
func (d *Device) NewMatrix(f metal.Format, rows, cols int, data, scales []byte) metal.Matrix {
	want, wantScales := rows*f.RowBytes(cols), 0
	switch f {
	case metal.MX4:
		wantScales = rows * (cols / metal.MX4Group)
	case metal.BF12:
		wantScales = len(scales)
		if err := metal.CheckBF12(rows, cols, scales); err != nil {
			panic(err)
		}
	}
	if len(data) != want || len(scales) != wantScales {
		panic(fmt.Sprintf("cpu: %v matrix of %d×%d: %d bytes of weights and %d of scales, want %d and %d", f, rows, cols, len(data), len(scales), want, wantScales))
	}
	return metal.Matrix{Format: f, Rows: rows, Cols: cols, Data: data, Scales: scales}
}

// widen writes row r of w, exactly, to dst[:w.Cols].
func widen(dst []float32, w *metal.Matrix, r int) {
	size := w.Format.RowBytes(w.Cols)
	b := w.Data[r*size : (r+1)*size]
	dst = dst[:w.Cols]
	switch w.Format {
	case metal.F32:
		metal.ReadF32(dst, b)
	case metal.BF16:
		metal.WidenBF16(dst, b)
	case metal.BF12:
		row := make([]byte, 2*w.Cols)
		metal.UnpackBF12(row, w, r)
		metal.WidenBF16(dst, row)
	case metal.MX4:
		groups := w.Cols / metal.MX4Group
		for g, scale := range w.Scales[r*groups : (r+1)*groups] {
			s := e8m0(scale)
			var table [16]float32
			for c := range table {
				table[c] = e2m1[c] * s
			}
			out := dst[g*metal.MX4Group : (g+1)*metal.MX4Group]
			for i, c := range b[g*metal.MX4Group/2 : (g+1)*metal.MX4Group/2] {
				out[2*i] = table[c&15]
				out[2*i+1] = table[c>>4]
			}
		}
	}
}

// e8m0 is 2^(b-127); 255 is not a number. 6·2^127, which float32 lacks, becomes
// infinite: no released scale comes near.
func e8m0(b byte) float32 {
	switch b {
	case 0:
		return math.Float32frombits(1 << 22) // 2^-127, subnormal
	case 255:
		return float32(math.NaN())
	}
	return math.Float32frombits(uint32(b) << 23)
}
