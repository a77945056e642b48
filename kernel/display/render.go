package display

import (
	"fmt"
	"html"
	"reflect"
	"strconv"
	"strings"

	"deltafin/internal/named"
)

// Render is what a cell that ends in these values shows: one in its richest form,
// several together, as text and, where one of them is a picture or a table, as HTML.
// Methods DisplayBundle of a single value that panic make Render panic.
func Render(values ...any) Bundle {
	if len(values) == 1 {
		if b, ok := Of(values[0]); ok {
			return b
		}
		return Text(Format(values[0]))
	}
	texts := make([]string, len(values))
	var page strings.Builder
	rich := false
	for i, v := range values {
		texts[i] = Format(v)
		s := ""
		if b, ok := shielded(v); ok {
			texts[i], _ = b.Data[MIMEText].(string)
			s = inPage(b)
		}
		rich = rich || s != ""
		if s == "" {
			s = "<pre>" + escapeHTML(texts[i]) + "</pre>"
		}
		page.WriteString("<div>" + s + "</div>")
	}
	text := strings.Join(texts, ", ")
	if textWidth(text) > lineWidth || strings.Contains(text, "\n") {
		text = strings.Join(texts, "\n")
	}
	if !rich {
		return Text(text)
	}
	return bundle(text, MIMEHTML, page.String())
}

// shielded is Of, false where a method panics.
func shielded(v any) (b Bundle, ok bool) {
	defer func() {
		if recover() != nil {
			b, ok = Bundle{}, false
		}
	}()
	return Of(v)
}

// inPage is a bundle as a part of an HTML page, or "" where it is only text.
func inPage(b Bundle) string {
	for _, mime := range []string{MIMEHTML, MIMESVG} {
		if s, ok := b.Data[mime].(string); ok {
			return s
		}
	}
	text, _ := b.Data[MIMEText].(string)
	for _, mime := range []string{MIMEPNG, "image/jpeg", "image/gif"} {
		if s, ok := b.Data[mime].(string); ok {
			return fmt.Sprintf(`<img alt="%s" src="data:%s;base64,%s">`, html.EscapeString(text), mime, s)
		}
	}
	return ""
}

// table is a slice of structs as a table in HTML, with the text that Format gives
// where it fits one line, and else the table's.
func table(v reflect.Value) (Bundle, bool) {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array || v.Len() == 0 {
		return Bundle{}, false
	}
	switch v.Interface().(type) {
	case error, fmt.Stringer, fmt.Formatter:
		return Bundle{}, false
	}
	if v.Type().Elem().Implements(reflect.TypeFor[Value]()) {
		return Bundle{}, false
	}
	text := formatValue(v)
	more := 0
	if v.Len() > htmlRows {
		more = v.Len() - htmlRows
		some := reflect.MakeSlice(reflect.SliceOf(v.Type().Elem()), htmlRows, htmlRows)
		reflect.Copy(some, v)
		v = some
	}
	shown := open(v)
	if !rows(shown.Type().Elem()) {
		return Bundle{}, false
	}
	t := structTable(shown)
	t.More = more
	for _, row := range t.Rows {
		for i, x := range row {
			row[i] = tableCell(x)
		}
	}
	b := t.DisplayBundle()
	if s, _ := b.Data[MIMEText].(string); strings.Contains(text, "\n") && widest(s) <= lineWidth {
		return b, true
	}
	b.Data[MIMEText] = text
	return b, true
}

// tableCell is x as a table shows it: what is neither plain nor writes itself in one
// line.
func tableCell(x any) any {
	switch x.(type) {
	case nil, fmt.Formatter, error, fmt.Stringer, []byte:
		return x
	}
	switch reflect.TypeOf(x).Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array, reflect.Pointer, reflect.String:
		if s, ok := x.(string); ok && len(s) <= 4*stringBytes {
			return x
		}
		return OneLine(x, lineWidth)
	}
	return x
}

func widest(s string) int {
	n := 0
	for line := range strings.Lines(s) {
		n = max(n, textWidth(strings.TrimRight(line, "\n")))
	}
	return n
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

// open gives a slice of a cell's own structs that have unexported fields as one
// of structs whose fields are all exported: they are columns too.
func open(v reflect.Value) reflect.Value {
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
