package engine_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/engine/enginetest"
	"deltafin/metal"
	"deltafin/metal/cpu"
	"deltafin/models"
	"deltafin/prefetch"
	"deltafin/tokenizer"
)

// nano opens the embedded nano-k3 on the given number of threads.
func nano(t testing.TB, threads int) (*engine.Model, *tokenizer.Tokenizer) {
	t.Helper()
	dir := nanoDir(t)
	m := open(t, dir, threads)
	tok, err := tokenizer.Load(dir, m.VocabSize)
	if err != nil {
		t.Fatal(err)
	}
	return m, tok
}

func nanoDir(t testing.TB) string {
	t.Helper()
	dir, err := models.Unpack(t.TempDir(), "nano-k3")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// small writes a small random model in three shards and opens it.
func small(t testing.TB, threads int) *engine.Model {
	t.Helper()
	dir := t.TempDir()
	if err := enginetest.Write(dir, enginetest.Small(), 1, 3); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, threads)
}

func open(t testing.TB, dir string, threads int) *engine.Model {
	t.Helper()
	return openSpine(t, dir, threads, metal.BF16)
}

func openSpine(t testing.TB, dir string, threads int, spine metal.Format) *engine.Model {
	t.Helper()
	c, err := engine.ReadConfig(os.DirFS(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	device := cpu.Open(cpu.Options{Threads: threads})
	t.Cleanup(func() { device.Close(); snapshot.Close() })
	m, err := engine.Load(c, snapshot, device, spine)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// near fails unless every got is within 1e-4 of want's largest magnitude.
func near[A, B float32 | float64](t *testing.T, what string, got []A, want []B) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	var top, off float64
	for i := range want {
		top = max(top, math.Abs(float64(want[i])))
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= off) {
			off = d
		}
	}
	if !(off <= 1e-4*top) {
		t.Errorf("%s: off by %.3g where the largest magnitude is %.3g", what, off, top)
	}
}

// A packed spine is smaller and gives the same bits.
func TestPackedSpine(t *testing.T) {
	dir := nanoDir(t)
	stored, packed := open(t, dir, 2), openSpine(t, dir, 2, metal.BF12)
	if packed.PackedBytes == 0 || float64(packed.SpineBytes) > 0.77*float64(stored.SpineBytes) {
		t.Errorf("%d of %d bytes: want at most 0.77", packed.SpineBytes, stored.SpineBytes)
	}
	ids := []int{1, 300, 2000, 17, 5, 901, 44, 1203}
	a, b := stored.NewSequence(), packed.NewSequence()
	for _, part := range [][]int{ids[:5], ids[5:6], ids[6:]} { // tiles, one row, two rows
		for _, s := range []*engine.Sequence{a, b} {
			if err := s.Extend(t.Context(), part, engine.ExtendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(a.Logits(), b.Logits()) {
			t.Fatalf("other logits after %d tokens", a.Len())
		}
	}
}

func TestNanoForward(t *testing.T) {
	m, _ := nano(t, 2)
	g, err := checkpoint.OpenFile("testdata/nano-forward.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, name := range []string{"france", "one", "go"} {
		ids32 := ints(t, g, name+".ids")
		n, k, h := len(ids32), m.NumExpertsPerToken, m.HiddenSize
		residual, logits := floats(t, g, name+".residual"), floats(t, g, name+".logits")
		routes, weights := ints(t, g, name+".route_ids"), floats(t, g, name+".route_weights")
		ids := make([]int, n)
		for i, id := range ids32 {
			ids[i] = int(id)
		}
		calls := 0
		hook := engine.Hook{
			Residual: func(l, first int, prefix []float32) {
				near(t, name+" residual", prefix, residual[l*n*h:(l+1)*n*h])
				calls++
			},
			Route: func(l, first int, ids []int32, w []float32) {
				at := (l - m.FirstKDenseReplace) * n * k
				if !slices.Equal(ids, routes[at:at+n*k]) {
					t.Errorf("%s: routes of layer %d: %v, want %v", name, l, ids, routes[at:at+n*k])
				}
				near(t, name+" weights", w, weights[at:at+n*k])
				calls++
			},
			Logits: func(first int, rows []float32) {
				near(t, name+" logits", rows, logits)
				calls++
			},
		}
		if err := m.NewSequence().Extend(t.Context(), ids, engine.ExtendOptions{Hook: &hook}); err != nil {
			t.Fatal(err)
		}
		if want := 17 + 16 + 1; calls != want {
			t.Errorf("%s: %d calls of the hook, want %d", name, calls, want)
		}
	}
}

func ints(t *testing.T, s *checkpoint.Snapshot, name string) []int32 {
	t.Helper()
	tensor, ok := s.Tensor(name)
	if !ok {
		t.Fatal("no golden ", name)
	}
	var out []int32
	for i := 0; i < len(tensor.Data); i += 4 {
		out = append(out, int32(binary.LittleEndian.Uint32(tensor.Data[i:])))
	}
	return out
}

func floats(t *testing.T, s *checkpoint.Snapshot, name string) []float32 {
	t.Helper()
	var out []float32
	for _, v := range ints(t, s, name) {
		out = append(out, math.Float32frombits(uint32(v)))
	}
	return out
}

// The reference of these tests meets the goldens too, so that what it says of other
// models can be trusted.
func TestReferenceMeetsGoldens(t *testing.T) {
	if testing.Short() {
		t.Skip("the reference is slow; its models are compared in the full run")
	}
	dir := nanoDir(t)
	m := open(t, dir, 1)
	s, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g, err := checkpoint.OpenFile("testdata/nano-forward.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ref := newReference(m.Config, s)
	want := floats(t, g, "france.logits")
	for i, id := range ints(t, g, "france.ids") {
		near(t, "reference", ref.next(int(id)).logits, want[i*m.VocabSize:(i+1)*m.VocabSize])
	}
}

// Random models of K3's own head sizes and others, sharded, against the reference.
func TestForwardMeetsReference(t *testing.T) {
	for name, c := range map[string]engine.Config{"small": enginetest.Small(), "wide": enginetest.Wide()} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "wide" {
				t.Skip("the reference is slow: only the small model in a short run")
			}
			dir := t.TempDir()
			if err := enginetest.Write(dir, c, 7, 3); err != nil {
				t.Fatal(err)
			}
			m := open(t, dir, 2)
			s, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r := rand.New(rand.NewPCG(8, 9))
			ids := make([]int, 20)
			for i := range ids {
				ids[i] = r.IntN(c.VocabSize)
			}
			ref := newReference(c, s)
			var steps []step
			for _, id := range ids {
				steps = append(steps, ref.next(id))
			}
			h, k := c.HiddenSize, c.NumExpertsPerToken
			hook := engine.Hook{
				Residual: func(l, first int, prefix []float32) {
					for i := range len(prefix) / h {
						near(t, "residual", prefix[i*h:(i+1)*h], steps[first+i].residual[l])
					}
				},
				Route: func(l, first int, ids []int32, w []float32) {
					for i := range len(ids) / k {
						want := steps[first+i]
						for j, e := range want.routes[l-c.FirstKDenseReplace] {
							if ids[i*k+j] != int32(e) {
								t.Errorf("layer %d token %d: routes %v, want %v", l, first+i, ids[i*k:(i+1)*k], want.routes[l-c.FirstKDenseReplace])
								break
							}
						}
						near(t, "weights", w[i*k:(i+1)*k], want.weights[l-c.FirstKDenseReplace])
					}
				},
				Logits: func(first int, rows []float32) {
					for i := range len(rows) / c.VocabSize {
						near(t, "logits", rows[i*c.VocabSize:(i+1)*c.VocabSize], steps[first+i].logits)
					}
				},
			}
			if err := m.NewSequence().Extend(t.Context(), ids, engine.ExtendOptions{Hook: &hook, Chunk: 7}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestNanoGreedy(t *testing.T) {
	m, tok := nano(t, 2)
	f, err := os.Open("testdata/nano-greedy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	for lines := bufio.NewScanner(f); lines.Scan(); cases++ {
		var c struct {
			Prompt, Text string
			IDs, Greedy  []int
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if testing.Short() {
			c.Greedy = c.Greedy[:min(len(c.Greedy), 4)]
			if len(c.IDs) > 12 {
				continue
			}
		}
		if c.Prompt != "" && !slices.Equal(tok.Encode(c.Prompt), c.IDs) {
			t.Errorf("%q: encodes to %v, want %v", c.Prompt, tok.Encode(c.Prompt), c.IDs)
		}
		s := m.NewSequence()
		if err := s.Extend(t.Context(), c.IDs, engine.ExtendOptions{}); err != nil {
			t.Fatal(err)
		}
		g, err := engine.Generate(t.Context(), s, tok, engine.GenerateOptions{MaxTokens: len(c.Greedy), StopIDs: []int{m.EOSTokenID, m.EOSTokenID - 1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := c.Greedy
		if last := want[len(want)-1]; last == m.EOSTokenID || last == m.EOSTokenID-1 {
			want = want[:len(want)-1]
			if g.Finish != engine.FinishStop {
				t.Errorf("%q: finish %q, want stop", c.Prompt, g.Finish)
			}
		}
		if !slices.Equal(g.IDs, want) {
			t.Errorf("%q: %v, want %v", c.Prompt, g.IDs, want)
		}
		if g.Text != tok.Decode(g.IDs) {
			t.Errorf("%q: text %q is not that of its ids", c.Prompt, g.Text)
		}
	}
	if cases != 22 {
		t.Errorf("%d texts, want 22", cases)
	}
}

// text100 is a text of 100 tokens of the model.
func text100(m *engine.Model) []int {
	r := rand.New(rand.NewPCG(10, 11))
	ids := make([]int, 100)
	for i := range ids {
		ids[i] = r.IntN(m.VocabSize)
	}
	return ids
}

// all collects the logits of every row.
func all(rows *[]float32) *engine.Hook {
	return &engine.Hook{Logits: func(_ int, l []float32) { *rows = append(*rows, l...) }}
}

// equalBits fails unless both are the same bit for bit.
func equalBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d logits, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: logit %d is %x, want %x", what, i, got[i], want[i])
		}
	}
}

// The logits of a text are the same bit for bit however it is computed.
func TestOneAnswer(t *testing.T) {
	dir := t.TempDir()
	if testing.Short() {
		if err := enginetest.Write(dir, enginetest.Small(), 1, 1); err != nil {
			t.Fatal(err)
		}
	} else {
		dir = nanoDir(t)
	}
	one, two := open(t, dir, 1), open(t, dir, 2)
	ids := text100(two)
	ctx := t.Context()
	var want []float32
	if err := two.NewSequence().Extend(ctx, ids, engine.ExtendOptions{Hook: all(&want)}); err != nil {
		t.Fatal(err)
	}
	vocab := two.VocabSize

	for _, m := range []*engine.Model{one, two} {
		for _, chunk := range []int{1, 7, 64, 100} {
			var got []float32
			if err := m.NewSequence().Extend(ctx, ids, engine.ExtendOptions{Hook: all(&got), Chunk: chunk}); err != nil {
				t.Fatal(err)
			}
			equalBits(t, "chunks", got, want)
		}
	}

	// Decoded: the last row only, one token a call.
	s := two.NewSequence()
	for i := range ids {
		if err := s.Extend(ctx, ids[i:i+1], engine.ExtendOptions{}); err != nil {
			t.Fatal(err)
		}
		equalBits(t, "decoded", s.Logits(), want[i*vocab:(i+1)*vocab])
	}

	// After a fork, on both sides, also when the other side went on elsewhere.
	s = two.NewSequence()
	if err := s.Extend(ctx, ids[:70], engine.ExtendOptions{}); err != nil {
		t.Fatal(err)
	}
	fork := s.Fork()
	other := s.Fork()
	if err := other.Extend(ctx, ids[:33], engine.ExtendOptions{Chunk: 5}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*engine.Sequence{fork, s} {
		var got []float32
		if err := s.Extend(ctx, ids[70:], engine.ExtendOptions{Hook: all(&got), Chunk: 11}); err != nil {
			t.Fatal(err)
		}
		equalBits(t, "fork", got, want[70*vocab:])
	}

	// After interruptions, continued: within an operation, and after some layer.
	r := rand.New(rand.NewPCG(12, 13))
	s = two.NewSequence()
	var got []float32
	interrupted := 0
	for s.Len() < len(ids) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(150*two.HiddenSize/256))*time.Millisecond)
		n := 1 + r.IntN(len(ids)-s.Len())
		before := s.Len()
		hook, layers := all(&got), 1+r.IntN(3*two.NumHiddenLayers)
		hook.Residual = func(int, int, []float32) {
			if layers--; layers == 0 {
				cancel()
			}
		}
		err := s.Extend(ctx, ids[s.Len():s.Len()+n], engine.ExtendOptions{Hook: hook, Chunk: 1 + r.IntN(16)})
		cancel()
		if err != nil {
			interrupted++
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if s.Len() < before || s.Len() > before+n || !slices.Equal(s.Tokens(), ids[:s.Len()]) {
			t.Fatalf("%d tokens after %d and an interruption", s.Len(), before)
		}
		got = got[:s.Len()*vocab] // rows of a pass that was not committed don't count
	}
	equalBits(t, "interrupted", got, want)
	if interrupted == 0 {
		t.Error("nothing was interrupted")
	}
}

// Metamorphic: one list of random operations on sequences gives the same logits
// under every setting.
func TestOneAnswerForOperations(t *testing.T) {
	dir := t.TempDir()
	if err := enginetest.Write(dir, enginetest.Small(), 1, 3); err != nil {
		t.Fatal(err)
	}
	run := func(m *engine.Model, seed uint64, settings *rand.Rand) (history [][]float32) {
		ops := rand.New(rand.NewPCG(seed, 1))
		live := []*engine.Sequence{m.NewSequence()}
		for range 25 {
			s := live[ops.IntN(len(live))]
			if ops.IntN(4) == 0 && len(live) < 6 {
				live = append(live, s.Fork())
				continue
			}
			ids := make([]int, 1+ops.IntN(45))
			for i := range ids {
				ids[i] = ops.IntN(m.VocabSize)
			}
			for len(ids) > 0 { // in pieces of the settings' choosing, with interruptions
				n := 1 + settings.IntN(len(ids))
				ctx, cancel := context.WithCancel(t.Context())
				if settings.IntN(3) == 0 {
					stop := settings.IntN(m.NumHiddenLayers)
					hook := engine.Hook{Residual: func(l, _ int, _ []float32) {
						if l == stop {
							cancel()
						}
					}}
					before := s.Len()
					if err := s.Extend(ctx, ids[:n], engine.ExtendOptions{Chunk: 1 + settings.IntN(40), Hook: &hook}); err == nil {
						t.Error("an interrupted pass was committed")
					}
					ids = ids[s.Len()-before:]
					cancel()
					continue
				}
				if err := s.Extend(ctx, ids[:n], engine.ExtendOptions{Chunk: 1 + settings.IntN(40)}); err != nil {
					t.Fatal(err)
				}
				cancel()
				ids = ids[n:]
			}
			history = append(history, slices.Clone(s.Logits()))
		}
		for _, s := range live { // whatever its forks did since, each is what it would be alone
			alone := m.NewSequence()
			if err := alone.Extend(t.Context(), s.Tokens(), engine.ExtendOptions{}); err != nil {
				t.Fatal(err)
			}
			equalBits(t, "alone", s.Logits(), alone.Logits())
		}
		return history
	}
	seeds, settings := uint64(3), uint64(4)
	if testing.Short() {
		seeds, settings = 1, 3
	}
	for seed := range seeds {
		var want [][]float32
		for setting := range settings {
			m := open(t, dir, 1+int(setting)%3)
			if setting > 0 {
				m.Source = &shuffled{m.Source, rand.New(rand.NewPCG(seed, 200+setting))}
			}
			got := run(m, seed, rand.New(rand.NewPCG(seed, 100+setting)))
			if want == nil {
				want = got
			}
			for i := range want {
				equalBits(t, "operation", got[i], want[i])
			}
		}
	}
}

// shuffled delivers the experts of another source in random order, a few at a time.
type shuffled struct {
	prefetch.Source
	r *rand.Rand
}

func (s *shuffled) Demand(ctx context.Context, layer int, experts []int, rows int) (prefetch.Batch, error) {
	b, err := s.Source.Demand(ctx, layer, experts, rows)
	return &shuffledBatch{Batch: b, s: s, left: len(experts)}, err
}

type shuffledBatch struct {
	prefetch.Batch
	s     *shuffled
	left  int
	ready []prefetch.Lease // nil until the first Next
}

func (b *shuffledBatch) Next(leases []prefetch.Lease) (int, error) {
	if b.ready == nil {
		b.ready = make([]prefetch.Lease, b.left)
		if n, err := b.Batch.Next(b.ready); err != nil || n != b.left {
			return 0, errors.Join(err, errors.New("a resident source gives all at once"))
		}
		b.s.r.Shuffle(b.left, func(i, j int) { b.ready[i], b.ready[j] = b.ready[j], b.ready[i] })
	}
	if b.left == 0 {
		return b.Batch.Next(leases)
	}
	n := min(1+b.s.r.IntN(3), b.left, len(leases))
	copy(leases, b.ready[len(b.ready)-b.left:][:n])
	b.left -= n
	return n, nil
}

func TestExtendRefuses(t *testing.T) {
	m := small(t, 1)
	s := m.NewSequence()
	var token *engine.TokenError
	if err := s.Extend(t.Context(), []int{1, 512}, engine.ExtendOptions{}); !errors.As(err, &token) || token.ID != 512 || s.Len() != 0 {
		t.Errorf("an unknown token: %v, %d committed", err, s.Len())
	}
	if err := s.Extend(t.Context(), []int{-1}, engine.ExtendOptions{}); !errors.As(err, &token) {
		t.Errorf("a negative token: %v", err)
	}
	m.MaxPositionEmbeddings = 10
	var length *engine.LengthError
	if err := s.Extend(t.Context(), make([]int, 11), engine.ExtendOptions{}); !errors.As(err, &length) || length.Tokens != 11 {
		t.Errorf("a text that is too long: %v", err)
	}
	if err := s.Extend(t.Context(), nil, engine.ExtendOptions{}); err != nil || s.Logits() != nil {
		t.Errorf("nothing: %v, logits %v", err, s.Logits())
	}
}

// A weights file cut short under its mapping fails the pass with an error that names
// it, and nothing else.
func TestTruncatedUnderMapping(t *testing.T) {
	dir := t.TempDir()
	if err := enginetest.Write(dir, enginetest.Small(), 1, 1); err != nil {
		t.Fatal(err)
	}
	m := open(t, dir, 2)
	s := m.NewSequence()
	if err := s.Extend(t.Context(), []int{1, 2, 3}, engine.ExtendOptions{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "model.safetensors")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 4096); err != nil {
		t.Skip("this system does not let go of mapped files: ", err)
	}
	var fault *checkpoint.FileError
	if err := s.Extend(t.Context(), []int{4, 5}, engine.ExtendOptions{}); !errors.As(err, &fault) {
		t.Fatalf("error %v, want a *checkpoint.FileError", err)
	}
	if s.Len() != 3 {
		t.Errorf("%d tokens committed, want 3", s.Len())
	}
	// Once the bytes are back, so is the model.
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Extend(t.Context(), []int{4, 5}, engine.ExtendOptions{}); err != nil {
		t.Error(err)
	}
}

// A token allocates nothing, but for the state that grows with the text.
func TestTokenAllocatesNothing(t *testing.T) {
	m := small(t, 2)
	s := m.NewSequence()
	ids := []int{5}
	var sampler engine.Sampler
	extend := func() {
		if err := s.Extend(t.Context(), ids, engine.ExtendOptions{}); err != nil {
			t.Fatal(err)
		}
		ids[0] = sampler.Choose(s.Logits(), s.Len())
	}
	for i := range 200 { // every expert seen, scratch at its full size
		ids[0] = i % m.VocabSize
		extend()
	}
	for name, sampling := range map[string]engine.Sampling{"the likeliest": {}, "a sample": {Temperature: 1, TopP: .9}} {
		sampler = engine.Sampler{Sampling: sampling}
		extend()
		if got := testing.AllocsPerRun(30, extend); got != 0 {
			t.Errorf("%s: %g allocations a token", name, got)
		}
	}
}
