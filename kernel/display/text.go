package display

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// columns is the width of the text forms, that of the narrowest usual terminal.
const columns = 80

// visible replaces what would move a terminal's cursor or change its state:
// control characters by signs (↵ for a newline), invalid UTF-8, direction
// overrides and what is no character, which XML doesn't allow, by U+FFFD.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '↵'
		case r == '\t':
			return '⇥'
		case r < 0x20:
			return '␀' + r
		case r == 0x7f:
			return '␡'
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r&0xfffe == 0xfffe:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// runeWidth is the number of terminal cells that r takes.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1f300 && r <= 0x1faff: // emoji, which are not East Asian by Unicode's table
		return 2
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// cut shortens s to at most n cells, with … where something is missing.
func cut(s string, n int) string {
	if textWidth(s) <= n {
		return s
	}
	used := 0
	for i, r := range s {
		if w := runeWidth(r); used+w > n-1 {
			return s[:i] + "…"
		} else {
			used += w
		}
	}
	return s
}

// pad fills s up to n cells, on its left side when right is set.
func pad(s string, n int, right bool) string {
	space := strings.Repeat(" ", max(0, n-textWidth(s)))
	if right {
		return space + s
	}
	return s + space
}

// number formats a value for a reader: at most four significant digits, and no
// exponent between 0.001 and a million.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v)
	case v == math.Trunc(v) && a < 1e6:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case a >= 1e6 || a < 1e-3:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case a >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		s := strconv.FormatFloat(v, 'f', max(0, 3-int(math.Floor(math.Log10(a)))), 64)
		return strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
}

// eighths draws a bar of n cells, n not necessarily whole, in eighths of a cell.
func eighths(n float64) string {
	whole, part := math.Modf(max(0, n))
	s := strings.Repeat("█", int(whole))
	if k := int(part * 8); k > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[k])
	}
	return s
}
