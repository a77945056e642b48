package cell

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"deltafin/internal/named"
	"deltafin/kernel/display"
)

// Bounds of a value's text.
const (
	shownElements = 100      // of one slice or map
	shownBytes    = 64 << 10 // of all
	shownDepth    = 12
)

// render shows the values of a cell's last expression: one in its richest form,
// several as text.
func render(values []any) display.Bundle {
	if len(values) == 1 {
		if b, ok := rich(reflect.ValueOf(values[0])); ok {
			return b
		}
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = format(reflect.ValueOf(v))
	}
	return display.Text(strings.Join(texts, ", "))
}

// rich is the bundle of a value that has more to show than text. A slice of
// structs is a table in HTML and keeps the text of a slice.
func rich(v reflect.Value) (display.Bundle, bool) {
	if !v.IsValid() || !v.CanInterface() {
		return display.Bundle{}, false
	}
	x := v.Interface()
	if _, itself := x.(display.Value); itself || v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return display.Of(x)
	}
	switch x.(type) {
	case error, fmt.Stringer, fmt.Formatter:
		return display.Bundle{}, false
	}
	if v.Len() == 0 || v.Type().Elem().Implements(reflect.TypeFor[display.Value]()) {
		return display.Bundle{}, false
	}
	shown := columns(v)
	if !rows(shown.Type().Elem()) {
		return display.Bundle{}, false
	}
	t, err := display.TableOf(shown.Interface())
	if err != nil {
		return display.Bundle{}, false
	}
	b := t.DisplayBundle()
	b.Data[display.MIMEText] = format(v)
	return b, true
}

// rows says whether values of type t are rows of a table: structs with fields that
// can be seen.
func rows(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			return true
		}
	}
	return false
}

// columns gives a slice of a cell's own structs that have unexported fields as one
// of structs whose fields are all exported: they are columns too.
func columns(v reflect.Value) reflect.Value {
	t := v.Type().Elem()
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(reflect.TypeFor[fmt.Stringer]()) {
		return v
	}
	var fields []reflect.StructField
	hidden := false
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && f.PkgPath != "main" {
			return v
		}
		hidden = hidden || !f.IsExported()
		name := f.Name
		if tag, ok := f.Tag.Lookup("column"); ok {
			name = tag
		}
		fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: f.Type, Tag: reflect.StructTag("column:" + strconv.Quote(name))})
	}
	if !hidden {
		return v
	}
	row := reflect.StructOf(fields)
	out := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(row)), v.Len(), v.Len())
	for i := range v.Len() {
		from := v.Index(i)
		if pointer {
			if from.IsNil() {
				continue
			}
			from = from.Elem()
		}
		to := reflect.New(row)
		for j := range fields {
			to.Elem().Field(j).Set(named.Field(from, j))
		}
		out.Index(i).Set(to)
	}
	return out
}

// format writes a value as %+v would, but for what is too long to read.
func format(v reflect.Value) string {
	p := printer{}
	p.value(v, 0)
	if p.b.Len() > shownBytes {
		s := p.b.String()[:shownBytes]
		for !utf8.ValidString(s) && len(s) > shownBytes-utf8.UTFMax {
			s = s[:len(s)-1]
		}
		return s + fmt.Sprintf(" … (%d bytes in all)", p.b.Len())
	}
	return p.b.String()
}

// A printer writes values as package fmt does with %+v, and no more than one can
// read.
type printer struct{ b strings.Builder }

func (p *printer) full() bool { return p.b.Len() > shownBytes }

func (p *printer) value(v reflect.Value, depth int) {
	if !v.IsValid() {
		p.b.WriteString("<nil>")
		return
	}
	if depth > shownDepth {
		p.b.WriteString("…")
		return
	}
	if v.CanInterface() && p.own(v) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			p.b.WriteString("<nil>")
			return
		}
		p.value(v.Elem(), depth)
	case reflect.Pointer:
		if depth == 0 && !v.IsNil() {
			switch v.Elem().Kind() {
			case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
				p.b.WriteByte('&')
				p.value(v.Elem(), depth+1)
				return
			}
		}
		if v.IsNil() {
			p.b.WriteString("<nil>")
			return
		}
		fmt.Fprintf(&p.b, "0x%x", v.Pointer())
	case reflect.Struct:
		p.b.WriteByte('{')
		for i := range v.NumField() {
			if i > 0 {
				p.b.WriteByte(' ')
			}
			p.b.WriteString(v.Type().Field(i).Name + ":")
			p.value(v.Field(i), depth+1)
		}
		p.b.WriteByte('}')
	case reflect.Slice, reflect.Array:
		p.b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				p.b.WriteByte(' ')
			}
			if i >= shownElements && v.Len() > shownElements+10 || p.full() {
				fmt.Fprintf(&p.b, "… (%d in all)", v.Len())
				break
			}
			p.value(v.Index(i), depth+1)
		}
		p.b.WriteByte(']')
	case reflect.Map:
		p.b.WriteString("map[")
		keys := v.MapKeys()
		sortKeys(keys)
		for i, k := range keys {
			if i > 0 {
				p.b.WriteByte(' ')
			}
			if i >= shownElements && len(keys) > shownElements+10 || p.full() {
				fmt.Fprintf(&p.b, "… (%d in all)", len(keys))
				break
			}
			p.value(k, depth+1)
			p.b.WriteByte(':')
			p.value(v.MapIndex(k), depth+1)
		}
		p.b.WriteByte(']')
	case reflect.Func:
		p.b.WriteString(v.Type().String())
	case reflect.Chan, reflect.UnsafePointer:
		fmt.Fprintf(&p.b, "%v 0x%x", v.Type(), v.Pointer())
	case reflect.Bool:
		p.b.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.String:
		p.b.WriteString(v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.b.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.b.WriteString(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32:
		fmt.Fprint(&p.b, float32(v.Float()))
	case reflect.Float64:
		fmt.Fprint(&p.b, v.Float())
	case reflect.Complex64:
		fmt.Fprint(&p.b, complex64(v.Complex()))
	case reflect.Complex128:
		fmt.Fprint(&p.b, v.Complex())
	}
}

// own lets a value write itself, where it can.
func (p *printer) own(v reflect.Value) bool {
	switch x := v.Interface().(type) {
	case fmt.Formatter, error, fmt.Stringer:
		fmt.Fprintf(&p.b, "%+v", x)
		return true
	}
	return false
}

func sortKeys(keys []reflect.Value) {
	sort.SliceStable(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		for a.Kind() == reflect.Interface && !a.IsNil() {
			a = a.Elem()
		}
		for b.Kind() == reflect.Interface && !b.IsNil() {
			b = b.Elem()
		}
		if a.Kind() != b.Kind() {
			return a.Kind() < b.Kind()
		}
		switch {
		case a.CanInt():
			return a.Int() < b.Int()
		case a.CanUint():
			return a.Uint() < b.Uint()
		case a.CanFloat():
			return a.Float() < b.Float()
		case a.Kind() == reflect.String:
			return a.String() < b.String()
		}
		return fmt.Sprint(a) < fmt.Sprint(b)
	})
}
