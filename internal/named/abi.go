package named

import (
	"reflect"
	"unsafe"
)

// The layouts of types, as internal/abi has them.

type abiType struct {
	size, ptrBytes uintptr
	hash           uint32
	tflag          uint8
	align          uint8
	fieldAlign     uint8
	kind           uint8
	equal          func(p, q unsafe.Pointer) bool
	gcData         *byte
	str            int32
	ptrToThis      int32
}

const (
	tflagUncommon       = 1 << 0
	tflagExtraStar      = 1 << 1
	tflagNamed          = 1 << 2
	tflagRegularMemory  = 1 << 3
	tflagGCMaskOnDemand = 1 << 4
	tflagDirectIface    = 1 << 5
	tflagLayout         = tflagRegularMemory | tflagGCMaskOnDemand | tflagDirectIface
)

type abiArray struct {
	abiType
	elem, slice *abiType
	len         uintptr
}

type abiChan struct {
	abiType
	elem *abiType
	dir  int
}

type abiFunc struct {
	abiType
	in, out uint16
}

type abiInterface struct {
	abiType
	pkgPath *byte
	methods []abiImethod
}

type abiImethod struct{ name, typ int32 }

type abiMap struct {
	abiType
	key, elem, group             *abiType
	hasher                       func(unsafe.Pointer, uintptr) uintptr
	groupSize, slotSize, elemOff uintptr
	flags                        uint32
}

type abiElem struct { // of pointers and slices
	abiType
	elem *abiType
}

type abiStruct struct {
	abiType
	pkgPath *byte
	fields  []abiField
}

type abiField struct {
	name   *byte
	typ    *abiType
	offset uintptr
}

type abiUncommon struct {
	pkgPath        int32
	mcount, xcount uint16
	moff           uint32
	_              uint32
}

type abiMethod struct{ name, typ, ifn, tfn int32 }

// header gives the layout of a type of this kind without its uncommon part.
func header(k reflect.Kind) reflect.Type {
	switch k {
	case reflect.Array:
		return reflect.TypeFor[abiArray]()
	case reflect.Chan:
		return reflect.TypeFor[abiChan]()
	case reflect.Func:
		return reflect.TypeFor[abiFunc]()
	case reflect.Interface:
		return reflect.TypeFor[abiInterface]()
	case reflect.Map:
		return reflect.TypeFor[abiMap]()
	case reflect.Pointer, reflect.Slice:
		return reflect.TypeFor[abiElem]()
	case reflect.Struct:
		return reflect.TypeFor[abiStruct]()
	}
	return reflect.TypeFor[abiType]()
}

// unpack is t's block.
func unpack(t reflect.Type) *abiType {
	return (*abiType)((*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1])
}

// pack is the type whose block t is.
func pack(t *abiType) reflect.Type {
	var e any
	(*[2]unsafe.Pointer)(unsafe.Pointer(&e))[0] = unsafe.Pointer(t)
	return reflect.TypeOf(e)
}

// closure is the function that f holds, as the code of a call finds it in the
// context register.
func closure(f reflect.Value) unsafe.Pointer {
	i := f.Interface()
	return (*[2]unsafe.Pointer)(unsafe.Pointer(&i))[1]
}

// encode writes a name as types have it.
func encode(name, tag string, exported, embedded bool) *byte {
	var bits byte
	if exported {
		bits |= 1 << 0
	}
	if tag != "" {
		bits |= 1 << 1
	}
	if embedded {
		bits |= 1 << 3
	}
	b := append([]byte{bits}, varint(len(name))...)
	b = append(b, name...)
	if tag != "" {
		b = append(append(b, varint(len(tag))...), tag...)
	}
	return &b[0]
}

func varint(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

//go:linkname addReflectOff reflect.addReflectOff
func addReflectOff(p unsafe.Pointer) int32

// offset makes p known to the runtime and keeps it alive. The first offset that the
// runtime gives means "no such type", and so it is given away.
func offset(p unsafe.Pointer) int32 {
	if o := addReflectOff(p); o != -1 {
		return o
	}
	return addReflectOff(unsafe.Pointer(&struct{ p unsafe.Pointer }{p}))
}

func nameOffset(name string, exported bool) int32 {
	return offset(unsafe.Pointer(encode(name, "", exported, false)))
}
