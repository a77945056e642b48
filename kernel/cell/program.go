package cell

import (
	"errors"
	"flag"
	"os"
	"os/exec"
)

// beProgram gives package flag and os.Args what they have when a program begins.
func beProgram() {
	os.Args = []string{"cell"}
	flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
}

// parseFlags is (*flag.FlagSet).Parse for cells: where it would end the process, it ends
// the cell.
func (c *child) parseFlags(f *flag.FlagSet, args []string) error {
	if f.ErrorHandling() != flag.ExitOnError {
		return f.Parse(args)
	}
	f.Init(f.Name(), flag.ContinueOnError)
	err := f.Parse(args)
	f.Init(f.Name(), flag.ExitOnError)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.exit(0)
	case err != nil:
		c.exit(2)
	}
	return err
}

// started is a command that a method is called of: one that is to have os.Stdin gets
// none, for nobody would know that it waits for input.
func started(cmd *exec.Cmd) *exec.Cmd {
	if cmd != nil && cmd.Process == nil && stdinPiped && cmd.Stdin == os.Stdin {
		cmd.Stdin = nil
	}
	return cmd
}
