//go:build unix

package cell

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"deltafin/kernel"
	"deltafin/kernel/display"
)

// Keep keeps what functions show, in the place of the cell.
type Keep struct {
	session *Session
	mu      sync.Mutex
	text    strings.Builder
}

// Run runs f with its output kept.
func (k *Keep) Run(f func()) { k.session.Capture(kept{k.session.Cell(), k}, f) }

// Text is what was kept.
func (k *Keep) Text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// kept is a cell's output of which a Keep takes a part.
type kept struct {
	kernel.Output
	k *Keep
}

func (o kept) Stream(name, text string) {
	o.k.mu.Lock()
	defer o.k.mu.Unlock()
	o.k.text.WriteString(text)
}

func (o kept) Display(b display.Bundle, id string) { o.Stream("", fmt.Sprint(b.Data["text/plain"])) }

// beside runs f on a goroutine of no cell, and waits for its end.
func beside(f func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		pprof.SetGoroutineLabels(context.Background())
		f()
	})
	wg.Wait()
}

// What a function prints while it is captured, and what its goroutines print later, goes
// to its place, and nothing else does.
func TestCapture(t *testing.T) {
	h := newHost(t, newLab())
	expect(t, h, "k, l := Keep(), Keep()\ngoOn, end := make(chan bool), make(chan bool)\n"+
		"fmt.Print(1)\nk.Run(func() {\n\tfmt.Print(2)\n\tl.Run(func() { Say(\"three\") })\n\tfmt.Print(4)\n\tgo func() { <-goOn; fmt.Print(5); end <- true }()\n})\nfmt.Print(6)", "stdout:16")
	expect(t, h, "goOn <- true; <-end\nk.Run(func() { println(7) })\nfmt.Print(k.Text(), l.Text())", "stdout:2457\nthree ")
	r, e := run(h, "k.Run(func() { fmt.Print(8); panic(\"here\") })")
	if e == nil || !strings.Contains(e.Value, "here") || r.text() != "" {
		t.Errorf("%v, %q", e, r.text())
	}
	expect(t, h, "defer fmt.Print(9)\nfunc() { defer func() { recover() }(); k.Run(func() { panic(1) }) }()\nfmt.Print(k.Text())", "stdout:2457\n89")
	if _, e := run(h, "k.Run(func() { os.Exit(0) })\nfmt.Print(10)"); e != nil {
		t.Errorf("os.Exit within: %v", e)
	}
}

// As many captures as one likes leave one mark.
func TestCaptureOften(t *testing.T) {
	c := &child{}
	c.latest = c.newCell(1, false)
	k := &Keep{session: &Session{child: c}}
	for range 100 {
		k.Run(func() {
			k.Run(func() {})
			if _, ok := c.shows().(kept); !ok {
				t.Error("after a capture within, things go to the cell")
			}
		})
	}
	if c.shows() != kernel.Output(c.latest) {
		t.Error("after the captures, things don't go to the cell")
	}
	n := 0
	c.captures.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d marks, want 1", n)
	}
}

// A guarded function belongs to the cell that made it: its output, its panics.
func TestGuard(t *testing.T) {
	h := newHost(t, newLab())
	r := mustRun(t, h, "f := func() { fmt.Print(\"mine \"); panic(\"late\") }\nstart := make(chan bool)\ngo func() { <-start; Beside(f); fmt.Print(\"after\") }();")
	mustRun(t, h, "start <- true")
	r.waitFor(t, "after")
	if s := r.text(); !strings.HasPrefix(s, "stdout:mine |stderr:") || !strings.Contains(s, "late") {
		t.Errorf("%q", s)
	}
	expect(t, h, "1", "result:1")
}

// Comm messages take no ended cell's place: its goroutines' output still reaches it.
func TestManyComms(t *testing.T) {
	h := newHost(t, newLab())
	r := mustRun(t, h, "start := make(chan bool)\ngo func() { <-start; fmt.Print(\"late\") }();")
	echo := newRecord()
	for range keptCells + 10 {
		h.Comm(t.Context(), kernel.CommMessage{Type: "comm_msg", ID: "w"}, echo)
	}
	if n := len(echo.comms); n != keptCells+10 {
		t.Errorf("%d echoes when Comm had returned, want %d", n, keptCells+10)
	}
	mustRun(t, h, "start <- true")
	r.waitFor(t, "late")
}
