package display

import (
	"errors"
	"fmt"
	"html"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A table shows at most so many rows; the last line then counts the others.
const (
	htmlRows = 1000
	textRows = 60
)

// Table shows rows under named columns. Cells may be any values: floats are
// rounded to four digits, durations to about as many, numbers are aligned right.
type Table struct {
	Title   string // "" for none
	Columns []string
	Rows    [][]any // a row may be shorter than Columns
	More    int     // rows that follow, of which nothing is known but their number
}

// TableOf makes a table of a slice or array: of structs or pointers to structs
// (a column an exported field, called by its tag "column" where it has one), of maps with string keys (a column a key), of
// slices (columns numbered from 0), or of anything else (one column).
func TableOf(v any) (Table, error) {
	rv := reflect.ValueOf(v)
	if k := rv.Kind(); k != reflect.Slice && k != reflect.Array {
		return Table{}, fmt.Errorf("display: want a slice of rows for a table, got %T", v)
	}
	if isStructs(v) {
		return structTable(rv), nil
	}
	t := Table{}
	column := map[string]int{}
	for i := range rv.Len() {
		row := rv.Index(i)
		for row.Kind() == reflect.Interface && !row.IsNil() {
			row = row.Elem()
		}
		switch {
		case row.Kind() == reflect.Map && row.Type().Key().Kind() == reflect.String:
			keys := row.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			cells := make([]any, len(t.Columns))
			for _, k := range keys {
				at, ok := column[k.String()]
				if !ok {
					at = len(t.Columns)
					column[k.String()] = at
					t.Columns = append(t.Columns, k.String())
					cells = append(cells, nil)
				}
				cells[at] = row.MapIndex(k).Interface()
			}
			t.Rows = append(t.Rows, cells)
		case row.Kind() == reflect.Slice && row.Type().Elem().Kind() != reflect.Uint8, row.Kind() == reflect.Array:
			cells := make([]any, row.Len())
			for j := range cells {
				cells[j] = row.Index(j).Interface()
				if j == len(t.Columns) {
					t.Columns = append(t.Columns, fmt.Sprint(j))
				}
			}
			t.Rows = append(t.Rows, cells)
		default:
			if len(t.Columns) == 0 {
				t.Columns = []string{"value"}
			}
			var cell any
			if row.IsValid() && row.CanInterface() {
				cell = row.Interface()
			}
			t.Rows = append(t.Rows, []any{cell})
		}
	}
	if len(t.Columns) == 0 {
		return Table{}, errors.New("display: want rows for a table, got none")
	}
	return t, nil
}

// isStructs says whether v is a slice or array of structs, or of pointers to
// structs, with an exported field.
func isStructs(v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return false
	}
	t = t.Elem()
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

func structTable(rows reflect.Value) Table {
	elem := rows.Type().Elem()
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	t := Table{}
	var fields []int
	for i := range elem.NumField() {
		if f := elem.Field(i); f.IsExported() {
			fields = append(fields, i)
			name := f.Name
			if s, ok := f.Tag.Lookup("column"); ok {
				name = s
			}
			t.Columns = append(t.Columns, name)
		}
	}
	for i := range rows.Len() {
		row := rows.Index(i)
		if row.Kind() == reflect.Pointer {
			row = row.Elem() // the zero Value for nil
		}
		cells := make([]any, len(fields))
		if row.IsValid() {
			for j, f := range fields {
				cells[j] = row.Field(f).Interface()
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Interface, reflect.Chan:
		return rv.IsNil()
	}
	return false
}

// cell formats one value, and says whether it is a number.
func cell(v any) (s string, numeric bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case time.Duration:
		return Duration(v), true
	case time.Time:
		return v.Format("2006-01-02 15:04:05"), false
	case []byte:
		return fmt.Sprintf("%x", v), false
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Float32, reflect.Float64:
		if _, ok := v.(fmt.Stringer); !ok {
			return number(rv.Float()), true
		}
		return fmt.Sprint(v), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprint(v), true
	}
	return fmt.Sprint(v), false
}

// Duration formats d with about four digits, such as 1.234ms or 12.35s.
func Duration(d time.Duration) string {
	if d.Abs() >= time.Minute {
		return d.Round(time.Second).String()
	}
	unit := time.Duration(1)
	for d.Abs()/unit >= 10000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// DisplayBundle gives text/html and text/plain.
func (t Table) DisplayBundle() Bundle {
	return bundle(t.text(), MIMEHTML, t.html())
}

func (t Table) html() string {
	const cellStyle = "padding:0.2em 0.8em;border:0;border-bottom:1px solid rgba(128,128,128,0.35)"
	var b strings.Builder
	b.WriteString(`<table style="border-collapse:collapse;color:inherit;background:transparent;font-variant-numeric:tabular-nums">`)
	if t.Title != "" {
		fmt.Fprintf(&b, `<caption style="caption-side:top;text-align:left;color:inherit;font-weight:600;padding:0.2em 0.8em">%s</caption>`, escapeHTML(t.Title))
	}
	numeric := t.numeric()
	align := func(i int) string {
		if i < len(numeric) && numeric[i] {
			return "right"
		}
		return "left"
	}
	b.WriteString("<thead><tr>")
	for i, c := range t.Columns {
		fmt.Fprintf(&b, `<th style="%s;text-align:%s">%s</th>`, cellStyle, align(i), escapeHTML(c))
	}
	b.WriteString("</tr></thead><tbody>")
	for _, row := range t.Rows[:min(len(t.Rows), htmlRows)] {
		b.WriteString(`<tr style="background:transparent">`)
		for i := range t.Columns {
			s := ""
			if i < len(row) {
				s, _ = cell(row[i])
			}
			fmt.Fprintf(&b, `<td style="%s;text-align:%s;white-space:pre-wrap">%s</td>`, cellStyle, align(i), escapeHTML(s))
		}
		b.WriteString("</tr>")
	}
	if more := max(0, len(t.Rows)-htmlRows) + t.More; more > 0 {
		fmt.Fprintf(&b, `<tr style="background:transparent"><td colspan="%d" style="%s;text-align:left">… %s more rows</td></tr>`, len(t.Columns), cellStyle, grouped(more))
	}
	b.WriteString("</tbody></table>")
	return b.String()
}

// numeric says which columns hold numbers and nothing else, in the rows shown.
func (t Table) numeric() []bool {
	numeric := make([]bool, len(t.Columns))
	for i := range numeric {
		for _, row := range t.Rows[:min(len(t.Rows), htmlRows)] {
			if i >= len(row) || row[i] == nil {
				continue
			}
			_, is := cell(row[i])
			if numeric[i] = is; !is {
				break
			}
		}
	}
	return numeric
}

func (t Table) text() string {
	numeric := t.numeric()
	rows := t.Rows[:min(len(t.Rows), textRows)]
	lines := make([][]string, 0, len(rows)+1)
	lines = append(lines, t.Columns)
	for _, row := range rows {
		line := make([]string, len(t.Columns))
		for i := range min(len(row), len(line)) {
			line[i], _ = cell(row[i])
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(t.Columns))
	for i, line := range lines {
		line = slices.Clone(line)
		for j := range line {
			line[j] = cut(visible(line[j]), columns-20)
			widths[j] = max(widths[j], textWidth(line[j]))
		}
		lines[i] = line
	}
	var out []string
	if t.Title != "" {
		out = append(out, visible(t.Title))
	}
	for i, line := range lines {
		rule := make([]string, len(line))
		for j := range line {
			line[j] = pad(line[j], widths[j], numeric[j])
			rule[j] = strings.Repeat("─", widths[j])
		}
		out = append(out, strings.TrimRight(strings.Join(line, "  "), " "))
		if i == 0 {
			out = append(out, strings.Join(rule, "──"))
		}
	}
	if more := len(t.Rows) - len(rows) + t.More; more > 0 {
		out = append(out, fmt.Sprintf("… %s more rows", grouped(more)))
	}
	return strings.Join(out, "\n")
}

// escapeHTML escapes text for an element's content or a quoted attribute.
func escapeHTML(s string) string {
	return html.EscapeString(strings.ToValidUTF8(s, "\ufffd"))
}
