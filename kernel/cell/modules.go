package cell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// buildTags choose the portable files of packages that have others in assembly, or with
// package unsafe.
const buildTags = "purego,noasm,safe,appengine,math_big_pure_go,disableunsafe"

// modules are those that %get has gotten for a session. The Go toolchain on PATH
// chooses versions, downloads, and finds files, in a directory of the session's own: its
// go.mod requires what was gotten. The directory outlives the child.
type modules struct {
	dir string

	turn sync.Mutex // held for a go command, before mu
	env  []string   // of go commands; nil until the toolchain was found

	mu     sync.Mutex // never held for long: questions ask
	gotten []string   // the paths, as they were asked for
}

// gottenFile lists in dir what was gotten, a path a line: go.mod has what that needs too.
const gottenFile = "gotten"

func newModules(dir string) *modules {
	m := &modules{dir: dir}
	if text, err := os.ReadFile(filepath.Join(dir, gottenFile)); err == nil {
		m.gotten = strings.Fields(string(text))
	}
	return m
}

// sessionDir names a directory for one Host's modules, which the child makes when it
// needs it. In the system's temporary directory, which users share, each has one of
// their own.
func sessionDir(base string) string {
	if base == "" {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("deltafin-modules-%d", os.Getuid()))
	}
	return filepath.Join(base, fmt.Sprintf("session-%d-%08x", os.Getpid(), rand.Uint32()))
}

// removeStale removes the directories beside dir that Hosts left which didn't close.
func removeStale(dir string) {
	entries, _ := os.ReadDir(filepath.Dir(dir))
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), "session-") && time.Since(info.ModTime()) > staleAfter {
			os.RemoveAll(filepath.Join(filepath.Dir(dir), e.Name()))
		}
	}
}

// staleAfter is how long a session's directory is kept when nothing in it changes. A
// session that loses it only has to get its modules again.
const staleAfter = 30 * 24 * time.Hour

// A ModuleError is a failure to get or find a module: what was wanted, and what the
// toolchain says, or what is missing.
type ModuleError struct {
	Want string
	Says string
}

func (e *ModuleError) Error() string { return e.Want + ": " + e.Says }

// empty says whether nothing has been gotten.
func (m *modules) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.gotten) == 0
}

// paths are what was gotten, as it was asked for.
func (m *modules) paths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.gotten)
}

// command makes a run of the go command in the session's directory. m.turn is held.
func (m *modules) command(ctx context.Context, arg ...string) (*exec.Cmd, error) {
	program, err := exec.LookPath("go")
	if err != nil {
		return nil, &ModuleError{"go " + arg[0], "want the Go toolchain for modules, found no go on PATH: install it from https://go.dev/dl, or go without modules"}
	}
	if m.env == nil {
		if err := os.MkdirAll(m.dir, 0o700); err != nil {
			return nil, err
		}
		env := append(os.Environ(), "GO111MODULE=on", "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
		version := exec.CommandContext(ctx, program, "env", "GOVERSION")
		version.Dir, version.Env = m.dir, append(env, "GOTOOLCHAIN=local")
		out, err := version.Output()
		if err != nil {
			return nil, &ModuleError{"go env", toolchainWords(err, nil)}
		}
		if !older(strings.TrimSpace(string(out)), goVersion) {
			// Nothing that needs a newer one could run.
			env = append(env, "GOTOOLCHAIN=local")
		}
		mod := filepath.Join(m.dir, "go.mod")
		if _, err := os.Stat(mod); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(mod, []byte("module session\n\ngo 1.21\n"), 0o644); err != nil {
				return nil, err
			}
		}
		m.env = env
	}
	cmd := endable(exec.CommandContext(ctx, program, arg...))
	cmd.Dir, cmd.Env, cmd.WaitDelay = m.dir, m.env, 200*time.Millisecond
	return cmd, nil
}

// older says whether Go's version a, as in go1.26.1, comes before b.
func older(a, b string) bool {
	number := func(v string) (n [2]int) {
		fmt.Sscanf(strings.TrimPrefix(v, "go"), "%d.%d", &n[0], &n[1])
		return n
	}
	x, y := number(a), number(b)
	return slices.Compare(x[:], y[:]) < 0
}

// toolchainWords is why a go command failed: what it said last, or the error.
func toolchainWords(err error, said []byte) string {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) && said == nil {
		said = e.Stderr
	}
	var lines []string
	for line := range strings.Lines(string(said)) {
		line = strings.TrimRight(line, "\r\n")
		if isDownload(line) || strings.TrimSpace(line) == "" {
			continue
		}
		lines = append(lines, strings.TrimPrefix(line, "go: "))
	}
	if len(lines) == 0 {
		return err.Error()
	}
	return strings.Join(lines, "\n")
}

// isDownload says whether a line of the toolchain's says what it fetches.
func isDownload(line string) bool {
	return strings.HasPrefix(line, "go: downloading ") || strings.HasPrefix(line, "go: finding ")
}

// downloads passes on the toolchain's lines about what it fetches, and keeps the rest.
type downloads struct {
	to   io.Writer
	line []byte // not ended yet
	rest []byte
}

func (d *downloads) Write(b []byte) (int, error) {
	for part := range bytes.Lines(b) {
		d.line = append(d.line, part...)
		if part[len(part)-1] != '\n' {
			continue
		}
		if isDownload(string(d.line)) {
			if _, err := d.to.Write(d.line); err != nil {
				return 0, err
			}
		} else {
			d.rest = append(d.rest, d.line...)
		}
		d.line = d.line[:0]
	}
	return len(b), nil
}

// get adds modules to the session's: args are paths with versions or without, or
// directories of modules. What the toolchain downloads goes to progress as it comes, the
// rest of what it says when it has succeeded; else that is the error. After an error the
// session's modules are as they were.
func (m *modules) get(ctx context.Context, args []string, progress io.Writer) (err error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if _, err := m.command(ctx, "get"); err != nil { // there is a go.mod from then on
		return err
	}
	mod := filepath.Join(m.dir, "go.mod")
	before, err := os.ReadFile(mod)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.WriteFile(mod, before, 0o644))
		}
	}()
	want := "%get " + strings.Join(args, " ")
	command := []string{"get"}
	gotten := m.paths()
	for _, a := range args {
		if a == "-u" {
			command = append(command, a)
			continue
		}
		if strings.HasPrefix(a, "-") {
			return &ModuleError{want, "want paths of modules or packages, each with @VERSION or without, and -u before them to get newer versions of what they need too; got " + a}
		}
		p, version, at := strings.Cut(a, "@")
		if !at {
			version = "latest"
		}
		if filepath.IsAbs(p) || p == "." || p == ".." || strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") {
			of, err := m.replace(ctx, p)
			if err != nil {
				return err
			}
			p, version = of, localVersion
		}
		command = append(command, p+"@"+version)
		gotten = slices.DeleteFunc(gotten, func(g string) bool { return g == p })
		if version != "none" {
			gotten = append(gotten, p)
		}
	}
	cmd, err := m.command(ctx, command...)
	if err != nil {
		return err
	}
	said := downloads{to: progress}
	cmd.Stdout = &said
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &ModuleError{want, toolchainWords(err, said.rest)}
	}
	if _, err := progress.Write(said.rest); err != nil {
		return err
	}
	m.mu.Lock()
	m.gotten = gotten
	m.mu.Unlock()
	return os.WriteFile(filepath.Join(m.dir, gottenFile), []byte(strings.Join(gotten, "\n")+"\n"), 0o644)
}

// localVersion is that of a module in a directory.
const localVersion = "v0.0.0-local"

// replace makes the module in a directory of this machine stand for its path, which it
// gives.
func (m *modules) replace(ctx context.Context, dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	var of struct{ Module struct{ Path string } }
	cmd, err := m.command(ctx, "mod", "edit", "-json", filepath.Join(abs, "go.mod"))
	if err != nil {
		return "", err
	}
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &of)
	}
	if err != nil {
		return "", &ModuleError{"%get " + dir, "want a directory with a go.mod; " + toolchainWords(err, nil)}
	}
	if of.Module.Path == "" {
		return "", &ModuleError{"%get " + dir, "want a go.mod with the module's path, got one without: add a line such as module example.com/name"}
	}
	p := of.Module.Path
	if cmd, err = m.command(ctx, "mod", "edit", "-replace="+p+"="+abs, "-require="+p+"@"+localVersion); err != nil {
		return "", err
	}
	if _, err := cmd.Output(); err != nil {
		return "", &ModuleError{"%get " + dir, toolchainWords(err, nil)}
	}
	return p, nil
}

// list says what has been gotten, with versions.
func (m *modules) list(ctx context.Context) (string, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	gotten := m.paths()
	if len(gotten) == 0 {
		return "nothing gotten yet; %get PATH gets a module, such as %get gonum.org/v1/gonum\n", nil
	}
	cmd, err := m.command(ctx, "list", "-m", "-mod=mod", "-e", "-f", "{{.Path}}\t{{.Version}}\t{{with .Replace}}{{.Path}}{{end}}", "all")
	if err != nil {
		return "", err
	}
	out, err := cmd.Output()
	if err != nil {
		return "", &ModuleError{"%get", toolchainWords(err, nil)}
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range gotten {
		var best []string
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimRight(line, "\n"), "\t")
			if len(f) == 3 && (p == f[0] || strings.HasPrefix(p, f[0]+"/")) && (best == nil || len(f[0]) > len(best[0])) {
				best = f
			}
		}
		if best == nil {
			best = []string{p, "?", ""}
		}
		version := best[1]
		if best[2] != "" {
			version = best[2]
		}
		fmt.Fprintf(table, "%s\t%s\n", p, version)
	}
	table.Flush()
	return b.String(), nil
}

// A listed package is what go list says of it.
type listed struct {
	ImportPath, Name, Dir                                  string
	GoFiles, CgoFiles, IgnoredGoFiles, EmbedFiles, Imports []string
	ImportMap                                              map[string]string
	Standard                                               bool
	Module                                                 *struct{ Path, Version, GoVersion string }
	Error                                                  *struct{ Pos, Err string }
}

// find gives the package at a path and those that it needs, dependencies first.
// What has to be downloaded for it is; progress gets what the toolchain says then.
func (m *modules) find(ctx context.Context, path string, progress io.Writer) ([]*listed, error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	// First without what could change which modules the session has.
	all, err := m.listed(ctx, "readonly", path, io.Discard)
	if err != nil || slices.ContainsFunc(all, func(p *listed) bool { return p.Error != nil && !p.unknown(path) }) {
		all, err = m.listed(ctx, "mod", path, progress)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if err := p.fault(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// unknown says whether p is the package at path, and in none of the session's modules.
func (p *listed) unknown(path string) bool {
	return p.ImportPath == path && p.Error != nil && (strings.Contains(p.Error.Err, "no required module provides package") || strings.Contains(p.Error.Err, "import lookup disabled by -mod=readonly"))
}

// listed runs go list. m.turn is held.
func (m *modules) listed(ctx context.Context, mod, path string, progress io.Writer) ([]*listed, error) {
	cmd, err := m.command(ctx, "list", "-mod="+mod, "-deps", "-e", "-tags="+buildTags,
		"-json=ImportPath,Name,Dir,GoFiles,CgoFiles,IgnoredGoFiles,EmbedFiles,Imports,ImportMap,Standard,Module,Error", "--", path)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&said, progress)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &ModuleError{"package " + path, toolchainWords(err, said.Bytes())}
	}
	var all []*listed
	for d := json.NewDecoder(&out); d.More(); {
		p := &listed{}
		if err := d.Decode(p); err != nil {
			return nil, fmt.Errorf("go list %s: %w", path, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// fault is why cells can't have p, which the package path needs or is; nil if they can,
// as far as the toolchain knows.
func (p *listed) fault(path string) error {
	want := "package " + path
	if p.ImportPath != path {
		want += " needs " + p.ImportPath
	}
	switch {
	case isGonb(path):
		return importFault(path)
	case p.Standard:
	case p.Module != nil && older(goVersion, "go"+p.Module.GoVersion):
		return &ModuleError{want, "module " + p.Module.Path + " " + p.Module.Version + " needs Go " + p.Module.GoVersion + ", and cells are Go " + strings.TrimPrefix(goVersion, "go") + "; get an older version, " + p.Module.Path + "@VERSION"}
	case len(p.GoFiles) == 0 && (len(p.CgoFiles) > 0 || p.usesC()):
		return &ModuleError{want, "it is written with cgo (import \"C\"), which cells can't run"}
	case p.unknown(path):
		return &ModuleError{want, "no module that was gotten has it; %get " + p.ImportPath + " gets it"}
	case p.Error != nil:
		return &ModuleError{want, strings.TrimSpace(strings.TrimPrefix(p.Error.Err, "go: "))}
	case p.Name == "main" && p.ImportPath == path:
		return &ModuleError{want, "it is a program, not an importable package"}
	}
	return nil
}

// usesC says whether one of the files left out is C's.
func (p *listed) usesC() bool {
	return slices.ContainsFunc(p.IgnoredGoFiles, func(name string) bool {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		return err == nil && bytes.Contains(text, []byte("import \"C\""))
	})
}
