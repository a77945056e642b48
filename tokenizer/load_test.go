package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// byteRanks is a tiktoken.model of the 256 bytes and more tokens after them.
func byteRanks(more ...string) string {
	var b strings.Builder
	for i := range 256 {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for i, token := range more {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), 256+i)
	}
	return b.String()
}

func TestLoadFS(t *testing.T) {
	k, err := LoadFS(fstest.MapFS{
		ranksFile:  {Data: []byte(strings.ReplaceAll(byteRanks("ab"), "\n", "\r\n") + "\n\n")},
		configFile: {Data: []byte(`{"a": [1, {}], "added_tokens_decoder": {"258": {"content": "<x>", "special": true}}, "b": {}}`)},
	}, 513)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.Decode([]int{256, 257, 258, 512}); got != "ab<|reserved_token_257|><x><|reserved_token_512|>" {
		t.Errorf("got %q", got)
	}
}

func TestLoadErrors(t *testing.T) {
	ranks := byteRanks("ab", "cd")
	const noSpecials = `{"added_tokens_decoder": {}}`
	replace := func(old, new string) string {
		if strings.Count(ranks, old) != 1 {
			t.Fatalf("%q is not once in the ranks", old)
		}
		return strings.Replace(ranks, old, new, 1)
	}
	for _, c := range []struct {
		name          string
		ranks, config string
		vocab         int
		file          string
		line          int
		says          string
	}{
		{"three fields", replace("YWI= 256", "YWI= 256 7"), noSpecials, 514, ranksFile, 257, `want a rank, a number from 0, got "256 7"`},
		{"one field", replace("YWI= 256", "YWI="), noSpecials, 514, ranksFile, 257, `want base64 token, space, rank, got "YWI="`},
		{"bad base64", replace("YWI= 256", "YW!= 256"), noSpecials, 514, ranksFile, 257, `want a token in base64, got "YW!="`},
		{"no token", replace("YWI= 256", " 256"), noSpecials, 514, ranksFile, 257, `want a token in base64, got ""`},
		{"negative rank", replace("YWI= 256", "YWI= -1"), noSpecials, 514, ranksFile, 257, `got "-1"`},
		{"huge rank", replace("YWI= 256", "YWI= 99999999999999999999"), noSpecials, 514, ranksFile, 257, `got "99999999999999999999"`},
		{"rank out of range", replace("YWI= 256", "YWI= 258"), noSpecials, 514, ranksFile, 257, "want ranks 0 to 257, as there are 258 tokens, got rank 258"},
		{"rank twice, so another is missing", replace("Y2Q= 257", "Y2Q= 256"), noSpecials, 514, ranksFile, 258, "rank 256 again, after line 257"},
		{"token twice", replace("Y2Q= 257", "YWI= 257"), noSpecials, 514, ranksFile, 258, `"ab" again, after line 257`},
		{"byte missing", replace("YQ== 97", "YWE= 97"), noSpecials, 514, ranksFile, 0, "none for byte 0x61"},
		{"a line is gone", replace("YWI= 256\n", ""), noSpecials, 514, ranksFile, 257, "want ranks 0 to 256"},
		{"empty ranks", "", noSpecials, 514, ranksFile, 0, "want a token for every byte"},
		{"other vocabulary", ranks, noSpecials, 515, ranksFile, 0, "want 259 ranks (vocab_size 515 of config.json less 256 special ids), got 258"},
		{"special below", ranks, "{\n\"added_tokens_decoder\":\n{\n\"257\": {\"content\": \"x\"}}}", 514, configFile, 4, `want special ids from 258 to 513, got "257"`},
		{"special above", ranks, `{"added_tokens_decoder": {"514": {"content": "x"}}}`, 514, configFile, 1, `got "514"`},
		{"special no number", ranks, `{"added_tokens_decoder": {"x": {"content": "x"}}}`, 514, configFile, 1, `got "x"`},
		{"special unnamed", ranks, `{"added_tokens_decoder": {"258": {"content": ""}}}`, 514, configFile, 1, "want a content"},
		{"special of another type", ranks, `{"added_tokens_decoder": {"258": {"content": 5}}}`, 514, configFile, 1, "want a content"},
		{"special twice", ranks, `{"added_tokens_decoder": {"258": {"content": "x"}, "258": {"content": "y"}}}`, 514, configFile, 1, "id 258 again"},
		{"name twice", ranks, `{"added_tokens_decoder": {"258": {"content": "x"}, "259": {"content": "x"}}}`, 514, configFile, 1, `"x" for id 258 and id 259`},
		{"reserved name taken", ranks, `{"added_tokens_decoder": {"258": {"content": "<|reserved_token_259|>"}}}`, 514, configFile, 0, "for id 258 and id 259"},
		{"no specials", ranks, `{}`, 514, configFile, 0, "want a member added_tokens_decoder"},
		{"specials no object", ranks, `{"added_tokens_decoder": []}`, 514, configFile, 1, "want added_tokens_decoder to be an object, got ["},
		{"no object", ranks, `7`, 514, configFile, 1, "want the file to be an object, got 7"},
		{"no JSON", ranks, "{\n\"a\": nope}", 514, configFile, 2, "want JSON"},
		{"cut JSON", ranks, "{\n\"added_tokens_decoder\": {\"258\": {\"content\"", 514, configFile, 2, "want JSON"},
		{"empty config", ranks, "", 514, configFile, 1, "want JSON"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{ranksFile: c.ranks, configFile: c.config} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Load(dir, c.vocab)
		bad, ok := errors.AsType[*FileError](err)
		if !ok {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		if bad.File != filepath.Join(dir, c.file) || bad.Line != c.line || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %s line %d\n got %v\nwant %s", c.name, c.file, c.line, err, c.says)
		}
	}
}

func TestLoadMissingFile(t *testing.T) {
	for _, only := range []string{ranksFile, configFile} {
		files := fstest.MapFS{ranksFile: {Data: []byte(byteRanks())}, configFile: {Data: []byte("{}")}}
		delete(files, only)
		_, err := LoadFS(files, 512)
		bad, ok := errors.AsType[*FileError](err)
		if !ok || bad.File != only || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("without %s: %v", only, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	config := `{"added_tokens_decoder": {"258": {"content": "<x>", "special": true}}}`
	f.Add([]byte(byteRanks("ab", "cd")), []byte(config), 514)
	f.Add([]byte("AA== 0\nAQ== 1\n\n"), []byte(config), 258)
	f.Add([]byte("AA==\n"), []byte("{"), 0)
	f.Fuzz(func(t *testing.T, ranks, config []byte, vocab int) {
		k, err := LoadFS(fstest.MapFS{ranksFile: {Data: ranks}, configFile: {Data: config}}, vocab)
		if err != nil {
			if _, ok := errors.AsType[*FileError](err); !ok {
				t.Fatalf("error %T: %v", err, err)
			}
			return
		}
		if k.VocabSize() != vocab || k.Base() != vocab-SpecialCount {
			t.Fatalf("vocabulary %d, base %d, want %d", k.VocabSize(), k.Base(), vocab)
		}
		for id := range vocab {
			name := string(k.Bytes(id))
			if special, ok := k.Special(name); id >= k.Base() && (!ok || special != id) {
				t.Fatalf("special %d is %q, which is %d", id, name, special)
			}
		}
		const text = "abcd 漢 <x>"
		if got := k.Decode(k.Encode(text)); got != text {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}
