package cli

import (
	"fmt"
	"time"

	"deltafin/engine"
	"deltafin/synth"
)

type synthCmd struct {
	Dir string `arg:"" help:"Where to write: a directory that is empty or not there yet."`

	Layers  int    `default:"4" help:"Layers: every fourth and the last with MLA, the others with KDA; the first is dense. K3 has 93."`
	Experts int    `default:"32" help:"Routed experts of a layer. K3 has 896."`
	TopK    int    `default:"16" help:"Routed experts that a token uses."`
	Shared  int    `default:"2" help:"Shared experts."`
	Hidden  int    `default:"7168" help:"Width of the residual stream."`
	Latent  int    `default:"3584" help:"Width that routed experts see, a multiple of 32."`
	Inter   int    `default:"3072" help:"Inner width of an expert, a multiple of 32."`
	Dense   int    `default:"33792" help:"Inner width of the first layer."`
	Heads   int    `default:"96" help:"Attention heads, of KDA and of MLA; no more than --head-dim."`
	HeadDim int    `default:"128" help:"Width of a head."`
	Rope    int    `default:"64" help:"Width of MLA's shared key."`
	QRank   int    `default:"1536" help:"Rank of MLA's queries."`
	KVRank  int    `name:"kv-rank" default:"512" help:"Rank of MLA's keys and values."`
	Block   int    `default:"12" help:"Layers of an attention residual's block."`
	Vocab   int    `default:"163840" help:"Token ids, 256 of them special."`
	Seed    uint64 `default:"0" help:"The same seed gives the same files."`
	DryRun  bool   `help:"Print the size and write nothing."`
	JSON    bool   `name:"json" help:"Print one JSON object: dir, bytes, layers, experts, seconds."`
}

func (synthCmd) Help() string {
	return `The model says nothing sensible: it is for measuring real reads and real matrix sizes. Its
widths are K3's. Its layers and experts are as many as a laptop holds, 12 GB on the disk; all of
K3's are 1.5 TB. Routes spread evenly over all experts; other routes can't be asked for yet.
Examples:

    deltafin synth --dry-run --layers 93 --experts 896 models/all
    deltafin synth models/tiny --layers 5 --hidden 64 --latent 64 --inter 32 --dense 96 --heads 2 --head-dim 32 --rope 16 --q-rank 48 --kv-rank 32 --block 2 --vocab 1024`
}

// synthBounds are the sizes that a model may have.
const (
	synthMaxWidth   = 1 << 17
	synthMaxLayers  = 1024
	synthMaxExperts = 8192
	synthMaxVocab   = 1 << 20
)

// config is the model that the flags ask for, each checked.
func (c synthCmd) config() (engine.Config, error) {
	for _, size := range []struct {
		flag               string
		value, least, most int
		multiple           int
	}{
		{"layers", c.Layers, 1, synthMaxLayers, 1},
		{"experts", c.Experts, 1, synthMaxExperts, 1},
		{"top-k", c.TopK, 1, c.Experts, 1},
		{"shared", c.Shared, 1, 64, 1},
		{"hidden", c.Hidden, 1, synthMaxWidth, 1},
		{"latent", c.Latent, 32, synthMaxWidth, 32},
		{"inter", c.Inter, 32, synthMaxWidth, 32},
		{"dense", c.Dense, 1, synthMaxWidth, 1},
		{"head-dim", c.HeadDim, 1, 4096, 1},
		{"heads", c.Heads, 1, min(c.HeadDim, 1024), 1},
		{"rope", c.Rope, 1, 4096, 1},
		{"q-rank", c.QRank, 1, synthMaxWidth, 1},
		{"kv-rank", c.KVRank, 1, synthMaxWidth, 1},
		{"block", c.Block, 1, synthMaxLayers, 1},
		{"vocab", c.Vocab, 512, synthMaxVocab, 1},
	} {
		if size.value < size.least || size.value > size.most || size.value%size.multiple != 0 {
			want := fmt.Sprintf("%d to %d", size.least, size.most)
			switch {
			case size.multiple > 1:
				want = fmt.Sprintf("a multiple of %d, %s", size.multiple, want)
			case size.flag == "top-k":
				want += ", the number of --experts"
			case size.flag == "heads" && size.most == c.HeadDim:
				want += ", the --head-dim"
			}
			return engine.Config{}, usagef("--%s %d: expected %s", size.flag, size.value, want)
		}
	}
	m := synth.WithVocab(synth.K3(c.Layers, c.Experts), c.Vocab)
	m.NumExpertsPerToken, m.NumSharedExperts = c.TopK, c.Shared
	m.HiddenSize, m.RoutedExpertHiddenSize, m.MoEIntermediateSize, m.IntermediateSize = c.Hidden, c.Latent, c.Inter, c.Dense
	m.NumAttentionHeads, m.LinearAttn.NumHeads = c.Heads, c.Heads
	m.LinearAttn.HeadDim, m.QKNopeHeadDim, m.VHeadDim, m.QKRopeHeadDim = c.HeadDim, c.HeadDim, c.HeadDim, c.Rope
	m.QLoRARank, m.KVLoRARank, m.AttnResBlockSize = c.QRank, c.KVRank, c.Block
	return m, nil
}

// synthesized is what synth did, or with --dry-run would do.
type synthesized struct {
	Dir     string  `json:"dir"`
	Bytes   int64   `json:"bytes"` // of tensors
	Layers  int     `json:"layers"`
	Experts int     `json:"experts"` // of a layer
	Seconds float64 `json:"seconds"`
}

func (c synthCmd) Run(p *process) error {
	config, err := c.config()
	if err != nil {
		return err
	}
	did := synthesized{Dir: c.Dir, Bytes: synth.Bytes(config), Layers: c.Layers, Experts: c.Experts}
	if !c.DryRun {
		ctx, stop := p.interruptible()
		defer stop()
		status, began := p.status(), time.Now()
		err := synth.Write(ctx, c.Dir, config, synth.Options{Seed: c.Seed, Progress: func(done, total int64) {
			status.bytes("written", done, total, began)
		}})
		status.clear()
		if err != nil {
			return err
		}
		did.Seconds = time.Since(began).Seconds()
	}
	switch {
	case c.JSON:
		return p.printJSON(did)
	case c.DryRun:
		p.printf("%s: %s with %s each would take %.2f GB\n", c.Dir, count(c.Layers, "layer"), count(c.Experts, "expert"), float64(did.Bytes)/1e9)
	default:
		p.printf("%s: %s with %s each, %.2f GB in %.1f s\n", c.Dir, count(c.Layers, "layer"), count(c.Experts, "expert"), float64(did.Bytes)/1e9, did.Seconds)
	}
	return nil
}
