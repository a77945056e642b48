package cli

import "github.com/alecthomas/kong"

type helpCmd struct {
	Command string `arg:"" optional:"" help:"The command to explain; without it, what deltafin can do."`
}

func (helpCmd) Help() string {
	return `Example:

    deltafin help generate`
}

func (c helpCmd) Run(p *process, parser *kong.Kong) error {
	if c.Command == "" {
		p.print(overview)
		return nil
	}
	if findCommand(parser, c.Command) == nil {
		return usagef("there is no command %s; deltafin --help lists them", c.Command)
	}
	context, err := kong.Trace(parser, []string{c.Command})
	if err != nil {
		return err
	}
	return context.PrintUsage(false)
}
