package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command to explain; without it, what deltafin can do."`
}

func (helpCmd) Help() string {
	return `Example:

    deltafin help generate`
}

func (c helpCmd) Run(p *process, parser *kong.Kong) error {
	if len(c.Command) == 0 {
		p.print(overview)
		return nil
	}
	if findCommand(parser, c.Command...) == nil {
		return usagef("there is no command %s; deltafin --help lists them", strings.Join(c.Command, " "))
	}
	context, err := kong.Trace(parser, c.Command)
	if err != nil {
		return err
	}
	return context.PrintUsage(false)
}
