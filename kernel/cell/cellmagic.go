package cell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cellMagics are the first lines of cells that are not Go.
var cellMagics = map[string]bool{"%%bash": true, "%%sh": true, "%%script": true, "%%writefile": true, "%%file": true}

// elsewhere are lines that other kernels know, and what to write here instead.
var elsewhere = map[string]string{
	"%goflags":       "cells are not compiled by the go command; leave the line out",
	"%autoget":       "leave the line out; %get MODULE gets a module",
	"%noautoget":     "leave the line out; %get MODULE gets a module",
	"%go111module":   "leave the line out; %get MODULE gets a module",
	"%goworkfix":     "leave the line out; %get DIRECTORY gets the module in it",
	"%track":         "leave the line out; %get DIRECTORY gets the module in it",
	"%untrack":       "leave the line out; %get MODULE@none removes a module",
	"%widgets":       "leave the line out; IntSlider, Button and the like show themselves",
	"%wasm":          "cells run beside the kernel, not in the browser; IntSlider, Button and the like ask it",
	"%with_inputs":   "commands get no input; Input(\"…\") asks in Go",
	"%with_password": "commands get no input; Password(\"…\") asks in Go",
	"%exec":          "want %% ARGUMENTS, and the call on the next line",
	"%rm":            "names stay; a declaration replaces one, and %reset as the first line forgets all",
	"%remove":        "names stay; a declaration replaces one, and %reset as the first line forgets all",
	"%del":           "names stay; a declaration replaces one, and %reset as the first line forgets all",
	"%ls":            "!ls lists files, %who the session's variables",
	"%list":          "!ls lists files, %who the session's variables",
	"%timeit":        "want testing.Benchmark(func(b *testing.B) { for b.Loop() { … } })",
	"%%timeit":       "want testing.Benchmark(func(b *testing.B) { for b.Loop() { … } })",
	"%capture":       "want os.WriteFile in Go, or !COMMAND > FILE",
	"%%capture":      "want out := Output(), and out.Run(func() { … }), which shows in it",
	"%%html":         "want HTML(`…`)",
	"%%svg":          "want Image([]byte(`…`))",
	"%%markdown":     "want Markdown(`…`)",
	"%%latex":        "want Markdown(`$$…$$`)",
	"%%javascript":   "want HTML(`<script>…</script>`)",
	"%%js":           "want HTML(`<script>…</script>`)",
	"%version":       "want runtime.Version()",
	"%goinfo":        "want runtime.Version()",
	"%pip":           "%get MODULE gets a module of Go; !pip runs pip",
	"%conda":         "%get MODULE gets a module of Go; !conda runs conda",
	"%load_ext":      "leave the line out; there are no extensions",
	"%autoreload":    "leave the line out; there are no extensions",
	"%matplotlib":    "leave the line out; Bars, Lines and HTML show themselves",
}

// isGonb says whether a package is what programs of the kernel GoNB show things with.
func isGonb(path string) bool {
	const own = "github.com/janpfeifer/gonb/gonbui"
	return path == own || strings.HasPrefix(path, own+"/")
}

// otherNames are packages that other kernels' notebooks name, and what to write here.
var otherNames = map[string]string{
	"display":     "HTML(…), Markdown(…), Image(…) and Display(value) show, without a package",
	"gonbui":      "HTML(…), Markdown(…), Image(…) and Display(value) show, without a package",
	"dom":         "LiveHTML(…) is HTML that its Set changes, without a package",
	"widgets":     "IntSlider, Dropdown, Button and the like are widgets, without a package",
	"constraints": "%get golang.org/x/exp and import \"golang.org/x/exp/constraints\", or write cmp.Ordered",
}

// cellMagic makes a call of a cell that isn't Go. ok is false for one that is.
func cellMagic(code string) (text string, ok bool, err error) {
	start := len(code) - len(strings.TrimLeft(code, " \t\r\n"))
	first, body, _ := strings.Cut(code[start:], "\n")
	first = strings.TrimSpace(strings.TrimPrefix(first, "//gonb:"))
	name, rest, _ := strings.Cut(first, " ")
	rest = strings.TrimSpace(rest)
	if !cellMagics[name] {
		return code, false, nil
	}
	if body != "" && !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	call, want := "", ""
	switch args := words(rest); name {
	case "%%writefile", "%%file":
		more := ""
		if file, found := strings.CutPrefix(rest, "-a "); found {
			rest, more = strings.TrimSpace(file), "-a"
		}
		if call = magicCall("Write", unquoted(rest), more, body); rest == "" {
			want = "want the file's name on the same line"
		}
	case "%%script":
		if call = magicCall("Script", slices.Concat([]string{body}, args)...); len(args) == 0 {
			want = "want a program on the same line"
		}
	default:
		call = magicCall("Script", slices.Concat([]string{body, name[2:]}, args)...)
	}
	if want != "" {
		return code, true, &magicError{1 + strings.Count(code[:start], "\n"), first, want}
	}
	return code[:start] + call, true, nil
}

// A magicFault is what a magic line couldn't do.
type magicFault struct{ text string }

func (f *magicFault) CellError() (name, value string) { return "magic", f.text }

// words are a line's words. Quotes of either kind keep a word together.
func words(line string) (list []string) {
	var b strings.Builder
	quote, inside := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inside = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if inside {
				list = append(list, b.String())
			}
			b.Reset()
			inside = false
		default:
			b.WriteRune(r)
			inside = true
		}
	}
	if inside {
		list = append(list, b.String())
	}
	return list
}

// unquoted is a text without the quotes that it is in.
func unquoted(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : n-1]
	}
	return s
}

// expanded is a path with its ~ and variables replaced.
func expanded(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + rest
		}
	}
	return os.ExpandEnv(path)
}

func (c *child) changeDirectory(to string) {
	to = unquoted(to)
	if to == "" {
		to = "~"
	}
	if err := os.Chdir(expanded(to)); err != nil {
		panic(&magicFault{"%cd " + to + ": " + errors.Unwrap(err).Error()})
	}
	c.sayDirectory()
}

func (c *child) sayDirectory() {
	dir, err := os.Getwd()
	if err != nil {
		panic(&magicFault{"%pwd: " + err.Error()})
	}
	c.shows().Stream("stdout", dir+"\n")
}

// environment is %env: NAME=VALUE and NAME VALUE set a variable, NAME shows one, and
// nothing all.
func (c *child) environment(line string) {
	name, value, set := strings.Cut(line, "=")
	if i := strings.IndexAny(name, " \t"); i >= 0 {
		name, value, set = line[:i], strings.TrimSpace(line[i:]), true
		value = strings.TrimSpace(strings.TrimPrefix(value, "="))
	}
	o := c.shows()
	switch {
	case line == "":
		all := os.Environ()
		slices.Sort(all)
		o.Stream("stdout", strings.Join(all, "\n")+"\n")
	case set:
		value = os.ExpandEnv(unquoted(value))
		if err := os.Setenv(name, value); err != nil {
			panic(&magicFault{"%env " + line + ": " + err.Error()})
		}
		o.Stream("stdout", name+"="+value+"\n")
	default:
		v, ok := os.LookupEnv(name)
		if !ok {
			panic(&magicFault{"%env " + name + ": no such variable in the environment"})
		}
		o.Stream("stdout", v+"\n")
	}
}

// script gives a text to a program's standard input. A status other than 0 ends the cell.
func (c *child) script(text, program string, args ...string) {
	o := c.shows()
	cmd := c.command(program, args...)
	cmd.Stdin = strings.NewReader(text)
	cmd.Stdout, cmd.Stderr = outputWriter{o, "stdout"}, outputWriter{o, "stderr"}
	cmd.WaitDelay = 200 * time.Millisecond
	if err := cmd.Run(); err != nil && c.current().ctx.Err() == nil {
		var status *exec.ExitError
		if errors.As(err, &status) || errors.Is(err, exec.ErrNotFound) {
			panic(&magicFault{fmt.Sprintf("%s: %v", program, err)})
		}
		panic(&magicFault{err.Error()})
	}
}

// writeFile writes a text to a file, or adds it to one for "-a".
func (c *child) writeFile(path, more, text string) {
	path = expanded(path)
	mode, did := os.O_TRUNC, "wrote"
	if more != "" {
		mode, did = os.O_APPEND, "added to"
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o666)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(&magicFault{"%%writefile: " + err.Error()})
	}
	c.shows().Stream("stdout", fmt.Sprintf("%s %s, %d bytes\n", did, path, len(text)))
}
