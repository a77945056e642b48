package cell

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// goVersion is the language of cells, and the standard library's that they have.
const goVersion = "go1.26"

// A gotten package is one of a module: its source, checked, from which functions are
// compiled for the interpreter as cells come to need them (gotten.go).
type gottenPackage struct {
	pkg    *types.Package
	info   *types.Info
	order  int // dependencies first
	deps   []*gottenPackage
	files  []*ast.File
	inits  []*ast.FuncDecl
	first  map[*types.Var]int       // a variable's place in info.InitOrder
	bad    map[*ast.FuncDecl]string // functions whose bodies don't fit, and why
	embeds map[*types.Var][]string  // the files of variables with a //go:embed
	docs   map[string]string        // by Name, Type.Name, or "" for the package
	dir    string
}

// packages are those of modules that a session has loaded.
type packages struct {
	modules *modules
	fset    *token.FileSet
	loading sync.Mutex // held while packages are loaded; then library.mu guards gotten
	gotten  map[string]*gottenPackage
}

// fetch loads the package at an import path with all that it needs, unless cells have
// it already. progress gets what the toolchain says while it does.
func (l *library) fetch(ctx context.Context, path string, progress io.Writer) error {
	if l.has(path) || l.modules.empty() {
		return nil
	}
	l.loading.Lock()
	defer l.loading.Unlock()
	if l.has(path) {
		return nil
	}
	all, err := l.modules.find(ctx, path, progress)
	if err != nil {
		return err
	}
	l.mu.Lock()
	made := map[string]*gottenPackage{}
	order := len(l.gotten)
	l.mu.Unlock()
	for _, p := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.Standard || l.loaded(p.ImportPath) != nil {
			continue
		}
		g, err := l.loadGotten(p, made)
		if err != nil {
			return err
		}
		g.order = order
		order++
		made[p.ImportPath] = g
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, g := range made {
		l.gotten[path] = g
		for _, f := range g.files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					if o, ok := g.info.Defs[fn.Name].(*types.Func); ok {
						l.bodies[o] = body{fn: fn, info: g.info, of: g}
					}
				}
			}
		}
	}
	return nil
}

var quotedRE = regexp.MustCompile(`"([^"\s]+)"`)

// glance loads what an unfinished cell imports of the modules that were gotten, for a
// question about it, which waits for no other command.
func (l *library) glance(ctx context.Context, code string) {
	if !strings.Contains(code, "import") || l.modules.empty() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, glanceTime)
	defer cancel()
	for _, m := range quotedRE.FindAllStringSubmatch(code, -1) {
		of := func(p string) bool { return m[1] == p || strings.HasPrefix(m[1], p+"/") }
		if slices.ContainsFunc(l.modules.paths(), of) && !l.has(m[1]) && l.modules.turn.TryLock() {
			l.modules.turn.Unlock()
			l.fetch(ctx, m[1], io.Discard) // a fault is the cell's to say
		}
	}
}

// glanceTime is how long a question may load packages.
const glanceTime = 3 * time.Second

// has says whether cells can import the path now.
func (l *library) has(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return path == "unsafe" || l.zip[path] != nil || l.extra[path] != nil || l.gotten[path] != nil
}

// loaded is the loaded package at the path, or nil.
func (l *library) loaded(path string) *gottenPackage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gotten[path]
}

// gottenOf is the package of a module that p is, or nil.
func (l *library) gottenOf(p *types.Package) *gottenPackage {
	if p == nil {
		return nil
	}
	if g := l.loaded(p.Path()); g != nil && g.pkg == p {
		return g
	}
	return nil
}

// loadGotten parses and checks one package, whose dependencies are loaded or in made.
func (l *library) loadGotten(p *listed, made map[string]*gottenPackage) (*gottenPackage, error) {
	g := &gottenPackage{first: map[*types.Var]int{}, bad: map[*ast.FuncDecl]string{}, embeds: map[*types.Var][]string{}, docs: map[string]string{}, dir: p.Dir}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(l.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, &ModuleError{"package " + p.ImportPath, err.Error()}
		}
		g.files = append(g.files, f)
	}
	find := func(path string) *gottenPackage {
		if m := p.ImportMap[path]; m != "" {
			path = m
		}
		if d := made[path]; d != nil {
			return d
		}
		return l.loaded(path)
	}
	for _, path := range p.Imports {
		if d := find(path); d != nil {
			g.deps = append(g.deps, d)
		}
	}
	g.info = newInfo()
	var faults []types.Error
	conf := types.Config{
		Importer: importerFunc(func(path string) (*types.Package, error) {
			if d := find(path); d != nil {
				return d.pkg, nil
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.load(path)
		}),
		GoVersion: goVersion, DisableUnusedImportCheck: true, Sizes: types.SizesFor("gc", "amd64"),
		Error: func(err error) {
			if e := (types.Error{}); errors.As(err, &e) && !e.Soft {
				faults = append(faults, e)
			}
		},
	}
	g.pkg, _ = conf.Check(p.ImportPath, l.fset, g.files, g.info)
	var functions []*ast.FuncDecl
	for _, f := range g.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions = append(functions, fn)
			if fn.Recv == nil && fn.Name.Name == "init" {
				g.inits = append(g.inits, fn)
			}
		}
	}
	for _, e := range faults {
		i := slices.IndexFunc(functions, func(fn *ast.FuncDecl) bool {
			return fn.Body != nil && fn.Body.Pos() <= e.Pos && e.Pos < fn.Body.End()
		})
		text := l.fset.Position(e.Pos).String() + ": " + e.Msg
		if i < 0 {
			return nil, &ModuleError{"package " + p.ImportPath, text}
		}
		if g.bad[functions[i]] == "" {
			g.bad[functions[i]] = text
		}
	}
	for i, in := range g.info.InitOrder {
		for _, v := range in.Lhs {
			g.first[v] = i
		}
	}
	for _, f := range g.files {
		embedded(f, g.info, p.EmbedFiles, g.embeds)
	}
	g.document()
	return g, nil
}

// document collects the doc comments, by the names that stdDocs has them by.
func (g *gottenPackage) document() {
	note := func(name string, groups ...*ast.CommentGroup) {
		if t := firstText(groups...); t != "" && g.docs[name] == "" {
			g.docs[name] = t
		}
	}
	for _, f := range g.files {
		note("", f.Doc)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiverName(d) + "." + name
				}
				note(name, d.Doc)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						note(s.Name.Name, s.Doc, d.Doc, s.Comment)
						var fields *ast.FieldList
						switch t := s.Type.(type) {
						case *ast.StructType:
							fields = t.Fields
						case *ast.InterfaceType:
							fields = t.Methods
						default:
							continue
						}
						for _, field := range fields.List {
							for _, n := range field.Names {
								note(s.Name.Name+"."+n.Name, field.Doc, field.Comment)
							}
						}
					case *ast.ValueSpec:
						for _, n := range s.Names {
							note(n.Name, s.Doc, d.Doc, s.Comment)
						}
					}
				}
			}
		}
	}
}

// doc is the documentation of a name of the package at the path.
func (l *library) doc(path, name string) string {
	if g := l.loaded(path); g != nil {
		return g.docs[name]
	}
	return l.docs.doc(path, name)
}

// gottenPaths are the packages that have been loaded, and what was asked for.
func (l *library) gottenPaths() []string {
	paths := l.modules.paths()
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.gotten {
		if !strings.Contains("/"+p+"/", "/internal/") {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// within is the file of a gotten package with its import path in the place of its
// directory; "" for other files.
func (l *library) within(file string) string {
	dir, name := filepath.Split(file)
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, g := range l.gotten {
		if filepath.Clean(dir) == g.dir {
			return path + "/" + name
		}
	}
	return ""
}

// importFault says why a cell can't import the path.
func importFault(path string) error {
	first, _, _ := strings.Cut(path, "/")
	if isGonb(path) {
		return fmt.Errorf("package %s speaks to another kernel; %s", path, otherNames["gonbui"])
	}
	if strings.Contains(first, ".") {
		return fmt.Errorf("package %s is not part of the standard library; %%get %s gets its module", path, path)
	}
	return fmt.Errorf("package %s is not part of the standard library that cells can import", path)
}
