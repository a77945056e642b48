// Package bench measures what this machine reaches: the kernels against its limits,
// and the tokens a second of a model. What is compared is measured by turns, so that
// another program's work falls on all of it alike.
package bench

import "slices"

// Spread is several measurements of one thing.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

func spreadOf(values []float64) Spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{Median: (v[(n-1)/2] + v[n/2]) / 2, Low: v[0], High: v[n-1]}
}
