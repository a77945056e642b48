package cell

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"deltafin/kernel/display"
)

// inspect describes the name at cursor, or the function or type that the cursor
// is in the arguments of. detail 1 adds the source of what cells declared.
func (s *shell) inspect(code string, cursor, detail int) (display.Bundle, bool) {
	if _, ok := asked(code); ok {
		code = strings.ReplaceAll(code, "?", " ")
	}
	offset := byteOffset(code, cursor)
	code = withoutMagics(code)
	list := lex(code[:offset])
	inside := false
	if n := len(list); n > 0 && list[n-1].open && list[n-1].end == offset {
		if list[n-1].tok == token.COMMENT {
			return display.Bundle{}, false
		}
		inside = true
		if path, ok := importPath(list); ok {
			for offset < len(code) && code[offset] != '"' && code[offset] != '\n' {
				path += code[offset : offset+1]
				offset++
			}
			return s.newProbe("", -1).packageHelp(path, detail)
		}
		// The arguments that the text is one of.
		offset = list[n-1].start
	}
	start, end := offset, offset
	if !inside {
		start, end = wordAt(code, offset)
	}
	if start < end {
		p := s.newProbe(code, start)
		if h, ok := p.at(code[start:end], detail); ok {
			return h.bundle(), true
		}
		if path := p.imported(code[start:end], nil, true); path != "" && !selected(code[:start]) {
			return p.packageHelp(path, detail)
		}
		if text := keywordHelp[code[start:end]]; text != "" {
			return help{signature: code[start:end], doc: text}.bundle(), true
		}
	}
	if n := len(list); start == end && !inside && n > 0 && list[n-1].tok == token.RPAREN && list[n-1].end == offset {
		offset = list[n-1].start // a call that is complete
	}
	// What is called there, by the name before its bracket.
	list = lex(code[:offset])
	open, _ := nesting(list)
	for _, b := range slices.Backward(open) {
		if b.at == 0 {
			break
		}
		before := list[b.at-1]
		if b.tok == token.LBRACE && (before.tok == token.RPAREN || headOf(list, b.head) != token.IDENT && before.tok != token.IDENT) {
			break
		}
		if before.tok == token.RBRACK && b.tok == token.LPAREN {
			// f[T]( is f's.
			for i, depth := b.at-1, 0; i > 0; i-- {
				switch list[i].tok {
				case token.RBRACK:
					depth++
				case token.LBRACK:
					depth--
				}
				if depth == 0 {
					before = list[i-1]
					break
				}
			}
		}
		if before.tok != token.IDENT || b.tok == token.LBRACK {
			continue
		}
		p := s.newProbe(code, before.start)
		if h, ok := p.at(before.lit, detail); ok {
			return h.bundle(), true
		}
	}
	return display.Bundle{}, false
}

// selected says whether a name after text is selected from something.
func selected(text string) bool { return strings.HasSuffix(strings.TrimRight(text, " \t\n"), ".") }

// at describes the cursor's name.
func (p *probe) at(name string, detail int) (help, bool) {
	id, ok := p.parent(0).(*ast.Ident)
	if !ok {
		return help{}, false
	}
	o := p.object(id)
	if o == nil {
		if l, ok := p.parent(1).(*ast.CompositeLit); ok {
			o = p.fieldAt(l, name)
		}
	}
	if sel, ok := p.parent(1).(*ast.SelectorExpr); ok && o == nil && sel.Sel == id {
		// A field of a type, which only help can select.
		if tv := p.info.Types[sel.X]; tv.Type != nil {
			o, _, _ = types.LookupFieldOrMethod(tv.Type, true, p.pkg, name)
			if n := namedOf(tv.Type); n != nil && o == nil {
				for _, m := range p.adoptedMethods(n) {
					if m.Name() == name {
						o = m
					}
				}
			}
		}
	}
	if o == nil {
		// In a type switch the name has a type in each case.
		if o = p.implicit(id); o == nil {
			return help{}, false
		}
	}
	if n, ok := o.(*types.PkgName); ok {
		return p.packageText(n.Imported(), detail), true
	}
	return p.explain(o, detail), true
}

// fieldAt is the field of a literal's struct that a name without a value means.
func (p *probe) fieldAt(l *ast.CompositeLit, name string) types.Object {
	tv := p.info.Types[l]
	if tv.Type == nil {
		return nil
	}
	if s := structOf(tv.Type); s != nil {
		for i := range s.NumFields() {
			if f := s.Field(i); f.Name() == name && p.can(f) {
				return f
			}
		}
	}
	return nil
}

// implicit is one of the variables that a type switch's name declares.
func (p *probe) implicit(id *ast.Ident) types.Object {
	sw, ok := p.parent(2).(*ast.TypeSwitchStmt)
	if !ok {
		return nil
	}
	for _, c := range sw.Body.List {
		if o := p.info.Implicits[c]; o != nil && o.Name() == id.Name {
			return o
		}
	}
	return nil
}
