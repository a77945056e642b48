package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"deltafin/rig"
	"deltafin/trace"
)

type traceCmd struct {
	promptFlags
	MaxTokens int    `default:"0" help:"New tokens to trace after the prompt."`
	Out       string `placeholder:"F.jsonl" help:"Write the routes, a line a token; - writes to standard output."`
	Tensors   string `placeholder:"F.safetensors" help:"Write ids, logits, residual, route_ids and route_weights."`
	JSON      bool   `name:"json" help:"Print the summary as one JSON object."`
	modelFlags
}

func (traceCmd) Help() string {
	return `Prints how the router spread its choices over the experts. Examples:

    deltafin trace "The capital of France is"
    deltafin trace "The capital of France is" --max-tokens 32 --out routes.jsonl
    deltafin trace --ids 1046,1326,289,6434,277 --tensors forward.safetensors`
}

// traceSummary is what trace --json prints.
type traceSummary struct {
	Model   string         `json:"model"`
	Tokens  int            `json:"tokens"` // traced: of an interrupted prompt fewer than it has
	Finish  rig.Finish     `json:"finish"`
	Experts int            `json:"experts"`
	TopK    int            `json:"top_k"`
	Layers  []layerSummary `json:"layers"`
}

type layerSummary struct {
	Layer    int     `json:"layer"`
	Distinct int     `json:"distinct"` // experts used at least once
	Reuse    float64 `json:"reuse"`    // share of a token's experts that the token before used
}

func (c traceCmd) Run(p *process) error {
	q := rig.Request{MaxTokens: c.MaxTokens, Fresh: true}
	switch {
	case c.MaxTokens < 0:
		return usagef("--max-tokens %d: expected 0 (trace the prompt only) or more", c.MaxTokens)
	case c.Tensors != "" && c.MaxTokens > 0:
		return usagef("--tensors writes the prompt's tensors; it does not go with --max-tokens")
	case c.Out == "-" && c.JSON:
		return usagef("--out - and --json both write to standard output; choose one")
	}
	if err := c.fill(p, &q); err != nil {
		return err
	}
	if err := c.checkFiles(); err != nil {
		return err
	}
	ctx, stop := p.interruptible()
	defer stop()
	var missing []string // files asked for and not yet written
	for _, name := range []string{c.Out, c.Tensors} {
		if name != "" && name != "-" {
			missing = append(missing, name)
		}
	}
	wrote := func(name string) {
		missing = slices.DeleteFunc(missing, func(other string) bool { return other == name })
	}
	err := c.trace(ctx, p, q, wrote)
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		for _, name := range missing {
			fmt.Fprintf(p.stderr, "deltafin trace: interrupted before %s could be written\n", name)
		}
	}
	return err
}

// trace does what the flags say, and tells wrote of each file.
func (c traceCmd) trace(ctx context.Context, p *process, q rig.Request, wrote func(name string)) error {
	r, err := c.open(ctx, p)
	if err != nil {
		return err
	}
	defer r.Close()

	status, began := p.status(), time.Now()
	g, routes, err := r.Trace(ctx, q, func(progress rig.Progress) {
		status.prefill(progress.PrefillDone, progress.PrefillTotal, began)
	})
	status.clear()
	if err != nil {
		return err
	}
	if g.Finish == rig.FinishInterrupted && len(routes.Tokens) == 0 {
		return errInterrupted
	}
	if err := c.write(p, routes, g.Finish); err != nil {
		return err
	}
	wrote(c.Out)
	if c.Tensors != "" && g.Finish != rig.FinishInterrupted {
		if err := r.Tensors(ctx, g.PromptIDs, c.Tensors); err != nil {
			return err
		}
		wrote(c.Tensors)
	}
	if g.Finish == rig.FinishInterrupted {
		return errInterrupted
	}
	return nil
}

// write gives routes to --out and the summary to standard output.
func (c traceCmd) write(p *process, routes *trace.Trace, finish rig.Finish) error {
	if c.Out == "-" {
		return routes.Write(p.stdout)
	}
	if c.Out != "" {
		if err := writeFile(c.Out, routes.Write); err != nil {
			return err
		}
	}
	summary := summarizeTrace(routes, finish)
	if c.JSON {
		return p.printJSON(summary)
	}
	ended := ""
	if finish == rig.FinishInterrupted {
		ended = ", interrupted"
	}
	p.printf("%s: %s, %s, %d of %d experts a token%s\n", summary.Model,
		count(summary.Tokens, "token"), count(len(summary.Layers), "layer"), summary.TopK, summary.Experts, ended)
	p.printf("%5s  %12s  %s\n", "layer", "experts used", "kept from the token before")
	for _, layer := range summary.Layers {
		p.printf("%5d  %12d  %.0f %%\n", layer.Layer, layer.Distinct, 100*layer.Reuse)
	}
	return nil
}

func summarizeTrace(routes *trace.Trace, finish rig.Finish) traceSummary {
	s := traceSummary{Model: routes.Model, Tokens: len(routes.Tokens), Finish: finish, Experts: routes.Experts, TopK: routes.TopK}
	distinct, reuse := routes.Distinct(), routes.Reuse()
	for i, layer := range routes.Layers {
		s.Layers = append(s.Layers, layerSummary{layer, distinct[i], reuse[i]})
	}
	return s
}

// checkFiles finds out before the computation whether its files can be written.
// Those that are there stay as they are.
func (c traceCmd) checkFiles() error {
	if c.Out != "" && c.Out != "-" {
		if err := checkCreate(c.Out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if c.Tensors == "" {
		return nil
	}
	if info, err := os.Stat(c.Tensors); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--tensors: %s: want a file to write or replace, found %s", c.Tensors, kindOf(info))
	}
	dir, base := filepath.Split(c.Tensors) // the file arrives there by rename
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base+".*")
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return fmt.Errorf("--tensors: %s: %w", c.Tensors, path.Err)
	} else if err != nil {
		return fmt.Errorf("--tensors: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkCreate reports why writeFile couldn't write name.
func checkCreate(name string) error {
	info, err := os.Stat(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // to open a pipe would wait for its reader
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = f.Close()
	if isNew {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// kindOf names what is no ordinary file.
func kindOf(info fs.FileInfo) string {
	if info.IsDir() {
		return "a directory"
	}
	return "a device or pipe"
}

// writeFile creates name, or empties it, and writes it.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	return f.Close()
}
