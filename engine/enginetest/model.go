// Package enginetest makes small random K3 checkpoints for tests: every kind of
// layer and tensor of the released one, at sizes of the test's choosing.
package enginetest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"deltafin/checkpoint"
	"deltafin/engine"
)

// Small is a model of a few layers in which every size differs from every other:
// three heads, a dense layer and two MLA layers in a row at the end.
func Small() engine.Config {
	return engine.Config{
		VocabSize: 512, HiddenSize: 48, NumHiddenLayers: 6, NumAttentionHeads: 3, IntermediateSize: 80,
		FirstKDenseReplace: 1, MoELayerFreq: 1, NumExperts: 12, NumExpertsPerToken: 4, NumSharedExperts: 2,
		MoEIntermediateSize: 32, RoutedExpertHiddenSize: 64, LatentMoEUseNorm: true, MoERenormalize: true,
		MoERouterActivation: "sigmoid", RoutedScalingFactor: 1.5, NumExpertGroup: 1, TopKGroup: 1, TopKMethod: "noaux_tc",
		AttnResBlockSize: 2, HiddenAct: "situ", SiTUBeta: 4, SiTULinearBeta: 25, QLoRARank: 24, KVLoRARank: 20,
		QKNopeHeadDim: 16, QKRopeHeadDim: 8, VHeadDim: 12, MLAUseNoPE: true, MLAUseOutputGate: true,
		LinearAttn: engine.LinearAttnConfig{
			KDALayers: []int{1, 2, 4}, FullAttnLayers: []int{3, 5, 6}, NumHeads: 3, HeadDim: 16,
			ShortConvKernelSize: 4, GateLowerBound: -5, UseFullRankGate: true,
		},
		RMSNormEps: 1e-5, MaxPositionEmbeddings: 1 << 20, BOSTokenID: 256, EOSTokenID: 258, PadTokenID: 511,
	}
}

// Wide is a model with K3's own head sizes.
func Wide() engine.Config {
	c := Small()
	c.HiddenSize, c.NumHiddenLayers, c.NumExperts, c.NumExpertsPerToken = 96, 9, 20, 6
	c.AttnResBlockSize, c.QLoRARank, c.KVLoRARank = 3, 48, 32
	c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim = 128, 64, 128
	c.MoEIntermediateSize, c.RoutedExpertHiddenSize = 64, 64
	c.LinearAttn.HeadDim = 128
	c.LinearAttn.KDALayers, c.LinearAttn.FullAttnLayers = []int{1, 2, 3, 5, 6, 7}, []int{4, 8, 9}
	return c
}

// Tensors are a random checkpoint's, named as in the released one, in an order that
// is nobody's.
func Tensors(c engine.Config, seed uint64) []checkpoint.Tensor {
	b := &builder{r: rand.New(rand.NewPCG(seed, 0))}
	b.model(c)
	tensors := make([]checkpoint.Tensor, len(b.planned))
	for i, t := range b.planned {
		tensors[i] = checkpoint.Tensor{Name: t.name, DType: t.dtype, Shape: t.shape, Data: make([]byte, t.size)}
		t.fill(tensors[i].Data)
	}
	b.r.Shuffle(len(tensors), func(i, j int) { tensors[i], tensors[j] = tensors[j], tensors[i] })
	return tensors
}

// model plans all of c's tensors.
func (b *builder) model(c engine.Config) {
	h := c.HiddenSize
	b.matrix("model.embed_tokens.weight", 1, c.VocabSize, h)
	b.matrix("lm_head.weight", 1/math.Sqrt(float64(h)), c.VocabSize, h)
	b.norm("model.norm.weight", h)
	b.norm("model.output_attn_res_norm.weight", h)
	b.matrix("model.output_attn_res_proj.weight", .3, 1, h)
	for l := range c.NumHiddenLayers {
		at := fmt.Sprintf("model.layers.%d.", l)
		b.norm(at+"input_layernorm.weight", h)
		b.norm(at+"post_attention_layernorm.weight", h)
		b.norm(at+"self_attention_res_norm.weight", h)
		b.norm(at+"mlp_res_norm.weight", h)
		b.matrix(at+"self_attention_res_proj.weight", .3, 1, h)
		b.matrix(at+"mlp_res_proj.weight", .3, 1, h)
		if c.IsKDA(l) {
			b.kda(at+"self_attn.", &c)
		} else {
			b.mla(at+"self_attn.", &c)
		}
		if c.IsMoE(l) {
			b.moe(at+"block_sparse_moe.", &c)
		} else {
			b.mlp(at+"mlp.", h, c.IntermediateSize)
		}
	}
}

// A builder plans tensors, to be filled in order.
type builder struct {
	r       *rand.Rand
	repeat  int // matrices of more values than this repeat themselves; 0 means none
	planned []plannedTensor
}

type plannedTensor struct {
	name  string
	dtype checkpoint.DType
	shape []int
	size  int // bytes
	fill  func(data []byte)
}

func (b *builder) add(name string, dtype checkpoint.DType, size int, fill func(data []byte), shape ...int) {
	b.planned = append(b.planned, plannedTensor{"language_model." + name, dtype, shape, size, fill})
}

func bf16(v float64) uint16 { return uint16(math.Float32bits(float32(v)) >> 16) }

// matrix is BF16 of the given shape, normally distributed with deviation scale.
func (b *builder) matrix(name string, scale float64, shape ...int) {
	n := 1
	for _, s := range shape {
		n *= s
	}
	b.add(name, "BF16", 2*n, func(data []byte) {
		b.repeated(data, func(data []byte) {
			for i := 0; i < len(data); i += 2 {
				binary.LittleEndian.PutUint16(data[i:], bf16(b.r.NormFloat64()*scale))
			}
		})
	}, shape...)
}

// repeated fills the beginning of a long data and repeats it.
func (b *builder) repeated(data []byte, fill func(data []byte)) {
	if b.repeat == 0 || len(data) <= b.repeat {
		fill(data)
		return
	}
	fill(data[:b.repeat])
	for n := b.repeat; n < len(data); n *= 2 {
		copy(data[n:], data[:n])
	}
}

// linear is a matrix whose outputs have about the deviation of its inputs.
func (b *builder) linear(name string, rows, cols int) {
	b.matrix(name, 1/math.Sqrt(float64(cols)), rows, cols)
}

func (b *builder) norm(name string, n int) {
	b.add(name, "BF16", 2*n, func(data []byte) {
		for i := range n {
			binary.LittleEndian.PutUint16(data[2*i:], bf16(1+.2*b.r.NormFloat64()))
		}
	}, n)
}

func (b *builder) float32s(name string, mean, scale float64, n int) {
	b.add(name, "F32", 4*n, func(data []byte) {
		for i := range n {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(mean+scale*b.r.NormFloat64())))
		}
	}, n)
}

// mx4 is a random MXFP4 matrix: all codes, scales around 1/√cols.
func (b *builder) mx4(name string, rows, cols int) {
	b.add(name+".weight_packed", "U8", rows*cols/2, func(data []byte) {
		b.repeated(data, func(data []byte) {
			for i := range data {
				data[i] = byte(b.r.Uint32())
			}
		})
	}, rows, cols/2)
	middle := 125 - int(math.Log2(float64(cols))/2)
	b.add(name+".weight_scale", "U8", rows*cols/32, func(data []byte) {
		for i := range data {
			data[i] = byte(middle + b.r.IntN(3))
		}
	}, rows, cols/32)
}

func (b *builder) kda(at string, c *engine.Config) {
	h, d, w := c.HiddenSize, c.LinearAttn.HeadDim, c.LinearAttn.NumHeads*c.LinearAttn.HeadDim
	for _, n := range []string{"q", "k", "v"} {
		b.linear(at+n+"_proj.weight", w, h)
		b.matrix(at+n+"_conv1d.weight", .5, w, 1, c.LinearAttn.ShortConvKernelSize)
	}
	b.linear(at+"g_proj.weight", w, h)
	b.linear(at+"f_a_proj.weight", d, h)
	b.linear(at+"f_b_proj.weight", w, d)
	b.linear(at+"b_proj.weight", c.LinearAttn.NumHeads, h)
	b.float32s(at+"A_log", 0, .5, d)
	b.float32s(at+"dt_bias", -2, 1, w)
	b.norm(at+"o_norm.weight", d)
	b.linear(at+"o_proj.weight", h, w)
}

func (b *builder) mla(at string, c *engine.Config) {
	h, n := c.HiddenSize, c.NumAttentionHeads
	b.linear(at+"q_a_proj.weight", c.QLoRARank, h)
	b.norm(at+"q_a_layernorm.weight", c.QLoRARank)
	b.linear(at+"q_b_proj.weight", n*(c.QKNopeHeadDim+c.QKRopeHeadDim), c.QLoRARank)
	b.linear(at+"kv_a_proj_with_mqa.weight", c.KVLoRARank+c.QKRopeHeadDim, h)
	b.norm(at+"kv_a_layernorm.weight", c.KVLoRARank)
	b.linear(at+"kv_b_proj.weight", n*(c.QKNopeHeadDim+c.VHeadDim), c.KVLoRARank)
	b.linear(at+"g_proj.weight", n*c.VHeadDim, h)
	b.linear(at+"o_proj.weight", h, n*c.VHeadDim)
}

func (b *builder) mlp(at string, h, inter int) {
	b.linear(at+"gate_proj.weight", inter, h)
	b.linear(at+"up_proj.weight", inter, h)
	b.linear(at+"down_proj.weight", h, inter)
}

func (b *builder) moe(at string, c *engine.Config) {
	h, latent, inter := c.HiddenSize, c.RoutedExpertHiddenSize, c.MoEIntermediateSize
	b.linear(at+"gate.weight", c.NumExperts, h)
	b.float32s(at+"gate.e_score_correction_bias", 0, .1, c.NumExperts)
	b.linear(at+"routed_expert_down_proj.weight", latent, h)
	b.norm(at+"routed_expert_norm.weight", latent)
	b.linear(at+"routed_expert_up_proj.weight", h, latent)
	b.mlp(at+"shared_experts.", h, c.NumSharedExperts*inter)
	for e := range c.NumExperts {
		b.mx4(fmt.Sprintf("%sexperts.%d.w1", at, e), inter, latent)
		b.mx4(fmt.Sprintf("%sexperts.%d.w3", at, e), inter, latent)
		b.mx4(fmt.Sprintf("%sexperts.%d.w2", at, e), latent, inter)
	}
}

// ConfigJSON is config.json of c, as a map that a test may damage.
func ConfigJSON(c engine.Config) map[string]any {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	var text map[string]any
	if err := json.Unmarshal(data, &text); err != nil {
		panic(err)
	}
	text["quantization_config"] = map[string]any{
		"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
		"config_groups": map[string]any{"group_0": map[string]any{"weights": map[string]any{
			"num_bits": 4, "type": "float", "group_size": 32, "strategy": "group", "symmetric": true,
		}}},
	}
	return map[string]any{"model_type": "kimi_k3", "text_config": text}
}

// Write makes dir a whole model directory: config.json, a tokenizer of the 256
// bytes, and the tensors in shards files (one when 0 or 1).
func Write(dir string, c engine.Config, seed uint64, shards int) error {
	if err := writeJSON(filepath.Join(dir, "config.json"), ConfigJSON(c)); err != nil {
		return err
	}
	base := c.VocabSize - 256
	ranks := make([]byte, 0, base*10)
	for i := range base {
		token := []byte{byte(i)}
		if i >= 256 { // pairs of letters
			token = []byte{'a' + byte(i/26%26), 'a' + byte(i%26)}
		}
		ranks = fmt.Appendf(ranks, "%s %d\n", base64.StdEncoding.EncodeToString(token), i)
	}
	if err := os.WriteFile(filepath.Join(dir, "tiktoken.model"), ranks, 0o644); err != nil {
		return err
	}
	names := map[string]any{}
	for i, name := range []string{"[BOS]", "[EOS]", "<|end_of_msg|>", "<|open|>", "<|close|>", "<|sep|>"} {
		names[fmt.Sprint(base+i)] = map[string]any{"content": name, "special": true}
	}
	if err := writeJSON(filepath.Join(dir, "tokenizer_config.json"), map[string]any{"added_tokens_decoder": names}); err != nil {
		return err
	}
	tensors := Tensors(c, seed)
	if shards <= 1 {
		return checkpoint.Write(filepath.Join(dir, "model.safetensors"), tensors, nil)
	}
	parts := make([][]checkpoint.Tensor, shards)
	for i, t := range tensors {
		parts[i%shards] = append(parts[i%shards], t)
	}
	return checkpoint.WriteSharded(dir, parts, nil)
}

func writeJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
