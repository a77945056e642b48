package cell

import (
	"cmp"
	"embed"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Package embed is for gotten packages only, whose files stay in the module cache: their
// variables get what //go:embed names when something first needs them. Beside a cell
// there are no files, and so cells can't import it.

// embedSymbols is what the interpreter knows of package embed.
func embedSymbols() map[string]map[string]reflect.Value {
	return map[string]map[string]reflect.Value{"embed/embed": {"FS": reflect.ValueOf((*embed.FS)(nil))}}
}

// describeEmbed has the library know package embed, but not the cells.
func (l *library) describeEmbed() {
	p, _ := reflectPackage(l, "embed", embedSymbols()["embed/embed"])
	delete(l.extra, "embed")
	l.pkgs["embed"] = p
}

// embedded finds the variables of a file that have a //go:embed, with the names of their
// files, which are among all.
func embedded(f *ast.File, info *types.Info, all []string, to map[*types.Var][]string) {
	if len(all) == 0 {
		return
	}
	after := f.Name.End()
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			after = d.End()
			continue
		}
		for _, s := range g.Specs {
			spec := s.(*ast.ValueSpec)
			var names []string
			for _, group := range f.Comments {
				for _, c := range group.List {
					rest, ok := strings.CutPrefix(c.Text, "//go:embed")
					if ok && c.Pos() > after && c.End() < spec.Pos() && rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
						names = append(names, embeddedNames(rest, all)...)
					}
				}
			}
			after = spec.End()
			if v, ok := info.Defs[spec.Names[0]].(*types.Var); ok && names != nil {
				slices.Sort(names)
				to[v] = slices.Compact(names)
			}
		}
		after = d.End()
	}
}

// embeddedNames are those of the files that a directive's patterns mean.
func embeddedNames(patterns string, all []string) (names []string) {
	for patterns = strings.TrimSpace(patterns); patterns != ""; patterns = strings.TrimSpace(patterns) {
		pattern, rest := patterns, ""
		if quoted, err := strconv.QuotedPrefix(patterns); err == nil {
			pattern, rest = quoted, patterns[len(quoted):]
			pattern, _ = strconv.Unquote(quoted)
		} else if i := strings.IndexAny(patterns, " \t"); i >= 0 {
			pattern, rest = patterns[:i], patterns[i:]
		}
		patterns = rest
		pattern, hidden := strings.CutPrefix(pattern, "all:")
		for _, name := range all {
			// A pattern means a file, or a directory with what is in it.
			for at := name; at != "."; at = path.Dir(at) {
				if ok, _ := path.Match(pattern, at); !ok && pattern != "." {
					continue
				}
				within := strings.Split(strings.TrimPrefix(name, at), "/")
				if hidden || !slices.ContainsFunc(within, func(s string) bool { return s != "" && (s[0] == '.' || s[0] == '_') }) {
					names = append(names, name)
				}
				break
			}
		}
	}
	return names
}

// embedVar has the files of a gotten package's variable read before what is being
// lowered runs.
func (l *lowerer) embedVar(g *gottenPackage, v *types.Var) {
	l.obtainKey("embed "+g.pkg.Path()+"."+v.Name(), "init", funcKind, func(d *decl) {
		l.inits = append(l.inits, initializer{g, -1, d.run})
		l.enqueue(job{d: d, of: g, run: func() {
			l.within(d, g.info, nil, func() {
				pos, x := v.Pos(), l.gottenVar(g, v)
				l.use(x)
				read := &ast.CallExpr{Fun: l.internal("EmbeddedFile", pos), Lparen: pos, Rparen: pos}
				fs := v.Type().String() == "embed.FS"
				if fs {
					read.Fun = l.internal("EmbeddedFiles", pos)
				}
				for _, name := range append([]string{g.dir}, g.embeds[v]...) {
					read.Args = append(read.Args, &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(name), ValuePos: pos})
				}
				var value ast.Expr = read
				if !fs {
					value = &ast.CallExpr{Fun: &ast.ParenExpr{X: l.typeOf(v.Type()), Lparen: pos, Rparen: pos}, Lparen: pos, Rparen: pos, Args: []ast.Expr{read}}
				}
				d.lowered = &ast.FuncDecl{Name: &ast.Ident{Name: d.run, NamePos: pos}, Type: &ast.FuncType{Func: pos, Params: &ast.FieldList{}},
					Body: &ast.BlockStmt{Lbrace: pos, Rbrace: pos, List: []ast.Stmt{
						&ast.AssignStmt{Lhs: []ast.Expr{&ast.Ident{Name: x.run, NamePos: pos}}, Tok: token.ASSIGN, TokPos: pos, Rhs: []ast.Expr{value}}}}}
			})
		}})
	})
}

// embeddedFile is the content of a file of a module.
func embeddedFile(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// An embedFile has the layout of package embed's file, which only the compiler makes.
type embedFile struct {
	name, data string
	hash       [16]byte
}

// embeddedFiles is what the compiler makes of an embed.FS: the files and their
// directories, these with a slash at the end, in the order of directory and name.
func embeddedFiles(dir string, names ...string) (fs embed.FS) {
	seen := map[string]bool{}
	var files []embedFile
	for _, name := range names {
		files = append(files, embedFile{name: name, data: embeddedFile(dir, name)})
		for d := path.Dir(name); d != "." && !seen[d]; d = path.Dir(d) {
			seen[d] = true
			files = append(files, embedFile{name: d + "/"})
		}
	}
	slices.SortFunc(files, func(a, b embedFile) int {
		x, y := strings.TrimSuffix(a.name, "/"), strings.TrimSuffix(b.name, "/")
		return cmp.Or(cmp.Compare(path.Dir(x), path.Dir(y)), cmp.Compare(path.Base(x), path.Base(y)))
	})
	*(**[]embedFile)(unsafe.Pointer(&fs)) = &files
	return fs
}
