package widget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"

	"deltafin/kernel/display"
)

// Bool is a box to check. Its methods may be called from any goroutine.
type Bool struct{ view }

// Checkbox makes a box to check.
func (m *Manager) Checkbox(title string, value bool) *Bool {
	c := &Bool{view{m.newModel(controls, "Checkbox", "Checkbox", map[string]any{
		"description": text("Checkbox", "title", title), "description_allow_html": false, "disabled": false, "indent": false, "value": value,
	})}}
	c.accept = map[string]func(json.RawMessage) (any, bool){"value": func(raw json.RawMessage) (any, bool) {
		switch string(bytes.TrimSpace(raw)) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
		return nil, false
	}}
	c.forms = func() (string, string) {
		mark := "[ ]"
		if c.Value() {
			mark = "[x]"
		}
		plain := mark + " " + visible(title)
		return plain, "<div>" + html.EscapeString(plain) + "</div>"
	}
	return c
}

// Value says whether the box is checked.
func (c *Bool) Value() bool { return c.get("value").(bool) }

// Set checks the box, or unchecks it, in the front ends too.
func (c *Bool) Set(v bool) { c.set("value", v) }

// OnChange has f called with the value whenever it has changed, as a slider's does.
func (c *Bool) OnChange(f func(v bool)) {
	if f == nil {
		c.callbacks().set(nil)
		return
	}
	c.callbacks().set(c.manager.host.Callback(func() { f(c.Value()) }))
}

// Choice is one of several texts. Its methods may be called from any goroutine.
type Choice struct {
	view
	options []string
}

// maxOptions bounds the texts of a Choice.
const maxOptions = 1000

// Dropdown makes a menu of texts, of which the first is chosen.
func (m *Manager) Dropdown(title string, options ...string) *Choice {
	const fn = "Dropdown"
	switch n := len(options); {
	case n == 0:
		fail(fn, errors.New("want options, got none"))
	case n > maxOptions:
		fail(fn, fmt.Errorf("want at most %d options, got %d", maxOptions, n))
	}
	c := &Choice{options: slices.Clone(options)}
	size := 0
	for i, o := range c.options {
		if size += len(o); size > maxText {
			fail(fn, &SizeError{"options", maxText, size})
		}
		c.options[i] = strings.ToValidUTF8(o, "\ufffd")
	}
	c.view = view{m.newModel(controls, fn, "Description", map[string]any{
		"description": text(fn, "title", title), "description_allow_html": false, "disabled": false, "_options_labels": c.options, "index": 0,
	})}
	c.accept = map[string]func(json.RawMessage) (any, bool){"index": func(raw json.RawMessage) (any, bool) {
		i, ok := integer(raw)
		return i, ok && 0 <= i && i < len(c.options)
	}}
	c.forms = func() (string, string) {
		return line(title, fmt.Sprintf("%s [%s]", c.Value(), strings.Join(c.options, " | ")))
	}
	return c
}

// Value is the chosen text.
func (c *Choice) Value() string { return c.options[c.Index()] }

// Index is the place of the chosen text among the options, from 0.
func (c *Choice) Index() int { return c.get("index").(int) }

// Set chooses a text, which must be one of the options.
func (c *Choice) Set(option string) {
	i := slices.Index(c.options, option)
	if i < 0 {
		fail("Set", fmt.Errorf("want one of %q, got %q", c.options, option))
	}
	c.set("index", i)
}

// OnChange has f called with the chosen text whenever it has changed, as a slider's does.
func (c *Choice) OnChange(f func(v string)) {
	if f == nil {
		c.callbacks().set(nil)
		return
	}
	c.callbacks().set(c.manager.host.Callback(func() { f(c.Value()) }))
}

// Text is a line to type, or a text that is only shown. Its methods may be called from
// any goroutine.
type Text struct{ view }

// Text makes a line to type. The value changes when the reader presses Enter or
// goes elsewhere.
func (m *Manager) Text(title, value string) *Text {
	t := m.text("Text", title, value, map[string]any{"disabled": false, "continuous_update": false})
	t.accept = map[string]func(json.RawMessage) (any, bool){"value": func(raw json.RawMessage) (any, bool) {
		var s *string
		if json.Unmarshal(raw, &s) != nil || s == nil || len(*s) > maxText {
			return nil, false
		}
		return *s, true
	}}
	t.forms = func() (string, string) { return line(title, t.Value()) }
	return t
}

// Label makes a text that is shown, and can be changed.
func (m *Manager) Label(value string) *Text {
	t := m.text("Label", "", value, map[string]any{})
	t.forms = func() (string, string) { return line("", t.Value()) }
	return t
}

// HTML makes HTML source that is shown, and can be changed.
func (m *Manager) HTML(source string) *Text {
	t := m.text("HTML", "", source, map[string]any{})
	t.forms = func() (string, string) {
		b := display.HTML(t.Value())
		return fmt.Sprint(b.Data[display.MIMEText]), t.Value()
	}
	return t
}

func (m *Manager) text(kind, title, value string, state map[string]any) *Text {
	state["description"], state["description_allow_html"] = text(kind, "title", title), false
	state["value"], state["placeholder"] = text(kind, "value", value), "\u200b"
	return &Text{view{m.newModel(controls, kind, kind, state)}}
}

// Value is the present text.
func (t *Text) Value() string { return t.get("value").(string) }

// Set changes the text, in the front ends too.
func (t *Text) Set(v string) { t.set("value", text("Set", "value", v)) }

// OnChange has f called with the text whenever it has changed, as a slider's does.
func (t *Text) OnChange(f func(v string)) {
	if f == nil {
		t.callbacks().set(nil)
		return
	}
	t.callbacks().set(t.manager.host.Callback(func() { f(t.Value()) }))
}

// Button is a button to press. Its methods may be called from any goroutine.
type Button struct{ view }

// Button makes a button.
func (m *Manager) Button(title string) *Button {
	b := &Button{view{m.newModel(controls, "Button", "Button", map[string]any{
		"description": text("Button", "title", title), "disabled": false, "icon": "", "button_style": "",
	})}}
	b.listener.every = true
	b.custom = func(content json.RawMessage) {
		var c struct {
			Event string `json:"event"`
		}
		if json.Unmarshal(content, &c) == nil && c.Event == "click" {
			b.listener.notify()
		}
	}
	b.forms = func() (string, string) {
		plain := "[ " + visible(title) + " ]"
		return plain, "<div>" + html.EscapeString(plain) + "</div>"
	}
	return b
}

// OnClick has f called for each press: one call at a time, beside the cells, as a
// part of the cell that called OnClick. It replaces an earlier f; nil ends it.
func (b *Button) OnClick(f func()) {
	if f == nil {
		b.callbacks().set(nil)
		return
	}
	b.callbacks().set(b.manager.host.Callback(f))
}

// Click presses the button.
func (b *Button) Click() { b.callbacks().notify() }

// SizeError is a text that is too long.
type SizeError struct {
	Name      string
	Want, Got int // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: want at most %d bytes, got %d", e.Name, e.Want, e.Got)
}
