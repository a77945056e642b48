package cell

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"deltafin/kernel/display"
)

// A question is a cell that asks about a name, as consoles have it: name? or
// ?name, with ?? for the source too, and ? alone for what there is.
type question struct {
	name   string // may be selected from others, as strings.Cut
	detail int
}

var questionRE = regexp.MustCompile(`^(\?{0,2})\s*((?:[\pL_][\pL\pN_]*(?:\.[\pL_][\pL\pN_]*)*)?)\s*(\?{0,2});?$`)

// asked says whether code is a question.
func asked(code string) (question, bool) {
	m := questionRE.FindStringSubmatch(strings.TrimSpace(code))
	if m == nil || m[1]+m[3] == "" || m[1] != "" && m[3] != "" {
		return question{}, false
	}
	return question{name: m[2], detail: len(m[1]+m[3]) - 1}, true
}

// leaves says whether code asks the front end to leave, as consoles have it: exit
// or quit, where the session has no such name.
func (s *shell) leaves(code string) bool {
	name := strings.TrimSuffix(strings.TrimSpace(code), "()")
	if name != "exit" && name != "quit" {
		return false
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	return s.table.current[name] == nil
}

// help answers a question in the front end's pager.
func (s *shell) help(o *cellOutput, q question) {
	if q.name == "" {
		o.Page(display.Text(s.overview()))
		return
	}
	b, found := s.inspect(q.name, utf8.RuneCountInString(q.name), q.detail)
	if !found {
		b, found = s.members(q.name)
	}
	if !found {
		o.Stream("stderr", fmt.Sprintf("%s: no such name; ? alone says what there is\n", q.name))
		return
	}
	o.Page(b)
}

// members lists what a package has.
func (s *shell) members(name string) (display.Bundle, bool) {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	path := t.imports[name]
	if path == "" {
		path = t.lib.find(name, nil)
	}
	p := t.lab
	if p == nil || p.Name() != name {
		var err error
		if p, err = t.lib.Import(path); err != nil {
			return display.Bundle{}, false
		}
	}
	var names []string
	for _, n := range p.Scope().Names() {
		if token.IsExported(n) {
			names = append(names, n)
		}
	}
	return display.Text(fmt.Sprintf("package %s\n\n%s", p.Path(), strings.Join(names, ", "))), true
}

// overview lists what a cell sees without an import.
func (s *shell) overview() string {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	kinds := []struct {
		kind declKind
		name string
	}{{varKind, "variables"}, {constKind, "constants"}, {typeKind, "types"}, {funcKind, "functions"}}
	var b strings.Builder
	list := func(what string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			fmt.Fprintf(&b, "%s: %s\n", what, strings.Join(names, ", "))
		}
	}
	for _, k := range kinds {
		var names []string
		for _, d := range t.current {
			if d.kind == k.kind && !strings.Contains(d.name, mark) && d.name != "_" {
				names = append(names, d.name)
			}
		}
		list("the session's "+k.name, names)
	}
	if t.lab != nil {
		by := map[string][]string{}
		for _, n := range t.lab.Scope().Names() {
			switch t.lab.Scope().Lookup(n).(type) {
			case *types.Func:
				by["functions"] = append(by["functions"], n)
			case *types.TypeName:
				by["types"] = append(by["types"], n)
			default:
				by["variables"] = append(by["variables"], n)
			}
		}
		for _, what := range []string{"functions", "types", "variables"} {
			list(t.lab.Name()+"'s "+what, by[what])
		}
	}
	b.WriteString("Go's standard library is there too, without imports where a package's name is enough.\nname? says what a name is, name?? shows its source.")
	return b.String()
}
