//go:build ignore

// stdapi_gen writes stdapi.zip: what go/types must know of the standard library,
// as Go declarations without bodies, a file a package. Run it with the Go release
// that go.mod names:
//
//	go run stdapi_gen.go [stdapi.zip stdmore.go stddoc.zip]
//
// stdmore.go gets what the interpreter's own tables of the library lack.
// stddoc.zip gets the documentation, a JSON object a package: doc comments by name,
// by Type.Name for methods and fields, and by "" for the package. builtin has the
// signatures of its functions too, by "func name".
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/doc"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/traefik/yaegi/stdlib"
)

func main() {
	log.SetFlags(0)
	out, more, docs := "stdapi.zip", "stdmore.go", "stddoc.zip"
	if len(os.Args) > 3 {
		out, more, docs = os.Args[1], os.Args[2], os.Args[3]
	}
	g := &generator{exports: map[string]string{}, dirs: map[string]string{}, want: map[types.Object]bool{}}
	cmd := exec.Command("go", "list", "-export", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}", "std")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	list, err := cmd.Output()
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		g.exports[f[0]], g.dirs[f[0]] = f[1], f[2]
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(g.exports[path]) })
	var paths []string
	for key := range stdlib.Symbols {
		path := filepath.Dir(key)
		if g.exports[path] != "" {
			paths = append(paths, path)
		}
	}
	paths = append(paths, "iter", "unique", "weak", "structs", "os/exec", "crypto/sha3", "testing/synctest",
		"crypto/fips140", "crypto/hkdf", "crypto/hpke", "crypto/mlkem", "crypto/mlkem/mlkemtest", "crypto/pbkdf2")
	slices.Sort(paths)
	paths = slices.Compact(paths)
	for _, p := range paths {
		pkg, err := imp.Import(p)
		if err != nil {
			log.Fatal(err)
		}
		for _, n := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(n); o.Exported() {
				g.need(o)
			}
		}
	}
	for len(g.queue) > 0 {
		o := g.queue[0]
		g.queue = g.queue[1:]
		g.visit(o)
	}
	by := map[*types.Package][]types.Object{}
	for o := range g.want {
		by[o.Pkg()] = append(by[o.Pkg()], o)
	}
	pkgs := make([]*types.Package, 0, len(by))
	for p := range by {
		pkgs = append(pkgs, p)
	}
	sort.Slice(pkgs, func(i, j int) bool { return pkgs[i].Path() < pkgs[j].Path() })
	api, doc := newArchive(), newArchive()
	for _, p := range pkgs {
		objs := by[p]
		sort.Slice(objs, func(i, j int) bool { return objs[i].Name() < objs[j].Name() })
		api.add(p.Path(), g.file(p, objs))
		if m := g.docs(p.Path()); len(m) > 0 {
			doc.add(p.Path(), encode(m))
		}
	}
	api.add("time/tzdata", []byte("package tzdata\n")) // which exports nothing
	g.dirs["builtin"] = filepath.Join(filepath.Dir(g.dirs["fmt"]), "builtin")
	doc.add("builtin", encode(g.docs("builtin")))
	g.more(more, pkgs, by)
	api.write(out)
	doc.write(docs)
}

// An archive is a zip file being made.
type archive struct {
	buf bytes.Buffer
	zip *zip.Writer
}

func newArchive() *archive {
	a := &archive{}
	a.zip = zip.NewWriter(&a.buf)
	a.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	return a
}

func (a *archive) add(name string, data []byte) {
	w, err := a.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		log.Fatal(err)
	}
}

func (a *archive) write(name string) {
	if err := a.zip.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(name, a.buf.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

type generator struct {
	exports, dirs map[string]string
	want          map[types.Object]bool
	queue         []types.Object
}

func (g *generator) need(o types.Object) {
	if o.Pkg() == nil || o.Pkg().Path() == "unsafe" || g.want[o] {
		return
	}
	g.want[o] = true
	g.queue = append(g.queue, o)
}

// visit makes everything needed that o's printed declaration names.
func (g *generator) visit(o types.Object) {
	if t, ok := o.(*types.TypeName); ok {
		if a, ok := t.Type().(*types.Alias); ok {
			g.reach(a.Rhs())
			for i := range a.TypeParams().Len() {
				g.reach(a.TypeParams().At(i).Constraint())
			}
			return
		}
		n := t.Type().(*types.Named)
		for i := range n.TypeParams().Len() {
			g.reach(n.TypeParams().At(i).Constraint())
		}
		g.reach(n.Underlying())
		for i := range n.NumMethods() {
			if m := n.Method(i); m.Exported() {
				g.reach(m.Type())
			}
		}
		return
	}
	g.reach(o.Type())
}

func (g *generator) reach(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		g.need(t.Obj())
		for i := range t.TypeArgs().Len() {
			g.reach(t.TypeArgs().At(i))
		}
	case *types.Named:
		g.need(t.Obj())
		for i := range t.TypeArgs().Len() {
			g.reach(t.TypeArgs().At(i))
		}
	case *types.Pointer:
		g.reach(t.Elem())
	case *types.Slice:
		g.reach(t.Elem())
	case *types.Array:
		g.reach(t.Elem())
	case *types.Chan:
		g.reach(t.Elem())
	case *types.Map:
		g.reach(t.Key())
		g.reach(t.Elem())
	case *types.Signature:
		for _, tup := range []*types.Tuple{t.Params(), t.Results()} {
			for i := range tup.Len() {
				g.reach(tup.At(i).Type())
			}
		}
		for i := range t.TypeParams().Len() {
			g.reach(t.TypeParams().At(i).Constraint())
		}
	case *types.Struct:
		for i := range t.NumFields() {
			if f := t.Field(i); f.Exported() || f.Embedded() {
				g.reach(f.Type())
			}
		}
	case *types.Interface:
		for i := range t.NumExplicitMethods() {
			if m := t.ExplicitMethod(i); m.Exported() {
				g.reach(m.Type())
			}
		}
		for i := range t.NumEmbeddeds() {
			g.reach(t.EmbeddedType(i))
		}
	case *types.Union:
		for i := range t.Len() {
			g.reach(t.Term(i).Type())
		}
	}
}

// unnamed are the results that a function's author gave no name and the compiler did.
var unnamed = regexp.MustCompile(`#\w+ `)

// plain says whether a method's signature has no parameters and no results, so
// that it can be printed without more declarations.
func (g *generator) plain(t types.Type) bool {
	s := t.(*types.Signature)
	return s.Params().Len() == 0 && s.Results().Len() == 0
}

// more writes the functions, variables and types of the standard
// library that the interpreter's own tables lack.
func (g *generator) more(out string, pkgs []*types.Package, by map[*types.Package][]types.Object) {
	var b strings.Builder
	b.WriteString("// Code generated by stdapi_gen.go. DO NOT EDIT.\n\npackage cell\n\nimport (\n\t\"reflect\"\n\n")
	var body strings.Builder
	for _, p := range pkgs {
		if strings.Contains(p.Path(), "internal") || strings.HasPrefix(p.Path(), "vendor/") || p.Path() == "syscall" || p.Path() == "log/syslog" || p.Path() == "testing" || p.Path() == "testing/synctest" {
			continue
		}
		have := stdlib.Symbols[p.Path()+"/"+p.Name()]
		local := "std_" + strings.NewReplacer("/", "_", ".", "_").Replace(p.Path())
		var lines []string
		for _, o := range by[p] {
			if _, ok := have[o.Name()]; ok || !o.Exported() {
				continue
			}
			switch o := o.(type) {
			case *types.Func:
				if o.Signature().TypeParams().Len() == 0 {
					lines = append(lines, fmt.Sprintf("%q: reflect.ValueOf(%s.%s),", o.Name(), local, o.Name()))
				}
			case *types.Var:
				lines = append(lines, fmt.Sprintf("%q: reflect.ValueOf(&%s.%s).Elem(),", o.Name(), local, o.Name()))
			case *types.TypeName:
				if n, ok := o.Type().(*types.Named); ok && n.TypeParams().Len() == 0 {
					if it, ok := n.Underlying().(*types.Interface); ok && !it.IsMethodSet() {
						continue
					}
					lines = append(lines, fmt.Sprintf("%q: reflect.ValueOf((*%s.%s)(nil)),", o.Name(), local, o.Name()))
				}
			}
		}
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\t%s %q\n", local, p.Path())
		fmt.Fprintf(&body, "\t\t%q: {\n\t\t\t%s\n\t\t},\n", p.Path()+"/"+p.Name(), strings.Join(lines, "\n\t\t\t"))
	}
	b.WriteString(")\n\n// moreSymbols are names of the standard library that the interpreter's tables lack.\nfunc moreSymbols() map[string]map[string]reflect.Value {\n\treturn map[string]map[string]reflect.Value{\n" + body.String() + "\t}\n}\n")
	src, err := format.Source([]byte(b.String()))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(out, src, 0o644); err != nil {
		log.Fatal(err)
	}
}

// file prints the package's needed declarations.
func (g *generator) file(p *types.Package, objs []types.Object) []byte {
	imports := map[string]string{} // path → local name
	names := map[string]bool{}
	q := func(o *types.Package) string {
		if o == p {
			return ""
		}
		if n, ok := imports[o.Path()]; ok {
			return n
		}
		n := o.Name()
		for names[n] || p.Scope().Lookup(n) != nil {
			n += "_"
		}
		imports[o.Path()], names[n] = n, true
		return n
	}
	var b strings.Builder
	pr := func(f string, a ...any) { fmt.Fprintf(&b, f, a...) }
	ts := func(t types.Type) string { return unnamed.ReplaceAllString(types.TypeString(t, q), "_ ") }
	// The unexported methods that interfaces of the package ask for.
	hidden := map[string]bool{}
	for _, o := range objs {
		if it, ok := o.Type().Underlying().(*types.Interface); ok {
			for i := range it.NumExplicitMethods() {
				if m := it.ExplicitMethod(i); !m.Exported() {
					hidden[m.Name()] = true
				}
			}
		}
	}
	for _, o := range objs {
		switch o := o.(type) {
		case *types.Const:
			v := o.Val().ExactString()
			if o.Val().Kind() == constant.Float || o.Val().Kind() == constant.Int && isFloat(o.Type()) {
				v = "(" + v + ".0)"
				v = strings.Replace(strings.Replace(v, "/", ".0/", 1), ".0.0", ".0", -1)
			}
			if o.Val().Kind() == constant.Int && isRune(o.Type()) {
				if i := mustInt(o.Val()); i >= 0 && i <= 0x10FFFF && (i < 0xD800 || i > 0xDFFF) {
					v = fmt.Sprintf("'\\U%08x'", i)
				} else {
					v = fmt.Sprintf("'\\x00' + %d", i)
				}
			}
			if bt, ok := o.Type().(*types.Basic); ok && bt.Info()&types.IsUntyped != 0 {
				pr("const %s = %s\n", o.Name(), v)
			} else {
				pr("const %s %s = %s\n", o.Name(), ts(o.Type()), v)
			}
		case *types.Var:
			pr("var %s %s\n", o.Name(), ts(o.Type()))
		case *types.Func:
			pr("func %s%s\n", o.Name(), strings.TrimPrefix(ts(o.Type()), "func"))
		case *types.TypeName:
			if a, ok := o.Type().(*types.Alias); ok {
				pr("type %s%s = %s\n", o.Name(), params(a.TypeParams(), ts), ts(a.Rhs()))
				continue
			}
			n := o.Type().(*types.Named)
			pr("type %s%s ", o.Name(), params(n.TypeParams(), ts))
			g.body(&b, n.Underlying(), ts)
			pr("\n")
			var args []string
			for i := range n.TypeParams().Len() {
				args = append(args, n.TypeParams().At(i).Obj().Name())
			}
			recv := o.Name()
			if len(args) > 0 {
				recv += "[" + strings.Join(args, ", ") + "]"
			}
			for i := range n.NumMethods() {
				m := n.Method(i)
				if !m.Exported() && (!hidden[m.Name()] || !g.plain(m.Type())) {
					continue
				}
				star := ""
				if _, ok := m.Signature().Recv().Type().(*types.Pointer); ok {
					star = "*"
				}
				// The method's own names for the type parameters may differ.
				r := recv
				if k := m.Signature().RecvTypeParams().Len(); k > 0 {
					var own []string
					for i := range k {
						own = append(own, m.Signature().RecvTypeParams().At(i).Obj().Name())
					}
					r = o.Name() + "[" + strings.Join(own, ", ") + "]"
				}
				pr("func (%s%s) %s%s\n", star, r, m.Name(), strings.TrimPrefix(ts(m.Type()), "func"))
			}
		}
	}
	var head strings.Builder
	fmt.Fprintf(&head, "package %s\n", p.Name())
	var ps []string
	for path := range imports {
		ps = append(ps, path)
	}
	slices.Sort(ps)
	for _, path := range ps {
		fmt.Fprintf(&head, "import %s %q\n", imports[path], path)
	}
	return []byte(head.String() + b.String())
}

// body prints an underlying type: a struct without its unexported fields, but as
// comparable as it was, and an interface without its unexported methods.
func (g *generator) body(b *strings.Builder, t types.Type, ts func(types.Type) string) {
	switch t := t.(type) {
	case *types.Struct:
		b.WriteString("struct {")
		hidden := false
		for i := range t.NumFields() {
			f := t.Field(i)
			switch {
			case f.Embedded():
				fmt.Fprintf(b, " %s;", ts(f.Type()))
			case f.Exported():
				fmt.Fprintf(b, " %s %s", f.Name(), ts(f.Type()))
				if tag := t.Tag(i); tag != "" {
					fmt.Fprintf(b, " %q", tag)
				}
				b.WriteString(";")
			default:
				hidden = true
			}
		}
		if hidden {
			if types.Comparable(t) {
				b.WriteString(" unexported int;")
			} else {
				b.WriteString(" unexported func();")
			}
		}
		b.WriteString(" }")
	case *types.Interface:
		b.WriteString("interface {")
		hidden := false
		for i := range t.NumExplicitMethods() {
			m := t.ExplicitMethod(i)
			if m.Exported() || g.plain(m.Type()) {
				fmt.Fprintf(b, " %s%s;", m.Name(), strings.TrimPrefix(ts(m.Type()), "func"))
			} else {
				hidden = true
			}
		}
		for i := range t.NumEmbeddeds() {
			fmt.Fprintf(b, " %s;", ts(t.EmbeddedType(i)))
		}
		if hidden {
			b.WriteString(" unexported();")
		}
		b.WriteString(" }")
	default:
		b.WriteString(ts(t))
	}
}

func params(l *types.TypeParamList, ts func(types.Type) string) string {
	if l.Len() == 0 {
		return ""
	}
	var s []string
	for i := range l.Len() {
		s = append(s, l.At(i).Obj().Name()+" "+ts(l.At(i).Constraint()))
	}
	return "[" + strings.Join(s, ", ") + "]"
}

func isFloat(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

func isRune(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Kind() == types.UntypedRune
}

func mustInt(v constant.Value) int64 { i, _ := constant.Int64Val(v); return i }

// encode writes docs in the order of their names.
func encode(m map[string]string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}

// docs has the doc comments of a package.
func (g *generator) docs(path string) map[string]string {
	m := map[string]string{}
	dir := g.dirs[path]
	if dir == "" || strings.Contains(path, "internal") {
		return m
	}
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", "amd64", false
	fset := token.NewFileSet()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return m
	}
	var files []*ast.File
	for _, e := range entries {
		n := e.Name()
		if ok, err := ctx.MatchFile(dir, n); !ok || err != nil || !strings.HasSuffix(n, ".go") || strings.HasSuffix(n, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, n), nil, parser.ParseComments)
		if err == nil && f.Name.Name == filepath.Base(path) || err == nil && strings.HasSuffix(path, "/v2") {
			files = append(files, f)
		}
	}
	mode := doc.Mode(0)
	if path == "builtin" {
		mode = doc.AllDecls // its names are lower-case
	}
	d, err := doc.NewFromFiles(fset, files, path, mode)
	if err != nil {
		return m
	}
	set := func(key, text string) {
		if text = strings.TrimSpace(text); text != "" {
			m[key] = text
		}
	}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			for _, s := range v.Decl.Specs {
				vs := s.(*ast.ValueSpec)
				text := vs.Doc.Text()
				if text == "" {
					text = vs.Comment.Text()
				}
				if text == "" {
					text = v.Doc
				}
				for _, n := range vs.Names {
					set(n.Name, text)
				}
			}
		}
	}
	funcs := func(prefix string, fs []*doc.Func) {
		for _, f := range fs {
			set(prefix+f.Name, f.Doc)
			if path == "builtin" {
				decl := *f.Decl
				decl.Doc = nil
				var b strings.Builder
				if err := format.Node(&b, fset, &decl); err != nil {
					log.Fatal(err)
				}
				m["func "+f.Name] = b.String()
			}
		}
	}
	set("", d.Doc)
	values(d.Consts)
	values(d.Vars)
	funcs("", d.Funcs)
	for _, t := range d.Types {
		set(t.Name, t.Doc)
		values(t.Consts)
		values(t.Vars)
		funcs("", t.Funcs)
		funcs(t.Name+".", t.Methods)
		for _, s := range t.Decl.Specs {
			var fields *ast.FieldList
			switch x := s.(*ast.TypeSpec).Type.(type) {
			case *ast.StructType:
				fields = x.Fields
			case *ast.InterfaceType:
				fields = x.Methods
			default:
				continue
			}
			for _, f := range fields.List {
				text := f.Doc.Text()
				if text == "" {
					text = f.Comment.Text()
				}
				for _, n := range f.Names {
					if n.IsExported() {
						set(t.Name+"."+n.Name, text)
					}
				}
			}
		}
	}
	return m
}
