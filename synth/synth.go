// Package synth writes random models in K3's checkpoint format: config.json, a
// tokenizer, and shards with every tensor of the released model, of any number of
// layers and experts and of any widths. They say nothing sensible; they are for
// measuring real reads and real matrix sizes where the released weights are not.
//
// Spine weights are BF16, normal with a deviation of each matrix's own, so that
// their exponents are distributed as a trained model's. Routed experts are MXFP4 as
// a quantizer makes them of normal weights. Activations stay finite, and since
// every expert's row of the router is drawn alike, routes spread over all experts.
package synth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/internal/disk"
	"deltafin/tokenizer"
)

// K3 is the released model's configuration, but for its number of layers and experts.
func K3(layers, experts int) engine.Config {
	c := engine.Config{
		HiddenSize: 7168, NumHiddenLayers: layers, NumAttentionHeads: 96, IntermediateSize: 33792,
		FirstKDenseReplace: 1, MoELayerFreq: 1, NumExperts: experts, NumExpertsPerToken: 16, NumSharedExperts: 2,
		MoEIntermediateSize: 3072, RoutedExpertHiddenSize: 3584, LatentMoEUseNorm: true, MoERenormalize: true,
		MoERouterActivation: "sigmoid", RoutedScalingFactor: 1, NumExpertGroup: 1, TopKGroup: 1, TopKMethod: "noaux_tc",
		AttnResBlockSize: 12, HiddenAct: "situ", SiTUBeta: 4, SiTULinearBeta: 25, QLoRARank: 1536, KVLoRARank: 512,
		QKNopeHeadDim: 128, QKRopeHeadDim: 64, VHeadDim: 128, MLAUseNoPE: true, MLAUseOutputGate: true,
		LinearAttn: engine.LinearAttnConfig{NumHeads: 96, HeadDim: 128, ShortConvKernelSize: 4, GateLowerBound: -5, UseFullRankGate: true},
		RMSNormEps: 1e-5, MaxPositionEmbeddings: 1 << 20,
	}
	c.LinearAttn.KDALayers, c.LinearAttn.FullAttnLayers = []int{}, []int{}
	for l := 1; l <= layers; l++ { // every fourth, and the last
		if l%4 == 0 || l == layers {
			c.LinearAttn.FullAttnLayers = append(c.LinearAttn.FullAttnLayers, l)
		} else {
			c.LinearAttn.KDALayers = append(c.LinearAttn.KDALayers, l)
		}
	}
	return WithVocab(c, 163840)
}

// WithVocab is c with another number of token ids, of which the last 256 are special.
func WithVocab(c engine.Config, vocab int) engine.Config {
	base := vocab - tokenizer.SpecialCount
	c.VocabSize = vocab
	c.BOSTokenID, c.EOSTokenID, c.PadTokenID = base, base+2, vocab-1
	return c
}

// Bytes is the size of c's tensors.
func Bytes(c engine.Config) int64 {
	sum := func(tensors []tensor) (n int64) {
		for i := range tensors {
			n += tensors[i].bytes()
		}
		return n
	}
	n := sum(outer(&c))
	sizes := map[[2]bool]int64{} // a layer's depends on its kinds alone
	for l := range c.NumHiddenLayers {
		kind := [2]bool{c.IsKDA(l), c.IsMoE(l)}
		if _, known := sizes[kind]; !known {
			sizes[kind] = sum(layer(&c, l))
		}
		n += sizes[kind]
	}
	return n
}

// A SpaceError is a disk that has too little space for a model.
type SpaceError struct {
	Dir         string
	Bytes, Free int64
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: want %s for the model, got %s free; choose fewer layers or experts, or another disk", e.Dir, gigabytes(e.Bytes), gigabytes(e.Free))
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

// A DirError is a directory that a model can't be written to.
type DirError struct{ Dir, Got string }

func (e *DirError) Error() string {
	return fmt.Sprintf("%s: want a directory that is empty or not there yet, got %s; choose another", e.Dir, e.Got)
}

// Options says how Write goes about it.
type Options struct {
	Seed     uint64                     // equal seeds give equal files
	Progress func(done, total int64)    // bytes of tensors; nil tells nobody. It is called often
	free     func(string) (int64, bool) // for tests; nil means disk.Free
}

// Write writes a random model of configuration c to dir, which it makes, or which is
// empty. Tensors are drawn while they are written: whatever the model's size, a few
// megabytes are in memory, and the names of its tensors.
//
// The error is an *engine.ConfigError, a *DirError or a *SpaceError before anything is
// written. After any other, the context's too, nothing is left of what was written.
func Write(ctx context.Context, dir string, c engine.Config, o Options) (err error) {
	config, err := configJSON(c)
	if err != nil {
		return err
	}
	if _, err := engine.ParseConfig(filepath.Join(dir, "config.json"), config); err != nil {
		return err
	}
	made, err := prepare(dir)
	if err != nil {
		return err
	}
	shards := c.NumHiddenLayers + 1 // a layer each, and one for the rest
	defer func() {
		if err != nil {
			err = errors.Join(err, cleanUp(dir, made, shards))
		}
	}()
	total := Bytes(c)
	if o.free == nil {
		o.free = disk.Free
	}
	if free, known := o.free(dir); known && free < total+total/100 {
		return &SpaceError{Dir: dir, Bytes: total, Free: free}
	}
	base := c.VocabSize - tokenizer.SpecialCount
	for name, data := range map[string][]byte{"config.json": config, "tiktoken.model": ranks(base), "tokenizer_config.json": specials(base)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	var done int64
	w := &writer{ctx: ctx, seed: o.Seed, mx4: map[float64]*mx4Tables{}, wrote: func(n int) {
		done += int64(n)
		if o.Progress != nil {
			o.Progress(done, total)
		}
	}}
	return checkpoint.WriteStreams(dir, shards, func(i int) []checkpoint.Stream {
		tensors := outer(&c)
		if i < c.NumHiddenLayers {
			tensors = layer(&c, i)
		}
		return w.streams(tensors)
	}, map[string]string{"format": "pt"})
}

// prepare makes dir unless it is there and empty, with the directories above it, and
// gives those that it made, the innermost first.
func prepare(dir string) (made []string, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
			if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
				break
			}
			made = append(made, at)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, errors.Join(err, remove(made))
		}
		return made, nil
	case err != nil:
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return nil, &DirError{dir, "a file"}
		}
		return nil, err
	case len(entries) > 0:
		return nil, &DirError{dir, fmt.Sprintf("%d entries, such as %s", len(entries), entries[0].Name())}
	}
	return nil, nil
}

// remove removes files and empty directories, those that are there.
func remove(paths []string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// cleanUp removes what Write wrote, and the directories that it made.
func cleanUp(dir string, made []string, shards int) error {
	names := []string{"config.json", "tiktoken.model", "tokenizer_config.json", checkpoint.IndexFile}
	for i := range shards {
		names = append(names, checkpoint.ShardFile(i, shards))
	}
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return remove(append(names, made...))
}

// configJSON is config.json of c.
func configJSON(c engine.Config) ([]byte, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var text map[string]any
	if err := json.Unmarshal(data, &text); err != nil {
		return nil, err
	}
	text["model_type"], text["dtype"] = "kimi_linear", "bfloat16"
	text["quantization_config"] = map[string]any{
		"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
		"config_groups": map[string]any{"group_0": map[string]any{"targets": []string{"Linear"}, "weights": map[string]any{
			"num_bits": 4, "type": "float", "group_size": group, "strategy": "group", "symmetric": true,
		}}},
	}
	return json.MarshalIndent(map[string]any{"model_type": "kimi_k3", "dtype": "bfloat16", "text_config": text}, "", " ")
}
