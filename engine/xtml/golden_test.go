package xtml

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A goldenCase is a line of testdata/render.jsonl: an input in its JSON form and the
// reference's segments, markup ones as arrays of one.
type goldenCase struct {
	Name     string
	Input    json.RawMessage
	Segments []json.RawMessage
}

func (c goldenCase) segments(t *testing.T) []Segment {
	var want []Segment
	for _, raw := range c.Segments {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			want = append(want, Segment{Text: text})
			continue
		}
		var markup [1]string
		if err := json.Unmarshal(raw, &markup); err != nil {
			t.Fatalf("%s: segment %s: %v", c.Name, raw, err)
		}
		want = append(want, Segment{Text: markup[0], Markup: true})
	}
	return want
}

func goldenCases(t testing.TB) (cases []goldenCase) {
	t.Helper()
	f, err := os.Open("testdata/render.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c goldenCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if lines.Err() != nil || len(cases) != 28 {
		t.Fatalf("%d cases, %v", len(cases), lines.Err())
	}
	return cases
}

func TestRenderGolden(t *testing.T) {
	for _, c := range goldenCases(t) {
		in, err := ParseInput(c.Input)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got, err := Render(in)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if diff := cmp.Diff(c.segments(t), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name, diff)
		}
		// and the same after the JSON form has been written and read again
		form, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseInput(form)
		if err != nil {
			t.Errorf("%s: %s: %v", c.Name, form, err)
			continue
		}
		if diff := cmp.Diff(in, again); diff != "" {
			t.Errorf("%s: after %s (-want +got):\n%s", c.Name, form, diff)
		}
	}
}
