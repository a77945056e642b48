package named

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

func isUpper(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(r)
}

// StructOf is reflect.StructOf for fields of any names and embedded ones of any
// types. It gives no methods; a Type whose underlying type it is has them set.
// Each call gives a new type.
func StructOf(pkgPath string, fields []reflect.StructField) reflect.Type {
	fields = slices.Clone(fields)
	base := make([]reflect.StructField, len(fields))
	var text strings.Builder
	text.WriteString("struct {")
	for i, f := range fields {
		base[i] = reflect.StructField{Name: "F" + strconv.Itoa(i), Type: f.Type}
		if f.Name == "_" { // not compared
			base[i].Name, base[i].PkgPath = "_", pkgPath
		}
		if i > 0 {
			text.WriteByte(';')
		}
		if !f.Anonymous {
			text.WriteString(" " + f.Name)
		}
		text.WriteString(" " + f.Type.String())
		if f.Tag != "" {
			text.WriteString(" " + strconv.Quote(string(f.Tag)))
		}
	}
	if len(fields) > 0 {
		text.WriteByte(' ')
	}
	text.WriteByte('}')
	from := (*abiStruct)(unsafe.Pointer(unpack(reflect.StructOf(base))))
	t := &abiStruct{}
	*t = *from
	t.tflag &= tflagLayout
	t.str, t.ptrToThis = nameOffset(text.String(), false), 0
	t.pkgPath = encode(pkgPath, "", false, false)
	t.fields = slices.Clone(from.fields)
	for i, f := range fields {
		t.fields[i].name = encode(f.Name, string(f.Tag), isUpper(f.Name), f.Anonymous)
		t.hash = t.hash*16777619 ^ uint32(len(f.Name))
	}
	if t.equal != nil && slices.ContainsFunc(fields, func(f reflect.StructField) bool { return f.Name == "_" }) {
		t.equal = func(p, q unsafe.Pointer) bool {
			for i, f := range t.fields {
				if fields[i].Name != "_" && !f.typ.equal(unsafe.Add(p, f.offset), unsafe.Add(q, f.offset)) {
					return false
				}
			}
			return true
		}
	}
	offset(unsafe.Pointer(t)) // for ever
	return pack(&t.abiType)
}

// InterfaceOf is the interface type with these methods, each of a function type.
// Those with lower-case names belong to pkgPath, and can be called through reflect
// like the others. Each call gives a new type.
func InterfaceOf(pkgPath string, methods []reflect.Method) reflect.Type {
	if len(methods) == 0 {
		return reflect.TypeFor[any]()
	}
	methods = slices.Clone(methods)
	slices.SortFunc(methods, func(a, b reflect.Method) int {
		if x, y := isUpper(a.Name), isUpper(b.Name); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	var text strings.Builder
	text.WriteString("interface {")
	t := &abiInterface{}
	t.abiType = *unpack(reflect.TypeFor[error]())
	t.tflag &= tflagLayout
	t.ptrToThis = 0
	t.pkgPath = encode(pkgPath, "", false, false)
	for i, m := range methods {
		if i > 0 {
			text.WriteByte(';')
		}
		fmt.Fprintf(&text, " %s%s", m.Name, strings.TrimPrefix(m.Type.String(), "func"))
		t.methods = append(t.methods, abiImethod{name: nameOffset(m.Name, true), typ: offset(unsafe.Pointer(unpack(m.Type)))})
		t.hash = t.hash*16777619 ^ unpack(m.Type).hash
	}
	text.WriteString(" }")
	t.str = nameOffset(text.String(), false)
	offset(unsafe.Pointer(t))
	return pack(&t.abiType)
}
