package lab

import (
	"encoding/binary"
	"fmt"
	"math"

	"deltafin/rig"
	"deltafin/trace"
)

// What crosses between Lab and Server, as JSON. Both are of one program, so the
// forms carry no version.

// request is the parameters of generate, chat, trace and logits. Prompt is raw
// text; chat has Messages instead.
type request struct {
	Prompt   string    `json:"prompt,omitempty"`
	Messages []Message `json:"messages,omitempty"`
	Continue string    `json:"continue,omitempty"`

	MaxTokens   int      `json:"max_tokens"`
	Temperature float64  `json:"temperature,omitempty"`
	TopP        float64  `json:"top_p,omitempty"`
	TopK        int      `json:"top_k,omitempty"`
	Seed        uint64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
	Fresh       bool     `json:"fresh,omitempty"`
	Thinking    bool     `json:"thinking,omitempty"`
	Effort      string   `json:"effort,omitempty"`

	Top int `json:"top,omitempty"` // logits: entries of the distribution
}

// event is one step of a generation: rows of the prompt computed, a new token, text
// that became final, or, after it, a part of its trace.
type event struct {
	Done     int     `json:"done,omitempty"`
	Total    int     `json:"total,omitempty"`
	Token    *Token  `json:"token,omitempty"`
	Text     string  `json:"text,omitempty"`
	Thinking string  `json:"thinking,omitempty"`
	Routes   *routes `json:"routes,omitempty"`
}

// routes is some tokens of a trace: their experts as little-endian uint16, their
// weights as float32. A trace of a long prompt would not fit one message of the
// pipe: 4096 tokens of 92 layers with 16 experts have 36 MB.
type routes struct {
	Tokens  []trace.Token `json:"tokens"`
	Experts []byte        `json:"experts"`
	Weights []byte        `json:"weights,omitempty"`
}

// routesBytes is about the size of one event with routes.
const routesBytes = 1 << 20

// send splits the tokens of tr over events.
func send(tr *trace.Trace, emit func(event)) error {
	if err := tr.Check(); err != nil {
		return err
	}
	step := max(1, routesBytes/(8*len(tr.Layers)*tr.TopK))
	for from := 0; from < len(tr.Tokens); from += step {
		part := tr.Slice(from, min(from+step, len(tr.Tokens)))
		r := &routes{Tokens: part.Tokens}
		for _, id := range part.IDs {
			r.Experts = binary.LittleEndian.AppendUint16(r.Experts, uint16(id))
		}
		for _, w := range part.Weights {
			r.Weights = binary.LittleEndian.AppendUint32(r.Weights, math.Float32bits(w))
		}
		emit(event{Routes: r})
	}
	return nil
}

// receive puts the parts of a trace together; header is without tokens.
func receive(header *trace.Trace, parts []*routes) (*trace.Trace, error) {
	tr := *header
	for _, r := range parts {
		if len(r.Experts)%2 != 0 || len(r.Weights)%4 != 0 {
			return nil, fmt.Errorf("want 2 bytes an expert and 4 a weight, got %d and %d bytes", len(r.Experts), len(r.Weights))
		}
		tr.Tokens = append(tr.Tokens, r.Tokens...)
		for i := 0; i < len(r.Experts); i += 2 {
			tr.IDs = append(tr.IDs, int32(binary.LittleEndian.Uint16(r.Experts[i:])))
		}
		for i := 0; i < len(r.Weights); i += 4 {
			tr.Weights = append(tr.Weights, math.Float32frombits(binary.LittleEndian.Uint32(r.Weights[i:])))
		}
	}
	return &tr, tr.Check()
}

// reply is the result of generate, chat and trace, whose tokens came as events.
type reply struct {
	rig.Generation
	Thinking string       `json:"thinking,omitempty"`
	Trace    *trace.Trace `json:"trace,omitempty"`
}

// distribution is the result of logits. Row holds the logits as little-endian
// float32, one a token of the vocabulary.
type distribution struct {
	Top []rig.TokenProb `json:"top"`
	Row []byte          `json:"row"`
}

// text and ids are the parameters and results of tokenize and detokenize.
type textOf struct {
	Text string `json:"text"`
}

type idsOf struct {
	IDs []int `json:"ids"`
}

type tokensOf struct {
	Tokens Tokens `json:"tokens"`
}
