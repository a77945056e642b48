package wire

import "unicode/utf8"

// Unfinished is the number of bytes at the end of text that begin a character and don't
// end it: text that comes in pieces is cut before them.
func Unfinished[T string | []byte](text T) int {
	for i := 1; i <= min(len(text), utf8.UTFMax-1); i++ {
		if utf8.RuneStart(text[len(text)-i]) {
			if !utf8.FullRuneInString(string(text[len(text)-i:])) {
				return i
			}
			return 0
		}
	}
	return 0
}
