package named

import (
	"reflect"
	"unsafe"
)

// The mark of values that package reflect lets nobody change or call, being of
// unexported fields and methods.
const flagRO = 1<<5 | 1<<6

type abiValue struct {
	typ, ptr unsafe.Pointer
	flag     uintptr
}

// Open lifts from v the mark of what came from an unexported field: the code of the
// type's own package may do with it what it likes.
func Open(v reflect.Value) reflect.Value {
	(*abiValue)(unsafe.Pointer(&v)).flag &^= flagRO
	return v
}

// Field is v.Field(i), open.
func Field(v reflect.Value, i int) reflect.Value { return Open(v.Field(i)) }

// FieldByIndex is v.FieldByIndex(index), open.
func FieldByIndex(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return Open(v.Field(index[0]))
	}
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		v = Open(v.Field(x))
	}
	return v
}
