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

// TokenProb is a token with its probability.
type TokenProb struct {
	ID   int
	Prob float64
}

// before is the order of a distribution: likeliest first, among equals the lower id.
func before(a, b TokenProb) int {
	return cmp.Or(cmp.Compare(b.Prob, a.Prob), cmp.Compare(a.ID, b.ID))
}

// Distribution is what a Sampler chooses from: the kept tokens, likeliest first (ties:
// the lower id), with probabilities that sum to 1. A zero temperature counts as 1.
func (s Sampling) Distribution(logits []float32) []TokenProb {
	var r ranking
	r.begin(logits, s.Temperature)
	n, sum := r.cut(s)
	for i := range n {
		r.tokens[i] = TokenProb{r.at(i).ID, r.at(i).Prob / sum}
	}
	return r.tokens[:n]
}

// A Sampler chooses tokens as its Sampling says. It keeps memory from one choice to the
// next, so that after the first none allocates; it belongs to one goroutine.
type Sampler struct {
	Sampling
	ranking ranking
	pcg     rand.PCG
}

// Choose picks the token that follows position tokens of text.
func (s *Sampler) Choose(logits []float32, position int) int {
	if s.Temperature == 0 || s.TopK == 1 {
		return argmax(logits)
	}
	r := &s.ranking
	r.begin(logits, s.Temperature)
	n, sum := r.cut(s.Sampling)
	s.pcg.Seed(s.Seed, uint64(position))
	u := float64(s.pcg.Uint64()<<11>>11) / (1 << 53)
	for i := range n {
		if u -= r.at(i).Prob / sum; u < 0 {
			return r.at(i).ID
		}
	}
	return r.at(0).ID // rounding left a sliver: the likeliest
}

// A ranking is the tokens of one row of logits in the order of before, sorted as far as
// somebody looked: most choices fall on one of the first, and sorting a whole
// vocabulary takes as long as a small model's forward pass.
type ranking struct {
	tokens []TokenProb // each with its weight, e^((logit − the largest)/temperature)
	sum    float64     // of the weights, in order of id
	sorted int         // so many tokens stand where they belong
}

// begin takes other logits.
func (r *ranking) begin(logits []float32, temperature float64) {
	if temperature == 0 {
		temperature = 1
	}
	top := float64(logits[argmax(logits)])
	r.tokens, r.sum, r.sorted = r.tokens[:0], 0, 0
	for i, l := range logits {
		p := exp((float64(l) - top) / temperature)
		r.tokens = append(r.tokens, TokenProb{i, p})
		r.sum += p
	}
}

// at is the i-th likeliest token.
func (r *ranking) at(i int) TokenProb {
	for i >= r.sorted {
		r.sortMore()
	}
	return r.tokens[i]
}

// sortMore puts more tokens where they belong, about as many as there are already: those
// as likely as one of a sample of the rest, or all of a short rest.
func (r *ranking) sortMore() {
	const sample = 128
	rest := r.tokens[r.sorted:]
	want := max(r.sorted, 32)
	if len(rest) > 2*max(want, sample) {
		var picked [sample]TokenProb
		for i := range picked {
			picked[i] = rest[i*len(rest)/sample]
		}
		slices.SortFunc(picked[:], before)
		least := picked[want*sample/len(rest)].Prob
		n := 0
		for i, t := range rest {
			if t.Prob >= least {
				rest[i], rest[n] = rest[n], t
				n++
			}
		}
		rest = rest[:n]
	}
	slices.SortFunc(rest, before)
	r.sorted += len(rest)
}

// cut is how many of the likeliest tokens s keeps, and the sum of their weights.
func (r *ranking) cut(s Sampling) (kept int, sum float64) {
	kept, sum = len(r.tokens), r.sum
	if s.TopK > 0 && s.TopK < kept {
		kept, sum = s.TopK, 0
		for i := range kept {
			sum += r.at(i).Prob
		}
	}
	if s.TopP > 0 && s.TopP < 1 {
		var mass float64
		for i := range kept {
			if mass += r.at(i).Prob; mass >= s.TopP*sum {
				return i + 1, mass
			}
		}
	}
	return kept, sum
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
	return p * math.Float64frombits(uint64(1023+int(n))<<52) // 2ⁿ, no less than 2⁻¹⁰¹⁰
}
