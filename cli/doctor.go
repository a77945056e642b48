package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"deltafin/doctor"
	"deltafin/kernelspec"
	"deltafin/models"
	"deltafin/rig"
)

type doctorCmd struct {
	JSON bool `name:"json" help:"Print one JSON object: ok, problems, warnings, findings."`
}

func (doctorCmd) Help() string {
	return `Looks at this program, the machine, its folders, Jupyter and the installed kernels, and
starts a kernel. A line for each finding; exit status 1 if there is a problem. Examples:

    deltafin doctor
    deltafin doctor --json`
}

// diagnosis is the JSON of doctor.
type diagnosis struct {
	OK       bool             `json:"ok"` // no problem; there may be warnings
	Problems int              `json:"problems"`
	Warnings int              `json:"warnings"`
	Findings []doctor.Finding `json:"findings"`
}

func (c doctorCmd) Run(p *process) error {
	ctx, stop := p.interruptible()
	defer stop()
	environment, err := doctorEnvironment(p)
	if err != nil {
		return err
	}
	var d diagnosis
	status := p.status()
	status.show("looking")
	err = doctor.Run(ctx, doctor.Checks(environment), func(f doctor.Finding) {
		d.Findings = append(d.Findings, f)
		switch f.Level {
		case doctor.Problem:
			d.Problems++
		case doctor.Warning:
			d.Warnings++
		}
		if !c.JSON {
			status.clear()
			p.printf("%-8s %-11s %s\n", f.Level, f.Check, oneLine(f.String()))
			status.show("looking")
		}
	})
	status.clear()
	d.OK = d.Problems == 0 && err == nil
	if c.JSON {
		if jerr := p.printJSON(d); jerr != nil {
			return jerr
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errInterrupted
	case err != nil:
		return err
	case d.Problems > 0:
		return errors.New(count(d.Problems, "problem"))
	}
	return nil
}

// oneLine is text without line breaks, such as those of another program's error.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// doctorEnvironment is this process and its machine, as the checks want them.
func doctorEnvironment(p *process) (doctor.Environment, error) {
	binary, err := os.Executable()
	if err != nil {
		return doctor.Environment{}, err
	}
	home, _ := os.UserHomeDir() // without one, the checks that want it say so
	dir, _ := os.Getwd()
	v := readVersion()
	e := doctor.Environment{
		System:  kernelspec.System{OS: runtime.GOOS, Home: home, Getenv: p.env},
		Binary:  binary,
		Version: v.Version,
		Device:  strings.Join(v.Devices, "; "),
		Dir:     dir,
		Model:   p.env("DELTAFIN_MODEL"),
		Inspect: func(model string) (string, int64, error) {
			options, err := modelFlags{Model: model}.options(p)
			if err != nil {
				return "", 0, err
			}
			return rig.Inspect(options)
		},
		Memory:          machineMemory(),
		MemoryAvailable: availableMemory(),
		LookPath:        exec.LookPath,
		Output:          output,
		Listen:          net.Listen,
		Kernel:          []string{binary, "kernel", "--connection-file", "{connection_file}"},
	}
	e.State, e.StateErr = p.stateDir()
	e.Cache, e.CacheErr = p.cacheDir()
	files, err := models.Files(rig.DefaultModel)
	for _, f := range files {
		e.Unpacked += f.Size
	}
	return e, err
}

// output runs a program and gives what it wrote to standard output. Neither a terminal
// nor a child that keeps the pipe open holds it up.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	return cmd.Output()
}
