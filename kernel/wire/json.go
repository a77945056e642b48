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
		if b, err = marshal(plain(reflect.ValueOf(v), 0)); err != nil {
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

// plain rebuilds a value that encoding/json refused from maps, slices and scalars.
func plain(v reflect.Value, depth int) any {
	if !v.IsValid() || depth > 100 {
		return nil
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if ok(v) {
			return v.Interface()
		}
		return plain(v.Elem(), depth+1)
	case reflect.Map:
		if v.IsNil() || v.Type().Key().Kind() != reflect.String {
			break
		}
		out := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			out[it.Key().String()] = plain(it.Value(), depth+1)
		}
		return out
	case reflect.Slice, reflect.Array:
		if ok(v) {
			return v.Interface()
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // a broken json.RawMessage
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i), depth+1)
		}
		return out
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
			out[string(name)] = plain(v.Field(i), depth+1)
		}
		return out
	}
	if ok(v) {
		return v.Interface()
	}
	return nil
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

// AppendString appends s as a JSON string; invalid UTF-8 becomes U+FFFD. It is what
// encoding/json writes, faster: a cell's 100 MB of output pass through here.
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
