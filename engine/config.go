package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Config is what the engine takes from config.json's text_config, by the
// checkpoint's field names. ReadConfig refuses a file in which one of these is
// missing or has a value that the engine does not compute.
type Config struct {
	VocabSize              int              `json:"vocab_size"`
	HiddenSize             int              `json:"hidden_size"`
	NumHiddenLayers        int              `json:"num_hidden_layers"`
	NumAttentionHeads      int              `json:"num_attention_heads"`
	IntermediateSize       int              `json:"intermediate_size"`
	FirstKDenseReplace     int              `json:"first_k_dense_replace"`
	MoELayerFreq           int              `json:"moe_layer_freq"`
	NumExperts             int              `json:"num_experts"`
	NumExpertsPerToken     int              `json:"num_experts_per_token"`
	NumSharedExperts       int              `json:"num_shared_experts"`
	MoEIntermediateSize    int              `json:"moe_intermediate_size"`
	RoutedExpertHiddenSize int              `json:"routed_expert_hidden_size"`
	LatentMoEUseNorm       bool             `json:"latent_moe_use_norm"`
	MoERenormalize         bool             `json:"moe_renormalize"`
	MoERouterActivation    string           `json:"moe_router_activation_func"`
	RoutedScalingFactor    float64          `json:"routed_scaling_factor"`
	NumExpertGroup         int              `json:"num_expert_group"`
	TopKGroup              int              `json:"topk_group"`
	TopKMethod             string           `json:"topk_method"`
	AttnResBlockSize       int              `json:"attn_res_block_size"`
	HiddenAct              string           `json:"hidden_act"`
	SiTUBeta               float64          `json:"activation_situ_beta"`
	SiTULinearBeta         float64          `json:"activation_situ_linear_beta"`
	QLoRARank              int              `json:"q_lora_rank"`
	KVLoRARank             int              `json:"kv_lora_rank"`
	QKNopeHeadDim          int              `json:"qk_nope_head_dim"`
	QKRopeHeadDim          int              `json:"qk_rope_head_dim"`
	VHeadDim               int              `json:"v_head_dim"`
	MLAUseNoPE             bool             `json:"mla_use_nope"`
	MLAUseOutputGate       bool             `json:"mla_use_output_gate"`
	LinearAttn             LinearAttnConfig `json:"linear_attn_config"`
	RMSNormEps             float64          `json:"rms_norm_eps"`
	NumNextNPredictLayers  int              `json:"num_nextn_predict_layers"`
	TieWordEmbeddings      bool             `json:"tie_word_embeddings"`
	MaxPositionEmbeddings  int              `json:"max_position_embeddings"`
	BOSTokenID             int              `json:"bos_token_id"`
	EOSTokenID             int              `json:"eos_token_id"`
	PadTokenID             int              `json:"pad_token_id"`
}

// LinearAttnConfig is text_config's linear_attn_config. Its layer numbers begin at 1.
type LinearAttnConfig struct {
	KDALayers           []int   `json:"kda_layers"`
	FullAttnLayers      []int   `json:"full_attn_layers"`
	NumHeads            int     `json:"num_heads"`
	HeadDim             int     `json:"head_dim"`
	ShortConvKernelSize int     `json:"short_conv_kernel_size"`
	GateLowerBound      float64 `json:"gate_lower_bound"`
	UseFullRankGate     bool    `json:"use_full_rank_gate"`
}

// mlaNormEps is the eps of q_a_layernorm and kv_a_layernorm, which config.json does
// not hold: K3's code leaves it at its norm's default.
const mlaNormEps = 1e-6

// IsKDA says whether layer l (0-based) has KDA attention; the others have MLA.
func (c *Config) IsKDA(l int) bool { return slices.Contains(c.LinearAttn.KDALayers, l+1) }

// IsMoE says whether layer l (0-based) has routed experts; the others are dense.
func (c *Config) IsMoE(l int) bool { return l >= c.FirstKDenseReplace }

// A ConfigError is a field of config.json that the engine can't take.
type ConfigError struct {
	File  string
	Field string // path within the file, such as "text_config.hidden_act"
	Want  string
	Got   string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("engine: %s: %s: want %s, got %s; is this a Kimi K3 snapshot, whole and unchanged?", e.File, e.Field, e.Want, e.Got)
}

// inert are text_config fields that change nothing in what K3 computes: names,
// bookkeeping of the training library, and the rotary settings that mla_use_nope
// turns off. Any other unknown field may change the result, so it is refused.
var inert = []string{
	"architectures", "auto_map", "model_type", "dtype", "torch_dtype", "transformers_version", "_name_or_path", "use_cache",
	"initializer_range", "attention_dropout", "num_key_value_heads", "use_grouped_topk", "head_dim", "rope_theta", "rope_scaling",
	"rope_parameters", "quantization_config", "model_max_length", "output_attentions", "output_hidden_states", "return_dict",
	"pretraining_tp", "aux_loss_alpha", "seq_aux", "ep_size", "unk_token_id",
}

// ReadConfig reads config.json of the model directory files strictly: a field that
// is missing, unknown, or holds a value that the engine does not implement is a
// *ConfigError that names it. dir names the directory in errors.
func ReadConfig(files fs.FS, dir string) (*Config, error) {
	file := filepath.Join(dir, "config.json")
	info, err := fs.Stat(files, "config.json") // before opening, which would wait on a pipe
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, &ConfigError{file, "the file", "an ordinary file", "mode " + info.Mode().String()}
	case err == nil && info.Size() > maxConfig:
		return nil, &ConfigError{file, "the file", fmt.Sprintf("at most %d bytes", maxConfig), fmt.Sprintf("%d bytes", info.Size())}
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(files, "config.json")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &ConfigError{file, "the file", "a K3 snapshot's configuration", "no such file"}
	case err != nil:
		return nil, fmt.Errorf("engine: %w", err)
	}
	return ParseConfig(file, data)
}

// maxConfig bounds config.json, which is some kilobytes.
const maxConfig = 1 << 20

// ParseConfig is ReadConfig of data; file names it in errors.
func ParseConfig(file string, data []byte) (*Config, error) {
	p := configParser{file: file}
	top := p.object("", data)
	p.equal("model_type", top["model_type"], `"kimi_k3"`)
	text := p.object("text_config", top["text_config"])
	c := new(Config)
	p.fields("text_config", text, reflect.ValueOf(c).Elem(), inert)
	quant, at := text["quantization_config"], "text_config.quantization_config"
	if quant == nil {
		quant, at = top["quantization_config"], "quantization_config"
	}
	p.quantization(at, quant)
	if p.err == nil {
		p.check(c)
	}
	if p.err != nil {
		return nil, p.err
	}
	return c, nil
}

// configParser keeps the first error; later steps do nothing.
type configParser struct {
	file string
	err  error
}

func (p *configParser) fail(field, want, got string) {
	if p.err == nil {
		p.err = &ConfigError{p.file, field, want, got}
	}
}

func (p *configParser) object(field string, data json.RawMessage) map[string]json.RawMessage {
	if p.err != nil {
		return nil
	}
	if field == "" {
		field = "the file"
	}
	if data == nil {
		p.fail(field, "an object", "nothing")
		return nil
	}
	var m map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&m); err != nil {
		got := err.Error()
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			got = "a JSON " + wrong.Value
		}
		p.fail(field, "a JSON object", got)
		return nil
	}
	if _, err := d.Token(); err != io.EOF {
		p.fail(field, "one JSON object", "more after it")
	}
	if m == nil {
		p.fail(field, "an object", "null")
	}
	return m
}

// fields fills every field of v, a struct, from m: each must be there, and no other
// field that isn't in ignored (a null or false one asks for nothing, so it may be).
func (p *configParser) fields(path string, m map[string]json.RawMessage, v reflect.Value, ignored []string) {
	if p.err != nil {
		return
	}
	known := map[string]bool{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		known[name] = true
		raw, ok := m[name]
		field := path + "." + name
		target := v.Field(i)
		switch {
		case !ok || string(raw) == "null":
			p.fail(field, describe(target), "nothing")
		case target.Kind() == reflect.Struct:
			p.fields(field, p.object(field, raw), target, nil)
		default:
			if err := json.Unmarshal(raw, target.Addr().Interface()); err != nil {
				p.fail(field, describe(target), short(raw))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value := string(m[name])
		if !known[name] && !slices.Contains(ignored, name) && value != "null" && value != "false" {
			p.fail(path+"."+name, "only fields that the engine implements", short(m[name]))
		}
	}
}

func describe(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Int:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list of integers"
	}
	return "an object"
}

func short(raw json.RawMessage) string {
	s := strings.Join(strings.Fields(string(raw)), " ")
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// quantization checks that the experts are MXFP4 in groups of 32.
func (p *configParser) quantization(path string, raw json.RawMessage) {
	q := p.object(path, raw)
	p.equal(path+".quant_method", q["quant_method"], `"compressed-tensors"`)
	p.equal(path+".format", q["format"], `"mxfp4-pack-quantized"`)
	if p.err != nil {
		return
	}
	groups := p.object(path+".config_groups", q["config_groups"])
	if p.err == nil && len(groups) == 0 {
		p.fail(path+".config_groups", "a group of weights", "none")
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		at := path + ".config_groups." + name
		g := p.object(at, groups[name])
		if p.err != nil {
			return
		}
		w := p.object(at+".weights", g["weights"])
		p.equal(at+".weights.num_bits", w["num_bits"], "4")
		p.equal(at+".weights.type", w["type"], `"float"`)
		p.equal(at+".weights.group_size", w["group_size"], "32")
		p.equal(at+".weights.strategy", w["strategy"], `"group"`)
		p.equal(at+".weights.symmetric", w["symmetric"], "true")
	}
}

func (p *configParser) equal(field string, raw json.RawMessage, want string) {
	got := "nothing"
	if raw != nil {
		got = short(raw)
	}
	if got != want {
		p.fail(field, want, got)
	}
}

// limit bounds every size, so that products of sizes and layers fit an int64
// and a lying config can't ask for absurd memory.
const limit = 1 << 24

func (p *configParser) check(c *Config) {
	const at = "text_config."
	size := func(name string, v, least, most int) {
		if v < least || v > most {
			p.fail(at+name, fmt.Sprintf("an integer from %d to %d", least, most), fmt.Sprint(v))
		}
	}
	must := func(name string, ok bool, want string, got any) {
		if !ok {
			if s, isString := got.(string); isString {
				got = fmt.Sprintf("%q", s)
			}
			p.fail(at+name, want, fmt.Sprint(got))
		}
	}
	size("num_hidden_layers", c.NumHiddenLayers, 1, 4096)
	size("hidden_size", c.HiddenSize, 1, limit)
	size("vocab_size", c.VocabSize, 257, limit)
	size("num_attention_heads", c.NumAttentionHeads, 1, 65536)
	size("intermediate_size", c.IntermediateSize, 1, limit)
	size("first_k_dense_replace", c.FirstKDenseReplace, 0, c.NumHiddenLayers)
	must("moe_layer_freq", c.MoELayerFreq == 1, "1", c.MoELayerFreq)
	size("num_experts", c.NumExperts, 1, 65536)
	size("num_experts_per_token", c.NumExpertsPerToken, 1, c.NumExperts)
	size("num_shared_experts", c.NumSharedExperts, 1, 1024)
	size("moe_intermediate_size", c.MoEIntermediateSize, 1, limit)
	must("moe_intermediate_size", c.MoEIntermediateSize%32 == 0, "a multiple of 32, the quantization group", c.MoEIntermediateSize)
	size("routed_expert_hidden_size", c.RoutedExpertHiddenSize, 1, limit)
	must("routed_expert_hidden_size", c.RoutedExpertHiddenSize%32 == 0, "a multiple of 32, the quantization group", c.RoutedExpertHiddenSize)
	must("latent_moe_use_norm", c.LatentMoEUseNorm, "true", c.LatentMoEUseNorm)
	must("moe_renormalize", c.MoERenormalize, "true", c.MoERenormalize)
	must("moe_router_activation_func", c.MoERouterActivation == "sigmoid", `"sigmoid"`, c.MoERouterActivation)
	// A number that float32 takes for what it is.
	number := func(name string, v, least, most float64) {
		if !(v >= least && v <= most) {
			p.fail(at+name, fmt.Sprintf("a number from %g to %g", least, most), fmt.Sprint(v))
		}
	}
	number("routed_scaling_factor", c.RoutedScalingFactor, 1e-6, 1e6)
	must("num_expert_group", c.NumExpertGroup == 1, "1", c.NumExpertGroup)
	must("topk_group", c.TopKGroup == 1, "1", c.TopKGroup)
	must("topk_method", c.TopKMethod == "noaux_tc", `"noaux_tc"`, c.TopKMethod)
	size("attn_res_block_size", c.AttnResBlockSize, 1, 4096)
	must("hidden_act", c.HiddenAct == "situ", `"situ"`, c.HiddenAct)
	number("activation_situ_beta", c.SiTUBeta, 1e-6, 1e6)
	number("activation_situ_linear_beta", c.SiTULinearBeta, 1e-6, 1e6)
	size("q_lora_rank", c.QLoRARank, 1, limit)
	size("kv_lora_rank", c.KVLoRARank, 1, limit)
	size("qk_nope_head_dim", c.QKNopeHeadDim, 1, 65536)
	size("qk_rope_head_dim", c.QKRopeHeadDim, 1, 65536)
	size("v_head_dim", c.VHeadDim, 1, 65536)
	must("mla_use_nope", c.MLAUseNoPE, "true: no layer of K3 rotates positions", c.MLAUseNoPE)
	must("mla_use_output_gate", c.MLAUseOutputGate, "true", c.MLAUseOutputGate)
	number("rms_norm_eps", c.RMSNormEps, 1e-30, 1)
	must("num_nextn_predict_layers", c.NumNextNPredictLayers == 0, "0", c.NumNextNPredictLayers)
	must("tie_word_embeddings", !c.TieWordEmbeddings, "false", c.TieWordEmbeddings)
	size("max_position_embeddings", c.MaxPositionEmbeddings, 1, math.MaxInt32)
	size("bos_token_id", c.BOSTokenID, 0, c.VocabSize-1)
	size("eos_token_id", c.EOSTokenID, 1, c.VocabSize-1)
	size("pad_token_id", c.PadTokenID, 0, c.VocabSize-1)

	l := &c.LinearAttn
	size("linear_attn_config.num_heads", l.NumHeads, 1, 65536)
	size("linear_attn_config.head_dim", l.HeadDim, 1, 65536)
	must("linear_attn_config.num_heads", l.NumHeads <= l.HeadDim, "at most head_dim, the length A_log is stored with", l.NumHeads)
	must("linear_attn_config.short_conv_kernel_size", l.ShortConvKernelSize == 4, "4", l.ShortConvKernelSize)
	number("linear_attn_config.gate_lower_bound", l.GateLowerBound, -1e3, -1e-6)
	must("linear_attn_config.use_full_rank_gate", l.UseFullRankGate, "true", l.UseFullRankGate)
	if p.err != nil {
		return
	}
	kinds := make([]int, c.NumHiddenLayers+1)
	for _, list := range []struct {
		name   string
		layers []int
	}{{"kda_layers", l.KDALayers}, {"full_attn_layers", l.FullAttnLayers}} {
		if len(list.layers) > c.NumHiddenLayers {
			p.fail(at+"linear_attn_config."+list.name, fmt.Sprintf("at most %d layers", c.NumHiddenLayers), fmt.Sprint(len(list.layers)))
			return
		}
		for _, n := range list.layers {
			if n < 1 || n > c.NumHiddenLayers {
				p.fail(at+"linear_attn_config."+list.name, fmt.Sprintf("layers from 1 to %d", c.NumHiddenLayers), fmt.Sprint(n))
				return
			}
			kinds[n]++
		}
	}
	for n := 1; n <= c.NumHiddenLayers; n++ {
		if kinds[n] != 1 {
			p.fail(at+"linear_attn_config", fmt.Sprintf("layer %d once in kda_layers or full_attn_layers", n), fmt.Sprintf("%d times", kinds[n]))
		}
	}
}
