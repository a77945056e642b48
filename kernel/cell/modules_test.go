//go:build unix

package cell

import (
	"archive/zip"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"deltafin/kernel"
)

// testModules are modules by path@version, as texts of their files.
var testModules = map[string]map[string]string{
	"example.com/calc@v1.0.0": {
		"go.mod": "module example.com/calc\n\ngo 1.21\n",
		"calc.go": `// Package calc adds up.
package calc

import ("errors"; "fmt"; "strings")

// Version is the module's.
const Version = "one"

// ErrEmpty is what an empty stack says.
var ErrEmpty = errors.New("calc: empty")

var order = append([]string{"var"}, note("call"))

func note(s string) string { fmt.Println("begins:", s); return s }

func init() { order = append(order, "init") }

// Order is how the package began.
func Order() string { return strings.Join(order, ",") }

// A Stack holds numbers.
type Stack struct {
	items []int
	Name  string // of the stack
}

// Push adds x.
func (s *Stack) Push(x int) *Stack { s.items = append(s.items, x); return s }

// Pop takes the last.
func (s *Stack) Pop() (int, error) {
	if len(s.items) == 0 {
		return 0, &Fault{s.Name, ErrEmpty}
	}
	x := s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return x, nil
}

func (s Stack) String() string { return fmt.Sprintf("%s%v", s.Name, s.items) }

type Fault struct { Of string; Err error }

func (f *Fault) Error() string { return f.Of + ": " + f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// A Shape has an area, and only this package makes them.
type Shape interface { Area() Size; sealed(Limits) Limits }

type Size float64

type Limits struct { Low, High float64 }

type square struct{ side float64 }

func (q square) Area() Size { return Size(q.side * q.side) }
func (square) sealed(l Limits) Limits { return Limits{l.High, l.Low} }

func Square(side float64) Shape { return square{side} }

func Sealed(s Shape, l Limits) Limits { return s.sealed(l) }

// Map applies f.
func Map[T, R any](xs []T, f func(T) R) []R {
	var out []R
	for _, x := range xs { out = append(out, f(x)) }
	return out
}

type Pair[K comparable, V any] struct { Key K; Value V }

func (p Pair[K, V]) Swap() (V, K) { return p.Value, p.Key }

type op func(int, int) int

func add(a, b int) int { return a + b }
func sub(a, b int) int { return a - b }

var ops = map[string]op{"+": add, "-": sub}

func Do(name string, a, b int) int { return ops[name](a, b) }

func Fail() { panic("calc failed") }
`,
		"deep/deep.go":       "package deep\n\nimport \"example.com/calc\"\n\nfunc Sum(xs ...int) (n int) {\n\ts := &calc.Stack{}\n\tfor _, x := range xs { s.Push(x) }\n\tfor {\n\t\tx, err := s.Pop()\n\t\tif err != nil { return n }\n\t\tn += x\n\t}\n}\n",
		"fast/fast_amd64.go": "//go:build !noasm\n\npackage fast\n\nfunc Add(a, b int) int\n",
		"fast/fast_noasm.go": "//go:build noasm\n\npackage fast\n\nfunc Add(a, b int) int { return a + b }\n",
		"bare/bare.go":       "package bare\n\nvar quick = ask()\n\nfunc ask() bool { return cpu() > 1 }\n\nfunc cpu() int\n\nfunc Cpu() int { return cpu() }\n\nfunc Two() int { if quick { return 3 }; return 2 }\n",
		"bare/bare.s":        "",
		"withc/withc.go":     "package withc\n\nimport \"C\"\n\nfunc F() {}\n",
		"bad/bad.go":         "package bad\n\nvar X int = \"text\"\n",
		"half/half.go":       "package half\n\nfunc Good() int { return 1 }\n\nfunc Bad() int { return \"text\" }\n",
		"holds/holds.go":     "package holds\n\nimport \"embed\"\n\nvar other int\n\n// Greeting is in a file.\n//\n//go:embed in/hello.txt\nvar Greeting string\n\ntype raw []byte\n\nvar (\n\t//go:embed \"in/hello.txt\"\n\tRaw raw\n\n\t// All has more.\n\t//go:embed in\n\t//go:embed *.md `all:dots`\n\n\tAll embed.FS\n)\n\nvar Size = len(Greeting)\n\nfunc Open(name string) ([]byte, error) { return All.ReadFile(name) }\n",
		"holds/in/hello.txt": "hello\n", "holds/in/_no.txt": "", "holds/in/b/c.txt": "c", "holds/x.md": "md", "holds/dots/.dot": "",
		"lacks/lacks.go":  "package lacks\n\nimport \"example.com/other\"\n\nvar X = other.X\n",
		"program/main.go": "package main\n\nfunc main() {}\n",
	},
	"example.com/calc@v1.1.0": {
		"go.mod":  "module example.com/calc\n\ngo 1.21\n",
		"calc.go": "package calc\n\nconst Version = \"two\"\n",
	},
	"example.com/newer@v1.0.0": {
		"go.mod":   "module example.com/newer\n\ngo 1.99\n",
		"newer.go": "package newer\n",
	},
}

// moduleProxy is a directory that serves testModules.
func moduleProxy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	versions := map[string]string{}
	for module, files := range testModules {
		of, version, _ := strings.Cut(module, "@")
		versions[of] += version + "\n"
		at := path.Join(of, "@v", version)
		write(at+".info", []byte(`{"Version":"`+version+`"}`))
		write(at+".mod", []byte(files["go.mod"]))
		var packed strings.Builder
		z := zip.NewWriter(&packed)
		for name, text := range files {
			w, err := z.Create(module + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		write(at+".zip", []byte(packed.String()))
	}
	for of, list := range versions {
		write(path.Join(of, "@v", "list"), []byte(list))
	}
	return dir
}

// moduleHost runs cells whose Go toolchain knows proxy's modules only.
func moduleHost(t *testing.T, proxy string, env ...string) *Host {
	t.Helper()
	env = append(append(os.Environ(), childEnv+"=1", "GOPROXY="+proxy, "GONOSUMDB=*", "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOMODCACHE="+t.TempDir()), env...)
	h := New(Options{Command: []string{os.Args[0]}, Env: env, Modules: t.TempDir()})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestModules(t *testing.T) {
	h := moduleHost(t, "file://"+moduleProxy(t))
	if r, e := run(h, "%get example.com/nowhere"); e == nil || !strings.Contains(e.Value, "nowhere") || r.text() != "" {
		t.Errorf("got %v, printed %q: want the toolchain's words once", e, r.text())
	}
	for _, c := range []struct{ code, want string }{
		{"%get", "stdout:nothing gotten yet; %get PATH gets a module, such as %get gonum.org/v1/gonum\n"},
		{"import \"example.com/calc\"", "error:%get example.com/calc gets its module"},
		{"%get example.com/nowhere", "error:example.com/nowhere"},
		{"%get -exec=sh example.com/calc", "error:got -exec=sh"},
		{"%get example.com/newer", "error:requires go >= 1.99"},
		{"%get example.com/calc@v1.0.0\nimport \"example.com/calc\"\ncalc.Version", "stdout:…|result:one"},
		{"%get", "stdout:example.com/calc  v1.0.0\n"},
		{"calc.Order()", "result:var,call,init"},
		{"s := (&calc.Stack{Name: \"s\"}).Push(3).Push(4)\ns", "result:s[3 4]"},
		{"s.Pop()", "result:4, <nil>"},
		{"s.Pop()\n_, err := s.Pop()\nfmt.Println(err, errors.Is(err, calc.ErrEmpty))\nvar f *calc.Fault\nerrors.As(err, &f)", "stdout:s: calc: empty true\n|result:true"},
		{"fmt.Sprintf(\"%T %T\", *s, calc.Square(1))", "result:calc.Stack calc.square"},
		{"q := calc.Square(3)\nq.Area()", "result:9"},
		{"calc.Sealed(q, calc.Limits{1, 2})", "result:{Low:2 High:1}"},
		{"type deg int\ncalc.Map([]deg{1, 2}, func(d deg) string { return fmt.Sprintf(\"%T\", d) })", "result:[main.deg main.deg]"},
		{"calc.Pair[string, deg]{\"a\", 2}.Swap()", "result:2, a"},
		{"calc.Do(\"-\", 5, 3) + calc.Do(\"+\", 1, 1)", "result:4"},
		{"type mine struct{ calc.Stack }\nm := &mine{}\nm.Push(7)\nfmt.Sprint(m)", "result:[7]"},
		{"json.Marshal(calc.Limits{1, 2})", "result:[123 34 76 111 119 34 58 49 44 34 72 105 103 104 34 58 50 125], <nil>"},
		{"import \"example.com/calc/deep\"\ndeep.Sum(1, 2, 3)", "result:6"},
		{"import \"example.com/calc/fast\"\nfast.Add(1, 2)", "result:3"},
		{"import \"example.com/calc/bare\"\nbare.Two()", "result:2"},
		{"bare.Cpu()", "error:bare.cpu can't run in a cell: it is written in assembly"},
		{"import \"example.com/calc/half\"\nhalf.Good()", "result:1"},
		{"half.Bad()", "error:half.go:5:"},
		{"import \"example.com/calc/holds\"\nfmt.Sprintf(\"%d %q %q\", holds.Size, holds.Greeting, holds.Raw)", `result:6 "hello\n" "hello\n"`},
		{"import \"io/fs\"\nfs.WalkDir(holds.All, \".\", func(p string, _ fs.DirEntry, err error) error { fmt.Println(p, err); return nil })", "stdout:. <nil>\ndots <nil>\ndots/.dot <nil>\nin <nil>\nin/b <nil>\nin/b/c.txt <nil>\nin/hello.txt <nil>\nx.md <nil>\n|result:<nil>"},
		{"text, err := holds.Open(\"in/b/c.txt\")\nfmt.Sprintf(\"%s %v %T\", text, err, holds.All)", "result:c <nil> embed.FS"},
		{"import \"testing/fstest\"\nfstest.TestFS(holds.All, \"in/b/c.txt\", \"dots/.dot\")", "result:<nil>"},
		{"import \"embed\"", "error:embed"},
		{"import \"example.com/calc/withc\"", "error:cgo"},
		{"import \"example.com/calc/bad\"", "error:bad.go:3:"},
		{"import \"example.com/calc/lacks\"", "error:package example.com/calc/lacks needs example.com/other: "},
		{"import \"example.org/none\"", "error:no module that was gotten has it; %get example.org/none gets it"},
		{"import \"example.com/calc/program\"", "error:it is a program"},
		{"import \"example.com/calc/none\"", "error:example.com/calc/none"},
		{"calc.Nope()", "error:line 1: undefined: calc.Nope"},
		{"calc.Fail()", "error:calc failed"},
		{"if true {\n\t%get example.com/calc@v1.0.0\n}\nlen(calc.Version)", "result:3"},
		{"%reset\n%get example.com/calc\nimport \"example.com/calc\"\ncalc.Version", "stdout:…|result:two"},
	} {
		r, e := run(h, c.code)
		if want, ok := strings.CutPrefix(c.want, "error:"); ok {
			if e == nil || !strings.Contains(e.Value, want) {
				t.Errorf("%s\nerror %v, want %q", c.code, e, want)
			}
			continue
		}
		got := r.text()
		if before, after, ok := strings.Cut(c.want, "…"); ok && strings.HasPrefix(got, before) && strings.HasSuffix(got, after) {
			got = c.want // what the toolchain says is its own
		}
		if e != nil || got != c.want {
			t.Errorf("%s\nerror %v, got %q, want %q", c.code, e, got, c.want)
		}
	}
}

func TestModulesAreKnownToQuestions(t *testing.T) {
	h := moduleHost(t, "file://"+moduleProxy(t))
	mustRun(t, h, "%get example.com/calc@v1.0.0\nimport \"example.com/calc\"\ns := calc.Stack{}")
	for code, want := range map[string]string{"calc.Sq": "Square", "s.Po": "Pop", "calc.Stack{Na": "Name", "import \"example.com/c": "example.com/calc",
		"import \"example.com/calc/deep\"\ndeep.S": "Sum"} {
		c := h.Complete(t.Context(), code, utf8.RuneCountInString(code))
		if len(c.Matches) == 0 || c.Matches[0].Text != want {
			t.Errorf("%s: got %v, want %s", code, c.Matches, want)
		}
	}
	for code, want := range map[string]string{"calc.Map": "Map applies f.", "s.Push": "Push adds x.", "calc": "Package calc adds up.", "s.Name": "of the stack"} {
		b, _ := h.Inspect(t.Context(), code, utf8.RuneCountInString(code), 0)
		if text, _ := b.Data["text/plain"].(string); !strings.Contains(text, want) {
			t.Errorf("%s: got %q, want %q", code, text, want)
		}
	}
}

func TestPanicsInModulesNameThePlace(t *testing.T) {
	h := moduleHost(t, "file://"+moduleProxy(t))
	_, e := run(h, "%get example.com/calc@v1.0.0\nimport \"example.com/calc\"\ncalc.Fail()")
	if text := strings.Join(e.Traceback, "\n"); !strings.Contains(text, "example.com/calc/calc.go:") || !strings.Contains(text, "In[1], line 3:") {
		t.Errorf("got %q", text)
	}
}

func TestModulesOutliveTheChild(t *testing.T) {
	h := moduleHost(t, "file://"+moduleProxy(t))
	mustRun(t, h, "%get example.com/calc@v1.0.0\nimport \"example.com/calc\"")
	if _, e := run(h, "func f(n int) int { return f(n+1) + 1 }\nf(0)"); e == nil {
		t.Fatal("endless recursion ended")
	}
	expect(t, h, "import \"example.com/calc/deep\"\ndeep.Sum(1, 2)", "stdout:begins: call\n|result:3")
	if _, e := run(h, "import \"example.com/calc\"\ncalc.Square(2).Area()"); e != nil {
		t.Error(e)
	}
}

func TestSubshellsShareModules(t *testing.T) {
	h := moduleHost(t, "file://"+moduleProxy(t))
	mustRun(t, h, "%get example.com/calc@v1.0.0\nimport \"example.com/calc\"\ns := &calc.Stack{}\ncalc.Order()")
	if err := h.OpenSubshell("a"); err != nil {
		t.Fatal(err)
	}
	r := newRecord()
	e := h.Execute(t.Context(), kernel.Cell{Code: "var sh calc.Shape = calc.Square(2)\ns.Push(1)\nfmt.Println(calc.Do(\"+\", 1, 2), sh.Area(), calc.Order())", Subshell: "a"}, r)
	if e != nil || r.text() != "stdout:3 4 var,call,init\n" {
		t.Errorf("error %v, got %q", e, r.text())
	}
	expect(t, h, "s", "result:[1]")
}

func TestModulesOfDirectories(t *testing.T) {
	h := moduleHost(t, "file://"+moduleProxy(t))
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.org/mine\n\ngo 1.21\n", "mine.go": "package mine\n\nfunc N() int { return 5 }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if r := mustRun(t, h, "%get "+dir+"\nimport \"example.org/mine\"\nmine.N()"); !strings.HasSuffix(r.text(), "result:5") {
		t.Errorf("got %q", r.text())
	}
	expect(t, h, "%get", "stdout:example.org/mine  "+dir+"\n")
	nameless := t.TempDir()
	if err := os.WriteFile(filepath.Join(nameless, "go.mod"), []byte("go 1.21\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, e := run(h, "%get "+nameless); e == nil || !strings.Contains(e.Value, "want a go.mod with the module's path") {
		t.Errorf("%+v", e)
	}
	// What can't be gotten leaves nothing behind.
	other, newer := t.TempDir(), "module example.org/other\n\ngo 1.99\n"
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte(newer), 0o644); err != nil {
		t.Fatal(err)
	}
	mod := filepath.Join(h.options.Modules, "go.mod")
	before, err := os.ReadFile(mod)
	if err != nil {
		t.Fatal(err)
	}
	if _, e := run(h, "%get "+other); e == nil {
		t.Error("got a module that needs a newer Go")
	}
	if after, err := os.ReadFile(mod); err != nil || string(after) != string(before) {
		t.Errorf("go.mod is %q, %v; it was %q", after, err, before)
	}
	if info, err := os.Stat(h.options.Modules); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the modules' folder: %v, %v", info.Mode(), err)
	}
	if _, e := run(h, "%get ./nowhere"); e == nil || !strings.Contains(e.Value, "want a directory with a go.mod") {
		t.Errorf("got %v", e)
	}
}

func TestNoToolchain(t *testing.T) {
	h := moduleHost(t, "off", "PATH="+t.TempDir())
	if _, e := run(h, "%get example.com/calc"); e == nil || !strings.Contains(e.Value, "found no go on PATH") {
		t.Errorf("got %v", e)
	}
	expect(t, h, "1 + 1", "result:2")
}

func TestGettingIsInterrupted(t *testing.T) {
	asked := make(chan struct{}, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	h := moduleHost(t, s.URL)
	expect(t, h, "x := 4", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-asked
		cancel()
	}()
	if e := h.Execute(ctx, kernel.Cell{Code: "%get example.com/calc"}, newRecord()); e == nil || e.Name != "interrupted" {
		t.Errorf("got %v", e)
	}
	expect(t, h, "x", "result:4")
}
