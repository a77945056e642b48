package cell

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deltafin/kernel"
)

// complete gives the names that can stand at cursor, a count of code points. It
// works from declarations and types alone, whatever runs meanwhile. What it
// replaces is the part of the name before the cursor.
func (s *shell) complete(code string, cursor int) kernel.Completions {
	if strings.HasPrefix(code, "?") && !strings.Contains(code, "\n") {
		code = strings.ReplaceAll(code, "?", " ") // a question
	}
	offset := byteOffset(code, cursor)
	if c, ok := completeMagic(code[:offset], cursor); ok {
		return c
	}
	magic := code
	code = withoutMagics(code)
	if line := strings.LastIndexByte(code[:offset], '\n') + 1; strings.TrimSpace(code[line:offset]) == "" && strings.TrimSpace(magic[line:offset]) != "" {
		if !strings.HasPrefix(strings.TrimSpace(magic[line:offset]), "!") {
			return kernel.Completions{Start: cursor, End: cursor}
		}
		code = magic // not what follows, as likely as a command
	}
	start, _ := wordAt(code[:offset], offset)
	_, end := wordAt(code, offset)
	list := lex(code[:offset])
	m := matcher{prefix: code[start:offset], seen: map[string]bool{}}
	if path, ok := importPath(list); ok {
		m.prefix = path
		for _, p := range append(s.table.lib.paths(), s.table.lib.gottenPaths()...) {
			m.add(p, "module", "", 0)
		}
		return m.completions(cursor)
	}
	if n := len(list); n > 0 && list[n-1].end > start && (list[n-1].open || list[n-1].tok.IsLiteral() && list[n-1].tok != token.IDENT) {
		return kernel.Completions{Start: cursor, End: cursor} // in a comment, a text or a number
	}
	for n := len(list); n > 0 && list[n-1].end > start; n-- {
		list = list[:n-1]
	}
	before := token.ILLEGAL
	if n := len(list); n > 0 {
		if before = list[n-1].tok; list[n-1].end == start && before.IsLiteral() && m.prefix == "" && before != token.IDENT {
			return kernel.Completions{Start: cursor, End: cursor}
		}
	}
	p := s.newProbe(code[:start]+cursorName+code[end:], start)
	at := p.place(list, before)
	add := func(o types.Object, rank int) {
		if !m.wants(o.Name()) {
			return
		}
		kind, signature := p.describe(o)
		if at.types && kind != "type" && kind != "module" {
			return
		}
		m.add(o.Name(), kind, signature, rank)
	}
	switch {
	case at.nothing:
	case at.selector:
		m.members = true
		p.members(add)
	case at.keywordsOnly:
		m.keywords(p.keywords(list, before))
	default:
		if p.fields(add) {
			break
		}
		p.names(add)
		for name, path := range p.seen.imports {
			m.add(name, "module", `"`+path+`"`, rankImport)
		}
		for name, path := range p.imports {
			m.add(name, "module", `"`+path+`"`, rankImport)
		}
		if p.lab != nil {
			m.add(p.lab.Name(), "module", `"`+p.lab.Path()+`"`, rankImport)
		}
		if m.prefix == "" {
			break // everything else is too much to choose from
		}
		for _, path := range p.lib.paths() {
			rank := rankPackage
			if first, _, more := strings.Cut(path, "/"); more && (first == "go" || first == "debug" || first == "runtime" || first == "testing") {
				rank = rankRare
			}
			m.add(packageName(path), "module", `"`+path+`"`, rank)
		}
		builtin := rankBuiltin
		if at.types {
			builtin = rankLab
		}
		for _, n := range types.Universe.Names() {
			add(types.Universe.Lookup(n), builtin)
		}
		m.keywords(p.keywords(list, before))
	}
	return m.completions(cursor)
}

// What fits best comes first.
const (
	rankLocal = iota
	rankCell
	rankLab
	rankImport
	rankPackage
	rankBuiltin
	rankKeyword
	rankRare // packages for tools
)

// A matcher keeps the names that go on from a prefix.
type matcher struct {
	prefix  string
	members bool
	seen    map[string]bool
	found   []match
}

type match struct {
	kernel.Completion
	rank int
}

// wants says whether a name can be among the matches at all.
func (m *matcher) wants(name string) bool {
	return hasPrefixFold(name, m.prefix) || m.members && len(m.prefix) > 1 && hasWord(name, m.prefix)
}

func hasPrefixFold(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

func (m *matcher) add(name, kind, signature string, rank int) {
	if name != "_" && !strings.Contains(name, mark) && !m.seen[name] {
		m.seen[name] = true
		m.found = append(m.found, match{kernel.Completion{Text: name, Type: kind, Signature: signature}, rank})
	}
}

func (m *matcher) keywords(words []string) {
	for _, w := range words {
		m.add(w, "keyword", "", rankKeyword)
	}
}

// completions are the matches in order: first those that begin with the prefix as
// it is, then, where it is in lower case or nothing else is found, in any case. A
// prefix that no member begins with may begin a later word of its name: strings.pre
// is HasPrefix.
func (m *matcher) completions(cursor int) kernel.Completions {
	out := kernel.Completions{Start: cursor - utf8.RuneCountInString(m.prefix), End: cursor}
	tests := []func(string) bool{
		func(name string) bool { return strings.HasPrefix(name, m.prefix) },
		func(name string) bool { return hasPrefixFold(name, m.prefix) },
		func(name string) bool { return m.members && len(m.prefix) > 1 && hasWord(name, m.prefix) },
	}
	slices.SortFunc(m.found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.Text, b.Text))
	})
	lower := m.prefix != "" && strings.ToLower(m.prefix) == m.prefix
	taken := map[string]bool{}
	for i, fits := range tests {
		if len(taken) > 0 && !(i == 1 && lower) {
			break
		}
		for _, x := range m.found {
			if !taken[x.Text] && fits(x.Text) {
				taken[x.Text] = true
				out.Matches = append(out.Matches, x.Completion)
			}
		}
	}
	return out
}

// hasWord says whether one of the words that capitals begin in name begins with
// prefix.
func hasWord(name, prefix string) bool {
	for i, r := range name {
		if unicode.IsUpper(r) && hasPrefixFold(name[i:], prefix) {
			return true
		}
	}
	return false
}

// importPath is the beginning of an import's path that list ends in.
func importPath(list []lexeme) (string, bool) {
	n := len(list) - 1
	if n < 1 || list[n].tok != token.STRING || !list[n].open {
		return "", false
	}
	text := list[n].lit[1:]
	i := n - 1
	if t := list[i].tok; i > 0 && (t == token.IDENT || t == token.PERIOD) {
		i--
	}
	if list[i].tok == token.IMPORT {
		return text, true
	}
	open, _ := nesting(list[:n])
	if len(open) == 0 {
		return "", false
	}
	b := open[len(open)-1]
	return text, b.tok == token.LPAREN && b.at > 0 && list[b.at-1].tok == token.IMPORT
}
