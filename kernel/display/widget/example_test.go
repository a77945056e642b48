package widget_test

import (
	"encoding/json"
	"fmt"

	"deltafin/kernel/display"
	"deltafin/kernel/display/widget"
)

// notebook shows what the widgets say as text.
type notebook struct{}

func (notebook) Comm(m widget.Message)              { fmt.Println(m.Type) }
func (notebook) Cell() widget.Sink                  { return notebook{} }
func (notebook) Capture(_ widget.Sink, f func())    { f() }
func (notebook) Callback(f func()) func()           { return f }
func (notebook) Stream(name, text string)           { fmt.Print(text) }
func (notebook) Display(b display.Bundle, _ string) { fmt.Println(b.Data[display.MIMEText]) }
func (notebook) Update(b display.Bundle, id string) { fmt.Println(b.Data[display.MIMEText]) }
func (notebook) Clear(bool)                         {}

// A slider that a cell sets, and a browser moves.
func Example() {
	m := widget.NewManager(notebook{})
	n := m.IntSlider("new tokens", 1, 256, 64)
	fmt.Println(n)
	n.OnChange(func(v int) { fmt.Println("now", v) })
	n.Set(1000)
	m.Wait()

	view := n.DisplayBundle().Data[widget.MIMEView].(map[string]any)
	m.Receive(widget.Message{
		Type: "comm_msg", ID: fmt.Sprint(view["model_id"]), Data: json.RawMessage(`{"method":"update","state":{"value":8}}`),
	}, func(widget.Message) { fmt.Println("echo") })
	m.Wait()
	fmt.Println(n.Value())
	// Output:
	// new tokens: 64 [1 … 256]
	// now 256
	// comm_open
	// comm_open
	// comm_open
	// echo
	// now 8
	// 8
}
