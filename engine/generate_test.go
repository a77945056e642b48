package engine_test

import (
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
	if got := (engine.Sampling{}).Choose(logits, 5); got != best {
		t.Errorf("greedy chose %d, want %d", got, best)
	}
	if got := (engine.Sampling{}).Choose([]float32{1, 3, 3, 2}, 0); got != 1 {
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
		for i := range draws {
			count[s.Choose(logits, i)]++
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
