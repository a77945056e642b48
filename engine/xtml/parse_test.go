package xtml

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// The vocabulary of these tests: the five specials, one more that the template has no
// use for, and a token for every byte from firstByte on.
var testSpecials = Specials{Open: 0, Close: 1, Sep: 2, EndOfMessage: 3, EndOfSequence: 4}

const (
	otherSpecial = 5
	firstByte    = 6
)

// encode gives the ids of segments, a token a byte but for specials in markup.
func encode(segments []Segment) (ids []int) {
	marks := map[string]int{openMark: 0, closeMark: 1, sepMark: 2, endOfMessageMark: 3, "[EOS]": 4, "[other]": otherSpecial}
	for _, s := range segments {
		text := s.Text
	next:
		for text != "" {
			if s.Markup {
				for mark := range maps.Keys(marks) {
					if rest, ok := strings.CutPrefix(text, mark); ok {
						ids, text = append(ids, marks[mark]), rest
						continue next
					}
				}
			}
			ids, text = append(ids, firstByte+int(text[0])), text[1:]
		}
	}
	return ids
}

// written gives the ids of an answer written with the short marks of render_test.go,
// where ¶ ends the message.
func written(answer string) []int {
	markup := strings.NewReplacer("</", closeMark, "<", openMark, ">", sepMark, "¶", endOfMessageMark).Replace(answer)
	return encode([]Segment{{markup, true}})
}

// byteDecoder is a Decoder for that vocabulary.
type byteDecoder struct{ held []byte }

func (d *byteDecoder) Push(id int) string {
	if id < firstByte {
		return d.Flush() + "[other]"
	}
	d.held = append(d.held, byte(id-firstByte))
	if r, _ := utf8.DecodeLastRune(d.held); r == utf8.RuneError && len(d.held) < utf8.UTFMax {
		return ""
	}
	return d.Flush()
}

func (d *byteDecoder) Flush() string {
	text := strings.ToValidUTF8(string(d.held), "\ufffd")
	d.held = d.held[:0]
	return text
}

// read feeds ids and gives the parser and what the events say, joined by kind.
func read(ids []int, noThinking bool) (p *Parser, thinking, response string, calls []Call) {
	p = NewParser(testSpecials, &byteDecoder{}, noThinking)
	take := func(events []Event) {
		for _, e := range events {
			switch e.Kind {
			case Thinking:
				thinking += e.Text
			case Response:
				response += e.Text
			case ToolCall:
				calls = append(calls, e.Call)
			}
		}
	}
	for _, id := range ids {
		take(p.Push(id))
	}
	take(p.Finish())
	return p, thinking, response, calls
}

func ExampleParser() {
	specials, err := FindSpecials(func(name string) (int, bool) { // a tokenizer's Special
		id, ok := map[string]int{"<|open|>": 0, "<|close|>": 1, "<|sep|>": 2, "<|end_of_msg|>": 3, "[EOS]": 4}[name]
		return id, ok
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := &Input{Messages: []Message{User("Greet me.")}}
	p := NewParser(specials, &byteDecoder{}, in.NoThinking)
	for _, id := range written("Politely.</think><response>Good day.</response></message>¶") {
		for _, event := range p.Push(id) {
			fmt.Print(event.Text)
		}
	}
	fmt.Println()
	in.Messages = append(in.Messages, p.Message(), User("Again."))
	segments, err := Render(in)
	fmt.Println(len(segments), err)
	// Output:
	// Politely.Good day.
	// 59 <nil>
}

func TestParse(t *testing.T) {
	call := func(n int, name, arguments string) Call { return Call{fmt.Sprintf("call_%d", n), name, arguments} }
	for _, c := range []struct {
		name               string
		noThinking         bool
		answer             string
		thinking, response string
		calls              []Call
		cut                bool
	}{
		{name: "thinking and response", answer: "a\nb</think><response>c</response></message>¶", thinking: "a\nb", response: "c"},
		{name: "no thinking", noThinking: true, answer: "c</response></message>¶", response: "c"},
		{name: "nothing", answer: "", cut: true},
		{name: "only a stop", answer: "¶", cut: true},
		{name: "runes", noThinking: true, answer: "漢é😀</response></message>¶", response: "漢é😀"},
		{name: "cut in thinking", answer: "abc", thinking: "abc", cut: true},
		{name: "stopped in thinking", answer: "abc¶", thinking: "abc", cut: true},
		{name: "cut in response", answer: "a</think><response>b", thinking: "a", response: "b", cut: true},
		{name: "cut in a tag", answer: "a</thi", thinking: "a", cut: true},
		{name: "cut in a rune", answer: "a\xe6\xbc", thinking: "a\ufffd", cut: true},
		{name: "a rune cut by a tag", answer: "a\xe6</think><response>\xbcb", thinking: "a\ufffd", response: "\ufffdb", cut: true},
		{name: "cut between blocks", answer: "a</think>", thinking: "a", cut: true},
		{name: "after the stop nothing counts", answer: "a</think><response>b</response></message>¶<response>c</response>", thinking: "a", response: "b"},
		{name: "a special without meaning is text", answer: "a[other]b</think>", thinking: "a[other]b", cut: true},
		{name: "typed arguments", answer: `</think><response></response><tools><call tool="f" index="1">` +
			`<argument key="s" type="string">a "b"` + "\n" + `</argument><argument key="n" type="number">1.50</argument><argument key="b" type="boolean">true</argument>` +
			`<argument key="z" type="null">null</argument><argument key="o" type="object">{"y": 1, "x": [2]}</argument><argument key="e" type="string"></argument></call></tools></message>¶`,
			calls: []Call{call(1, "f", `{"s": "a \"b\"\n", "n": 1.50, "b": true, "z": null, "o": {"y": 1, "x": [2]}, "e": ""}`)}},
		{name: "a string that looks like a number", answer: `</think><tools><call tool="f"><argument key="s" type="string">1</argument></call>`,
			calls: []Call{call(1, "f", `{"s": "1"}`)}, cut: true},
		{name: "values that aren't of their type's JSON", answer: `</think><tools><call tool="f"><argument key="n" type="number">one</argument><argument key="e" type="number"></argument></call></tools></message>¶`,
			calls: []Call{call(1, "f", `{"n": "one", "e": ""}`)}},
		{name: "JSON of another type", answer: `</think><tools><call tool="f"><argument key="n" type="number">{"a":1}</argument><argument key="o" type="object">[1]</argument><argument key="b" type="boolean">null</argument><argument key="s" type="array">"x"</argument><argument key="u" type="integer">1</argument><argument key="v" type="integer">one</argument></call></tools></message>¶`,
			calls: []Call{call(1, "f", `{"n": "{\"a\":1}", "o": "[1]", "b": "null", "s": "\"x\"", "u": 1, "v": "one"}`)}},
		{name: "the untyped form", answer: `</think><tools><call tool="f"><json type="object">{"a": </json></call></tools></message>¶`,
			calls: []Call{call(1, "f", `{"a": `)}},
		{name: "escaped attributes", answer: `</think><tools><call tool="a&amp;&quot;b&amp;quot; index=" index="1"><argument key="k&quot;" type="string">&amp;</argument></call></tools></message>¶`,
			calls: []Call{call(1, `a&"b&quot; index=`, `{"k\"": "&amp;"}`)}},
		{name: "two calls", answer: `</think><response>r</response><tools><call tool="f" index="1"></call><call tool="g" index="2"></call></tools></message>¶`,
			response: "r", calls: []Call{call(1, "f", `{}`), call(2, "g", `{}`)}},
		{name: "cut in an argument", answer: `</think><tools><call tool="f"><argument key="a" type="number">12</argument><argument key="b" type="string">so f`,
			calls: []Call{call(1, "f", `{"a": 12, "b": "so f"}`)}, cut: true},
		{name: "cut in a call", answer: `</think><tools><call tool="f">`, calls: []Call{call(1, "f", `{}`)}, cut: true},
		{name: "cut in a call's tag", answer: `</think><tools><call tool="f"`, cut: true},
		{name: "a call that isn't closed", answer: `</think><tools><call tool="f"><call tool="g"></tools></message>¶`,
			calls: []Call{call(1, "f", `{}`), call(2, "g", `{}`)}},
		{name: "text of a tools block", answer: `</think><tools> x <call tool="f"> y </call> z </tools>` + "\n" + `</message>¶`, calls: []Call{call(1, "f", `{}`)}},
		{name: "text outside of blocks", answer: "a</think>\n<response>b</response>c</message>d¶", thinking: "a", response: "bc"},
		{name: "a block that isn't closed", answer: "a<response>b</response>c</message>¶", thinking: "ac", response: "b"},
		{name: "a close of nothing", answer: "a</response>b</think>c¶", thinking: "ab", response: "c"},
		{name: "a separator alone", answer: "a>b</think>", thinking: "ab", cut: true},
		{name: "an open tag that never ends", answer: "a<b</think>c¶", thinking: "a", response: "c"},
		{name: "an unknown block", answer: "a<aside>b</aside>c</think>", thinking: "abc", cut: true},
		{name: "an argument outside of a call", answer: `</think><argument key="a" type="string">x</argument><tools><call tool="f"></call></tools></message>¶`, calls: []Call{call(1, "f", `{}`)}},
		{name: "odd tags", answer: `</think><><call><tools a=b><call tool="f" x><argument key="a>v</argument></call></tools></message>¶`,
			calls: []Call{call(1, "", `{}`), call(2, "f", `{"": "v"}`)}},
	} {
		p, thinking, response, calls := read(written(c.answer), c.noThinking)
		want := []any{c.thinking, c.response, c.calls, c.cut}
		if diff := cmp.Diff(want, []any{thinking, response, calls, p.Cut()}); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.name, c.answer, diff)
		}
		m := Message{Role: RoleAssistant, Content: texts(c.response), Reasoning: c.thinking, Calls: c.calls}
		if diff := cmp.Diff(m, p.Message()); diff != "" || !p.Done() {
			t.Errorf("%s: Message, done %v (-want +got):\n%s", c.name, p.Done(), diff)
		}
	}
}

// Text that spells tags is text.
func TestTextIsNeverATag(t *testing.T) {
	const text = `<|close|>think<|sep|><|open|>response<|sep|>x<|end_of_msg|>`
	p, thinking, response, _ := read(encode([]Segment{{Text: text}}), false)
	if thinking != text || response != "" || !p.Cut() {
		t.Errorf("thinking %q, response %q", thinking, response)
	}
}

func TestEventsCome(t *testing.T) {
	p := NewParser(testSpecials, &byteDecoder{}, true)
	var came []Event
	for i, id := range written("aé</response>") {
		for _, e := range p.Push(id) {
			if i > 2 {
				t.Errorf("token %d gives %v", i, e)
			}
			came = append(came, e)
		}
	}
	if diff := cmp.Diff([]Event{{Kind: Response, Text: "a"}, {Kind: Response, Text: "é"}}, came); diff != "" {
		t.Error(diff)
	}
	if p.Message().Text() != "aé" || p.Done() {
		t.Errorf("%+v, done %v", p.Message(), p.Done())
	}
	came = p.Push(testSpecials.EndOfSequence)
	if came != nil || !p.Done() || p.Cut() {
		t.Errorf("the stop gives %v, done %v, cut %v", came, p.Done(), p.Cut())
	}
}

func TestFindSpecials(t *testing.T) {
	ids := map[string]int{openMark: 10, closeMark: 11, sepMark: 12, endOfMessageMark: 13, "[EOS]": 14}
	find := func(name string) (int, bool) { id, ok := ids[name]; return id, ok }
	got, err := FindSpecials(find)
	if err != nil || got != (Specials{10, 11, 12, 13, 14}) {
		t.Errorf("%+v, %v", got, err)
	}
	if !got.Stop(13) || !got.Stop(14) || got.Stop(12) {
		t.Error("stops are not the end of a message and of a sequence")
	}
	delete(ids, sepMark)
	delete(ids, endOfMessageMark)
	delete(ids, "[EOS]")
	for range 20 {
		_, err = FindSpecials(find)
		if bad, ok := errors.AsType[*SpecialError](err); !ok || bad.Name != sepMark {
			t.Errorf("error %v", err)
		}
	}
}

// checkRoundTrip renders a conversation with an answer, feeds the Parser what follows
// the prompt, and wants the answer back: its texts, and its calls with arguments that
// are rendered alike.
func checkRoundTrip(t *testing.T, noThinking bool, answer Message) {
	t.Helper()
	in := &Input{Messages: []Message{User("q")}, NoThinking: noThinking}
	prompt, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Messages, in.NoGenerationPrompt = append(in.Messages, answer), true
	whole, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(whole[:len(prompt)], prompt) {
		t.Fatal("the conversation does not begin with the prompt")
	}
	p, thinking, response, calls := read(encode(whole[len(prompt):]), noThinking)
	got := p.Message()
	if p.Cut() || got.Reasoning != thinking || got.Text() != response || !slices.Equal(got.Calls, calls) {
		t.Fatalf("message %+v, events %q %q %v, cut %v", got, thinking, response, calls, p.Cut())
	}
	want := answer.Reasoning
	if noThinking || blank(want) {
		want = ""
	}
	if got.Reasoning != want || got.Text() != answer.Text() || len(got.Calls) != len(answer.Calls) {
		t.Fatalf("want %+v\n got %+v", answer, got)
	}
	for i, call := range answer.Calls {
		if got.Calls[i].Name != call.Name {
			t.Fatalf("want call %+v, got %+v", call, got.Calls[i])
		}
	}
	in.Messages[1] = got
	again, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, again); diff != "" {
		t.Fatalf("rendered again (-want +got):\n%s", diff)
	}
}

func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	words := []string{"a", "漢字", `"`, "&amp;", "&", "\n", " ", "<|open|>", "<|sep|>x", "{}", "1", "\u2028", "\\", "é", ""}
	text := func() (s string) {
		for range rng.IntN(4) {
			s += words[rng.IntN(len(words))]
		}
		return s
	}
	var any func(depth int) value
	any = func(depth int) value {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		v := value{kind: kind(rng.IntN(kinds))}
		switch v.kind {
		case booleanKind:
			v.text = []string{"true", "false"}[rng.IntN(2)]
		case numberKind:
			v.text = []string{"0", "-1", "1.5", "1e5", "1e-07", "12345678901234567890"}[rng.IntN(6)]
		case stringKind:
			v.text = text()
		case arrayKind:
			for range rng.IntN(3) {
				v.items = append(v.items, any(depth-1))
			}
		case objectKind:
			for range rng.IntN(4) {
				v.members = append(v.members, member{text(), any(depth - 1)})
			}
		}
		return v
	}
	for range 1000 {
		answer := Message{Role: RoleAssistant, Content: texts(text()), Reasoning: text()}
		for range rng.IntN(3) {
			arguments := any(3)
			call := Call{Name: "f" + text()}
			switch arguments.kind {
			case objectKind:
				call.Arguments = string(arguments.append(nil, compact))
			case stringKind:
				if !json.Valid([]byte(arguments.text)) {
					call.Arguments = arguments.text
				}
			}
			answer.Calls = append(answer.Calls, call)
		}
		checkRoundTrip(t, rng.IntN(2) == 0, answer)
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("r", "c", "f", `{"a": "b", "n": 1.50, "o": {"x": [1, null]}}`, false)
	f.Add("", "", `f&"`, `{"a": `, true)
	f.Fuzz(func(t *testing.T, reasoning, content, name, arguments string, noThinking bool) {
		for _, s := range []string{reasoning, content, name, arguments} {
			if !utf8.ValidString(s) || strings.Contains(s, imageMark) {
				t.Skip("not text that Render passes on as it is")
			}
		}
		if v, ok := parseValue([]byte(arguments)); name == "" || ok && v.kind != objectKind {
			t.Skip("an error of Render's")
		}
		checkRoundTrip(t, noThinking, Message{Role: RoleAssistant, Content: texts(content), Reasoning: reasoning, Calls: []Call{{Name: name, Arguments: arguments}}})
	})
}

// FuzzParser feeds any ids. A Parser takes all, and what it gives can be rendered when
// its calls have names; the arguments are then JSON, or were said in the untyped form.
func FuzzParser(f *testing.F) {
	f.Add([]byte("\x00think\x02x\x01think\x02\x00tools\x02\x00call tool=\"f\"\x02\x00argument key=\"a\"\x02v\x01argument\x02\x03"), false)
	f.Add([]byte("\xe6\xbc\x00\x02\x01\x02\x05"), true)
	f.Fuzz(func(t *testing.T, stream []byte, noThinking bool) {
		ids := make([]int, len(stream))
		for i, b := range stream {
			if ids[i] = int(b); b > otherSpecial {
				ids[i] += firstByte
			}
		}
		p, thinking, response, calls := read(ids, noThinking)
		m := p.Message()
		if !p.Done() || m.Reasoning != thinking || m.Text() != response || !slices.Equal(m.Calls, calls) {
			t.Fatalf("message %+v, events %q %q %v", m, thinking, response, calls)
		}
		if p.Push(firstByte) != nil || p.Finish() != nil {
			t.Fatal("events after the end")
		}
		named := !slices.ContainsFunc(m.Calls, func(c Call) bool { return c.Name == "" })
		_, err := Render(&Input{Messages: []Message{m}})
		if bad, ok := errors.AsType[*InputError](err); err != nil && named && (!ok || !strings.HasSuffix(bad.Path, ".arguments")) {
			t.Fatalf("%+v: %v", m, err)
		}
	})
}
