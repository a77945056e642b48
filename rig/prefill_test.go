package rig

import (
	"context"
	"testing"
)

func BenchmarkPrefill(b *testing.B) {
	r, err := Open(context.Background(), Options{CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	ids := make([]int, 512)
	for i := range ids {
		ids[i] = 300 + i*7
	}
	g, err := r.Generate(context.Background(), Request{IDs: ids}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(g.Stats.PrefillTokensPerS, "tokens/s")
}
