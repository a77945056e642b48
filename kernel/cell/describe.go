package cell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
)

// qualifier names a package in what front ends show: cells and the lab need none.
func (p *probe) qualifier(q *types.Package) string {
	if q.Path() == cellPath || q == p.lab {
		return ""
	}
	return q.Name()
}

func (p *probe) typeText(t types.Type) string {
	if s, ok := t.(*types.Signature); ok {
		return "func" + p.signature(s)
	}
	return unmark(types.TypeString(t, p.qualifier))
}

// signature is a function's as people write it: parameters of one type share it.
func (p *probe) signature(s *types.Signature) string {
	var b strings.Builder
	if l := s.TypeParams(); l.Len() > 0 {
		b.WriteByte('[')
		for i := range l.Len() {
			t := l.At(i)
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(t.Obj().Name())
			if i+1 == l.Len() || l.At(i+1).Constraint() != t.Constraint() {
				b.WriteString(" " + p.typeText(t.Constraint()))
			}
		}
		b.WriteByte(']')
	}
	b.WriteString("(" + p.tuple(s.Params(), s.Variadic()) + ")")
	switch r := s.Results(); {
	case r.Len() == 1 && (r.At(0).Name() == "" || r.At(0).Name() == "_"):
		b.WriteString(" " + p.typeText(r.At(0).Type()))
	case r.Len() > 0:
		b.WriteString(" (" + p.tuple(r, false) + ")")
	}
	return b.String()
}

func (p *probe) tuple(l *types.Tuple, variadic bool) string {
	texts := make([]string, l.Len())
	named := false
	for i := range l.Len() {
		v := l.At(i)
		texts[i] = p.typeText(v.Type())
		if s, ok := v.Type().(*types.Slice); ok && variadic && i == l.Len()-1 {
			texts[i] = "..." + p.typeText(s.Elem())
		}
		named = named || v.Name() != "" && v.Name() != "_"
	}
	if named {
		for i := range l.Len() {
			name := l.At(i).Name()
			if name == "" {
				name = "_"
			}
			if i+1 < l.Len() && texts[i] == texts[i+1] {
				texts[i] = name
			} else {
				texts[i] = name + " " + texts[i]
			}
		}
	}
	return strings.Join(texts, ", ")
}

// describe gives an object's kind, as front ends name kinds, and what follows its
// name where it is declared.
func (p *probe) describe(o types.Object) (kind, signature string) {
	switch o := o.(type) {
	case *types.Func:
		kind = "function"
		if o.Signature().Recv() != nil {
			kind = "method"
		}
		s := o.Signature()
		if o.Pkg() == p.lab {
			s = withNames(s, p.docs[p.docKey(o)].Signature)
		}
		signature = p.signature(s)
	case *types.TypeName:
		kind = "type"
		if o.Type() == nil {
			break
		}
		switch u := o.Type().Underlying().(type) {
		case *types.Struct:
			signature = "struct"
		case *types.Interface:
			signature = "interface"
		default:
			if signature = p.typeText(u); signature == o.Name() {
				signature = ""
			}
		}
		if types.IsInterface(o.Type()) && o.Pkg() == nil {
			signature = "interface"
		}
	case *types.Var:
		kind = "variable"
		if o.IsField() {
			kind = "field"
		}
		signature = p.typeText(o.Type())
	case *types.Const:
		kind = "constant"
		signature = "= " + o.Val().String()
		if b, ok := o.Type().(*types.Basic); !ok || b.Info()&types.IsUntyped == 0 {
			signature = p.typeText(o.Type()) + " " + signature
		}
	case *types.PkgName:
		kind, signature = "module", `"`+o.Imported().Path()+`"`
	case *types.Builtin:
		kind = "function"
		_, signature, _ = strings.Cut(p.lib.docs.doc("builtin", "func "+o.Name()), "func "+o.Name())
	case *types.Nil:
		kind = "constant"
	}
	return kind, unmark(signature)
}

// withNames gives a signature, of a compiled function, the names that its
// documentation has for parameters and results.
func withNames(s *types.Signature, doc string) *types.Signature {
	name, rest, ok := strings.Cut(doc, "(")
	if !ok || !token.IsIdentifier(name) {
		return s
	}
	e, err := parser.ParseExpr("func(" + rest)
	f, ok := e.(*ast.FuncType)
	if err != nil || !ok {
		return s
	}
	named := func(l *types.Tuple, names *ast.FieldList) *types.Tuple {
		var all []string
		if names != nil {
			for _, x := range names.List {
				for _, id := range x.Names {
					all = append(all, id.Name)
				}
			}
		}
		if len(all) != l.Len() {
			return l
		}
		vars := make([]*types.Var, l.Len())
		for i := range vars {
			vars[i] = types.NewParam(l.At(i).Pos(), l.At(i).Pkg(), all[i], l.At(i).Type())
		}
		return types.NewTuple(vars...)
	}
	return types.NewSignatureType(nil, nil, nil, named(s.Params(), f.Params), named(s.Results(), f.Results), s.Variadic())
}
