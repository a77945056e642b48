//go:build unix

package cell

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"deltafin/kernel"
)

// A child that doesn't read holds up neither questions nor the interrupt of a cell that
// is too large for the pipe, and a question is no reason to end it.
func TestStoppedChild(t *testing.T) {
	h := newHost(t, nil)
	mustRun(t, h, "kept := 7")
	signal := func(s unix.Signal) {
		if err := unix.Kill(h.child.cmd.Process.Pid, s); err != nil {
			t.Fatal(err)
		}
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	signal(unix.SIGSTOP)
	h.Complete(over, "fmt.", 4)
	h.Inspect(over, strings.Repeat(" ", 1<<20)+"kept", 1<<20, 0)
	signal(unix.SIGCONT)
	expect(t, h, "kept", "result:7")

	signal(unix.SIGSTOP)
	e := h.Execute(over, kernel.Cell{Code: "//" + strings.Repeat(" ", 1<<20)}, newRecord())
	if e == nil || e.Name != "interrupted" {
		t.Errorf("want interrupted, got %+v", e)
	}
	expect(t, h, "1", "result:1")
}
