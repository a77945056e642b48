//go:build unix

package cell

import (
	"strings"
	"testing"
)

// TestOrdinary: cells print what compiled Go prints.
func TestOrdinary(t *testing.T) {
	for name, c := range map[string]struct{ code, want string }{
		"functions as values": {`type fn func(int) int
type box struct { f fn; g func(int) int }
func twice(n int) int { return n * 2 }
func same[T any](v T) T { return v }
func make1() fn { return twice }
func call(f fn, n int) int { return f(n) }
b := box{twice, func(n int) int { return n + 1 }}
m, l := map[string]fn{"a": twice}, []fn{twice, same[int]}
var v fn = twice
c := make(chan fn, 1)
c <- twice
fmt.Print(b.f(1), b.g(1), m["a"](3), l[0](4), l[1](5), v(6), make1()(7), call(twice, 8), (<-c)(9))`, "2 2 6 8 5 12 14 16 18"},
		"switch over values": {`func say(s string, n int) int { fmt.Print(s, " "); return n }
switch say("tag", 2) { case say("one", 1), say("two", 2): fmt.Print("hit "); case say("three", 3): }
var a any = 3
switch a { case "3": fmt.Print("string"); case 3.0: fmt.Print("float"); case 3: fmt.Print("int ") }
switch (struct{ x, y int }{1, 2}) { case struct{ x, y int }{1, 2}: fmt.Print("struct ") }
switch e := error(nil); e { case io.EOF: fmt.Print("EOF"); case nil: fmt.Print("nil") }`, "tag one two hit int struct nil"},
		"the default clause anywhere": {`func size(n int) string { switch { default: return "none"; case n > 9: return "big"; case n > 0: return "some" } }
func steps(n int) (s string) {
	switch n { case 1: s += "1"; fallthrough; default: s += "d"; fallthrough; case 2: s += "2"; case 3: }
	return
}
fmt.Print(size(10), size(1), size(0), steps(1), steps(2), steps(3), steps(4))`, "bigsomenone1d22d2"},
		"break in select": {`c := make(chan int, 1)
for i := range 3 { select { case c <- i: continue; default: break }; fmt.Print(i) }`, "12"},
		"channels of select": {`type ends struct { in <-chan int; out chan<- int }
c := make(chan int, 1)
e := ends{c, c}
var arr [2]int
m := map[string]int{}
select { case e.out <- 3: }
select { case v, ok := <-e.in: fmt.Print(v, ok, " ") }
select { case <-e.in: default: fmt.Print("none ") }
select { case e.out <- 4: }
select { case arr[1] = <-e.in: fmt.Print(arr, " ") }
select { case e.out <- 5: }
select { case m["a"] = <-e.in: }
select { case e.out <- 6: }
select { case _ = <-e.in: fmt.Print(m) }`, "3 true none [0 4] map[a:5]"},
		"received values": {`c := make(chan bool)
go func() { c <- true }()
fmt.Print(<-c && true, " ")
d := make(chan int, 2)
d <- 1
d <- 2
var x int
var s struct{ n int }
p := &x
x = <-d
s.n = <-d
fmt.Print(*p, s)`, "true 1 {2}"},
		"results at once": {`func swap() (a, b int) { a, b = 1, 2; return b, a }
func both() (a, b int) { a, b = 5, 3; return a + b, a - b }
func ten(n int) int { return n * 10 }
func calls() (a, b int) { a, b = 1, 2; return ten(b), ten(a) }
fmt.Println(swap())
fmt.Println(both())
fmt.Println(calls())`, "2 1\n8 2\n20 10"},
		"operations for interfaces": {`type thing interface{}
func sum(n int) thing { return n + 1 }
func neg(n int) (thing, error) { return -n, nil }
n := 2
var a thing = n + 5
var e any
e = -n
var err error
n, err = 3, nil
x, _ := neg(n)
fmt.Print(a, e, sum(n), x, " ", err)
e = n > 2
fmt.Print(" ", e)`, "7 -2 4 -3 <nil> true"},
		"shifts": {`s, by := uint(70), -1
fmt.Print(1<<s == 0, int32(1)<<s, -1>>s, " ")
func() { defer func() { fmt.Print(recover()) }(); _ = 1 << by }()`, "true 0 -1 runtime error: negative shift amount"},
		"no variadic arguments": {`func count(a ...any) (int, bool) { return len(a), a == nil }
f := func(a ...int) bool { return a == nil }
fmt.Println(count())
fmt.Println(count(nil...))
func() { defer func(p string, a ...int) { fmt.Print(p, a) }("x", []int{1, 2}...) }()
fmt.Print(f(), f([]int{}...))`, "0 true\n0 true\nx[1 2]true false"},
		"grown slices": {`s := []int{0, 42, -10, 8}
g := slices.Grow(s, 2)
fmt.Print(len(g), cap(g), cap(append(s, 1)))`, "4 8 8"},
		"append": {`var tree []any
tree = append(tree, []any{1})
tree = append(tree, []any{2}...)
type nest []nest
var n nest
n = append(n, n, nest{})
b := append(make([]byte, 0, 4), "xy"...)
b = append(b[:1], '-', b[1])
fmt.Print(tree, n, string(b))`, "[[1] 2] [[] []]x-y"},
		"values for nothing": {`_ = make(map[string]int)
_ = []int{1}
var _ fmt.Stringer = time.Second
func f() { _ = 5; _ = "x"; _, _ = strconv.Atoi("1"); _ = func() int { fmt.Print("called"); return 1 }() }
f()
var s []int
for i, _ := range []string{"a", "b"} { s = append(s, i) }
for _, _ = range "abc" { s = append(s, 9) }
for i, _ := range &[2]bool{} { s = append(s, i) }
for i, _ := range slices.All(s[:1]) { fmt.Print(i) }
fmt.Print(s)`, "called0[0 1 9 9 9 0 1]"},
		"several values at once": {`m := map[string]int{}
var err error
var st struct{ v any; f float64 }
func two() (int, float64) { return 4, 2.5 }
m["a"], err = strconv.Atoi("5")
st.v, st.f = two()
var e any
e, ok := any(m["none"]), false
e, ok = m["none"]
c := make(chan int, 1)
c <- 9
m["c"], ok = <-c
i := 0
k := map[int]int{}
i, k[i] = 1, 2
fmt.Print(m, err, st, e, ok, k)`, "map[a:5 c:9] <nil> {4 2.5} 0 true map[0:2]"},
		"a variable for each receive": {`c := make(chan int, 3)
var fs []func() int
for i := range 3 { c <- i; select { case x := <-c: fs = append(fs, func() int { return x }) } }
for _, f := range fs { fmt.Print(f()) }`, "012"},
		"assertions and comparisons": {`var n error
_, ok := n.(any)
x := any(io.EOF).(any).(error)
func kind[T any](v any) string { switch v.(type) { case T: return "T"; case int: return "int" }; return "other" }
c := make(chan int)
var r <-chan int = c
type ps *struct{ f int }
fmt.Print(ok, x, kind[any](1), kind[string](1), c == r, []ps{{f: 1}}[0].f)`, "false EOFTinttrue 1"},
		"a program after comments": {`// Program counts.

/* It has two variables. */
package main

import "fmt"

var x = y + 1
var y = 3

func main() { fmt.Print(x, y) }`, "4 3"},
		"slices as variadic arguments": {`func count(a ...any) int { return len(a) }
type nest []nest
func nests(a ...nest) int { return len(a) }
fmt.Print(count([]any{1, 2}), count([]any{1, 2}...), count(nil, nil), nests(nest{}), nests(nil, nil), nests([]nest{nil, nil, nil}...))`, "1 2 2 1 2 3"},
		"functions that go on after the loop": {`var keep func(int) bool
func on(y func(int) bool) { keep = y; y(1); y(2) }
func try(f func()) { defer func() { fmt.Println(recover()) }(); f() }
try(func() { for range on { break } })
try(func() { for range func(y func(int) bool) { keep = y } { }; keep(1) })
for i := range slices.Values([]int{1, 2, 3}) { if i == 2 { break }; fmt.Print(i) }`,
			"runtime error: range function continued iteration after function for loop body returned false\nruntime error: range function continued iteration after whole loop exit\n1"},
		"make": {`c := make(chan<- int, 1)
c <- 1
n := -1
func() { defer func() { fmt.Print(recover()) }(); _ = make([]int, 0, n) }()
var i int
s := []int{0, 0}
for i, s[i] = range []int{7, 8} { }
fmt.Print(len(c), i, s)`, "runtime error: makeslice: cap out of range1 1 [8 0]"},
		"labels": {`func seq(y func(int) bool) { for i := 0; y(i); i++ { } }
func f() string {
	for i := range seq {
	inner:
		for j := range 5 { if j == 1 { continue inner }; if j > 2 { break inner }; if i == 2 { goto out }; fmt.Print(i, j, ";") }
	}
out:
	return "out"
}
func g(n int) (s string) {
	switch n { case 1: loop: for { s += "a"; break loop }; fallthrough; case 2: s += "b" }
	return
}
outer := 3
outer:
for i := range 3 { for range 2 { if i == 1 { continue outer }; outer++ } }
fmt.Print(f(), g(1), g(2), outer)`, "0 0;0 2;1 0;1 2;outabb7"},
		"nil in interfaces": {`type namer interface{ Name() string }
m := map[namer]int{}
m[nil] = 3
func try(f func()) { defer func() { fmt.Print(recover()) }(); f() }
fmt.Print(m[nil])
try(func() { var n namer; f := n.Name; fmt.Print("bound"); f() })`, "3runtime error: invalid memory address or nil pointer dereference"},
		"types in each other": {`type outer struct { list []inner; byID map[uint64]inner }
type inner struct{ name string; more *outer }
o := outer{byID: map[uint64]inner{7: {name: "seven"}}}
type grid [2][2]int
h := struct{ p *grid }{&grid{}}
h.p[0][1] = 8
fmt.Print(o.byID[7].name, *h.p, *new(42))`, "seven[[0 8] [0 0]] 42"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, nil)
			if got := strings.TrimPrefix(mustRun(t, h, c.code).text(), "stdout:"); strings.TrimSpace(got) != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
