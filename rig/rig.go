package rig

import (
	"context"

	"deltafin/prefetch"
	"deltafin/tokenizer"
	"deltafin/trace"
)

// Rig holds a warm model. Its methods may be called from any goroutine; requests
// that compute run one at a time, in order of arrival.
type Rig struct{}

func Open(ctx context.Context, o Options) (*Rig, error) { panic("contract only") }

func (r *Rig) Close() error { panic("contract only") }

// Generate runs one request. progress may be nil; it is called from one
// goroutine and should return soon. When ctx is cancelled Generate returns what
// it has with Finish "interrupted" and a nil error.
func (r *Rig) Generate(ctx context.Context, q Request, progress func(Progress)) (*Generation, error) {
	panic("contract only")
}

// Trace is Generate that also records the routes of every prompt and new token.
func (r *Rig) Trace(ctx context.Context, q Request, progress func(Progress)) (*Generation, *trace.Trace, error) {
	panic("contract only")
}

// Logits computes the n likeliest next tokens after the prompt of q, and the whole row.
func (r *Rig) Logits(ctx context.Context, q Request, n int) (top []TokenProb, logits []float32, err error) {
	panic("contract only")
}

func (r *Rig) Tokenizer() *tokenizer.Tokenizer { panic("contract only") }
func (r *Rig) PrefetchStats() prefetch.Stats   { panic("contract only") }
func (r *Rig) Info() ModelInfo                 { panic("contract only") }
func (r *Rig) Memory() MemoryMap               { panic("contract only") }

// Reset forgets kept states and marks the statistics; the weights stay.
func (r *Rig) Reset() { panic("contract only") }

// Tensors runs ids through the model once and writes ids, logits, residual,
// route_ids and route_weights to a safetensors file.
func (r *Rig) Tensors(ctx context.Context, ids []int, file string) error { panic("contract only") }
