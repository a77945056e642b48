package lab

import (
	"context"
	"encoding/json"
	"fmt"
)

// near is a Session beside its Server, in one process.
type near struct {
	*host
	server *Server
}

func (n near) Context() context.Context { return context.Background() }
func (n near) Call(ctx context.Context, method string, params any, event func(json.RawMessage)) (json.RawMessage, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return n.server.Call(ctx, method, data, event)
}

func fakeEngine(context.Context) (Engine, error) {
	return Engine{Rig: &fakeRig{}, Tokenizer: byteTokens{}}, nil
}

// The two halves together. The calls of lab are what cells write, there without
// the lab in front.
func Example() {
	server := NewServer(fakeEngine)
	defer server.Close()
	lab := New(near{&host{}, server})

	g := lab.Generate("Once upon a time", Params{MaxTokens: 5})
	fmt.Println(g.Text, g.Finish)
	for _, t := range lab.Tokenize("Hi") {
		fmt.Println(t.ID, t.Text)
	}
	fmt.Println(lab.TraceRouter("xyz", Params{MaxTokens: 5}).Summary())
	// Output:
	// abcde length
	// 72 H
	// 105 i
	// 8 tokens · 2 layers × 8 experts, top 2 · reuse 25 %
}
