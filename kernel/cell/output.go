package cell

import (
	"fmt"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"deltafin/internal/third_party/yaegi/interp"
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
func (m *made) render(values []any) display.Bundle {
	if len(values) == 1 {
		if b, ok := m.rich(interp.Unwrap(reflect.ValueOf(values[0]))); ok {
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
func (m *made) rich(v reflect.Value) (display.Bundle, bool) {
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
	if v.Len() == 0 || !rows(v.Type().Elem()) {
		return display.Bundle{}, false
	}
	t, err := display.TableOf(x)
	if err != nil {
		return display.Bundle{}, false
	}
	for _, row := range t.Rows {
		for i, c := range row {
			if c != nil && m.has(reflect.TypeOf(c)) {
				row[i] = view{reflect.ValueOf(c)}
			}
		}
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
	if t.Kind() != reflect.Struct || interp.IsWrapped(t) {
		return false
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			return true
		}
	}
	return false
}

// format writes a value as %+v would, but for what is too long to read.
func format(v reflect.Value) string {
	p := printer{plus: true, limit: shownElements}
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

// A printer writes values as package fmt does, and gives the unexported fields of
// interpreted structs the names that they have in the cell.
type printer struct {
	b     strings.Builder
	plus  bool // field names, as %+v
	limit int  // elements shown of a slice or map; 0 means all
}

func (p *printer) full() bool { return p.limit > 0 && p.b.Len() > shownBytes }

func (p *printer) value(v reflect.Value, depth int) {
	v = interp.Unwrap(v)
	if !v.IsValid() {
		p.b.WriteString("<nil>")
		return
	}
	if depth > shownDepth && p.limit > 0 {
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
			if p.plus {
				p.b.WriteString(fieldName(v.Type(), i) + ":")
			}
			p.value(v.Field(i), depth+1)
		}
		p.b.WriteByte('}')
	case reflect.Slice, reflect.Array:
		p.b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				p.b.WriteByte(' ')
			}
			if p.limit > 0 && i >= p.limit && v.Len() > p.limit+10 || p.full() {
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
			if p.limit > 0 && i >= p.limit && len(keys) > p.limit+10 || p.full() {
				fmt.Fprintf(&p.b, "… (%d in all)", len(keys))
				break
			}
			p.value(k, depth+1)
			p.b.WriteByte(':')
			p.value(v.MapIndex(k), depth+1)
		}
		p.b.WriteByte(']')
	case reflect.Func:
		if p.limit > 0 {
			p.b.WriteString(v.Type().String())
			return
		}
		fmt.Fprintf(&p.b, "0x%x", v.Pointer())
	case reflect.Chan, reflect.UnsafePointer:
		if p.limit > 0 {
			p.b.WriteString(v.Type().String() + " ")
		}
		fmt.Fprintf(&p.b, "0x%x", v.Pointer())
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
		if p.plus {
			fmt.Fprintf(&p.b, "%+v", x)
		} else {
			fmt.Fprintf(&p.b, "%v", x)
		}
		return true
	}
	return false
}

// fieldName is a struct field's name in the cell: the interpreter makes the
// unexported ones exported by an X before the name.
func fieldName(t reflect.Type, i int) string {
	n := t.Field(i).Name
	if madeField(t, n) {
		return n[1:]
	}
	return n
}

func madeField(t reflect.Type, n string) bool {
	if t.Name() != "" || len(n) < 2 || n[0] != 'X' {
		return false
	}
	r, _ := utf8.DecodeRuneInString(n[1:])
	return r == '_' || unicode.IsLetter(r) && !unicode.IsUpper(r)
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

// made tells types that hold interpreted structs with unexported fields, or
// values of interpreted interface types: those that fmt would show as they are in
// the interpreter and not as they are in the cell.
type made struct{ known sync.Map } // reflect.Type → bool

func (m *made) has(t reflect.Type) bool {
	if b, ok := m.known.Load(t); ok {
		return b.(bool)
	}
	m.known.Store(t, false) // a recursive type is what the rest of it is
	b := m.look(t)
	m.known.Store(t, b)
	return b
}

func (m *made) look(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return m.has(t.Elem())
	case reflect.Map:
		return m.has(t.Key()) || m.has(t.Elem())
	case reflect.Struct:
		if t.Name() != "" {
			return interp.IsWrapped(t)
		}
		for i := range t.NumField() {
			if f := t.Field(i); madeField(t, f.Name) || m.has(f.Type) {
				return true
			}
		}
	}
	return false
}

// A view prints a value for fmt as it is in the cell.
type view struct{ v reflect.Value }

// Format implements fmt.Formatter.
func (w view) Format(s fmt.State, verb rune) {
	if verb == 'v' && !s.Flag('#') {
		p := printer{plus: s.Flag('+')}
		p.value(w.v, 0)
		width, ok := s.Width()
		if pad := width - utf8.RuneCountInString(p.b.String()); ok && pad > 0 {
			if s.Flag('-') {
				p.b.WriteString(strings.Repeat(" ", pad))
			} else {
				io.WriteString(s, strings.Repeat(" ", pad))
			}
		}
		io.WriteString(s, p.b.String())
		return
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), w.v.Interface())
}

// views replaces the arguments of a printing function that fmt would not show as
// the cell has them.
func (m *made) views(args []any) []any {
	var out []any
	for i, a := range args {
		if a == nil || !m.has(reflect.TypeOf(a)) {
			continue
		}
		switch a.(type) {
		case error, fmt.Stringer, fmt.Formatter, fmt.GoStringer:
			continue
		}
		if out == nil {
			out = append([]any(nil), args...)
		}
		out[i] = view{reflect.ValueOf(a)}
	}
	if out == nil {
		return args
	}
	return out
}

// printing gives fmt's functions with arguments as cells have them. print writes
// to the cell.
func (m *made) printing(w io.Writer) map[string]any {
	return map[string]any{
		"Print":    func(a ...any) (int, error) { return fmt.Fprint(w, m.views(a)...) },
		"Println":  func(a ...any) (int, error) { return fmt.Fprintln(w, m.views(a)...) },
		"Printf":   func(f string, a ...any) (int, error) { return fmt.Fprintf(w, f, m.typed(f, a)...) },
		"Fprint":   func(w io.Writer, a ...any) (int, error) { return fmt.Fprint(w, m.views(a)...) },
		"Fprintln": func(w io.Writer, a ...any) (int, error) { return fmt.Fprintln(w, m.views(a)...) },
		"Fprintf":  func(w io.Writer, f string, a ...any) (int, error) { return fmt.Fprintf(w, f, m.typed(f, a)...) },
		"Sprint":   func(a ...any) string { return fmt.Sprint(m.views(a)...) },
		"Sprintln": func(a ...any) string { return fmt.Sprintln(m.views(a)...) },
		"Sprintf":  func(f string, a ...any) string { return fmt.Sprintf(f, m.typed(f, a)...) },
	}
}

// typed leaves the arguments alone where the format asks for a type, which no
// Formatter can answer.
func (m *made) typed(format string, args []any) []any {
	if strings.Contains(format, "%T") || strings.Contains(format, "*") || strings.Contains(format, "[") {
		return args
	}
	return m.views(args)
}
