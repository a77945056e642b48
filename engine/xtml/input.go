package xtml

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Input is a conversation and what to ask for with it. The zero value of each field
// is the template's default.
type Input struct {
	Messages           []Message
	Tools              []json.RawMessage // declarations, each a JSON object (Function makes one)
	NoThinking         bool              // the answer begins with its response block
	Effort             string            // low, high or max; "" says nothing about effort; no meaning with NoThinking
	ToolChoice         string            // required or none; anything else says nothing
	ResponseFormat     json.RawMessage   // an object of type json_object, json_schema or text; nil says nothing
	NoGenerationPrompt bool              // leave out the open assistant message at the end
	ImagePrompts       []string          // trusted markup, one for each image in order; none: images stay placeholders
}

// The roles of a message.
const (
	RoleUser      = "user"
	RoleSystem    = "system"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one turn of a conversation. Fields that its role has no use for are not
// rendered.
type Message struct {
	Role      string
	Name      string            // of the speaker; in a tool's result, the tool's
	Content   []Part            // none is an empty content
	Reasoning string            // assistant: the thinking
	Calls     []Call            // assistant: the tool calls
	CallID    string            // tool: the ID of the call that this is the result of
	Tools     []json.RawMessage // system: new tools to declare here, instead of the content
}

// Part is a piece of a message's content: a text, or the next image.
type Part struct {
	Text  string
	Image bool // Text has no meaning
}

// Call is a tool call. Arguments is the JSON text of an object; blank for no
// arguments. A text that isn't JSON at all is rendered as it is.
type Call struct {
	ID        string // matches it with its result; not rendered
	Name      string
	Arguments string
}

// User is what a user says.
func User(text string) Message { return Message{Role: RoleUser, Content: texts(text)} }

// System is an instruction to the model.
func System(text string) Message { return Message{Role: RoleSystem, Content: texts(text)} }

// Assistant is an earlier answer without thinking or calls; a Parser gives the whole of one.
func Assistant(text string) Message { return Message{Role: RoleAssistant, Content: texts(text)} }

// Result is what a call gave.
func Result(call Call, text string) Message {
	return Message{Role: RoleTool, Name: call.Name, CallID: call.ID, Content: texts(text)}
}

// Function declares a tool. parameters is a JSON Schema of its arguments; nil leaves it out.
func Function(name, description string, parameters json.RawMessage) json.RawMessage {
	declared := value{kind: objectKind, members: []member{
		{"type", value{kind: stringKind, text: "function"}},
		{"function", value{kind: objectKind, members: []member{
			{"name", value{kind: stringKind, text: name}},
			{"description", value{kind: stringKind, text: description}},
		}}},
	}}
	text := declared.append(nil, compact)
	if parameters != nil {
		text = append(text[:len(text)-2], `,"parameters":`...)
		text = append(append(text, parameters...), "}}"...)
	}
	return text
}

// Text gives a message's content without its images.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Content {
		if !p.Image {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func texts(text string) []Part {
	if text == "" {
		return nil
	}
	return []Part{{Text: text}}
}

// InputError says what is wrong with a conversation. Path is where, in the terms of
// the JSON form: messages[2].tool_calls[0].function.name.
type InputError struct{ Path, Want, Got string }

func (e *InputError) Error() string {
	return fmt.Sprintf("xtml: %s: want %s, got %s", e.Path, e.Want, e.Got)
}
