package cell

import (
	"os"
	"strconv"
	"strings"
)

// descendants are the processes that pid started, and those that they started.
func descendants(pid int) []int {
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// pid (name) state ppid …; the name may hold anything.
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(f) > 1 {
			parents[p], _ = strconv.Atoi(f[1])
		}
	}
	return below(pid, parents)
}
