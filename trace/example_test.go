package trace_test

import (
	"fmt"
	"strings"

	"deltafin/trace"
)

func Example() {
	tr, err := trace.Read(strings.NewReader(`{"deltafin_trace":1,"model":"tiny","layers":[1,2],"experts":4,"top_k":2}
{"tok":0,"id":12,"text":"Hello","generated":false,"layers":[[0,1],[0,3]]}
{"tok":1,"id":7,"text":" world","generated":true,"layers":[[0,1],[1,2]]}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("reuse:", tr.Reuse())
	for _, load := range tr.Top(2) {
		fmt.Printf("layer %d expert %d: %d uses\n", load.Layer, load.Expert, load.Count)
	}
	// Output:
	// reuse: [1 0]
	// layer 1 expert 0: 2 uses
	// layer 1 expert 1: 2 uses
}
