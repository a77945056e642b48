package cli

import (
	"context"

	"deltafin/rig"
)

// modelFlags choose the model and what computes it.
type modelFlags struct {
	Model   string `placeholder:"DIR" help:"Directory of a K3 snapshot (default: DELTAFIN_MODEL, or the embedded nano-k3)."`
	Threads int    `placeholder:"N" help:"Computing threads (default: one a CPU)."`
	Spine   string `placeholder:"FORMAT" help:"How all weights but the routed experts are kept: bf16, as stored (default), or bf12, packed at load without loss in three quarters of the memory."`
}

func (f modelFlags) options(p *process) (rig.Options, error) {
	if f.Threads < 0 {
		return rig.Options{}, usagef("--threads %d: expected 1 or more, or 0 for one a CPU", f.Threads)
	}
	if f.Spine != "" && f.Spine != "bf16" && f.Spine != "bf12" {
		return rig.Options{}, usagef("--spine %s: expected bf16 (as stored) or bf12 (packed without loss)", f.Spine)
	}
	model := f.Model
	if model == "" {
		model = p.env("DELTAFIN_MODEL")
	}
	cache, _ := p.cacheDir() // where none is known, the embedded model is unpacked into memory
	return rig.Options{Model: model, Threads: f.Threads, Spine: f.Spine, CacheDir: cache}, nil
}

// open loads the model, saying so on a terminal.
func (f modelFlags) open(ctx context.Context, p *process) (*rig.Rig, error) {
	options, err := f.options(p)
	if err != nil {
		return nil, err
	}
	status := p.status()
	status.show("loading the model")
	defer status.clear()
	return rig.Open(ctx, options)
}
