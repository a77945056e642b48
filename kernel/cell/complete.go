package cell

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode/utf8"

	"deltafin/kernel"
)

// complete gives the names that can stand at cursor, a count of code points. It
// works from declarations and types alone, whatever runs meanwhile.
func (s *shell) complete(code string, cursor int) kernel.Completions {
	offset := byteOffset(code, cursor)
	start, _ := wordAt(code[:offset], offset)
	prefix := code[start:offset]
	out := kernel.Completions{Start: cursor - utf8.RuneCountInString(prefix), End: cursor}
	if _, inside := state(code[:offset]); inside || prefix != "" && prefix[0] >= '0' && prefix[0] <= '9' {
		return out
	}
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	defer s.forget(s.fset.Base())
	selector := strings.HasSuffix(strings.TrimRight(code[:start], " \t"), ".")
	_, end := wordAt(code, offset)
	u := t.probe(s.fset, newSource("probe", 0, code[:start]+cursorName+code[end:]))
	if u == nil {
		u = t.probe(s.fset, newSource("probe", 0, closed(code[:start]+cursorName)))
	}
	if u == nil && !selector {
		u = t.probe(s.fset, newSource("probe", 0, cursorName))
	}
	if u == nil {
		// The line alone may be well formed.
		line := code[strings.LastIndexByte(code[:start], '\n')+1 : start]
		if u = t.probe(s.fset, newSource("probe", 0, closed(line+cursorName))); u == nil {
			return out
		}
	}
	seen := map[string]bool{}
	add := func(name, kind, signature string) {
		if strings.HasPrefix(name, prefix) && !strings.Contains(name, mark) && name != "_" && !seen[name] {
			seen[name] = true
			out.Matches = append(out.Matches, kernel.Completion{Text: name, Type: kind, Signature: signature})
		}
	}
	object := func(o types.Object) {
		kind, signature := u.describe(o)
		if d := s.child.bindings.Docs[u.docKey(o)]; o.Pkg() == t.lab && d.Signature != "" && kind != "field" {
			signature = d.Signature
		}
		add(o.Name(), kind, signature)
	}
	if selector {
		u.members(object)
	} else {
		u.visible(object)
		for _, d := range t.current {
			if o := u.pkg.Scope().Lookup(d.file); o != nil {
				kind, signature := u.describe(o)
				add(d.name, kind, signature)
			}
		}
		for name, path := range u.imports {
			add(name, "module", "package "+path)
		}
		if t.lab != nil {
			for _, n := range t.lab.Scope().Names() {
				object(t.lab.Scope().Lookup(n))
			}
			add(t.lab.Name(), "module", "package "+t.lab.Path())
		}
		if prefix != "" {
			for k := token.BREAK; k <= token.VAR; k++ {
				add(k.String(), "keyword", "")
			}
			for _, n := range types.Universe.Names() {
				object(types.Universe.Lookup(n))
			}
			for _, p := range t.lib.paths() {
				add(packageName(p), "module", "package "+p)
			}
		}
	}
	slices.SortFunc(out.Matches, func(a, b kernel.Completion) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// members finds what the expression before the cursor's dot has.
func (u *unit) members(add func(types.Object)) {
	var x ast.Expr
	u.inspect(func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.Contains(s.Sel.Name, cursorName) {
			x = s.X
		}
		return x == nil
	})
	if x == nil {
		return
	}
	if id, ok := x.(*ast.Ident); ok {
		if p, ok := u.info.Uses[id].(*types.PkgName); ok {
			for _, n := range p.Imported().Scope().Names() {
				if o := p.Imported().Scope().Lookup(n); o.Exported() {
					add(o)
				}
			}
			return
		}
	}
	tv, ok := u.info.Types[x]
	if !ok || tv.Type == nil {
		return
	}
	u.membersOf(tv.Type, add)
}

// membersOf gives the fields and methods of a type that a cell can name.
func (u *unit) membersOf(t types.Type, add func(types.Object)) {
	base := t
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		base = p.Elem()
	} else if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	can := func(o types.Object) bool { return o.Exported() || o.Pkg() == u.pkg }
	ms := types.NewMethodSet(t)
	for i := range ms.Len() {
		if o := ms.At(i).Obj(); can(o) {
			add(o)
		}
	}
	seen := map[types.Type]bool{}
	var fields func(types.Type, int)
	fields = func(t types.Type, depth int) {
		if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok || seen[t] || depth > 8 {
			return
		}
		seen[t] = true
		for i := range s.NumFields() {
			if f := s.Field(i); can(f) {
				add(f)
			}
		}
		for i := range s.NumFields() {
			if f := s.Field(i); f.Embedded() {
				fields(f.Type(), depth+1)
			}
		}
	}
	fields(base, 0)
}

// visible gives the names of the functions and blocks around the cursor, and the
// fields of a composite literal that it is in.
func (u *unit) visible(add func(types.Object)) {
	var at token.Pos
	var path []ast.Node
	var around []ast.Node
	u.inspect(func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		if id, ok := n.(*ast.Ident); ok && strings.Contains(id.Name, cursorName) && at == token.NoPos {
			at, around = id.Pos(), slices.Clone(path)
		}
		return true
	})
	for i := len(around) - 1; i >= 0; i-- {
		n := around[i]
		if l, ok := n.(*ast.CompositeLit); ok && i >= len(around)-3 {
			if tv, ok := u.info.Types[l]; ok && tv.Type != nil {
				if s, ok := tv.Type.Underlying().(*types.Struct); ok {
					for i := range s.NumFields() {
						if f := s.Field(i); f.Exported() || f.Pkg() == u.pkg {
							add(f)
						}
					}
				}
			}
		}
		key := n
		if f, ok := n.(*ast.FuncDecl); ok {
			key = f.Type
		}
		if f, ok := n.(*ast.FuncLit); ok {
			key = f.Type
		}
		if sc := u.info.Scopes[key]; sc != nil {
			for _, name := range sc.Names() {
				if o := sc.Lookup(name); o.Pos() < at {
					add(o)
				}
			}
		}
	}
	for _, name := range u.pkg.Scope().Names() {
		if !strings.Contains(name, mark) {
			add(u.pkg.Scope().Lookup(name))
		}
	}
}

// inspect walks the cell's own trees.
func (u *unit) inspect(f func(ast.Node) bool) {
	for _, d := range u.decls {
		ast.Inspect(d, f)
	}
	for _, s := range u.body {
		ast.Inspect(s, f)
	}
}
