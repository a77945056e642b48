package cell

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"

	"deltafin/internal/third_party/yaegi/interp"
)

// rangeFunc makes a loop over a function a call of that function: the loop's body
// becomes the function that it calls for each element. label is the loop's, or "".
func (l *lowerer) rangeFunc(s *ast.RangeStmt, label string) ast.Stmt {
	sig := l.concrete(l.info.Types[s.X].Type).Underlying().(*types.Signature)
	yield := sig.Params().At(0).Type().Underlying().(*types.Signature)
	n := strconv.Itoa(l.u.table.next())
	pos := s.For
	id := func(name string) *ast.Ident { return &ast.Ident{Name: name, NamePos: pos} }
	b := &loopBody{l: l, label: label, n: n, pos: pos, result: l.results(), labels: map[string]bool{}}
	ast.Inspect(s.Body, func(n ast.Node) bool {
		if x, ok := n.(*ast.LabeledStmt); ok {
			b.labels[labelOf(x.Label).Name] = true
		}
		return true
	})

	body := l.node(s.Body).(*ast.BlockStmt)
	params := &ast.FieldList{}
	var first []ast.Stmt
	for i, e := range []ast.Expr{s.Key, s.Value} {
		if i >= yield.Params().Len() {
			break
		}
		p := id("p" + mark + n + "_" + strconv.Itoa(i))
		if x, ok := e.(*ast.Ident); ok && s.Tok == token.DEFINE && x.Name != "_" {
			p = &ast.Ident{Name: l.localName(x.Name, l.info.Defs[x]), NamePos: x.NamePos}
		} else if e != nil && s.Tok == token.ASSIGN && !(ok && x.Name == "_") {
			first = append(first, &ast.AssignStmt{Tok: token.ASSIGN, TokPos: pos, Lhs: []ast.Expr{l.expr(e)}, Rhs: []ast.Expr{p}})
		}
		params.List = append(params.List, &ast.Field{Names: []*ast.Ident{p}, Type: setPositions(l.typeOf(yield.Params().At(i).Type()), pos)})
	}
	// over is 1 after the body has ended the loop, 2 after the function has returned.
	over := func(n int) ast.Stmt {
		return &ast.AssignStmt{Tok: token.ASSIGN, TokPos: pos, Lhs: []ast.Expr{id(b.over())}, Rhs: []ast.Expr{&ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(n), ValuePos: pos}}}
	}
	list := []ast.Stmt{&ast.IfStmt{If: pos, Cond: &ast.BinaryExpr{X: id(b.over()), OpPos: pos, Op: token.NEQ, Y: &ast.BasicLit{Kind: token.INT, Value: "0", ValuePos: pos}},
		Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{&ast.ExprStmt{X: &ast.CallExpr{Fun: l.internal("LoopOver", pos), Lparen: pos, Rparen: pos, Args: []ast.Expr{id(b.over())}}}}}}}
	list = append(list, first...)
	list = append(list, b.list(body.List, 0, 0)...)
	list = append(list, &ast.ReturnStmt{Return: pos, Results: []ast.Expr{id("true")}})
	call := &ast.ExprStmt{X: &ast.CallExpr{Fun: l.expr(s.X), Lparen: pos, Rparen: pos, Args: []ast.Expr{&ast.FuncLit{
		Type: &ast.FuncType{Func: pos, Params: params, Results: &ast.FieldList{List: []*ast.Field{{Type: id("bool")}}}},
		Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: list},
	}}}}
	out := &ast.BlockStmt{Lbrace: pos, Rbrace: pos}
	local := func(name string, typ ast.Expr) {
		out.List = append(out.List, &ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR, TokPos: pos, Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{id(name)}, Type: typ}}}})
	}
	if b.jumps > 0 || b.returns {
		local("jump"+mark+n, id("int"))
	}
	if b.returns {
		for i, r := range b.result {
			local("r"+mark+n+"_"+strconv.Itoa(i), setPositions(l.typeOf(r.Type()), pos))
		}
	}
	local(b.over(), id("int"))
	out.List = append(out.List, b.before...)
	out.List = append(out.List, call, over(2))
	when := func(k int, do ast.Stmt) {
		out.List = append(out.List, &ast.IfStmt{If: pos, Cond: &ast.BinaryExpr{X: id("jump" + mark + n), OpPos: pos, Op: token.EQL, Y: &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(k), ValuePos: pos}},
			Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{do}}})
	}
	if b.returns {
		r := &ast.ReturnStmt{Return: pos}
		for i := range b.result {
			r.Results = append(r.Results, id("r"+mark+n+"_"+strconv.Itoa(i)))
		}
		when(-1, r)
	}
	for i, j := range b.targets {
		when(i+1, j)
	}
	return out
}

// results are those of the function being lowered.
func (l *lowerer) results() []*types.Var {
	if len(l.funcs) == 0 {
		return nil
	}
	sig := l.funcs[len(l.funcs)-1]
	var rs []*types.Var
	for i := range sig.Results().Len() {
		rs = append(rs, sig.Results().At(i))
	}
	return rs
}

// A loopBody turns what leaves a loop's body into what leaves a function.
type loopBody struct {
	l       *lowerer
	label   string
	n       string
	pos     token.Pos
	result  []*types.Var
	returns bool
	jumps   int
	labels  map[string]bool // in the body
	targets []ast.Stmt      // of jumps out of it, to labels around the loop
	before  []ast.Stmt      // what stands before the loop
	defers  bool
}

func (b *loopBody) list(in []ast.Stmt, breaks, continues int) []ast.Stmt {
	out := make([]ast.Stmt, 0, len(in))
	for _, s := range in {
		out = append(out, b.stmt(s, breaks, continues))
	}
	return out
}

func (b *loopBody) block(x *ast.BlockStmt, breaks, continues int) *ast.BlockStmt {
	if x != nil {
		x.List = b.list(x.List, breaks, continues)
	}
	return x
}

// leave ends the body's function with more or without.
func (b *loopBody) leave(more bool, before ...ast.Stmt) ast.Stmt {
	if !more {
		before = append(before, &ast.AssignStmt{Tok: token.ASSIGN, TokPos: b.pos, Lhs: []ast.Expr{&ast.Ident{Name: b.over(), NamePos: b.pos}},
			Rhs: []ast.Expr{&ast.BasicLit{Kind: token.INT, Value: "1", ValuePos: b.pos}}})
	}
	list := append(before, &ast.ReturnStmt{Return: b.pos, Results: []ast.Expr{&ast.Ident{Name: strconv.FormatBool(more), NamePos: b.pos}}})
	if len(list) == 1 {
		return list[0]
	}
	return &ast.BlockStmt{Lbrace: b.pos, Rbrace: b.pos, List: list}
}

// over is the variable that says whether the loop is.
func (b *loopBody) over() string { return "over" + mark + b.n }

// loopOver is what lowered code calls when a function goes on after a loop over it has
// ended.
func loopOver(how int) {
	if how == 1 {
		panic(interp.RuntimeError("runtime error: range function continued iteration after function for loop body returned false"))
	}
	panic(interp.RuntimeError("runtime error: range function continued iteration after whole loop exit"))
}

func (b *loopBody) jump(k int) ast.Stmt {
	return &ast.AssignStmt{Tok: token.ASSIGN, TokPos: b.pos, Lhs: []ast.Expr{&ast.Ident{Name: "jump" + mark + b.n, NamePos: b.pos}},
		Rhs: []ast.Expr{&ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(k), ValuePos: b.pos}}}
}

// stmt works on a lowered statement inside breaks loops, switches and selects, of
// which continues are loops.
func (b *loopBody) stmt(s ast.Stmt, breaks, continues int) ast.Stmt {
	switch s := s.(type) {
	case *ast.BlockStmt:
		return b.block(s, breaks, continues)
	case *ast.IfStmt:
		b.block(s.Body, breaks, continues)
		if s.Else != nil {
			s.Else = b.stmt(s.Else, breaks, continues)
		}
	case *ast.ForStmt:
		b.block(s.Body, breaks+1, continues+1)
	case *ast.RangeStmt:
		b.block(s.Body, breaks+1, continues+1)
	case *ast.SwitchStmt:
		b.block(s.Body, breaks+1, continues)
	case *ast.TypeSwitchStmt:
		b.block(s.Body, breaks+1, continues)
	case *ast.SelectStmt:
		b.block(s.Body, breaks+1, continues)
	case *ast.CaseClause:
		s.Body = b.list(s.Body, breaks, continues)
	case *ast.CommClause:
		s.Body = b.list(s.Body, breaks, continues)
	case *ast.LabeledStmt:
		s.Stmt = b.stmt(s.Stmt, breaks, continues)
	case *ast.ReturnStmt:
		b.returns = true
		before := []ast.Stmt{}
		if len(b.result) > 0 {
			a := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: s.Return, Rhs: s.Results}
			for i, r := range b.result {
				a.Lhs = append(a.Lhs, &ast.Ident{Name: "r" + mark + b.n + "_" + strconv.Itoa(i), NamePos: s.Return})
				if len(s.Results) == 0 {
					a.Rhs = append(a.Rhs, &ast.Ident{Name: b.l.localName(r.Name(), r), NamePos: s.Return})
				}
			}
			before = append(before, a)
		}
		return b.leave(false, append(before, b.jump(-1))...)
	case *ast.BranchStmt:
		mine := s.Label != nil && s.Label.Name == b.label && b.label != ""
		switch {
		case s.Tok == token.BREAK && (s.Label == nil && breaks == 0 || mine):
			return b.leave(false)
		case s.Tok == token.CONTINUE && (s.Label == nil && continues == 0 || mine):
			return b.leave(true)
		case s.Label != nil && !b.labels[s.Label.Name]:
			b.jumps++
			b.targets = append(b.targets, s)
			return b.leave(false, b.jump(len(b.targets)))
		}
	case *ast.DeferStmt:
		// The call belongs to the function around the loop.
		if !b.defers {
			b.defers = true
			b.before = append(b.before, b.deferAll()...)
		}
		var list []ast.Stmt
		call := *s.Call
		call.Args = append([]ast.Expr(nil), s.Call.Args...)
		for i, a := range call.Args {
			name := "a" + mark + b.n + "_" + strconv.Itoa(b.l.u.table.next())
			list = append(list, &ast.AssignStmt{Tok: token.DEFINE, TokPos: s.Defer, Lhs: []ast.Expr{&ast.Ident{Name: name, NamePos: s.Defer}}, Rhs: []ast.Expr{a}})
			call.Args[i] = &ast.Ident{Name: name, NamePos: s.Defer}
		}
		d := func() ast.Expr { return &ast.Ident{Name: "defers" + mark + b.n, NamePos: s.Defer} }
		list = append(list, &ast.AssignStmt{Tok: token.ASSIGN, TokPos: s.Defer, Lhs: []ast.Expr{d()}, Rhs: []ast.Expr{&ast.CallExpr{
			Fun: &ast.Ident{Name: "append", NamePos: s.Defer}, Lparen: s.Defer, Rparen: s.Defer, Args: []ast.Expr{d(), &ast.FuncLit{
				Type: &ast.FuncType{Func: s.Defer, Params: &ast.FieldList{}}, Body: &ast.BlockStmt{Lbrace: s.Defer, Rbrace: s.Defer, List: []ast.Stmt{&ast.ExprStmt{X: &call}}}}}}}})
		return &ast.BlockStmt{Lbrace: s.Defer, Rbrace: s.Defer, List: list}
	}
	return s
}

// deferAll declares the list of deferred calls and defers running it.
func (b *loopBody) deferAll() []ast.Stmt {
	src := "package p; func f() { var D []func(); defer func() { for i := len(D) - 1; i >= 0; i-- { D[i]() } }() }"
	f := mustParse(src)
	body := f.Decls[0].(*ast.FuncDecl).Body
	ast.Inspect(body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == "D" {
			id.Name = "defers" + mark + b.n
		}
		return true
	})
	for _, s := range body.List {
		setPositions(ast.Expr(&ast.FuncLit{Type: &ast.FuncType{}, Body: &ast.BlockStmt{List: []ast.Stmt{s}}}), b.pos)
	}
	return body.List
}
