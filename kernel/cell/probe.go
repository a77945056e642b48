package cell

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// probe checks an unfinished cell as far as it goes, runs nothing and declares
// nothing. nil where not even a part of it can be parsed. t.mu is held.
func (t *table) probe(fset *token.FileSet, src *source) *unit {
	u := &unit{
		table: t, src: src, fset: fset, vars: map[*ast.Ident]*decl{}, alias: map[*decl]*decl{}, uses: map[*decl]bool{},
		named: map[types.Object]*decl{}, imports: maps.Clone(t.imports), imported: map[string]bool{}, dots: slices.Clone(t.dots), text: map[*ast.FuncDecl]*decl{},
		probing: true,
	}
	pieces, _, err := parsePieces(fset, src)
	if err != nil {
		return nil
	}
	for _, p := range pieces {
		switch d := p.decl.(type) {
		case nil:
			u.body = append(u.body, p.stmt...)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				for _, s := range d.Specs {
					u.addImport(s.(*ast.ImportSpec))
				}
				continue
			}
			u.decls = append(u.decls, d)
		case *ast.FuncDecl:
			u.decls = append(u.decls, d)
		}
	}
	u.collect()
	undos := u.displace()
	if n := len(u.body) - 1; n >= 0 {
		if x, ok := u.body[n].(*ast.ExprStmt); ok {
			u.result = x.X
		}
	}
	u.run(true)
	u.name()
	for i := len(undos) - 1; i >= 0; i-- {
		undos[i]()
	}
	return u
}

// cursorName stands where the cursor is in a cell that is probed for completion.
const cursorName = "cursor" + mark

// byteOffset turns a count of code points into one of bytes.
func byteOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func isIdent(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r >= utf8.RuneSelf && string(r) != mark
}

// wordAt gives the identifier that ends at or contains offset: its start and end.
func wordAt(s string, offset int) (start, end int) {
	start, end = offset, offset
	for start > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:start])
		if !isIdent(r) {
			break
		}
		start -= n
	}
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if !isIdent(r) {
			break
		}
		end += n
	}
	return start, end
}

// state says how s ends: with brackets open, innermost last, or in the middle of a
// comment or a string.
func state(s string) (open []byte, inside bool) {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(s))
	var sc scanner.Scanner
	sc.Init(f, []byte(s), func(_ token.Position, msg string) {
		if strings.Contains(msg, "not terminated") {
			inside = true
		}
	}, scanner.ScanComments)
	for {
		p, tok, lit := sc.Scan()
		switch tok {
		case token.EOF:
			return open, inside
		case token.COMMENT:
			if strings.HasPrefix(lit, "//") && f.Offset(p)+len(lit) >= len(s) {
				inside = true
			}
		case token.LPAREN:
			open = append(open, ')')
		case token.LBRACK:
			open = append(open, ']')
		case token.LBRACE:
			open = append(open, '}')
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if n := len(open); n > 0 {
				open = open[:n-1]
			}
		}
	}
}

// closed finishes s: the brackets that are open in it are closed.
func closed(s string) string {
	open, _ := state(s)
	var b strings.Builder
	b.WriteString(s)
	for i := len(open) - 1; i >= 0; i-- {
		b.WriteByte(open[i])
	}
	return b.String()
}

// describe gives an object's kind, as front ends name kinds, and its signature.
func (u *unit) describe(o types.Object) (kind, signature string) {
	q := func(p *types.Package) string {
		if p == u.pkg || p == u.table.lab {
			return ""
		}
		return p.Name()
	}
	switch o := o.(type) {
	case *types.Func:
		kind = "function"
		if o.Signature().Recv() != nil {
			kind = "method"
		}
		signature = o.Name() + strings.TrimPrefix(types.TypeString(o.Type(), q), "func")
	case *types.TypeName:
		kind, signature = "type", o.Name()
		if o.Type() != nil && o.Type().Underlying() != nil {
			under := types.TypeString(o.Type().Underlying(), q)
			if _, ok := o.Type().Underlying().(*types.Struct); ok && o.Pkg() != u.pkg {
				under = "struct" // the standard library's hidden fields are made up
			}
			signature = "type " + o.Name() + " " + under
		}
	case *types.Var:
		kind = "variable"
		if o.IsField() {
			kind = "field"
		}
		signature = o.Name() + " " + types.TypeString(o.Type(), q)
	case *types.Const:
		kind = "constant"
		signature = o.Name() + " " + types.TypeString(o.Type(), q) + " = " + o.Val().String()
	case *types.PkgName:
		kind, signature = "module", "package "+o.Imported().Path()
	case *types.Builtin:
		kind, signature = "function", o.Name()
	default:
		kind, signature = "constant", o.Name()
	}
	return kind, unmark(signature)
}

// forget takes the files of probes, added since base, out of the file set.
func (s *shell) forget(base int) {
	var files []*token.File
	s.fset.Iterate(func(f *token.File) bool {
		if f.Base() >= base {
			files = append(files, f)
		}
		return true
	})
	for _, f := range files {
		s.fset.RemoveFile(f)
	}
}
