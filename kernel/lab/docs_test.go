package lab

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite figures.json")

// figures.json is what the doc comments of the packages below say.
func TestFigures(t *testing.T) {
	docs := map[string]Doc{}
	for path, types := range map[string]map[string]string{
		"rig":      {"Stats": "GenerationStats", "ModelInfo": "ModelInfo", "MemoryMap": "MemoryMap", "TokenProb": "TokenProb", "Finish": "Finish"},
		"prefetch": {"Stats": "Stats", "LayerStats": "LayerStats"},
		"trace":    {"Trace": "Routes", "Load": "Load"},
		"kernel/display/widget": {
			"Int": "IntWidget", "Float": "FloatWidget", "Bool": "BoolWidget", "Choice": "ChoiceWidget",
			"Text": "TextWidget", "Button": "ButtonWidget", "Output": "OutputWidget", "Box": "BoxWidget",
		},
	} {
		names, err := filepath.Glob(filepath.Join("..", "..", path, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%d files of %s, %v", len(names), path, err)
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		found, err := document(fset, files, "deltafin/"+path, types)
		if err != nil {
			t.Fatal(err)
		}
		for from, to := range types {
			if _, ok := found[to]; !ok {
				t.Errorf("no type %s in package %s", from, path)
			}
		}
		maps.Copy(docs, found)
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	if err := enc.Encode(docs); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("figures.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want.String(), string(figures)); d != "" {
		t.Errorf("figures.json is out of date; run go test ./kernel/lab -run TestFigures -update\n%s", d)
	}
}

// Every name that a cell sees has a doc, and so has every field and method.
func TestDocs(t *testing.T) {
	docs := Docs()
	exports := New(nil).Exports()
	for name, v := range exports {
		if name == "Bundle" { // what Image and its like return, not for a cell to make
			continue
		}
		if docs[name].Doc == "" {
			t.Errorf("%s has no doc", name)
		}
		if v.Kind() == reflect.Func {
			continue
		}
		typ := v.Type()
		for i := range typ.NumMethod() {
			m := typ.Method(i).Name
			if docs[name+"."+m].Doc == "" && m != "DisplayBundle" && m != "Unwrap" && m != "Error" {
				t.Errorf("%s.%s has no doc", name, m)
			}
		}
		if typ.Elem().Kind() == reflect.Struct {
			for _, f := range reflect.VisibleFields(typ.Elem()) {
				d := docs[name+"."+f.Name]
				if own := len(f.Index) == 1 && strings.HasSuffix(typ.Elem().PkgPath(), "kernel/lab"); f.IsExported() && !f.Anonymous && (d.Signature == "" || own && d.Doc == "") {
					t.Errorf("%s.%s has no doc: %v", name, f.Name, d)
				}
			}
		}
	}
	for name := range docs {
		if first, _, _ := strings.Cut(name, "."); exports[first].Kind() == reflect.Invalid {
			t.Errorf("%s is documented and not exported", name)
		}
	}
	if d := docs["Output"]; d.Signature != "Output() *widget.Output" { // there is a type of this name too
		t.Errorf("Output: %+v", d)
	}
	for name, want := range map[string]Doc{
		"Tokenize":                    {"Tokenize(text string) Tokens", "Tokenize cuts a text into the model's tokens. Special tokens written in the text\nare text."},
		"Label":                       {"Label(text string) *widget.Text", "Label is a text that Set changes."},
		"ChoiceWidget.Value":          {"Value() string", "Value is the chosen text."},
		"Params.Seed":                 {"Seed uint64", "the same seed gives the same text"},
		"Generation.Reply":            {"Reply(text string, p ...Params) *Generation", "Reply continues a chat with what the user says next. The settings are the\nchat's, unless others are given."},
		"GenerationStats.TTFTSeconds": {"TTFTSeconds float64", "from the request to the first new token; 0 without one"},
		"Stats.Demanded":              {"Demanded int64", "read because it was needed"},
	} {
		if d := cmp.Diff(want, docs[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
