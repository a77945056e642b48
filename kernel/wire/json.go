package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"unicode/utf8"
)

// JSON encodes any value as strict JSON in valid UTF-8 and never fails, because
// what a cell shows comes from the cell: NaN and infinities become null, invalid
// UTF-8 and lone surrogates become U+FFFD, and a part that can't be encoded at all
// (a channel, a broken json.RawMessage) becomes null.
func JSON(v any) json.RawMessage {
	b, err := marshal(v)
	if err != nil {
		if b, err = marshal(newRebuild().plain(reflect.ValueOf(v), 0)); err != nil {
			return json.RawMessage("null")
		}
	}
	return strict(b)
}

// marshal is json.Marshal without escaping for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// strict repairs what encoding/json passes through from a json.RawMessage or a
// MarshalJSON: invalid UTF-8, and escapes of half a surrogate pair, which other
// languages' parsers take and then can't write.
func strict(b []byte) []byte {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	if bytes.Contains(b, []byte(`\ud`)) || bytes.Contains(b, []byte(`\uD`)) {
		var v any
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if d.Decode(&v) == nil {
			if again, err := marshal(v); err == nil {
				return again
			}
		}
	}
	return b
}

// rebuild makes of a value that encoding/json refused one of maps, slices and scalars
// that it takes.
type rebuild struct {
	path    map[reference]bool // what plain is inside of
	refused map[reference]bool // what encoding/json has refused
	again   int                // parts of refused references that may still be rebuilt once more
}

// reference is what can close a circle: a pointer, a map or a slice.
type reference struct {
	at   uintptr
	size int
	of   reflect.Type
}

// newRebuild gives a rebuild for one value. Parts that are reached in several ways are
// rebuilt for each, up to a bound: a graph can have more paths than memory has bytes.
func newRebuild() *rebuild {
	return &rebuild{path: map[reference]bool{}, refused: map[reference]bool{}, again: 1 << 16}
}

// inside rebuilds the content of a reference of size parts, unless encoding/json takes
// it, it is inside of itself, or it has been rebuilt too often.
func (r *rebuild) inside(v reflect.Value, size int, content func() any) any {
	if v.IsNil() {
		return nil
	}
	ref := reference{v.Pointer(), size, v.Type()}
	switch {
	case r.path[ref]:
		return nil
	case !r.refused[ref]:
		if ok(v) {
			return v.Interface()
		}
		r.refused[ref] = true
	case r.again < 1+size:
		return nil
	default:
		r.again -= 1 + size
	}
	r.path[ref] = true
	defer delete(r.path, ref)
	return content()
}

func (r *rebuild) plain(v reflect.Value, depth int) any {
	if !v.IsValid() || depth > 100 {
		return nil
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
	case reflect.Interface:
		return r.plain(v.Elem(), depth+1)
	case reflect.Pointer:
		return r.inside(v, 1, func() any { return r.plain(v.Elem(), depth+1) })
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			break
		}
		return r.inside(v, v.Len(), func() any {
			out := make(map[string]any, v.Len())
			for it := v.MapRange(); it.Next(); {
				out[it.Key().String()] = r.plain(it.Value(), depth+1)
			}
			return out
		})
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break // bytes, or a broken json.RawMessage
		}
		return r.inside(v, v.Len(), func() any { return r.items(v, depth) })
	case reflect.Array:
		if ok(v) {
			return v.Interface()
		}
		return r.items(v, depth)
	case reflect.Struct:
		if ok(v) {
			return v.Interface()
		}
		out := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name, _, _ := bytes.Cut([]byte(f.Tag.Get("json")), []byte(","))
			switch string(name) {
			case "-":
				continue
			case "":
				name = []byte(f.Name)
			}
			out[string(name)] = r.plain(v.Field(i), depth+1)
		}
		return out
	}
	if ok(v) {
		return v.Interface()
	}
	return nil
}

func (r *rebuild) items(v reflect.Value, depth int) []any {
	out := make([]any, v.Len())
	for i := range out {
		out[i] = r.plain(v.Index(i), depth+1)
	}
	return out
}

// ok says whether encoding/json takes a value as it is.
func ok(v reflect.Value) bool {
	if !v.CanInterface() {
		return false
	}
	_, err := json.Marshal(v.Interface())
	return err == nil
}

const hexDigits = "0123456789abcdef"

// plainByte marks the ASCII bytes that stand for themselves in a JSON string.
var plainByte = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// AppendString appends s as a JSON string, in which only what JSON must escape is
// escaped; invalid UTF-8 becomes U+FFFD. encoding/json, which reads the same text from
// it, is slower: a cell's 100 MB of output pass through here.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plainByte[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
