//go:build unix

package cell

import (
	"context"
	"fmt"
	"testing"

	"deltafin/kernel"
)

// TestCallbacks: what a callback shows is its cell's, an interrupt ends one and not the
// next, and a panic is a message of its cell's.
func TestCallbacks(t *testing.T) {
	h := newHost(t, nil)
	r := mustRun(t, h, "n := 0\nLater(func() {\n\tn++\n\tfmt.Println(\"call\", n)\n\tif n == 3 {\n\t\tpanic(\"third\")\n\t}\n\tif n == 1 {\n\t\tfor {\n\t\t}\n\t}\n})")
	call := func() { h.Comm(context.Background(), kernel.CommMessage{Type: "comm_msg", ID: "later"}, newRecord()) }
	mustRun(t, h, "1")
	call()
	r.waitFor(t, "call 1")
	h.Interrupt()
	call()
	r.waitFor(t, "call 2")
	call()
	r.waitFor(t, "third")
	expect(t, h, "n", "result:3")
	for i := range keptCallbacks + 10 { // more than are remembered
		call()
		r.waitFor(t, fmt.Sprintf("call %d\n", i+4))
	}
}
