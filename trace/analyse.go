package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Counts returns how many tokens used each expert: [traced layer][expert].
func (tr *Trace) Counts() [][]int64 {
	counts := make([][]int64, len(tr.Layers))
	for l := range counts {
		counts[l] = make([]int64, tr.Experts)
	}
	for t := range tr.Tokens {
		for l := range tr.Layers {
			ids, _ := tr.Route(t, l)
			for _, id := range ids {
				counts[l][id]++
			}
		}
	}
	return counts
}

// Distinct returns how many different experts each traced layer used.
func (tr *Trace) Distinct() []int {
	distinct := make([]int, len(tr.Layers))
	for l, counts := range tr.Counts() {
		for _, n := range counts {
			if n > 0 {
				distinct[l]++
			}
		}
	}
	return distinct
}

// Reuse returns, for each traced layer, the share of a token's experts that the
// token before it had used too, averaged over all tokens but the first: 0 to 1,
// and 0 for a trace of one token. Chance alone gives TopK ÷ Experts.
func (tr *Trace) Reuse() []float64 {
	reuse := make([]float64, len(tr.Layers))
	if len(tr.Tokens) < 2 {
		return reuse
	}
	for l := range reuse {
		same := 0
		for t := 1; t < len(tr.Tokens); t++ {
			a, _ := tr.Route(t-1, l)
			b, _ := tr.Route(t, l)
			same += common(a, b)
		}
		reuse[l] = float64(same) / float64((len(tr.Tokens)-1)*tr.TopK)
	}
	return reuse
}

// common counts the ids that two ascending lists share.
func common(a, b []int32) int {
	n := 0
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}

// Entropy returns the entropy of each traced layer's load, in bits:
// −Σ p·log₂p over experts, p an expert's share of the layer's uses. An even load
// over all experts gives log₂(Experts).
func (tr *Trace) Entropy() []float64 {
	entropy := make([]float64, len(tr.Layers))
	uses := float64(len(tr.Tokens) * tr.TopK)
	for l, counts := range tr.Counts() {
		for _, n := range counts {
			if n > 0 {
				p := float64(n) / uses
				entropy[l] -= float64(p * math.Log2(p))
			}
		}
	}
	return entropy
}

// Load is how often one expert was used.
type Load struct {
	Layer  int // model layer number
	Expert int
	Count  int64
	Share  float64 // of the tokens, 0 to 1
}

// Top returns the n most used experts of all layers, the most used first; equal
// counts are in order of layer and expert. Experts that no token used are left out.
func (tr *Trace) Top(n int) []Load {
	var loads []Load
	for l, counts := range tr.Counts() {
		for e, n := range counts {
			if n > 0 {
				loads = append(loads, Load{tr.Layers[l], e, n, float64(n) / float64(len(tr.Tokens))})
			}
		}
	}
	slices.SortStableFunc(loads, func(a, b Load) int { return cmp.Compare(b.Count, a.Count) })
	return loads[:min(max(n, 0), len(loads))]
}

// RangeError says that a trace has no such layer or token.
type RangeError struct {
	What  string // "layer" or "token"
	Got   int
	First int // what there is, both inclusive; Last < First when there is none
	Last  int
}

func (e *RangeError) Error() string {
	if e.Last < e.First {
		return fmt.Sprintf("trace: no %s %d: the trace has no %ss", e.What, e.Got, e.What)
	}
	return fmt.Sprintf("trace: no %s %d: the trace has %ss %d to %d", e.What, e.Got, e.What, e.First, e.Last)
}

// Layer returns the part of the trace that is in model layer n, or a *RangeError.
func (tr *Trace) Layer(n int) (*Trace, error) {
	l, ok := slices.BinarySearch(tr.Layers, n)
	if !ok {
		e := &RangeError{What: "layer", Got: n, Last: -1}
		if len(tr.Layers) > 0 {
			e.First, e.Last = tr.Layers[0], tr.Layers[len(tr.Layers)-1]
		}
		return nil, e
	}
	part := &Trace{Model: tr.Model, Layers: []int{n}, Experts: tr.Experts, TopK: tr.TopK, Tokens: tr.Tokens}
	for t := range tr.Tokens {
		ids, weights := tr.Route(t, l)
		part.IDs = append(part.IDs, ids...)
		part.Weights = append(part.Weights, weights...)
	}
	return part, nil
}

// Token returns the part of the trace that is token t, from 0, or a *RangeError.
// It shares tr's memory.
func (tr *Trace) Token(t int) (*Trace, error) {
	if t < 0 || t >= len(tr.Tokens) {
		return nil, &RangeError{What: "token", Got: t, Last: len(tr.Tokens) - 1}
	}
	return tr.Slice(t, t+1), nil
}

// Slice returns tokens from to to-1, sharing tr's memory. Like a slice
// expression it panics when they are out of range.
func (tr *Trace) Slice(from, to int) *Trace {
	part := *tr
	step := len(tr.Layers) * tr.TopK
	part.Tokens = tr.Tokens[from:to:to]
	part.IDs = tr.IDs[from*step : to*step : to*step]
	if tr.Weights != nil {
		part.Weights = tr.Weights[from*step : to*step : to*step]
	}
	return &part
}

// ShapeError says that two traces can't be compared.
type ShapeError struct{ Want, Got string }

func (e *ShapeError) Error() string {
	return "trace: can't compare: want a trace of " + e.Want + ", got " + e.Got
}

func (tr *Trace) shape() string {
	layers := "no layers"
	if n := len(tr.Layers); n > 0 {
		layers = fmt.Sprintf("layers %d to %d", tr.Layers[0], tr.Layers[n-1])
	}
	return fmt.Sprintf("%s (%d), %d experts, top %d", layers, len(tr.Layers), tr.Experts, tr.TopK)
}

// Difference compares two traces, token by token from the first one on.
type Difference struct {
	Layers     []int     // model layer numbers
	Compared   int       // tokens that both have: the shorter one's
	Same       []float64 // share of experts in common, by traced layer, 0 to 1; 1 when nothing was compared
	FirstToken int       // first token with a different expert; -1 when there is none
	FirstLayer int       // model layer of that difference; -1 when there is none
	Counts     [][]int64 // the other's Counts minus tr's, over all tokens of each
}

// Diff compares tr with other. Traces of different layers, experts or TopK give a
// *ShapeError.
func (tr *Trace) Diff(other *Trace) (*Difference, error) {
	if !slices.Equal(tr.Layers, other.Layers) || tr.Experts != other.Experts || tr.TopK != other.TopK {
		return nil, &ShapeError{Want: tr.shape(), Got: other.shape()}
	}
	d := &Difference{
		Layers:     tr.Layers,
		Compared:   min(len(tr.Tokens), len(other.Tokens)),
		Same:       make([]float64, len(tr.Layers)),
		FirstToken: -1, FirstLayer: -1,
		Counts: other.Counts(),
	}
	for l, counts := range tr.Counts() {
		for e, n := range counts {
			d.Counts[l][e] -= n
		}
		same := 0
		for t := range d.Compared {
			a, _ := tr.Route(t, l)
			b, _ := other.Route(t, l)
			n := common(a, b)
			same += n
			if n < tr.TopK && (d.FirstToken < 0 || t < d.FirstToken) {
				d.FirstToken, d.FirstLayer = t, tr.Layers[l]
			}
		}
		d.Same[l] = 1
		if d.Compared > 0 {
			d.Same[l] = float64(same) / float64(d.Compared*tr.TopK)
		}
	}
	return d, nil
}
