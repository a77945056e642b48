package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/display"
)

// fake is an interpreter of a small language, a command a line:
//
//	print TEXT        TEXT and a newline on stdout
//	write QUOTED      the bytes of a Go string on stdout
//	stderr TEXT       TEXT and a newline on stderr
//	lines N           N numbered lines
//	flood N           N MiB on stdout
//	show TEXT ID      display; update TEXT ID replaces it
//	result TEXT       the cell's value
//	nan               a value with a NaN in it
//	page TEXT         help in the pager
//	exit              ask the front end to leave
//	clear             clear_output(wait)
//	fail TEXT         end with an error
//	panic             panic in the interpreter
//	block             wait for an interrupt
//	await GATE        wait until the test opens the gate, or an interrupt
//	stubborn GATE     wait for an interrupt, then until the test opens the gate
//	late GATE TEXT    print TEXT from a goroutine once the gate is open
//	input PROMPT      ask and print the answer; password PROMPT too
//	comm ID TARGET    open a comm from the kernel
type fake struct {
	mu         sync.Mutex
	gates      map[string]chan struct{}
	comms      []kernel.CommMessage
	cells      []kernel.Cell
	shells     map[string]bool
	closed     bool
	interrupts int
	wg         sync.WaitGroup

	opening chan struct{} // if not nil, OpenSubshell sends here, then awaits the gate "open"
}

func newFake() *fake {
	return &fake{gates: map[string]chan struct{}{}, shells: map[string]bool{}}
}

func (f *fake) gate(name string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gates[name] == nil {
		f.gates[name] = make(chan struct{})
		if f.closed { // which opens every gate
			close(f.gates[name])
		}
	}
	return f.gates[name]
}

func (f *fake) Language() kernel.Language {
	return kernel.Language{
		Implementation: "fake", ImplementationVersion: "0.1", Banner: "a small language", Name: "fake", Version: "1",
		MIMEType: "text/plain", FileExtension: ".fake", PygmentsLexer: "text", CodeMirrorMode: "text", NBConvertExporter: "script",
	}
}

func interrupted() *kernel.CellError {
	return &kernel.CellError{Name: "interrupted", Value: "the cell was interrupted"}
}

func (f *fake) Execute(ctx context.Context, cell kernel.Cell, out kernel.Output) *kernel.CellError {
	f.mu.Lock()
	f.cells = append(f.cells, cell)
	f.mu.Unlock()
	for line := range strings.Lines(cell.Code) {
		command, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		first, second, _ := strings.Cut(rest, " ")
		switch command {
		case "":
		case "print":
			out.Stream("stdout", rest+"\n")
		case "write":
			s, err := strconv.Unquote(rest)
			if err != nil {
				return &kernel.CellError{Name: "syntax", Value: err.Error()}
			}
			out.Stream("stdout", s)
		case "stderr":
			out.Stream("stderr", rest+"\n")
		case "lines":
			n, _ := strconv.Atoi(rest)
			for i := range n {
				out.Stream("stdout", "line "+strconv.Itoa(i)+"\n")
			}
		case "flood":
			n, _ := strconv.Atoi(rest)
			chunk := strings.Repeat(strings.Repeat("x", 1023)+"\n", 64)
			for range 16 * n {
				if ctx.Err() != nil {
					return interrupted()
				}
				out.Stream("stdout", chunk)
			}
		case "show":
			out.Display(display.Text(first), second)
		case "update":
			out.Update(display.Text(first), second)
		case "result":
			out.Result(display.Text(rest))
		case "nan":
			out.Result(display.Bundle{Data: map[string]any{
				"text/plain":       "NaN\xff",
				"application/json": map[string]any{"x": math.NaN(), "y": []float64{1, math.Inf(1)}, "z": "ok\xfe"},
				"bad/thing":        make(chan int),
			}})
		case "page":
			out.Page(display.Text(rest))
		case "exit":
			out.Exit(false)
		case "clear":
			out.Clear(true)
		case "fail":
			return &kernel.CellError{Name: "failure", Value: rest, Traceback: []string{"line 1", rest}}
		case "panic":
			panic("boom")
		case "block":
			<-ctx.Done()
			return interrupted()
		case "await":
			select {
			case <-f.gate(rest):
			case <-ctx.Done():
				return interrupted()
			}
		case "stubborn":
			<-ctx.Done()
			<-f.gate(rest)
			return interrupted()
		case "late":
			f.wg.Go(func() {
				<-f.gate(first)
				out.Stream("stdout", second+"\n")
			})
		case "input", "password":
			v, err := out.Input(ctx, rest, command == "password")
			if err != nil {
				return &kernel.CellError{Name: "input", Value: err.Error()}
			}
			out.Stream("stdout", "got "+v+"\n")
		case "comm":
			out.Comm(kernel.CommMessage{Type: "comm_open", ID: first, TargetName: second, Data: json.RawMessage(`{"a":1}`), Buffers: [][]byte{{0, 255}}})
		default:
			return &kernel.CellError{Name: "syntax", Value: "no command " + command}
		}
	}
	return nil
}

func (f *fake) Evaluate(ctx context.Context, subshell, expression string) (display.Bundle, *kernel.CellError) {
	if expression == "bad" {
		return display.Bundle{}, &kernel.CellError{Name: "undefined", Value: "bad"}
	}
	return display.Text("value of " + expression), nil
}

func (f *fake) Complete(ctx context.Context, code string, cursor int) kernel.Completions {
	if code == "hang" {
		<-f.gate("hang")
	}
	return kernel.Completions{Start: 0, End: cursor, Matches: []kernel.Completion{{Text: fmt.Sprint("upto", cursor), Type: "function", Signature: "f()"}}}
}

func (f *fake) Inspect(ctx context.Context, code string, cursor, detail int) (display.Bundle, bool) {
	return display.Text(fmt.Sprint("detail ", detail, " at ", cursor)), code != "nothing"
}

func (f *fake) IsComplete(code string) kernel.Completeness {
	if strings.HasSuffix(code, "{") {
		return kernel.Completeness{Status: "incomplete", Indent: "\t"}
	}
	return kernel.Completeness{Status: "complete"}
}

func (f *fake) Comm(ctx context.Context, m kernel.CommMessage, out kernel.Output) {
	f.mu.Lock()
	f.comms = append(f.comms, m)
	f.mu.Unlock()
	var data struct{ Await string }
	if json.Unmarshal(m.Data, &data) == nil && data.Await != "" {
		select {
		case <-f.gate(data.Await):
		case <-ctx.Done():
		}
	}
	switch {
	case m.Type == "comm_open" && m.TargetName == "unknown":
		out.Comm(kernel.CommMessage{Type: "comm_close", ID: m.ID})
	case m.Type == "comm_msg":
		out.Comm(kernel.CommMessage{Type: "comm_msg", ID: m.ID, Data: m.Data, Buffers: m.Buffers})
	}
}

func (f *fake) Interrupt() {
	f.mu.Lock()
	f.interrupts++
	f.mu.Unlock()
}

func (f *fake) OpenSubshell(id string) error {
	if f.opening != nil {
		f.opening <- struct{}{}
		<-f.gate("open")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shells[id] = true
	return nil
}

func (f *fake) CloseSubshell(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.shells, id)
	return nil
}

func (f *fake) Close() error {
	f.mu.Lock()
	f.closed = true
	for name, g := range f.gates {
		select {
		case <-g:
		default:
			close(f.gates[name])
		}
	}
	f.mu.Unlock()
	f.wg.Wait()
	return nil
}

// patience is how long a test waits for what must come. It is no measurement.
const patience = 30 * time.Second
