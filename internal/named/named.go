package named

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// spare is how many methods a type can gain after the first SetMethods.
const spare = 32

// A Type is a type being made. It can be named from the beginning, by other types
// through reflect.PointerTo, SliceOf and FuncOf; what needs its size waits for
// SetLayout, and what needs more for SetUnderlying. Its methods may not be called
// at once.
type Type struct {
	typ, ptr   *abiType
	uncommon   *abiUncommon
	ptrCommon  *abiUncommon
	methods    []abiMethod // room for them
	ptrMethods []abiMethod
	slots      map[string]*slots
	pkgPath    string
	set        bool // whether SetMethods has been called
}

// slots are a method's stubs: code for a pointer, and for a value.
type slots struct {
	typ            reflect.Type
	name           int32
	pointer, value int // value is -1 where there is none
}

// Options say how much room a type takes.
type Options struct {
	Params  int // of a function type: parameters and results
	Methods int // how many it will have at first, its pointer's included
}

// New begins a type of kind k. text is what its String says, such as "main.point";
// named is false for types without names that have methods.
func New(pkgPath, text string, k reflect.Kind, named bool, o Options) *Type {
	room := o.Methods + spare
	t := &Type{slots: map[string]*slots{}, pkgPath: pkgPath}
	t.typ, t.uncommon, t.methods = allocate(k, o.Params, room)
	t.ptr, t.ptrCommon, t.ptrMethods = allocate(reflect.Pointer, 0, room)
	t.typ.kind = uint8(k)
	t.typ.tflag = tflagUncommon
	if named {
		t.typ.tflag |= tflagNamed
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %s %p", pkgPath, text, t.typ)
	t.typ.hash = h.Sum32()
	t.typ.str = nameOffset(text, true)
	t.uncommon.pkgPath = nameOffset(pkgPath, false)

	p := (*abiElem)(unsafe.Pointer(t.ptr))
	p.abiType = *unpack(reflect.TypeFor[*uint64]())
	p.str, p.ptrToThis, p.hash = nameOffset("*"+text, false), 0, t.typ.hash*16777619^'*'
	p.tflag &= tflagLayout
	p.elem = t.typ
	t.ptrCommon.pkgPath = t.uncommon.pkgPath
	t.typ.ptrToThis = offset(unsafe.Pointer(t.ptr))
	return t
}

// allocate makes an empty block.
func allocate(k reflect.Kind, params, methods int) (*abiType, *abiUncommon, []abiMethod) {
	layout := reflect.StructOf([]reflect.StructField{
		{Name: "Header", Type: header(k)},
		{Name: "Uncommon", Type: reflect.TypeFor[abiUncommon]()},
		{Name: "Params", Type: reflect.ArrayOf(params, reflect.TypeFor[unsafe.Pointer]())},
		{Name: "Methods", Type: reflect.ArrayOf(methods, reflect.TypeFor[abiMethod]())},
	})
	p := reflect.New(layout).UnsafePointer()
	u := (*abiUncommon)(unsafe.Add(p, layout.Field(1).Offset))
	u.moff = uint32(layout.Field(3).Offset - layout.Field(1).Offset)
	return (*abiType)(p), u, unsafe.Slice((*abiMethod)(unsafe.Add(p, layout.Field(3).Offset)), methods)
}

// Reflect is the type.
func (t *Type) Reflect() reflect.Type { return pack(t.typ) }

// SetLayout gives t the size, alignment and pointers of shape, and says whether its
// values can be compared.
func (t *Type) SetLayout(shape reflect.Type, comparable bool) {
	if comparable {
		t.typ.equal = func(p, q unsafe.Pointer) bool { return t.typ.equal(p, q) } // that of SetUnderlying
	}
	s := unpack(shape)
	// Map and struct types made of t before SetUnderlying find its pointers here.
	switch shape.Kind() {
	case reflect.Array:
		from, to := (*abiArray)(unsafe.Pointer(s)), (*abiArray)(unsafe.Pointer(t.typ))
		to.elem, to.slice, to.len = from.elem, from.slice, from.len
	case reflect.Struct:
		(*abiStruct)(unsafe.Pointer(t.typ)).fields = (*abiStruct)(unsafe.Pointer(s)).fields
	}
	t.typ.size, t.typ.ptrBytes, t.typ.align, t.typ.fieldAlign, t.typ.gcData = s.size, s.ptrBytes, s.align, s.fieldAlign, s.gcData
	t.typ.tflag = t.typ.tflag&^tflagLayout | s.tflag&tflagLayout
}

// SetUnderlying makes t what u is. u must be of t's kind, and of the size that
// SetLayout gave.
func (t *Type) SetUnderlying(u reflect.Type) {
	old, from := *t.typ, unpack(u)
	switch u.Kind() {
	case reflect.Array:
		*(*abiArray)(unsafe.Pointer(t.typ)) = *(*abiArray)(unsafe.Pointer(from))
	case reflect.Chan:
		*(*abiChan)(unsafe.Pointer(t.typ)) = *(*abiChan)(unsafe.Pointer(from))
	case reflect.Func:
		*(*abiFunc)(unsafe.Pointer(t.typ)) = *(*abiFunc)(unsafe.Pointer(from))
		params := unsafe.Slice((*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(t.uncommon), unsafe.Sizeof(abiUncommon{}))), u.NumIn()+u.NumOut())
		for i := range u.NumIn() {
			params[i] = unsafe.Pointer(unpack(u.In(i)))
		}
		for i := range u.NumOut() {
			params[u.NumIn()+i] = unsafe.Pointer(unpack(u.Out(i)))
		}
	case reflect.Interface:
		*(*abiInterface)(unsafe.Pointer(t.typ)) = *(*abiInterface)(unsafe.Pointer(from))
	case reflect.Map:
		*(*abiMap)(unsafe.Pointer(t.typ)) = *(*abiMap)(unsafe.Pointer(from))
	case reflect.Pointer, reflect.Slice:
		*(*abiElem)(unsafe.Pointer(t.typ)) = *(*abiElem)(unsafe.Pointer(from))
	case reflect.Struct:
		*(*abiStruct)(unsafe.Pointer(t.typ)) = *(*abiStruct)(unsafe.Pointer(from))
	default:
		*t.typ = *from
	}
	t.typ.hash, t.typ.str, t.typ.ptrToThis = old.hash, old.str, old.ptrToThis
	t.typ.tflag = old.tflag&^tflagLayout | from.tflag&tflagLayout
}

// A Method is one of a type's method set, promoted ones included.
type Method struct {
	Name    string
	Type    reflect.Type // of a function without the receiver
	Pointer bool         // whether only the pointer has it

	// Call runs the method. recv points to the receiver, which a method of the
	// value copies.
	Call func(recv reflect.Value, in []reflect.Value) []reflect.Value
}

// SetMethods gives t its methods, and its pointer. It may be called again with
// other functions or more methods, when nothing calls t's methods: then compiled
// code that has asked t for an interface before asks anew.
func (t *Type) SetMethods(ms []Method) error {
	if len(ms) > len(t.methods) {
		return fmt.Errorf("named: want at most %d methods of %s, got %d; declare them with the type", len(t.methods), t.Reflect(), len(ms))
	}
	ms = slices.Clone(ms)
	slices.SortFunc(ms, func(a, b Method) int {
		if x, y := isUpper(a.Name), isUpper(b.Name); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	first := !t.set
	t.set = true
	var own, ptr []abiMethod
	for _, m := range ms {
		s, err := t.bind(m)
		if err != nil {
			return err
		}
		a := abiMethod{name: s.name, typ: offset(unsafe.Pointer(unpack(m.Type)))}
		a.ifn = offset(stub(s.pointer))
		a.tfn = a.ifn
		ptr = append(ptr, a)
		if !m.Pointer {
			a.tfn = offset(stub(s.value))
			if t.typ.tflag&tflagDirectIface != 0 {
				a.ifn = a.tfn
			}
			own = append(own, a)
		}
	}
	write := func(typ *abiType, u *abiUncommon, room, list []abiMethod) {
		if slices.Equal(room[:u.mcount], list) {
			return
		}
		copy(room, list)
		n := 0
		for _, m := range ms {
			if isUpper(m.Name) && (typ == t.ptr || !m.Pointer) {
				n++
			}
		}
		if !first {
			typ.hash += 0x9e3779b9 // what the runtime remembers of t is under its hash
		}
		u.xcount, u.mcount = uint16(n), uint16(len(list))
	}
	write(t.typ, t.uncommon, t.methods, own)
	write(t.ptr, t.ptrCommon, t.ptrMethods, ptr)
	if len(ptr) > 0 {
		t.ptr.tflag |= tflagUncommon
	}
	return nil
}

// bind puts m's code in its stubs.
func (t *Type) bind(m Method) (*slots, error) {
	s := t.slots[m.Name]
	if s == nil || s.typ != m.Type || s.value < 0 && !m.Pointer {
		n := 1
		if !m.Pointer {
			n = 2
		}
		first, err := table.take(n)
		if err != nil {
			return nil, fmt.Errorf("named: method %s of %s: %w", m.Name, t.Reflect(), err)
		}
		s = &slots{typ: m.Type, name: nameOffset(m.Name, isUpper(m.Name)), pointer: first, value: -1}
		if n == 2 {
			s.value = first + 1
		}
		t.slots[m.Name] = s
	}
	self := t.Reflect()
	with := func(recv reflect.Type) reflect.Type {
		in := []reflect.Type{recv}
		for i := range m.Type.NumIn() {
			in = append(in, m.Type.In(i))
		}
		var out []reflect.Type
		for i := range m.Type.NumOut() {
			out = append(out, m.Type.Out(i))
		}
		return FuncOf(in, out, m.Type.IsVariadic())
	}
	table.set(s.pointer, reflect.MakeFunc(with(reflect.TypeFor[unsafe.Pointer]()), func(in []reflect.Value) []reflect.Value {
		return m.Call(reflect.NewAt(self, in[0].UnsafePointer()), in[1:])
	}))
	if s.value >= 0 {
		table.set(s.value, reflect.MakeFunc(with(self), func(in []reflect.Value) []reflect.Value {
			p := reflect.New(self)
			p.Elem().Set(in[0])
			return m.Call(p, in[1:])
		}))
	}
	return s, nil
}

// A stubTable says which of the process's stubs are taken. The stubs are code, of
// which there is one in a process, and so is the table.
type stubTable struct {
	mu   sync.Mutex
	used int
}

var table stubTable

// A StubsError says that all stubs are taken.
type StubsError struct{ Want, Got int }

func (e *StubsError) Error() string {
	return fmt.Sprintf("want %d more stubs for methods, got %d of %d; restart the kernel", e.Want, e.Got, Stubs)
}

func (s *stubTable) take(n int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+n > Stubs {
		return 0, &StubsError{Want: n, Got: Stubs - s.used}
	}
	s.used += n
	return s.used - n, nil
}

func (s *stubTable) set(i int, f reflect.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	closures[i] = closure(f)
}
