package xtml

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The special tokens that tags are built of, and the mark of an image in a text.
const (
	openMark         = "<|open|>"
	closeMark        = "<|close|>"
	sepMark          = "<|sep|>"
	endOfMessageMark = "<|end_of_msg|>"
	imageMark        = "<|kimi_image_placeholder|>"
)

// What the template says itself (docs/xtml.md; the words are the release's).
const (
	toolsHeading    = "# Tools\nHere are the available tools, described in JSONSchema.\n\n"
	newToolsHeading = "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\nYou have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n"
	effortText      = "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort=%s`."
	requiredText    = "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message."
	noneText        = "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message."
	formatText      = "The system is invoked with `response_format=%s`.\nYour response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
	schemaText      = "\nThe JSON data must match the following schema:\n"
)

// Render gives the segments of a conversation in order. An error is an *InputError.
func Render(in *Input) ([]Segment, error) {
	r := renderer{thinking: !in.NoThinking, images: in.ImagePrompts}
	if err := r.conversation(in); err != nil {
		return nil, err
	}
	return r.segments, nil
}

type renderer struct {
	segments []Segment
	thinking bool
	images   []string
	seen     int // images so far
}

func (r *renderer) conversation(in *Input) error {
	if len(in.Tools) > 0 {
		if err := r.declaration("tools", toolsHeading, in.Tools); err != nil {
			return err
		}
	}
	if r.thinking && in.Effort != "" {
		if in.Effort != "low" && in.Effort != "high" && in.Effort != "max" {
			return &InputError{"thinking_effort", "low, high or max", strconv.Quote(in.Effort)}
		}
		r.instruction("thinking-effort", fmt.Sprintf(effortText, in.Effort))
	}
	if err := r.messages(in.Messages); err != nil {
		return err
	}
	if len(r.images) > 0 && r.seen != len(r.images) {
		return &InputError{"image_prompts", fmt.Sprintf("%d, one for each image of the messages", r.seen), strconv.Itoa(len(r.images))}
	}
	switch in.ToolChoice {
	case "required":
		r.instruction("tool-choice", requiredText)
	case "none":
		r.instruction("tool-choice", noneText)
	}
	if err := r.responseFormat(in.ResponseFormat); err != nil {
		return err
	}
	if !in.NoGenerationPrompt {
		r.open("message", "role", RoleAssistant)
		if r.thinking {
			r.open("think")
		} else {
			r.open("response")
		}
	}
	return nil
}

// text adds a segment of plain text.
func (r *renderer) text(text string) {
	if text != "" {
		r.segments = append(r.segments, Segment{Text: text})
	}
}

// markup adds a segment that may hold special tokens.
func (r *renderer) markup(text string) {
	if text != "" {
		r.segments = append(r.segments, Segment{Text: text, Markup: true})
	}
}

// attributeEscaper works in one pass, which equals & first and then the quote.
var attributeEscaper = strings.NewReplacer("&", "&amp;", `"`, "&quot;")

// open writes an opening tag; attributes are keys and values in turn.
func (r *renderer) open(name string, attributes ...string) {
	r.markup(openMark)
	r.text(name)
	for a := range slices.Chunk(attributes, 2) {
		r.text(" " + a[0])
		r.text(`="`)
		r.text(attributeEscaper.Replace(a[1]))
		r.text(`"`)
	}
	r.markup(sepMark)
}

func (r *renderer) close(name string) {
	r.markup(closeMark)
	r.text(name)
	r.markup(sepMark)
}

func (r *renderer) endMessage() {
	r.close("message")
	r.markup(endOfMessageMark)
}

// instruction writes a system message of the template's own.
func (r *renderer) instruction(kind, body string) {
	r.open("message", "role", RoleSystem, "type", kind)
	r.text(body)
	r.endMessage()
}

// declaration writes a system message that declares tools.
func (r *renderer) declaration(path, heading string, tools []json.RawMessage) error {
	list := value{kind: arrayKind}
	for i, tool := range tools {
		v, ok := parseValue(tool)
		if !ok || v.kind != objectKind {
			return &InputError{fmt.Sprintf("%s[%d]", path, i), "a JSON object, the tool's declaration", excerpt(tool)}
		}
		list.items = append(list.items, v)
	}
	r.instruction("tool-declare", heading+fence(list))
	return nil
}

// fence writes a value sorted and compact in a json fence.
func fence(v value) string { return "```json\n" + string(v.append(nil, sorted)) + "\n```" }

func (r *renderer) responseFormat(format json.RawMessage) error {
	if format == nil {
		return nil
	}
	v, ok := parseValue(format)
	if !ok {
		return &InputError{"response_format", "a JSON object", excerpt(format)}
	}
	if v.kind == nullKind {
		return nil
	}
	name, _ := v.member("type")
	if v.kind != objectKind || name.kind != stringKind {
		return &InputError{"response_format", "an object with a type", excerpt(format)}
	}
	switch name.text {
	case "text":
	case "json_object":
		r.instruction("response-format", fmt.Sprintf(formatText, name.text))
	case "json_schema":
		schema := v
		for _, key := range [...]string{"json_schema", "schema"} {
			if inner, ok := schema.member(key); ok && inner.kind != nullKind {
				schema = inner
			}
		}
		if schema.kind != objectKind || len(schema.members) == 1 && schema.members[0].text == name.text {
			return &InputError{"response_format", "a schema, an object under json_schema.schema", excerpt(format)}
		}
		r.instruction("response-format", fmt.Sprintf(formatText, name.text)+schemaText+fence(schema))
	default:
		return &InputError{"response_format.type", "json_object, json_schema or text", strconv.Quote(name.text)}
	}
	return nil
}

func (r *renderer) messages(messages []Message) error {
	var calls []Call // of the last assistant message
	results := 0     // since then
	for i := 0; i < len(messages); {
		m := &messages[i]
		path := fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case RoleSystem:
			if len(m.Tools) > 0 {
				if err := r.declaration(path+".tools", newToolsHeading, m.Tools); err != nil {
					return err
				}
				break
			}
			r.openMessage(m)
			r.content(m.Content)
			r.endMessage()
		case RoleUser:
			r.openMessage(m)
			r.content(m.Content)
			r.endMessage()
		case RoleAssistant:
			calls, results = m.Calls, 0
			if err := r.assistant(path, m); err != nil {
				return err
			}
		case RoleTool:
			end := i
			for end < len(messages) && messages[end].Role == RoleTool {
				end++
			}
			if err := r.results(i, messages[i:end], calls, results); err != nil {
				return err
			}
			results += end - i
			i = end
			continue
		default:
			return &InputError{path + ".role", "user, system, assistant or tool", strconv.Quote(m.Role)}
		}
		i++
	}
	return nil
}

func (r *renderer) openMessage(m *Message) {
	if m.Name == "" {
		r.open("message", "role", m.Role)
	} else {
		r.open("message", "role", m.Role, "name", m.Name)
	}
}

// content writes parts, with images in place of their marks.
func (r *renderer) content(parts []Part) {
	for _, p := range parts {
		if p.Image {
			r.image()
			continue
		}
		for i, text := range strings.Split(p.Text, imageMark) {
			if i > 0 {
				r.image()
			}
			r.text(text)
		}
	}
}

// image writes the next image prompt. A missing one is an error at the end, when it is
// known how many are needed.
func (r *renderer) image() {
	switch {
	case len(r.images) == 0:
		r.markup(imageMark)
	case r.seen < len(r.images):
		r.markup(r.images[r.seen])
	}
	r.seen++
}

func (r *renderer) assistant(path string, m *Message) error {
	r.openMessage(m)
	if r.thinking {
		r.open("think")
		if !blank(m.Reasoning) {
			r.text(m.Reasoning)
		}
		r.close("think")
	}
	r.open("response")
	r.content(m.Content)
	r.close("response")
	if len(m.Calls) > 0 {
		r.open("tools")
		for i, call := range m.Calls {
			if err := r.call(fmt.Sprintf("%s.tool_calls[%d].function", path, i), i+1, call); err != nil {
				return err
			}
		}
		r.close("tools")
	}
	r.endMessage()
	return nil
}

func (r *renderer) call(path string, index int, call Call) error {
	if call.Name == "" {
		return &InputError{path + ".name", "the function's name", "none"}
	}
	r.open("call", "tool", call.Name, "index", strconv.Itoa(index))
	if !blank(call.Arguments) {
		arguments, ok := parseValue([]byte(call.Arguments))
		switch {
		case !ok:
			r.open("json", "type", "object")
			r.text(call.Arguments)
			r.close("json")
		case arguments.kind != objectKind:
			return &InputError{path + ".arguments", "an object", arguments.kind.String() + " " + excerpt([]byte(call.Arguments))}
		}
		for _, a := range arguments.members {
			r.open("argument", "key", a.key, "type", a.kind.String())
			if a.kind == stringKind {
				r.text(a.text)
			} else {
				r.text(string(a.append(nil, spaced)))
			}
			r.close("argument")
		}
	}
	r.close("call")
	return nil
}

// results writes a run of consecutive tool results, the first of them messages[at].
// calls are those of the last assistant message, before counts the results between.
func (r *renderer) results(at int, run []Message, calls []Call, before int) error {
	type result struct {
		*Message
		at   int // in messages
		call int // in calls
	}
	ordered := make([]result, len(run))
	all := true
	for i := range run {
		m := &run[i]
		call := slices.IndexFunc(calls, func(c Call) bool { return c.ID != "" && c.ID == m.CallID })
		all = all && call >= 0
		ordered[i] = result{m, at + i, call}
	}
	if all {
		slices.SortStableFunc(ordered, func(a, b result) int { return a.call - b.call })
	}
	for i, m := range ordered {
		n := before + i // from 0, since the last assistant message
		name := m.Name
		switch {
		case all:
			name = calls[m.call].Name
		case name == "" && n < len(calls):
			name = calls[n].Name
		case name == "":
			return &InputError{
				fmt.Sprintf("messages[%d].tool", m.at),
				"the tool's name, or a call before it to take the name of",
				fmt.Sprintf("result %d after %d calls", n+1, len(calls)),
			}
		}
		r.open("message", "role", RoleTool, "tool", name, "index", strconv.Itoa(n+1))
		r.content(m.Content)
		r.endMessage()
	}
	return nil
}

// blank reports whether a text holds nothing but whitespace, as the reference sees it:
// White_Space and U+001C to U+001F.
func blank(text string) bool {
	return strings.TrimFunc(text, func(c rune) bool { return unicode.IsSpace(c) || 0x1c <= c && c <= 0x1f }) == ""
}

// excerpt shows input in an error, cut to a readable length.
func excerpt(text []byte) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(string(text))
}
