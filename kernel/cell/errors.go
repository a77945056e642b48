package cell

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"deltafin/internal/third_party/yaegi/interp"
	"deltafin/kernel"
)

const (
	red   = "\x1b[31m"
	bold  = "\x1b[1m"
	faint = "\x1b[2m"
	reset = "\x1b[0m"
)

// label names a source for its reader.
func (s *source) label() string {
	if s.count > 0 {
		return "In[" + strconv.Itoa(s.count) + "]"
	}
	return "the cell"
}

// mark shows a line of the source with its neighbours and an arrow.
func (s *source) mark(line, col int) []string {
	if line < 1 || line > len(s.lines) {
		return nil
	}
	out := []string{fmt.Sprintf("%s, line %d:", s.label(), line)}
	for n := max(1, line-1); n <= min(len(s.lines), line+1); n++ {
		text := strings.ReplaceAll(s.lines[n-1], "\t", "    ")
		if n == line {
			out = append(out, fmt.Sprintf("%s→ %3d | %s%s", red, n, text, reset))
			if col > 0 && col <= len(s.lines[n-1])+1 {
				lead := strings.ReplaceAll(s.lines[n-1][:col-1], "\t", "    ")
				out = append(out, "      | "+strings.Repeat(" ", len([]rune(lead)))+red+"^"+reset)
			}
		} else {
			out = append(out, fmt.Sprintf("%s  %3d | %s%s", faint, n, text, reset))
		}
	}
	return out
}

// What a front end gets of an error, in bytes.
const (
	maxErrorText = 8 << 10  // of its value, and of each entry of its traceback
	maxTraceback = 64 << 10 // of all entries
)

// clip cuts a text that is too long to show and says by how much. What it cuts is
// short enough to be put into another that is clipped.
func clip(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	n := maxErrorText - 256
	for n > maxErrorText-256-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:n], len(s)-n)
}

// clipError is e with the parts that are too long to show cut.
func clipError(e *kernel.CellError) *kernel.CellError {
	c := &kernel.CellError{Name: clip(e.Name), Value: clip(e.Value)}
	size := 0
	for i, t := range e.Traceback {
		if t = clip(t); size+len(t) > maxTraceback {
			c.Traceback = append(c.Traceback, fmt.Sprintf("… (%d more entries)", len(e.Traceback)-i))
			break
		}
		size += len(t)
		c.Traceback = append(c.Traceback, t)
	}
	return c
}

// compileError shows faults in a cell's text.
func compileError(errs []*CompileError) *kernel.CellError {
	e := &kernel.CellError{Name: "compile error", Value: errs[0].Error()}
	for _, c := range errs {
		e.Traceback = append(e.Traceback, bold+"compile error: "+reset+c.Error())
		if c.Line > 0 {
			e.Traceback = append(e.Traceback, c.Source.mark(c.Line, c.Col)...)
		}
	}
	return e
}

var positionRE = regexp.MustCompile(`(cell\d+):(\d+):(\d+): `)

// unsupported shows what the interpreter can't do although it is Go.
func (s *shell) unsupported(src *source, err error) *kernel.CellError {
	msg := err.Error()
	c := &CompileError{Source: src, Msg: "not supported by the interpreter: " + unmark(positionRE.ReplaceAllString(msg, ""))}
	if m := positionRE.FindStringSubmatch(msg); m != nil {
		if from := s.source[m[1]]; from != nil {
			c.Source = from
			c.Line, _ = strconv.Atoi(m[2])
			c.Col, _ = strconv.Atoi(m[3])
		}
	}
	return compileError([]*CompileError{c})
}

// panicError shows a panic: its value, and where in the cells it went through.
func (s *shell) panicError(run *interp.Run, err error) *kernel.CellError {
	var p interp.Panic
	if !errors.As(err, &p) {
		return &kernel.CellError{Name: "panic", Value: err.Error(), Traceback: []string{err.Error()}}
	}
	name, value := panicText(p.Value)
	value = clip(value)
	e := &kernel.CellError{Name: name, Value: value, Traceback: []string{bold + name + ": " + reset + value}}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	last := ""
	for _, f := range run.Trace() {
		src := s.source[f.File]
		at := f.File + ":" + strconv.Itoa(f.Line)
		if at == last {
			continue
		}
		if src == nil {
			if in := s.table.lib.within(f.File); in != "" {
				last = at
				e.Traceback = append(e.Traceback, faint+in+":"+strconv.Itoa(f.Line)+reset)
			}
			continue
		}
		last = at
		e.Traceback = append(e.Traceback, src.mark(f.Line, 0)...)
		if len(e.Traceback) > 40 {
			break
		}
	}
	return e
}

// A cellError is a panic's value that is an ordinary error of the cell: a call of
// one of the exports that failed.
type cellError interface {
	CellError() (name, value string)
}

// panicText names a panic's value by what it says it is, or words it as the Go
// runtime does.
func panicText(v any) (name, value string) {
	if c, ok := v.(cellError); ok {
		return c.CellError()
	}
	switch v := v.(type) {
	case error:
		var c cellError
		if errors.As(v, &c) {
			return c.CellError()
		}
	}
	return "panic", fmt.Sprint(v)
}
