package rig

import (
	"context"
	"testing"
)

func BenchmarkDecode(b *testing.B) {
	r, err := Open(context.Background(), Options{CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ResetTimer()
	g, err := r.Generate(context.Background(), Request{Prompt: "The capital of France is", MaxTokens: 100}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(g.Stats.DecodeTokensPerS, "tokens/s")
}
