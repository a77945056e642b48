package rig

import (
	"time"

	"deltafin/engine"
	"deltafin/engine/xtml"
	"deltafin/metal"
)

// Options says which model to keep warm and with what. The zero value is the
// embedded nano-k3 on all CPUs.
type Options struct {
	Model    string // directory of a K3 snapshot; "" or "nano-k3" is the embedded model
	Threads  int    // computing goroutines; 0 means as many as the process may use CPUs
	Spine    string // how all weights but the routed experts are kept: "" or "bf16" as stored, "bf12" packed without loss
	CacheDir string // where the embedded models are unpacked; "" means the platform's cache directory

	Watch func(metal.Device) metal.Device // stands before the device, to watch its operations; nil watches nothing
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
	PromptTokens        int     `json:"prompt_tokens"`         // tokens of the whole prompt
	ReusedTokens        int     `json:"reused_tokens"`         // of these, computed for an earlier request and kept
	PrefilledTokens     int     `json:"prefilled_tokens"`      // prompt tokens that this request computed: those not reused, fewer when interrupted
	Tokens              int     `json:"tokens"`                // new tokens
	LoadSeconds         float64 `json:"load_s"`                // loading the model, counted to the first request; 0 when warm
	TTFTSeconds         float64 `json:"ttft_s"`                // from the request to the first new token; 0 without one
	PrefillTokensPerS   float64 `json:"prefill_tokens_per_s"`  // prompt tokens computed ÷ time that took; 0 when all were reused
	DecodeTokensPerS    float64 `json:"decode_tokens_per_s"`   // new tokens after the first ÷ time since the first
	Drafted             int     `json:"drafted"`               // tokens that a drafter proposed
	Accepted            int     `json:"accepted"`              // of these, the model's own choice
	Rounds              int     `json:"rounds"`                // forward passes after the prompt's
	ExpertBytesRead     int64   `json:"expert_bytes_read"`     // read from drives; 0 where the experts are in memory
	ExpertBytesDistinct int64   `json:"expert_bytes_distinct"` // of the different experts used, each counted once
	Amplification       float64 `json:"amplification"`         // bytes read ÷ distinct bytes
	StallSeconds        float64 `json:"stall_s"`               // computing waited for experts
	PeakRSSBytes        int64   `json:"peak_rss_bytes"`        // most memory the process has had resident; 0 where the system doesn't tell
	Loads               int     `json:"loads"`                 // times the process has loaded a model
	ElapsedSeconds      float64 `json:"elapsed_s"`             // the whole request
}

// ModelInfo describes the loaded model.
type ModelInfo struct {
	Name          string        // of the embedded model, or the directory's
	Path          string        // its directory; "" for one unpacked into memory
	Layers        int           // in all
	KDALayers     int           // with Kimi delta attention
	MLALayers     int           // with multi-head latent attention
	MoELayers     int           // with routed experts
	Hidden        int           // width of the residual stream
	Vocab         int           // token ids
	Experts       int           // routed experts in a layer
	TopK          int           // of these, used by a token
	SharedExperts int           // used by every token
	Parameters    int64         // routed experts counted in full
	ExpertBytes   int64         // one routed expert
	SpineBytes    int64         // all weights but the routed experts
	ExpertsBytes  int64         // all routed experts
	MaxPositions  int           // tokens that a text may have
	LoadTime      time.Duration // from opening the files to the first request
	Threads       int           // computing goroutines
	Device        string        // what computes
}

// MemoryMap says what occupies memory, in bytes.
type MemoryMap struct {
	SpineMapped   int64 // weights beside the routed experts, mapped from files: the system may drop them
	SpinePacked   int64 // of the same, those packed as BF12: in memory for good
	ExpertsMapped int64 // routed experts, likewise
	KeptStates    int64 // sequences kept for prefix reuse, parts that they share counted for each
	KeptSequences int   // their number
	Heap          int64 // Go heap in use
	RSS           int64 // resident memory of the process; 0 where the system doesn't tell
	PeakRSS       int64 // most it has had
}

// TokenProb is one entry of a next-token distribution.
type TokenProb struct {
	ID    int     `json:"id"`
	Text  string  `json:"text"`  // lossy: a token may hold part of a rune
	Logit float32 `json:"logit"` // before the softmax
	Prob  float64 `json:"prob"`  // share of the whole vocabulary, at temperature 1
}
