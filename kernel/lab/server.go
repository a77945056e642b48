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

// methods is the table of what cells can call.
var methods = map[string]func(*Engine, context.Context, json.RawMessage, func(event)) (any, error){
	"generate":   (*Engine).generate,
	"chat":       (*Engine).chat,
	"trace":      (*Engine).trace,
	"logits":     (*Engine).logits,
	"tokenize":   (*Engine).tokenize,
	"detokenize": (*Engine).detokenize,
	"stats": func(e *Engine, _ context.Context, _ json.RawMessage, _ func(event)) (any, error) {
		return e.Rig.PrefetchStats(), nil
	},
	"info": func(e *Engine, _ context.Context, _ json.RawMessage, _ func(event)) (any, error) {
		return e.Rig.Info(), nil
	},
	"memory": func(e *Engine, _ context.Context, _ json.RawMessage, _ func(event)) (any, error) {
		return e.Rig.Memory(), nil
	},
	"reset": func(e *Engine, _ context.Context, _ json.RawMessage, _ func(event)) (any, error) {
		e.Rig.Reset()
		return struct{}{}, nil
	},
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

// decode reads the parameters of a method, with known fields only.
func decode[T any](params json.RawMessage) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(params))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("want parameters of %T: %w", v, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return v, errors.New("want one JSON object of parameters, got more")
	}
	return v, nil
}

// RangeError says that a setting is out of its range.
type RangeError struct{ Field, Want, Got string }

func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: want %s, got %s", e.Field, e.Want, e.Got)
}

// rig checks q and makes the rig's request, still without a prompt.
func (q request) rig() (rig.Request, error) {
	switch {
	case q.MaxTokens < 1:
		return rig.Request{}, &RangeError{"MaxTokens", fmt.Sprintf("1 or more, or 0 for %d", DefaultMaxTokens), fmt.Sprint(q.MaxTokens)}
	case !(q.Temperature >= 0) || math.IsInf(q.Temperature, 0):
		return rig.Request{}, &RangeError{"Temperature", "0 (greedy) or more", fmt.Sprint(q.Temperature)}
	case !(q.TopP >= 0 && q.TopP <= 1):
		return rig.Request{}, &RangeError{"TopP", "0 to 1", fmt.Sprint(q.TopP)}
	case q.TopK < 0:
		return rig.Request{}, &RangeError{"TopK", "0 (all) or more", fmt.Sprint(q.TopK)}
	}
	for _, s := range q.Stop {
		if s == "" {
			return rig.Request{}, &RangeError{"Stop", "texts to stop at", "an empty one"}
		}
	}
	return rig.Request{
		Continue: q.Continue, MaxTokens: q.MaxTokens, Temperature: q.Temperature, TopP: q.TopP, TopK: q.TopK, Seed: q.Seed, Stop: q.Stop, Fresh: q.Fresh,
	}, nil
}

func (e *Engine) token(id int) Token { return Token{ID: id, Text: text(e.Tokenizer.Bytes(id))} }

// text is a token's bytes as valid UTF-8.
func text(b []byte) string { return string(bytes.ToValidUTF8(b, []byte("\ufffd"))) }

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

func (e *Engine) generate(ctx context.Context, params json.RawMessage, emit func(event)) (any, error) {
	q, err := decode[request](params)
	if err != nil {
		return nil, err
	}
	r, err := q.rig()
	if err != nil {
		return nil, err
	}
	r.Prompt = q.Prompt
	g, err := e.Rig.Generate(ctx, r, e.progress(emit))
	if err != nil {
		return nil, err
	}
	return reply{Generation: *g}, nil
}

func (e *Engine) trace(ctx context.Context, params json.RawMessage, emit func(event)) (any, error) {
	q, err := decode[request](params)
	if err != nil {
		return nil, err
	}
	r, err := q.rig()
	if err != nil {
		return nil, err
	}
	r.Prompt = q.Prompt
	g, tr, err := e.Rig.Trace(ctx, r, e.progress(emit))
	if err != nil {
		return nil, err
	}
	if err := send(tr, emit); err != nil {
		return nil, err
	}
	return reply{Generation: *g, Trace: &trace.Trace{Model: tr.Model, Layers: tr.Layers, Experts: tr.Experts, TopK: tr.TopK}}, nil
}

func (e *Engine) chat(ctx context.Context, params json.RawMessage, emit func(event)) (any, error) {
	q, err := decode[request](params)
	if err != nil {
		return nil, err
	}
	if e.Template == nil {
		return nil, errors.New("want a model with a chat template, got one without; use Generate")
	}
	r, err := q.rig()
	if err != nil {
		return nil, err
	}
	if r.Segments, err = e.Template.Render(q.Messages, q.Thinking, q.Effort); err != nil {
		return nil, err
	}
	answer := e.Template.Read(q.Thinking)
	var thinking, response []byte
	say := func(ev event) {
		thinking = append(thinking, ev.Thinking...)
		response = append(response, ev.Text...)
		if ev != (event{}) {
			emit(ev)
		}
	}
	g, err := e.Rig.Generate(ctx, r, func(p rig.Progress) {
		ev := event{}
		if p.IsToken {
			t := e.token(p.Token)
			ev.Token = &t
			ev.Thinking, ev.Text = answer.Push(p.Token)
		} else if p.Text == "" {
			ev.Done, ev.Total = p.PrefillDone, p.PrefillTotal
		}
		say(ev)
	})
	if err != nil {
		return nil, err
	}
	var last event
	last.Thinking, last.Text = answer.Finish()
	say(last)
	out := reply{Generation: *g, Thinking: string(thinking)}
	out.Text = string(response)
	if g.Finish == rig.FinishStopString {
		for _, s := range q.Stop {
			out.Text, _, _ = strings.Cut(out.Text, s)
		}
	}
	return out, nil
}

func (e *Engine) logits(ctx context.Context, params json.RawMessage, _ func(event)) (any, error) {
	q, err := decode[request](params)
	if err != nil {
		return nil, err
	}
	if q.Top < 1 || q.Top > 1000 {
		return nil, &RangeError{"n", "1 to 1000 tokens", fmt.Sprint(q.Top)}
	}
	top, row, err := e.Rig.Logits(ctx, rig.Request{Prompt: q.Prompt}, q.Top)
	if err != nil {
		return nil, err
	}
	d := distribution{Top: top, Row: make([]byte, 0, 4*len(row))}
	for _, v := range row {
		d.Row = binary.LittleEndian.AppendUint32(d.Row, math.Float32bits(v))
	}
	return d, nil
}

func (e *Engine) tokenize(_ context.Context, params json.RawMessage, _ func(event)) (any, error) {
	p, err := decode[textOf](params)
	if err != nil {
		return nil, err
	}
	tokens := Tokens{}
	for _, id := range e.Tokenizer.Encode(p.Text) {
		tokens = append(tokens, e.token(id))
	}
	return tokensOf{tokens}, nil
}

func (e *Engine) detokenize(_ context.Context, params json.RawMessage, _ func(event)) (any, error) {
	p, err := decode[idsOf](params)
	if err != nil {
		return nil, err
	}
	for i, id := range p.IDs {
		if e.Tokenizer.Bytes(id) == nil {
			return nil, &RangeError{fmt.Sprintf("ids[%d]", i), "a token of the vocabulary", fmt.Sprint(id)}
		}
	}
	return textOf{e.Tokenizer.Decode(p.IDs)}, nil
}
