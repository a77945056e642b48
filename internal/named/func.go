package named

import (
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

// funcs are the results of FuncOf by their parameters.
var funcs sync.Map

// FuncOf is reflect.FuncOf, with one result for one list of types. reflect's own goes
// by hashes, and that of a type changes when it gains methods.
func FuncOf(in, out []reflect.Type, variadic bool) reflect.Type {
	var key strings.Builder
	for _, list := range [][]reflect.Type{in, out} {
		for _, t := range list {
			p := uintptr(unsafe.Pointer(unpack(t)))
			for range unsafe.Sizeof(p) {
				key.WriteByte(byte(p))
				p >>= 8
			}
		}
		key.WriteByte('|')
	}
	if variadic {
		key.WriteByte('.')
	}
	k := key.String()
	if t, ok := funcs.Load(k); ok {
		return t.(reflect.Type)
	}
	t, _ := funcs.LoadOrStore(k, reflect.FuncOf(in, out, variadic))
	return t.(reflect.Type)
}
