package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"deltafin/bench"
	"deltafin/metal/cpu"
)

type benchCmd struct {
	Decode  benchDecodeCmd  `cmd:"" help:"Measure generating: tokens a second after texts of some lengths."`
	Prefill benchPrefillCmd `cmd:"" help:"Measure prompts: tokens a second at some lengths."`
	Kernels benchKernelsCmd `cmd:"" help:"Measure the operations at K3's sizes against this machine's limits."`
}

func (benchCmd) Help() string {
	return `Medians of some runs with the lowest and the highest; what is compared runs by turns. Examples:

    deltafin bench decode --runs 1 --tokens 4 --contexts 0
    deltafin bench prefill --runs 1 --prompts 16 --ops
    deltafin bench kernels --runs 1 --op rmsnorm --rows 1`
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
		n, _ := cpu.Processors()
		return slices.Compact([]int{1, n}), nil
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

type benchKernelsCmd struct {
	Op      []string `placeholder:"NAME,…" help:"Operations: parts of their names as the table has them, such as 'matmul mx4' (default: all)."`
	Level   []string `placeholder:"NAME,…" help:"Instruction sets (default: all that this CPU has)."`
	Threads []int    `placeholder:"N,…" help:"Computing threads (default: 1 and one a CPU)."`
	Rows    []int    `default:"1,4,16,64,512" help:"Rows at once."`
	Runs    int      `default:"5" help:"Measurements of each."`
	JSON    bool     `name:"json" help:"Print one JSON object: caches, limits, results."`
}

func (benchKernelsCmd) Help() string {
	return `Weights come from memory: calls go through several matrices in turn, more than a cache holds. The
share is of the least time that the machine's limits allow, which are measured first. A time with ~
is of a part of the operation, in proportion. All of it takes some minutes. Examples:

    deltafin bench kernels --runs 1 --op "matmul mx4 3072" --rows 1 --threads 1
    deltafin bench kernels --runs 1 --op route --rows 1,16 --level portable --json`
}

func (c benchKernelsCmd) Run(p *process) error {
	threads, err := threadCounts(c.Threads)
	if err != nil {
		return err
	}
	if err := checkRuns(c.Runs); err != nil {
		return err
	}
	for _, n := range c.Rows {
		if n < 1 || n > 4096 {
			return usagef("--rows %d: expected 1 to 4096", n)
		}
	}
	names := bench.Operations()
	for _, asked := range c.Op {
		if !slices.ContainsFunc(names, func(name string) bool { return bench.Matches(name, asked) }) {
			return usagef("--op %s: expected a part of one of these:\n  %s", asked, strings.Join(names, "\n  "))
		}
	}
	var levels []string
	for _, asked := range c.Level {
		at := slices.IndexFunc(cpu.Levels(), func(level string) bool { return strings.EqualFold(level, asked) })
		if at < 0 {
			return usagef("--level %s: expected one of this CPU's: %s", asked, strings.Join(cpu.Levels(), ", "))
		}
		levels = append(levels, cpu.Levels()[at])
	}
	ctx, stop := p.interruptible()
	defer stop()
	status := p.status()
	report, err := bench.Kernels(ctx, bench.KernelOptions{
		Ops: c.Op, Levels: levels, Threads: threads, Rows: c.Rows, Runs: c.Runs, Memory: availableMemory() / 2, Status: status.show,
	})
	status.clear()
	if err != nil && (!errors.Is(err, context.Canceled) || report == nil) {
		return err
	}
	if c.JSON {
		return errors.Join(err, p.printJSON(report))
	}
	p.kernels(report)
	return err
}

func (p *process) kernels(report *bench.KernelReport) {
	t := p.table()
	fmt.Fprint(t, "limit\tthreads\tGFLOP/s\tGB/s from L1\tL2\tL3\tDRAM\t\n")
	for _, l := range report.Limits {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t", l.Level, l.Threads, l.GFLOPS)
		for _, r := range l.Reads {
			fmt.Fprintf(t, "%.1f\t", r.GBps)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	p.print("\n")
	t = p.table()
	fmt.Fprint(t, "level\tthreads\trows\tµs\tlow\thigh\tGFLOP/s\tGB/s\tshare\tof\t  operation\n")
	for _, r := range report.Results {
		part, flops, of := "", "", "FMA"
		if r.Part < 1 {
			part = "~"
		}
		if r.GFLOPS > 0 {
			flops = fmt.Sprintf("%.1f", r.GFLOPS)
		}
		if r.Bound == "memory" {
			of = r.From
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s%.1f\t%.1f\t%.1f\t%s\t%.1f\t%.1f %%\t%s\t  %s %s\n",
			r.Level, r.Threads, r.Rows, part, 1e6*r.Seconds.Median, 1e6*r.Seconds.Low, 1e6*r.Seconds.High, flops, r.GBps, 100*r.Share, of, r.Op, r.Shape)
	}
	t.Flush()
}

// measure runs a measurement of a model and prints it; length is its column.
func (p *process) measure(o bench.ModelOptions, run func(context.Context, bench.ModelOptions) (*bench.ModelReport, error), asJSON bool, length string, of func(bench.ModelResult) int) error {
	ctx, stop := p.interruptible()
	defer stop()
	status := p.status()
	o.Status = status.show
	report, err := run(ctx, o)
	status.clear()
	if err != nil && (!errors.Is(err, context.Canceled) || report == nil) {
		return err
	}
	if asJSON {
		return errors.Join(err, p.printJSON(report))
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
	return err
}

// table aligns columns to the right, but for a last one without a tab after it.
func (p *process) table() *tabwriter.Writer {
	return tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
}
