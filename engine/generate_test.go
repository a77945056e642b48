package engine_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"deltafin/engine"
)

func TestChoose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	logits := make([]float32, 1000)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	best := slices.Index(logits, slices.Max(logits))
	var greedy engine.Sampler
	if got := greedy.Choose(logits, 5); got != best {
		t.Errorf("greedy chose %d, want %d", got, best)
	}
	if got := greedy.Choose([]float32{1, 3, 3, 2}, 0); got != 1 {
		t.Errorf("a tie went to %d, want the lower id", got)
	}

	// Frequencies against the definition, with each filter.
	for _, s := range []engine.Sampling{
		{Temperature: 1}, {Temperature: .7, TopK: 5}, {Temperature: 1.3, TopP: .6}, {Temperature: 1, TopK: 40, TopP: .9},
	} {
		kept := s.Distribution(logits)
		var sum float64
		for i, k := range kept {
			sum += k.Prob
			if i > 0 && k.Prob > kept[i-1].Prob {
				t.Errorf("%+v: not in order of probability", s)
			}
			want := math.Exp((float64(logits[k.ID])-float64(logits[kept[0].ID]))/s.Temperature) * kept[0].Prob
			if math.Abs(k.Prob-want) > 1e-12 {
				t.Errorf("%+v: token %d has %g, want %g", s, k.ID, k.Prob, want)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%+v: probabilities sum to %g", s, sum)
		}
		if s.TopK > 0 && len(kept) > s.TopK {
			t.Errorf("%+v: kept %d", s, len(kept))
		}
		const draws = 3000
		count := map[int]int{}
		sampler := engine.Sampler{Sampling: s}
		for i := range draws {
			count[sampler.Choose(logits, i)]++
		}
		for _, k := range kept[:min(4, len(kept))] {
			if dev := math.Abs(float64(count[k.ID])/draws - k.Prob); dev > 5*math.Sqrt(k.Prob/draws) {
				t.Errorf("%+v: token %d drawn %d times of %d, want a share of %.4f", s, k.ID, count[k.ID], draws, k.Prob)
			}
		}
		for id := range count {
			if !slices.ContainsFunc(kept, func(k engine.TokenProb) bool { return k.ID == id }) {
				t.Errorf("%+v: drew %d, which was cut", s, id)
			}
		}
	}
	// TopP keeps the fewest tokens that reach it.
	probs := []float32{float32(math.Log(.5)), float32(math.Log(.3)), float32(math.Log(.2))}
	for p, want := range map[float64]int{.4: 1, .5001: 2, .79: 2, .81: 3, 1: 3} {
		if got := len(engine.Sampling{Temperature: 1, TopP: p}.Distribution(probs)); got != want {
			t.Errorf("top-p %g kept %d, want %d", p, got, want)
		}
	}
}

// definition is Distribution written down plainly: all of the vocabulary sorted, with
// the weights that exp gives.
func definition(s engine.Sampling, logits []float32) []engine.TokenProb {
	t := s.Temperature
	if t == 0 {
		t = 1
	}
	best := 0
	for i, l := range logits {
		if l > logits[best] {
			best = i
		}
	}
	kept := make([]engine.TokenProb, len(logits))
	var sum float64
	for i, l := range logits {
		kept[i] = engine.TokenProb{ID: i, Prob: exp((float64(l) - float64(logits[best])) / t)}
		sum += kept[i].Prob
	}
	slices.SortFunc(kept, func(a, b engine.TokenProb) int {
		return cmp.Or(cmp.Compare(b.Prob, a.Prob), cmp.Compare(a.ID, b.ID))
	})
	if s.TopK > 0 && s.TopK < len(kept) {
		kept = kept[:s.TopK]
		sum = 0
		for _, k := range kept {
			sum += k.Prob
		}
	}
	if s.TopP > 0 && s.TopP < 1 {
		var mass float64
		for i, k := range kept {
			if mass += k.Prob; mass >= s.TopP*sum {
				kept, sum = kept[:i+1], mass
				break
			}
		}
	}
	for i := range kept {
		kept[i].Prob /= sum
	}
	return kept
}

// exp is e^x for x ≤ 0, and 0 for what is too small and for NaN.
func exp(x float64) float64 {
	if !(x > -700) {
		return 0
	}
	n := math.Round(x * math.Log2E)
	r := x - float64(n*0x1.62e42fefa38p-1)
	r -= float64(n * 0x1.ef35793c7673p-45)
	p := 1.0
	for i := 14.0; i > 0; i-- {
		p = 1 + float64(float64(p*r)/i)
	}
	return math.Ldexp(p, int(n))
}

// A choice and a distribution are the definition's, bit for bit: whatever the logits,
// and however far a sampler sorted them.
func TestChooseIsTheDefinition(t *testing.T) {
	inf := float32(math.Inf(1))
	r := rand.New(rand.NewPCG(2, 3))
	rows := map[string]func(i int) float32{
		"peaked":       func(int) float32 { return float32(r.NormFloat64() * 4) },
		"flat":         func(int) float32 { return float32(r.NormFloat64() * 1e-3) },
		"equal":        func(int) float32 { return -1.5 },
		"few values":   func(int) float32 { return float32(r.IntN(5)) },
		"rising":       func(i int) float32 { return float32(i) * 1e-4 },
		"falling":      func(i int) float32 { return float32(-i) * 1e-4 },
		"far apart":    func(int) float32 { return float32(r.NormFloat64() * 1e4) },
		"a few at all": func(i int) float32 { return []float32{-inf, float32(r.NormFloat64())}[min(i%97, 1)^1] },
		"all cut off":  func(int) float32 { return -inf },
		"infinite":     func(i int) float32 { return []float32{inf, 3, -inf}[i%3] },
		"no numbers":   func(i int) float32 { return []float32{float32(math.NaN()), 3, -2}[i%3] },
	}
	for name, value := range rows {
		sizes := []int{1, 2, 33, 300, 2000}
		if name == "peaked" {
			sizes = append(sizes, 163840) // K3's
		}
		for _, n := range sizes {
			logits := make([]float32, n)
			for i := range logits {
				logits[i] = value(i)
			}
			for _, s := range []engine.Sampling{
				{}, {Temperature: 1}, {Temperature: .02}, {Temperature: 1e6},
				{Temperature: 1, TopK: 1}, {Temperature: .8, TopK: 50}, {Temperature: 1, TopK: n}, {Temperature: 1, TopK: n + 1},
				{Temperature: 1, TopP: 5e-324}, {Temperature: 1.1, TopP: .95}, {Temperature: 1, TopP: 1 - 1e-16}, {Temperature: 1, TopP: 1},
				{Temperature: 2, TopK: 400, TopP: .5}, {Temperature: 1e6, TopK: n / 2, TopP: .999},
			} {
				want := definition(s, logits)
				if got := s.Distribution(logits); !slices.EqualFunc(got, want, sameBits) {
					t.Errorf("%s, %d logits, %+v: another distribution", name, n, s)
				}
				sampler := engine.Sampler{Sampling: s}
				for position := range 4 {
					sampler.Seed = uint64(position / 2)
					chosen := want[0].ID
					if s.Temperature > 0 {
						u := rand.New(rand.NewPCG(sampler.Seed, uint64(position))).Float64()
						if i := slices.IndexFunc(want, func(t engine.TokenProb) bool { u -= t.Prob; return u < 0 }); i >= 0 {
							chosen = want[i].ID
						}
					}
					if got := sampler.Choose(logits, position); got != chosen {
						t.Errorf("%s, %d logits, %+v, position %d: chose %d, want %d", name, n, sampler.Sampling, position, got, chosen)
					}
				}
			}
		}
	}
}

func sameBits(a, b engine.TokenProb) bool {
	return a.ID == b.ID && math.Float64bits(a.Prob) == math.Float64bits(b.Prob)
}

// A choice from a vocabulary of K3's size.
func BenchmarkChoose(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	logits := make([]float32, 163840)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	for name, s := range map[string]engine.Sampling{"all": {Temperature: 1}, "top-p": {Temperature: 1, TopP: .95}, "top-k": {Temperature: 1, TopK: 50}} {
		sampler := engine.Sampler{Sampling: s}
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				sampler.Choose(logits, i)
			}
		})
	}
}

func TestSettingsRefused(t *testing.T) {
	for _, o := range []engine.GenerateOptions{
		{MaxTokens: -1}, {Stop: []string{"a", ""}},
		{Sampling: engine.Sampling{Temperature: -1}}, {Sampling: engine.Sampling{Temperature: math.NaN()}},
		{Sampling: engine.Sampling{TopP: 1.5}}, {Sampling: engine.Sampling{TopP: math.NaN()}}, {Sampling: engine.Sampling{TopK: -2}},
	} {
		var setting *engine.SettingError
		if err := o.Check(); !errors.As(err, &setting) {
			t.Errorf("%+v: %v, want a *SettingError", o, err)
		}
	}
}

func TestGenerate(t *testing.T) {
	m, tok := nano(t, 2)
	prompt := tok.Encode("The capital of France is")
	base := m.NewSequence()
	if err := base.Extend(t.Context(), prompt, engine.ExtendOptions{}); err != nil {
		t.Fatal(err)
	}
	generate := func(o engine.GenerateOptions) (engine.Generated, string) {
		t.Helper()
		var streamed strings.Builder
		g, err := engine.Generate(t.Context(), base.Fork(), tok, o, func(_ int, text string) { streamed.WriteString(text) })
		if err != nil {
			t.Fatal(err)
		}
		if streamed.String() != g.Text {
			t.Errorf("streamed %q, returned %q", streamed.String(), g.Text)
		}
		return g, g.Text
	}

	g, text := generate(engine.GenerateOptions{MaxTokens: 12})
	if want := " Paris. The Eiffel Tower is located in Paris"; !strings.HasPrefix(want, text) || len(text) < 20 || g.Finish != engine.FinishLength || len(g.IDs) != 12 {
		t.Errorf("%d tokens, %q (%s), want 12 that begin %q", len(g.IDs), text, g.Finish, want)
	}
	if g, text := generate(engine.GenerateOptions{}); text != "" || len(g.IDs) != 0 || g.Finish != engine.FinishLength {
		t.Errorf("no tokens asked for: %+v", g)
	}
	if g, text := generate(engine.GenerateOptions{MaxTokens: 30, Stop: []string{"Louvre", "iffel To"}}); text != " Paris. The E" || g.Finish != engine.FinishStopString {
		t.Errorf("stop string: %q, %s", text, g.Finish)
	}
	// A stop string that never completes holds nothing back in the end.
	if _, text := generate(engine.GenerateOptions{MaxTokens: 3, Stop: []string{text[len(" Paris."):] + "zzz", ". The Eiffel Towel"}}); !strings.HasPrefix(" Paris. The Eiffel Tower", text) || len(text) < len(" Paris.") {
		t.Errorf("half a stop string: %q", text)
	}

	sampled := engine.GenerateOptions{MaxTokens: 20, Sampling: engine.Sampling{Temperature: 3, TopP: .95, Seed: 7}}
	_, first := generate(sampled)
	if _, again := generate(sampled); again != first {
		t.Errorf("the same seed gave %q and %q", first, again)
	}
	sampled.Sampling.Seed = 8
	if _, other := generate(sampled); other == first {
		t.Errorf("seeds 7 and 8 both gave %q", first)
	}

	// Interrupted: what there is, no error, and the sequence goes on from there.
	ctx, cancel := context.WithCancel(t.Context())
	s := base.Fork()
	n := 0
	part, err := engine.Generate(ctx, s, tok, engine.GenerateOptions{MaxTokens: 40}, func(int, string) {
		if n++; n == 5 {
			cancel()
		}
	})
	if err != nil || part.Finish != engine.FinishInterrupted || len(part.IDs) != 5 {
		t.Fatalf("interrupted: %+v, %v", part, err)
	}
	if err := s.Extend(t.Context(), part.IDs[s.Len()-len(prompt):], engine.ExtendOptions{}); err != nil {
		t.Fatal(err)
	}
	rest, err := engine.Generate(t.Context(), s, tok, engine.GenerateOptions{MaxTokens: 7}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Concat(part.IDs, rest.IDs); !slices.Equal(got, g.IDs) {
		t.Errorf("interrupted and continued: %v, want %v", got, g.IDs)
	}

	if _, err := engine.Generate(t.Context(), m.NewSequence(), tok, engine.GenerateOptions{MaxTokens: 1}, nil); !errors.Is(err, engine.ErrNoLogits) {
		t.Errorf("after nothing: %v", err)
	}

	// The text may not outgrow the model.
	m.MaxPositionEmbeddings = len(prompt) + 3
	if g, _ := generate(engine.GenerateOptions{MaxTokens: 10}); len(g.IDs) != 4 || g.Finish != engine.FinishLength {
		t.Errorf("at the last position: %+v", g)
	}
}
