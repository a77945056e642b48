package widget

import (
	"encoding/json"
	"errors"
	"html"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"deltafin/kernel/display"
)

// A model is one comm: a widget's state, or that of a part of it.
type model struct {
	manager *Manager
	id      string
	of      *model   // the widget that this is the layout or the style of
	parts   []*model // what the front ends must know before it: layout, style, children
	used    uint64   // Manager.order when it was last used; guarded by Manager.mu

	// accept checks what a front end sets, by name; fixed after construction, as
	// are custom and forms.
	accept map[string]func(json.RawMessage) (v any, ok bool)
	custom func(json.RawMessage)
	forms  func() (text, html string) // for viewers without widgets

	// sending is held from taking state for a message until that is sent, so that
	// messages have the order of the states. It is taken before mu.
	sending sync.Mutex

	mu      sync.Mutex
	state   map[string]any
	dirty   map[string]bool // changed since the last message
	budget  float64         // messages that may go at once
	filled  time.Time       // when budget was so
	timer   *time.Timer     // sends what is dirty; nil when nothing waits
	display string          // the display id that it was shown with
	within  []*model        // boxes that show it

	listener listener
}

// Changes go to the front ends at once, up to messageBurst and as many a second, and
// otherwise when some can go again: a bar may be set in a tight loop.
const messageBurst = 50

const (
	base     = "@jupyter-widgets/base"
	controls = "@jupyter-widgets/controls"
	outputs  = "@jupyter-widgets/output"
)

// newModel makes a widget of the controls, or of the outputs, with its layout and,
// where style names one, its style.
func (m *Manager) newModel(module, kind, style string, state map[string]any) *model {
	v := "2.0.0"
	if module == outputs {
		v = "1.0.0"
	}
	view := kind
	if strings.HasSuffix(kind, "Progress") {
		view = "Progress"
	}
	w := m.bare(module, v, kind+"Model", module, v, view+"View")
	w.state["_dom_classes"], w.state["tabbable"], w.state["tooltip"] = []string{}, nil, nil
	layout := m.bare(base, "2.0.0", "LayoutModel", base, "2.0.0", "LayoutView")
	w.part("layout", layout)
	if style != "" {
		s := m.bare(controls, "2.0.0", style+"StyleModel", base, "2.0.0", "StyleView")
		// The front ends cut a description of more than some 90 pixels.
		if title, _ := state["description"].(string); utf8.RuneCountInString(title) > 9 && style != "Button" {
			s.state["description_width"] = "initial"
		}
		w.part("style", s)
	}
	maps.Copy(w.state, state)
	return w
}

func (m *Manager) bare(module, version, name, viewModule, viewVersion, view string) *model {
	w := &model{manager: m, id: newID(), budget: messageBurst, state: map[string]any{
		"_model_module": module, "_model_module_version": version, "_model_name": name,
		"_view_module": viewModule, "_view_module_version": viewVersion, "_view_name": view, "_view_count": nil,
	}}
	w.listener.calls = &m.calls
	return w
}

func (w *model) part(name string, p *model) {
	p.of = w
	w.parts = append(w.parts, p)
	w.state[name] = reference(p)
}

// whole is the widget that w is a part of, or w.
func (w *model) whole() *model {
	if w.of != nil {
		return w.of
	}
	return w
}

// reference is how state names another model.
func reference(w *model) string { return "IPY_MODEL_" + w.id }

// made ends the cell where w is that of a widget's zero value.
func (w *model) made() {
	if w == nil {
		fail("widget", errors.New("want a widget that IntSlider or its like made, got an empty one"))
	}
}

// callbacks is the widget's listener.
func (w *model) callbacks() *listener {
	w.made()
	return &w.listener
}

func (w *model) get(name string) any {
	w.made()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state[name]
}

// A deferred value is made when it is sent, with model.mu held.
type deferred func() any

func now(v any) any {
	if f, ok := v.(deferred); ok {
		return f()
	}
	return v
}

// snapshot is the whole state.
func (w *model) snapshot() map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := make(map[string]any, len(w.state))
	for name, v := range w.state {
		state[name] = now(v)
	}
	return state
}

// settle is the whole state, for a message: nothing waits to be sent after it.
// w.sending is held.
func (w *model) settle() map[string]any {
	w.mu.Lock()
	w.dirty = nil
	w.mu.Unlock()
	return w.snapshot()
}

// put changes the state by what f says of it, and tells the front ends: at once, or
// with what comes within wait.
func (w *model) put(wait time.Duration, f func(state map[string]any) (changed []string)) {
	w.made()
	w.mu.Lock()
	changed := f(w.state)
	if len(changed) == 0 {
		w.mu.Unlock()
		return
	}
	if w.dirty == nil {
		w.dirty = map[string]bool{}
	}
	for _, name := range changed {
		w.dirty[name] = true
	}
	if wait == 0 && w.timer == nil {
		if c := w.credit(); c < 1 {
			wait = time.Duration((1 - c) / messageBurst * float64(time.Second))
		}
	}
	atOnce := w.timer == nil && wait == 0
	if w.timer == nil && wait > 0 {
		w.timer = time.AfterFunc(wait, func() {
			w.mu.Lock()
			w.timer = nil
			w.mu.Unlock()
			w.flush()
		})
	}
	w.mu.Unlock()
	w.manager.use(w)
	if atOnce {
		w.flush()
	}
}

// credit is how many messages may go now. w.mu is held.
func (w *model) credit() float64 {
	now := time.Now()
	w.budget = min(messageBurst, w.budget+now.Sub(w.filled).Seconds()*messageBurst)
	w.filled = now
	return w.budget
}

// set gives one part of the state a value.
func (w *model) set(name string, v any) { w.change(name, func(any) any { return v }) }

// change gives one part of the state the value that f makes of the present one.
func (w *model) change(name string, f func(old any) any) {
	changed := false
	w.put(0, func(state map[string]any) []string {
		v := f(state[name])
		if changed = state[name] != v; !changed {
			return nil
		}
		state[name] = v
		return []string{name}
	})
	if changed {
		w.listener.notify()
	}
}

// flush sends what is dirty.
func (w *model) flush() {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.mu.Lock()
	state := map[string]any{}
	for name := range w.dirty {
		state[name] = now(w.state[name])
	}
	w.dirty = nil
	w.mu.Unlock()
	if len(state) == 0 {
		return
	}
	if w.manager.model(w.id) != nil {
		data := marshal(map[string]any{"method": "update", "state": state, "buffer_paths": []any{}})
		w.mu.Lock()
		w.credit()
		w.budget -= 1 + float64(len(data))/(32<<10)
		w.mu.Unlock()
		w.manager.host.Comm(Message{Type: "comm_msg", ID: w.id, Data: data})
	}
	w.update()
}

// update changes the plain forms in place, where nobody shows the widget itself.
func (w *model) update() {
	if w.manager.seen.Load() || w.forms == nil {
		return
	}
	w.mu.Lock()
	id, within := w.display, w.within
	w.mu.Unlock()
	if id != "" {
		w.manager.host.Cell().Update(w.bundle(), id)
	}
	for _, box := range within {
		box.update()
	}
}

// take is a front end's update. Every front end hears what holds now: the one that
// sent it waits for its echo, and the others learn of it.
func (w *model) take(state map[string]json.RawMessage, reply func(Message)) {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.mu.Lock()
	changed, echo := false, map[string]any{}
	for name, raw := range state {
		old, known := w.state[name]
		if !known {
			continue
		}
		if accept := w.accept[name]; accept != nil {
			if v, ok := accept(raw); ok && v != old {
				w.state[name], changed = v, true
			}
		}
		echo[name] = now(w.state[name])
	}
	w.mu.Unlock()
	if len(echo) > 0 {
		data := marshal(map[string]any{"method": "echo_update", "state": echo, "buffer_paths": []any{}})
		reply(Message{Type: "comm_msg", ID: w.id, Data: data})
	}
	if changed {
		w.listener.notify()
	}
}

// answer is the whole state, to a front end that asks.
func (w *model) answer(reply func(Message)) {
	w.sending.Lock()
	defer w.sending.Unlock()
	data := marshal(map[string]any{"method": "update", "state": w.snapshot(), "buffer_paths": []any{}})
	reply(Message{Type: "comm_msg", ID: w.id, Data: data})
}

// bundle is the widget for a front end, with its other forms.
func (w *model) bundle() display.Bundle {
	text, markup := w.forms()
	return display.Bundle{
		Data: map[string]any{
			MIMEView:         map[string]any{"version_major": 2, "version_minor": 0, "model_id": w.id},
			display.MIMEText: text,
			display.MIMEHTML: markup,
		},
		Metadata: map[string]any{},
	}
}

// Widget is what every widget is: a value that shows itself. The values of this
// package alone are widgets.
type Widget interface {
	display.Value
	self() *model
}

// view is what the widgets have in common.
type view struct{ *model }

func (v view) self() *model { return v.model }

// DisplayBundle shows the widget, which the front ends know from then on.
func (v view) DisplayBundle() display.Bundle {
	if v.model == nil {
		return display.Text(v.String())
	}
	v.manager.reveal(v.model)
	return v.bundle()
}

// String is the widget as text, such as "tokens: 64 [1 … 256]".
func (v view) String() string {
	if v.model == nil {
		return "a widget that nothing made"
	}
	text, _ := v.forms()
	return text
}

// Close takes the widget from the front ends. Its value stays, and showing it again
// opens it again.
func (v view) Close() {
	v.made()
	v.manager.hide(v.model)
}

// DisplayID is an id to show v with when it is a widget, so that its plain forms can
// be changed in place; "" when it is none.
func DisplayID(v any) string {
	w, ok := v.(Widget)
	if r := reflect.ValueOf(v); !ok || r.Kind() == reflect.Pointer && r.IsNil() || w.self() == nil {
		return ""
	}
	s := w.self()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.display == "" {
		s.display = "widget-" + s.id
	}
	return s.display
}

// line is the plain forms of a title and what stands beside it.
func line(title, text string) (plain, markup string) {
	plain = visible(text)
	markup = "<span>" + html.EscapeString(plain) + "</span>"
	if title != "" {
		plain = visible(title) + ": " + plain
		markup = "<span>" + html.EscapeString(visible(title)) + "</span>: " + markup
	}
	return plain, "<div>" + markup + "</div>"
}

// visible is s on one line, without what would change a terminal's state.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < 0x20 || r == 0x7f:
			return utf8.RuneError
		}
		return r
	}, s)
}

// text is s as a widget's text: UTF-8, and not too long.
func text(fn, name, s string) string {
	if len(s) > maxText {
		fail(fn, &SizeError{name, maxText, len(s)})
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
