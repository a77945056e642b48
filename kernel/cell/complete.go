package cell

import (
	"cmp"
	"go/ast"
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
	start, _ := wordAt(code[:offset], offset)
	_, end := wordAt(code, offset)
	list := lex(code[:offset])
	m := matcher{prefix: code[start:offset], seen: map[string]bool{}}
	if path, ok := importPath(list); ok {
		m.prefix = path
		for _, p := range s.table.lib.paths() {
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

// A place is what can stand at the cursor.
type place struct {
	nothing      bool
	selector     bool // what is after the dot
	types        bool // nothing but types
	keywordsOnly bool
}

func (p *probe) place(list []lexeme, before token.Token) (at place) {
	switch before {
	case token.PERIOD:
		at.selector = true
	case token.FUNC, token.TYPE, token.CONST, token.VAR, token.PACKAGE, token.IMPORT, token.GOTO:
		// A name is being declared, or a label named; func ( is something else.
		return place{nothing: true}
	}
	name := p.parent(0)
	if name == nil {
		at.keywordsOnly = !at.selector
		return at
	}
	n := p.parent(1)
	if s, ok := n.(*ast.SelectorExpr); ok && s.Sel == name {
		name, n = s, p.parent(2)
	}
	switch n := n.(type) {
	case *ast.Field:
		at.types = n.Type == name
		at.nothing = n.Type != name
		if p.parent(3) != nil && at.types && len(n.Names) == 0 {
			if it, ok := p.parent(3).(*ast.InterfaceType); ok && it.Methods != nil {
				at.types = true
			}
		}
	case *ast.ValueSpec:
		at.types = n.Type == name
		at.nothing = slices.ContainsFunc(n.Names, func(id *ast.Ident) bool { return id == name })
	case *ast.ArrayType:
		at.types = n.Elt == name
	case *ast.MapType, *ast.ChanType:
		at.types = true
	case *ast.TypeSpec:
		at.types = ast.Unparen(n.Type) == name
		at.nothing = n.Name == name
	case *ast.TypeAssertExpr:
		at.types = n.Type == name
	case *ast.Ellipsis:
		at.types = true
	case *ast.CaseClause:
		if i := slices.Index(p.path, ast.Node(n)); i > 1 {
			_, at.types = p.path[i-2].(*ast.TypeSwitchStmt)
			at.types = at.types && slices.Contains(n.List, ast.Expr(name.(ast.Expr)))
		}
	case *ast.StarExpr:
		switch m := p.above(n).(type) {
		case *ast.Field:
			at.types = true
		case *ast.ValueSpec:
			at.types = m.Type == n
		case *ast.ArrayType:
			at.types = m.Elt == n
		case *ast.MapType, *ast.ChanType, *ast.TypeAssertExpr:
			at.types = true
		}
	case *ast.FuncDecl, *ast.BranchStmt, *ast.LabeledStmt:
		if f, ok := n.(*ast.LabeledStmt); ok && f.Stmt != nil && f.Label != name {
			break
		}
		at.nothing = true
	case *ast.AssignStmt:
		at.nothing = n.Tok == token.DEFINE && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return e == name })
	case *ast.RangeStmt:
		at.nothing = n.Tok == token.DEFINE && (n.Key == name || n.Value == name)
	}
	if at.selector {
		return place{selector: true, types: at.types}
	}
	if !p.clean && operandEnd(before) {
		at.keywordsOnly = true
	}
	return at
}

// above is the node around n on the cursor's path.
func (p *probe) above(n ast.Node) ast.Node {
	if i := slices.Index(p.path, n); i > 0 {
		return p.path[i-1]
	}
	return nil
}

// operandEnd says whether an expression can end in a token.
func operandEnd(t token.Token) bool {
	return t.IsLiteral() || t == token.RPAREN || t == token.RBRACK || t == token.RBRACE
}

// keywords are those that can stand at the cursor.
func (p *probe) keywords(list []lexeme, before token.Token) (words []string) {
	open, head := nesting(list)
	if before == token.RBRACE {
		// Only else goes on after a block.
		if h := blockHead(list); h == token.IF || h == token.ELSE {
			return []string{"else"}
		}
	}
	if before == token.ELSE {
		return []string{"if"}
	}
	if headOf(list, head) == token.FOR && (before == token.FOR || before == token.DEFINE || before == token.ASSIGN) {
		words = append(words, "range")
	}
	if n := len(list); before == token.LPAREN && n > 1 && list[n-2].tok == token.PERIOD {
		words = append(words, "type")
	}
	if operandEnd(before) && !p.clean {
		return words
	}
	words = append(words, "chan", "func", "interface", "map", "struct")
	if head != len(list) {
		return words
	}
	// A statement begins here, unless this is a literal or a list.
	if n := len(open); n > 0 && (open[n-1].tok != token.LBRACE || slices.Contains([]token.Token{token.TYPE, token.IMPORT, token.CONST, token.VAR}, headOf(list, open[n-1].head))) {
		return words
	}
	if len(p.path) > 1 {
		if _, ok := p.parent(1).(*ast.CompositeLit); ok {
			return words
		}
	}
	words = append(words, "const", "defer", "for", "go", "goto", "if", "return", "select", "switch", "type", "var")
	if len(open) == 0 {
		words = append(words, "import")
		if len(list) == 0 {
			words = append(words, "package")
		}
	}
	loop, choice := false, false
	for i := len(open) - 1; i >= 0; i-- {
		h := headOf(list, open[i].head)
		loop = loop || h == token.FOR
		choice = choice || h == token.SWITCH || h == token.SELECT
		if i == len(open)-1 && choice {
			words = append(words, "case", "default")
			if h == token.SWITCH {
				words = append(words, "fallthrough")
			}
		}
		if open[i].at > 0 && h == token.FUNC {
			break
		}
	}
	if loop {
		words = append(words, "continue")
	}
	if loop || choice {
		words = append(words, "break")
	}
	return words
}

// blockHead is the token that begins the statement whose block list ends in.
func blockHead(list []lexeme) token.Token {
	depth := 0
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i].tok {
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth++
		case token.LPAREN, token.LBRACK, token.LBRACE:
			if depth--; depth == 0 {
				_, head := nesting(list[:i])
				return headOf(list, head)
			}
		}
	}
	return token.ILLEGAL
}

// members finds what the expression before the cursor's dot has.
func (p *probe) members(add func(types.Object, int)) {
	s, ok := p.parent(1).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if id, ok := s.X.(*ast.Ident); ok {
		if n, ok := p.info.Uses[id].(*types.PkgName); ok {
			for _, n := range exported(n.Imported()) {
				add(n, 0)
			}
			return
		}
	}
	tv, ok := p.info.Types[s.X]
	if !ok || tv.Type == nil {
		return
	}
	p.membersOf(tv.Type, tv.IsType(), tv.Addressable(), add)
}

// exported are the names that a package gives.
func exported(p *types.Package) (out []types.Object) {
	for _, n := range p.Scope().Names() {
		if o := p.Scope().Lookup(n); o.Exported() {
			out = append(out, o)
		}
	}
	return out
}

// membersOf gives what can be selected from a value of type t, or from t itself:
// its own before what it gets from embedded fields.
func (p *probe) membersOf(t types.Type, isType, addressable bool, add func(types.Object, int)) {
	names := map[string]bool{}
	set := t
	if _, ok := types.Unalias(t).Underlying().(*types.Pointer); !ok && addressable && !types.IsInterface(t) {
		set = types.NewPointer(t)
	}
	ms := types.NewMethodSet(set)
	for i := range ms.Len() {
		names[ms.At(i).Obj().Name()] = true
	}
	if !isType {
		fieldNames(t, names, map[types.Type]bool{}, 0)
	}
	for name := range names {
		o, index, _ := types.LookupFieldOrMethod(t, addressable, p.pkg, name)
		if o == nil {
			continue
		}
		if _, field := o.(*types.Var); field && isType {
			continue
		}
		add(o, min(len(index)-1, 1))
	}
	if n := namedOf(t); n != nil {
		for _, m := range p.adoptedMethods(n) {
			add(m, 0)
		}
	}
}

// namedOf is the named type that t is or points to, or nil.
func namedOf(t types.Type) *types.Named {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, _ := t.(*types.Named)
	return n
}

// structOf is the struct beneath t or what it points to, or nil.
func structOf(t types.Type) *types.Struct {
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, _ := types.Unalias(t).Underlying().(*types.Struct)
	return s
}

// fieldNames collects the names of fields, those of embedded structs too.
func fieldNames(t types.Type, names map[string]bool, seen map[types.Type]bool, depth int) {
	s := structOf(t)
	if s == nil || seen[t] || depth > 8 {
		return
	}
	seen[t] = true
	for i := range s.NumFields() {
		f := s.Field(i)
		names[f.Name()] = true
		if f.Embedded() {
			fieldNames(f.Type(), names, seen, depth+1)
		}
	}
}

// fields gives the fields of the composite literal that the cursor is in, but for
// those already there. It says whether nothing else can stand there.
func (p *probe) fields(add func(types.Object, int)) (only bool) {
	name := p.parent(0)
	i := 1
	if kv, ok := p.parent(1).(*ast.KeyValueExpr); ok {
		if kv.Key != name {
			return false
		}
		i++
	}
	l, ok := p.parent(i).(*ast.CompositeLit)
	if !ok || l.Type == name {
		return false
	}
	tv, ok := p.info.Types[l]
	if !ok || tv.Type == nil {
		return false
	}
	s := structOf(tv.Type)
	if s == nil {
		return false
	}
	given, values := map[string]bool{}, 0
	for _, e := range l.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				given[id.Name] = true
			}
		} else if e != name {
			values++
		}
	}
	if values > 0 && len(given) == 0 {
		return false
	}
	own := false
	for i := range s.NumFields() {
		f := s.Field(i)
		if p.can(f) && !given[f.Name()] {
			own = own || f.Pkg().Path() == cellPath
			add(f, rankLocal)
		}
	}
	return len(given) > 0 || !own || i > 1
}

// can says whether a cell can name o.
func (p *probe) can(o types.Object) bool {
	return o.Exported() || o.Pkg() != nil && o.Pkg().Path() == cellPath
}

// names gives the names that need no qualifier: of the blocks around the cursor,
// the cell, the session, and the packages whose names are visible.
func (p *probe) names(add func(types.Object, int)) {
	cursor := p.parent(0)
	inFunc := false
	if cursor != nil {
		for _, n := range slices.Backward(p.path) {
			var key ast.Node = n
			switch n := n.(type) {
			case *ast.FuncDecl:
				key, inFunc = n.Type, true
			case *ast.FuncLit:
				key = n.Type
			}
			sc := p.info.Scopes[key]
			if sc == nil {
				continue
			}
			for _, name := range sc.Names() {
				if in, o := sc.LookupParent(name, cursor.Pos()); in == sc && o != nil {
					add(o, rankLocal)
				}
			}
		}
	}
	for id, d := range p.own {
		o := p.info.Defs[id]
		if o == nil || o.Parent() != p.pkg.Scope() {
			continue
		}
		if d.stmt && !inFunc && cursor != nil && p.offset(d.node.End()) > p.offset(cursor.Pos()) {
			continue // it comes later
		}
		add(o, rankCell)
	}
	for o, d := range p.seen.decls {
		if d.kind != methodKind && p.imports[d.name] == "" {
			add(o, rankCell)
		}
	}
	for _, q := range p.visible() {
		for _, o := range exported(q) {
			add(o, rankLab)
		}
	}
}
