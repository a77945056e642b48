package cell

import "golang.org/x/sys/unix"

// descendants are the processes that pid started, and those that they started.
func descendants(pid int) []int {
	parents := map[int]int{}
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	for _, p := range all {
		parents[int(p.Proc.P_pid)] = int(p.Eproc.Ppid)
	}
	return below(pid, parents)
}
