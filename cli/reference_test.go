package cli

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deltafin/kernel/lab"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the reference in docs/lab.md")

// Between these lines docs/lab.md is made from the doc comments.
const (
	referenceBegins = "<!-- made from the doc comments by make golden -->\n"
	referenceEnds   = "<!-- the end of what is made -->\n"
)

// docs/lab.md says of each name in a cell what its doc comment says.
func TestReference(t *testing.T) {
	name := filepath.Join("..", "docs", "lab.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(strings.ReplaceAll(string(b), "\r\n", "\n"), referenceBegins)
	has, after, ends := strings.Cut(rest, referenceEnds)
	if !begins || !ends {
		t.Fatalf("%s: want the lines %q and %q", name, referenceBegins, referenceEnds)
	}
	want := reference()
	if *update {
		if err := os.WriteFile(name, []byte(before+referenceBegins+want+referenceEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, has); d != "" {
		t.Errorf("%s is out of date; run go test ./cli -run TestReference -args -update\n%s", name, d)
	}
}

// reference is the list of functions, then of types with their fields and methods,
// each with the first paragraph of its documentation.
func reference() string {
	docs := lab.Docs()
	// A cell knows types by the names that they have there.
	pairs := []string{"rig.Finish", "Finish"} // an alias
	for name, v := range (&lab.Lab{}).Exports() {
		if v.Kind() == reflect.Pointer {
			pairs = append(pairs, v.Type().Elem().String(), name)
		}
	}
	inCell := strings.NewReplacer(pairs...)
	var functions, types []string
	members := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		owner, member, isMember := strings.Cut(name, ".")
		switch {
		case isMember && member != "DisplayBundle": // how a front end asks for what it shows
			members[owner] = append(members[owner], name)
		case isMember:
		case strings.HasPrefix(docs[name].Signature, "type "):
			types = append(types, name)
		default:
			functions = append(functions, name)
		}
	}
	var out strings.Builder
	entry := func(indent, name string) {
		signature := inCell.Replace(docs[name].Signature)
		if strings.HasPrefix(name, "Routes.") { // in its own package its name is another
			signature = regexp.MustCompile(`\bTrace\b`).ReplaceAllString(signature, "Routes")
		}
		fmt.Fprintf(&out, "%s- `%s`", indent, signature)
		paragraph, _, _ := strings.Cut(docs[name].Doc, "\n\n")
		if text := strings.Join(strings.Fields(strings.TrimSuffix(paragraph, ":")), " "); text != "" {
			fmt.Fprintf(&out, ": %s", strings.ReplaceAll(text, "<", "\\<"))
		}
		out.WriteString("\n")
	}
	out.WriteString("\n## Functions\n\n")
	for _, name := range functions {
		entry("", name)
	}
	out.WriteString("\n## Types\n\n")
	for _, name := range types {
		entry("", name)
		for _, member := range members[name] {
			entry("  ", member)
		}
	}
	out.WriteString("\n")
	return out.String()
}
