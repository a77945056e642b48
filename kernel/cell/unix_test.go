//go:build unix

package cell

import (
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func rawWrite(text string) { unix.Write(1, []byte(text)) }

func alive(pid int) bool { return unix.Kill(pid, 0) == nil }

// pause stops a process so that it answers nothing.
func pause(pid int) { unix.Kill(pid, unix.SIGSTOP) }

func kill(pid int) { unix.Kill(pid, unix.SIGKILL) }

// running says whether a process runs: one that has ended and that nobody has
// waited for does not.
func running(pid int) bool {
	if !alive(pid) {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
