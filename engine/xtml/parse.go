package xtml

import (
	"fmt"
	"slices"
	"strings"
)

// Specials are the ids of the special tokens that a Parser goes by.
type Specials struct {
	Open, Close, Sep, EndOfMessage int
	EndOfSequence                  int // [EOS]
}

// SpecialError says that a vocabulary lacks one of the template's special tokens.
type SpecialError struct{ Name string }

func (e *SpecialError) Error() string {
	return fmt.Sprintf("xtml: want a vocabulary with the special token %s, got none of that name; the tokenizer is not one of a Kimi K3 release", e.Name)
}

// FindSpecials resolves the names with a tokenizer's Special. An error is a
// *SpecialError of the first name, in the order of the fields, that isn't there.
func FindSpecials(special func(name string) (id int, ok bool)) (Specials, error) {
	var s Specials
	for _, want := range []struct {
		name string
		id   *int
	}{{openMark, &s.Open}, {closeMark, &s.Close}, {sepMark, &s.Sep}, {endOfMessageMark, &s.EndOfMessage}, {"[EOS]", &s.EndOfSequence}} {
		var ok bool
		if *want.id, ok = special(want.name); !ok {
			return Specials{}, &SpecialError{want.name}
		}
	}
	return s, nil
}

// Stop reports whether a generation ends at an id, which is no part of the text.
func (s Specials) Stop(id int) bool { return id == s.EndOfMessage || id == s.EndOfSequence }

// Decoder turns ids into text as they come and holds back incomplete runes until Flush.
type Decoder interface {
	Push(id int) string
	Flush() string
}

// EventKind says what an Event brings.
type EventKind uint8

const (
	Thinking EventKind = iota // Text, more of the reasoning
	Response                  // Text, more of the response
	ToolCall                  // Call, a whole one
)

// Event is something that the model has said.
type Event struct {
	Kind EventKind
	Text string // never empty in Thinking and Response
	Call Call
}

// Parser reads an assistant message from a stream of ids, as a generation after
// Render's prompt gives them. Only special tokens make tags: text that looks like one
// is text. It takes whatever a model says: a tag that closes nothing is passed over;
// text outside of every block counts as response if it isn't blank, text of a tools
// block outside of its arguments as nothing; after a stop, nothing counts.
//
// A Parser belongs to one goroutine.
type Parser struct {
	specials Specials
	decoder  Decoder

	stack   []element       // open elements, the message first
	tag     strings.Builder // text of the tag that is being read
	inTag   tagState
	done    bool
	cut     bool
	events  []Event
	message Message
	content strings.Builder
	reason  strings.Builder

	call      *Call // the open call
	arguments []argument
}

type tagState uint8

const (
	noTag tagState = iota
	openTag
	closeTag
)

type element struct{ name, key, kind, tool string }

// argument is one of the open call's; json is the untyped form, the whole arguments.
type argument struct {
	key, kind string
	text      []byte
	json      bool
}

// NewParser gives a Parser for the answer to a prompt of Render's; noThinking is the
// Input's. The decoder is used by this Parser alone.
func NewParser(specials Specials, decoder Decoder, noThinking bool) *Parser {
	start := element{name: "think"}
	if noThinking {
		start.name = "response"
	}
	return &Parser{specials: specials, decoder: decoder, stack: []element{{name: "message"}, start}, message: Message{Role: RoleAssistant}}
}

// Push takes the next id and gives what it completes. The events are the caller's.
func (p *Parser) Push(id int) []Event {
	if p.done {
		return nil
	}
	switch s := p.specials; id {
	case s.EndOfMessage, s.EndOfSequence:
		p.finish(len(p.stack) > 1 || p.inTag != noTag)
	case s.Open, s.Close:
		p.text(p.decoder.Flush())
		p.tag.Reset() // of a tag that never ended
		p.inTag = openTag
		if id == s.Close {
			p.inTag = closeTag
		}
	case s.Sep:
		p.text(p.decoder.Flush())
		p.endTag()
	default:
		p.text(p.decoder.Push(id))
	}
	return p.take()
}

// Finish ends a stream that had no stop: it gives what was held back, and the call that
// was open with the arguments so far. After a stop it gives nothing.
func (p *Parser) Finish() []Event {
	if !p.done {
		p.finish(true)
	}
	return p.take()
}

// Done reports whether the message has ended, by a stop or Finish.
func (p *Parser) Done() bool { return p.done }

// Cut reports whether it ended without its stop, as it does at a limit of tokens, or
// with a stop inside a block or a tag.
func (p *Parser) Cut() bool { return p.cut }

// Message gives what has been read so far as a message, to continue the conversation
// with: append it and what comes next to the Input's messages. Calls have the IDs
// call_1, call_2 and so on, and arguments as the JSON of an object, but for the untyped
// form's, which are what the model said.
func (p *Parser) Message() Message {
	m := p.message
	m.Reasoning = p.reason.String()
	m.Content = texts(p.content.String())
	m.Calls = slices.Clone(m.Calls)
	return m
}

func (p *Parser) take() []Event {
	events := p.events
	p.events = nil
	return events
}

func (p *Parser) finish(cut bool) {
	p.text(p.decoder.Flush())
	p.endCall()
	p.done, p.cut = true, cut
}

// text takes text where it stands.
func (p *Parser) text(text string) {
	if text == "" {
		return
	}
	if p.inTag != noTag {
		p.tag.WriteString(text)
		return
	}
	for _, e := range slices.Backward(p.stack) {
		switch e.name {
		case "think":
			p.reason.WriteString(text)
			p.emit(Event{Kind: Thinking, Text: text})
			return
		case "argument", "json":
			if len(p.arguments) > 0 {
				last := &p.arguments[len(p.arguments)-1]
				last.text = append(last.text, text...)
			}
			return
		case "call", "tools":
			return
		case "response":
			p.respond(text)
			return
		case "message":
			if !blank(text) {
				p.respond(text)
			}
			return
		}
	}
}

func (p *Parser) respond(text string) {
	p.content.WriteString(text)
	p.emit(Event{Kind: Response, Text: text})
}

// emit adds an event, or lengthens the last one of the same Push.
func (p *Parser) emit(e Event) {
	if n := len(p.events); n > 0 && e.Kind != ToolCall && p.events[n-1].Kind == e.Kind {
		p.events[n-1].Text += e.Text
		return
	}
	p.events = append(p.events, e)
}

// endTag acts on the tag that a separator ends; a separator by itself is nothing.
func (p *Parser) endTag() {
	state, tag := p.inTag, p.tag.String()
	p.inTag = noTag
	p.tag.Reset()
	switch state {
	case openTag:
		p.open(parseTag(tag))
	case closeTag:
		p.close(strings.TrimSpace(tag))
	}
}

func (p *Parser) open(e element) {
	switch {
	case e.name == "call":
		p.endCall()
		p.call = &Call{Name: e.tool}
	case p.call == nil:
	case e.name == "argument":
		p.arguments = append(p.arguments, argument{key: e.key, kind: e.kind})
	case e.name == "json":
		p.arguments = append(p.arguments, argument{json: true})
	}
	p.stack = append(p.stack, e)
}

// close ends the innermost element of that name and what is open inside it.
func (p *Parser) close(name string) {
	for i, e := range slices.Backward(p.stack) {
		if e.name != name {
			continue
		}
		if slices.ContainsFunc(p.stack[i:], func(e element) bool { return e.name == "call" }) {
			p.endCall()
		}
		p.stack = p.stack[:i]
		return
	}
}

// endCall gives the open call, if there is one.
func (p *Parser) endCall() {
	if p.call == nil {
		return
	}
	call := *p.call
	call.ID = fmt.Sprintf("call_%d", len(p.message.Calls)+1)
	call.Arguments = joinArguments(p.arguments)
	p.message.Calls = append(p.message.Calls, call)
	p.emit(Event{Kind: ToolCall, Call: call})
	p.call, p.arguments = nil, nil
}

// joinArguments gives the arguments as the JSON of an object: strings from their text,
// other values as they are. What isn't JSON of its type, or of any where the template
// has no such type, is a string, so that nothing said is lost. The untyped form is the arguments itself, JSON or not.
func joinArguments(arguments []argument) string {
	object := []byte("{")
	for _, a := range arguments {
		text := string(a.text)
		if a.json {
			return text
		}
		if len(object) > 1 {
			object = append(object, spaced.comma...)
		}
		object = appendString(object, a.key)
		object = append(object, spaced.colon...)
		if v, ok := parseValue(a.text); ok && a.kind != stringKind.String() && (v.kind.String() == a.kind || !slices.Contains(kinds[:], a.kind)) {
			object = append(object, strings.TrimSpace(text)...)
		} else {
			object = appendString(object, text)
		}
	}
	return string(append(object, '}'))
}

// attributeUnescaper is attributeEscaper's inverse.
var attributeUnescaper = strings.NewReplacer("&quot;", `"`, "&amp;", "&")

// parseTag reads NAME key="value" key="value". What comes after something else is
// passed over.
func parseTag(tag string) element {
	name, rest, _ := strings.Cut(strings.TrimLeft(tag, " "), " ")
	e := element{name: strings.TrimSpace(name), kind: stringKind.String()}
	for {
		key, after, ok := strings.Cut(rest, `="`)
		if !ok {
			return e
		}
		text, after, ok := strings.Cut(after, `"`)
		if !ok {
			return e
		}
		text = attributeUnescaper.Replace(text)
		switch strings.TrimSpace(key) {
		case "key":
			e.key = text
		case "type":
			e.kind = text
		case "tool":
			e.tool = text
		}
		rest = after
	}
}
