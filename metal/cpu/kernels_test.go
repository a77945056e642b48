package cpu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"deltafin/metal"
)

// Every level gives the definition's bits, for any values, lengths and addresses.
func TestLevels(t *testing.T) {
	for _, k := range levels()[1:] {
		t.Run(k.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			random := func(n int) []float32 { // at any address of four bytes
				v := make([]float32, n+16)[r.IntN(16):][:n]
				for i := range v {
					switch r.IntN(20) {
					case 0: // every exponent, but what overflows
						v[i] = math.Float32frombits(r.Uint32()&0x807fffff | uint32(r.IntN(180))<<23)
					case 1:
						v[i] = float32(math.Copysign(0, r.NormFloat64()))
					default:
						v[i] = float32(r.NormFloat64())
					}
				}
				return v
			}
			for range 300 {
				cols, rows, n := r.IntN(200), 1+r.IntN(45), 1+r.IntN(11)
				if r.IntN(8) == 0 {
					cols, n = 700+r.IntN(900), 90+r.IntN(20) // several pieces
				}
				if r.IntN(3) > 0 {
					cols = (cols + 31) &^ 31
				}
				w := metal.Matrix{Format: metal.Format(r.IntN(4)), Rows: rows, Cols: cols}
				if w.Format == metal.MX4 {
					w.Cols = (cols + 31) &^ 31
					w.Scales = make([]byte, rows*w.Cols/32)
					for i := range w.Scales {
						w.Scales[i] = byte(r.IntN(190)) // 0, the subnormal scale, too
						if r.IntN(200) == 0 {
							w.Scales[i] = byte(r.Uint32()) // what overflows, or is not a number
						}
					}
				}
				packed := w.Format == metal.BF12
				if packed {
					w.Format, w.Cols = metal.BF16, (cols+31)&^31
				}
				size := rows * w.Format.RowBytes(w.Cols)
				w.Data = make([]byte, size+8)[r.IntN(8):][:size]
				values := random(size)
				for i := range w.Data {
					w.Data[i] = byte(r.Uint32())
				}
				for i := 0; w.Format == metal.BF16 && i+1 < size; i += 2 {
					binary.LittleEndian.PutUint16(w.Data[i:], uint16(math.Float32bits(values[i])>>16))
				}
				for i := 0; w.Format == metal.F32 && i+3 < size; i += 4 {
					binary.LittleEndian.PutUint32(w.Data[i:], math.Float32bits(values[i]))
				}
				if packed {
					w.Format = metal.BF12
					w.Data, w.Scales = metal.PackBF12(rows, w.Cols, w.Data)
				}
				lo := r.IntN(rows)
				hi := lo + 1 + r.IntN(rows-lo)
				x := random(n * w.Cols)
				got, want := random(n*rows+9), make([]float32, n*rows+9)
				copy(want, got) // what lies between and beyond the outputs must stay
				k.product(got, rows, &w, lo, hi, x, n, new(scratch))
				portable.product(want, rows, &w, lo, hi, x, n, new(scratch))
				same(t, got, want)

				got, want = random(n*w.Cols+9), nil
				want = append(want, got...)
				k.unzipRows(got, x, w.Cols, n)
				portable.unzipRows(want, x, w.Cols, n)
				same(t, got, want)
				got = random((hi-lo)*w.Cols + 9)
				want = append(want[:0], got...)
				k.widenRows(got, &w, lo, hi, new(scratch))
				portable.widenRows(want, &w, lo, hi, new(scratch))
				same(t, got, want)
				zip(got[:w.Cols], want)
				widen(want, &w, lo)
				same(t, got[:w.Cols], want[:w.Cols])

				y, a := random(cols), random(1)[0]
				z := append([]float32(nil), y...)
				if len(x) >= cols {
					k.axpy(y, a, x)
					axpy(z, a, x)
				}
				same(t, y, z)

				// Attention's two: rows with gaps between them.
				count, stride := 4*(1+r.IntN(5)), cols+r.IntN(5)
				queries, latents := random(n*stride), random(count*stride)
				got = random(n*(count+3) + 9)
				want = append(want[:0], got...)
				k.dots(got, count+3, latents, stride, count, queries, stride, n, cols, new(scratch))
				portable.dots(want, count+3, latents, stride, count, queries, stride, n, cols, nil)
				same(t, got, want)
				got = random(n*stride + 9)
				want = append(want[:0], got...)
				k.mixes(got, stride, queries, stride, n, latents, stride, min(count, stride), cols)
				portable.mixes(want, stride, queries, stride, n, latents, stride, min(count, stride), cols)
				same(t, got, want)
			}
		})
	}
}

func same(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("value %d is %x, want %x", i, got[i], want[i])
		}
	}
}
