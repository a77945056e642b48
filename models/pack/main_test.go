package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestPack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	files := map[string][]byte{
		"one/config.json":       []byte(`{"layers": 3}`),
		"one/model.safetensors": bytes.Repeat([]byte("weights "), 1e5),
		"two/empty":             nil,
	}
	stale := filepath.Join(to, "packed", "one", "stale.zst")
	for _, dir := range []string{filepath.Join(from, "one"), filepath.Join(from, "two"), filepath.Dir(stale)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(stale, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(from, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := pack(from, to, []string{"two", "one"}); err != nil {
		t.Fatal(err)
	}

	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	manifest, err := os.ReadFile(filepath.Join(to, "manifest.go"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		packed, err := os.ReadFile(filepath.Join(to, "packed", name+".zst"))
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := z.DecodeAll(packed, nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or other bytes than packed", name, err)
		}
		if line := fmt.Sprintf("{%q, %d, \"%x\"}", filepath.Base(name), len(want), sha256.Sum256(want)); !strings.Contains(string(manifest), line) {
			t.Errorf("no %s in\n%s", line, manifest)
		}
	}
	if one, two := strings.Index(string(manifest), `"one"`), strings.Index(string(manifest), `"two"`); one < two {
		t.Errorf("models out of order:\n%s", manifest)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("a file that is no longer part of the model stayed")
	}
	if err := pack(from, to, []string{"three"}); err == nil {
		t.Error("packed a model that does not exist")
	}
}
