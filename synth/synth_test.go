package synth

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/metal"
	"deltafin/metal/cpu"
	"deltafin/tokenizer"
)

// tiny is a model of all kinds of layers, small enough to compute in a moment.
func tiny() engine.Config {
	c := WithVocab(K3(6, 48), 2048)
	c.HiddenSize, c.RoutedExpertHiddenSize, c.MoEIntermediateSize, c.IntermediateSize = 128, 64, 64, 160
	c.NumAttentionHeads, c.LinearAttn.NumHeads, c.LinearAttn.HeadDim = 4, 4, 32
	c.QKNopeHeadDim, c.VHeadDim, c.QKRopeHeadDim, c.QLoRARank, c.KVLoRARank = 32, 32, 16, 48, 32
	c.NumExpertsPerToken, c.AttnResBlockSize = 4, 2
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, dir string) *engine.Model {
	t.Helper()
	c, err := engine.ReadConfig(os.DirFS(dir), dir)
	must(t, err)
	s, err := checkpoint.Open(dir)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	d := cpu.Open(cpu.Options{})
	t.Cleanup(func() { d.Close() })
	m, err := engine.Load(c, s, d, metal.BF16)
	must(t, err)
	return m
}

// A model loads, has the size that was said, computes finite values, and its routes
// spread over every expert of every layer.
func TestRoutesSpread(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models", "tiny")
	c := tiny()
	var told int64
	must(t, Write(t.Context(), dir, c, Options{Seed: 1, Progress: func(done, total int64) {
		if done <= told || total != Bytes(c) {
			t.Errorf("%d of %d bytes after %d of %d", done, total, told, Bytes(c))
		}
		told = done
	}}))
	m := load(t, dir)
	if n := m.SpineBytes + m.ExpertsBytes; n != Bytes(c) || told != n {
		t.Errorf("%d bytes of tensors, %d told, want %d", n, told, Bytes(c))
	}
	tok, err := tokenizer.Load(dir, c.VocabSize)
	must(t, err)
	text := "the quick brown fox says good day"
	if ids := tok.Encode(text); tok.Decode(ids) != text || len(ids) > len(text)*3/5 {
		t.Errorf("%q is %v", text, ids)
	}

	const tokens = 1500
	used := map[int][]int{}
	norms := map[int]float64{}
	hook := engine.Hook{
		Route: func(layer, first int, ids []int32, weights []float32) {
			if used[layer] == nil {
				used[layer] = make([]int, c.NumExperts)
			}
			for _, e := range ids {
				used[layer][e]++
			}
		},
		Residual: func(layer, first int, prefix []float32) {
			for _, v := range prefix {
				norms[layer] = max(norms[layer], math.Abs(float64(v)))
			}
		},
	}
	r := rand.New(rand.NewPCG(1, 1))
	ids := make([]int, tokens)
	for i := range ids {
		ids[i] = r.IntN(c.VocabSize - tokenizer.SpecialCount)
	}
	must(t, m.NewSequence().Extend(t.Context(), ids, engine.ExtendOptions{Hook: &hook}))
	mean := float64(tokens*c.NumExpertsPerToken) / float64(c.NumExperts)
	for l := 1; l < c.NumHiddenLayers; l++ {
		least, most := slices.Min(used[l]), slices.Max(used[l])
		t.Logf("layer %d: experts used %d to %d times, %.0f on average; residuals to %.1f", l, least, most, mean, norms[l])
		if least == 0 || float64(most) > 6*mean {
			t.Errorf("layer %d: experts are used %d to %d times, %.0f on average", l, least, most, mean)
		}
	}
}

// The same seed gives the same files, and a model of more layers begins with the same
// layers.
func TestSeed(t *testing.T) {
	shorter := tiny()
	shorter.NumHiddenLayers = 3
	shorter.LinearAttn.KDALayers, shorter.LinearAttn.FullAttnLayers = []int{1, 2, 3}, []int{}
	read := func(c engine.Config, seed uint64) map[string][]byte {
		dir := t.TempDir()
		must(t, Write(t.Context(), dir, c, Options{Seed: seed}))
		files := map[string][]byte{}
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			must(t, err)
			files[e.Name()] = data
		}
		return files
	}
	one, again, other, short := read(tiny(), 7), read(tiny(), 7), read(tiny(), 8), read(shorter, 7)
	if len(one) != 3+1+7 {
		t.Errorf("%d files", len(one))
	}
	for name, data := range one {
		if !bytes.Equal(data, again[name]) {
			t.Errorf("%s differs with the same seed", name)
		}
		if strings.HasPrefix(name, "model-0") && bytes.Equal(data, other[name]) {
			t.Errorf("%s is the same with another seed", name)
		}
	}
	if !bytes.Equal(one["model-00003-of-00007.safetensors"], short["model-00003-of-00004.safetensors"]) {
		t.Error("the third layer depends on how many there are")
	}
}

// K3's own sizes, from docs/k3.md, and a layer of each kind as the engine reads it.
func TestK3(t *testing.T) {
	whole := K3(93, 896)
	if kda, mla := len(whole.LinearAttn.KDALayers), len(whole.LinearAttn.FullAttnLayers); kda != 69 || mla != 24 {
		t.Errorf("%d KDA and %d MLA layers, want 69 and 24", kda, mla)
	}
	if n := Bytes(whole); math.Abs(float64(n)/1e9-(1446+108.8+4.7)) > 1 {
		t.Errorf("%d bytes, want about 1,560 GB", n)
	}
	// The weights of layers this wide are holes: only their places and shapes count.
	for _, layers := range []int{1, 2} { // MLA alone; KDA, then MLA with experts
		c := K3(layers, 16)
		config, err := configJSON(c)
		must(t, err)
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
		tensors := outer(&c)
		for l := range layers {
			tensors = append(tensors, layer(&c, l)...)
		}
		sparse(t, filepath.Join(dir, checkpoint.SingleFile), tensors)
		m := load(t, dir)
		if n := m.SpineBytes + m.ExpertsBytes; n != Bytes(c) {
			t.Errorf("%d layers: the engine reads %d bytes, want %d", layers, n, Bytes(c))
		}
		if layers == 2 {
			if n := m.ExpertsBytes / 16; n != 17547264 {
				t.Errorf("an expert of %d bytes, want 17547264", n)
			}
		}
	}
}

// sparse writes a safetensors file whose tensors are a hole.
func sparse(t *testing.T, name string, tensors []tensor) {
	t.Helper()
	header := map[string]any{}
	var at int64
	for _, x := range tensors {
		header[namespace+x.name] = map[string]any{"dtype": x.dtype, "shape": x.shape, "data_offsets": []int64{at, at + x.bytes()}}
		at += x.bytes()
	}
	text, err := json.Marshal(header)
	must(t, err)
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	_, err = f.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...))
	must(t, err)
	must(t, f.Truncate(8+int64(len(text))+at))
}

// Nothing is left of a model that can't be finished.
func TestCleansUp(t *testing.T) {
	there, above := t.TempDir(), t.TempDir()
	for _, dir := range []string{there, filepath.Join(above, "new"), filepath.Join(above, "some", "deep", "new")} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := Write(ctx, dir, tiny(), Options{Progress: func(done, total int64) {
			if done > total*2/3 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		entries, err := os.ReadDir(dir)
		if len(entries) > 0 || (dir == there) != (err == nil) {
			t.Errorf("left %v, %v", entries, err)
		}
		if entries, err := os.ReadDir(above); len(entries) > 0 || err != nil {
			t.Errorf("left %v above, %v", entries, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	full, file := filepath.Join(dir, "full"), filepath.Join(dir, "file")
	must(t, os.MkdirAll(filepath.Join(full, "notes"), 0o755))
	must(t, os.WriteFile(file, []byte("mine"), 0o644))
	odd := tiny()
	odd.MoEIntermediateSize = 33
	var wrongDir *DirError
	var wrongConfig *engine.ConfigError
	var space *SpaceError
	for _, c := range []struct {
		dir    string
		config engine.Config
		free   int64
		as     any
		want   string
	}{
		{full, tiny(), 1 << 40, &wrongDir, "want a directory that is empty or not there yet, got 1 entries, such as notes"},
		{file, tiny(), 1 << 40, &wrongDir, "got a file"},
		{filepath.Join(dir, "new"), odd, 1 << 40, &wrongConfig, "moe_intermediate_size: want a multiple of 32"},
		{filepath.Join(dir, "new"), K3(93, 896), 1e12, &space, "want 1559.9 GB for the model, got 1000.0 GB free; choose fewer layers"},
	} {
		err := Write(t.Context(), c.dir, c.config, Options{free: func(string) (int64, bool) { return c.free, true }})
		if !errors.As(err, c.as) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %s", c.dir, err, c.want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left %v, %v", entries, err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// A full disk, as far as a writer can tell.
func TestWriteFails(t *testing.T) {
	c := tiny()
	w := &writer{ctx: t.Context(), mx4: map[float64]*mx4Tables{}, wrote: func(int) {}}
	for _, s := range w.streams(layer(&c, 1)) {
		if err := s.Write(failing{}); err != errFull {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

var errFull = errors.New("no space left on device")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// BF16 weights have the moments of a normal distribution and, exponent by exponent,
// its frequencies.
func TestNormalBF16(t *testing.T) {
	for _, c := range []struct{ mean, deviation float64 }{{0, 1 / math.Sqrt(7168)}, {1, .1}, {0, 1}} {
		const n = 1 << 21
		b := make([]byte, 2*n)
		fillBF16(b, stream(1, "x"), normalBF16(c.mean, c.deviation))
		var sum, squares float64
		var exponents, want [256]float64
		for ; len(b) > 0; b = b[2:] {
			bits := binary.LittleEndian.Uint16(b)
			v := float64(math.Float32frombits(uint32(bits) << 16))
			sum, squares = sum+v, squares+(v-c.mean)*(v-c.mean)
			exponents[bits>>7&255]++
		}
		if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean-c.mean) > 5*c.deviation/math.Sqrt(n) || math.Abs(deviation/c.deviation-1) > .003 {
			t.Errorf("mean %g, deviation %g, want %v", mean, deviation, c)
		}
		for e := 1; e < 255; e++ {
			// Rounding to eight bits moves a binade's lower end down by half a step.
			lo, hi := math.Ldexp(1-1./512, e-127), math.Ldexp(1-1./512, e-126)
			at := func(x float64) float64 { return below((x - c.mean) / c.deviation) }
			want[e] = n * (at(hi) - at(lo) + at(-lo) - at(-hi))
			if math.Abs(exponents[e]-want[e]) > 6*math.Sqrt(want[e])+2 {
				t.Errorf("%v: exponent %d %v times, want %.0f", c, e, exponents[e], want[e])
			}
		}
	}
}

// MXFP4 weights have the deviation that was asked for, and scales that their codes fill.
func TestMX4(t *testing.T) {
	const deviation, groups = .02, 1 << 16
	w := &writer{ctx: t.Context(), mx4: map[float64]*mx4Tables{}, wrote: func(int) {}}
	codes, scales := make([]byte, groups*group/2), make([]byte, groups)
	w.groups(stream(1, "x"), deviation, codes, scales)
	again := make([]byte, groups)
	w.groups(stream(1, "x"), deviation, nil, again)
	if !bytes.Equal(scales, again) {
		t.Error("the scales differ from those that go with the codes")
	}
	var squares float64
	var used [16]int
	for i, c := range codes {
		scale := math.Ldexp(1, int(scales[i*2/group])-127)
		for _, code := range []byte{c & 15, c >> 4} {
			used[code]++
			v := []float64{0, .5, 1, 1.5, 2, 3, 4, 6}[code&7] * scale
			squares += v * v
		}
	}
	if got := math.Sqrt(squares / (groups * group)); math.Abs(got/deviation-1) > .06 {
		t.Errorf("deviation %g, want %g", got, deviation)
	}
	for c, n := range used {
		if n < groups/16 {
			t.Errorf("code %d is used %d times in %d groups", c, n, groups)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	c := K3(2, 16)
	tensors := layer(&c, 1)
	for _, x := range tensors {
		if name := x.name; strings.HasSuffix(name, "q_a_proj.weight") || strings.HasSuffix(name, ".0.w1.weight_packed") {
			b.Run(fmt.Sprint(x.dtype), func(b *testing.B) {
				w := &writer{ctx: b.Context(), mx4: map[float64]*mx4Tables{}, wrote: func(int) {}}
				b.SetBytes(x.bytes())
				for b.Loop() {
					must(b, w.write(io.Discard, &x))
				}
			})
		}
	}
}
