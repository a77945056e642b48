package cell

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"go/types"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"deltafin/kernel"
)

// Lines that begin with ! or % are not Go: a command for the system's shell, or one of
// the magics that Jupyter's users know. Each becomes a call that stands in its place,
// so that the cell is checked whole and its lines keep their numbers.

// magics are the lines that begin with %, and what they do.
var magics = []struct{ name, usage, does string }{
	{"!", "!COMMAND", "runs a command of the system's shell and streams what it prints"},
	{"%time", "%time STATEMENT", "says how long a statement takes"},
	{"%%time", "%%time", "as the first line: says how long the cell takes, its checking apart"},
	{"%get", "%get MODULE", "gets a module for the session's cells to import; alone: lists what was gotten"},
	{"%who", "%who", "lists the session's variables with their types"},
	{"%reset", "%reset", "as the first line: forgets what the session has declared; the model stays loaded"},
	{"%help", "%help", "lists these"},
}

// A magicError is a line that begins with % and means nothing here.
type magicError struct {
	Line int // from 1
	Text string
	Do   string
}

func (e *magicError) Error() string { return fmt.Sprintf("%s: %s", e.Text, e.Do) }

// magicLines is code with its magic lines made Go.
type magicLines struct {
	code  string
	timed bool // the last statement
	whole bool // the whole cell
	reset bool // forget the session first
	gets  []getLine
}

// A getLine is a line that gets modules, before the cell is checked.
type getLine struct {
	Line int // from 1
	Args []string
}

// rewriteMagics makes Go of a cell's magic lines. The error is a *magicError.
func rewriteMagics(code string) (magicLines, error) {
	m := magicLines{code: code}
	if !strings.ContainsAny(code, "!%") {
		return m, nil
	}
	lines := strings.Split(code, "\n")
	first, toc := true, ""
	for i, line := range lines {
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		isMagic := (text[0] == '!' || text[0] == '%') && begins(strings.Join(lines[:i], "\n"))
		if !isMagic {
			lines[i] = toc + line
			toc, first = "", false
			continue
		}
		fail := func(do string) (magicLines, error) { return m, &magicError{i + 1, text, do} }
		name, rest, _ := strings.Cut(text, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case text[0] == '!':
			if strings.TrimSpace(text[1:]) == "" {
				return fail("want a command after the !")
			}
			lines[i] = toc + magicCall("Shell", strings.TrimSpace(text[1:]))
			toc = ""
		case name == "%time":
			if rest == "" {
				return fail("want a statement on the same line; %%time as the first line times the cell")
			}
			lines[i] = toc + magicCall("Tic") + "; " + rest
			toc = magicCall("Toc") + "; "
		case name == "%get":
			m.gets = append(m.gets, getLine{i + 1, strings.Fields(rest)})
			lines[i] = toc
			toc = ""
		case name == "%who":
			lines[i] = toc + magicCall("Who")
			toc = ""
		case name == "%help" || name == "%lsmagic" || name == "%magic":
			lines[i] = toc + magicCall("Magics")
			toc = ""
		case name == "%%time" || name == "%reset":
			if !first {
				return fail("want it as the cell's first line")
			}
			if name == "%reset" {
				m.reset = true
			} else {
				m.whole = true
			}
			lines[i] = rest
		default:
			return fail("no such magic; there are " + magicNames())
		}
		if name != "%%time" && name != "%reset" {
			first = false
		}
	}
	m.code = strings.Join(lines, "\n")
	m.timed = toc != ""
	return m, nil
}

func magicNames() string {
	var names []string
	for _, m := range magics {
		names = append(names, m.name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// magicCall is a call of one of magicExports.
func magicCall(name string, args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	return name + mark + "(" + strings.Join(quoted, ", ") + ")"
}

// begins says whether a statement may begin on the line after the text: not inside of
// a string, a comment or a list, nor behind an operator.
func begins(text string) bool {
	open, inside := state(text + "\n")
	if inside || len(open) > 0 && open[len(open)-1] != '}' {
		return false
	}
	switch lastToken(text) {
	case token.ILLEGAL, token.SEMICOLON, token.LBRACE, token.RBRACE, token.RPAREN, token.RBRACK, token.COLON,
		token.IDENT, token.INT, token.FLOAT, token.IMAG, token.CHAR, token.STRING, token.INC, token.DEC,
		token.BREAK, token.CONTINUE, token.FALLTHROUGH, token.RETURN:
		return true
	}
	return false
}

// completeMagic completes a magic whose line ends code, cursor code points long.
func completeMagic(code string, cursor int) (c kernel.Completions, ok bool) {
	before := strings.LastIndexByte(code, '\n') + 1
	line := strings.TrimLeft(code[before:], " \t")
	if !strings.HasPrefix(line, "%") || strings.ContainsAny(line, " \t") || !begins(strings.TrimSuffix(code[:before], "\n")) {
		return c, false
	}
	c.Start, c.End = cursor-utf8.RuneCountInString(line), cursor
	for _, m := range magics {
		if strings.HasPrefix(m.name, line) {
			c.Matches = append(c.Matches, kernel.Completion{Text: m.name, Type: "magic", Signature: m.does})
		}
	}
	return c, true
}

// magicTraceback shows the line that means nothing.
func magicTraceback(src *source, err error) []string {
	out := []string{bold + "magic: " + reset + err.Error()}
	if e := (*magicError)(nil); errors.As(err, &e) {
		out = append(out, src.mark(e.Line, 0)...)
	}
	return out
}

// resetSession makes the session anew: what was declared is gone, in the subshells too.
func (c *child) resetSession(of *shell) (*shell, *kernel.CellError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shells[""] != of {
		return nil, &kernel.CellError{Name: "magic", Value: "%reset: want it in the main shell, got it in a subshell", Traceback: []string{"%reset: want it in the main shell, got it in a subshell"}}
	}
	beProgram()
	main, err := newShell(c, nil)
	shells := map[string]*shell{"": main}
	for id := range c.shells {
		if err == nil && id != "" {
			shells[id], err = newShell(c, main)
		}
	}
	if err != nil {
		return nil, kernelError(err).cellError()
	}
	*main.serial = *of.serial // names of cells stay unique
	c.shells = shells
	return main, nil
}

// main is the main shell.
func (c *child) main() *shell {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shells[""]
}

// magicExports are the functions that magic lines call.
func (c *child) magicExports() map[string]reflect.Value {
	return map[string]reflect.Value{
		"Shell" + mark:  reflect.ValueOf(c.systemShell),
		"Tic" + mark:    reflect.ValueOf(func() { c.current().root().tic.Store(time.Now().UnixNano()) }),
		"Toc" + mark:    reflect.ValueOf(c.toc),
		"Who" + mark:    reflect.ValueOf(func() { c.current().Stream("stdout", c.main().who()) }),
		"Magics" + mark: reflect.ValueOf(func() { c.current().Stream("stdout", magicHelp()) }),
	}
}

func (c *child) toc() {
	o := c.current().root()
	if began := o.tic.Swap(0); began != 0 {
		o.Stream("stdout", "took "+time.Duration(time.Now().UnixNano()-began).Round(time.Microsecond).String()+"\n")
	}
}

// systemShell runs a command as the user's shell would, its output the cell's. A status
// that isn't 0 is said, and doesn't end the cell.
func (c *child) systemShell(command string) {
	name, flag := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		name, flag = "cmd", "/C"
	}
	o := c.shows()
	cmd := c.command(name, flag, command)
	cmd.Stdout, cmd.Stderr = outputWriter{o, "stdout"}, outputWriter{o, "stderr"}
	cmd.WaitDelay = 200 * time.Millisecond
	var status *exec.ExitError
	switch err := cmd.Run(); {
	case err == nil || c.current().ctx.Err() != nil:
	case errors.As(err, &status):
		o.Stream("stderr", fmt.Sprintf("!%s: %v\n", command, status))
	default:
		o.Stream("stderr", fmt.Sprintf("!%s: %v\n", command, err))
	}
}

type outputWriter struct {
	to   interface{ Stream(name, text string) }
	name string
}

func (w outputWriter) Write(b []byte) (int, error) {
	w.to.Stream(w.name, string(b))
	return len(b), nil
}

func magicHelp() string {
	var b strings.Builder
	for _, m := range magics {
		fmt.Fprintf(&b, "%-16s  %s\n", m.usage, m.does)
	}
	b.WriteString("name?             says what a name is; name?? shows its source\n")
	return b.String()
}

// who lists the session's variables.
func (s *shell) who() string {
	seen := s.table.seen.Load()
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range seen.names.Names() {
		if v, ok := seen.names.Lookup(name).(*types.Var); ok && !strings.Contains(name, mark) && name != "_" {
			fmt.Fprintf(table, "%s\t%s\n", name, types.TypeString(v.Type(), (*types.Package).Name))
		}
	}
	table.Flush()
	if b.Len() == 0 {
		return "no variables\n"
	}
	return b.String()
}

// lastToken is the last token of a text that isn't a comment or an automatic
// semicolon; token.ILLEGAL where there is none.
func lastToken(text string) token.Token {
	var sc scanner.Scanner
	fset := token.NewFileSet()
	sc.Init(fset.AddFile("", -1, len(text)), []byte(text), func(token.Position, string) {}, 0)
	last := token.ILLEGAL
	for {
		switch _, tok, lit := sc.Scan(); {
		case tok == token.EOF:
			return last
		case tok != token.SEMICOLON || lit == ";":
			last = tok
		}
	}
}
