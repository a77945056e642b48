package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/kernel"
	"deltafin/kernel/display"
	"deltafin/kernelspec"
)

// TestMain is also the kernel that the tests start: its first argument says how it
// behaves.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "kernel" {
		os.Exit(serve(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func serve(behaviour, file string) int {
	if behaviour == "refuse" {
		fmt.Fprintln(os.Stderr, "many lines\nno engine today")
		return 3
	}
	c, err := kernel.ReadConnectionFile(file)
	for _, risk := range kernel.Risks(file, c) {
		err = risk // what doctor writes is for its own kernel alone
	}
	if err == nil {
		err = kernel.Serve(context.Background(), kernel.Options{Connection: c, Interpreter: fake{behaviour: behaviour}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if behaviour == "badly" {
		return 4
	}
	return 0
}

// fake runs every cell in the same way.
type fake struct {
	kernel.Interpreter // what is not called
	behaviour          string
}

func (fake) Language() kernel.Language { return kernel.Language{Name: "fake"} }
func (fake) Close() error              { return nil }

func (f fake) Execute(ctx context.Context, cell kernel.Cell, out kernel.Output) *kernel.CellError {
	switch f.behaviour {
	case "die":
		fmt.Fprintln(os.Stderr, "the process is at its end")
		os.Exit(5)
	case "fail":
		return &kernel.CellError{Name: "broken", Value: "no Go here"}
	case "wrong":
		out.Result(display.Text("3"))
	default:
		out.Result(display.Text("2"))
	}
	return nil
}

// one wants a single finding.
func one(t *testing.T, what string, findings []Finding, level Level, contains string) {
	t.Helper()
	if len(findings) != 1 || findings[0].Level != level || !strings.Contains(findings[0].String(), contains) {
		t.Errorf("%s: want one %s with %q, got %v", what, level, contains, findings)
	}
}

func TestKernel(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for behaviour, want := range map[string]string{
		"well":   "",
		"refuse": "while connecting to it: it ended too early: exit status 3; it said: no engine today",
		"die":    "while running 1+1: it ended too early: exit status 5; it said: the process is at its end",
		"fail":   "while running 1+1: it answered error broken: no Go here",
		"wrong":  `while running 1+1: it gave "3"`,
		"badly":  "while shutting it down: exit status 4",
	} {
		e := Environment{Listen: net.Listen, Kernel: []string{self, "kernel", behaviour, "{connection_file}"}}
		level := Problem
		if want == "" {
			level, want = OK, "ran 1+1 in "
		}
		got := e.kernel(t.Context())
		if behaviour == "badly" && strings.Contains(got[0].String(), "ended too early: exit status 4") {
			continue // it was gone before its reply was read
		}
		one(t, behaviour, got, level, want)
	}
	e := Environment{Listen: net.Listen, Kernel: []string{"/nowhere/deltafin"}}
	one(t, "no program", e.kernel(t.Context()), Problem, "/nowhere/deltafin")
	e.Listen = func(string, string) (net.Listener, error) { return nil, errors.New("no lo") }
	one(t, "no ports", e.kernel(t.Context()), Problem, "no free ports: no lo")
}

func TestMachine(t *testing.T) {
	inspect := func(string) (string, int64, error) { return "/models/k3", 50e9, nil }
	for _, c := range []struct {
		memory, free int64
		level        Level
		want         string
	}{
		{0, 0, OK, "doesn't tell"},
		{40e9, 0, Problem, "want 50 GB for /models/k3, found 40 GB in all"},
		{64e9, 20e9, Warning, "found 20 GB free of 64 GB"},
		{64e9, 60e9, OK, "60 GB free of 64 GB, and the model has 50 GB"},
		{64e9, 0, OK, "64 GB, and the model has 50 GB"},
	} {
		one(t, fmt.Sprint(c.memory, c.free), Environment{Inspect: inspect, Memory: c.memory, MemoryAvailable: c.free}.memory(), c.level, c.want)
	}
	var e Environment
	one(t, "no limit", e.descriptors(0), OK, "no limit")
	one(t, "few files", e.descriptors(64), Warning, "found 64; raise it with ulimit -n")
	one(t, "many files", e.descriptors(1024), OK, "1024")

	e.Listen = func(string, string) (net.Listener, error) { return nil, errors.New("cannot assign requested address") }
	one(t, "no loopback", e.loopback(), Problem, "found cannot assign requested address; bring the interface lo up")
	e.Listen = func(network, address string) (net.Listener, error) { // bound, and out of reach
		l, err := net.Listen(network, address)
		return unreachable{l}, err
	}
	one(t, "firewall", e.loopback(), Problem, "let the firewall pass 127.0.0.1")
	e.Listen = net.Listen
	one(t, "loopback", e.loopback(), OK, "reached")
}

// unreachable is a listener at an address where nobody answers.
type unreachable struct{ net.Listener }

func (unreachable) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func TestBinary(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own, same, other := file("own", "a"), file("same", "a"), file("other", "b")
	for found, warnings := range map[string]int{own: 0, same: 0, other: 1, "": 0} {
		e := Environment{Binary: own, LookPath: func(string) (string, error) {
			if found == "" {
				return "", exec.ErrNotFound
			}
			return found, nil
		}}
		if got := e.binary(); len(got) != 1+warnings {
			t.Errorf("%q on the PATH: %v", found, got)
		}
	}
	one(t, "deleted", Environment{Binary: filepath.Join(dir, "gone")}.binary(), Problem, "moved or deleted")
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	one(t, "there", folder(dir, 0, Problem, ""), OK, dir)
	one(t, "not yet", folder(filepath.Join(dir, "a", "b"), 0, Problem, ""), OK, "will be made")
	one(t, "full", folder(dir, 1<<60, Warning, "make room"), Warning, "free for "+dir)
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "link")); err == nil {
		one(t, "link", folder(filepath.Join(dir, "link", "x"), 0, Problem, ""), Problem, "a link to nowhere at "+filepath.Join(dir, "link"))
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if os.Geteuid() <= 0 {
		t.Skip("root may write everywhere, and Windows has no modes: the rest wants another user")
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	one(t, "read-only", folder(dir, 0, Warning, "mend it"), Warning, "want to write in "+dir+", found permission denied; mend it")
	one(t, "in a read-only one", folder(filepath.Join(dir, "a"), 0, Problem, ""), Problem, "permission denied")
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	one(t, "out of reach", folder(filepath.Join(dir, "a"), 0, Problem, ""), Problem, "permission denied")
}

// A Python that is asked twice would cost seconds; one that fails is a finding.
func TestPythons(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"env/bin/python3", "path/python3", "here/.venv/bin/python"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := filepath.Join(dir, "env")
	lab := filepath.Join(env, "bin", "jupyter-lab")
	if err := os.WriteFile(lab, []byte("#!"+env+"/bin/python3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 10)
	e := Environment{
		Dir:    filepath.Join(dir, "here"),
		System: kernelspec.System{OS: "linux", Home: dir, Getenv: func(n string) string { return map[string]string{"VIRTUAL_ENV": env}[n] }},
		LookPath: func(program string) (string, error) {
			switch program {
			case "jupyter-lab":
				return lab, nil
			case "python3":
				return filepath.Join(dir, "path", "python3"), nil
			}
			return "", exec.ErrNotFound
		},
		Output: func(_ context.Context, program string, args ...string) ([]byte, error) {
			asked <- program
			if program == lab {
				return []byte("4.5\n"), nil
			}
			if strings.HasPrefix(program, env) {
				return []byte(`{"version": "3.12.1", "prefix": "` + env + `", "packages": {"jupyter_client": "8"}, "kernels": ["/k"], "runtime": "/r"}`), nil
			}
			return []byte("Traceback"), errors.New("exit status 1")
		},
	}
	pythons := e.pythons(t.Context())
	if len(pythons) != 3 || len(asked) != 3 || !pythons[0].Active || pythons[2].Failed == nil {
		t.Fatalf("%d asked, %+v", len(asked), pythons)
	}
	if p := pythons[1]; p.Path != filepath.Join(dir, "here", ".venv", "bin", "python") || p.Active {
		t.Errorf("where the program was started: %+v", p)
	}
	if main := jupyterOf(pythons); main == nil || main.Prefix != env {
		t.Errorf("the Jupyter is %+v", main)
	}
	if places, searched := e.places(pythons); places[0] != "/k" || searched != 1 || len(places) < 4 {
		t.Errorf("places %v, %d searched", places, searched)
	}
	findings := e.jupyter(t.Context(), pythons)
	if len(findings) != 4 || findings[0].Level != OK || findings[1].Level != OK || findings[2].Level != Problem || findings[3].Level != Problem {
		t.Errorf("findings %v", findings)
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var seen []string
	err := Run(ctx, []Check{
		{"a", func(context.Context) []Finding { return []Finding{okf("x")} }},
		{"b", func(context.Context) []Finding { cancel(); return []Finding{okf("y")} }},
		{"c", func(context.Context) []Finding { t.Error("went on"); return nil }},
	}, func(f Finding) { seen = append(seen, f.Check) })
	if !errors.Is(err, context.Canceled) || len(seen) != 1 {
		t.Errorf("%v, saw %v", err, seen)
	}
}
