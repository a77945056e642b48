package display

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// hostile is text from outside that no form may pass on as markup or control.
const hostile = "<script>alert(\"1\")</script>&'\x1b[31m\r\n\x00\xff\ufffe\u202e日本"

// checkBundle holds what every bundle owes: text for a terminal, JSON that can be
// written, SVG that parses and no markup of the hostile text.
func checkBundle(t *testing.T, b Bundle) {
	t.Helper()
	text, ok := b.Data[MIMEText].(string)
	if !ok || !utf8.ValidString(text) || b.Metadata == nil {
		t.Fatalf("no text, or no metadata: %v", b)
	}
	for _, bad := range []string{"\x1b", "\r", "\x00", "\u202e"} {
		if strings.Contains(text, bad) {
			t.Errorf("text has %q:\n%s", bad, text)
		}
	}
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("<script")) {
		t.Errorf("raw markup in %.300s", data)
	}
	if s, ok := b.Data[MIMEHTML].(string); ok {
		if strings.Contains(s, "<script") {
			t.Errorf("HTML has the script: %s", s)
		}
	}
	if s, ok := b.Data[MIMESVG].(string); ok {
		alt, _ := b.Metadata[MIMESVG].(map[string]any)["alt"].(string)
		if alt == "" || !strings.Contains(s, "<desc>"+escapeHTML(alt)+"</desc>") || !strings.Contains(s, ` role="img"`) || !strings.Contains(s, "<title>") {
			t.Errorf("an image without a description: %q, %.300s", alt, s)
		}
		d := xml.NewDecoder(strings.NewReader(s))
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("SVG: %v\n%.500s", err, s)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "script" {
				t.Error("SVG has a script")
			}
		}
	}
}

func TestHostileText(t *testing.T) {
	type row struct {
		Name any
		N    int
	}
	table, err := TableOf([]row{{hostile, 1}, {errors.New(hostile), 2}})
	if err != nil {
		t.Fatal(err)
	}
	table.Title, table.Columns[0] = hostile, hostile
	one := []Series{{hostile, []float64{1, 2}}, {"b", []float64{0, 3}}}
	for _, v := range []Value{
		table,
		Bars{hostile, hostile, hostile, []string{hostile, "b"}, one, false},
		Bars{hostile, hostile, hostile, []string{hostile, hostile}, one, true},
		Lines{hostile, hostile, hostile, []string{hostile, "b"}, one},
		Heatmap{Title: hostile, Row: hostile, Column: hostile, Value: hostile, Counts: [][]int64{{1, 2}}},
		Pieces{{hostile, hostile}},
		Progress{hostile, hostile, 1, 2, time.Second},
	} {
		b, ok := Of(v)
		if !ok {
			t.Errorf("%T is not a value", v)
		}
		checkBundle(t, b)
		if len(b.Data) < 2 {
			t.Errorf("%T has only text: %v", v, b.Data[MIMEText])
		}
	}
}

func TestOf(t *testing.T) {
	type row struct{ A, B int }
	for _, v := range []any{nil, 1, "s", []int{1}, (*row)(nil), row{}, []row(nil), errors.New("e"), (*image.RGBA)(nil), map[string]int{}} {
		if b, ok := Of(v); ok {
			t.Errorf("Of(%T) = %v", v, b)
		}
	}
	for _, v := range []any{Bundle{}, Text("x"), []row{{1, 2}}, []*row{{1, 2}, nil}, image.NewGray(image.Rect(0, 0, 3, 2))} {
		b, ok := Of(v)
		if !ok {
			t.Errorf("Of(%T) has no bundle", v)
			continue
		}
		checkBundle(t, b)
	}
}

func TestImage(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 5, 3))
	m.Set(4, 2, color.RGBA{9, 8, 7, 255})
	b, err := Image(m)
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(b.Data[MIMEPNG].(string))
	if err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil || color.RGBAModel.Convert(got.At(4, 2)) != (color.RGBA{9, 8, 7, 255}) {
		t.Errorf("%v, %v", got.At(4, 2), err)
	}
	if b, ok := Of(image.NewUniform(color.White)); ok {
		t.Errorf("an image without bounds is %v", b.Data[MIMEText])
	}
	if file, err := ImageFile(data); err != nil || file.Data[MIMEPNG] != b.Data[MIMEPNG] || altOf(file, MIMEPNG) != "image, 5 × 3" || altOf(b, MIMEPNG) != "image, 5 × 3" {
		t.Errorf("ImageFile: %v", err)
	}
	if file, err := ImageFile([]byte(`<?xml version="1.0"?><svg/>`)); err != nil || file.Data[MIMESVG] == nil || altOf(file, MIMESVG) != "image, SVG" {
		t.Errorf("ImageFile of SVG: %v", err)
	}
	tiff := "II*\x00\x08\x00\x00\x00\x04\x00" + // one grey pixel: width, height, bits, photometry
		"\x00\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00" +
		"\x02\x01\x03\x00\x01\x00\x00\x00\x08\x00\x00\x00\x06\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"
	for _, bad := range []string{"plain", tiff} {
		if _, err := ImageFile([]byte(bad)); err == nil {
			t.Errorf("ImageFile takes %q", bad)
		}
	}
}

// altOf is the text that stands for a picture.
type page string

func (p page) HTML() string     { return "<i>" + string(p) + "</i>" }
func (p page) Markdown() string { return "*" + string(p) + "*" }

type sketch struct{ svg, name string }

func (d sketch) SVG() string    { return d.svg }
func (d *sketch) Latex() string { return "$x$" }
func (d sketch) String() string { return d.name }

func TestByMethods(t *testing.T) {
	for _, c := range []struct {
		value any
		want  map[string]any
	}{
		{page("a"), map[string]any{MIMEText: "a", MIMEHTML: "<i>a</i>", MIMEMarkdown: "*a*"}},
		{sketch{"<svg/>", "d"}, map[string]any{MIMEText: "d", MIMESVG: "<svg/>"}},
		{&sketch{"<svg/>", "d"}, map[string]any{MIMEText: "d", MIMESVG: "<svg/>", MIMELatex: "$x$"}},
		{sketch{"no picture", "d"}, nil},
		{(*sketch)(nil), nil},
	} {
		b, ok := Of(c.value)
		if diff := cmp.Diff(c.want, b.Data); ok != (c.want != nil) || diff != "" {
			t.Errorf("%#v: %v %s", c.value, ok, diff)
		}
	}
}

func altOf(b Bundle, mime string) string {
	of, _ := b.Metadata[mime].(map[string]any)
	alt, _ := of["alt"].(string)
	return alt
}

func TestText(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"html", htmlText("<h1>T &amp; c</h1><style>p{}</style><table><tr><th>a<td>1</tr></table>x <b>bold</b>"), "T & c\na 1\nx bold"},
		{"open tag", htmlText("a <b"), "a"},
		{"table", Table{Columns: []string{"name", "n"}, Rows: [][]any{{"日本", 5}, {"b", 1234}, {"c"}}}.text(), "name     n\n──────────\n日本     5\nb     1234\nc"},
		{"bars", Bars{Label: "k", Labels: []string{"x", "yy"}, Series: []Series{{"", []float64{1, 2}}}}.DisplayBundle().Data[MIMEText].(string),
			" k\n x ▏" + strings.Repeat("█", 37) + " 1\nyy ▏" + strings.Repeat("█", 74) + " 2"},
		{"lines", Lines{Series: []Series{{"a", []float64{0, 7, math.NaN(), 3.5}}}}.DisplayBundle().Data[MIMEText].(string), "a  ▁█ ▄  0 … 7"},
		{"heat map", Heatmap{Row: "layer", Column: "expert", Value: "tokens", RowLabels: []int{8, 10}, Counts: [][]int64{{0, 1, 16}, {4, 0, 0}}}.DisplayBundle().Data[MIMEText].(string),
			" 8 ▏ ░█\n10 ▏▓\ntokens: layers down, experts across 0 to 2\n  ░ 1+  ▒ 2+  ▓ 4+  █ 8+"},
		{"pieces", Pieces{{"The", "5"}, {" end\n", "7"}}.DisplayBundle().Data[MIMEText].(string), "│The│ end↵│\n5 7"},
		{"progress", Progress{"prefill", "rows", 30, 120, 10 * time.Second}.DisplayBundle().Data[MIMEText].(string), "prefill ▕██████                  ▏  25 %  30 of 120 rows, 3/s, 30s left"},
		{"progress without total", Progress{Unit: "files", Done: 3}.DisplayBundle().Data[MIMEText].(string), "3 files"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, c.got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 123456: "123456", 1234567: "1.235e+06", 1.0 / 3: "0.3333", 12.3456: "12.35", 1234.5: "1234",
		0.0001234: "0.0001234", 0.05: "0.05", -2.5: "-2.5", math.Inf(1): "+Inf", 999999.7: "1000000",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%g) = %s, want %s", v, got, want)
		}
	}
}

func TestTableOf(t *testing.T) {
	for _, c := range []struct {
		in      any
		columns string
		rows    string
	}{
		{[]map[string]int{{"b": 1, "a": 2}, {"c": 3}}, "[a b c]", "[[2 1] [<nil> <nil> 3]]"},
		{[][]string{{"x"}, {"y", "z"}}, "[0 1]", "[[x] [y z]]"},
		{[2]float64{1, 2}, "[value]", "[[1] [2]]"},
		{[]any{nil, 1}, "[value]", "[[<nil>] [1]]"},
		{[]struct {
			Xname string `column:"name"`
			N     int
		}{{"a", 1}}, "[name N]", "[[a 1]]"},
	} {
		table, err := TableOf(c.in)
		if err != nil || fmt.Sprint(table.Columns) != c.columns || fmt.Sprint(table.Rows) != c.rows {
			t.Errorf("%v: %v %v, %v", c.in, table.Columns, table.Rows, err)
		}
		checkBundle(t, table.DisplayBundle())
	}
	for _, bad := range []any{nil, 3, []int{}, "text"} {
		if _, err := TableOf(bad); err == nil {
			t.Errorf("no error for %v", bad)
		}
	}
	long := Table{Columns: []string{"n"}}
	for i := range htmlRows + 7 {
		long.Rows = append(long.Rows, []any{i})
	}
	if s := long.html(); strings.Count(s, "<tr") != htmlRows+2 || !strings.Contains(s, "… 7 more rows") {
		t.Errorf("%d rows in HTML", strings.Count(s, "<tr"))
	}
}

func TestChartsThatCannotBeDrawn(t *testing.T) {
	for _, v := range []Value{
		Bars{}, Lines{}, Heatmap{},
		Bars{Series: []Series{{"a", []float64{1}}, {"b", []float64{1, 2}}}},
		Bars{Labels: []string{"a"}, Series: []Series{{"a", []float64{1, 2}}}},
		Lines{Series: make([]Series, 7)},
		Lines{Series: []Series{{"a", make([]float64, maxCells+1)}}},
		Heatmap{Counts: [][]int64{{1, 2}, {1}}},
		Heatmap{Counts: [][]int64{{-1}}},
		Heatmap{Counts: [][]int64{{1}}, RowLabels: []int{1, 2}},
	} {
		b := v.DisplayBundle()
		if text, _ := b.Data[MIMEText].(string); len(b.Data) != 1 || !strings.HasPrefix(text, "display: want ") {
			t.Errorf("%+.80v: %v", v, b.Data)
		}
	}
}

func TestExtremeCharts(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, values := range [][]float64{
		{0}, {1}, {-1}, {0, 0}, {nan}, {nan, inf, -inf}, {1e300, -1e300}, {5e-324, 1e-300}, {5e-324}, {math.MaxFloat64, -math.MaxFloat64}, {math.MaxFloat64, math.MaxFloat64}, {0.1, 0.2}, {-3, 4},
	} {
		s := []Series{{"a", values}, {"b", values}}
		for _, v := range []Value{Bars{Series: s[:1]}, Bars{Series: s}, Bars{Series: s, Horizontal: true}, Lines{Series: s}} {
			b := v.DisplayBundle()
			checkBundle(t, b)
			if svg, _ := b.Data[MIMESVG].(string); svg == "" || strings.Contains(svg, "NaN") {
				t.Errorf("%T of %v: no SVG, or NaN in it: %v", v, values, b.Data[MIMEText])
			}
		}
	}
	for _, counts := range [][][]int64{{{0}}, {{1}}, {{math.MaxInt64, 1, 0}}, {{0, 0}, {0, 0}}} {
		checkBundle(t, Heatmap{Counts: counts}.DisplayBundle())
	}
}

func TestNiceRange(t *testing.T) {
	for _, c := range []struct {
		low, high, from, to float64
		ticks               int
	}{
		{0, 0, 0, 1, 2}, {0, 1, 0, 1, 6}, {0, 7, 0, 7, 8}, {-3, 4, -3, 4, 8}, {0, 93, 0, 100, 6},
		{12, 17, 12, 17, 6}, {5, 5, 0, 5, 6}, {-5, -5, -5, 0, 6}, {1e15, 1e15 + 1, 0, 1.2e15, 7},
		{0, 5e-324, 0, 5e-324, 2}, {-1e-310, 0, -1e-310, 0, 2}, {-math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64, 2},
	} {
		if from, to, ticks := niceRange(c.low, c.high); from != c.from || to != c.to || ticks != c.ticks {
			t.Errorf("%v to %v: got %v to %v with %d ticks, want %v to %v with %d", c.low, c.high, from, to, ticks, c.from, c.to, c.ticks)
		}
	}
}

// K3's heat map must fit a notebook: in total under 2 MB.
func TestHeatmapSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := Heatmap{Row: "layer", Column: "expert", Value: "tokens"}
	for range 92 {
		row := make([]int64, 896)
		for j := range row {
			row[j] = int64(math.Exp(r.ExpFloat64() * 2))
		}
		h.Counts = append(h.Counts, row)
	}
	b := h.DisplayBundle()
	checkBundle(t, b)
	data, err := json.Marshal(b)
	if err != nil || len(data) > 1<<20 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	for line := range strings.Lines(b.Data[MIMEText].(string)) {
		if n := textWidth(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func BenchmarkHeatmap(b *testing.B) {
	h := Heatmap{Counts: make([][]int64, 92)}
	for i := range h.Counts {
		h.Counts[i] = make([]int64, 896)
		for j := range h.Counts[i] {
			h.Counts[i][j] = int64(i * j % 97)
		}
	}
	for b.Loop() {
		h.DisplayBundle()
	}
}
