package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deltafin/kernel/display/widget"
)

// A slider whose value the next generation takes, and a live one beside it. The calls
// of lab are what cells write, there without the lab in front.
func ExampleLab_IntSlider() {
	server := NewServer(fakeEngine)
	defer server.Close()
	lab := New(near{&host{}, server})

	n, out := lab.IntSlider("new tokens", 1, 256, 64), lab.Output()
	n.OnChange(func(v int) {
		out.Clear()
		out.Run(func() { lab.Generate("Once upon a time", Params{MaxTokens: v}) })
	})
	n.Set(3)
	lab.widgets.Wait() // in a notebook nobody has to
	fmt.Println(lab.VBox(n, out))
	fmt.Println(len(lab.Generate("Once upon a time", Params{MaxTokens: n.Value()}).IDs))
	// Output:
	// new tokens: 3 [1 … 256]
	// abc
	// 3
}

// Whatever shows things shows widgets, and what a cell shows can go into one.
func TestWidgets(t *testing.T) {
	l, out, _ := start(t, &fakeRig{})
	session := l.session.(*pipeSession)
	n := l.IntSlider("n", 0, 10, 3)
	l.Display(n, "text")
	n.Set(4)
	if d := strings.Join(out.displays, "|"); d != "display widget: n: 3 [0 … 10]|display : text|update widget: n: 4 [0 … 10]" {
		t.Error(d)
	}
	o := l.Output()
	l.Comm(widget.Message{Type: "comm_open", ID: "c", TargetName: "jupyter.widget.control"}, nil)
	o.Run(func() {
		l.Generate("x", Params{MaxTokens: 2})
		bar := l.Progress(4)
		bar.Set(4)
		l.Display(l.HTML("<b>bold</b>"))
	})
	if s := o.String(); !strings.HasPrefix(s, "ab\n") || !strings.Contains(s, "4 of 4") || !strings.HasSuffix(s, "bold") {
		t.Errorf("%q", s)
	}
	if out.stream.String() != "" || len(out.displays) != 3 {
		t.Errorf("in the cell: %q %q", out.stream.String(), out.displays)
	}
	var answers []widget.Message
	l.Comm(widget.Message{Type: "comm_msg", ID: session.comms[2].ID, Data: json.RawMessage(`{"method":"update","state":{"value":7}}`)}, func(m widget.Message) { answers = append(answers, m) })
	if n.Value() != 7 || len(answers) != 1 {
		t.Errorf("moved to %d, %d answers", n.Value(), len(answers))
	}
	for want, call := range map[string]func(){
		"want a range of finite numbers, got 3 to 3; give the smaller bound first":  func() { l.FloatSlider("", 3, 3, 3) },
		"want a range, got 0 to 0; give the smaller bound first":                    func() { l.IntProgress("", 0) },
		"want a range of finite numbers, got 0 to -1; give the smaller bound first": func() { l.FloatProgress("", -1) },
		"want options, got none":              func() { l.Dropdown("") },
		"want something to show, got nothing": func() { l.HBox() },
	} {
		func() {
			defer func() {
				e, ok := recover().(interface{ CellError() (string, string) })
				if !ok {
					t.Fatalf("want an error, %s", want)
				}
				if _, value := e.CellError(); value != want {
					t.Errorf("got %s, want %s", value, want)
				}
			}()
			call()
		}()
	}
	all := l.VBox(l.Checkbox("c", true), l.Text("t", "typed"), l.Button("b"), l.Label("l"), l.LiveHTML("<i>h</i>"))
	if s := all.String(); s != "[x] c\nt: typed\n[ b ]\nl\nh" {
		t.Errorf("%q", s)
	}
}
