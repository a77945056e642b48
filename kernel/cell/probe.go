package cell

import (
	"go/ast"
	"go/parser"
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

// A probeFile maps positions to the cell's text.
type probeFile struct {
	file  *token.File
	delta int    // what an offset in the file is off by
	added []edit // what the file has beyond the cell's text
}

// An edit is a text that a file has and the cell hasn't.
type edit struct{ at, size int } // at is an offset in the cell

// offset is where a position of the file is in the cell's text.
func (f probeFile) offset(pos token.Pos) int {
	o := f.file.Offset(pos) + f.delta
	for _, e := range f.added {
		if o > e.at {
			o = max(e.at, o-e.size)
		}
	}
	return o
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

// read parses the text's segments, each as far as it goes, and gives the name at the
// cursor.
func (p *probe) read(at int) (target *ast.Ident) {
	list := segments(p.text)
	for i := 0; i < len(list); i++ {
		s := list[i]
		here := func(s segment) bool { return at >= s.start && at < s.end }
		if !here(s) {
			// Statements one after another at once, where they are well formed.
			n := i
			for !s.decl && n+1 < len(list) && !list[n+1].decl && !here(list[n+1]) {
				n++
			}
			if n > i {
				if all := p.parse(s, p.text[s.start:list[n].end]); all.ok {
					p.take(all)
					i = n
					continue
				}
			}
			for ; i < n; i++ {
				p.take(p.parse(list[i], p.text[list[i].start:list[i].end]))
			}
			s = list[i]
			p.take(p.parse(s, p.text[s.start:s.end]))
			continue
		}
		if whole := p.parse(s, p.text[s.start:s.end]); whole.ok && whole.at(at) != nil {
			p.clean, target = true, whole.at(at)
			p.take(whole)
			continue
		}
		// What is before the cursor, finished in the one or other way, and the
		// segments that follow the cursor's line.
		_, end := wordAt(p.text, at)
		before := p.text[s.start:end]
		closers := closing(lex(before))
		before, added := mended(before, s.start)
		var best *parsed
		for _, c := range endings {
			x := p.parse(s, before+c.before+closers+c.after, added...)
			if x.at(at) == nil {
				continue
			}
			if x.ok {
				best = &x
				p.clean = true
				break
			}
			if best == nil {
				best = &x
			}
		}
		if best == nil {
			// The line alone, or the name.
			line := max(s.start, strings.LastIndexByte(p.text[:at], '\n')+1)
			for _, from := range []int{line, at} {
				r := segment{start: from, end: end}
				if x := p.parse(r, p.text[from:end]+closing(lex(p.text[from:end]))); x.at(at) != nil {
					best = &x
					break
				}
			}
		}
		if best != nil {
			target = best.at(at)
			p.take(*best)
		}
		rest := strings.IndexByte(p.text[end:s.end], '\n')
		if rest < 0 {
			continue
		}
		rest += end
		for _, r := range segments(p.text[rest:s.end]) {
			r.start, r.end = r.start+rest, r.end+rest
			if x := p.parse(r, p.text[r.start:r.end]); x.ok {
				p.take(x)
			}
		}
	}
	return target
}

// endings are ways to finish what is cut off at the cursor: something before the
// brackets that are closed, and after.
var endings = []struct{ before, after string }{
	{"", ""}, {"()", ""}, {" {}", ""}, {":", ""}, {"; {}", ""}, {": nil", ""}, {"", " int"}, {"", "()"}, {"", " _()"}, {"", " {}"},
}

// mended closes the strings and parentheses that a line of text, which begins at an
// offset of the cell, leaves open.
func mended(text string, start int) (string, []edit) {
	var b strings.Builder
	var added []edit
	list := lex(text)
	n := newNest(list)
	done := 0
	for i := range list {
		open := slices.Clone(n.open)
		n.next()
		if i == 0 || list[i].tok != token.SEMICOLON || list[i].lit != "\n" {
			continue
		}
		last, missing := list[i-1], ""
		if last.open && last.tok == token.STRING {
			missing = `"`
		}
		for k := len(open) - 1; k >= len(n.open); k-- {
			missing += map[token.Token]string{token.LPAREN: ")", token.LBRACK: "]"}[open[k].tok]
		}
		if missing != "" {
			b.WriteString(text[done:last.end] + missing)
			done = last.end
			added = append(added, edit{start + last.end, len(missing)})
		}
	}
	return b.String() + text[done:], added
}

// parsed is one segment's tree.
type parsed struct {
	decls []ast.Decl
	stmts []ast.Stmt
	file  probeFile
	ok    bool
}

// parse parses text, which begins where s does.
func (p *probe) parse(s segment, text string, added ...edit) parsed {
	head, tail := "package p;func _(){", "\n}"
	if s.decl {
		head, tail = "package p\n", ""
		if strings.HasPrefix(text, "package ") {
			return parsed{}
		}
	}
	f, err := parser.ParseFile(p.fset, "", head+text+tail, parser.SkipObjectResolution|parser.ParseComments|parser.AllErrors)
	if f == nil || len(f.Decls) == 0 {
		return parsed{}
	}
	out := parsed{file: probeFile{p.fset.File(f.FileStart), s.start - len(head), added}, ok: err == nil}
	if s.decl {
		out.decls = f.Decls
		return out
	}
	if fn, ok := f.Decls[0].(*ast.FuncDecl); ok && fn.Body != nil {
		out.stmts = fn.Body.List
	}
	out.ok = out.ok && len(f.Decls) == 1
	return out
}

// at is the name at an offset of the cell, or nil.
func (x parsed) at(offset int) (found *ast.Ident) {
	if x.file.file == nil {
		return nil
	}
	look := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Pos().IsValid() && x.file.offset(id.Pos()) == offset {
			found = id
		}
		return found == nil
	}
	for _, d := range x.decls {
		ast.Inspect(d, look)
	}
	for _, s := range x.stmts {
		ast.Inspect(s, look)
	}
	return found
}

// take adds a segment's tree to the cell's.
func (p *probe) take(x parsed) {
	if x.file.file != nil {
		p.files = append(p.files, x.file)
	}
	for _, d := range x.decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				p.decls = append(p.decls, d)
				continue
			}
			for _, s := range d.Specs {
				p.addImport(s.(*ast.ImportSpec))
			}
		case *ast.FuncDecl:
			p.decls = append(p.decls, d)
		}
	}
	p.body = append(p.body, x.stmts...)
}

func (p *probe) addImport(s *ast.ImportSpec) {
	path, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return
	}
	if s.Name == nil {
		if p.lib.names[packageName(path)] != nil {
			p.imports[packageName(path)] = path
		}
		return
	}
	switch s.Name.Name {
	case ".":
		p.dots = append(p.dots, path)
	case "_":
	default:
		p.imports[s.Name.Name] = path
	}
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
	if o := p.info.Defs[id]; o != nil {
		return o
	}
	return nil
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
