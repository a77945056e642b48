package lab

import (
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
	NoThinking  bool     `json:"no_thinking,omitempty"`
	Effort      string   `json:"effort,omitempty"`

	Top int `json:"top,omitempty"` // logits: entries of the distribution
}

// event is one step of a generation: rows of the prompt computed, a new token, or
// text that became final.
type event struct {
	Done     int    `json:"done,omitempty"`
	Total    int    `json:"total,omitempty"`
	Token    *Token `json:"token,omitempty"`
	Text     string `json:"text,omitempty"`
	Thinking string `json:"thinking,omitempty"`
}

// reply is the result of generate, chat and trace.
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
