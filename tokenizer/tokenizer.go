// Package tokenizer turns text into Kimi K3's token ids and back (docs/k3.md,
// Tokenizer): tiktoken ranks, a split pattern written by hand, byte-pair merges,
// and 256 special ids after the ranks.
//
// Text is UTF-8. Bytes that are not valid UTF-8, in a prompt or from a model, read
// as U+FFFD, one for each maximal invalid sequence, the way the Unicode standard
// recommends.
package tokenizer

import (
	"iter"
	"strings"
)

// SpecialCount is the number of special ids after the ranks.
const SpecialCount = 256

// Tokenizer is read-only after Load: any number of goroutines may use it at once.
type Tokenizer struct {
	tokens   [][]byte         // by id: the bytes of ranks, then the names of special ids
	rank     map[string]int32 // a rank's bytes → the rank
	longest  int              // bytes of the longest rank
	base     int              // number of ranks
	specials map[string]int   // name → id, in [base, base+SpecialCount)
	class    *classTable

	bySpecialByte [256][]special // specials by the first byte of their names, the longest first
}

type special struct {
	name string
	id   int
}

// Encode gives the ids of a user's text. Specials in it are never recognised:
// "<|open|>" encodes as the characters it is written with. The empty text has no ids.
func (t *Tokenizer) Encode(text string) []int {
	ids := make([]int, 0, len(text)/3+1)
	for part := range t.EncodeParts(text) {
		ids = append(ids, part...)
	}
	return ids
}

// EncodeParts gives the ids of Encode part by part, each of at most 400,000
// characters, for a caller that may have to stop. A part is valid until the next.
func (t *Tokenizer) EncodeParts(text string) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		m := merger{t: t}
		var ids []int
		for slice := range t.slices(validUTF8(text)) {
			if ids = m.appendText(ids[:0], slice); !yield(ids) {
				return
			}
		}
	}
}

// EncodeMarkup gives the ids of trusted template text, in which the names of
// specials stand for their ids: leftmost first, the longest name among equals.
func (t *Tokenizer) EncodeMarkup(text string) []int {
	var ids []int
	m := merger{t: t}
	for slice := range t.slices(validUTF8(text)) {
		from := 0
		for at := 0; at < len(slice); {
			name, id := t.specialAt(slice[at:])
			if name == "" {
				at++
				continue
			}
			ids = m.appendText(ids, slice[from:at])
			ids = append(ids, id)
			at += len(name)
			from = at
		}
		ids = m.appendText(ids, slice[from:])
	}
	return ids
}

// specialAt gives the longest special that text begins with, or "".
func (t *Tokenizer) specialAt(text string) (name string, id int) {
	for _, s := range t.bySpecialByte[text[0]] {
		if strings.HasPrefix(text, s.name) {
			return s.name, s.id
		}
	}
	return "", 0
}

// Pieces gives what the split pattern makes of a text, in order: joined, they are
// the text (as validUTF8 reads it). No piece is empty.
func (t *Tokenizer) Pieces(text string) []string {
	var pieces []string
	for slice := range t.slices(validUTF8(text)) {
		for len(slice) > 0 {
			n := t.class.piece(slice)
			pieces = append(pieces, slice[:n])
			slice = slice[n:]
		}
	}
	return pieces
}

// Bytes gives the bytes of a rank or the name of a special id; nil for an id out of
// range. The caller must not change them.
func (t *Tokenizer) Bytes(id int) []byte {
	if id < 0 || id >= len(t.tokens) {
		return nil
	}
	return t.tokens[id]
}

// Base is the number of ranks, and the first special id.
func (t *Tokenizer) Base() int { return t.base }

// VocabSize is the number of ids: Base and the 256 specials.
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// Special gives the id of a special's name, such as "<|open|>" or "[EOS]".
func (t *Tokenizer) Special(name string) (id int, ok bool) {
	id, ok = t.specials[name]
	return id, ok
}
