//go:build unix

package cell

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"deltafin/kernel"
)

// Each case's cells run in one session and print what compiled Go prints; what
// cells show follows an arrow.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		cells      []string
	}{
		{"names", "main.celsius 21.5°C *main.pair[int,main.celsius] map[main.celsius][]main.celsius func(main.celsius) error\n", []string{
			`type celsius float64
func (c celsius) String() string { return fmt.Sprintf("%.1f°C", float64(c)) }
type pair[A, B any] struct { a A; b B }`,
			`fmt.Printf("%T %v %T %T %T", celsius(0), celsius(21.5), &pair[int, celsius]{}, map[celsius][]celsius{}, func(celsius) error { return nil }); fmt.Println()`}},
		{"nested stringers", "[a! b!] map[k!:v!] {c!} [d!] <e!>\n", []string{
			`type s string
func (x s) String() string { return string(x) + "!" }
fmt.Println([]s{"a", "b"}, map[s]s{"k": "v"}, struct{ S s }{"c"}, []any{s("d")}, fmt.Sprintf("<%v>", any(s("e"))))`}},
		{"unexported fields", "{1 {2}} {a:1 b:{c:2}} main.t{a:1, b:main.u{c:2}} {\"D\":0} false\n", []string{
			`type u struct { c int }
type t struct { a int; b u }
type v struct { t; D int }
x := t{1, u{2}}
b, _ := json.Marshal(v{t: x})
f, _ := reflect.TypeOf(x).FieldByName("a")
fmt.Printf("%v %+v %#v %s %v\n", x, x, x, b, f.IsExported())`}},
		{"embedding", "1 2 hello rex REX! [1 2] 3\n", []string{
			`type namer interface { name() string }
type animal struct { id int; kind string }
func (a animal) hello() string { return "hello " + a.kind }
func (a *animal) rename(s string) { a.kind = s }
type dog struct { animal; *strings.Builder; age int }
type loud struct { namer }
func (l loud) shout() string { return strings.ToUpper(l.name()) + "!" }
func (d dog) name() string { return d.kind }`,
			`d := dog{animal{1, "dog"}, &strings.Builder{}, 2}
d.rename("rex")
fmt.Fprint(&d, "[1 2]")
fmt.Println(d.id, d.age, d.hello(), loud{d}.shout(), d.String(), d.Len()-2)`}},
		{"errors", "true 3 true true false read: EOF\ntrue nil E\n", []string{
			`type E struct { code int; err error }
func (e *E) Error() string { if e == nil { return "nil E" }; return "read: " + e.err.Error() }
func (e *E) Unwrap() error { return e.err }
func (e *E) Is(target error) bool { return target == fs.ErrPermission }
func find() error { var e *E; return e }`,
			`err := fmt.Errorf("%w", &E{3, io.EOF})
var e *E
fmt.Println(errors.As(err, &e), e.code, errors.Is(err, io.EOF), errors.Is(err, fs.ErrPermission), errors.Is(err, io.ErrShortWrite), err)
fmt.Println(find() != nil, find())`}},
		{"type switches", "int celsius kelvin shape other <nil>\n", []string{
			`type celsius float64
type kelvin float64
type shape interface { area() float64 }
type sq float64
func (s sq) area() float64 { return float64(s) }
func what(v any) string {
	switch v := v.(type) {
	case nil: return "<nil>"
	case int: return "int"
	case celsius: return "celsius"
	case kelvin: return "kelvin"
	case shape: _ = v.area(); return "shape"
	}
	return "other"
}
fmt.Println(what(1), what(celsius(1)), what(kelvin(1)), what(sq(1)), what(1.5), what(nil))`}},
		{"keys", "1 2 3 <nil>\n", []string{
			`type k string
type k2 struct{}
ctx := context.WithValue(context.WithValue(context.WithValue(context.Background(), "k", 1), k("k"), 2), k2{}, 3)
fmt.Println(ctx.Value("k"), ctx.Value(k("k")), ctx.Value(k2{}), ctx.Value(struct{}{}))`}},
		{"methods of other kinds", "18 [1 2 3] 7 map[a:1] 2 4\n", []string{
			`type fn func(int) int
func (f fn) twice(x int) int { return f(f(x)) }
type list []int
func (l list) Len() int { return len(l) }
func (l list) Less(i, j int) bool { return l[i] < l[j] }
func (l list) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *list) push(x int) { *l = append(*l, x) }
type set map[string]int
func (s set) add(k string) set { s[k]++; return s }
type ch chan int
func (c ch) put(x int) { c <- x }
type arr [2]int
func (a arr) sum() int { return a[0] + a[1] }
type ptr struct { p *int }
func (p ptr) get() int { return *p.p }`,
			`l := list{3, 1}
l.push(2)
sort.Sort(l)
c := make(ch, 1)
c.put(7)
two := 2
fmt.Println(fn(func(x int) int { return x * 3 }).twice(2), l, <-c, set{}.add("a"), ptr{&two}.get(), arr{1, 3}.sum())`}},
		{"later methods", "{1}\nP1 [P1] P1\nnew new\n→ new\n", []string{
			"type P struct{ n int }\np := P{1}\nfmt.Println(p)",
			"func (p P) String() string { return fmt.Sprint(\"P\", p.n) }\nfunc show(v any) string { return fmt.Sprint(v) }",
			"var s fmt.Stringer = p\nfmt.Println(show(p), []P{p}, s)",
			"func (p P) String() string { return \"new\" }",
			"fmt.Println(show(p), s)\np"}},
		{"later methods of what is embedded", "{{1} 2}\nA! true\n", []string{
			"type A struct{ n int }\ntype B struct { A; m int }\nb := B{A{1}, 2}\nfmt.Println(b)",
			"func (a A) String() string { return \"A!\" }",
			"_, ok := any(b).(interface{ String() string })\nfmt.Println(b, ok)"}},
		{"later methods of generic types", "[1]\n[1 2 2] [3 3] [a a]\nS[1 2 2] 2 [S[1 2 2]]\n", []string{
			"type S[T any] struct{ xs []T }\nfunc (s *S[T]) Put(x T) { s.xs = append(s.xs, x) }",
			"s := &S[int]{}\ns.Put(1)\nfmt.Println(s.xs)",
			"type S[T any] struct{ xs []T }\nfunc (s *S[T]) Put(x T) { s.xs = append(s.xs, x, x) }",
			"t, u := &S[int]{}, &S[string]{}\ns.Put(2); t.Put(3); u.Put(\"a\")\nfmt.Println(s.xs, t.xs, u.xs)",
			"func (s S[T]) String() string { return fmt.Sprint(\"S\", s.xs) }\nfunc (s S[T]) Last() T { return s.xs[len(s.xs)-1] }",
			"fmt.Println(s, s.Last(), []any{*s})"}},
		{"functions of a type with later methods", "<1> <2> true\n", []string{
			"type T struct{ n int }\ntype H func(T) string\ntype user interface { use(func(T) string) string }\nvar h H\nvar hs = map[string]func(T) string{}",
			"func (t T) String() string { return fmt.Sprint(\"<\", t.n, \">\") }",
			"type u struct{}\nfunc (u) use(f func(T) string) string { return f(T{2}) }\nh = func(t T) string { return strings.ReplaceAll(t.String(), \" \", \"\") }\nhs[\"a\"] = h\nvar x user = u{}\n_, ok := any(u{}).(user)\nfmt.Println(h(T{1}), x.use(hs[\"a\"]), ok)"}},
		{"declared again", "{1} {1 2} false main.T main.T\nint str true\n", []string{
			"type T struct{ A int }\nt := T{1}\nvar old any = t",
			"type T struct{ A, B int }",
			"_, ok := old.(T)\nn := T{1, 2}\nfmt.Printf(\"%v %v %v %T %T\\n\", t, n, ok, t, n)",
			"type K int\nfunc (K) String() string { return \"int\" }\nx := K(1)",
			"type K string\nfunc (K) String() string { return \"str\" }\nfmt.Println(x, K(\"\"), any(x) != any(K(\"\")))"}},
		{"in functions", "false true main.t 3 [3 4]\n", []string{
			"func mk() any { type t struct{ A int }; return t{1} }\nfunc mk2() any { type t struct{ A int }; return t{1} }\nfunc of[T any](x T) any { type t struct{ v T }; return t{x} }",
			"type rec struct { next *rec; v int }\na, b := mk(), mk2()\nr := &rec{&rec{nil, 2}, 1}\nfmt.Printf(\"%v %v %T %d [3 4]\\n\", a == b, a == mk() && of(3) == of(3) && of(3) != of(\"3\"), a, r.v+r.next.v)"}},
		{"in generic functions", "[{a 1} {b 2}] main.pair main.pair true [1 2] {{3}}\n", []string{
			"func pairs[K cmp.Ordered, V any](m map[K]V) any { type pair struct { k K; v V }; var out []pair; for k, v := range m { out = append(out, pair{k, v}) }; slices.SortFunc(out, func(a, b pair) int { return cmp.Compare(a.k, b.k) }); return out }\nfunc wrap[T any](x T) any { type w struct { x T }; return id(w{x}) }\nfunc id[T any](x T) any { type w struct { x T }; return w{x} }",
			"func run() { type p struct { n int }; ps := []p{{2}, {1}}; slices.SortStableFunc(ps, func(a, b p) int { return a.n - b.n }); var ns []int; for _, x := range ps { ns = append(ns, x.n) }; a, b := pairs(map[string]int{\"b\": 2, \"a\": 1}), pairs(map[int]int{1: 1}); fmt.Println(a, reflect.TypeOf(a).Elem(), reflect.TypeOf(b).Elem(), reflect.TypeOf(a) != reflect.TypeOf(b), ns, wrap(3)) }\nrun()"}},
		{"recursion", "2 2 y true *main.node[string] map[a:map[b:map[]]]\n", []string{
			"type list[T any] struct { head *node[T]; n int }\ntype node[T any] struct { v T; in *list[T]; kids map[string]node[T] }\nfunc (l *list[T]) add(v T) { l.head = &node[T]{v, l, nil}; l.n++ }\ntype tree map[string]tree\ntype a struct { b *b; k map[b]int }\ntype b struct { a *a }",
			"l := &list[string]{}\nl.add(\"x\")\nl.add(\"y\")\nx := a{}\nx.b = &b{&x}\nx.k = map[b]int{*x.b: 2}\nfmt.Printf(\"%d %d %s %v %T %v\\n\", l.n, x.k[*x.b], l.head.v, l.head.in == l, l.head, tree{\"a\": {\"b\": tree{}}})"}},
		{"method values and expressions", "1 11 6 x9 7 <y>\n", []string{
			"type c struct { n int }\nfunc (c c) get() int { return c.n }\nfunc (c *c) add(i ...int) int { for _, x := range i { c.n += x }; return c.n }\nfunc (c) pair() (int, string) { return 9, \"x\" }\nfunc (c) join(i int, s string) string { return s + strconv.Itoa(i) }\ntype box struct { fmt.Stringer }\ntype y struct{}\nfunc (y) String() string { return \"<y>\" }",
			"v := c{1}\nget, add := v.get, v.add\nadd(4, 6)\nfmt.Println(get(), v.n, (*c).add(&c{1}, 2, 3), v.join(v.pair()), c.get(c{7}), box.String(box{y{}}))"}},
		{"compiled code", "ABC 2 3 <nil> [a b] {\"t\":\"low\"} true\n", []string{
			"type up struct { r io.Reader }\nfunc (u up) Read(p []byte) (int, error) { n, err := u.r.Read(p); copy(p, bytes.ToUpper(p[:n])); return n, err }\ntype level int\nfunc (l level) MarshalText() ([]byte, error) { return []byte(\"low\"), nil }\ntype h []string\nfunc (x h) Len() int { return len(x) }\nfunc (x h) Less(i, j int) bool { return x[i] < x[j] }\nfunc (x h) Swap(i, j int) { x[i], x[j] = x[j], x[i] }\nfunc (x *h) Push(v any) { *x = append(*x, v.(string)) }\nfunc (x *h) Pop() any { v := (*x)[len(*x)-1]; *x = (*x)[:len(*x)-1]; return v }\ntype cnt struct { n int }\nfunc (c *cnt) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }",
			"b, err := io.ReadAll(up{strings.NewReader(\"abc\")})\nq := &h{}\nheap.Push(q, \"b\"); heap.Push(q, \"a\")\nvar w cnt\nfmt.Fprint(io.MultiWriter(&w, io.Discard), \"xyz\")\nj, _ := json.Marshal(map[string]level{\"t\": 1})\nfmt.Println(string(b), q.Len(), w.n, err, []any{heap.Pop(q), heap.Pop(q)}, string(j), reflect.TypeOf(q).Implements(reflect.TypeFor[heap.Interface]()))"}},
		{"panics", "runtime error: invalid memory address or nil pointer dereference\ninterface conversion: main.S is main.A, not main.B\ninterface conversion: main.A is not fmt.Stringer: missing method String\ninterface conversion: interface {} is main.A, not int\nE7\n", []string{
			"type S interface { s() }\ntype A struct{}\nfunc (A) s() {}\ntype B struct{}\nfunc (B) s() {}\ntype E int\nfunc (e E) Error() string { return fmt.Sprint(\"E\", int(e)) }\nfunc try(f func()) { defer func() { fmt.Println(recover()) }(); f() }",
			"try(func() { var x S; x.s() })\ntry(func() { var x S = A{}; _ = x.(B) })\ntry(func() { _ = any(A{}).(fmt.Stringer) })\ntry(func() { _ = any(A{}).(int) })\ntry(func() { panic(E(7)) })"}},
		{"names of main", "→ 4\n", []string{"main := 3\nmain + 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outputs(t, c.cells...); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// outputs runs cells in one session and gives what they print; what they show
// follows an arrow.
func outputs(t *testing.T, cells ...string) string {
	t.Helper()
	h := newHost(t, nil)
	var got strings.Builder
	for _, code := range cells {
		for _, e := range mustRun(t, h, code).events {
			kind, text, _ := strings.Cut(e, ":")
			if kind == "result" {
				fmt.Fprintf(&got, "→ %s\n", text)
			} else {
				got.WriteString(text)
			}
		}
	}
	return got.String()
}

// A subshell knows the types and methods of the main shell, and values of both are
// of one type.
func TestTypesInSubshells(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "type T struct{ n int }\nfunc (t T) String() string { return fmt.Sprint(\"T\", t.n) }\nfunc (t *T) inc() { t.n++ }\nv := &T{1}\nvar any1 any = *v")
	if err := h.OpenSubshell("s"); err != nil {
		t.Fatal(err)
	}
	sub := func(code, want string) {
		t.Helper()
		r := newRecord()
		if e := h.Execute(context.Background(), kernel.Cell{Code: code, Subshell: "s"}, r); e != nil || r.text() != want {
			t.Errorf("%s: %v, %q; want %q", code, e, r.text(), want)
		}
	}
	sub("v.inc(); fmt.Println(v, any1 == any(T{1}))", "stdout:T2 true\n")
	sub("type U struct{ T }\nvar u fmt.Stringer = U{T{5}}\nfmt.Println(u)", "stdout:T5\n")
	expect(t, h, "v.inc(); fmt.Println(v, u, u.(U).n)", "stdout:T3 T5 5\n")
}
