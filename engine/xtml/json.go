package xtml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The JSON form is the one that chat servers take: messages with role, content (a
// string, null or parts), reasoning_content, tool_calls and tool_call_id; tools;
// thinking; thinking_effort; tool_choice; response_format; add_generation_prompt;
// image_prompts. At the top other members are refused, as a misspelt option would go
// unnoticed; a message may carry more than is used.

// ParseInput reads an Input's JSON form. An error is an *InputError; where the text is
// no JSON its Path is the line.
func ParseInput(data []byte) (*Input, error) {
	in := new(Input)
	if err := json.Unmarshal(data, in); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at := min(syntax.Offset, int64(len(data)))
			return nil, &InputError{fmt.Sprintf("line %d", 1+bytes.Count(data[:at], []byte("\n"))), "JSON", syntax.Error()}
		}
		return nil, err
	}
	return in, nil
}

// UnmarshalJSON reads the JSON form and replaces what in held.
func (in *Input) UnmarshalJSON(data []byte) error {
	v, ok := parseValue(data)
	if !ok {
		return &InputError{"the input", "a JSON object", excerpt(data)}
	}
	r := reader{}
	*in = r.input(v)
	return r.err
}

// UnmarshalJSON reads the JSON form of one message and replaces what m held.
func (m *Message) UnmarshalJSON(data []byte) error {
	v, ok := parseValue(data)
	if !ok {
		return &InputError{"the message", "a JSON object", excerpt(data)}
	}
	r := reader{}
	*m = r.message(at{"message", v})
	return r.err
}

// at is a value and the path to it.
type at struct {
	path string
	value
}

// reader turns values into an Input and keeps the first error.
type reader struct{ err error }

func (r *reader) fail(path, want, got string) {
	if r.err == nil {
		r.err = &InputError{path, want, got}
	}
}

// expect reports whether v is of a kind; else that is an error.
func (r *reader) expect(v at, k kind) bool {
	if v.kind != k {
		got := v.kind.String()
		if v.kind < arrayKind {
			got += " " + excerpt(v.append(nil, compact))
		}
		r.fail(v.path, article(k), got)
	}
	return v.kind == k
}

func article(k kind) string {
	if k == arrayKind || k == objectKind {
		return "an " + k.String()
	}
	return "a " + k.String()
}

// optional gives a member that is there and not null.
func optional(v at, key string) (at, bool) {
	m, ok := v.member(key)
	path := v.path + "." + key
	if v.path == "" {
		path = key
	}
	return at{path, m}, ok && m.kind != nullKind
}

func (r *reader) stringMember(v at, key string) string {
	m, ok := optional(v, key)
	if !ok || !r.expect(m, stringKind) {
		return ""
	}
	return m.text
}

// booleanMember gives a member that may be left out.
func (r *reader) booleanMember(v at, key string, missing bool) bool {
	m, ok := optional(v, key)
	if !ok || !r.expect(m, booleanKind) {
		return missing
	}
	return m.text == "true"
}

// items gives the elements of an array member; none if it is left out.
func (r *reader) items(v at, key string) []at {
	m, ok := optional(v, key)
	if !ok || !r.expect(m, arrayKind) {
		return nil
	}
	items := make([]at, len(m.items))
	for i, item := range m.items {
		items[i] = at{fmt.Sprintf("%s[%d]", m.path, i), item}
	}
	return items
}

var inputMembers = []string{"messages", "tools", "thinking", "thinking_effort", "tool_choice", "response_format", "add_generation_prompt", "image_prompts"}

func (r *reader) input(root value) (in Input) {
	v := at{"", root}
	if !r.expect(at{"the input", root}, objectKind) {
		return in
	}
	for _, m := range v.members {
		if !slices.Contains(inputMembers, m.key) {
			r.fail(m.key, "one of "+strings.Join(inputMembers, ", "), "a member of another name")
		}
	}
	if _, ok := optional(v, "messages"); !ok {
		r.fail("messages", "an array", "none")
	}
	for _, m := range r.items(v, "messages") {
		in.Messages = append(in.Messages, r.message(m))
	}
	in.Tools = r.tools(v)
	in.NoThinking = !r.booleanMember(v, "thinking", true)
	in.Effort = r.stringMember(v, "thinking_effort")
	if choice, ok := optional(v, "tool_choice"); ok && choice.kind == stringKind {
		in.ToolChoice = choice.text
	}
	if format, ok := optional(v, "response_format"); ok && r.expect(format, objectKind) {
		in.ResponseFormat = format.append(nil, compact)
	}
	in.NoGenerationPrompt = !r.booleanMember(v, "add_generation_prompt", true)
	for _, p := range r.items(v, "image_prompts") {
		if r.expect(p, stringKind) {
			in.ImagePrompts = append(in.ImagePrompts, p.text)
		}
	}
	return in
}

func (r *reader) tools(v at) (tools []json.RawMessage) {
	for _, tool := range r.items(v, "tools") {
		if r.expect(tool, objectKind) {
			tools = append(tools, tool.append(nil, compact))
		}
	}
	return tools
}

func (r *reader) message(v at) (m Message) {
	if !r.expect(v, objectKind) {
		return m
	}
	m.Role = r.stringMember(v, "role")
	switch m.Role {
	case RoleUser, RoleSystem, RoleAssistant, RoleTool:
	case "":
		r.fail(v.path+".role", "user, system, assistant or tool", "none")
	default:
		r.fail(v.path+".role", "user, system, assistant or tool", strconv.Quote(m.Role))
	}
	m.Name = r.stringMember(v, "name")
	if m.Role == RoleSystem {
		m.Tools = r.tools(v)
	}
	if _, ok := v.member("content"); !ok && m.Role != RoleAssistant && len(m.Tools) == 0 {
		r.fail(v.path+".content", "a string or an array of parts", "none")
	}
	m.Content = r.content(v)
	switch m.Role {
	case RoleAssistant:
		if m.Reasoning = r.stringMember(v, "reasoning_content"); m.Reasoning == "" {
			m.Reasoning = r.stringMember(v, "reasoning")
		}
		for _, call := range r.items(v, "tool_calls") {
			m.Calls = append(m.Calls, r.call(call))
		}
	case RoleTool:
		if tool := r.stringMember(v, "tool"); tool != "" {
			m.Name = tool
		}
		if m.CallID = r.stringMember(v, "tool_call_id"); m.CallID == "" {
			m.CallID = r.stringMember(v, "id")
		}
	}
	return m
}

func (r *reader) content(v at) []Part {
	c, ok := optional(v, "content")
	if !ok {
		return nil
	}
	if c.kind == stringKind {
		return texts(c.text)
	}
	if c.kind != arrayKind {
		r.fail(c.path, "a string or an array of parts", c.kind.String())
		return nil
	}
	var parts []Part
	for _, p := range r.items(v, "content") {
		if !r.expect(p, objectKind) {
			return nil
		}
		switch kind := r.stringMember(p, "type"); kind {
		case "text":
			text, ok := optional(p, "text")
			if !ok {
				r.fail(p.path+".text", "a string", "none")
			} else if r.expect(text, stringKind) {
				parts = append(parts, Part{Text: text.text})
			}
		case "image", "image_url":
			parts = append(parts, Part{Image: true})
		default:
			r.fail(p.path+".type", "text, image or image_url", strconv.Quote(kind))
		}
	}
	return parts
}

func (r *reader) call(v at) (c Call) {
	if !r.expect(v, objectKind) {
		return c
	}
	c.ID = r.stringMember(v, "id")
	function, ok := optional(v, "function")
	if !ok {
		r.fail(function.path, "an object with name and arguments", "none")
		return c
	}
	if !r.expect(function, objectKind) {
		return c
	}
	if c.Name = r.stringMember(function, "name"); c.Name == "" {
		r.fail(function.path+".name", "the function's name", "none")
	}
	switch arguments, ok := optional(function, "arguments"); {
	case !ok:
	case arguments.kind == stringKind:
		c.Arguments = arguments.text
	case arguments.kind == objectKind:
		c.Arguments = string(arguments.append(nil, spaced))
	default:
		r.fail(arguments.path, "an object, or a string with the JSON of one", arguments.kind.String())
	}
	return c
}

// MarshalJSON gives the JSON form, which UnmarshalJSON reads back.
func (in Input) MarshalJSON() ([]byte, error) {
	option := func(set bool) *bool { // false where set, left out where not
		if !set {
			return nil
		}
		return new(bool)
	}
	return marshal(struct {
		Messages            []Message         `json:"messages"`
		Tools               []json.RawMessage `json:"tools,omitempty"`
		Thinking            *bool             `json:"thinking,omitempty"`
		ThinkingEffort      string            `json:"thinking_effort,omitempty"`
		ToolChoice          string            `json:"tool_choice,omitempty"`
		ResponseFormat      json.RawMessage   `json:"response_format,omitempty"`
		AddGenerationPrompt *bool             `json:"add_generation_prompt,omitempty"`
		ImagePrompts        []string          `json:"image_prompts,omitempty"`
	}{
		append([]Message{}, in.Messages...), in.Tools, option(in.NoThinking), in.Effort, in.ToolChoice,
		in.ResponseFormat, option(in.NoGenerationPrompt), in.ImagePrompts,
	})
}

// MarshalJSON gives the JSON form, which UnmarshalJSON reads back.
func (m Message) MarshalJSON() ([]byte, error) {
	type part struct {
		Type string  `json:"type"`
		Text *string `json:"text,omitempty"`
	}
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	form := struct {
		Role      string            `json:"role"`
		Name      string            `json:"name,omitempty"`
		Content   any               `json:"content"`
		Reasoning string            `json:"reasoning_content,omitempty"`
		Calls     []call            `json:"tool_calls,omitempty"`
		CallID    string            `json:"tool_call_id,omitempty"`
		Tools     []json.RawMessage `json:"tools,omitempty"`
	}{m.Role, m.Name, "", m.Reasoning, nil, m.CallID, m.Tools}
	switch {
	case len(m.Content) == 1 && !m.Content[0].Image:
		form.Content = m.Content[0].Text
	case len(m.Content) > 0:
		var parts []part
		for _, p := range m.Content {
			if p.Image {
				parts = append(parts, part{"image", nil})
			} else {
				parts = append(parts, part{"text", &p.Text})
			}
		}
		form.Content = parts
	}
	for _, c := range m.Calls {
		form.Calls = append(form.Calls, call{c.ID, "function", function{c.Name, c.Arguments}})
	}
	return marshal(form)
}

// marshal is json.Marshal with <, > and & as they are.
func marshal(form any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(form); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
