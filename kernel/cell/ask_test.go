//go:build unix

package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"deltafin/internal/third_party/yaegi/interp"
	"deltafin/kernel"
	"deltafin/kernel/display"
)

// newAsked is a shell in this process that knows what cells declare, and runs none.
func newAsked(t testing.TB, cells ...string) *shell {
	t.Helper()
	c := &child{modules: newModules(t.TempDir()), bindings: testBindings(), replies: map[uint64]*reply{}, running: map[uint64]*cellOutput{}, shells: map[string]*shell{}}
	c.bindings.Package = "lab"
	c.session, c.stdin, c.waits = &Session{child: c}, &stdinReader{child: c}, newWaits()
	s, err := newShell(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, code := range cells {
		if _, e := s.prepare(interp.NewRun(), code, code, i+1, false); e != nil {
			t.Fatalf("%s: %v", code, e.Traceback)
		}
	}
	return s
}

func (s *shell) completeAt(code string) kernel.Completions {
	before, after, _ := strings.Cut(code, "|")
	return s.complete(before+after, utf8.RuneCountInString(before))
}

func (s *shell) inspectAt(code string, detail int) (text string, b display.Bundle) {
	before, after, _ := strings.Cut(code, "|")
	b, found := s.inspect(before+after, utf8.RuneCountInString(before), detail)
	if !found {
		return "", b
	}
	return b.Data["text/plain"].(string), b
}

// askedCells are those of the session that the tables below ask about.
var askedCells = []string{
	`import str "strings"`,
	`// A Point is a place.
type Point struct {
	X, Y int // where it is
	// label is what it is called.
	label string
}

// Norm is the distance.
func (p Point) Norm() float64 { return 0 }
func (p *Point) move(dx int) {}
func (p Point) String() string { return p.label }`,
	`type shape interface { Area() float64; Name() string }
type circle struct { Point; radius float64 }
func (c circle) Area() float64 { return 1 }
func (c circle) Name() string { return "c" }`,
	`type stack[T any] struct { items []T }
func (s *stack[T]) push(v T) {}
func (s *stack[T]) pop() T { var z T; return z }`,
	`place := Point{X: 1}
places := []Point{place}
byName := map[string]*Point{}
ch := make(chan Point, 1)
words := stack[string]{}
reply := Say("x")
const limit = 10
var anything any = place
const Limit float64 = 2`,
	`// scale multiplies.
func scale(p Point, by int) (Point, error) { return p, nil }
func apply[T any, U any](xs []T, f func(T) U) []U { return nil }`,
	`twin := 1`, `twin := 2`, // the last cell: what follows tidies up after it
}

func TestCompletions(t *testing.T) {
	s := newAsked(t, askedCells...)
	// want is clauses: "= a b" is all there is, in order; "^ a b" is how it begins;
	// "+ a b" is among it; "- a" isn't; "none". A name may have its kind: a:type.
	for _, c := range []struct{ code, want string }{
		// the session's names
		{"plac|", "= place:variable places:variable"},
		{"place|", "= place places"},
		{"Poi|", "= Point:type"},
		{"lim|", "= limit:constant Limit:constant"},
		{"Lim|", "= Limit"},
		{"scal|", "= scale:function"},
		{"sha|", "^ shape:type"},
		{"x := plac|", "= place places"},
		{"fmt.Println(plac|", "= place places"},
		{"fmt.Println(plac|)", "= place places"},
		{"fmt.Println(place, plac|)", "= place places"},
		{"place.X + plac|", "= place places"},
		{"!plac|", "= place places"},
		{"&plac|", "= place places"},
		{"[]Point{plac|", "+ place places"},
		{"places[plac|", "= place places"},
		{"places[plac|]", "= place places"},
		{"if plac|", "= place places"},
		{"for plac|", "= place places"},
		{"for i := range plac|", "= place places"},
		{"for i, p := range plac| {\n}", "= place places"},
		{"for i := 0; i < plac|", "= place places"},
		{"switch plac|", "= place places"},
		{"switch place.X {\ncase lim|", "= limit Limit"},
		{"return plac|", "= place places"},
		{"go scal|", "= scale"},
		{"defer scal|", "= scale"},
		{"defer scal|()", "= scale"},
		{"go func() {\n\tsca|", "^ scale"},
		{"defer func() { plac|", "^ place places"},
		{"ch <- plac|", "= place places"},
		// members
		{"place.|", "= Norm:method String:method X:field Y:field label:field move:method"},
		{"place.N|", "= Norm"},
		{"place.n|", "= Norm"},
		{"place.la|", "= label"},
		{"(&place).m|", "= move"},
		{"(place).N|", "= Norm"},
		{"places[0].N|", "= Norm"},
		{"byName[\"a\"].La|", "= label"},
		{"(<-ch).X|", "= X"},
		{"scale(place, 2).|", "none"},
		{"anything.(Point).N|", "= Norm"},
		{"anything.(Po|", "^ Point"},
		{"circle{}.|", "+ Area Name radius Point X Norm; - move"},
		{"c := circle{}; c.|", "^ Area Name Point radius; + X Y Norm move"},
		{"c := circle{}; c.Point.|", "+ X Norm move"},
		{"var s shape; s.|", "= Area:method Name:method"},
		{"words.|", "= items pop push"},
		{"words.items[0].|", "none"},
		{"w := words.pop(); w.|", "none"},
		{"ps := stack[Point]{}; ps.pop().|", "+ Norm X; - move"},
		{"Point.|", "= Norm String"},
		{"reply.|", "= Result:field Text:field Tokens:field Words:method DisplayBundle:method"},
		{"Say(\"x\").W|", "= Words"},
		{"Say(\"a (b\").W|", "= Words"},
		{"r := Say(\"x\")\nr.W|", "= Words"},
		{"r := Say(\"x\")\nfor {\n\tr.W|\n}", "= Words"},
		{"strings.NewReplacer(\"a\", \"b\").Re|", "= Replace"},
		{"strings.NewReplacer(\"a\", \"b\").\n\tRe|", "= Replace"},
		{"time.Now().Add(3).For|", "= Format"},
		{"time.Now().UTC().Year|", "= Year YearDay"},
		{"var b strings.Builder; b.WriteS|", "= WriteString"},
		{"b := &bytes.Buffer{}; b.WriteTo|", "= WriteTo"},
		{"x := place.|", "+ Norm"},
		{"x := place\nx.No|", "= Norm"},
		{"x, err := scale(place, 2)\nerr.|", "= Error"},
		{"x, err := scale(place, 2)\nx.N|", "= Norm"},
		{"if x, err := scale(place, 2); err.E|", "= Error"},
		{"if x, err := scale(place, 2); err == nil {\n\tx.N|", "= Norm"},
		{"switch v := anything.(type) {\ncase Point:\n\tv.N|", "= Norm"},
		{"switch v := anything.(type) {\ncase Point:\n\tv.N|\n}", "= Norm"},
		{"for _, p := range places {\n\tp.N|", "= Norm"},
		{"for k, p := range byName {\n\tp.N|\n}", "= Norm"},
		{"for p := range ch {\n\tp.N|\n}", "= Norm"},
		{"for i := range 10 {\n\tfmt.Println(i, place.N|", "= Norm"},
		{"f := func(q Point) int {\n\treturn q.X|", "= X"},
		{"func() {\n\tinner := place\n\tfunc() { inner.N|", "= Norm"},
		{"func g(q *Point) {\n\tq.mo|", "= move"},
		{"func (p *Point) twice() {\n\tp.mo|", "= move"},
		{"func (p *Point) twice() { }\nplace.tw|", "= twice"},
		{"func g[T shape](x T) {\n\tx.A|", "= Area"},
		{"func g[T any](xs []T) {\n\tvar y T|", "^ T"},
		{"type box struct { inner Point }\nvar b box\nb.inner.N|", "= Norm"},
		{"type box struct { *Point }\nbox{}.|", "+ Norm Point move"},
		{"m := map[string][]Point{}\nm[\"a\"][0].N|", "= Norm"},
		{"place.X.|", "none"},
		{"place.Norm().|", "none"},
		{"nothing.|", "none"},
		{"lab.S|", "= Say Settings Sheet Stats"},
		{"lab.Settings{M|", "= Max:field"},
		{"scale(place.|, 2)", "+ X"},
		{"scale(place.|", "+ X"},
		{"[]int{place.|}", "+ X"},
		{"map[string]int{\"a\": place.|", "+ X"},
		{"x := []int{1,\n\tplace.|\n}", "+ X"},
		{"place.|\nplaces", "+ Norm"},
		{"place.|\nfunc later() {}\n", "+ Norm"},
		{"func f() {\n\tplace.|\n\nfunc later() {}\n", "+ Norm"},
		{"place.No|rm()", "= Norm"},
		// literals' fields
		{"Settings{|", "= Max:field OnToken:field"},
		{"Settings{M|", "= Max"},
		{"Settings{M|}", "= Max"},
		{"Settings{Max: 1, |", "= OnToken"},
		{"Settings{Max: 1, |}", "= OnToken"},
		{"Settings{Max: 1,\n\t|\n}", "= OnToken"},
		{"Settings{\n\tO|\n\tMax: 1,\n}", "= OnToken"},
		{"Say(\"x\", Settings{O|", "= OnToken"},
		{"Say(\"x\", Settings{O|})", "= OnToken"},
		{"&Settings{Ma|", "= Max"},
		{"[]Settings{{Ma|", "= Max"},
		{"[]*Settings{{Ma|", "= Max"},
		{"map[string]Settings{\"a\": {Ma|", "= Max"},
		{"Settings{Max: lim|", "= limit Limit"},
		{"Point{l|", "^ label"},
		{"Point{X: 1, l|", "= label"},
		{"http.Server{Addr: \"\", Read|", "= ReadHeaderTimeout ReadTimeout"},
		{"p := Point{X: 1,\n\tY: plac|", "= place places"},
		// unfinished cells
		{"alpha := 1\nalp|", "= alpha:variable"},
		{"alp|\nalpha := 1", "none"},
		{"alpha := alp|", "none"},
		{"func beta() int { return 1 }\nbet|", "= beta:function"},
		{"bet|\nfunc beta() int { return 1 }", "= beta"},
		{"type gamma struct{}\nvar g gam|", "= gamma:type"},
		{"func f(delta int) {\n\tdel|", "^ delta:variable delete"},
		{"func f(delta int) {\n\tif true {\n\t\tfor {\n\t\t\tdel|", "^ delta"},
		{"func f(xs ...Point) {\n\txs[0].N|", "= Norm"},
		{"func f() (res Point) {\n\tres.N|", "= Norm"},
		{"func f() {\n\tlocal := 1\n\t{\n\t\tloc|\n\t}\n}", "= local"},
		{"func f() {\n\tloc|\n\tlocal := 1\n}", "none"},
		{"const epsilon = 1\neps|", "= epsilon:constant"},
		{"x := := 3\nplac|", "= place places"},
		{"func broken( {\n}\n\nplace.N|", "= Norm"},
		{"s := \"unclosed\nplace.N|", "= Norm"},
		{"place.N|\ns := \"unclosed", "= Norm"},
		{"place.N|\nfmt.Println(", "= Norm"},
		{"fmt.Println(1\nplace.N|", "= Norm"},
		{"alpha := place)\nalpha.N|", "= Norm"},
		{"if {\nplace.N|", "= Norm"},
		{"limit := \"shadow\"\nlimi|", "= limit:variable Limit:constant"},
		{"place := place\nplace.N|", "= Norm"},
		{"place := strings.NewReader(\"\")\nplace.Le|", "= Len"},
		{"x := 1\nx := \"b\"\nx|", "+ x"},
		// packages
		{"strings.HasP|", "= HasPrefix:function"},
		{"strings.pref|", "= CutPrefix HasPrefix TrimPrefix"},
		{"str.ToUp|", "= ToUpper ToUpperSpecial"},
		{"stri|", "= str" + "ings:module string:type"},
		{"import e \"encoding/json\"\ne.Marsh|", "= Marshal MarshalIndent Marshaler MarshalerError:type"},
		{"json.Marsh|", "= Marshal MarshalIndent Marshaler MarshalerError"},
		{"rand.Int|", "+ Intn"},
		{"math.Pi|", "= Pi:constant"},
		{"http.StatusTea|", "= StatusTeapot"},
		{"os.Arg|", "= Args:variable"},
		{"var r io.Read|", "+ Reader:type; - ReadAll ReadFull"},
		{"import \"enc|", "+ encoding encoding/json:module; - fmt"},
		{"import \"enc|\"", "+ encoding/json"},
		{"import \"encoding/j|", "= encoding/json"},
		{"import (\n\t\"fmt\"\n\t\"encoding/j|", "= encoding/json"},
		{"import j \"encoding/j|\"\n", "= encoding/json"},
		{"import . \"mat|", "+ math math/rand"},
		{"import . \"strings\"\nToUp|", "= ToUpper ToUpperSpecial"},
		// keywords and builtins
		{"ret|", "= return:keyword"},
		{"retu|\nplace", "= return"},
		{"appe|", "= append:function"},
		{"x := appe|", "= append"},
		{"fals|", "= false:constant"},
		{"var x strin|", "= string:type str" + "ings:module"},
		{"var x int|", "+ int int64:type"},
		{"x := ret|", "none"},
		{"x := fun|", "= func"},
		{"fmt.Println(ret|", "none"},
		{"for i := ran|", "^ rand; + range:keyword"},
		{"for rang|", "= range"},
		{"for _, x := rang|", "= range"},
		{"x := rang|", "none"},
		{"if true {\n} el|", "= else:keyword"},
		{"if true {\n} else i|", "+ if"},
		{"for {\n\tcont|", "+ continue; - container"},
		{"conti|", "none"},
		{"for {\n\tbrea|", "= break"},
		{"brea|", "none"},
		{"switch place.X {\nca|", "+ case"},
		{"switch place.X {\ncase 1:\n\tfallt|", "= fallthrough"},
		{"select {\ndefa|", "= default"},
		{"switch anything.(ty|", "+ type:keyword"},
		{"impor|", "+ import:keyword"},
		{"func f() {\n\timpor|", "- import"},
		{"var x stru|", "+ struct:keyword"},
		{"chan|", "= chan"},
		// more places and types
		{"go |", "+ scale place"},
		{"defer |", "+ scale place"},
		{"for range |", "+ place"},
		{"return |", "+ place"},
		{"x := |", "+ place Say; - x"},
		{"fmt.Println(|", "+ place Say"},
		{"|", "+ place Say Point str; - append return fmt"},
		{"switch v := anything.(type) {\ncase Poi|", "= Point"},
		{"switch anything.(type) {\ncase plac|", "none"},
		{"select {\ncase v := <-c|", "^ ch"},
		{"select {\ncase v := <-ch:\n\tv.N|", "= Norm"},
		{"func g[T sha|", "^ shape"},
		{"func g[T compar|", "= comparable"},
		{"(*Point).|", "= Norm String move"},
		{"v := struct{ A int; B string }{}; v.|", "= A B"},
		{"vs := []struct{ A, B int }{{|", "^ A B"},
		{"f := func() func() Point { return nil }; f()().N|", "= Norm"},
		{"apply(places, func(p Point) string { return p.la|", "= label"},
		{"apply(places, func(p Point) Point { return p })[0].N|", "= Norm"},
		{"slices.Collect(maps.Values(byName))[0].N|", "= Norm"},
		{"for v := range slices.Values(places) {\n\tv.N|", "= Norm"},
		{"type rs interface { io.Reader; Close() error }\nvar r rs\nr.|", "= Close Read"},
		{"time.Second.Sec|", "= Seconds"},
		{"errors.New(\"x\").|", "= Error"},
		{"m := map[string]func() Point{}; m[\"a\"]().N|", "= Norm"},
		{"a, b := place, \"x\"; a.N|", "= Norm"},
		{"if x, err := scale(place, 1); err != nil {\n} else {\n\tx.N|", "= Norm"},
		{"for _, c := range \"abc\" {\n\tc.|", "none"},
		{"type color int\nconst (\n\tred color = iota\n\tgreen\n)\ngree|", "= green:constant"},
		{"p, ok := <-ch; p.N|", "= Norm"},
		{"q := &place; (*q).N|", "= Norm"},
		{"var _ = plac|", "= place places"},
		{"type P = Point\nvar p P\np.N|", "= Norm"},
		{"place.\n\tN|", "= Norm"},
		{"place.\n\tN|\nx := 1", "= Norm"},
		{"x := place\r\nx.N|", "= Norm"},
		{"lab.Say(\"x\").W|", "= Words"},
		{"type job struct{ s Settings }\nj := job{}\nj.s.M|", "= Max"},
		{"étage := 1; ét|", "= étage"},
		{"twin|", "= twin:variable"},
		{"var w sync.WaitGroup\nw.G|", "= Go"},
		{"var mu struct{ sync.Mutex; n int }\nmu.Lo|", "= Lock"},
		{"scale(place, 2)\nplace.N|\nscale(", "= Norm"},
		{"x := map[string]int{\n\t\"a\": 1\n\t\"b\": limi|\n}", "= limit Limit"},
		{"func f(a int b int) {\n}\nplace.N|", "= Norm"},
		{"if place.X == {\n}\nplace.N|", "= Norm"},
		{"y := place.\n\nz := plac|", "= place places"},
		{"func f() {\n\tx := strings.NewReader(\"\n\tx.Le|\n}", "= Len"},
		{"x := `raw` + plac|", "= place places"},
		{"json.NewDecoder(strings.NewReader(\"{}\")).Dec|", "= Decode"},
		{"r, _ := http.Get(\"x\"); r.Body.Cl|", "= Close"},
		{"sort.Slice(places, func(i, j int) bool {\n\treturn places[i].N|", "= Norm"},
		{"go func() {\n\tfor p := range ch {\n\t\tp.N|\n\t}\n}()", "= Norm"},
		{"defer func() {\n\tif r := recover(); r != nil {\n\t\tplac|", "= place places"},
		{"type tree struct { left, right *tree; at Point }\nvar t tree\nt.left.right.at.N|", "= Norm"},
		{"func (t *node) walk(f func(*node)) {\n\tt.nex|\n}\ntype node struct { next *node }", "= next"},
		{"func g[K comparable, V shape](m map[K]V) {\n\tfor _, v := range m {\n\t\tv.A|", "= Area"},
		{"x.Y|", "none"},
		{"var f func(p Point) Poi|", "= Point"},
		{"[]map[string]chan Poi|", "= Point"},
		{"type t interface { Poi|", "= Point"},
		{"words.it|ems", "= items"},
		{"break plac|", "none"},
		{"plac|e", "= place places"},
		{"|place", "+ place Say"},
		{"place . N|", "= Norm"},
		{"?strings.HasP|", "= HasPrefix"},
		{"?plac|", "= place places"},
		{"??place.N|", "= Norm"},
		// types only
		{"func f(p Poi|", "= Point"},
		{"func f(p plac|", "none"},
		{"func f() plac|", "none"},
		{"func f() Poi|", "= Point"},
		{"func (p *Poi|", "= Point"},
		{"var x []Poi|", "= Point"},
		{"var x map[string]Poi|", "= Point"},
		{"type t struct {\n\tp Poi|", "= Point"},
		{"type t Poi|", "= Point"},
		{"make(chan Poi|", "= Point"},
		{"make([]Poi|", "= Point"},
		{"stack[Poi|", "= Point"},
		// nothing
		{"\"plac|", "none"},
		{"\"plac|\"", "none"},
		{"`plac|", "none"},
		{"`a\npla|\n`", "none"},
		{"// plac|", "none"},
		{"/* plac|", "none"},
		{"/* plac| */", "none"},
		{"x // plac|\ny", "none"},
		{"'p|", "none"},
		{"12|", "none"},
		{"1.|", "none"},
		{"0x|", "none"},
		{"func plac|", "none"},
		{"type plac|", "none"},
		{"var plac|", "none"},
		{"place plac|", "none"},
		{"fmt.Sprintf(\"%d plac|\", 1)", "none"},
		{"// note\nplac|", "= place places"},
		{"/* a */ plac|", "= place places"},
		{"é := place; é.N|", "= Norm"},
		{"s := \"日本語\"; place.N|", "= Norm"},
	} {
		got := s.completeAt(c.code)
		if before, _, _ := strings.Cut(c.code, "|"); got.End != utf8.RuneCountInString(before) || got.Start > got.End {
			t.Errorf("%q: from %d to %d", c.code, got.Start, got.End)
		}
		var names []string
		kinds := map[string]string{}
		for _, m := range got.Matches {
			names, kinds[m.Text] = append(names, m.Text), m.Type
		}
		if e := wanted(c.want, names, kinds); e != "" {
			t.Errorf("%q: want %s (%s), got %q", c.code, c.want, e, names)
		}
	}
}

// wanted says what of want is missing.
func wanted(want string, names []string, kinds map[string]string) string {
	if want == "none" {
		if len(names) > 0 {
			return "nothing"
		}
		return ""
	}
	for clause := range strings.SplitSeq(want, "; ") {
		var list []string
		for w := range strings.FieldsSeq(clause[2:]) {
			name, kind, ok := strings.Cut(w, ":")
			list = append(list, name)
			if ok && kinds[name] != kind {
				return fmt.Sprintf("%s is a %q", name, kinds[name])
			}
		}
		switch clause[0] {
		case '=':
			if !slices.Equal(list, names) {
				return "these alone"
			}
		case '^':
			if len(names) < len(list) || !slices.Equal(list, names[:len(list)]) {
				return "these first"
			}
		case '+', '-':
			for _, n := range list {
				if slices.Contains(names, n) != (clause[0] == '+') {
					return n
				}
			}
		}
	}
	return ""
}

func TestCompletionSignatures(t *testing.T) {
	s := newAsked(t, askedCells...)
	for code, want := range map[string]string{
		"scal|":                  "(p Point, by int) (Point, error)",
		"appl|":                  "[T, U any](xs []T, f func(T) U) []U",
		"Sa|":                    "(text string, p ...Settings) *Reply",
		"place.Nor|":             "() float64",
		"place.labe|":            "string",
		"Poin|":                  "struct",
		"shap|":                  "interface",
		"Limi|":                  "float64 = 2",
		"limi|":                  "= 10",
		"plac|":                  "Point",
		"strings.HasPrefi|":      "(s, prefix string) bool",
		"strings.Cu|":            "(s, sep string) (before, after string, found bool)",
		"appen|":                 "(slice []Type, elems ...Type) []Type",
		"byNam|":                 "map[string]*Point",
		"json.Unmarsha|":         "(data []byte, v any) error",
		"slices.SortFun|":        "[S ~[]E, E any](x S, cmp func(a, b E) int)",
		"http.HandlerFun|":       "func(http.ResponseWriter, *http.Request)",
		"Settings{OnToke|":       "func(string)",
		"f := place.move; f|":    "func(dx int)",
		"import \"encoding/jso|": "",
	} {
		got := s.completeAt(code)
		if len(got.Matches) == 0 || got.Matches[0].Signature != want {
			t.Errorf("%q: want %s, got %+v", code, want, got.Matches)
		}
	}
}

func TestInspections(t *testing.T) {
	s := newAsked(t, askedCells...)
	for _, c := range []struct {
		code   string
		detail int
		want   string // parts, after a ! that must not be there; none
	}{
		{"sca|le", 0, "func scale(p Point, by int) (Point, error)\n\nscale multiplies."},
		{"|scale", 0, "func scale"},
		{"scale|", 0, "func scale"},
		{"scale(|", 0, "func scale"},
		{"scale(|)", 0, "func scale"},
		{"scale(place, |", 0, "func scale"},
		{"scale(place, |)", 0, "func scale"},
		{"scale(place, 2)|", 0, "func scale"},
		{"scale(place, |2)", 0, "func scale"},
		{"scale(pla|ce, 2)", 0, "place Point"},
		{"scale(scale(|", 0, "func scale"},
		{"Say(\"a text|", 0, "func Say(text string, p ...Settings) *Reply\n\nSay has the lab"},
		{"Say(\"a (text|\")", 0, "func Say"},
		{"Say(\"x\", |", 0, "func Say"},
		{"Say(\n\t\"x\",\n\t|\n)", 0, "func Say"},
		{"Say(\"x\", Settings{|", 0, "type Settings struct\n\nMax int // Max is how many words to say.\nOnToken func(string)"},
		{"Say(\"x\", Settings{Max: 1, |", 0, "type Settings"},
		{"Settings{Ma|x: 1}", 0, "Max int\n\nMax is how many"},
		{"Settings{Ma|x", 0, "Max int\n\nMax is how many"},
		{"func f() {\n\tscale(|\n}", 0, "func scale"},
		{"x := scale(place, |", 0, "func scale"},
		{"if scale(|", 0, "func scale"},
		{"go scale(|", 0, "func scale"},
		{"apply[int](|", 0, "func apply[T, U any]"},
		{"scale", 1, "func scale(p Point"},
		{"scale|", 1, "{ return p, nil }"},
		{"Poi|nt", 0, "type Point struct {\n\tX, Y int // where it is"},
		{"Poi|nt", 0, "A Point is a place.\n\nfunc (p Point) Norm() float64"},
		{"place.X|", 0, "X int\n\nwhere it is"},
		{"place.label|", 0, "label string\n\nlabel is what it is called."},
		{"place.No|rm()", 0, "func (p Point) Norm() float64\n\nNorm is the distance."},
		{"place.Norm(|", 0, "func (p Point) Norm"},
		{"place.Norm|", 1, "{ return 0 }"},
		{"place.move(|", 0, "func (p *Point) move(dx int)"},
		{"pla|ce", 0, "place Point"},
		{"place|", 1, "place := Point{X: 1}"},
		{"lim|it", 0, "const limit = 10"},
		{"circle{}.No|rm", 0, "Norm is the distance."},
		{"strings.Rep|eat", 0, "func Repeat(s string, count int) string\n\nRepeat returns a new string"},
		{"strings.Repeat(\"x\", |", 0, "It panics if count is negative"},
		{"str.Repeat(|", 0, "func Repeat"},
		{"str|ings.Repeat", 0, "package strings // import \"strings\"\n\nPackage strings implements"},
		{"str|.Repeat", 0, "package strings"},
		{"strings|", 0, "functions: Clone"},
		{"strings|", 1, "Package strings implements"},
		{"import \"encoding/js|on\"", 0, "package json // import \"encoding/json\""},
		{"import \"encoding/json|", 0, "package json"},
		{"lab|", 0, "package lab"},
		{"strings.Buil|der", 0, "func (*Builder) WriteString(s string) (int, error)"},
		{"var b strings.Builder\nb.WriteString(|", 0, "WriteString appends the contents of s"},
		{"http.Server{Addr|", 0, "Addr string\n\nAddr optionally specifies the TCP address"},
		{"http.Server|", 0, "type Server struct\n\nA Server defines"},
		{"http.Server.Addr|", 0, "Addr optionally"},
		{"http.StatusTeapot|", 0, "const StatusTeapot = 418"},
		{"os.Args|", 0, "Args []string\n\nArgs hold the command-line"},
		{"io.EOF|", 0, "EOF error\n\nEOF is the error"},
		{"io.Reader|", 0, "Read(p []byte) (n int, err error)"},
		{"time.Now().Form|at", 0, "Format returns a textual representation"},
		{"make(|", 0, "func make(t Type, size ...IntegerType) Type\n\nThe make built-in"},
		{"appe|nd", 0, "func append(slice []Type, elems ...Type) []Type"},
		{"mi|n(1, 2)", 0, "func min[T cmp.Ordered](x T, y ...T) T"},
		{"ni|l", 0, "nil"},
		{"stri|ng", 0, "type string"},
		{"err|or", 0, "type error interface"},
		{"def|er f()", 0, "defer\n\ndefer f(x) calls"},
		{"rang|e", 0, "range goes over"},
		{"?sca|le", 0, "func scale"},
		{"strings.Cut|??", 1, "func Cut"},
		{"reply.Words(|", 0, "func (*Reply) Words() []string"},
		{"lab.Say(|", 0, "Say has the lab say"},
		// the cell's own
		{"// twice doubles.\nfunc twice(n int) int { return 2*n }\ntwice(|", 0, "func twice(n int) int\n\ntwice doubles."},
		{"// twice doubles.\nfunc twice(n int) int { return 2*n }\ntwi|ce", 1, "return 2*n }"},
		{"// A box holds.\ntype box struct { n int }\nvar b bo|x", 0, "type box struct { n int }\n\nA box holds."},
		{"type box struct {\n\t// n counts.\n\tn int\n}\nbox{}.n|", 0, "n int\n\nn counts."},
		{"// twice is two.\nfunc (p Point) twice() Point { return p }\nplace.tw|ice()", 0, "func (p Point) twice() Point\n\ntwice is two."},
		{"// twice is two.\nfunc (p Point) tw|ice() Point { return p }", 1, "{ return p }"},
		{"x := 3\nx|", 0, "x int"},
		{"func f(alpha string) {\n\talp|ha", 0, "alpha string"},
		{"func f(alpha string) {\n\tprintln(alp|ha)\n}", 0, "alpha string"},
		{"for i, p := range places { p|", 0, "p Point"},
		{"switch v := anything.(type) {\ncase Point:\n\tv|\n}", 0, "v Point"},
		{"x := := 3\nscale(|", 0, "func scale"},
		{"fmt.Println(1\nscale(|", 0, "func scale"},
		{"Point{X|: 1}", 0, "X int"},
		// nothing
		{"nothing|", 0, "none"},
		{"// scale|", 0, "none"},
		{"\"scale|\"", 0, "none"},
		{"|", 0, "none"},
		{"1 + |", 0, "none"},
		{"12|", 0, "none"},
		{"scale(place, 2)\n|", 0, "none"},
	} {
		text, b := s.inspectAt(c.code, c.detail)
		if c.want == "none" {
			if text != "" {
				t.Errorf("%q: want nothing, got %q", c.code, text)
			}
			continue
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%q: want %q, got %q", c.code, c.want, text)
		} else if m, _ := b.Data["text/markdown"].(string); !strings.HasPrefix(m, "```go\n") {
			t.Errorf("%q: Markdown %q", c.code, m)
		}
	}
}

// wholeCell has some of everything that a cell can have.
const wholeCell = `package main

import (
	"fmt"
	str "strings"
)

// A pair is two.
type pair[K comparable, V any] struct {
	Key K ` + "`json:\"key\"`" + `
	Value V // what
}

func (p *pair[K, V]) set(v V) *pair[K, V] { p.Value = v; return p }
func (p Point) twice() Point { return Point{X: 2 * p.X, label: "twice"} }

const ( a = iota; b )

var m = map[string][]pair[string, int]{"é": {{Key: "k", Value: 1}, {"l", 2}}}
x, err := scale(place, len(m))
outer:
for i, p := range m["é"] {
	switch v := any(p.Value).(type) {
	case int, int64:
		if n, ok := v.(int); ok && n > i { continue outer } else if !ok { break }
	default:
		go func(q *pair[string, int]) { defer close(nil); fmt.Println(str.ToUpper(q.Key), <-ch) }(&p)
	}
	select { case ch <- x: case y, ok := <-ch: _, _ = y, ok }
}
/* done */ p := &pair[string, int]{}; p.set(3).set(4).Value++
'a' + 1.5e3; fmt.Sprintf("%d\n", [...]int{1: 2}[1:])`

// TestAskAnywhere asks at each place of a cell, in the whole cell and where it ends
// there.
func TestAskAnywhere(t *testing.T) {
	s := newAsked(t, askedCells...)
	n := utf8.RuneCountInString(wholeCell)
	for cursor := range n + 1 {
		for _, code := range []string{wholeCell, string([]rune(wholeCell)[:cursor])} {
			ask(t, s, code, cursor)
		}
	}
}

// ask completes and inspects, and checks what holds of any answer.
func ask(t *testing.T, s *shell, code string, cursor int) {
	defer func() {
		if v := recover(); v != nil {
			t.Fatalf("at %d of %q: %v", cursor, code, v)
		}
	}()
	c := s.complete(code, cursor)
	if c.Start > c.End || c.End != cursor || c.Start < 0 {
		t.Errorf("%q: from %d to %d, asked at %d", code, c.Start, c.End, cursor)
	}
	for _, m := range c.Matches {
		if m.Text == "" || m.Type == "" || strings.Contains(m.Text+m.Signature, mark) || strings.Contains(m.Text, "cursor"+mark) {
			t.Errorf("%q at %d: %+v", code, cursor, m)
		}
	}
	b, found := s.inspect(code, cursor, 1)
	if text, _ := b.Data["text/plain"].(string); found && (text == "" || strings.Contains(text, mark)) {
		t.Errorf("%q at %d: inspection %q", code, cursor, text)
	}
}

func FuzzAsk(f *testing.F) {
	s := newAsked(f, askedCells...)
	for _, code := range []string{wholeCell, "place.", "Settings{", "import \"en", "for i := range ", "func (p *Point) ", "x := func() { Say(\"", "type T[", "}{)(]["} {
		f.Add(code, uint16(len(code)))
	}
	f.Fuzz(func(t *testing.T, code string, at uint16) {
		if strings.Contains(code, mark) || !utf8.ValidString(code) || len(code) > 2000 {
			return
		}
		ask(t, s, code, int(at)%(utf8.RuneCountInString(code)+1))
	})
}

// BenchmarkAsk is of a session with many names: complete and inspect each take
// well under a millisecond, whatever the session has.
func BenchmarkAsk(b *testing.B) {
	cells := slices.Clone(askedCells)
	for i := range 300 {
		cells = append(cells, fmt.Sprintf("type t%d struct { A, B int; next *t%d }\nfunc (x t%d) Sum() int { return x.A + x.B }\nfunc make%d(n int) *t%d { return nil }\nv%d, w%d := make%d(1), map[string]t%d{}\nconst c%d = %d", i, i, i, i, i, i, i, i, i, i, i))
	}
	s := newAsked(b, cells...)
	for _, code := range []string{"v12|", "v120.|", "|", "x := make7(3)\nfor range 3 {\n\tx.Su|", "strings.Has|", wholeCell + "\nplace.|", strings.Repeat("z := place.X + len(places)\n", 1000) + "places[0].|"} {
		b.Run("complete/"+code[max(0, len(code)-12):], func(b *testing.B) {
			for b.Loop() {
				s.completeAt(code)
			}
		})
	}
	for _, code := range []string{"v12|", "make7(|", "strings.Repeat(\"x\", |", "t7|"} {
		b.Run("inspect/"+code, func(b *testing.B) {
			for b.Loop() {
				s.inspectAt(code, 1)
			}
		})
	}
}

// TestAskWhileChecking: no question waits for the cell that is checked or compiled,
// and what that one changes disturbs none.
func TestAskWhileChecking(t *testing.T) {
	s := newAsked(t, askedCells...)
	s.table.mu.Lock()
	if got := s.completeAt("place.Nor|"); len(got.Matches) != 1 {
		t.Errorf("%+v", got)
	}
	if text, _ := s.inspectAt("scale(|", 1); text == "" {
		t.Error("nothing found")
	}
	if !strings.Contains(s.overview(), "scale") {
		t.Error(s.overview())
	}
	s.table.mu.Unlock()

	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			code := fmt.Sprintf("type Point struct { X, Y%d int; label string }\nfunc (p Point) Norm() int { return %d }\nplace := Point{}\nfunc scale(p Point) Point { return p }\nimport \"os\"", i, i)
			if _, e := s.prepare(interp.NewRun(), code, code, i, false); e != nil {
				t.Errorf("%v", e)
				return
			}
		}
	}()
	for range 50 {
		if got := s.completeAt("place.Nor|"); len(got.Matches) != 1 || got.Matches[0].Text != "Norm" {
			t.Errorf("%+v", got)
		}
		if text, _ := s.inspectAt("type Point struct { Z int }\nfunc f(p Point) { p.Z|", 1); !strings.HasPrefix(text, "Z int") {
			t.Errorf("%q", text)
		}
		if text, _ := s.inspectAt("scale(|", 1); !strings.Contains(text, "return p") {
			t.Errorf("%q", text)
		}
	}
	close(stop)
	<-done
}
