//go:build unix

package cell

import "testing"

// TestCompiledSlices: package slices does in cells what it does compiled, for the types
// that the program has compiled and for others.
func TestCompiledSlices(t *testing.T) {
	h := newHost(t, nil)
	for code, want := range map[string]string{
		"s := []int{3, 1, 2}; slices.Sort(s); s":                                                                              "result:[1 2 3]",
		"f := []float64{2, math.NaN(), 1}; slices.Sort(f); f":                                                                 "result:[NaN 1 2]",
		"w := []string{\"b\", \"a\", \"c\"}; slices.SortFunc(w, func(a, b string) int { return strings.Compare(b, a) }); w":   "result:[c b a]",
		"slices.Max([]byte{1, 9, 3})":                                                                                         "result:9",
		"slices.BinarySearch([]rune{1, 5, 7}, 5)":                                                                             "result:1, true",
		"slices.Compact([]string{\"a\", \"a\", \"b\"})":                                                                       "result:[a b]",
		"g := slices.Min[[]int]; g([]int{4, 2})":                                                                              "result:2",
		"type mine int; m := []mine{2, 1}; slices.Sort(m); fmt.Printf(\"%T %v\", m, m)":                                       "stdout:[]main.mine [1 2]",
		"type list []int; l := list{2, 1}; slices.Sort(l); fmt.Printf(\"%T %v\", l, l)":                                       "stdout:main.list [1 2]",
		"func top[E cmp.Ordered](s []E) E { return slices.Max(s) }\nfmt.Print(top([]int{1, 3}), top([]string{\"a\", \"b\"}))": "stdout:3b",
		"defer func() { fmt.Print(recover() != nil) }()\nslices.Max([]int{})":                                                 "stdout:true",
	} {
		expect(t, h, code, want)
	}
}
