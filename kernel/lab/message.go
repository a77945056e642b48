package lab

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Message is one turn of a chat.
type Message struct {
	Role     string `json:"role"`               // user, system or assistant
	Text     string `json:"text"`               // what is said
	Thinking string `json:"thinking,omitempty"` // of an assistant: what came before its response

	params *Params // of With: not a turn but the settings
}

// String is who speaks and what is said; of With, the settings.
func (m Message) String() string {
	switch {
	case m.params != nil:
		return "With(" + m.params.String() + ")"
	case m.Thinking != "":
		return m.Role + ": (" + m.Thinking + ") " + m.Text
	}
	return m.Role + ": " + m.Text
}

// String is the settings that are not zero, as Go has them.
func (p Params) String() string {
	var set []string
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		text := ""
		switch x := v.Field(i).Interface().(type) {
		case *Generation:
			text = "generation " + x.ID
		case func(Token):
			text = "func"
		case uint64:
			text = fmt.Sprint(x)
		default:
			text = fmt.Sprintf("%#v", x)
		}
		set = append(set, v.Type().Field(i).Name+": "+text)
	}
	return "Params{" + strings.Join(set, ", ") + "}"
}

// User is what a user says in a Chat.
func (l *Lab) User(text string) Message { return Message{Role: "user", Text: text} }

// System is an instruction to the model in a Chat.
func (l *Lab) System(text string) Message { return Message{Role: "system", Text: text} }

// Assistant is an earlier answer in a Chat.
func (l *Lab) Assistant(text string) Message { return Message{Role: "assistant", Text: text} }

// With gives a Chat its settings:
//
//	Chat(User("Hello"), With(Params{MaxTokens: 200}))
func (l *Lab) With(p Params) Message { return Message{params: &p} }

// Chat asks the model through its chat template and streams the answer:
//
//	g := Chat(System("Be brief."), User("Why is the sky blue?"))
//	g.Reply("And at night?")
//
// Its Text is the response. With Params.Thinking the model thinks first, which is
// streamed in faint letters and kept in Thinking. The last message, if it is a user's,
// must say something, and all must be UTF-8.
func (l *Lab) Chat(messages ...Message) *Generation {
	var params []Params
	var turns []Message
	for _, m := range messages {
		if m.params != nil {
			params = append(params, *m.params)
		} else {
			turns = append(turns, m)
		}
	}
	if len(turns) == 0 {
		fail("Chat", errors.New(`want messages, got none; begin with Chat(User("…"))`))
	}
	return l.chat("Chat", turns, one("Chat", params))
}

// chat generates the answer to turns for the function fn.
func (l *Lab) chat(fn string, turns []Message, p Params) *Generation {
	if p.Continue != nil {
		fail(fn, fmt.Errorf("want a chat without Params.Continue, got one that continues generation %s; use its Reply", p.Continue.ID))
	}
	for i, m := range turns {
		needText(fn, fmt.Sprintf("message %d", i), m.Text)
		needText(fn, fmt.Sprintf("message %d, thinking", i), m.Thinking)
	}
	if last := turns[len(turns)-1]; last.Role == "user" && strings.TrimSpace(last.Text) == "" {
		fail(fn, errors.New("want a message that says something, got an empty one"))
	}
	q := p.request(fn)
	q.Messages = turns
	return l.generate(fn, "chat", q, p)
}
