package rig

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/engine/enginetest"
	"deltafin/tokenizer"
)

// Every way of breaking a snapshot gives one line that names what is wrong.
func TestBrokenSnapshots(t *testing.T) {
	type damage func(t *testing.T, dir string)
	config := func(change func(text map[string]any)) damage {
		return func(t *testing.T, dir string) {
			c := enginetest.ConfigJSON(enginetest.Small())
			change(c["text_config"].(map[string]any))
			writeJSON(t, filepath.Join(dir, "config.json"), c)
		}
	}
	set := func(field string, value any) damage {
		return config(func(text map[string]any) { text[field] = value })
	}
	linear := func(field string, value any) damage {
		return config(func(text map[string]any) { text["linear_attn_config"].(map[string]any)[field] = value })
	}
	tensors := func(change func([]checkpoint.Tensor) []checkpoint.Tensor) damage {
		return func(t *testing.T, dir string) {
			all := change(enginetest.Tensors(enginetest.Small(), 1))
			if err := checkpoint.Write(filepath.Join(dir, "model.safetensors"), all, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	one := func(name string, change func(*checkpoint.Tensor)) damage {
		return tensors(func(all []checkpoint.Tensor) []checkpoint.Tensor {
			for i := range all {
				if strings.HasSuffix(all[i].Name, name) {
					change(&all[i])
					return all
				}
			}
			panic("no tensor " + name)
		})
	}
	remove := func(file string) damage {
		return func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, file))) }
	}
	edit := func(file string, change func([]byte) []byte) damage {
		return func(t *testing.T, dir string) {
			name := filepath.Join(dir, file)
			data, err := os.ReadFile(name)
			must(t, err)
			must(t, os.WriteFile(name, change(data), 0o644))
		}
	}
	for name, tc := range map[string]struct {
		damage damage
		says   []string // parts of the line
	}{
		"no config":             {remove("config.json"), []string{"config.json", "no such file"}},
		"config is no JSON":     {edit("config.json", func(b []byte) []byte { return b[:len(b)/2] }), []string{"config.json"}},
		"config is a list":      {edit("config.json", func([]byte) []byte { return []byte("[]") }), []string{"config.json", "object"}},
		"config field missing":  {config(func(c map[string]any) { delete(c, "kv_lora_rank") }), []string{"text_config.kv_lora_rank", "nothing"}},
		"config field null":     {set("hidden_size", nil), []string{"text_config.hidden_size", "an integer"}},
		"config wrong type":     {set("hidden_size", "48"), []string{"text_config.hidden_size", "an integer", `"48"`}},
		"config fraction":       {set("num_experts", 12.5), []string{"text_config.num_experts", "12.5"}},
		"config unknown field":  {set("sliding_window", 4096), []string{"text_config.sliding_window", "4096"}},
		"config unknown act":    {set("hidden_act", "gelu"), []string{"text_config.hidden_act", `"situ"`, `"gelu"`}},
		"config unknown router": {set("moe_router_activation_func", "softmax"), []string{"moe_router_activation_func", "softmax"}},
		"config rope":           {set("mla_use_nope", false), []string{"mla_use_nope", "false"}},
		"config huge":           {set("hidden_size", 1<<40), []string{"hidden_size", "1099511627776"}},
		"config negative":       {set("num_hidden_layers", -3), []string{"num_hidden_layers", "-3"}},
		"config not K3":         {edit("config.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), "kimi_k3", "llama", 1)) }), []string{"model_type", `"kimi_k3"`, `"llama"`}},
		"config tiny":           {set("rms_norm_eps", 1e-320), []string{"rms_norm_eps", "1e-320"}},
		"config too long":       {edit("config.json", func(b []byte) []byte { return append(b, make([]byte, 2<<20)...) }), []string{"config.json", "bytes"}},
		"config a directory": {func(t *testing.T, dir string) {
			remove("config.json")(t, dir)
			must(t, os.Mkdir(filepath.Join(dir, "config.json"), 0o755))
		}, []string{"config.json", "ordinary file"}},
		"config many layers":   {linear("kda_layers", make([]int, 5000)), []string{"kda_layers", "5000"}},
		"config zero experts":  {set("num_experts_per_token", 0), []string{"num_experts_per_token", "0"}},
		"config more than all": {set("num_experts_per_token", 13), []string{"num_experts_per_token", "13"}},
		"config tied":          {set("tie_word_embeddings", true), []string{"tie_word_embeddings"}},
		"config other kernel":  {linear("short_conv_kernel_size", 3), []string{"short_conv_kernel_size", "want 4, got 3"}},
		"config layer twice":   {linear("kda_layers", []int{1, 2, 3, 4}), []string{"linear_attn_config", "layer 3", "2 times"}},
		"config layer missing": {linear("kda_layers", []int{1, 2}), []string{"linear_attn_config", "layer 4"}},
		"config layer 99":      {linear("full_attn_layers", []int{3, 5, 99}), []string{"full_attn_layers", "99"}},
		"config group size": {config(func(c map[string]any) {
			c["quantization_config"].(map[string]any)["config_groups"].(map[string]any)["group_0"].(map[string]any)["weights"].(map[string]any)["group_size"] = 64
		}), []string{"group_size", "want 32, got 64"}},
		"config no quantization": {config(func(c map[string]any) { delete(c, "quantization_config") }), []string{"quantization_config"}},

		"no weights":   {remove("model.safetensors"), []string{"model.safetensors"}},
		"empty":        {edit("model.safetensors", func([]byte) []byte { return nil }), []string{"model.safetensors"}},
		"truncated":    {edit("model.safetensors", func(b []byte) []byte { return b[:len(b)-1000] }), []string{"model.safetensors"}},
		"lying length": {edit("model.safetensors", func(b []byte) []byte { binary.LittleEndian.PutUint64(b, 1<<62); return b }), []string{"model.safetensors"}},
		"tensor missing": {tensors(func(all []checkpoint.Tensor) []checkpoint.Tensor {
			for i := range all {
				if strings.HasSuffix(all[i].Name, "layers.2.self_attn.q_b_proj.weight") {
					return append(all[:i], all[i+1:]...)
				}
			}
			panic("not there")
		}), []string{"model.layers.2.self_attn.q_b_proj.weight"}},
		"expert missing": {tensors(func(all []checkpoint.Tensor) []checkpoint.Tensor {
			for i := range all {
				if strings.HasSuffix(all[i].Name, "layers.3.block_sparse_moe.experts.11.w2.weight_scale") {
					return append(all[:i], all[i+1:]...)
				}
			}
			panic("not there")
		}), []string{"layers.3.block_sparse_moe.experts.11.w2.weight_scale"}},
		"tensor too many": {tensors(func(all []checkpoint.Tensor) []checkpoint.Tensor {
			return append(all, checkpoint.Tensor{Name: "language_model.model.layers.0.self_attn.q_proj.bias", DType: "BF16", Shape: []int{1}, Data: []byte{0, 0}})
		}), []string{"layers.0.self_attn.q_proj.bias"}},
		"wrong shape": {one("layers.1.input_layernorm.weight", func(t *checkpoint.Tensor) { t.Shape = []int{1, t.Shape[0]} }), []string{"layers.1.input_layernorm.weight", "48"}},
		"wrong dtype": {one("layers.0.self_attn.k_proj.weight", func(t *checkpoint.Tensor) { t.DType = "F16" }), []string{"layers.0.self_attn.k_proj.weight", "BF16", "F16"}},
		"index names an absent file": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
			must(t, enginetest.Write(dir, enginetest.Small(), 1, 3))
			must(t, os.Remove(filepath.Join(dir, "model-00002-of-00003.safetensors")))
		}, []string{"model-00002-of-00003.safetensors"}},
		"index leaves the directory": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
			must(t, enginetest.Write(dir, enginetest.Small(), 1, 3))
			edit("model.safetensors.index.json", func(b []byte) []byte {
				return []byte(strings.Replace(string(b), "model-00001-of-00003", "../model-00001-of-00003", 1))
			})(t, dir)
		}, []string{"../model-00001-of-00003"}},

		"no ranks":       {remove("tiktoken.model"), []string{"tiktoken.model"}},
		"ranks too long": {func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, "tiktoken.model"), 1<<40)) }, []string{"tiktoken.model", "bytes"}},
		"ranks a directory": {func(t *testing.T, dir string) {
			remove("tiktoken.model")(t, dir)
			must(t, os.Mkdir(filepath.Join(dir, "tiktoken.model"), 0o755))
		}, []string{"tiktoken.model", "ordinary file"}},
		"rank missing":    {edit("tiktoken.model", func(b []byte) []byte { return cutLine(b, 100) }), []string{"tiktoken.model"}},
		"rank twice":      {edit("tiktoken.model", func(b []byte) []byte { return append(b, cutTo(b, 1)...) }), []string{"tiktoken.model"}},
		"rank not base64": {edit("tiktoken.model", func(b []byte) []byte { b[0] = '!'; return b }), []string{"tiktoken.model", "1"}},
		"no names":        {remove("tokenizer_config.json"), []string{"tokenizer_config.json"}},
		"name out of range": {edit("tokenizer_config.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"256"`, `"99999"`, 1))
		}), []string{"tokenizer_config.json", "99999"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, enginetest.Write(dir, enginetest.Small(), 1, 1))
			tc.damage(t, dir)
			r, err := Open(t.Context(), Options{Model: dir, Threads: 1})
			if err == nil {
				r.Close()
				t.Fatal("opened")
			}
			line := err.Error()
			if strings.ContainsAny(line, "\n\r") || len(line) > 500 {
				t.Errorf("not one short line: %q", line)
			}
			for _, part := range tc.says {
				if !strings.Contains(line, part) {
					t.Errorf("%q does not say %q", line, part)
				}
			}
			var (
				config   *engine.ConfigError
				file     *checkpoint.FileError
				tensor   *checkpoint.TensorError
				tokens   *tokenizer.FileError
				byFields = errors.As(err, &config) || errors.As(err, &file) || errors.As(err, &tensor) || errors.As(err, &tokens)
			)
			if !byFields {
				t.Errorf("%T holds no fields", err)
			}
			t.Log(line)
		})
	}
}

func cutLine(b []byte, n int) []byte {
	lines := strings.SplitAfter(string(b), "\n")
	return []byte(strings.Join(append(lines[:n], lines[n+1:]...), ""))
}

func cutTo(b []byte, n int) []byte {
	return []byte(strings.Join(strings.SplitAfter(string(b), "\n")[:n], ""))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	must(t, os.WriteFile(file, data, 0o644))
}

func TestOpenRefuses(t *testing.T) {
	for _, o := range []Options{{Model: "/no/such/model"}, {Model: "rig.go"}, {Threads: -1}, {Threads: 1 << 40}} {
		if r, err := Open(t.Context(), o); err == nil {
			r.Close()
			t.Errorf("%+v opened", o)
		}
	}
}
