package cell

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deltafin/internal/third_party/yaegi/interp"
	"deltafin/kernel"
)

// Functions of gotten packages are lowered as a cell's are, each when something that is
// lowered names it: of a module with a thousand functions a cell compiles the few that it
// reaches. A method that only interfaces and compiled code reach is compiled when it is
// first called. What can't be compiled panics when it is called, and says why.

// A missingError is the panic of a function that cells don't have.
type missingError struct {
	name, why string
	assembly  bool
}

func (e *missingError) Error() string { return e.name + " can't run in a cell: " + e.why }

// A job lowers one declaration of a gotten package.
type job struct {
	d  *decl
	of *gottenPackage
	fn *ast.FuncDecl // nil for an initializer and a variable
	// What stands for the parameters of fn.
	subst map[*types.TypeParam]types.Type
	run   func()
}

// An initializer is a step of a package's initialization.
type initializer struct {
	of    *gottenPackage
	place int // in InitOrder, or after it
	run   string
}

// enqueue has a declaration of a gotten package lowered when what is being lowered is.
func (l *lowerer) enqueue(j job) {
	j.d.job = &j
	l.jobs = append(l.jobs, &j)
}

// work lowers what has been enqueued, and what that names.
func (l *lowerer) work() {
	for len(l.jobs) > 0 {
		j := l.jobs[0]
		l.jobs = l.jobs[1:]
		if j.fn != nil {
			switch why := j.of.bad[j.fn]; {
			case j.fn.Body == nil:
				l.missing(j, "it is written in assembly, or is a part of the Go runtime", true)
				continue
			case why != "":
				l.missing(j, why, false)
				continue
			}
		}
		n := len(l.errs)
		j.run()
		if len(l.errs) > n {
			why := l.errs[n].Error() + ", which the interpreter hasn't"
			l.errs = l.errs[:n]
			l.missing(j, why, false)
		}
	}
}

// missing makes a job's function one that panics. Its types may be beyond the
// interpreter, and so it has their names only as far as they are known.
func (l *lowerer) missing(j *job, why string, assembly bool) {
	if j.fn == nil {
		l.paths[internalPath] = true
		if j.d.kind == varKind {
			j.d.lowered = ast.NewIdent("any")
			return
		}
		f := &ast.FuncDecl{Name: ast.NewIdent(j.d.run), Type: &ast.FuncType{Params: &ast.FieldList{}}}
		panicBody(f, "the initialization of "+j.of.pkg.Path(), why, assembly)
		j.d.lowered = f
		return
	}
	n := len(l.errs)
	empty := *j.fn
	empty.Body = &ast.BlockStmt{Lbrace: j.fn.Pos(), Rbrace: j.fn.Pos()}
	of := j.of.pkg.Name() + "." + j.fn.Name.Name
	if r := receiverName(j.fn); r != "" {
		of = j.of.pkg.Name() + "." + r + "." + j.fn.Name.Name
	}
	f, _ := j.of.info.Defs[j.fn.Name].(*types.Func)
	l.within(j.d, j.of.info, j.subst, func() {
		if j.fn.Recv != nil {
			recv := l.concrete(f.Signature().Recv().Type())
			j.d.lowered = l.methodDecl(&empty, recv, f.Signature(), j.d.run)
		} else {
			j.d.lowered = l.functionDecl(&empty, f, j.d.run)
		}
	})
	l.errs = l.errs[:n]
	panicBody(j.d.lowered.(*ast.FuncDecl), of, why, assembly)
	l.paths[internalPath] = true
}

// panicBody makes a lowered function panic with a missingError.
func panicBody(f *ast.FuncDecl, name, why string, assembly bool) {
	pos := f.Pos()
	quoted := func(s string) ast.Expr {
		return &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(s), ValuePos: pos}
	}
	call := &ast.CallExpr{
		Fun:    &ast.SelectorExpr{X: &ast.Ident{Name: importAlias(internalPath), NamePos: pos}, Sel: &ast.Ident{Name: "Missing", NamePos: pos}},
		Lparen: pos, Rparen: pos, Args: []ast.Expr{quoted(name), quoted(why), ast.NewIdent(strconv.FormatBool(assembly))},
	}
	f.Body = &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{&ast.ExprStmt{X: &ast.CallExpr{
		Fun: &ast.Ident{Name: "panic", NamePos: pos}, Lparen: pos, Rparen: pos, Args: []ast.Expr{call}}}}}
}

// functionDecl lowers a function's declaration under another name.
func (l *lowerer) functionDecl(f *ast.FuncDecl, o *types.Func, run string) *ast.FuncDecl {
	fn, ft := *f, *f.Type
	ft.TypeParams = nil
	fn.Type, fn.Doc = &ft, nil
	fn.Name = &ast.Ident{Name: run, NamePos: f.Name.NamePos}
	return l.function(&fn, o.Type()).(*ast.FuncDecl)
}

// gottenMethod is the declaration of the method f of n, a type of a gotten package
// without parameters, or nil.
func (l *lowerer) gottenMethod(n *types.Named, f *types.Func) *decl {
	b, ok := l.bodyOf(f)
	if !ok || b.of == nil {
		return nil
	}
	return l.obtainKey("method "+f.FullName(), f.Name(), methodKind, func(d *decl) {
		d.run = n.Obj().Name() + mark + d.run
		l.enqueue(job{d: d, of: b.of, fn: b.fn, run: func() {
			l.within(d, b.info, nil, func() {
				var err error
				if d.code, err = l.codeOf(n, f); err != nil {
					l.errs = append(l.errs, err)
				}
				d.lowered = l.methodDecl(b.fn, f.Signature().Recv().Type(), f.Signature(), d.run)
			})
		}})
	})
}

// gottenVar is the declaration of a variable of a gotten package. Its initialization
// comes before what is being lowered runs.
func (l *lowerer) gottenVar(g *gottenPackage, v *types.Var) *decl {
	return l.obtainKey("var "+v.Pkg().Path()+"."+v.Name(), v.Name(), varKind, func(d *decl) {
		l.enqueue(job{d: d, of: g, run: func() {
			l.within(d, g.info, nil, func() { d.lowered = l.typeOf(v.Type()) })
		}})
		if i, ok := g.first[v]; ok {
			l.initialize(g, i)
		} else if g.embeds[v] != nil {
			l.embedVar(g, v)
		}
	})
}

// initialize has the i-th of a package's initializers run, once in a session.
func (l *lowerer) initialize(g *gottenPackage, i int) {
	in := g.info.InitOrder[i]
	l.obtainKey("init "+g.pkg.Path()+" "+strconv.Itoa(i), "init", funcKind, func(d *decl) {
		l.inits = append(l.inits, initializer{g, i, d.run})
		l.enqueue(job{d: d, of: g, run: func() {
			l.within(d, g.info, nil, func() {
				pos := in.Rhs.Pos()
				a := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: pos}
				for _, v := range in.Lhs {
					name := "_"
					if v.Name() != "_" {
						x := l.gottenVar(g, v)
						l.use(x)
						name = x.run
					}
					a.Lhs = append(a.Lhs, &ast.Ident{Name: name, NamePos: pos})
				}
				a.Rhs = []ast.Expr{l.expr(in.Rhs)}
				d.lowered = &ast.FuncDecl{Name: &ast.Ident{Name: d.run, NamePos: pos}, Type: &ast.FuncType{Func: pos, Params: &ast.FieldList{}},
					Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{a}}}
			})
		}})
	})
}

// begin initializes the packages that the cell imports, and those that they need: the
// variables whose values nothing but their use needs wait until something names them.
func (l *lowerer) begin() {
	var visit func(g *gottenPackage)
	visit = func(g *gottenPackage) {
		if l.u.table.begun[g] || slices.Contains(l.begun, g) {
			return
		}
		l.begun = append(l.begun, g)
		for _, d := range g.deps {
			visit(d)
		}
		for i, in := range g.info.InitOrder {
			if g.acts(in.Rhs) {
				l.initialize(g, i)
			}
		}
		for i, fn := range g.inits {
			l.obtainKey("init "+g.pkg.Path()+" func "+strconv.Itoa(i), "init", funcKind, func(d *decl) {
				l.inits = append(l.inits, initializer{g, len(g.info.InitOrder) + i, d.run})
				l.enqueue(job{d: d, of: g, fn: fn, run: func() {
					l.within(d, g.info, nil, func() { d.lowered = l.functionDecl(fn, g.info.Defs[fn.Name].(*types.Func), d.run) })
				}})
			})
		}
	}
	for _, paths := range [][]string{slices.Collect(maps.Values(l.u.imports)), l.u.dots} {
		for _, p := range paths {
			if g := l.u.table.lib.loaded(p); g != nil {
				visit(g)
			}
		}
	}
	slices.SortStableFunc(l.begun, func(a, b *gottenPackage) int { return a.order - b.order })
}

// orderInits sorts initializers as Go runs them.
func orderInits(inits []initializer) []string {
	slices.SortStableFunc(inits, func(a, b initializer) int {
		return cmp.Or(cmp.Compare(a.of.order, b.of.order), cmp.Compare(a.place, b.place))
	})
	var names []string
	for _, in := range inits {
		names = append(names, in.run)
	}
	return names
}

// pure are packages of the standard library whose functions only compute.
var pure = map[string]bool{
	"errors": true, "math": true, "math/bits": true, "math/big": true, "math/cmplx": true, "strings": true, "bytes": true, "strconv": true,
	"regexp": true, "unicode": true, "unicode/utf8": true, "unicode/utf16": true, "time": true, "reflect": true, "encoding/binary": true, "encoding/base64": true,
	"encoding/hex": true, "hash/crc32": true, "net/netip": true,
}

// acts says whether computing e may do more than give a value: it calls functions other
// than those of pure packages.
func (g *gottenPackage) acts(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.CallExpr:
			tv := g.info.Types[n.Fun]
			if tv.IsType() || tv.IsBuiltin() || g.info.Types[n].Value != nil {
				return true
			}
			var o types.Object
			switch f := ast.Unparen(n.Fun).(type) {
			case *ast.Ident:
				o = g.info.Uses[f]
			case *ast.SelectorExpr:
				o = g.info.Uses[f.Sel]
			}
			f, ok := o.(*types.Func)
			found = found || !ok || f.Pkg() == nil || !pure[f.Pkg().Path()] || callsBack(f)
		}
		return !found
	})
	return found
}

// callsBack says whether f, a function of a pure package, may call functions or methods
// of what it is given.
func callsBack(f *types.Func) bool {
	if f.FullName() == "reflect.TypeOf" {
		return false
	}
	params := f.Signature().Params()
	for i := range params.Len() {
		t := params.At(i).Type()
		if s, ok := t.Underlying().(*types.Slice); ok {
			t = s.Elem()
		}
		switch t.Underlying().(type) {
		case *types.Signature, *types.Interface:
			return true
		}
	}
	return false
}

// later is what compiles the method f of n when it is first called.
func (t *table) later(n *types.Named, f *types.Func) func(*code) error {
	s := t.shell
	return func(c *code) error {
		o := s.child.current()
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.run.Load() != nil {
			return nil
		}
		u := &unit{
			table: t, src: newSource("", 0, ""), fset: s.fset, alias: map[*decl]*decl{}, named: map[types.Object]*decl{}, uses: map[*decl]bool{},
			pkg: types.NewPackage("main", checkedName), info: newInfo(), bodies: map[*types.Func]*ast.FuncDecl{},
		}
		l := newLowerer(u)
		d := l.gottenMethod(n, f)
		if d == nil {
			return fmt.Errorf("%s has no text", f.FullName())
		}
		low := &lowered{file: &ast.File{Name: ast.NewIdent("main")}}
		l.complete(low)
		if err := s.install(o.run, u, low); err != nil {
			low.undo()
			return err
		}
		t.keep(s, u, low)
		// Only computations: nothing that they call comes back here.
		for _, name := range low.inits {
			if err := s.interp.Call(o.run, name); err != nil {
				return err
			}
		}
		return nil
	}
}

var faultRE = regexp.MustCompile(`^(.+?):(\d+):(\d+): `)

// install gives a lowered file to the interpreter. A function of a gotten package that
// it can't compile becomes one that says so when it is called.
func (s *shell) install(run *interp.Run, u *unit, low *lowered) error {
	for {
		shared, err := s.learn(run, u)
		if err == nil {
			err = s.compile(run, low.file)
		}
		if err != nil {
			if low.blame(s.fset, err) {
				continue
			}
			return err
		}
		for _, d := range shared {
			// The interpreter may have moved a variable: point at it anew.
			if v, ok := d.home.interp.Global(d.run); !ok || !s.interp.SetGlobal(d.run, v) {
				return fmt.Errorf("%s, a variable of another shell, can't be shared", d.name)
			}
		}
		for _, d := range append(slices.Clone(u.fresh), low.made...) {
			if d.code == nil {
				continue
			}
			f, ok := s.interp.Func(d.run)
			if !ok {
				return fmt.Errorf("method %s", d.name)
			}
			d.code.run.Store(&f)
		}
		return nil
	}
}

// blame finds the gotten function whose fault err is, and makes it panic instead.
func (low *lowered) blame(fset *token.FileSet, err error) bool {
	m := faultRE.FindStringSubmatch(err.Error())
	if m == nil {
		return false
	}
	line, _ := strconv.Atoi(m[2])
	for _, d := range low.made {
		f, ok := d.lowered.(*ast.FuncDecl)
		if !ok || d.job == nil || d.job.fn == nil || low.blamed[d] {
			continue
		}
		a, b := fset.Position(d.job.fn.Pos()), fset.Position(d.job.fn.End())
		if a.Filename != m[1] || line < a.Line || line > b.Line {
			continue
		}
		if low.blamed == nil {
			low.blamed = map[*decl]bool{}
		}
		low.blamed[d] = true
		panicBody(f, d.name, "not supported by the interpreter: "+unmark(strings.TrimPrefix(err.Error(), m[0])), false)
		return true
	}
	return false
}

// keep makes what has been compiled the session's.
func (t *table) keep(s *shell, u *unit, low *lowered) {
	for k, d := range low.instances {
		t.instances[k] = d
	}
	for _, g := range low.begun {
		t.begun[g] = true
	}
	for _, d := range append(u.fresh, low.made...) {
		d.home = s
		s.known[d] = true
	}
}

// A pendingInit is an initializer that the next cell runs first.
type pendingInit struct {
	shell *shell
	run   string
}

// initialize runs what the packages that the cell is the first to need have to run.
func (s *shell) initialize(o *cellOutput) *kernel.CellError {
	t := s.table
	for {
		t.mu.Lock()
		if len(t.pending) == 0 {
			t.mu.Unlock()
			return nil
		}
		in := t.pending[0]
		t.pending = t.pending[1:]
		t.mu.Unlock()
		err := in.shell.interp.Call(o.run, in.run)
		if o.ctx.Err() != nil {
			t.mu.Lock()
			t.pending = append([]pendingInit{in}, t.pending...)
			t.mu.Unlock()
			return interruptedError()
		}
		if p := (interp.Panic{}); errors.As(err, &p) {
			var m *missingError
			if e, ok := p.Value.(error); !ok || !errors.As(e, &m) {
				return s.panicError(o.run, err)
			}
			if !m.assembly { // in assembly are questions about the processor; without answers the portable code runs
				o.Stream("stderr", "initialization cut short: "+m.Error()+"\n")
			}
			o.run.Trace()
		} else if err != nil {
			return s.panicError(o.run, err)
		}
	}
}

// get runs one line that gets modules, or lists them.
func (s *shell) get(o *cellOutput, g getLine, src *source) *kernel.CellError {
	m := s.child.modules
	var err error
	if len(g.Args) == 0 {
		var text string
		if text, err = m.list(o.ctx); err == nil {
			o.Stream("stdout", text)
		}
	} else {
		err = m.get(o.ctx, g.Args, outputWriter{o, "stdout"})
	}
	switch {
	case o.ctx.Err() != nil:
		return interruptedError()
	case err != nil:
		e := moduleFault("get", err)
		e.Traceback = append(e.Traceback, src.mark(g.Line, 0)...)
		return e
	}
	return nil
}

// fetch loads the gotten packages that a cell imports.
func (s *shell) fetch(o *cellOutput, text string) *kernel.CellError {
	if s.child.modules.empty() || !strings.Contains(text, "import") {
		return nil
	}
	pieces, _, err := parsePieces(token.NewFileSet(), newSource("", 0, text))
	if err != nil {
		return nil // the check says it better
	}
	for _, p := range pieces {
		d, ok := p.decl.(*ast.GenDecl)
		if !ok || d.Tok != token.IMPORT {
			continue
		}
		for _, sp := range d.Specs {
			path, err := strconv.Unquote(sp.(*ast.ImportSpec).Path.Value)
			if err != nil {
				continue
			}
			err = s.table.lib.fetch(o.ctx, path, outputWriter{o, "stdout"})
			switch {
			case o.ctx.Err() != nil:
				return interruptedError()
			case err != nil:
				return moduleFault("import", err)
			}
		}
	}
	return nil
}

func moduleFault(name string, err error) *kernel.CellError {
	return &kernel.CellError{Name: name, Value: err.Error(), Traceback: []string{bold + name + ": " + reset + err.Error()}}
}
