package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// order is the order of the packages: a package imports only packages that stand
// to the left of a "<" before it, in one chain or through several. Packages with a
// comma between them don't import each other. A name in capitals stands for a place
// in the order, not for a package.
const order = `
	checkpoint, tokenizer, trace, metal, kernel/wire, kernel/display, kernel/zmtp, engine/xtml, models, kernelspec, internal/named, internal/disk, internal/units
	< ORIGINS;
	internal/named < kernel/display < kernel/display/widget < ORIGINS;

	# The model: what computes, where its experts come from, its forward pass.
	ORIGINS < metal/cpu;
	ORIGINS < prefetch < engine;
	engine, metal/cpu < rig < kernel/lab;

	# The kernel, which knows no engine, and its Go cells.
	ORIGINS < kernel < kernel/cell;

	# What is wrong with an installation.
	kernel < doctor;

	# Random models of any size, and how fast models and kernels are here.
	engine < synth;
	rig < bench;

	kernel/lab, kernel/cell, doctor, synth, bench < cli < deltafin;

	# For tests, with what they drive.
	checkpoint < checkpoint/checkpointtest;
	metal < metal/metaltest;
	checkpoint/checkpointtest, engine < engine/enginetest;
	kernel < kernel/kerneltest < notebooks;

	# What go generate runs.
	models < models/pack;
`

// outside says which packages import what from other modules. "p_test" stands for
// p's test files alone, and "test" for every test file and package for tests.
const outside = `
	github.com/alecthomas/kong          cli
	github.com/mattn/go-isatty          cli
	github.com/go-zeromq/zmq4           kernel kernel/zmtp kernel/kerneltest
	github.com/traefik/yaegi            kernel/cell kernel/lab_test
	github.com/klauspost/compress       models models/pack
	golang.org/x/sys                    checkpoint metal/cpu rig kernel/cell internal/disk
	golang.org/x/text                   kernel/display
	gonum.org/v1/plot                   kernel/display
	github.com/google/go-cmp            test
	github.com/rogpeppe/go-internal     test
`

// grounded lists what only cli and main may use: everything below neither prints,
// nor exits, nor reads the environment. kernel/cell is apart: its child's half is a
// process of its own, whose standard descriptors and environment are the cells'.
var grounded = map[string]map[string]bool{
	"os":  {"Exit": true, "Getenv": true, "LookupEnv": true, "Stdout": true, "Stderr": true, "Stdin": true},
	"fmt": {"Print": true, "Println": true, "Printf": true},
	"log": {"Print": true, "Println": true, "Printf": true, "Fatal": true, "Fatalf": true, "Fatalln": true},
}

// file is a Go file of the module, parsed whatever its build tags say.
type file struct {
	name string // slash-separated, from the module's root
	pkg  string // its package's directory; "deltafin" for the root
	test bool
	ast  *ast.File
}

const module = "deltafin"

func moduleFiles(t *testing.T) []file {
	t.Helper()
	var files []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name == "." {
				return nil
			}
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if nested == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(name)
		pkg := path.Dir(slashed)
		if pkg == "." {
			pkg = module
		}
		files = append(files, file{slashed, pkg, strings.HasSuffix(base, "_test.go"), parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}

func (f file) imports() []string {
	var paths []string
	for _, spec := range f.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser accepted it
		}
		paths = append(paths, name)
	}
	return paths
}

// precedence parses order: below[p] holds every package that p may import.
func precedence(text string) (below map[string]map[string]bool, err error) {
	below = map[string]map[string]bool{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, "#")
	}
	for chain := range strings.SplitSeq(strings.Join(lines, " "), ";") {
		var left []string
		if strings.TrimSpace(chain) == "" {
			continue
		}
		for group := range strings.SplitSeq(chain, "<") {
			var members []string
			for name := range strings.SplitSeq(group, ",") {
				name = strings.TrimSpace(name)
				if name == "" || strings.ContainsAny(name, " \t") {
					return nil, fmt.Errorf("order: %q is not a package name, in %q", name, strings.TrimSpace(chain))
				}
				if below[name] == nil {
					below[name] = map[string]bool{}
				}
				for _, l := range left {
					below[name][l] = true
				}
				members = append(members, name)
			}
			left = members
		}
	}
	// Close it: what my imports may import, I may import.
	for changed := true; changed; {
		changed = false
		for _, direct := range below {
			for name := range maps.Clone(direct) {
				for deeper := range below[name] {
					if !direct[deeper] {
						direct[deeper], changed = true, true
					}
				}
			}
		}
	}
	for name, direct := range below {
		if direct[name] {
			return nil, fmt.Errorf("order: %s stands below itself", name)
		}
	}
	return below, nil
}

// isForTests reports whether a package exists for tests only; its files count as
// test files.
func isForTests(pkg string) bool {
	return strings.HasSuffix(pkg, "test") || pkg == "notebooks"
}

func TestImportsOnlyGoDown(t *testing.T) {
	below, err := precedence(order)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range moduleFiles(t) {
		if f.test || strings.HasPrefix(f.pkg, "internal/third_party/") || strings.HasPrefix(f.pkg, "tools/") {
			continue
		}
		may, known := below[f.pkg]
		if !known {
			may, known = below[parentWithInternal(f.pkg)]
		}
		if !known {
			t.Errorf("%s: package %s has no place in the order; give it one in deps_test.go", f.name, f.pkg)
			continue
		}
		for _, imported := range f.imports() {
			of, ours := strings.CutPrefix(imported, module+"/")
			if !ours || strings.HasPrefix(of, "internal/third_party/") {
				continue
			}
			if !may[of] && !isInside(of, f.pkg) {
				t.Errorf("%s: %s imports %s, which the order does not allow", f.name, f.pkg, of)
			}
		}
	}
}

// parentWithInternal is the package that p's private parts ("kernel/cell/internal/x",
// "engine/internal/y") belong to.
func parentWithInternal(p string) string {
	owner, _, _ := strings.Cut(p, "/internal")
	return owner
}

// isInside reports whether imported is a private part of pkg's owner.
func isInside(imported, pkg string) bool {
	return strings.HasPrefix(imported, parentWithInternal(pkg)+"/internal/")
}

// The order names no package that isn't there.
func TestOrderIsOfPackages(t *testing.T) {
	below, err := precedence(order)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range moduleFiles(t) {
		there[f.pkg] = true
	}
	for name := range below {
		if !there[name] && name != strings.ToUpper(name) {
			t.Errorf("the order has %s, which is no package", name)
		}
	}
}

func TestImportsFromOutside(t *testing.T) {
	may := map[string][]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(outside), "\n") {
		fields := strings.Fields(line)
		may[fields[0]] = fields[1:]
	}
	for _, f := range moduleFiles(t) {
		if strings.HasPrefix(f.pkg, "internal/third_party/") {
			continue
		}
		for _, imported := range f.imports() {
			host, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(host, ".") {
				if imported == "C" {
					t.Errorf("%s: imports C; one static binary needs no C compiler", f.name)
				}
				continue
			}
			allowed, known := []string(nil), false
			for prefix, who := range may {
				if imported == prefix || strings.HasPrefix(imported, prefix+"/") {
					allowed, known = who, true
				}
			}
			switch {
			case !known:
				t.Errorf("%s: imports %s, which deps_test.go does not list", f.name, imported)
			case slices.Contains(allowed, parentWithInternal(f.pkg)):
			case f.test && slices.Contains(allowed, f.pkg+"_test"):
			case slices.Contains(allowed, "test") && (f.test || isForTests(f.pkg)):
			default:
				t.Errorf("%s: %s imports %s; only %s may", f.name, f.pkg, imported, strings.Join(allowed, ", "))
			}
		}
	}
}

func TestOnlyCLITouchesTheProcess(t *testing.T) {
	for _, f := range moduleFiles(t) {
		if f.test || isForTests(f.pkg) || f.pkg == "cli" || f.pkg == module || f.pkg == "kernel/cell" ||
			strings.HasPrefix(f.pkg, "internal/third_party/") || f.ast.Name.Name == "main" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && grounded[of.Name][selector.Sel.Name] {
				t.Errorf("%s: %s uses %s.%s; only cli prints, exits or reads the environment", f.name, f.pkg, of.Name, selector.Sel.Name)
			}
			return true
		})
	}
}

func TestPrecedence(t *testing.T) {
	below, err := precedence("a, b < MID; MID < c < d; # e < f;\n b < e")
	if err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []string{"c a", "d a", "d c", "e b"} {
		upper, lower, _ := strings.Cut(allowed, " ")
		if !below[upper][lower] {
			t.Errorf("%s may not import %s, but should", upper, lower)
		}
	}
	for _, refused := range []string{"a b", "a c", "c d", "e a", "e f"} {
		upper, lower, _ := strings.Cut(refused, " ")
		if below[upper][lower] {
			t.Errorf("%s may import %s, but should not", upper, lower)
		}
	}
	if _, err := precedence("a < b; b < a"); err == nil {
		t.Error("a circle was accepted")
	}
	if _, err := precedence("a b < c"); err == nil {
		t.Error("a missing comma was accepted")
	}
}
