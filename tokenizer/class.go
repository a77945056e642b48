package tokenizer

import "unicode/utf8"

// class says which sets of the split pattern a code point is in.
type class uint8

const (
	upper  class = 1 << iota // \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}, but not Han
	lower                    // \p{Ll}\p{Lm}\p{Lo}\p{M}, but not Han
	word                     // \p{L}\p{N}
	number                   // \p{N}
	han                      // \p{Han}
	space                    // \s: White_Space
)

// classTable holds the class of every code point in pages of 256, equal pages once.
type classTable struct {
	ascii [utf8.RuneSelf]class
	pages [(utf8.MaxRune + 1) >> 8]*[256]class
}

func newClassTable() *classTable {
	t := new(classTable)
	unique := make(map[[256]class]*[256]class)
	run := 0
	for p := range t.pages {
		page := new([256]class)
		for i := range page {
			c := uint32(p<<8 | i)
			for run+1 < len(classRuns) && classRuns[run+1]>>8 <= c {
				run++
			}
			page[i] = class(classRuns[run])
		}
		if same, ok := unique[*page]; ok {
			page = same
		} else {
			unique[*page] = page
		}
		t.pages[p] = page
	}
	copy(t.ascii[:], t.pages[0][:])
	return t
}

// at gives the code point that text holds at byte i, its length in bytes and its
// class; at the end of the text the length is 0 and the class is empty.
func (t *classTable) at(text string, i int) (r rune, n int, c class) {
	if i >= len(text) {
		return 0, 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return rune(b), 1, t.ascii[b]
	}
	r, n = utf8.DecodeRuneInString(text[i:])
	return r, n, t.pages[r>>8][r&0xff]
}

// run gives the end of the run from byte i of code points in any of the classes.
func (t *classTable) run(text string, i int, any class) int {
	for i < len(text) {
		_, n, c := t.at(text, i)
		if c&any == 0 {
			break
		}
		i += n
	}
	return i
}
