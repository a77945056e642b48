package prefetch

import (
	"maps"
	"slices"
	"time"
)

// Stats counts what a Source did since it was opened. Invariants, which tests
// hold: Needed = Hit + InTime + Late + Demanded, in total and in each layer, and
// each total is the sum over the layers.
type Stats struct {
	Rows   int64 `json:"rows"`   // token rows that went through a mixture-of-experts layer, summed over layers
	Steps  int64 `json:"steps"`  // requests for one layer's experts
	Needed int64 `json:"needed"` // experts asked for: distinct within a step

	Hit      int64 `json:"hit"`      // in memory already
	InTime   int64 `json:"in_time"`  // predicted, and landed before it was needed
	Late     int64 `json:"late"`     // predicted, but still on its way
	Demanded int64 `json:"demanded"` // read because it was needed

	BytesNeeded   int64 `json:"bytes_needed"`   // of the experts asked for
	BytesDistinct int64 `json:"bytes_distinct"` // of the same experts, each counted once since the start
	BytesRead     int64 `json:"bytes_read"`     // from drives; 0 for a resident source

	Stall   time.Duration `json:"stall_ns"`   // computing waited for bytes
	Compute time.Duration `json:"compute_ns"` // computing on experts

	Layers []LayerStats `json:"layers"` // the same by layer, ascending
}

// LayerStats is one layer's part of Stats.
type LayerStats struct {
	Layer    int           `json:"layer"`      // model layer, 0-based
	Rows     int64         `json:"rows"`       // token rows that went through it
	Steps    int64         `json:"steps"`      // requests for its experts
	Needed   int64         `json:"needed"`     // experts asked for: distinct within a step
	Distinct int64         `json:"distinct"`   // different experts used since the start
	Hit      int64         `json:"hit"`        // in memory already
	InTime   int64         `json:"in_time"`    // predicted, and landed before it was needed
	Late     int64         `json:"late"`       // predicted, but still on its way
	Demanded int64         `json:"demanded"`   // read because it was needed
	Stall    time.Duration `json:"stall_ns"`   // computing waited for bytes
	Compute  time.Duration `json:"compute_ns"` // computing on its experts
}

// counter keeps Stats; its owner locks.
type counter struct {
	total  Stats
	layers map[int]*LayerStats
	seen   map[Key]struct{}
}

func newCounter() counter {
	return counter{layers: map[int]*LayerStats{}, seen: map[Key]struct{}{}}
}

func (c *counter) layer(l int) *LayerStats {
	s := c.layers[l]
	if s == nil {
		s = &LayerStats{Layer: l}
		c.layers[l] = s
	}
	return s
}

func (c *counter) step(layer, rows int) {
	l := c.layer(layer)
	l.Steps++
	l.Rows += int64(rows)
	c.total.Steps++
	c.total.Rows += int64(rows)
}

func (c *counter) hit(k Key, bytes int64) {
	l := c.layer(k.Layer)
	l.Needed++
	l.Hit++
	c.total.Needed++
	c.total.Hit++
	c.total.BytesNeeded += bytes
	if _, ok := c.seen[k]; !ok {
		c.seen[k] = struct{}{}
		l.Distinct++
		c.total.BytesDistinct += bytes
	}
}

func (c *counter) compute(layer int, d time.Duration) {
	c.layer(layer).Compute += d
	c.total.Compute += d
}

func (c *counter) stats() Stats {
	s := c.total
	s.Layers = make([]LayerStats, 0, len(c.layers))
	for _, l := range slices.Sorted(maps.Keys(c.layers)) {
		s.Layers = append(s.Layers, *c.layers[l])
	}
	return s
}

// Since is what happened between the earlier reading of the same source and s.
// Distinct experts, which don't subtract, stay as counted since the start.
func (s Stats) Since(earlier Stats) Stats {
	s.Rows -= earlier.Rows
	s.Steps -= earlier.Steps
	s.Needed -= earlier.Needed
	s.Hit -= earlier.Hit
	s.InTime -= earlier.InTime
	s.Late -= earlier.Late
	s.Demanded -= earlier.Demanded
	s.BytesNeeded -= earlier.BytesNeeded
	s.BytesRead -= earlier.BytesRead
	s.Stall -= earlier.Stall
	s.Compute -= earlier.Compute
	before := map[int]LayerStats{}
	for _, l := range earlier.Layers {
		before[l.Layer] = l
	}
	layers := slices.Clone(s.Layers)
	for i := range layers {
		l, b := &layers[i], before[layers[i].Layer]
		l.Rows -= b.Rows
		l.Steps -= b.Steps
		l.Needed -= b.Needed
		l.Hit -= b.Hit
		l.InTime -= b.InTime
		l.Late -= b.Late
		l.Demanded -= b.Demanded
		l.Stall -= b.Stall
		l.Compute -= b.Compute
	}
	s.Layers = layers
	return s
}
