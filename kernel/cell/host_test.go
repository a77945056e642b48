//go:build unix

package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/display"
)

const childEnv = "CELL_TEST_CHILD"

// TestMain is the child too: the Host under test runs this binary.
func TestMain(m *testing.M) {
	if kind := os.Getenv(childEnv); kind != "" {
		b := testBindings()
		if kind == "plain" {
			b = Bindings{}
		}
		if err := ChildMain(b); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A Reply is what the test's lab returns: plain data that shows itself.
type Reply struct {
	Text   string
	Tokens int
	Result Result
}

// A Result is how a Reply ended.
type Result string

func (r *Reply) DisplayBundle() display.Bundle {
	return display.Text(fmt.Sprintf("%s (%d tokens)", r.Text, r.Tokens))
}

// Words is the reply's words.
func (r *Reply) Words() []string { return strings.Fields(r.Text) }

// Settings is the parameter of Say.
type Settings struct {
	Max     int
	OnToken func(string)
}

// A Failure is what the test's lab panics with.
type Failure struct {
	Func  string
	Cause error
}

func (f *Failure) Error() string                   { return f.Func + ": " + f.Cause.Error() }
func (f *Failure) CellError() (name, value string) { return f.Func, f.Cause.Error() }

func testBindings() Bindings {
	later := func() {}
	return Bindings{
		Exports: func(s *Session) map[string]reflect.Value {
			return map[string]reflect.Value{
				"Result":   reflect.ValueOf((*Result)(nil)),
				"Reply":    reflect.ValueOf((*Reply)(nil)),
				"Settings": reflect.ValueOf((*Settings)(nil)),
				"Say": reflect.ValueOf(func(text string, p ...Settings) *Reply {
					r := &Reply{}
					raw, err := s.Call(s.Context(), "say", text, func(e json.RawMessage) {
						var w string
						json.Unmarshal(e, &w)
						s.Output().Stream("stdout", w+" ")
						if len(p) > 0 && p[0].OnToken != nil {
							p[0].OnToken(w)
						}
					})
					if err != nil && !errors.Is(err, context.Canceled) {
						panic(err)
					}
					json.Unmarshal(raw, r)
					return r
				}),
				"Stats": reflect.ValueOf(func() int {
					raw, err := s.Call(s.Context(), "stats", nil, nil)
					if err != nil {
						panic(err)
					}
					var n int
					json.Unmarshal(raw, &n)
					return n
				}),
				"Ask": reflect.ValueOf(func(prompt string) (string, error) {
					return s.Output().Input(s.Context(), prompt, false)
				}),
				"Fail":     reflect.ValueOf(func() { panic(&Failure{"Fail", errors.New("want a cause, got none")}) }),
				"Failure":  reflect.ValueOf((*Failure)(nil)),
				"Sheet":    reflect.ValueOf(func() display.Bundle { return display.Markdown("*sheet*") }),
				"RawWrite": reflect.ValueOf(func(text string) { rawWrite(text) }),
				"Keep":     reflect.ValueOf(func() *Keep { return &Keep{session: s} }),
				"Beside":   reflect.ValueOf(func(f func()) { beside(s.Callback(f)) }),
				"Later":    reflect.ValueOf(func(f func()) { later = s.Callback(f) }),
			}
		},
		Docs: map[string]Doc{
			"Say":          {Signature: "Say(text string, p ...Settings) *Reply", Doc: "Say has the lab say text, a word at a time."},
			"Result":       {Signature: "type Result", Doc: "Result is how a Reply ended."},
			"Settings.Max": {Doc: "Max is how many words to say."},
		},
		Comm: func(ctx context.Context, m kernel.CommMessage, out kernel.Output) {
			if m.ID == "later" {
				go later()
				return
			}
			out.Comm(kernel.CommMessage{Type: "comm_msg", ID: m.ID, Data: m.Data})
		},
	}
}

// lab answers the test's calls.
type lab struct {
	started   chan struct{} // closed when an endless say has begun
	cancelled chan struct{} // closed when it was cancelled
	once      sync.Once
}

func newLab() *lab { return &lab{started: make(chan struct{}), cancelled: make(chan struct{})} }

func (l *lab) Call(ctx context.Context, method string, params json.RawMessage, event func(json.RawMessage)) (json.RawMessage, error) {
	switch method {
	case "say":
		var text string
		json.Unmarshal(params, &text)
		n := 0
		for w := range strings.FieldsSeq(text) {
			if w == "FOREVER" {
				l.once.Do(func() { close(l.started) })
				<-ctx.Done()
				close(l.cancelled)
				b, _ := json.Marshal(Reply{Text: "partial", Tokens: n})
				return b, ctx.Err()
			}
			b, _ := json.Marshal(w)
			event(b)
			n++
		}
		b, _ := json.Marshal(Reply{Text: text, Tokens: n})
		return b, nil
	case "stats":
		return json.RawMessage("7"), nil
	}
	return nil, fmt.Errorf("lab: no method %q; use say or stats", method)
}

// record is an Output that keeps what it gets.
type record struct {
	mu      sync.Mutex
	events  []string // "stdout:…", adjacent streams joined
	bytes   int
	results []display.Bundle
	comms   []kernel.CommMessage
	slow    time.Duration
	input   func(prompt string) (string, error)
	noted   chan struct{} // gets a token for each event, when there is room
}

func newRecord() *record { return &record{noted: make(chan struct{}, 1)} }

func (r *record) add(kind, text string) {
	r.mu.Lock()
	if n := len(r.events); n > 0 && strings.HasPrefix(r.events[n-1], kind+":") && (kind == "stdout" || kind == "stderr") {
		if len(r.events[n-1]) < 1<<16 {
			r.events[n-1] += text
		}
	} else {
		r.events = append(r.events, kind+":"+text)
	}
	r.bytes += len(text)
	r.mu.Unlock()
	select {
	case r.noted <- struct{}{}:
	default:
	}
	if r.slow > 0 {
		time.Sleep(r.slow)
	}
}

func (r *record) Stream(name, text string) { r.add(name, strings.ToValidUTF8(text, "\uFFFD")) }
func (r *record) Display(b display.Bundle, id string) {
	r.add("display", fmt.Sprint(b.Data["text/plain"]))
}
func (r *record) Update(b display.Bundle, id string) {
	r.add("update", fmt.Sprint(b.Data["text/plain"]))
}
func (r *record) Page(b display.Bundle)     { r.add("page", fmt.Sprint(b.Data["text/plain"])) }
func (r *record) Exit(keep bool)            { r.add("exit", fmt.Sprint(keep)) }
func (r *record) Clear(wait bool)           { r.add("clear", "") }
func (r *record) Comm(m kernel.CommMessage) { r.comms = append(r.comms, m); r.add("comm", m.Type) }
func (r *record) Result(b display.Bundle) {
	r.mu.Lock()
	r.results = append(r.results, b)
	r.mu.Unlock()
	r.add("result", fmt.Sprint(b.Data["text/plain"]))
}

func (r *record) Input(ctx context.Context, prompt string, password bool) (string, error) {
	if r.input == nil {
		return "", errors.New("no input here")
	}
	return r.input(prompt)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.events, "|")
}

// waitFor returns when the record's text holds want; the test's own deadline ends
// a wait that never will.
func (r *record) waitFor(t *testing.T, want string) {
	t.Helper()
	for !strings.Contains(r.text(), want) {
		select {
		case <-r.noted:
		case <-t.Context().Done():
			t.Fatalf("waiting for %q: %q", want, r.text())
		}
	}
}

func newHost(t *testing.T, services Services) *Host {
	t.Helper()
	limit := int64(1 << 30)
	h := New(Options{Command: []string{os.Args[0]}, Env: append(os.Environ(), childEnv+"=1"), MemoryLimit: limit, Services: services})
	t.Cleanup(func() { h.Close() })
	return h
}

func run(h *Host, code string) (*record, *kernel.CellError) {
	r := newRecord()
	return r, h.Execute(context.Background(), kernel.Cell{Code: code, ExecutionCount: 1}, r)
}

func mustRun(t *testing.T, h *Host, code string) *record {
	t.Helper()
	r, e := run(h, code)
	if e != nil {
		t.Fatalf("%s\n%v\n%s", code, e, strings.Join(e.Traceback, "\n"))
	}
	return r
}

func expect(t *testing.T, h *Host, code, want string) {
	t.Helper()
	if got := mustRun(t, h, code).text(); got != want {
		t.Errorf("%s\ngot  %q\nwant %q", code, got, want)
	}
}

func TestMainFunction(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "func main() { fmt.Println(1) }", "stdout:1\n")
	expect(t, h, "func main() { fmt.Println(2) }\n\nmain()", "stdout:2\n")
	expect(t, h, "main()", "stdout:2\n")
	expect(t, h, "func twice() { main(); main() }\ntwice()", "stdout:2\n2\n")
	expect(t, h, "func main() { fmt.Println(3) }", "stdout:3\n")
	expect(t, h, "twice()", "stdout:3\n3\n")
	if _, e := run(h, "func outside(int) string"); e == nil || e.Value != "line 1: missing function body" {
		t.Errorf("%+v", e)
	}
}

func TestStatePersists(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "x := 40\nx + 2", "result:42")
	expect(t, h, "func double(n int) int { return n * 2 }\nx = double(x)", "")
	expect(t, h, "fmt.Println(x)", "stdout:80\n")
	expect(t, h, "x;", "")
}

func TestOrderOfOutputs(t *testing.T) {
	h := newHost(t, nil)
	// Between two descriptors the order of raw writes is not known; everything
	// else has its place.
	expect(t, h, `fmt.Println("a")
fmt.Fprintln(os.Stdout, "b")
println("c")
RawWrite("d\n")
fmt.Println("e")
fmt.Fprintln(os.Stderr, "f")
1 + 1`, "stdout:a\nb\n|stderr:c\n|stdout:d\ne\n|stderr:f\n|result:2")
}

func TestInvalidUTF8(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, `fmt.Print("\xe2\x82"); fmt.Print("\xac"); fmt.Print("\xff"); fmt.Print("é\xc3")`, "stdout:€\uFFFDé\uFFFD")
}

func TestDeaths(t *testing.T) {
	for _, c := range []struct{ name, code, ename, value string }{
		{"recursion", "func f(n int) int { return f(n+1) + 1 }\nf(0)", "stack overflow", "stack"},
		{"memory", "b := make([]byte, 100<<30)\nlen(b)", "out of memory", "memory limit"},
		{"map", `m := map[int]int{}
for i := range 4 {
	go func() {
		for j := 0; ; j++ {
			m[j%8] = i
		}
	}()
}
select {}`, "fatal error", "concurrent map"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if raceEnabled && (c.name == "map" || c.name == "memory" || c.name == "recursion") {
				t.Skip("the race detector's runtime ends such a program in its own way")
			}
			l := newLab()
			h := newHost(t, l)
			mustRun(t, h, "x := 1")
			r, e := run(h, `fmt.Println("before")`+"\n"+c.code)
			if e == nil || e.Name != c.ename || !strings.Contains(e.Value, c.value) {
				t.Fatalf("error %+v; output %q; crash %s", e, r.text(), crashText(h))
			}
			if !strings.Contains(strings.Join(e.Traceback, "\n"), "variables of earlier cells are gone") {
				t.Errorf("traceback %q does not say what is lost", e.Traceback)
			}
			if r.text() != "stdout:before\n" {
				t.Errorf("output %q", r.text())
			}
			if _, e := run(h, "x"); e == nil || !strings.Contains(e.Value, "undefined: x") {
				t.Errorf("x after the death: %v", e)
			}
			expect(t, h, "Stats()", "result:7")
		})
	}
}

// TestGoroutinesThatPanic: wherever a goroutine comes from, its panic ends its cell
// and not the session.
func TestGoroutinesThatPanic(t *testing.T) {
	h := newHost(t, newLab())
	mustRun(t, h, "x := 7\nimport (\"context\"; \"sync\")\nfunc boom() {\n\tpanic(\"boom\")\n}\ntype worker struct{}\nfunc (worker) run(int) { boom() }")
	for _, code := range []string{
		"go func() { boom() }()\nselect {}",
		"go boom()\nselect {}",
		"go worker{}.run(1)\nselect {}",
		"done := make(chan int)\ngo func() { boom(); close(done) }()\n<-done",
		"var wg sync.WaitGroup\nwg.Add(1)\ngo func() { boom(); wg.Done() }()\nwg.Wait()",
		"var g sync.WaitGroup\nfor range 3 { g.Go(boom) }\ng.Wait()\nselect {}",
		"time.AfterFunc(time.Millisecond, boom)\nselect {}",
		"ctx, cancel := context.WithCancel(context.Background())\ncontext.AfterFunc(ctx, func() { boom() })\ncancel()\nselect {}",
		"go func() { go func() { boom() }(); select {} }()\ntime.Sleep(time.Hour)",
		"go Fail()\nselect {}",
		"go close((chan int)(nil))\nselect {}",
		"go func() { boom() }()\nfor {}",
		"go func() { boom() }()\nSay(\"FOREVER\")",
	} {
		_, e := run(h, code)
		want := "boom"
		switch {
		case strings.Contains(code, "Fail"):
			want = "want a cause"
		case strings.Contains(code, "close((chan"):
			want = "close of nil channel"
		}
		if e == nil || !strings.Contains(e.Value, want) {
			t.Errorf("%s\n%+v", code, e)
		} else if tb := strings.Join(e.Traceback, "\n"); want == "boom" && !strings.Contains(tb, "→   3 | \tpanic") && !strings.Contains(tb, "→   4 |     panic") {
			t.Errorf("%s\ntraceback\n%s", code, tb)
		}
		expect(t, h, "x", "result:7")
	}
	// One that outlives its cell says so there.
	r := mustRun(t, h, "gate := make(chan int)\ngo func() { <-gate; boom() }()")
	mustRun(t, h, "close(gate)")
	r.waitFor(t, "boom")
	if !strings.HasPrefix(r.text(), "stderr:") {
		t.Errorf("%q", r.text())
	}
	// A timer's output is its cell's, however late.
	r = mustRun(t, h, "late := make(chan int)\ntime.AfterFunc(time.Millisecond, func() { <-late; fmt.Println(\"tick\") })")
	other := mustRun(t, h, "close(late)\ntime.Sleep(20 * time.Millisecond)")
	r.waitFor(t, "tick")
	if other.text() != "" {
		t.Errorf("%q", other.text())
	}
	expect(t, h, "x", "result:7")
}

func TestGoexit(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "import \"runtime\"\ny := 1\ndefer fmt.Println(\"deferred\")\nruntime.Goexit()\ny = 2", "stdout:deferred\n")
	expect(t, h, "y", "result:1")
	expect(t, h, "func leave() int { runtime.Goexit(); return 1 }\ndone := make(chan int)\ngo func() { defer close(done); leave() }()\n<-done\ny", "result:1")
	if b, e := h.Evaluate(context.Background(), "", "leave()"); e != nil || len(b.Data) != 0 {
		t.Errorf("%v %v", b, e)
	}
	expect(t, h, "y", "result:1")
}

func TestExit(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "x := 5")
	r, e := run(h, "fmt.Println(1)\nos.Exit(3)\nfmt.Println(2)")
	if e == nil || e.Value != "os.Exit(3)" || r.text() != "stdout:1\n" {
		t.Fatalf("%v, %q", e, r.text())
	}
	expect(t, h, "x", "result:5")
	for call, prints := range map[string]string{
		"log.Fatal(1, 2)": "1 2\n", "log.Fatalf(\"%d!\", 5)": "5!\n", "log.Fatalln(3)": "3\n", "log.Default().Fatalln(4, 5)": "4 5\n",
		"func() { defer func() { fmt.Print(recover()) }(); logger.Fatalf(\"no %s\", \"way\") }()": "at: no way\n",
		"struct{ *log.Logger }{logger}.Fatal([]any{6, 7}...)":                                     "at: 6 7\n",
	} {
		r, e := run(h, "import \"log\"\nlog.SetFlags(0)\nlogger := log.New(os.Stderr, \"at: \", 0)\n_ = logger\n"+call+"\nfmt.Println(2)")
		if e == nil || e.Name != "exit" || e.Value != "log.Fatal" || r.text() != "stderr:"+prints {
			t.Errorf("%s: %+v %q", call, e, r.text())
		}
	}
	_, e = run(h, "import \"sync\"\nvar wg sync.WaitGroup\nwg.Add(1)\ngo func() { os.Exit(4) }()\nwg.Wait()")
	if e == nil || e.Value != "os.Exit(4)" {
		t.Fatalf("%v", e)
	}
	expect(t, h, "go func() { os.Exit(0) }()\nselect {}", "")
	expect(t, h, "x", "result:5")
}

func TestPanicsNameTheLine(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "func div(a, b int) int {\n\treturn a / b\n}")
	_, e := run(h, "y := 1\n\ndiv(y, 0)")
	if e == nil || e.Name != "panic" || !strings.Contains(e.Value, "integer divide by zero") {
		t.Fatalf("%+v", e)
	}
	tb := strings.Join(e.Traceback, "\n")
	for _, want := range []string{"return a / b", "line 2", "line 3", "→   3 | div(y, 0)"} {
		if !strings.Contains(tb, want) {
			t.Errorf("traceback lacks %q:\n%s", want, tb)
		}
	}
	if strings.Contains(tb, "yaegi") || strings.Contains(tb, "goroutine ") {
		t.Errorf("traceback shows the interpreter:\n%s", tb)
	}
	expect(t, h, "y", "result:1")
}

func TestErrorsOfExportsHaveTheirNames(t *testing.T) {
	h := newHost(t, nil)
	for _, code := range []string{
		"x := 1\nFail()",
		"func f() {\n\tdefer func() { panic(recover()) }()\n\tFail()\n}\nf()",
		"func g() {\n\tdefer func() { panic(fmt.Errorf(\"outer: %w\", recover().(error))) }()\n\tFail()\n}\ng()",
	} {
		_, e := run(h, code)
		if e == nil || e.Name != "Fail" || e.Value != "want a cause, got none" {
			t.Errorf("%s\n%+v", code, e)
			continue
		}
		tb := strings.Join(e.Traceback, "\n")
		if !strings.Contains(tb, "Fail: "+reset+"want a cause, got none") || !strings.Contains(tb, "→ ") || strings.Contains(tb, "panic:") {
			t.Errorf("traceback:\n%s", tb)
		}
	}
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

func TestRichResults(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, `import ("image"; "image/color")
type shape interface{ area() float64 }
type square struct{ side float64 }
func (s square) area() float64 { return s.side * s.side }
type row struct {
	name string
	N    int
	of   shape
}`)
	for _, c := range []struct{ code, mime, want, text string }{
		{"Sheet()", display.MIMEMarkdown, "*sheet*", "*sheet*"},
		{"s := Sheet()\n&s", display.MIMEMarkdown, "*sheet*", "*sheet*"},
		{"[]row{{\"a\", 1, square{2}}, {\"b\", 2, nil}}", display.MIMEHTML, ">name</th>", "[{name:a N:1 of:{side:2}} {name:b N:2 of:<nil>}]"},
		{"[]row{{\"a\", 1, square{2}}}", display.MIMEHTML, ">{side:2}</td>", "[{name:a N:1 of:{side:2}}]"},
		{"[]image.Point{{1, 2}}", display.MIMEHTML, ">X</th>", "[(1,2)]"},
		{"image.NewUniform(color.Black).At(0, 0)", "", "", "{Y:0}"},
		{"image.NewGray(image.Rect(0, 0, 3, 2))", display.MIMEPNG, "iVBOR", "image, 3 × 2"},
		{"errors.New(\"e\")", "", "", "e"},
		{"[]time.Time{}", "", "", "[]"},
		{"[]int{1, 2}", "", "", "[1 2]"},
		{"[]row{}", "", "", "[]"},
		{"(*image.Gray)(nil)", "", "", "<nil>"},
		{"type node struct { name string; next *node; wait time.Duration }\nn := &node{name: \"n\", wait: time.Second}\nn.next = n\n*n", "", "", "{name:n next:&{name:n next:*node(0x…) as above wait:1s} wait:1s}"},
		{"node{wait: time.Second}", "", "", "{name: next:<nil> wait:1000000000}"},
		{"struct { kind node; numbers []int }{node{}, make([]int, 200)}", "", "", "struct { kind node; numbers []int }{\n    kind: node{name: \"\", next: nil, wait: 0s},\n    numbers: []int{\n        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,\n        … 170 more of 200\n    },\n}"},
		{"func two() (image.Image, error) { return image.NewGray(image.Rect(0, 0, 3, 2)), nil }\ntwo()", display.MIMEHTML, "<pre>&lt;nil&gt;</pre>", "image, 3 × 2, <nil>"},
	} {
		r := mustRun(t, h, c.code)
		if len(r.results) != 1 {
			t.Errorf("%s: %d results", c.code, len(r.results))
			continue
		}
		b := r.results[0]
		if text, _ := b.Data[display.MIMEText].(string); address.ReplaceAllString(text, "0x…") != c.text {
			t.Errorf("%s: text %q, want %q", c.code, text, c.text)
		}
		if got, _ := b.Data[c.mime].(string); c.mime != "" && !strings.Contains(got, c.want) || c.mime == "" && len(b.Data) != 1 {
			t.Errorf("%s: %v", c.code, b.Data)
		}
	}
}

func TestCompileErrorsNameTheLine(t *testing.T) {
	h := newHost(t, nil)
	_, e := run(h, "a := 1\nb := a + \"x\"\n")
	if e == nil || e.Name != "compile error" || !strings.Contains(e.Value, "line 2") || !strings.Contains(strings.Join(e.Traceback, "\n"), `b := a + "x"`) {
		t.Fatalf("%+v", e)
	}
	if _, e := run(h, "for i := 0; i < {"); e == nil || !strings.Contains(e.Value, "expected") {
		t.Fatalf("%+v", e)
	}
}

// interruptAfter runs code and interrupts it when it has printed "go".
func interruptAfter(t *testing.T, h *Host, code string) (*record, *kernel.CellError) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := newRecord()
	done := make(chan *kernel.CellError, 1)
	go func() { done <- h.Execute(ctx, kernel.Cell{Code: code, ExecutionCount: 1}, r) }()
	r.waitFor(t, "go")
	cancel()
	return r, <-done
}

func TestInterruptKeepsVariables(t *testing.T) {
	l := newLab()
	h := newHost(t, l)
	mustRun(t, h, "x := 1\ncount := func() int { x++; return x }\nvar mu sync.Mutex\nmu.Lock()")
	for _, code := range []string{
		`fmt.Println("go"); for { }`,
		`fmt.Println("go"); for { x++ }`,
		`fmt.Println("go"); time.Sleep(time.Hour)`,
		`fmt.Println("go"); <-make(chan int)`,
		`fmt.Println("go"); make(chan int) <- 1`,
		`fmt.Println("go"); select {}`,
		`fmt.Println("go"); for range time.Tick(time.Millisecond) { }`,
		`fmt.Println("go"); mu.Lock()`,
		`fmt.Println("go"); func() { for { count() } }()`,
		`fmt.Println("go"); sort.Slice(make([]int, 100), func(i, j int) bool { for { } })`,
	} {
		_, e := interruptAfter(t, h, code)
		if e == nil || e.Name != "interrupted" {
			t.Fatalf("%s: %+v", code, e)
		}
		// Variables and closures of earlier cells still work.
		expect(t, h, "x = 10; count()", "result:11")
	}
}

func TestInterruptLeavesOtherGoroutines(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "beats := make(chan int)\ngo func() { for i := 0; ; i++ { beats <- i } }()")
	interruptAfter(t, h, `fmt.Println("go"); for { }`)
	expect(t, h, "fmt.Println(<-beats, <-beats)", "stdout:0 1\n")
}

func TestServices(t *testing.T) {
	l := newLab()
	h := newHost(t, l)
	expect(t, h, `r := Say("one two three"); r`, "stdout:one two three |result:one two three (3 tokens)")
	expect(t, h, `len(r.Words()) + r.Tokens`, "result:6")
	expect(t, h, `n := 0; lab.Say("a b", lab.Settings{OnToken: func(s string) { n += len(s) }}); n`, "stdout:a b |result:2")
	// Far more events than may be on their way at once.
	expect(t, h, `Say(strings.Repeat("w ", 5000)).Tokens`, "stdout:"+strings.Repeat("w ", 5000)+"|result:5000")
	ctx, cancel := context.WithCancel(context.Background())
	r := newRecord()
	done := make(chan *kernel.CellError, 1)
	go func() {
		done <- h.Execute(ctx, kernel.Cell{Code: "p := Say(\"some FOREVER\")\nfmt.Println(\"rest\")"}, r)
	}()
	<-l.started
	cancel()
	<-l.cancelled
	if e := <-done; e == nil || e.Name != "interrupted" || r.text() != "stdout:some " {
		t.Fatalf("%+v, %q", e, r.text())
	}
	// The statement that was interrupted has its value.
	expect(t, h, "p", "result:partial (1 tokens)")
}

func TestServiceErrors(t *testing.T) {
	h := newHost(t, nil)
	_, e := run(h, "Stats()")
	if e == nil || !strings.Contains(e.Value, "no lab in this process") {
		t.Fatalf("%+v", e)
	}
}

func TestSubshell(t *testing.T) {
	l := newLab()
	h := newHost(t, l)
	mustRun(t, h, "x := 3\ntype pair struct{ a, b int }\nfunc (p pair) sum() int { return p.a + p.b + x }\nfunc twice(n int) int { return 2 * n }\np := pair{1, 2}")
	if err := h.OpenSubshell("s"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	main := newRecord()
	done := make(chan *kernel.CellError, 1)
	go func() { done <- h.Execute(ctx, kernel.Cell{Code: `Say("some FOREVER")`}, main) }()
	<-l.started
	sub := func(code, want string) {
		t.Helper()
		r := newRecord()
		if e := h.Execute(context.Background(), kernel.Cell{Code: code, Subshell: "s"}, r); e != nil || r.text() != want {
			t.Errorf("%s: %v %q, want %q", code, e, r.text(), want)
		}
	}
	sub("Stats()", "result:7")
	sub("twice(x)", "result:6")
	sub("x = 8; p.sum()", "result:11")
	sub("y := 5", "")
	// Interrupting the subshell leaves the main shell alone.
	sctx, scancel := context.WithCancel(context.Background())
	r := newRecord()
	sdone := make(chan *kernel.CellError, 1)
	go func() { sdone <- h.Execute(sctx, kernel.Cell{Code: `fmt.Println("go"); for { }`, Subshell: "s"}, r) }()
	r.waitFor(t, "go")
	scancel()
	if e := <-sdone; e == nil || e.Name != "interrupted" {
		t.Errorf("%+v", e)
	}
	select {
	case e := <-done:
		t.Fatalf("the main shell's cell ended: %v", e)
	default:
	}
	cancel()
	<-done
	expect(t, h, "x + y", "result:13")
	if err := h.CloseSubshell("s"); err != nil {
		t.Fatal(err)
	}
}

func TestLateOutputBelongsToItsCell(t *testing.T) {
	h := newHost(t, nil)
	first := mustRun(t, h, `gate := make(chan bool)
go func() { <-gate; fmt.Println("late"); gate <- true }()`)
	second := mustRun(t, h, `fmt.Println("second"); gate <- true; _ = <-gate`)
	first.waitFor(t, "late")
	if got := second.text(); got != "stdout:second\n" {
		t.Errorf("second cell has %q", got)
	}
}

func TestLargeOutput(t *testing.T) {
	h := newHost(t, nil)
	n := 100 << 20
	if testing.Short() || raceEnabled {
		n = 8 << 20
	}
	r := newRecord()
	e := h.Execute(context.Background(), kernel.Cell{Code: fmt.Sprintf(`line := strings.Repeat("x", 1023) + "\n"
for range %d { fmt.Print(line) }`, n/1024)}, r)
	if e != nil || r.bytes != n {
		t.Fatalf("%v, %d bytes, want %d", e, r.bytes, n)
	}
}

func TestSlowFrontEndHoldsTheCell(t *testing.T) {
	h := newHost(t, nil)
	r := newRecord()
	r.slow = 2 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan *kernel.CellError, 1)
	go func() {
		done <- h.Execute(ctx, kernel.Cell{Code: `for i := 0; ; i++ { fmt.Println(strings.Repeat("y", 1000)) }`}, r)
	}()
	r.waitFor(t, strings.Repeat("y", 1000))
	cancel()
	if e := <-done; e == nil || e.Name != "interrupted" {
		t.Fatalf("%+v", e)
	}
}

func TestInput(t *testing.T) {
	h := newHost(t, nil)
	r := newRecord()
	r.input = func(p string) (string, error) { return "answer to " + p, nil }
	if e := h.Execute(context.Background(), kernel.Cell{Code: `Ask("why?")`, AllowStdin: true}, r); e != nil || !strings.Contains(r.text(), "answer to why?") {
		t.Fatalf("%v %q", e, r.text())
	}
	r = mustRun(t, h, `_, err := Ask("why?"); err`)
	if !strings.Contains(r.text(), "does not allow input") {
		t.Errorf("%q", r.text())
	}
}

func TestComm(t *testing.T) {
	h := newHost(t, nil)
	r := newRecord()
	h.Comm(context.Background(), kernel.CommMessage{Type: "comm_msg", ID: "w", Data: json.RawMessage(`{"a":1}`), Buffers: [][]byte{{1, 2}}}, r)
	r.waitFor(t, "comm")
	if r.comms[0].ID != "w" || string(r.comms[0].Data) != `{"a":1}` {
		t.Errorf("%+v", r.comms)
	}
}

func TestCommOfUnknownTarget(t *testing.T) {
	h := New(Options{Command: []string{os.Args[0]}, Env: append(os.Environ(), childEnv+"=plain")})
	t.Cleanup(func() { h.Close() })
	r := newRecord()
	h.Comm(context.Background(), kernel.CommMessage{Type: "comm_open", ID: "w", TargetName: "none", Data: json.RawMessage(`{}`)}, r)
	r.waitFor(t, "comm_close")
	if r.comms[0].ID != "w" || r.comms[0].Type != "comm_close" {
		t.Errorf("%+v", r.comms)
	}
	h.Comm(context.Background(), kernel.CommMessage{Type: "comm_msg", ID: "v", Data: json.RawMessage(`{}`)}, r)
	h.Comm(context.Background(), kernel.CommMessage{Type: "comm_close", ID: "v", Data: json.RawMessage(`{}`)}, r)
	if expect(t, h, "1", "result:1"); len(r.comms) != 1 {
		t.Errorf("%+v", r.comms)
	}
}

// A long cell keeps its place however many cells and comm messages come and go beside it.
func TestManyRunsBesideACell(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "gate := make(chan bool)")
	if err := h.OpenSubshell("s"); err != nil {
		t.Fatal(err)
	}
	r := newRecord()
	done := make(chan *kernel.CellError, 1)
	go func() {
		done <- h.Execute(context.Background(), kernel.Cell{Code: `fmt.Println("begun"); <-gate; fmt.Println("ended")`}, r)
	}()
	r.waitFor(t, "begun")
	for i := range keptCells + 10 {
		h.Comm(context.Background(), kernel.CommMessage{Type: "comm_msg", ID: "w", Data: json.RawMessage(`{}`)}, newRecord())
		if e := h.Execute(context.Background(), kernel.Cell{Code: fmt.Sprint(i), Subshell: "s"}, newRecord()); e != nil {
			t.Fatal(e)
		}
	}
	if e := h.Execute(context.Background(), kernel.Cell{Code: "gate <- true", Subshell: "s"}, newRecord()); e != nil {
		t.Fatal(e)
	}
	select {
	case e := <-done:
		if got := r.text(); e != nil || got != "stdout:begun\nended\n" {
			t.Errorf("%v, %q", e, got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the long cell never ended")
	}
}

func TestEvaluate(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "x := 20")
	b, e := h.Evaluate(context.Background(), "", "x * 2")
	if e != nil || b.Data["text/plain"] != "40" {
		t.Fatalf("%v %v", b, e)
	}
	if _, e := h.Evaluate(context.Background(), "", "nope"); e == nil {
		t.Error("no error")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	l := newLab()
	h := New(Options{Command: []string{os.Args[0]}, Env: append(os.Environ(), childEnv+"=1"), Services: l})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan *kernel.CellError, 1)
	go func() { done <- h.Execute(ctx, kernel.Cell{Code: `Say("x FOREVER")`}, newRecord()) }()
	<-l.started
	pid := h.child.cmd.Process.Pid
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if alive(pid) {
		t.Errorf("the child %d lives", pid)
	}
	if _, e := run(h, "1"); e == nil {
		t.Error("a closed host runs cells")
	}
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
}

func TestKilledWhenStuck(t *testing.T) {
	h := New(Options{Command: []string{os.Args[0]}, Env: append(os.Environ(), childEnv+"=1"), InterruptGrace: 300 * time.Millisecond})
	defer h.Close()
	mustRun(t, h, "x := 1")
	r := newRecord()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan *kernel.CellError, 1)
	go func() { done <- h.Execute(ctx, kernel.Cell{Code: `fmt.Println("go"); select {}`}, r) }()
	r.waitFor(t, "go")
	pause(h.child.cmd.Process.Pid)
	cancel()
	if e := <-done; e == nil || e.Name != "interrupted" || !strings.Contains(strings.Join(e.Traceback, " "), "variables of earlier cells are gone") {
		t.Fatalf("%+v", e)
	}
	expect(t, h, "1 + 1", "result:2")
}

func crashText(h *Host) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.child == nil {
		return ""
	}
	s := h.child.crash.String()
	return s[:min(len(s), 4000)]
}

// TestErrorsOfAnySizeEndTheirCell: an error's text is a cell's to choose.
func TestErrorsOfAnySizeEndTheirCell(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "x := 5\ntype long int\nfunc (l long) Error() string { return strings.Repeat(\"é\", int(l)) }")
	size := 70 << 20 // more than a frame takes
	if raceEnabled {
		size = 1 << 20 // the race detector's own memory would break the child's limit
	}
	for _, c := range []struct{ code, want string }{
		{fmt.Sprintf("panic(strings.Repeat(\"z\", %d))", size), fmt.Sprintf("zzz… (%d more bytes)", size-maxErrorText+256)},
		{"panic(long(100_000))", fmt.Sprintf("éé… (%d more bytes)", 200_000-maxErrorText+256)},
		{strings.Repeat("nothing(1)\n", 3000), "undefined: nothing"},
		{"x = \"" + strings.Repeat("y", 1<<20) + "\"", "more bytes)"},
	} {
		_, e := run(h, c.code)
		if e == nil || !strings.Contains(e.Value+strings.Join(e.Traceback, ""), c.want) {
			t.Fatalf("%.40s: %.300v", c.code, e)
		}
		if n := len(strings.Join(e.Traceback, "")); n > maxTraceback+100 || len(e.Value) > maxErrorText+100 {
			t.Errorf("%.40s: %d bytes of traceback, %d of value", c.code, n, len(e.Value))
		}
	}
	expect(t, h, "x", "result:5")
}

// TestFramesThatAreTooLarge: each is answered by what it was to carry and could not.
func TestFramesThatAreTooLarge(t *testing.T) {
	if raceEnabled {
		t.Skip("the limit of memory doesn't hold for the race detector's")
	}
	big := strings.Repeat("w", maxFrame)
	h := newHost(t, newLab())
	mustRun(t, h, "x := 5\nbig := strings.Repeat(\"w\", 64<<20)")
	r := newRecord()
	r.input = func(string) (string, error) { return big, nil }
	for _, c := range []struct{ code, want string }{
		{"answer, err := Ask(\"?\")\nfmt.Println(len(answer), err)", "stdout:0 cell: frame"},
		{"func() (e any) { defer func() { e = recover() }(); Say(big); return nil }()", "result:cell: frame"},
	} {
		r.events = nil
		if e := h.Execute(t.Context(), kernel.Cell{Code: c.code, AllowStdin: true}, r); e != nil || !strings.Contains(r.text(), c.want) {
			t.Errorf("%s: %.200v %.200s", c.code, e, r.text())
		}
	}
	r = newRecord()
	h.Comm(t.Context(), kernel.CommMessage{Type: "comm_open", ID: "a", Data: json.RawMessage(`"` + big + `"`)}, r)
	if !strings.HasPrefix(r.text(), "stderr:cell: frame") {
		t.Errorf("%.200s", r.text())
	}
	expect(t, h, "x", "result:5")
}

// TestEventsThatAreTooLarge: the call fails and says so.
func TestEventsThatAreTooLarge(t *testing.T) {
	h := newHost(t, flood{})
	_, e := run(h, "Say(\"a\")")
	if e == nil || !strings.Contains(e.Value, "want at most") {
		t.Fatalf("%.200v", e)
	}
	expect(t, h, "1 + 1", "result:2")
}

// A flood answers each call with an event that no frame holds.
type flood struct{}

func (flood) Call(ctx context.Context, method string, params json.RawMessage, event func(json.RawMessage)) (json.RawMessage, error) {
	event(json.RawMessage(`"` + strings.Repeat("w", maxFrame) + `"`))
	return json.RawMessage("{}"), nil
}

// TestDeathBetweenCellsIsTold: the next cell says that the variables are gone,
// once, and first.
func TestDeathBetweenCellsIsTold(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "x := 1")
	kill(h.child.cmd.Process.Pid)
	<-h.child.gone
	r := newRecord()
	if e := h.Execute(t.Context(), kernel.Cell{Code: "1", Silent: true}, r); e != nil || r.text() != "" {
		t.Errorf("silent: %v %q", e, r.text())
	}
	r = mustRun(t, h, "fmt.Println(2)")
	if !strings.HasPrefix(r.text(), "stderr:The process that held the variables ended between cells") || !strings.HasSuffix(r.text(), "|stdout:2\n") {
		t.Errorf("%q", r.text())
	}
	expect(t, h, "3", "result:3")
}

// TestProgramsOfCellsEnd: what a cell starts ends with its interrupt, or with the
// child at the latest, whoever ends that.
func TestProgramsOfCellsEnd(t *testing.T) {
	const starts = "import \"os/exec\"\nimport \"context\"\nfunc start(c *exec.Cmd) int { if err := c.Start(); err != nil { panic(err) }; return c.Process.Pid }\n"
	pids := func(text string) (pids []int) {
		for _, f := range strings.Fields(strings.TrimPrefix(text, "stdout:")) {
			var n int
			if _, err := fmt.Sscan(f, &n); err != nil {
				t.Fatalf("%q", text)
			}
			pids = append(pids, n)
		}
		return pids
	}
	wantEnd := func(t *testing.T, pids []int) {
		t.Helper()
		for _, pid := range pids {
			for running(pid) {
				if t.Context().Err() != nil {
					t.Fatalf("%d runs", pid)
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	h := newHost(t, nil)
	mustRun(t, h, starts)
	kept := pids(mustRun(t, h, "fmt.Println(start(exec.Command(\"sleep\", \"1000\")))").text())
	for _, code := range []string{
		"c := exec.Command(\"sleep\", \"1000\")\nfmt.Println(start(c), 0)\nc.Wait()",
		"c := exec.CommandContext(context.Background(), \"sleep\", \"1000\")\nfmt.Println(start(c), 0)\nc.Wait()",
		// A program's own program, which holds the pipe.
		"c := exec.Command(\"sh\", \"-c\", \"sleep 1000 & echo $! $$; wait\")\nc.Stdout = os.Stdout\nc.Run()",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRecord()
		done := make(chan *kernel.CellError, 1)
		go func() { done <- h.Execute(ctx, kernel.Cell{Code: code}, r) }()
		r.waitFor(t, "\n")
		cancel()
		if e := <-done; e == nil || e.Name != "interrupted" {
			t.Errorf("%s\n%v", code, e)
		}
		for _, pid := range pids(r.text()) {
			if pid != 0 {
				wantEnd(t, []int{pid})
			}
		}
		expect(t, h, "1 + 1", "result:2")
	}
	if !running(kept[0]) {
		t.Error("the interrupt of one cell ended a program of another")
	}
	// A child that is killed, one that is closed, and one whose parent is gone.
	kill(h.child.cmd.Process.Pid)
	wantEnd(t, kept)
	for _, end := range []func(*Host){
		func(h *Host) { h.Close() },
		func(h *Host) { h.child.stdin.Close() },
	} {
		h := newHost(t, nil)
		mustRun(t, h, starts)
		started := pids(mustRun(t, h, "fmt.Println(start(exec.Command(\"sh\", \"-c\", \"trap '' HUP TERM; sleep 1000\")), start(exec.Command(\"sleep\", \"1000\")))").text())
		end(h)
		wantEnd(t, started)
	}
}
