//go:build unix

package kernel_test

import (
	"os/exec"
	"testing"
	"time"

	"deltafin/kernel"
)

func TestParentDies(t *testing.T) {
	parent := exec.Command("sleep", "1000")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	k := start(t, "memory", kernel.Options{ParentPID: parent.Process.Pid})
	select {
	case err := <-k.served:
		t.Fatalf("Serve returned while the parent lived: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	parent.Process.Kill()
	parent.Wait()
	select {
	case err := <-k.served:
		k.served <- err
	case <-time.After(patience):
		t.Fatal("Serve does not return")
	}
}
