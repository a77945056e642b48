package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deltafin/engine/xtml"
	"deltafin/kernel/display"
	"deltafin/kernel/display/widget"
	"deltafin/prefetch"
	"deltafin/rig"
	"deltafin/trace"
)

// fakeRig continues every prompt with "a b c …", one letter a token, and counts.
// Tokens are single bytes: id is the byte.
type fakeRig struct {
	mu       sync.Mutex
	requests []rig.Request
	stats    prefetch.Stats
	closed   bool
	hang     bool          // after two tokens, wait for ctx
	reached  chan struct{} // closed when it hangs
	script   string        // what it says instead of a b c …
	err      error
	clock    *clock
}

func (f *fakeRig) Generate(ctx context.Context, q rig.Request, progress func(rig.Progress)) (*rig.Generation, error) {
	f.mu.Lock()
	f.requests = append(f.requests, q)
	f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if q.Prompt == "panic" {
		panic("broken invariant")
	}
	for _, s := range q.Segments {
		q.Prompt += s.Text
	}
	progress(rig.Progress{PrefillDone: len(q.Prompt), PrefillTotal: len(q.Prompt)})
	g := &rig.Generation{ID: "g" + strconv.Itoa(len(f.requests)), Finish: rig.FinishLength, PromptIDs: bytesOf(q.Prompt)}
	g.Stats = rig.Stats{PromptTokens: len(q.Prompt), TTFTSeconds: 0.25, DecodeTokensPerS: 12.5, ReusedTokens: 3}
	for i := range q.MaxTokens {
		if f.script != "" && i == len(f.script) {
			g.Finish = rig.FinishStop
			break
		}
		if f.hang && i == 2 {
			close(f.reached)
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			g.Finish = rig.FinishInterrupted
			break
		}
		id := 'a' + i%26
		if f.script != "" {
			id = int(f.script[i])
		}
		g.IDs = append(g.IDs, id)
		g.Text += string(rune(id))
		progress(rig.Progress{PrefillDone: len(q.Prompt), PrefillTotal: len(q.Prompt), Token: id, IsToken: true, Text: string(rune(id))})
	}
	g.Stats.Tokens = len(g.IDs)
	f.mu.Lock()
	f.stats.Steps += int64(len(g.IDs))
	f.stats.Needed += 4 * int64(len(g.IDs))
	f.stats.Hit += 4 * int64(len(g.IDs))
	f.stats.Layers = []prefetch.LayerStats{{Layer: 1, Steps: f.stats.Steps, Needed: f.stats.Needed, Hit: f.stats.Hit}}
	f.mu.Unlock()
	return g, nil
}

func bytesOf(s string) (ids []int) {
	for i := range len(s) {
		ids = append(ids, int(s[i]))
	}
	return ids
}

func (f *fakeRig) Trace(ctx context.Context, q rig.Request, progress func(rig.Progress)) (*rig.Generation, *trace.Trace, error) {
	g, err := f.Generate(ctx, q, progress)
	if err != nil {
		return nil, nil, err
	}
	tr := &trace.Trace{Model: "fake", Layers: []int{1, 2}, Experts: 8, TopK: 2}
	for i, id := range append(slices.Clone(g.PromptIDs), g.IDs...) {
		tr.Tokens = append(tr.Tokens, trace.Token{ID: id, Text: string(rune(id)), Generated: i >= len(g.PromptIDs)})
		tr.IDs = append(tr.IDs, int32(i%4), int32(4+i%4), int32(id%4), 7)
		tr.Weights = append(tr.Weights, 0.75, 0.25, 1.0/3, 2.0/3)
	}
	return g, tr, nil
}

func (f *fakeRig) Logits(_ context.Context, q rig.Request, n int) ([]rig.TokenProb, []float32, error) {
	row := []float32{0, 1, 2, 3}
	top := []rig.TokenProb{{ID: 3, Text: " three", Logit: 3, Prob: 0.64}, {ID: 2, Text: " two", Logit: 2, Prob: 0.24}}
	return top[:min(n, 2)], row, f.err
}

func (f *fakeRig) PrefetchStats() prefetch.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}
func (f *fakeRig) Info() rig.ModelInfo { return rig.ModelInfo{Name: "fake", Layers: 3, Experts: 8} }
func (f *fakeRig) Memory() rig.MemoryMap {
	return rig.MemoryMap{SpineMapped: 1500, Heap: 2_000_000, RSS: 5}
}
func (f *fakeRig) Reset()       {}
func (f *fakeRig) Close() error { f.closed = true; return nil }

// byteTokens is the fake's tokenizer.
type byteTokens struct{}

func (byteTokens) Encode(s string) []int { return bytesOf(s) }
func (byteTokens) Decode(ids []int) string {
	var b []byte
	for _, id := range ids {
		b = append(b, byte(id))
	}
	return strings.ToValidUTF8(string(b), "\ufffd")
}
func (byteTokens) Bytes(id int) []byte {
	if id < 0 || id > 255 {
		return nil
	}
	return []byte{byte(id)}
}

// brackets is the fake's chat template: "role:text;" a message. Of an answer, the
// letters a and A are thinking.
type brackets struct{}

func (brackets) Render(messages []Message, thinking bool, effort string) (segments []xtml.Segment, err error) {
	for _, m := range messages {
		if m.Text == "" {
			return nil, errors.New("want text in each message, got none")
		}
		segments = append(segments, xtml.Segment{Text: m.Role + ":", Markup: true}, xtml.Segment{Text: m.Thinking + m.Text + ";"})
	}
	return segments, nil
}

func (brackets) Read(thinking bool) Answer { return &bracketsAnswer{think: thinking} }

// bracketsAnswer holds each letter back until the next.
type bracketsAnswer struct {
	think bool
	held  string
}

func (a *bracketsAnswer) Push(id int) (thinking, response string) {
	if (id == 'a' || id == 'A') && a.think {
		return string(rune(id)), ""
	}
	response, a.held = a.held, string(rune(id))
	return "", response
}

func (a *bracketsAnswer) Finish() (thinking, response string) { return "", a.held }

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// recorder is a cell's output.
type recorder struct {
	mu       sync.Mutex
	stream   strings.Builder
	displays []string // "display id: text", "update id: text"
	input    string
	inputErr error
}

func (r *recorder) Stream(name, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stream.WriteString(text)
}

func (r *recorder) show(op string, b display.Bundle, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, _, _ = strings.Cut(id, "-")
	r.displays = append(r.displays, fmt.Sprintf("%s %s: %v", op, id, b.Data[display.MIMEText]))
}

func (r *recorder) Display(b display.Bundle, id string) { r.show("display", b, id) }
func (r *recorder) Update(b display.Bundle, id string)  { r.show("update", b, id) }
func (r *recorder) Clear(wait bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.displays = append(r.displays, fmt.Sprintf("clear, wait %t", wait))
}
func (r *recorder) Input(_ context.Context, prompt string, password bool) (string, error) {
	return fmt.Sprintf("%s%s%t", r.input, prompt, password), r.inputErr
}

// host is the cell of a test: its output, and what widgets need.
type host struct {
	out *recorder // nil keeps nothing

	mu    sync.Mutex
	to    widget.Sink // set by Capture, for all goroutines
	comms []widget.Message
}

func (h *host) Cell() widget.Sink {
	if h.out == nil {
		return &recorder{}
	}
	return h.out
}

func (h *host) Output() Output {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.to != nil {
		return captured{h.to, h.out}
	}
	return h.Cell().(*recorder)
}

func (h *host) Comm(m widget.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.comms = append(h.comms, m)
}

func (h *host) Capture(to widget.Sink, f func()) {
	h.mu.Lock()
	h.to = to
	h.mu.Unlock()
	f()
	h.mu.Lock()
	h.to = nil
	h.mu.Unlock()
}

func (h *host) Callback(f func()) func() { return f }

// captured is a cell's output, of which what is shown goes elsewhere.
type captured struct {
	widget.Sink
	cell *recorder
}

func (c captured) Input(ctx context.Context, prompt string, password bool) (string, error) {
	return c.cell.Input(ctx, prompt, password)
}

// pipeSession carries one call at a time over two pipes of JSON, as the kernel's
// and the child's process do.
type pipeSession struct {
	*host
	ctx  context.Context
	to   *json.Encoder
	from *json.Decoder
	mu   sync.Mutex // one call at a time
	send sync.Mutex // one writer at a time
}

type frame struct {
	Op, Method, Error string
	Data              json.RawMessage
}

func (p *pipeSession) Context() context.Context { return p.ctx }

func (p *pipeSession) write(f frame) error {
	p.send.Lock()
	defer p.send.Unlock()
	return p.to.Encode(f)
}

func (p *pipeSession) Call(ctx context.Context, method string, params any, event func(json.RawMessage)) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if err := p.write(frame{Op: "call", Method: method, Data: data}); err != nil {
		return nil, err
	}
	var canceller sync.WaitGroup
	defer canceller.Wait()
	done := make(chan struct{})
	defer close(done)
	canceller.Go(func() {
		select {
		case <-ctx.Done():
			p.write(frame{Op: "cancel"})
		case <-done:
		}
	})
	for {
		var f frame
		if err := p.from.Decode(&f); err != nil {
			return nil, err
		}
		switch {
		case f.Op == "event":
			if event != nil {
				event(f.Data)
			}
		case f.Error != "":
			return nil, errors.New(f.Error)
		default:
			return f.Data, nil
		}
	}
}

// serve is the other end of a pipeSession, until its input ends.
func serve(s *Server, in io.Reader, out io.Writer) {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	var running sync.WaitGroup
	defer running.Wait()
	cancel := func() {}
	for {
		var f frame
		if from.Decode(&f) != nil {
			cancel()
			return
		}
		if f.Op == "cancel" {
			cancel()
			continue
		}
		cancel()
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.Background())
		running.Go(func() {
			data, err := s.Call(ctx, f.Method, f.Data, func(e json.RawMessage) { to.Encode(frame{Op: "event", Data: e}) })
			answer := frame{Op: "result", Data: data}
			if err != nil {
				answer.Error = err.Error()
			}
			to.Encode(answer)
		})
	}
}

// start connects a Lab with a Server of f over pipes.
func start(t testing.TB, f *fakeRig) (*Lab, *recorder, context.CancelFunc) {
	f.clock = &clock{t: time.Unix(1000, 0)}
	f.reached = make(chan struct{})
	s := NewServer(func(context.Context) (Engine, error) { return Engine{f, byteTokens{}, brackets{}}, nil })
	childIn, serverOut := io.Pipe()
	serverIn, childOut := io.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() { serve(s, serverIn, serverOut) })
	ctx, cancel := context.WithCancel(context.Background())
	out := &recorder{}
	session := &pipeSession{host: &host{out: out}, ctx: ctx, to: json.NewEncoder(childOut), from: json.NewDecoder(childIn)}
	l := New(session)
	l.now = f.clock.now
	t.Cleanup(func() {
		childOut.Close()
		childIn.Close()
		serving.Wait()
		cancel()
		if err := s.Close(); err != nil || !f.closed {
			t.Errorf("close: %v, rig closed: %t", err, f.closed)
		}
	})
	return l, out, cancel
}
