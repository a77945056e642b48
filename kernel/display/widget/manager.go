// Package widget speaks Jupyter's widget protocol (version 2.1.0 of its messages) for
// sliders, progress bars, outputs and their like: what a cell makes with Go values, and
// a reader of the notebook moves.
//
// A Manager owns the widgets of one session. A widget becomes known to the front
// ends when it is first shown, with the models of its layout and its style, and its
// Go value stays usable whatever becomes of them: a closed widget, a front end that
// has gone or none that knows widgets only mean that nobody else changes the value.
//
// Each widget has a text form and an HTML form for viewers without widgets. While no
// front end has shown that it knows widgets, a widget that was shown with DisplayID
// is also changed in place in these forms.
//
// What a front end sends is checked: a value of another type, out of range or too
// large is not taken, and the front end gets the present one back. No message makes
// this package panic. The functions that cells call do, with an *Error, where their
// arguments make no sense.
package widget

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"deltafin/kernel/display"
)

// MIMEView is the MIME type of a widget in a bundle.
const MIMEView = "application/vnd.jupyter.widget-view+json"

const (
	target        = "jupyter.widget"
	controlTarget = "jupyter.widget.control"
	version       = "2.1.0"
)

const (
	// maxWidgets bounds the widgets that the front ends know. One more closes the
	// one that was longest without a change.
	maxWidgets = 500
	// maxMessage bounds what a front end may send in one message, in bytes.
	maxMessage = 1 << 20
	// maxText bounds a widget's text, in bytes.
	maxText = 64 << 10
	// maxStates bounds the answer to a front end that asks for all widgets.
	maxStates = 32 << 20
)

// Message is one message of the comm protocol, as package kernel has it.
type Message struct {
	Type       string // "comm_open", "comm_msg" or "comm_close"
	ID         string
	TargetName string // comm_open only
	Data       json.RawMessage
	Metadata   json.RawMessage
	Buffers    [][]byte
}

// Sink takes what is shown.
type Sink interface {
	Stream(name, text string)
	Display(b display.Bundle, id string)
	Update(b display.Bundle, id string)
	Clear(wait bool)
}

// Host connects widgets with the cells that made them. Its methods are called from
// any goroutine, and also when the cell that the goroutine belongs to has ended.
type Host interface {
	// Comm sends a message to the front ends.
	Comm(Message)
	// Cell is the output of the calling goroutine's cell itself, past any Capture.
	Cell() Sink
	// Capture runs f; what f and goroutines that it starts show goes to to, which
	// is comparable.
	Capture(to Sink, f func())
	// Callback makes f run as a part of the cell that the calling goroutine belongs
	// to, on whatever goroutine it is called: a panic of f's is that cell's.
	Callback(f func()) func()
}

// Manager owns the widgets of one session. Its methods may be called from any
// goroutine. It owns the goroutines that run callbacks, one at a time for each widget;
// Wait waits for them.
type Manager struct {
	host  Host
	seen  atomic.Bool // a front end knows widgets
	calls sync.WaitGroup

	mu    sync.Mutex
	open  map[string]*model // that the front ends know, by comm id
	order uint64            // counts uses
	shown int               // widgets among open; the others are their parts
}

// NewManager returns a Manager without widgets.
func NewManager(h Host) *Manager { return &Manager{host: h, open: map[string]*model{}} }

// Wait waits until no callback runs.
func (m *Manager) Wait() { m.calls.Wait() }

// Receive takes one message of a front end and answers through reply, before it
// returns. Messages come one at a time; callbacks run beside.
func (m *Manager) Receive(msg Message, reply func(Message)) {
	w := m.model(msg.ID)
	switch msg.Type {
	case "comm_open":
		switch {
		case msg.TargetName == controlTarget:
			m.seen.Store(true)
		case w == nil: // widgets are made here, and no other target is known
			reply(Message{Type: "comm_close", ID: msg.ID, Data: json.RawMessage("{}")})
		}
	case "comm_close":
		if w != nil {
			m.forget(w)
		}
	case "comm_msg":
		var d struct {
			Method  string                     `json:"method"`
			State   map[string]json.RawMessage `json:"state"`
			Content json.RawMessage            `json:"content"`
		}
		if len(msg.Data) <= maxMessage {
			if json.Unmarshal(msg.Data, &d) != nil {
				return
			}
		} else if w != nil {
			d.Method = "request_state" // so that it has the state that holds
		}
		switch {
		case d.Method == "request_states":
			m.seen.Store(true)
			reply(m.states(msg.ID))
		case w == nil:
			// Of a child that has ended, or closed here: the front end closes it too.
			reply(Message{Type: "comm_close", ID: msg.ID, Data: json.RawMessage("{}")})
		default:
			m.seen.Store(true)
			m.use(w)
			switch d.Method {
			case "update":
				w.take(d.State, reply)
			case "request_state":
				w.answer(reply)
			case "custom":
				if w.custom != nil {
					w.custom(d.Content)
				}
			}
		}
	}
}

// model is the open model with a comm id; nil when there is none.
func (m *Manager) model(id string) *model {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open[id]
}

func (m *Manager) use(w *model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order++
	w.used = m.order
}

// states answers request_states with every model, the latest used first where there
// are too many.
func (m *Manager) states(id string) Message {
	m.mu.Lock()
	models := make([]*model, 0, len(m.open))
	for _, w := range m.open {
		models = append(models, w)
	}
	used := map[*model]uint64{}
	for _, w := range models {
		used[w] = w.whole().used
	}
	m.mu.Unlock()
	slices.SortFunc(models, func(a, b *model) int {
		return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a.id, b.id))
	})
	type known struct {
		Name    any             `json:"model_name"`
		Module  any             `json:"model_module"`
		Version any             `json:"model_module_version"`
		State   json.RawMessage `json:"state"`
	}
	states, size := map[string]known{}, 0
	for _, w := range models {
		state := w.snapshot()
		k := known{state["_model_name"], state["_model_module"], state["_model_module_version"], marshal(state)}
		if size += len(k.State); size > maxStates {
			break
		}
		states[w.id] = k
	}
	data := marshal(map[string]any{"method": "update_states", "states": states, "buffer_paths": []any{}})
	return Message{Type: "comm_msg", ID: id, Data: data}
}

// reveal makes a model known to the front ends, its parts first.
func (m *Manager) reveal(w *model) {
	for _, p := range w.parts {
		m.reveal(p)
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	m.mu.Lock()
	if m.open[w.id] != nil {
		m.mu.Unlock()
		return
	}
	m.open[w.id] = w
	m.order++
	w.used = m.order
	var oldest *model
	if w.of == nil {
		if m.shown++; m.shown > maxWidgets {
			for _, o := range m.open {
				if o.of == nil && o != w && (oldest == nil || o.used < oldest.used) {
					oldest = o
				}
			}
		}
	}
	m.mu.Unlock()
	state := w.settle()
	m.host.Comm(Message{
		Type: "comm_open", ID: w.id, TargetName: target,
		Data:     marshal(map[string]any{"state": state, "buffer_paths": []any{}}),
		Metadata: json.RawMessage(`{"version":"` + version + `"}`),
	})
	if oldest != nil {
		m.hide(oldest)
	}
}

// hide closes a widget and what is its own in the front ends.
func (m *Manager) hide(w *model) {
	if !m.forget(w) {
		return
	}
	m.host.Comm(Message{Type: "comm_close", ID: w.id, Data: json.RawMessage("{}")})
	for _, p := range w.parts {
		if p.of == w {
			m.hide(p)
		}
	}
}

// forget says that the front ends don't know w any more; before is whether they did.
func (m *Manager) forget(w *model) (before bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[w.id] != w {
		return false
	}
	delete(m.open, w.id)
	if w.of == nil {
		m.shown--
	}
	return true
}

func newID() string { return strings.ToLower(rand.Text()) }

// marshal encodes what this package made, which always can be.
func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Error is a call that makes no sense, and what the functions for cells panic with.
type Error struct {
	Func string // the function, such as "IntSlider"
	Err  error  // what was expected, what was found, what to do
}

func (e *Error) Error() string { return e.Func + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// CellError gives the name and value of a cell's error.
func (e *Error) CellError() (name, value string) { return e.Func, e.Err.Error() }

// fail ends the cell with an *Error.
func fail(fn string, err error) { panic(&Error{fn, err}) }
