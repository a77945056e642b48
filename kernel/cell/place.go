package cell

import (
	"go/ast"
	"go/token"
	"slices"
)

// A place is what can stand at the cursor; the zero value is any name or keyword.
type place struct {
	nothing      bool
	selector     bool // only what the expression before the dot has
	types        bool // only types
	keywordsOnly bool
}

// place says what can stand at the cursor. list are the lexemes before the cursor's
// name, and before is the last of them, ILLEGAL where there is none.
func (p *probe) place(list []lexeme, before token.Token) (at place) {
	switch before {
	case token.PERIOD:
		at.selector = true
	case token.FUNC, token.TYPE, token.CONST, token.VAR, token.PACKAGE, token.IMPORT, token.GOTO:
		// A name is being declared, or a label named; func ( is something else.
		return place{nothing: true}
	}
	name := p.parent(0)
	if name == nil {
		at.keywordsOnly = !at.selector
		return at
	}
	n := p.parent(1)
	if s, ok := n.(*ast.SelectorExpr); ok && s.Sel == name {
		name, n = s, p.parent(2)
	}
	at.types = p.wantsType(n, name)
	switch n := n.(type) {
	case *ast.Field:
		at.nothing = n.Type != name
	case *ast.ValueSpec:
		at.nothing = slices.ContainsFunc(n.Names, func(id *ast.Ident) bool { return id == name })
	case *ast.TypeSpec:
		at.nothing = n.Name == name
	case *ast.FuncDecl, *ast.BranchStmt, *ast.LabeledStmt:
		at.nothing = true
	case *ast.AssignStmt:
		at.nothing = n.Tok == token.DEFINE && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return e == name })
	case *ast.RangeStmt:
		at.nothing = n.Tok == token.DEFINE && (n.Key == name || n.Value == name)
	}
	if at.selector {
		return place{selector: true, types: at.types}
	}
	if !p.clean && operandEnd(before) {
		at.keywordsOnly = true
	}
	return at
}

// wantsType says whether x, a part of n, can only be a type.
func (p *probe) wantsType(n, x ast.Node) bool {
	switch n := n.(type) {
	case *ast.Field:
		return n.Type == x
	case *ast.ValueSpec:
		return n.Type == x
	case *ast.ArrayType:
		return n.Elt == x
	case *ast.TypeSpec:
		return n.Name != x
	case *ast.TypeAssertExpr:
		return n.Type == x
	case *ast.MapType, *ast.ChanType, *ast.Ellipsis:
		return true
	case *ast.ParenExpr, *ast.StarExpr:
		return p.wantsType(p.above(n), n)
	case *ast.CaseClause:
		block := p.above(n)
		_, ok := p.above(block).(*ast.TypeSwitchStmt)
		return ok && slices.ContainsFunc(n.List, func(e ast.Expr) bool { return e == x })
	}
	return false
}

// above is the node around n on the cursor's path.
func (p *probe) above(n ast.Node) ast.Node {
	if i := slices.Index(p.path, n); n != nil && i > 0 {
		return p.path[i-1]
	}
	return nil
}

// operandEnd says whether an expression can end in a token.
func operandEnd(t token.Token) bool {
	return t.IsLiteral() || t == token.RPAREN || t == token.RBRACK || t == token.RBRACE
}

// keywords are those that can stand at the cursor; list and before are place's.
func (p *probe) keywords(list []lexeme, before token.Token) (words []string) {
	open, head := nesting(list)
	if before == token.RBRACE {
		// Only else goes on after a block.
		if h := blockHead(list); h == token.IF || h == token.ELSE {
			return []string{"else"}
		}
	}
	if before == token.ELSE {
		return []string{"if"}
	}
	if headOf(list, head) == token.FOR && (before == token.FOR || before == token.DEFINE || before == token.ASSIGN) {
		words = append(words, "range")
	}
	if n := len(list); before == token.LPAREN && n > 1 && list[n-2].tok == token.PERIOD {
		words = append(words, "type")
	}
	if operandEnd(before) && !p.clean {
		return words
	}
	words = append(words, "chan", "func", "interface", "map", "struct")
	if head != len(list) {
		return words
	}
	// A statement begins here, unless this is a literal or a list.
	if n := len(open); n > 0 && (open[n-1].tok != token.LBRACE || slices.Contains([]token.Token{token.TYPE, token.IMPORT, token.CONST, token.VAR}, headOf(list, open[n-1].head))) {
		return words
	}
	if len(p.path) > 1 {
		if _, ok := p.parent(1).(*ast.CompositeLit); ok {
			return words
		}
	}
	words = append(words, "const", "defer", "for", "go", "goto", "if", "return", "select", "switch", "type", "var")
	if len(open) == 0 {
		words = append(words, "import")
		if len(list) == 0 {
			words = append(words, "package")
		}
	}
	loop, choice := false, false
	for i := len(open) - 1; i >= 0; i-- {
		h := headOf(list, open[i].head)
		loop = loop || h == token.FOR
		choice = choice || h == token.SWITCH || h == token.SELECT
		if i == len(open)-1 && choice {
			words = append(words, "case", "default")
			if h == token.SWITCH {
				words = append(words, "fallthrough")
			}
		}
		if open[i].at > 0 && h == token.FUNC {
			break
		}
	}
	if loop {
		words = append(words, "continue")
	}
	if loop || choice {
		words = append(words, "break")
	}
	return words
}

// blockHead is the token that begins the statement whose block list ends in.
func blockHead(list []lexeme) token.Token {
	depth := 0
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i].tok {
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth++
		case token.LPAREN, token.LBRACK, token.LBRACE:
			if depth--; depth == 0 {
				_, head := nesting(list[:i])
				return headOf(list, head)
			}
		}
	}
	return token.ILLEGAL
}
