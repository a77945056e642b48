package cell

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"deltafin/internal/named"
	"deltafin/internal/third_party/yaegi/interp"
)

// typesPath is the package in which the interpreter finds the types that cells
// declare and the struct and interface types that they write. For the interpreter
// they are compiled types, and so they are for everything that it calls.
const typesPath = "types" + mark

// rtypes are the reflect types of a session's cells. A type is made once and stays.
// The table's mutex guards them.
type rtypes struct {
	std func(path, name string) reflect.Type // nil where there is none

	defined map[string]*defined     // by key
	literal map[string]reflect.Type // struct and interface types without names, by key
	local   map[types.Object]int    // numbers of types declared in functions
	symbols []symbol
	names   map[reflect.Type]string // of symbols
}

// A symbol is the name of a type in typesPath.
type symbol struct {
	name string
	typ  reflect.Type
}

func newRTypes(std func(path, name string) reflect.Type) *rtypes {
	return &rtypes{std: std, defined: map[string]*defined{}, literal: map[string]reflect.Type{}, local: map[types.Object]int{}, names: map[reflect.Type]string{}}
}

// A defined type is one with methods, or a name.
type defined struct {
	key     string
	typ     *named.Type
	decl    *decl // of the name; nil for those of functions and those without
	of      types.Type
	state   int              // of its underlying type
	methods map[string]*code // declared for it
	embeds  []*decl          // whose methods may be promoted
}

// States of a defined type.
const (
	placed = iota // has its layout
	filling
	filled
)

// An unmadeError says which type can't be made.
type unmadeError struct{ typ string }

func (e *unmadeError) Error() string { return "values of type " + e.typ }

var basicTypes = map[types.BasicKind]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](), types.Int16: reflect.TypeFor[int16](),
	types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](), types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](),
	types.Uint16: reflect.TypeFor[uint16](), types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](), types.Uintptr: reflect.TypeFor[uintptr](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](), types.Complex64: reflect.TypeFor[complex64](),
	types.Complex128: reflect.TypeFor[complex128](), types.String: reflect.TypeFor[string](), types.UnsafePointer: reflect.TypeFor[unsafe.Pointer](),
	types.UntypedNil: reflect.TypeFor[any](),
}

// rtype is the reflect type of t, with everything that it needs.
func (l *lowerer) rtype(t types.Type) (reflect.Type, error) {
	typ, err := l.reflectOf(t)
	if e := l.settle(); err == nil {
		err = e
	}
	for len(l.wanted) > 0 {
		n := l.wanted[0]
		l.wanted = l.wanted[1:]
		l.instanceOf(n)
	}
	return typ, err
}

// settle fills what has been placed, and gives it its methods.
func (l *lowerer) settle() error {
	errs := []error{l.fillAll()}
	for len(l.bare) > 0 {
		d := l.bare[0]
		l.bare = l.bare[1:]
		errs = append(errs, l.setMethods(d, d.of))
	}
	return errors.Join(append(errs, l.fillAll())...)
}

// fillAll fills what has been placed.
func (l *lowerer) fillAll() error {
	var errs []error
	for len(l.placed) > 0 {
		d := l.placed[0]
		l.placed = l.placed[1:]
		errs = append(errs, l.fill(d))
	}
	return errors.Join(errs...)
}

func (l *lowerer) reflectOf(t types.Type) (reflect.Type, error) {
	t = types.Unalias(l.concrete(t))
	switch t := t.(type) {
	case *types.Basic:
		if r := basicTypes[types.Default(t).(*types.Basic).Kind()]; r != nil {
			return r, nil
		}
	case *types.Named:
		return l.definedOf(t)
	case *types.Pointer:
		e, err := l.reflectOf(t.Elem())
		if err != nil {
			return nil, err
		}
		return reflect.PointerTo(e), nil
	case *types.Slice:
		e, err := l.reflectOf(t.Elem())
		if err != nil {
			return nil, err
		}
		return reflect.SliceOf(e), nil
	case *types.Array:
		e, err := l.whole(t.Elem())
		if err != nil {
			return nil, err
		}
		return reflect.ArrayOf(int(t.Len()), e), nil
	case *types.Map:
		k, err := l.whole(t.Key())
		if err != nil {
			return nil, err
		}
		e, err := l.reflectOf(t.Elem())
		if err != nil {
			return nil, err
		}
		return reflect.MapOf(k, e), nil
	case *types.Chan:
		e, err := l.reflectOf(t.Elem())
		if err != nil {
			return nil, err
		}
		dir := reflect.BothDir
		switch t.Dir() {
		case types.SendOnly:
			dir = reflect.SendDir
		case types.RecvOnly:
			dir = reflect.RecvDir
		}
		return reflect.ChanOf(dir, e), nil
	case *types.Signature:
		return l.funcOf(t)
	case *types.Struct, *types.Interface:
		return l.literalOf(t)
	}
	return nil, &unmadeError{l.typeString(t)}
}

func (l *lowerer) typeString(t types.Type) string {
	return unmark(types.TypeString(t, func(p *types.Package) string { return p.Name() }))
}

func (l *lowerer) funcOf(t *types.Signature) (reflect.Type, error) {
	list := func(tup *types.Tuple) (out []reflect.Type, err error) {
		for i := range tup.Len() {
			r, err := l.reflectOf(tup.At(i).Type())
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	}
	in, err := list(t.Params())
	if err != nil {
		return nil, err
	}
	out, err := list(t.Results())
	if err != nil {
		return nil, err
	}
	return named.FuncOf(in, out, t.Variadic()), nil
}

// whole is the reflect type of t, filled if it can be: for a place that holds t or
// compares it.
func (l *lowerer) whole(t types.Type) (reflect.Type, error) {
	r, err := l.reflectOf(t)
	if err != nil {
		return nil, err
	}
	if n, ok := types.Unalias(l.concrete(t)).(*types.Named); ok {
		if d := l.u.table.types.defined[l.key(n)]; d != nil && d.state == placed {
			if err := l.fill(d); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// definedOf is the reflect type of a type with a name.
func (l *lowerer) definedOf(n *types.Named) (reflect.Type, error) {
	r := l.u.table.types
	o := n.Obj()
	if o.Pkg() == nil {
		return reflect.TypeFor[error](), nil
	}
	if o.Pkg() != l.u.pkg && n.TypeArgs().Len() == 0 {
		if l.u.named[o] == nil && !l.local(o) && l.u.table.lib.gottenOf(o.Pkg()) == nil {
			if t := r.std(o.Pkg().Path(), o.Name()); t != nil {
				return t, nil
			}
			return nil, &unmadeError{l.typeString(n)}
		}
	}
	if o.Pkg().Path() == "iter" {
		return l.reflectOf(n.Underlying())
	}
	key := l.key(n)
	if d := r.defined[key]; d != nil {
		return d.typ.Reflect(), nil
	}
	u := l.concrete(n.Underlying())
	shape, err := l.shape(u)
	if err != nil {
		return nil, err
	}
	name := o.Name()
	if d := l.u.named[o]; d != nil {
		name = d.name
	}
	if n.TypeArgs().Len() > 0 {
		var args []string
		for i := range n.TypeArgs().Len() {
			a, err := l.reflectOf(n.TypeArgs().At(i))
			if err != nil {
				return nil, err
			}
			s := a.String()
			if a.Name() != "" && a.PkgPath() != "" {
				s = a.PkgPath() + "." + a.Name()
			}
			args = append(args, s)
		}
		name += "[" + strings.Join(args, ",") + "]"
	}
	params := 0
	if s, ok := u.(*types.Signature); ok {
		params = s.Params().Len() + s.Results().Len()
	}
	d := &defined{key: key, of: n, decl: l.u.named[o], methods: map[string]*code{}}
	d.typ = named.New(o.Pkg().Path(), unmark(o.Pkg().Name()+"."+name), kindOf(u), true, named.Options{Params: params, Methods: types.NewMethodSet(types.NewPointer(n)).Len()})
	d.typ.SetLayout(shape, types.Comparable(u))
	r.defined[key] = d
	l.placed = append(l.placed, d)
	l.bare = append(l.bare, d)
	if n.TypeArgs().Len() > 0 {
		l.wanted = append(l.wanted, n)
	}
	return d.typ.Reflect(), nil
}

// local says whether o is declared in a function.
func (l *lowerer) local(o types.Object) bool { return o.Parent() != o.Pkg().Scope() }

// literalOf is the reflect type of a struct or an interface type without a name.
func (l *lowerer) literalOf(t types.Type) (reflect.Type, error) {
	r := l.u.table.types
	key := l.key(t)
	if m := r.literal[key]; m != nil {
		return m, nil
	}
	made, err := l.underlying(t)
	if err != nil {
		return nil, err
	}
	if s, ok := t.(*types.Struct); ok {
		if n := types.NewMethodSet(types.NewPointer(s)).Len(); n > 0 {
			d := &defined{key: key, of: s, methods: map[string]*code{}, state: filled}
			d.typ = named.New("main", made.String(), reflect.Struct, false, named.Options{Methods: n})
			d.typ.SetUnderlying(made)
			d.embeds = l.embedded(s)
			made = d.typ.Reflect()
			r.defined[key] = d
			l.bare = append(l.bare, d)
		}
	}
	r.literal[key] = made
	return made, nil
}

// underlying makes the reflect type of t, which has no name.
func (l *lowerer) underlying(t types.Type) (reflect.Type, error) {
	switch t := t.(type) {
	case *types.Struct:
		var fields []reflect.StructField
		plain := true
		for i := range t.NumFields() {
			f := t.Field(i)
			ft, err := l.whole(f.Type())
			if err != nil {
				return nil, err
			}
			x := reflect.StructField{Name: f.Name(), Type: ft, Tag: reflect.StructTag(t.Tag(i)), Anonymous: f.Embedded()}
			if !f.Exported() {
				x.PkgPath = "main" // StructOf wants one for all, and nobody looks
			}
			plain = plain && f.Exported() && !f.Embedded()
			fields = append(fields, x)
		}
		if plain {
			return reflect.StructOf(fields), nil
		}
		return named.StructOf("main", fields), nil
	case *types.Interface:
		var ms []reflect.Method
		of := "main"
		for i := range t.NumMethods() {
			m := t.Method(i)
			ft, err := l.funcOf(m.Signature())
			if err != nil {
				return nil, err
			}
			ms = append(ms, reflect.Method{Name: m.Name(), Type: ft})
			if !m.Exported() {
				of = m.Pkg().Path() // whose types alone can have the method
			}
		}
		return named.InterfaceOf(of, ms), nil
	}
	return l.reflectOf(t)
}

// fill gives a placed type what is beneath it.
func (l *lowerer) fill(d *defined) error {
	if d.state != placed {
		return nil
	}
	d.state = filling
	u := l.concrete(d.of.Underlying())
	r, err := l.underlying(u)
	if err != nil {
		delete(l.u.table.types.defined, d.key)
		return err
	}
	d.typ.SetUnderlying(r)
	d.embeds = l.embedded(u)
	d.state = filled
	return nil
}

// embedded are the declarations whose methods a struct type may have.
func (l *lowerer) embedded(t types.Type) (out []*decl) {
	seen := map[types.Type]bool{}
	var visit func(t types.Type)
	visit = func(t types.Type) {
		s, ok := t.(*types.Struct)
		if !ok {
			return
		}
		for i := range s.NumFields() {
			f := s.Field(i)
			if !f.Embedded() {
				continue
			}
			ft := types.Unalias(f.Type())
			if p, ok := ft.(*types.Pointer); ok {
				ft = types.Unalias(p.Elem())
			}
			if n, ok := ft.(*types.Named); ok && !seen[n] {
				seen[n] = true
				if d := l.u.named[n.Origin().Obj()]; d != nil {
					out = append(out, d)
				}
				visit(l.concrete(n.Underlying()))
			}
		}
	}
	visit(t)
	return out
}

func kindOf(t types.Type) reflect.Kind {
	switch t := t.(type) {
	case *types.Basic:
		return basicTypes[t.Kind()].Kind()
	case *types.Pointer:
		return reflect.Pointer
	case *types.Slice:
		return reflect.Slice
	case *types.Array:
		return reflect.Array
	case *types.Map:
		return reflect.Map
	case *types.Chan:
		return reflect.Chan
	case *types.Signature:
		return reflect.Func
	case *types.Struct:
		return reflect.Struct
	}
	return reflect.Interface
}

// shape is a type with the layout of t, made without what t refers to.
func (l *lowerer) shape(t types.Type) (reflect.Type, error) {
	switch t := types.Unalias(l.concrete(t)).(type) {
	case *types.Pointer, *types.Map, *types.Chan, *types.Signature:
		return reflect.TypeFor[unsafe.Pointer](), nil
	case *types.Slice:
		return reflect.TypeFor[[]byte](), nil
	case *types.Interface:
		return reflect.TypeFor[any](), nil
	case *types.Array:
		e, err := l.shape(t.Elem())
		if err != nil {
			return nil, err
		}
		return reflect.ArrayOf(int(t.Len()), e), nil
	case *types.Struct:
		var fields []reflect.StructField
		for i := range t.NumFields() {
			f, err := l.shape(t.Field(i).Type())
			if err != nil {
				return nil, err
			}
			fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: f})
		}
		return reflect.StructOf(fields), nil
	case *types.Named:
		if t.Obj().Pkg() != nil && l.u.named[t.Origin().Obj()] == nil && t.TypeArgs().Len() == 0 && !l.local(t.Obj()) && l.u.table.lib.gottenOf(t.Obj().Pkg()) == nil {
			return l.definedOf(t)
		}
		return l.shape(t.Underlying())
	default:
		return l.reflectOf(t)
	}
}

// symbol writes the reflect type of t as a name that the interpreter knows.
func (l *lowerer) symbol(t types.Type) ast.Expr {
	typ, err := l.rtype(t)
	if err != nil {
		l.errs = append(l.errs, err)
		return ast.NewIdent("any")
	}
	r := l.u.table.types
	name := r.names[typ]
	if name == "" {
		name = "T" + mark + strconv.Itoa(len(r.symbols))
		if n := typ.Name(); token.IsIdentifier(n) {
			name = "T" + n + mark + strconv.Itoa(len(r.symbols))
		}
		r.names[typ] = name
		r.symbols = append(r.symbols, symbol{name, typ})
	}
	l.paths[typesPath] = true
	return &ast.SelectorExpr{X: ast.NewIdent(importAlias(typesPath)), Sel: ast.NewIdent(name)}
}

// since gives the symbols from the n-th on, as the interpreter takes them.
func (r *rtypes) since(n int) (interp.Exports, int) {
	m := map[string]reflect.Value{}
	for _, s := range r.symbols[n:] {
		m[s.name] = reflect.Zero(reflect.PointerTo(s.typ))
	}
	return interp.Exports{path.Join(typesPath, typesPath): m}, len(r.symbols)
}
