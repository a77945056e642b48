package cell

import (
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// A describer makes go/types descriptions of compiled values, for what cells see
// of the child's own program.
type describer struct {
	lib   *library
	lab   *types.Package
	named map[reflect.Type]*types.Named
	pkgs  map[string]*types.Package
	// reached are named types of packages that are neither the standard library's
	// nor exported: the interpreter must know them, though no cell can name them.
	reached map[string]map[string]reflect.Value
}

// reflectPackage describes exports as the package name, and gives the types that
// it reaches beyond.
func reflectPackage(lib *library, name string, exports map[string]reflect.Value) (*types.Package, map[string]map[string]reflect.Value) {
	d := &describer{lib: lib, lab: types.NewPackage(name, name), named: map[reflect.Type]*types.Named{}, pkgs: map[string]*types.Package{}, reached: map[string]map[string]reflect.Value{}}
	names := slices.Sorted(maps.Keys(exports))
	// First the names of all types, since each may reach any other through a field
	// or a method, then what is beneath them, then what they are the types of.
	var own []reflect.Type
	for _, n := range names {
		if v := exports[n]; isTypeExport(v) {
			t := v.Type().Elem()
			if t.Name() != "" && t.PkgPath() != "" && !d.standard(t) && d.named[t] == nil {
				d.declare(t, d.lab, n)
				own = append(own, t)
			}
		}
	}
	for _, t := range own {
		d.fill(t)
	}
	for _, n := range names {
		v := exports[n]
		var o types.Object
		switch {
		case isTypeExport(v):
			t := v.Type().Elem()
			if d.lab.Scope().Lookup(n) != nil {
				continue
			}
			o = types.NewTypeName(token.NoPos, d.lab, n, nil)
			types.NewAlias(o.(*types.TypeName), d.typ(t))
		case v.Kind() == reflect.Func && !v.CanAddr():
			if s, ok := d.typ(v.Type()).(*types.Signature); ok {
				o = types.NewFunc(token.NoPos, d.lab, n, s)
			}
		case !v.CanAddr() && constantOf(v) != nil:
			o = types.NewConst(token.NoPos, d.lab, n, d.typ(v.Type()), constantOf(v))
		default:
			o = types.NewVar(token.NoPos, d.lab, n, d.typ(v.Type()))
		}
		if o != nil {
			d.lab.Scope().Insert(o)
		}
	}
	d.lab.MarkComplete()
	lib.extra[name] = d.lab
	return d.lab, d.reached
}

func isTypeExport(v reflect.Value) bool {
	return v.IsValid() && v.Kind() == reflect.Pointer && v.IsNil() && !v.CanAddr()
}

func constantOf(v reflect.Value) constant.Value {
	switch v.Kind() {
	case reflect.Bool:
		return constant.MakeBool(v.Bool())
	case reflect.String:
		return constant.MakeString(v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return constant.MakeInt64(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return constant.MakeUint64(v.Uint())
	case reflect.Float32, reflect.Float64:
		return constant.MakeFloat64(v.Float())
	}
	return nil
}

// standard says whether t is a type that the standard library exports.
func (d *describer) standard(t reflect.Type) bool {
	return d.lib.zip[t.PkgPath()] != nil && token.IsExported(t.Name())
}

// declare makes the name of the type t, which fill completes.
func (d *describer) declare(t reflect.Type, p *types.Package, name string) {
	o := types.NewTypeName(token.NoPos, p, name, nil)
	d.named[t] = types.NewNamed(o, nil, nil)
	p.Scope().Insert(o)
}

// fill gives the declared type t what is beneath it, and its methods.
func (d *describer) fill(t reflect.Type) {
	n := d.named[t]
	p := n.Obj().Pkg()
	n.SetUnderlying(d.underlying(t))
	if t.Kind() == reflect.Interface {
		return
	}
	pt := reflect.PointerTo(t)
	for i := range pt.NumMethod() {
		m := pt.Method(i)
		s, ok := d.signature(m.Type, 1).(*types.Signature)
		if !ok {
			continue
		}
		var recv types.Type = n
		if _, value := t.MethodByName(m.Name); !value {
			recv = types.NewPointer(n)
		}
		r := types.NewVar(token.NoPos, p, "", recv)
		n.AddMethod(types.NewFunc(token.NoPos, p, m.Name, types.NewSignatureType(r, nil, nil, s.Params(), s.Results(), s.Variadic())))
	}
}

func (d *describer) typ(t reflect.Type) types.Type {
	if x := d.named[t]; x != nil {
		return x
	}
	if t.Name() == "" {
		return d.underlying(t)
	}
	if t.PkgPath() == "" {
		if o := types.Universe.Lookup(t.Name()); o != nil {
			return o.Type()
		}
		return types.Typ[types.UnsafePointer]
	}
	if d.standard(t) {
		d.lib.mu.Lock()
		p, err := d.lib.load(t.PkgPath())
		d.lib.mu.Unlock()
		if err == nil {
			if o := p.Scope().Lookup(t.Name()); o != nil {
				return o.Type()
			}
		}
	}
	name := t.Name()
	if i := strings.IndexByte(name, '['); i >= 0 {
		name = name[:i] + mark
	}
	p := d.pkgs[t.PkgPath()]
	if p == nil {
		p = types.NewPackage(t.PkgPath(), path.Base(t.PkgPath()))
		p.MarkComplete()
		d.pkgs[t.PkgPath()] = p
		d.lib.extra[t.PkgPath()] = p // for variables of such types
	}
	key := t.PkgPath() + "/" + path.Base(t.PkgPath())
	if d.reached[key] == nil {
		d.reached[key] = map[string]reflect.Value{}
	}
	d.reached[key][name] = reflect.Zero(reflect.PointerTo(t))
	d.declare(t, p, name)
	d.fill(t)
	return d.named[t]
}

// underlying describes t without its name.
func (d *describer) underlying(t reflect.Type) types.Type {
	switch t.Kind() {
	case reflect.Pointer:
		return types.NewPointer(d.typ(t.Elem()))
	case reflect.Slice:
		return types.NewSlice(d.typ(t.Elem()))
	case reflect.Array:
		return types.NewArray(d.typ(t.Elem()), int64(t.Len()))
	case reflect.Map:
		return types.NewMap(d.typ(t.Key()), d.typ(t.Elem()))
	case reflect.Chan:
		dir := types.SendRecv
		switch t.ChanDir() {
		case reflect.SendDir:
			dir = types.SendOnly
		case reflect.RecvDir:
			dir = types.RecvOnly
		}
		return types.NewChan(dir, d.typ(t.Elem()))
	case reflect.Func:
		return d.signature(t, 0)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return types.Universe.Lookup("any").Type().Underlying()
		}
		var ms []*types.Func
		for i := range t.NumMethod() {
			m := t.Method(i)
			if s, ok := d.signature(m.Type, 0).(*types.Signature); ok {
				ms = append(ms, types.NewFunc(token.NoPos, d.lab, m.Name, s))
			}
		}
		return types.NewInterfaceType(ms, nil).Complete()
	case reflect.Struct:
		var fs []*types.Var
		var tags []string
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				// As comparable as it is, and no more is known of it.
				ft := types.Type(types.Typ[types.Int])
				if !f.Type.Comparable() {
					ft = types.NewSignatureType(nil, nil, nil, nil, nil, false)
				}
				fs = append(fs, types.NewField(token.NoPos, types.NewPackage(f.PkgPath, path.Base(f.PkgPath)), f.Name, ft, false))
			} else {
				fs = append(fs, types.NewField(token.NoPos, d.lab, f.Name, d.typ(f.Type), f.Anonymous))
			}
			tags = append(tags, string(f.Tag))
		}
		return types.NewStruct(fs, tags)
	case reflect.UnsafePointer:
		return types.Typ[types.UnsafePointer]
	}
	return types.Universe.Lookup(t.Kind().String()).Type()
}

// signature describes a function type without its first skip parameters.
func (d *describer) signature(t reflect.Type, skip int) types.Type {
	var in, out []*types.Var
	for i := skip; i < t.NumIn(); i++ {
		in = append(in, types.NewParam(token.NoPos, d.lab, "", d.typ(t.In(i))))
	}
	for i := range t.NumOut() {
		out = append(out, types.NewParam(token.NoPos, d.lab, "", d.typ(t.Out(i))))
	}
	return types.NewSignatureType(nil, nil, nil, types.NewTuple(in...), types.NewTuple(out...), t.IsVariadic())
}
