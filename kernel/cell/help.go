package cell

import (
	"fmt"
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
		o.Stream("stderr", fmt.Sprintf("%s: no such name; ? alone says what there is\n", q.name))
		return
	}
	o.Page(b)
}

// overview lists what a cell sees without an import.
func (s *shell) overview() string {
	t := s.table
	seen := t.seen.Load()
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
		for _, d := range seen.decls {
			if d.kind == k.kind && !strings.Contains(d.name, mark) && d.name != "_" {
				names = append(names, d.name)
			}
		}
		list("the session's "+k.name, names)
	}
	if t.lab != nil {
		by := map[string][]string{}
		for _, n := range t.lab.Scope().Names() {
			if strings.Contains(n, mark) {
				continue // what magic lines call
			}
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
	b.WriteString("Go's standard library is there too, without imports where a package's name is enough.\nname? says what a name is, name?? shows its source, %help lists the lines that aren't Go.")
	return b.String()
}

// packageHelp describes the package at an import path.
func (p *probe) packageHelp(path string, detail int) (display.Bundle, bool) {
	q, err := p.lib.Import(path)
	if err != nil {
		return display.Bundle{}, false
	}
	return p.packageText(q, detail).bundle(), true
}

// packageText is a package's documentation, for detail 0 its first paragraph, and
// what it has.
func (p *probe) packageText(q *types.Package, detail int) help {
	h := help{signature: "package " + q.Name(), path: q.Path(), doc: p.lib.doc(q.Path(), "")}
	if q != p.lab {
		h.signature += fmt.Sprintf(" // import %q", q.Path())
	}
	if detail == 0 {
		h.doc, _, _ = strings.Cut(h.doc, "\n\n")
	}
	by := map[string][]string{}
	for _, o := range exported(q) {
		kind, _ := p.describe(o)
		by[kind] = append(by[kind], o.Name())
	}
	for _, kind := range []string{"function", "type", "variable", "constant"} {
		if len(by[kind]) > 0 {
			h.lists = append(h.lists, nameList{kind + "s", by[kind]})
		}
	}
	return h
}

// A nameList is some of a package's names.
type nameList struct {
	kind  string
	names []string
}

// keywordHelp says what Go's keywords do.
var keywordHelp = map[string]string{
	"break":       "break ends the innermost for, switch or select, or the one that a label names.",
	"case":        "case begins the statements of one choice in a switch or select.",
	"chan":        "chan T is the type of channels of T: ch <- v sends, <-ch receives; make(chan T, n) makes one with room for n.",
	"const":       "const declares constants; iota counts them in a group.",
	"continue":    "continue begins the next round of the innermost for, or of the one that a label names.",
	"default":     "default begins the statements that run where no case fits, in a select where no case is ready.",
	"defer":       "defer f(x) calls f when the surrounding function returns; x is evaluated at once.",
	"else":        "else begins what runs where the condition of if is false.",
	"fallthrough": "fallthrough, the last statement of a case, goes on with the next case's statements.",
	"for":         "for loops: for {}, for cond {}, for init; cond; post {}, and for k, v := range x {} over integers, slices, strings, maps, channels and functions.",
	"func":        "func declares a function or method, and begins a function literal.",
	"go":          "go f(x) calls f on a goroutine of its own.",
	"goto":        "goto goes to a labelled statement of the same function.",
	"if":          "if runs a block where its condition is true: if err := f(); err != nil {}.",
	"import":      "import makes a package's names known: import str \"strings\". Cells need none for the standard library.",
	"interface":   "interface{…} is the type of all values that have the listed methods, or as a constraint the listed types.",
	"map":         "map[K]V is the type of maps from K to V; make(map[K]V) or a literal makes one, v, ok := m[k] looks up.",
	"package":     "package names the package of a file; cells need none.",
	"range":       "range goes over the elements of an integer, slice, array, string, map, channel or function in a for statement.",
	"return":      "return ends a function with its results.",
	"select":      "select waits until one of its cases can send or receive.",
	"struct":      "struct{…} is the type of values that have the listed fields.",
	"switch":      "switch runs the first case that fits: a value, a condition, or with x.(type) a type.",
	"type":        "type declares a type; type A = B another name for one.",
	"var":         "var declares variables; they begin as the zero value of their type.",
}
