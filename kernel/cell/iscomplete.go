package cell

import (
	"go/token"
	"slices"
	"strings"

	"deltafin/kernel"
)

// step is what a line is indented by within an open bracket: spaces, for jupyter
// console draws a tab as ^I.
const step = "    "

// IsComplete says whether code is ready to run, by Go's own parser. It needs no
// child.
func (h *Host) IsComplete(code string) kernel.Completeness { return isComplete(code) }

func isComplete(code string) kernel.Completeness {
	if _, ok := asked(code); ok {
		return kernel.Completeness{Status: "complete"}
	}
	m, err := rewriteMagics(code)
	if err != nil {
		return kernel.Completeness{Status: "complete"} // running it says what is wrong
	}
	if m.rest && !strings.HasSuffix(code, "\n") {
		return kernel.Completeness{Status: "incomplete"} // an empty line ends the rest of a cell
	}
	code = m.code
	open, inside := state(code)
	if inside && strings.Count(code, "`")%2 == 1 {
		return kernel.Completeness{Status: "incomplete"}
	}
	if inside && strings.LastIndex(code, "/*") > strings.LastIndex(code, "*/") {
		return kernel.Completeness{Status: "incomplete"}
	}
	indent := strings.Repeat(step, len(open))
	text := []byte(code)
	for _, b := range slices.Backward(open) {
		text = append(text, b)
	}
	_, _, err = parsePieces(token.NewFileSet(), newSource("cell", 0, string(text)))
	if err == nil {
		if len(open) > 0 {
			return kernel.Completeness{Status: "incomplete", Indent: indent}
		}
		return kernel.Completeness{Status: "complete"}
	}
	list := scannerErrors(err)
	if len(list) == 0 {
		return kernel.Completeness{Status: "unknown"}
	}
	// What is wrong only where the text stops can still be finished.
	p := list[0].Pos
	lines := strings.Split(strings.TrimRight(code, " \t\r\n"), "\n")
	last := lines[len(lines)-1]
	if p.Line > len(lines) || p.Line == len(lines) && p.Column > len(last) {
		return kernel.Completeness{Status: "incomplete", Indent: indent}
	}
	return kernel.Completeness{Status: "invalid"}
}

// state says how s ends: with brackets open, innermost last, or in the middle of a
// comment or a string.
func state(s string) (open []byte, inside bool) {
	for _, l := range lex(s) {
		inside = inside || l.open
		switch l.tok {
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
	return open, inside
}
