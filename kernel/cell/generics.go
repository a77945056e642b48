package cell

import (
	"embed"
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// The generic functions of the standard library as cells run them. stdapi.zip has
// their signatures; without bodies they could not be compiled for their types.
//
//go:embed generic/*.txt
var genericFiles embed.FS

// genericSource is the text of a package's generic functions, "" where it has none.
func genericSource(path string) string {
	b, err := genericFiles.ReadFile("generic/" + path[strings.LastIndexByte(path, '/')+1:] + ".go.txt")
	if err != nil || strings.Contains(path, "/") && path != "sync/atomic" && path != "math/rand/v2" && path != "crypto/hkdf" && path != "crypto/pbkdf2" {
		return ""
	}
	return string(b)
}

// A body is a function that can be compiled for any types: its tree and what the
// checker found out about it.
type body struct {
	fn   *ast.FuncDecl
	info *types.Info
	of   *gottenPackage // nil for those of cells and the standard library
}

// bodyOf finds the generic function or method f.
func (l *lowerer) bodyOf(f *types.Func) (body, bool) {
	if b, ok := l.u.bodies[f]; ok {
		return body{fn: b, info: l.u.info}, true
	}
	lib := l.u.table.lib
	lib.mu.Lock()
	defer lib.mu.Unlock()
	b, ok := lib.bodies[f]
	return b, ok
}

// instance gives the name of the generic function f compiled for args, and
// compiles it when it is the first to ask.
func (l *lowerer) instance(f *types.Func, args []types.Type) (string, bool) {
	b, ok := l.bodyOf(f)
	if !ok {
		return "", false
	}
	concrete := make([]types.Type, len(args))
	for i, a := range args {
		concrete[i] = l.concrete(a)
	}
	d := l.obtain(f, f.Name(), concrete, func(d *decl) {
		tps := f.Signature().TypeParams()
		subst := map[*types.TypeParam]types.Type{}
		for i := range tps.Len() {
			subst[tps.At(i)] = concrete[i]
		}
		compile := func() {
			l.within(d, b.info, subst, func() { d.lowered = l.functionDecl(b.fn, f, d.run) })
		}
		if b.of != nil {
			l.enqueue(job{d: d, of: b.of, fn: b.fn, subst: subst, run: compile})
			return
		}
		compile()
	})
	return d.run, true
}

// instanceOf is the declaration of a generic type for the arguments of n, with
// those of its methods.
func (l *lowerer) instanceOf(n *types.Named) *decl {
	origin := n.Origin()
	args := make([]types.Type, n.TypeArgs().Len())
	for i := range args {
		args[i] = l.concrete(n.TypeArgs().At(i))
	}
	t, err := types.Instantiate(nil, origin, args, false)
	if err != nil {
		return nil
	}
	inst := t.(*types.Named)
	d := l.obtain(origin.Obj(), origin.Obj().Name(), args, func(d *decl) { d.methods = map[string]*decl{} })
	l.compileMethods(d, inst, args)
	return d
}

// compileMethods compiles the methods of the instance d that haven't been, or that
// have been declared again since.
func (l *lowerer) compileMethods(d *decl, inst *types.Named, args []types.Type) {
	origin := inst.Origin()
	var compile []func()
	gained := false
	for i := range origin.NumMethods() {
		m := origin.Method(i)
		of := 0
		if g := l.u.named[m]; g != nil {
			of = g.id
		}
		old := d.methods[m.Name()]
		if old != nil && old.of == of {
			continue
		}
		b, ok := l.bodyOf(m)
		if !ok {
			continue
		}
		md := &decl{name: m.Name(), kind: methodKind, recv: d, of: of, uses: map[*decl]bool{d: true}, generic: true, run: d.name + mark + m.Name() + mark + strconv.Itoa(l.u.table.next())}
		l.made = append(l.made, md)
		d.uses[md] = true
		d.methods[m.Name()] = md
		l.undos = append(l.undos, func() {
			if delete(d.methods, m.Name()); old != nil {
				d.methods[m.Name()] = old
			}
		})
		gained = gained || old == nil
		subst := map[*types.TypeParam]types.Type{}
		rps := m.Signature().RecvTypeParams()
		for j := range rps.Len() {
			subst[rps.At(j)] = args[j]
		}
		lower := func() {
			l.within(md, b.info, subst, func() {
				var err error
				if md.code, err = l.codeOf(inst, m); err != nil {
					l.errs = append(l.errs, err)
				}
				var recv types.Type = inst
				if _, ok := m.Signature().Recv().Type().(*types.Pointer); ok {
					recv = types.NewPointer(inst)
				}
				md.lowered = l.methodDecl(b.fn, recv, m.Signature(), md.run)
			})
		}
		if b.of != nil {
			l.enqueue(job{d: md, of: b.of, fn: b.fn, subst: subst, run: lower})
			continue
		}
		compile = append(compile, lower)
	}
	for _, f := range compile {
		f()
	}
	if t := l.u.table.types.defined[l.key(inst)]; gained && t != nil && t.state == filled {
		if err := errors.Join(l.setMethods(t, inst), l.settle()); err != nil {
			l.errs = append(l.errs, err)
		}
	}
}

// renew compiles the changed methods of generic types for the instances of which
// there are variables.
func (l *lowerer) renew(changed map[*decl]bool) {
	seen := map[types.Type]bool{}
	var visit func(t types.Type)
	visit = func(t types.Type) {
		t = types.Unalias(t)
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Named:
			if d := l.u.named[t.Origin().Obj()]; d != nil && changed[d] && t.TypeArgs().Len() > 0 {
				l.instanceOf(t)
			}
			for i := range t.TypeArgs().Len() {
				visit(t.TypeArgs().At(i))
			}
			if t.Obj().Pkg() == l.u.pkg {
				visit(t.Underlying())
			}
		case *types.Map:
			visit(t.Key())
			visit(t.Elem())
		case interface{ Elem() types.Type }:
			visit(t.Elem())
		case *types.Struct:
			for i := range t.NumFields() {
				visit(t.Field(i).Type())
			}
		}
	}
	scope := l.u.pkg.Scope()
	for _, name := range scope.Names() {
		if v, ok := scope.Lookup(name).(*types.Var); ok {
			visit(v.Type())
		}
	}
}

// obtain finds or makes the declaration of one instance.
func (l *lowerer) obtain(o types.Object, name string, args []types.Type, compile func(*decl)) *decl {
	var key strings.Builder
	if d := l.u.named[o]; d != nil {
		key.WriteString(strconv.Itoa(d.id))
	} else {
		key.WriteString(o.Pkg().Path() + "." + o.Name())
	}
	for _, a := range args {
		key.WriteString("," + l.key(a))
	}
	kind := funcKind
	if _, ok := o.(*types.TypeName); ok {
		kind = typeKind
	}
	return l.obtainKey(key.String(), name, kind, compile)
}

// obtainKey finds or makes the declaration with a key.
func (l *lowerer) obtainKey(key, name string, kind declKind, compile func(*decl)) *decl {
	t := l.u.table
	d := t.instances[key]
	if d == nil {
		d = l.instances[key]
	}
	if d == nil {
		d = &decl{name: name, kind: kind, uses: map[*decl]bool{}, generic: true, run: name + mark + strconv.Itoa(t.next())}
		l.instances[key] = d
		l.made = append(l.made, d)
		compile(d)
	}
	l.use(d)
	return d
}

// within lowers with another function's facts.
func (l *lowerer) within(d *decl, info *types.Info, subst map[*types.TypeParam]types.Type, f func()) {
	cur, oinfo, osubst := l.cur, l.info, l.subst
	l.cur, l.info, l.subst = d, info, subst
	d.needs = l.paths
	f()
	l.cur, l.info, l.subst = cur, oinfo, osubst
}

// use notes that what is being lowered names d.
func (l *lowerer) use(d *decl) {
	if l.cur != nil {
		if l.cur != d {
			l.cur.uses[d] = true
		}
		return
	}
	l.u.uses[d] = true
}

// concrete puts the current types in the place of type parameters.
func (l *lowerer) concrete(t types.Type) types.Type {
	if len(l.subst) == 0 || t == nil {
		return t
	}
	tuple := func(tup *types.Tuple) *types.Tuple {
		vs := make([]*types.Var, tup.Len())
		for i := range vs {
			vs[i] = types.NewParam(token.NoPos, tup.At(i).Pkg(), tup.At(i).Name(), l.concrete(tup.At(i).Type()))
		}
		return types.NewTuple(vs...)
	}
	switch t := t.(type) {
	case *types.TypeParam:
		if c := l.subst[t]; c != nil {
			return c
		}
	case *types.Alias:
		return l.concrete(types.Unalias(t))
	case *types.Named:
		if t.TypeArgs().Len() == 0 {
			return l.localOf(t)
		}
		args := make([]types.Type, t.TypeArgs().Len())
		for i := range args {
			args[i] = l.concrete(t.TypeArgs().At(i))
		}
		if n, err := types.Instantiate(nil, t.Origin(), args, false); err == nil {
			return n
		}
	case *types.Pointer:
		return types.NewPointer(l.concrete(t.Elem()))
	case *types.Slice:
		return types.NewSlice(l.concrete(t.Elem()))
	case *types.Array:
		return types.NewArray(l.concrete(t.Elem()), t.Len())
	case *types.Map:
		return types.NewMap(l.concrete(t.Key()), l.concrete(t.Elem()))
	case *types.Chan:
		return types.NewChan(t.Dir(), l.concrete(t.Elem()))
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, tuple(t.Params()), tuple(t.Results()), t.Variadic())
	case *types.Tuple:
		return tuple(t)
	case *types.Struct:
		fs := make([]*types.Var, t.NumFields())
		tags := make([]string, t.NumFields())
		for i := range fs {
			f := t.Field(i)
			fs[i], tags[i] = types.NewField(f.Pos(), f.Pkg(), f.Name(), l.concrete(f.Type()), f.Embedded()), t.Tag(i)
		}
		return types.NewStruct(fs, tags)
	case *types.Interface:
		var ms []*types.Func
		for i := range t.NumExplicitMethods() {
			m := t.ExplicitMethod(i)
			ms = append(ms, types.NewFunc(m.Pos(), m.Pkg(), m.Name(), l.concrete(m.Signature()).(*types.Signature)))
		}
		var es []types.Type
		for i := range t.NumEmbeddeds() {
			es = append(es, l.concrete(t.EmbeddedType(i)))
		}
		return types.NewInterfaceType(ms, es).Complete()
	}
	return t
}

// localOf is the type t of a generic function for the current types, where t is
// declared in it and names its parameters.
func (l *lowerer) localOf(t *types.Named) types.Type {
	o := t.Obj()
	if o.Pkg() == nil || !l.local(o) || l.cur == nil || !l.mentions(t.Underlying(), map[types.Type]bool{t: true}) {
		return t
	}
	key := localKey{o, l.cur.run}
	n := l.locals[key]
	if n == nil {
		n = types.NewNamed(types.NewTypeName(o.Pos(), o.Pkg(), o.Name(), nil), nil, nil)
		l.locals[key] = n
		n.SetUnderlying(l.concrete(t.Underlying()))
	}
	return n
}

// A localKey is a type declared in a function, and an instance of that.
type localKey struct {
	o   types.Object
	run string
}

// mentions says whether t names a parameter that the current types stand for.
func (l *lowerer) mentions(t types.Type, seen map[types.Type]bool) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return l.subst[t] != nil
	case *types.Named:
		for i := range t.TypeArgs().Len() {
			if l.mentions(t.TypeArgs().At(i), seen) {
				return true
			}
		}
		if seen[t] || t.Obj().Pkg() == nil || !l.local(t.Obj()) {
			return false
		}
		seen[t] = true
		return l.mentions(t.Underlying(), seen)
	case *types.Map:
		return l.mentions(t.Key(), seen) || l.mentions(t.Elem(), seen)
	case interface{ Elem() types.Type }:
		return l.mentions(t.Elem(), seen)
	case *types.Signature:
		return l.mentions(t.Params(), seen) || l.mentions(t.Results(), seen)
	case *types.Tuple:
		for i := range t.Len() {
			if l.mentions(t.At(i).Type(), seen) {
				return true
			}
		}
	case *types.Struct:
		for i := range t.NumFields() {
			if l.mentions(t.Field(i).Type(), seen) {
				return true
			}
		}
	case *types.Interface:
		for i := range t.NumMethods() {
			if l.mentions(t.Method(i).Signature(), seen) {
				return true
			}
		}
	}
	return false
}

// nameOf is the name in a name, a selector, or one of these for some types; nil for
// other expressions.
func nameOf(e ast.Expr) *ast.Ident {
	switch x := e.(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.IndexListExpr:
		e = x.X
	}
	switch x := e.(type) {
	case *ast.Ident:
		return x
	case *ast.SelectorExpr:
		return x.Sel
	}
	return nil
}

// generic gives what a use of a generic function or type becomes, or nil.
func (l *lowerer) generic(e ast.Expr) ast.Expr {
	id := nameOf(e)
	if id == nil {
		return nil
	}
	inst, ok := l.info.Instances[id]
	if !ok {
		return nil
	}
	args := make([]types.Type, inst.TypeArgs.Len())
	for i := range args {
		args[i] = inst.TypeArgs.At(i)
	}
	switch o := l.info.Uses[id].(type) {
	case *types.Func:
		if x := l.compiled(o.Origin(), args, e.Pos()); x != nil {
			return x
		}
		if name, ok := l.instance(o.Origin(), args); ok {
			return l.funcValue(e, &ast.Ident{Name: name, NamePos: e.Pos()}, inst.Type)
		}
	case *types.TypeName:
		return setPositions(l.typeOf(inst.Type), e.Pos())
	}
	return nil
}
