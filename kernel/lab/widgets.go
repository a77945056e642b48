package lab

import "deltafin/kernel/display/widget"

// IntSlider is a slider for the whole numbers from min to max. A cell that ends in it
// shows it; Value is what the reader has set, in every later cell:
//
//	n := IntSlider("new tokens", 1, 256, 64)
//	n
//	Generate("Once upon a time", Params{MaxTokens: n.Value()})
func (l *Lab) IntSlider(title string, min, max, value int) *widget.Int {
	return l.widgets.IntSlider(title, min, max, value)
}

// FloatSlider is a slider for the numbers from min to max, in a hundred steps or more.
func (l *Lab) FloatSlider(title string, min, max, value float64) *widget.Float {
	return l.widgets.FloatSlider(title, min, max, value)
}

// IntProgress is a progress bar from 0 to total, which Set and Add move. Progress
// makes one that also counts the time, and that a saved notebook keeps.
func (l *Lab) IntProgress(title string, total int) *widget.Int {
	return l.widgets.IntProgress(title, total)
}

// FloatProgress is a progress bar from 0 to total, which Set and Add move.
func (l *Lab) FloatProgress(title string, total float64) *widget.Float {
	return l.widgets.FloatProgress(title, total)
}

// Checkbox is a box to check.
func (l *Lab) Checkbox(title string, value bool) *widget.Bool {
	return l.widgets.Checkbox(title, value)
}

// Dropdown is a menu of texts, of which the first is chosen.
func (l *Lab) Dropdown(title string, options ...string) *widget.Choice {
	return l.widgets.Dropdown(title, options...)
}

// Text is a line to type. Its value changes when the reader presses Enter or goes
// elsewhere.
func (l *Lab) Text(title, value string) *widget.Text { return l.widgets.Text(title, value) }

// Button is a button to press.
func (l *Lab) Button(title string) *widget.Button { return l.widgets.Button(title) }

// Label is a text that Set changes.
func (l *Lab) Label(text string) *widget.Text { return l.widgets.Label(text) }

// LiveHTML is HTML source that Set changes. HTML is source that stays.
func (l *Lab) LiveHTML(source string) *widget.Text { return l.widgets.HTML(source) }

// Output is a place for what functions print and display:
//
//	n, out := IntSlider("new tokens", 1, 64, 16), Output()
//	n.OnChange(func(v int) {
//		out.Clear()
//		out.Run(func() { Generate("The capital of France is", Params{MaxTokens: v}) })
//	})
//	VBox(n, out)
func (l *Lab) Output() *widget.Output { return l.widgets.Output() }

// VBox is a column of widgets and other values.
func (l *Lab) VBox(children ...any) *widget.Box { return l.widgets.VBox(children...) }

// HBox is a row of widgets and other values.
func (l *Lab) HBox(children ...any) *widget.Box { return l.widgets.HBox(children...) }

// Comm takes one message of a front end to a widget, and answers through reply. Messages come
// one at a time.
func (l *Lab) Comm(m widget.Message, reply func(widget.Message)) { l.widgets.Receive(m, reply) }
