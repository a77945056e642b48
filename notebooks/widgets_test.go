package notebooks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
	"deltafin/kernel/wire"
)

// In a front end without widgets the notebook shows their text.
func TestWidgetsNotebook(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process, client := connect(t, ctx)
	book, err := kerneltest.ReadNotebook("02-widgets.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	if err := book.Run(ctx, client); err != nil {
		t.Fatalf("%v\nthe kernel said: %s", err, process.Log())
	}
	wants := map[string]string{
		"slider":   "new tokens: 16 [1 … 64]",
		"generate": "16 tokens",
		"live":     "new tokens: 16 [1 … 64]",
		"progress": "prompts ▕████████████████████████▏ 3 of 3",
		"form":     "country: France [France | Italy | Egypt]  [ Ask ]",
		"last":     "France",
	}
	for id, cell := range cellsByID(t, book) {
		if !strings.Contains(shown(cell), wants[id]) {
			t.Errorf("%s: want %q in what it shows:\n%s", id, wants[id], shown(cell))
		}
		delete(wants, id)
	}
	for id := range wants {
		t.Errorf("no cell %s", id)
	}
	for _, fault := range client.Faults() {
		t.Error(fault)
	}
}

// cellsByID gives a notebook's code cells.
func cellsByID(t *testing.T, book *kerneltest.Notebook) map[string]*kerneltest.NotebookCell {
	t.Helper()
	raw, err := book.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var ids struct{ Cells []struct{ ID string } }
	if err := json.Unmarshal(raw, &ids); err != nil {
		t.Fatal(err)
	}
	cells := map[string]*kerneltest.NotebookCell{}
	for i, c := range book.Cells {
		if c.Type == "code" {
			cells[ids.Cells[i].ID] = c
		}
	}
	return cells
}

// models follows the widgets of iopub messages as a browser does: states by comm id.
func models(states map[string]map[string]any, outputs []*wire.Message) map[string]map[string]any {
	for _, m := range outputs {
		var c struct {
			ID   string `json:"comm_id"`
			Data struct {
				Method string
				State  map[string]any
				States map[string]struct{ State map[string]any }
			}
		}
		if json.Unmarshal(m.Content, &c) != nil || !strings.HasPrefix(m.Header.MsgType, "comm_") {
			continue
		}
		if states[c.ID] == nil {
			states[c.ID] = map[string]any{}
		}
		for name, v := range c.Data.State {
			states[c.ID][name] = v
		}
		for id, s := range c.Data.States {
			states[id] = s.State
		}
		if m.Header.MsgType == "comm_close" {
			delete(states, c.ID)
		}
	}
	return states
}

// named is the id of the one model of a kind.
func named(states map[string]map[string]any, name string) string {
	for id, s := range states {
		if s["_model_name"] == name {
			return id
		}
	}
	return ""
}

// A slider that a reader moves: later cells see its value, its callback generates
// into an Output, and whoever comes later gets it all.
func TestWidgets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process, client := connect(t, ctx)
	send := func(msgType string, content map[string]any) *kerneltest.Exchange {
		t.Helper()
		x, err := client.Send(kernel.Shell, msgType, content, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Until(ctx, func(outputs []*wire.Message) bool {
			return len(outputs) > 0 && strings.Contains(string(outputs[len(outputs)-1].Content), "idle")
		}); err != nil {
			t.Fatalf("%s: %v\nthe kernel said: %s", msgType, err, process.Log())
		}
		return x
	}
	run := func(code string) *kerneltest.Exchange {
		t.Helper()
		x, err := client.Execute(ctx, code)
		if err != nil || x.Status() != "ok" {
			t.Fatalf("%s: %v %v\nthe kernel said: %s", code, err, x.Content(), process.Log())
		}
		return x
	}
	send("comm_open", map[string]any{"comm_id": "control", "target_name": "jupyter.widget.control", "data": map[string]any{}})
	x := run(`n, out := IntSlider("MaxTokens", 1, 64, 16), Output()
n.OnChange(func(v int) {
	out.Clear()
	out.Run(func() { Display(Generate("The capital of France is", Params{MaxTokens: v})) })
	fmt.Println("made", v)
})
VBox(n, out)`)
	states := models(map[string]map[string]any{}, x.Outputs())
	slider, output := named(states, "IntSliderModel"), named(states, "OutputModel")
	if slider == "" || output == "" || states[slider]["value"] != 16.0 {
		t.Fatalf("%v", states)
	}
	view := kerneltest.Collect(x.Outputs(), nil)[0].Data["application/vnd.jupyter.widget-view+json"]
	if id := fmt.Sprint(view.(map[string]any)["model_id"]); id != named(states, "VBoxModel") {
		t.Errorf("the result shows %s of %v", id, states)
	}

	move := send("comm_msg", map[string]any{"comm_id": slider, "data": map[string]any{"method": "update", "state": map[string]any{"value": 8}, "buffer_paths": []any{}}})
	if kinds := move.Kinds(); len(kinds) != 3 || kinds[1] != "comm_msg" || !strings.Contains(string(move.Outputs()[1].Content), `"echo_update"`) {
		t.Errorf("a move is answered with %v", kinds)
	}
	if err := x.Until(ctx, func(outputs []*wire.Message) bool {
		return strings.Contains(stream(outputs), "made 8\n")
	}); err != nil {
		t.Fatal(err)
	}
	y := run(`g := Generate("The capital of France is", Params{MaxTokens: n.Value()}); fmt.Println(len(g.IDs), out)`)
	if s := y.Stream("stdout"); !strings.Contains(s, "8  Paris") || !strings.Contains(s, "8 tokens") {
		t.Errorf("%q", s)
	}
	states = models(states, send("comm_msg", map[string]any{"comm_id": "control", "data": map[string]any{"method": "request_states"}}).Outputs())
	if s := fmt.Sprint(states[output]["outputs"]); !strings.Contains(s, "Paris") || !strings.Contains(s, "8 tokens") || states[slider]["value"] != 8.0 {
		t.Errorf("a later front end gets %v", states)
	}

	// A cell that runs sees it move, a generation among them.
	busy, err := client.Send(kernel.Shell, "execute_request", kerneltest.Cell(`n.OnChange(nil)
Generate("Once upon a time", Params{MaxTokens: 100000, Quiet: true, OnToken: func(t Token) {
	fmt.Println("token")
	if n.Value() == 33 { panic("33 seen") }
}})`), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := busy.Until(ctx, func(outputs []*wire.Message) bool { return strings.Contains(stream(outputs), "token") }); err != nil {
		t.Fatal(err)
	}
	send("comm_msg", map[string]any{"comm_id": slider, "data": map[string]any{"method": "update", "state": map[string]any{"value": 33}}})
	if err := busy.Wait(ctx); err != nil || busy.Content()["evalue"] != "33 seen" {
		t.Errorf("a running generation: %v %v", err, busy.Content())
	}

	// A panic in a callback costs nothing but itself.
	z := run(`n.OnChange(func(v int) { panic(fmt.Sprint("at ", v)) })`)
	send("comm_msg", map[string]any{"comm_id": slider, "data": map[string]any{"method": "update", "state": map[string]any{"value": 9}}})
	if err := z.Until(ctx, func(outputs []*wire.Message) bool { return strings.Contains(stream(outputs), "at 9") }); err != nil {
		t.Fatal(err)
	}
	if s := run(`fmt.Print(n.Value())`).Stream("stdout"); s != "9" {
		t.Errorf("after the panic: %q", s)
	}

	// The widgets of a process that has ended are closed where they are moved.
	client.Execute(ctx, "var f func(int) int; f = func(n int) int { return f(n+1) + 1 }; f(0)")
	last := send("comm_msg", map[string]any{"comm_id": slider, "data": map[string]any{"method": "update", "state": map[string]any{"value": 1}}})
	if !strings.Contains(fmt.Sprint(last.Kinds()), "comm_close") {
		t.Errorf("after the death: %v", last.Kinds())
	}
	for _, fault := range client.Faults() {
		t.Error(fault)
	}
}

// stream is what the messages say on both streams.
func stream(outputs []*wire.Message) string {
	var b strings.Builder
	for _, o := range kerneltest.Collect(outputs, nil) {
		b.WriteString(o.Text)
	}
	return b.String()
}
