package cell

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// stddoc.zip has the doc comments of the standard library's exported names, apart
// from its API, which every cell's check reads (stdapi_gen.go says how it is made).
//
//go:embed stddoc.zip
var stddocZip []byte

// stdDocs reads the documentation of a package when it is first asked for. It is
// safe for concurrent use.
type stdDocs struct {
	mu   sync.Mutex
	zip  *zip.Reader
	read map[string]map[string]string // import path → name → doc comment
}

func newStdDocs() (*stdDocs, error) {
	r, err := zip.NewReader(bytes.NewReader(stddocZip), int64(len(stddocZip)))
	if err != nil {
		return nil, fmt.Errorf("cell: stddoc.zip: %w", err)
	}
	return &stdDocs{zip: r, read: map[string]map[string]string{}}, nil
}

// doc is the doc comment of a name of the package at path: of Type.Name for a
// method or field, and of the package itself for ""; "" where nothing is known.
func (d *stdDocs) doc(path, name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.read[path]
	if !ok {
		if f, err := d.zip.Open(path); err == nil {
			json.NewDecoder(f).Decode(&m)
			f.Close()
		}
		d.read[path] = m
	}
	return m[name]
}
