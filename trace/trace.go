// Package trace holds what the router did: which experts each token used in each
// mixture-of-experts layer, and with what weights. It writes and reads traces as
// JSON lines.
package trace

// Trace is the routing of one sequence of tokens.
//
// Experts of one token and layer are in ascending expert id, the order in which
// the engine sums their outputs.
type Trace struct {
	Model   string // the model's name
	Layers  []int  // model layer number (0-based) of each traced layer
	Experts int    // experts in a layer
	TopK    int    // experts that a token uses in a layer
	Tokens  []Token
	// IDs and Weights hold TopK entries for each token and traced layer:
	// entry ((t·len(Layers))+l)·TopK + i. Weights is nil where they are unknown.
	IDs     []int32
	Weights []float32
}

// Token is one position of the traced sequence.
type Token struct {
	ID        int    `json:"id"`
	Text      string `json:"text"`      // lossy: a token may hold part of a rune
	Generated bool   `json:"generated"` // false for the prompt's tokens
}

// Route returns the experts and weights of token t in the l-th traced layer, as
// views into the trace; weights is nil where they are unknown.
func (tr *Trace) Route(t, l int) (ids []int32, weights []float32) {
	at := (t*len(tr.Layers) + l) * tr.TopK
	ids = tr.IDs[at : at+tr.TopK : at+tr.TopK]
	if tr.Weights != nil {
		weights = tr.Weights[at : at+tr.TopK : at+tr.TopK]
	}
	return ids, weights
}
