//go:build unix

package cell

import (
	"strings"
	"testing"

	"deltafin/kernel"
)

// A session is cells run one after the other in one child, each with what it
// prints and shows ("stdout:…|result:…"), or "error:" and a part of the error.
type session []struct{ code, want string }

func TestSessions(t *testing.T) {
	for name, s := range map[string]session{
		"redeclare": {
			{"x := 1\nx := 2\nx", "result:2"},
			{"x := \"text\"\nx", "result:text"},
			{"func f() int { return len(x) }\nf()", "result:4"},
			{"func f() string { return x + x }\nf()", "result:texttext"},
			{"type t struct{ a int }\nv := t{1}", ""},
			{"type t struct{ a, b int }\nt{1, 2}", "result:{a:1 b:2}"},
			{"v", "result:{a:1}"},
		},
		"late binding": {
			{"func inner() int { return 1 }\nfunc outer() int { return inner() + rate }\nrate := 10", ""},
			{"func inner() int { return 2 }", ""},
			{"outer()", "result:12"},
			{"rate := 20\nouter()", "result:22"},
			{"func inner() string { return \"no\" }\nouter()", "result:22"},
			{"type p struct{ n int }\nfunc (x p) get() int { return x.n }\nfunc mk() p { return p{n: 3} }", ""},
			{"type p struct{ n, m int }\nmk().get() + mk().m", "result:3"},
		},
		"imports and declarations replace each other": {
			{"import \"text/scanner\"\nfunc tok() rune { var s scanner.Scanner; return s.Init(strings.NewReader(\"\")).Scan() }\nscanner.EOF", "result:-1"},
			{"scanner := 3\nscanner", "result:3"},
			{"tok() == -1", "result:true"},
			{"import \"go/scanner\"\nvar e scanner.ErrorList\nlen(e)", "result:0"},
			{"func f() int { return scanner.Error{}.Pos.Line }\nf()", "result:0"},
			{"import f \"fmt\"\nf.Sprint(1)", "result:1"},
			{"type f struct{ a int }\nf{2}", "result:{a:2}"},
			{"strings.ToUpper(\"a\")", "result:A"},
			{"strings := []string{\"x\"}\nlen(strings)", "result:1"},
			{"import \"strings\"\nstrings.ToUpper(\"b\")", "result:B"},
			{"import \"os\"\nos := 1", "error:os already declared"},
			{"os.Getpid() > 0", "result:true"},
		},
		"mixed": {
			{"show(total)\ntotal := 2\nfunc show(n int) { fmt.Println(n + limit) }\nconst limit = 5\ntotal", "stdout:5\n|result:2"},
			{"import str \"strings\"\nstr.ToUpper(\"a\")", "result:A"},
			{"str.Repeat(\"b\", 2)", "result:bb"},
			{"import . \"strings\"\nToLower(\"C\")", "result:c"},
			{"// only a comment", ""},
			{"", ""},
			{"func main() { fmt.Println(\"main\") }", "stdout:main\n"},
			{"package main\n\nfunc main() { fmt.Println(\"again\") }", "stdout:again\n"},
		},
		"results": {
			{"strconv.Atoi(\"12\")", "result:12, <nil>"},
			{"errors.New(\"e\")", "result:e"},
			{"[]int{1, 2}", "result:[1 2]"},
			{"x := 3;", ""},
			{"x + 1;", ""},
			{"type deg float64\nfunc (d deg) String() string { return fmt.Sprintf(\"%.1f°\", float64(d)) }\ndeg(3)", "result:3.0°"},
			{"make([]int, 500)[:3]", "result:[0 0 0]"},
			{"len(fmt.Sprint(make([]int, 500)))", "result:1001"},
			{"map[string]int{\"b\": 1, \"a\": 2}", "result:map[a:2 b:1]"},
			{"var e error\ne", "result:<nil>"},
			{"func nothing() {}\nnothing()", ""},
			{"5 > 3", "result:true"},
		},
		"generics": {
			{"type num interface{ ~int | ~float64 }\nfunc sum[T num](xs ...T) (s T) { for _, x := range xs { s += x }; return }\nsum(1, 2, 3)", "result:6"},
			{"sum(1.5, 2)", "result:3.5"},
			{"type stack[T any] struct{ xs []T }\nfunc (s *stack[T]) push(x T) { s.xs = append(s.xs, x) }\nfunc (s *stack[T]) pop() (T, bool) {\n\tvar zero T\n\tif len(s.xs) == 0 { return zero, false }\n\tx := s.xs[len(s.xs)-1]\n\ts.xs = s.xs[:len(s.xs)-1]\n\treturn x, true\n}", ""},
			{"s := &stack[string]{}\ns.push(\"a\")\ns.push(\"b\")\ns.pop()", "result:b, true"},
			{"xs := []int{3, 1, 2}\nslices.Sort(xs)\nxs", "result:[1 2 3]"},
			{"slices.Sorted(maps.Keys(map[string]int{\"z\": 1, \"y\": 2}))", "result:[y z]"},
			{"slices.IndexFunc(xs, func(x int) bool { return x == 3 })", "result:2"},
			{"sum(\"a\")", "error:string does not satisfy num"},
		},
		"range": {
			{"for i := range 3 { fmt.Print(i) }", "stdout:012"},
			{"func count(n int) iter.Seq[int] {\n\treturn func(yield func(int) bool) {\n\t\tfor i := range n {\n\t\t\tif !yield(i) { return }\n\t\t}\n\t}\n}", ""},
			{"for i := range count(10) {\n\tif i == 1 { continue }\n\tif i == 4 { break }\n\tfmt.Print(i)\n}", "stdout:023"},
			{"func first(n int) int {\n\tfor i := range count(10) {\n\t\tfor range count(3) {\n\t\t\tif i == n { return i * 100 }\n\t\t}\n\t}\n\treturn -1\n}\nfirst(7)", "result:700"},
			{"outer:\nfor i := range count(3) {\n\tfor j := range count(3) {\n\t\tif j == 1 { continue outer }\n\t\tif i == 2 { break outer }\n\t\tfmt.Print(i, j, \" \")\n\t}\n}", "stdout:0 0 1 0 "},
			{"for i, w := range slices.Backward([]string{\"a\", \"b\"}) { fmt.Print(i, w) }", "stdout:1b0a"},
			{"var fs []func() int\nfor i := 0; i < 3; i++ { fs = append(fs, func() int { return i }) }\nfs[0]() + fs[2]()", "result:2"},
		},
		"loops": {
			{"func letters(p []byte) (n int) { for _, c := range p { if c >= 'a' && c <= 'z' { n++ } }; return }\nletters([]byte(\"aBc\"))", "result:2"},
			{"type small uint8\nfunc in(s small, d time.Duration) bool { return s >= 1 && s <= 200 && d > time.Millisecond && d < 3*time.Second }\nin(3, time.Second)", "result:true"},
			{"func all(cs []chan int) (n int) { for _, c := range cs { for v := range c { n += v } }; return }\nc := make(chan int, 1)\nc <- 4\nclose(c)\nall([]chan int{c, c})", "result:4"},
			{"var k, v int\nfor k, v = range []int{1, 3, 5} { if v == 3 { break } }\nk + v", "result:4"},
			{"func find(g [][]int, want int) (r, c int) {\n\tfor r = range g {\n\t\tfor c = range g[r] {\n\t\t\tif g[r][c] == want { goto found }\n\t\t}\n\t}\n\treturn -1, -1\nfound:\n\treturn r, c\n}\nfind([][]int{{1, 2}, {3, 4}}, 4)", "result:1, 1"},
			{"a := []int{0, 0}\nfor a[0] = range 3 { }\nfor a[1] = range []string{\"x\", \"y\"} { }\na", "result:[2 1]"},
			{"for _, k = range a { }\nk", "result:1"},
			{"for range a { k++ }\nk", "result:3"},
			{"for i, r := range \"hé\\xff!\" { fmt.Print(i, \":\", r, \" \") }", "stdout:0:104 1:233 3:65533 4:33 "},
			{"for i := range \"éa\" { fmt.Print(i, \" \") }", "stdout:0 2 "},
			{"s := \"ab\"\nfor i, r := range s { s = \"\"; fmt.Print(i, string(r)) }", "stdout:0a1b"},
			{"type text string\nn := 0\nfor range text(strings.Repeat(\"x\", 300000)) { n++ }\nn", "result:300000"},
			{"for i := range \"abc\" { fs := func() int { return i }; fmt.Print(fs()) }", "stdout:012"},
		},
		"type switches": {
			{"type E struct{ C int }\nfunc (e *E) Error() string { return \"E\" }\ntype shape interface{ area() int }\ntype sq struct{ n int }\nfunc (s sq) area() int { return s.n }\nfunc fail(n int) error { if n == 0 { return nil }; return &E{n} }", ""},
			{"switch e := fail(3).(type) { case nil: fmt.Print(\"nil\"); case *E: fmt.Print(e.C) }", "stdout:3"},
			{"switch fail(3).(type) { case *E: fmt.Print(\"E\"); default: fmt.Print(\"no\") }", "stdout:E"},
			{"switch fail(0).(type) { case *E: fmt.Print(\"E\"); case nil: fmt.Print(\"nil\") }", "stdout:nil"},
			{"for _, v := range []any{1, \"s\", 2.5, nil, []int{1}, sq{3}, time.Second, errors.New(\"x\"), func() {}, true} {\n\tswitch x := v.(type) {\n\tcase nil:\n\t\tfmt.Print(\"nil \")\n\tcase int, float64:\n\t\tfmt.Print(\"num \", x, \" \")\n\tcase string:\n\t\tfmt.Print(\"str \", len(x), \" \")\n\tcase time.Duration:\n\t\tfmt.Print(\"dur \", x, \" \")\n\tcase sq:\n\t\tfmt.Print(\"sq \", x.n, \" \")\n\tcase fmt.Stringer, error:\n\t\tfmt.Print(\"error \", x, \" \")\n\tcase []int:\n\t\tfmt.Print(\"slice \", len(x), \" \")\n\tcase func():\n\t\tfmt.Print(\"func \")\n\tdefault:\n\t\tfmt.Print(\"other \")\n\t}\n}", "stdout:num 1 str 1 num 2.5 nil slice 1 sq 3 dur 1s error x func other "},
			{"var s shape = sq{2}\nswitch v := s.(type) { case sq: fmt.Print(v.n, v.area()) }", "stdout:2 2"},
			{"func kind(v any) string {\nouter:\n\tfor {\n\t\tswitch x := v.(type) {\n\t\tcase int:\n\t\t\tif x > 3 { break outer }\n\t\t\tv = x + 1\n\t\t\tcontinue\n\t\tcase string:\n\t\t\tbreak\n\t\tdefault:\n\t\t\treturn \"other\"\n\t\t}\n\t\treturn \"string\"\n\t}\n\treturn \"big\"\n}\nfmt.Print(kind(1), kind(\"a\"), kind(2.0))", "stdout:bigstringother"},
			{"named:\nswitch x := any(1).(type) {\ncase int:\n\tfor { if x == 1 { break named } }\n}", ""},
			{"func is[T any](v any) bool { switch v.(type) { case T: return true }; return false }\nfmt.Print(is[int](1), is[string](1))", "stdout:true false"},
			{"for _, v := range []any{1, \"s\", nil} { n, ok := v.(int); s, _ := v.(string); fmt.Print(n, ok, s, \" \") }", "stdout:1 true 0 falses 0 false "},
			{"var a any = 5\na, ok := a.(string)\na, ok", "error:expected 1 expression"},
			{"func again(v any) (any, bool) { var ok bool; v, ok = v.(int); return v, ok }\nagain(7)", "result:7, true"},
			{"var none any\n_, ok := none.(fmt.Stringer)\nok", "result:false"},
		},
		"corners": {
			{"func drain(c, quit chan int) (n int) {\nloop:\n\tfor {\n\t\tselect {\n\t\tcase v := <-c:\n\t\t\tn += v\n\t\t\tif v == 2 { close(quit); c = nil }\n\t\tcase <-quit:\n\t\t\tbreak loop\n\t\t}\n\t}\n\treturn\n}\nc := make(chan int, 2)\nc <- 1\nc <- 2\ndrain(c, make(chan int))", "result:3"},
			{"func take(c <-chan int) int { return <-c }\nc <- 5\ntake(c)", "result:5"},
			{"type cnt struct{ n *int }\nfunc (c cnt) add(int, string) int { *c.n++; return *c.n }\nk := 0\ncnt{&k}.add(3, \"x\")", "result:1"},
			{"func late() {\n\tx := 1\n\tdefer fmt.Println(\"arg\", x)\n\tx = 2\n}\nlate()", "stdout:arg 1\n"},
			{"type v struct{ a int }\nfunc (x v) get() int { return x.a }\ny := v{1}\nget := y.get\ny.a = 2\nget() + y.get()", "result:3"},
			{"var i any = y\ny.a = 9\ni.(v).a", "result:2"},
			{"json.Marshal(struct { A int; b int }{1, 2})", "result:[123 34 65 34 58 49 125], <nil>"},
			{"min(3, 1, 2) + max(k, 7)", "result:8"},
		},
		"nil": {
			{"var p *int\n*p", "error:invalid memory address or nil pointer dereference"},
			{"pp := &p\n**pp", "error:invalid memory address or nil pointer dereference"},
			{"var f func(int) int\nf(3)", "error:invalid memory address or nil pointer dereference"},
			{"var e error\ne.Error()", "error:invalid memory address or nil pointer dereference"},
			{"func() (ok bool) { defer func() { _, ok = recover().(error) }(); fmt.Println(*p); return }()", "result:true"},
			{"[3]int([]int{1, 2}[:])", "error:cannot convert slice with length 2 to array or pointer to array with length 3"},
		},
		"errors keep what ran": {
			{"a := 1\nb := []int{}\nfmt.Println(\"ran\")\nb[a] = 1\nc := 2", "error:index out of range [1] with length 0"},
			{"a", "result:1"},
			{"var m map[string]int\nm[\"x\"] = 1", "error:assignment to entry in nil map"},
			{"type E struct{ code int }\nfunc (e E) Error() string { return fmt.Sprint(\"code \", e.code) }\npanic(E{7})", "error:code 7"},
			{"func() (err error) {\n\tdefer func() {\n\t\tif e, ok := recover().(error); ok { err = e }\n\t}()\n\tvar p *E\n\t_ = p.code\n\treturn nil\n}()", "result:runtime error: invalid memory address or nil pointer dereference"},
			{"func() any { var r any; func() { defer func() { r = recover() }(); panic(\"text\") }(); return r }()", "result:text"},
			{"var v any = 3\nv.(string)", "error:interface conversion"},
			{"func unused() {\n\tz := 1\n}", "error:declared and not used: z"},
			{"1 << 100", "error:as int value (overflows)"},
			{"import \"no/such\"", "error:no/such"},
			{"nope.Nope()", "error:undefined: nope"},
			{"1 + 1", "result:2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			for i, c := range s {
				r := newRecord()
				e := h.Execute(t.Context(), kernel.Cell{Code: c.code, ExecutionCount: i + 1}, r)
				if want, ok := strings.CutPrefix(c.want, "error:"); ok {
					if e == nil || !strings.Contains(e.Value, want) {
						t.Errorf("%s\nerror %v, want %q", c.code, e, want)
					}
					if e != nil && strings.Contains(strings.Join(e.Traceback, "\n"), mark) {
						t.Errorf("%s\ntraceback shows made names: %q", c.code, e.Traceback)
					}
					continue
				}
				if e != nil || r.text() != c.want {
					t.Errorf("%s\nerror %v, got %q, want %q", c.code, e, r.text(), c.want)
				}
			}
		})
	}
}
