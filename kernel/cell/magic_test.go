//go:build unix

package cell

import (
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
		"%timeit f()":    "%timeit f(): no such magic; there are !, %time, %%time, %get, %who, %reset and %help",
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
		{"%time n = 7\nn", "took "},
		{"%%time\nn", "to check and compile"},
		{"%help", "!COMMAND"},
		{"ready := true\n\n!ready", "not found"},
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
	if c := h.Complete(t.Context(), "x := 1\n%t", 9); len(c.Matches) != 1 || c.Matches[0].Text != "%time" || c.Start != 7 || c.End != 9 {
		t.Errorf("%+v", c)
	}
	if c := h.Complete(t.Context(), "%ti\nx := 1", 2); len(c.Matches) != 1 || c.Matches[0].Text != "%time" {
		t.Errorf("%+v", c)
	}
	for code, want := range map[string]string{"!ls": "complete", "%who": "complete", "%nothing": "complete", "for {\n!ls": "incomplete"} {
		if got := h.IsComplete(code).Status; got != want {
			t.Errorf("%q is %s, want %s", code, got, want)
		}
	}
}
