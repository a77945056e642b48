package kernel

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzGlob compares with path.Match, which has the same signs but keeps * from a
// slash and knows a backslash.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{
		{"*", ""}, {"a*b?c", "aXXbYc"}, {"[a-c]*[!x]", "bzz"}, {"[]]", "]"}, {"[", "["}, {"*a*a*a*a*b", strings.Repeat("a", 50)}, {"é?", "é🦈"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		got := glob(pattern, s)
		if strings.ContainsAny(pattern, `\/[`) || strings.Contains(s, "/") || !utf8.ValidString(pattern) || !utf8.ValidString(s) {
			return // it has ended, which is what counts
		}
		if want, err := path.Match(pattern, s); err == nil && got != want {
			t.Errorf("glob(%q, %q) is %v", pattern, s, got)
		}
	})
}

func FuzzReadHistory(f *testing.F) {
	f.Add([]byte(`{"n":1,"i":"a"}` + "\n" + `{"n":1,"o":"b"}` + "\n"))
	f.Add([]byte("{\"n\":1,\"i\":\"a\"\xff\n\n{\"n\":-1,\"i\":\"a\"}\n{\"n\":2,\"o\":null}\n{\"n\":3,\"i\":\"cut"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range readHistory(b) {
			if c.line <= 0 {
				t.Errorf("line %d", c.line)
			}
		}
	})
}
