package lab

import (
	"fmt"

	"deltafin/engine/xtml"
	"deltafin/tokenizer"
)

// Template is the model's chat template, as chat needs it; a nil one is a model
// without.
type Template interface {
	// Render makes the prompt of a conversation. effort is "", low, high or max.
	Render(messages []Message, thinking bool, effort string) ([]xtml.Segment, error)
	// Read begins to read the answer to a prompt of Render's.
	Read(thinking bool) Answer
}

// Answer reads the tokens of one answer in order.
type Answer interface {
	// Push takes the next token and gives the text that it completes.
	Push(id int) (thinking, response string)
	// Finish, after the last token, gives what was held back.
	Finish() (thinking, response string)
}

// NewTemplate is Kimi K3's template over a tokenizer that has its special tokens.
func NewTemplate(t *tokenizer.Tokenizer) (Template, error) {
	specials, err := xtml.FindSpecials(t.Special)
	if err != nil {
		return nil, err
	}
	return k3Template{t, specials}, nil
}

type k3Template struct {
	tokenizer *tokenizer.Tokenizer
	specials  xtml.Specials
}

func (k k3Template) Render(messages []Message, thinking bool, effort string) ([]xtml.Segment, error) {
	in := &xtml.Input{NoThinking: !thinking, Effort: effort}
	for i, m := range messages {
		switch m.Role {
		case xtml.RoleUser:
			in.Messages = append(in.Messages, xtml.User(m.Text))
		case xtml.RoleSystem:
			in.Messages = append(in.Messages, xtml.System(m.Text))
		case xtml.RoleAssistant:
			a := xtml.Assistant(m.Text)
			a.Reasoning = m.Thinking
			in.Messages = append(in.Messages, a)
		default:
			return nil, &RangeError{fmt.Sprintf("message %d", i), "role user, system or assistant", fmt.Sprintf("%q", m.Role)}
		}
	}
	return xtml.Render(in)
}

func (k k3Template) Read(thinking bool) Answer {
	return &k3Answer{parser: xtml.NewParser(k.specials, k.tokenizer.NewDecoder(), !thinking)}
}

// k3Answer shows a tool call as the text of one, since a cell declares no tools.
type k3Answer struct {
	parser *xtml.Parser
}

func (a *k3Answer) Push(id int) (thinking, response string) { return said(a.parser.Push(id)) }
func (a *k3Answer) Finish() (thinking, response string)     { return said(a.parser.Finish()) }

func said(events []xtml.Event) (thinking, response string) {
	for _, e := range events {
		switch e.Kind {
		case xtml.Thinking:
			thinking += e.Text
		case xtml.Response:
			response += e.Text
		case xtml.ToolCall:
			response += fmt.Sprintf("[call %s %s]", e.Call.Name, e.Call.Arguments)
		}
	}
	return thinking, response
}
