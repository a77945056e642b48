// Package lab is what a cell sees of the engine: Generate, TraceRouter, Tokenize
// and the other names of docs/lab.md, and the types of what they return.
//
// It has two halves. Server runs in the kernel process beside the warm rig and
// answers calls by name with plain JSON. Lab runs in the child process where cells
// are interpreted; its methods are the functions that cells call, bound into the
// interpreter by Exports and documented by Docs. Between them is one function,
// Session.Call on one side and Server.Call on the other, and whatever carries it.
//
// A function whose call fails ends the cell: it panics with an *Error, so that
// g := Generate("…") needs no second result. A cell that wants to go on recovers
// it as any panic.
//
// When a cell is interrupted, Generate, Chat and Reply return the tokens made so
// far, with Finish "interrupted", within the time that the rig takes to give up
// the token in flight. The cell ends there: whether the statement that called them
// still assigns the value is the interpreter's choice (kernel/cell's does), and Last
// returns the same value in the next cell in any case. TraceRouter likewise returns
// the trace so far. The other functions panic with an *Error that wraps context.Canceled.
package lab

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"deltafin/kernel/display"
	"deltafin/kernel/display/widget"
	"deltafin/prefetch"
	"deltafin/rig"
	"deltafin/trace"
)

// Session is the child's side of everything that the functions need. Its methods
// are called from any goroutine.
type Session interface {
	// Call runs a method of the kernel process's Server with params marshalled to
	// JSON, and returns its result. event gets what the method streams, in order,
	// on the caller's goroutine, before Call returns. When ctx is cancelled Call
	// asks the server to stop and still waits for what it answers.
	Call(ctx context.Context, method string, params any, event func(json.RawMessage)) (json.RawMessage, error)
	// Context ends when the cell of the calling goroutine is interrupted.
	Context() context.Context
	// Output is where the cell of the calling goroutine shows things.
	Output() Output
	// What widgets need of it.
	widget.Host
}

// Output takes what a cell shows while it runs. Display with an id can be changed
// in place by Update with the same id.
type Output interface {
	Stream(name, text string)
	Display(b display.Bundle, id string)
	Update(b display.Bundle, id string)
	Clear(wait bool)
	Input(ctx context.Context, prompt string, password bool) (string, error)
}

// Lab holds the functions of one session's cells. They may be called from any
// goroutine.
type Lab struct {
	session Session
	widgets *widget.Manager
	now     func() time.Time

	mu   sync.Mutex
	last *Generation

	marking sync.Mutex
	mark    prefetch.Stats // what PrefetchStats counts from
}

// New makes the functions of one session.
func New(s Session) *Lab { return &Lab{session: s, widgets: widget.NewManager(s), now: time.Now} }

// call runs a method of the server and decodes its result. It panics with an
// *Error in the name of the function fn when that fails.
func call[T any](l *Lab, ctx context.Context, fn, method string, params any, event func(json.RawMessage)) T {
	var result T
	data, err := l.session.Call(ctx, method, params, event)
	if err == nil {
		err = json.Unmarshal(data, &result)
	}
	if err != nil {
		fail(fn, err)
	}
	return result
}

// fail ends the cell with an *Error.
func fail(fn string, err error) { panic(&Error{Func: fn, Err: err}) }

// Error is a failed call of one of the functions, and what they panic with. A
// front end shows it as an ordinary error of the cell, without a Go stack.
type Error struct {
	Func string // the function, such as "Generate"
	Err  error  // what was expected, what was found, what to do
}

func (e *Error) Unwrap() error { return e.Err }
func (e *Error) Error() string {
	name, value := e.CellError()
	return name + ": " + value
}

// CellError gives the name and value of the cell's error: the function and the
// sentence, without the name of a package that a cell doesn't know.
func (e *Error) CellError() (name, value string) {
	value = e.Err.Error()
	for _, pkg := range []string{"trace: ", "display: "} {
		value = strings.TrimPrefix(value, pkg)
	}
	return e.Func, value
}

// Exports are the names that a cell sees: functions as values, types as nil
// pointers to them.
func (l *Lab) Exports() map[string]reflect.Value {
	exports := map[string]reflect.Value{}
	for name, f := range map[string]any{
		"Generate": l.Generate, "Chat": l.Chat, "User": l.User, "System": l.System, "Assistant": l.Assistant, "With": l.With, "Last": l.Last,
		"TraceRouter": l.TraceRouter, "LoadTrace": l.LoadTrace, "PrefetchStats": l.PrefetchStats,
		"Tokenize": l.Tokenize, "Detokenize": l.Detokenize, "Logits": l.Logits,
		"Model": l.Model, "Memory": l.Memory, "Reset": l.Reset,
		"Display": l.Display, "Show": l.Show, "ClearOutput": l.ClearOutput, "HTML": l.HTML, "Markdown": l.Markdown, "Image": l.Image, "Table": l.Table, "Bars": l.Bars, "Lines": l.Lines,
		"Progress": l.Progress, "Input": l.Input, "Password": l.Password,
		"IntSlider": l.IntSlider, "FloatSlider": l.FloatSlider, "IntProgress": l.IntProgress, "FloatProgress": l.FloatProgress,
		"Checkbox": l.Checkbox, "Dropdown": l.Dropdown, "Text": l.Text, "Button": l.Button, "Label": l.Label, "LiveHTML": l.LiveHTML,
		"Output": l.Output, "VBox": l.VBox, "HBox": l.HBox,
	} {
		exports[name] = reflect.ValueOf(f)
	}
	for name, t := range map[string]any{
		"Params": (*Params)(nil), "Generation": (*Generation)(nil), "Message": (*Message)(nil), "Finish": (*rig.Finish)(nil),
		"GenerationStats": (*GenerationStats)(nil), "LayerStats": (*prefetch.LayerStats)(nil), "Routes": (*trace.Trace)(nil),
		"Trace": (*Trace)(nil), "TraceDiff": (*TraceDiff)(nil), "LayerValues": (*LayerValues)(nil), "Load": (*trace.Load)(nil), "Loads": (*Loads)(nil),
		"Stats": (*Stats)(nil), "Token": (*Token)(nil), "Tokens": (*Tokens)(nil), "Distribution": (*Distribution)(nil), "TokenProb": (*rig.TokenProb)(nil),
		"ModelInfo": (*ModelInfo)(nil), "MemoryMap": (*MemoryMap)(nil), "ProgressBar": (*ProgressBar)(nil), "Shown": (*Shown)(nil), "Bundle": (*display.Bundle)(nil),
		"IntWidget": (*widget.Int)(nil), "FloatWidget": (*widget.Float)(nil), "BoolWidget": (*widget.Bool)(nil), "ChoiceWidget": (*widget.Choice)(nil),
		"TextWidget": (*widget.Text)(nil), "ButtonWidget": (*widget.Button)(nil), "OutputWidget": (*widget.Output)(nil), "BoxWidget": (*widget.Box)(nil),
		"Error": (*Error)(nil),
	} {
		exports[name] = reflect.ValueOf(t)
	}
	return exports
}
