package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode gives the text of ids, specials by their names. Bytes that are not valid
// UTF-8 read as U+FFFD (package documentation). Ids out of range give nothing.
func (t *Tokenizer) Decode(ids []int) string {
	d := t.NewDecoder()
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(d.Push(id))
	}
	text.WriteString(d.Flush())
	return text.String()
}

// Decoder turns a stream of ids into text, holding back the bytes of an incomplete
// rune: what Push and a last Flush give, joined, is Decode of all the ids. It belongs
// to one goroutine.
type Decoder struct {
	t    *Tokenizer
	held []byte // the beginning of a rune, at most three bytes between calls
}

// NewDecoder gives a Decoder that holds nothing.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// Push takes the next id and gives the text that it completes, which may be empty.
func (d *Decoder) Push(id int) string {
	d.held = append(d.held, d.t.Bytes(id)...)
	n := len(d.held)
	for back := 1; back <= min(n, utf8.UTFMax-1); back++ {
		if b := d.held[n-back]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && incomplete(d.held[n-back:]) {
				n -= back
			}
			break
		}
	}
	text := validUTF8(string(d.held[:n]))
	d.held = append(d.held[:0], d.held[n:]...)
	return text
}

// Flush gives what is held back at the end of a stream, U+FFFD or nothing, and makes
// the Decoder ready for another stream.
func (d *Decoder) Flush() string {
	text := validUTF8(string(d.held))
	d.held = d.held[:0]
	return text
}

// incomplete reports whether b, which is not empty, is the beginning of a valid rune
// that has more bytes.
func incomplete(b []byte) bool {
	return invalidLength(string(b)) == len(b) && !utf8.FullRune(b)
}

// validUTF8 gives the text with U+FFFD for each maximal invalid sequence: the longest
// beginning of a rune that the bytes hold, or else one byte.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var valid strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			n = invalidLength(text)
		}
		valid.WriteRune(r)
		text = text[n:]
	}
	return valid.String()
}

// invalidLength gives the length of the maximal invalid sequence that text, which is
// not empty, begins with: 1, or more for the beginning of a rune (Unicode 16.0,
// table 3-7, for the second byte's range).
func invalidLength(text string) int {
	var size int
	second := [2]byte{0x80, 0xbf}
	switch b := text[0]; {
	case 0xc2 <= b && b <= 0xdf:
		size = 2
	case 0xe0 <= b && b <= 0xef:
		size = 3
		if b == 0xe0 {
			second[0] = 0xa0
		} else if b == 0xed {
			second[1] = 0x9f
		}
	case 0xf0 <= b && b <= 0xf4:
		size = 4
		if b == 0xf0 {
			second[0] = 0x90
		} else if b == 0xf4 {
			second[1] = 0x8f
		}
	default:
		return 1
	}
	n := 1
	for n < min(size-1, len(text)) {
		low, high := byte(0x80), byte(0xbf)
		if n == 1 {
			low, high = second[0], second[1]
		}
		if text[n] < low || high < text[n] {
			break
		}
		n++
	}
	return n
}
