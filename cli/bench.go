package cli

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"text/tabwriter"

	"deltafin/bench"
)

type benchCmd struct {
	Decode  benchDecodeCmd  `cmd:"" help:"Measure generating: tokens a second after texts of some lengths."`
	Prefill benchPrefillCmd `cmd:"" help:"Measure prompts: tokens a second at some lengths."`
}

func (benchCmd) Help() string {
	return `Medians of some runs with the lowest and the highest; what is compared runs by turns. Examples:

    deltafin bench decode --runs 1 --tokens 4 --contexts 0
    deltafin bench prefill --runs 1 --prompts 16 --ops`
}

// measuredFlags are those of decode and prefill.
type measuredFlags struct {
	Model   string `placeholder:"DIR" help:"Directory of a K3 snapshot (default: DELTAFIN_MODEL, or the embedded nano-k3)."`
	Threads []int  `placeholder:"N,…" help:"Computing threads, an engine for each number (default: 1 and one a CPU)."`
	Runs    int    `default:"5" help:"Measurements of each."`
	Ops     bool   `help:"Time each operation, and print its share."`
	JSON    bool   `name:"json" help:"Print one JSON object: model, device, results."`
}

// options checks the flags; lengths are named so in errors.
func (f measuredFlags) options(p *process, flag string, lengths []int, least int) (bench.ModelOptions, error) {
	threads, err := threadCounts(f.Threads)
	if err != nil {
		return bench.ModelOptions{}, err
	}
	for _, n := range lengths {
		if n < least {
			return bench.ModelOptions{}, usagef("--%s %d: expected %d or more", flag, n, least)
		}
	}
	if err := checkRuns(f.Runs); err != nil {
		return bench.ModelOptions{}, err
	}
	options, err := modelFlags{Model: f.Model}.options(p)
	return bench.ModelOptions{Rig: options, Threads: threads, Tokens: lengths, Runs: f.Runs, Ops: f.Ops}, err
}

// threadCounts are the numbers of threads to measure with: those asked for, or 1 and
// one a CPU.
func threadCounts(asked []int) ([]int, error) {
	if len(asked) == 0 {
		return slices.Compact([]int{1, runtime.GOMAXPROCS(0)}), nil
	}
	for _, n := range asked {
		if n < 1 || n > 1024 {
			return nil, usagef("--threads %d: expected 1 to 1024", n)
		}
	}
	return asked, nil
}

func checkRuns(n int) error {
	if n < 1 {
		return usagef("--runs %d: expected 1 or more", n)
	}
	return nil
}

type benchDecodeCmd struct {
	measuredFlags
	Contexts []int `default:"0,2048" help:"Tokens before those that are measured."`
	Tokens   int   `default:"64" help:"New tokens of a run."`
}

func (benchDecodeCmd) Help() string {
	return `Example:

    deltafin bench decode --runs 1 --tokens 4 --contexts 0 --threads 1`
}

func (c benchDecodeCmd) Run(p *process) error {
	o, err := c.options(p, "contexts", c.Contexts, 0)
	if err != nil {
		return err
	}
	if c.Tokens < 1 {
		return usagef("--tokens %d: expected 1 or more", c.Tokens)
	}
	o.New = c.Tokens
	return p.measure(o, bench.Decode, c.JSON, "context", func(r bench.ModelResult) int { return r.Context })
}

type benchPrefillCmd struct {
	measuredFlags
	Prompts []int `default:"128,512" help:"Lengths of prompts, in tokens."`
}

func (benchPrefillCmd) Help() string {
	return `Example:

    deltafin bench prefill --runs 1 --prompts 16 --threads 1`
}

func (c benchPrefillCmd) Run(p *process) error {
	o, err := c.options(p, "prompts", c.Prompts, 1)
	if err != nil {
		return err
	}
	return p.measure(o, bench.Prefill, c.JSON, "prompt", func(r bench.ModelResult) int { return r.Prompt })
}

// measure runs a measurement of a model and prints it; length is its column.
func (p *process) measure(o bench.ModelOptions, run func(context.Context, bench.ModelOptions) (*bench.ModelReport, error), asJSON bool, length string, of func(bench.ModelResult) int) error {
	ctx, stop := p.interruptible()
	defer stop()
	status := p.status()
	o.Status = status.show
	report, err := run(ctx, o)
	status.clear()
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(report)
	}
	p.printf("%s, %s; tokens/s, the median of %d and the range\n\n", report.Model, report.Device, o.Runs)
	t := p.table()
	fmt.Fprintf(t, "threads\t%s\ttokens/s\tlow\thigh\t\n", length)
	for _, r := range report.Results {
		fmt.Fprintf(t, "%d\t%d\t%.1f\t%.1f\t%.1f\t\n", r.Threads, of(r), r.TokensPerS.Median, r.TokensPerS.Low, r.TokensPerS.High)
	}
	t.Flush()
	for _, r := range report.Results {
		if len(r.Ops) == 0 {
			continue
		}
		p.printf("\n%s, %s %d\n\n", count(r.Threads, "thread"), length, of(r))
		t := p.table()
		fmt.Fprint(t, "share\tµs a call\tcalls\t  operation\n")
		for _, op := range r.Ops {
			fmt.Fprintf(t, "%.1f %%\t%.1f\t%d\t  %s\n", 100*op.Share, 1e6*op.Seconds/float64(max(op.Calls, 1)), op.Calls, op.Op)
		}
		t.Flush()
	}
	return nil
}

// table aligns columns to the right, but for a last one without a tab after it.
func (p *process) table() *tabwriter.Writer {
	return tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
}
