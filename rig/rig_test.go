package rig

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/engine/enginetest"
	"deltafin/engine/xtml"
)

// open opens the embedded model.
func open(t testing.TB) *Rig {
	t.Helper()
	r, err := Open(t.Context(), Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// small opens a small random model.
func small(t testing.TB) *Rig {
	t.Helper()
	dir := t.TempDir()
	must(t, enginetest.Write(dir, enginetest.Small(), 1, 3))
	r, err := Open(t.Context(), Options{Model: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestGenerate(t *testing.T) {
	r := open(t)
	var streamed strings.Builder
	var ids []int
	rows := 0
	q := Request{Prompt: "The capital of France is", MaxTokens: 10}
	g, err := r.Generate(t.Context(), q, func(p Progress) {
		streamed.WriteString(p.Text)
		if p.IsToken {
			ids = append(ids, p.Token)
		}
		if p.PrefillDone < rows || p.PrefillTotal != 5 {
			t.Errorf("progress %+v after %d rows", p, rows)
		}
		rows = p.PrefillDone
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(g.Text, " Paris. The Eiffel T") || streamed.String() != g.Text || !slices.Equal(ids, g.IDs) || rows != 5 {
		t.Errorf("streamed %q %v, %d rows; returned %+v", streamed.String(), ids, rows, g)
	}
	if s := g.Stats; s.PromptTokens != 5 || s.Tokens != 10 || s.ReusedTokens != 0 || s.LoadSeconds <= 0 || s.TTFTSeconds <= 0 ||
		s.DecodeTokensPerS <= 0 || s.PrefillTokensPerS <= 0 || s.ExpertBytesDistinct <= 0 || s.Rounds != 9 || s.Loads != 1 {
		t.Errorf("stats %+v", s)
	}

	// Again: warm, the prompt's state is reused, the text is the same.
	again, err := r.Generate(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Text != g.Text || again.Stats.ReusedTokens != 5 || again.Stats.LoadSeconds != 0 || again.Stats.Loads != 1 {
		t.Errorf("again: %+v", again)
	}
	// A longer prompt reuses what it extends; Fresh does not; the texts agree.
	longer := Request{Prompt: q.Prompt + " Paris. The", MaxTokens: 6}
	reused, err := r.Generate(t.Context(), longer, nil)
	must(t, err)
	longer.Fresh = true
	fresh, err := r.Generate(t.Context(), longer, nil)
	must(t, err)
	if reused.Stats.ReusedTokens < 5 || fresh.Stats.ReusedTokens != 0 || reused.Text != fresh.Text {
		t.Errorf("reused %+v, fresh %+v", reused, fresh)
	}
	// Continue goes on where a generation stopped.
	rest, err := r.Generate(t.Context(), Request{Continue: g.ID, MaxTokens: 10}, nil)
	must(t, err)
	whole, err := r.Generate(t.Context(), Request{Prompt: q.Prompt, MaxTokens: 20}, nil)
	must(t, err)
	if got := slices.Concat(g.IDs, rest.IDs); !slices.Equal(got, whole.IDs) || rest.Stats.ReusedTokens < 14 {
		t.Errorf("continued %v after %d reused, want %v", got, rest.Stats.ReusedTokens, whole.IDs)
	}

	if m := r.Memory(); m.KeptSequences == 0 || m.KeptStates <= 0 || m.SpineMapped <= 0 {
		t.Errorf("memory %+v", m)
	}
	r.Reset()
	if m := r.Memory(); m.KeptSequences != 0 {
		t.Errorf("%d sequences kept after Reset", m.KeptSequences)
	}
	// An ID from before means nothing, also when there are as many generations again.
	for range 8 {
		_, err := r.Generate(t.Context(), Request{Prompt: "Other", MaxTokens: 1}, nil)
		must(t, err)
	}
	var prompt *PromptError
	if _, err := r.Generate(t.Context(), Request{Continue: g.ID, MaxTokens: 1}, nil); !errors.As(err, &prompt) {
		t.Errorf("continued a forgotten generation: %v", err)
	}
}

func TestChat(t *testing.T) {
	r := open(t)
	segments, err := xtml.Render(&xtml.Input{Messages: []xtml.Message{xtml.User("What is the capital of Japan?")}, NoThinking: true})
	must(t, err)
	g, err := r.Generate(t.Context(), Request{Segments: segments, MaxTokens: 40}, nil)
	must(t, err)
	if !strings.Contains(g.Text, "Tokyo") || g.Finish != FinishStop {
		t.Errorf("%q, %s", g.Text, g.Finish)
	}
}

func TestRefusedRequests(t *testing.T) {
	r := small(t)
	for name, q := range map[string]Request{
		"empty prompt":   {MaxTokens: 1},
		"no ids":         {IDs: []int{}, MaxTokens: 1},
		"unknown id":     {IDs: []int{5, 512}, MaxTokens: 1},
		"negative id":    {IDs: []int{-1}, MaxTokens: 1},
		"two prompts":    {IDs: []int{1}, Prompt: "a", MaxTokens: 1},
		"max tokens":     {Prompt: "a", MaxTokens: -1},
		"temperature":    {Prompt: "a", Temperature: math.Inf(1)},
		"top-p":          {Prompt: "a", TopP: -.1},
		"top-k":          {Prompt: "a", TopK: -1},
		"empty stop":     {Prompt: "a", Stop: []string{""}},
		"no such answer": {Prompt: "a", Continue: "g99"},
	} {
		_, err := r.Generate(t.Context(), q, nil)
		var prompt *PromptError
		var setting *engine.SettingError
		var token *engine.TokenError
		if !errors.As(err, &prompt) && !errors.As(err, &setting) && !errors.As(err, &token) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, err := r.Generate(t.Context(), Request{Prompt: "a\xffb", MaxTokens: 0}, nil)
	if err != nil || len(g.IDs) != 0 || g.Finish != FinishLength || g.Stats.PromptTokens == 0 {
		t.Errorf("no tokens after invalid UTF-8: %+v, %v", g, err)
	}
}

// An interrupted request returns what there is; the next one is warm and right.
func TestInterrupted(t *testing.T) {
	r := small(t)
	long := Request{IDs: make([]int, 2000), MaxTokens: 50, Fresh: true}
	for i := range long.IDs {
		long.IDs[i] = i * 31 % 512
	}
	want, err := r.Generate(t.Context(), long, nil)
	must(t, err)
	for _, when := range []string{"before", "prefill", "decode"} {
		ctx, cancel := context.WithCancel(t.Context())
		if when == "before" {
			cancel()
		}
		n := 0
		g, err := r.Generate(ctx, long, func(p Progress) {
			if when == "prefill" && p.PrefillDone > 300 || when == "decode" && p.IsToken {
				if n++; n == 3 {
					cancel()
				}
			}
		})
		cancel()
		if err != nil || g.Finish != FinishInterrupted {
			t.Errorf("%s: %+v, %v", when, g, err)
			continue
		}
		if !slices.Equal(g.IDs, want.IDs[:len(g.IDs)]) || when == "decode" && len(g.IDs) != 3 {
			t.Errorf("%s: %v, want the beginning of %v", when, g.IDs, want.IDs)
		}
		least, most := 0, 0
		switch when {
		case "prefill":
			least, most = 301, 1999
		case "decode":
			least, most = 2000, 2000
		}
		if n := g.Stats.PrefilledTokens; n < least || n > most {
			t.Errorf("%s: %d prompt tokens computed, want %d to %d", when, n, least, most)
		}
		q := long
		q.Fresh = false
		whole, err := r.Generate(t.Context(), q, nil)
		if err != nil || !slices.Equal(whole.IDs, want.IDs) {
			t.Errorf("after %s: %v, want %v (%v)", when, whole.IDs, want.IDs, err)
		}
	}
}

// Requests of many goroutines take turns, and give what they give alone.
func TestConcurrentRequests(t *testing.T) {
	r := small(t)
	request := func(i int) Request { return Request{IDs: []int{i, i + 1, i + 2}, MaxTokens: 12} }
	var want [4][]int
	for i := range want {
		g, err := r.Generate(t.Context(), request(i), nil)
		must(t, err)
		want[i] = g.IDs
	}
	r.Reset()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			ctx := t.Context()
			if i%5 == 4 { // some are cancelled while they wait or run
				c, cancel := context.WithCancel(ctx)
				go cancel()
				ctx = c
			}
			g, err := r.Generate(ctx, request(i%4), nil)
			if err != nil || !slices.Equal(g.IDs, want[i%4][:len(g.IDs)]) || g.Finish != FinishInterrupted && len(g.IDs) != 12 {
				t.Errorf("%+v, %v; want %v", g, err, want[i%4])
			}
			r.PrefetchStats()
			r.Memory()
		})
	}
	wg.Wait()
}

func TestTrace(t *testing.T) {
	r := small(t)
	q := Request{IDs: []int{5, 6, 7}, MaxTokens: 4}
	g, tr, err := r.Trace(t.Context(), q, nil)
	must(t, err)
	if len(tr.Tokens) != 7 || len(tr.Layers) != 5 || tr.Layers[0] != 1 || tr.TopK != 4 || tr.Experts != 12 || len(tr.IDs) != 7*5*4 {
		t.Fatalf("trace of %d tokens, layers %v, %d routes", len(tr.Tokens), tr.Layers, len(tr.IDs))
	}
	// The routes are those of the tokens, however they were computed.
	file := filepath.Join(t.TempDir(), "t.safetensors")
	must(t, r.Tensors(t.Context(), slices.Concat(g.PromptIDs, g.IDs), file))
	s, err := checkpoint.OpenFile(file)
	must(t, err)
	defer s.Close()
	routes, err := s.Want("route_ids", "I32", 5, 7, 4)
	must(t, err)
	for tok := range 7 {
		if tr.Tokens[tok].Generated != (tok >= 3) {
			t.Errorf("token %d: %+v", tok, tr.Tokens[tok])
		}
		for l := range 5 {
			ids, weights := tr.Route(tok, l)
			var sum float32
			for i := range ids {
				if want := int32(routes.Data[4*((l*7+tok)*4+i)]); ids[i] != want {
					t.Errorf("token %d layer %d: %v", tok, l, ids)
				}
				sum += weights[i]
			}
			if math.Abs(float64(sum)-1.5) > 1e-5 {
				t.Errorf("weights %v sum to %g, want 1.5", weights, sum)
			}
		}
	}
	for name, shape := range map[string][]int{"ids": {7}, "logits": {7, 512}, "residual": {6, 7, 48}, "route_weights": {5, 7, 4}} {
		dtype := checkpoint.DType("F32")
		if name == "ids" {
			dtype = "I32"
		}
		if _, err := s.Want(name, dtype, shape...); err != nil {
			t.Error(err)
		}
	}
}

// A trace ends at the model's last position, and computes no token twice.
func TestTraceAtTheEnd(t *testing.T) {
	r := small(t)
	r.model.MaxPositionEmbeddings = 5
	g, tr, err := r.Trace(t.Context(), Request{IDs: []int{5, 6, 7}, MaxTokens: 9}, nil)
	must(t, err)
	if len(g.IDs) != 3 || g.Finish != FinishLength || len(tr.Tokens) != 5 || g.Stats.Rounds != 2 {
		t.Errorf("%+v, %d tokens traced", g, len(tr.Tokens))
	}

	r = open(t)
	segments, err := xtml.Render(&xtml.Input{Messages: []xtml.Message{xtml.User("What is the capital of Japan?")}, NoThinking: true})
	must(t, err)
	g, tr, err = r.Trace(t.Context(), Request{Segments: segments, MaxTokens: 40}, nil)
	must(t, err)
	if n := len(g.PromptIDs) + len(g.IDs); g.Finish != FinishStop || len(tr.Tokens) != n || g.Stats.Rounds != len(g.IDs) {
		t.Errorf("%d tokens traced of %d, %d rounds for %d (%s)", len(tr.Tokens), n, g.Stats.Rounds, len(g.IDs), g.Finish)
	}
	again, err := r.Generate(t.Context(), Request{Continue: g.ID, IDs: []int{r.model.EOSTokenID}, MaxTokens: 1}, nil)
	must(t, err)
	if again.Stats.ReusedTokens != len(tr.Tokens) {
		t.Errorf("reused %d of a text of %d", again.Stats.ReusedTokens, len(tr.Tokens))
	}
}

func TestClosed(t *testing.T) {
	r := small(t)
	must(t, r.Close())
	must(t, r.Close())
	if _, err := r.Generate(context.Background(), Request{IDs: []int{1}}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A damaged weight ends a request with an error that names the layer.
func TestDamagedWeights(t *testing.T) {
	dir := t.TempDir()
	tensors := enginetest.Tensors(enginetest.Small(), 1)
	must(t, enginetest.Write(dir, enginetest.Small(), 1, 1))
	for i := range tensors {
		if strings.HasSuffix(tensors[i].Name, "layers.3.input_layernorm.weight") {
			tensors[i].Data[6], tensors[i].Data[7] = 0xc0, 0x7f // NaN in BF16
		}
	}
	must(t, checkpoint.Write(filepath.Join(dir, "model.safetensors"), tensors, nil))
	r, err := Open(t.Context(), Options{Model: dir})
	must(t, err)
	defer r.Close()
	var value *engine.ValueError
	if g, err := r.Generate(t.Context(), Request{IDs: []int{5, 6}, MaxTokens: 3}, nil); !errors.As(err, &value) || value.Layer != 3 {
		t.Errorf("%+v, %v", g, err)
	}
}

// A text of many megabytes can be interrupted before its first pass.
func TestInterruptedEncoding(t *testing.T) {
	r := small(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g, err := r.Generate(ctx, Request{Prompt: strings.Repeat("ab ", 5_000_000), MaxTokens: 1}, nil)
	if err != nil || g.Finish != FinishInterrupted {
		t.Errorf("%+v, %v", g, err)
	}
	var prompt *PromptError
	if _, err := r.Generate(t.Context(), Request{Prompt: strings.Repeat("ab ", 5_000_000), MaxTokens: 1}, nil); !errors.As(err, &prompt) {
		t.Errorf("a text longer than the model's positions: %v", err)
	}
}

func TestLogits(t *testing.T) {
	r := open(t)
	top, row, err := r.Logits(t.Context(), Request{Prompt: "The capital of France is"}, 5)
	must(t, err)
	if len(top) != 5 || top[0].Text != " Par" || len(row) != 8192 || top[0].Logit != row[top[0].ID] || top[0].Prob < top[1].Prob || top[0].Prob > 1 {
		t.Errorf("%+v", top)
	}
}
