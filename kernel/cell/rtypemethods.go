package cell

import (
	"errors"
	"fmt"
	"go/types"
	"reflect"
	"sync/atomic"

	"deltafin/internal/named"
	"deltafin/internal/third_party/yaegi/interp"
)

// A code is what a method does: a function of the interpreter that takes the
// receiver first. It is replaced when the method is declared again.
type code struct {
	name    string
	pointer bool // whether the receiver is one
	run     atomic.Pointer[interp.Func]
	later   func(*code) error // compiles it; nil for those of cells
}

// call runs the method on what recv points to.
func (c *code) call(recv reflect.Value, in []reflect.Value) []reflect.Value {
	f := c.run.Load()
	if f == nil && c.later != nil {
		if err := c.later(c); err != nil {
			panic(err)
		}
		f = c.run.Load()
	}
	if f == nil {
		panic(fmt.Errorf("method %s has not been compiled", c.name))
	}
	if !c.pointer {
		recv = recv.Elem()
	}
	return (*f)(append([]reflect.Value{recv}, in...))
}

// method is the code of the method name of the type n, which has the declaration.
func (l *lowerer) method(n *types.Named, name string, pointer bool) (*code, error) {
	r := l.u.table.types
	if _, err := l.definedOf(n); err != nil {
		return nil, err
	}
	d := r.defined[l.key(n)]
	if d == nil {
		return nil, &unmadeError{l.typeString(n)}
	}
	c := d.methods[name]
	if c == nil || c.pointer != pointer {
		c = &code{name: unmark(d.typ.Reflect().String()) + "." + name, pointer: pointer}
		d.methods[name] = c
	}
	return c, nil
}

// codeOf is the code that compiling the method f of the type n gives.
func (l *lowerer) codeOf(n *types.Named, f *types.Func) (*code, error) {
	_, pointer := types.Unalias(f.Signature().Recv().Type()).(*types.Pointer)
	c, err := l.method(n, f.Name(), pointer)
	if e := l.settle(); err == nil {
		err = e
	}
	return c, err
}

// setMethods gives a filled type the methods of t and its pointer.
func (l *lowerer) setMethods(d *defined, t types.Type) error {
	if types.IsInterface(t) || d.state != filled {
		return nil
	}
	var ms []named.Method
	of := types.NewMethodSet(t)
	set := types.NewMethodSet(types.NewPointer(t))
	for i := range set.Len() {
		s := set.At(i)
		f := s.Obj().(*types.Func)
		if !f.Exported() && f.Pkg() != l.u.pkg && l.u.table.lib.gottenOf(f.Pkg()) == nil {
			continue
		}
		typ, err := l.funcOf(l.concrete(f.Signature()).(*types.Signature))
		if err != nil {
			continue // a type that can't be named can't be asked for either
		}
		call, err := l.promoted(t, s.Index(), f, typ.IsVariadic())
		if err != nil {
			return err
		}
		ms = append(ms, named.Method{Name: f.Name(), Type: typ, Pointer: of.Lookup(f.Pkg(), f.Name()) == nil, Call: call})
	}
	// How calls pass a struct is settled here, by its fields.
	if err := l.fillAll(); err != nil {
		return err
	}
	return d.typ.SetMethods(ms)
}

// promoted is the method f that t has by the path index.
func (l *lowerer) promoted(t types.Type, index []int, f *types.Func, variadic bool) (func(reflect.Value, []reflect.Value) []reflect.Value, error) {
	fields := index[:len(index)-1]
	for _, i := range fields {
		t = types.Unalias(t)
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		t = l.concrete(t.Underlying().(*types.Struct).Field(i).Type())
	}
	// holder follows the path, to the addressable value with the method.
	holder := func(recv reflect.Value) reflect.Value {
		v := recv.Elem()
		for _, i := range fields {
			if v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			v = named.Field(v, i)
		}
		return v
	}
	name := f.Name()
	last := func(m reflect.Value, in []reflect.Value) []reflect.Value {
		if variadic {
			return m.CallSlice(in)
		}
		return m.Call(in)
	}
	if types.IsInterface(t) {
		return func(recv reflect.Value, in []reflect.Value) []reflect.Value {
			return last(interp.InterfaceMethod(holder(recv), name), in)
		}, nil
	}
	base := types.Unalias(t)
	ptr := false
	if p, ok := base.(*types.Pointer); ok {
		base, ptr = types.Unalias(p.Elem()), true
	}
	n, _ := base.(*types.Named)
	if n != nil && l.declares(n, f) {
		_, pointer := types.Unalias(f.Signature().Recv().Type()).(*types.Pointer)
		c, err := l.method(n, name, pointer)
		if err != nil {
			return nil, err
		}
		if c.later == nil && n.TypeArgs().Len() == 0 && l.u.table.lib.gottenOf(f.Pkg()) != nil {
			c.later = l.u.table.later(n, f)
		}
		if len(fields) == 0 {
			return c.call, nil
		}
		return func(recv reflect.Value, in []reflect.Value) []reflect.Value {
			v := holder(recv)
			if !ptr {
				v = v.Addr()
			}
			return c.call(v, in)
		}, nil
	}
	return func(recv reflect.Value, in []reflect.Value) []reflect.Value {
		v := holder(recv)
		if !ptr {
			v = v.Addr()
		}
		return last(v.MethodByName(name), in)
	}, nil
}

// declares says whether cells have the text of f, a method of n.
func (l *lowerer) declares(n *types.Named, f *types.Func) bool {
	if l.u.named[f.Origin()] != nil || n.Obj().Pkg() == l.u.pkg {
		return true
	}
	_, ok := l.bodyOf(f.Origin())
	return ok
}

// refresh gives the types of earlier cells the methods that this one declares.
func (l *lowerer) refresh(changed map[*decl]bool) error {
	r := l.u.table.types
	var errs []error
	for _, d := range r.defined {
		again := d.decl != nil && changed[d.decl]
		for _, e := range d.embeds {
			again = again || changed[e]
		}
		if !again || d.decl == nil {
			continue
		}
		o := l.u.pkg.Scope().Lookup(d.decl.file)
		if o == nil {
			continue
		}
		if n, ok := types.Unalias(o.Type()).(*types.Named); ok && n.TypeParams().Len() == 0 {
			errs = append(errs, l.setMethods(d, n))
		}
	}
	errs = append(errs, l.settle())
	return errors.Join(errs...)
}
