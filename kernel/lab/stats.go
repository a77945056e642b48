package lab

import (
	"fmt"
	"html"
	"time"

	"deltafin/internal/units"
	"deltafin/kernel/display"
	"deltafin/prefetch"
)

// Stats is how experts came to the computation, counted since the last call of
// PrefetchStats or Reset. Distinct figures are counted since the model was loaded.
// A cell that ends in one shows a table, and how each layer got its experts.
type Stats struct{ prefetch.Stats }

// PrefetchStats counts what happened to experts since its last call, or since
// Reset. It also works from another cell while a generation runs.
func (l *Lab) PrefetchStats() *Stats {
	before, now := l.markStats("PrefetchStats")
	if before.Steps > now.Steps || before.Needed > now.Needed {
		return &Stats{now} // the source began anew
	}
	return &Stats{now.Since(before)}
}

// markStats reads the counts and marks them, and gives the last mark too. Calls from
// several cells take turns, so that every count is in one of their answers.
func (l *Lab) markStats(fn string) (before, now prefetch.Stats) {
	l.marking.Lock()
	defer l.marking.Unlock()
	before = l.mark
	l.mark = call[prefetch.Stats](l, l.session.Context(), fn, "stats", struct{}{}, nil)
	return before, l.mark
}

// DisplayBundle shows the figures and the experts by layer.
func (s *Stats) DisplayBundle() display.Bundle {
	share := func(n int64) string {
		if s.Needed == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(s.Needed))
	}
	table := display.Table{Title: "experts since the last call", Columns: []string{"figure", "value", "share"}, Rows: [][]any{
		{"tokens × layers with experts", s.Rows, ""},
		{"experts needed", s.Needed, ""},
		{"in memory", s.Hit, share(s.Hit)},
		{"predicted, in time", s.InTime, share(s.InTime)},
		{"predicted, late", s.Late, share(s.Late)},
		{"read on demand", s.Demanded, share(s.Demanded)},
		{"bytes needed", units.Bytes(s.BytesNeeded), ""},
		{"bytes read", units.Bytes(s.BytesRead), ""},
		{"different experts since the start", units.Bytes(s.BytesDistinct), ""},
		{"stall", display.Duration(s.Stall), ""},
		{"computing on experts", display.Duration(s.Compute), ""},
	}}
	b := table.DisplayBundle()
	if len(s.Layers) == 0 {
		return b
	}
	text, source := b.Data[display.MIMEText].(string), b.Data[display.MIMEHTML].(string)
	for _, chart := range []display.Bars{s.experts(), s.times()} {
		c := chart.DisplayBundle()
		text += "\n\n" + c.Data[display.MIMEText].(string)
		if svg, ok := c.Data[display.MIMESVG].(string); ok {
			source += `<div style="margin-top:1em">` + svg + "</div>"
		} else {
			source += "<p>" + html.EscapeString(c.Data[display.MIMEText].(string)) + "</p>"
		}
	}
	b.Data[display.MIMEText], b.Data[display.MIMEHTML] = text, source
	return b
}

// layers makes a stacked chart by layer, leaving out series that are all zero.
func (s *Stats) layers(title, value string, names []string, of func(prefetch.LayerStats) []float64) display.Bars {
	b := display.Bars{Title: title, Label: "layer", Value: value, Labels: []string{}}
	series := make([]display.Series, len(names))
	used := make([]bool, len(names))
	for _, y := range s.Layers {
		b.Labels = append(b.Labels, fmt.Sprint(y.Layer))
		for i, v := range of(y) {
			series[i].Values = append(series[i].Values, v)
			used[i] = used[i] || v != 0
		}
	}
	for i, name := range names {
		series[i].Name = name
		if used[i] || i == 0 {
			b.Series = append(b.Series, series[i])
		}
	}
	return b
}

func (s *Stats) experts() display.Bars {
	return s.layers("experts by layer", "experts", []string{"in memory", "in time", "late", "on demand"}, func(y prefetch.LayerStats) []float64 {
		return []float64{float64(y.Hit), float64(y.InTime), float64(y.Late), float64(y.Demanded)}
	})
}

func (s *Stats) times() display.Bars {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return s.layers("time by layer", "ms", []string{"computing", "stall"}, func(y prefetch.LayerStats) []float64 {
		return []float64{ms(y.Compute), ms(y.Stall)}
	})
}
