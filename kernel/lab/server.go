package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"deltafin/engine"
	"deltafin/prefetch"
	"deltafin/rig"
	"deltafin/trace"
)

// Rig is what a Server needs of a warm model; *rig.Rig has it.
type Rig interface {
	Generate(ctx context.Context, q rig.Request, progress func(rig.Progress)) (*rig.Generation, error)
	Trace(ctx context.Context, q rig.Request, progress func(rig.Progress)) (*rig.Generation, *trace.Trace, error)
	Logits(ctx context.Context, q rig.Request, n int) ([]rig.TokenProb, []float32, error)
	PrefetchStats() prefetch.Stats
	Info() rig.ModelInfo
	Memory() rig.MemoryMap
	Reset()
	Close() error
}

// Tokenizer is what a Server needs of the model's tokenizer; *tokenizer.Tokenizer
// has it.
type Tokenizer interface {
	Encode(text string) []int
	Decode(ids []int) string
	Bytes(id int) []byte // nil for an id out of range
}

// Engine is a warm rig and what goes with its model.
type Engine struct {
	Rig       Rig
	Tokenizer Tokenizer
	Template  Template // nil for a model without one
}

// Server answers the calls of cells. Its methods may be called from any goroutine.
type Server struct {
	cancel context.CancelFunc
	opened chan struct{} // closed when engine and err are set
	engine Engine
	err    error
	calls  sync.WaitGroup
	mu     sync.Mutex
	closed bool
}

// NewServer begins to open the engine in the background, so that a kernel answers
// at once; the calls of cells wait for it. Close waits for open and closes the rig.
func NewServer(open func(context.Context) (Engine, error)) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{cancel: cancel, opened: make(chan struct{})}
	go func() {
		defer close(s.opened)
		defer func() {
			if p := recover(); p != nil {
				s.err = fmt.Errorf("opening the engine failed: %v; please report it", p)
			}
		}()
		s.engine, s.err = open(ctx)
	}()
	return s
}

// Close ends the server: it waits for running calls, whose contexts are the
// caller's to cancel, and for the engine's opening, which it cancels.
func (s *Server) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	<-s.opened
	s.calls.Wait()
	if again || s.err != nil || s.engine.Rig == nil {
		return nil
	}
	return s.engine.Rig.Close()
}

// method answers one call of a cell.
type method func(e *Engine, ctx context.Context, params json.RawMessage, emit func(event)) (any, error)

// methods is the table of what cells can call.
var methods = map[string]method{
	"generate":   taking((*Engine).generate),
	"chat":       taking((*Engine).chat),
	"trace":      taking((*Engine).trace),
	"logits":     taking((*Engine).logits),
	"tokenize":   taking((*Engine).tokenize),
	"detokenize": taking((*Engine).detokenize),
	"stats":      telling(func(r Rig) any { return r.PrefetchStats() }),
	"info":       telling(func(r Rig) any { return r.Info() }),
	"memory":     telling(func(r Rig) any { return r.Memory() }),
	"reset":      telling(func(r Rig) any { r.Reset(); return struct{}{} }),
}

// taking makes a method of one with parameters: a JSON object with known fields only.
func taking[P any](f func(*Engine, context.Context, P, func(event)) (any, error)) method {
	return func(e *Engine, ctx context.Context, params json.RawMessage, emit func(event)) (any, error) {
		var p P
		d := json.NewDecoder(bytes.NewReader(params))
		d.DisallowUnknownFields()
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("want parameters of %T: %w", p, err)
		}
		if _, err := d.Token(); err != io.EOF {
			return nil, errors.New("want one JSON object of parameters, got more")
		}
		return f(e, ctx, p, emit)
	}
}

// telling makes a method of one that has no parameters and can't fail.
func telling(f func(Rig) any) method {
	return func(e *Engine, _ context.Context, _ json.RawMessage, _ func(event)) (any, error) {
		return f(e.Rig), nil
	}
}

// Call runs one method for a cell and returns its result. events, which may be
// nil, are given to one goroutine at a time, in order, before Call returns. While
// the engine is being opened Call waits, until ctx ends. A generation whose ctx
// ends returns what it has, without an error.
//
// A method that panics gives an error: the engine stays for the next cell.
func (s *Server) Call(ctx context.Context, method string, params json.RawMessage, emit func(json.RawMessage)) (result json.RawMessage, err error) {
	handle, ok := methods[method]
	if !ok {
		return nil, fmt.Errorf("want a method of the lab, got %q", method)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errors.New("the engine is closed; restart the kernel")
	}
	s.calls.Add(1)
	s.mu.Unlock()
	defer s.calls.Done()

	select {
	case <-s.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("%s failed inside the engine, which stays loaded: %v; please report it", method, p)
		}
	}()
	v, err := handle(&s.engine, ctx, params, func(e event) {
		if emit == nil {
			return
		}
		if data, err := json.Marshal(e); err == nil {
			emit(data)
		}
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// RangeError says that a setting is out of its range.
type RangeError struct{ Field, Want, Got string }

func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: want %s, got %s", e.Field, e.Want, e.Got)
}

// settings are the engine's names of what it checks, and the fields of Params.
var settings = map[string]string{"temperature": "Temperature", "top-p": "TopP", "top-k": "TopK", "stop": "Stop"}

// rig checks q and makes the rig's request; the prompt of a chat is still to come.
// The error is a *RangeError.
func (q request) rig() (rig.Request, error) {
	if q.MaxTokens < 0 {
		return rig.Request{}, &RangeError{"MaxTokens", fmt.Sprintf("1 or more, 0 for %d or %d for none", DefaultMaxTokens, noTokens), fmt.Sprint(q.MaxTokens)}
	}
	o := engine.GenerateOptions{Sampling: engine.Sampling{Temperature: q.Temperature, TopP: q.TopP, TopK: q.TopK}, Stop: q.Stop}
	if setting := (*engine.SettingError)(nil); errors.As(o.Check(), &setting) {
		return rig.Request{}, &RangeError{settings[setting.Name], setting.Want, setting.Got}
	}
	return rig.Request{
		Prompt: q.Prompt, Continue: q.Continue, MaxTokens: q.MaxTokens, Temperature: q.Temperature, TopP: q.TopP, TopK: q.TopK, Seed: q.Seed,
		Stop: q.Stop, Fresh: q.Fresh,
	}, nil
}

func (e *Engine) token(id int) Token { return Token{ID: id, Text: readable(e.Tokenizer.Bytes(id))} }

// readable is the text of one token: part of a character reads as its bytes.
func readable(b []byte) string {
	var text strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			text.Write(b[:n])
		} else {
			fmt.Fprintf(&text, "⟨%02x⟩", b[0])
		}
		b = b[n:]
	}
	return text.String()
}

// progress passes a rig's progress on as events.
func (e *Engine) progress(emit func(event)) func(rig.Progress) {
	return func(p rig.Progress) {
		ev := event{Done: p.PrefillDone, Total: p.PrefillTotal, Text: p.Text}
		if p.IsToken {
			t := e.token(p.Token)
			ev.Token = &t
		}
		if p.IsToken || p.Text != "" { // a decoding step says nothing new of the prompt
			ev.Done, ev.Total = 0, 0
		}
		emit(ev)
	}
}

func (e *Engine) generate(ctx context.Context, q request, emit func(event)) (any, error) {
	r, err := q.rig()
	if err != nil {
		return nil, err
	}
	g, err := e.Rig.Generate(ctx, r, e.progress(emit))
	if err != nil {
		return nil, err
	}
	return reply{Generation: *g}, nil
}

func (e *Engine) trace(ctx context.Context, q request, emit func(event)) (any, error) {
	r, err := q.rig()
	if err != nil {
		return nil, err
	}
	g, tr, err := e.Rig.Trace(ctx, r, e.progress(emit))
	if err != nil {
		return nil, err
	}
	if err := send(tr, emit); err != nil {
		return nil, err
	}
	return reply{Generation: *g, Trace: &trace.Trace{Model: tr.Model, Layers: tr.Layers, Experts: tr.Experts, TopK: tr.TopK}}, nil
}

// chat generates an answer. Stop texts end it where the model says them, thinking or
// responding; the markup between the two is not searched for them, so the rig, which
// sees all as one text, hears of none.
func (e *Engine) chat(ctx context.Context, q request, emit func(event)) (any, error) {
	if e.Template == nil {
		return nil, errors.New("want a model with a chat template, got one without; use Generate")
	}
	r, err := q.rig()
	if err != nil {
		return nil, err
	}
	r.Stop = nil
	if r.Segments, err = e.Template.Render(q.Messages, q.Thinking, q.Effort); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	answer := e.Template.Read(q.Thinking)
	said := speech{thinking: engine.StopFilter{Stop: q.Stop}, response: engine.StopFilter{Stop: q.Stop}}
	g, err := e.Rig.Generate(ctx, r, func(p rig.Progress) {
		ev := event{}
		if p.IsToken {
			t := e.token(p.Token)
			ev.Token = &t
			ev.Thinking, ev.Text = said.push(answer.Push(p.Token))
		} else if p.Text == "" {
			ev.Done, ev.Total = p.PrefillDone, p.PrefillTotal
		}
		if ev != (event{}) {
			emit(ev)
		}
		if said.stopped() {
			end()
		}
	})
	if err != nil {
		return nil, err
	}
	var last event
	if last.Thinking, last.Text = said.end(answer.Finish()); last != (event{}) {
		emit(last)
	}
	out := reply{Generation: *g, Thinking: said.thinking.String()}
	out.Text = said.response.String()
	if said.stopped() {
		out.Finish = rig.FinishStopString
	}
	return out, nil
}

// speech is what an answer says, up to a stop text in one of its two parts.
type speech struct{ thinking, response engine.StopFilter }

func (s *speech) stopped() bool { return s.thinking.Stopped || s.response.Stopped }

// push takes more of both parts, the thinking first, and gives what became final. A
// response ends the wait for the rest of a stop text in the thinking.
func (s *speech) push(thinking, response string) (string, string) {
	if s.stopped() {
		return "", ""
	}
	thinking = s.thinking.Push(thinking)
	if s.stopped() {
		return thinking, ""
	}
	if response != "" {
		thinking += s.thinking.Flush()
	}
	return thinking, s.response.Push(response)
}

// end takes the last of both parts, and gives also what was held back in vain.
func (s *speech) end(thinking, response string) (string, string) {
	thinking, response = s.push(thinking, response)
	return thinking + s.thinking.Flush(), response + s.response.Flush()
}

func (e *Engine) logits(ctx context.Context, q request, _ func(event)) (any, error) {
	if q.Top < 1 || q.Top > 1000 {
		return nil, &RangeError{"n", "1 to 1000 tokens", fmt.Sprint(q.Top)}
	}
	top, row, err := e.Rig.Logits(ctx, rig.Request{Prompt: q.Prompt}, q.Top)
	if err != nil {
		return nil, err
	}
	for i := range top {
		top[i].Text = e.token(top[i].ID).Text
	}
	d := distribution{Top: top, Row: make([]byte, 0, 4*len(row))}
	for _, v := range row {
		d.Row = binary.LittleEndian.AppendUint32(d.Row, math.Float32bits(v))
	}
	return d, nil
}

func (e *Engine) tokenize(_ context.Context, p textOf, _ func(event)) (any, error) {
	tokens := Tokens{}
	for _, id := range e.Tokenizer.Encode(p.Text) {
		tokens = append(tokens, e.token(id))
	}
	return tokensOf{tokens}, nil
}

func (e *Engine) detokenize(_ context.Context, p idsOf, _ func(event)) (any, error) {
	for i, id := range p.IDs {
		if e.Tokenizer.Bytes(id) == nil {
			return nil, &RangeError{fmt.Sprintf("ids[%d]", i), "a token of the vocabulary", fmt.Sprint(id)}
		}
	}
	return textOf{e.Tokenizer.Decode(p.IDs)}, nil
}
