//go:build unix

package cell

import (
	"context"
	"errors"
	"strings"
	"testing"

	"deltafin/kernel"
)

// typing answers what cells ask with these lines.
func typing(r *record, lines ...string) {
	r.input = func(string) (string, error) {
		if len(lines) == 0 {
			return "", errors.New("no more lines")
		}
		line := lines[0]
		lines = lines[1:]
		return line, nil
	}
}

// TestStdin: whatever reads os.Stdin asks the front end, a line at a time.
func TestStdin(t *testing.T) {
	h := newHost(t, nil)
	for _, c := range []struct {
		code, want string
		lines      []string
	}{
		{"in := bufio.NewScanner(os.Stdin)\nfor in.Scan() { if in.Text() == \"end\" { break }; fmt.Print(in.Text(), \";\") }", "stdout:one;two;", []string{"one", "two", "end"}},
		{"in.Scan()\nin.Text()", "result:three", []string{"three"}},
		{"func ask(r io.Reader) string { s, _ := bufio.NewReader(r).ReadString('\\n'); return s }\nf := os.Stdin\nask(f)", "result:four\n", []string{"four"}},
		{"var a, b int\nn, err := fmt.Scan(&a, &b)\nfmt.Sprint(a, b, n, err)", "result:2 3 2 <nil>", []string{"2", "3"}},
		{"var w string\nfmt.Scanln(&w)\nfmt.Fscanln(os.Stdin, &a)\nfmt.Sprint(w, a)", "result:word9", []string{"word", "9"}},
		{"var v []int\njson.NewDecoder(os.Stdin).Decode(&v)\nv", "result:[1 2]", []string{"[1,", "2]"}},
		{"done := make(chan string)\ngo func() { done <- ask(os.Stdin) }()\n<-done", "result:five\n", []string{"five"}},
		{"cmd := exec.Command(\"cat\")\ncmd.Stdin = os.Stdin\nout, err := cmd.Output()\nfmt.Sprint(len(out), err)", "result:0 <nil>", nil},
	} {
		r := newRecord()
		typing(r, c.lines...)
		if e := h.Execute(context.Background(), kernel.Cell{Code: c.code, AllowStdin: true}, r); e != nil || r.text() != c.want {
			t.Fatalf("%s\nerror %v, got %q, want %q", c.code, e, r.text(), c.want)
		}
	}
}

// TestStdinEnds: a front end that gives no input is the end of os.Stdin, for this cell.
func TestStdinEnds(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "b, err := io.ReadAll(os.Stdin)\nfmt.Sprint(len(b), err)", "stderr:os.Stdin has ended: this front end does not allow input requests\n|result:0 <nil>")
	r := mustRun(t, h, "var s string\n_, err = fmt.Scanln(&s)\nerr")
	if !strings.Contains(r.text(), "does not allow input") {
		t.Errorf("%q", r.text())
	}
	r = newRecord()
	typing(r, "again")
	if e := h.Execute(context.Background(), kernel.Cell{Code: "b, _ = io.ReadAll(os.Stdin)\nstring(b)", AllowStdin: true}, r); e != nil || !strings.HasSuffix(r.text(), "result:again\n") {
		t.Errorf("%v %q", e, r.text())
	}
}

// TestStdinInterrupted: an interrupt ends the read, whose goroutine takes nothing of what
// later cells are told.
func TestStdinInterrupted(t *testing.T) {
	h := newHost(t, nil)
	asked := make(chan struct{})
	release := make(chan struct{})
	defer close(release)
	r := newRecord()
	r.input = func(string) (string, error) { close(asked); <-release; return "", errors.New("interrupted") }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan *kernel.CellError, 1)
	go func() {
		done <- h.Execute(ctx, kernel.Cell{Code: "bufio.NewReader(os.Stdin).ReadString('\\n')", AllowStdin: true}, r)
	}()
	<-asked
	cancel()
	if e := <-done; e == nil || e.Name != "interrupted" {
		t.Fatalf("%+v", e)
	}
	r = newRecord()
	typing(r, "mine")
	if e := h.Execute(context.Background(), kernel.Cell{Code: "bufio.NewReader(os.Stdin).ReadString('\\n')", AllowStdin: true}, r); e != nil || r.text() != "result:mine\n\n<nil>" {
		t.Fatalf("%v %q", e, r.text())
	}
}

// TestFlags: package flag is a program's, and ends the cell where it would end that.
func TestFlags(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "n := flag.Int(\"n\", 1, \"a number\")\nflag.Parse()\nfmt.Sprint(*n, flag.NArg(), os.Args)", "result:1 0 [cell]")
	expect(t, h, "n = flag.Int(\"n\", 2, \"again\")\nvar m int\nflag.IntVar(&m, \"m1\", 3, \"\")\nflag.IntVar(&m, \"m1\", 4, \"\")\nfmt.Sprint(*n, m, flag.Lookup(\"n\").Usage)", "result:2 4again")
	expect(t, h, "os.Args = []string{\"cell\", \"-n\", \"3\", \"x\"}\nflag.Parse()\nfmt.Sprint(*n, flag.Args())", "result:3 [x]")
	for _, c := range []struct{ code, value string }{
		{"os.Args = []string{\"cell\", \"-m\"}\nflag.Parse()\nfmt.Print(\"on\")", "os.Exit(2)"},
		{"fs := flag.NewFlagSet(\"tool\", flag.ExitOnError)\nfs.Parse([]string{\"-m\"})\nfmt.Print(\"on\")", "os.Exit(2)"},
		{"type options struct { flag.FlagSet }\nvar o options\no.Init(\"tool\", flag.ExitOnError)\no.Parse([]string{\"-m\"})", "os.Exit(2)"},
	} {
		r, e := run(h, c.code)
		if e == nil || e.Name != "exit" || e.Value != c.value || !strings.Contains(r.text(), "flag provided but not defined: -m") || strings.Contains(r.text(), "stdout:on") {
			t.Errorf("%s: %v %q", c.code, e, r.text())
		}
	}
	if _, e := run(h, "fs.Parse([]string{\"-h\"})"); e != nil {
		t.Error(e)
	}
	expect(t, h, "fs.ErrorHandling() == flag.ExitOnError", "result:true")
	expect(t, h, "fs.Parse(nil)", "result:<nil>")
}

func TestUnsafeWithoutImport(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, "x := [2]int32{1, 2}\n*(*int32)(unsafe.Add(unsafe.Pointer(&x), unsafe.Sizeof(x[0])))", "result:2")
}

// TestHandlers: a cell that is run again gives the default mux its handlers again.
func TestHandlers(t *testing.T) {
	h := newHost(t, nil)
	expect(t, h, `s := httptest.NewServer(nil)
func get(path string) string { r, err := http.Get(s.URL + path); if err != nil { return err.Error() }; b, _ := io.ReadAll(r.Body); return string(b) }
1`, "result:1")
	for _, word := range []string{"one", "two"} {
		expect(t, h, `http.HandleFunc("GET /word", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "`+word+`") })
http.Handle("/gone", http.NotFoundHandler())
get("/word")`, "result:"+word)
	}
	for _, code := range []string{`http.HandleFunc("GET /{x}", http.NotFound); http.HandleFunc("GET /{y}", http.NotFound)`, `http.Handle("/nil", nil)`} {
		if _, e := run(h, code); e == nil || e.Name != "panic" {
			t.Errorf("%s: %v", code, e)
		}
	}
	expect(t, h, "s.Close()", "")
}
