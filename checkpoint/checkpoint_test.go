package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// raw is a safetensors file with this header text and n bytes of data.
func raw(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range n {
		b = append(b, byte(i))
	}
	return b
}

// writeDir writes files to a new directory.
func writeDir(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mustOpen opens a directory until the test ends.
func mustOpen(t testing.TB, dir string) *Snapshot {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// abc are three tensors: a BF16 [2 3], b F32 [] and c U8 [0 5].
func abc() []Tensor {
	return []Tensor{
		{Name: "b", DType: "F32", Shape: []int{}, Data: []byte{1, 2, 3, 4}},
		{Name: "c", DType: "U8", Shape: []int{0, 5}},
		{Name: "a", DType: "BF16", Shape: []int{2, 3}, Data: []byte("abcdefghijkl")},
	}
}

func check(t *testing.T, s *Snapshot, want []Tensor) {
	t.Helper()
	var names []string
	for _, w := range want {
		names = append(names, w.Name)
		got, err := s.Want(w.Name, w.DType, w.Shape...)
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got.Data, w.Data) || got.Name != w.Name {
			t.Errorf("%s: got %q, want %q", w.Name, got.Data, w.Data)
		}
		if got.File != "" && filepath.IsAbs(got.File) {
			b, err := os.ReadFile(got.File)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b[got.Offset:got.Offset+int64(len(got.Data))], w.Data) {
				t.Errorf("%s: offset %d holds other bytes", w.Name, got.Offset)
			}
		}
	}
	slices.Sort(names)
	if got := s.Names(); !slices.Equal(got, names) {
		t.Errorf("names %q, want %q", got, names)
	}
}

func TestSingleFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, SingleFile)
	metadata := map[string]string{"format": "pt", "quoted\n\"<&>": "é"}
	if err := Write(file, abc(), metadata); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir)
	check(t, s, abc())
	if !reflect.DeepEqual(s.Metadata(), metadata) {
		t.Errorf("metadata %q, want %q", s.Metadata(), metadata)
	}

	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Bytes() != int64(len(first)) {
		t.Errorf("Bytes %d, want %d", s.Bytes(), len(first))
	}
	if n := binary.LittleEndian.Uint64(first); n%8 != 0 {
		t.Errorf("header of %d bytes, want a multiple of 8", n)
	}
	if err := Write(file, abc(), metadata); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(file); !bytes.Equal(first, second) {
		t.Error("equal tensors gave two different files")
	}
	check(t, s, abc()) // the replaced file is still mapped
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files after writing one", len(entries))
	}

	one, err := OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check(t, one, abc())
	for range 2 {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenFileInWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("x.safetensors", abc(), nil); err != nil {
		t.Fatal(err)
	}
	s, err := OpenFile("x.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	check(t, s, abc())
}

func TestSharded(t *testing.T) {
	dir := t.TempDir()
	tensors := abc()
	if err := WriteSharded(dir, [][]Tensor{tensors[2:], nil, tensors[:2]}, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir)
	check(t, s, abc())
	a, _ := s.Tensor("a")
	if want := filepath.Join(dir, "model-00001-of-00003.safetensors"); a.File != want {
		t.Errorf("a is in %s, want %s", a.File, want)
	}

	twice := [][]Tensor{tensors[:1], tensors[:1]}
	var tensor *TensorError
	if err := WriteSharded(t.TempDir(), twice, nil); !errors.As(err, &tensor) || tensor.Tensor != "b" {
		t.Errorf("a tensor in two shards: got %v", err)
	}
}

// TestLinks opens a directory whose files are links to files with other names
// elsewhere, as download caches have them.
func TestLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	from, to := t.TempDir(), t.TempDir()
	if err := WriteSharded(from, [][]Tensor{abc()}, nil); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(from)
	for i, e := range entries {
		blob := filepath.Join(from, fmt.Sprint(i))
		if err := errors.Join(os.Rename(filepath.Join(from, e.Name()), blob), os.Symlink(blob, filepath.Join(to, e.Name()))); err != nil {
			t.Fatal(err)
		}
	}
	check(t, mustOpen(t, to), abc())
}

func TestOpenFS(t *testing.T) {
	dir := t.TempDir()
	if err := WriteSharded(dir, [][]Tensor{abc()}, nil); err != nil {
		t.Fatal(err)
	}
	memory := fstest.MapFS{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		memory[e.Name()] = &fstest.MapFile{Data: b}
	}
	for i, fsys := range []fs.FS{memory, lending{memory}, os.DirFS(dir)} {
		s, err := OpenFS(fsys)
		if err != nil {
			t.Fatal(err)
		}
		check(t, s, abc())
		if a, _ := s.Tensor("a"); i == 1 && &a.Data[0] != &memory[a.File].Data[a.Offset] {
			t.Error("lent bytes were copied")
		}
		s.Close()
	}
}

// lending is a file system that lends its bytes.
type lending struct{ fstest.MapFS }

type lentFile struct {
	fs.File
	b []byte
}

func (f lentFile) Bytes() []byte { return f.b }

func (l lending) Open(name string) (fs.File, error) {
	f, err := l.MapFS.Open(name)
	if err != nil {
		return nil, err
	}
	return lentFile{f, l.MapFS[name].Data}, nil
}

func TestWant(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, SingleFile), abc(), nil); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir)
	for _, c := range []struct {
		name  string
		dtype DType
		shape []int
		want  TensorError
	}{
		{"a", "F32", []int{2, 3}, TensorError{"a", filepath.Join(dir, SingleFile), "F32 [2 3]", "BF16 [2 3]"}},
		{"a", "BF16", []int{3, 2}, TensorError{"a", filepath.Join(dir, SingleFile), "BF16 [3 2]", "BF16 [2 3]"}},
		{"b", "F32", []int{1}, TensorError{"b", filepath.Join(dir, SingleFile), "F32 [1]", "F32 []"}},
		{"d", "U8", nil, TensorError{"d", dir, "U8 []", "no such tensor"}},
	} {
		_, err := s.Want(c.name, c.dtype, c.shape...)
		var got *TensorError
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("got %v, want %v", err, &c.want)
		}
	}
	const text = "checkpoint: q_proj.weight in model.safetensors: want BF16 [12 7], got F32 [12 7]; download the snapshot again"
	if got := (&TensorError{"q_proj.weight", "model.safetensors", "BF16 [12 7]", "F32 [12 7]"}).Error(); got != text {
		t.Errorf("got %s\nwant %s", got, text)
	}
}

const okHeader = `{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}}`

// headers are header texts over 8 bytes of data, with the error that each is.
// "" means none.
var headers = []struct{ header, want string }{
	{okHeader, ""},
	{okHeader + " \n\t\r ", ""},
	{`{"b":{"shape":[2],"data_offsets":[4,8],"dtype":"BF16"},"a":{"data_offsets":[0,4],"dtype":"U8","shape":[2,2,1]}}`, ""},
	{`{"\u0061\"":{"d\u0074ype":"U8","shape":[8],"data_offsets":[0,8]},"__metadata__":{"x":"\\"}}`, ""},
	{`{"z":{"dtype":"F64","shape":[0],"data_offsets":[4,4]},"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]},"b":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[4,7]},"c":{"dtype":"BOOL","shape":[],"data_offsets":[7,8]}}`, ""},

	{``, "want '{', got the end"},
	{`null`, "want '{', got 'n'"},
	{`[]`, "want '{', got '['"},
	{`{"a"`, "want ':', got the end"},
	{`{"a`, "want the end of a string, got the end"},
	{`{"a\`, "want the end of a string, got the end"},
	{"{\"a\n\":1}", `at byte 11: want a string without control characters, got '\n'`},
	{`{"\x":1}`, `want a JSON string, got "\\x"`},
	{"{\"a\xff\":1}", "at byte 11: want UTF-8, got byte 0xff"},
	{`{a:1}`, "want a string, got 'a'"},
	{okHeader + `x`, "want the end, got 'x'"},
	{okHeader[:len(okHeader)-1], "want ',' or '}', got the end"},
	{okHeader[:len(okHeader)-1] + `,}`, "want a string, got '}'"},
	{`{"a":7}`, "want '{', got '7'"},
	{`{"a":{}}`, "want its dtype, shape and data_offsets, got not all of them"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1}}`, `want dtype, shape and data_offsets of a, got key x`},
	{`{"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}}`, "each key of a once, got dtype twice"},
	{`{"a":{"dtype":"Q5","shape":[8],"data_offsets":[0,8]}}`, "want a dtype of safetensors, got dtype Q5"},
	{`{"a":{"dtype":"F32","shape":[8],"data_offsets":[0,8]}}`, "want 32 bytes for F32 [8], got data_offsets of 8 bytes"},
	{`{"a":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}}`, "want a shape whose bytes can be counted, got F4 [15]"},
	{`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, "can be counted, got U8 [4294967296 4294967296]"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[8,0]}}`, "want data_offsets [begin end], got [8 0]"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[8]}}`, "want data_offsets [begin end], got [8]"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,1,2,3,4,5,6,7,8]}}`, "got [0 1 2 3 4 5 6 7]… of 9"},
	{`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}`, "want bytes 0 to 9 of the data, got a file with 8 bytes of data"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[-8,0]}}`, "want an integer from 0 to 9223372036854775807, got -8"},
	{`{"a":{"dtype":"U8","shape":[-8],"data_offsets":[0,8]}}`, "got -8"},
	{`{"a":{"dtype":"U8","shape":[8.0],"data_offsets":[0,8]}}`, "got 8.0"},
	{`{"a":{"dtype":"U8","shape":[8e0],"data_offsets":[0,8]}}`, "got 8e0"},
	{`{"a":{"dtype":"U8","shape":[08],"data_offsets":[0,8]}}`, "got 08"},
	{`{"a":{"dtype":"U8","shape":["8"],"data_offsets":[0,8]}}`, `got '"'`},
	{`{"a":{"dtype":"U8","shape":[8,],"data_offsets":[0,8]}}`, "got ']'"},
	{`{"a":{"dtype":"U8","shape":[8 8],"data_offsets":[0,8]}}`, "want ',' or ']', got '8'"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,18446744073709551616]}}`, "got 18446744073709551616"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[9223372036854775800,9223372036854775807]}}`, "got a file with 8 bytes of data"},
	{`{"a":{"dtype":8,"shape":[8],"data_offsets":[0,8]}}`, "want a string, got '8'"},
	{`{"a":{"dtype":"U8","shape":8,"data_offsets":[0,8]}}`, "want '[', got '8'"},
	{`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, "want each tensor once, got it twice"},
	{`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, "got it at byte 4, it beginning inside another tensor"},
	{`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, "got it at byte 4, a gap before it"},
	{`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, "want 65 bytes, got 69 bytes"},
	{`{}`, "want 10 bytes, got 18 bytes"},
	{`{"__metadata__":{},"__metadata__":{}}`, "want __metadata__ once, got it twice"},
	{`{"__metadata__":{"x":"1","x":"2"}}`, "want each key once, got x twice"},
	{`{"__metadata__":{"x":1}}`, "want a string, got '1'"},
	{`{"` + strings.Repeat("long", 1e5) + "\\n" + `":{}}`, "want its dtype"},
}

// oneLine checks that an error from outside bytes is of one of our types, and
// one short line that says want.
func oneLine(t *testing.T, err error, want string) {
	t.Helper()
	var file *FileError
	var tensor *TensorError
	if !errors.As(err, &file) && !errors.As(err, &tensor) {
		t.Errorf("got %v, want a FileError or TensorError", err)
		return
	}
	text := err.Error()
	if !strings.Contains(text, want) || strings.ContainsAny(text, "\n\x00") || len(text) > 1000 {
		t.Errorf("got %s\nwant one line with: %s", text, want)
	}
}

func TestHeaders(t *testing.T) {
	for _, h := range headers {
		s, err := OpenFS(fstest.MapFS{SingleFile: &fstest.MapFile{Data: raw(h.header, 8)}})
		if h.want == "" {
			if err != nil {
				t.Errorf("%s: %v", h.header, err)
				continue
			}
			s.Close()
			continue
		}
		if err == nil {
			t.Errorf("%.200s: no error, want %s", h.header, h.want)
			continue
		}
		oneLine(t, err, h.want)
	}
}

func TestBrokenFiles(t *testing.T) {
	length := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	ok := raw(okHeader, 8)
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "want safetensors, 8 bytes at least, got 0 bytes"},
		{[]byte("1234567"), "got 7 bytes"},
		{length(2), "want a header of 2 bytes, got a file of 8 bytes"},
		{length(100_000_000), "want a header of 100000000 bytes, got a file of 8 bytes"},
		{length(100_000_001), "want a header of at most 100000000 bytes, got length 100000001"},
		{length(1<<64 - 1), "got length 18446744073709551615"},
		{[]byte("<!DOCTYPE html>"), "check that it is a safetensors file"},
		{[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "run git lfs pull"},
		{ok[:len(ok)-1], "want bytes 4 to 8 of the data, got a file with 7 bytes of data"},
		{ok[:20], "got a file of 20 bytes"},
		{append(slices.Clone(ok), 0), "want 123 bytes, got 124 bytes"},
	} {
		dir := writeDir(t, map[string][]byte{SingleFile: c.b})
		if _, err := Open(dir); err == nil {
			t.Errorf("%q: no error", c.b)
		} else {
			oneLine(t, err, c.want)
		}
	}
}

func TestBrokenDirectories(t *testing.T) {
	one := raw(`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`, 8)
	two := raw(`{"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`, 8)
	index := func(pairs string) []byte {
		return []byte(`{"metadata":{"total_size":16},"weight_map":{` + pairs + `}}`)
	}
	for _, c := range []struct {
		files map[string][]byte
		want  string
	}{
		{map[string][]byte{IndexFile: index(`"a":"1.safetensors","b":"sub/2.safetensors"`), "1.safetensors": one, "sub/2.safetensors": two}, ""},
		{map[string][]byte{SingleFile: one, IndexFile: []byte("ignored")}, ""},
		{nil, "want model.safetensors or model.safetensors.index.json, got neither"},
		{map[string][]byte{"model-00001-of-00002.safetensors": one}, "got 1 other safetensors files, beginning with model-00001-of-00002.safetensors"},
		{map[string][]byte{SingleFile + "/x": one}, "want an ordinary file, got a directory"},
		{map[string][]byte{IndexFile: index(`"a":"1.safetensors","b":"2.safetensors"`), "1.safetensors": one}, "2.safetensors: want a file that can be read, got no such file"},
		{map[string][]byte{IndexFile: index(`"a":"1.safetensors","c":"1.safetensors"`), "1.safetensors": one}, "checkpoint: c in "},
		{map[string][]byte{IndexFile: index(`"a":"2.safetensors","b":"2.safetensors"`), "2.safetensors": two}, "checkpoint: a in "},
		{map[string][]byte{IndexFile: index(`"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"`), "1.safetensors": one, "2.safetensors": two}, "want it in 1.safetensors, where the index puts it, got it here"},
		{map[string][]byte{IndexFile: index(`"a":"1.safetensors","c":"2.safetensors"`), "1.safetensors": one, "2.safetensors": two}, "want no tensor that the index does not name, got it here"},
		{map[string][]byte{IndexFile: index(`"a":"../1.safetensors"`)}, `want shards beside the index, got a shard at "../1.safetensors"`},
		{map[string][]byte{IndexFile: index(`"a":"/1.safetensors"`)}, `want shards beside the index`},
		{map[string][]byte{IndexFile: index(`"a":"x/../../1.safetensors"`)}, `want shards beside the index`},
		{map[string][]byte{IndexFile: index(`"a":""`)}, `want shards beside the index`},
		{map[string][]byte{IndexFile: index(`"a":"."`)}, `want shards beside the index`},
		{map[string][]byte{IndexFile: index(`"a":"1.safetensors","a":"1.safetensors"`), "1.safetensors": one}, "want each key once, got a twice"},
		{map[string][]byte{IndexFile: index(`"a":1`)}, "want a string, got '1'"},
		{map[string][]byte{IndexFile: index("")}, "want a weight_map with tensors, got none"},
		{map[string][]byte{IndexFile: nil}, "want '{', got the end"},
		{map[string][]byte{IndexFile: []byte("\xff")}, "want UTF-8"},
		{map[string][]byte{IndexFile: []byte(`{}`)}, "want a weight_map with tensors, got none"},
		{map[string][]byte{IndexFile: []byte(`{"x":[1,{"y":[`)}, "want a JSON value, got '['"},
		{map[string][]byte{IndexFile: []byte(`{"x":}`)}, "want a JSON value, got '}'"},
		{map[string][]byte{IndexFile: []byte(`{"x":tru,"weight_map":{}}`)}, "want a JSON value, got 't'"},
		{map[string][]byte{IndexFile: []byte(`{"weight_map":{"a":"b"},"weight_map":{}}`)}, "want weight_map once, got it twice"},
	} {
		if runtime.GOOS == "windows" {
			c.want = strings.TrimSuffix(c.want, "no such file")
		}
		s, err := Open(writeDir(t, c.files))
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want == "":
			s.Close()
		case err == nil:
			s.Close()
			t.Errorf("no error, want %s", c.want)
		default:
			oneLine(t, err, c.want)
		}
	}

	dir := writeDir(t, map[string][]byte{"x": one})
	_, err := Open(filepath.Join(dir, "x"))
	oneLine(t, err, "want a model directory, got a file")
	_, err = Open(filepath.Join(dir, "absent"))
	oneLine(t, err, "want a model directory, got ")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want one that is fs.ErrNotExist", err)
	}
	_, err = OpenFile(filepath.Join(dir, "absent"))
	oneLine(t, err, "want a file that can be read")
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	ok := Tensor{Name: "a", DType: "U8", Shape: []int{1}, Data: []byte{1}}
	for _, c := range []struct {
		tensors []Tensor
		want    string
	}{
		{[]Tensor{ok, ok}, "want each name once"},
		{[]Tensor{{Name: "__metadata__", DType: "U8", Shape: []int{0}}}, "want a name in UTF-8 other than __metadata__"},
		{[]Tensor{{Name: "\xff", DType: "U8", Shape: []int{0}}}, "want a name in UTF-8"},
		{[]Tensor{{Name: "a", DType: "Q5", Shape: []int{0}}}, "want a dtype and shape of safetensors"},
		{[]Tensor{{Name: "a", DType: "U8", Shape: []int{-1}}}, "want a dtype and shape of safetensors"},
		{[]Tensor{{Name: "a", DType: "U8", Shape: []int{2}, Data: []byte{1}}}, "want 2 bytes of data, got U8 [2] with 1 bytes"},
	} {
		oneLine(t, Write(filepath.Join(dir, "x"), c.tensors, nil), c.want)
	}
	oneLine(t, Write(filepath.Join(dir, "absent", "x"), nil, nil), "want the file to be written")
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	oneLine(t, Write(filepath.Join(dir, "taken"), []Tensor{ok}, nil), "want the file to be written")
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("refused writes left %v", entries)
	}
}

// TestFault truncates a file under its mapping. Windows refuses to.
func TestFault(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, SingleFile)
	big := Tensor{Name: "big", DType: "U8", Shape: []int{1 << 20}, Data: make([]byte, 1<<20)}
	if err := Write(file, []Tensor{big}, nil); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir)
	mapped, _ := s.Tensor("big")
	opened, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 1000); err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if r := recover(); r != nil {
				fault, ok := s.Fault(r)
				if !ok {
					panic(r)
				}
				err = fault
			}
		}()
		var sum byte
		for _, c := range b {
			sum += c
		}
		return fmt.Errorf("read all of it, sum %d", sum)
	}
	err = read(mapped.Data)
	oneLine(t, err, "want the file as it was opened, "+state(int64(s.Bytes()), opened.ModTime())+", got a read that failed, and a file of 1000 bytes from ")
	os.Remove(file)
	oneLine(t, read(mapped.Data), "got a read that failed; leave")
	var fault *FileError
	if errors.As(err, &fault) && (fault.File != file || fault.Offset < 1000 || fault.Offset > 1<<20) {
		t.Errorf("fault at %d of %s", fault.Offset, fault.File)
	}
	if _, ok := s.Fault(errors.New("another")); ok {
		t.Error("an error that is no fault was taken for one")
	}
}

func FuzzHeader(f *testing.F) {
	for _, h := range headers {
		if len(h.header) < 1000 {
			f.Add([]byte(h.header), uint16(8))
		}
	}
	f.Fuzz(func(t *testing.T, header []byte, n uint16) {
		data := raw(string(header), int(n))
		s, err := OpenFS(lending{fstest.MapFS{SingleFile: &fstest.MapFile{Data: data}}})
		if err != nil {
			oneLine(t, err, "")
			return
		}
		defer s.Close()

		// What opens is JSON, and encoding/json reads the same from it.
		var entries map[string]json.RawMessage
		if err := json.Unmarshal(header, &entries); err != nil {
			t.Fatalf("opened what is not JSON: %v", err)
		}
		if raw, ok := entries[metadataKey]; ok {
			var metadata map[string]string
			if err := json.Unmarshal(raw, &metadata); err != nil || len(metadata) != len(s.Metadata()) {
				t.Errorf("metadata %q, want %s", s.Metadata(), raw)
			}
			delete(entries, metadataKey)
		}
		if len(entries) != len(s.Names()) {
			t.Errorf("%d tensors, want %d", len(s.Names()), len(entries))
		}
		total := 0
		for name, raw := range entries {
			var e struct {
				DType   DType  `json:"dtype"`
				Shape   []int  `json:"shape"`
				Offsets [2]int `json:"data_offsets"`
			}
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			got, err := s.Want(name, e.DType, e.Shape...)
			if err != nil {
				t.Fatal(err)
			}
			begin, end := 8+len(header)+e.Offsets[0], 8+len(header)+e.Offsets[1]
			if got.Offset != int64(begin) || !bytes.Equal(got.Data, data[begin:end]) {
				t.Errorf("%s: other bytes than %d to %d", name, begin, end)
			}
			total += len(got.Data)
		}
		if total != int(n) {
			t.Errorf("tensors of %d bytes in %d", total, n)
		}

		// And it survives being written.
		var tensors []Tensor
		for _, name := range s.Names() {
			tensor, _ := s.Tensor(name)
			tensors = append(tensors, tensor)
		}
		again, err := encodeHeader("", streams(tensors), s.Metadata())
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range tensors {
			again = append(again, tensor.Data...)
		}
		if _, _, err := parseFile("", again); err != nil {
			t.Errorf("written again: %v", err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"weight_map":{"a":"1","b":"1"}}`), raw(okHeader, 8), raw(`{}`, 0))
	f.Add([]byte(`{"metadata":{"x":[]},"weight_map":{"a":"1","b":"1","c":"2"}}`), raw(okHeader, 8), raw(okHeader, 8))
	f.Add([]byte(`{"weight_map":{"a":"../1"}}`), []byte("short"), []byte(nil))
	f.Fuzz(func(t *testing.T, index, one, two []byte) {
		s, err := OpenFS(fstest.MapFS{
			IndexFile: &fstest.MapFile{Data: index},
			"1":       &fstest.MapFile{Data: one},
			"2":       &fstest.MapFile{Data: two},
		})
		if err != nil {
			oneLine(t, err, "")
			return
		}
		defer s.Close()
		var document map[string]json.RawMessage
		var want map[string]string
		if err := errors.Join(json.Unmarshal(index, &document), json.Unmarshal(document["weight_map"], &want)); err != nil {
			t.Fatalf("opened what is not JSON: %v", err)
		}
		if len(s.Names()) != len(want) {
			t.Errorf("%d tensors, want %d", len(s.Names()), len(want))
		}
		for _, name := range s.Names() {
			if tensor, _ := s.Tensor(name); tensor.File != want[name] {
				t.Errorf("%q is in %q, want %q", name, tensor.File, want[name])
			}
		}
	})
}

// BenchmarkOpen opens checkpoints of nano-k3's and K3's numbers of tensors and
// shards. Times are of the headers only: each tensor has 4 bytes.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct{ shards, tensors int }{{1, 6590}, {96, 500_000}} {
		b.Run(fmt.Sprintf("shards=%d/tensors=%d", c.shards, c.tensors), func(b *testing.B) {
			shards := make([][]Tensor, c.shards)
			for i := range c.tensors {
				shards[i%c.shards] = append(shards[i%c.shards], Tensor{
					Name:  fmt.Sprintf("language_model.model.layers.%d.block_sparse_moe.experts.%d.w%d.weight_packed", i/5376, i/6%896, i%6),
					DType: "U8", Shape: []int{1, 4}, Data: []byte{1, 2, 3, 4},
				})
			}
			dir := b.TempDir()
			var err error
			if c.shards == 1 {
				err = Write(filepath.Join(dir, SingleFile), shards[0], nil)
			} else {
				err = WriteSharded(dir, shards, nil)
			}
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := Open(dir)
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

// Write replaces ordinary files, what a link leads to, and nothing else.
func TestWriteTarget(t *testing.T) {
	dir := t.TempDir()
	tensors := []Tensor{{Name: "a", DType: "U8", Shape: []int{1}, Data: []byte{7}}}
	real, link := filepath.Join(dir, "real.safetensors"), filepath.Join(dir, "link.safetensors")
	if err := Write(real, tensors, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	tensors[0].Data = []byte{8}
	if err := Write(link, tensors, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
	s, err := OpenFile(real)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if x, _ := s.Tensor("a"); x.Data[0] != 8 {
		t.Error("the file behind the link stayed as it was")
	}
	var file *FileError
	for _, name := range []string{dir, os.DevNull} {
		if err := Write(name, tensors, nil); !errors.As(err, &file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
