//go:build unix

package cell

import (
	"strings"
	"testing"

	"deltafin/kernel"
)

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		code string
		want question
		ok   bool
	}{
		{"x?", question{"x", 0}, true},
		{" ?strings.Cut \n", question{"strings.Cut", 0}, true},
		{"été??", question{"été", 1}, true},
		{"??x", question{"x", 1}, true},
		{"?", question{"", 0}, true},
		{"x???", question{}, false},
		{"?x?", question{}, false},
		{"x", question{}, false},
		{"", question{}, false},
		{"f(1)?", question{}, false},
		{"x? y", question{}, false},
		{"x?\ny?", question{}, false},
		{"1x?", question{}, false},
	} {
		if q, ok := asked(c.code); q != c.want || ok != c.ok {
			t.Errorf("%q: %v %v", c.code, q, ok)
		}
	}
}

// TestQuestions: what a question shows is what Shift-Tab says of the name.
func TestQuestions(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "// double doubles.\nfunc double(n int) int { return n * 2 }\nx := 1")
	for code, want := range map[string]string{
		"double?":    "page:func double(n int) int\n\ndouble doubles.",
		"??double":   "return n * 2",
		"x?":         "page:x int",
		"?Say":       "has the lab say text",
		"strings?":   "page:package strings\n\nBuilder, Clone, Compare",
		"lab?":       "Say",
		"nothing?":   "stderr:nothing: no such name",
		"?":          "the session's functions: double\n",
		"Say.Never?": "stderr:",
	} {
		r, e := run(h, code)
		if e != nil || !strings.Contains(r.text(), want) {
			t.Errorf("%s: %v %q", code, e, r.text())
		}
		if got := h.IsComplete(code).Status; got != "complete" {
			t.Errorf("%s is %s", code, got)
		}
	}
	if b, found := h.Inspect(t.Context(), "strings.Cut", 11, 0); !found || mustRun(t, h, "strings.Cut?").text() != "page:"+b.Data["text/plain"].(string) {
		t.Errorf("%v %v", found, b)
	}
	r := newRecord()
	if e := h.Execute(t.Context(), kernel.Cell{Code: "x?", Silent: true}, r); e != nil || r.text() != "" {
		t.Errorf("silent: %v %q", e, r.text())
	}
	if r := mustRun(t, h, "exit"); r.text() != "exit:false" {
		t.Errorf("exit: %q", r.text())
	}
	if r := mustRun(t, h, "func exit() { fmt.Println(\"mine\") }\nexit()"); r.text() != "stdout:mine\n" {
		t.Errorf("an exit of the session's: %q", r.text())
	}
	if r := mustRun(t, h, "exit()"); r.text() != "stdout:mine\n" {
		t.Errorf("an exit of an earlier cell's: %q", r.text())
	}
	if _, e := run(h, "x ? 1 : 2"); e == nil {
		t.Error("not a question, and not Go")
	}
}
