package lab

import (
	"embed"
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
)

// Doc documents one name for a cell.
type Doc struct {
	Signature string // as in Go, such as "Tokenize(text string) Tokens"
	Doc       string // the doc comment, plain text
}

//go:embed lab.go generate.go message.go trace.go stats.go tokens.go model.go show.go widgets.go
var source embed.FS

// figures.json documents the exported types of the packages below this one, whose
// source can't be embedded here. It is made from their doc comments by
//
//	go test ./kernel/lab -run TestFigures -update
//
//go:embed figures.json
var figures []byte

// Docs documents the exports from the doc comments of what they are: by name, and
// for a type's fields and methods by "Type.Name".
func Docs() map[string]Doc {
	docs := map[string]Doc{}
	if err := json.Unmarshal(figures, &docs); err != nil {
		panic(err) // the file is part of the program, as are those below
	}
	fset := token.NewFileSet()
	var files []*ast.File
	entries, err := source.ReadDir(".")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		data, err := source.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		f, err := parser.ParseFile(fset, e.Name(), data, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		files = append(files, f)
	}
	types := map[string]string{}
	exports := (&Lab{}).Exports()
	for name, v := range exports {
		if v.Kind() == reflect.Pointer { // the others may have the name of a type that cells don't see
			types[name] = name
		}
	}
	types["Lab"] = "" // its methods are the functions
	own, err := document(fset, files, "deltafin/kernel/lab", types)
	if err != nil {
		panic(err)
	}
	for name, d := range own {
		function, _, member := strings.Cut(name, ".")
		if _, ok := exports[function]; ok || member {
			docs[name] = d
		}
	}
	return docs
}

// document gives the docs of some of a package's types, under the names that
// types maps them to, and of their fields and methods. Methods of a type mapped to
// "" stand by themselves.
func document(fset *token.FileSet, files []*ast.File, path string, types map[string]string) (map[string]Doc, error) {
	pkg, err := doc.NewFromFiles(fset, files, path)
	if err != nil {
		return nil, err
	}
	plain := func(text string) string { return strings.TrimSpace(string(pkg.Text(text))) }
	source := func(node any) string {
		var b strings.Builder
		if format.Node(&b, fset, node) != nil {
			return ""
		}
		return b.String()
	}
	docs := map[string]Doc{}
	for _, t := range pkg.Types {
		name, ok := types[t.Name]
		if !ok {
			continue
		}
		prefix := ""
		if name != "" {
			docs[name] = Doc{"type " + name, plain(t.Doc)}
			prefix = name + "."
		}
		for _, f := range t.Methods {
			decl := *f.Decl
			decl.Recv, decl.Doc, decl.Body = nil, nil, nil
			docs[prefix+f.Name] = Doc{strings.TrimPrefix(source(&decl), "func "), plain(f.Doc)}
		}
		for _, s := range t.Decl.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range fields.Fields.List {
				text := strings.TrimSpace(f.Doc.Text())
				if text == "" {
					text = strings.TrimSpace(f.Comment.Text())
				}
				for _, n := range f.Names {
					if n.IsExported() {
						docs[prefix+n.Name] = Doc{n.Name + " " + source(f.Type), text}
					}
				}
			}
		}
	}
	return docs, nil
}
