package named

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"text/template"
	"unsafe"
)

// fn is the type of a method without its receiver.
func fn[F any]() reflect.Type { return reflect.TypeFor[F]() }

func define(t *testing.T, name string, u reflect.Type, ms ...Method) reflect.Type {
	t.Helper()
	typ := New("main", "main."+name, u.Kind(), true, Options{Params: params(u), Methods: len(ms)})
	typ.SetLayout(u, u.Comparable())
	typ.SetUnderlying(u)
	if err := typ.SetMethods(ms); err != nil {
		t.Fatal(err)
	}
	return typ.Reflect()
}

func params(u reflect.Type) int {
	if u.Kind() != reflect.Func {
		return 0
	}
	return u.NumIn() + u.NumOut()
}

func value(t reflect.Type, x any) reflect.Value { return reflect.ValueOf(x).Convert(t) }

func results(xs ...any) []reflect.Value {
	var out []reflect.Value
	for _, x := range xs {
		out = append(out, reflect.ValueOf(x))
	}
	return out
}

// celsius is a float64 with a String method.
func celsius(t *testing.T) reflect.Type {
	return define(t, "celsius", reflect.TypeFor[float64](), Method{Name: "String", Type: fn[func() string](), Call: func(recv reflect.Value, _ []reflect.Value) []reflect.Value {
		return results(fmt.Sprintf("%.1f°C", recv.Elem().Float()))
	}})
}

// The layouts that this package assumes are those that the compiler writes.
func TestLayout(t *testing.T) {
	type compiled struct {
		a int
		B string `k:"v"`
		io.Reader
	}
	for _, x := range []any{compiled{}, []int{}, map[string]int{}, [3]int{}, make(chan int), new(int), func(int) (string, bool) { return "", false }, 7, "s"} {
		want := reflect.TypeOf(x)
		u := unpack(want)
		if pack(u) != want {
			t.Fatalf("%v: pack(unpack) is %v", want, pack(u))
		}
		if u.size != want.Size() || reflect.Kind(u.kind) != want.Kind() || int(u.align) != want.Align() || (u.equal != nil) != want.Comparable() {
			t.Errorf("%v: size %d kind %d align %d", want, u.size, u.kind, u.align)
		}
		switch want.Kind() {
		case reflect.Struct:
			s := (*abiStruct)(unsafe.Pointer(u))
			for i, f := range s.fields {
				w := want.Field(i)
				e := unsafe.String(encode(w.Name, string(w.Tag), w.IsExported(), w.Anonymous), 2+len(w.Name))
				if got := unsafe.String(f.name, len(e)); pack(f.typ) != w.Type || f.offset != w.Offset || got != e && w.IsExported() {
					t.Errorf("field %d: %v at %d, %q; want %v at %d, %q", i, pack(f.typ), f.offset, got, w.Type, w.Offset, e)
				}
			}
		case reflect.Map:
			m := (*abiMap)(unsafe.Pointer(u))
			if pack(m.key) != want.Key() || pack(m.elem) != want.Elem() || m.groupSize != m.group.size {
				t.Errorf("map: %v %v", pack(m.key), pack(m.elem))
			}
		case reflect.Array:
			if a := (*abiArray)(unsafe.Pointer(u)); int(a.len) != want.Len() || pack(a.elem) != want.Elem() || pack(a.slice) != reflect.SliceOf(want.Elem()) {
				t.Errorf("array: %v", a)
			}
		case reflect.Func:
			if f := (*abiFunc)(unsafe.Pointer(u)); f.in != 1 || f.out != 2 {
				t.Errorf("func: %v", f)
			}
		case reflect.Chan:
			if c := (*abiChan)(unsafe.Pointer(u)); c.dir != int(reflect.BothDir) || pack(c.elem) != want.Elem() {
				t.Errorf("chan: %v", c)
			}
		}
	}
}

func TestNames(t *testing.T) {
	c := celsius(t)
	if c.Name() != "celsius" || c.PkgPath() != "main" || c.String() != "main.celsius" || c.Kind() != reflect.Float64 || c.NumMethod() != 1 {
		t.Errorf("%q of %q, %v, %v, %d methods", c.Name(), c.PkgPath(), c, c.Kind(), c.NumMethod())
	}
	p := reflect.PointerTo(c)
	if p.String() != "*main.celsius" || p.Name() != "" || p.Elem() != c || p.NumMethod() != 1 || reflect.PointerTo(p).Elem() != p {
		t.Errorf("%v", p)
	}
	if c == celsius(t) {
		t.Error("two types made alike are one")
	}
	for _, d := range []reflect.Type{reflect.SliceOf(c), reflect.MapOf(c, c), reflect.ArrayOf(2, c), reflect.ChanOf(reflect.BothDir, c), reflect.FuncOf([]reflect.Type{c}, nil, false)} {
		if !strings.Contains(d.String(), "main.celsius") {
			t.Errorf("%v", d)
		}
	}
	pair := define(t, "Pair[int,main.T]", reflect.TypeFor[int]())
	if pair.Name() != "Pair[int,main.T]" {
		t.Errorf("name %q", pair.Name())
	}
}

func TestKinds(t *testing.T) {
	for _, x := range []any{true, 1, int8(1), uint16(2), 2.5, float32(1), 1i, "s", []int{1, 2}, [2]string{"a", "b"}, map[string]int{"a": 1}, struct{ A, B int }{1, 2},
		struct{ P *int }{new(int)}, [1]*int{new(int)}, new(int), make(chan string, 3), func(a int, b string) (string, error) { return b, nil }} {
		u := reflect.TypeOf(x)
		n := define(t, "T", u, Method{Name: "Self", Type: fn[func() any](), Call: func(recv reflect.Value, _ []reflect.Value) []reflect.Value {
			return []reflect.Value{recv.Elem()}
		}}, Method{Name: "Where", Pointer: true, Type: fn[func() any](), Call: func(recv reflect.Value, _ []reflect.Value) []reflect.Value {
			return []reflect.Value{recv}
		}})
		v := value(n, x)
		if v.Type() != n || fmt.Sprintf("%T", v.Interface()) != "main.T" {
			t.Errorf("%v: %T", u, v.Interface())
		}
		self, ok := v.Interface().(interface{ Self() any })
		if !ok {
			t.Fatalf("%v: no method", n)
		}
		if u.Comparable() && self.Self() != v.Interface() {
			t.Errorf("%v: Self is %v, want %v", u, self.Self(), v)
		}
		if got := fmt.Sprint(reflect.ValueOf(self.Self()).Convert(u)); got != fmt.Sprint(x) {
			t.Errorf("%v: %v, want %v", u, got, x)
		}
		if got := n.Method(0).Func.Call([]reflect.Value{v})[0].Elem(); fmt.Sprint(got.Convert(u)) != fmt.Sprint(x) {
			t.Errorf("%v: by Method(0).Func %v, want %v", u, got, x)
		}
		p := reflect.New(n)
		p.Elem().Set(v)
		if _, ok := v.Interface().(interface{ Where() any }); ok {
			t.Errorf("%v: the value has the pointer's method", u)
		}
		if w := p.Interface().(interface{ Where() any }).Where(); w != p.Interface() {
			t.Errorf("%v: Where is %v, want %v", u, w, p)
		}
		if got := p.Interface().(interface{ Self() any }).Self(); fmt.Sprint(reflect.ValueOf(got).Convert(u)) != fmt.Sprint(x) {
			t.Errorf("%v: through a pointer %v, want %v", u, got, x)
		}
	}
}

func TestFormats(t *testing.T) {
	c := celsius(t)
	v := value(c, 21.5).Interface()
	if got := fmt.Sprintf("%v %s %T %.0f %#v", v, v, v, v, v); got != "21.5°C 21.5°C main.celsius 22 21.5" {
		t.Error(got)
	}
	p := define(t, "point", StructOf("main", []reflect.StructField{{Name: "x", Type: reflect.TypeFor[int]()}, {Name: "Temp", Type: c, Tag: `json:"temp"`}}))
	w := reflect.New(p)
	w.Elem().Field(1).SetFloat(3)
	if got := fmt.Sprintf("%v %+v %#v %T", w.Elem(), w.Elem(), w.Elem(), w.Interface()); got != "{0 3.0°C} {x:0 Temp:3.0°C} main.point{x:0, Temp:3} *main.point" {
		t.Error(got)
	}
	b, err := json.Marshal(w.Interface())
	if string(b) != `{"temp":3}` || err != nil {
		t.Errorf("%s %v", b, err)
	}
	f, ok := p.FieldByName("x")
	if !ok || f.PkgPath != "main" || f.IsExported() {
		t.Errorf("field x: %+v", f)
	}
	s := reflect.MakeSlice(reflect.SliceOf(c), 2, 2)
	if got := fmt.Sprint(s); got != "[0.0°C 0.0°C]" {
		t.Error(got)
	}
	var out strings.Builder
	if err := template.Must(template.New("").Parse("{{.Temp}} {{range .L}}{{.}}{{end}}")).Execute(&out, map[string]any{"Temp": v, "L": s.Interface()}); err != nil || out.String() != "21.5°C 0.0°C0.0°C" {
		t.Error(out.String(), err)
	}
}

func TestErrors(t *testing.T) {
	u := StructOf("main", []reflect.StructField{{Name: "code", Type: reflect.TypeFor[int]()}})
	e := define(t, "myErr", u, Method{Name: "Error", Pointer: true, Type: fn[func() string](), Call: func(recv reflect.Value, _ []reflect.Value) []reflect.Value {
		if recv.IsNil() {
			return results("nil myErr")
		}
		return results(fmt.Sprint("code ", recv.Elem().Field(0).Int()))
	}}, Method{Name: "Is", Pointer: true, Type: fn[func(error) bool](), Call: func(_ reflect.Value, in []reflect.Value) []reflect.Value {
		return results(in[0].Interface() == io.EOF)
	}})
	err := fmt.Errorf("wrapped: %w", reflect.New(e).Interface().(error))
	if err.Error() != "wrapped: code 0" || !errors.Is(err, io.EOF) || errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	target := reflect.New(reflect.PointerTo(e))
	if !errors.As(err, target.Interface()) || target.Elem().IsNil() {
		t.Error("errors.As")
	}
	if other := reflect.New(reflect.PointerTo(define(t, "myErr", u))); func() (ok bool) {
		defer func() { ok = recover() == nil }()
		return errors.As(err, other.Interface())
	}() {
		t.Error("errors.As takes a pointer to a type without Error")
	}
	var typed error = reflect.Zero(reflect.PointerTo(e)).Interface().(error)
	if typed == nil || typed.Error() != "nil myErr" {
		t.Error("a nil *myErr in an error")
	}
}

// ints is a slice that package sort and container/heap can work on.
func ints(t *testing.T) reflect.Type {
	i := func(v reflect.Value) int { return int(v.Int()) }
	return define(t, "ints", reflect.TypeFor[[]int](),
		Method{Name: "Len", Type: fn[func() int](), Call: func(r reflect.Value, _ []reflect.Value) []reflect.Value { return results(r.Elem().Len()) }},
		Method{Name: "Less", Type: fn[func(i, j int) bool](), Call: func(r reflect.Value, in []reflect.Value) []reflect.Value {
			return results(r.Elem().Index(i(in[0])).Int() < r.Elem().Index(i(in[1])).Int())
		}},
		Method{Name: "Swap", Type: fn[func(i, j int)](), Call: func(r reflect.Value, in []reflect.Value) []reflect.Value {
			reflect.Swapper(r.Elem().Interface())(i(in[0]), i(in[1]))
			return nil
		}},
		Method{Name: "Push", Pointer: true, Type: fn[func(any)](), Call: func(r reflect.Value, in []reflect.Value) []reflect.Value {
			r.Elem().Set(reflect.Append(r.Elem(), in[0].Elem()))
			return nil
		}},
		Method{Name: "Pop", Pointer: true, Type: fn[func() any](), Call: func(r reflect.Value, _ []reflect.Value) []reflect.Value {
			s := r.Elem()
			x := s.Index(s.Len() - 1)
			s.SetLen(s.Len() - 1)
			return []reflect.Value{x}
		}})
}

func TestSortAndHeap(t *testing.T) {
	typ := ints(t)
	s := value(typ, []int{3, 1, 2})
	sort.Sort(s.Interface().(sort.Interface))
	if fmt.Sprint(s) != "[1 2 3]" {
		t.Error(s)
	}
	h := reflect.New(typ)
	for _, x := range []int{5, 2, 8, 1} {
		heap.Push(h.Interface().(heap.Interface), x)
	}
	var got []any
	for h.Elem().Len() > 0 {
		got = append(got, heap.Pop(h.Interface().(heap.Interface)))
	}
	if fmt.Sprint(got) != "[1 2 5 8]" {
		t.Error(got)
	}
}

// Arguments and results of every class: registers of both kinds, the stack,
// structs, variadic ones.
func TestArguments(t *testing.T) {
	type big struct {
		A [5]int
		S string
		F float64
	}
	type many = func(int, float64, string, []byte, big, float32, any, error, uint8, bool, complex128, ...string) (int, float64, big, string, []string, error)
	want := []any{7, 2.5, "s", []byte("b"), big{[5]int{1, 2, 3, 4, 5}, "t", .5}, float32(1.5), 'x', io.EOF, uint8(9), true, 2i, []string{"u", "v"}}
	typ := define(t, "T", reflect.TypeFor[struct{ A, B, C string }](), Method{Name: "Many", Type: fn[many](), Call: func(r reflect.Value, in []reflect.Value) []reflect.Value {
		if r.Elem().Field(2).String() != "c" {
			t.Error("the receiver is", r.Elem())
		}
		for i, v := range in {
			if !reflect.DeepEqual(v.Interface(), want[i]) {
				t.Errorf("argument %d is %v, want %v", i, v, want[i])
			}
		}
		grow(100) // the stack moves under the frame
		runtime.GC()
		return []reflect.Value{in[0], in[1], in[4], in[2], in[11], in[7]}
	}})
	v := value(typ, struct{ A, B, C string }{"a", "b", "c"})
	x := v.Interface().(interface {
		Many(int, float64, string, []byte, big, float32, any, error, uint8, bool, complex128, ...string) (int, float64, big, string, []string, error)
	})
	for range 3 {
		a, b, c, d, e, err := x.Many(7, 2.5, "s", []byte("b"), big{[5]int{1, 2, 3, 4, 5}, "t", .5}, 1.5, 'x', io.EOF, 9, true, 2i, "u", "v")
		if a != 7 || b != 2.5 || c.F != .5 || c.A[4] != 5 || d != "s" || !slices.Equal(e, []string{"u", "v"}) || err != io.EOF {
			t.Error(a, b, c, d, e, err)
		}
	}
	var in []reflect.Value
	for _, w := range want {
		in = append(in, reflect.ValueOf(w))
	}
	if out := v.Method(0).CallSlice(in); out[3].String() != "s" {
		t.Error(out)
	}
	if out := typ.Method(0).Func.CallSlice(append([]reflect.Value{v}, in...)); out[3].String() != "s" {
		t.Error(out)
	}
}

//go:noinline
func grow(n int) int {
	var a [128]int
	if n == 0 {
		return a[5]
	}
	return grow(n-1) + a[n%128]
}

func TestPanics(t *testing.T) {
	typ := define(t, "T", reflect.TypeFor[int](), Method{Name: "Error", Type: fn[func() string](), Call: func(reflect.Value, []reflect.Value) []reflect.Value {
		panic("inside")
	}})
	got := func() (r any) {
		defer func() { r = recover() }()
		return value(typ, 1).Interface().(error).Error()
	}()
	if got != "inside" {
		t.Errorf("recovered %v", got)
	}
}

// A recursive type, with a map of itself by value and an array of pointers to it.
func TestRecursive(t *testing.T) {
	n := New("main", "main.node", reflect.Struct, true, Options{})
	n.SetLayout(reflect.TypeFor[struct {
		P unsafe.Pointer
		M unsafe.Pointer
		A [2]unsafe.Pointer
		V int
	}](), false)
	self := n.Reflect()
	n.SetUnderlying(StructOf("main", []reflect.StructField{
		{Name: "next", Type: reflect.PointerTo(self)}, {Name: "kids", Type: reflect.MapOf(reflect.TypeFor[string](), self)},
		{Name: "both", Type: reflect.ArrayOf(2, reflect.PointerTo(self))}, {Name: "V", Type: reflect.TypeFor[int]()}}))
	if err := n.SetMethods(nil); err != nil {
		t.Fatal(err)
	}
	var head reflect.Value = reflect.Zero(reflect.PointerTo(self))
	for i := range 1000 {
		x := reflect.New(self)
		Field(x.Elem(), 0).Set(head)
		x.Elem().Field(3).SetInt(int64(i))
		kids := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), self))
		for j := range 10 {
			kids.SetMapIndex(reflect.ValueOf(fmt.Sprint(j)), x.Elem())
		}
		Field(x.Elem(), 1).Set(kids)
		head = x
		if i%100 == 0 {
			runtime.GC()
		}
	}
	runtime.GC()
	count := 0
	for x := head; !x.IsNil(); x = x.Elem().Field(0) {
		for _, k := range x.Elem().Field(1).MapKeys() {
			if got := x.Elem().Field(1).MapIndex(k).Field(3).Int(); got != x.Elem().Field(3).Int() {
				t.Fatalf("a kid of %d is %d", x.Elem().Field(3).Int(), got)
			}
		}
		count++
	}
	if count != 1000 {
		t.Errorf("%d nodes", count)
	}
}

// Keys of two types with one name and value differ; a blank field is not compared.
func TestKeys(t *testing.T) {
	a, b := define(t, "key", reflect.TypeFor[string]()), define(t, "key", reflect.TypeFor[string]())
	m := map[any]int{"k": 1, value(a, "k").Interface(): 2, value(b, "k").Interface(): 3}
	if len(m) != 3 || m[value(a, "k").Interface()] != 2 || m["k"] != 1 {
		t.Error(m)
	}
	p := define(t, "point", StructOf("main", []reflect.StructField{{Name: "x", Type: a}, {Name: "_", Type: reflect.TypeFor[int]()}}))
	v, w := reflect.New(p), reflect.New(p)
	Field(w.Elem(), 1).SetInt(7)
	if v.Elem().Interface() != w.Elem().Interface() {
		t.Error("a blank field is compared")
	}
	Field(w.Elem(), 0).SetString("z")
	if v.Elem().Interface() == w.Elem().Interface() {
		t.Error("a field is not compared")
	}
	mp := reflect.MakeMap(reflect.MapOf(p, reflect.TypeFor[int]()))
	for i := range 100 {
		Field(v.Elem(), 0).SetString(fmt.Sprint(i))
		mp.SetMapIndex(v.Elem(), reflect.ValueOf(i))
	}
	if mp.Len() != 100 {
		t.Error(mp.Len())
	}
}

func TestInterface(t *testing.T) {
	i := InterfaceOf("main", []reflect.Method{{Name: "String", Type: fn[func() string]()}, {Name: "less", Type: fn[func(int) bool]()}})
	shape := define(t, "shape", i)
	with := define(t, "T", reflect.TypeFor[int](),
		Method{Name: "String", Type: fn[func() string](), Call: func(r reflect.Value, _ []reflect.Value) []reflect.Value {
			return results(fmt.Sprint("T", r.Elem().Int()))
		}},
		Method{Name: "less", Type: fn[func(int) bool](), Call: func(r reflect.Value, in []reflect.Value) []reflect.Value {
			return results(r.Elem().Int() < in[0].Int())
		}})
	if c := celsius(t); c.Implements(shape) || !with.Implements(shape) || !with.Implements(i) || !with.ConvertibleTo(shape) {
		t.Error("Implements")
	}
	if shape.String() != "main.shape" || shape.NumMethod() != 2 || with.NumMethod() != 1 {
		t.Error(shape, shape.NumMethod(), with.NumMethod())
	}
	v := reflect.New(shape).Elem()
	v.Set(value(with, 3))
	if got := v.MethodByName("String").Call(nil)[0].String(); got != "T3" {
		t.Error(got)
	}
	if got := v.Method(1).Call([]reflect.Value{reflect.ValueOf(4)})[0].Bool(); !got {
		t.Error(got)
	}
	if fmt.Sprint(v.Interface()) != "T3" {
		t.Error(v)
	}
	if InterfaceOf("main", nil) != reflect.TypeFor[any]() {
		t.Error("no methods")
	}
}

// A method that comes later is found by who has looked before.
func TestLaterMethods(t *testing.T) {
	n := New("main", "main.T", reflect.Int, true, Options{})
	n.SetUnderlying(reflect.TypeFor[int]())
	if err := n.SetMethods(nil); err != nil {
		t.Fatal(err)
	}
	v := value(n.Reflect(), 5).Interface()
	if fmt.Sprint(v) != "5" {
		t.Error(v)
	}
	say := func(s string) Method {
		return Method{Name: "String", Type: fn[func() string](), Call: func(reflect.Value, []reflect.Value) []reflect.Value { return results(s) }}
	}
	f := FuncOf([]reflect.Type{n.Reflect()}, nil, false)
	for _, s := range []string{"five", "V"} {
		if err := n.SetMethods([]Method{say(s)}); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(v) != s {
			t.Error(v)
		}
	}
	if FuncOf([]reflect.Type{n.Reflect()}, nil, false) != f || FuncOf(nil, []reflect.Type{n.Reflect()}, false) == f {
		t.Error("FuncOf")
	}
	if FuncOf([]reflect.Type{reflect.TypeFor[int]()}, nil, false) != fn[func(int)]() {
		t.Error("FuncOf makes another func(int)")
	}
}

// Values live only through made types while the collector runs.
func TestCollector(t *testing.T) {
	c := celsius(t)
	p := define(t, "box", StructOf("main", []reflect.StructField{{Name: "a", Type: reflect.TypeFor[int]()}, {Name: "s", Type: reflect.TypeFor[[]string]()}, {Name: "m", Type: reflect.MapOf(reflect.TypeFor[string](), reflect.PointerTo(c))}, {Name: "i", Type: reflect.TypeFor[any]()}}))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var kept []any
			for i := range 2000 {
				b := reflect.New(p)
				e := b.Elem()
				Field(e, 0).SetInt(int64(i))
				Field(e, 1).Set(reflect.ValueOf([]string{fmt.Sprint(g, i)}))
				m := reflect.MakeMap(p.Field(2).Type)
				x := reflect.New(c)
				x.Elem().SetFloat(float64(i))
				m.SetMapIndex(reflect.ValueOf(fmt.Sprint(i)), x)
				Field(e, 2).Set(m)
				Field(e, 3).Set(x.Elem())
				kept = append(kept, e.Interface())
				if i%500 == 0 {
					runtime.GC()
				}
			}
			for i, k := range kept {
				want := fmt.Sprintf("{%d [%d %d] map[%d:", i, g, i, i)
				if got := fmt.Sprint(k); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, fmt.Sprintf("] %v}", float64(i))) {
					t.Errorf("%s, want %s…", got, want)
					return
				}
				if got := reflect.ValueOf(k).Field(2).MapIndex(reflect.ValueOf(fmt.Sprint(i))).Elem().Float(); got != float64(i) {
					t.Errorf("%v, want %d", got, i)
				}
			}
		})
	}
	wg.Wait()
}

// Every stub jumps to its own closure.
func TestStubs(t *testing.T) {
	table.mu.Lock()
	defer table.mu.Unlock()
	kept := closures
	defer func() { closures = kept }()
	for i := range closures {
		closures[i] = closure(reflect.ValueOf(func() int { return i }))
	}
	for i := range closures {
		code := stub(i)
		if got := (*(*func() int)(unsafe.Pointer(&[]unsafe.Pointer{unsafe.Pointer(&code)}[0])))(); got != i {
			t.Fatalf("stub %d calls closure %d", i, got)
		}
	}
}

func TestTooManyMethods(t *testing.T) {
	if _, err := table.take(Stubs + 1); !errors.As(err, new(*StubsError)) {
		t.Errorf("error %v", err)
	}
	n := New("main", "main.T", reflect.Int, true, Options{})
	n.SetUnderlying(reflect.TypeFor[int]())
	ms := make([]Method, spare+1)
	for i := range ms {
		ms[i] = Method{Name: fmt.Sprint("M", i), Type: fn[func()](), Call: func(reflect.Value, []reflect.Value) []reflect.Value { return nil }}
	}
	if err := n.SetMethods(ms); err == nil {
		t.Error("no error for more methods than there is room")
	}
}
