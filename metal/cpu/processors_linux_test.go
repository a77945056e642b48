package cpu

import (
	"runtime"
	"testing"
	"testing/fstest"
)

// The time limit is that of the tightest group, of either version, however it is mounted.
func TestTimeLimit(t *testing.T) {
	const (
		mount2   = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
		mount1   = "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
		memory1  = "34 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		hybrid2  = "35 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		mounted1 = "33 31 0:29 /docker/77 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	)
	for name, c := range map[string]struct {
		group, mounts string
		files         map[string]string
		want          float64
	}{
		"no groups":         {want: 0},
		"second":            {"0::/a/b\n", mount2, map[string]string{"a/b/cpu.max": "150000 100000\n"}, 1.5},
		"second, no limit":  {"0::/a\n", mount2, map[string]string{"a/cpu.max": "max 100000\n"}, 0},
		"of the parent":     {"0::/a/b\n", mount2, map[string]string{"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "50000 100000\n"}, .5},
		"at the top":        {"0::/\n", mount2, map[string]string{"cpu.max": "200000 100000\n"}, 2},
		"first":             {"4:memory:/x\n3:cpu,cpuacct:/x\n", memory1 + mount1, map[string]string{"cpu,cpuacct/x/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}, 2.5},
		"first, no limit":   {"3:cpu,cpuacct:/\n", mount1, map[string]string{"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 0},
		"both":              {"3:cpu,cpuacct:/x\n0::/\n", hybrid2 + mount1, map[string]string{"cpu,cpuacct/x/cpu.cfs_quota_us": "100000\n", "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}, 1},
		"a part is mounted": {"3:cpu:/docker/77/in\n", mounted1, map[string]string{"cpu/in/cpu.cfs_quota_us": "100000\n", "cpu/in/cpu.cfs_period_us": "50000\n"}, 2},
		"outside":           {"3:cpu:/elsewhere\n", mounted1, map[string]string{"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "25000\n"}, 4},
		"nonsense":          {"0::/../..\n3:cpu\n\n", mount2 + "x - y\n", map[string]string{"cpu.max": "no 0\n"}, 0},
		"a period of 0":     {"0::/\n", mount2, map[string]string{"cpu.max": "1000 0\n"}, 0},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(c.group)}, "proc/self/mountinfo": {Data: []byte(c.mounts)}}
		for file, text := range c.files {
			root["sys/fs/cgroup/"+file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := timeLimitIn(root); got != c.want {
			t.Errorf("%s: %g CPUs, want %g", name, got, c.want)
		}
	}
}

func TestProcessors(t *testing.T) {
	cpus := runtime.NumCPU()
	for _, c := range []struct {
		most  int
		limit float64
		want  int
		why   bool
	}{{cpus, 0, cpus, false}, {cpus + 1, 0, cpus + 1, false}, {8, 1, 1, true}, {8, .25, 1, true}, {8, 2.9, 2, true}, {cpus, float64(cpus), cpus, false}, {cpus, float64(cpus) + .5, cpus, false}} {
		if n, why := processors(c.most, c.limit); n != c.want || (why != "") != c.why {
			t.Errorf("%d, %g CPUs: %d (%s), want %d", c.most, c.limit, n, why, c.want)
		}
	}
}
