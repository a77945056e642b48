package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// python is an interpreter and what it says of its Jupyter.
type python struct {
	Path     string            `json:"-"`
	Failed   error             `json:"-"` // it can't be run at all
	Active   bool              `json:"-"` // of VIRTUAL_ENV or CONDA_PREFIX
	Version  string            `json:"version"`
	Prefix   string            `json:"prefix"`
	Packages map[string]string `json:"packages"` // versions of those installed
	Error    string            `json:"error"`    // why jupyter_client can't be imported
	Kernels  []string          `json:"kernels"`  // folders of kernels, in the order in which it looks
	Runtime  string            `json:"runtime"`  // folder of connection files
}

// about asks a Python all that at once.
const about = `
import json, sys
a = {"version": "%d.%d.%d" % sys.version_info[:3], "prefix": sys.prefix, "packages": {}, "error": "", "kernels": [], "runtime": ""}
try:
    from importlib import metadata
    for name in ("jupyter_client", "jupyterlab", "jupyter_console", "notebook"):
        try:
            a["packages"][name] = metadata.version(name)
        except Exception:
            pass
except Exception:
    pass
try:
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_core.paths import jupyter_runtime_dir
    a["kernels"] = list(KernelSpecManager().kernel_dirs)
    a["runtime"] = jupyter_runtime_dir()
except BaseException as e:
    a["error"] = "%s: %s" % (type(e).__name__, e)
sys.stdout.write(json.dumps(a))
`

// pythonTime bounds a look at one Python: a cold import from a slow disk takes seconds.
const pythonTime = 60 * time.Second

// pythons asks every Python that a user may mean: of the jupyter on the PATH, first
// since it is the one that will look for kernels, of the active environment, of .venv
// where the program was started, and of the PATH.
func (e Environment) pythons(ctx context.Context) []python {
	var found []python
	add := func(path string, active bool) {
		if path == "" || slices.ContainsFunc(found, func(p python) bool { return p.Path == path }) {
			return
		}
		if _, err := os.Stat(path); err == nil {
			found = append(found, python{Path: path, Active: active})
		}
	}
	var env []string
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if prefix := e.System.Getenv(name); prefix != "" {
			env = append(env, prefix)
		}
	}
	for _, program := range jupyters {
		if path, err := e.LookPath(program); err == nil {
			interpreter := interpreterOf(path)
			add(interpreter, slices.Contains(env, filepath.Dir(filepath.Dir(interpreter))))
		}
	}
	prefixes := env
	if e.Dir != "" {
		prefixes = append(slices.Clip(env), filepath.Join(e.Dir, ".venv"))
	}
	for i, prefix := range prefixes {
		for _, name := range []string{"bin/python3", "bin/python", "python.exe", "Scripts/python.exe"} {
			before := len(found)
			if add(filepath.Join(prefix, filepath.FromSlash(name)), i < len(env)); len(found) > before {
				break
			}
		}
	}
	for _, program := range []string{"python3", "python"} {
		if path, err := e.LookPath(program); err == nil {
			add(path, false)
			break
		}
	}
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, pythonTime)
			defer cancel()
			out, err := e.Output(ctx, found[i].Path, "-c", about)
			if err == nil {
				err = json.Unmarshal(out, &found[i])
			}
			found[i].Failed = err
		})
	}
	wg.Wait()
	return slices.CompactFunc(found, func(a, b python) bool { return a.Failed == nil && b.Failed == nil && a.Prefix == b.Prefix })
}

// interpreterOf is the Python of a script's first line, or the one beside it.
func interpreterOf(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadSlice('\n')
	if path, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "#!"); ok && filepath.IsAbs(path) && strings.Contains(filepath.Base(path), "python") {
		return path
	}
	for _, name := range []string{"python3", "python", "python.exe", "../python.exe"} {
		beside := filepath.Join(filepath.Dir(script), name)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return ""
}

// jupyterOf is the Python whose Jupyter looks for kernels: the first that has one.
func jupyterOf(pythons []python) *python {
	for i, p := range pythons {
		if p.Failed == nil && p.Error == "" && len(p.Kernels) > 0 {
			return &pythons[i]
		}
	}
	return nil
}

// jupyters are the programs with which people open notebooks.
var jupyters = []string{"jupyter-lab", "jupyter-notebook", "jupyter-console", "jupyter"}

const getJupyter = "python3 -m venv .venv && .venv/bin/pip install jupyterlab, then put .venv/bin on the PATH"

// jupyter looks at the programs and at the Pythons that run them.
func (e Environment) jupyter(ctx context.Context, pythons []python) []Finding {
	var findings []Finding
	programs := 0
	for _, program := range jupyters {
		path, err := e.LookPath(program)
		if err != nil {
			continue
		}
		programs++
		if program == "jupyter" {
			continue // it only starts the others
		}
		limited, cancel := context.WithTimeout(ctx, pythonTime)
		out, err := e.Output(limited, path, "--version")
		cancel()
		if err != nil {
			findings = append(findings, problem("that "+path+" runs", failure(err), "its Python was moved or removed, or packages are missing: install it again, in a new environment"))
			continue
		}
		findings = append(findings, okf("%s %s, %s", program, lastLine(string(out)), path))
	}
	usable := jupyterOf(pythons)
	for _, p := range pythons {
		switch {
		case p.Failed != nil:
			findings = append(findings, problem("that "+p.Path+" runs", failure(p.Failed), "repair that Python, or take it off the PATH"))
		case p.Packages["jupyter_client"] != "" && p.Error != "":
			findings = append(findings, problem("that jupyter_client can be imported by "+p.Path, p.Error, fmt.Sprintf("%s -m pip install --upgrade --force-reinstall jupyter_client", p.Path)))
		case p.Error != "":
			findings = append(findings, okf("Python %s without Jupyter, %s", p.Version, p.Path))
		default:
			findings = append(findings, okf("Python %s with jupyter_client %s, %s", p.Version, p.Packages["jupyter_client"], p.Path))
		}
	}
	switch {
	case programs == 0 && usable != nil:
		findings = append(findings, warn("jupyter-lab or another front end on the PATH", "none, though "+usable.Path+" has Jupyter", fmt.Sprintf("start it with %s -m jupyterlab, or put its folder on the PATH", usable.Path)))
	case programs == 0 && len(pythons) == 0:
		findings = append(findings, problem("Jupyter on the PATH", "neither Jupyter nor Python", "install Python 3.10 or newer, then "+getJupyter))
	case programs == 0:
		findings = append(findings, problem("Jupyter on the PATH", "none", getJupyter))
	}
	return findings
}

// failure is why a program failed: the last line that it wrote, where there is one.
func failure(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return lastLine(string(exit.Stderr))
	}
	return reason(err)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}
