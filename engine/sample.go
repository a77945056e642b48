package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling says how the next token is chosen from its logits. The zero value is
// greedy. The choice at a position depends only on the logits, these settings and
// the position: the same seed gives the same text, however it was computed.
type Sampling struct {
	Temperature float64 // 0 is greedy; logits are divided by it
	TopP        float64 // keep the likeliest tokens until their probability reaches it; 0 and 1 keep all
	TopK        int     // keep this many of the likeliest tokens; 0 keeps all
	Seed        uint64
}

// A SettingError is a setting outside its range.
type SettingError struct{ Name, Want, Got string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("%s: want %s, got %s", e.Name, e.Want, e.Got)
}

const maxTemperature = 1e6

// Check returns a *SettingError for the first field that is out of range.
func (s Sampling) Check() error {
	switch {
	case !(s.Temperature >= 0 && s.Temperature <= maxTemperature):
		return &SettingError{"temperature", fmt.Sprintf("a number from 0 (greedy) to %g", maxTemperature), fmt.Sprint(s.Temperature)}
	case !(s.TopP >= 0 && s.TopP <= 1):
		return &SettingError{"top-p", "a probability from 0 to 1 (0 and 1 keep all tokens)", fmt.Sprint(s.TopP)}
	case s.TopK < 0:
		return &SettingError{"top-k", "a count from 0 up (0 keeps all tokens)", fmt.Sprint(s.TopK)}
	}
	return nil
}

// Choose picks the token that follows position tokens of text.
func (s Sampling) Choose(logits []float32, position int) int {
	if s.Temperature == 0 || s.TopK == 1 {
		return argmax(logits)
	}
	kept := s.Distribution(logits)
	u := rand.New(rand.NewPCG(s.Seed, uint64(position))).Float64()
	for _, t := range kept {
		if u -= t.Prob; u < 0 {
			return t.ID
		}
	}
	return kept[0].ID // rounding left a sliver: the likeliest
}

// TokenProb is a token with its probability.
type TokenProb struct {
	ID   int
	Prob float64
}

// Distribution is what Choose samples from: the kept tokens, likeliest first (ties:
// the lower id), with probabilities that sum to 1. A zero temperature counts as 1.
func (s Sampling) Distribution(logits []float32) []TokenProb {
	t := s.Temperature
	if t == 0 {
		t = 1
	}
	top := float64(logits[argmax(logits)])
	kept := make([]TokenProb, len(logits))
	var sum float64
	for i, l := range logits {
		kept[i] = TokenProb{i, exp((float64(l) - top) / t)}
		sum += kept[i].Prob
	}
	slices.SortFunc(kept, func(a, b TokenProb) int {
		return cmp.Or(cmp.Compare(b.Prob, a.Prob), cmp.Compare(a.ID, b.ID))
	})
	if s.TopK > 0 && s.TopK < len(kept) {
		kept = kept[:s.TopK]
		sum = 0
		for _, k := range kept {
			sum += k.Prob
		}
	}
	if s.TopP > 0 && s.TopP < 1 {
		var mass float64
		for i, k := range kept {
			if mass += k.Prob; mass >= s.TopP*sum {
				kept, sum = kept[:i+1], mass
				break
			}
		}
	}
	for i := range kept {
		kept[i].Prob /= sum
	}
	return kept
}

// argmax is the id of the largest logit, the lowest among equals.
func argmax(logits []float32) int {
	best := 0
	for i, l := range logits {
		if l > logits[best] {
			best = i
		}
	}
	return best
}

// exp is e^x for x ≤ 0. math.Exp is assembly on some architectures and may differ in
// the last bit; a seed must give one text on all.
func exp(x float64) float64 {
	if !(x > -700) {
		return 0
	}
	n := math.Round(x * math.Log2E)
	r := x - float64(n*0x1.62e42fefa38p-1) // the upper 43 bits of ln 2: exact for |n| < 1024
	r -= float64(n * 0x1.ef35793c7673p-45)
	p := 1.0
	for i := 14.0; i > 0; i-- {
		p = 1 + float64(float64(p*r)/i)
	}
	return math.Ldexp(p, int(n))
}
