package lab

import (
	"encoding/json"
	"testing"

	"deltafin/trace"

	"github.com/google/go-cmp/cmp"
)

// A trace of many messages arrives as it was, weights bit for bit.
func TestSendAndReceive(t *testing.T) {
	tr := &trace.Trace{Model: "m", Layers: []int{1, 2}, Experts: 1 << 16, TopK: 16}
	for i := range 9000 {
		tr.Tokens = append(tr.Tokens, trace.Token{ID: i, Text: "t", Generated: i > 5})
		for j := range 2 * tr.TopK {
			tr.IDs = append(tr.IDs, int32(4000*(j%tr.TopK)+i%4000))
			tr.Weights = append(tr.Weights, 1/float32(i+j+1))
		}
	}
	header := &trace.Trace{Model: tr.Model, Layers: tr.Layers, Experts: tr.Experts, TopK: tr.TopK}
	for _, weights := range [][]float32{tr.Weights, nil} {
		tr.Weights = weights
		var parts []*routes
		err := send(tr, func(e event) {
			data := mustJSON(e)
			if len(data) > 4*routesBytes {
				t.Errorf("an event of %d bytes", len(data))
			}
			var got event
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			parts = append(parts, got.Routes)
		})
		if err != nil || len(parts) < 3 {
			t.Fatalf("%d parts, %v", len(parts), err)
		}
		got, err := receive(header, parts)
		if err != nil || !cmp.Equal(tr, got) {
			t.Errorf("another trace, %v", err)
		}
		parts[1].Experts = parts[1].Experts[1:]
		if _, err := receive(header, parts); err == nil {
			t.Error("no error of a part cut short")
		}
	}
}
