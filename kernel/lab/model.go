package lab

import (
	"encoding/json"
	"fmt"

	"deltafin/internal/units"
	"deltafin/kernel/display"
	"deltafin/rig"
)

// ModelInfo describes the loaded model.
type ModelInfo struct{ rig.ModelInfo }

// Model describes the loaded model.
func (l *Lab) Model() *ModelInfo {
	return &ModelInfo{call[rig.ModelInfo](l, l.session.Context(), "Model", "info", struct{}{}, nil)}
}

// DisplayBundle shows a table.
func (m *ModelInfo) DisplayBundle() display.Bundle {
	return display.Table{Title: m.Name, Columns: []string{"", "value"}, Rows: [][]any{
		{"parameters", m.Parameters},
		{"layers", fmt.Sprintf("%d: %d KDA, %d MLA", m.Layers, m.KDALayers, m.MLALayers)},
		{"of them with experts", m.MoELayers},
		{"experts", fmt.Sprintf("%d a layer, of which a token uses %d, and %d shared", m.Experts, m.TopK, m.SharedExperts)},
		{"hidden size", m.Hidden},
		{"vocabulary", m.Vocab},
		{"positions", m.MaxPositions},
		{"one expert", units.Bytes(m.ExpertBytes)},
		{"all experts", units.Bytes(m.ExpertsBytes)},
		{"everything else", units.Bytes(m.SpineBytes)},
		{"device", m.Device},
		{"threads", m.Threads},
		{"loaded in", m.LoadTime},
		{"from", m.Path},
	}}.DisplayBundle()
}

// MemoryMap says what occupies memory, in bytes.
type MemoryMap struct{ rig.MemoryMap }

// Memory says what occupies memory in the engine's process.
func (l *Lab) Memory() *MemoryMap {
	return &MemoryMap{call[rig.MemoryMap](l, l.session.Context(), "Memory", "memory", struct{}{}, nil)}
}

// DisplayBundle shows a table.
func (m *MemoryMap) DisplayBundle() display.Bundle {
	rows := [][]any{
		{"weights beside the experts, mapped", units.Bytes(m.SpineMapped)},
		{"experts, mapped", units.Bytes(m.ExpertsMapped)},
		{"kept states of " + plural(m.KeptSequences, "sequence"), units.Bytes(m.KeptStates)},
		{"heap", units.Bytes(m.Heap)},
	}
	if m.SpinePacked > 0 {
		rows = append([][]any{{"weights beside the experts, packed", units.Bytes(m.SpinePacked)}}, rows...)
	}
	if m.RSS > 0 {
		rows = append(rows, []any{"resident now", units.Bytes(m.RSS)}, []any{"resident at most", units.Bytes(m.PeakRSS)})
	}
	return display.Table{Title: "memory", Columns: []string{"", "bytes"}, Rows: rows}.DisplayBundle()
}

// Reset forgets the kept states, so that the next prompt is computed whole, and
// marks the statistics. The weights stay loaded.
func (l *Lab) Reset() {
	call[json.RawMessage](l, l.session.Context(), "Reset", "reset", struct{}{}, nil)
	l.markStats("Reset")
}
