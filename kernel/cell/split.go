package cell

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"strconv"
	"strings"
)

// A piece is a part of a cell that Go's parser takes as it is: one declaration
// other than var, or statements, in which top-level var declarations are counted.
type piece struct {
	decl ast.Decl   // a function, method, type, const or import declaration
	stmt []ast.Stmt // or statements
}

// A source is a cell's text with what its pieces need to be shown again.
type source struct {
	name  string // in positions; unique in the session
	count int    // of the execute_request; 0 when silent
	text  string
	lines []string
}

func newSource(name string, count int, text string) *source {
	return &source{name: name, count: count, text: text, lines: strings.Split(text, "\n")}
}

// A chunk is a byte range of the source between two top-level semicolons.
type chunk struct {
	start, end int
	stmt       bool
	keyword    token.Token // of a declaration
}

// chunks cuts a cell at its top-level declarations. silent is true when the cell
// ends in a semicolon that somebody wrote.
func chunks(text string) (list []chunk, silent bool, err error) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	var errs scanner.ErrorList
	s.Init(file, []byte(text), func(p token.Position, m string) { errs.Add(p, m) }, 0)
	type tok struct {
		off int
		tok token.Token
		lit string
	}
	var toks []tok
	for {
		p, t, lit := s.Scan()
		if t == token.EOF {
			break
		}
		toks = append(toks, tok{file.Offset(p), t, lit})
	}
	for i := len(toks) - 1; i >= 0; i-- {
		if toks[i].tok == token.SEMICOLON {
			if toks[i].lit == ";" {
				silent = true
				break
			}
			continue
		}
		break
	}
	depth := 0
	begin := true // at the beginning of a top-level statement
	// isDecl says whether the func at i begins a declaration and not a literal.
	isDecl := func(i int) bool {
		if i+1 >= len(toks) {
			return false
		}
		if toks[i+1].tok == token.IDENT {
			return true
		}
		if toks[i+1].tok != token.LPAREN {
			return false
		}
		d := 0
		for j := i + 1; j < len(toks); j++ {
			switch toks[j].tok {
			case token.LPAREN:
				d++
			case token.RPAREN:
				if d--; d == 0 {
					return j+2 < len(toks) && toks[j+1].tok == token.IDENT && (toks[j+2].tok == token.LPAREN || toks[j+2].tok == token.LBRACK)
				}
			}
		}
		return false
	}
	for i, t := range toks {
		if begin && t.tok != token.SEMICOLON {
			begin = false
			c := chunk{start: t.off, stmt: true}
			switch t.tok {
			case token.IMPORT, token.TYPE, token.CONST, token.PACKAGE:
				c.stmt, c.keyword = false, t.tok
			case token.FUNC:
				if isDecl(i) {
					c.stmt, c.keyword = false, t.tok
				}
			}
			if !c.stmt {
				c.start = docStart(text, c.start)
			}
			if n := len(list); c.stmt && n > 0 && list[n-1].stmt {
				// Goes on with the statements before it.
			} else {
				list = append(list, c)
			}
		}
		switch t.tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if depth--; depth < 0 {
				errs.Add(file.Position(file.Pos(t.off)), "unexpected "+t.tok.String()+", expected a statement")
				errs.Sort()
				return nil, false, errs[:1]
			}
		case token.SEMICOLON:
			if depth == 0 {
				begin = true
			}
		}
		if n := len(list); n > 0 && t.tok != token.SEMICOLON {
			end := t.off + len(t.tok.String())
			if t.tok.IsLiteral() {
				end = t.off + len(t.lit)
				if t.tok == token.STRING && strings.HasPrefix(t.lit, "`") {
					end = t.off + rawLength(text[t.off:])
				}
			}
			list[n-1].end = max(list[n-1].end, end)
		}
	}
	if len(errs) > 0 {
		errs.Sort()
		return nil, false, errs[:1]
	}
	return list, silent, nil
}

// hasPackageClause says whether a cell is a whole program, whatever comments come first.
func hasPackageClause(text string) bool {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(text)), []byte(text), func(token.Position, string) {}, 0)
	_, t, _ := s.Scan()
	return t == token.PACKAGE
}

// docStart is where the comment lines right above a declaration begin.
func docStart(text string, start int) int {
	for {
		line := strings.LastIndexByte(text[:start], '\n')
		if line < 0 || strings.TrimSpace(text[line+1:start]) != "" {
			return start
		}
		above := strings.LastIndexByte(text[:line], '\n') + 1
		if !strings.HasPrefix(strings.TrimSpace(text[above:line]), "//") {
			return start
		}
		start = above + strings.Index(text[above:line], "//")
	}
}

// rawLength is the length of the raw string literal that s begins with; the
// scanner drops carriage returns from the literal that it reports.
func rawLength(s string) int {
	if i := strings.IndexByte(s[1:], '`'); i >= 0 {
		return i + 2
	}
	return len(s)
}

// parsePieces parses a cell. Positions in fset are those of the cell itself.
func parsePieces(fset *token.FileSet, src *source) (pieces []piece, silent bool, err error) {
	list, silent, err := chunks(src.text)
	if err != nil {
		return nil, false, err
	}
	for _, c := range list {
		if c.keyword == token.PACKAGE {
			continue
		}
		line := 1 + strings.Count(src.text[:c.start], "\n")
		col := c.start - (strings.LastIndexByte(src.text[:c.start], '\n') + 1) + 1
		at := "//line " + src.name + ":" + strconv.Itoa(line) + ":" + strconv.Itoa(col) + "\n"
		body := src.text[c.start:c.end]
		if c.stmt {
			f, err := parser.ParseFile(fset, src.name, "package main\nfunc init() {\n"+at+body+"\n}", parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return nil, false, err
			}
			if len(f.Decls) != 1 {
				return nil, false, scanner.ErrorList{{Pos: fset.Position(f.Decls[1].Pos()), Msg: "unexpected }, expected a statement"}}
			}
			pieces = append(pieces, piece{stmt: f.Decls[0].(*ast.FuncDecl).Body.List})
			continue
		}
		f, err := parser.ParseFile(fset, src.name, "package main\n"+at+body, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, false, err
		}
		for _, d := range f.Decls {
			pieces = append(pieces, piece{decl: d})
		}
	}
	return pieces, silent, nil
}
