package rig

import (
	"time"

	"deltafin/engine"
	"deltafin/engine/xtml"
)

// Options says which model to keep warm and with what. The zero value is the
// embedded nano-k3 on all CPUs.
type Options struct {
	Model    string // directory of a K3 snapshot; "" or "nano-k3" is the embedded model
	Threads  int    // computing goroutines; 0 means as many as the process may use CPUs
	CacheDir string // where the embedded models are unpacked; "" means the platform's cache directory
}

// Request asks for a generation. Exactly one of Prompt, IDs and Segments is the
// prompt.
type Request struct {
	Prompt   string         // raw text, encoded without special tokens
	IDs      []int          // token ids
	Segments []xtml.Segment // a rendered conversation
	Continue string         // Generation.ID whose tokens come before the prompt; "" for none

	MaxTokens   int     // new tokens at most; 0 computes the prompt only
	Temperature float64 // 0 is greedy
	TopP        float64 // keep the likeliest tokens up to this probability; 0 and 1 keep all
	TopK        int     // keep this many tokens; 0 keeps all
	Seed        uint64  // the same seed gives the same text
	Stop        []string
	Fresh       bool // compute the whole prompt, even where a kept state begins it
}

// Finish says why a generation ended.
type Finish = engine.Finish

const (
	FinishStop        = engine.FinishStop
	FinishLength      = engine.FinishLength
	FinishStopString  = engine.FinishStopString
	FinishInterrupted = engine.FinishInterrupted
)

// Progress reports a running generation: rows of the prompt first, then new
// tokens. Text arrives in order and never ends inside a rune, so it trails the tokens.
type Progress struct {
	PrefillDone, PrefillTotal int    // rows of the prompt computed, and to compute
	IsToken                   bool   // a new token was sampled
	Token                     int    // its id, when IsToken
	Text                      string // text that became final, possibly ""
}

// Generation is the outcome of a Request. It is plain data.
type Generation struct {
	ID        string `json:"id"` // names the kept state, for Request.Continue
	PromptIDs []int  `json:"prompt_ids"`
	IDs       []int  `json:"ids"` // new tokens, without the stop id
	Text      string `json:"text"`
	Finish    Finish `json:"finish"`
	Stats     Stats  `json:"stats"`
}

// Stats measures one generation. Its JSON names are the command line's.
type Stats struct {
	PromptTokens        int     `json:"prompt_tokens"`
	ReusedTokens        int     `json:"reused_tokens"` // prompt tokens whose kept state was used
	Tokens              int     `json:"tokens"`
	LoadSeconds         float64 `json:"load_s"` // loading the model, counted to the first request; 0 when warm
	TTFTSeconds         float64 `json:"ttft_s"` // request to first new token
	PrefillTokensPerS   float64 `json:"prefill_tokens_per_s"`
	DecodeTokensPerS    float64 `json:"decode_tokens_per_s"`
	Drafted             int     `json:"drafted"`
	Accepted            int     `json:"accepted"`
	Rounds              int     `json:"rounds"` // forward passes of decode
	ExpertBytesRead     int64   `json:"expert_bytes_read"`
	ExpertBytesDistinct int64   `json:"expert_bytes_distinct"`
	Amplification       float64 `json:"amplification"` // read ÷ distinct; 0 when nothing was read
	StallSeconds        float64 `json:"stall_s"`
	PeakRSSBytes        int64   `json:"peak_rss_bytes"`
	Loads               int     `json:"loads"` // times this process has loaded a model
	ElapsedSeconds      float64 `json:"elapsed_s"`
}

// ModelInfo describes the loaded model.
type ModelInfo struct {
	Name, Path                   string
	Layers, KDALayers, MLALayers int
	Hidden, Vocab                int
	Experts, TopK, SharedExperts int
	MoELayers                    int
	Parameters                   int64 // routed experts counted in full
	ExpertBytes                  int64 // one routed expert
	SpineBytes, ExpertsBytes     int64 // weights beside the routed experts, and these
	MaxPositions                 int
	LoadTime                     time.Duration
	Threads                      int
	Device                       string
}

// MemoryMap says what occupies memory, in bytes.
type MemoryMap struct {
	SpineMapped, ExpertsMapped int64 // mapped from files; the system may drop them
	KeptStates                 int64 // sequences kept for prefix reuse
	KeptSequences              int
	Heap                       int64 // Go heap in use
	RSS, PeakRSS               int64 // of this process; 0 where the system does not tell
}

// TokenProb is one entry of a next-token distribution.
type TokenProb struct {
	ID    int     `json:"id"`
	Text  string  `json:"text"`
	Logit float32 `json:"logit"`
	Prob  float64 `json:"prob"`
}
