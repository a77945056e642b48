package cell

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"

	"deltafin/internal/third_party/yaegi/interp"
)

// Methods of cells are functions of the interpreter, which take their receiver
// first. A call whose receiver's type the checker knows is a call of the function;
// calls through interfaces go by the reflect type's methods (rtype.go).

// A methodSelection is what a selector with a method means: the method f of holder.
type methodSelection struct {
	holder ast.Expr   // with the embedded fields that lead to it
	typ    types.Type // of holder
	f      *types.Func
}

// selection resolves e, whose X has been lowered to x.
func (l *lowerer) selection(x ast.Expr, recv types.Type, name string, pkg *types.Package, pos token.Pos) (methodSelection, *types.Var) {
	recv = l.concrete(recv)
	o, index, _ := types.LookupFieldOrMethod(recv, true, pkg, name)
	if o == nil {
		return methodSelection{}, nil
	}
	fields := index
	if _, ok := o.(*types.Func); ok {
		fields = index[:len(index)-1]
	}
	t := recv
	for _, i := range fields {
		u := t.Underlying()
		if p, ok := u.(*types.Pointer); ok {
			u = l.concrete(p.Elem()).Underlying()
		}
		f := u.(*types.Struct).Field(i)
		x = &ast.SelectorExpr{X: x, Sel: &ast.Ident{Name: f.Name(), NamePos: pos}}
		t = l.concrete(f.Type())
	}
	switch o := o.(type) {
	case *types.Func:
		return methodSelection{x, t, o}, nil
	case *types.Var:
		return methodSelection{holder: x, typ: t}, o
	}
	return methodSelection{}, nil
}

// pkgOf is the package by whose rules a selection sees names.
func pkgOf(o types.Object, pkg *types.Package) *types.Package {
	if o != nil && o.Pkg() != nil {
		return o.Pkg()
	}
	return pkg
}

// selector lowers a selector of a field or a method that isn't called.
func (l *lowerer) selector(e *ast.SelectorExpr, sel *types.Selection) ast.Expr {
	pos := e.Sel.NamePos
	if sel.Kind() == types.MethodExpr {
		return l.methodExpr(e, sel)
	}
	s, field := l.selection(l.expr(e.X), sel.Recv(), e.Sel.Name, pkgOf(sel.Obj(), l.u.pkg), pos)
	if field != nil {
		return s.holder
	}
	if s.f == nil {
		return nil
	}
	if types.IsInterface(s.typ) || l.methodName(s) != "" {
		return l.methodValue(s, pos)
	}
	return &ast.SelectorExpr{X: s.holder, Sel: &ast.Ident{Name: e.Sel.Name, NamePos: pos}}
}

// methodName is the name of the function that is s's method, or "" where the method
// is compiled or an interface's.
func (l *lowerer) methodName(s methodSelection) string {
	if types.IsInterface(s.typ) {
		return ""
	}
	t := types.Unalias(s.typ)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, _ := t.(*types.Named)
	if n == nil {
		return ""
	}
	if n.TypeArgs().Len() > 0 {
		d := l.instanceOf(n)
		if d == nil {
			return ""
		}
		if m := d.methods[s.f.Name()]; m != nil {
			l.use(m)
			return m.run
		}
		return ""
	}
	if d := l.u.named[s.f.Origin()]; d != nil {
		l.use(d)
		return d.run
	}
	if d := l.gottenMethod(n, s.f); d != nil {
		return d.run
	}
	return ""
}

// receiver is s's holder as the method takes it.
func (s methodSelection) receiver(pos token.Pos) ast.Expr {
	_, want := types.Unalias(s.f.Signature().Recv().Type()).(*types.Pointer)
	_, has := types.Unalias(s.typ).(*types.Pointer)
	switch {
	case want && !has:
		if star, ok := s.holder.(*ast.StarExpr); ok {
			return star.X
		}
		if p, ok := s.holder.(*ast.ParenExpr); ok {
			if star, ok := p.X.(*ast.StarExpr); ok {
				return star.X
			}
		}
		return &ast.UnaryExpr{OpPos: pos, Op: token.AND, X: s.holder}
	case !want && has:
		return &ast.ParenExpr{Lparen: pos, Rparen: pos, X: &ast.StarExpr{Star: pos, X: s.holder}}
	}
	return s.holder
}

// methodCall lowers a call of a method, or gives nil where e is something else.
func (l *lowerer) methodCall(e *ast.CallExpr) ast.Expr {
	fun, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	sel := l.info.Selections[fun]
	if sel == nil || sel.Kind() != types.MethodVal {
		return nil
	}
	pos := fun.Sel.NamePos
	s, _ := l.selection(l.expr(fun.X), sel.Recv(), fun.Sel.Name, pkgOf(sel.Obj(), l.u.pkg), pos)
	if s.f == nil {
		return nil
	}
	c := &ast.CallExpr{Lparen: e.Lparen, Ellipsis: e.Ellipsis, Rparen: e.Rparen}
	for _, a := range e.Args {
		c.Args = append(c.Args, l.expr(a))
	}
	name := l.methodName(s)
	if name == "" {
		full := s.f.FullName()
		if f := waitings[full]; f != "" {
			at := l.u.fset.Position(pos)
			c.Fun = l.internal(f, pos)
			c.Args = []ast.Expr{&ast.BasicLit{ValuePos: pos, Kind: token.STRING, Value: strconv.Quote(at.Filename + ":" + strconv.Itoa(at.Line))}, s.receiver(pos)}
			return c
		}
		if f := fatals[full]; f != "" {
			c.Fun, c.Args = l.internal(f, pos), append([]ast.Expr{s.receiver(pos)}, c.Args...)
			return c
		}
		switch full {
		case "(*flag.FlagSet).Parse":
			c.Fun, c.Args = l.internal("ParseFlags", pos), append([]ast.Expr{s.receiver(pos)}, c.Args...)
			return c
		case "(*os/exec.Cmd).Run", "(*os/exec.Cmd).Start", "(*os/exec.Cmd).Output", "(*os/exec.Cmd).CombinedOutput":
			s.holder = &ast.CallExpr{Fun: l.internal("Started", pos), Lparen: pos, Rparen: pos, Args: []ast.Expr{s.receiver(pos)}}
		}
		c.Fun = &ast.SelectorExpr{X: s.holder, Sel: &ast.Ident{Name: fun.Sel.Name, NamePos: pos}}
		return c
	}
	c.Fun = &ast.Ident{Name: name, NamePos: pos}
	recv := s.receiver(pos)
	if len(e.Args) == 1 {
		if tup, ok := l.concrete(l.info.Types[e.Args[0]].Type).(*types.Tuple); ok {
			return l.spread(c, recv, tup, l.concrete(s.f.Signature()).(*types.Signature).Results(), pos)
		}
	}
	c.Args = append([]ast.Expr{recv}, c.Args...)
	return c
}

// spread is a call of a function with a receiver and another call's results.
func (l *lowerer) spread(c *ast.CallExpr, recv ast.Expr, tup, res *types.Tuple, pos token.Pos) ast.Expr {
	sig := &ast.FuncType{Func: pos, Params: &ast.FieldList{}}
	set := &ast.AssignStmt{Tok: token.DEFINE, TokPos: pos, Rhs: c.Args}
	n := strconv.Itoa(l.u.table.next())
	call := &ast.CallExpr{Fun: c.Fun, Lparen: pos, Rparen: pos, Args: []ast.Expr{recv}}
	for i := range tup.Len() {
		name := "a" + mark + n + "_" + strconv.Itoa(i)
		set.Lhs = append(set.Lhs, &ast.Ident{Name: name, NamePos: pos})
		call.Args = append(call.Args, &ast.Ident{Name: name, NamePos: pos})
	}
	body := []ast.Stmt{set, &ast.ExprStmt{X: call}}
	f := &ast.FuncLit{Type: sig, Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: body}}
	if res.Len() > 0 {
		sig.Results = &ast.FieldList{}
		for i := range res.Len() {
			sig.Results.List = append(sig.Results.List, &ast.Field{Type: setPositions(l.typeOf(res.At(i).Type()), pos)})
		}
		body[1] = &ast.ReturnStmt{Return: pos, Results: []ast.Expr{call}}
	}
	return &ast.CallExpr{Fun: f, Lparen: pos, Rparen: pos}
}

// closure writes a function literal with a signature, whose body calls what call
// makes of its parameters.
func (l *lowerer) closure(sig *types.Signature, pos token.Pos, call func(args []ast.Expr, ellipsis token.Pos) ast.Expr) *ast.FuncLit {
	typ := setPositions(ast.Expr(l.signature(sig)), pos).(*ast.FuncType)
	var args []ast.Expr
	for i, p := range typ.Params.List {
		id := func() *ast.Ident { return &ast.Ident{Name: "p" + mark + strconv.Itoa(i), NamePos: pos} }
		p.Names = []*ast.Ident{id()}
		args = append(args, id())
	}
	ellipsis := token.NoPos
	if sig.Variadic() {
		ellipsis = pos
	}
	x := call(args, ellipsis)
	var body ast.Stmt = &ast.ExprStmt{X: x}
	if sig.Results().Len() > 0 {
		body = &ast.ReturnStmt{Return: pos, Results: []ast.Expr{x}}
	}
	return &ast.FuncLit{Type: typ, Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{body}}}
}

// methodValue binds s's method to its receiver as that is now.
func (l *lowerer) methodValue(s methodSelection, pos token.Pos) ast.Expr {
	sig := l.concrete(s.f.Signature()).(*types.Signature)
	of, recv := s.typ, s.holder
	name := l.methodName(s)
	if name != "" {
		of = types.Unalias(of)
		if p, ok := of.(*types.Pointer); ok {
			of = p.Elem()
		}
		if _, ok := types.Unalias(s.f.Signature().Recv().Type()).(*types.Pointer); ok {
			of = types.NewPointer(of)
		}
		recv = s.receiver(pos)
	}
	x := func() *ast.Ident { return &ast.Ident{Name: "x" + mark, NamePos: pos} }
	inner := l.closure(sig, pos, func(args []ast.Expr, ellipsis token.Pos) ast.Expr {
		c := &ast.CallExpr{Lparen: pos, Ellipsis: ellipsis, Rparen: pos, Args: args}
		if name == "" {
			c.Fun = &ast.SelectorExpr{X: x(), Sel: &ast.Ident{Name: s.f.Name(), NamePos: pos}}
		} else {
			c.Fun = &ast.Ident{Name: name, NamePos: pos}
			c.Args = append([]ast.Expr{x()}, args...)
		}
		return c
	})
	outer := &ast.FuncLit{
		Type: &ast.FuncType{Func: pos, Params: &ast.FieldList{List: []*ast.Field{{Names: []*ast.Ident{x()}, Type: setPositions(l.typeOf(of), pos)}}},
			Results: &ast.FieldList{List: []*ast.Field{{Type: setPositions(ast.Expr(l.signature(sig)), pos)}}}},
		Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{&ast.ReturnStmt{Return: pos, Results: []ast.Expr{inner}}}},
	}
	if types.IsInterface(of) {
		nilCheck := &ast.IfStmt{If: pos, Cond: &ast.BinaryExpr{X: x(), OpPos: pos, Op: token.EQL, Y: &ast.Ident{Name: "nil", NamePos: pos}},
			Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{&ast.ExprStmt{X: &ast.CallExpr{Fun: l.internal("NilReceiver", pos), Lparen: pos, Rparen: pos}}}}}
		outer.Body.List = append([]ast.Stmt{nilCheck}, outer.Body.List...)
	}
	return &ast.CallExpr{Fun: outer, Lparen: pos, Rparen: pos, Args: []ast.Expr{recv}}
}

// nilReceiver is what lowered code calls for a method value of a nil interface.
func nilReceiver() {
	panic(interp.RuntimeError("runtime error: invalid memory address or nil pointer dereference"))
}

// methodExpr is a function that takes the receiver first, T.M.
func (l *lowerer) methodExpr(e *ast.SelectorExpr, sel *types.Selection) ast.Expr {
	pos := e.Sel.NamePos
	sig, ok := l.concrete(l.info.Types[e].Type).(*types.Signature)
	if !ok {
		return nil
	}
	return l.closure(sig, pos, func(args []ast.Expr, ellipsis token.Pos) ast.Expr {
		s, _ := l.selection(args[0], sel.Recv(), e.Sel.Name, pkgOf(sel.Obj(), l.u.pkg), pos)
		c := &ast.CallExpr{Lparen: pos, Ellipsis: ellipsis, Rparen: pos, Args: args[1:]}
		if name := l.methodName(s); name != "" {
			c.Fun = &ast.Ident{Name: name, NamePos: pos}
			c.Args = append([]ast.Expr{s.receiver(pos)}, c.Args...)
		} else {
			c.Fun = &ast.SelectorExpr{X: s.holder, Sel: &ast.Ident{Name: e.Sel.Name, NamePos: pos}}
		}
		return c
	})
}

// methodDecl lowers a method's declaration to that of the function run.
func (l *lowerer) methodDecl(fn *ast.FuncDecl, recv types.Type, sig *types.Signature, run string) *ast.FuncDecl {
	c := *fn
	ft := *fn.Type
	params := *fn.Type.Params
	typ := setPositions(l.typeOf(recv), fn.Recv.Pos())
	l.finish(typ)
	r := &ast.Field{Type: typ}
	if f := fn.Recv.List[0]; len(f.Names) > 0 {
		r.Names = f.Names
	} else {
		r.Names = []*ast.Ident{{Name: "_", NamePos: fn.Recv.Pos()}}
	}
	params.List = append([]*ast.Field{r}, params.List...)
	if len(fn.Type.Params.List) > 0 && len(fn.Type.Params.List[0].Names) == 0 {
		for i, f := range params.List[1:] {
			g := *f
			g.Names = []*ast.Ident{{Name: "_", NamePos: f.Type.Pos()}}
			params.List[i+1] = &g
		}
	}
	ft.Params, ft.TypeParams = &params, nil
	c.Type, c.Recv, c.Doc = &ft, nil, nil
	c.Name = &ast.Ident{Name: run, NamePos: fn.Name.NamePos}
	return l.function(&c, sig).(*ast.FuncDecl)
}

// finish marks a tree that needs no lowering.
func (l *lowerer) finish(e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if x, ok := n.(ast.Expr); ok {
			l.done[x] = true
		}
		return true
	})
}
