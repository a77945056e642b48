package rig

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"deltafin/checkpoint"
	"deltafin/engine"
	"deltafin/prefetch"
	"deltafin/trace"
)

// run watches the passes of one request.
type run struct {
	r      *Rig
	rec    *recorder // nil unless routes are wanted
	hook   engine.Hook
	before prefetch.Stats
	seen   map[prefetch.Key]struct{} // experts that the request used

	reused, prefilled int
	prefillTime       time.Duration
}

func newRun(r *Rig, rec *recorder) *run {
	u := &run{r: r, rec: rec, before: r.model.Source.Stats(), seen: map[prefetch.Key]struct{}{}}
	u.hook.Route = func(layer, first int, ids []int32, weights []float32) {
		for _, e := range ids {
			u.seen[prefetch.Key{Layer: layer, Expert: int(e)}] = struct{}{}
		}
		if rec != nil {
			rec.route(layer, first, ids, weights)
		}
	}
	return u
}

// measure fills in what the request's passes, which led to s, cost.
func (u *run) measure(g *Generation, s *engine.Sequence) {
	d := u.r.model.Source.Stats().Since(u.before)
	stats := &g.Stats
	stats.ReusedTokens, stats.PrefilledTokens = u.reused, u.prefilled
	if u.prefillTime > 0 {
		stats.PrefillTokensPerS = float64(u.prefilled) / u.prefillTime.Seconds()
	}
	stats.ExpertBytesRead = d.BytesRead
	stats.ExpertBytesDistinct = int64(len(u.seen)) * u.r.Info().ExpertBytes
	if stats.ExpertBytesDistinct > 0 {
		stats.Amplification = float64(stats.ExpertBytesRead) / float64(stats.ExpertBytesDistinct)
	}
	stats.StallSeconds = d.Stall.Seconds()
	if u.rec != nil {
		u.rec.computed = s.Len()
	}
}

// recorder collects routes by position.
type recorder struct {
	r        *Rig
	layers   []int
	index    map[int]int // model layer to traced layer
	ids      []int32     // as in trace.Trace
	weights  []float32
	computed int // tokens of the sequence in the end
}

func newRecorder(r *Rig) *recorder {
	rec := &recorder{r: r, index: map[int]int{}}
	for l := range r.model.NumHiddenLayers {
		if r.model.IsMoE(l) {
			rec.index[l] = len(rec.layers)
			rec.layers = append(rec.layers, l)
		}
	}
	return rec
}

func (c *recorder) route(layer, first int, ids []int32, weights []float32) {
	k := c.r.model.NumExpertsPerToken
	token := len(c.layers) * k
	rows := len(ids) / k
	if need := (first + rows) * token; need > len(c.ids) {
		c.ids = append(c.ids, make([]int32, need-len(c.ids))...)
		c.weights = append(c.weights, make([]float32, need-len(c.weights))...)
	}
	for i := range rows {
		at := (first+i)*token + c.index[layer]*k
		copy(c.ids[at:at+k], ids[i*k:])
		copy(c.weights[at:at+k], weights[i*k:])
	}
}

// trace is what was recorded of the computed tokens. A pass that was interrupted
// left routes of tokens beyond them.
func (c *recorder) trace(g *Generation) *trace.Trace {
	k := c.r.model.NumExpertsPerToken
	token := len(c.layers) * k
	all := slices.Concat(g.PromptIDs, g.IDs)
	n := min(len(all), c.computed)
	tr := &trace.Trace{Model: c.r.name, Layers: c.layers, Experts: c.r.model.NumExperts, TopK: k, IDs: c.ids[:n*token], Weights: c.weights[:n*token]}
	for i, id := range all[:n] {
		tr.Tokens = append(tr.Tokens, trace.Token{ID: id, Text: c.r.tok.Decode([]int{id}), Generated: i >= len(g.PromptIDs)})
	}
	return tr
}

// Tensors runs ids through the model once and writes ids [T], logits [T,vocab],
// residual [layers,T,hidden], route_ids and route_weights [MoE layers,T,k] to a
// safetensors file.
func (r *Rig) Tensors(ctx context.Context, ids []int, file string) error {
	if _, err := r.prompt(ctx, Request{IDs: ids}); err != nil {
		return err
	}
	done, err := r.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	rec := newRecorder(r)
	n, h, k := len(ids), r.model.HiddenSize, r.model.NumExpertsPerToken
	residual := make([]float32, r.model.NumHiddenLayers*n*h)
	logits := make([]float32, 0, n*r.model.VocabSize)
	routeIDs := make([]int32, len(rec.layers)*n*k)
	routeWeights := make([]float32, len(rec.layers)*n*k)
	hook := &engine.Hook{
		Residual: func(layer, first int, prefix []float32) { copy(residual[(layer*n+first)*h:], prefix) },
		Logits:   func(first int, rows []float32) { logits = append(logits, rows...) },
		Route: func(layer, first int, ids []int32, weights []float32) {
			copy(routeIDs[(rec.index[layer]*n+first)*k:], ids)
			copy(routeWeights[(rec.index[layer]*n+first)*k:], weights)
		},
	}
	if err := r.model.NewSequence().Extend(ctx, ids, engine.ExtendOptions{Hook: hook}); err != nil {
		return err
	}
	ids32 := make([]int32, n)
	for i, id := range ids {
		ids32[i] = int32(id)
	}
	return checkpoint.Write(file, []checkpoint.Tensor{
		{Name: "ids", DType: "I32", Shape: []int{n}, Data: bytes32(ids32, func(v int32) uint32 { return uint32(v) })},
		{Name: "logits", DType: "F32", Shape: []int{n, r.model.VocabSize}, Data: bytes32(logits, math.Float32bits)},
		{Name: "residual", DType: "F32", Shape: []int{r.model.NumHiddenLayers, n, h}, Data: bytes32(residual, math.Float32bits)},
		{Name: "route_ids", DType: "I32", Shape: []int{len(rec.layers), n, k}, Data: bytes32(routeIDs, func(v int32) uint32 { return uint32(v) })},
		{Name: "route_weights", DType: "F32", Shape: []int{len(rec.layers), n, k}, Data: bytes32(routeWeights, math.Float32bits)},
	}, map[string]string{"model": r.name})
}

func bytes32[T any](values []T, bits func(T) uint32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, bits(v))
	}
	return b
}
