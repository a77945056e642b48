package cpu

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// timeLimit is how many CPUs' time the control groups of this process allow it, or 0.
func timeLimit() float64 { return timeLimitIn(os.DirFS("/")) }

// timeLimitIn is timeLimit with the files of root. Groups of both versions count, and a
// group's limit counts for those beneath it. What can't be read limits nothing.
func timeLimitIn(root fs.FS) float64 {
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	mounts, _ := fs.ReadFile(root, "proc/self/mountinfo")
	least := 0.0
	for group := range strings.Lines(string(groups)) { // id:controllers:path
		parts := strings.SplitN(strings.TrimSuffix(group, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		second := parts[0] == "0" && parts[1] == ""
		if !second && !slices.Contains(strings.Split(parts[1], ","), "cpu") {
			continue
		}
		dir, top, ok := groupDir(string(mounts), second, parts[2])
		for ok {
			if n := groupLimit(root, dir, second); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if dir == top {
				break
			}
			dir = path.Dir(dir)
		}
	}
	return least
}

// groupDir is the folder of a group, and that of the group at the top of its mount, as
// paths from the root; a group outside of what is mounted counts as that one.
func groupDir(mounts string, second bool, group string) (dir, top string, ok bool) {
	for mount := range strings.Lines(mounts) { // id parent device root point options … - type source options
		before, after, _ := strings.Cut(strings.TrimSuffix(mount, "\n"), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) < 3 {
			continue
		}
		if second && kind[0] != "cgroup2" || !second && (kind[0] != "cgroup" || !slices.Contains(strings.Split(kind[2], ","), "cpu")) {
			continue
		}
		top = strings.TrimPrefix(fields[4], "/")
		inside, under := strings.CutPrefix(path.Clean(group)+"/", strings.TrimSuffix(fields[3], "/")+"/")
		if !under {
			inside = ""
		}
		dir = path.Join(top, inside)
		return dir, top, fs.ValidPath(dir) && fs.ValidPath(top) && (dir == top || strings.HasPrefix(dir, top+"/"))
	}
	return "", "", false
}

// groupLimit is one group's own limit in CPUs, or 0.
func groupLimit(root fs.FS, dir string, second bool) float64 {
	read := func(name string) string {
		text, _ := fs.ReadFile(root, path.Join(dir, name))
		return strings.TrimSpace(string(text))
	}
	quota, period := read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")
	if second {
		quota, period, _ = strings.Cut(read("cpu.max"), " ")
	}
	q, err := strconv.ParseFloat(quota, 64) // "max" or -1: no limit
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || !(q > 0 && p > 0) {
		return 0
	}
	return q / p
}
