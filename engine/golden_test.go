package engine

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"testing"

	"deltafin/checkpoint"
	"deltafin/metal/cpu"
)

func f32s(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func TestScratchGolden(t *testing.T) {
	for _, tc := range []struct {
		dir, golden string
		names       []string
	}{
		{"/work/shared/models/nano-k3", "/work/shared/goldens/", []string{"france", "one", "go"}},
		{"/work/shared/models/fixture-wide", "/work/shared/models/fixture-wide/", []string{"s0", "s1", "s2"}},
	} {
		snap, err := checkpoint.Open(tc.dir)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(os.DirFS(tc.dir), tc.dir)
		if err != nil {
			t.Fatal(err)
		}
		dev := cpu.Open(cpu.Options{})
		m, err := Load(c, snap, dev)
		if err != nil {
			t.Fatal(err)
		}
		gd := "/tmp/g-" + tc.names[0]
		os.MkdirAll(gd, 0o755)
		src := tc.golden + "nano-forward.safetensors"
		if tc.names[0] == "s0" {
			src = tc.golden + "golden.safetensors"
		}
		b, _ := os.ReadFile(src)
		os.WriteFile(gd+"/model.safetensors", b, 0o644)
		g, err := checkpoint.Open(gd)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range tc.names {
			idt, _ := g.Tensor(name + ".ids")
			var ids []int
			for _, f := range f32s(idt.Data) {
				ids = append(ids, int(math.Float32bits(f)))
			}
			get := func(n string) []float32 { x, _ := g.Tensor(name + "." + n); return f32s(x.Data) }
			logits, res, rid, rw := get("logits"), get("residual"), get("route_ids"), get("route_weights")
			s := m.NewSequence()
			cmp := func(what string, got, want []float32, scale float32) {
				var top, d float32
				for i := range want {
					top = max(top, float32(math.Abs(float64(want[i]))))
				}
				for i := range got {
					d = max(d, float32(math.Abs(float64(got[i]-want[i]))))
				}
				if d > 1e-4*top {
					t.Errorf("%s %s: off by %g of %g", name, what, d, top)
				}
			}
			T, k, h := len(ids), c.NumExpertsPerToken, c.HiddenSize
			var worst float32
			hook := &Hook{
				Residual: func(layer, first int, p []float32) { cmp("residual", p, res[layer*T*h:(layer+1)*T*h], 1) },
				Route: func(layer, first int, ids []int32, w []float32) {
					l := layer - 1
					for i, id := range ids {
						if math.Float32bits(rid[l*T*k+i]) != uint32(id) {
							t.Fatalf("%s layer %d route %d: %d", name, layer, i, id)
						}
					}
					cmp("weights", w, rw[l*T*k:(l+1)*T*k], 1)
				},
				Logits: func(first int, l []float32) {
					cmp("logits", l, logits, 1)
					for i := range l {
						worst = max(worst, float32(math.Abs(float64(l[i]-logits[i]))))
					}
				},
			}
			if err := s.Extend(context.Background(), ids, ExtendOptions{Hook: hook}); err != nil {
				t.Fatal(err)
			}
			t.Log(name, "worst logit", worst)
		}
	}
}
