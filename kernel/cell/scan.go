package cell

import (
	"go/scanner"
	"go/token"
	"strings"
)

// A lexeme is a token of a cell, with its bytes.
type lexeme struct {
	start, end int
	tok        token.Token
	lit        string
	open       bool // a string, rune or comment that doesn't end
}

// lex gives the tokens of a text, however unfinished. Comments are left out, but
// for one that reaches the text's end.
func lex(text string) []lexeme {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(text))
	open := map[int]bool{}
	var sc scanner.Scanner
	sc.Init(f, []byte(text), func(p token.Position, msg string) {
		if strings.Contains(msg, "not terminated") {
			open[p.Offset] = true
		}
	}, scanner.ScanComments)
	var out []lexeme
	for {
		p, tok, lit := sc.Scan()
		if tok == token.EOF {
			return out
		}
		l := lexeme{start: f.Offset(p), tok: tok, lit: lit}
		l.open = open[l.start]
		switch {
		case tok == token.SEMICOLON && lit == "\n":
			if l.end = l.start; l.end == len(text) {
				continue // the text's end, not a line's
			}
		case l.open && (tok == token.COMMENT || strings.HasPrefix(lit, "`")):
			l.end = len(text)
		case tok == token.COMMENT:
			if !strings.HasPrefix(lit, "//") || strings.IndexByte(text[l.start:], '\n') >= 0 {
				continue
			}
			l.open, l.end = true, len(text)
		case tok == token.STRING && strings.HasPrefix(lit, "`"):
			l.end = l.start + rawLength(text[l.start:])
		case lit != "":
			l.end = l.start + len(lit)
		default:
			l.end = l.start + len(tok.String())
		}
		out = append(out, l)
	}
}

// A bracket is one that is open where a text ends.
type bracket struct {
	tok  token.Token
	at   int // its lexeme's index
	head int // the index of the lexeme that begins the statement around it
}

// nesting gives the brackets that are open at the end, innermost last, and the
// index of the lexeme that begins the last statement.
func nesting(list []lexeme) (open []bracket, head int) {
	n := newNest(list)
	for range list {
		n.next()
	}
	return n.open, n.heads[len(n.heads)-1]
}

// A nest goes through a list of lexemes and keeps what is open.
type nest struct {
	list  []lexeme
	i     int
	open  []bracket
	heads []int // where the statement at each level begins
	block bool  // the statement's block has been closed, at the level of the last closed one
}

func newNest(list []lexeme) *nest { return &nest{list: list, heads: []int{0}} }

// header says whether a semicolon belongs to the if, for or switch that it is in.
func (n *nest) header(l lexeme) bool {
	if l.lit == "\n" || n.block {
		return false
	}
	switch headOf(n.list[:n.i], n.heads[len(n.heads)-1]) {
	case token.IF, token.FOR, token.SWITCH:
		return true
	}
	return false
}

// next takes one lexeme. It is false for a bracket that closes nothing.
func (n *nest) next() bool {
	i := n.i
	l := n.list[i]
	n.i++
	pop := func() { n.open, n.heads = n.open[:len(n.open)-1], n.heads[:len(n.open)] }
	switch l.tok {
	case token.LPAREN, token.LBRACK, token.LBRACE:
		n.block = false
		n.open = append(n.open, bracket{tok: l.tok, at: i, head: n.heads[len(n.heads)-1]})
		n.heads = append(n.heads, i+1)
	case token.RPAREN, token.RBRACK:
		if k := len(n.open); k > 0 && n.open[k-1].tok != token.LBRACE {
			pop()
			return true
		}
		n.heads[len(n.heads)-1] = i + 1
		return false
	case token.RBRACE:
		for k := len(n.open); k > 0; k-- {
			if n.open[k-1].tok == token.LBRACE {
				for len(n.open) >= k {
					pop()
				}
				n.block = true
				return true
			}
		}
		n.open, n.heads = nil, []int{i + 1}
		return false
	case token.ELSE:
		n.block = false
	case token.SEMICOLON:
		if n.header(l) {
			break
		}
		n.block = false
		// A line can't end a statement within parentheses, but for those of a group.
		for k := len(n.open); k > 0 && l.lit == "\n" && n.open[k-1].tok != token.LBRACE && !n.group(n.open[k-1]); k-- {
			pop()
		}
		n.heads[len(n.heads)-1] = i + 1
	case token.COLON:
		n.heads[len(n.heads)-1] = i + 1
	}
	return true
}

// group says whether a bracket begins a group of declarations.
func (n *nest) group(b bracket) bool {
	if b.at == 0 {
		return false
	}
	switch n.list[b.at-1].tok {
	case token.IMPORT, token.CONST, token.VAR, token.TYPE:
		return b.tok == token.LPAREN
	}
	return false
}

// headOf is the token at index i, the beginning of a statement.
func headOf(list []lexeme, i int) token.Token {
	if i < len(list) {
		return list[i].tok
	}
	return token.ILLEGAL
}

// closing ends what list leaves open, as Go would have it.
func closing(list []lexeme) string {
	open, _ := nesting(list)
	var b strings.Builder
	for i := len(open) - 1; i >= 0; i-- {
		switch o := open[i]; o.tok {
		case token.LPAREN:
			b.WriteByte(')')
		case token.LBRACK:
			b.WriteByte(']')
		default:
			b.WriteByte('}')
			if h := headOf(list, o.head); (h == token.GO || h == token.DEFER) && headOf(list, o.head+1) == token.FUNC {
				b.WriteString("()") // what is called is the function being written
			}
		}
	}
	return b.String()
}

// A segment is a top-level declaration or statement of a cell.
type segment struct {
	start, end int
	decl       bool // anything but statements and variables
}

// segments cuts a text at its top-level declarations and statements. Where brackets
// are left open, a line that begins with a declaration's keyword begins one.
func segments(text string) []segment {
	list := lex(text)
	open, _ := nesting(list)
	var out []segment
	n := newNest(list)
	begin := true
	for i, l := range list {
		if len(open) > 0 && len(n.open) > 0 && (l.start == 0 || text[l.start-1] == '\n') {
			switch l.tok {
			case token.FUNC, token.TYPE, token.CONST, token.VAR, token.IMPORT, token.PACKAGE:
				n.open, n.heads, begin = nil, []int{i}, true
			}
		}
		if begin && l.tok != token.SEMICOLON {
			begin = false
			s := segment{start: l.start, end: l.end}
			switch l.tok {
			case token.IMPORT, token.TYPE, token.CONST, token.PACKAGE:
				s.decl = true
			case token.FUNC:
				s.decl = beginsFunc(list[i:])
			}
			if s.decl {
				s.start = docStart(text, s.start)
			}
			out = append(out, s)
		}
		if !n.next() && len(n.open) == 0 {
			if k := len(out) - 1; k >= 0 && out[k].start == l.start {
				out = out[:k]
			}
			begin = true
			continue
		}
		if l.tok == token.SEMICOLON {
			begin = len(n.open) == 0 && n.heads[0] == n.i
		}
		if k := len(out) - 1; !begin && k >= 0 && l.tok != token.COMMENT {
			out[k].end = max(out[k].end, l.end)
		}
	}
	return out
}

// beginsFunc says whether a func at the beginning of list declares a function or
// method and isn't a literal.
func beginsFunc(list []lexeme) bool {
	if len(list) < 2 || list[1].tok == token.IDENT {
		return len(list) >= 2
	}
	if list[1].tok != token.LPAREN {
		return false
	}
	depth := 0
	for i, l := range list[1:] {
		switch l.tok {
		case token.LPAREN:
			depth++
		case token.RPAREN:
			if depth--; depth == 0 {
				after := list[i+2:]
				return len(after) > 1 && after[0].tok == token.IDENT && (after[1].tok == token.LPAREN || after[1].tok == token.LBRACK)
			}
		}
	}
	return false
}
