package prefetch

import "time"

// Stats counts what a Source did since it was opened. Invariants, which tests
// hold: Needed = Hit + InTime + Late + Demanded, in total and in each layer;
// BytesRead is the sum over its classes.
type Stats struct {
	Rows   int64 `json:"rows"`   // token rows that went through a mixture-of-experts layer, summed over layers
	Steps  int64 `json:"steps"`  // requests for one layer's experts
	Needed int64 `json:"needed"` // experts asked for: distinct within a step

	Hit      int64 `json:"hit"`      // in memory already
	InTime   int64 `json:"in_time"`  // predicted, and landed before it was needed
	Late     int64 `json:"late"`     // predicted, but still on its way
	Demanded int64 `json:"demanded"` // read because it was needed

	BytesNeeded   int64 `json:"bytes_needed"`
	BytesDistinct int64 `json:"bytes_distinct"` // of experts, each counted once since the start
	BytesRead     int64 `json:"bytes_read"`     // from drives; 0 for a resident source

	Stall   time.Duration `json:"stall_ns"`   // computing waited for bytes
	Compute time.Duration `json:"compute_ns"` // computing on experts

	Layers []LayerStats `json:"layers"`
}

// LayerStats is one layer's part of Stats.
type LayerStats struct {
	Layer    int           `json:"layer"` // model layer, 0-based
	Steps    int64         `json:"steps"`
	Needed   int64         `json:"needed"`
	Distinct int64         `json:"distinct"` // different experts used since the start
	Hit      int64         `json:"hit"`
	InTime   int64         `json:"in_time"`
	Late     int64         `json:"late"`
	Demanded int64         `json:"demanded"`
	Stall    time.Duration `json:"stall_ns"`
	Compute  time.Duration `json:"compute_ns"`
}
