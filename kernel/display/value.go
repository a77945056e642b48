package display

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"deltafin/internal/named"
)

// Bounds of a value's text. Whatever a value holds, no more of it is looked at.
const (
	lineWidth   = 100       // what fits this many columns stays in one line
	textBytes   = 64 << 10  // of a text that is the value itself
	stringBytes = 240       // of a string within a value
	dumpBytes   = 256       // of a []byte; a quarter within a value
	valueNodes  = 3000      // of all that a value holds
	valueDepth  = 8         // levels of composite values
	sortedKeys  = 1_000_000 // of a larger map, some keys are shown
)

// elements bounds the elements shown of one slice or map, by depth.
func elements(depth int) int {
	switch depth {
	case 0:
		return 100
	case 1:
		return 30
	}
	return 10
}

// Format writes a value as a cell shows it. What fits one line is written as package fmt
// does with %+v, but that pointers within it are followed. Anything else is Go's syntax,
// indented, with what is too long to read trimmed and counted. Values with a method
// Error, String, Format or DisplayBundle write themselves, at every depth, also where it
// panics.
func Format(v any) string { return formatValue(reflect.ValueOf(v)) }

func formatValue(v reflect.Value) string {
	f := formatter{budget: valueNodes, seen: map[visit]bool{}}
	n := f.build(v, 0)
	if n.kind == textNode {
		return cutText(n.text, textBytes)
	}
	if s, ok := f.line(n); ok {
		return s
	}
	w := nested{}
	w.write(n, 0, 0)
	return w.b.String()
}

// OneLine is Format for where there is one line, cut to width columns.
func OneLine(v any, width int) string {
	f := formatter{budget: valueNodes / 10, seen: map[visit]bool{}}
	n := f.build(reflect.ValueOf(v), 0)
	s, ok := f.line(n)
	if !ok {
		s = n.flat(true)
	}
	return cut(visible(s), width)
}

// cutText is s, at most n bytes of it, and how much is missing.
func cutText(s string, n int) string {
	head, rest := cutBytes(s, n)
	return head + rest
}

// cutBytes is the first n bytes of s, at most, that end no character in its middle, and what
// to say of the rest: nothing where there is none.
func cutBytes(s string, n int) (head, rest string) {
	if len(s) <= n {
		return s, ""
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], fmt.Sprintf("… %s more of %s bytes", grouped(len(s)-n), grouped(len(s)))
}

// grouped writes n with commas.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A node is a part of a value that is to be written.
type node struct {
	kind   nodeKind
	text   string  // of a scalarNode or textNode; in Go's syntax for a stringNode
	plain  string  // as %+v has it, where that differs
	fmt    *node   // what %+v has instead, of a field that it doesn't let write itself
	typ    string  // of a composite
	ref    bool    // it is behind a pointer
	typed  bool    // its place doesn't tell its type
	keys   []*node // of a map; of a struct, scalars
	items  []*node
	hidden bool // a field that isn't exported, of another package's struct that has others
	length int  // elements in all
	dump   bool
}

type nodeKind byte

const (
	scalarNode nodeKind = iota
	stringNode
	textNode // what the value says itself
	structNode
	listNode
	mapNode
)

func (n *node) composite() bool { return n.kind >= structNode }

// A visit is a composite value that has been entered.
type visit struct {
	p uintptr
	t reflect.Type
	n int
}

type formatter struct {
	budget    int
	seen      map[visit]bool
	addresses bool // there is a pointer within the value
}

func scalar(s string) *node { return &node{text: s} }

// typeName names t for a reader of the cells: their own package goes without saying.
func typeName(t reflect.Type) string {
	s := ownPackage.ReplaceAllString(t.String(), "")
	return strings.NewReplacer("interface {}", "any", "[]uint8", "[]byte").Replace(s)
}

var ownPackage = regexp.MustCompile(`\bmain\.`)

// build looks at v. It follows each pointer once.
func (f *formatter) build(v reflect.Value, depth int) *node {
	f.budget--
	if !v.IsValid() {
		return &node{text: "nil", plain: "<nil>"}
	}
	if v.Kind() == reflect.Interface {
		if v.IsNil() {
			return &node{text: "nil", plain: "<nil>"}
		}
		n := f.build(v.Elem(), depth)
		n.typed = true
		return n
	}
	if v.CanInterface() {
		if n := f.own(v, depth); n != nil {
			return n
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		return scalar(strconv.FormatBool(v.Bool()))
	case reflect.String:
		s := v.String()
		n := &node{kind: stringNode, plain: s}
		if depth == 0 {
			n.kind, n.text = textNode, s
			return n
		}
		n.text = quoted(s)
		return n
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalar(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return scalar(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32:
		return scalar(fmt.Sprint(float32(v.Float())))
	case reflect.Float64:
		return scalar(fmt.Sprint(v.Float()))
	case reflect.Complex64:
		return scalar(fmt.Sprint(complex64(v.Complex())))
	case reflect.Complex128:
		return scalar(fmt.Sprint(v.Complex()))
	case reflect.Func:
		if v.IsNil() {
			return &node{text: "nil", plain: typeName(v.Type())}
		}
		return scalar(typeName(v.Type()))
	case reflect.Chan:
		if v.IsNil() {
			return &node{text: "nil", plain: fmt.Sprintf("%v 0x0", typeName(v.Type()))}
		}
		return &node{text: fmt.Sprintf("%v (%d of %d waiting)", typeName(v.Type()), v.Len(), v.Cap()), plain: fmt.Sprintf("%v 0x%x", typeName(v.Type()), v.Pointer())}
	case reflect.UnsafePointer:
		return scalar(fmt.Sprintf("%v 0x%x", v.Type(), v.Pointer()))
	case reflect.Pointer:
		return f.pointer(v, depth)
	}
	return f.composite(v, depth)
}

// own is what a value says itself, or nil.
func (f *formatter) own(v reflect.Value, depth int) *node {
	x := v.Interface()
	switch x := x.(type) {
	case reflect.Type:
		return &node{kind: textNode, text: typeName(x)}
	case reflect.Value:
		return &node{kind: textNode, text: fmt.Sprintf("%+v", x)}
	case fmt.Formatter, error, fmt.Stringer:
		s := fmt.Sprint(x) // which survives a panic
		if depth > 0 {
			s = cutText(s, stringBytes)
		}
		return &node{kind: textNode, text: s}
	case Value, Bundle, *Bundle:
		s := bundleText(x)
		if depth > 0 {
			s = cutText(s, 8*stringBytes)
		}
		return &node{kind: textNode, text: s}
	}
	return nil
}

// bundleText is the text of a value that displays itself.
func bundleText(x any) (s string) {
	defer func() {
		if r := recover(); r != nil {
			s = fmt.Sprintf("%%!v(PANIC=DisplayBundle method: %v)", r)
		}
	}()
	if isNil(x) {
		return "<nil>"
	}
	b, _ := Of(x)
	s, _ = b.Data[MIMEText].(string)
	return s
}

func quoted(s string) string {
	head, rest := cutBytes(s, stringBytes)
	return strconv.Quote(head) + rest
}

func (f *formatter) pointer(v reflect.Value, depth int) *node {
	if v.IsNil() {
		return &node{text: "nil", plain: "<nil>"}
	}
	address := scalar(fmt.Sprintf("0x%x", v.Pointer()))
	composite := false
	switch v.Elem().Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
		composite = true
	}
	if depth == 0 && !composite || depth > 0 && !v.CanInterface() {
		return address
	}
	if depth > 0 {
		f.addresses = true
	}
	at := visit{p: v.Pointer(), t: v.Type()}
	if f.seen[at] && composite {
		return scalar(fmt.Sprintf("%s(0x%x) as above", typeName(v.Type()), v.Pointer()))
	}
	f.seen[at] = true
	n := f.build(v.Elem(), depth)
	if n.composite() {
		n.ref = true
		return n
	}
	if n.kind == textNode && depth == 0 {
		n.kind = scalarNode
	}
	n.text, n.plain = "&"+n.text, ""
	return n
}

func (f *formatter) composite(v reflect.Value, depth int) *node {
	n := &node{typ: typeName(v.Type())}
	if k := v.Kind(); k == reflect.Map || k == reflect.Slice {
		if v.IsNil() {
			plain := "[]"
			if k == reflect.Map {
				plain = "map[]"
			}
			return &node{text: "nil", plain: plain}
		}
		if at := (visit{v.Pointer(), v.Type(), v.Len()}); v.Len() > 0 {
			if f.seen[at] {
				return scalar(n.typ + "(as above)")
			}
			// What holds itself is as above; what merely comes again is shown again.
			f.seen[at] = true
			defer delete(f.seen, at)
		}
	}
	if v.Kind() != reflect.Struct {
		n.length = v.Len()
	}
	if depth >= valueDepth || f.budget <= 0 {
		n.kind = scalarNode
		n.text = n.typ + "{…}"
		return n
	}
	switch v.Kind() {
	case reflect.Struct:
		n.kind = structNode
		t := v.Type()
		for i := range t.NumField() {
			n.keys = append(n.keys, scalar(t.Field(i).Name))
			item := f.field(v, i, depth+1)
			item.typed = true
			item.hidden = !t.Field(i).IsExported() && t.Field(i).PkgPath != "main" && shows(t)
			n.items = append(n.items, item)
		}
	case reflect.Slice, reflect.Array:
		n.kind = listNode
		if v.Type().Elem().Kind() == reflect.Uint8 && n.length > lineWidth/2 && !v.Type().Elem().Implements(stringer) {
			n.dump = true
			n.text = dumped(v, dumpBytes>>min(2*depth, 2))
			return n
		}
		for i := range f.shown(n.length, depth) {
			if f.budget <= 0 && i > 0 {
				break
			}
			n.items = append(n.items, f.build(v.Index(i), depth+1))
		}
	case reflect.Map:
		n.kind = mapNode
		for i, k := range f.keys(v, f.shown(n.length, depth)) {
			if f.budget <= 0 && i > 0 {
				break
			}
			n.keys = append(n.keys, f.build(k, depth+1))
			n.items = append(n.items, f.build(v.MapIndex(k), depth+1))
		}
	}
	return n
}

var stringer = reflect.TypeFor[fmt.Stringer]()

// field looks at a field. In a cell's own struct, one that isn't exported may write
// itself and is followed, though package fmt doesn't.
func (f *formatter) field(v reflect.Value, i, depth int) *node {
	t := v.Type().Field(i)
	if t.IsExported() || t.PkgPath != "main" {
		return f.build(v.Field(i), depth)
	}
	n := f.build(named.Field(v, i), depth)
	if n.kind == textNode {
		g := formatter{budget: lineWidth, seen: map[visit]bool{}}
		n.fmt = g.build(v.Field(i), depth)
		if n.fmt.kind == scalarNode && strings.HasPrefix(n.fmt.text, "0x") {
			n.fmt, f.addresses = nil, true
		}
	}
	return n
}

// shows says whether a struct has exported fields.
func shows(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			return true
		}
	}
	return false
}

// shown is how many of length elements are shown: a few more than elements says rather
// than a word on so few.
func (f *formatter) shown(length, depth int) int {
	if n := elements(depth); length > n+n/10 {
		return n
	}
	return length
}

// keys are the first n keys of a map in order, in time linear in its length.
func (f *formatter) keys(m reflect.Value, n int) []reflect.Value {
	if m.Len() <= n {
		keys := m.MapKeys()
		slices.SortStableFunc(keys, compareKeys)
		return keys
	}
	var kept []reflect.Value
	it := m.MapRange()
	for i := 0; i < sortedKeys && it.Next(); i++ {
		k := it.Key()
		if len(kept) == n && compareKeys(kept[n-1], k) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(kept, k, compareKeys)
		kept = slices.Insert(kept, at, k)
		kept = kept[:min(n, len(kept))]
	}
	return kept
}

func compareKeys(a, b reflect.Value) int {
	for a.Kind() == reflect.Interface && !a.IsNil() {
		a = a.Elem()
	}
	for b.Kind() == reflect.Interface && !b.IsNil() {
		b = b.Elem()
	}
	if a.Kind() != b.Kind() {
		return cmp.Compare(a.Kind(), b.Kind())
	}
	switch {
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	case a.CanFloat():
		return cmp.Compare(a.Float(), b.Float())
	}
	switch a.Kind() {
	case reflect.String:
		return strings.Compare(a.String(), b.String())
	case reflect.Bool:
		switch {
		case a.Bool() == b.Bool():
			return 0
		case b.Bool():
			return -1
		}
		return 1
	case reflect.Struct, reflect.Array:
		n := 0
		part := reflect.Value.Index
		if a.Kind() == reflect.Struct {
			n, part = a.NumField(), reflect.Value.Field
		} else {
			n = a.Len()
		}
		if a.Type() == b.Type() {
			for i := range n {
				if c := compareKeys(part(a, i), part(b, i)); c != 0 {
					return c
				}
			}
			return 0
		}
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return cmp.Compare(a.Pointer(), b.Pointer())
	}
	return strings.Compare(a.String(), b.String())
}

// dumped is the first n of a list of bytes, as text where it is text, and else in hexadecimal.
func dumped(v reflect.Value, n int) string {
	data := make([]byte, min(v.Len(), n))
	for i := range data {
		data[i] = byte(v.Index(i).Uint())
	}
	more := v.Len() - len(data)
	text := data
	for k := 0; more > 0 && k < utf8.UTFMax && !utf8.Valid(text); k++ {
		text = text[:len(text)-1]
	}
	if s := string(text); utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune("\n\r\t", r) }) {
		q := strconv.Quote(s)
		if more = v.Len() - len(s); more > 0 {
			q += fmt.Sprintf("… %s more of %s bytes", grouped(more), grouped(v.Len()))
		}
		return q
	}
	s := strings.TrimRight(hex.Dump(data), "\n")
	if more > 0 {
		s += fmt.Sprintf("\n… %s more of %s", grouped(more), grouped(v.Len()))
	}
	return s
}

// line writes n as %+v does, where that fits one line.
func (f *formatter) line(n *node) (string, bool) {
	w := liner{nice: f.addresses}
	ok := w.write(n)
	s := w.b.String()
	return s, ok && !strings.ContainsAny(s, "\n\r") && textWidth(s) <= lineWidth
}

// flat is all of n in the words of %+v, with … for what is missing.
func (n *node) flat(nice bool) string {
	w := liner{nice: nice, long: true}
	w.write(n)
	return w.b.String()
}

// A liner writes in one line, and gives up when that is full.
type liner struct {
	b    strings.Builder
	nice bool // fields write themselves
	long bool // never give up
}

func (w *liner) write(n *node) bool {
	if n.fmt != nil && !w.nice {
		n = n.fmt
	}
	if n.ref {
		w.b.WriteByte('&')
	}
	whole := true
	switch n.kind {
	case structNode:
		w.b.WriteByte('{')
		for i, item := range n.items {
			if i > 0 {
				w.b.WriteByte(' ')
			}
			w.b.WriteString(n.keys[i].text + ":")
			if !w.write(item) {
				return false
			}
		}
		w.b.WriteByte('}')
	case listNode, mapNode:
		whole = len(n.items) == n.length
		if !whole && !w.long {
			return false
		}
		if n.kind == mapNode {
			w.b.WriteString("map")
		}
		w.b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				w.b.WriteByte(' ')
			}
			if n.kind == mapNode {
				if !w.write(n.keys[i]) {
					return false
				}
				w.b.WriteByte(':')
			}
			if !w.write(item) {
				return false
			}
		}
		if n.dump {
			w.b.WriteString(grouped(n.length) + " bytes")
		} else if !whole {
			w.b.WriteString(" …")
		}
		w.b.WriteByte(']')
	default:
		if n.plain != "" || n.kind == stringNode {
			w.b.WriteString(n.plain)
		} else {
			w.b.WriteString(n.text)
		}
	}
	return w.long || w.b.Len() <= 4*lineWidth
}

// nested writes Go's syntax, indented.
type nested struct{ b strings.Builder }

const indentation = "    "

// inline is n in Go's syntax in one line, or "" where it is trimmed or too wide for
// width columns.
func inline(n *node, width int) string {
	if n.kind == textNode && strings.ContainsAny(n.text, "\n\r") || n.dump {
		return ""
	}
	if !n.composite() {
		return n.text
	}
	if len(n.items) != n.length && n.kind != structNode {
		return ""
	}
	var b strings.Builder
	b.WriteString(n.head())
	b.WriteByte('{')
	between := ""
	for i, item := range n.items {
		if item.hidden {
			continue
		}
		b.WriteString(between)
		between = ", "
		if n.keys != nil {
			k := inline(n.keys[i], width)
			if k == "" {
				return ""
			}
			b.WriteString(k + ": ")
		}
		s := inline(item, width)
		if s == "" || b.Len() > 4*width {
			return ""
		}
		b.WriteString(s)
	}
	b.WriteByte('}')
	if s := b.String(); textWidth(s) <= width {
		return s
	}
	return ""
}

func (n *node) head() string {
	s := ""
	if n.ref {
		s = "&"
	}
	if n.typed || n.ref {
		s += n.typ
	}
	return s
}

func (w *nested) pad(depth int) { w.b.WriteString(strings.Repeat(indentation, depth)) }

// write writes n, whose line has used columns already.
func (w *nested) write(n *node, depth, used int) {
	width := lineWidth - depth*len(indentation) - used
	if s := inline(n, max(width, 20)); s != "" && depth > 0 {
		w.b.WriteString(s)
		return
	}
	if n.kind == textNode {
		for i, line := range strings.Split(strings.TrimRight(n.text, "\n"), "\n") {
			if i > 0 {
				w.b.WriteByte('\n')
				w.pad(depth + 1)
			}
			w.b.WriteString(line)
		}
		return
	}
	if !n.composite() {
		w.b.WriteString(n.text)
		return
	}
	if n.ref {
		w.b.WriteByte('&')
	}
	w.b.WriteString(n.typ)
	if n.dump {
		w.b.WriteByte('(')
		lines := strings.Split(n.text, "\n")
		for _, line := range lines {
			if len(lines) > 1 {
				w.b.WriteByte('\n')
				w.pad(depth + 1)
			}
			w.b.WriteString(line)
		}
		if len(lines) > 1 {
			w.b.WriteByte('\n')
			w.pad(depth)
		}
		w.b.WriteByte(')')
		return
	}
	w.b.WriteByte('{')
	if n.kind == listNode && w.filled(n, depth+1) {
		w.pad(depth)
		w.b.WriteByte('}')
		return
	}
	hidden := 0
	for i, item := range n.items {
		if item.hidden {
			hidden++
			continue
		}
		w.b.WriteByte('\n')
		w.pad(depth + 1)
		used := 0
		if n.keys != nil {
			key := inline(n.keys[i], lineWidth/2)
			if key == "" {
				key = cut(visible(n.keys[i].flat(true)), lineWidth/2)
			}
			w.b.WriteString(key + ": ")
			used = textWidth(key) + 2
		}
		w.write(item, depth+1, used)
		w.b.WriteByte(',')
	}
	w.b.WriteByte('\n')
	if hidden > 0 {
		w.pad(depth + 1)
		fmt.Fprintf(&w.b, "… %d unexported\n", hidden)
	}
	w.more(n, depth+1)
	w.pad(depth)
	w.b.WriteByte('}')
}

// more says how many elements are missing.
func (w *nested) more(n *node, depth int) {
	if more := n.length - len(n.items); n.kind != structNode && more > 0 {
		w.pad(depth)
		fmt.Fprintf(&w.b, "… %s more of %s\n", grouped(more), grouped(n.length))
	}
}

// filled writes a list of short elements as many on a line as fit.
func (w *nested) filled(n *node, depth int) bool {
	texts := make([]string, len(n.items))
	for i, item := range n.items {
		if item.composite() {
			return false
		}
		texts[i] = inline(item, lineWidth)
		if texts[i] == "" || textWidth(texts[i]) > 24 {
			return false
		}
	}
	used := lineWidth
	for _, s := range texts {
		if k := textWidth(s) + 2; used+k > lineWidth-depth*len(indentation) {
			w.b.WriteByte('\n')
			w.pad(depth)
			used = k
		} else {
			w.b.WriteByte(' ')
			used += k
		}
		w.b.WriteString(s + ",")
	}
	w.b.WriteByte('\n')
	w.more(n, depth)
	return true
}
