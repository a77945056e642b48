//go:build unix

package cell

import (
	"strings"
	"testing"
)

func TestGoTest(t *testing.T) {
	h := newHost(t, nil)
	for _, c := range []struct{ code, out, fault string }{
		{"%test", "", "%test: found no tests; want func TestName(t *testing.T)"},
		{"func TestSum(t *testing.T) { fmt.Println(\"sums\"); t.Run(\"of one\", func(t *testing.T) { if 1+1 != 2 { t.Fail() } }) }\n%test", "sums\nPASS\n", ""},
		{"func Testing(t *testing.T) { t.Fail() }\nfunc TestNone() { panic(1) }\nfunc TestSkipped(t *testing.T) { t.Skip(); panic(2) }\n%test -v", "--- SKIP: TestSkipped", ""},
		{"%test -v -run=Sum/one", "    --- PASS: TestSum/of_one", ""},
		{"func BenchmarkSum(b *testing.B) { for range b.N { _ = 1 + 1 } }\n%test -benchtime=1x", "BenchmarkSum", ""},
		{"%test", "sums\nPASS\n", ""},
		{"%test\nfunc TestStops(t *testing.T) { t.Fatal(\"here\"); fmt.Println(\"after\") }", "--- FAIL: TestStops", "%test: a test failed"},
		{"func TestPanics(t *testing.T) { var m map[string]int; m[\"\"]++ }\n%test", "assignment to entry in nil map", "%test: a test failed"},
		{"func TestPanics(t *testing.T) { t.Run(\"within\", func(t *testing.T) { panic(\"deep\") }) }\n%test", "--- FAIL: TestPanics/within", "%test: a test failed"},
		{"func TestStops(t *testing.T) { t.Run(\"within\", func(t *testing.T) { os.Exit(3) }) }\n%test", "", "os.Exit(3)"},
		{"func BenchmarkSum(b *testing.B) { b.Run(\"within\", func(b *testing.B) { panic(\"deep\") }) }\n%test -benchtime=1x", "--- FAIL: BenchmarkSum/within", "%test: a test failed"},
		{"func BenchmarkSum(b *testing.B) {}\n%test -nothing", "", "%test: flag provided but not defined: -nothing"},
		{"%test TestSum", "", "%test: want flags of go test, such as -v or -run=NAME, got TestSum"},
		{"flag.VisitAll(func(f *flag.Flag) { fmt.Println(f.Name) })\nfunc TestStops(t *testing.T) {}\nfunc TestPanics(t *testing.T) {}\n%test", "PASS\n", ""},
		{"%test \"\"", "sums\nPASS\n", ""},
	} {
		r, e := run(h, c.code)
		text := r.text()
		fault := ""
		if e != nil {
			fault = e.Value
		}
		if fault != c.fault || !strings.Contains(text, c.out) || strings.Contains(text, "after") || strings.Contains(text, "test.v") {
			t.Errorf("%s\ngot %q and %q, want %q and %q", c.code, text, fault, c.out, c.fault)
		}
	}
	if _, e := run(h, "func TestPanics(t *testing.T) {\n\tpanic(\"lost\")\n}\n%test"); e == nil || strings.Contains(strings.Join(e.Traceback, "\n"), "lost") {
		t.Errorf("the panic is the test's alone: %v", e)
	}
}
