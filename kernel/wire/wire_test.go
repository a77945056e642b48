package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"deltafin/kernel/wire"
)

func frames(s ...string) [][]byte {
	var f [][]byte
	for _, x := range s {
		f = append(f, []byte(x))
	}
	return f
}

func TestSignature(t *testing.T) {
	// The signature was computed with another implementation of HMAC-SHA256:
	// printf '{"msg_id":"a","msg_type":"b"}{}{}{}' | openssl dgst -sha256 -hmac key
	const signature = "1d62c592d2a60517087ec50bdfd9de0f8aec80b7927c1a0bbdd439fe9e80b6ec"
	c := wire.NewCodec("key")
	got := c.Encode(&wire.Message{RawHeader: json.RawMessage(`{"msg_id":"a","msg_type":"b"}`)})
	want := frames(wire.Delimiter, signature, `{"msg_id":"a","msg_type":"b"}`, "{}", "{}", "{}")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, key := range []string{"", "a key"} {
		c := wire.NewCodec(key)
		m := &wire.Message{
			Identities: frames("id", ""),
			Header:     wire.Header{MsgID: "1", Session: "s\"\n", Username: "é", Date: "d", MsgType: "t", Version: "5.5", SubshellID: "x"},
			Parent:     json.RawMessage(`{"msg_id":"0"}`),
			Content:    json.RawMessage(`{"a":[1]}`),
			Buffers:    frames("", "\x00\xff"),
		}
		sent := c.Encode(m)
		if key == "" && len(sent[3]) != 0 {
			t.Errorf("unsigned message with signature %q", sent[3])
		}
		got, err := c.Decode(sent)
		if err != nil {
			t.Fatal(err)
		}
		m.RawHeader, m.Metadata, m.Digest = got.RawHeader, json.RawMessage("{}"), got.Digest
		if !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, want %+v", got, m)
		}
		if got.ParentHeader().MsgID != "0" {
			t.Errorf("parent %+v", got.ParentHeader())
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	unsigned := wire.NewCodec("")
	const header = `{"msg_id":"a","msg_type":"b"}`
	for _, c := range []struct {
		frames [][]byte
		part   string
	}{
		{nil, "frames"},
		{frames(""), "frames"},
		{frames(wire.Delimiter), "frames"},
		{frames(wire.Delimiter, "", header, "{}", "{}"), "frames"},
		{append(frames(strings.Split(strings.Repeat("x,", 100), ",")...), frames(wire.Delimiter, "", header, "{}", "{}", "{}")...), "frames"},
		{frames(wire.Delimiter, "", "[1]", "{}", "{}", "{}"), "header"},
		{frames(wire.Delimiter, "", `{"msg_id":1,"msg_type":"b"}`, "{}", "{}", "{}"), "header"},
		{frames(wire.Delimiter, "", `{"msg_type":"b"}`, "{}", "{}", "{}"), "header"},
		{frames(wire.Delimiter, "", `{"msg_id":"a"}`, "{}", "{}", "{}"), "header"},
		{frames(wire.Delimiter, "", header, "null", "{}", "{}"), "parent_header"},
		{frames(wire.Delimiter, "", header, "{}", `{"a":NaN}`, "{}"), "metadata"},
		{frames(wire.Delimiter, "", header, "{}", "{}", `{"a":1}{}`), "content"},
		{frames(wire.Delimiter, "", header, "{}", "{}", ""), "content"},
		{frames(wire.Delimiter, "", header, "{}", "{}", "{\"a\":\"\xff\"}"), "content"},
		{frames(wire.Delimiter, "", header, "{}", "{}", strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000)), "content"},
		{frames(wire.Delimiter, "", header, `{"a":"`+strings.Repeat("x", wire.MaxHeader)+`"}`, "{}", "{}"), "parent_header"},
	} {
		_, err := unsigned.Decode(c.frames)
		var fe *wire.FormatError
		if !errors.As(err, &fe) || fe.Part != c.part {
			t.Errorf("%.100q: want a fault of %s, got %v", c.frames, c.part, err)
		}
	}
	signed := wire.NewCodec("key")
	good := signed.Encode(&wire.Message{RawHeader: json.RawMessage(header)})
	if _, err := signed.Decode(good); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(f [][]byte){
		func(f [][]byte) { f[1] = nil },
		func(f [][]byte) { f[1] = f[1][:10] },
		func(f [][]byte) { f[1] = bytes.ToUpper(f[1]) },
		func(f [][]byte) { f[5] = []byte("{ }") },
	} {
		bad := bytes.Split(bytes.Join(good, []byte{0}), []byte{0}) // a copy
		change(bad)
		_, err := signed.Decode(bad)
		var se *wire.SignatureError
		if !errors.As(err, &se) {
			t.Errorf("change %d: want a *SignatureError, got %v", i, err)
		}
	}
}

func TestJSON(t *testing.T) {
	type inner struct {
		F      float64 `json:"f"`
		hidden int
	}
	nan := math.NaN()
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]any{"a": "<&>", "b": 1}, `{"a":"<&>","b":1}`},
		{"a\xffb", `"a\ufffdb"`},
		{nan, "null"},
		{[]float64{1, nan, math.Inf(-1)}, "[1,null,null]"},
		{[2]float32{float32(nan), 2}, "[null,2]"},
		{map[string]any{"a": []any{nan, map[string]float64{"b": nan}}, "c": "d"}, `{"a":[null,{"b":null}],"c":"d"}`},
		{inner{F: nan, hidden: 1}, `{"f":null}`},
		{[]any{&inner{F: nan}, nil, (*inner)(nil)}, `[{"f":null},null,null]`},
		{map[string]any{"a": make(chan int), "b": func() {}, "c": 1}, `{"a":null,"b":null,"c":1}`},
		{json.RawMessage("{broken"), "null"},
		{json.RawMessage("{\"a\":\"\xff\"}"), "{\"a\":\"\uFFFD\"}"},
		{json.RawMessage(`{"a":"\ud800"}`), "{\"a\":\"\uFFFD\"}"},
		{json.RawMessage(`{"a":"\ud83e\udd88","n":12345678901234567890}`), `{"a":"🦈","n":12345678901234567890}`},
		{map[string]any{"bytes": []byte{1, 2}, "x": nan}, `{"bytes":"AQI=","x":null}`},
	} {
		if got := string(wire.JSON(c.v)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.v, got, c.want)
		}
	}
}

// node has two ways on, so that a graph of a few has more paths than can be walked.
type node struct {
	F    float64 `json:"f"`
	A, B *node
	More []*node `json:",omitempty"`
}

func TestJSONOfCycles(t *testing.T) {
	loop := map[string]any{"nan": math.NaN()}
	loop["self"] = loop
	self := &node{F: 1}
	self.A, self.B = self, self
	list := []any{1, nil}
	list[1] = list
	shared := &node{F: math.Inf(1)}
	for _, c := range []struct {
		v    any
		want string
	}{
		{loop, `{"nan":null,"self":null}`},
		{self, `{"A":null,"B":null,"More":null,"f":1}`},
		{list, `[1,null]`},
		{[]any{shared, shared}, `[{"A":null,"B":null,"More":null,"f":null},{"A":null,"B":null,"More":null,"f":null}]`},
	} {
		if got := string(wire.JSON(c.v)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	all := make([]*node, 30)
	for i := range all {
		all[i] = &node{More: all}
	}
	if got := wire.JSON(all); !json.Valid(got) || len(got) > 16<<20 {
		t.Errorf("%d bytes of 30 nodes that all lead to all", len(got))
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"\\\n\r\t\x00\x1f\x7f", "é🦈\u2028", "\xff\xc3", "\xf0\x9f\xa6", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := wire.AppendString(nil, s)
		if string(got) != string(wire.AppendString(nil, []byte(s))) {
			t.Fatalf("%q: string and bytes differ", s)
		}
		if !utf8.Valid(got) {
			t.Fatalf("%q: %q is not UTF-8", s, got)
		}
		var back, want string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %q: %v", s, got, err)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(std, &want); err != nil || back != want {
			t.Fatalf("%q: got %q, encoding/json has %q", s, back, want)
		}
	})
}

// Whatever the frames, Decode gives an error or a message that encodes to one with
// the same parts.
func FuzzDecode(f *testing.F) {
	const sep = "\x00\x01"
	for _, s := range [][]string{
		{wire.Delimiter, "", `{"msg_id":"a","msg_type":"b"}`, "{}", "{}", "{}"},
		{"id", wire.Delimiter, "", `{"msg_id":"a","msg_type":"b","subshell_id":null}`, `{"msg_id":"c"}`, "{}", `{"x":"\ud800"}`, "buffer"},
		{wire.Delimiter}, {""}, {wire.Delimiter, "", "[]", "{}", "{}", "{}"},
	} {
		f.Add([]byte(strings.Join(s, sep)))
	}
	c := wire.NewCodec("")
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := c.Decode(bytes.Split(b, []byte(sep)))
		if err != nil {
			return
		}
		again, err := c.Decode(c.Encode(m))
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v became %+v", m, again)
		}
		m.ParentHeader()
	})
}

func BenchmarkStream(b *testing.B) {
	c := wire.NewCodec("key")
	text := bytes.Repeat([]byte("a line of output\n"), 8<<10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Encode(&wire.Message{Content: wire.AppendString(nil, text)})
	}
}
