package cli

import (
	"fmt"
	"io"
	"os"
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
    deltafin trace --ids 1008,10484 --tensors forward.safetensors`
}

// traceSummary is what trace --json prints.
type traceSummary struct {
	Model   string         `json:"model"`
	Tokens  int            `json:"tokens"`
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
	ctx, stop := p.interruptible()
	defer stop()
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
	if err := c.write(p, routes); err != nil {
		return err
	}
	if c.Tensors != "" && g.Finish != rig.FinishInterrupted {
		if err := r.Tensors(ctx, g.PromptIDs, c.Tensors); err != nil {
			return err
		}
	}
	if g.Finish == rig.FinishInterrupted {
		return errInterrupted
	}
	return nil
}

// write gives routes to --out and the summary to standard output.
func (c traceCmd) write(p *process, routes *trace.Trace) error {
	if c.Out == "-" {
		return routes.Write(p.stdout)
	}
	if c.Out != "" {
		if err := writeFile(c.Out, routes.Write); err != nil {
			return err
		}
	}
	summary := summarizeTrace(routes)
	if c.JSON {
		return p.printJSON(summary)
	}
	p.printf("%s: %d tokens, %d layers, %d of %d experts a token\n",
		summary.Model, summary.Tokens, len(summary.Layers), summary.TopK, summary.Experts)
	p.printf("%5s  %12s  %s\n", "layer", "experts used", "kept from the token before")
	for _, layer := range summary.Layers {
		p.printf("%5d  %12d  %.0f %%\n", layer.Layer, layer.Distinct, 100*layer.Reuse)
	}
	return nil
}

func summarizeTrace(routes *trace.Trace) traceSummary {
	s := traceSummary{Model: routes.Model, Tokens: len(routes.Tokens), Experts: routes.Experts, TopK: routes.TopK}
	distinct, reuse := routes.Distinct(), routes.Reuse()
	for i, layer := range routes.Layers {
		s.Layers = append(s.Layers, layerSummary{layer, distinct[i], reuse[i]})
	}
	return s
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
