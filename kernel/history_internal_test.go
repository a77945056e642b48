package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"
)

// openTest opens a history and collects what it reports.
func openTest(dir string) (h *history, reports *[]error) {
	reports = new([]error)
	return openHistory(dir, func(err error) { *reports = append(*reports, err) }), reports
}

func (h *history) tail(t *testing.T, n int) (inputs []string) {
	t.Helper()
	found, err := h.find(historyQuery{Access: "tail", N: &n})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		inputs = append(inputs, c.input)
	}
	return inputs
}

// Histories of one folder at once, as of kernels that start together: each gets a
// session of its own, and nothing is lost.
func TestHistoriesAtOnce(t *testing.T) {
	const kernels, cells = 16, 50
	dir := t.TempDir()
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for k := range kernels {
		wg.Go(func() {
			h, reports := openTest(dir)
			<-begin
			for i := range cells {
				h.output(h.input(i+1, fmt.Sprintf("%d.%d %s", k, i, strings.Repeat("x", 5000))), "out")
				if i%10 == 0 {
					h.find(historyQuery{Access: "tail"})
				}
			}
			h.close()
			if len(*reports) > 0 {
				t.Errorf("kernel %d: %v", k, *reports)
			}
		})
	}
	close(begin)
	wg.Wait()
	h, reports := openTest(dir)
	all, err := h.find(historyQuery{Access: "tail"})
	if err != nil || len(*reports) > 0 {
		t.Fatal(err, *reports)
	}
	sessions, seen := map[int]string{}, map[string]bool{}
	for _, c := range all {
		name, _, _ := strings.Cut(c.input, " ")
		kernel, line, _ := strings.Cut(name, ".")
		if line != fmt.Sprint(c.line-1) || c.output == nil || seen[name] || sessions[c.session] != "" && sessions[c.session] != kernel {
			t.Fatalf("session %d of kernel %q, line %d: cell %s, output %v", c.session, sessions[c.session], c.line, name, c.output)
		}
		sessions[c.session], seen[name] = kernel, true
	}
	if len(seen) != kernels*cells || len(sessions) != kernels {
		t.Errorf("%d cells of %d sessions", len(seen), len(sessions))
	}
}

// A disk that fills up, or fails, in the midst of a session: its cells stay in memory,
// and it is said once.
func TestHistoryOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("only Linux has a disk that is always full: ", err)
	}
	dir := t.TempDir()
	h, reports := openTest(dir)
	h.input(1, "written")
	h.file.Close()
	h.file = full
	for i := 2; i < 5; i++ {
		h.output(h.input(i, "kept"), "out")
	}
	if got := h.tail(t, 9); len(got) != 4 {
		t.Errorf("cells %q", got)
	}
	if len(*reports) != 1 || !errors.Is((*reports)[0], syscall.ENOSPC) {
		t.Errorf("reports %v", *reports)
	}
	h.close()
	if h, _ := openTest(dir); len(h.tail(t, 9)) != 1 {
		t.Error("what was on the disk before isn't there any more")
	}
}

// A folder that goes away takes nothing of the session with it.
func TestHistoryFolderRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	h, reports := openTest(dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	h.input(1, "a")
	h.input(2, "b")
	if got := h.tail(t, 9); len(got) != 2 || len(*reports) != 1 {
		t.Errorf("cells %q, reports %v", got, *reports)
	}
}

// What may not be read or written is said once, and stops nothing.
func TestHistoryWithoutPermission(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root may read everything, and Windows has no modes: this wants another user")
	}
	dir := t.TempDir()
	h, _ := openTest(dir)
	h.input(1, "hidden")
	h.close()
	if err := os.Chmod(h.path(1), 0); err != nil {
		t.Fatal(err)
	}
	h, reports := openTest(dir)
	for range 2 {
		if got := h.tail(t, 9); len(got) != 0 {
			t.Errorf("cells %q of a file that can't be read", got)
		}
	}
	h.input(1, "next")
	h.close()
	if len(*reports) != 1 || !errors.Is((*reports)[0], os.ErrPermission) || h.session != 2 {
		t.Errorf("session %d, reports %v", h.session, *reports)
	}
	for _, mode := range []os.FileMode{0, 0o300, 0o500} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		h, reports := openTest(dir)
		h.input(1, "kept")
		if got := h.tail(t, 1); len(got) != 1 || got[0] != "kept" {
			t.Errorf("mode %o: cells %q", mode, got)
		}
		h.close()
		if len(*reports) == 0 || len(*reports) > 2 {
			t.Errorf("mode %o: reports %v", mode, *reports)
		}
	}
	os.Chmod(dir, 0o700) // so that it can be removed
}

// Of a file that grew beyond all bounds, the end is read.
func TestReadTail(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("first\nsecond\nthird\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{100: "first\nsecond\nthird\n", 19: "first\nsecond\nthird\n", 13: "third\n", 8: "third\n", 3: ""} {
		if got, err := readTail(name, n); string(got) != want || err != nil {
			t.Errorf("the last %d bytes: %q, %v; want %q", n, got, err, want)
		}
	}
}

// FuzzGlob compares with path.Match, which has the same signs but keeps * from a
// slash and knows a backslash.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{
		{"*", ""}, {"a*b?c", "aXXbYc"}, {"[a-c]*[!x]", "bzz"}, {"[]]", "]"}, {"[", "["}, {"*a*a*a*a*b", strings.Repeat("a", 50)}, {"é?", "é🦈"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		got := glob(pattern, s)
		if strings.ContainsAny(pattern, `\/[`) || strings.Contains(s, "/") || !utf8.ValidString(pattern) || !utf8.ValidString(s) {
			return // it has ended, which is what counts
		}
		if want, err := path.Match(pattern, s); err == nil && got != want {
			t.Errorf("glob(%q, %q) is %v", pattern, s, got)
		}
	})
}

func FuzzReadHistory(f *testing.F) {
	f.Add([]byte(`{"n":1,"i":"a"}` + "\n" + `{"n":1,"o":"b"}` + "\n"))
	f.Add([]byte("{\"n\":1,\"i\":\"a\"\xff\n\n{\"n\":-1,\"i\":\"a\"}\n{\"n\":2,\"o\":null}\n{\"n\":3,\"i\":\"cut"))
	f.Fuzz(func(t *testing.T, b []byte) {
		cells, bad := readHistory(b)
		if lines := bytes.Count(b, []byte("\n")); len(cells)+bad > lines {
			t.Errorf("%d cells and %d bad lines of %d", len(cells), bad, lines)
		}
		for _, c := range cells {
			if c.line <= 0 {
				t.Errorf("line %d", c.line)
			}
		}
	})
}
