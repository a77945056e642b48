package lab

import (
	"strings"
	"testing"

	"deltafin/rig"
	"deltafin/tokenizer"
)

var (
	_ Rig       = (*rig.Rig)(nil)
	_ Tokenizer = (*tokenizer.Tokenizer)(nil)
)

func TestK3Template(t *testing.T) {
	tok, err := tokenizer.Load("../../tokenizer/testdata/nano-k3", 8192)
	if err != nil {
		t.Fatal(err)
	}
	template, err := NewTemplate(tok)
	if err != nil {
		t.Fatal(err)
	}
	segments, err := template.Render([]Message{{Role: "system", Text: "Be brief."}, {Role: "user", Text: "<|sep|>?"}}, true, "low")
	if err != nil {
		t.Fatal(err)
	}
	prompt := ""
	for _, s := range segments {
		if strings.Contains(s.Text, "<|sep|>?") && s.Markup {
			t.Error("the user's text is markup")
		}
		prompt += s.Text
	}
	if !strings.Contains(prompt, "Be brief.") || !strings.Contains(prompt, "low") {
		t.Errorf("prompt %q", prompt)
	}
	for _, c := range []struct {
		think              bool
		said               string
		thinking, response string
	}{
		{true, `so…<|close|>think<|sep|><|open|>response<|sep|>Hé!<|close|>response<|sep|><|end_of_msg|>`, "so…", "Hé!"},
		{false, `Hé!`, "", "Hé!"},
		{true, `<|close|>think<|sep|><|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|close|>call<|sep|>`, "", "[call f {}]"},
	} {
		a := template.Read(c.think)
		var thinking, response string
		take := func(x, y string) { thinking, response = thinking+x, response+y }
		for _, id := range tok.EncodeMarkup(c.said) {
			take(a.Push(id))
		}
		take(a.Finish())
		if thinking != c.thinking || response != c.response {
			t.Errorf("%s: thinking %q, response %q", c.said, thinking, response)
		}
	}
	for _, bad := range []struct {
		m      Message
		effort string
		want   string
	}{
		{Message{Role: "tool"}, "", `message 0: want role user, system or assistant, got "tool"`},
		{Message{Role: "user"}, "medium", "thinking_effort: want low, high or max"},
	} {
		if _, err := template.Render([]Message{bad.m}, true, bad.effort); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
