//go:build unix

package cell

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"deltafin/kernel"
)

func TestComplete(t *testing.T) {
	h := newHost(t, newLab())
	mustRun(t, h, "type point struct{ X, Y int }\nfunc (p point) Norm() int { return p.X }\npivot := point{1, 2}\nimport str \"strings\"")
	for _, c := range []struct {
		code string // | is the cursor
		want []string
		not  []string
	}{
		{"pi|", []string{"pivot"}, []string{"point"}},
		{"po|", []string{"point"}, []string{"pivot"}},
		{"pivot.|", []string{"X", "Y", "Norm"}, []string{"pivot"}},
		{"pivot.N|", []string{"Norm"}, []string{"X"}},
		{"str.ToU|", []string{"ToUpper"}, []string{"ToLower"}},
		{"strings.Has|", []string{"HasPrefix", "HasSuffix"}, nil},
		{"fmt.Println(pivot.|", []string{"X", "Norm"}, nil},
		{"for i := range 3 {\n\tpivot.|", []string{"X"}, nil},
		{"func f(alpha int) int {\n\treturn alp|", []string{"alpha"}, nil},
		{"func f(alpha int) int {\n\tbeta := alpha\n\treturn be|\n}", []string{"beta"}, nil},
		{"Sa|", []string{"Say"}, nil},
		{"lab.S|", []string{"Say", "Settings", "Stats"}, nil},
		{"Settings{M|", []string{"Max"}, nil},
		{"Say(\"x\").W|", []string{"Words"}, nil},
		{"re|", []string{"return", "recover", "real", "reflect"}, nil},
		{"é := pivot; é.|", []string{"Norm"}, nil},
		{"\"a string pi|", nil, []string{"pivot"}},
		{"// pi|", nil, []string{"pivot"}},
		{"http.Status|", []string{"StatusOK"}, nil},
	} {
		before, after, _ := strings.Cut(c.code, "|")
		var raw kernel.Completions
		if e := h.request(context.Background(), reqComplete, "", cursorData{Code: before + after, Cursor: utf8.RuneCountInString(before)}, &raw); e != nil {
			t.Fatalf("%q: %v\n%s", c.code, e, strings.Join(e.Traceback, "\n"))
		}
		got := h.Complete(context.Background(), before+after, utf8.RuneCountInString(before))
		var names []string
		for _, m := range got.Matches {
			names = append(names, m.Text)
		}
		for _, w := range c.want {
			if !slices.Contains(names, w) {
				t.Errorf("%q: %q lacks %q", c.code, names, w)
			}
		}
		for _, w := range c.not {
			if slices.Contains(names, w) {
				t.Errorf("%q: %q has %q", c.code, names, w)
			}
		}
		if got.End != utf8.RuneCountInString(before) || got.Start > got.End {
			t.Errorf("%q: from %d to %d", c.code, got.Start, got.End)
		}
	}
	// A field has its own type, whatever else has its name.
	got := h.Complete(context.Background(), "Say(\"x\").Res", 12)
	if len(got.Matches) != 1 || got.Matches[0].Signature != "Result" {
		t.Errorf("%+v", got.Matches)
	}
	// Completing declares nothing and leaves names alone.
	expect(t, h, "pivot.Norm()", "result:1")
}

func TestInspect(t *testing.T) {
	h := newHost(t, newLab())
	mustRun(t, h, "// area is width by height.\nfunc area(w, h int) int {\n\treturn w * h\n}\nside := 3")
	for _, c := range []struct {
		code   string
		detail int
		want   []string
	}{
		{"ar|ea(1, 2)", 0, []string{"func area(w, h int) int", "area is width by height."}},
		{"area(1, |", 0, []string{"func area"}},
		{"area|", 1, []string{"return w * h"}},
		{"strings.Repeat|", 0, []string{"func Repeat(s string, count int) string", "Repeat returns a new string"}},
		{"side|", 0, []string{"side int"}},
		{"Say|(\"x\")", 0, []string{"Say(text string, p ...Settings) *Reply", "a word at a time"}},
		{"Settings{Max|: 3}", 0, []string{"Max int", "how many words"}},
		{"Settings{Max|", 0, []string{"Max int", "how many words"}},
		{"Settings{Max: 1, OnToken|", 0, []string{"OnToken func(string)"}},
		{"strings.Builder|", 0, []string{"type Builder struct\n"}},
		{"var b strings.Builder\nb.WriteString|", 0, []string{"WriteString(s string) (int, error)"}},
	} {
		before, after, _ := strings.Cut(c.code, "|")
		b, found := h.Inspect(context.Background(), before+after, utf8.RuneCountInString(before), c.detail)
		text, _ := b.Data["text/plain"].(string)
		if !found {
			t.Errorf("%q: nothing found", c.code)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%q: %q lacks %q", c.code, text, w)
			}
		}
	}
	if _, found := h.Inspect(context.Background(), "nothing", 3, 0); found {
		t.Error("found nothing")
	}
}

func TestCompleteWhileBusy(t *testing.T) {
	h := newHost(t, newLab())
	mustRun(t, h, "counter := 0")
	ctx, cancel := context.WithCancel(context.Background())
	r := newRecord()
	done := make(chan *kernel.CellError, 1)
	go func() { done <- h.Execute(ctx, kernel.Cell{Code: `fmt.Println("go"); for { counter++ }`}, r) }()
	r.waitFor(t, "go")
	got := h.Complete(context.Background(), "count", 5)
	if len(got.Matches) != 1 || got.Matches[0].Text != "counter" {
		t.Errorf("%+v", got)
	}
	cancel()
	<-done
}

func TestIsComplete(t *testing.T) {
	for _, c := range []struct{ code, status, indent string }{
		{"x := 1", "complete", ""},
		{"", "complete", ""},
		{"func f() {", "incomplete", "    "},
		{"func f() {\n\tfor {", "incomplete", "        "},
		{"fmt.Println(", "incomplete", "    "},
		{"x := 1 +", "incomplete", ""},
		{"x := `raw", "incomplete", ""},
		{"/* comment", "incomplete", ""},
		{"x := 3 + ) 4", "invalid", ""},
		{"x := := 2", "invalid", ""},
		{"if x > 1 {\n}", "complete", ""},
		{"type t struct {\n\ta int\n", "incomplete", "    "},
		{"s := \"unterminated", "invalid", ""},
	} {
		if got := isComplete(c.code); got.Status != c.status || got.Indent != c.indent {
			t.Errorf("%q: %+v, want %s %q", c.code, got, c.status, c.indent)
		}
	}
}

// FuzzIsComplete: any text is one of the four, and no panic.
func FuzzIsComplete(f *testing.F) {
	for _, s := range []string{"x := 1", "func f() {", "`", "//line x:1", "}{", "import \"fmt\"", "var x = []int{1,", "a:\nfor {}", "\xff", "func (a b) c[", "/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		switch c := isComplete(s); c.Status {
		case "complete", "incomplete", "invalid", "unknown":
		default:
			t.Errorf("%+v", c)
		}
	})
}

// TestTypesOfOthers: a cell may give the types of the lab and of dot imports other
// names, and methods through a type of its own.
func TestTypesOfOthers(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "type P = Settings\nP{Max: 3}.Max", "result:3")
	expect(t, h, "type Q Settings\ntype P2 = P\nQ{Max: P2{Max: 4}.Max}.Max", "result:4")
	expect(t, h, "import . \"strings\"\ntype B = Builder\nvar b B\nb.Len()", "result:0")
	expect(t, h, "type R struct{ *Reply }\nfunc (r R) Twice() int { return 2 }\nR{}.Twice()", "result:2")
	for _, code := range []string{"func (r *Reply) Twice() int { return 2 }", "func (p P) Twice() int { return 2 }"} {
		if _, e := run(h, code); e == nil || e.Name != "compile error" || !strings.Contains(e.Value, "cannot define a method on") {
			t.Errorf("%s: %v", code, e)
		}
	}
}

// TestSpareProcessors: cells don't see the processors that the child keeps for
// questions.
func TestSpareProcessors(t *testing.T) {
	h := newHost(t, nil)
	n := runtime.GOMAXPROCS(0)
	expect(t, h, "runtime.GOMAXPROCS(0)", "result:"+strconv.Itoa(n))
	expect(t, h, "runtime.GOMAXPROCS(5)", "result:"+strconv.Itoa(n))
	expect(t, h, "runtime.GOMAXPROCS(0)", "result:5")
}
