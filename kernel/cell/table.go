package cell

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
)

// mark separates a name from what makes it unique. It is a letter for Go, and no
// keyboard has it.
const mark = "ː"

// unmark takes the marks out of a text that names declarations.
func unmark(s string) string {
	for {
		i := strings.Index(s, mark)
		if i < 0 {
			return s
		}
		j := i + len(mark)
		for j < len(s) && s[j] >= '0' && s[j] <= '9' {
			j++
		}
		s = s[:i] + s[j:]
	}
}

type declKind int

const (
	varKind declKind = iota
	constKind
	typeKind
	funcKind
	methodKind
)

// A decl is one version of one declared name. A later declaration of the name
// hides it, and what was compiled with it keeps it.
type decl struct {
	id   int    // unique in the session
	name string // as written
	kind declKind
	recv *decl  // a method's type
	run  string // its name in the interpreter; a method keeps its own
	file string // its name in the files that are checked; differs from name once hidden

	fn      *ast.FuncDecl  // funcKind and methodKind
	spec    *ast.TypeSpec  // typeKind
	typ     ast.Expr       // varKind, and constKind where it is typed
	value   constant.Value // constKind
	basic   types.BasicKind
	generic bool

	code    *code            // of a method
	job     *job             // of what gotten packages declare
	methods map[string]*decl // of an instance of a generic type
	of      int              // the generic declaration that such a method is of

	// What another shell's interpreter needs to know it too.
	home    *shell
	lowered ast.Node        // a declaration, or a variable's type
	needs   map[string]bool // the packages that lowered names

	refs     []*ast.Ident // what names it in checked files
	packages []packageRef
	uses     map[*decl]bool

	src  *source
	text string // the declaration as written
	pos  token.Pos
	line int
	col  int
	doc  string
}

// A table is what the cells of a session have declared. It knows nothing of the
// interpreter. The mutex is held while a cell is checked, never while it runs.
type table struct {
	mu        sync.Mutex
	lib       *library
	lab       *types.Package // nil without exports
	current   map[string]*decl
	methods   map[*decl]map[string]*decl
	all       []*decl           // every declaration that a check needs, in order
	imports   map[string]string // local name → path, of earlier cells
	dots      []string          // dot-imported paths
	serial    int
	instances map[string]*decl        // of generic declarations, by what they are of
	used      map[string]bool         // names that the interpreter has seen
	seen      atomic.Pointer[outlook] // what questions see, which don't wait for mu
	scope     *types.Package          // of the last check that passed
	types     *rtypes
	compiled  map[string]reflect.Value                      // compiledSymbols
	known     func(path, name string) (reflect.Value, bool) // the interpreter's symbols
	shell     *shell                                        // the main one
	begun     map[*gottenPackage]bool                       // whose initialization has been compiled
	pending   []pendingInit                                 // initializers that no cell has run
}

func newTable(lib *library, lab *types.Package, std func(path, name string) reflect.Type) *table {
	t := &table{lib: lib, lab: lab, current: map[string]*decl{}, methods: map[*decl]map[string]*decl{}, imports: map[string]string{}, used: map[string]bool{}, instances: map[string]*decl{}, begun: map[*gottenPackage]bool{}, types: newRTypes(std)}
	t.seen.Store(newOutlook())
	return t
}

func (t *table) next() int { t.serial++; return t.serial }

// reserved are names that mean something to the interpreter itself.
var reserved = map[string]bool{"main": true, "init": true, "_": true}

// runName gives a fresh name for the interpreter.
func (t *table) runName(name string, used bool) string {
	if used || reserved[name] || types.Universe.Lookup(name) != nil {
		return name + mark + strconv.Itoa(t.next())
	}
	return name
}

// hide makes room for a new declaration of d's name.
func (t *table) hide(d *decl) func() {
	old := d.file
	d.setFile(d.name + mark + strconv.Itoa(t.next()))
	return func() { d.setFile(old) }
}

func (d *decl) setFile(name string) {
	d.file = name
	for _, id := range d.refs {
		id.Name = name
	}
}

// declarations are those of the table as one file to check. Functions lose their
// bodies, which have been checked before.
func (t *table) declarations(paths map[string]bool, except map[*decl]bool) *ast.File {
	f := &ast.File{Name: ast.NewIdent(checkedName)}
	for _, d := range t.all {
		if except[d] {
			continue
		}
		switch d.kind {
		case varKind:
			f.Decls = append(f.Decls, &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{d.ident()}, Type: d.typ}}})
		case constKind:
			f.Decls = append(f.Decls, &ast.GenDecl{Tok: token.CONST, Specs: []ast.Spec{&ast.ValueSpec{
				Names: []*ast.Ident{d.ident()}, Type: d.typ, Values: []ast.Expr{constantExpr(d.value, d.basic)}}}})
		case typeKind:
			s := *d.spec
			s.Name = d.ident()
			f.Decls = append(f.Decls, &ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{&s}})
		case funcKind, methodKind:
			fn := *d.fn
			fn.Name = d.ident()
			if !d.generic {
				fn.Body = nil
			}
			f.Decls = append(f.Decls, &fn)
		}
	}
	var specs []ast.Decl
	for p := range paths {
		specs = append(specs, importDecl(importAlias(p), p))
	}
	f.Decls = append(specs, f.Decls...)
	return f
}

// ident is d's name where it is declared; the checker wants positions.
func (d *decl) ident() *ast.Ident { return &ast.Ident{Name: d.file, NamePos: d.pos} }

func importDecl(name, path string) *ast.GenDecl {
	s := &ast.ImportSpec{Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(path)}}
	if name != "" {
		s.Name = ast.NewIdent(name)
	}
	return &ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{s}}
}

// escape begins the code of a rune that a name can't have. It is a letter for Go.
const escape = 'ˑ'

// importAlias is the one name of a package in what is checked again and in what
// is run; no declaration can hide it.
func importAlias(path string) string {
	var b strings.Builder
	for i, r := range path {
		switch {
		case r == '/':
			b.WriteString(mark)
		case r == '_' || unicode.IsLetter(r) && r != escape || unicode.IsDigit(r) && i > 0:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "%c%04x", escape, r)
		}
	}
	return b.String() + mark
}

// constantExpr writes a constant so that it reads back exactly. kind tells rune
// from int and int from float where the constant is untyped.
func constantExpr(v constant.Value, kind types.BasicKind) ast.Expr {
	lit := func(k token.Token, s string) ast.Expr { return &ast.BasicLit{Kind: k, Value: s} }
	switch v.Kind() {
	case constant.Bool:
		return ast.NewIdent(v.String())
	case constant.String:
		return lit(token.STRING, strconv.Quote(constant.StringVal(v)))
	case constant.Int:
		neg := constant.Sign(v) < 0
		s := v.ExactString()
		if neg {
			s = s[1:]
		}
		var e ast.Expr
		switch kind {
		case types.UntypedRune:
			if i, ok := constant.Int64Val(v); ok && i >= 0 && i <= 0x10FFFF {
				return lit(token.CHAR, strconv.QuoteRune(rune(i)))
			}
			e = &ast.BinaryExpr{X: lit(token.CHAR, "'\\x00'"), Op: token.ADD, Y: lit(token.INT, s)}
			e = &ast.ParenExpr{X: e}
		case types.UntypedFloat, types.Float32, types.Float64:
			e = lit(token.FLOAT, s+".0")
		case types.UntypedComplex, types.Complex64, types.Complex128:
			e = &ast.ParenExpr{X: &ast.BinaryExpr{X: lit(token.FLOAT, s+".0"), Op: token.ADD, Y: lit(token.IMAG, "0i")}}
		default:
			e = lit(token.INT, s)
		}
		if neg {
			e = &ast.UnaryExpr{Op: token.SUB, X: e}
		}
		return e
	case constant.Float:
		num, den := constant.Num(v), constant.Denom(v)
		if num.Kind() == constant.Int && den.Kind() == constant.Int && len(num.ExactString()) < 400 && len(den.ExactString()) < 400 {
			neg := constant.Sign(num) < 0
			s := num.ExactString()
			if neg {
				s = s[1:]
			}
			var e ast.Expr = lit(token.FLOAT, s+".0")
			if neg {
				e = &ast.UnaryExpr{Op: token.SUB, X: e}
			}
			if constant.Compare(den, token.EQL, constant.MakeInt64(1)) {
				return e
			}
			return &ast.ParenExpr{X: &ast.BinaryExpr{X: e, Op: token.QUO, Y: lit(token.FLOAT, den.ExactString()+".0")}}
		}
		f, _ := constant.Float64Val(v)
		return lit(token.FLOAT, strconv.FormatFloat(f, 'g', -1, 64))
	case constant.Complex:
		re := constantExpr(constant.ToFloat(constant.Real(v)), types.UntypedFloat)
		im := constant.Imag(v)
		f, _ := constant.Float64Val(im)
		op := token.ADD
		if f < 0 {
			op, f = token.SUB, -f
		}
		return &ast.ParenExpr{X: &ast.BinaryExpr{X: re, Op: op, Y: lit(token.IMAG, strconv.FormatFloat(f, 'g', -1, 64)+"i")}}
	}
	panic(fmt.Sprintf("cell: constant %v", v))
}
