package display_test

import (
	"fmt"

	"deltafin/kernel/display"
)

func ExampleHeatmap() {
	b := display.Heatmap{
		Row: "layer", Column: "expert", Value: "tokens",
		RowLabels: []int{1, 2},
		Counts:    [][]int64{{16, 0, 2, 1}, {0, 4, 8, 0}},
	}.DisplayBundle()
	fmt.Println(b.Data["text/plain"])
	// Output:
	// 1 ▏█ ▒░
	// 2 ▏ ▓█
	// tokens: layers down, experts across 0 to 3
	//   ░ 1+  ▒ 2+  ▓ 4+  █ 8+
}
