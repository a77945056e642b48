package lab

import (
	"fmt"
	"testing"
)

func TestTexts(t *testing.T) {
	l := New(nil)
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{l.User("hi"), "user: hi"},
		{Message{Role: "assistant", Text: "4", Thinking: "2 + 2"}, "assistant: (2 + 2) 4"},
		{l.With(Params{MaxTokens: 3, Stop: []string{"."}}), `With(Params{MaxTokens: 3, Stop: []string{"."}})`},
		{Params{}, "Params{}"},
		{Params{Temperature: 0.5, Seed: 7, Continue: &Generation{ID: "g1"}, OnToken: func(Token) {}, Quiet: true},
			"Params{Temperature: 0.5, Seed: 7, Continue: generation g1, OnToken: func, Quiet: true}"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
