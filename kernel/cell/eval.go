package cell

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"log"
	"maps"
	"os"
	"path"
	"reflect"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"testing"
	"time"
	goUnsafe "unsafe"

	"deltafin/internal/third_party/yaegi/interp"
	"deltafin/kernel"
	"deltafin/kernel/display"

	"github.com/traefik/yaegi/stdlib"
	"github.com/traefik/yaegi/stdlib/unsafe"
)

// patience is how long an interrupted cell may take to stop by itself. Then it is
// left behind: it may end a call of compiled code, and runs no further. One that waits
// for the kernel process gets what that has, such as a part of a generation, if it
// comes within callPatience.
const (
	patience     = 80 * time.Millisecond
	callPatience = 400 * time.Millisecond
)

// A shell is an evaluation context: an interpreter of its own, with the session's
// declarations. Cancelling what runs in one leaves the others alone.
type shell struct {
	child   *child
	fset    *token.FileSet
	table   *table // shared by all shells
	interp  *interp.Interpreter
	turn    sync.Mutex // held by the cell that runs
	known   map[*decl]bool
	serial  *int
	reached map[string]map[string]reflect.Value // types beyond the exports
	source  map[string]*source                  // by the name in positions; guarded by table.mu
	types   int                                 // how many of table.types the interpreter knows
}

// newShell makes the main shell, or one beside main.
func newShell(c *child, main *shell) (*shell, error) {
	s := &shell{child: c, known: map[*decl]bool{}}
	if main != nil {
		s.fset, s.table, s.serial, s.source = main.fset, main.table, main.serial, main.source
	} else {
		s.fset, s.serial, s.source = token.NewFileSet(), new(int), map[string]*source{}
	}
	s.interp = interp.New(interp.Options{
		Stdin: c.stdin, Stdout: streamWriter{c, "stdout"}, Stderr: streamWriter{c, "stderr"},
		Args: []string{"cell"}, Unrestricted: true,
	})
	s.interp.SetFileSet(s.fset)
	s.interp.RunOf = func() *interp.Run {
		if o, ok := c.labels.Load(profLabel()); ok {
			return o.(*cellOutput).run
		}
		return nil
	}
	s.interp.Made = c.waits.channel
	more := moreSymbols()
	more["syscall/syscall"] = syscallSymbols()
	generic := c.genericSymbols()
	for _, symbols := range []interp.Exports{stdlib.Symbols, unsafe.Symbols, more, generic, embedSymbols(), {"net/http/http": c.handlers.symbols()}} {
		if err := s.interp.Use(symbols); err != nil {
			return nil, fmt.Errorf("cell: interpreter: %w", err)
		}
	}
	exports := map[string]reflect.Value{}
	if c.bindings.Exports != nil {
		exports = c.bindings.Exports(c.session)
	}
	maps.Copy(exports, c.magicExports())
	if err := s.interp.Use(interp.Exports{
		"time/time": {
			"Sleep":     reflect.ValueOf(c.sleep),
			"AfterFunc": reflect.ValueOf(func(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, c.guard(f)) }),
		},
		"context/context": {
			"AfterFunc": reflect.ValueOf(func(ctx context.Context, f func()) (stop func() bool) { return context.AfterFunc(ctx, c.guard(f)) }),
		},
		"runtime/runtime": {
			"GOMAXPROCS": reflect.ValueOf(processors),
			"SetDefaultGOMAXPROCS": reflect.ValueOf(func() {
				runtime.SetDefaultGOMAXPROCS()
				processors(runtime.GOMAXPROCS(0))
			}),
		},
		"os/os": {
			"Args":        reflect.ValueOf(&os.Args).Elem(),
			"Exit":        reflect.ValueOf(c.exit),
			"FindProcess": reflect.ValueOf(os.FindProcess),
		},
		"flag/flag": c.flagSymbols(),
		"log/log":   c.logSymbols(),
		"os/exec/exec": {
			"Command":        reflect.ValueOf(c.command),
			"CommandContext": reflect.ValueOf(c.commandContext),
		},
		path.Join(internalPath, internalPath): {
			"Missing": reflect.ValueOf(func(name, why string, assembly bool) error {
				return &missingError{name: name, why: why, assembly: assembly}
			}),
			"EmbeddedFile":  reflect.ValueOf(embeddedFile),
			"EmbeddedFiles": reflect.ValueOf(embeddedFiles),
			"Guard":         reflect.ValueOf(c.guard),
			"Show":          reflect.ValueOf(c.show),
			"ParseFlags":    reflect.ValueOf(c.parseFlags),
			"LogFatal":      reflect.ValueOf(c.logFatal),
			"LogFatalf":     reflect.ValueOf(c.logFatalf),
			"LogFatalln":    reflect.ValueOf(c.logFatalln),
			"Started":       reflect.ValueOf(started),
			"Lock":          reflect.ValueOf(c.lock),
			"LockRW":        reflect.ValueOf(c.lockRW),
			"LockLocker":    reflect.ValueOf(c.lockLocker),
			"ReadLock":      reflect.ValueOf(c.readLock),
			"WaitGroup":     reflect.ValueOf(c.waitGroup),
			"WaitCond":      reflect.ValueOf(c.waitCond),
			"LoopOver":      reflect.ValueOf(loopOver),
			"NilReceiver":   reflect.ValueOf(nilReceiver),
			"Clear":         reflect.ValueOf(func(x any) { reflect.ValueOf(x).Clear() }),

			"GuardTest":      reflect.ValueOf(func(f func(*testing.T)) func(*testing.T) { return guardTest(c, f) }),
			"GuardBenchmark": reflect.ValueOf(func(f func(*testing.B)) func(*testing.B) { return guardTest(c, f) }),

			"UnsafeAdd":        reflect.ValueOf(func(p goUnsafe.Pointer, n int) goUnsafe.Pointer { return goUnsafe.Add(p, n) }),
			"UnsafeString":     reflect.ValueOf(func(p *byte, n int) string { return goUnsafe.String(p, n) }),
			"UnsafeStringData": reflect.ValueOf(func(s string) *byte { return goUnsafe.StringData(s) }),
			"UnsafeSlice": reflect.ValueOf(func(p any, n int) any {
				v := reflect.ValueOf(p)
				return reflect.SliceAt(v.Type().Elem(), v.UnsafePointer(), n).Interface()
			}),
			"UnsafeSliceData": reflect.ValueOf(func(s any) any {
				v := reflect.ValueOf(s)
				return reflect.NewAt(v.Type().Elem(), v.UnsafePointer()).Interface()
			}),
		},
		path.Join(c.bindings.Package, c.bindings.Package): exports,
	}); err != nil {
		return nil, fmt.Errorf("cell: interpreter: %w", err)
	}
	compiled := compiledSymbols()
	if err := s.interp.Use(interp.Exports{path.Join(internalPath, internalPath): compiled}); err != nil {
		return nil, fmt.Errorf("cell: interpreter: %w", err)
	}
	if main == nil {
		log.SetOutput(streamWriter{c, "stderr"})
		lib, err := newLibrary(func(p string) bool {
			key := p + "/" + packageName(p)
			return stdlib.Symbols[key] != nil || more[key] != nil || generic[key] != nil || p == "unsafe"
		}, &packages{modules: c.modules, fset: s.fset, gotten: map[string]*gottenPackage{}})
		if err != nil {
			return nil, err
		}
		lib.describeEmbed()
		lab, reached := reflectPackage(lib, c.bindings.Package, exports)
		known := []map[string]map[string]reflect.Value{{"log/log": c.logSymbols()}, stdlib.Symbols, unsafe.Symbols, more, embedSymbols(), reached, {path.Join(c.bindings.Package, c.bindings.Package): exports}}
		symbol := func(p, name string) (reflect.Value, bool) {
			for _, symbols := range known {
				for _, key := range []string{path.Join(p, packageName(p)), path.Join(p, path.Base(p))} {
					if v, ok := symbols[key][name]; ok {
						return v, true
					}
				}
			}
			return reflect.Value{}, false
		}
		s.table, s.reached = newTable(lib, lab, func(p, name string) reflect.Type {
			if v, _ := symbol(p, name); isTypeExport(v) {
				return v.Type().Elem()
			}
			return nil
		}), reached
		s.table.known, s.table.shell = symbol, s
		s.table.compiled = compiled
	} else {
		s.reached = main.reached
	}
	if err := s.interp.Use(interp.Exports(s.reached)); err != nil {
		return nil, fmt.Errorf("cell: interpreter: %w", err)
	}
	return s, nil
}

// sleep is time.Sleep, ended by an interrupt.
func (c *child) sleep(d time.Duration) {
	o := c.current()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.ctx.Done():
	}
}

// exit is os.Exit: it ends the cell, not the session.
func (c *child) exit(code int) {
	by := ""
	if code != 0 {
		by = "os.Exit(" + strconv.Itoa(code) + ")"
	}
	c.end(by)
}

// end ends the cell: with an error that names the call that did, or with none for "".
func (c *child) end(by string) {
	var e *kernel.CellError
	if by != "" {
		e = &kernel.CellError{Name: "exit", Value: by, Traceback: []string{by + " ended the cell; the session goes on, with its variables"}}
	}
	o := c.current()
	o.finish(e)
	o.run.Stop()
}

// guard is f for a goroutine that compiled code starts: it belongs to the cell,
// and so do its panics.
func (c *child) guard(f func()) func() {
	o := c.current()
	return func() {
		if o.label.ctx != nil {
			pprof.SetGoroutineLabels(o.label.ctx)
		}
		defer o.run.Catch()
		f()
	}
}

// show is what lowered code calls with the values of a cell's last expression.
func (c *child) show(values ...any) {
	o := c.current()
	b := display.Render(values...)
	if o.capture != nil {
		*o.capture = b
		return
	}
	if o.silent {
		return
	}
	o.Result(b)
}

// execute runs one cell and reports its end.
func (s *shell) execute(o *cellOutput, d executeData) {
	s.turn.Lock()
	o.silent = d.Silent
	stop, stopWatch := s.child.stdin.serve(o, d.Code), s.child.watch(o, d.Code)
	e := s.supervise(o, func() *kernel.CellError { return s.runCell(o, d.Code, d.Count, false) })
	stop()
	stopWatch()
	s.child.pipes.sync()
	s.child.done(o.id, e)
}

// supervise runs f, which has the turn, on a goroutine of its own and gives its
// error. It gives the turn back, early when f doesn't end after an interrupt.
func (s *shell) supervise(o *cellOutput, f func() *kernel.CellError) *kernel.CellError {
	end := make(chan *kernel.CellError, 1)
	go func() {
		s.child.mark(o)
		var e *kernel.CellError // nil after runtime.Goexit
		defer func() {
			// A fault of the checker's or of lowering's own ends the cell only.
			if r := recover(); r != nil {
				e = &kernel.CellError{Name: "kernel error", Value: fmt.Sprint(r), Traceback: []string{fmt.Sprintf("the cell could not be prepared: %v", r)}}
			}
			end <- e
		}()
		e = f()
	}()
	var e *kernel.CellError
	select {
	case e = <-end:
	case <-o.ctx.Done():
		e = interruptedError()
		select {
		case e = <-end:
		case <-time.After(patience):
			if o.calls.Load() == 0 {
				break
			}
			select {
			case e = <-end:
			case <-time.After(callPatience):
			}
		}
	}
	s.turn.Unlock()
	return o.outcome(e)
}

func interruptedError() *kernel.CellError {
	return &kernel.CellError{Name: "interrupted", Value: "the cell was interrupted", Traceback: []string{"interrupted: the cell was interrupted; its variables are kept"}}
}

// evaluate computes one expression for its bundle.
func (s *shell) evaluate(o *cellOutput, expression string) (display.Bundle, *kernel.CellError) {
	var b display.Bundle
	o.capture = &b
	s.turn.Lock()
	if e := s.supervise(o, func() *kernel.CellError { return s.runCell(o, expression, 0, true) }); e != nil {
		return display.Bundle{}, e
	}
	return b, nil
}

// runCell checks, lowers, compiles and runs one cell on the calling goroutine.
func (s *shell) runCell(o *cellOutput, code string, count int, expression bool) (e *kernel.CellError) {
	if !expression {
		s.child.mu.Lock()
		s.child.latest = o
		s.child.mu.Unlock()
	}
	if o.ctx.Err() != nil {
		return interruptedError()
	}
	if q, ok := asked(code); ok && !expression {
		s.help(o, q)
		return nil
	}
	if !expression && s.leaves(code) {
		o.Exit(false)
		return nil
	}
	m := magicLines{code: code}
	if !expression {
		var err error
		if m, err = rewriteMagics(code); err != nil {
			return &kernel.CellError{Name: "magic", Value: err.Error(), Traceback: magicTraceback(newSource("", count, code), err)}
		}
		if m.reset {
			fresh, e := s.child.resetSession(s)
			if e != nil {
				return e
			}
			s = fresh
			s.turn.Lock()
			defer s.turn.Unlock()
		}
	}
	for _, g := range m.gets {
		if e := s.get(o, g, newSource("", count, code)); e != nil {
			return e
		}
	}
	if e := s.fetch(o, m.code); e != nil {
		return e
	}
	began := time.Now()
	enter, e := s.prepare(o.run, code, m.code, count, expression)
	if e != nil || enter == "" {
		return e
	}
	called := time.Now()
	if e := s.initialize(o); e != nil {
		return e
	}
	err := s.interp.Call(o.run, enter)
	if m.timed {
		s.child.toc()
	}
	if m.whole {
		o.Stream("stdout", fmt.Sprintf("took %v, and %v to check and compile\n", time.Since(called).Round(time.Microsecond), called.Sub(began).Round(time.Microsecond)))
	}
	switch {
	case o.ctx.Err() != nil:
		return interruptedError()
	case err != nil:
		return s.panicError(o.run, err)
	}
	return nil
}

// prepare makes a cell ready to run and commits its declarations: from here on
// they are the session's, whatever the cell does. code is shown, and is Go as text has it.
func (s *shell) prepare(run *interp.Run, code, text string, count int, expression bool) (enter string, e *kernel.CellError) {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	*s.serial++
	src := newSource("cell"+strconv.Itoa(*s.serial), count, code)
	src.text = text
	s.source[src.name] = src
	u, undo, errs := t.check(s.fset, src, expression)
	if len(errs) > 0 {
		undo()
		return "", compileError(errs)
	}
	low := lower(u)
	err := low.err
	if err == nil {
		err = s.install(run, u, low)
	}
	if err != nil {
		undo()
		low.undo()
		return "", s.unsupported(src, err)
	}
	t.commit(u)
	t.keep(s, u, low)
	for _, run := range low.inits {
		t.pending = append(t.pending, pendingInit{s, run})
	}
	return low.enter, nil
}

// learn declares what a cell uses and only other shells' interpreters know, and
// gives the variables among it, which are theirs.
func (s *shell) learn(run *interp.Run, u *unit) (shared []*decl, err error) {
	seen := map[*decl]bool{}
	var learned []*decl
	f := &ast.File{Name: ast.NewIdent("main")}
	paths := map[string]bool{}
	var visit func(uses map[*decl]bool)
	visit = func(uses map[*decl]bool) {
		for d := range uses {
			if seen[d] || d.lowered == nil {
				continue
			}
			seen[d] = true
			if d.kind == varKind && d.home != nil && d.home != s {
				shared = append(shared, d)
			}
			if d.home != nil && !s.known[d] {
				learned = append(learned, d)
				switch n := d.lowered.(type) {
				case ast.Decl:
					f.Decls = append(f.Decls, n)
				case ast.Expr:
					f.Decls = append(f.Decls, variable(d.run, n))
				}
				for p := range d.needs {
					paths[p] = true
				}
			}
			visit(d.uses)
			for _, m := range u.table.methods[d] {
				visit(map[*decl]bool{m: true})
			}
		}
	}
	visit(u.uses)
	for _, d := range u.fresh {
		visit(d.uses)
	}
	if len(f.Decls) == 0 {
		return shared, nil
	}
	var imports []ast.Decl
	for p := range paths {
		imports = append(imports, importDecl(importAlias(p), p))
	}
	f.Decls = append(imports, f.Decls...)
	if err := s.compile(run, f); err != nil {
		return nil, err
	}
	for _, d := range learned {
		s.known[d] = true
	}
	return shared, nil
}

// compile gives a file to the interpreter and declares what it has.
func (s *shell) compile(run *interp.Run, f *ast.File) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	symbols, n := s.table.types.since(s.types)
	if err := s.interp.Use(symbols); err != nil {
		return err
	}
	s.types = n
	// The interpreter keeps imports by file name.
	*s.serial++
	f.Package = token.Pos(s.fset.AddFile("file"+strconv.Itoa(*s.serial), -1, 1).Base())
	f.Name.NamePos = f.Package
	p, err := s.interp.CompileAST(f)
	if err != nil {
		return err
	}
	_, err = s.interp.ExecuteRun(run, p)
	return err
}
