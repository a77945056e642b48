package widget

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"deltafin/kernel/display"
)

// Box is a row or a column of widgets and other values.
type Box struct {
	view
	children []*model
}

// maxChildren bounds the values in one Box.
const maxChildren = 200

// VBox makes a column. What is no widget is shown as it is now.
func (m *Manager) VBox(children ...any) *Box { return m.box("VBox", "\n", children) }

// HBox makes a row. What is no widget is shown as it is now.
func (m *Manager) HBox(children ...any) *Box { return m.box("HBox", "  ", children) }

func (m *Manager) box(kind, between string, children []any) *Box {
	switch n := len(children); {
	case n == 0:
		fail(kind, errors.New("want something to show, got nothing"))
	case n > maxChildren:
		fail(kind, fmt.Errorf("want at most %d values, got %d", maxChildren, n))
	}
	b := &Box{}
	references := []string{}
	for i, c := range children {
		if v := reflect.ValueOf(c); v.Kind() == reflect.Pointer && v.IsNil() {
			fail(kind, fmt.Errorf("value %d: want one to show, got a nil %T", i, c))
		}
		w, ok := c.(Widget)
		if !ok {
			o := m.Output()
			s := rendered(display.Render(c), "")
			o.shown, o.size = append(o.shown, s), s.bytes()
			w = o
		}
		w.self().made()
		b.children = append(b.children, w.self())
		references = append(references, reference(w.self()))
	}
	b.view = view{m.newModel(controls, kind, "", map[string]any{"box_style": "", "children": references})}
	for _, c := range b.children {
		b.parts = append(b.parts, c)
		c.mu.Lock()
		c.within = append(c.within, b.model)
		c.mu.Unlock()
	}
	b.forms = func() (string, string) {
		var texts []string
		style := "display:flex;gap:1em"
		if kind == "VBox" {
			style += ";flex-direction:column"
		}
		markup := `<div style="` + style + `">`
		for _, c := range b.children {
			text, m := c.forms()
			if text != "" {
				texts = append(texts, text)
			}
			markup += m
		}
		return strings.Join(texts, between), markup + "</div>"
	}
	return b
}
