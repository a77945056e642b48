package display

import (
	"errors"
	"fmt"
	"image"
	"math"
	"math/big"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

type server struct {
	Host string
	Port int
	Tags []string
}

type config struct {
	Name    string
	Servers []server
	Limits  map[string]int
	Next    *config
	Err     error
	Every   time.Duration
	Any     any
	F       func(int) string
	C       chan int
}

type panics struct{}

func (panics) String() string { panic("boom") }

type badge struct{ n int }

func (b badge) DisplayBundle() Bundle { return Text(fmt.Sprintf("badge %d", b.n)) }

type broken struct{ N int }

func (broken) DisplayBundle() Bundle { panic("no picture") }

// TestFormatInOneLine: what fits one line is %+v's.
func TestFormatInOneLine(t *testing.T) {
	var none *config
	for _, v := range []any{
		nil, none, 1, -2.5, 1e21, float32(0.1), "text", "", true, 3 + 4i, 'x', uint8(7), []byte("hi"), []int(nil), []int{}, map[string]int(nil),
		[]string{"a", "b c"}, map[string]int{"b": 1, "a": 2}, &[]int{1}, &server{"h", 1, nil}, server{"h", 1, []string{"t"}},
		struct {
			A *int
			B any
			c error
		}{nil, nil, nil}, [2]bool{true}, time.Second, []time.Duration{time.Second}, errors.New("e"), []error{errors.New("e"), nil},
		map[server2]string{{"b", 1}: "x", {"a", 2}: "y"}, []any{1, "s", nil, panics{}}, panics{}, math.NaN(), [][]int{{1}, nil}, struct{}{}, time.March,
	} {
		if got, want := Format(v), fmt.Sprintf("%+v", v); got != want {
			t.Errorf("%T: %q, want %q", v, got, want)
		}
	}
}

type server2 struct {
	Host string
	Port int
}

func TestFormatNested(t *testing.T) {
	c := &config{Name: "main", Servers: []server{{"a", 1, nil}, {"b", 2, []string{"t"}}}, Every: time.Second, Err: errors.New("two\nlines")}
	c.Next = c
	c.Any = map[string]any{"list": []int{1}, "badge": badge{3}, "nil": nil, "broken": broken{}}
	got := addresses.ReplaceAllString(Format(c), "0x…")
	want := `&display.config{
    Name: "main",
    Servers: []display.server{
        {Host: "a", Port: 1, Tags: nil},
        {Host: "b", Port: 2, Tags: []string{"t"}},
    },
    Limits: nil,
    Next: *display.config(0x…) as above,
    Err: two
        lines,
    Every: 1s,
    Any: map[string]any{
        "badge": badge 3,
        "broken": %!v(PANIC=DisplayBundle method: no picture),
        "list": []int{1},
        "nil": nil,
    },
    F: nil,
    C: nil,
}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFormatTrims: what is left out is counted, and no line is too wide.
func TestFormatTrims(t *testing.T) {
	numbers := make([]int, 1000)
	table := map[int]string{}
	for i := range 1000 {
		numbers[i], table[i] = i, "v"
	}
	loop := map[string]any{}
	loop["self"] = loop
	list := []any{nil}
	list[0] = list
	deep := any(1)
	for range 50 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		v    any
		want []string
	}{
		{numbers, []string{"[]int{\n    0, 1, 2,", " 99,\n    … 900 more of 1,000\n}"}},
		{numbers[:110], []string{" 109,\n}"}},
		{table, []string{"map[int]string{\n    0: \"v\",\n    1: \"v\",", "    … 900 more of 1,000\n}"}},
		{[]string{strings.Repeat("é", 500)}, []string{"é\"… 760 more of 1,000 bytes"}},
		{strings.Repeat("x", 1<<20), []string{"x… 983,040 more of 1,048,576 bytes"}},
		{[]byte(strings.Repeat("text ", 200)), []string{"[]byte(\"text text", "… 744 more of 1,000 bytes)"}},
		{make([]byte, 1000), []string{"[]byte(\n    00000000  00 00", "… 744 more of 1,000\n)"}},
		{[]*big.Int{new(big.Int).Lsh(big.NewInt(1), 1e5)}, []string{"more of 30,103 bytes"}},
		{big.NewInt(5), []string{"5"}},
		{map[any]int{2: 1, "x": 2, 1: 3}, []string{"map[1:3 2:1 x:2]"}},
		{loop, []string{"map[self:map[string]any(as above)]"}},
		{list, []string{"[[]any(as above)]"}},
		{deep, []string{"{…}"}},
		{&http.Server{Addr: strings.Repeat("x", 90)}, []string{"&http.Server{\n    Addr: \"xxx", "    Handler: nil,\n", " unexported\n}"}},
		{[]*server{{"a", 1, nil}, nil}, []string{"[&{Host:a Port:1 Tags:[]} <nil>]"}},
		{make([][][][][][]int, 5), []string{"[[] [] [] [] []]"}},
	} {
		got := Format(c.v)
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%T: %.400q lacks %q", c.v, got, w)
			}
		}
		if _, text := c.v.(string); !text && widest(got) > lineWidth+lineWidth*3 {
			t.Errorf("%T: a line of %d columns", c.v, widest(got))
		}
	}
}

// touched counts how often its values write themselves.
type touched struct{ n *int }

func (c touched) String() string { *c.n++; return "touched" }

// TestFormatLooksAtLittle: of a huge value, only what is shown is looked at, and a value
// writes itself once.
func TestFormatLooksAtLittle(t *testing.T) {
	n := 0
	Format([]touched{{&n}})
	if n != 1 {
		t.Errorf("a value wrote itself %d times", n)
	}
	n = 0
	many := make([]touched, 1_000_000)
	for i := range many {
		many[i].n = &n
	}
	tree := map[int][]touched{}
	for i := range 100_000 {
		tree[i] = many
	}
	Format(many)
	Format(tree)
	if n > 2*valueNodes {
		t.Errorf("%d values wrote themselves", n)
	}
	if s := Format(tree); len(s) > 200<<10 {
		t.Errorf("%d bytes", len(s))
	}
}

func TestRenderSeveral(t *testing.T) {
	b := Render(image.NewGray(image.Rect(0, 0, 2, 2)), nil, "<3>")
	if text := b.Data[MIMEText]; text != "image, 2 × 2, <nil>, <3>" {
		t.Errorf("%q", text)
	}
	if page, _ := b.Data[MIMEHTML].(string); !strings.Contains(page, `src="data:image/png;base64,`) || !strings.Contains(page, "<pre>&lt;3&gt;</pre>") {
		t.Errorf("%q", page)
	}
	if b := Render(1, errors.New("e")); len(b.Data) != 1 || b.Data[MIMEText] != "1, e" {
		t.Errorf("%v", b.Data)
	}
	if b := Render(make([]int, 60), 2); !strings.HasSuffix(b.Data[MIMEText].(string), "\n}\n2") {
		t.Errorf("%v", b.Data)
	}
}

// TestRenderTable: a slice of structs too wide for a line is a table in text too, of
// which a few rows are looked at.
func TestRenderTable(t *testing.T) {
	rows := make([]server, 5000)
	for i := range rows {
		rows[i] = server{"host", i, []string{"a"}}
	}
	b := Render(rows)
	text := b.Data[MIMEText].(string)
	if !strings.HasPrefix(text, "Host  Port  Tags\n") || !strings.HasSuffix(text, "… 4,940 more rows") {
		t.Errorf("%q", text)
	}
	if page := b.Data[MIMEHTML].(string); !strings.Contains(page, "… 4,000 more rows") {
		t.Errorf("%d bytes of HTML without what is left out", len(page))
	}
	type wide struct {
		P *server
		S string
	}
	b = Render([]wide{{&server{Host: "h"}, strings.Repeat("w", 200)}})
	if text := b.Data[MIMEText].(string); strings.Contains(text, "0x") || !strings.Contains(text, "&{Host:h Port:0 Tags:[]}") && !strings.Contains(text, "&server{") && !strings.Contains(text, `Host: "h"`) {
		t.Errorf("%q", text)
	}
	if page := b.Data[MIMEHTML].(string); !strings.Contains(page, "&amp;{Host:h") {
		t.Errorf("%q", page)
	}
	if _, ok := table(reflect.ValueOf([]badge{{1}})); ok {
		t.Error("values that display themselves in a table")
	}
}

var addresses = regexp.MustCompile(`0x[0-9a-f]+`)
