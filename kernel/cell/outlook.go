package cell

import (
	"go/token"
	"go/types"
)

// An outlook is what the cells that ran have declared, as the last of them left it.
// Nothing in it changes: questions about names read it while another cell is
// checked or runs.
type outlook struct {
	names   *types.Scope // the current declarations, by their names as written
	decls   map[types.Object]*decl
	imports map[string]string
	dots    []string
}

func newOutlook() *outlook {
	return &outlook{names: types.NewScope(nil, token.NoPos, token.NoPos, "session")}
}

// look makes the outlook of what a checked cell leaves. t.mu is held.
func (t *table) look(u *unit) {
	v := newOutlook()
	v.decls, v.imports, v.dots = make(map[types.Object]*decl, len(u.named)), u.imports, u.dots
	for o, d := range u.named {
		if d.kind != methodKind {
			if t.current[d.name] != d {
				continue
			}
			if o.Name() != d.name {
				// A variable that this cell declared again.
				o = types.NewVar(o.Pos(), o.Pkg(), d.name, o.Type())
			}
			v.names.Insert(o)
		}
		v.decls[o] = d
	}
	t.seen.Store(v)
}
