//go:build unix

package cell

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func rawWrite(text string) { unix.Write(1, []byte(text)) }

func alive(pid int) bool { return unix.Kill(pid, 0) == nil }

// pause stops a process so that it answers nothing.
func pause(pid int) {
	unix.Kill(pid, unix.SIGSTOP)
	for !strings.HasPrefix(processState(pid), "T") {
		runtime.Gosched() // its threads stop one by one
	}
}

// processState is a process's as ps has it, such as "S" or "Z+"; "" without one.
func processState(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func kill(pid int) { unix.Kill(pid, unix.SIGKILL) }

// running says whether a process runs: one that has ended and that nobody has
// waited for does not.
func running(pid int) bool {
	if !alive(pid) {
		return false
	}
	s := processState(pid)
	return s != "" && !strings.HasPrefix(s, "Z")
}
