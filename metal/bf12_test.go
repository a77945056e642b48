package metal

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// Every bit pattern comes back, whatever the exponents are.
func TestBF12(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]byte, 0, 1<<17)
	for v := range 1 << 16 {
		all = append(all, byte(v), byte(v>>8))
	}
	for name, bf16 := range map[string][]byte{
		"every pattern": all,
		"one value":     bytes.Repeat([]byte{0x80, 0x3f}, 4096),
		"zeros":         make([]byte, 8192),
		"normal":        normal(r, 1<<16),
		"nothing":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			cols := 256
			w := Matrix{Format: BF12, Rows: len(bf16) / 2 / cols, Cols: cols}
			w.Data, w.Scales = PackBF12(w.Rows, w.Cols, bf16)
			if err := CheckBF12(w.Rows, w.Cols, w.Scales); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 2*cols)
			for row := range w.Rows {
				UnpackBF12(got, &w, row)
				if want := bf16[row*2*cols : (row+1)*2*cols]; !bytes.Equal(got, want) {
					t.Fatalf("row %d is %x, want %x", row, got, want)
				}
			}
			if size := float64(len(w.Data) + len(w.Scales)); name == "normal" && size > 0.77*float64(len(bf16)) {
				t.Errorf("normal weights take %.3f of BF16's size, want at most 0.77", size/float64(len(bf16)))
			}
		})
	}
}

// normal is n normally distributed weights, as a trained matrix has.
func normal(r *rand.Rand, n int) []byte {
	var b []byte
	for range n {
		v := math.Float32bits(float32(r.NormFloat64()*0.02)) >> 16
		b = append(b, byte(v), byte(v>>8))
	}
	return b
}

func FuzzCheckBF12(f *testing.F) {
	_, aside := PackBF12(4, 64, normal(rand.New(rand.NewPCG(1, 2)), 256))
	f.Add(uint8(4), uint8(2), aside)
	f.Add(uint8(0), uint8(1), aside[:20])
	f.Fuzz(func(t *testing.T, rows, blocks uint8, aside []byte) {
		w := Matrix{Format: BF12, Rows: int(rows), Cols: int(blocks) * BF12Block, Scales: aside}
		if CheckBF12(w.Rows, w.Cols, aside) != nil {
			return
		}
		w.Data = make([]byte, w.Rows*w.Format.RowBytes(w.Cols))
		for r := range w.Rows {
			UnpackBF12(make([]byte, 2*w.Cols), &w, r) // whatever was accepted can be read
		}
	})
}
