package cell

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"deltafin/kernel/display"
)

// A help is what is known of a name: Go first, then prose.
type help struct {
	signature string
	doc       string // a doc comment
	path      string // of the package that doc's links begin at
	members   string // Go
	lists     []nameList
	source    string // Go
}

// bundle is the help as text, and as Markdown for front ends that draw it.
func (h help) bundle() display.Bundle {
	parse := comment.Parser{}
	d := parse.Parse(h.doc)
	text := comment.Printer{}
	plain := []string{h.signature, strings.TrimSpace(string(text.Text(d))), h.members}
	link := func(l *comment.DocLink) string {
		path := l.ImportPath
		if path == "" {
			path = h.path
		}
		if path == "" {
			return ""
		}
		name := l.Name
		if l.Recv != "" {
			name = l.Recv + "." + name
		}
		return "https://pkg.go.dev/" + path + "#" + name
	}
	mark := comment.Printer{HeadingLevel: 4, HeadingID: func(*comment.Heading) string { return "" }, DocLinkURL: link}
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "```go\n" + s + "\n```"
	}
	rich := []string{code(h.signature), strings.TrimSpace(string(mark.Markdown(d))), code(h.members)}
	for _, l := range h.lists {
		plain = append(plain, l.kind+": "+strings.Join(l.names, ", "))
		rich = append(rich, l.kind+": `"+strings.Join(l.names, "`, `")+"`")
	}
	plain, rich = append(plain, h.source), append(rich, code(h.source))
	none := func(s string) bool { return s == "" }
	b := display.Text(strings.Join(slices.DeleteFunc(plain, none), "\n\n"))
	b.Data[display.MIMEMarkdown] = strings.Join(slices.DeleteFunc(rich, none), "\n\n")
	return b
}

// explain is an object's signature, documentation and, for detail 1, source.
func (p *probe) explain(o types.Object, detail int) help {
	kind, signature := p.describe(o)
	h := help{signature: o.Name() + " " + signature}
	text := ""
	if d := p.declOf(o); d != nil {
		h.doc, text = d.doc, d.text
	} else if d, ok := p.ownOf(o); ok {
		h.doc, text = d.doc, p.source(d.node)
	} else if o.Pkg() == nil {
		h.path = "builtin"
		h.doc = p.lib.docs.doc("builtin", o.Name())
	} else if o.Pkg() == p.lab {
		h.doc = p.docs[p.docKey(o)].Doc
	} else if o.Pkg().Path() != cellPath {
		h.path = o.Pkg().Path()
		h.doc = p.lib.doc(h.path, p.docKey(o))
	} else if v, ok := o.(*types.Var); ok && v.IsField() {
		h.doc = p.fieldDoc(v)
	}
	h.signature = unmark(h.signature)
	switch kind {
	case "function":
		h.signature = "func " + o.Name() + signature
	case "method":
		h.signature = "func " + p.receiver(o.(*types.Func)) + o.Name() + signature
	case "constant":
		h.signature = "const " + h.signature
	case "type":
		h.signature = "type " + h.signature
		if text != "" {
			h.signature, text = "type "+text, ""
		}
		p.describeType(&h, o, text == "" && strings.HasSuffix(h.signature, "}"))
	}
	h.signature = strings.TrimSpace(h.signature)
	if detail > 0 {
		h.source = text
	}
	return h
}

// receiver is a method's receiver as it is written.
func (p *probe) receiver(f *types.Func) string {
	r := f.Signature().Recv()
	if r == nil || r.Type() == nil {
		return ""
	}
	if _, ok := types.Unalias(r.Type()).Underlying().(*types.Interface); ok && namedOf(r.Type()) == nil {
		return ""
	}
	name := r.Name()
	if name != "" && name != "_" {
		name += " "
	} else {
		name = ""
	}
	return "(" + name + unmark(types.TypeString(r.Type(), func(*types.Package) string { return "" })) + ") "
}

// describeType adds a type's fields and methods.
func (p *probe) describeType(h *help, o types.Object, shown bool) {
	if o.Type() == nil || o.Pkg() == nil {
		return
	}
	var b strings.Builder
	if s, ok := o.Type().Underlying().(*types.Struct); ok && !shown {
		for i := range s.NumFields() {
			if f := s.Field(i); p.can(f) {
				_, t := p.describe(f)
				if f.Embedded() {
					fmt.Fprintf(&b, "%s\n", t)
				} else {
					fmt.Fprintf(&b, "%s %s", f.Name(), t)
					if d := p.docs[o.Name()+"."+f.Name()].Doc; o.Pkg() == p.lab && d != "" && !strings.Contains(d, "\n") {
						b.WriteString(" // " + d)
					}
					b.WriteByte('\n')
				}
			}
		}
	}
	it, isInterface := o.Type().Underlying().(*types.Interface)
	if isInterface && !shown {
		for i := range it.NumMethods() {
			if m := it.Method(i); p.can(m) {
				_, t := p.describe(m)
				fmt.Fprintf(&b, "%s%s\n", m.Name(), t)
			}
		}
	}
	if n := namedOf(o.Type()); n != nil && !isInterface {
		ms := slices.SortedFunc(n.Methods(), func(a, b *types.Func) int { return strings.Compare(a.Name(), b.Name()) })
		for _, m := range ms {
			if p.can(m) {
				_, t := p.describe(m)
				fmt.Fprintf(&b, "func %s%s%s\n", p.receiver(m), m.Name(), t)
			}
		}
	}
	h.members = strings.TrimSpace(unmark(b.String()))
}

// declOf is the session's declaration of o, or nil.
func (p *probe) declOf(o types.Object) *decl {
	if f, ok := o.(*types.Func); ok {
		o = f.Origin()
	}
	return p.seen.decls[o]
}

// ownOf is the cell's own declaration of o.
func (p *probe) ownOf(o types.Object) (ownDecl, bool) {
	if f, ok := o.(*types.Func); ok {
		o = f.Origin()
	}
	for id, d := range p.own {
		if x := p.info.Defs[id]; x == o || x != nil && x.Pkg() == o.Pkg() && x.Pos() == o.Pos() {
			return d, true
		}
	}
	return ownDecl{}, false
}

// fieldDoc is what a struct type of a cell says of its field.
func (p *probe) fieldDoc(v *types.Var) string {
	doc := ""
	look := func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == v.Name() }) {
			doc = firstText(f.Doc, f.Comment)
		}
		return doc == ""
	}
	owner := p.fieldOwner(v)
	for id, d := range p.own {
		if id.Name == owner {
			ast.Inspect(d.node, look)
			return doc
		}
	}
	if d := p.seen.decls[p.seen.names.Lookup(owner)]; d != nil {
		if f, err := parser.ParseFile(token.NewFileSet(), "", "package p\ntype "+d.text, parser.ParseComments|parser.SkipObjectResolution); err == nil {
			ast.Inspect(f, look)
		}
	}
	return doc
}

// docKey is the name that documents o in its package: a method's and a field's
// begins with its type's.
func (p *probe) docKey(o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		if n := receiverNamed(o); n != nil {
			return n.Obj().Name() + "." + o.Name()
		}
	case *types.Var:
		if o.IsField() {
			return p.fieldOwner(o) + "." + o.Name()
		}
	}
	return o.Name()
}

// fieldOwner is the name of the struct type that declares the field.
func (p *probe) fieldOwner(v *types.Var) string {
	if v.Pkg() == nil {
		return ""
	}
	v = v.Origin()
	scopes := []*types.Scope{v.Pkg().Scope()}
	if v.Pkg().Path() == cellPath {
		scopes = []*types.Scope{p.pkg.Scope(), p.seen.names}
	}
	for _, sc := range scopes {
		for _, n := range sc.Names() {
			tn, ok := sc.Lookup(n).(*types.TypeName)
			if !ok || tn.Type() == nil {
				continue
			}
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
