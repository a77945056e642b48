package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"deltafin/kernelspec"
	"deltafin/rig"
)

// placeFlags say where Jupyter looks for the kernel.
type placeFlags struct {
	User      bool   `xor:"place" help:"For you alone, in every Jupyter of yours (the default)."`
	SysPrefix bool   `xor:"place" help:"For the active Python environment."`
	Prefix    string `xor:"place" placeholder:"P" help:"For the Jupyter installed under this prefix, such as a virtual environment."`
	Name      string `default:"deltafin" help:"By what name front ends ask for the kernel."`
}

// place is a directory of kernels.
type place struct {
	kernels string
	prefix  string // absolute; "" for the user's directory
	asked   bool   // prefix is what a Python said, for no environment is active
}

// place is the directory that holds kernels there.
func (f placeFlags) place(p *process) (place, error) {
	home, _ := os.UserHomeDir() // without one, UserDir says so where it matters
	system := kernelspec.System{OS: runtime.GOOS, Home: home, Getenv: p.env}
	at := place{prefix: f.Prefix}
	var err error
	if f.SysPrefix {
		at.prefix, err = kernelspec.SysPrefix(system, func(program string) (string, error) {
			at.asked = true
			return askPython(program)
		})
		if err != nil {
			return place{}, err
		}
	}
	if at.prefix == "" {
		at.kernels, err = kernelspec.UserDir(system)
		return at, err
	}
	if at.prefix, err = filepath.Abs(at.prefix); err != nil {
		return place{}, err
	}
	at.kernels = kernelspec.PrefixDir(at.prefix)
	return at, nil
}

// note is what a user should know of the place, or "".
func (at place) note(p *process) string {
	switch {
	case at.asked:
		return fmt.Sprintf("It is for the Python under %s: no environment is active (VIRTUAL_ENV and CONDA_PREFIX are not set).\n", at.prefix)
	case at.prefix != "" && !at.searched(p):
		return fmt.Sprintf("There is no Python under %s: Jupyter looks there only when JUPYTER_PATH names\n  %s\n", at.prefix, at.data())
	}
	return ""
}

// data is Jupyter's data directory under the prefix.
func (at place) data() string { return filepath.Join(at.prefix, "share", "jupyter") }

// searched says whether a Jupyter looks under the prefix: that of a Python there,
// any that JUPYTER_PATH sends there, or every one on a system where the place is
// the system's.
func (at place) searched(p *process) bool {
	if runtime.GOOS != "windows" && (at.prefix == "/usr" || at.prefix == "/usr/local") {
		return true
	}
	if slices.Contains(filepath.SplitList(p.env("JUPYTER_PATH")), at.data()) {
		return true
	}
	for _, python := range []string{"bin/python3", "bin/python", "python.exe", "Scripts/python.exe"} {
		if _, err := os.Stat(filepath.Join(at.prefix, filepath.FromSlash(python))); err == nil {
			return true
		}
	}
	return false
}

// askPython runs a program with the first Python of the search path.
func askPython(program string) (string, error) {
	for _, name := range []string{"python3", "python"} {
		if python, err := exec.LookPath(name); err == nil {
			out, err := exec.Command(python, "-c", program).Output()
			return string(out), err
		}
	}
	return "", exec.ErrNotFound
}

type installCmd struct {
	placeFlags
	Force       bool   `help:"Replace another program's kernel of that name, or a broken one."`
	DisplayName string `placeholder:"TEXT" help:"What front ends show (default: Go (deltafin), with the name if it is another)."`
	modelFlags
}

func (installCmd) Help() string {
	return `Writes a kernelspec that starts this very program; install again after moving it. Examples:

    deltafin install
    deltafin install --prefix .venv
    deltafin install --name deltafin-k3 --model ~/models/k3`
}

func (c installCmd) Run(p *process) error {
	if err := kernelspec.CheckName(c.Name); err != nil {
		return usagef("--name %q: expected letters, digits, '.', '-' and '_' in lower case", c.Name)
	}
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	spec := kernelspec.Spec{Name: c.Name, DisplayName: c.DisplayName, Binary: binary}
	if c.DisplayName == "" && c.Name != "deltafin" {
		spec.DisplayName = fmt.Sprintf("Go (%s)", c.Name)
	}
	options, err := c.options(p)
	if err != nil {
		return err
	}
	if c.Model != "" { // DELTAFIN_MODEL is read anew by each kernel
		if _, err := rig.LoadTokenizer(options); err != nil {
			return err
		}
		model := c.Model
		if model != rig.DefaultModel {
			if model, err = filepath.Abs(model); err != nil {
				return err
			}
		}
		spec.Args = append(spec.Args, "--model", model)
	}
	if options.Threads > 0 {
		spec.Args = append(spec.Args, "--threads", fmt.Sprint(options.Threads))
	}
	if options.Spine != "" {
		spec.Args = append(spec.Args, "--spine", options.Spine)
	}
	at, err := c.place(p)
	if err != nil {
		return err
	}
	dir, err := kernelspec.Install(at.kernels, spec, c.Force)
	if err != nil {
		return err
	}
	shown := spec.DisplayName
	if shown == "" {
		shown = "Go (deltafin)"
	}
	p.printf("installed %s\n%s\nOpen it:\n  jupyter lab                          and choose %q\n  jupyter console --kernel %s\n", dir, at.note(p), shown, c.Name)
	return nil
}
