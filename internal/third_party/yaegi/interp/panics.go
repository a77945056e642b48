package interp

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// A RuntimeError is a run-time panic of interpreted code, worded as Go words it.
// It implements runtime.Error.
type RuntimeError string

func (e RuntimeError) Error() string { return string(e) }

// RuntimeError marks it.
func (RuntimeError) RuntimeError() {}

// asGo turns what reflection and this package panic with into what compiled code
// would have panicked with.
func asGo(v any) any {
	const nilDeref = RuntimeError("runtime error: invalid memory address or nil pointer dereference")
	switch x := v.(type) {
	case *reflect.ValueError:
		return nilDeref
	case runtime.Error:
		if of, ok := strings.CutPrefix(x.Error(), "hash of unhashable type: "); ok {
			return RuntimeError("runtime error: hash of unhashable type " + of)
		}
	case *cfgError:
		if _, text, ok := strings.Cut(x.Error(), ": "); ok {
			return RuntimeError(text)
		}
	case string:
		switch {
		case x == "reflect.MakeSlice: negative len":
			return RuntimeError("runtime error: makeslice: len out of range")
		case x == "reflect.MakeChan: negative buffer size":
			return RuntimeError("makechan: size out of range")
		case x == "reflect.MakeSlice: len > cap", x == "reflect.MakeSlice: negative cap":
			return RuntimeError("runtime error: makeslice: cap out of range")
		case strings.HasPrefix(x, "reflect: ") && strings.HasSuffix(x, "index out of range"):
			return RuntimeError("runtime error: index out of range")
		case strings.HasPrefix(x, "reflect.Value.Slice") && strings.Contains(x, "out of bounds"):
			return RuntimeError("runtime error: slice bounds out of range")
		case strings.HasPrefix(x, "reflect: call of") && strings.HasSuffix(x, "on zero Value"),
			x == "reflect: Call using zero Value argument", // *p given to a function
			x == "reflect: Method on nil interface value",
			strings.HasPrefix(x, "reflect") && strings.HasSuffix(x, "call of nil function"):
			return nilDeref
		case strings.HasPrefix(x, "reflect: cannot convert slice with length "):
			x = strings.Replace(strings.TrimPrefix(x, "reflect: "), " to array with", " to array or pointer to array with", 1)
			return RuntimeError("runtime error: " + x)
		}
	}
	return v
}

// at is v[i], checked with the words of the Go runtime.
func at(v reflect.Value, i int) reflect.Value {
	switch v.Kind() {
	case reflect.Slice, reflect.Array, reflect.String:
		if n := v.Len(); i < 0 {
			panic(RuntimeError(fmt.Sprintf("runtime error: index out of range [%d]", i)))
		} else if i >= n {
			panic(RuntimeError(fmt.Sprintf("runtime error: index out of range [%d] with length %d", i, n)))
		}
	}
	return v.Index(i)
}

// cut is v[low:high], or v[low:high:max] unless max is negative, checked with the
// words of the Go runtime.
func cut(v reflect.Value, low, high, max int) reflect.Value {
	limit, of := v.Len(), "length"
	if v.Kind() == reflect.Slice {
		limit, of = v.Cap(), "capacity"
	}
	out := func(format string, args ...any) {
		panic(RuntimeError("runtime error: slice bounds out of range " + fmt.Sprintf(format, args...)))
	}
	if max >= 0 {
		switch {
		case max > limit:
			out("[::%d] with %s %d", max, of, limit)
		case high < 0 || high > max:
			out("[:%d:%d]", high, max)
		case low < 0 || low > high:
			out("[%d:%d:]", low, high)
		}
		return v.Slice3(low, high, max)
	}
	switch {
	case high < 0:
		out("[:%d]", high)
	case high > limit:
		out("[:%d] with %s %d", high, of, limit)
	case low < 0:
		out("[%d:]", low)
	case low > high:
		out("[%d:%d]", low, high)
	}
	return v.Slice(low, high)
}

// A PanicValue is what a call of panic in interpreted code panics with. recover in
// interpreted code gives the value itself.
type PanicValue struct {
	Value reflect.Value
}

// Error is what a program that dies of the panic prints.
func (p *PanicValue) Error() string {
	v := p.Value
	if !v.IsValid() || v.Kind() == reflect.Interface && v.IsNil() {
		return new(runtime.PanicNilError).Error()
	}
	return fmt.Sprint(v.Interface()) // by its Error or String, if they don't panic themselves
}

// Unwrap lets errors.Is and errors.As see an error that was panicked with.
func (p *PanicValue) Unwrap() error {
	if v := p.Value; v.IsValid() && v.CanInterface() {
		if e, ok := v.Interface().(error); ok {
			return e
		}
	}
	return nil
}

func recoveredValue(v any) reflect.Value {
	if p, ok := v.(*PanicValue); ok {
		if !p.Value.IsValid() || p.Value.Kind() == reflect.Interface && p.Value.IsNil() {
			return reflect.ValueOf(new(runtime.PanicNilError))
		}
		return p.Value
	}
	return reflect.ValueOf(v)
}
