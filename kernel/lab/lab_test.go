package lab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deltafin/kernel/display"
	"deltafin/prefetch"
	"deltafin/rig"

	"github.com/google/go-cmp/cmp"
	"github.com/traefik/yaegi/interp"
)

func plainText(t *testing.T, v any) string {
	t.Helper()
	b, ok := display.Of(v)
	if !ok {
		t.Fatalf("%T does not display itself", v)
	}
	return b.Data[display.MIMEText].(string)
}

// wantError runs a function that must end the cell, with this error.
func wantError(t *testing.T, name, contains string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, ok := recover().(*Error)
		if !ok {
			t.Fatalf("%s: no *Error", contains)
		}
		n, value := err.CellError()
		if n != name || !strings.Contains(value, contains) || strings.HasPrefix(value, "trace: ") || err.Error() != n+": "+value {
			t.Errorf("%s: %s; want %s: … %s", n, value, name, contains)
		}
	}()
	f()
}

func TestGenerate(t *testing.T) {
	f := &fakeRig{}
	l, out, _ := start(t, f)
	var tokens []Token
	g := l.Generate("Hi", Params{MaxTokens: 3, Seed: math.MaxUint64, Stop: []string{"\n"}, OnToken: func(tok Token) { tokens = append(tokens, tok) }})
	if g.Text != "abc" || g.String() != "abc" || g.Finish != rig.FinishLength || !reflect.DeepEqual(g.PromptIDs, []int{'H', 'i'}) {
		t.Errorf("%+v", g)
	}
	if d := cmp.Diff([]Token{{'a', "a"}, {'b', "b"}, {'c', "c"}}, tokens); d != "" {
		t.Error(d)
	}
	if s := out.stream.String(); s != "abc\n" {
		t.Errorf("streamed %q", s)
	}
	if s := plainText(t, g); s != "3 tokens · 12.5 tok/s · first token 250ms · 3 of 2 prompt tokens reused · stopped at the limit" {
		t.Error(s)
	}
	if l.Last() != g {
		t.Error("Last is another")
	}
	quiet := l.Generate("Hi", Params{Quiet: true, MaxTokens: 1, Continue: g, Fresh: true})
	if s := plainText(t, quiet); !strings.HasPrefix(s, "a\n1 token · ") {
		t.Error(s)
	}
	want := []rig.Request{{Prompt: "Hi", MaxTokens: 3, Seed: math.MaxUint64, Stop: []string{"\n"}}, {Prompt: "Hi", MaxTokens: 1, Continue: g.ID, Fresh: true}}
	if d := cmp.Diff(want, f.requests); d != "" {
		t.Error(d)
	}
	if n := len(l.Generate("x", Params{Quiet: true}).IDs); n != DefaultMaxTokens {
		t.Errorf("%d tokens by default", n)
	}
	if s := out.stream.String(); s != "abc\n" {
		t.Errorf("quiet generations streamed %q", s)
	}
}

func TestErrors(t *testing.T) {
	f := &fakeRig{}
	l, _, _ := start(t, f)
	wantError(t, "Generate", "want one Params, got 2", func() { l.Generate("x", Params{}, Params{}) })
	wantError(t, "Last", "want a generation, got none yet", func() { l.Last() })
	wantError(t, "Generate", "MaxTokens: want 1 or more, 0 for 64 or -1 for none, got -2", func() { l.Generate("x", Params{MaxTokens: -2}) })
	wantError(t, "Generate", "prompt: want UTF-8 (strings.ToValidUTF8 makes it so), got byte 0xff at offset 4", func() { l.Generate("\ufffda\xff") })
	wantError(t, "Generate", "Stop[1]: want UTF-8", func() { l.Generate("x", Params{Stop: []string{"a", "\xc3"}}) })
	wantError(t, "TraceRouter", "prompt: want UTF-8", func() { l.TraceRouter("\xff") })
	wantError(t, "Logits", "prompt: want UTF-8", func() { l.Logits("\xff") })
	wantError(t, "Tokenize", "text: want UTF-8", func() { l.Tokenize("\xff") })
	wantError(t, "Chat", "message 1: want UTF-8", func() { l.Chat(l.System("x"), l.User("\xff")) })
	wantError(t, "Chat", "message 0, thinking: want UTF-8", func() { l.Chat(Message{Role: "assistant", Thinking: "\xff"}, l.User("x")) })
	wantError(t, "Generate", "Temperature: want a number from 0 (greedy) to 1e+06, got -1", func() { l.Generate("x", Params{Temperature: -1}) })
	wantError(t, "Generate", "unsupported value: NaN", func() { l.Generate("x", Params{Temperature: math.NaN()}) })
	wantError(t, "Generate", "TopP: want a probability from 0 to 1 (0 and 1 keep all tokens), got 2", func() { l.Generate("x", Params{TopP: 2}) })
	wantError(t, "TraceRouter", "TopK", func() { l.TraceRouter("x", Params{TopK: -3}) })
	wantError(t, "Generate", "Stop: want a string of at least one character, got \"\"", func() { l.Generate("x", Params{Stop: []string{""}}) })
	wantError(t, "Generate", "broken invariant", func() { l.Generate("panic") })
	wantError(t, "Detokenize", "ids[1]: want a token of the vocabulary, got 256", func() { l.Detokenize([]int{1, 256}) })
	wantError(t, "Logits", "n: want 1 to 1000 tokens, got 0", func() { l.Logits("x", 0) })
	wantError(t, "Chat", "want messages, got none", func() { l.Chat() })
	wantError(t, "Chat", "want text in each message", func() { l.Chat(l.System(""), l.User("x")) })
	wantError(t, "Chat", "want a message that says something, got an empty one", func() { l.Chat(l.User(" \n")) })
	wantError(t, "Generation.Reply", "want a generation that Chat made", func() { l.Generate("x").Reply("y") })
	chat := l.Chat(l.User("x"), l.With(Params{MaxTokens: 1}))
	wantError(t, "Generation.Reply", "want a message that says something", func() { chat.Reply("") })
	wantError(t, "Chat", "want a chat without Params.Continue", func() { l.Chat(l.User("x"), l.With(Params{Continue: chat})) })
	wantError(t, "Generation.Reply", "want a chat without Params.Continue", func() { chat.Reply("y", Params{Continue: chat}) })
	wantError(t, "LoadTrace", "no such file", func() { l.LoadTrace(filepath.Join(t.TempDir(), "none")) })
	wantError(t, "Image", "got int", func() { l.Image(3) })
	wantError(t, "Table", "got int", func() { l.Table(3) })
	f.err = errors.New("drive d2 is gone: layer 3, expert 5")
	wantError(t, "Generate", "drive d2 is gone: layer 3, expert 5", func() { l.Generate("x") })
	f.err = nil
	if g := l.Generate("x", Params{MaxTokens: 1}); g.Text != "a" {
		t.Errorf("after the errors: %+v", g)
	}
}

func TestInterrupt(t *testing.T) {
	f := &fakeRig{hang: true}
	l, out, cancel := start(t, f)
	go func() {
		<-f.reached
		cancel()
	}()
	g := l.Generate("x")
	if g.Text != "ab" || g.Finish != rig.FinishInterrupted || l.Last() != g || out.stream.String() != "ab\n" {
		t.Errorf("%+v, streamed %q", g, out.stream.String())
	}
	if s := g.Summary(); !strings.HasSuffix(s, "interrupted") {
		t.Error(s)
	}
}

func TestCallbackPanics(t *testing.T) {
	f := &fakeRig{hang: true}
	l, out, _ := start(t, f)
	func() {
		defer func() {
			if p := recover(); p != "mine" {
				t.Errorf("recovered %v", p)
			}
		}()
		// The pipe of this test can't take another call after that, since the
		// events of the abandoned one are still in it.
		l.Generate("x", Params{OnToken: func(Token) { panic("mine") }})
	}()
	if s := out.stream.String(); s != "a\n" {
		t.Errorf("streamed %q", s)
	}
}

func TestPrefillProgress(t *testing.T) {
	clock := &clock{t: time.Unix(1000, 0)}
	out := &recorder{}
	w := &watcher{lab: &Lab{now: clock.now}, out: out, start: clock.now()}
	for i, wait := range []time.Duration{300, 300, 20, 20, 100, 10} {
		clock.add(wait * time.Millisecond)
		w.event(mustJSON(event{Done: i + 1, Total: 6}))
	}
	want := []string{
		"display prefill: prefill ▕████████                ▏  33 %  2 of 6 rows, 3.333/s, 1s left",
		"update prefill: prefill ▕████████████████████    ▏  83 %  5 of 6 rows, 6.757/s, 0s left",
		"update prefill: prefill ▕████████████████████████▏ 100 %  6 of 6 rows, 8/s, took 750ms",
	}
	if d := cmp.Diff(want, out.displays); d != "" {
		t.Error(d)
	}
	quick := &watcher{lab: &Lab{now: clock.now}, out: out, start: clock.now()}
	quick.event(mustJSON(event{Done: 6, Total: 6}))
	if len(out.displays) != len(want) {
		t.Errorf("a short prefill shows %s", out.displays[len(want)])
	}
}

func TestChat(t *testing.T) {
	f := &fakeRig{}
	l, out, _ := start(t, f)
	g := l.Chat(l.System("Be brief."), l.User("Hi"), l.With(Params{MaxTokens: 3, Thinking: true}))
	if g.Thinking != "a" || g.Text != "bc" {
		t.Errorf("thinking %q, text %q", g.Thinking, g.Text)
	}
	if s := out.stream.String(); s != "\x1b[2ma\x1b[0m\nbc\n" {
		t.Errorf("streamed %q", s)
	}
	again := g.Reply("And?")
	if again.Text != "bc" {
		t.Errorf("%+v", again)
	}
	var prompts []string
	for _, q := range f.requests {
		s := ""
		for _, segment := range q.Segments {
			s += segment.Text
		}
		prompts = append(prompts, s)
	}
	want := []string{"system:Be brief.;user:Hi;", "system:Be brief.;user:Hi;assistant:abc;user:And?;"}
	if d := cmp.Diff(want, prompts); d != "" {
		t.Error(d)
	}
}

// A chat ends before a stop text in what is said, and streams what it keeps.
func TestChatStop(t *testing.T) {
	for _, c := range []struct {
		script             string
		stop               []string
		thinking, response string
		streamed           string
		finish             rig.Finish
		tokens             int
	}{
		{"abcde", []string{"cd"}, "a", "b", "\x1b[2ma\x1b[0m\nb\n", rig.FinishStopString, 5}, // the fake holds each letter back
		{"abcdef", []string{"xyz", "dx"}, "a", "bcdef", "\x1b[2ma\x1b[0m\nbcdef\n", rig.FinishStop, 6},
		{"aAabc", []string{"Aa"}, "a", "", "\x1b[2ma\x1b[0m\n", rig.FinishStopString, 3},
		{"aAbcd", []string{"Aa"}, "aA", "bcd", "\x1b[2maA\x1b[0m\nbcd\n", rig.FinishStop, 5}, // the thinking's end may still have become one
		{"abcb", []string{"ab"}, "a", "bcb", "\x1b[2ma\x1b[0m\nbcb\n", rig.FinishStop, 4},    // the two parts are two texts
		{"bcd", []string{"d"}, "", "bc", "bc\n", rig.FinishStopString, 3},                    // in what Finish gives
		{"bcd", []string{"dx"}, "", "bcd", "bcd\n", rig.FinishStop, 3},
	} {
		l, out, _ := start(t, &fakeRig{script: c.script})
		g := l.Chat(l.User("Hi"), l.With(Params{Thinking: true, Stop: c.stop}))
		if g.Thinking != c.thinking || g.Text != c.response || g.Finish != c.finish || len(g.IDs) != c.tokens {
			t.Errorf("%s, stop %q: thinking %q, text %q, %s after %d tokens", c.script, c.stop, g.Thinking, g.Text, g.Finish, len(g.IDs))
		}
		if s := out.stream.String(); s != c.streamed {
			t.Errorf("%s, stop %q: streamed %q, want %q", c.script, c.stop, s, c.streamed)
		}
	}
}

func TestTraceRouter(t *testing.T) {
	l, _, _ := start(t, &fakeRig{})
	tr := l.TraceRouter("xyz", Params{MaxTokens: 5})
	if tr.Generation.Text != "abcde" || len(tr.Routes.Tokens) != 8 {
		t.Fatalf("%+v", tr)
	}
	if s := plainText(t, tr); !strings.HasPrefix(s, "fake\n8 tokens · 2 layers × 8 experts, top 2 · reuse 25 %\n1 ▏") {
		t.Error(s)
	}
	if s := plainText(t, tr.Token(0)); !strings.Contains(s, "    1  0 4      0.750 0.250") {
		t.Error(s)
	}
	if alone := l.TraceRouter("xyz", Params{MaxTokens: -1}); len(alone.Routes.Tokens) != 3 || len(alone.Generation.IDs) != 0 || strings.Contains(alone.Generation.Summary(), "limit") {
		t.Errorf("of a prompt alone: %+v", alone)
	}
	for _, v := range []any{tr.Layer(2), tr.Top(3), tr.Experts(), tr.Reuse(), tr.Entropy(), tr.Diff(tr)} {
		plainText(t, v)
	}
	if s := tr.Diff(tr).Summary(); s != "the same experts in all of 8 tokens" {
		t.Error(s)
	}
	other := l.TraceRouter("xyw", Params{MaxTokens: 5})
	if d := tr.Diff(other); d.FirstToken != 2 || d.FirstLayer != 2 {
		t.Errorf("%+v", d)
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	tr.Save(path)
	if d := cmp.Diff(tr.Routes, l.LoadTrace(path).Routes); d != "" {
		t.Error(d)
	}
	wantError(t, "Trace.Layer", "no layer 9: the trace has layers 1 to 2", func() { tr.Layer(9) })
	wantError(t, "Trace.Token", "no token 8: the trace has tokens 0 to 7", func() { tr.Token(8) })
}

func TestTokens(t *testing.T) {
	l, _, _ := start(t, &fakeRig{})
	tokens := l.Tokenize("é!")
	if d := cmp.Diff(Tokens{{0xc3, "⟨c3⟩"}, {0xa9, "⟨a9⟩"}, {'!', "!"}}, tokens); d != "" {
		t.Error(d)
	}
	if s := l.Detokenize(tokens.IDs()); s != "é!" {
		t.Error(s)
	}
	if s := plainText(t, tokens); s != "│⟨c3⟩│⟨a9⟩│!│\n195 169 33" {
		t.Error(s)
	}
	if n := len(l.Tokenize("")); n != 0 {
		t.Errorf("%d tokens of nothing", n)
	}
	d := l.Logits("x")
	if len(d.Top) != 2 || !reflect.DeepEqual(d.Logits, []float32{0, 1, 2, 3}) {
		t.Errorf("%+v", d)
	}
	if e := d.Entropy(); math.Abs(e-1.3670) > 1e-4 { // of softmax(0, 1, 2, 3), in bits
		t.Errorf("entropy %v", e)
	}
	if s := plainText(t, d); !strings.Contains(s, `"\x03" ▏█`) {
		t.Error(s)
	}
}

// A token reads as its characters, and where it begins or ends within one as bytes.
func TestTokenText(t *testing.T) {
	for bytes, want := range map[string]string{"": "", " llo": " llo", "\xa9 日\xe6\x97": "⟨a9⟩ 日⟨e6⟩⟨97⟩", "\ufffd": "\ufffd"} {
		if got := readable([]byte(bytes)); got != want {
			t.Errorf("%q reads %q, want %q", bytes, got, want)
		}
	}
}

func TestPrefetchStats(t *testing.T) {
	f := &fakeRig{}
	l, _, _ := start(t, f)
	l.Generate("x", Params{MaxTokens: 5})
	if s := l.PrefetchStats(); s.Needed != 20 || s.Layers[0].Hit != 20 {
		t.Errorf("%+v", s)
	}
	l.Generate("x", Params{MaxTokens: 2})
	s := l.PrefetchStats()
	if s.Needed != 8 || s.Hit != 8 || s.Layers[0].Needed != 8 {
		t.Errorf("%+v", s)
	}
	if text := plainText(t, s); !strings.Contains(text, "100.0 %") || !strings.Contains(text, "experts by layer") {
		t.Error(text)
	}
	if s := l.PrefetchStats(); s.Needed != 0 {
		t.Errorf("since the last call: %+v", s)
	}
	l.Generate("x", Params{MaxTokens: 2})
	l.Reset()
	if s := l.PrefetchStats(); s.Needed != 0 {
		t.Errorf("since Reset: %+v", s)
	}
	f.stats = prefetch.Stats{Steps: 1, Needed: 2, Hit: 2}
	if s := l.PrefetchStats(); s.Needed != 2 {
		t.Errorf("of a source that began anew: %+v", s)
	}
}

// Every count is in the answer to one of the calls that run at once.
func TestPrefetchStatsAtOnce(t *testing.T) {
	var calls atomic.Int64
	l := New(counting{calls: &calls})
	var sum atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				s := l.PrefetchStats()
				if s.Needed < 0 || s.Rows != s.Needed || s.Layers[0].Rows != s.Needed {
					t.Errorf("%+v", s)
				}
				sum.Add(s.Needed)
			}
		})
	}
	wg.Wait()
	if sum.Load() != calls.Load() {
		t.Errorf("%d of %d counted", sum.Load(), calls.Load())
	}
}

// counting is a session whose statistics have one more row with each call.
type counting struct {
	*host
	calls *atomic.Int64
}

func (c counting) Context() context.Context { return context.Background() }
func (c counting) Call(context.Context, string, any, func(json.RawMessage)) (json.RawMessage, error) {
	n := c.calls.Add(1)
	runtime.Gosched() // another call may answer first
	return json.Marshal(prefetch.Stats{Rows: n, Steps: n, Needed: n, Hit: n, Layers: []prefetch.LayerStats{{Layer: 1, Rows: n, Steps: n, Needed: n, Hit: n}}})
}

func TestModelAndMemory(t *testing.T) {
	l, _, _ := start(t, &fakeRig{})
	if m := l.Model(); m.Name != "fake" || m.Experts != 8 || !strings.HasPrefix(plainText(t, m), "fake\n") {
		t.Errorf("%+v", m)
	}
	if m := l.Memory(); m.Heap != 2_000_000 || !strings.Contains(plainText(t, m), "2 MB") {
		t.Errorf("%+v", m)
	}
}

func TestShow(t *testing.T) {
	f := &fakeRig{}
	l, out, _ := start(t, f)
	l.Display(3, l.Markdown("*x*"), l.Tokenize("a"), []struct{ A int }{{1}})
	bar := l.Progress(3)
	bar.Add(1) // too soon to show
	f.clock.add(progressEvery)
	bar.Add(1)
	bar.Set(3)
	at := l.Show("not yet")
	at.Update(l.Markdown("*done*"))
	l.ClearOutput(true)
	want := []string{
		"display : 3", "display : *x*", "display : │a│\n97", "display : [{A:1}]",
		"display progress: ▕                        ▏   0 %  0 of 3",
		"update progress: ▕████████████████        ▏  66 %  2 of 3, 20/s, 0s left",
		"update progress: ▕████████████████████████▏ 100 %  3 of 3, 30/s, took 100ms",
		"display shown: not yet", "update shown: *done*", "clear, wait true",
	}
	if d := cmp.Diff(want, out.displays); d != "" {
		t.Error(d)
	}
	if s := l.Input("name? ") + l.Password("word? "); s != "name? falseword? true" {
		t.Error(s)
	}
	out.inputErr = errors.New("this front end does not allow input requests")
	wantError(t, "Input", "does not allow input", func() { l.Input("name? ") })
}

func TestServer(t *testing.T) {
	release := make(chan struct{})
	f := &fakeRig{}
	s := NewServer(func(ctx context.Context) (Engine, error) {
		select {
		case <-release:
		case <-ctx.Done():
			return Engine{}, ctx.Err()
		}
		return Engine{f, byteTokens{}, nil}, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Call(ctx, "info", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("while opening: %v", err)
	}
	close(release)
	for _, c := range []struct{ method, params, want string }{
		{"info", "", ""},
		{"nothing", "{}", `want a method of the lab, got "nothing"`},
		{"generate", `{"max_tokens":1,"x":1}`, `unknown field "x"`},
		{"generate", `{"max_tokens":1} 2`, "got more"},
		{"generate", `nonsense`, "want parameters"},
		{"chat", `{"max_tokens":1}`, "want a model with a chat template"},
	} {
		_, err := s.Call(context.Background(), c.method, json.RawMessage(c.params), nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v; want %s", c.method, c.params, err, c.want)
		}
	}
	if err := s.Close(); err != nil || !f.closed {
		t.Errorf("close: %v", err)
	}
	if _, err := s.Call(context.Background(), "info", nil, nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after close: %v", err)
	}

	failing := NewServer(func(context.Context) (Engine, error) { return Engine{}, errors.New("no model in that directory") })
	if _, err := failing.Call(context.Background(), "info", nil, nil); err == nil || err.Error() != "no model in that directory" {
		t.Error(err)
	}
	failing.Close()
	panicking := NewServer(func(context.Context) (Engine, error) { panic("x") })
	if _, err := panicking.Call(context.Background(), "info", nil, nil); err == nil {
		t.Error("no error of a panic in open")
	}
	panicking.Close()
	hanging := NewServer(func(ctx context.Context) (Engine, error) { <-ctx.Done(); return Engine{}, ctx.Err() })
	hanging.Close()
}

// Cells as people write them, on the interpreter that runs them.
func TestInYaegi(t *testing.T) {
	l, out, _ := start(t, &fakeRig{})
	i := interp.New(interp.Options{})
	if err := i.Use(interp.Exports{"lab/lab": l.Exports()}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ code, want string }{
		{`import . "lab"`, ""},
		{`g := Generate("Hi", Params{MaxTokens: 4})`, ""},
		{`g.Text`, "abcd"},
		{`g.Stats.TTFTSeconds`, "0.25"},
		{`n := 0; Generate("Hi", Params{MaxTokens: 4, OnToken: func(t Token) { n += t.ID }}); n`, "394"},
		{`s := ""; for _, t := range Tokenize("ab") { s += t.Text + "," }; s`, "a,b,"},
		{`Chat(User("Hi"), With(Params{MaxTokens: 2})).Reply("x").Text`, "ab"},
		{`t := TraceRouter("ab", Params{MaxTokens: 2}); len(t.Routes.Tokens)`, "4"},
		{`t.Layer(1).Top(1)[0].Count`, "1"},
		{`t.Reuse().Mean()`, "0.25"},
		{`st := PrefetchStats(); st.Needed`, "56"},
		{`st.Layers[0].Layer`, "1"},
		{`Model().Name`, "fake"},
		{`Logits("x").Top[0].ID`, "3"},
		{`var failed error`, ""},
		{`try := func() { defer func() { failed = recover().(error) }(); Generate("x", Params{TopK: -1}) }; try()`, ""},
		{`failed.Error()`, "Generate: TopK: want a count from 0 up (0 keeps all tokens), got -1"},
		{`Last().Text`, "ab"},
	} {
		v, err := i.Eval(c.code)
		if err != nil {
			t.Fatalf("%s: %v", c.code, err)
		}
		if c.want == "" {
			continue
		}
		if got := strings.TrimSpace(sprint(v)); got != strings.TrimSpace(c.want) {
			t.Errorf("%s = %s, want %s", c.code, got, c.want)
		}
	}
	if !strings.HasPrefix(out.stream.String(), "abcd\n") {
		t.Errorf("streamed %q", out.stream.String())
	}
}

func sprint(v reflect.Value) string {
	return strings.Trim(string(mustJSON(v.Interface())), `"`)
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
