package cell

import (
	"errors"
	"flag"
	"go/ast"
	"go/types"
	"io"
	"reflect"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"deltafin/internal/third_party/yaegi/interp"
)

// goTest is %test: it runs the tests and benchmarks with the names that here lists, those
// of the cell, or where it lists none the session's tests, as go test does, whose flags
// args are. It panics with a *magicFault where one fails.
func (c *child) goTest(here string, args ...string) {
	if !c.testing.TryLock() {
		panic(&magicFault{"%test: the tests of a cell that was interrupted have not ended yet"})
	}
	defer c.testing.Unlock()
	tests, benchmarks := c.sessionTests(strings.Fields(here))
	if len(tests)+len(benchmarks) == 0 {
		panic(&magicFault{"%test: found no tests; want func TestName(t *testing.T)"})
	}
	var given []string
	bench := here == "" || len(benchmarks) == 0
	for _, a := range args {
		if name := strings.TrimLeft(a, "-"); name != a {
			a = "-test." + strings.TrimPrefix(name, "test.")
		}
		bench = bench || a == "-test.bench" || strings.HasPrefix(a, "-test.bench=")
		if a != "" {
			given = append(given, a)
		}
	}
	if !bench {
		given = append(given, "-test.bench=.")
	}
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for name, f := range c.testFlags {
		f.Value.Set(f.DefValue)
		flags.Var(f.Value, name, f.Usage)
	}
	if err := flags.Parse(given); err != nil {
		panic(&magicFault{"%test: " + strings.ReplaceAll(err.Error(), "-test.", "-")})
	}
	if flags.NArg() > 0 {
		panic(&magicFault{"%test: want flags of go test, such as -v or -run=NAME, got " + flags.Arg(0)})
	}
	before := flag.CommandLine
	flag.CommandLine = flags
	defer func() { flag.CommandLine = before }()
	if testing.MainStart(testRun{}, tests, benchmarks, nil, nil).Run() != 0 {
		panic(&magicFault{"%test: a test failed"})
	}
}

// sessionTests are the tests and benchmarks of the session, or only those with the names,
// in the order of their names.
func (c *child) sessionTests(only []string) (tests []testing.InternalTest, benchmarks []testing.InternalBenchmark) {
	seen := c.main().table.seen.Load()
	for _, name := range seen.names.Names() {
		f, ok := seen.names.Lookup(name).(*types.Func)
		if !ok || len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		d := seen.decls[f]
		if d == nil || d.home == nil {
			continue
		}
		call, ok := d.home.interp.Func(d.run)
		switch {
		case !ok:
		case isTest(name, "Test") && takes(f, "*testing.T"):
			tests = append(tests, testing.InternalTest{Name: name, F: guardTest(c, func(t *testing.T) { call([]reflect.Value{reflect.ValueOf(t)}) })})
		case isTest(name, "Benchmark") && takes(f, "*testing.B"):
			benchmarks = append(benchmarks, testing.InternalBenchmark{Name: name, F: guardTest(c, func(b *testing.B) { call([]reflect.Value{reflect.ValueOf(b)}) })})
		}
	}
	return tests, benchmarks
}

// guardTest makes a panic of f the failure of its test: package testing would end the
// process. A test of a cell that has been stopped fails too, having ended early.
func guardTest[T testing.TB](c *child, f func(T)) func(T) {
	return func(t T) {
		defer func() {
			if r := recover(); r != nil {
				e := c.main().panicError(c.current().run, interp.Panic{Value: r})
				t.Errorf("%s", strings.Join(e.Traceback, "\n"))
			}
			if c.current().ctx.Err() != nil {
				t.Error("the cell was stopped")
			}
		}()
		f(t)
	}
}

// subtest is the guard of the function that e gives a test's Run, "" for other calls.
func (l *lowerer) subtest(e *ast.CallExpr) string {
	sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok || len(e.Args) != 2 {
		return ""
	}
	if f, ok := l.info.Uses[sel.Sel].(*types.Func); ok {
		switch f.FullName() {
		case "(*testing.T).Run":
			return "GuardTest"
		case "(*testing.B).Run":
			return "GuardBenchmark"
		}
	}
	return ""
}

var testNameRE = regexp.MustCompile(`(?m)^\s*func\s+((?:Test|Benchmark)[\pL\pN_]*)\(`)

// testNames are the tests and benchmarks that a cell's text declares.
func testNames(code string) (names []string) {
	for _, m := range testNameRE.FindAllStringSubmatch(code, -1) {
		names = append(names, m[1])
	}
	return names
}

// isTest says whether name is a kind's: TestX, but not Testing.
func isTest(name, kind string) bool {
	rest, ok := strings.CutPrefix(name, kind)
	r, _ := utf8.DecodeRuneInString(rest)
	return ok && !unicode.IsLower(r)
}

// takes says whether f takes one parameter of the type and gives nothing.
func takes(f *types.Func, param string) bool {
	s := f.Signature()
	return s.Results().Len() == 0 && s.Params().Len() == 1 && s.TypeParams() == nil && types.TypeString(s.Params().At(0).Type(), nil) == param
}

// testingFlags are package testing's flags. testing.Init defines them beside those of the
// program, once: the caller makes the cells' own flags anew.
func testingFlags() map[string]*flag.Flag {
	testing.Init()
	flags := map[string]*flag.Flag{}
	flag.VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "test.") {
			flags[f.Name] = f
		}
	})
	return flags
}

// testRun is what package testing asks of a program that go test makes. There are no
// fuzz tests.
type testRun struct{}

type corpusEntry = struct {
	Parent, Path string
	Data         []byte
	Values       []any
	Generation   int
	IsSeed       bool
}

var errNoFuzz = errors.New("cells have no fuzz tests")

func (testRun) MatchString(pattern, s string) (bool, error) { return regexp.MatchString(pattern, s) }
func (testRun) ImportPath() string                          { return "main" }
func (testRun) ModulePath() string                          { return "" }
func (testRun) SetPanicOnExit0(bool)                        {}
func (testRun) StartCPUProfile(w io.Writer) error           { return pprof.StartCPUProfile(w) }
func (testRun) StopCPUProfile()                             { pprof.StopCPUProfile() }
func (testRun) StartTestLog(io.Writer)                      {}
func (testRun) StopTestLog() error                          { return nil }
func (testRun) RunFuzzWorker(func(corpusEntry) error) error { return errNoFuzz }
func (testRun) CheckCorpus([]any, []reflect.Type) error     { return nil }
func (testRun) ResetCoverage()                              {}
func (testRun) SnapshotCoverage()                           {}
func (testRun) WriteProfileTo(name string, w io.Writer, debug int) error {
	return pprof.Lookup(name).WriteTo(w, debug)
}
func (testRun) ReadCorpus(string, []reflect.Type) ([]corpusEntry, error) { return nil, nil }
func (testRun) CoordinateFuzzing(time.Duration, int64, time.Duration, int64, int, []corpusEntry, []reflect.Type, string, string) error {
	return errNoFuzz
}
func (testRun) InitRuntimeCoverage() (mode string, tearDown func(string, string) (string, error), snapshot func() float64) {
	return "", nil, nil
}
