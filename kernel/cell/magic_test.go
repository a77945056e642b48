//go:build unix

package cell

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestRewriteMagics(t *testing.T) {
	shell := func(c string) string { return magicCall("Shell", c) }
	for code, want := range map[string]string{
		"!ls -l":                             shell("ls -l"),
		"x := 1\n!echo \"a\" `b`\nx":         "x := 1\n" + shell("echo \"a\" `b`") + "\nx",
		"for range 2 {\n\t!true\n}":          "for range 2 {\n" + shell("true") + "\n}",
		"a := true &&\n!b":                   "a := true &&\n!b",
		"f(\n!b,\n)":                         "f(\n!b,\n)",
		"s := `\n!ls\n%who\n`":               "s := `\n!ls\n%who\n`",
		"/*\n!ls\n*/":                        "/*\n!ls\n*/",
		"x := 7\ny := x\n%  3":               "x := 7\ny := x\n%  3",
		"%time f()":                          magicCall("Tic") + "; f()",
		"%time x := f()\nx":                  magicCall("Tic") + "; x := f()\n" + magicCall("Toc") + "; x",
		"%%time\nf()":                        "\nf()",
		"%reset\n%%time\nf()":                "\n\nf()",
		"// a comment\n!ls // not a comment": "// a comment\n" + shell("ls // not a comment"),
		"x := 1 // it's\n!ls":                "x := 1 // it's\n" + shell("ls"),
		"!a \\\n  b\nx":                      shell("a \\\n  b") + "\n\nx",
		"x := 1\n%% -a 'b c'\nf() // end":    "x := 1\nfunc main() { " + magicCall("Flags", "-a", "b c") + "\nf() // end\n}",
		"//gonb:%main\nf()":                  "func main() { " + magicCall("Flags") + "\nf()\n}",
		"%time f()\n%%\ng()":                 magicCall("Tic") + "; f()\n" + magicCall("Toc") + "; func main() { " + magicCall("Flags") + "\ng()\n}",
		"\n%%bash -e\nls \"a\"\n!x":          "\n" + magicCall("Script", "ls \"a\"\n!x\n", "bash", "-e"),
		"%%writefile -a 'a b'\nx := `":       magicCall("Write", "a b", "-a", "x := `\n"),
	} {
		m, err := rewriteMagics(code)
		if strings.Contains(code, "%  3") { // no magic has this name
			if err == nil || !strings.Contains(err.Error(), "no such magic") {
				t.Errorf("%q: %v", code, err)
			}
			continue
		}
		if err != nil || m.code != want {
			t.Errorf("%q: %v\ngot  %q\nwant %q", code, err, m.code, want)
		}
		if again, err := rewriteMagics(m.code); err != nil || again.code != m.code {
			t.Errorf("%q isn't Go alone: %q", code, m.code)
		}
	}
	for code, want := range map[string]string{
		"%nothing f()":   "%nothing f(): no such magic; there are " + magicNames(),
		"%timeit f()":    "%timeit f(): want testing.Benchmark(func(b *testing.B) { for b.Loop() { … } })",
		"!*ls":           "!*ls: cells have no module's directory; !COMMAND runs in the session's, and %get gets a module",
		"$ls":            "$ls: want !COMMAND for a command",
		"%%\n%%":         "%%: want it once, outside of functions and blocks",
		"if true {\n%%":  "%%: want it once, outside of functions and blocks",
		"x := 1\n%%bash": "%%bash: want it as the cell's first line",
		"%%script":       "%%script: want a program on the same line",
		"\n%%writefile":  "%%writefile: want the file's name on the same line",
		"x := 1\n%%time": "%%time: want it as the cell's first line",
		"x := 1\n%reset": "%reset: want it as the cell's first line",
		"%time":          "%time: want a statement on the same line; %%time as the first line times the cell",
		"!":              "!: want a command after the !",
	} {
		if _, err := rewriteMagics(code); err == nil || err.Error() != want {
			t.Errorf("%q: %v", code, err)
		}
	}
}

func TestMagics(t *testing.T) {
	h := newHost(t, nil)
	for _, c := range []struct{ code, want string }{
		{"word := \"x\"\n!printf 'one\\ntwo\\n'\nword", "stdout:one\ntwo\n|result:x"},
		{"!echo three >&2", "stderr:three\n"},
		{"!exit 3", "stderr:!exit 3: exit status 3\n"},
		{"for range 2 {\n\t!printf a\n}", "stdout:a"},
		{"n := 6\n%who", "stdout:n     int\nword  string\n"},
		{"type unit struct{}\nu := map[string]unit{}\n%who", "stdout:n     int\nu     map[string]main.unit\nword  string\n"},
		{"%time n = 7\nn", "took "},
		{"%%time\nn", "to check and compile"},
		{"%help", "!COMMAND"},
		{"ready := true\n\n!ready", "not found"},
		{"!for i in 1 2; do \\\n\techo $i; \\\ndone\nn", "2\n|result:7"},
		{"func fromMain() { fmt.Print(n) }\n%%\nif n := 8; n == 8 { fromMain(); return }\nfmt.Print(n)", "stdout:7"},
		{"n", "result:7"},
	} {
		if r, e := run(h, c.code); e != nil || !strings.Contains(r.text(), c.want) {
			t.Errorf("%q: %v %q", c.code, e, r.text())
		}
	}
	if _, e := run(h, "x := 1\n%nothing\ny"); e == nil || e.Name != "magic" || !strings.Contains(strings.Join(e.Traceback, "\n"), "→   2 | %nothing") {
		t.Errorf("%+v", e)
	}
	if _, e := run(h, "!true\nnowhere"); e == nil || !strings.Contains(strings.Join(e.Traceback, "\n"), "→   2 | nowhere") || !strings.Contains(strings.Join(e.Traceback, "\n"), "  1 | !true") {
		t.Errorf("%+v", e)
	}
	mustRun(t, h, "%reset\nafter := 1")
	if _, e := run(h, "n"); e == nil {
		t.Error("n is there after %reset")
	}
	expect(t, h, "after", "result:1")
	if c := h.Complete(t.Context(), "x := 1\n%ti", 10); len(c.Matches) != 1 || c.Matches[0].Text != "%time" || c.Start != 7 || c.End != 10 {
		t.Errorf("%+v", c)
	}
	if c := h.Complete(t.Context(), "%time\nx := 1", 3); len(c.Matches) != 1 || c.Matches[0].Text != "%time" {
		t.Errorf("%+v", c)
	}
	for code, want := range map[string]string{"!ls": "complete", "%who": "complete", "%nothing": "complete", "for {\n!ls": "incomplete"} {
		if got := h.IsComplete(code).Status; got != want {
			t.Errorf("%q is %s, want %s", code, got, want)
		}
	}
}

func TestFlagsOfCells(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "var who = flag.String(\"who\", \"x\", \"a name\")\nvar n = flag.Int(\"n\", 4, \"\")\n%% --who 'two words' rest\nfmt.Println(*who, *n, flag.Args())", "stdout:two words 4 [rest]\n")
	expect(t, h, "var who = flag.String(\"who\", \"y\", \"a name\")\n%%\nfmt.Println(*who, os.Args)", "stdout:y [cell]\n")
	expect(t, h, "%args -n=7\nfunc main() { flag.Parse(); fmt.Println(*who, *n) }", "stdout:y 7\n")
	expect(t, h, "%%\nfmt.Println(*n)", "stdout:4\n")
	expect(t, h, "n = flag.Int(\"n\", 5, \"\"); flag.IntVar(n, \"n\", 6, \"\"); *n", "result:6")
	r, e := run(h, "%% -no\nfmt.Println(1)")
	if e == nil || e.Value != "os.Exit(2)" || !strings.Contains(r.text(), "not defined: -no") || !strings.Contains(r.text(), "default \"y\"") || strings.Contains(r.text(), "default \"x\"") {
		t.Errorf("%v %q", e, r.text())
	}
	expect(t, h, "flag.Usage = func() { fmt.Println(\"mine\") }\n%% -h", "stdout:mine\n")
}

func TestOtherKernels(t *testing.T) {
	h := newHost(t, nil)
	for code, want := range map[string]string{
		"display.HTML(`x`)":                            "line 1: undefined: display; HTML(…)",
		"func f[T constraints.Float]() {}":             "line 1: undefined: constraints; %get golang.org/x/exp",
		"import \"github.com/janpfeifer/gonb/gonbui\"": "line 1: package github.com/janpfeifer/gonb/gonbui speaks to another kernel; HTML(…)",
	} {
		if _, e := run(h, code); e == nil || !strings.HasPrefix(e.Value, want) {
			t.Errorf("%q: %+v", code, e)
		}
	}
	expect(t, h, "display := 3\ndisplay", "result:3")
}

func TestCellMagics(t *testing.T) {
	h := newHost(t, nil)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ code, want string }{
		{"%cd nowhere", "error:%cd nowhere: no such file or directory"},
		{"%cd " + dir, "stdout:" + dir + "\n"},
		{"%pwd\n!pwd", "stdout:" + dir + "\n" + dir + "\n"},
		{"%env CELL_WORD = \"a b\"", "stdout:CELL_WORD=a b\n"},
		{"%env CELL_WORD ${CELL_WORD}c", "stdout:CELL_WORD=a bc\n"},
		{"%env CELL_WORD", "stdout:a bc\n"},
		{"%env CELL_NONE", "error:%env CELL_NONE: no such variable in the environment"},
		{"!echo $CELL_WORD\nos.Getenv(\"CELL_WORD\")", "stdout:a bc\n|result:a bc"},
		{"%%writefile $CELL_WORD.txt\n`one\n\t%two", "stdout:wrote a bc.txt, 11 bytes\n"},
		{"%%writefile -a a bc.txt\nthree\n", "stdout:added to a bc.txt, 6 bytes\n"},
		{"%%writefile no/such/file\nx", "error:%%writefile: open no/such/file: no such file or directory"},
		{"!cat *.txt", "stdout:`one\n\t%two\nthree\n"},
		{"%%sh\nread x <<E\n$CELL_WORD\nE\necho \"$x\"", "stdout:a bc\n"},
		{"%%sh\nexit 3", "error:sh: exit status 3"},
		{"%%script cat -\n1\n", "stdout:1\n"},
		{"%%script no-such-program\n1", "error:no-such-program: exec: "},
		{"%%script", "error:%%script: want a program on the same line"},
	} {
		r, e := run(h, c.code)
		if want, fails := strings.CutPrefix(c.want, "error:"); fails {
			if e == nil || e.Name != "magic" || !strings.HasPrefix(e.Value, want) {
				t.Errorf("%q: %+v", c.code, e)
			}
		} else if e != nil || strings.ReplaceAll(r.text(), "\n|stdout:", "\n") != c.want {
			t.Errorf("%q: %v %q", c.code, e, r.text())
		}
	}
	for code, want := range map[string]string{"%%bash\nls": "incomplete", "%%": "incomplete", "%%\nf()": "incomplete", "%%bash\nif true; then\n": "complete", "%%\nf()\n": "complete", "%%\nfor {\n": "incomplete"} {
		if got := h.IsComplete(code).Status; got != want {
			t.Errorf("%q is %s, want %s", code, got, want)
		}
	}
	mustRun(t, h, "count := 1")
	for _, before := range []string{"%%\n", "!ls $(\n", "x := 1\n%env A=`\n"} {
		if c := h.Complete(t.Context(), before+"cou", len(before)+3); len(c.Matches) == 0 || c.Matches[0].Text != "count" {
			t.Errorf("after %q: %+v", before, c)
		}
	}
	if c := h.Complete(t.Context(), "%%bash\ncou", 10); len(c.Matches) != 0 {
		t.Errorf("%+v", c)
	}
}
