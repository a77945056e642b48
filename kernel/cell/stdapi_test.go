package cell

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/traefik/yaegi/stdlib"
)

var update = flag.Bool("update", false, "make the generated files again")

// TestGeneratedFilesAreCurrent makes stdapi.zip, stdmore.go and stddoc.zip again and compares.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it asks the go command for the whole standard library")
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(mod), "\ngo ")
	if v := strings.Join(strings.Split(line, ".")[:2], "."); !strings.HasPrefix(runtime.Version(), "go"+v) {
		t.Skipf("made by Go %s; this is %s", v, runtime.Version())
	}
	dir := t.TempDir()
	zip, more, doc := filepath.Join(dir, "stdapi.zip"), filepath.Join(dir, "stdmore.go"), filepath.Join(dir, "stddoc.zip")
	if out, err := exec.Command("go", "run", "stdapi_gen.go", zip, more, doc).CombinedOutput(); err != nil {
		t.Fatalf("go run stdapi_gen.go: %v\n%s", err, out)
	}
	for made, kept := range map[string]string{zip: "stdapi.zip", more: "stdmore.go", doc: "stddoc.zip"} {
		a, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(kept, a, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s is not what stdapi_gen.go makes; run the test with -update", kept)
		}
	}
}

// TestLibraryLoads checks that every package that cells can import has its API.
func TestLibraryLoads(t *testing.T) {
	lib, err := newLibrary(func(p string) bool { return stdlib.Symbols[p+"/"+packageName(p)] != nil }, &packages{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range lib.paths() {
		pkg, err := lib.Import(p)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		for name := range stdlib.Symbols[p+"/"+pkg.Name()] {
			if !strings.HasPrefix(name, "_") && pkg.Scope().Lookup(name) == nil && p != "log/syslog" {
				t.Errorf("%s.%s is missing", p, name)
			}
			n++
		}
	}
	if n < 5000 {
		t.Errorf("%d names", n)
	}
}
