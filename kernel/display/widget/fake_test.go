package widget

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"deltafin/kernel/display"
)

// cell is a test's cell: what is shown in it, and the messages to the front ends.
type cell struct {
	mu     sync.Mutex
	to     Sink // set by Capture, for all goroutines
	shown  []string
	comms  []Message
	panics []any
}

func (c *cell) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, fmt.Sprintf(format, args...))
}

func (c *cell) Stream(name, text string) { c.note("%s: %s", name, text) }
func (c *cell) Display(b display.Bundle, id string) {
	c.note("display %s: %v", id, b.Data[display.MIMEText])
}
func (c *cell) Update(b display.Bundle, id string) {
	c.note("update %s: %v", id, b.Data[display.MIMEText])
}

func (c *cell) Clear(wait bool) { c.note("clear, wait %t", wait) }

func (c *cell) Cell() Sink { return c }

// sink is what a function in the cell prints to.
func (c *cell) sink() Sink {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.to != nil {
		return c.to
	}
	return c
}

func (c *cell) Capture(to Sink, f func()) {
	set := func(to Sink) {
		c.mu.Lock()
		c.to = to
		c.mu.Unlock()
	}
	set(to)
	defer set(nil)
	f()
}

func (c *cell) Callback(f func()) func() {
	return func() {
		defer func() {
			if p := recover(); p != nil {
				c.mu.Lock()
				c.panics = append(c.panics, p)
				c.mu.Unlock()
			}
		}()
		f()
	}
}

func (c *cell) Comm(m Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.comms = append(c.comms, m)
}

// sent takes the messages since the last call.
func (c *cell) sent() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.comms
	c.comms = nil
	return m
}

// front is a front end as a browser's: models by comm id, with the state that the
// messages give them, and echoes that it waits for.
type front struct {
	t       testing.TB
	manager *Manager
	cell    *cell
	models  map[string]map[string]any
	closed  []string
	echoes  int
}

func newFront(t testing.TB) *front {
	c := &cell{}
	return &front{t: t, manager: NewManager(c), cell: c, models: map[string]map[string]any{}}
}

// take follows the messages of the kernel.
func (f *front) take(messages ...Message) {
	f.t.Helper()
	for _, m := range messages {
		var d struct {
			Method  string          `json:"method"`
			State   map[string]any  `json:"state"`
			Buffers json.RawMessage `json:"buffer_paths"`
		}
		if err := json.Unmarshal(m.Data, &d); err != nil {
			f.t.Fatalf("%s %s: %v", m.Type, m.Data, err)
		}
		known := f.models[m.ID]
		switch m.Type {
		case "comm_open":
			if m.TargetName != "jupyter.widget" || string(m.Metadata) != `{"version":"2.1.0"}` || known != nil || string(d.Buffers) != "[]" {
				f.t.Errorf("%+v", m)
			}
			// A model that refers to one that isn't there is never drawn.
			for name, v := range d.State {
				for _, v := range list(v) {
					if id, ok := referred(v); ok && f.models[id] == nil {
						f.t.Errorf("%s of %v refers to %v, which is not open", name, d.State["_model_name"], v)
					}
				}
			}
			f.models[m.ID] = d.State
		case "comm_msg":
			if known == nil {
				f.t.Errorf("to a closed comm: %s", m.Data)
				continue
			}
			switch d.Method {
			case "echo_update":
				f.echoes++
				fallthrough
			case "update":
				for name, v := range d.State {
					if _, ok := known[name]; !ok {
						f.t.Errorf("%v has no %s", known["_model_name"], name)
					}
					known[name] = v
				}
			default:
				f.t.Errorf("method %q", d.Method)
			}
		case "comm_close":
			f.closed = append(f.closed, m.ID)
			delete(f.models, m.ID)
		}
	}
}

func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func referred(v any) (id string, ok bool) {
	s, _ := v.(string)
	if len(s) < 10 || s[:10] != "IPY_MODEL_" {
		return "", false
	}
	return s[10:], true
}

// send gives the kernel a message and follows its answers.
func (f *front) send(m Message) (answers []Message) {
	f.t.Helper()
	f.manager.Receive(m, func(m Message) { answers = append(answers, m) })
	return answers
}

// set moves a widget as a reader does.
func (f *front) set(w Widget, state string) {
	f.t.Helper()
	before := f.echoes
	f.take(f.send(Message{Type: "comm_msg", ID: w.self().id, Data: json.RawMessage(`{"method":"update","state":` + state + `,"buffer_paths":[]}`)})...)
	if f.echoes != before+1 {
		f.t.Errorf("%s: %d echoes, want 1", state, f.echoes-before)
	}
}

// show shows a widget, and follows what that opens.
func (f *front) show(w Widget) display.Bundle {
	f.t.Helper()
	b := w.DisplayBundle()
	f.follow()
	return b
}

func (f *front) follow() { f.t.Helper(); f.take(f.cell.sent()...) }

// state is a part of a widget's state as the front end has it.
func (f *front) state(w Widget, name string) any { return f.models[w.self().id][name] }
