package cell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// A probeFile maps positions to the cell's text.
type probeFile struct {
	file  *token.File
	delta int    // what an offset in the file is off by
	added []edit // what the file has beyond the cell's text
}

// An edit is a text that a file has and the cell hasn't.
type edit struct{ at, size int } // at is an offset in the cell

// offset is where a position of the file is in the cell's text.
func (f probeFile) offset(pos token.Pos) int {
	o := f.file.Offset(pos) + f.delta
	for _, e := range f.added {
		if o > e.at {
			o = max(e.at, o-e.size)
		}
	}
	return o
}

// read parses the text's segments, each as far as it goes, and gives the name at the
// cursor.
func (p *probe) read(at int) (target *ast.Ident) {
	list := segments(p.text)
	for i := 0; i < len(list); i++ {
		s := list[i]
		here := func(s segment) bool { return at >= s.start && at < s.end }
		if !here(s) {
			// Statements one after another at once, where they are well formed.
			n := i
			for !s.decl && n+1 < len(list) && !list[n+1].decl && !here(list[n+1]) {
				n++
			}
			if n > i {
				if all := p.parse(s, p.text[s.start:list[n].end]); all.ok {
					p.take(all)
					i = n
					continue
				}
			}
			for ; i < n; i++ {
				p.take(p.parse(list[i], p.text[list[i].start:list[i].end]))
			}
			s = list[i]
			p.take(p.parse(s, p.text[s.start:s.end]))
			continue
		}
		if whole := p.parse(s, p.text[s.start:s.end]); whole.ok && whole.at(at) != nil {
			p.clean, target = true, whole.at(at)
			p.take(whole)
			continue
		}
		// What is before the cursor, finished in the one or other way, and the
		// segments that follow the cursor's line.
		_, end := wordAt(p.text, at)
		before := p.text[s.start:end]
		closers := closing(lex(before))
		before, added := mended(before, s.start)
		var best *parsed
		for _, c := range endings {
			x := p.parse(s, before+c.before+closers+c.after, added...)
			if x.at(at) == nil {
				continue
			}
			if x.ok {
				best = &x
				p.clean = true
				break
			}
			if best == nil {
				best = &x
			}
		}
		if best == nil {
			// The line alone, or the name.
			line := max(s.start, strings.LastIndexByte(p.text[:at], '\n')+1)
			for _, from := range []int{line, at} {
				r := segment{start: from, end: end}
				if x := p.parse(r, p.text[from:end]+closing(lex(p.text[from:end]))); x.at(at) != nil {
					best = &x
					break
				}
			}
		}
		if best != nil {
			target = best.at(at)
			p.take(*best)
		}
		rest := strings.IndexByte(p.text[end:s.end], '\n')
		if rest < 0 {
			continue
		}
		rest += end
		for _, r := range segments(p.text[rest:s.end]) {
			r.start, r.end = r.start+rest, r.end+rest
			if x := p.parse(r, p.text[r.start:r.end]); x.ok {
				p.take(x)
			}
		}
	}
	return target
}

// endings are ways to finish what is cut off at the cursor: something before the
// brackets that are closed, and after.
var endings = []struct{ before, after string }{
	{"", ""}, {"()", ""}, {" {}", ""}, {":", ""}, {"; {}", ""}, {": nil", ""}, {"", " int"}, {"", "()"}, {"", " _()"}, {"", " {}"},
}

// mended closes the strings and parentheses that a line of text, which begins at an
// offset of the cell, leaves open.
func mended(text string, start int) (string, []edit) {
	var b strings.Builder
	var added []edit
	list := lex(text)
	n := newNest(list)
	done := 0
	for i := range list {
		open := slices.Clone(n.open)
		n.next()
		if i == 0 || list[i].tok != token.SEMICOLON || list[i].lit != "\n" {
			continue
		}
		last, missing := list[i-1], ""
		if last.open && last.tok == token.STRING {
			missing = `"`
		}
		for k := len(open) - 1; k >= len(n.open); k-- {
			missing += map[token.Token]string{token.LPAREN: ")", token.LBRACK: "]"}[open[k].tok]
		}
		if missing != "" {
			b.WriteString(text[done:last.end] + missing)
			done = last.end
			added = append(added, edit{start + last.end, len(missing)})
		}
	}
	return b.String() + text[done:], added
}

// parsed is one segment's tree.
type parsed struct {
	decls []ast.Decl
	stmts []ast.Stmt
	file  probeFile
	ok    bool
}

// parse parses text, which begins where s does and has added beyond the cell's text.
// A tree of text with faults has what could be read, and ok is false.
func (p *probe) parse(s segment, text string, added ...edit) parsed {
	head, tail := "package p;func _(){", "\n}"
	if s.decl {
		head, tail = "package p\n", ""
		if strings.HasPrefix(text, "package ") {
			return parsed{}
		}
	}
	f, err := parser.ParseFile(p.fset, "", head+text+tail, parser.SkipObjectResolution|parser.ParseComments|parser.AllErrors)
	if f == nil || len(f.Decls) == 0 {
		return parsed{}
	}
	out := parsed{file: probeFile{p.fset.File(f.FileStart), s.start - len(head), added}, ok: err == nil}
	if s.decl {
		out.decls = f.Decls
		return out
	}
	if fn, ok := f.Decls[0].(*ast.FuncDecl); ok && fn.Body != nil {
		out.stmts = fn.Body.List
	}
	out.ok = out.ok && len(f.Decls) == 1
	return out
}

// at is the name at an offset of the cell, or nil.
func (x parsed) at(offset int) (found *ast.Ident) {
	if x.file.file == nil {
		return nil
	}
	look := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Pos().IsValid() && x.file.offset(id.Pos()) == offset {
			found = id
		}
		return found == nil
	}
	for _, d := range x.decls {
		ast.Inspect(d, look)
	}
	for _, s := range x.stmts {
		ast.Inspect(s, look)
	}
	return found
}

// take adds a segment's tree to the cell's.
func (p *probe) take(x parsed) {
	if x.file.file != nil {
		p.files = append(p.files, x.file)
	}
	for _, d := range x.decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				p.decls = append(p.decls, d)
				continue
			}
			for _, s := range d.Specs {
				p.addImport(s.(*ast.ImportSpec))
			}
		case *ast.FuncDecl:
			p.decls = append(p.decls, d)
		}
	}
	p.body = append(p.body, x.stmts...)
}

func (p *probe) addImport(s *ast.ImportSpec) {
	path, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return
	}
	if s.Name == nil {
		if p.lib.names[packageName(path)] != nil {
			p.imports[packageName(path)] = path
		} else if g := p.lib.loaded(path); g != nil {
			p.imports[g.pkg.Name()] = path
		}
		return
	}
	switch s.Name.Name {
	case ".":
		p.dots = append(p.dots, path)
	case "_":
	default:
		p.imports[s.Name.Name] = path
	}
}
