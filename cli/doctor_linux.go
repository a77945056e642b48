package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// availableMemory is how many bytes programs can still get without swapping, or what
// the control group leaves of them; 0 when unknown.
func availableMemory() int64 {
	free := int64(0)
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			free = kib << 10
		}
	}
	for _, group := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, used := number(group[0]), number(group[1])
		if left := limit - used; limit > 0 && used > 0 && left > 0 {
			free = min(free, left)
		}
	}
	return free
}

// number is a file's content, 0 when it is none.
func number(file string) int64 {
	b, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}
