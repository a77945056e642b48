package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deltafin/engine"
	"deltafin/engine/enginetest"
)

// The sizes of K3 itself pass (docs/k3.md, Shape).
func TestConfigOfK3(t *testing.T) {
	c := enginetest.Small()
	c.VocabSize, c.HiddenSize, c.NumHiddenLayers, c.NumAttentionHeads, c.IntermediateSize = 163840, 7168, 93, 96, 33792
	c.NumExperts, c.NumExpertsPerToken, c.MoEIntermediateSize, c.RoutedExpertHiddenSize = 896, 16, 3072, 3584
	c.RoutedScalingFactor, c.AttnResBlockSize, c.QLoRARank, c.KVLoRARank = 1, 12, 1536, 512
	c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim = 128, 64, 128
	c.BOSTokenID, c.EOSTokenID, c.PadTokenID = 163584, 163586, 163839
	c.LinearAttn.NumHeads, c.LinearAttn.HeadDim = 96, 128
	c.LinearAttn.KDALayers, c.LinearAttn.FullAttnLayers = nil, nil
	for l := 1; l <= 93; l++ {
		if l%4 == 0 || l == 93 {
			c.LinearAttn.FullAttnLayers = append(c.LinearAttn.FullAttnLayers, l)
		} else {
			c.LinearAttn.KDALayers = append(c.LinearAttn.KDALayers, l)
		}
	}
	got, err := engine.ParseConfig("config.json", configJSON(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.LinearAttn.KDALayers) != 69 || len(got.LinearAttn.FullAttnLayers) != 24 || got.IsKDA(92) || got.IsKDA(91) || !got.IsKDA(90) || got.IsMoE(0) || !got.IsMoE(1) {
		t.Errorf("%+v", got)
	}
}

// Fields that change nothing may be there; vision's too, outside text_config.
func TestConfigInertFields(t *testing.T) {
	m := enginetest.ConfigJSON(enginetest.Small())
	m["vision_config"] = map[string]any{"hidden_size": 1152}
	text := m["text_config"].(map[string]any)
	for field, value := range map[string]any{"use_cache": true, "rope_theta": 10000.0, "num_key_value_heads": 96, "use_grouped_topk": true, "attention_bias": false, "anything": nil} {
		text[field] = value
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.ParseConfig("config.json", data); err != nil {
		t.Error(err)
	}
}

func configJSON(t testing.TB, c engine.Config) []byte {
	t.Helper()
	data, err := json.Marshal(enginetest.ConfigJSON(c))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzParseConfig(f *testing.F) {
	good := string(configJSON(f, enginetest.Small()))
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"hidden_size":48`, `"hidden_size":1e300`, 1)))
	f.Add([]byte(strings.Replace(good, `"kda_layers":[1,2,4]`, `"kda_layers":[-9]`, 1)))
	f.Add([]byte(`{"text_config":{"linear_attn_config":null}}`))
	f.Add([]byte(good[:200]))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := engine.ParseConfig("config.json", data)
		var config *engine.ConfigError
		switch {
		case err != nil && (!errors.As(err, &config) || config.Field == "" || strings.Contains(err.Error(), "\n")):
			t.Errorf("%v", err)
		case err == nil: // what passes can be read again as it is
			if again, err := engine.ParseConfig("config.json", configJSON(t, *c)); err != nil || again.HiddenSize != c.HiddenSize {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
