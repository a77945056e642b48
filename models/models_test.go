package models

import (
	"path/filepath"
	"testing"

	"deltafin/checkpoint"
)

// small is the quickest model to unpack.
const small = "nano-qwen"

func unpack(t testing.TB, cache, name string) string {
	t.Helper()
	dir, err := Unpack(cache, name)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestUnpack(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "not", "there", "yet")
	for _, name := range Names() {
		dir := unpack(t, cache, name)
		if err := Verify(dir, name); err != nil {
			t.Error(err)
		}
		s, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
