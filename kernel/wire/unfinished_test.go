package wire_test

import (
	"testing"

	"deltafin/kernel/wire"
)

func TestUnfinished(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 0, "é": 0, "a\xc3": 1, "\xe2\x82": 2, "€": 0, "\xf0\x9f\x98": 3, "😀": 0,
		"\xff": 0, "\x80": 0, "\x80\x80\x80": 0, "😀\x80": 0, "\xf0a": 0,
	} {
		if got := wire.Unfinished(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
		if got := wire.Unfinished([]byte(text)); got != want {
			t.Errorf("%q as bytes: %d, want %d", text, got, want)
		}
	}
}
