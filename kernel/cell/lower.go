package cell

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// lowered is a checked cell as the interpreter takes it: one file in which
// variables are declared with their types, constants are values, every name is
// the one that the interpreter knows, and the statements are a function.
type lowered struct {
	file  *ast.File
	enter string // the function that runs the cell

	made      []*decl // instances of generic declarations
	instances map[string]*decl
	err       error    // what the interpreter can't have
	undos     []func() // when the cell doesn't compile

	// Of gotten packages: the functions that run before enter, those whose packages
	// they begin, and the functions that the interpreter refused.
	inits  []string
	begun  []*gottenPackage
	blamed map[*decl]bool
}

// constraint says whether o is an interface that only type parameters can have.
func constraint(o types.Object) bool {
	if o == nil {
		return false
	}
	i, ok := o.Type().Underlying().(*types.Interface)
	return ok && !i.IsMethodSet()
}

// internalPath is the package of the functions that lowered code calls.
const internalPath = "cell" + mark

type lowerer struct {
	u      *unit
	paths  map[string]bool
	done   map[ast.Expr]bool  // made here: nothing to rewrite
	called map[ast.Expr]bool  // the functions of calls
	hiding map[*types.Var]int // numbers of variables that hide others

	// What is being lowered: its declaration (nil for the statements), the
	// checker's facts about it, and the types that stand for its parameters.
	cur   *decl
	info  *types.Info
	subst map[*types.TypeParam]types.Type

	funcs []*types.Signature // around what is being lowered, innermost last

	instances map[string]*decl // new ones, by key
	made      []*decl

	placed []*defined     // types to fill
	bare   []*defined     // types to give their methods
	wanted []*types.Named // instances to compile
	locals map[localKey]*types.Named
	errs   []error
	undos  []func()

	jobs  []*job // to lower, of gotten packages
	inits []initializer
	begun []*gottenPackage
}

func newLowerer(u *unit) *lowerer {
	return &lowerer{u: u, paths: map[string]bool{internalPath: true}, done: map[ast.Expr]bool{}, called: map[ast.Expr]bool{}, hiding: map[*types.Var]int{}, info: u.info, instances: map[string]*decl{}, locals: map[localKey]*types.Named{}}
}

// undo takes back what lowering did, for a cell that doesn't compile.
func (low *lowered) undo() {
	for _, f := range low.undos {
		f()
	}
}

// lower writes a checked cell for the interpreter. It leaves u's tree as it is.
func lower(u *unit) *lowered {
	l := newLowerer(u)
	t := u.table
	for _, d := range u.fresh {
		switch {
		case d.kind == methodKind:
			d.run = receiverName(d.fn) + mark + d.name + mark + strconv.Itoa(t.next())
		case u.alias[d] == nil && d.run == "":
			d.run = t.runName(d.name, t.used[d.name])
			t.used[d.run] = true
		}
	}
	f := &ast.File{Name: ast.NewIdent("main")}
	for _, d := range u.decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, n := range u.fresh {
				if n.kind == typeKind && d.Tok == token.TYPE && n.spec == d.Specs[0] && !n.generic && !constraint(u.info.Defs[n.spec.Name]) {
					l.within(n, u.info, nil, func() { l.typeOf(u.info.Defs[n.spec.Name].Type()) })
				}
			}
		case *ast.FuncDecl:
			if n := u.text[d]; !n.generic {
				l.within(n, u.info, nil, func() {
					n.lowered = d
					if n.kind == methodKind {
						n.lowered = l.declared(n, d)
					} else {
						n.lowered = l.node(d)
					}
				})
				f.Decls = append(f.Decls, n.lowered.(ast.Decl))
			}
		}
	}
	changed := map[*decl]bool{}
	for _, d := range u.fresh {
		if d.kind == methodKind && d.recv != nil && !slices.Contains(u.fresh, d.recv) {
			changed[d.recv] = true
		}
	}
	if len(changed) > 0 {
		if err := l.refresh(changed); err != nil {
			l.errs = append(l.errs, err)
		}
		l.renew(changed)
	}
	var body []ast.Stmt
	ordered := u.ordered()
	last := -1 // of the variables
	for i, s := range ordered {
		if d, ok := s.(*ast.DeclStmt); ok && d.Decl.(*ast.GenDecl).Tok == token.VAR {
			last = i
		}
	}
	inits := u.inits
	initialize := func(end token.Pos) {
		for len(inits) > 0 && (end == token.NoPos || inits[0].fn.Pos() < end) {
			body = append(body, &ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent(inits[0].run)}})
			inits = inits[1:]
		}
	}
	for i, s := range ordered {
		if i > last {
			initialize(s.Pos())
		}
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				body = append(body, l.assign(s.Lhs, s.Rhs, s.TokPos))
				continue
			}
		case *ast.DeclStmt:
			g := s.Decl.(*ast.GenDecl)
			if g.Tok == token.VAR {
				for _, sp := range g.Specs {
					sp := sp.(*ast.ValueSpec)
					lhs := make([]ast.Expr, len(sp.Names))
					for i, n := range sp.Names {
						lhs[i] = n
					}
					rhs := sp.Values
					if len(rhs) == 0 {
						body = append(body, l.zero(f, sp)...)
						continue
					}
					body = append(body, l.assign(lhs, rhs, sp.Pos()))
				}
				continue
			}
		case *ast.ExprStmt:
			if i == len(u.body)-1 && u.result != nil {
				body = append(body, l.show(s.X)...)
				continue
			}
		}
		body = append(body, l.node(s).(ast.Stmt))
	}
	initialize(token.NoPos)
	if u.main != nil {
		body = append(body, &ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent(u.main.run)}})
	}
	// New variables, with their types.
	for _, d := range u.fresh {
		if d.kind == varKind && u.alias[d] == nil {
			var typ ast.Expr
			l.within(d, u.info, nil, func() { typ = l.typeOf(u.pkg.Scope().Lookup(d.file).Type()) })
			d.lowered = typ
			f.Decls = append(f.Decls, variable(d.run, typ))
		}
	}
	out := &lowered{file: f, enter: "Cell" + mark + strconv.Itoa(t.next())}
	f.Decls = append(f.Decls, &ast.FuncDecl{Name: ast.NewIdent(out.enter), Type: &ast.FuncType{Params: &ast.FieldList{}}, Body: &ast.BlockStmt{List: body}})
	l.begin()
	l.complete(out)
	return out
}

// complete puts what lowering has made into the file.
func (l *lowerer) complete(out *lowered) {
	l.work()
	f := out.file
	for _, d := range l.made {
		switch n := d.lowered.(type) {
		case ast.Decl:
			f.Decls = append(f.Decls, n)
		case ast.Expr:
			f.Decls = append(f.Decls, variable(d.run, n))
		}
	}
	out.made, out.instances, out.err, out.undos = l.made, l.instances, errors.Join(l.errs...), l.undos
	out.inits, out.begun = orderInits(l.inits), l.begun
	var imports []ast.Decl
	for p := range l.paths {
		imports = append(imports, importDecl(importAlias(p), p))
	}
	f.Decls = append(imports, f.Decls...)
}

// ordered are the statements as they run: those of a whole program, which are its
// variables, in the order of initialization.
func (u *unit) ordered() []ast.Stmt {
	if !u.program {
		return u.body
	}
	var out []ast.Stmt
	done := map[ast.Node]bool{}
	for _, in := range u.info.InitOrder {
		for _, s := range u.body {
			d, ok := s.(*ast.DeclStmt)
			if !ok || d.Decl.(*ast.GenDecl).Tok != token.VAR {
				return u.body
			}
			for _, sp := range d.Decl.(*ast.GenDecl).Specs {
				if sp.Pos() <= in.Rhs.Pos() && in.Rhs.End() <= sp.End() && !done[sp] {
					done[sp] = true
					out = append(out, &ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR, TokPos: s.Pos(), Specs: []ast.Spec{sp}}})
				}
			}
		}
	}
	for _, s := range u.body {
		for _, sp := range s.(*ast.DeclStmt).Decl.(*ast.GenDecl).Specs {
			if !done[sp] {
				out = append(out, &ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR, TokPos: s.Pos(), Specs: []ast.Spec{sp}}})
			}
		}
	}
	return out
}

func variable(name string, typ ast.Expr) ast.Decl {
	return &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{ast.NewIdent(name)}, Type: typ}}}
}

// internal names a function of the child's own package.
func (l *lowerer) internal(name string, pos token.Pos) ast.Expr {
	return &ast.SelectorExpr{X: &ast.Ident{Name: importAlias(internalPath), NamePos: pos}, Sel: &ast.Ident{Name: name, NamePos: pos}}
}

// assign is a top-level := or var with values: an assignment, its variables being
// declared elsewhere.
func (l *lowerer) assign(lhs, rhs []ast.Expr, pos token.Pos) ast.Stmt {
	a := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: pos}
	for _, e := range lhs {
		id := e.(*ast.Ident)
		n := &ast.Ident{NamePos: id.NamePos, Name: "_"}
		if d := l.u.vars[id]; d != nil {
			n.Name = l.u.real(d).run
		}
		a.Lhs = append(a.Lhs, n)
	}
	for _, e := range rhs {
		a.Rhs = append(a.Rhs, l.expr(e))
	}
	if id := a.Lhs[0].(*ast.Ident); len(a.Lhs) == 1 && id.Name == "_" {
		id.Name, a.Tok = "a"+mark+strconv.Itoa(l.u.table.next()), token.DEFINE
	}
	return a
}

// zero is a top-level var without values. A variable that exists already becomes
// zero again.
func (l *lowerer) zero(f *ast.File, sp *ast.ValueSpec) []ast.Stmt {
	var out []ast.Stmt
	for _, id := range sp.Names {
		d := l.u.vars[id]
		if d == nil || l.u.alias[d] == nil {
			continue
		}
		z := "zero" + mark + strconv.Itoa(l.u.table.next())
		f.Decls = append(f.Decls, variable(z, l.typeOf(l.info.Defs[id].Type())))
		out = append(out, &ast.AssignStmt{Tok: token.ASSIGN, TokPos: id.Pos(),
			Lhs: []ast.Expr{&ast.Ident{Name: l.u.real(d).run, NamePos: id.Pos()}}, Rhs: []ast.Expr{&ast.Ident{Name: z, NamePos: id.Pos()}}})
	}
	return out
}

// show gives the last expression's values to the child.
func (l *lowerer) show(e ast.Expr) []ast.Stmt {
	tv := l.info.Types[e]
	x := l.expr(e)
	pos := e.Pos()
	call := func(args ...ast.Expr) ast.Stmt {
		return &ast.ExprStmt{X: &ast.CallExpr{Fun: l.internal("Show", pos), Lparen: pos, Rparen: pos, Args: args}}
	}
	if u := l.u; u.silent {
		if _, call := ast.Unparen(e).(*ast.CallExpr); !call || tv.Value != nil || l.conversion(e) {
			if tv.IsNil() {
				return nil
			}
			return []ast.Stmt{&ast.AssignStmt{Tok: token.ASSIGN, TokPos: pos, Lhs: []ast.Expr{&ast.Ident{Name: "_", NamePos: pos}}, Rhs: []ast.Expr{x}}}
		}
		return []ast.Stmt{&ast.ExprStmt{X: x}}
	}
	if tv.IsVoid() || l.prints(e) {
		return []ast.Stmt{&ast.ExprStmt{X: x}}
	}
	if tup, ok := tv.Type.(*types.Tuple); ok {
		a := &ast.AssignStmt{Tok: token.DEFINE, TokPos: pos, Rhs: []ast.Expr{x}}
		var args []ast.Expr
		for i := range tup.Len() {
			n := "r" + mark + strconv.Itoa(i)
			a.Lhs = append(a.Lhs, &ast.Ident{Name: n, NamePos: pos})
			args = append(args, &ast.Ident{Name: n, NamePos: pos})
		}
		return []ast.Stmt{a, call(args...)}
	}
	return []ast.Stmt{call(x)}
}

// prints says whether e is a call of fmt's printing functions, whose count of
// bytes nobody wants to see.
func (l *lowerer) prints(e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	var id *ast.Ident
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		id = f.Sel
	case *ast.Ident:
		id = f
	default:
		return false
	}
	f, ok := l.info.Uses[id].(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == "fmt" && (strings.HasPrefix(f.Name(), "Print") || strings.HasPrefix(f.Name(), "Fprint"))
}

// conversion says whether e, a call, is of a type or of a builtin function.
func (l *lowerer) conversion(e ast.Expr) bool {
	c, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	tv := l.info.Types[c.Fun]
	return tv.IsType() || tv.IsBuiltin() && !l.info.Types[e].IsVoid()
}

func (l *lowerer) expr(e ast.Expr) ast.Expr {
	if e == nil {
		return nil
	}
	return l.node(e).(ast.Expr)
}

// node copies a tree and rewrites it on the way.
func (l *lowerer) node(n ast.Node) ast.Node {
	if e, ok := n.(ast.Expr); ok {
		if l.done[e] {
			return e
		}
		if r := l.rewrite(e); r != nil {
			return r
		}
	}
	switch n := n.(type) {
	case *ast.DeclStmt:
		g := n.Decl.(*ast.GenDecl)
		if g.Tok == token.CONST || g.Tok == token.TYPE {
			// Every use has its value, or the type itself.
			return &ast.EmptyStmt{Semicolon: n.Pos(), Implicit: true}
		}
	case *ast.FuncDecl:
		if f, ok := l.info.Defs[n.Name].(*types.Func); ok {
			return l.function(n, f.Type())
		}
	case *ast.FuncLit:
		return l.function(n, l.info.Types[n].Type)
	case *ast.DeferStmt:
		if s := l.deferred(n); s != nil {
			return s
		}
	case *ast.ReturnStmt:
		if s := l.returned(n); s != nil {
			return s
		}
	case *ast.AssignStmt:
		if s := l.assignment(n); s != nil {
			return s
		}
	case *ast.LabeledStmt:
		if r, ok := n.Stmt.(*ast.RangeStmt); ok && isBlank(r.Key, r.Value) {
			c := *n
			c.Stmt = withoutBlanks(r)
			return l.node(&c)
		}
		if r, ok := n.Stmt.(*ast.RangeStmt); ok && l.overFunc(r) {
			return l.rangeFunc(r, labelOf(n.Label).Name)
		}
		if s, ok := n.Stmt.(*ast.TypeSwitchStmt); ok {
			return l.typeSwitch(s, n.Label)
		}
		if s, ok := n.Stmt.(*ast.SwitchStmt); ok {
			return l.exprSwitch(s, n)
		}
		if s, ok := n.Stmt.(*ast.SelectStmt); ok {
			return l.selectStmt(s, n)
		}
	case *ast.TypeSwitchStmt:
		return l.typeSwitch(n, nil)
	case *ast.SwitchStmt:
		return l.exprSwitch(n, nil)
	case *ast.SelectStmt:
		return l.selectStmt(n, nil)
	case *ast.RangeStmt:
		if isBlank(n.Key, n.Value) {
			return l.node(withoutBlanks(n))
		}
		if l.overFunc(n) {
			return l.rangeFunc(n, "")
		}
		if n.Tok == token.ASSIGN {
			return l.rangeAssign(n)
		}
		if n.Tok == token.DEFINE && shadows(n.Body, n.Key, n.Value) {
			c := *n
			c.Body = inner(n.Body)
			return l.copy(reflect.ValueOf(&c)).Interface().(ast.Node)
		}
	case *ast.ForStmt:
		if a, ok := n.Init.(*ast.AssignStmt); ok && a.Tok == token.DEFINE && shadows(n.Body, a.Lhs...) {
			c := *n
			c.Body = inner(n.Body)
			return l.copy(reflect.ValueOf(&c)).Interface().(ast.Node)
		}
	}
	return l.copy(reflect.ValueOf(n)).Interface().(ast.Node)
}

// isBlank says whether the last of a range loop's variables is blank.
func isBlank(key, value ast.Expr) bool {
	if value == nil {
		value = key
	}
	id, ok := value.(*ast.Ident)
	return ok && id.Name == "_"
}

// withoutBlanks is a range loop without the blank variables that nothing follows,
// for which the interpreter would have one variable, of any loop's type.
func withoutBlanks(s *ast.RangeStmt) *ast.RangeStmt {
	c := *s
	if c.Value != nil {
		if c.Value = nil; isBlank(c.Key, nil) {
			c.Key = nil
		}
	} else {
		c.Key = nil
	}
	if c.Key == nil {
		c.Tok = token.ILLEGAL
	}
	return &c
}

// assignment gives the values of an expression with several to new variables, and
// these to where they go: the interpreter can't make them entries of maps or
// interfaces. A value for nothing gets a variable of its own. The result is nil where
// the interpreter does as well.
func (l *lowerer) assignment(s *ast.AssignStmt) ast.Stmt {
	if s.Tok != token.ASSIGN {
		return nil
	}
	name := func(pos token.Pos) func() *ast.Ident {
		n := "a" + mark + strconv.Itoa(l.u.table.next())
		return func() *ast.Ident { return &ast.Ident{Name: n, NamePos: pos} }
	}
	if len(s.Lhs) == 1 {
		if isBlank(s.Lhs[0], nil) {
			return &ast.AssignStmt{Tok: token.DEFINE, TokPos: s.TokPos, Lhs: []ast.Expr{name(s.Lhs[0].Pos())()}, Rhs: []ast.Expr{l.expr(s.Rhs[0])}}
		}
		return nil
	}
	if len(s.Rhs) > 1 {
		return nil
	}
	var from []types.Type
	switch t := l.info.Types[s.Rhs[0]].Type.(type) {
	case *types.Tuple:
		for i := range t.Len() {
			from = append(from, t.At(i).Type())
		}
	default:
		from = []types.Type{t, types.Typ[types.Bool]}
	}
	plain := true
	for i, e := range s.Lhs {
		id, ok := e.(*ast.Ident)
		plain = plain && ok && (id.Name == "_" || types.Identical(l.concrete(l.info.Types[e].Type), l.concrete(from[i])))
	}
	if plain {
		return nil
	}
	first := &ast.AssignStmt{Tok: token.DEFINE, TokPos: s.TokPos}
	then := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: s.TokPos}
	for _, e := range s.Lhs {
		if isBlank(e, nil) {
			first.Lhs = append(first.Lhs, &ast.Ident{Name: "_", NamePos: e.Pos()})
			continue
		}
		id := name(e.Pos())
		first.Lhs = append(first.Lhs, id())
		then.Lhs, then.Rhs = append(then.Lhs, l.expr(e)), append(then.Rhs, id())
	}
	first.Rhs = []ast.Expr{l.expr(s.Rhs[0])}
	return &ast.BlockStmt{Lbrace: s.TokPos, Rbrace: s.TokPos, List: []ast.Stmt{first, then}}
}

// shadows says whether a loop's body declares one of the loop's variables anew: for
// the interpreter they are of one block.
func shadows(body *ast.BlockStmt, vars ...ast.Expr) bool {
	names := map[string]bool{}
	for _, v := range vars {
		if id, ok := v.(*ast.Ident); ok && id.Name != "_" {
			names[id.Name] = true
		}
	}
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				for _, e := range s.Lhs {
					if id, ok := e.(*ast.Ident); ok && names[id.Name] {
						return true
					}
				}
			}
		case *ast.DeclStmt:
			for _, sp := range s.Decl.(*ast.GenDecl).Specs {
				if v, ok := sp.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						if names[id.Name] {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// inner is a block with the body as its only statement.
func inner(body *ast.BlockStmt) *ast.BlockStmt {
	return &ast.BlockStmt{Lbrace: body.Lbrace, Rbrace: body.Rbrace, List: []ast.Stmt{body}}
}

// exprSwitch writes a switch after its first statement and as one over conditions:
// the interpreter would run the first statement after a call whose result is switched
// over, compare by converting, and call only the first function of a case's list.
// label is the switch's, or nil.
func (l *lowerer) exprSwitch(s *ast.SwitchStmt, label *ast.LabeledStmt) ast.Stmt {
	pos := s.Switch
	out := &ast.BlockStmt{Lbrace: pos, Rbrace: pos}
	if s.Init != nil {
		out.List = append(out.List, l.node(s.Init).(ast.Stmt))
	}
	value := "v" + mark + strconv.Itoa(l.u.table.next())
	id := func(pos token.Pos) *ast.Ident { return &ast.Ident{Name: value, NamePos: pos} }
	if s.Tag != nil {
		out.List = append(out.List, &ast.AssignStmt{Tok: token.DEFINE, TokPos: pos, Lhs: []ast.Expr{id(pos)}, Rhs: []ast.Expr{l.expr(s.Tag)}})
	}
	body := &ast.BlockStmt{Lbrace: s.Body.Lbrace, Rbrace: s.Body.Rbrace}
	for _, stmt := range s.Body.List {
		c := stmt.(*ast.CaseClause)
		clause := &ast.CaseClause{Case: c.Case, Colon: c.Colon}
		for i, e := range c.List {
			x := l.expr(e)
			switch tv := l.info.Types[e]; {
			case s.Tag == nil && types.IsInterface(tv.Type):
				x = &ast.BinaryExpr{X: x, OpPos: e.Pos(), Op: token.EQL, Y: &ast.Ident{Name: "true", NamePos: e.Pos()}}
			case s.Tag != nil:
				x = &ast.BinaryExpr{X: id(e.Pos()), OpPos: e.Pos(), Op: token.EQL, Y: x}
			}
			if i == 0 {
				clause.List = []ast.Expr{x}
			} else {
				clause.List[0] = &ast.BinaryExpr{X: clause.List[0], OpPos: e.Pos(), Op: token.LOR, Y: x}
			}
		}
		clause.Body = append(clause.Body, l.clauseBody(c.Body)...)
		body.List = append(body.List, clause)
	}
	var sw ast.Stmt = &ast.SwitchStmt{Switch: pos, Body: body}
	if label != nil {
		sw = &ast.LabeledStmt{Label: labelOf(label.Label), Colon: label.Colon, Stmt: sw}
	}
	out.List = append(out.List, sw)
	return out
}

// labelOf is a label as the interpreter knows it, where it is no variable's name.
func labelOf(id *ast.Ident) *ast.Ident {
	return &ast.Ident{Name: id.Name + mark + "l", NamePos: id.NamePos}
}

// clauseBody lowers the statements of a clause. Labels are in a block of their own: the
// interpreter looks for them in blocks.
func (l *lowerer) clauseBody(list []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	labels := false
	for _, s := range list {
		_, ok := s.(*ast.LabeledStmt)
		labels = labels || ok
		out = append(out, l.node(s).(ast.Stmt))
	}
	if !labels {
		return out
	}
	end := len(out)
	if b, ok := out[end-1].(*ast.BranchStmt); ok && b.Tok == token.FALLTHROUGH {
		end--
	}
	block := &ast.BlockStmt{Lbrace: out[0].Pos(), Rbrace: out[end-1].Pos(), List: out[:end:end]}
	return append([]ast.Stmt{block}, out[end:]...)
}

// selectStmt computes a select's channels and what it sends before it, and assigns
// what it has received after: the interpreter evaluates names only. label is the
// select's, or nil.
func (l *lowerer) selectStmt(s *ast.SelectStmt, label *ast.LabeledStmt) ast.Stmt {
	out := &ast.BlockStmt{Lbrace: s.Select, Rbrace: s.Select}
	name := func(pos token.Pos) func() *ast.Ident {
		n := "c" + mark + strconv.Itoa(l.u.table.next())
		return func() *ast.Ident { return &ast.Ident{Name: n, NamePos: pos} }
	}
	before := func(e ast.Expr) ast.Expr {
		if tv := l.info.Types[e]; tv.Value != nil || tv.IsNil() {
			return l.expr(e)
		}
		id := name(e.Pos())
		out.List = append(out.List, &ast.AssignStmt{Tok: token.DEFINE, TokPos: e.Pos(), Lhs: []ast.Expr{id()}, Rhs: []ast.Expr{l.expr(e)}})
		return id()
	}
	receive := func(e ast.Expr) ast.Expr {
		u := ast.Unparen(e).(*ast.UnaryExpr)
		return &ast.UnaryExpr{OpPos: u.OpPos, Op: u.Op, X: before(u.X)}
	}
	body := &ast.BlockStmt{Lbrace: s.Body.Lbrace, Rbrace: s.Body.Rbrace}
	for _, stmt := range s.Body.List {
		c := stmt.(*ast.CommClause)
		clause := &ast.CommClause{Case: c.Case, Colon: c.Colon}
		switch x := c.Comm.(type) {
		case *ast.SendStmt:
			clause.Comm = &ast.SendStmt{Chan: before(x.Chan), Arrow: x.Arrow, Value: before(x.Value)}
		case *ast.ExprStmt:
			clause.Comm = &ast.ExprStmt{X: receive(x.X)}
		case *ast.AssignStmt:
			a := &ast.AssignStmt{Tok: token.DEFINE, TokPos: x.TokPos, Rhs: []ast.Expr{receive(x.Rhs[0])}}
			blank := true
			for _, e := range x.Lhs {
				id, ok := e.(*ast.Ident)
				switch {
				case ok && id.Name == "_":
					a.Lhs = append(a.Lhs, &ast.Ident{Name: "_", NamePos: id.NamePos})
					continue
				default: // a variable of the clause is a new one each time
					got := name(e.Pos())
					a.Lhs = append(a.Lhs, got())
					clause.Body = append(clause.Body, &ast.AssignStmt{Tok: x.Tok, TokPos: x.TokPos, Lhs: []ast.Expr{l.expr(e)}, Rhs: []ast.Expr{got()}})
				}
				blank = false
			}
			clause.Comm = a
			if blank {
				clause.Comm = &ast.ExprStmt{X: a.Rhs[0]}
			}
		}
		clause.Body = append(clause.Body, l.clauseBody(c.Body)...)
		body.List = append(body.List, clause)
	}
	var sel ast.Stmt = &ast.SelectStmt{Select: s.Select, Body: body}
	if label != nil {
		sel = &ast.LabeledStmt{Label: labelOf(label.Label), Colon: label.Colon, Stmt: sel}
	}
	out.List = append(out.List, sel)
	return out
}

// rangeAssign is a range loop that assigns to variables of before; the interpreter
// would declare its own.
func (l *lowerer) rangeAssign(s *ast.RangeStmt) ast.Node {
	out := l.copy(reflect.ValueOf(s)).Interface().(*ast.RangeStmt)
	out.Tok = token.DEFINE
	first := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: s.TokPos}
	for i, e := range []*ast.Expr{&out.Key, &out.Value} {
		if id, ok := (*e).(*ast.Ident); *e == nil || ok && id.Name == "_" {
			continue
		}
		name := func() *ast.Ident { return &ast.Ident{Name: "e" + mark + strconv.Itoa(i), NamePos: s.TokPos} }
		first.Lhs, first.Rhs = append(first.Lhs, *e), append(first.Rhs, name())
		*e = name()
	}
	if first.Lhs == nil {
		out.Tok = s.Tok
		return out
	}
	out.Body.List = append([]ast.Stmt{first}, out.Body.List...)
	return out
}

// deferred computes a deferred call's arguments when the statement runs; the
// interpreter would look at its variables when the call does.
func (l *lowerer) deferred(s *ast.DeferStmt) ast.Stmt {
	c, ok := l.node(s.Call).(*ast.CallExpr)
	if !ok {
		return nil
	}
	var list []ast.Stmt
	shift := len(c.Args) - len(s.Call.Args) // a receiver that became an argument, and what goes with it
	for i := range shift {
		id := func() *ast.Ident { return &ast.Ident{Name: "d" + mark + "r" + strconv.Itoa(i), NamePos: s.Defer} }
		list = append(list, &ast.AssignStmt{Tok: token.DEFINE, TokPos: s.Defer, Lhs: []ast.Expr{id()}, Rhs: []ast.Expr{c.Args[i]}})
		c.Args[i] = id()
	}
	for i, a := range s.Call.Args {
		tv := l.info.Types[a]
		if i += max(shift, 0); tv.Value != nil || tv.IsNil() || tv.IsType() || tv.Type == nil || i >= len(c.Args) {
			continue
		}
		switch ast.Unparen(a).(type) {
		case *ast.FuncLit, *ast.BasicLit:
			continue
		}
		if _, ok := tv.Type.(*types.Tuple); ok {
			return nil
		}
		id := func() *ast.Ident { return &ast.Ident{Name: "d" + mark + strconv.Itoa(i), NamePos: a.Pos()} }
		list = append(list, &ast.AssignStmt{Tok: token.DEFINE, TokPos: a.Pos(), Lhs: []ast.Expr{id()}, Rhs: []ast.Expr{c.Args[i]}})
		c.Args[i] = id()
	}
	d := &ast.DeferStmt{Defer: s.Defer, Call: c}
	if list == nil {
		return d
	}
	return &ast.BlockStmt{Lbrace: s.Defer, Rbrace: s.Defer, List: append(list, d)}
}

// returned computes all values of a return statement before the first becomes a named
// result, which the others may use. It gives nil where the interpreter does as well.
func (l *lowerer) returned(s *ast.ReturnStmt) ast.Stmt {
	rs := l.results()
	if len(s.Results) < 2 || rs[0].Name() == "" {
		return nil
	}
	set := &ast.AssignStmt{Tok: token.DEFINE, TokPos: s.Return}
	out := &ast.ReturnStmt{Return: s.Return}
	for i, e := range s.Results {
		x := l.expr(e)
		if tv := l.info.Types[e]; tv.Value == nil && !tv.IsNil() {
			id := func() *ast.Ident { return &ast.Ident{Name: "r" + mark + strconv.Itoa(i), NamePos: e.Pos()} }
			set.Lhs, set.Rhs = append(set.Lhs, id()), append(set.Rhs, x)
			x = id()
		}
		out.Results = append(out.Results, x)
	}
	if len(set.Lhs) == 0 {
		return out
	}
	return &ast.BlockStmt{Lbrace: s.Return, Rbrace: s.Return, List: []ast.Stmt{set, out}}
}

// declared lowers a method's declaration.
func (l *lowerer) declared(n *decl, d *ast.FuncDecl) ast.Node {
	f, ok := l.info.Defs[d.Name].(*types.Func)
	if !ok {
		return l.node(d)
	}
	recv := f.Signature().Recv().Type()
	if t := receiverNamed(f); t != nil {
		var err error
		if n.code, err = l.codeOf(t, f); err != nil {
			l.errs = append(l.errs, err)
		}
	}
	return l.methodDecl(d, recv, f.Signature(), n.run)
}

func (l *lowerer) overFunc(s *ast.RangeStmt) bool {
	tv, ok := l.info.Types[s.X]
	if !ok {
		return false
	}
	_, ok = l.concrete(tv.Type).Underlying().(*types.Signature)
	return ok
}

// function lowers a function's declaration or literal.
func (l *lowerer) function(n ast.Node, t types.Type) ast.Node {
	sig, ok := l.concrete(t).(*types.Signature)
	if !ok {
		sig = types.NewSignatureType(nil, nil, nil, nil, nil, false)
	}
	l.funcs = append(l.funcs, sig)
	c := l.copy(reflect.ValueOf(n)).Interface().(ast.Node)
	switch c := c.(type) {
	case *ast.FuncDecl:
		l.nameParams(c.Recv)
		l.nameParams(c.Type.Params)
	case *ast.FuncLit:
		l.nameParams(c.Type.Params)
	}
	l.funcs = l.funcs[:len(l.funcs)-1]
	return c
}

// nameParams gives each parameter a name: the interpreter miscounts those that
// have none.
func (l *lowerer) nameParams(fields *ast.FieldList) {
	if fields == nil {
		return
	}
	for _, f := range fields.List {
		name := func(pos token.Pos) *ast.Ident {
			return &ast.Ident{Name: "p" + mark + strconv.Itoa(l.u.table.next()), NamePos: pos}
		}
		if len(f.Names) == 0 {
			f.Names = []*ast.Ident{name(f.Type.Pos())}
		}
		for i, n := range f.Names {
			if n.Name == "_" {
				f.Names[i] = name(n.NamePos)
			}
		}
	}
}

var (
	nodeType    = reflect.TypeFor[ast.Node]()
	objectType  = reflect.TypeFor[*ast.Object]()
	commentType = reflect.TypeFor[*ast.CommentGroup]()
)

func (l *lowerer) copy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Type() == objectType || v.Type() == commentType {
			return reflect.Zero(v.Type())
		}
		c := reflect.New(v.Type().Elem())
		for i := range v.Elem().NumField() {
			c.Elem().Field(i).Set(l.child(v.Elem().Field(i)))
		}
		return c
	}
	return v
}

func (l *lowerer) child(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		if n, ok := v.Interface().(ast.Node); ok {
			return reflect.ValueOf(l.node(n))
		}
	case reflect.Pointer:
		if v.IsNil() || v.Type() == objectType || v.Type() == commentType {
			return reflect.Zero(v.Type())
		}
		if v.Type().Implements(nodeType) {
			n := v.Interface().(ast.Node)
			r := reflect.ValueOf(l.node(n))
			if r.Type().AssignableTo(v.Type()) {
				return r
			}
			// A place that takes this kind of node only.
			return l.copy(v)
		}
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(l.child(v.Index(i)))
		}
		return c
	}
	return v
}

// rewrite gives what an expression becomes, or nil to go on inside it.
func (l *lowerer) rewrite(e ast.Expr) ast.Expr {
	if c, ok := e.(*ast.CallExpr); ok {
		l.called[ast.Unparen(c.Fun)] = true
	}
	r := l.rewritten(e)
	// The interpreter has no value for a declared function in most places: a literal
	// that calls it has.
	if name, ok := r.(*ast.Ident); ok && !l.called[e] && l.declaredFunc(e) {
		sig := l.concrete(l.info.Types[e].Type).(*types.Signature)
		return l.closure(sig, e.Pos(), func(args []ast.Expr, ellipsis token.Pos) ast.Expr {
			return &ast.CallExpr{Fun: name, Lparen: e.Pos(), Ellipsis: ellipsis, Rparen: e.Pos(), Args: args}
		})
	}
	return r
}

// declaredFunc says whether e names a declared function, as a value.
func (l *lowerer) declaredFunc(e ast.Expr) bool {
	tv, ok := l.info.Types[e]
	if !ok || !tv.IsValue() {
		return false
	}
	id := nameOf(e)
	if id == nil {
		return false
	}
	f, ok := l.info.Uses[id].(*types.Func)
	return ok && f.Signature().Recv() == nil
}

func (l *lowerer) rewritten(e ast.Expr) ast.Expr {
	info := l.info
	if tv, ok := info.Types[e]; ok && tv.Value != nil && !tv.IsType() {
		if c := l.constant(tv, e.Pos()); c != nil {
			return c
		}
	}
	if tv, ok := info.Types[e]; ok && tv.IsType() {
		switch e.(type) {
		case *ast.FuncType, *ast.Ellipsis: // which say more than the type
		default:
			return setPositions(l.typeOf(tv.Type), e.Pos())
		}
	}
	if g := l.generic(e); g != nil {
		return g
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		// The interpreter loses a function in parentheses.
		f := ast.Unparen(e)
		if _, ok := f.(*ast.FuncLit); ok || l.declaredFunc(f) {
			return l.expr(f)
		}
	case *ast.CompositeLit:
		return l.composite(e)
	case *ast.IndexExpr:
		// A key that is nil, with its type.
		if m, ok := l.concrete(info.Types[e.X].Type).Underlying().(*types.Map); ok && info.Types[e.Index].IsNil() {
			pos := e.Index.Pos()
			return &ast.IndexExpr{X: l.expr(e.X), Lbrack: e.Lbrack, Rbrack: e.Rbrack, Index: &ast.CallExpr{Fun: setPositions(l.typeOf(m.Key()), pos), Lparen: pos, Rparen: pos, Args: []ast.Expr{&ast.Ident{Name: "nil", NamePos: pos}}}}
		}
	case *ast.BinaryExpr:
		// The interpreter needs the type of a constant that is shifted.
		if tv := info.Types[e.X]; (e.Op == token.SHL || e.Op == token.SHR) && tv.Value != nil {
			x := l.expr(e.X)
			if _, ok := x.(*ast.CallExpr); !ok {
				x = &ast.CallExpr{Fun: setPositions(l.typeOf(info.Types[e].Type), e.Pos()), Lparen: e.Pos(), Rparen: e.Pos(), Args: []ast.Expr{x}}
			}
			return &ast.BinaryExpr{X: x, OpPos: e.OpPos, Op: e.Op, Y: l.expr(e.Y)}
		}
		if e.Op == token.EQL || e.Op == token.NEQ {
			return l.comparison(e)
		}
	case *ast.CallExpr:
		l.called[ast.Unparen(e.Fun)] = true
		if b := l.builtin(e); b != nil {
			return b
		}
		if n := len(e.Args); e.Ellipsis.IsValid() && info.Types[e.Args[n-1]].IsNil() {
			return l.nilVariadic(e)
		}
		if l.starts(e) {
			guarded := &ast.CallExpr{Fun: l.internal("Guard", e.Args[0].Pos()), Lparen: e.Lparen, Rparen: e.Rparen, Args: []ast.Expr{l.expr(e.Args[0])}}
			return &ast.CallExpr{Fun: l.expr(e.Fun), Lparen: e.Lparen, Rparen: e.Rparen, Args: []ast.Expr{guarded}}
		}
		if guard := l.subtest(e); guard != "" {
			f := e.Args[1]
			guarded := &ast.CallExpr{Fun: l.internal(guard, f.Pos()), Lparen: e.Lparen, Rparen: e.Rparen, Args: []ast.Expr{l.expr(f)}}
			return &ast.CallExpr{Fun: l.expr(e.Fun), Lparen: e.Lparen, Rparen: e.Rparen, Args: []ast.Expr{l.expr(e.Args[0]), guarded}}
		}
		if c := l.methodCall(e); c != nil {
			return c
		}
	case *ast.Ident:
		o := info.Uses[e]
		if o == nil {
			o = info.Defs[e]
		}
		return l.name(e, o)
	case *ast.SelectorExpr:
		if id, ok := e.X.(*ast.Ident); ok {
			if p, ok := info.Uses[id].(*types.PkgName); ok {
				path := p.Imported().Path()
				if l.u.table.lib.gottenOf(p.Imported()) != nil {
					return l.name(e.Sel, info.Uses[e.Sel])
				}
				l.standard(path, e.Sel.Name)
				l.paths[path] = true
				return &ast.SelectorExpr{X: &ast.Ident{Name: importAlias(path), NamePos: id.NamePos}, Sel: &ast.Ident{Name: e.Sel.Name, NamePos: e.Sel.NamePos}}
			}
		}
		if sel := info.Selections[e]; sel != nil {
			if x := l.selector(e, sel); x != nil {
				return x
			}
		}
		return &ast.SelectorExpr{X: l.expr(e.X), Sel: &ast.Ident{Name: e.Sel.Name, NamePos: e.Sel.NamePos}}
	case *ast.KeyValueExpr:
		// A struct's field name is no expression.
		if id, ok := e.Key.(*ast.Ident); ok {
			if v, ok := info.Uses[id].(*types.Var); ok && v.IsField() {
				return &ast.KeyValueExpr{Key: &ast.Ident{Name: id.Name, NamePos: id.NamePos}, Colon: e.Colon, Value: l.expr(e.Value)}
			}
		}
	}
	return nil
}

// composite lowers a composite literal with its type, which it may not say itself.
func (l *lowerer) composite(e *ast.CompositeLit) ast.Expr {
	c := &ast.CompositeLit{Lbrace: e.Lbrace, Rbrace: e.Rbrace}
	for _, x := range e.Elts {
		c.Elts = append(c.Elts, l.expr(x))
	}
	t := l.concrete(l.info.Types[e].Type)
	p, pointer := t.Underlying().(*types.Pointer)
	if e.Type == nil && pointer {
		t = p.Elem()
	}
	c.Type = setPositions(l.typeOf(t), e.Pos())
	if e.Type == nil && pointer {
		return &ast.UnaryExpr{OpPos: e.Pos(), Op: token.AND, X: c}
	}
	return c
}

// starts says whether e calls sync.WaitGroup's Go, which runs its argument on a
// goroutine that the interpreter doesn't start.
func (l *lowerer) starts(e *ast.CallExpr) bool {
	s, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok || len(e.Args) != 1 {
		return false
	}
	f, ok := l.info.Uses[s.Sel].(*types.Func)
	return ok && f.FullName() == "(*sync.WaitGroup).Go"
}

// builtin gives what a call of a builtin function becomes where the interpreter
// has none of it.
func (l *lowerer) builtin(e *ast.CallExpr) ast.Expr {
	if s, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok {
		if b, ok := l.info.Uses[s.Sel].(*types.Builtin); ok {
			return l.unsafe(e, b.Name())
		}
		return nil
	}
	id, ok := ast.Unparen(e.Fun).(*ast.Ident)
	if !ok {
		return nil
	}
	b, ok := l.info.Uses[id].(*types.Builtin)
	if !ok {
		return nil
	}
	switch b.Name() {
	case "clear":
		return &ast.CallExpr{Fun: l.internal("Clear", e.Pos()), Lparen: e.Lparen, Rparen: e.Rparen, Args: []ast.Expr{l.expr(e.Args[0])}}
	case "new":
		if l.info.Types[e.Args[0]].IsType() {
			return nil
		}
		t := l.concrete(l.info.Types[e].Type).(*types.Pointer).Elem()
		lit := mustParse("package p; var f = func(v T) *T { return &v }").Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values[0].(*ast.FuncLit)
		setPositions(ast.Expr(lit), e.Pos())
		lit.Type.Params.List[0].Type = setPositions(l.typeOf(t), e.Pos())
		lit.Type.Results.List[0].Type = &ast.StarExpr{Star: e.Pos(), X: setPositions(l.typeOf(t), e.Pos())}
		return &ast.CallExpr{Fun: lit, Lparen: e.Lparen, Rparen: e.Rparen, Args: []ast.Expr{l.expr(e.Args[0])}}
	case "min", "max":
		op := "<"
		if b.Name() == "max" {
			op = ">"
		}
		lit := mustParse("package p; var f = func(a, b T) T { if a != a || a " + op + " b { return a }; return b }").Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values[0].(*ast.FuncLit)
		setPositions(ast.Expr(lit), e.Pos())
		t := l.info.Types[e].Type
		lit.Type.Params.List[0].Type = setPositions(l.typeOf(t), e.Pos())
		lit.Type.Results.List[0].Type = setPositions(l.typeOf(t), e.Pos())
		x := l.expr(e.Args[0])
		for _, a := range e.Args[1:] {
			x = &ast.CallExpr{Fun: lit, Lparen: e.Lparen, Rparen: e.Rparen, Args: []ast.Expr{x, l.expr(a)}}
		}
		return x
	}
	return nil
}

// unsafe lowers a call of a function of package unsafe, which the interpreter hasn't.
func (l *lowerer) unsafe(e *ast.CallExpr, name string) ast.Expr {
	switch name {
	case "Sizeof", "Alignof": // of a type parameter; the others are constants
		t, err := l.rtype(l.info.Types[e.Args[0]].Type)
		if err != nil {
			l.errs = append(l.errs, err)
			return nil
		}
		n := int(t.Size())
		if name == "Alignof" {
			n = t.Align()
		}
		return setPositions(ast.Expr(&ast.CallExpr{Fun: ast.NewIdent("uintptr"), Args: []ast.Expr{&ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(n)}}}), e.Pos())
	case "Add", "String", "StringData", "Slice", "SliceData":
		c := &ast.CallExpr{Fun: l.internal("Unsafe"+name, e.Pos()), Lparen: e.Lparen, Rparen: e.Rparen}
		for i, a := range e.Args {
			x := l.expr(a)
			if i == 1 { // a length, of any integer type
				x = &ast.CallExpr{Fun: &ast.Ident{Name: "int", NamePos: a.Pos()}, Lparen: a.Pos(), Rparen: a.End(), Args: []ast.Expr{x}}
			}
			c.Args = append(c.Args, x)
		}
		if name != "Slice" && name != "SliceData" {
			return c
		}
		return &ast.TypeAssertExpr{X: c, Lparen: e.Lparen, Rparen: e.Rparen, Type: setPositions(l.typeOf(l.info.Types[e].Type), e.Pos())}
	}
	return nil
}

// mustParse parses a text of this package's own.
func mustParse(src string) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		panic(err)
	}
	return f
}

// name is what an identifier is called in the interpreter.
func (l *lowerer) name(id *ast.Ident, o types.Object) ast.Expr {
	if o == nil || o.Pkg() == nil {
		return nil
	}
	if t, ok := o.(*types.TypeName); ok {
		if p, ok := t.Type().(*types.TypeParam); ok && l.subst[p] != nil {
			return setPositions(l.typeOf(p), id.NamePos)
		}
		if t.IsAlias() || t.Pkg() == l.u.pkg || l.u.table.lib.gottenOf(t.Pkg()) != nil {
			return setPositions(l.typeOf(t.Type()), id.NamePos)
		}
	}
	if _, ok := o.(*types.Label); ok {
		return labelOf(id)
	}
	if d := l.u.named[o]; d != nil && d.kind != methodKind {
		l.use(l.u.real(d))
		x := &ast.Ident{Name: l.u.real(d).run, NamePos: id.NamePos}
		if d.kind == funcKind && l.info.Uses[id] != nil {
			return l.funcValue(id, x, o.Type())
		}
		return x
	}
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() == nil && f.Pkg() != l.u.pkg {
		// A helper of a generic package.
		if _, ok := l.bodyOf(f); ok {
			if name, ok := l.instance(f, nil); ok {
				return l.funcValue(id, &ast.Ident{Name: name, NamePos: id.NamePos}, f.Type())
			}
		}
	}
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return nil
	}
	if v, ok := o.(*types.Var); ok && v.IsField() {
		return nil
	}
	if o.Parent() != o.Pkg().Scope() {
		if _, label := o.(*types.Label); label {
			return nil
		}
		return &ast.Ident{Name: l.localName(id.Name, o), NamePos: id.NamePos}
	}
	if v, ok := o.(*types.Var); ok && o.Parent() == o.Pkg().Scope() {
		if g := l.u.table.lib.gottenOf(o.Pkg()); g != nil {
			return &ast.Ident{Name: l.gottenVar(g, v).run, NamePos: id.NamePos}
		}
	}
	if o.Pkg() != l.u.pkg && o.Parent() == o.Pkg().Scope() {
		l.standard(o.Pkg().Path(), id.Name)
		l.paths[o.Pkg().Path()] = true
		return &ast.SelectorExpr{X: &ast.Ident{Name: importAlias(o.Pkg().Path()), NamePos: id.NamePos}, Sel: &ast.Ident{Name: id.Name, NamePos: id.NamePos}}
	}
	return nil
}

// localName is what the name of a function's o is called in the interpreter: never as one
// that Go itself has, which lowered code writes where the text doesn't, and a variable not
// as another of the blocks around it, which the interpreter would mix up in x := x.
func (l *lowerer) localName(name string, o types.Object) string {
	if v, ok := o.(*types.Var); ok && v.Kind() == types.LocalVar && v.Parent() != nil && v.Parent().Parent() != nil {
		if n := l.hiding[v]; n != 0 {
			return name + mark + strconv.Itoa(n)
		}
		in, _ := v.Parent().Parent().LookupParent(name, v.Pos())
		if in != nil && in != types.Universe && in != l.u.pkg.Scope() && (o.Pkg() == nil || in != o.Pkg().Scope()) {
			n := l.u.table.next()
			l.hiding[v] = n
			return name + mark + strconv.Itoa(n)
		}
	}
	if types.Universe.Lookup(name) != nil {
		return name + mark
	}
	return name
}

// comparison gives two operands of different types that compare the type of one. It is
// nil where the interpreter does as well.
func (l *lowerer) comparison(e *ast.BinaryExpr) ast.Expr {
	x, y := l.info.Types[e.X], l.info.Types[e.Y]
	if x.IsNil() || y.IsNil() || x.Value != nil || y.Value != nil {
		return nil
	}
	from, to := l.concrete(x.Type), l.concrete(y.Type)
	if types.Identical(from, to) || types.IsInterface(from) || types.IsInterface(to) {
		return nil
	}
	c := &ast.BinaryExpr{X: l.expr(e.X), OpPos: e.OpPos, Op: e.Op, Y: l.expr(e.Y)}
	as := func(t types.Type, x ast.Expr, pos token.Pos) ast.Expr {
		return &ast.CallExpr{Fun: setPositions(l.typeOf(t), pos), Lparen: pos, Rparen: pos, Args: []ast.Expr{x}}
	}
	switch {
	case types.AssignableTo(from, to):
		c.X = as(to, c.X, e.X.Pos())
	case types.AssignableTo(to, from):
		c.Y = as(from, c.Y, e.Y.Pos())
	default:
		return nil
	}
	return c
}

// funcValue is x, the name of a declared function of type t, for e: a value of that type
// unless it is called, so that it goes wherever one goes.
func (l *lowerer) funcValue(e ast.Expr, x ast.Expr, t types.Type) ast.Expr {
	if l.called[e] {
		return x
	}
	pos := e.Pos()
	return &ast.CallExpr{Fun: setPositions(ast.Expr(l.signature(l.concrete(t).(*types.Signature))), pos), Lparen: pos, Rparen: pos, Args: []ast.Expr{x}}
}

// nilVariadic gives the nil of f(nil...) its type.
func (l *lowerer) nilVariadic(e *ast.CallExpr) ast.Expr {
	n := len(e.Args) - 1
	pos := e.Args[n].Pos()
	typed := &ast.CallExpr{Fun: setPositions(l.typeOf(l.info.Types[e.Args[n]].Type), pos), Lparen: pos, Rparen: pos, Args: []ast.Expr{ast.NewIdent("nil")}}
	if sig, ok := l.concrete(l.info.Types[e.Fun].Type).Underlying().(*types.Signature); ok {
		typed.Fun = setPositions(l.typeOf(sig.Params().At(n).Type()), pos)
	}
	c := *e
	c.Args = append(slices.Clone(e.Args[:n]), typed)
	l.finish(typed)
	l.info.Types[typed] = types.TypeAndValue{Type: l.info.Types[e.Args[n]].Type}
	return l.expr(&c)
}

// constant writes a constant expression's value with its type, or gives nil where
// the expression itself serves as well.
func (l *lowerer) constant(tv types.TypeAndValue, pos token.Pos) ast.Expr {
	tv.Type = l.concrete(tv.Type)
	b, ok := tv.Type.Underlying().(*types.Basic)
	if !ok {
		return nil // a type parameter, or an interface
	}
	v := tv.Value
	switch {
	case b.Info()&types.IsInteger != 0:
		v = constant.ToInt(v)
	case b.Info()&types.IsFloat != 0:
		v = constant.ToFloat(v)
	case b.Info()&types.IsComplex != 0:
		v = constant.ToComplex(v)
	}
	if v.Kind() == constant.Unknown {
		return nil
	}
	e := machineConstant(v, b)
	if e == nil {
		return nil
	}
	setPositions(e, pos)
	// The type that the literal has by itself needs no saying.
	if tb, ok := tv.Type.(*types.Basic); ok {
		switch tb.Kind() {
		case types.UntypedBool, types.UntypedInt, types.UntypedRune, types.UntypedFloat, types.UntypedComplex, types.UntypedString, types.UntypedNil,
			types.Bool, types.Int, types.Float64, types.Complex128, types.String:
			return e
		}
	}
	if _, ok := tv.Type.(*types.TypeParam); ok {
		return nil
	}
	// A constant's type is a name. In parentheses the interpreter would misread it.
	return &ast.CallExpr{Fun: setPositions(l.typeOf(tv.Type), pos), Lparen: pos, Rparen: pos, Args: []ast.Expr{e}}
}

// machineConstant is a literal of the value that the type b holds at run time.
func machineConstant(v constant.Value, b *types.Basic) ast.Expr {
	switch v.Kind() {
	case constant.Float, constant.Int:
		if b.Info()&types.IsFloat != 0 || b.Kind() == types.UntypedFloat {
			f, _ := constant.Float64Val(v)
			s := strconv.FormatFloat(f, 'g', -1, 64)
			neg := s[0] == '-'
			if neg {
				s = s[1:]
			}
			if isDigits(s) {
				s += ".0"
			}
			var e ast.Expr = &ast.BasicLit{Kind: token.FLOAT, Value: s}
			if neg {
				e = &ast.UnaryExpr{Op: token.SUB, X: e}
			}
			return e
		}
	case constant.Complex:
		return constantExpr(v, types.UntypedComplex)
	}
	return constantExpr(v, b.Kind())
}

func isDigits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}

// standard notes as a fault a name of the standard library that a gotten package uses
// and the interpreter lacks.
func (l *lowerer) standard(path, name string) {
	if l.cur == nil || l.cur.job == nil {
		return
	}
	if _, ok := l.u.table.known(path, name); !ok {
		l.errs = append(l.errs, fmt.Errorf("it uses %s.%s", path, name))
	}
}

// typeOf writes a type in the interpreter's names.
func (l *lowerer) typeOf(t types.Type) ast.Expr {
	t = l.concrete(t)
	id := func(s string) ast.Expr { return ast.NewIdent(s) }
	switch t := t.(type) {
	case *types.Basic:
		switch t.Kind() {
		case types.UnsafePointer:
			l.paths["unsafe"] = true
			return &ast.SelectorExpr{X: ast.NewIdent(importAlias("unsafe")), Sel: ast.NewIdent("Pointer")}
		case types.UntypedNil:
			return id("any")
		}
		return id(types.Default(t).String())
	case *types.Alias:
		if t.Obj().Pkg() == nil {
			return id(t.Obj().Name())
		}
		return l.typeOf(types.Unalias(t))
	case *types.Named:
		o := t.Obj()
		if o.Pkg() == nil {
			return id(o.Name())
		}
		if d := l.u.named[t.Origin().Obj()]; d != nil {
			l.use(d)
		}
		if t.TypeArgs().Len() > 0 {
			if o.Pkg().Path() == "iter" {
				return l.typeOf(t.Underlying())
			}
			l.instanceOf(t)
			return l.symbol(t)
		}
		if o.Pkg() == l.u.pkg || l.local(o) || l.u.table.lib.gottenOf(o.Pkg()) != nil {
			return l.symbol(t)
		}
		l.standard(o.Pkg().Path(), o.Name())
		l.paths[o.Pkg().Path()] = true
		return &ast.SelectorExpr{X: ast.NewIdent(importAlias(o.Pkg().Path())), Sel: ast.NewIdent(o.Name())}
	case *types.TypeParam:
		return id(t.Obj().Name())
	case *types.Pointer:
		return &ast.StarExpr{X: l.typeOf(t.Elem())}
	case *types.Slice:
		return &ast.ArrayType{Elt: l.typeOf(t.Elem())}
	case *types.Array:
		return &ast.ArrayType{Len: &ast.BasicLit{Kind: token.INT, Value: strconv.FormatInt(t.Len(), 10)}, Elt: l.typeOf(t.Elem())}
	case *types.Map:
		return &ast.MapType{Key: l.typeOf(t.Key()), Value: l.typeOf(t.Elem())}
	case *types.Chan:
		dir := ast.SEND | ast.RECV
		switch t.Dir() {
		case types.SendOnly:
			dir = ast.SEND
		case types.RecvOnly:
			dir = ast.RECV
		}
		return &ast.ChanType{Dir: dir, Value: l.typeOf(t.Elem())}
	case *types.Signature:
		return l.signature(t)
	case *types.Struct:
		return l.symbol(t)
	case *types.Interface:
		if t.NumMethods() == 0 {
			return id("any")
		}
		return l.symbol(t)
	}
	return id("any")
}

func (l *lowerer) signature(t *types.Signature) *ast.FuncType {
	f := &ast.FuncType{Params: &ast.FieldList{}}
	for i := range t.Params().Len() {
		e := l.typeOf(t.Params().At(i).Type())
		if t.Variadic() && i == t.Params().Len()-1 {
			if a, ok := e.(*ast.ArrayType); ok {
				e = &ast.Ellipsis{Elt: a.Elt}
			}
		}
		f.Params.List = append(f.Params.List, &ast.Field{Type: e})
	}
	if t.Results().Len() > 0 {
		f.Results = &ast.FieldList{}
		for i := range t.Results().Len() {
			f.Results.List = append(f.Results.List, &ast.Field{Type: l.typeOf(t.Results().At(i).Type())})
		}
	}
	return f
}

// setPositions gives a made tree the position of what it stands for.
func setPositions[E ast.Expr](e E, pos token.Pos) E {
	ast.Inspect(e, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		v := reflect.ValueOf(n).Elem()
		for i := range v.NumField() {
			if p, ok := v.Field(i).Addr().Interface().(*token.Pos); ok && v.Type().Field(i).Name != "Ellipsis" {
				*p = pos
			}
		}
		return true
	})
	return e
}
