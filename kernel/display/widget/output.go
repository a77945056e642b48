package widget

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"

	"deltafin/kernel/display"
)

// Output is a place for what functions show: streams and values. Its methods may be
// called from any goroutine.
type Output struct {
	view
	// Guarded by model.mu:
	shown []shown
	size  int  // bytes of shown
	full  bool // there was more
}

// A shown is one output of a cell as a notebook keeps it.
type shown struct {
	stream         string // its name; "" for a value
	text           []byte // of a stream
	data, metadata json.RawMessage
	plain, id      string // of a value: its text, and its display id
}

const (
	// maxOutput bounds what an Output keeps, in bytes.
	maxOutput = 1 << 20
	// clearWait is how long an emptied Output may show the old content while the new
	// one comes, so that it doesn't flicker.
	clearWait = 50 * time.Millisecond
)

// Output makes a place that shows what functions print and display.
func (m *Manager) Output() *Output {
	o := &Output{}
	o.view = view{m.newModel(outputs, "Output", "", map[string]any{"msg_id": ""})}
	o.state["outputs"] = deferred(o.outputs)
	o.forms = func() (string, string) {
		plain := o.text()
		return plain, "<pre>" + html.EscapeString(plain) + "</pre>"
	}
	return o
}

// outputs is the content as the front ends want it. o.mu is held.
func (o *Output) outputs() any {
	list := make([]any, 0, len(o.shown))
	for _, s := range o.shown {
		if s.stream != "" {
			list = append(list, map[string]any{"output_type": "stream", "name": s.stream, "text": string(s.text)})
		} else {
			list = append(list, map[string]any{"output_type": "display_data", "data": s.data, "metadata": s.metadata})
		}
	}
	return list
}

func (o *Output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, s := range o.shown {
		b.Write(s.text)
		if s.stream == "" {
			b.WriteString(s.plain + "\n")
		}
	}
	return strings.ToValidUTF8(strings.TrimSuffix(b.String(), "\n"), "\ufffd")
}

// Run runs f here and now; what f and goroutines that it starts print and display
// goes into the Output, after what is there. Where no front end shows widgets, it
// goes below the cell as well.
func (o *Output) Run(f func()) {
	o.made()
	o.manager.host.Capture(capture{o}, f)
}

// Clear empties the Output. What is shown soon after takes the old content's place at
// once.
func (o *Output) Clear() {
	o.put(clearWait, func(map[string]any) []string {
		if len(o.shown) == 0 {
			return nil
		}
		o.shown, o.size, o.full = nil, 0, false
		return []string{"outputs"}
	})
}

// A capture is an Output in the place of a cell's.
type capture struct{ o *Output }

func (c capture) Stream(name, text string) {
	if text == "" {
		return
	}
	c.o.put(0, func(map[string]any) []string {
		if !c.o.room(len(text)) {
			return nil
		}
		if n := len(c.o.shown); n > 0 && c.o.shown[n-1].stream == name {
			c.o.shown[n-1].text = append(c.o.shown[n-1].text, text...)
		} else {
			c.o.shown = append(c.o.shown, shown{stream: name, text: []byte(text)})
		}
		return []string{"outputs"}
	})
	if !c.o.manager.seen.Load() {
		c.o.manager.host.Cell().Stream(name, text)
	}
}

// Clear empties the Output, which waits for new content in any case.
func (c capture) Clear(wait bool) {
	c.o.Clear()
	if !c.o.manager.seen.Load() {
		c.o.manager.host.Cell().Clear(wait)
	}
}

func (c capture) Display(b display.Bundle, id string) {
	s := rendered(b, id)
	c.o.put(0, func(map[string]any) []string {
		if !c.o.room(s.bytes()) {
			return nil
		}
		c.o.shown = append(c.o.shown, s)
		return []string{"outputs"}
	})
	if !c.o.manager.seen.Load() {
		c.o.manager.host.Cell().Display(b, id)
	}
}

func (c capture) Update(b display.Bundle, id string) {
	s := rendered(b, id)
	mine := false
	c.o.put(0, func(map[string]any) (changed []string) {
		for i, old := range c.o.shown {
			if old.stream == "" && old.id == id {
				mine = true
				if c.o.size-old.bytes()+s.bytes() <= maxOutput {
					c.o.size += s.bytes() - old.bytes()
					c.o.shown[i] = s
					changed = []string{"outputs"}
				}
			}
		}
		return changed
	})
	if !mine || !c.o.manager.seen.Load() {
		c.o.manager.host.Cell().Update(b, id)
	}
}

// room makes room for n more bytes, or says once that there is none. o.mu is held.
func (o *Output) room(n int) bool {
	if o.full {
		return false
	}
	if o.size+n <= maxOutput {
		o.size += n
		return true
	}
	o.full = true
	note := fmt.Sprintf("\n… an Output keeps %d bytes, and the rest is not shown; Clear makes room\n", maxOutput)
	o.shown = append(o.shown, shown{stream: "stderr", text: []byte(note)})
	return false
}

func rendered(b display.Bundle, id string) shown {
	s := shown{id: id, plain: fmt.Sprint(b.Data[display.MIMEText])}
	var err error
	if s.data, err = json.Marshal(b.Data); err != nil {
		s.data = marshal(map[string]any{display.MIMEText: s.plain})
	}
	if s.metadata, err = json.Marshal(b.Metadata); err != nil || b.Metadata == nil {
		s.metadata = json.RawMessage("{}")
	}
	return s
}

func (s *shown) bytes() int { return len(s.text) + len(s.data) + len(s.metadata) }
