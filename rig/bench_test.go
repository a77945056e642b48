package rig

import "testing"

func BenchmarkDecode(b *testing.B) {
	r := open(b)
	g, err := r.Generate(b.Context(), Request{Prompt: "The capital of France is", MaxTokens: 100}, nil)
	must(b, err)
	b.ReportMetric(g.Stats.DecodeTokensPerS, "tokens/s")
}

func BenchmarkPrefill(b *testing.B) {
	r := open(b)
	ids := make([]int, 512)
	for i := range ids {
		ids[i] = 300 + i*7
	}
	g, err := r.Generate(b.Context(), Request{IDs: ids}, nil)
	must(b, err)
	b.ReportMetric(g.Stats.PrefillTokensPerS, "tokens/s")
}
