package widget

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/kernel/display"

	"github.com/google/go-cmp/cmp"
)

// A slider has its layout and its style, and its value goes both ways.
func TestSlider(t *testing.T) {
	f := newFront(t)
	n := f.manager.IntSlider("tokens", 1, 256, 64)
	if len(f.cell.sent()) != 0 {
		t.Error("a widget that nobody has seen sends messages")
	}
	b := f.show(n)
	want := map[string]any{
		MIMEView:         map[string]any{"version_major": 2, "version_minor": 0, "model_id": n.id},
		display.MIMEText: "tokens: 64 [1 … 256]",
		display.MIMEHTML: "<div><span>tokens</span>: <span>64 [1 … 256]</span></div>",
	}
	if d := cmp.Diff(want, b.Data); d != "" {
		t.Error(d)
	}
	var models []string
	for _, m := range f.models {
		models = append(models, fmt.Sprint(m["_model_module"], " ", m["_model_module_version"], " ", m["_model_name"], " ", m["_view_name"]))
	}
	slices.Sort(models)
	if d := cmp.Diff([]string{
		"@jupyter-widgets/base 2.0.0 LayoutModel LayoutView",
		"@jupyter-widgets/controls 2.0.0 IntSliderModel IntSliderView",
		"@jupyter-widgets/controls 2.0.0 SliderStyleModel StyleView",
	}, models); d != "" {
		t.Error(d)
	}
	f.show(n)
	if len(f.models) != 3 {
		t.Errorf("%d models after showing it again", len(f.models))
	}

	f.set(n, `{"value":100}`)
	if n.Value() != 100 || f.state(n, "value") != 100.0 {
		t.Errorf("after a move: %d here, %v there", n.Value(), f.state(n, "value"))
	}
	n.Set(1000)
	f.follow()
	if n.Value() != 256 || f.state(n, "value") != 256.0 {
		t.Errorf("after Set: %d here, %v there", n.Value(), f.state(n, "value"))
	}
	n.Set(256)
	if m := f.cell.sent(); len(m) != 0 {
		t.Errorf("nothing changed: %s", m[0].Data)
	}
	n.Add(-6)
	if s := n.String(); s != "tokens: 250 [1 … 256]" {
		t.Error(s)
	}
}

// What a front end may not set stays, and it gets what holds.
func TestWrongValues(t *testing.T) {
	f := newFront(t)
	n := f.manager.IntSlider("n", 1, 10, 5)
	x := f.manager.FloatSlider("x", 0, 1, 0.5)
	c := f.manager.Checkbox("c", true)
	d := f.manager.Dropdown("d", "a", "b")
	s := f.manager.Text("s", "text")
	p := f.manager.IntProgress("p", 10)
	l := f.manager.Label("label")
	f.show(f.manager.VBox(n, x, c, d, s, p, l))
	changed := 0
	n.OnChange(func(int) { changed++ })
	for _, wrong := range []struct {
		w     Widget
		name  string
		value string
	}{
		{n, "value", "11"}, {n, "value", "0"}, {n, "value", "5.5"}, {n, "value", `"6"`}, {n, "value", "null"}, {n, "value", "1e999"}, {n, "value", "[6]"},
		{n, "max", "1000"}, {n, "description", `"mine"`}, {n, "_model_name", `"Evil"`}, {n, "layout", `"IPY_MODEL_none"`},
		{x, "value", "1.1"}, {x, "value", "-1e-9"}, {x, "value", `"NaN"`}, {x, "value", "{}"},
		{c, "value", "0"}, {c, "value", "null"}, {c, "value", `"false"`},
		{d, "index", "2"}, {d, "index", "-1"}, {d, "index", "null"}, {d, "index", `"b"`}, {d, "_options_labels", `["c"]`},
		{s, "value", "null"}, {s, "value", "7"}, {s, "value", `"` + strings.Repeat("x", maxText+1) + `"`},
		{p, "value", "3"}, {l, "value", `"mine"`},
	} {
		before := f.state(wrong.w, wrong.name)
		f.models[wrong.w.self().id][wrong.name] = "what the reader tried"
		f.set(wrong.w, `{"`+wrong.name+`":`+wrong.value+`}`)
		if d := cmp.Diff(before, f.state(wrong.w, wrong.name)); d != "" {
			t.Errorf("%s %.40s: %s", wrong.name, wrong.value, d)
		}
	}
	for _, id := range []string{n.id, "nobody"} {
		for _, data := range []string{
			``, `null`, `[]`, `{`, `{"method":3}`, `{"method":"update"}`, `{"method":"update","state":7}`, `{"method":"update","state":{"nothing":1}}`,
			`{"method":"custom"}`, `{"method":"custom","content":[]}`, `{"method":"unknown"}`,
		} {
			for _, m := range f.send(Message{Type: "comm_msg", ID: id, Data: json.RawMessage(data)}) {
				if id == n.id || m.Type != "comm_close" {
					t.Errorf("%s: %+v", data, m)
				}
			}
		}
	}
	big := f.send(Message{Type: "comm_msg", ID: n.id, Data: json.RawMessage(`{"method":"update","state":{"value":7,"x":"` + strings.Repeat("x", maxMessage) + `"}}`)})
	if f.take(big...); len(big) != 1 || n.Value() != 5 {
		t.Errorf("too large: %d answers, value %d", len(big), n.Value())
	}
	f.manager.Wait()
	if n.Value() != 5 || x.Value() != 0.5 || !c.Value() || d.Value() != "a" || s.Value() != "text" || p.Value() != 0 || changed != 0 {
		t.Errorf("%v %v %v %v, %d calls", n, x, c, d, changed)
	}
	for _, right := range []struct {
		w     Widget
		state string
	}{{n, `{"value":6.0}`}, {n, `{"value":7e0,"nothing":1}`}, {x, `{"value":1}`}, {c, `{"value":false}`}, {d, `{"index":1}`}, {s, `{"value":"é"}`}} {
		f.set(right.w, right.state)
	}
	if n.Value() != 7 || x.Value() != 1 || c.Value() || d.Value() != "b" || s.Value() != "é" {
		t.Errorf("%v %v %v %v %v", n, x, c, d, s)
	}
}

// A slow callback sees the latest value, and no two run at once.
func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t)
		n := f.manager.IntSlider("n", 0, 100, 0)
		f.show(n)
		begun, goOn := make(chan int), make(chan bool)
		n.OnChange(func(v int) {
			begun <- v
			<-goOn
		})
		f.set(n, `{"value":1}`)
		if v := <-begun; v != 1 {
			t.Errorf("first %d", v)
		}
		for v := 2; v < 50; v++ {
			f.set(n, fmt.Sprintf(`{"value":%d}`, v))
		}
		n.Set(99)
		synctest.Wait()
		select {
		case v := <-begun:
			t.Errorf("a call with %d while another runs", v)
		default:
		}
		goOn <- true
		if v := <-begun; v != 99 {
			t.Errorf("after the burst %d", v)
		}
		goOn <- true
		f.manager.Wait()

		// Panics and ended goroutines are not the end of calls.
		n.OnChange(func(v int) { panic(v) })
		f.set(n, `{"value":5}`)
		f.manager.Wait()
		n.OnChange(func(int) { runtime.Goexit() })
		f.set(n, `{"value":6}`)
		f.manager.Wait()
		n.OnChange(func(v int) {
			if v < 9 {
				n.Set(v + 1)
			}
		})
		f.set(n, `{"value":7}`)
		f.manager.Wait()
		if n.Value() != 9 {
			t.Errorf("a callback that sets its own widget: %d", n.Value())
		}
		n.OnChange(nil)
		f.set(n, `{"value":1}`)
		f.manager.Wait()
		if d := cmp.Diff([]any{5}, f.cell.panics); d != "" {
			t.Error(d)
		}
	})
}

func TestButton(t *testing.T) {
	f := newFront(t)
	b := f.manager.Button("go")
	f.show(b)
	clicks := 0
	b.OnClick(func() { clicks++ })
	for range 3 {
		f.take(f.send(Message{Type: "comm_msg", ID: b.id, Data: json.RawMessage(`{"method":"custom","content":{"event":"click"}}`)})...)
	}
	f.send(Message{Type: "comm_msg", ID: b.id, Data: json.RawMessage(`{"method":"custom","content":{"event":"other"}}`)})
	b.Click()
	f.manager.Wait()
	if clicks != 4 {
		t.Errorf("%d clicks, want 4", clicks)
	}
}

// A front end that comes late asks for everything.
func TestStates(t *testing.T) {
	f := newFront(t)
	n := f.manager.IntSlider("n", 0, 10, 3)
	f.manager.IntSlider("never shown", 0, 10, 3)
	f.show(n)
	if a := f.send(Message{Type: "comm_open", ID: "control", TargetName: "jupyter.widget.control", Data: json.RawMessage(`{}`)}); len(a) != 0 {
		t.Errorf("%+v", a)
	}
	a := f.send(Message{Type: "comm_msg", ID: "control", Data: json.RawMessage(`{"method":"request_states"}`)})
	if len(a) != 1 || a[0].ID != "control" || a[0].Type != "comm_msg" {
		t.Fatalf("%+v", a)
	}
	var d struct {
		Method string
		Paths  json.RawMessage `json:"buffer_paths"`
		States map[string]struct {
			Name    string `json:"model_name"`
			Module  string `json:"model_module"`
			Version string `json:"model_module_version"`
			State   map[string]any
		}
	}
	if err := json.Unmarshal(a[0].Data, &d); err != nil {
		t.Fatal(err)
	}
	s := d.States[n.id]
	if d.Method != "update_states" || string(d.Paths) != "[]" || len(d.States) != 3 || s.Name != "IntSliderModel" || s.Module != controls || s.Version != "2.0.0" || s.State["value"] != 3.0 {
		t.Errorf("%s", a[0].Data)
	}
	if a := f.send(Message{Type: "comm_msg", ID: n.id, Data: json.RawMessage(`{"method":"request_state"}`)}); len(a) != 1 || !strings.Contains(string(a[0].Data), `"value":3`) {
		t.Errorf("request_state: %+v", a)
	}
	for _, target := range []string{"jupyter.widget", "matplotlib", ""} {
		if a := f.send(Message{Type: "comm_open", ID: "x", TargetName: target}); len(a) != 1 || a[0].Type != "comm_close" || a[0].ID != "x" {
			t.Errorf("target %q: %+v", target, a)
		}
	}
}

// A widget that is closed, by either side or by the bound on their number, keeps its
// value, and showing it again opens it again.
func TestClose(t *testing.T) {
	f := newFront(t)
	n := f.manager.IntSlider("n", 0, 10, 3)
	f.show(n)
	f.send(Message{Type: "comm_close", ID: n.id})
	delete(f.models, n.id)
	n.Set(4)
	f.follow()
	if n.Value() != 4 {
		t.Errorf("value %d", n.Value())
	}
	f.show(n)
	if f.state(n, "value") != 4.0 {
		t.Errorf("shown again: %v", f.state(n, "value"))
	}
	n.Close()
	f.follow()
	if len(f.models) != 0 || len(f.closed) != 3 {
		t.Errorf("%d models, %d closed", len(f.models), len(f.closed))
	}
	f.show(n)
	for i := range maxWidgets {
		n.Set(i % 2) // in use
		f.show(f.manager.Label(fmt.Sprint(i)))
	}
	f.follow()
	if len(f.models) != 3*maxWidgets {
		t.Errorf("%d models of %d widgets", len(f.models), maxWidgets)
	}
	if f.state(n, "value") == nil {
		t.Error("the widget that was used was closed")
	}
}

// One in a tight loop doesn't flood the front ends, which have its end at once.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t)
		p := f.manager.IntProgress("p", 100_000)
		f.show(p)
		for range 100_000 - 1 {
			p.Add(1)
		}
		messages := f.cell.sent()
		if len(messages) > messageBurst+1 {
			t.Errorf("%d messages", len(messages))
		}
		f.take(messages...)
		time.Sleep(time.Second)
		f.follow()
		if f.state(p, "value") != 99_999.0 {
			t.Errorf("after a pause %v", f.state(p, "value"))
		}
		for range 100 {
			p.Set(1)
			p.Set(2)
		}
		f.follow()
		p.Set(200_000)
		f.follow()
		if f.state(p, "value") != 100_000.0 {
			t.Errorf("at the end %v", f.state(p, "value"))
		}
		time.Sleep(time.Second)
	})
}

// Whatever the order of Set, moves and showing, both sides end with the same value.
func TestOrder(t *testing.T) {
	f := newFront(t)
	n := f.manager.IntSlider("n", 0, 1_000_000, 0)
	n.OnChange(func(v int) { _ = n.String() })
	var mu sync.Mutex // one message at a time, as the kernel gives them
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				n.Set(g*1000 + i)
				n.DisplayBundle()
			}
		})
		wg.Go(func() {
			for i := range 200 {
				mu.Lock()
				f.manager.Receive(Message{Type: "comm_msg", ID: n.id, Data: json.RawMessage(fmt.Sprintf(`{"method":"update","state":{"value":%d}}`, g*1000+i))}, f.cell.Comm)
				f.manager.Receive(Message{Type: "comm_msg", ID: "c", Data: json.RawMessage(`{"method":"request_states"}`)}, func(Message) {})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	f.manager.Wait()
	n.Set(1_000_000) // at the bound: sent at once
	for _, m := range f.cell.sent() {
		if m.Type == "comm_close" || f.models[m.ID] == nil && m.Type != "comm_open" {
			continue // it was moved before it was shown
		}
		f.take(m)
	}
	if f.state(n, "value") != 1e6 {
		t.Errorf("%v there, %d here", f.state(n, "value"), n.Value())
	}
}

// Without a front end that shows widgets the plain forms change in place.
func TestPlain(t *testing.T) {
	f := newFront(t)
	n := f.manager.IntSlider("n", 0, 10, 3)
	c := f.manager.Checkbox("c\n<b>", false)
	d := f.manager.Dropdown("d", "a", "b")
	row := f.manager.HBox(n, "and", c)
	b := f.manager.VBox(row, d, f.manager.FloatProgress("p", 2), f.manager.Button("go"), f.manager.HTML("<i>bold</i> &amp; more"))
	id := DisplayID(b)
	if id == "" || id != DisplayID(b) || DisplayID(3) != "" {
		t.Errorf("display id %q", id)
	}
	plain := "n: 3 [0 … 10]  and  [ ] c <b>\nd: a [a | b]\np ▕                        ▏ 0 of 2\n[ go ]\nbold & more"
	bundle := f.show(b)
	if d := cmp.Diff(plain, bundle.Data[display.MIMEText]); d != "" {
		t.Error(d)
	}
	if s := fmt.Sprint(bundle.Data[display.MIMEHTML]); strings.Contains(s, "c <b>") || !strings.Contains(s, "<i>bold</i>") {
		t.Error(s)
	}
	n.Set(4)
	want := "update " + id + ": " + strings.Replace(plain, "n: 3", "n: 4", 1)
	if len(f.cell.shown) != 1 || f.cell.shown[0] != want {
		t.Errorf("%q, want %q", f.cell.shown, want)
	}
	f.follow()
	f.set(n, `{"value":5}`) // now one is known
	n.Set(6)
	if len(f.cell.shown) != 1 {
		t.Errorf("%q", f.cell.shown)
	}
}

// Text is never markup, in the forms for viewers without widgets.
func TestHostileText(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x>&` + "\x1b[2J"
	f := newFront(t)
	m := f.manager
	o := m.Output()
	o.Run(func() { f.cell.sink().Stream("stdout", hostile) })
	all := m.VBox(m.IntSlider(hostile, 0, 1, 0), m.FloatSlider(hostile, 0, 1, 0), m.IntProgress(hostile, 1), m.FloatProgress(hostile, 1),
		m.Checkbox(hostile, true), m.Dropdown(hostile, hostile), m.Text(hostile, hostile), m.Label(hostile), m.Button(hostile), o, hostile)
	_, markup := all.forms()
	if strings.Contains(markup, "<script") || strings.Contains(markup, "<img") || strings.Contains(markup, `""`) {
		t.Error(markup)
	}
	for _, c := range all.children {
		if s, _ := c.forms(); strings.ContainsRune(s, 0x1b) && c.get("_model_name") != "OutputModel" { // an output has colours
			t.Errorf("%q", s)
		}
	}
}

func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t)
		f.send(Message{Type: "comm_open", ID: "control", TargetName: controlTarget})
		o := f.manager.Output()
		f.show(o)
		o.Run(func() {
			s := f.cell.sink()
			s.Stream("stdout", "one ")
			s.Stream("stdout", "two\n")
			s.Stream("stderr", "three\n")
			s.Display(display.Text("bar 1"), "bar")
			s.Display(display.Bundle{Data: map[string]any{display.MIMEText: "wrong", "application/json": math.NaN()}}, "")
			s.Update(display.Text("bar 2"), "bar")
			s.Update(display.Text("elsewhere"), "other")
		})
		f.follow()
		value := func(text string) any {
			return map[string]any{"output_type": "display_data", "data": map[string]any{"text/plain": text}, "metadata": map[string]any{}}
		}
		want := []any{
			map[string]any{"output_type": "stream", "name": "stdout", "text": "one two\n"},
			map[string]any{"output_type": "stream", "name": "stderr", "text": "three\n"},
			value("bar 2"), value("wrong"),
		}
		if d := cmp.Diff(want, f.state(o, "outputs")); d != "" {
			t.Error(d)
		}
		if s := o.String(); s != "one two\nthree\nbar 2\nwrong" {
			t.Errorf("%q", s)
		}
		if d := cmp.Diff([]string{"update other: elsewhere"}, f.cell.shown); d != "" {
			t.Errorf("in the cell: %s", d)
		}

		// Emptied and filled again is one change.
		o.Run(func() {
			f.cell.sink().Clear(false)
			f.cell.sink().Stream("stdout", "new")
		})
		if m := f.cell.sent(); len(m) != 0 {
			t.Errorf("at once: %s", m[0].Data)
		}
		time.Sleep(time.Second)
		f.follow()
		if d := cmp.Diff([]any{map[string]any{"output_type": "stream", "name": "stdout", "text": "new"}}, f.state(o, "outputs")); d != "" {
			t.Error(d)
		}

		// It keeps so much and no more.
		o.Run(func() {
			for range 100 {
				f.cell.sink().Stream("stdout", strings.Repeat("x", maxOutput/50))
			}
		})
		time.Sleep(time.Minute)
		f.follow()
		if s := o.String(); len(s) > maxOutput+200 || !strings.Contains(s, "Clear makes room") {
			t.Errorf("%d bytes, ending %q", len(s), s[len(s)-100:])
		}
		o.Clear()
		o.Run(func() { f.cell.sink().Display(o.DisplayBundle(), "") })
		time.Sleep(time.Second)
	})
}

// Where nobody shows widgets, what an Output takes is also in the cell.
func TestOutputPlain(t *testing.T) {
	f := newFront(t)
	o := f.manager.Output()
	o.Run(func() {
		f.cell.sink().Clear(true)
		f.cell.sink().Stream("stdout", "text")
		f.cell.sink().Display(display.Text("value"), "id")
		f.cell.sink().Update(display.Text("later"), "id")
	})
	if d := cmp.Diff([]string{"clear, wait true", "stdout: text", "display id: value", "update id: later"}, f.cell.shown); d != "" {
		t.Error(d)
	}
	if s := o.String(); s != "text\nlater" && s != "textlater" {
		t.Errorf("%q", s)
	}
}

func TestErrors(t *testing.T) {
	m := newFront(t).manager
	long := strings.Repeat("x", maxText+1)
	for want, call := range map[string]func(){
		"IntSlider: want a range, got 5 to 5; give the smaller bound first":                                                                  func() { m.IntSlider("", 5, 5, 5) },
		"IntProgress: want a range, got 0 to 0; give the smaller bound first":                                                                func() { m.IntProgress("", 0) },
		"IntSlider: want bounds that a browser counts exactly, within ±9007199254740992, got 0 to 9223372036854775807":                       func() { m.IntSlider("", 0, math.MaxInt, 5) },
		"IntSlider: title: want at most 65536 bytes, got 65537":                                                                              func() { m.IntSlider(long, 0, 5, 5) },
		"FloatSlider: want a range of finite numbers, got 0 to NaN; give the smaller bound first":                                            func() { m.FloatSlider("", 0, math.NaN(), 5) },
		"FloatSlider: want a range of finite numbers, got -1.7976931348623157e+308 to 1.7976931348623157e+308; give the smaller bound first": func() { m.FloatSlider("", -math.MaxFloat64, math.MaxFloat64, 5) },
		"FloatSlider: want a number for the value, got NaN":                                                                                  func() { m.FloatSlider("", 0, 1, math.NaN()) },
		"Set: want a number, got NaN":                            func() { m.FloatProgress("", 1).Set(math.NaN()) },
		"Add: want a number, got NaN":                            func() { m.FloatProgress("", 1).Add(math.NaN()) },
		"Dropdown: want options, got none":                       func() { m.Dropdown("") },
		"Dropdown: want at most 1000 options, got 1001":          func() { m.Dropdown("", make([]string, 1001)...) },
		"Dropdown: options: want at most 65536 bytes, got 65537": func() { m.Dropdown("", long) },
		`Set: want one of ["a" "b"], got "c"`:                    func() { m.Dropdown("", "a", "b").Set("c") },
		"Set: value: want at most 65536 bytes, got 65537":        func() { m.Label("").Set(long) },
		"HBox: value 1: want one to show, got a nil *widget.Int": func() { m.HBox(1, (*Int)(nil)) },
		"VBox: want something to show, got nothing":              func() { m.VBox() },
		"HBox: want at most 200 values, got 201":                 func() { m.HBox(make([]any, 201)...) },
	} {
		func() {
			defer func() {
				var e *Error
				if err, _ := recover().(error); !errors.As(err, &e) || e.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			}()
			call()
		}()
	}
	for i, call := range []func(){
		func() { new(Int).Value() }, func() { new(Float).Set(1) }, func() { new(Bool).OnChange(func(bool) {}) }, func() { new(Choice).Value() }, func() { new(Text).OnChange(nil) },
		func() { new(Button).Click() }, func() { new(Button).OnClick(func() {}) }, func() { new(Output).Run(func() {}) }, func() { new(Output).Clear() },
		func() { new(Box).Close() }, func() { m.VBox(new(Box)) },
	} {
		func() {
			defer func() {
				if e, ok := recover().(*Error); !ok || !strings.Contains(e.Error(), "got an empty one") {
					t.Errorf("empty %d: %v", i, e)
				}
			}()
			call()
		}()
	}
	if s := fmt.Sprint(new(Int).DisplayBundle().Data[display.MIMEText], new(Output)) + DisplayID(new(Int)) + DisplayID((*Int)(nil)); s != "a widget that nothing madea widget that nothing made" {
		t.Error(s)
	}
	if s := m.Label("\xff").Value(); s != "\ufffd" {
		t.Errorf("%q", s)
	}
	if n := m.IntSlider("", -5, 5, 99); n.Value() != 5 {
		t.Errorf("%d", n.Value())
	}
}

func FuzzReceive(f *testing.F) {
	for _, seed := range []string{
		`{"method":"update","state":{"value":7},"buffer_paths":[]}`, `{"method":"update","state":{"index":1}}`, `{"method":"update","state":{"outputs":[],"value":true}}`,
		`{"method":"custom","content":{"event":"click"}}`, `{"method":"request_state"}`, `{"method":"request_states"}`, `{"method":"update","state":null}`, `[1`, "", `{"method":"update","state":{"value":1e400}}`,
	} {
		for which := range uint8(9) {
			f.Add("comm_msg", which, seed)
		}
	}
	f.Add("comm_close", uint8(0), "{}")
	f.Add("comm_open", uint8(200), "{}")
	f.Fuzz(func(t *testing.T, kind string, which uint8, data string) {
		fr := newFront(t)
		m := fr.manager
		n, x := m.IntSlider("n", 1, 10, 5), m.FloatSlider("x", 0, 1, 0.5)
		all := []Widget{n, x, m.Checkbox("", true), m.Dropdown("", "a", "b"), m.Text("", ""), m.Button(""), m.Output(), m.IntProgress("", 9)}
		n.OnChange(func(int) {})
		for _, w := range all {
			fr.show(w)
		}
		id := "none"
		if int(which) < len(all) {
			id = all[which].self().id
		}
		answers := fr.send(Message{Type: kind, ID: id, TargetName: data, Data: json.RawMessage(data)})
		m.Wait()
		for _, a := range answers {
			if !json.Valid(a.Data) {
				t.Errorf("answer %s", a.Data)
			}
		}
		if v := n.Value(); v < 1 || v > 10 {
			t.Errorf("n is %d", v)
		}
		if v := x.Value(); !(v >= 0 && v <= 1) {
			t.Errorf("x is %v", v)
		}
		for _, w := range all {
			w.DisplayBundle()
		}
	})
}
