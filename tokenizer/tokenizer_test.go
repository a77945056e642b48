package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

func Example() {
	k, err := Load("testdata/nano-k3", 8192)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := k.Encode("The capital of France is")
	fmt.Println(ids)
	fmt.Printf("%q\n", k.Decode(ids))
	fmt.Println(len(k.Encode("<|open|>")), k.EncodeMarkup("<|open|>"))
	// Output:
	// [1046 1326 289 6434 277]
	// "The capital of France is"
	// 5 [7939]
}

func TestSpecials(t *testing.T) {
	k := nano(t)
	if k.Base() != 7936 || k.VocabSize() != nanoVocab {
		t.Fatalf("base %d, vocabulary %d", k.Base(), k.VocabSize())
	}
	for name, want := range map[string]int{
		"[BOS]": 7936, "[EOS]": 7937, "<|end_of_msg|>": 7938, "<|sep|>": 7941,
		"<|reserved_token_8000|>": 8000, "<osagent_mode>": 8001, "[PAD]": 8191,
	} {
		if id, ok := k.Special(name); !ok || id != want {
			t.Errorf("Special(%q) = %d, %v, want %d", name, id, ok, want)
		}
		if got := string(k.Bytes(want)); got != name {
			t.Errorf("Bytes(%d) = %q, want %q", want, got, name)
		}
		if got := k.EncodeMarkup(name); !slices.Equal(got, []int{want}) {
			t.Errorf("EncodeMarkup(%q) = %v, want [%d]", name, got, want)
		}
		ids := k.Encode("x " + name + name)
		if i := slices.IndexFunc(ids, func(id int) bool { return id >= k.Base() }); i >= 0 {
			t.Errorf("Encode of %q in user text gives special %d", name, ids[i])
		}
		if got := k.Decode(ids); got != "x "+name+name {
			t.Errorf("user text with %q came back as %q", name, got)
		}
	}
	if id, ok := k.Special("<|opener|>"); ok {
		t.Errorf("a special that isn't one has id %d", id)
	}
}

func TestEncodeMarkup(t *testing.T) {
	k := nano(t)
	var want []int
	want = append(want, k.Encode("a<b ")...)
	want = append(want, 7939)
	want = append(want, k.Encode("message role")...)
	want = append(want, 7941, 7937)
	want = append(want, k.Encode("<|open|")...)
	text := "a<b <|open|>message role<|sep|>[EOS]<|open|"
	if got := k.EncodeMarkup(text); !slices.Equal(got, want) {
		t.Errorf("EncodeMarkup(%q)\n got %v\nwant %v", text, got, want)
	}
	if got := k.Decode(want); got != text {
		t.Errorf("Decode gives %q", got)
	}
	if got := k.EncodeMarkup("plain words"); !slices.Equal(got, k.Encode("plain words")) {
		t.Errorf("markup without specials: %v", got)
	}
}

// One special's name begins with another's: the longest counts.
func TestLongestSpecial(t *testing.T) {
	tokens := make([][]byte, 256)
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
	}
	names := make([]string, SpecialCount)
	for i := range names {
		names[i] = strings.Repeat("s", i+1)
	}
	k := newTokenizer(tokens, names)
	if got, want := k.EncodeMarkup("sss-s"), []int{258, '-', 256}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestIDsOutOfRange(t *testing.T) {
	k := nano(t)
	for _, id := range []int{-1, nanoVocab, 1 << 40} {
		if k.Bytes(id) != nil {
			t.Errorf("Bytes(%d) = %q", id, k.Bytes(id))
		}
	}
	if got := k.Decode([]int{'a', -1, 'b', nanoVocab}); got != "ab" {
		t.Errorf("Decode gives %q", got)
	}
}

// The expected readings are those of a decoder that replaces maximal subparts, such as
// bytes.decode("utf-8", "replace").
func TestInvalidUTF8(t *testing.T) {
	k := nano(t)
	for text, want := range map[string]string{
		"\xff":                     "\ufffd",
		"a\x80b":                   "a\ufffdb",
		"\xe6\xbc":                 "\ufffd",
		"\xe6\xbcx":                "\ufffdx",
		"\xe6\xbc\xa2":             "漢",
		"\xc0\xaf":                 "\ufffd\ufffd",
		"\xed\xa0\x80":             "\ufffd\ufffd\ufffd", // a surrogate
		"\xe0\x80\x80":             "\ufffd\ufffd\ufffd", // overlong
		"\xf0\x9f\x98":             "\ufffd",
		"\xf0\x9f\x98\x80":         "😀",
		"\xf0\x9f\xf0\x9f\x98\x80": "\ufffd😀",
		"\xf4\x90\x80\x80":         "\ufffd\ufffd\ufffd\ufffd",
		"\xf5\xf8":                 "\ufffd\ufffd",
		"\xe6\xe6\xbc\xa2\xbc":     "\ufffd漢\ufffd",
		"\ufffd":                   "\ufffd",
		"\xef\xbf":                 "\ufffd",
	} {
		if got := k.Encode(text); !slices.Equal(got, k.Encode(want)) {
			t.Errorf("Encode(%q) reads %q, want %q", text, k.Decode(got), want)
		}
		if got := strings.Join(k.Pieces(text), ""); got != want {
			t.Errorf("Pieces(%q) joined: %q, want %q", text, got, want)
		}
		if got := k.Decode(byteIDs(k, text)); got != want {
			t.Errorf("Decode of the bytes %q: %q, want %q", text, got, want)
		}
	}
}

// byteIDs gives the ids of a text's single bytes.
func byteIDs(k *Tokenizer, text string) []int {
	var ids []int
	for i := range len(text) {
		ids = append(ids, int(k.rank[text[i:i+1]]))
	}
	return ids
}

func TestDecoderHoldsBack(t *testing.T) {
	k := nano(t)
	d := k.NewDecoder()
	for range 2 { // a Decoder is as new after Flush
		for i, want := range []string{"a", "", "", "漢", "", "", "", "😀", "", "\ufffdb"} {
			text := "a漢😀\xe6b"
			if got := d.Push(byteIDs(k, text)[i]); got != want {
				t.Errorf("byte %d gives %q, want %q", i, got, want)
			}
		}
		d.Push(byteIDs(k, "\xe6")[0])
		d.Push(byteIDs(k, "\xbc")[0])
		if got := d.Flush(); got != "\ufffd" {
			t.Errorf("Flush gives %q", got)
		}
		if got := d.Flush(); got != "" {
			t.Errorf("a second Flush gives %q", got)
		}
	}
}

// checkDecoder holds the stream against Decode and the plain reading of the bytes, and
// what a Decoder has given so far against the whole: never more than three bytes behind.
func checkDecoder(t *testing.T, k *Tokenizer, ids []int) {
	t.Helper()
	var raw []byte
	var stream strings.Builder
	d := k.NewDecoder()
	for _, id := range ids {
		raw = append(raw, k.Bytes(id)...)
		stream.WriteString(d.Push(id))
		if !strings.HasPrefix(validUTF8(string(raw)), stream.String()) {
			t.Fatalf("ids %v: after %q the stream has %q", ids, raw, stream.String())
		}
		if len(d.held) > 3 {
			t.Fatalf("ids %v: %q held back", ids, d.held)
		}
	}
	stream.WriteString(d.Flush())
	if got, want := stream.String(), k.Decode(ids); got != want || want != validUTF8(string(raw)) {
		t.Fatalf("ids %v: stream %q, Decode %q, bytes %q", ids, got, want, raw)
	}
}

func TestDecoderOnAnyIDs(t *testing.T) {
	k := nano(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		ids := make([]int, rng.IntN(20))
		for i := range ids {
			switch rng.IntN(3) {
			case 0:
				ids[i] = rng.IntN(256) // in tiktoken's way a byte's rank is near its value
			case 1:
				ids[i] = rng.IntN(k.VocabSize())
			default:
				ids[i] = byteIDs(k, "\xe6\xbc\xf0\x9f\x98\xed\xa0\xc2\x80")[rng.IntN(9)]
			}
		}
		checkDecoder(t, k, ids)
	}
}

func TestCuts(t *testing.T) {
	k := nano(t)
	lengths := func(text string) (runes []int) {
		for s := range k.slices(text) {
			runes = append(runes, utf8.RuneCountInString(s))
		}
		return runes
	}
	for _, c := range []struct {
		name, text string
		want       []int
	}{
		{"empty", "", nil},
		{"at the limit of a run", strings.Repeat("é", 25000), []int{25000}},
		{"over it", strings.Repeat("é", 25001), []int{25000, 1}},
		{"twice over", strings.Repeat("é", 60001), []int{25000, 25000, 10001}},
		{"a run begins anew after a cut and after a change", strings.Repeat("x", 25001) + " " + strings.Repeat("x", 25000), []int{25000, 25002}},
		{"spaces of several kinds are one run", strings.Repeat(" \x1c\n\u3000\u0085", 5001), []int{25000, 5}},
		{"limit of a slice", strings.Repeat("x ", 200000), []int{400000}},
		{"over it", strings.Repeat("x ", 200001), []int{400000, 2}},
		{"a slice counts runs afresh", strings.Repeat("x ", 195000) + strings.Repeat("x", 35001), []int{400000, 25000, 1}},
		{"a run's cut doesn't move a slice's", strings.Repeat("x", 25001) + strings.Repeat("x ", 200000), []int{25000, 375000, 25001}},
	} {
		if got := lengths(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: slices of %v code points, want %v", c.name, got, c.want)
		}
	}
}

// A cut changes the pieces: the space before the 25,001st character stands alone.
func TestCutSeparatesPieces(t *testing.T) {
	k := nano(t)
	text := strings.Repeat(" ", 25000) + "  a"
	got := k.Pieces(text)
	if want := []string{text[:25000], " ", " a"}; !slices.Equal(got, want) {
		t.Errorf("%d pieces, the last %q", len(got), got[len(got)-2:])
	}
}

// mergeByDefinition merges a piece as the rule says: while there are pairs that are a
// token, the leftmost of the lowest rank.
func mergeByDefinition(k *Tokenizer, piece string) (ids []int) {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		at := -1
		for i := range len(parts) - 1 {
			if r, ok := k.rank[parts[i]+parts[i+1]]; ok && (at < 0 || r < k.rank[parts[at]+parts[at+1]]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
	for _, part := range parts {
		ids = append(ids, int(k.rank[part]))
	}
	return ids
}

func TestMerge(t *testing.T) {
	k := nano(t)
	prose, err := os.ReadFile("testdata/encode.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	m := merger{t: k}
	for range 2000 {
		n := 2 + rng.IntN(60)
		at := rng.IntN(len(prose) - n)
		piece := string(prose[at : at+n])
		if rng.IntN(3) == 0 { // long runs of ties
			piece = strings.Repeat(piece[:1+rng.IntN(2)], n)[:n]
		}
		want := mergeByDefinition(k, piece)
		if r, ok := k.rank[piece]; ok {
			want = []int{int(r)}
		}
		if got := m.appendPiece(nil, piece); !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", piece, got, want)
		}
	}
}

// TestClasses holds classRuns against the standard library's tables. They may be of
// different Unicode versions: then one has no class for what the other has.
func TestClasses(t *testing.T) {
	table := newClassTable()
	differ := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		var want class
		isHan := unicode.Is(unicode.Han, r)
		add := func(c class, in bool) {
			if in {
				want |= c
			}
		}
		add(upper, !isHan && unicode.In(r, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M))
		add(lower, !isHan && unicode.In(r, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M))
		add(word, unicode.In(r, unicode.L, unicode.N))
		add(number, unicode.In(r, unicode.N))
		add(han, isHan)
		add(space, unicode.Is(unicode.White_Space, r))
		got := table.pages[r>>8][r&0xff]
		if got == want {
			continue
		}
		if differ++; got != 0 && want != 0 {
			t.Errorf("%U: class %#x, want %#x", r, got, want)
		}
	}
	if differ > 12000 {
		t.Errorf("%d code points differ from Unicode %s", differ, unicode.Version)
	}
	for r, want := range map[rune]class{
		'\U000105de': word | upper | lower, // Todhri, since Unicode 16.0
		'\ua7da':     word | upper,         // Latin lambda, since 16.0
		'\U0001cd00': 0,                    // a symbol of 16.0
		'\U000323b0': 0,                    // Han extension J, since 17.0
		'\U0002ebf0': word | han,           // Han extension I, since 15.1
	} {
		if got := table.pages[r>>8][r&0xff]; got != want {
			t.Errorf("%U: class %#x, want %#x", r, got, want)
		}
	}
}

func FuzzEncode(f *testing.F) {
	k := nano(f)
	for _, seed := range []string{
		"", "Hello, world!\n", "it's WE'LL  \r\n\r\n x", "漢字kana〇", "\xe6\xbc\xff", "a\u0301B\u0301 1234", "<|open|>", " \u00a0\u2003\x1c", "'\u017f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		valid := validUTF8(text)
		if !utf8.ValidString(valid) || utf8.ValidString(text) && valid != text {
			t.Fatalf("%q reads as %q", text, valid)
		}
		pieces := k.Pieces(text)
		if strings.Join(pieces, "") != valid || slices.Contains(pieces, "") {
			t.Fatalf("%q: pieces %q", text, pieces)
		}
		ids := k.Encode(text)
		if got := k.Decode(ids); got != valid {
			t.Fatalf("%q came back as %q", text, got)
		}
		if got := k.Decode(k.EncodeMarkup(text)); got != valid {
			t.Fatalf("as markup %q came back as %q", text, got)
		}
		var want []int
		for _, p := range pieces {
			if r, ok := k.rank[p]; ok {
				want = append(want, int(r))
			} else {
				want = append(want, mergeByDefinition(k, p)...)
			}
		}
		if !slices.Equal(ids, want) {
			t.Fatalf("%q: Encode gives %v, the definition %v", text, ids, want)
		}
	})
}

func FuzzDecoder(f *testing.F) {
	k := nano(f)
	f.Add([]byte("\x00\x61\x00\xe6\x1f\x03"))
	f.Add([]byte("\x00\xf0\x00\x9f\x00\x98\x00\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var ids []int
		for ; len(b) >= 2; b = b[2:] {
			ids = append(ids, int(b[0])<<8|int(b[1])-1)
		}
		checkDecoder(t, k, ids)
	})
}

func BenchmarkEncode(b *testing.B) {
	k := nano(b)
	code, err := os.ReadFile("load.go")
	if err != nil {
		b.Fatal(err)
	}
	english := "The engine reads a layer's experts from the drives while the layer before it is still being computed. " +
		"Nothing in the answer depends on the order in which they arrive, so a schedule can be changed, measured and trusted.\n"
	for name, text := range map[string]string{
		"English": strings.Repeat(english, 100),
		"code":    string(code),
		"Han":     strings.Repeat("引擎從磁碟讀取各層的專家，而前一層仍在計算之中。", 200),
		"a":       strings.Repeat("a", 60001),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				k.Encode(text)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		nano(b)
	}
}

// Any number of goroutines may use a Tokenizer; the race detector says if not.
func TestAtOnce(t *testing.T) {
	k := nano(t)
	const text = "The same text, 漢字 and <|open|>"
	want := k.EncodeMarkup(text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got := k.EncodeMarkup(text); !slices.Equal(got, want) || k.Decode(got) != text {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}
