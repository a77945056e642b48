package cell

import (
	"context"
	"os"
	"os/exec"
)

// command is exec.Command for cells: an interrupt of the cell that makes the
// command ends the process and what that has started.
func (c *child) command(name string, arg ...string) *exec.Cmd {
	return endable(exec.CommandContext(c.current().ctx, name, arg...))
}

// commandContext is exec.CommandContext, likewise.
func (c *child) commandContext(ctx context.Context, name string, arg ...string) *exec.Cmd {
	if ctx == nil {
		return exec.CommandContext(ctx, name, arg...) // panics
	}
	both, cancel := context.WithCancel(ctx)
	context.AfterFunc(c.current().ctx, cancel)
	return endable(exec.CommandContext(both, name, arg...))
}

func endable(cmd *exec.Cmd) *exec.Cmd {
	cmd.Cancel = func() error {
		for _, pid := range descendants(cmd.Process.Pid) {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
				p.Release()
			}
		}
		return cmd.Process.Kill()
	}
	return cmd
}

// below gives the processes under pid, given each process's parent.
func below(pid int, parents map[int]int) []int {
	var found []int
	for p := range parents {
		for up, n := parents[p], 0; up > 1 && n < len(parents); up, n = parents[up], n+1 {
			if up == pid {
				found = append(found, p)
				break
			}
		}
	}
	return found
}
