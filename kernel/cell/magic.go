package cell

import (
	"errors"
	"flag"
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
// so that the cell is checked whole and its lines keep their numbers. Cells that are not
// Go at all, such as those of %%bash, are in cellmagic.go.

// magics are the lines that begin with %, and what they do.
var magics = []struct{ name, usage, does string }{
	{"!", "!COMMAND", "runs a command of the system's shell and streams what it prints; goes on after a \\ at a line's end"},
	{"%time", "%time STATEMENT", "says how long a statement takes"},
	{"%%time", "%%time", "as the first line: says how long the cell takes, its checking apart"},
	{"%get", "%get MODULE", "gets a module for the session's cells to import; alone: lists what was gotten"},
	{"%cd", "%cd DIRECTORY", "changes the directory of the session's cells; alone: to the home directory"},
	{"%pwd", "%pwd", "says the directory"},
	{"%env", "%env NAME=VALUE", "sets a variable of the environment; %env NAME shows one, %env all"},
	{"%who", "%who", "lists the session's variables with their types"},
	{"%reset", "%reset", "as the first line: forgets what the session has declared; the model stays loaded"},
	{"%args", "%args ARGUMENTS", "gives the cells arguments: os.Args, and flags that begin anew"},
	{"%%", "%% ARGUMENTS", "what follows is the body of func main, with its flags parsed"},
	{"%test", "%test -v", "runs the tests and benchmarks that the cell declares, else all the session's tests, with flags of go test"},
	{"%%bash", "%%bash", "as the first line: gives the rest of the cell to bash; %%sh likewise, %%script PROGRAM to another"},
	{"%%writefile", "%%writefile FILE", "as the first line: writes the rest of the cell to a file; -a appends"},
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
	rest  bool // a line takes the rest of the cell
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
	if !strings.ContainsAny(code, "!%$") {
		return m, nil
	}
	if text, ok, err := cellMagic(code); ok {
		m.code, m.rest = text, true
		return m, err
	}
	lines := strings.Split(code, "\n")
	first, toc, inMain := true, "", false
	for i := 0; i < len(lines); i++ {
		text := magicText(lines[i])
		if text == "" {
			if strings.TrimSpace(lines[i]) != "" {
				lines[i] = toc + lines[i]
				toc, first = "", false
			}
			continue
		}
		before := strings.Join(lines[:i], "\n")
		if !begins(before) {
			lines[i] = toc + lines[i]
			toc, first = "", false
			continue
		}
		fail := func(do string) (magicLines, error) { return m, &magicError{i + 1, text, do} }
		name, rest, _ := strings.Cut(text, " ")
		rest = strings.TrimSpace(rest)
		call := ""
		switch {
		case text[0] == '!':
			command := strings.TrimSpace(text[1:])
			if command == "" {
				return fail("want a command after the !")
			}
			if command[0] == '*' {
				return fail("cells have no module's directory; !COMMAND runs in the session's, and %get gets a module")
			}
			at := i
			for strings.HasSuffix(command, "\\") && i+1 < len(lines) {
				i++
				command += "\n" + lines[i]
				lines[i] = ""
			}
			lines[at], toc, first = toc+magicCall("Shell", command), "", false
			continue
		case text[0] == '$':
			return fail("want !COMMAND for a command")
		case name == "%time":
			if rest == "" {
				return fail("want a statement on the same line; %%time as the first line times the cell")
			}
			lines[i] = toc + magicCall("Tic") + "; " + rest
			toc, first = magicCall("Toc")+"; ", false
			continue
		case name == "%get":
			m.gets = append(m.gets, getLine{i + 1, strings.Fields(rest)})
		case name == "%who" || name == "%whos":
			call = magicCall("Who")
		case name == "%cd":
			call = magicCall("Cd", rest)
		case name == "%pwd":
			call = magicCall("Pwd")
		case name == "%env" || name == "%set_env":
			call = magicCall("Env", rest)
		case name == "%args":
			call = magicCall("Args", words(rest)...)
		case name == "%test":
			call = magicCall("Test", append([]string{strings.Join(testNames(code), " ")}, words(rest)...)...)
		case name == "%help" || name == "%lsmagic" || name == "%magic":
			call = magicCall("Magics")
		case name == "%%" || name == "%main":
			if open, _ := state(before + "\n"); inMain || len(open) > 0 {
				return fail("want it once, outside of functions and blocks")
			}
			inMain = true
			call = "func main() { " + magicCall("Flags", words(rest)...)
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
			continue
		case cellMagics[name]:
			return fail("want it as the cell's first line")
		case elsewhere[name] != "":
			return fail(elsewhere[name])
		default:
			return fail("no such magic; there are " + magicNames())
		}
		lines[i], toc, first = toc+call, "", false
	}
	m.code = strings.Join(lines, "\n")
	if inMain {
		m.code, m.rest = m.code+"\n}", true
	}
	m.timed = toc != ""
	return m, nil
}

// magicText is a line without what is around its magic, or "" where it has none. A
// comment //gonb: may stand before it.
func magicText(line string) string {
	text := strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(text, "//gonb:"); ok {
		text = strings.TrimSpace(rest)
	}
	if text == "" || !strings.ContainsRune("!%$", rune(text[0])) {
		return ""
	}
	return text
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

// withoutMagics is a cell, however unfinished, with spaces in the place of what isn't Go.
// A name behind a ! could be either.
func withoutMagics(code string) string {
	if !strings.ContainsAny(code, "!%$") {
		return code
	}
	if text, ok, _ := cellMagic(code); ok || text != code {
		return blank(code)
	}
	lines := strings.Split(code, "\n")
	for i := 0; i < len(lines); i++ {
		text := magicText(lines[i])
		if text == "" || token.IsIdentifier(text[1:]) && text[0] == '!' || !begins(strings.Join(lines[:i], "\n")) {
			continue
		}
		for ; strings.HasPrefix(text, "!") && strings.HasSuffix(lines[i], "\\") && i+1 < len(lines); i++ {
			lines[i] = blank(lines[i])
		}
		if statement, ok := strings.CutPrefix(text, "%time "); ok {
			at := strings.LastIndex(lines[i], statement)
			lines[i] = blank(lines[i][:at]) + lines[i][at:]
			continue
		}
		lines[i] = blank(lines[i])
	}
	return strings.Join(lines, "\n")
}

// blank is a text with a space for each byte but its lines' ends.
func blank(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c != '\n' {
			b[i] = ' '
		}
	}
	return string(b)
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
		"Cd" + mark:     reflect.ValueOf(c.changeDirectory),
		"Pwd" + mark:    reflect.ValueOf(c.sayDirectory),
		"Env" + mark:    reflect.ValueOf(c.environment),
		"Args" + mark:   reflect.ValueOf(setArguments),
		"Flags" + mark: reflect.ValueOf(func(args ...string) {
			setArguments(args...)
			c.parseFlags(flag.CommandLine, args)
		}),
		"Test" + mark:   reflect.ValueOf(c.goTest),
		"Script" + mark: reflect.ValueOf(c.script),
		"Write" + mark:  reflect.ValueOf(c.writeFile),
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
	name, option := "/bin/sh", "-c"
	if runtime.GOOS == "windows" {
		name, option = "cmd", "/C"
	} else if bash, err := exec.LookPath("bash"); err == nil {
		name = bash
	}
	o := c.shows()
	cmd := c.command(name, option, command)
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
		fmt.Fprintf(&b, "%-17s  %s\n", m.usage, m.does)
	}
	b.WriteString("name?              says what a name is; name?? shows its source\n")
	return b.String()
}

// who lists the session's variables.
func (s *shell) who() string {
	seen := s.table.seen.Load()
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range seen.names.Names() {
		if v, ok := seen.names.Lookup(name).(*types.Var); ok && !strings.Contains(name, mark) && name != "_" {
			fmt.Fprintf(table, "%s\t%s\n", name, unmark(types.TypeString(v.Type(), (*types.Package).Name)))
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
