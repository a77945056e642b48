// Package cli is deltafin's command line, a file a command. It is the one package
// that reads the environment, writes to the terminal and chooses the exit status:
// 0 done, 1 failed, 2 wrong usage, 130 interrupted.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"deltafin/engine"

	"github.com/alecthomas/kong"
)

// commands is the grammar of the command line.
type commands struct {
	Install   installCmd   `cmd:"" help:"Install the kernel where Jupyter looks for kernels."`
	Uninstall uninstallCmd `cmd:"" help:"Remove the installed kernel."`
	Kernel    kernelCmd    `cmd:"" help:"Run as a Jupyter kernel (Jupyter starts this)."`
	Generate  generateCmd  `cmd:"" help:"Continue a prompt."`
	Chat      chatCmd      `cmd:"" help:"Ask one question, or hold a conversation."`
	Tokenize  tokenizeCmd  `cmd:"" help:"Turn text into token ids, and back."`
	Trace     traceCmd     `cmd:"" help:"Record which experts each token uses."`
	Synth     synthCmd     `cmd:"" help:"Write a random model of K3's widths, or of yours, to measure with."`
	Bench     benchCmd     `cmd:"" help:"Measure what models and kernels reach on this machine."`
	Doctor    doctorCmd    `cmd:"" help:"Find out what is wrong when something doesn't work."`
	Version   versionCmd   `cmd:"" help:"Print the version, the commit and what computes."`
	Help      helpCmd      `cmd:"" help:"Explain a command, as its --help does."`
	CellChild cellChildCmd `cmd:"" hidden:"" help:"Run cells for a kernel (the kernel starts this)."`
}

const overview = `deltafin keeps a Kimi K3 engine warm in Jupyter: cells are Go, and the model,
its caches and traces outlive them. The same engine runs from the command line.

  deltafin install      install the kernel for Jupyter
  jupyter lab           open a notebook and choose "Go (deltafin)"

Without a notebook:

  deltafin generate "The capital of France is"
  deltafin chat "What is a goroutine?"
  deltafin tokenize "a text"
  deltafin trace "a text" --out routes.jsonl
  deltafin version

When something doesn't work:

  deltafin doctor

deltafin COMMAND --help explains a command, with an example.
`

// UsageError reports a command line that asks for something that can't be meant.
type UsageError struct {
	Problem string // what was found, what was expected
}

func (e *UsageError) Error() string { return e.Problem }

func usagef(format string, args ...any) error {
	return &UsageError{Problem: fmt.Sprintf(format, args...)}
}

// errInterrupted ends a command that the user stopped; what there was is printed.
var errInterrupted = errors.New("interrupted")

// Main runs the command line of this process and returns its exit status.
func Main() int {
	return run(newProcess(), os.Args[1:])
}

func run(p *process, args []string) int {
	if len(args) == 0 {
		p.print(overview)
		return p.exit("", nil)
	}
	var grammar commands
	helped := false // kong calls Exit after it has printed --help
	parser, err := kong.New(&grammar,
		kong.Name("deltafin"),
		kong.Description("A Jupyter kernel that keeps a Kimi K3 engine warm, and the command line around it."),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
		kong.WithHyphenPrefixedParameters(true),
		kong.Bind(p),
	)
	if err != nil {
		panic(err) // the grammar above is wrong
	}
	for _, arg := range args { // the parser would replace what is not UTF-8
		if err := checkUTF8(arg); err != nil {
			command := ""
			if findCommand(parser, args[0]) != nil {
				command = args[0]
			}
			return p.exit(command, err)
		}
	}
	parsed, err := parser.Parse(args)
	if helped {
		return p.exit("", nil)
	}
	if err != nil {
		command := commandOf(err)
		return p.exit(command, usagef("%s", sentence(command, err)))
	}
	return p.exit(parsed.Selected().Path(), parsed.Run())
}

// findCommand is the command of that name, or nil; more names are commands of it.
func findCommand(parser *kong.Kong, names ...string) *kong.Node {
	node := parser.Model.Node
	for _, name := range names {
		at := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name })
		if at < 0 {
			return nil
		}
		node = node.Children[at]
	}
	return node
}

// commandOf names the command whose arguments kong refused, or "".
func commandOf(err error) string {
	var refused *kong.ParseError
	if errors.As(err, &refused) && refused.Context != nil {
		if node := refused.Context.Selected(); node != nil {
			return node.Path()
		}
	}
	return ""
}

// sentence completes kong's terse errors where a user needs the next step too.
func sentence(command string, err error) string {
	text := err.Error()
	argument, unexpected := strings.CutPrefix(text, "unexpected argument ")
	switch {
	case unexpected && command == "":
		return "there is no command " + argument
	case unexpected:
		return text + " (a prompt with spaces goes in quotes)"
	}
	return text
}

// exit reports err, if any, on one line and returns the exit status.
func (p *process) exit(command string, err error) int {
	if err == nil {
		err = p.out.err
	}
	name := strings.TrimSpace("deltafin " + command)
	var usage *UsageError
	var token *engine.TokenError
	if errors.As(err, &token) {
		usage = &UsageError{Problem: err.Error()}
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return 130
	case usage != nil || errors.As(err, &usage):
		fmt.Fprintf(p.stderr, "%s: %s\nRun %s --help for its options.\n", name, usage.Problem, name)
		return 2
	}
	fmt.Fprintf(p.stderr, "%s: %v\n", name, err)
	return 1
}
