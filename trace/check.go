package trace

import (
	"fmt"
	"math"
)

// The largest trace that Write and Read take. They bound what a few bytes of
// input can ask for, far above any model of today.
const (
	maxLayers  = 4096
	maxExperts = 1 << 16
	maxTokens  = 1 << 22
)

// FormatError says what is wrong with a trace, or with a file of one.
type FormatError struct {
	Line int    // line of the file from 1; 0 when the trace is not from a file
	What string // the part, such as "token 3, layer 12"
	Want string
	Got  string
}

func (e *FormatError) Error() string {
	at := "trace: "
	if e.Line > 0 {
		at = fmt.Sprintf("trace: line %d: ", e.Line)
	}
	return at + e.What + ": want " + e.Want + ", got " + e.Got
}

// checkShape reports what is wrong with the header's figures.
func (tr *Trace) checkShape() *FormatError {
	switch {
	case len(tr.Layers) == 0 || len(tr.Layers) > maxLayers:
		return &FormatError{What: "layers", Want: fmt.Sprintf("1 to %d of them", maxLayers), Got: fmt.Sprint(len(tr.Layers))}
	case tr.Experts < 1 || tr.Experts > maxExperts:
		return &FormatError{What: "experts", Want: fmt.Sprintf("1 to %d", maxExperts), Got: fmt.Sprint(tr.Experts)}
	case tr.TopK < 1 || tr.TopK > tr.Experts:
		return &FormatError{What: "top_k", Want: fmt.Sprintf("1 to %d, the number of experts", tr.Experts), Got: fmt.Sprint(tr.TopK)}
	}
	for i, n := range tr.Layers {
		if n < 0 || i > 0 && n <= tr.Layers[i-1] {
			return &FormatError{What: "layers", Want: "ascending layer numbers", Got: fmt.Sprint(tr.Layers)}
		}
	}
	return nil
}

// checkRoute reports what is wrong with one layer's experts of one token.
func (tr *Trace) checkRoute(ids []int32, weights []float32) *FormatError {
	if len(ids) != tr.TopK {
		return &FormatError{Want: fmt.Sprintf("%d experts", tr.TopK), Got: fmt.Sprint(len(ids))}
	}
	for i, id := range ids {
		if id < 0 || int(id) >= tr.Experts {
			return &FormatError{Want: fmt.Sprintf("experts below %d", tr.Experts), Got: fmt.Sprint(id)}
		}
		if i > 0 && id <= ids[i-1] {
			return &FormatError{Want: "ascending expert ids", Got: fmt.Sprint(ids)}
		}
	}
	if weights != nil && len(weights) != len(ids) {
		return &FormatError{Want: fmt.Sprintf("%d weights", len(ids)), Got: fmt.Sprint(len(weights))}
	}
	for _, w := range weights {
		if math.IsNaN(float64(w)) || math.IsInf(float64(w), 0) {
			return &FormatError{Want: "finite weights", Got: fmt.Sprint(weights)}
		}
	}
	return nil
}

// Check reports what makes tr unusable: sizes that don't fit each other, experts
// out of range or order, weights that are not finite. The error is a *FormatError.
func (tr *Trace) Check() error {
	if err := tr.checkShape(); err != nil {
		return err
	}
	if len(tr.Tokens) > maxTokens {
		return &FormatError{What: "tokens", Want: fmt.Sprintf("at most %d", maxTokens), Got: fmt.Sprint(len(tr.Tokens))}
	}
	entries := len(tr.Tokens) * len(tr.Layers) * tr.TopK
	if len(tr.IDs) != entries {
		return &FormatError{What: "IDs", Want: fmt.Sprintf("%d entries (tokens × layers × top_k)", entries), Got: fmt.Sprint(len(tr.IDs))}
	}
	if tr.Weights != nil && len(tr.Weights) != entries {
		return &FormatError{What: "Weights", Want: fmt.Sprintf("none, or %d entries (tokens × layers × top_k)", entries), Got: fmt.Sprint(len(tr.Weights))}
	}
	for t := range tr.Tokens {
		for l, layer := range tr.Layers {
			if err := tr.checkRoute(tr.Route(t, l)); err != nil {
				err.What = fmt.Sprintf("token %d, layer %d", t, layer)
				return err
			}
		}
	}
	return nil
}
