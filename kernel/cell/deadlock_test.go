//go:build unix

package cell

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"deltafin/kernel"
)

// TestDeadlock: a cell ends when nothing could wake its goroutines, with its lines, and
// the session goes on.
func TestDeadlock(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "kept := 1\nvar none chan int\nch := make(chan int)")
	for _, c := range []struct{ code, at string }{
		{"kept++\n<-ch", "→   2 | <-ch"},
		{"kept++\nch <- 1", "→   2 | ch <- 1"},
		{"kept++\nfor range ch { }", "→   2 | for range ch"},
		{"kept++\n<-none", "→   2 | <-none"},
		{"kept++\nselect {}", "→   2 | select {}"},
		{"kept++\nselect {\ncase <-ch:\ncase none <- 1:\n}", "→   2 | select {"},
		{"kept++\nv, ok := <-ch\n_, _ = v, ok", "→   2 | v, ok := <-ch"},
		{"kept++\nvar mu sync.Mutex\nmu.Lock()\nmu.Lock()", "→   4 | mu.Lock()"},
		{"kept++\nvar wg sync.WaitGroup\nwg.Add(1)\nwg.Wait()", "→   4 | wg.Wait()"},
		{"kept++\nvar both struct { sync.RWMutex }\nboth.RLock()\nboth.Lock()", "→   4 | both.Lock()"},
		{"kept++\nco := sync.NewCond(&sync.Mutex{})\nco.L.Lock()\nco.L.Lock()", "→   4 | co.L.Lock()"},
		{"kept++\na, b := make(chan int), make(chan int)\ngo func() {\n\t<-a\n\tb <- 1\n}()\n<-b", "→   4 |     <-a"},
		{"kept++\nfunc wait(c chan int) int {\n\treturn <-c\n}\nwait(ch)", "→   3 |     return <-c"},
	} {
		_, e := run(h, c.code)
		if e == nil || e.Name != "fatal error" || e.Value != "all goroutines are asleep - deadlock!" || !strings.Contains(strings.Join(e.Traceback, "\n"), c.at) {
			t.Errorf("%s: %+v", c.code, e)
		}
	}
	expect(t, h, "kept", "result:14")
	// What an earlier cell left waiting doesn't matter, and can be woken.
	expect(t, h, "got := make(chan int)\ngo func() { got <- <-ch + 1 }()\nch <- 1\n<-got", "result:2")
}

// TestNoDeadlock: what something could still wake goes on waiting.
func TestNoDeadlock(t *testing.T) {
	for name, cells := range map[string][]string{
		"own locker": {"type slow struct{ sync.Locker }\nfunc (slow) Lock() { time.Sleep(600 * time.Millisecond) }\nvar l sync.Locker = slow{}\nl.Lock()\n1"},
		"locker":     {"var held sync.Locker = &sync.RWMutex{}\nheld.Lock()\ngo func() { time.Sleep(600 * time.Millisecond); held.Unlock() }()\nheld.Lock()\n1"},
		"timer":      {"<-time.After(600 * time.Millisecond)\n1"},
		"sleep":      {"c := make(chan int)\ngo func() { time.Sleep(600 * time.Millisecond); c <- 1 }()\n<-c"},
		"busy":       {"c := make(chan int)\ngo func() { for t := time.Now(); time.Since(t) < 600*time.Millisecond; { }; c <- 1 }()\n<-c"},
		"earlier":    {"c := make(chan int)\ngo func() { time.Sleep(700 * time.Millisecond); c <- 1 }();", "<-c"},
		"context":    {"ctx, cancel := context.WithTimeout(context.Background(), 600*time.Millisecond)\ndefer cancel()\n<-ctx.Done()\n1"},
		"after func": {"c := make(chan int)\ntime.AfterFunc(600*time.Millisecond, func() { c <- 1 })\n<-c"},
		"after ctx":  {"c := make(chan int)\nctx, cancel := context.WithTimeout(context.Background(), 600*time.Millisecond)\n_ = cancel\ncontext.AfterFunc(ctx, func() { c <- 1 })\n<-c"},
		"program":    {"exec.Command(\"sleep\", \"0.6\").Run()\n1"},
		"network": {`l, _ := net.Listen("tcp", "127.0.0.1:0")
c := make(chan int)
go http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { c <- 1 }))
go func() { time.Sleep(500 * time.Millisecond); http.Get("http://" + l.Addr().String()) }()
<-c`},
		"compiled goroutine": {"var wg sync.WaitGroup\nc := make(chan int)\nwg.Go(func() { time.Sleep(600 * time.Millisecond); c <- 1 })\nv := <-c\nwg.Wait()\nv"},
		"work between":       {"c, d := make(chan int), make(chan int)\ngo func() { for v := range c { d <- v } }()\nn := 0\nfor t := time.Now(); time.Since(t) < 600*time.Millisecond; { c <- 1; n += <-d }\nmin(n, 1)"},
		"deferred":           {"var wg sync.WaitGroup\nfunc f() { defer wg.Wait(); wg.Add(1); go func() { defer wg.Done(); time.Sleep(600 * time.Millisecond) }() }\nf()\n1"},
		"cond":               {"var mu sync.Mutex\nd := sync.NewCond(&mu)\nready := false\ngo func() { time.Sleep(600 * time.Millisecond); mu.Lock(); ready = true; mu.Unlock(); d.Broadcast() }()\nmu.Lock()\nfor !ready { d.Wait() }\nmu.Unlock()\n1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			for _, c := range cells[:len(cells)-1] {
				mustRun(t, h, c)
			}
			expect(t, h, cells[len(cells)-1], "result:1")
		})
	}
}

// TestNoDeadlockBesideOthers: a callback of the front end's or a subshell's cell may wake
// a cell that waits.
func TestNoDeadlockBesideOthers(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "c := make(chan int)")
	if err := h.OpenSubshell("s"); err != nil {
		t.Fatal(err)
	}
	r := newRecord()
	done := make(chan *kernel.CellError, 1)
	go func() {
		done <- h.Execute(context.Background(), kernel.Cell{Code: "fmt.Println(\"waits\")\n<-c"}, r)
	}()
	r.waitFor(t, "waits")
	if e := h.Execute(context.Background(), kernel.Cell{Code: "time.Sleep(700 * time.Millisecond)\nc <- 5", Subshell: "s"}, newRecord()); e != nil {
		t.Fatal(e)
	}
	if e := <-done; e != nil || !strings.Contains(r.text(), "result:5") {
		t.Errorf("%v %q", e, r.text())
	}
}

// TestQuiet: a goroutine that runs, or that could, can still wake others, and one that
// waits can't.
func TestQuiet(t *testing.T) {
	var stop atomic.Bool
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) + 1 { // one of them may be runnable only
		begun := make(chan struct{})
		running.Go(func() {
			close(begun)
			for !stop.Load() {
			}
		})
		<-begun
		if quiet() {
			t.Error("quiet while a goroutine runs")
		}
	}
	stop.Store(true)
	running.Wait()
	woken := make(chan struct{})
	running.Go(func() { <-woken })
	for !quiet() { // others of the test end what they do
		runtime.Gosched()
	}
	close(woken)
	running.Wait()
}
