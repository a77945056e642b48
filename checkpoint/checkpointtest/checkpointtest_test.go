package checkpointtest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"deltafin/checkpoint"
)

func TestDir(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tensors := []checkpoint.Tensor{
		F32("f", Normal(r, 6, 1), 2, 3),
		BF16("b", Normal(r, 6, 0.02), 6),
		I32("i", []int32{-1}),
		U8("u", Bytes(r, 4), 4, 1),
	}
	for _, shards := range [][][]checkpoint.Tensor{{tensors}, {tensors[:1], tensors[1:]}} {
		dir := Dir(t, shards, map[string][]byte{"config.json": []byte("{}")})
		s, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, want := range tensors {
			got, err := s.Want(want.Name, want.DType, want.Shape...)
			if err != nil || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s: got %x, %v, want %x", want.Name, got.Data, err, want.Data)
			}
		}
		if b, err := os.ReadFile(filepath.Join(dir, "config.json")); err != nil || string(b) != "{}" {
			t.Errorf("config.json: got %q, %v", b, err)
		}
	}
	if again := Normal(rand.New(rand.NewPCG(1, 2)), 6, 1); !bytes.Equal(F32("f", again, 6).Data, tensors[0].Data) {
		t.Error("equal sources gave different values")
	}
}

func TestNormal(t *testing.T) {
	var sum, squares float64
	const n = 100_000
	for _, v := range Normal(rand.New(rand.NewPCG(3, 4)), n, 0.5) {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 0.01 || math.Abs(deviation-0.5) > 0.01 {
		t.Errorf("mean %g, deviation %g, want 0 and 0.5", mean, deviation)
	}
}

func TestBF16(t *testing.T) {
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -2, // exact
		math.Float32frombits(0x3f808000), math.Float32frombits(0x3f818000), // ties
		math.Float32frombits(0x3f808001), math.Float32frombits(0x3f807fff),
		math.MaxFloat32, float32(math.Inf(-1)), math.Float32frombits(0x7f800001)}
	want := []byte{0, 0, 0, 0x80, 0x80, 0x3f, 0, 0xc0, 0x80, 0x3f, 0x82, 0x3f, 0x81, 0x3f, 0x80, 0x3f, 0x80, 0x7f, 0x80, 0xff, 0xc0, 0x7f}
	if got := BF16("x", values, len(values)).Data; !slices.Equal(got, want) {
		t.Errorf("got %x\nwant %x", got, want)
	}
}

func TestWrongSizePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("3 values for shape [2] did not panic")
		}
	}()
	F32("f", []float32{1, 2, 3}, 2)
}
