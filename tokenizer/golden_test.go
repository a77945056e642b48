package tokenizer

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const nanoVocab = 8192

func nano(t testing.TB) *Tokenizer {
	t.Helper()
	k, err := Load("testdata/nano-k3", nanoVocab)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// readLines calls check with each line of a file of at least 100 JSON objects, decoded.
func readLines[T any](t *testing.T, file string, check func(T)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var c T
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s:%d: %v", file, n+1, err)
		}
		check(c)
	}
	if lines.Err() != nil || n < 100 {
		t.Fatalf("%s: %d lines, %v", file, n, lines.Err())
	}
}

// encode.jsonl has texts and the reference's ids for nano-k3's ranks: prose, code,
// scripts, whitespace, and strings drawn from what the split pattern tells apart.
func TestEncodeGolden(t *testing.T) {
	k := nano(t)
	readLines(t, "testdata/encode.jsonl", func(c struct {
		Text string
		IDs  []int
	}) {
		if got := k.Encode(c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("Encode(%q)\n got %v\nwant %v", c.Text, got, c.IDs)
		}
		if got := k.Decode(c.IDs); got != c.Text {
			t.Errorf("Decode(%v)\n got %q\nwant %q", c.IDs, got, c.Text)
		}
	})
}

// split.jsonl has texts and how the reference cuts them, which ids alone don't show.
func TestPiecesGolden(t *testing.T) {
	k := nano(t)
	readLines(t, "testdata/split.jsonl", func(c struct {
		Text   string
		Pieces []string
	}) {
		if got := k.Pieces(c.Text); !slices.Equal(got, c.Pieces) {
			t.Errorf("Pieces(%q)\n got %q\nwant %q", c.Text, got, c.Pieces)
		}
	})
}

// Very long texts, by the reference's number of ids and the SHA-256 of the ids in
// decimal, joined by commas. They cross both cuts and merge pieces of 25,000 bytes.
func TestLongGolden(t *testing.T) {
	k := nano(t)
	for _, c := range []struct {
		name, text string
		count      int
		sum        string
	}{
		{"60001 a", strings.Repeat("a", 60001), 30001, "ab279f2a4121f0abc4422157769276472af8a85ffd4e7a1ab866a2a212e3be8b"},
		{"60001 spaces and b", strings.Repeat(" ", 60001) + "b", 1878, "7174d65189dd0c6fa05e680576708a03dfe739f8cbf2a9787fcd44051c32ac53"},
		{"24999 x and a space, 3 times", strings.Repeat(strings.Repeat("x", 24999)+" ", 3), 37501, "711e87070d43a54c5d3fb9d893f046f6ad00c568afa65b02c11c3ba8ef295c65"},
		{"30000 Han", strings.Repeat("漢字", 15000), 90000, "7348d963ce212e9a7ceef6fe7b4c1025dc78381a2980a8cd364a035aa77b3bdb"},
		{"90000 words", strings.Repeat("word ", 90000), 90002, "12afbdfa65577872a4eca6f0e22eccf06bc89ce1a0f7803f0cf26412c05a31f2"},
	} {
		ids := k.Encode(c.text)
		joined := make([]byte, 0, 6*len(ids))
		for i, id := range ids {
			if i > 0 {
				joined = append(joined, ',')
			}
			joined = strconv.AppendInt(joined, int64(id), 10)
		}
		sum := sha256.Sum256(joined)
		if len(ids) != c.count || hex.EncodeToString(sum[:]) != c.sum {
			t.Errorf("%s: %d ids with SHA-256 %x, want %d with %s", c.name, len(ids), sum, c.count, c.sum)
		}
		if k.Decode(ids) != c.text {
			t.Errorf("%s: Decode gives another text", c.name)
		}
	}
}
