package checkpoint

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxHeader = 100_000_000 // the format's own limit
	maxIndex  = 256 << 20   // K3's index, the largest known, is about 65 MB
)

// metadataKey is the one header key that is no tensor.
const metadataKey = "__metadata__"

// parseFile checks a whole safetensors file and returns its tensors in header
// order, as views of data.
func parseFile(file string, data []byte) ([]Tensor, map[string]string, error) {
	const lfs = "version https://git-lfs"
	if len(data) >= len(lfs) && string(data[:len(lfs)]) == lfs {
		return nil, nil, &FileError{File: file, Want: "safetensors", Got: "a Git LFS pointer to it", Fix: "run git lfs pull in its directory"}
	}
	if len(data) < 8 {
		return nil, nil, &FileError{File: file, Want: "safetensors, 8 bytes at least", Got: fmt.Sprintf("%d bytes", len(data))}
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader {
		return nil, nil, &FileError{File: file, Want: fmt.Sprintf("a header of at most %d bytes", maxHeader), Got: fmt.Sprintf("length %d", n),
			Fix: "check that it is a safetensors file, and download it again"}
	}
	if n > uint64(len(data)-8) {
		return nil, nil, &FileError{File: file, Want: fmt.Sprintf("a header of %d bytes", n), Got: fmt.Sprintf("a file of %d bytes", len(data))}
	}
	p := parser{file: file, base: 8}
	if err := p.text(data[8 : 8+n]); err != nil {
		return nil, nil, err
	}
	tensors, metadata, err := p.header(data[8+n:])
	if err != nil {
		return nil, nil, err
	}
	return tensors, metadata, nil
}

// parser reads the two JSON documents of a checkpoint. It knows their grammar,
// so that a header of 6,600 tensors takes a few milliseconds and duplicate keys are
// seen; encoding/json takes several times as long and keeps the last of two.
// What it accepts is always JSON, and means the same to encoding/json.
type parser struct {
	file string
	base int64 // offset in the file of s[0]
	s    string
	at   int
	dims []int // shapes are cut from this
	ends []int // the last data_offsets
}

// text takes a copy of b, which must be UTF-8.
func (p *parser) text(b []byte) error {
	p.s = string(b)
	if utf8.ValidString(p.s) {
		return nil
	}
	for i, r := range p.s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(p.s[i:]); n == 1 {
				p.at = i
				break
			}
		}
	}
	return p.fail("UTF-8", fmt.Sprintf("byte 0x%02x", p.s[p.at]))
}

func (p *parser) fail(want, got string) error {
	return &FileError{File: p.file, Offset: p.base + int64(p.at), Want: want, Got: got}
}

// unexpected is fail with what stands at the parser's place.
func (p *parser) unexpected(want string) error {
	if p.at >= len(p.s) {
		return p.fail(want, "the end")
	}
	r, _ := utf8.DecodeRuneInString(p.s[p.at:])
	return p.fail(want, strconv.QuoteRune(r))
}

// space moves to the next character that is not white space.
func (p *parser) space() {
	for p.at < len(p.s) {
		switch p.s[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// next reports whether c comes next, after space, and if so moves behind it.
func (p *parser) next(c byte) bool {
	p.space()
	if p.at < len(p.s) && p.s[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) need(c byte) error {
	if !p.next(c) {
		return p.unexpected("'" + string(rune(c)) + "'")
	}
	return nil
}

// object calls member for each key, at its value.
func (p *parser) object(member func(key string) error) error {
	if err := p.need('{'); err != nil {
		return err
	}
	if p.next('}') {
		return nil
	}
	for {
		key, err := p.str()
		if err != nil {
			return err
		}
		if err := p.need(':'); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		if p.next('}') {
			return nil
		}
		if !p.next(',') {
			return p.unexpected("',' or '}'")
		}
	}
}

// end checks that only space is left.
func (p *parser) end() error {
	if p.space(); p.at < len(p.s) {
		return p.unexpected("the end")
	}
	return nil
}

func (p *parser) str() (string, error) {
	if !p.next('"') {
		return "", p.unexpected("a string")
	}
	begin, plain := p.at, true
	for ; p.at < len(p.s); p.at++ {
		switch c := p.s[p.at]; {
		case c == '"':
			s := p.s[begin:p.at]
			p.at++
			if plain {
				return s, nil
			}
			var decoded string
			if err := json.Unmarshal([]byte(p.s[begin-1:p.at]), &decoded); err != nil {
				p.at = begin - 1
				return "", p.fail("a JSON string", show(s))
			}
			return decoded, nil
		case c == '\\':
			plain = false
			p.at++ // whatever is escaped does not end the string
		case c < ' ':
			return "", p.unexpected("a string without control characters")
		}
	}
	p.at = len(p.s)
	return "", p.unexpected("the end of a string")
}

// natural reads an integer that is not negative and fits an int.
func (p *parser) natural() (int, error) {
	p.space()
	begin := p.at
	for p.at < len(p.s) && p.s[p.at]-'0' <= 9 {
		p.at++
	}
	digits := p.s[begin:p.at]
	more := p.at < len(p.s) && strings.IndexByte(".eE-+", p.s[p.at]) >= 0
	n, err := strconv.Atoi(digits)
	if err != nil || more || (len(digits) > 1 && digits[0] == '0') {
		for p.at < len(p.s) && p.at-begin < 40 && strings.IndexByte("0123456789.eE-+", p.s[p.at]) >= 0 {
			p.at++
		}
		got := p.s[begin:p.at]
		p.at = begin
		want := fmt.Sprintf("an integer from 0 to %d", math.MaxInt)
		if got == "" {
			return 0, p.unexpected(want)
		}
		return 0, p.fail(want, clip(got))
	}
	return n, nil
}

// naturals reads an array of integers and appends them to to.
func (p *parser) naturals(to []int) ([]int, error) {
	if err := p.need('['); err != nil {
		return to, err
	}
	if p.next(']') {
		return to, nil
	}
	for {
		n, err := p.natural()
		if err != nil {
			return to, err
		}
		to = append(to, n)
		if p.next(']') {
			return to, nil
		}
		if !p.next(',') {
			return to, p.unexpected("',' or ']'")
		}
	}
}

// skip passes any JSON value.
func (p *parser) skip() error {
	p.space()
	begin, depth := p.at, 0
	for p.at < len(p.s) {
		switch p.s[p.at] {
		case '"':
			if _, err := p.str(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return p.valid(begin)
			}
			if p.s[p.at] != ',' {
				depth--
			}
		}
		p.at++
	}
	return p.valid(begin)
}

// valid checks that a skipped value was JSON.
func (p *parser) valid(begin int) error {
	if !json.Valid([]byte(p.s[begin:p.at])) {
		p.at = begin
		return p.unexpected("a JSON value")
	}
	return nil
}

// header reads a safetensors header whose tensors lie in data.
func (p *parser) header(data []byte) ([]Tensor, map[string]string, error) {
	var metadata map[string]string
	tensors := make([]Tensor, 0, len(p.s)/128)
	dataAt := p.base + int64(len(p.s))
	err := p.object(func(name string) error {
		if name == metadataKey {
			if metadata != nil {
				return p.fail(metadataKey+" once", "it twice")
			}
			metadata = map[string]string{}
			return p.pairs(metadata)
		}
		t, err := p.tensor(name, data)
		if err != nil {
			return err
		}
		t.Offset += dataAt
		tensors = append(tensors, t)
		return nil
	})
	if err == nil {
		err = p.end()
	}
	if err == nil {
		err = p.tiling(tensors, dataAt, dataAt+int64(len(data)))
	}
	return tensors, metadata, err
}

// pairs reads an object of strings.
func (p *parser) pairs(to map[string]string) error {
	return p.object(func(key string) error {
		if _, ok := to[key]; ok {
			return p.fail("each key once", show(key)+" twice")
		}
		value, err := p.str()
		to[key] = value
		return err
	})
}

// tensor reads what the header says of one tensor. The returned Offset counts
// from the first byte of data.
func (p *parser) tensor(name string, data []byte) (Tensor, error) {
	t := Tensor{Name: name, File: p.file}
	var seen [3]bool
	err := p.object(func(key string) (err error) {
		field := slices.Index([]string{"dtype", "shape", "data_offsets"}, key)
		if field < 0 {
			return p.fail("dtype, shape and data_offsets of "+show(name), "key "+show(key))
		}
		if seen[field] {
			return p.fail("each key of "+show(name)+" once", show(key)+" twice")
		}
		seen[field] = true
		switch field {
		case 0:
			var s string
			s, err = p.str()
			t.DType = DType(s)
		case 1:
			begin := len(p.dims)
			p.dims, err = p.naturals(p.dims)
			t.Shape = p.dims[begin:len(p.dims):len(p.dims)]
		case 2:
			p.ends, err = p.naturals(p.ends[:0])
		}
		return err
	})
	if err != nil {
		return t, err
	}
	fail := func(want, got string) (Tensor, error) {
		return t, &TensorError{Tensor: name, File: p.file, Want: want, Got: got}
	}
	if seen != [3]bool{true, true, true} {
		return fail("its dtype, shape and data_offsets", "not all of them")
	}
	if t.DType.Bits() == 0 {
		return fail("a dtype of safetensors", "dtype "+show(string(t.DType)))
	}
	if len(p.ends) != 2 || p.ends[0] > p.ends[1] {
		return fail("data_offsets [begin end]", numbers(p.ends))
	}
	begin, end := p.ends[0], p.ends[1]
	if end > len(data) {
		return fail(fmt.Sprintf("bytes %d to %d of the data", begin, end), fmt.Sprintf("a file with %d bytes of data", len(data)))
	}
	size, ok := t.DType.Size(t.Shape)
	if !ok {
		return fail("a shape whose bytes can be counted", describe(t.DType, t.Shape))
	}
	if int64(end-begin) != size {
		return fail(fmt.Sprintf("%d bytes for %s", size, describe(t.DType, t.Shape)), fmt.Sprintf("data_offsets of %d bytes", end-begin))
	}
	t.Offset, t.Data = int64(begin), data[begin:end:end]
	return t, nil
}

// tiling checks that the tensors fill the file from begin to end without
// overlap or gap, as the format demands.
func (p *parser) tiling(tensors []Tensor, begin, end int64) error {
	order := tensors
	byPlace := func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), len(a.Data)-len(b.Data))
	}
	if !slices.IsSortedFunc(order, byPlace) {
		order = slices.Clone(tensors)
		slices.SortStableFunc(order, byPlace)
	}
	at := begin
	for _, t := range order {
		if t.Offset != at {
			got := "a gap before it"
			if t.Offset < at {
				got = "it beginning inside another tensor"
			}
			return &TensorError{Tensor: t.Name, File: p.file,
				Want: fmt.Sprintf("it at byte %d of the data, behind the tensor before", at-begin),
				Got:  fmt.Sprintf("it at byte %d, %s", t.Offset-begin, got)}
		}
		at += int64(len(t.Data))
	}
	if at != end {
		return &FileError{File: p.file, Want: fmt.Sprintf("%d bytes", at), Got: fmt.Sprintf("%d bytes", end)}
	}
	return nil
}

// parseIndex returns the shard of each tensor.
func parseIndex(file string, data []byte) (map[string]string, error) {
	if len(data) > maxIndex {
		return nil, &FileError{File: file, Want: fmt.Sprintf("an index of at most %d bytes", maxIndex), Got: fmt.Sprintf("%d bytes", len(data))}
	}
	p := parser{file: file}
	if err := p.text(data); err != nil {
		return nil, err
	}
	var where map[string]string
	err := p.object(func(key string) error {
		if key != "weight_map" {
			return p.skip()
		}
		if where != nil {
			return p.fail("weight_map once", "it twice")
		}
		where = make(map[string]string, len(p.s)/128)
		return p.pairs(where)
	})
	if err == nil {
		err = p.end()
	}
	if err == nil && len(where) == 0 {
		err = &FileError{File: file, Want: "a weight_map with tensors", Got: "none"}
	}
	return where, err
}
