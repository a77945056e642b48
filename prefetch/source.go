// Package prefetch brings the bytes of routed experts to the engine: which are
// read, when, from where, and what stays in memory. The engine sees a Source; the
// one here, Resident, has every expert in memory or mapped from files.
package prefetch

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Key names one routed expert.
type Key struct {
	Layer  int // model layer, 0-based
	Expert int
}

func (k Key) String() string { return fmt.Sprintf("layer %d expert %d", k.Layer, k.Expert) }

// Parts are an expert's six byte ranges in the order of its record: w1 codes, w1
// scales, w3 codes, w3 scales, w2 codes, w2 scales.
type Parts [6][]byte

// Size is the number of bytes of all parts.
func (p *Parts) Size() int64 {
	var n int64
	for _, b := range p {
		n += int64(len(b))
	}
	return n
}

// Lease is an expert that is in memory and stays there until Release.
type Lease struct {
	Index int // in the ids given to Demand
	Key   Key
	Parts *Parts
}

// Source gives experts. Its methods may be called from any goroutine.
type Source interface {
	// Demand asks for experts of one layer, in ascending id without repeats, for a
	// step of rows token rows. The slice must stay as it is until the batch is closed,
	// which it must be.
	Demand(ctx context.Context, layer int, experts []int, rows int) (Batch, error)
	// Stats returns the counters since the source was opened.
	Stats() Stats
	// Close releases what the source holds. No batch may be open.
	Close() error
}

// Batch delivers the experts of one Demand. It belongs to one goroutine.
type Batch interface {
	// Next waits until at least one more expert has landed and fills leases with
	// those that have, in any order. After the last it returns io.EOF; when the
	// context ends, the context's error.
	Next(leases []Lease) (int, error)
	// Release gives a lease back once its bytes are no longer used.
	Release(Lease)
	// Close ends the step; leases not given back are released.
	Close()
}

// Resident is the Source of a snapshot whose experts are all in memory or mapped:
// every expert is a hit, nothing is read from drives by it.
type Resident struct {
	find func(Key) (*Parts, bool)

	mu    sync.Mutex
	count counter
	free  []*residentBatch // closed ones
}

// NewResident returns a source over find, which gives an expert's bytes and must be
// safe to call from any goroutine.
func NewResident(find func(Key) (*Parts, bool)) *Resident {
	return &Resident{find: find, count: newCounter()}
}

func (r *Resident) Demand(ctx context.Context, layer int, experts []int, rows int) (Batch, error) {
	b := r.batch()
	*b = residentBatch{r: r, ctx: ctx, layer: layer, experts: experts, parts: slices.Grow(b.parts[:0], len(experts))[:len(experts)]}
	for i, e := range experts {
		key := Key{layer, e}
		p, ok := r.find(key)
		if !ok {
			return nil, &MissingError{Key: key}
		}
		b.parts[i] = p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count.step(layer, rows)
	for i, e := range experts {
		r.count.hit(Key{layer, e}, b.parts[i].Size())
	}
	return b, nil
}

// batch is a closed batch to be used again, or a new one.
func (r *Resident) batch() *residentBatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.free)
	if n == 0 {
		return new(residentBatch)
	}
	b := r.free[n-1]
	r.free = r.free[:n-1]
	return b
}

func (r *Resident) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count.stats()
}

func (r *Resident) Close() error { return nil }

type residentBatch struct {
	r         *Resident
	ctx       context.Context
	layer     int
	experts   []int
	parts     []*Parts
	next      int
	delivered time.Time // when Next last returned experts; the time since is compute
}

func (b *residentBatch) Next(leases []Lease) (int, error) {
	b.computed()
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.next == len(b.experts) {
		return 0, io.EOF
	}
	n := 0
	for ; n < len(leases) && b.next < len(b.experts); n++ {
		leases[n] = Lease{Index: b.next, Key: Key{b.layer, b.experts[b.next]}, Parts: b.parts[b.next]}
		b.next++
	}
	b.delivered = time.Now()
	return n, nil
}

func (b *residentBatch) Release(Lease) {}

func (b *residentBatch) Close() {
	b.computed()
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.r.free = append(b.r.free, b)
}

func (b *residentBatch) computed() {
	if b.delivered.IsZero() {
		return
	}
	d := time.Since(b.delivered)
	b.delivered = time.Time{}
	b.r.mu.Lock()
	b.r.count.compute(b.layer, d)
	b.r.mu.Unlock()
}

// MissingError says that no copy of an expert exists in the source.
type MissingError struct{ Key Key }

func (e *MissingError) Error() string {
	return fmt.Sprintf("prefetch: %v is in no drive or snapshot of this model", e.Key)
}
