package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"deltafin/kernel/display"
	"deltafin/trace"
)

// Trace is what the router did: which experts each token used in each layer. A
// cell that ends in one shows how many tokens used each expert of each layer.
type Trace struct {
	Routes     *trace.Trace // the record itself
	Generation *Generation  // what was generated; nil for a trace from a file
}

// TraceRouter is Generate that also records the routes of every token of the
// prompt and of the answer. With Params{MaxTokens: -1} it is the prompt alone.
func (l *Lab) TraceRouter(prompt string, p ...Params) *Trace {
	params := one("TraceRouter", p)
	needText("TraceRouter", "prompt", prompt)
	q := params.request("TraceRouter")
	q.Prompt = prompt
	g, routes := l.run("TraceRouter", "trace", q, params)
	if routes == nil {
		fail("TraceRouter", errors.New("want a trace, got none from this model"))
	}
	return &Trace{Routes: routes, Generation: g}
}

// LoadTrace reads a trace that Save or the command line wrote.
func (l *Lab) LoadTrace(path string) *Trace {
	f, err := os.Open(path)
	if err != nil {
		fail("LoadTrace", err)
	}
	defer f.Close()
	routes, err := trace.Read(f)
	if err != nil {
		fail("LoadTrace", fmt.Errorf("%s: %w", path, err))
	}
	return &Trace{Routes: routes}
}

// Save writes the trace to a file of JSON lines.
func (t *Trace) Save(path string) {
	f, err := os.Create(path)
	if err != nil {
		fail("Trace.Save", err)
	}
	err = t.Routes.Write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		fail("Trace.Save", fmt.Errorf("%s: %w", path, err))
	}
}

// Layer is the part of the trace in one layer of the model.
func (t *Trace) Layer(n int) *Trace {
	part, err := t.Routes.Layer(n)
	if err != nil {
		fail("Trace.Layer", err)
	}
	return &Trace{Routes: part, Generation: t.Generation}
}

// Token is the part of the trace that is one token, counted from 0, the prompt's
// first. A cell shows it as a table of the experts in each layer.
func (t *Trace) Token(n int) *Trace {
	part, err := t.Routes.Token(n)
	if err != nil {
		fail("Trace.Token", err)
	}
	return &Trace{Routes: part, Generation: t.Generation}
}

// Top lists the n experts that most tokens used, over all layers.
func (t *Trace) Top(n int) Loads { return t.Routes.Top(n) }

// Loads is a list of experts and how often each was used. A cell that ends in one
// shows it as a table.
type Loads []trace.Load

// DisplayBundle shows a table.
func (l Loads) DisplayBundle() display.Bundle {
	t := display.Table{Columns: []string{"layer", "expert", "tokens", "share"}}
	for _, x := range l {
		t.Rows = append(t.Rows, []any{x.Layer, x.Expert, x.Count, fmt.Sprintf("%.1f %%", 100*x.Share)})
	}
	return t.DisplayBundle()
}

// Experts is how many different experts each layer used.
func (t *Trace) Experts() *LayerValues {
	v := &LayerValues{Name: "distinct experts", Layers: t.Routes.Layers}
	for _, n := range t.Routes.Distinct() {
		v.Values = append(v.Values, float64(n))
	}
	return v
}

// Reuse is, by layer, the share of a token's experts that the token before it had
// used too. A uniform router would reach TopK ÷ Experts.
func (t *Trace) Reuse() *LayerValues {
	return &LayerValues{Name: "reuse from token to token", Layers: t.Routes.Layers, Values: t.Routes.Reuse()}
}

// Entropy is, by layer, how evenly the load is spread over the experts, in bits.
// An even load would reach log₂ of the number of experts.
func (t *Trace) Entropy() *LayerValues {
	return &LayerValues{Name: "entropy of the load, bits", Layers: t.Routes.Layers, Values: t.Routes.Entropy()}
}

// Summary is one line on the trace.
func (t *Trace) Summary() string {
	r := t.Routes
	s := fmt.Sprintf("%s · %s × %d experts, top %d", plural(len(r.Tokens), "token"), plural(len(r.Layers), "layer"), r.Experts, r.TopK)
	if len(r.Tokens) > 1 {
		s += fmt.Sprintf(" · reuse %.0f %%", 100*t.Reuse().Mean())
	}
	return s
}

// DisplayBundle shows a heat map of the experts' load, or for one token a table of
// its experts.
func (t *Trace) DisplayBundle() display.Bundle {
	r := t.Routes
	name := r.Model
	if name == "" {
		name = "trace"
	}
	switch len(r.Tokens) {
	case 0:
		return display.Text(name + " · " + t.Summary())
	case 1:
		table := display.Table{Title: fmt.Sprintf("%s · token %q", name, r.Tokens[0].Text), Columns: []string{"layer", "experts"}}
		if r.Weights != nil {
			table.Columns = append(table.Columns, "weights")
		}
		for l, layer := range r.Layers {
			ids, weights := r.Route(0, l)
			row := []any{layer, strings.Trim(fmt.Sprint(ids), "[]")}
			if weights != nil {
				row = append(row, strings.Trim(fmt.Sprintf("%.3f", weights), "[]"))
			}
			table.Rows = append(table.Rows, row)
		}
		return table.DisplayBundle()
	}
	return display.Heatmap{
		Title: name + "\n" + t.Summary(), Row: "layer", Column: "expert", Value: "tokens",
		RowLabels: r.Layers, Counts: r.Counts(), Total: int64(len(r.Tokens)),
	}.DisplayBundle()
}

// LayerValues is one figure for each layer. A cell that ends in one shows it as
// bars.
type LayerValues struct {
	Name   string    // what the figure is
	Layers []int     // layer numbers
	Values []float64 // one for each of Layers
}

// Mean is the mean over the layers.
func (v *LayerValues) Mean() float64 {
	sum := 0.0
	for _, x := range v.Values {
		sum += x
	}
	return sum / float64(max(1, len(v.Values)))
}

// DisplayBundle shows bars.
func (v *LayerValues) DisplayBundle() display.Bundle {
	return v.bars(fmt.Sprintf("mean %.4g", v.Mean())).DisplayBundle()
}

func (v *LayerValues) bars(subtitle string) display.Bars {
	labels := []string{}
	for _, n := range v.Layers {
		labels = append(labels, fmt.Sprint(n))
	}
	return display.Bars{
		Title: v.Name + "\n" + subtitle, Label: "layer", Value: v.Name, Labels: labels,
		Series: []display.Series{{Name: v.Name, Values: v.Values}},
	}
}

// TraceDiff compares two traces token by token.
type TraceDiff struct {
	Compared   int          // tokens that both have
	Same       *LayerValues // by layer, the share of experts in common
	FirstToken int          // first token with a different expert; -1 when there is none
	FirstLayer int          // layer of that difference; -1 when there is none
	Counts     [][]int64    // by layer and expert: uses in the other trace minus uses in this one
}

// Diff compares the trace with another of the same model.
func (t *Trace) Diff(other *Trace) *TraceDiff {
	d, err := t.Routes.Diff(other.Routes)
	if err != nil {
		fail("Trace.Diff", err)
	}
	return &TraceDiff{
		Compared: d.Compared, FirstToken: d.FirstToken, FirstLayer: d.FirstLayer, Counts: d.Counts,
		Same: &LayerValues{Name: "experts in common", Layers: d.Layers, Values: d.Same},
	}
}

// Summary is one line on the comparison.
func (d *TraceDiff) Summary() string {
	if d.FirstToken < 0 {
		return fmt.Sprintf("the same experts in all of %s", plural(d.Compared, "token"))
	}
	return fmt.Sprintf("%.1f %% of the experts in common over %s; first difference at token %d, layer %d",
		100*d.Same.Mean(), plural(d.Compared, "token"), d.FirstToken, d.FirstLayer)
}

// DisplayBundle shows the share in common by layer, or one line when the traces
// are alike.
func (d *TraceDiff) DisplayBundle() display.Bundle {
	if d.FirstToken < 0 {
		return display.Text(d.Summary())
	}
	return d.Same.bars(d.Summary()).DisplayBundle()
}
