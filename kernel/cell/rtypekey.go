package cell

import (
	"fmt"
	"go/types"
	"strings"
)

// key writes a type so that only identical types are written alike.
func (l *lowerer) key(t types.Type) string {
	var b strings.Builder
	l.writeKey(&b, t)
	return b.String()
}

func (l *lowerer) writeKey(b *strings.Builder, t types.Type) {
	tuple := func(tup *types.Tuple) {
		for i := range tup.Len() {
			l.writeKey(b, tup.At(i).Type())
			b.WriteByte(';')
		}
	}
	switch t := types.Unalias(l.concrete(t)).(type) {
	case *types.Named:
		o := t.Origin().Obj()
		switch {
		case o.Pkg() == nil:
			b.WriteString(o.Name())
		case l.u.named[o] != nil:
			fmt.Fprintf(b, "#%d", l.u.named[o].id)
		case l.local(o):
			r := l.u.table.types
			if r.local[o] == 0 {
				r.local[o] = len(r.local) + 1
			}
			fmt.Fprintf(b, "@%d", r.local[o])
		default:
			b.WriteString(o.Pkg().Path() + "." + o.Name())
		}
		if t.TypeArgs().Len() > 0 {
			b.WriteByte('[')
			for i := range t.TypeArgs().Len() {
				l.writeKey(b, t.TypeArgs().At(i))
				b.WriteByte(',')
			}
			b.WriteByte(']')
		}
	case *types.Pointer:
		b.WriteByte('*')
		l.writeKey(b, t.Elem())
	case *types.Slice:
		b.WriteString("[]")
		l.writeKey(b, t.Elem())
	case *types.Array:
		fmt.Fprintf(b, "[%d]", t.Len())
		l.writeKey(b, t.Elem())
	case *types.Map:
		b.WriteString("map[")
		l.writeKey(b, t.Key())
		b.WriteByte(']')
		l.writeKey(b, t.Elem())
	case *types.Chan:
		fmt.Fprintf(b, "chan%d ", t.Dir())
		l.writeKey(b, t.Elem())
	case *types.Signature:
		b.WriteString("func(")
		tuple(t.Params())
		fmt.Fprintf(b, "%v)(", t.Variadic())
		tuple(t.Results())
		b.WriteByte(')')
	case *types.Struct:
		b.WriteString("struct{")
		for i := range t.NumFields() {
			f := t.Field(i)
			fmt.Fprintf(b, "%s %v ", f.Name(), f.Embedded())
			l.writeKey(b, f.Type())
			fmt.Fprintf(b, " %q;", t.Tag(i))
		}
		b.WriteByte('}')
	case *types.Interface:
		b.WriteString("interface{")
		for i := range t.NumMethods() {
			b.WriteString(t.Method(i).Name())
			l.writeKey(b, t.Method(i).Signature())
			b.WriteByte(';')
		}
		b.WriteByte('}')
	default:
		b.WriteString(types.TypeString(t, (*types.Package).Path))
	}
}
