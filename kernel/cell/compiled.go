package cell

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
)

// Functions of package slices for slices of the common types are those of this
// program, compiled. For other types the interpreter runs them, some two hundred times
// slower: 300,000 numbers take it ten seconds to sort.

// compiledSlices are the functions for elements of type E, by the name that lowered
// code calls them by.
func compiledSlices[E cmp.Ordered]() map[string]reflect.Value {
	functions := map[string]any{
		"BinarySearch":   slices.BinarySearch[[]E, E],
		"Compact":        slices.Compact[[]E, E],
		"Compare":        slices.Compare[[]E, E],
		"Contains":       slices.Contains[[]E, E],
		"Equal":          slices.Equal[[]E, E],
		"Index":          slices.Index[[]E, E],
		"IsSorted":       slices.IsSorted[[]E, E],
		"Max":            slices.Max[[]E, E],
		"Min":            slices.Min[[]E, E],
		"Repeat":         slices.Repeat[[]E, E],
		"Reverse":        slices.Reverse[[]E, E],
		"Sort":           slices.Sort[[]E, E],
		"SortFunc":       slices.SortFunc[[]E, E],
		"SortStableFunc": slices.SortStableFunc[[]E, E],
	}
	of := reflect.TypeFor[E]().String()
	symbols := make(map[string]reflect.Value, len(functions))
	for name, f := range functions {
		symbols[compiledName(name, of)] = reflect.ValueOf(f)
	}
	return symbols
}

func compiledName(function, element string) string {
	return "Slices" + function + mark + element
}

// compiledSymbols are all that there are.
func compiledSymbols() map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for _, symbols := range []map[string]reflect.Value{
		compiledSlices[int](), compiledSlices[int32](), compiledSlices[int64](), compiledSlices[uint8](), compiledSlices[uint64](),
		compiledSlices[float32](), compiledSlices[float64](), compiledSlices[string](),
	} {
		maps.Copy(all, symbols)
	}
	return all
}

// compiled is the function f for the types args where the program has it, or nil.
func (l *lowerer) compiled(f *types.Func, args []types.Type, pos token.Pos) ast.Expr {
	if f.Pkg() == nil || f.Pkg().Path() != "slices" || len(args) != 1 && len(args) != 2 {
		return nil
	}
	s, ok := types.Unalias(l.concrete(args[0])).(*types.Slice)
	if !ok {
		return nil
	}
	e, ok := types.Unalias(s.Elem()).(*types.Basic)
	if !ok {
		return nil
	}
	name := compiledName(f.Name(), types.Typ[e.Kind()].Name())
	if _, ok := l.u.table.compiled[name]; !ok {
		return nil
	}
	return l.internal(name, pos)
}
