package cell

import (
	"go/ast"
	"go/types"
	"strings"

	"deltafin/kernel/display"
)

// inspect describes the name at cursor, or the function whose arguments the
// cursor is in. detail 1 adds the source of what cells declared.
func (s *shell) inspect(code string, cursor, detail int) (display.Bundle, bool) {
	offset := byteOffset(code, cursor)
	start, end := wordAt(code, offset)
	if start == end {
		if start = callStart(code, offset); start < 0 {
			return display.Bundle{}, false
		}
		start, end = wordAt(code, start)
	}
	if start == end {
		return display.Bundle{}, false
	}
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	defer s.forget(s.fset.Base())
	// The whole cell, or what comes before the name's end, perhaps a field's in a
	// literal, or its line.
	line := strings.LastIndexByte(code[:start], '\n') + 1
	tries := []struct {
		text  string
		start int
	}{{code, start}, {closed(code[:end]), start}, {closed(code[line:end]), start - line}}
	if before := strings.TrimRight(code[:start], " \t\n"); strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",") {
		tries = append(tries, tries[1])
		tries[3].text = closed(code[:end] + ": nil")
	}
	for _, c := range tries {
		u := t.probe(s.fset, newSource("probe", 0, c.text))
		if u == nil {
			continue
		}
		row := 1 + strings.Count(c.text[:c.start], "\n")
		col := c.start - strings.LastIndexByte(c.text[:c.start], '\n')
		var found *ast.Ident
		u.inspect(func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if p := u.fset.Position(id.Pos()); p.Line == row && p.Column == col {
					found = id
				}
			}
			return found == nil
		})
		if found == nil {
			continue
		}
		o := u.info.Uses[found]
		if o == nil {
			o = u.info.Defs[found]
		}
		if o == nil {
			continue
		}
		return display.Text(s.explain(u, o, detail)), true
	}
	return display.Bundle{}, false
}

// callStart finds the end of the name before the parenthesis that is open at
// offset, or -1.
func callStart(code string, offset int) int {
	depth := 0
	for i := offset - 1; i >= 0; i-- {
		switch code[i] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			if depth == 0 {
				if code[i] != '(' {
					return -1
				}
				return i
			}
			depth--
		}
	}
	return -1
}

// explain is an object's signature, documentation and, for detail 1, source.
func (s *shell) explain(u *unit, o types.Object, detail int) string {
	kind, signature := u.describe(o)
	key := u.docKey(o)
	doc := ""
	d := u.named[o]
	switch {
	case d != nil:
		doc = d.doc
	case o.Pkg() != nil && o.Pkg() == s.table.lab:
		x := s.child.bindings.Docs[key]
		doc = x.Doc
		if x.Signature != "" && kind != "field" {
			signature = x.Signature
		}
	case o.Pkg() != nil:
		doc = s.table.lib.doc(o.Pkg().Path(), key)
	}
	if kind == "function" || kind == "method" {
		signature = "func " + strings.TrimPrefix(signature, "func ")
	}
	text := signature
	if doc != "" {
		text += "\n\n" + doc
	}
	if detail > 0 && d != nil && d.text != "" {
		text += "\n\n" + d.text
	}
	return text
}

// docKey is the name that documents o in its package: a method's and a field's
// begins with its type's.
func (u *unit) docKey(o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		if n := receiverNamed(o); n != nil {
			return n.Obj().Name() + "." + o.Name()
		}
	case *types.Var:
		if o.IsField() {
			return u.fieldOwner(o) + "." + o.Name()
		}
	}
	return o.Name()
}

// fieldOwner is the name of the exported struct type that has the field.
func (u *unit) fieldOwner(v *types.Var) string {
	if v.Pkg() == nil {
		return ""
	}
	sc := v.Pkg().Scope()
	for _, n := range sc.Names() {
		if tn, ok := sc.Lookup(n).(*types.TypeName); ok && tn.Type() != nil {
			if st, ok := tn.Type().Underlying().(*types.Struct); ok {
				for i := range st.NumFields() {
					if st.Field(i) == v {
						return n
					}
				}
			}
		}
	}
	return ""
}
