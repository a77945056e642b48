package cell

import (
	"go/types"
	"reflect"
	"testing"

	deltalab "deltafin/kernel/lab"
)

// TestOneIdentity describes lab's exports and checks that every type is the one
// that its name stands for, by whichever field or method it is reached.
func TestOneIdentity(t *testing.T) {
	lib, err := newLibrary(func(p string) bool { return true }, &packages{})
	if err != nil {
		t.Fatal(err)
	}
	exports := deltalab.New(nil).Exports()
	exports["Settings2"] = reflect.ValueOf((*deltalab.Params)(nil)) // a second name
	for range 50 {
		p, reached := reflectPackage(lib, "lab", exports)
		for key, types := range reached {
			for name, v := range types {
				for export, e := range exports {
					if e.Type() == v.Type() {
						t.Fatalf("%s is %s.%s, beyond the exports, too", export, key, name)
					}
				}
			}
		}
		seen := map[types.Type]bool{}
		var walk func(from string, x types.Type)
		walk = func(from string, x types.Type) {
			if seen[x] {
				return
			}
			seen[x] = true
			switch x := x.(type) {
			case *types.Alias:
				walk(from, types.Unalias(x))
			case *types.Named:
				o := x.Obj()
				if o.Pkg() == p && p.Scope().Lookup(o.Name()) != o {
					t.Fatalf("%s reaches a %s that is not the package's", from, o.Name())
				}
				if o.Pkg() == nil || o.Pkg() != p {
					return
				}
				if x.Underlying() == nil {
					t.Fatalf("%s has no underlying type", o.Name())
				}
				walk(o.Name(), x.Underlying())
				for m := range x.Methods() {
					walk(o.Name()+"."+m.Name(), m.Signature())
				}
			case *types.Pointer:
				walk(from, x.Elem())
			case *types.Slice:
				walk(from, x.Elem())
			case *types.Map:
				walk(from, x.Key())
				walk(from, x.Elem())
			case *types.Struct:
				for f := range x.Fields() {
					walk(from+"."+f.Name(), f.Type())
				}
			case *types.Signature:
				for _, tuple := range []*types.Tuple{x.Params(), x.Results()} {
					for v := range tuple.Variables() {
						walk(from, v.Type())
					}
				}
			}
		}
		for _, name := range p.Scope().Names() {
			walk(name, p.Scope().Lookup(name).Type())
		}
		params := p.Scope().Lookup("Params").Type()
		if !types.Identical(params, p.Scope().Lookup("Settings2").Type()) {
			t.Fatal("two names of one type are two types")
		}
	}
}
