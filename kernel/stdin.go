package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"deltafin/kernel/wire"
)

// StdinError says why a cell can't ask the front end for input.
type StdinError struct{ Reason string }

func (e *StdinError) Error() string { return "input: " + e.Reason }

// errInterrupted is what Input returns when its context ends first.
var errInterrupted = errors.New("input: interrupted")

// inputs matches input_reply messages with the cells that wait for them.
type inputs struct {
	mu      sync.Mutex
	waiting []*inputWait // oldest first
}

type inputWait struct {
	id       string // msg_id of the input_request
	cell     string // and of the execute_request
	identity string
	answer   chan string
}

// Input implements Output.
func (o *output) Input(ctx context.Context, prompt string, password bool) (string, error) {
	switch {
	case !o.allowStdin:
		return "", &StdinError{"this front end does not take input (allow_stdin is false)"}
	case !named(o.request.identity):
		return "", &StdinError{"this front end has no identity, so its stdin channel is not known"}
	}
	o.mu.Lock()
	ended := o.ended
	o.flush(true) // what was printed stands before the prompt
	o.mu.Unlock()
	if ended {
		return "", &StdinError{"the cell has ended"}
	}
	s := o.server
	h := s.header("input_request")
	w := &inputWait{id: h.MsgID, cell: o.request.Header.MsgID, identity: o.request.identity, answer: make(chan string, 1)}
	s.inputs.add(w)
	defer s.inputs.remove(w)
	s.routers[Stdin].send(w.identity, s.codec.Encode(&wire.Message{
		Identities: o.request.Identities,
		Header:     h,
		Parent:     o.request.RawHeader,
		Content:    wire.JSON(map[string]any{"prompt": prompt, "password": password}),
	}))
	select {
	case v := <-w.answer:
		return v, nil
	case <-ctx.Done():
		return "", errInterrupted
	case <-s.ctx.Done():
		return "", errInterrupted
	}
}

func (in *inputs) add(w *inputWait) {
	in.mu.Lock()
	in.waiting = append(in.waiting, w)
	in.mu.Unlock()
}

func (in *inputs) remove(w *inputWait) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i, x := range in.waiting {
		if x == w {
			in.waiting = append(in.waiting[:i], in.waiting[i+1:]...)
			return
		}
	}
}

// deliver hands an input_reply to the request that it names as parent. Many front
// ends name none, or the cell: then it is for the oldest that this front end was asked.
func (in *inputs) deliver(r *request) bool {
	var q struct {
		Value string `json:"value"`
	}
	if json.Unmarshal(r.Content, &q) != nil {
		return false
	}
	parent := r.ParentHeader().MsgID
	in.mu.Lock()
	defer in.mu.Unlock()
	for i, w := range in.waiting {
		if parent == w.id || (parent == "" || parent == w.cell) && r.identity == w.identity {
			in.waiting = append(in.waiting[:i], in.waiting[i+1:]...)
			w.answer <- q.Value
			return true
		}
	}
	return false
}
