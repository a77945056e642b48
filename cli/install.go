package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"deltafin/kernelspec"
)

// placeFlags say where Jupyter looks for the kernel.
type placeFlags struct {
	User      bool   `xor:"place" help:"For you alone, in every Jupyter of yours (the default)."`
	SysPrefix bool   `xor:"place" help:"For the active Python environment."`
	Prefix    string `xor:"place" placeholder:"P" help:"For the Jupyter installed under this prefix, such as a virtual environment."`
	Name      string `default:"deltafin" help:"By what name front ends ask for the kernel."`
}

// kernels is the directory that holds kernels there.
func (f placeFlags) kernels(p *process) (string, error) {
	home, _ := os.UserHomeDir() // without one, UserDir says so where it matters
	system := kernelspec.System{OS: runtime.GOOS, Home: home, Getenv: p.env}
	prefix := f.Prefix
	if f.SysPrefix {
		var err error
		if prefix, err = kernelspec.SysPrefix(system, askPython); err != nil {
			return "", err
		}
	}
	if prefix == "" {
		return kernelspec.UserDir(system)
	}
	abs, err := filepath.Abs(prefix)
	return kernelspec.PrefixDir(abs), err
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
		model := c.Model
		if info, err := os.Stat(model); err != nil || !info.IsDir() {
			return fmt.Errorf("--model %s: want the directory of a K3 snapshot, found none", model)
		}
		if model, err = filepath.Abs(model); err != nil {
			return err
		}
		spec.Args = append(spec.Args, "--model", model)
	}
	if options.Threads > 0 {
		spec.Args = append(spec.Args, "--threads", fmt.Sprint(options.Threads))
	}
	kernels, err := c.kernels(p)
	if err != nil {
		return err
	}
	dir, err := kernelspec.Install(kernels, spec)
	if err != nil {
		return err
	}
	shown := spec.DisplayName
	if shown == "" {
		shown = "Go (deltafin)"
	}
	p.printf("installed %s\n\nOpen it:\n  jupyter lab                          and choose %q\n  jupyter console --kernel %s\n", dir, shown, c.Name)
	return nil
}
