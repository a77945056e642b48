package cell

import (
	"crypto/hkdf"
	"crypto/pbkdf2"
	"hash"
	"reflect"
	"runtime"
	_ "time/tzdata" // which cells may import
	"unsafe"
	"weak"
)

// genericSymbols are the compiled parts of packages whose generic functions are
// compiled in cells, in generic/.
func (c *child) genericSymbols() map[string]map[string]reflect.Value {
	return map[string]map[string]reflect.Value{
		"runtime/runtime": {
			"addCleanup": reflect.ValueOf(c.addCleanup),
		},
		"weak/weak": {
			"weaken": reflect.ValueOf(func(p unsafe.Pointer) any {
				if p == nil {
					return nil
				}
				return weak.Make((*byte)(p))
			}),
			"strengthen": reflect.ValueOf(func(p any) unsafe.Pointer {
				if p == nil {
					return nil
				}
				return unsafe.Pointer(p.(weak.Pointer[byte]).Value())
			}),
		},
		"unique/unique":        {},
		"iter/iter":            {},
		"time/tzdata/tzdata":   {},
		"crypto/hkdf/hkdf":     {"extract": reflect.ValueOf(hkdf.Extract[hash.Hash]), "expand": reflect.ValueOf(hkdf.Expand[hash.Hash]), "key": reflect.ValueOf(hkdf.Key[hash.Hash])},
		"crypto/pbkdf2/pbkdf2": {"key": reflect.ValueOf(pbkdf2.Key[hash.Hash])},
	}
}

// addCleanup is runtime.AddCleanup of the object at p. It holds nothing but cleanup and
// arg: a closure of a cell's would hold the variables of the function that makes it, and
// so the object.
func (c *child) addCleanup(p unsafe.Pointer, cleanup, arg any) runtime.Cleanup {
	f := reflect.ValueOf(cleanup)
	in := reflect.New(f.Type().In(0)).Elem()
	if arg != nil {
		in.Set(reflect.ValueOf(arg))
	}
	if in.Kind() == reflect.Pointer && in.UnsafePointer() == p {
		panic("runtime.AddCleanup: ptr is equal to arg, cleanup will never run")
	}
	return runtime.AddCleanup((*byte)(p), func(f func()) { f() }, c.guard(func() { f.Call([]reflect.Value{in}) }))
}
