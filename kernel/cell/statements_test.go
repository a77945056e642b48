//go:build unix

package cell

import (
	"strings"
	"testing"
)

func TestStatements(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"declared functions are values",
			`type op func(int) int
type named struct { f op; n int }
func twice(x int) int { return 2 * x }
func same[T any](x T) T { return x }
func give(f op) op { return f }
all := []named{{twice, 1}, {f: twice}, {f: same[int]}}
var arr [2]op
arr[1] = twice
fmt.Println(all[0].f(4), all[1].f(5), all[2].f(6), arr[1](7), give(twice)(8), map[string]op{"a": twice}["a"](9), (twice)(10))`, "8 10 6 14 16 18 20\n"},
		{"operands of a return keep out of each other's way",
			`func id(x int) int { return x }
func swap() (a, b int) { a, b = 1, 2; return b + 0, a + 0 }
func calls() (a, b int) { a, b = 1, 2; return id(b), id(a) }
func lens(s []int) (int, int) { return len(s), cap(s) }
func text(s []byte) (t []byte, n int) { return s, len(s) }
t, n := text([]byte("abc"))
fmt.Println(swap()); fmt.Println(calls()); fmt.Println(lens(make([]int, 2, 3))); fmt.Println(len(t), n)`, "2 1\n2 1\n2 3\n3 3\n"},
		{"a compiled call among the operands of a return",
			`func one() (int, error) { return 0, errors.New("one") }
func two() (n int, s string, err error) { n = 4; return strings.Index("abc", "c") + n, strconv.Itoa(n), fmt.Errorf("two %d", n) }
func both(s string) (int, error) { return strconv.Atoi(s) }
func fn() (int, func() time.Time) { return 1, sync.OnceValue(func() time.Time { return time.Unix(0, 0) }) }
_, f := fn()
fmt.Println(one()); fmt.Println(two()); fmt.Println(both("7")); fmt.Println(f().Unix())`, "0 one\n6 4 two 4\n7 <nil>\n0\n"},
		{"new takes a value",
			`type opts struct { n *int64; s *string; f func(int) int; e *error }
func at[T any](x T) *T { return new(x) }
func pair() (*uint8, *opts) { return new(uint8(7)), new(opts{n: new(int64(2))}) }
k := 5
p := new(k)
*p++
o := opts{n: new(int64(k)), s: new("s"), e: new(error(io.EOF))}
b, q := pair()
fmt.Println(k, *p, *o.n, *o.s, *o.e, *at("t"), *at(o).n, *b, *q.n, *new(strings.ToUpper("u")), *new(1 << 3), (*new(func() int { return 9 }))(), *new([]int{1}), *new(opts), *new(int))`, "5 6 5 s EOF t 5 7 2 U 8 9 [1] {<nil> <nil> <nil> <nil>} 0\n"},
		{"init runs after the variables and before the statements that follow it",
			`func init() { tab["a"] = 1 }
var tab = map[string]int{}
fmt.Print(len(tab), " ")
seen := 3
func init() { tab["b"] = seen }
fmt.Println(tab)`, "1 map[a:1 b:3]\n"},
		{"what waits can be deferred and started",
			`type guarded struct { mu sync.RWMutex; wg sync.WaitGroup; s string }
func (g *guarded) f() { defer g.mu.RLock(); defer g.wg.Wait(); g.wg.Go(func() { g.s += "a" }) }
func (g *guarded) g() { var wg sync.WaitGroup; wg.Add(1); go func() { defer wg.Done(); g.wg.Wait() }(); go wg.Wait(); wg.Wait(); defer g.mu.Lock(); g.mu.RUnlock() }
var g guarded
g.f(); g.g(); fmt.Println(g.mu.TryLock(), g.s)`, "false a\n"},
		{"a loop without a condition begins once",
			`func f() (n int) { for low, high := 0, 9; ; { if low >= high { return n }; low += 2; n++ } }
f()`, "→ 5\n"},
		{"a literal defers what is declared after it",
			`func outer() { func() { defer later("b"); fmt.Print("a ") }() }
func later(s string) { fmt.Println(s) }
outer()`, "a b\n"},
		{"a uintptr counts",
			`func f(m uintptr) (n int) { for i := uintptr(0); i < m; i++ { n++ }; for ; m > 0; m-- { n++ }; return n }
f(3)`, "→ 6\n"},
		{"names that Go itself has are names",
			`type at struct{ n int }
func (a *at) code(p int) (r rune) { return rune(a.n + p) }
func f(a at) (string string) { if rune := a.code(1); rune != 0 { string = fmt.Sprint(rune) }; switch len := any(7).(type) { case int: string += fmt.Sprint(len) }; return }
f(at{2})`, "→ 37\n"},
		{"a variable that hides another is made of it",
			`type d struct{ n int8 }
func f(n d) (s string) { i := 1; for n := -int(n.n); i < n; i++ { s += "0" }; for i := i + 1; i < 4; i++ { s += fmt.Sprint(i) }; n, ok := any(n).(d); return fmt.Sprint(s, i, n.n, ok) }
f(d{-3})`, "→ 003 -3 true\n"},
		{"methods take structs that nothing named before",
			`type asker interface { Uses(has avail) (uses avail, err error) }
type avail struct{ a, b bool }
type way struct{}
func (*way) Uses(has avail) (uses avail, err error) { return has.all() }
func (h avail) all() (avail, error) { return avail{h.b, h.a}, nil }
var w asker = &way{}
w.Uses(avail{a: true})`, "→ {a:false b:true}, <nil>\n"},
		{"a deferred literal has its iteration's variables",
			`func f() (s string) { for i := range 3 { defer func() { s += strconv.Itoa(i) }() }; for _, x := range []string{"a", "b"} { defer func() { s += x }() }; return "r" }
f()`, "→ rba210\n"},
		{"recover in closures, functions and methods",
			`type T struct{ got any }
func (t *T) catch() { t.got = recover() }
func catch() { fmt.Print(recover(), " ") }
func f() { h := func() { fmt.Print(recover(), " ") }; defer h(); panic(1) }
func g() { defer catch(); panic(2) }
func m(t *T) { defer t.catch(); panic(3) }
func helper() { fmt.Print(recover(), " ") }
func none() (r any) { defer func() { r = recover() }(); defer func() { helper() }(); panic(4) }
t := &T{}
f(); g(); m(t)
fmt.Println(t.got, none())`, "1 2 <nil> 3 4\n"},
		{"a panic in a deferred call is the panic from then on",
			`func f() { defer func() { fmt.Println(recover()) }(); defer fmt.Print("still "); defer func() { panic(fmt.Sprint("re-", recover())) }(); panic("a") }
f()`, "still re-a\n"},
		{"runtime.Goexit runs what is deferred",
			`func f() { done := make(chan bool); go func() { defer close(done); defer fmt.Println("deferred", recover()); runtime.Goexit() }(); <-done }
f()`, "deferred <nil>\n"},
		{"a loop variable keeps what the body made of it",
			`func f() { for i := 0; i < 6; i++ { if i == 2 { i = 4 }; fmt.Print(i, " ") }
for i, j := 0, 5; i < j; i, j = i+1, j-1 { if i == 1 { i++; continue }; fmt.Print(i, j, " ") }
var fs []func(); for i := 0; i < 4; i++ { fs = append(fs, func() { fmt.Print(i, ",") }); i++ }; for _, g := range fs { g() }
for i := range 3 { i := i * 10; i++; fmt.Print(i, ";") }
for p := new(int); *p < 3; *p++ { }
for i, s := 0, "a"; i < 3; i, s = i+1, s+"b" { defer func() { fmt.Println(i, s) }() }
fmt.Println() }
f()`, "0 1 4 5 0 5 1,3,1;11;21;\n2 abb\n1 ab\n0 a\n"},
		{"loops without a body",
			`func f() { for i := 0; i < 3; i++ {}; for range 3 {}; for range []int{1} {}; for range map[int]int{1: 1} {}; for range "ab" {}
c := make(chan int, 1); c <- 1; close(c); for range c {}
for e := error(io.EOF); e != nil; e = errors.Unwrap(e) {}
fmt.Println("end") }
f()`, "end\n"},
		{"ranges over integers and arrays' pointers",
			`type N uint8
func f() { for i := range int8(2) { fmt.Printf("%T%d ", i, i) }; for i := range N(2) { fmt.Printf("%T%d ", i, i) }
var p *[3]int; for i := range p { fmt.Print(i) }
a := [2]int{5, 6}; q := &a; for i, v := range q { q[1] = 7; fmt.Print(" ", i, v) }
fmt.Println() }
f()`, "int80 int81 main.N0 main.N1 012 0 5 1 7\n"},
		{"a switch's first statement runs first",
			`func g(x int) int { return x }
func f() { switch v := 3; g(v) { case 2, 3: fmt.Print("three ") }
for _, v := range []any{"s", 1} { switch v := reflect.ValueOf(v); v.Kind() { case reflect.String: fmt.Print(v); case reflect.Int: fmt.Println(v.Int() + 1) } } }
f()`, "three s2\n"},
		{"functions in literals without keys",
			`type T struct { s string; f func(int) string }
type fs []func(int) string
func f(i int) string { return strconv.Itoa(i) }
func mk(n int) func(int) string { return func(i int) string { return strconv.Itoa(n + i) } }
g := mk(7)
ts := []T{{"f", f}, {"mk", mk(5)}, {"g", g}, {"lit", func(int) string { return "lit" }}, {"nil", nil}}
hs := []http.HandlerFunc{func(http.ResponseWriter, *http.Request) { fmt.Println("served") }}
for i, x := range (fs{f, 2: mk(1), 1: g}) { fmt.Print(x(i), " ") }
fmt.Print(ts[0].f(1), ts[1].f(2), ts[2].f(3), ts[3].f(4), ts[4].f == nil, " ")
hs[0].ServeHTTP(nil, nil)`, "0 8 3 1710littrue served\n"},
		{"several values at once",
			`type T struct{ n int }
func one() int { return 1 }
s, n := []int{1, 2}, 5
func f(c chan int) { a, b := T{1}, 2; x, y := one(), T{3}; v, w := <-c, <-c; p, q := map[string]int{"a": 1}, [2]int{3}; a, b = T{4}, one(); v, a = <-c, T{one() + 4}; fmt.Println(a, b, x, y, v, w, p, q) }
c := make(chan int, 3); c <- 7; c <- 8; c <- 9
f(c)
fmt.Println(s, n)`, "{5} 1 1 {3} 9 8 map[a:1] [3 0]\n[1 2] 5\n"},
		{"named results begin as zero",
			`type L struct{ n int }
func (l *L) next() (v int, ok bool) { if l.n++; l.n < 3 { return l.n, true }; return }
func f() { l := &L{}; n := 0; for v, ok := l.next(); ok && n < 9; v, ok = l.next() { n++; fmt.Print(v, " ") }; x := 7; x = zero(); fmt.Println(n, x) }
func zero() (x int) { return }
f()`, "1 2 2 0\n"},
		{"functions that a loop starts at once",
			`func f() (bad int) { for range 100 { var mu sync.Mutex; var wg sync.WaitGroup; total := 0; for i := range 50 { wg.Go(func() { mu.Lock(); defer mu.Unlock(); total += i }) }; wg.Wait(); if total != 1225 { bad++ } }; return }
f()`, "→ 0\n"},
		{"functions in parentheses",
			`func f() int { return (func(a, b int) int { return a * b })(3, 4) }
f()`, "→ 12\n"},
		{"nil results of function types",
			`type state func() state
func f(n *int) state { return func() state { if *n++; *n > 2 { return nil }; return f(n) } }
n := 0
for s := f(&n); s != nil; { s = s() }
n`, "→ 3\n"},
		{"bounds of slices",
			`func try(f func()) { defer func() { fmt.Println(recover()) }(); f() }
s, n := []int{1, 2}, 5
try(func() { _ = s[:n] }); try(func() { _ = s[n:] }); try(func() { _ = s[:1:n] }); try(func() { _ = "ab"[n:] }); try(func() { n = 1; _ = s[2:n] })`,
			`runtime error: slice bounds out of range [:5] with capacity 2
runtime error: slice bounds out of range [5:2]
runtime error: slice bounds out of range [::5] with capacity 2
runtime error: slice bounds out of range [5:2]
runtime error: slice bounds out of range [2:1]
`},
		{"recover in what others made", `func saver(name string) func() { return func() { if r := recover(); r != nil { fmt.Print(name, ":", r, " ") } } }
func one() { f := saver("f"); defer f(); panic("a") }
func two() { defer saver("g")(); panic("b") }
func three() { fs := map[string]func(){"h": saver("h")}; defer fs["h"](); panic("c") }
func helper() any { return recover() }
func four() { defer func() { recover() }(); defer func() { fmt.Print(helper(), " ") }(); panic("d") }
func five() { defer saver("outer")(); defer func() { defer saver("inner")(); panic("e2") }(); panic("e1") }
func six() { defer saver("none")() }
one(); two(); three(); four(); five(); six()
var wg sync.WaitGroup
for range 50 { wg.Go(func() { defer saver("")(); panic("") }) }
wg.Wait()
fmt.Println()`, "f:a g:b h:c <nil> inner:e2 outer:e1 " + strings.Repeat(": ", 50) + "\n"},
		{"nil among others", `a, b := []int{1}, []int{2}
a, b = b, nil
var e error = errors.New("x")
m := map[string]any{"k": 1}
e, m["k"] = nil, nil
fmt.Println(a, b, e, m)`, "[2] [] <nil> map[k:<nil>]\n"},
		{"variables of packages", `os.Args = []string{"a", "b"}
os.Args = append(os.Args, "c")
fmt.Println(os.Args)
http.DefaultClient = &http.Client{Timeout: 3}
fmt.Println(http.DefaultClient.Timeout)`, "[a b c]\n3ns\n"},
		{"unsafe",
			`import "unsafe"
type T struct { a int8; b int64 }
var t T
*(*int64)(unsafe.Add(unsafe.Pointer(&t), unsafe.Offsetof(t.b))) = 7
b := []byte{65, 66, 67}
func size[T any]() uintptr { var t T; return unsafe.Sizeof(t) }
fmt.Println(t.b, unsafe.String(&b[0], 2), *unsafe.StringData("a"), *unsafe.SliceData(b), unsafe.Slice(&b[0], 2), size[T](), size[string]())`, "7 AB 97 65 [65 66] 16 16\n"},
		{"generic functions of the standard library",
			`next, stop := iter.Pull(slices.Values([]int{4, 5}))
a, ok := next()
stop()
_, more := next()
x, is := reflect.TypeAssert[error](reflect.ValueOf(io.EOF))
fmt.Println(a, ok, more, x, is, reflect.TypeFor[[]int]())`, "4 true false EOF true []int\n"},
		{"loggers",
			`type S struct { *log.Logger }
s := S{log.New(os.Stdout, "p: ", 0)}
s.Println("x")
(&http.Server{ErrorLog: s.Logger}).ErrorLog.Print("y")
func f() { defer func() { fmt.Println(recover()) }(); s.Panicf("bad %d", 3) }
f()`, "p: x\np: y\np: bad 3\nbad 3\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outputs(t, c.code); got != c.want {
				t.Errorf("%s\ngot\n%swant\n%s", c.code, got, c.want)
			}
		})
	}
}
