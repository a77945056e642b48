package cell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A unit is a cell that has been parsed and checked: what lowering works from.
type unit struct {
	table  *table
	src    *source
	fset   *token.FileSet
	silent bool

	decls   []ast.Decl           // types, functions and methods, as written
	body    []ast.Stmt           // top-level statements, var declarations included
	fresh   []*decl              // what the unit declares, in order
	vars    map[*ast.Ident]*decl // the names that := and var at top level set
	result  ast.Expr             // the last expression, when it is to be shown
	again   []*decl              // functions of earlier cells compiled anew
	alias   map[*decl]*decl      // a variable declared again → the one that it is
	pkg     *types.Package
	info    *types.Info
	named   map[types.Object]*decl
	uses    map[*decl]bool                // by the statements
	main    *decl                         // the function main, when it is to be run after the statements
	bodies  map[*types.Func]*ast.FuncDecl // generic ones
	program bool                          // the cell has a package clause
	inits   []*decl

	imports map[string]string
	// imported are the names that this cell itself imports.
	imported map[string]bool
	dots     []string
	text     map[*ast.FuncDecl]*decl
}

// A CompileError is a fault in a cell's text.
type CompileError struct {
	Source *source
	Line   int // 0 where there is none
	Col    int
	Msg    string
	at     token.Position // also where that is in another cell
}

func (e *CompileError) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
}

// maxErrors is how many faults of a cell are shown.
const maxErrors = 10

// check parses and checks a cell against the table, and changes nothing but names
// of what it hides; undo gives those back. Functions of earlier cells that name
// something which the cell declares anew are compiled again with it, where they
// still can be: a redefined function reaches its earlier callers.
func (t *table) check(fset *token.FileSet, src *source, expression bool) (u *unit, undo func(), errs []*CompileError) {
	var again []*decl
	var first []*CompileError
	dropped := map[*decl]bool{}
	for {
		u, undo, errs = t.checkWith(fset, src, expression, again)
		if len(errs) == 0 {
			more := slices.DeleteFunc(u.dependents(dropped), func(d *decl) bool { return slices.Contains(again, d) })
			if len(more) == 0 {
				return u, undo, nil
			}
			undo()
			again = append(again, more...)
			continue
		}
		if len(again) == 0 {
			// The faults may be those of functions that still mean the old names.
			if first != nil {
				return nil, undo, first
			}
			first = errs
			if u != nil && u.info != nil {
				again = u.dependents(dropped)
			}
			if len(again) == 0 {
				return nil, undo, errs
			}
			undo()
			continue
		}
		// Those whose text doesn't fit the new declarations keep the old.
		kept := slices.DeleteFunc(slices.Clone(again), func(d *decl) bool {
			bad := slices.ContainsFunc(errs, func(e *CompileError) bool { return d.holds(e.at) })
			dropped[d] = dropped[d] || bad
			return bad
		})
		if len(kept) == len(again) {
			return nil, undo, errs
		}
		undo()
		again = kept
	}
}

// holds says whether a position is in d's text.
func (d *decl) holds(p token.Position) bool {
	return p.Filename == d.src.name && p.Line >= d.line && p.Line <= d.line+strings.Count(d.text, "\n")
}

// dependents are the current functions of earlier cells that name what this cell
// declares anew.
func (u *unit) dependents(dropped map[*decl]bool) []*decl {
	t := u.table
	replaced := map[*decl]bool{}
	for _, d := range u.fresh {
		if u.alias[d] != nil {
			continue
		}
		if d.kind == methodKind {
			if d.recv != nil {
				if old := t.methods[d.recv][d.name]; old != nil {
					replaced[old] = true
				}
			}
		} else if old := t.current[d.name]; old != nil {
			replaced[old] = true
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	var out []*decl
	for _, d := range t.all {
		if d.fn == nil || replaced[d] || dropped[d] || d.text == "" {
			continue
		}
		if d.kind == funcKind && t.current[d.name] != d || d.kind == methodKind && t.methods[d.recv][d.name] != d {
			continue
		}
		for x := range d.uses {
			if replaced[x] {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

// reparse gives a kept function's tree anew.
func (d *decl) reparse(fset *token.FileSet) *ast.FuncDecl {
	at := "//line " + d.src.name + ":" + strconv.Itoa(d.line) + ":" + strconv.Itoa(d.col) + "\n"
	f, err := parser.ParseFile(fset, d.src.name, "package main\n"+at+d.text, parser.SkipObjectResolution)
	if err != nil || len(f.Decls) != 1 {
		return nil
	}
	fn, _ := f.Decls[0].(*ast.FuncDecl)
	return fn
}

func (t *table) checkWith(fset *token.FileSet, src *source, expression bool, again []*decl) (u *unit, undo func(), errs []*CompileError) {
	u = &unit{
		table: t, src: src, fset: fset, vars: map[*ast.Ident]*decl{}, alias: map[*decl]*decl{},
		named: map[types.Object]*decl{}, uses: map[*decl]bool{}, imports: maps.Clone(t.imports), imported: map[string]bool{}, dots: slices.Clone(t.dots),
		text: map[*ast.FuncDecl]*decl{},
	}
	var undos []func()
	undo = func() {
		for i := len(undos) - 1; i >= 0; i-- {
			undos[i]()
		}
		undos = nil
	}
	pieces, silent, err := parsePieces(fset, src)
	if err != nil {
		return nil, undo, syntaxErrors(src, err)
	}
	u.silent = silent && !expression
	u.program = hasPackageClause(src.text)
	if expression && (len(pieces) != 1 || len(pieces[0].stmt) != 1) {
		return nil, undo, []*CompileError{{Source: src, Msg: "expected one expression"}}
	}
	for _, p := range pieces {
		switch d := p.decl.(type) {
		case nil:
			u.body = append(u.body, p.stmt...)
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				u.decls = append(u.decls, d)
				continue
			}
			for _, s := range d.Specs {
				if err := u.addImport(s.(*ast.ImportSpec)); err != nil {
					return nil, undo, []*CompileError{err}
				}
			}
		case *ast.FuncDecl:
			u.decls = append(u.decls, d)
		}
	}
	if errs := u.collect(); errs != nil {
		return nil, undo, errs
	}
	for _, old := range again {
		if fn := old.reparse(fset); fn != nil {
			d := *old
			d.id, d.fn, d.file, d.run, d.home, d.lowered = t.next(), fn, d.name, "", nil, nil
			d.pos, d.uses, d.refs, d.packages, d.recv = fn.Pos(), map[*decl]bool{}, nil, nil, nil
			u.fresh = append(u.fresh, &d)
			u.decls = append(u.decls, fn)
			u.text[fn] = &d
			u.again = append(u.again, &d)
		}
	}
	undos = append(undos, u.displace()...)
	last := len(u.body) - 1
	show := false
	if last >= 0 {
		if x, ok := u.body[last].(*ast.ExprStmt); ok {
			u.result = x.X
			_, call := ast.Unparen(x.X).(*ast.CallExpr)
			recv, _ := ast.Unparen(x.X).(*ast.UnaryExpr)
			show = !call && (recv == nil || recv.Op != token.ARROW)
		}
	}
	errs, retry := u.run(show)
	if retry == retryShow {
		errs, _ = u.run(true)
	}
	if len(errs) > 0 {
		return u, undo, errs
	}
	if errs := u.bind(); errs != nil {
		return u, undo, errs
	}
	return u, undo, nil
}

// displace makes room for what the cell declares and imports: it hides earlier
// declarations and drops earlier imports of the same names.
func (u *unit) displace() (undos []func()) {
	hide := func(name string) {
		if old := u.table.current[name]; old != nil && old.file == name {
			undos = append(undos, u.table.hide(old))
		}
	}
	for _, d := range u.fresh {
		if d.kind != methodKind {
			hide(d.name)
			if !u.imported[d.name] {
				delete(u.imports, d.name)
			}
		}
	}
	for name := range u.imported {
		hide(name)
	}
	return undos
}

// addImport notes an import of the cell, which holds for later cells too.
func (u *unit) addImport(s *ast.ImportSpec) *CompileError {
	path, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		path = s.Path.Value
	}
	pkg, err := u.table.lib.Import(path)
	if err != nil {
		return u.at(s.Path.Pos(), err.Error())
	}
	name := pkg.Name()
	if s.Name != nil {
		name = s.Name.Name
	}
	switch name {
	case ".":
		u.dots = append(u.dots, path)
	case "_":
	default:
		u.imports[name], u.imported[name] = path, true
	}
	return nil
}

type retryKind int

const (
	retryNone retryKind = iota
	retryShow
)

func (u *unit) at(pos token.Pos, msg string) *CompileError {
	p := u.fset.Position(pos)
	e := &CompileError{Source: u.src, Msg: unmark(msg), at: p}
	if p.Filename == u.src.name {
		e.Line, e.Col = p.Line, p.Column
	}
	return e
}

// position of a declaration in its own text.
func (u *unit) textOf(n ast.Node) (text string, line, col int) {
	a, b := u.fset.Position(n.Pos()), u.fset.Position(n.End())
	if a.Filename != u.src.name || a.Line < 1 || b.Line > len(u.src.lines) {
		return "", a.Line, a.Column
	}
	ls := slices.Clone(u.src.lines[a.Line-1 : b.Line])
	if n := len(ls) - 1; b.Column-1 <= len(ls[n]) {
		ls[n] = ls[n][:b.Column-1]
	}
	if a.Column-1 <= len(ls[0]) {
		ls[0] = ls[0][a.Column-1:]
	}
	return strings.Join(ls, "\n"), a.Line, a.Column
}

func (u *unit) newDecl(name string, kind declKind, n ast.Node, doc *ast.CommentGroup) *decl {
	d := &decl{id: u.table.next(), name: name, file: name, kind: kind, src: u.src, uses: map[*decl]bool{}, pos: n.Pos(), doc: strings.TrimSpace(doc.Text())}
	d.text, d.line, d.col = u.textOf(n)
	u.fresh = append(u.fresh, d)
	return d
}

// calls says whether the cell's statements call the function.
func (u *unit) calls(name string) (found bool) {
	for _, s := range u.body {
		ast.Inspect(s, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				id, ok := c.Fun.(*ast.Ident)
				found = found || ok && id.Name == name
			}
			return !found
		})
	}
	return found
}

// collect finds what the cell declares, by its syntax alone.
func (u *unit) collect() []*CompileError {
	var kept []ast.Decl
	seen := map[string]ast.Node{}
	for _, d := range u.decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				m := u.newDecl(d.Name.Name, methodKind, d, d.Doc)
				m.fn, m.generic = d, genericReceiver(d)
				u.text[d] = m
			} else {
				f := u.newDecl(d.Name.Name, funcKind, d, d.Doc)
				f.fn, f.generic = d, d.Type.TypeParams != nil
				u.text[d] = f
				if d.Body == nil {
					return []*CompileError{u.at(d.Name.Pos(), "missing function body")}
				}
				switch d.Name.Name {
				case "main":
					if d.Type.TypeParams == nil && d.Type.Params.NumFields() == 0 && !u.calls("main") {
						u.main = f
					}
				case "init":
					u.inits = append(u.inits, f)
					// Any name will do, and the checker has rules for this one.
					f.file = d.Name.Name + mark + strconv.Itoa(u.table.next())
					d.Name.Name = f.file
				}
			}
			kept = append(kept, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					doc := s.Doc
					if doc == nil {
						doc = d.Doc
					}
					old := u.table.current[s.Name.Name]
					if old != nil && old.kind == typeKind && old.file == old.name {
						if text, _, _ := u.textOf(s); text == old.text && !u.redeclares(s) {
							continue // the same again
						}
					}
					nd := u.newDecl(s.Name.Name, typeKind, s, doc)
					nd.spec, nd.generic = s, s.TypeParams != nil
					if p := seen[s.Name.Name]; p != nil && s.Name.Name != "_" {
						return []*CompileError{u.at(s.Name.Pos(), s.Name.Name+" redeclared in this cell")}
					}
					seen[s.Name.Name] = s
					kept = append(kept, &ast.GenDecl{Tok: token.TYPE, TokPos: d.TokPos, Specs: []ast.Spec{s}})
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.Name != "_" {
							doc := s.Doc
							if doc == nil {
								doc = d.Doc
							}
							u.newDecl(n.Name, constKind, s, doc)
						}
					}
				}
			}
			if d.Tok == token.CONST {
				kept = append(kept, d)
			}
		}
	}
	u.decls = kept
	first := map[string]*decl{}
	declare := func(id *ast.Ident, n ast.Node, doc *ast.CommentGroup) {
		if id.Name == "_" {
			return
		}
		d := u.newDecl(id.Name, varKind, n, doc)
		u.vars[id] = d
		if f := first[id.Name]; f != nil {
			// Go on checking under another name; the types must agree.
			d.file = id.Name + mark + strconv.Itoa(u.table.next())
			id.Name = d.file
			u.alias[d] = f
			return
		}
		first[id.Name] = d
	}
	for _, s := range u.body {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				continue
			}
			for _, l := range s.Lhs {
				if id, ok := l.(*ast.Ident); ok {
					declare(id, s, nil)
				} else {
					return []*CompileError{u.at(l.Pos(), "non-name on left side of :=")}
				}
			}
			for _, r := range s.Rhs {
				u.renameOld(r, s.Lhs)
			}
		case *ast.DeclStmt:
			g := s.Decl.(*ast.GenDecl)
			if g.Tok != token.VAR {
				continue
			}
			for _, sp := range g.Specs {
				sp := sp.(*ast.ValueSpec)
				for _, n := range sp.Names {
					declare(n, sp, g.Doc)
				}
				var lhs []ast.Expr
				for _, n := range sp.Names {
					lhs = append(lhs, n)
				}
				for _, r := range sp.Values {
					u.renameOld(r, lhs)
				}
			}
		}
	}
	return nil
}

// genericReceiver says whether d is a method of a generic type.
func genericReceiver(d *ast.FuncDecl) bool {
	t := d.Recv.List[0].Type
	if s, ok := t.(*ast.StarExpr); ok {
		t = s.X
	}
	switch ast.Unparen(t).(type) {
	case *ast.IndexExpr, *ast.IndexListExpr:
		return true
	}
	return false
}

// redeclares says whether a type's text names something that this cell declares
// anew, so that the same text means another type.
func (u *unit) redeclares(s *ast.TypeSpec) bool {
	names := map[string]bool{}
	for _, d := range u.decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, sp := range g.Specs {
				if ts, ok := sp.(*ast.TypeSpec); ok && ts != s {
					names[ts.Name.Name] = true
				}
			}
		}
	}
	found := false
	ast.Inspect(s.Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && names[id.Name] {
			found = true
		}
		return !found
	})
	return found
}

// renameOld makes a name on the right of its own declaration mean the earlier
// one, as in x := x + 1.
func (u *unit) renameOld(e ast.Expr, lhs []ast.Expr) {
	names := map[string]*decl{}
	for _, l := range lhs {
		if id, ok := l.(*ast.Ident); ok && u.vars[id] != nil && u.alias[u.vars[id]] == nil {
			if old := u.table.current[id.Name]; old != nil {
				names[id.Name] = old
			}
		}
	}
	if len(names) == 0 {
		return
	}
	var walk func(n ast.Node, hidden map[string]bool)
	walk = func(n ast.Node, hidden map[string]bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				walk(n.X, hidden)
				return false
			case *ast.KeyValueExpr:
				if _, ok := n.Key.(*ast.Ident); !ok {
					walk(n.Key, hidden)
				}
				walk(n.Value, hidden)
				return false
			case *ast.FuncLit:
				h := maps.Clone(hidden)
				for _, l := range []*ast.FieldList{n.Type.Params, n.Type.Results} {
					if l == nil {
						continue
					}
					for _, f := range l.List {
						for _, id := range f.Names {
							h[id.Name] = true
						}
					}
				}
				ast.Inspect(n.Body, func(m ast.Node) bool {
					if a, ok := m.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
						for _, l := range a.Lhs {
							if id, ok := l.(*ast.Ident); ok {
								h[id.Name] = true
							}
						}
					}
					return true
				})
				walk(n.Body, h)
				return false
			case *ast.Ident:
				if d := names[n.Name]; d != nil && !hidden[n.Name] {
					// hide will rename it with the others.
					d.refs = append(d.refs, n)
				}
			}
			return true
		})
	}
	walk(e, map[string]bool{})
}

// checkedName is the package's name while it is checked: in one named main, only a
// function can be main.
const checkedName = "main" + mark

// showName is the function that the checker sees around the last expression.
const showName = mark + "show"

// file builds what the checker sees of the cell.
func (u *unit) file(show bool) *ast.File {
	f := &ast.File{Name: ast.NewIdent(checkedName)}
	for name, path := range u.imports {
		f.Decls = append(f.Decls, importDecl(name, path))
	}
	f.Decls = append(f.Decls, u.decls...)
	any := &ast.FieldList{List: []*ast.Field{{Type: &ast.Ellipsis{Elt: ast.NewIdent("any")}}}}
	f.Decls = append(f.Decls, &ast.FuncDecl{Name: ast.NewIdent(showName), Type: &ast.FuncType{Params: any}})
	var stmts []ast.Stmt
	for i, s := range u.body {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				names := make([]*ast.Ident, len(s.Lhs))
				for i, l := range s.Lhs {
					names[i] = l.(*ast.Ident)
				}
				f.Decls = append(f.Decls, &ast.GenDecl{Tok: token.VAR, TokPos: s.Pos(), Specs: []ast.Spec{&ast.ValueSpec{Names: names, Values: s.Rhs}}})
				continue
			}
		case *ast.DeclStmt:
			if g := s.Decl.(*ast.GenDecl); g.Tok == token.VAR {
				f.Decls = append(f.Decls, g)
				continue
			}
		case *ast.ExprStmt:
			if show && i == len(u.body)-1 {
				stmts = append(stmts, &ast.ExprStmt{X: &ast.CallExpr{Fun: &ast.Ident{Name: showName, NamePos: s.Pos()}, Args: []ast.Expr{s.X}, Lparen: s.Pos(), Rparen: s.End()}})
				continue
			}
		}
		stmts = append(stmts, s)
	}
	f.Decls = append(f.Decls, &ast.FuncDecl{Name: ast.NewIdent("init"), Type: &ast.FuncType{Params: &ast.FieldList{}}, Body: &ast.BlockStmt{List: stmts}})
	return f
}

// run checks the cell once.
func (u *unit) run(show bool) (errs []*CompileError, retry retryKind) {
	t := u.table
	if err := u.addMissing(); err != nil {
		return []*CompileError{err}, retryNone
	}
	// Names of the table are all in the file of old declarations; a method that
	// the cell declares again is left out there.
	skip := map[*decl]bool{}
	for _, d := range u.fresh {
		if d.kind == methodKind {
			if r := t.current[receiverName(d.fn)]; r != nil && r.file == r.name {
				if m := t.methods[r][d.name]; m != nil {
					skip[m] = true
				}
			}
		}
	}
	paths := map[string]bool{}
	for _, d := range t.all {
		for _, p := range d.paths() {
			paths[p] = true
		}
	}
	old := t.declarations(paths, skip)
	u.pkg = types.NewPackage("main", checkedName)
	u.info = newInfo()
	visible := []*types.Package{}
	for _, path := range u.dots {
		if p, err := t.lib.Import(path); err == nil {
			visible = append(visible, p)
		}
	}
	if t.lab != nil {
		visible = append(visible, t.lab)
	}
	foreign := map[string]bool{} // the names of types in the scope that no file declares
	if len(visible) > 0 {
		// Dot imports, which a declaration of the cell may hide.
		declared := map[string]bool{}
		for _, d := range u.fresh {
			declared[d.file] = true
		}
		for _, d := range t.all {
			declared[d.file] = true
		}
		for name := range u.imports {
			declared[name] = true
		}
		for _, p := range visible {
			for _, n := range p.Scope().Names() {
				if o := p.Scope().Lookup(n); o.Exported() && !declared[n] {
					u.pkg.Scope().Insert(o)
					_, foreign[n] = o.(*types.TypeName)
				}
			}
		}
	}
	main := u.file(show)
	unwrap := wrapForeign([]*ast.File{old, main}, foreign)
	defer unwrap()
	for _, d := range u.decls {
		if f, ok := d.(*ast.FuncDecl); ok && foreign[receiverName(f)] {
			return []*CompileError{u.at(f.Recv.Pos(), "cannot define a method on "+receiverName(f)+", which is not a type of a cell; embed it in one: type T struct{ *"+receiverName(f)+" }")}, retryNone
		}
	}
	u.bodies = map[*types.Func]*ast.FuncDecl{}
	var found []types.Error
	conf := types.Config{
		Importer: t.lib, DisableUnusedImportCheck: true, GoVersion: "go1.26",
		Error: func(err error) {
			if e, ok := err.(types.Error); ok {
				found = append(found, e)
			}
		},
		Sizes: types.SizesFor("gc", "amd64"),
	}
	types.NewChecker(&conf, u.fset, u.pkg, u.info).Files([]*ast.File{old, main})
	for _, f := range []*ast.File{old, main} {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && (fn.Type.TypeParams != nil || fn.Recv != nil && genericReceiver(fn)) {
				if o, ok := u.info.Defs[fn.Name].(*types.Func); ok {
					u.bodies[o] = fn
				}
			}
		}
	}
	for _, e := range found {
		if strings.HasPrefix(e.Msg, "\t") || strings.HasPrefix(e.Msg, "initialization cycle") {
			continue
		}
		if strings.HasPrefix(e.Msg, "declared and not used") && !u.inFunction(e.Pos) {
			continue
		}
		if strings.HasSuffix(e.Msg, "is not used") && u.result != nil && e.Pos >= u.result.Pos() && e.Pos < u.result.End() && !show {
			return nil, retryShow
		}
		if name, ok := strings.CutPrefix(e.Msg, "undefined: "); ok && otherNames[name] != "" {
			e.Msg += "; " + otherNames[name]
		}
		if len(errs) < maxErrors {
			errs = append(errs, u.at(e.Pos, strings.Replace(e.Msg, " in argument to "+showName, "", 1)))
		}
	}
	return errs, retryNone
}

// wrapForeign puts parentheses around the names of foreign types that declarations
// have for their type: go/types takes a plain name that it finds in the package's
// scope for one that the package declares. It adds to foreign the other names for
// such types. undo takes the parentheses away.
func wrapForeign(files []*ast.File, foreign map[string]bool) (undo func()) {
	var wrapped []*ast.TypeSpec
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				s := s.(*ast.TypeSpec)
				t := s.Type
				if star, ok := t.(*ast.StarExpr); ok {
					t = star.X
				}
				id, ok := t.(*ast.Ident)
				if !ok || !foreign[id.Name] {
					continue
				}
				if s.Assign.IsValid() {
					foreign[s.Name.Name] = true
				}
				if t == s.Type {
					s.Type = &ast.ParenExpr{Lparen: id.Pos(), X: id, Rparen: id.End()}
					wrapped = append(wrapped, s)
				}
			}
		}
	}
	return func() {
		for _, s := range wrapped {
			s.Type = ast.Unparen(s.Type)
		}
	}
}

// inFunction says whether pos is in a function, where unused variables are
// errors; between a cell's statements they aren't.
func (u *unit) inFunction(pos token.Pos) bool {
	for _, d := range u.decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Pos() <= pos && pos < f.End() {
			return true
		}
	}
	return false
}

// addMissing imports the standard packages that the cell uses without saying so.
func (u *unit) addMissing() *CompileError {
	used := map[string][]string{}
	ast.Inspect(&ast.File{Name: ast.NewIdent("main"), Decls: append(slices.Clone(u.decls), &ast.FuncDecl{
		Name: ast.NewIdent("init"), Type: &ast.FuncType{Params: &ast.FieldList{}}, Body: &ast.BlockStmt{List: u.body}})}, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok {
				used[id.Name] = append(used[id.Name], s.Sel.Name)
			}
		}
		return true
	})
	declared := map[string]bool{}
	for _, d := range u.fresh {
		declared[d.name] = true
	}
	for name, members := range used {
		if declared[name] || u.table.current[name] != nil || u.imports[name] != "" {
			continue
		}
		if u.table.lab != nil && name == u.table.lab.Name() {
			u.imports[name] = u.table.lab.Path()
			continue
		}
		if path := u.table.lib.find(name, members); path != "" {
			u.imports[name] = path
		}
	}
	return nil
}

// paths are the packages that a kept declaration names.
func (d *decl) paths() []string {
	var s []string
	for _, id := range d.packages {
		s = append(s, id.path)
	}
	return s
}

// A packageRef is an identifier that names a package.
type packageRef struct {
	id   *ast.Ident
	path string
}

// name ties the checker's objects to declarations, old and new.
func (u *unit) name() {
	t := u.table
	scope := u.pkg.Scope()
	for _, d := range t.all {
		if d.kind != methodKind {
			if o := scope.Lookup(d.file); o != nil {
				u.named[o] = d
			}
		}
	}
	for _, d := range u.fresh {
		if d.kind != methodKind {
			if o := scope.Lookup(d.file); o != nil {
				u.named[o] = d
			}
		}
	}
	for _, d := range u.fresh {
		if d.kind != methodKind {
			continue
		}
		f, _ := u.info.Defs[d.fn.Name].(*types.Func)
		if f == nil {
			continue
		}
		if n := receiverNamed(f); n != nil {
			d.recv = u.named[n.Obj()]
		}
		u.named[f] = d
	}
	for r, ms := range t.methods {
		o, _ := scope.Lookup(r.file).(*types.TypeName)
		if o == nil {
			continue
		}
		n, _ := types.Unalias(o.Type()).(*types.Named)
		if n == nil {
			continue
		}
		for i := range n.NumMethods() {
			m := n.Method(i)
			if d := ms[m.Name()]; d != nil && u.named[m] == nil {
				u.named[m] = d
			}
		}
	}
}

// bind ties the cell's names to declarations.
func (u *unit) bind() []*CompileError {
	t := u.table
	scope := u.pkg.Scope()
	u.name()
	// Variables declared again with the same type stay the same variable.
	for _, d := range u.fresh {
		if d.kind != varKind {
			continue
		}
		o := scope.Lookup(d.file)
		if o == nil {
			continue
		}
		same := u.alias[d]
		if same == nil {
			if old := t.current[d.name]; old != nil && old.kind == varKind {
				if oo := scope.Lookup(old.file); oo != nil && types.Identical(oo.Type(), o.Type()) {
					u.alias[d] = old
				}
			}
		} else if oo := scope.Lookup(same.file); oo != nil && !types.Identical(oo.Type(), o.Type()) {
			return []*CompileError{{Source: u.src, Line: d.line, Col: d.col, Msg: fmt.Sprintf("%s is declared twice in this cell, as %s and as %s: use another name or another cell",
				d.name, types.TypeString(oo.Type(), types.RelativeTo(u.pkg)), types.TypeString(o.Type(), types.RelativeTo(u.pkg)))}}
		}
	}
	for _, d := range u.fresh {
		if o := scope.Lookup(d.file); o != nil {
			switch d.kind {
			case varKind:
				d.typ = u.typeExpr(d, o.Type())
			case constKind:
				if c, ok := o.(*types.Const); ok {
					d.value = c.Val()
					if b, ok := c.Type().(*types.Basic); ok {
						d.basic = b.Kind()
						if b.Info()&types.IsUntyped == 0 {
							d.typ = u.typeExpr(d, c.Type())
						}
					} else {
						d.typ = u.typeExpr(d, c.Type())
						if b, ok := c.Type().Underlying().(*types.Basic); ok {
							d.basic = b.Kind()
						}
					}
				}
			}
		}
	}
	// Links: who names whom.
	owner := func(id *ast.Ident) *decl {
		for fn, d := range u.text {
			if fn.Pos() <= id.Pos() && id.Pos() < fn.End() {
				return d
			}
		}
		for _, d := range u.fresh {
			if d.spec != nil && d.spec.Pos() <= id.Pos() && id.Pos() < d.spec.End() {
				return d
			}
		}
		return nil
	}
	link := func(id *ast.Ident, o types.Object) {
		if p, ok := o.(*types.PkgName); ok {
			if d := owner(id); d != nil {
				d.packages = append(d.packages, packageRef{id, p.Imported().Path()})
			}
			return
		}
		if f, ok := o.(*types.Func); ok {
			o = f.Origin()
		}
		d := u.named[o]
		if d == nil {
			return
		}
		if w := owner(id); w == nil {
			u.uses[u.real(d)] = true
		} else if w != d {
			w.uses[u.real(d)] = true
		}
		if d.kind != methodKind {
			if r := u.real(d); r != d {
				r.refs = append(r.refs, id)
			} else {
				d.refs = append(d.refs, id)
			}
		}
	}
	for id, o := range u.info.Uses {
		link(id, o)
	}
	return nil
}

// real is the variable that d is.
func (u *unit) real(d *decl) *decl {
	for u.alias[d] != nil {
		d = u.alias[d]
	}
	return d
}

func receiverNamed(f *types.Func) *types.Named {
	r := f.Signature().Recv()
	if r == nil {
		return nil
	}
	t := types.Unalias(r.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, _ := t.(*types.Named)
	if n != nil {
		n = n.Origin()
	}
	return n
}

// typeExpr writes a type as an expression whose names are tied to declarations.
func (u *unit) typeExpr(d *decl, t types.Type) ast.Expr {
	text := types.TypeString(t, func(p *types.Package) string {
		if p == u.pkg {
			return ""
		}
		return importAlias(p.Path())
	})
	e, err := parser.ParseExpr(text)
	if err != nil {
		// A type that can't be written, such as one declared in a function.
		return ast.NewIdent("any")
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && strings.HasSuffix(id.Name, mark) {
				d.packages = append(d.packages, packageRef{id, aliasPath(id.Name)})
			}
			return false
		case *ast.Field:
			ast.Inspect(n.Type, func(m ast.Node) bool { return u.tie(d, m) })
			return false
		}
		return u.tie(d, n)
	})
	clearPositions(e)
	return e
}

func (u *unit) tie(d *decl, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if id, ok := n.X.(*ast.Ident); ok && strings.HasSuffix(id.Name, mark) {
			d.packages = append(d.packages, packageRef{id, aliasPath(id.Name)})
		}
		return false
	case *ast.Ident:
		if o := u.pkg.Scope().Lookup(n.Name); o != nil {
			if x := u.named[o]; x != nil {
				x.refs = append(x.refs, n)
				d.uses[x] = true
			}
		}
	}
	return true
}

// aliasPath undoes importAlias.
func aliasPath(alias string) string {
	parts := strings.Split(strings.ReplaceAll(strings.TrimSuffix(alias, mark), mark, "/"), string(escape))
	for i, s := range parts[1:] {
		if r, err := strconv.ParseUint(s[:4], 16, 32); err == nil {
			parts[i+1] = string(rune(r)) + s[4:]
		}
	}
	return strings.Join(parts, "")
}

// clearPositions keeps positions of a parsed text out of other files.
func clearPositions(e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			n.NamePos = token.NoPos
		case *ast.BasicLit:
			n.ValuePos = token.NoPos
		}
		return true
	})
}

func syntaxErrors(src *source, err error) []*CompileError {
	var out []*CompileError
	for _, e := range scannerErrors(err) {
		c := &CompileError{Source: src, Msg: e.Msg}
		if e.Pos.Line > 0 {
			c.Line, c.Col = e.Pos.Line, e.Pos.Column
		}
		if c.Line > len(src.lines) {
			c.Line, c.Col = len(src.lines), len(src.lines[len(src.lines)-1])+1
		}
		out = append(out, c)
		break // one syntax error begets others
	}
	if len(out) == 0 {
		out = append(out, &CompileError{Source: src, Msg: err.Error()})
	}
	return out
}

// commit makes the cell's declarations those of the session. names gives each its
// name in the interpreter.
func (t *table) commit(u *unit) {
	for name := range u.imported {
		delete(t.current, name)
	}
	for _, d := range u.fresh {
		if r := u.alias[d]; r != nil {
			if r = u.real(d); r.file != r.name && t.current[r.name] == r {
				r.setFile(r.name)
			}
			continue
		}
		if d.kind == methodKind {
			if d.recv == nil {
				continue
			}
			if t.methods[d.recv] == nil {
				t.methods[d.recv] = map[string]*decl{}
			}
			if old := t.methods[d.recv][d.name]; old != nil {
				t.all = slices.DeleteFunc(t.all, func(x *decl) bool { return x == old })
			}
			t.methods[d.recv][d.name] = d
			t.all = append(t.all, d)
		} else {
			if !slices.Contains(u.inits, d) {
				t.current[d.name] = d
			}
			t.all = append(t.all, d)
		}
		for _, p := range d.packages {
			p.id.Name = importAlias(p.path)
		}
	}
	t.imports, t.dots = u.imports, u.dots
	t.look(u)
}
