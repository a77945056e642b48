package kernel

import (
	"context"
	"encoding/json"

	"deltafin/kernel/display"
)

// An Interpreter runs the cells that the kernel receives. The kernel owns the
// protocol (sockets, busy and idle, counters, history); the interpreter owns the
// language. Every method may be called from any goroutine; Execute calls for one
// subshell come one at a time, in order. A method returns soon after its context
// is cancelled, whatever the cell does.
type Interpreter interface {
	// Language describes the language for kernel_info_reply. It answers at once,
	// before the interpreter is warm.
	Language() Language

	// Execute runs one cell. Outputs go to out while it runs and may still go
	// there after it returned, from goroutines the cell left behind. The value of
	// the cell's last expression goes to out.Result. A nil error means "ok".
	Execute(ctx context.Context, cell Cell, out Output) *CellError

	// Evaluate computes one of an execute_request's user_expressions.
	Evaluate(ctx context.Context, subshell, expression string) (display.Bundle, *CellError)

	// Complete gives the completions of code at cursor, a count of Unicode code
	// points. It never runs user code.
	Complete(ctx context.Context, code string, cursor int) Completions

	// Inspect describes what stands at cursor (code points); detail 1 asks for
	// source. found is false when nothing is known there.
	Inspect(ctx context.Context, code string, cursor, detail int) (b display.Bundle, found bool)

	// IsComplete says whether a console should run code or wait for more lines.
	IsComplete(code string) Completeness

	// Comm delivers comm_open, comm_msg and comm_close from a front end.
	Comm(ctx context.Context, m CommMessage, out Output)

	// Interrupt stops what runs beside the cells for the comms, such as a widget's
	// callback. It returns at once.
	Interrupt()

	// OpenSubshell and CloseSubshell begin and end an evaluation context that
	// runs beside the main one ("") and shares its variables.
	OpenSubshell(id string) error
	CloseSubshell(id string) error

	// Close ends the interpreter and whatever it started.
	Close() error
}

// Language fills the language_info and banner of kernel_info_reply.
type Language struct {
	Implementation        string // "deltafin"
	ImplementationVersion string
	Banner                string
	Name                  string // "go"
	Version               string // "1.26"
	MIMEType              string // "text/x-go"
	FileExtension         string // ".go"
	PygmentsLexer         string // "go"
	CodeMirrorMode        string // "go"
	NBConvertExporter     string // "script"
	HelpLinks             []HelpLink
}

// HelpLink is an entry of the front end's Help menu.
type HelpLink struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// Cell is one execute_request.
type Cell struct {
	Code           string
	ExecutionCount int    // 0 for a silent cell
	Subshell       string // "" is the main shell
	Silent         bool
	AllowStdin     bool
}

// CellError is what a front end shows of a failed cell: the fields of an error
// message. Traceback lines may hold ANSI colours.
type CellError struct {
	Name      string // ename, such as "panic", "compile error", "interrupted"
	Value     string // evalue, one line where possible
	Traceback []string
}

func (e *CellError) Error() string { return e.Name + ": " + e.Value }

// Output takes what one cell shows. Its methods may be called from any
// goroutine, also after Execute returned: the output then still belongs to that
// cell. They may block while the front ends are slow, never for ever.
type Output interface {
	// Stream writes text to "stdout" or "stderr". Invalid UTF-8 is replaced.
	Stream(name, text string)
	// Display shows b; a non-empty id lets a later Update replace it in place.
	Display(b display.Bundle, id string)
	Update(b display.Bundle, id string)
	// Result shows the value of the cell's last expression.
	Result(b display.Bundle)
	// Clear empties the cell's output; with wait only when the next output comes.
	Clear(wait bool)
	// Page shows b as help does: a console in its pager, a notebook below the cell.
	Page(b display.Bundle)
	// Exit asks the front end to leave, and to end the kernel unless keep is set.
	Exit(keep bool)
	// Input asks the front end for a line; it fails at once when the front end
	// does not allow stdin.
	Input(ctx context.Context, prompt string, password bool) (string, error)
	// Comm sends comm_open, comm_msg or comm_close to the front ends.
	Comm(m CommMessage)
}

// Completions is the content of a complete_reply. Start and End are code points.
type Completions struct {
	Start, End int
	Matches    []Completion
}

// Completion is one match with what front ends show beside it.
type Completion struct {
	Text      string
	Type      string // "function", "type", "variable", "module", "keyword", "field", "method", "constant"
	Signature string
}

// Completeness is the content of an is_complete_reply.
type Completeness struct {
	Status string // "complete", "incomplete", "invalid" or "unknown"
	Indent string // for "incomplete"
}

// CommMessage is one message of the comm protocol.
type CommMessage struct {
	Type       string // "comm_open", "comm_msg" or "comm_close"
	ID         string
	TargetName string          // comm_open only
	Data       json.RawMessage // an object
	Metadata   json.RawMessage // an object, or nil
	Buffers    [][]byte
}
