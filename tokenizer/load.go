package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// The files that Load reads.
const (
	ranksFile  = "tiktoken.model"
	configFile = "tokenizer_config.json"
)

// FileError says what is wrong with one of the tokenizer's files.
type FileError struct {
	File string // path
	Line int    // from 1; 0 where it is no one line
	Want string
	Got  string
	Err  error // the cause, if another package found it (fs.ErrNotExist, a JSON syntax error)
}

func (e *FileError) Error() string {
	at := e.File
	if e.Line > 0 {
		at += ":" + strconv.Itoa(e.Line)
	}
	return fmt.Sprintf("tokenizer: %s: want %s, got %s; take the file anew from the model's release", at, e.Want, e.Got)
}

func (e *FileError) Unwrap() error { return e.Err }

// Load reads tiktoken.model and tokenizer_config.json from dir. vocab is config.json's
// vocab_size: the number of ranks and 256. An error is a *FileError.
func Load(dir string, vocab int) (*Tokenizer, error) {
	return load(os.DirFS(dir), dir, vocab)
}

// LoadFS is Load from the root of a file system, for a model that is not on a disk.
func LoadFS(fsys fs.FS, vocab int) (*Tokenizer, error) {
	return load(fsys, "", vocab)
}

func load(fsys fs.FS, dir string, vocab int) (*Tokenizer, error) {
	ranksPath, configPath := filepath.Join(dir, ranksFile), filepath.Join(dir, configFile)
	data, err := readFile(fsys, ranksFile, ranksPath)
	if err != nil {
		return nil, err
	}
	tokens, err := parseRanks(ranksPath, data)
	if err != nil {
		return nil, err
	}
	base := len(tokens)
	if base+SpecialCount != vocab {
		return nil, &FileError{
			File: ranksPath,
			Want: fmt.Sprintf("%d ranks (vocab_size %d of config.json less %d special ids)", vocab-SpecialCount, vocab, SpecialCount),
			Got:  fmt.Sprint(base),
		}
	}
	if data, err = readFile(fsys, configFile, configPath); err != nil {
		return nil, err
	}
	names, err := parseSpecials(configPath, data, base)
	if err != nil {
		return nil, err
	}
	return newTokenizer(tokens, names), nil
}

// maxFile bounds a tokenizer's files: K3's ranks are 2.8 MB.
const maxFile = 64 << 20

func readFile(fsys fs.FS, name, path string) ([]byte, error) {
	info, err := fs.Stat(fsys, name) // before opening, which would wait on a pipe
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		got := fmt.Sprintf("%d bytes", info.Size())
		if !info.Mode().IsRegular() {
			got = "mode " + info.Mode().String()
		}
		return nil, &FileError{File: path, Want: fmt.Sprintf("an ordinary file of at most %d bytes", maxFile), Got: got}
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(fsys, name)
	}
	if err != nil {
		got := "an error reading it: " + err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			got = "no such file"
		}
		return nil, &FileError{File: path, Want: "a readable file", Got: got, Err: err}
	}
	return data, nil
}

// newTokenizer takes ownership of tokens, by rank, and of the names of the 256 specials.
func newTokenizer(tokens [][]byte, names []string) *Tokenizer {
	t := &Tokenizer{
		tokens:   tokens,
		rank:     make(map[string]int32, len(tokens)),
		base:     len(tokens),
		specials: make(map[string]int, len(names)),
		class:    newClassTable(),
	}
	for r, token := range tokens {
		t.rank[string(token)] = int32(r)
		t.longest = max(t.longest, len(token))
	}
	for i, name := range names {
		t.tokens = append(t.tokens, []byte(name))
		t.specials[name] = t.base + i
		t.bySpecialByte[name[0]] = append(t.bySpecialByte[name[0]], special{name, t.base + i})
	}
	for _, s := range t.bySpecialByte {
		slices.SortFunc(s, func(a, b special) int { return len(b.name) - len(a.name) })
	}
	return t
}

// parseRanks reads tiktoken.model: on each line the base64 of a token, a space and its
// rank. The ranks are 0 to n-1, each once, no token twice, and every byte is a token.
func parseRanks(path string, data []byte) ([][]byte, error) {
	type entry struct {
		token []byte
		rank  int
		line  int
	}
	var entries []entry
	seen := make(map[string]int) // token → line
	line := 0
	for row := range bytes.Lines(data) {
		line++
		fail := func(want, got string) error {
			return &FileError{File: path, Line: line, Want: want, Got: got}
		}
		row = bytes.TrimRight(row, "\r\n")
		if len(row) == 0 {
			continue
		}
		coded, digits, ok := bytes.Cut(row, []byte(" "))
		if !ok {
			return nil, fail("base64 token, space, rank", quote(row))
		}
		token := make([]byte, base64.StdEncoding.DecodedLen(len(coded)))
		n, err := base64.StdEncoding.Decode(token, coded)
		if err != nil || n == 0 {
			return nil, fail("a token in base64", quote(coded))
		}
		token = token[:n]
		rank, err := strconv.ParseUint(string(digits), 10, 31)
		if err != nil {
			return nil, fail("a rank, a number from 0", quote(digits))
		}
		if first, ok := seen[string(token)]; ok {
			return nil, fail("each token once", fmt.Sprintf("%q again, after line %d", token, first))
		}
		seen[string(token)] = line
		entries = append(entries, entry{token, int(rank), line})
	}
	tokens := make([][]byte, len(entries))
	lines := make([]int, len(entries)) // by rank
	for _, e := range entries {
		if e.rank >= len(tokens) {
			return nil, &FileError{File: path, Line: e.line, Want: fmt.Sprintf("ranks 0 to %d, as there are %d tokens", len(tokens)-1, len(tokens)), Got: fmt.Sprintf("rank %d", e.rank)}
		}
		if lines[e.rank] > 0 {
			return nil, &FileError{File: path, Line: e.line, Want: "each rank once", Got: fmt.Sprintf("rank %d again, after line %d", e.rank, lines[e.rank])}
		}
		tokens[e.rank], lines[e.rank] = e.token, e.line
	}
	for b := range 256 {
		if _, ok := seen[string([]byte{byte(b)})]; !ok {
			return nil, &FileError{File: path, Want: "a token for every byte", Got: fmt.Sprintf("none for byte 0x%02x", b)}
		}
	}
	return tokens, nil
}

// parseSpecials reads the names of the special ids from tokenizer_config.json, in the
// order of the ids from base on. An id that added_tokens_decoder doesn't name is
// <|reserved_token_ID|>.
func parseSpecials(path string, data []byte, base int) ([]string, error) {
	var line int
	fail := func(want, got string, err error) error {
		return &FileError{File: path, Line: line, Want: want, Got: got, Err: err}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	lineAt := func(offset int64) int { return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")) }
	syntax := func(err error) error {
		line = lineAt(d.InputOffset())
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			line = lineAt(s.Offset)
		}
		return fail("JSON", err.Error(), err)
	}
	names := make([]string, SpecialCount)
	// object calls member for each member of the object that comes next.
	object := func(what string, member func(key string) error) error {
		token, err := d.Token()
		if err != nil {
			return syntax(err)
		}
		line = lineAt(d.InputOffset())
		if token != json.Delim('{') {
			return fail(what+" to be an object", fmt.Sprintf("%v", token), nil)
		}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return syntax(err)
			}
			line = lineAt(d.InputOffset())
			if err := member(key.(string)); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return syntax(err)
		}
		return nil
	}
	seen := make(map[string]int) // name → id
	addedToken := func(key string) error {
		id, err := strconv.ParseUint(key, 10, 31)
		if err != nil || int(id) < base || int(id) >= base+SpecialCount {
			return fail(fmt.Sprintf("special ids from %d to %d", base, base+SpecialCount-1), quote([]byte(key)), nil)
		}
		var added struct {
			Content *string `json:"content"`
		}
		if err := d.Decode(&added); err != nil {
			if _, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok {
				return syntax(err)
			}
		}
		if added.Content == nil || *added.Content == "" {
			return fail("a content, the special's name, for id "+key, "none", nil)
		}
		if names[int(id)-base] != "" {
			return fail("each id once", "id "+key+" again", nil)
		}
		if other, ok := seen[*added.Content]; ok {
			return fail("each name once", fmt.Sprintf("%q for id %d and id %d", *added.Content, other, id), nil)
		}
		names[int(id)-base] = *added.Content
		seen[*added.Content] = int(id)
		return nil
	}
	found := false
	err := object("the file", func(key string) error {
		if key == "added_tokens_decoder" {
			found = true
			return object(key, addedToken)
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return syntax(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !found {
		line = 0
		return nil, fail("a member added_tokens_decoder", "none", nil)
	}
	for i, name := range names {
		if name == "" {
			names[i] = fmt.Sprintf("<|reserved_token_%d|>", base+i)
			if other, ok := seen[names[i]]; ok {
				line = 0
				return nil, fail("each name once", fmt.Sprintf("%q for id %d and id %d", names[i], other, base+i), nil)
			}
		}
	}
	return names, nil
}

// quote shows bytes of a file in an error, cut to a readable length.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}
