package cell

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A probe is a cell, however unfinished, parsed and checked as far as it goes:
// what completion and inspection work from. It sees what the cells that ran
// declared and shares nothing with a cell that is being checked; it runs nothing
// and declares nothing.
type probe struct {
	lib  *library
	lab  *types.Package // nil without exports
	seen *outlook
	docs map[string]Doc // the lab's
	text string

	fset    *token.FileSet
	files   []probeFile // by position
	decls   []ast.Decl  // functions, methods, types and constants
	body    []ast.Stmt  // the other top-level statements
	imports map[string]string
	dots    []string
	own     map[*ast.Ident]ownDecl
	old     map[string]*types.Var    // session variables under other names
	adopted map[*ast.FuncDecl]string // methods of earlier cells' types, with their names
	pkg     *types.Package
	info    *types.Info

	path  []ast.Node // around the cursor, its name last; nil when that is nowhere
	clean bool       // what is around the cursor is well formed
}

// An ownDecl is a declaration of the probed cell itself.
type ownDecl struct {
	node ast.Node
	doc  string
	stmt bool // of a variable among the cell's statements
}

// newProbe parses and checks text. at is the offset of the cursor's name in it, or
// -1: the text before it counts most, and what comes after only where it can.
func (s *shell) newProbe(text string, at int) *probe {
	t := s.table
	p := &probe{
		lib: t.lib, lab: t.lab, seen: t.seen.Load(), docs: s.child.bindings.Docs, text: text, fset: token.NewFileSet(),
		imports: map[string]string{}, own: map[*ast.Ident]ownDecl{}, old: map[string]*types.Var{},
		adopted: map[*ast.FuncDecl]string{},
	}
	if target := p.read(at); target != nil {
		p.path = p.around(target)
	}
	p.check()
	return p
}

// offset is where a position is in the cell's text, or -1.
func (p *probe) offset(pos token.Pos) int {
	if !pos.IsValid() {
		return -1
	}
	i, ok := slices.BinarySearchFunc(p.files, int(pos), func(f probeFile, pos int) int {
		switch base := f.file.Base(); {
		case base > pos:
			return 1
		case base+f.file.Size() < pos:
			return -1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return p.files[i].offset(pos)
}

// source is a node's text.
func (p *probe) source(n ast.Node) string {
	a, b := p.offset(n.Pos()), p.offset(n.End())
	if a < 0 || b < a || b > len(p.text) {
		return ""
	}
	return p.text[a:b]
}

// walk visits the cell's trees.
func (p *probe) walk(f func(ast.Node) bool) {
	for _, d := range p.decls {
		ast.Inspect(d, f)
	}
	for _, s := range p.body {
		ast.Inspect(s, f)
	}
}

// around gives the nodes around a name, from the outermost to the name.
func (p *probe) around(target *ast.Ident) (path []ast.Node) {
	var stack []ast.Node
	p.walk(func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if n == target {
			path = slices.Clone(stack)
		}
		return true
	})
	return path
}

// parent is the nth node around the cursor's name, or nil.
func (p *probe) parent(n int) ast.Node {
	if i := len(p.path) - 1 - n; i >= 0 {
		return p.path[i]
	}
	return nil
}

// check has go/types look at the cell. Its own faults are nobody's business here.
func (p *probe) check() {
	p.pkg, p.info = types.NewPackage(cellPath, cellPath), newInfo()
	f := p.file()
	declared := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				declared[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					declared[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						declared[n.Name] = true
					}
				}
			}
		}
	}
	used, selected := map[string]bool{}, map[string][]string{}
	p.walk(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				members := selected[id.Name]
				if n.Sel.Name != cursorName {
					members = append(members, n.Sel.Name)
				}
				selected[id.Name] = members
			}
		case *ast.Ident:
			used[n.Name] = true
		}
		return true
	})
	var imports []ast.Decl
	for name := range used {
		if declared[name] {
			continue
		}
		members, ok := selected[name]
		if path := p.imported(name, members, ok); path != "" {
			imports = append(imports, importDecl(name, path))
		} else if o := p.lookup(name); o != nil {
			p.pkg.Scope().Insert(o)
		}
	}
	for _, v := range p.old {
		p.pkg.Scope().Insert(v)
	}
	f.Decls = append(imports, f.Decls...)
	conf := types.Config{
		Importer: p.lib, DisableUnusedImportCheck: true, GoVersion: "go1.26",
		Error: func(error) {}, Sizes: types.SizesFor("gc", "amd64"),
	}
	types.NewChecker(&conf, p.fset, p.pkg, p.info).Files([]*ast.File{f})
}

// cellPath is the path of the package that cells are, to which all their unexported
// names belong.
const cellPath = "main"

// imported is the path of the package that a name means, or "": an imported one, or
// where something is selected from it one that has members.
func (p *probe) imported(name string, members []string, selected bool) string {
	if path := p.imports[name]; path != "" {
		return path
	}
	if p.seen.names.Lookup(name) != nil {
		return ""
	}
	if path := p.seen.imports[name]; path != "" {
		return path
	}
	for _, q := range p.visible() {
		if o := q.Scope().Lookup(name); o != nil && o.Exported() {
			return ""
		}
	}
	if p.lab != nil && name == p.lab.Name() {
		return p.lab.Path()
	}
	if !selected {
		return ""
	}
	return p.lib.find(name, members)
}

// visible are the packages whose names need no qualifier.
func (p *probe) visible() (out []*types.Package) {
	for _, path := range slices.Concat(p.dots, p.seen.dots) {
		if q, err := p.lib.Import(path); err == nil {
			out = append(out, q)
		}
	}
	if p.lab != nil {
		out = append(out, p.lab)
	}
	return out
}

// lookup finds what a name meant before the cell.
func (p *probe) lookup(name string) types.Object {
	if o := p.seen.names.Lookup(name); o != nil {
		return o
	}
	for _, q := range p.visible() {
		if o := q.Scope().Lookup(name); o != nil && o.Exported() {
			return o
		}
	}
	return nil
}

// file is the cell as one file: variables between its statements are the
// package's, as unit.file has them.
func (p *probe) file() *ast.File {
	f := &ast.File{Name: ast.NewIdent(cellPath)}
	own := map[string]bool{}
	for _, d := range p.decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					own[s.Name.Name] = !s.Assign.IsValid()
					if id, ok := s.Type.(*ast.Ident); ok {
						// go/types looks for cycles among the cell's own type names, and
						// takes a plain name for one of those.
						s.Type = &ast.ParenExpr{Lparen: id.Pos(), X: id, Rparen: id.End()}
					}
				}
			}
		}
	}
	for _, d := range p.decls {
		f.Decls = append(f.Decls, d)
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && !own[receiverName(d)] {
				p.adopt(d)
			}
			p.own[d.Name] = ownDecl{node: d, doc: d.Doc.Text()}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					p.own[s.Name] = ownDecl{node: s, doc: firstText(s.Doc, d.Doc, s.Comment)}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						p.own[n] = ownDecl{node: s, doc: firstText(s.Doc, d.Doc, s.Comment)}
					}
				}
			}
		}
	}
	declared := map[string]bool{}
	declare := func(names []*ast.Ident, values []ast.Expr, d ownDecl) {
		for _, v := range values {
			p.meanOld(v, names)
		}
		for _, id := range names {
			p.own[id] = d
			if declared[id.Name] {
				id.Name += mark + strconv.Itoa(len(p.own))
			}
			declared[id.Name] = true
		}
	}
	var stmts []ast.Stmt
	for _, s := range p.body {
		switch s := s.(type) {
		case *ast.AssignStmt:
			var names []*ast.Ident
			for _, l := range s.Lhs {
				if id, ok := l.(*ast.Ident); ok {
					names = append(names, id)
				}
			}
			if s.Tok == token.DEFINE && len(names) == len(s.Lhs) {
				declare(names, s.Rhs, ownDecl{node: s, stmt: true})
				f.Decls = append(f.Decls, &ast.GenDecl{Tok: token.VAR, TokPos: s.Pos(), Specs: []ast.Spec{&ast.ValueSpec{Names: names, Values: s.Rhs}}})
				continue
			}
		case *ast.DeclStmt:
			if g, ok := s.Decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, sp := range g.Specs {
					if v, ok := sp.(*ast.ValueSpec); ok {
						declare(v.Names, v.Values, ownDecl{node: v, doc: firstText(v.Doc, g.Doc, v.Comment), stmt: true})
					}
				}
				f.Decls = append(f.Decls, g)
				continue
			}
		}
		stmts = append(stmts, s)
	}
	f.Decls = append(f.Decls, &ast.FuncDecl{Name: ast.NewIdent("init"), Type: &ast.FuncType{Params: &ast.FieldList{}}, Body: &ast.BlockStmt{List: stmts}})
	return f
}

// adopt turns a method into a function of its receiver: go/types takes no methods
// for a type of an earlier cell, which is none of this one's.
func (p *probe) adopt(d *ast.FuncDecl) {
	p.adopted[d] = d.Name.Name
	t := *d.Type
	t.Params = &ast.FieldList{List: slices.Clone(d.Recv.List)}
	if d.Type.Params != nil {
		t.Params.List = append(t.Params.List, d.Type.Params.List...)
	}
	var args []ast.Expr
	for _, r := range d.Recv.List {
		base := r.Type
		if s, ok := base.(*ast.StarExpr); ok {
			base = s.X
		}
		switch x := base.(type) {
		case *ast.IndexExpr:
			args = []ast.Expr{x.Index}
		case *ast.IndexListExpr:
			args = x.Indices
		}
	}
	for _, a := range args {
		if id, ok := a.(*ast.Ident); ok {
			if t.TypeParams == nil {
				t.TypeParams = &ast.FieldList{}
			}
			t.TypeParams.List = append(t.TypeParams.List, &ast.Field{Names: []*ast.Ident{{Name: id.Name, NamePos: id.NamePos}}, Type: ast.NewIdent("any")})
		}
	}
	d.Name.Name += mark + strconv.Itoa(len(p.adopted))
	d.Recv, d.Type = nil, &t
}

// method is the adopted method that d was, or nil.
func (p *probe) method(d *ast.FuncDecl) *types.Func {
	f, ok := p.info.Defs[d.Name].(*types.Func)
	if !ok || f.Signature().Params().Len() == 0 {
		return nil
	}
	s := f.Signature()
	params := make([]*types.Var, s.Params().Len()-1)
	for i := range params {
		params[i] = s.Params().At(i + 1)
	}
	variadic := s.Variadic() && len(params) > 0
	return types.NewFunc(f.Pos(), f.Pkg(), p.adopted[d], types.NewSignatureType(s.Params().At(0), nil, nil, types.NewTuple(params...), s.Results(), variadic))
}

// adoptedMethods are those that the cell itself adds to n.
func (p *probe) adoptedMethods(n *types.Named) (out []*types.Func) {
	for d := range p.adopted {
		if f := p.method(d); f != nil && receiverNamed(f) == n.Origin() {
			out = append(out, f)
		}
	}
	return out
}

// meanOld makes names in the value of their own declaration mean the session's, as
// in x := x + 1.
func (p *probe) meanOld(value ast.Expr, names []*ast.Ident) {
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			p.meanOld(n.X, names)
			return false
		case *ast.KeyValueExpr:
			p.meanOld(n.Value, names)
			return false
		case *ast.Ident:
			same := func(id *ast.Ident) bool { return id.Name == n.Name }
			old, ok := p.seen.names.Lookup(n.Name).(*types.Var)
			if !ok || !slices.ContainsFunc(names, same) {
				return true
			}
			n.Name += mark + "0"
			if p.old[n.Name] == nil {
				p.old[n.Name] = types.NewVar(old.Pos(), old.Pkg(), n.Name, old.Type())
			}
		}
		return true
	})
}

// firstText is the text of the first comment that there is.
func firstText(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if t := strings.TrimSpace(g.Text()); t != "" {
			return t
		}
	}
	return ""
}

// object is what an identifier of the cell means, or nil.
func (p *probe) object(id *ast.Ident) types.Object {
	if o := p.info.Uses[id]; o != nil {
		return o
	}
	for d := range p.adopted {
		if d.Name == id {
			if f := p.method(d); f != nil {
				return f
			}
			return nil
		}
	}
	return p.info.Defs[id]
}

// cursorName stands where the cursor is in a cell that is probed for completion.
const cursorName = "cursor" + mark

// byteOffset turns a count of code points into one of bytes.
func byteOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func isIdent(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r >= utf8.RuneSelf && string(r) != mark
}

// wordAt gives the identifier that ends at or contains offset: its start and end.
func wordAt(s string, offset int) (start, end int) {
	start, end = offset, offset
	for start > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:start])
		if !isIdent(r) {
			break
		}
		start -= n
	}
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if !isIdent(r) {
			break
		}
		end += n
	}
	return start, end
}
