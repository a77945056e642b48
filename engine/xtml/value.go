package xtml

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

type kind uint8

const (
	nullKind kind = iota
	booleanKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

// kinds are the names that the template's type attribute has for them.
var kinds = [...]string{"null", "boolean", "number", "string", "array", "object"}

func (k kind) String() string { return kinds[k] }

// value is a JSON value that keeps the order of keys and the digits of numbers.
type value struct {
	kind    kind
	text    string // of a string, unescaped; of a number or boolean, as written
	items   []value
	members []member
}

type member struct {
	key string
	value
}

// parseValue reads one JSON text; ok is false where it isn't JSON. A key that comes
// twice has its last value, in its first place.
func parseValue(data []byte) (v value, ok bool) {
	if !json.Valid(data) { // which also bounds the depth
		return value{}, false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return readValue(d), true
}

// readValue reads the next value of JSON that is known to be valid.
func readValue(d *json.Decoder) value {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch t := token.(type) {
	case nil:
		return value{kind: nullKind, text: "null"}
	case bool:
		return value{kind: booleanKind, text: strconv.FormatBool(t)}
	case json.Number:
		return value{kind: numberKind, text: t.String()}
	case string:
		return value{kind: stringKind, text: t}
	}
	v := value{kind: arrayKind}
	if token == json.Delim('{') {
		v.kind = objectKind
	}
	places := make(map[string]int)
	for d.More() {
		if v.kind == arrayKind {
			v.items = append(v.items, readValue(d))
			continue
		}
		key, err := d.Token()
		if err != nil {
			panic(err)
		}
		m := member{key.(string), readValue(d)}
		if i, ok := places[m.key]; ok {
			v.members[i] = m
			continue
		}
		places[m.key] = len(v.members)
		v.members = append(v.members, m)
	}
	if _, err := d.Token(); err != nil {
		panic(err)
	}
	return v
}

// member gives an object's member, ok only if it is there.
func (v value) member(key string) (value, bool) {
	for _, m := range v.members {
		if m.key == key {
			return m.value, true
		}
	}
	return value{}, false
}

// layout says how a value is written.
type layout struct {
	comma, colon string
	sorted       bool // keys in the order of their code points
}

// The template's layouts: of a value that is kept for later or shown in an error, of
// declarations and schemas, and of arguments.
var (
	compact = layout{",", ":", false}
	sorted  = layout{",", ":", true}
	spaced  = layout{", ", ": ", false}
)

// append writes the value as JSON. Only what JSON must escape is escaped.
func (v value) append(dst []byte, l layout) []byte {
	switch v.kind {
	case nullKind:
		return append(dst, "null"...)
	case booleanKind:
		return append(dst, v.text...)
	case numberKind:
		return append(dst, number(v.text)...)
	case stringKind:
		return appendString(dst, v.text)
	case arrayKind:
		dst = append(dst, '[')
		for i, item := range v.items {
			if i > 0 {
				dst = append(dst, l.comma...)
			}
			dst = item.append(dst, l)
		}
		return append(dst, ']')
	}
	members := v.members
	if l.sorted {
		members = slices.SortedFunc(slices.Values(members), func(a, b member) int { return strings.Compare(a.key, b.key) })
	}
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, l.comma...)
		}
		dst = appendString(dst, m.key)
		dst = append(dst, l.colon...)
		dst = m.append(dst, l)
	}
	return append(dst, '}')
}

// number gives a number's text as the reference writes what it read: an integer as it
// is (-0 is 0), anything else as the shortest digits that give the same float64, with
// an exponent below 1e-4 and from 1e16. So 1.5 stays, 1.50 becomes 1.5 and 1e5
// 100000.0. A number beyond float64 stays as written.
func number(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			return "0"
		}
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	scientific := strconv.FormatFloat(f, 'e', -1, 64)
	_, digits, _ := strings.Cut(scientific, "e")
	if exponent, _ := strconv.Atoi(digits); exponent < -4 || exponent >= 16 {
		return scientific
	}
	fixed := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(fixed, ".") {
		fixed += ".0"
	}
	return fixed
}

// appendString writes a JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch b := s[i]; b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		default:
			if b < 0x20 {
				dst = append(dst, `\u00`...)
				dst = append(dst, "0123456789abcdef"[b>>4], "0123456789abcdef"[b&15])
			} else {
				dst = append(dst, b)
			}
		}
	}
	return append(dst, '"')
}
