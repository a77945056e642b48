package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed files of the peak's loops are what this program writes.
func TestCommittedPeak(t *testing.T) {
	files, err := generatePeak()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs; run go generate ./metal/cpu", name)
		}
	}
}
