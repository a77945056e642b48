package cli

import (
	"fmt"
	"strings"
	"time"

	"deltafin/rig"
)

type generateCmd struct {
	promptFlags
	MaxTokens int `default:"64" help:"New tokens at most; 0 computes the prompt only."`
	samplingFlags
	Stop []string `sep:"none" placeholder:"TEXT" help:"End before this text; may be repeated."`
	JSON bool     `name:"json" help:"Print one JSON object: prompt_ids, ids, text, finish, stats."`
	modelFlags
}

func (generateCmd) Help() string {
	return `The text streams to standard output as it is made. Examples:

    deltafin generate "The capital of France is"
    deltafin generate - --max-tokens 200 --temperature 0.8 --seed 7 < prompt.txt
    deltafin generate --ids 1046,1326,289,6434,277 --json`
}

func (c generateCmd) Run(p *process) error {
	q := rig.Request{Stop: c.Stop}
	for _, text := range c.Stop {
		if text == "" {
			return usagef("--stop: expected a text, found an empty one")
		}
	}
	if err := c.samplingFlags.fill(&q, c.MaxTokens); err != nil {
		return err
	}
	if err := c.promptFlags.fill(p, &q); err != nil {
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
	g, err := r.Generate(ctx, q, func(progress rig.Progress) {
		status.prefill(progress.PrefillDone, progress.PrefillTotal, began)
		if progress.Text != "" && !c.JSON {
			status.clear()
			p.print(progress.Text)
		}
	})
	status.clear()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := p.printJSON(g); err != nil {
			return err
		}
	} else {
		if g.Text != "" && !strings.HasSuffix(g.Text, "\n") {
			p.print("\n")
		}
		p.summarize(g)
	}
	if g.Finish == rig.FinishInterrupted {
		return errInterrupted
	}
	return nil
}

// summary is how a generation went, in one line.
func summary(g *rig.Generation) string {
	s := g.Stats
	var line string
	known := s.ReusedTokens + s.PrefilledTokens
	switch {
	case known < s.PromptTokens: // only an interrupt leaves tokens of the prompt
		line = fmt.Sprintf("%d of %s computed", known, count(s.PromptTokens, "prompt token"))
	case s.Tokens == 0:
		line = count(s.PromptTokens, "prompt token")
	default:
		line = fmt.Sprintf("%s after %d", count(s.Tokens, "token"), s.PromptTokens)
	}
	if s.ReusedTokens > 0 {
		line += fmt.Sprintf(" (%d kept)", s.ReusedTokens)
	}
	switch {
	case s.Tokens == 1:
		line += fmt.Sprintf(", in %.2f s", s.TTFTSeconds)
	case s.Tokens > 1:
		line += fmt.Sprintf(", first in %.2f s, then %.1f tokens/s", s.TTFTSeconds, s.DecodeTokensPerS)
	}
	if s.LoadSeconds > 0 {
		line += fmt.Sprintf(", loaded in %.2f s", s.LoadSeconds)
	}
	switch g.Finish {
	case rig.FinishStop:
		line += ", ended by the model"
	case rig.FinishStopString:
		line += ", ended by a stop text"
	case rig.FinishLength:
		line += ", ended by the limit"
	case rig.FinishInterrupted:
		line += ", interrupted"
	}
	return line
}

// summarize says on a terminal how a generation went.
func (p *process) summarize(g *rig.Generation) {
	if !p.watched {
		return
	}
	fmt.Fprintln(p.stderr, p.faint(summary(g)))
}
