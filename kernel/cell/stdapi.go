package cell

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"path"
	"slices"
	"sync"
)

//go:generate go run stdapi_gen.go

// stdapi.zip has, for each package of the standard library, its exported API as
// Go declarations without bodies (stdapi_gen.go says how it is made). It lets
// go/types check cells where there is no Go toolchain.
//
//go:embed stdapi.zip
var stdapiZip []byte

// A library imports the standard library's packages for go/types, each when it is
// first asked for. It is safe for concurrent use.
type library struct {
	mu        sync.Mutex
	zip       map[string]*zip.File
	names     map[string][]string // package name → import paths, best first
	pkgs      map[string]*types.Package
	docs      *stdDocs
	extra     map[string]*types.Package // packages that aren't the standard library's
	bodies    map[*types.Func]body      // generic functions and methods
	can       func(path string) bool    // whether cells can import the path
	*packages                           // of modules
}

func newLibrary(can func(string) bool, p *packages) (*library, error) {
	r, err := zip.NewReader(bytes.NewReader(stdapiZip), int64(len(stdapiZip)))
	if err != nil {
		return nil, fmt.Errorf("cell: stdapi.zip: %w", err)
	}
	docs, err := newStdDocs()
	if err != nil {
		return nil, err
	}
	l := &library{
		zip: map[string]*zip.File{}, names: map[string][]string{}, pkgs: map[string]*types.Package{},
		docs: docs, extra: map[string]*types.Package{}, bodies: map[*types.Func]body{}, can: can, packages: p,
	}
	for _, f := range r.File {
		l.zip[f.Name] = f
		if can(f.Name) {
			n := packageName(f.Name)
			l.names[n] = append(l.names[n], f.Name)
		}
	}
	l.names["unsafe"] = []string{"unsafe"}
	for _, paths := range l.names {
		slices.SortStableFunc(paths, func(a, b string) int { return rank(a) - rank(b) })
	}
	return l, nil
}

func packageName(p string) string {
	if base := path.Base(p); base == "v2" {
		return path.Base(path.Dir(p))
	}
	return path.Base(p)
}

// rank orders packages of one name as goimports would choose: math/rand before
// crypto/rand, text/template before html/template.
func rank(p string) int {
	switch p {
	case "math/rand", "text/template", "text/scanner", "net/http/pprof":
		return 0
	case "math/rand/v2":
		return 2
	}
	return 1
}

// Import implements types.Importer.
func (l *library) Import(path string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.extra[path]; p != nil {
		return p, nil
	}
	if g := l.gotten[path]; g != nil {
		return g.pkg, nil
	}
	if path != "unsafe" && !l.can(path) {
		return nil, importFault(path)
	}
	return l.load(path)
}

// load reads one package, whether or not cells can import it themselves. l.mu is
// held.
func (l *library) load(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := l.pkgs[path]; p != nil {
		return p, nil
	}
	z := l.zip[path]
	if z == nil {
		return nil, fmt.Errorf("package %s is not in the standard library", path)
	}
	r, err := z.Open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if path == "syscall" {
		text = append(text, syscallAPI()...)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	conf := types.Config{
		Importer:                 importerFunc(l.load),
		IgnoreFuncBodies:         true,
		Error:                    func(error) {}, // functions without bodies
		FakeImportC:              true,
		DisableUnusedImportCheck: true,
	}
	files := []*ast.File{f}
	var info *types.Info
	if text := genericSource(path); text != "" {
		g, err := parser.ParseFile(fset, path+".go", text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		withoutDeclared(f, g)
		files = append(files, g)
		conf.IgnoreFuncBodies = false
		info = newInfo()
	}
	p, _ := conf.Check(path, fset, files, info)
	if info != nil {
		for _, d := range files[1].Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				if o, ok := info.Defs[fn.Name].(*types.Func); ok {
					l.bodies[o] = body{fn: fn, info: info}
				}
			}
		}
	}
	p.MarkComplete()
	l.pkgs[path] = p
	return p, nil
}

// withoutDeclared takes out of f what g declares with bodies.
func withoutDeclared(f, g *ast.File) {
	has := map[string]bool{}
	for _, d := range g.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			has[receiverName(d)+"."+d.Name.Name] = true
		case *ast.GenDecl:
			if t, ok := d.Specs[0].(*ast.TypeSpec); ok {
				has["."+t.Name.Name] = true
			}
		}
	}
	var kept []ast.Decl
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if has[receiverName(d)+"."+d.Name.Name] {
				continue
			}
		case *ast.GenDecl:
			if t, ok := d.Specs[0].(*ast.TypeSpec); ok && has["."+t.Name.Name] {
				continue
			}
		}
		kept = append(kept, d)
	}
	f.Decls = kept
}

func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{}, Instances: map[*ast.Ident]types.Instance{},
		Scopes: map[ast.Node]*types.Scope{},
	}
}

// find gives the import path that a file using name.member for each of members
// most likely means, or "".
func (l *library) find(name string, members []string) string {
	for _, path := range l.names[name] {
		p, err := l.Import(path)
		if err != nil {
			continue
		}
		if !slices.ContainsFunc(members, func(m string) bool { return p.Scope().Lookup(m) == nil }) {
			return path
		}
	}
	if paths := l.names[name]; len(paths) > 0 {
		return paths[0]
	}
	return ""
}

// paths are the import paths that cells can use, in order.
func (l *library) paths() []string {
	var s []string
	for _, p := range l.names {
		s = append(s, p...)
	}
	slices.Sort(s)
	return s
}

type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

// receiverName is the name of a method's receiver type.
func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// scannerErrors takes a parser's error apart.
func scannerErrors(err error) scanner.ErrorList {
	var list scanner.ErrorList
	if errors.As(err, &list) {
		return list
	}
	return nil
}
