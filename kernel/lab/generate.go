package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"deltafin/kernel/display"
	"deltafin/rig"
	"deltafin/trace"
)

// DefaultMaxTokens is how many tokens Generate and Chat make when Params doesn't say.
const DefaultMaxTokens = 64

// noTokens is Params.MaxTokens of a prompt that is to be computed and no more.
const noTokens = -1

// Params are the settings of a generation. The zero value is greedy, 64 new
// tokens.
type Params struct {
	MaxTokens   int         // new tokens at most; 0 means 64, and -1 none: compute the prompt only
	Temperature float64     // 0 takes the likeliest token each time
	TopP        float64     // sample from the likeliest tokens up to this probability; 0 and 1 keep all
	TopK        int         // sample from this many tokens; 0 keeps all
	Seed        uint64      // the same seed gives the same text
	Stop        []string    // end before the first of these texts, in a chat of the thinking or the response
	Continue    *Generation // go on from its prompt and tokens, whose state is kept
	OnToken     func(Token) // called with each new token, in order, while the cell waits
	Quiet       bool        // don't stream the text
	Fresh       bool        // compute the whole prompt, even where a kept state begins it
	Thinking    bool        // Chat only: think before answering
	Effort      string      // Chat only, with Thinking: low, high or max; "" leaves it to the model
}

// Generation is what a model made of a prompt. A cell that ends in one shows its
// summary: tokens, speed, time to the first token, prompt tokens whose state was
// reused, and, where experts are read from drives, time that computing waited for them.
type Generation struct {
	ID        string          // names the kept state
	PromptIDs []int           // the prompt's tokens
	IDs       []int           // new tokens, without the one that ended it
	Text      string          // what they say; of a chat, the response
	Thinking  string          // of a chat, what came before the response
	Finish    rig.Finish      // stop, length, stop_string or interrupted
	Stats     GenerationStats // its times and counts

	lab      *Lab
	quiet    bool
	messages []Message // of a chat: what was asked
	params   Params
}

// GenerationStats measures one generation. Its JSON names are the command line's.
type GenerationStats rig.Stats

// String is the text.
func (g *Generation) String() string { return g.Text }

// Summary is the line that a cell shows for g.
func (g *Generation) Summary() string {
	s := g.Stats
	parts := []string{plural(len(g.IDs), "token")}
	if s.DecodeTokensPerS > 0 {
		parts = append(parts, fmt.Sprintf("%.3g tok/s", s.DecodeTokensPerS))
	}
	if s.TTFTSeconds > 0 {
		parts = append(parts, "first token "+seconds(s.TTFTSeconds))
	}
	if s.ReusedTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s reused", s.ReusedTokens, plural(s.PromptTokens, "prompt token")))
	} else {
		parts = append(parts, plural(s.PromptTokens, "prompt token"))
	}
	if s.Drafted > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d drafts accepted", s.Accepted, s.Drafted))
	}
	if s.ExpertBytesRead > 0 || s.StallSeconds > 0 { // where the experts come from drives
		parts = append(parts, "stall "+seconds(s.StallSeconds))
	}
	switch g.Finish {
	case rig.FinishLength:
		if g.params.MaxTokens != noTokens {
			parts = append(parts, "stopped at the limit")
		}
	case rig.FinishStopString:
		parts = append(parts, "stopped at a stop text")
	case rig.FinishInterrupted:
		parts = append(parts, "interrupted")
	}
	return strings.Join(parts, " · ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func seconds(s float64) string { return display.Duration(time.Duration(s * float64(time.Second))) }

// DisplayBundle is the summary, below the text if that was not streamed.
func (g *Generation) DisplayBundle() display.Bundle {
	if g.quiet && g.Text != "" {
		return display.Text(g.Text + "\n" + g.Summary())
	}
	return display.Text(g.Summary())
}

// Generate continues a prompt and streams the new text while it runs. A prompt
// that extends an earlier one computes only what is new. The prompt must be UTF-8.
func (l *Lab) Generate(prompt string, p ...Params) *Generation {
	params := one("Generate", p)
	needText("Generate", "prompt", prompt)
	q := params.request("Generate")
	q.Prompt = prompt
	return l.generate("Generate", "generate", q, params)
}

// one gives the settings of a call that may have none.
func one(fn string, p []Params) Params {
	switch len(p) {
	case 0:
		return Params{}
	case 1:
		return p[0]
	}
	fail(fn, fmt.Errorf("want one Params, got %d; put the settings into one", len(p)))
	panic("unreachable")
}

// request is the settings for the function fn.
func (p Params) request(fn string) request {
	for i, s := range p.Stop {
		needText(fn, fmt.Sprintf("Stop[%d]", i), s)
	}
	q := request{
		MaxTokens: p.MaxTokens, Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, Seed: p.Seed, Stop: p.Stop, Fresh: p.Fresh,
		Thinking: p.Thinking, Effort: p.Effort,
	}
	switch q.MaxTokens {
	case 0:
		q.MaxTokens = DefaultMaxTokens
	case noTokens:
		q.MaxTokens = 0
	}
	if p.Continue != nil {
		q.Continue = p.Continue.ID
	}
	return q
}

// needText ends the cell of fn where a text is not UTF-8: on its way to the engine it
// would silently become another.
func needText(fn, name, text string) {
	for at, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[at:], "\ufffd") {
			fail(fn, &RangeError{name, "UTF-8 (strings.ToValidUTF8 makes it so)", fmt.Sprintf("byte 0x%02x at offset %d", text[at], at)})
		}
	}
}

// generate runs one generating method, shows its progress and keeps its outcome.
func (l *Lab) generate(fn, method string, q request, p Params) *Generation {
	g, _ := l.run(fn, method, q, p)
	return g
}

// run is generate that also gives the trace, where the method makes one.
func (l *Lab) run(fn, method string, q request, p Params) (*Generation, *trace.Trace) {
	// A callback that panics unwinds through Call: the server must still stop.
	ctx, cancel := context.WithCancel(l.session.Context())
	defer cancel()
	w := &watcher{lab: l, out: l.session.Output(), p: p, start: l.now()}
	defer w.end()
	r := call[reply](l, ctx, fn, method, q, w.event)
	g := &Generation{
		ID: r.ID, PromptIDs: r.PromptIDs, IDs: r.IDs, Text: r.Text, Thinking: r.Thinking, Finish: r.Finish, Stats: GenerationStats(r.Stats),
		lab: l, quiet: p.Quiet, messages: q.Messages, params: p,
	}
	l.mu.Lock()
	l.last = g
	l.mu.Unlock()
	if r.Trace == nil {
		return g, nil
	}
	tr, err := receive(r.Trace, w.routes)
	if err != nil {
		fail(fn, err)
	}
	return g, tr
}

// Last is the latest generation of this session, also of a cell that was
// interrupted. Before the first it ends the cell with an error.
func (l *Lab) Last() *Generation {
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	if last == nil {
		fail("Last", errors.New("want a generation, got none yet in this session; Generate, Chat and TraceRouter make one"))
	}
	return last
}

// Progress of a prefill is shown when it takes longer than progressAfter, and
// changed no more often than progressEvery.
const (
	progressAfter = 500 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// watcher shows a generation while it runs.
type watcher struct {
	lab   *Lab
	out   Output
	p     Params
	start time.Time

	shown    string // display id of the prefill's progress
	changed  time.Time
	thinking bool // the last text streamed was thinking
	tail     byte // last byte streamed
	routes   []*routes
}

func (w *watcher) event(data json.RawMessage) {
	var e event
	if json.Unmarshal(data, &e) != nil {
		return // the reply has it all
	}
	if e.Total > 0 {
		w.prefill(e.Done, e.Total)
	}
	if e.Routes != nil {
		w.routes = append(w.routes, e.Routes)
	}
	w.text(e.Thinking, true)
	w.text(e.Text, false)
	if e.Token != nil && w.p.OnToken != nil {
		w.p.OnToken(*e.Token)
	}
}

func (w *watcher) prefill(done, total int) {
	now := w.lab.now()
	elapsed := now.Sub(w.start)
	if w.p.Quiet || w.shown == "" && (elapsed < progressAfter || done >= total) || done < total && now.Sub(w.changed) < progressEvery {
		return
	}
	w.changed = now
	b := display.Progress{Title: "prefill", Unit: "rows", Done: int64(done), Total: int64(total), Elapsed: elapsed}.DisplayBundle()
	if w.shown == "" {
		w.shown = w.lab.displayID("prefill")
		w.out.Display(b, w.shown)
		return
	}
	w.out.Update(b, w.shown)
}

// text streams a piece, thinking in faint letters above the response.
func (w *watcher) text(s string, thinking bool) {
	if s == "" || w.p.Quiet {
		return
	}
	if thinking != w.thinking {
		if thinking {
			w.out.Stream("stdout", "\x1b[2m")
		} else {
			w.out.Stream("stdout", "\x1b[0m\n")
		}
		w.thinking = thinking
	}
	w.out.Stream("stdout", s)
	w.tail = s[len(s)-1]
}

// end leaves the stream at the beginning of a line.
func (w *watcher) end() {
	if w.thinking {
		w.out.Stream("stdout", "\x1b[0m")
	}
	if w.tail != 0 && w.tail != '\n' {
		w.out.Stream("stdout", "\n")
	}
}

// Reply continues a chat with what the user says next. The settings are the
// chat's, unless others are given.
func (g *Generation) Reply(text string, p ...Params) *Generation {
	if g.lab == nil || g.messages == nil {
		fail("Generation.Reply", errors.New("want a generation that Chat made, got one without messages; use Params.Continue to go on from it"))
	}
	params := g.params
	if len(p) > 0 {
		params = one("Generation.Reply", p)
	}
	answer := Message{Role: "assistant", Text: g.Text, Thinking: g.Thinking}
	return g.lab.chat("Generation.Reply", append(slices.Clone(g.messages), answer, Message{Role: "user", Text: text}), params)
}
