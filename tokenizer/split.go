package tokenizer

import "iter"

const (
	sliceRunes = 400_000 // code points in a slice of text
	runRunes   = 25_000  // code points in a run of whitespace or of anything else
)

// slices cuts a text before the pattern sees it, as the reference does: after every
// 400,000 code points, and within such a slice before a code point that would be the
// 25,001st of a run of whitespace or of non-whitespace, counting afresh from there.
// Whitespace here is White_Space and U+001C to U+001F.
func (t *Tokenizer) slices(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from, runes, run := 0, 0, 0
		var inSpace bool
		for i := 0; i < len(text); {
			r, n, c := t.class.at(text, i)
			isSpace := c&space != 0 || 0x1c <= r && r <= 0x1f
			switch {
			case runes == sliceRunes:
				if !yield(text[from:i]) {
					return
				}
				from, runes, run = i, 0, 0
			case run == runRunes && isSpace == inSpace:
				if !yield(text[from:i]) {
					return
				}
				from, run = i, 0
			case isSpace != inSpace:
				run = 0
			}
			inSpace = isSpace
			runes++
			run++
			i += n
		}
		if from < len(text) {
			yield(text[from:])
		}
	}
}

// piece gives the length in bytes of the split pattern's first match in text, which
// is not empty and is matched from its start whatever it holds. The alternatives, in
// order, as docs/k3.md has them:
//
//	1  [\p{Han}]+
//	2  [^\r\n\p{L}\p{N}]?[upper]*[lower]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	3  [^\r\n\p{L}\p{N}]?[upper]+[lower]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	4  \p{N}{1,3}
//	5   ?[^\s\p{L}\p{N}]+[\r\n]*
//	6  \s*[\r\n]+
//	7  \s+(?!\S)
//	8  \s+
//
// Letters without case and marks are in both upper and lower.
func (t *classTable) piece(text string) int {
	r, n, c := t.at(text, 0)
	if c&han != 0 {
		return t.run(text, n, han) // 1
	}

	// 2 and 3: with the optional first character, then without it.
	prefixed := c&word == 0 && r != '\r' && r != '\n'
	if prefixed {
		if end := t.lowerWord(text, n); end > 0 {
			return end
		}
	}
	if c&(upper|lower) != 0 {
		if end := t.lowerWord(text, 0); end > 0 {
			return end
		}
	}
	if prefixed {
		if end := t.run(text, n, upper); end > n {
			return t.contraction(text, end)
		}
	}
	if c&upper != 0 {
		return t.contraction(text, t.run(text, n, upper))
	}

	if c&number != 0 { // 4
		end := n
		for range 2 {
			_, n, c := t.at(text, end)
			if c&number == 0 {
				break
			}
			end += n
		}
		return end
	}

	// 5
	from := 0
	if r == ' ' {
		from = 1
	}
	if end := t.symbols(text, from); end > from {
		for end < len(text) && isNewline(text[end]) {
			end++
		}
		return end
	}

	// 6, 7 and 8: what is left is whitespace.
	end, last, newline := n, 0, 0 // last: where the run's last character begins; newline: after its last \r or \n
	if isNewline(text[0]) {
		newline = 1
	}
	for end < len(text) {
		_, n, c := t.at(text, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if isNewline(text[last]) {
			newline = end
		}
	}
	switch {
	case newline > 0:
		return newline
	case end == len(text) || last == 0:
		return end
	default:
		return last
	}
}

// lowerWord matches [upper]*[lower]+ and a contraction from byte i, and gives the
// match's end, or 0 for none. Where [lower]+ finds nothing after the longest run of
// upper, the run gives back down to its last character that is in lower too.
func (t *classTable) lowerWord(text string, i int) int {
	end := 0
	for {
		_, n, c := t.at(text, i)
		if c&upper == 0 {
			break
		}
		i += n
		if c&lower != 0 {
			end = i
		}
	}
	if after := t.run(text, i, lower); after > i {
		end = after
	}
	if end == 0 {
		return 0
	}
	return t.contraction(text, end)
}

// symbols gives the end of the run from byte i of [^\s\p{L}\p{N}].
func (t *classTable) symbols(text string, i int) int {
	for i < len(text) {
		_, n, c := t.at(text, i)
		if c&(space|word) != 0 {
			break
		}
		i += n
	}
	return i
}

// contraction gives the end of (?i:'s|'t|'re|'ve|'m|'ll|'d)? from byte i. Without
// case, s is U+017F (long s) too.
func (t *classTable) contraction(text string, i int) int {
	rest := text[i:]
	if len(rest) < 2 || rest[0] != '\'' {
		return i
	}
	switch rest[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if len(rest) > 2 && rest[2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if len(rest) > 2 && rest[2]|0x20 == 'l' {
			return i + 3
		}
	}
	if len(rest) > 2 && rest[1:3] == "\u017f" {
		return i + 3
	}
	return i
}

func isNewline(b byte) bool { return b == '\r' || b == '\n' }
