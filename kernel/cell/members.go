package cell

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// members finds what the expression before the cursor's dot has.
func (p *probe) members(add func(types.Object, int)) {
	s, ok := p.parent(1).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if id, ok := s.X.(*ast.Ident); ok {
		if n, ok := p.info.Uses[id].(*types.PkgName); ok {
			for _, n := range exported(n.Imported()) {
				add(n, 0)
			}
			return
		}
	}
	tv, ok := p.info.Types[s.X]
	if !ok || tv.Type == nil {
		return
	}
	p.membersOf(tv.Type, tv.IsType(), tv.Addressable(), add)
}

// exported are the names that a package gives.
func exported(p *types.Package) (out []types.Object) {
	for _, n := range p.Scope().Names() {
		if o := p.Scope().Lookup(n); o.Exported() && !strings.Contains(n, mark) {
			out = append(out, o)
		}
	}
	return out
}

// membersOf gives what can be selected from a value of type t, or from t itself:
// its own before what it gets from embedded fields.
func (p *probe) membersOf(t types.Type, isType, addressable bool, add func(types.Object, int)) {
	names := map[string]bool{}
	set := t
	if _, ok := types.Unalias(t).Underlying().(*types.Pointer); !ok && addressable && !types.IsInterface(t) {
		set = types.NewPointer(t)
	}
	ms := types.NewMethodSet(set)
	for i := range ms.Len() {
		names[ms.At(i).Obj().Name()] = true
	}
	if !isType {
		fieldNames(t, names, map[types.Type]bool{}, 0)
	}
	for name := range names {
		o, index, _ := types.LookupFieldOrMethod(t, addressable, p.pkg, name)
		if o == nil {
			continue
		}
		if _, field := o.(*types.Var); field && isType {
			continue
		}
		rank := min(len(index)-1, 1)
		if name == "DisplayBundle" {
			rank = 2 // front ends call it, not people
		}
		add(o, rank)
	}
	if n := namedOf(t); n != nil {
		for _, m := range p.adoptedMethods(n) {
			add(m, 0)
		}
	}
}

// namedOf is the named type that t is or points to, or nil.
func namedOf(t types.Type) *types.Named {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, _ := t.(*types.Named)
	return n
}

// structOf is the struct beneath t or what it points to, or nil.
func structOf(t types.Type) *types.Struct {
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := types.Unalias(t).Underlying().(*types.Struct)
	return s
}

// fieldNames collects the names of fields, those of embedded structs too.
func fieldNames(t types.Type, names map[string]bool, seen map[types.Type]bool, depth int) {
	s := structOf(t)
	if s == nil || seen[t] || depth > 8 {
		return
	}
	seen[t] = true
	for i := range s.NumFields() {
		f := s.Field(i)
		names[f.Name()] = true
		if f.Embedded() {
			fieldNames(f.Type(), names, seen, depth+1)
		}
	}
}

// fields gives the fields of the composite literal that the cursor is in, but for
// those already there. It says whether nothing else can stand there.
func (p *probe) fields(add func(types.Object, int)) (only bool) {
	name := p.parent(0)
	around := p.parent(1)
	kv, key := around.(*ast.KeyValueExpr)
	if key {
		if kv.Key != name {
			return false
		}
		around = p.parent(2)
	}
	l, ok := around.(*ast.CompositeLit)
	if !ok || l.Type == name {
		return false
	}
	tv, ok := p.info.Types[l]
	if !ok || tv.Type == nil {
		return false
	}
	s := structOf(tv.Type)
	if s == nil {
		return false
	}
	given, values := map[string]bool{}, 0
	for _, e := range l.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				given[id.Name] = true
			}
		} else if e != name {
			values++
		}
	}
	if values > 0 && len(given) == 0 {
		return false
	}
	own := false // of a cell's struct, whose values may stand without their fields' names
	for i := range s.NumFields() {
		f := s.Field(i)
		if p.can(f) && !given[f.Name()] {
			own = own || f.Pkg().Path() == cellPath
			add(f, rankLocal)
		}
	}
	return key || len(given) > 0 || !own
}

// can says whether a cell can name o.
func (p *probe) can(o types.Object) bool {
	return o.Exported() || o.Pkg() != nil && o.Pkg().Path() == cellPath
}

// names gives the names that need no qualifier: of the blocks around the cursor,
// the cell, the session, and the packages whose names are visible.
func (p *probe) names(add func(types.Object, int)) {
	cursor := p.parent(0)
	inFunc := false
	if cursor != nil {
		for _, n := range slices.Backward(p.path) {
			var key ast.Node = n
			switch n := n.(type) {
			case *ast.FuncDecl:
				key, inFunc = n.Type, true
			case *ast.FuncLit:
				key = n.Type
			}
			sc := p.info.Scopes[key]
			if sc == nil {
				continue
			}
			for _, name := range sc.Names() {
				if in, o := sc.LookupParent(name, cursor.Pos()); in == sc && o != nil {
					add(o, rankLocal)
				}
			}
		}
	}
	for id, d := range p.own {
		o := p.info.Defs[id]
		if o == nil || o.Parent() != p.pkg.Scope() {
			continue
		}
		if d.stmt && !inFunc && cursor != nil && p.offset(d.node.End()) > p.offset(cursor.Pos()) {
			continue // it comes later
		}
		add(o, rankCell)
	}
	for o, d := range p.seen.decls {
		if d.kind != methodKind && p.imports[d.name] == "" {
			add(o, rankCell)
		}
	}
	for _, q := range p.visible() {
		for _, o := range exported(q) {
			add(o, rankLab)
		}
	}
}
