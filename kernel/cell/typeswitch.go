package cell

import (
	"go/ast"
	"go/token"
	"strconv"
)

// typeSwitch writes a type switch as type assertions and a switch over which of
// them hold: the interpreter's assertions see through the wrappers in which
// compiled code has interpreted values, and know interfaces; its type switch
// compares names of types. label, unless "", is the switch's.
func (l *lowerer) typeSwitch(s *ast.TypeSwitchStmt, label *ast.Ident) ast.Stmt {
	pos := s.Switch
	n := strconv.Itoa(l.u.table.next())
	id := func(name string) *ast.Ident { return &ast.Ident{Name: name, NamePos: pos} }
	define := func(x ast.Expr, names ...*ast.Ident) ast.Stmt {
		a := &ast.AssignStmt{Tok: token.DEFINE, TokPos: pos, Rhs: []ast.Expr{x}}
		for _, name := range names {
			a.Lhs = append(a.Lhs, name)
		}
		return a
	}
	value := "v" + mark + n
	out := &ast.BlockStmt{Lbrace: pos, Rbrace: pos}
	if s.Init != nil {
		out.List = append(out.List, l.node(s.Init).(ast.Stmt))
	}
	var bound *ast.Ident // the variable of each clause
	var guard ast.Expr
	switch a := s.Assign.(type) {
	case *ast.AssignStmt:
		bound, guard = a.Lhs[0].(*ast.Ident), a.Rhs[0]
	case *ast.ExprStmt:
		guard = a.X
	}
	x := ast.Unparen(guard).(*ast.TypeAssertExpr).X
	out.List = append(out.List, define(l.expr(x), id(value)))
	body := &ast.BlockStmt{Lbrace: s.Body.Lbrace, Rbrace: s.Body.Rbrace}
	for i, stmt := range s.Body.List {
		c := stmt.(*ast.CaseClause)
		clause := &ast.CaseClause{Case: c.Case, Colon: c.Colon}
		from := value
		for j, typ := range c.List {
			of := n + "_" + strconv.Itoa(i) + "_" + strconv.Itoa(j)
			holds := id("ok" + mark + of)
			if l.info.Types[typ].IsNil() {
				out.List = append(out.List, define(&ast.BinaryExpr{X: id(value), OpPos: pos, Op: token.EQL, Y: id("nil")}, holds))
			} else {
				as := id("_")
				if bound != nil && len(c.List) == 1 {
					from = "v" + mark + of
					as = id(from)
				}
				out.List = append(out.List, define(&ast.TypeAssertExpr{X: id(value), Lparen: pos, Rparen: pos, Type: l.expr(typ)}, as, holds))
			}
			if j == 0 {
				clause.List = []ast.Expr{id(holds.Name)}
			} else { // the interpreter looks at the first of a list only
				clause.List[0] = &ast.BinaryExpr{X: clause.List[0], OpPos: pos, Op: token.LOR, Y: id(holds.Name)}
			}
		}
		if bound != nil && bound.Name != "_" {
			clause.Body = append(clause.Body, define(id(from), &ast.Ident{Name: l.localName(bound.Name, l.info.Implicits[c]), NamePos: bound.NamePos}))
		}
		clause.Body = append(clause.Body, l.clauseBody(c.Body)...)
		body.List = append(body.List, clause)
	}
	var sw ast.Stmt = &ast.SwitchStmt{Switch: pos, Body: body}
	if label != nil {
		sw = &ast.LabeledStmt{Label: labelOf(label), Colon: label.End(), Stmt: sw}
	}
	out.List = append(out.List, sw)
	return out
}
