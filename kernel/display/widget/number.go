package widget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Int is a widget with a whole number: a slider or a progress bar. Its methods may be
// called from any goroutine.
type Int struct {
	view
	min, max int
}

// IntSlider makes a slider for the whole numbers from min to max.
func (m *Manager) IntSlider(title string, min, max, value int) *Int {
	return m.integer("IntSlider", "Slider", title, min, max, value, map[string]any{
		"step": 1, "orientation": "horizontal", "readout": true, "readout_format": "d",
		"continuous_update": true, "disabled": false, "behavior": "drag-tap",
	})
}

// IntProgress makes a progress bar from 0 to total.
func (m *Manager) IntProgress(title string, total int) *Int {
	return m.integer("IntProgress", "Progress", title, 0, total, 0, map[string]any{"orientation": "horizontal", "bar_style": ""})
}

// maxInt is the largest number that a browser counts exactly.
const maxInt = 1 << 53

func (m *Manager) integer(fn, style, title string, low, high, value int, state map[string]any) *Int {
	switch {
	case low >= high:
		fail(fn, fmt.Errorf("want a range, got %d to %d; give the smaller bound first", low, high))
	case low < -maxInt || high > maxInt:
		fail(fn, fmt.Errorf("want bounds that a browser counts exactly, within ±%d, got %d to %d", maxInt, low, high))
	}
	n := &Int{min: low, max: high}
	state["description"], state["description_allow_html"] = text(fn, "title", title), false
	state["min"], state["max"], state["value"] = low, high, n.clamp(value)
	n.view = view{m.newModel(controls, fn, style, state)}
	if style == "Slider" {
		n.accept = map[string]func(json.RawMessage) (any, bool){"value": func(raw json.RawMessage) (any, bool) {
			v, ok := integer(raw)
			return v, ok && low <= v && v <= high
		}}
	}
	n.forms = func() (string, string) {
		if style == "Progress" {
			return bar(title, float64(n.Value()), float64(low), float64(high), fmt.Sprintf("%d of %d", n.Value(), high))
		}
		return line(title, fmt.Sprintf("%d [%d … %d]", n.Value(), low, high))
	}
	return n
}

func (n *Int) clamp(v int) int { return min(max(v, n.min), n.max) }

// Value is the present value.
func (n *Int) Value() int { return n.get("value").(int) }

// Set changes the value, in the front ends too. What is out of the widget's range
// becomes the nearest bound.
func (n *Int) Set(v int) {
	n.set("value", n.clamp(v))
	if v >= n.max {
		n.flush() // a bar's last value goes out before its cell ends
	}
}

// Add changes the value by d.
func (n *Int) Add(d int) {
	n.change("value", func(old any) any { return n.clamp(old.(int) + min(max(d, -2*maxInt), 2*maxInt)) })
	if n.Value() == n.max {
		n.flush()
	}
}

// OnChange has f called with the value whenever it has changed, in a front end or by
// Set: one call at a time, and after a slow call with the latest value only. f runs
// beside the cells as a part of the cell that called OnChange: what it prints goes
// below that cell, and so does a panic, which costs nothing else. It replaces an
// earlier f; nil ends it.
func (n *Int) OnChange(f func(v int)) {
	if f == nil {
		n.callbacks().set(nil)
		return
	}
	n.callbacks().set(n.manager.host.Callback(func() { f(n.Value()) }))
}

// Float is a widget with a number: a slider or a progress bar. Its methods may be
// called from any goroutine.
type Float struct {
	view
	min, max float64
}

// FloatSlider makes a slider for the numbers from min to max, in about a hundred steps.
func (m *Manager) FloatSlider(title string, min, max, value float64) *Float {
	step, digits := steps(max - min)
	return m.float("FloatSlider", "Slider", title, min, max, value, map[string]any{
		"step": step, "orientation": "horizontal", "readout": true, "readout_format": "." + strconv.Itoa(digits) + "f",
		"continuous_update": true, "disabled": false, "behavior": "drag-tap",
	})
}

// FloatProgress makes a progress bar from 0 to total.
func (m *Manager) FloatProgress(title string, total float64) *Float {
	return m.float("FloatProgress", "Progress", title, 0, total, 0, map[string]any{"orientation": "horizontal", "bar_style": ""})
}

// steps is the power of ten nearest below a hundredth of a range, and the digits after
// the point that show it.
func steps(width float64) (step float64, digits int) {
	if !(width > 0) || math.IsInf(width, 0) {
		return 1, 0
	}
	e := max(-300, int(math.Floor(math.Log10(width/100)+1e-9)))
	return math.Pow10(e), min(max(0, -e), 20)
}

func (m *Manager) float(fn, style, title string, low, high, value float64, state map[string]any) *Float {
	if !(low < high) || math.IsInf(high-low, 0) {
		fail(fn, fmt.Errorf("want a range of finite numbers, got %v to %v; give the smaller bound first", low, high))
	}
	if math.IsNaN(value) {
		fail(fn, fmt.Errorf("want a number for the value, got %v", value))
	}
	n := &Float{min: low, max: high}
	state["description"], state["description_allow_html"] = text(fn, "title", title), false
	state["min"], state["max"], state["value"] = low, high, n.clamp(value)
	n.view = view{m.newModel(controls, fn, style, state)}
	if style == "Slider" {
		n.accept = map[string]func(json.RawMessage) (any, bool){"value": func(raw json.RawMessage) (any, bool) {
			v, ok := number(raw)
			return v, ok && low <= v && v <= high
		}}
	}
	n.forms = func() (string, string) {
		if style == "Progress" {
			return bar(title, n.Value(), low, high, fmt.Sprintf("%.6g of %.6g", n.Value(), high))
		}
		return line(title, fmt.Sprintf("%.6g [%.6g … %.6g]", n.Value(), low, high))
	}
	return n
}

func (n *Float) clamp(v float64) float64 { return min(max(v, n.min), n.max) }

// Value is the present value.
func (n *Float) Value() float64 { return n.get("value").(float64) }

// Set changes the value, in the front ends too. What is out of the widget's range
// becomes the nearest bound; NaN ends the cell with an error.
func (n *Float) Set(v float64) {
	if math.IsNaN(v) {
		fail("Set", fmt.Errorf("want a number, got %v", v))
	}
	n.set("value", n.clamp(v))
	if v >= n.max {
		n.flush() // a bar's last value goes out before its cell ends
	}
}

// Add changes the value by d.
func (n *Float) Add(d float64) {
	if math.IsNaN(d) {
		fail("Add", fmt.Errorf("want a number, got %v", d))
	}
	n.change("value", func(old any) any { return n.clamp(old.(float64) + d) })
	if n.Value() == n.max {
		n.flush()
	}
}

// OnChange has f called with the value whenever it has changed, in a front end or by
// Set: one call at a time, and after a slow call with the latest value only. f runs
// beside the cells as a part of the cell that called OnChange; it replaces an
// earlier f, and nil ends it.
func (n *Float) OnChange(f func(v float64)) {
	if f == nil {
		n.callbacks().set(nil)
		return
	}
	n.callbacks().set(n.manager.host.Callback(func() { f(n.Value()) }))
}

// number is a JSON number.
func number(raw json.RawMessage) (float64, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	return v, err == nil
}

// integer is a JSON number without a fraction.
func integer(raw json.RawMessage) (int, bool) {
	v, ok := number(raw)
	if !ok || v != math.Trunc(v) || math.Abs(v) > maxInt {
		return 0, false
	}
	return int(v), true
}

// bar is the plain forms of a progress bar.
func bar(title string, value, low, high float64, figures string) (plain, markup string) {
	share := min(1, max(0, (value-low)/(high-low)))
	const cells = 24
	full := int(share * cells)
	plain = "▕" + strings.Repeat("█", full) + strings.Repeat(" ", cells-full) + "▏ " + figures
	markup = fmt.Sprintf(`<span style="display:inline-block;vertical-align:middle;width:240px;height:8px;border-radius:4px;background:rgba(128,128,128,0.25)">`+
		`<span style="display:block;width:%.1f%%;height:8px;border-radius:4px;background:#0072b2"></span></span> %s`, 100*share, figures)
	if title != "" {
		plain = visible(title) + " " + plain
		markup = html.EscapeString(visible(title)) + " " + markup
	}
	return plain, "<div>" + markup + "</div>"
}
