// Package metal is the arithmetic beneath the engine: a Device owns buffers and
// matrices and runs about a dozen operations, named as in docs/k3.md. The CPU
// device is metal/cpu; metaltest holds what every device owes.
//
// All arithmetic is fp32 with weights widened exactly. An operation's result for
// one row never depends on the other rows of the call, on the number of threads
// or on where its data lies: that is what lets the engine promise one answer
// whatever the schedule.
//
// In comments, x[n][c] is a row-major buffer of n rows of c floats.
package metal

import (
	"context"
	"encoding/binary"
	"math"
)

// Format is how a Matrix stores its weights.
type Format uint8

const (
	F32  Format = iota // little-endian float32
	BF16               // the upper half of a float32, little-endian
	BF12               // BF16 in 12 bits: see PackBF12
	MX4                // MXFP4: two E2M1 codes a byte, low nibble first, and one E8M0 scale for 32 inputs
)

func (f Format) String() string {
	switch f {
	case F32:
		return "F32"
	case BF16:
		return "BF16"
	case BF12:
		return "BF12"
	case MX4:
		return "MX4"
	}
	return "unknown format"
}

// MX4Group is the number of consecutive inputs that share one MX4 scale.
const MX4Group = 32

// RowBytes is the size of one row of cols weights, without an MX4 row's scales.
func (f Format) RowBytes(cols int) int {
	switch f {
	case F32:
		return 4 * cols
	case BF16:
		return 2 * cols
	case BF12:
		return cols / BF12Block * BF12BlockBytes
	default:
		return cols / 2
	}
}

// A Matrix is rows × cols weights in the checkpoint's own bytes: y = W·x takes
// cols inputs to rows outputs. The bytes are not copied and must outlive it.
type Matrix struct {
	Format     Format
	Rows, Cols int
	Data       []byte
	Scales     []byte // MX4: Rows × Cols/32 scales; BF12: what PackBF12 put aside
	Mem        any    // the device's own handle, nil on the CPU
}

// ReadF32 reads len(dst) little-endian float32s.
func ReadF32(dst []float32, b []byte) {
	b = b[:4*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// WidenBF16 reads len(dst) BF16 values, exactly.
func WidenBF16(dst []float32, b []byte) {
	b = b[:2*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(b[2*i])<<16 | uint32(b[2*i+1])<<24)
	}
}

// A Buffer is float32 memory of a Device. F is the host's view of it, valid
// after Queue.Wait.
type Buffer struct {
	F   []float32
	Mem any // the device's own handle, nil on the CPU
	Off int // offset of F within Mem, in floats
}

// Len is the number of floats.
func (b Buffer) Len() int { return len(b.F) }

// Slice is b[lo:hi].
func (b Buffer) Slice(lo, hi int) Buffer {
	return Buffer{F: b.F[lo:hi:hi], Mem: b.Mem, Off: b.Off + lo}
}

// A Device runs operations. Its methods may be called from any goroutine; each
// Queue belongs to one.
type Device interface {
	// Name says what computes, for people: "cpu, 2 threads, portable".
	Name() string
	// Threads is the number of computing goroutines, 0 for a GPU.
	Threads() int
	// NewBuffer returns n zeroed floats.
	NewBuffer(n int) Buffer
	// NewMatrix wraps weights; the sizes of data and scales must fit.
	NewMatrix(f Format, rows, cols int, data, scales []byte) Matrix
	// Begin starts a queue of operations that ends early when ctx is cancelled.
	Begin(ctx context.Context) Queue
	// Close waits for the device's goroutines to end. No queue may be in use.
	Close() error
}

// A Queue takes operations in order. They may run at once (the CPU) or by Wait
// (a GPU). After ctx is cancelled the remaining operations do nothing, and what
// was in flight may have written part of its output.
//
// Sizes are the caller's duty: an operation panics on buffers that are too short.
type Queue interface {
	// Wait returns when all operations have run; the error is the context's.
	Wait() error
	// Reset begins anew, after Wait, under another context.
	Reset(ctx context.Context)

	// Embed copies rows ids of table (BF16 or F32), widened: y[len(ids)][table.Cols].
	Embed(y Buffer, table Matrix, ids []int)

	// MatMul is y[n][w.Rows] = x[n][w.Cols] · Wᵀ; each output is one Dot.
	MatMul(y, x Buffer, w Matrix, n int)

	// MatMuls is MatMul of the same x[n][cols] for each product, in any order.
	MatMuls(products []Product, x Buffer, n int)

	// RMSNorm is y[n][dim] = w · x / sqrt(mean(x²)+eps) for each row; y may be x.
	RMSNorm(y, x, w Buffer, n, dim int, eps float32)

	// AttnRes mixes the n rows of each of vs (blocks in order, prefix last), each
	// [n][dim]: score = normProj·v / sqrt(mean(v²)+eps), p = softmax, y = Σ p·v.
	// normProj[dim] is the elementwise product of the layer's norm and proj.
	AttnRes(y Buffer, vs []Buffer, normProj Buffer, n, dim int, eps float32)

	// Zero clears y.
	Zero(y Buffer)

	// Add is y += x over len(x.F) floats.
	Add(y, x Buffer)

	// MulSigmoid is y *= σ(g) over len(g.F) floats.
	MulSigmoid(y, g Buffer)

	// Sigmoid is y = σ(x) over len(x.F) floats; y may be x.
	Sigmoid(y, x Buffer)

	// SiTU is y = β·tanh(g/β)·σ(g) · λ·tanh(u/λ) over len(g.F) floats; y may be g or u.
	SiTU(y, g, u Buffer, beta, lambda float32)

	// ShortConv is the causal depthwise convolution of width 4, then SiLU:
	// y[n][c] from x[n][c] and the three rows before it, prev[3][c]; next[3][c]
	// receives the last three rows. w[c][4], the last tap for the current row.
	// y may be x; next may not be prev.
	ShortConv(y, next, x, prev, w Buffer, n, c int)

	// KDAGate is y[n][heads·dim] = lower · σ(exp(aLog[head]) · (x + dtBias)), the log
	// decay of each channel; y may be x.
	KDAGate(y, x, aLog, dtBias Buffer, lower float32, n, heads, dim int)

	// KDA walks n rows of the delta rule for each head. q, k, v, g and o are
	// [n][heads·dim], beta is [n][heads]; from and to are [heads][dim][dim], key ×
	// value: from is the state before the rows, to receives the state after them,
	// and may be from; o may not be an input. For each row, with q̂ = q/√(Σq²+1e-6)·dim^-½ and k̂ = k/√(Σk²+1e-6):
	// S ← diag(e^g)·S; u = β(v − Sᵀk̂); S ← S + k̂uᵀ; o = Sᵀq̂.
	KDA(o, to, from, q, k, v, g, beta Buffer, n, heads, dim int)

	// Latent stores n rows of kv[n][KVRank+Rope] in the cache from position first:
	// the first KVRank floats RMS-normed with w and eps, the rest as they are.
	Latent(cache []Buffer, first int, kv, w Buffer, n int, s MLAShape, eps float32)

	// MLA is causal attention over the latent cache for n rows at positions first
	// …, whose own latents are already stored. q[n][Heads·(Nope+Rope)],
	// o[n][Heads·V], which may not be q; kvB's rows go head by head, Nope rows for keys, then V for values.
	MLA(o, q Buffer, cache []Buffer, first int, kvB Matrix, n int, s MLAShape)

	// Route chooses k of experts for each row of logits[n][experts]: s = σ(logit), the
	// largest s+bias (ties: the lower id), stored in ascending id in ids[n][k], with
	// weights[n][k] = s, divided by (their sum + 1e-20) when renormalize, times scale.
	// The host may read ids and weights after Wait.
	Route(ids []int32, weights []float32, logits, bias Buffer, n, experts, k int, renormalize bool, scale float32)

	// Experts computes each job's rows of z[…][latent].
	Experts(z Buffer, jobs []Expert, beta, lambda float32)

	// AddRows is y[rows[i]] += weights[i]·x[i] for rows of dim floats, in ascending i.
	AddRows(y, x Buffer, rows []int32, weights []float32, dim int)

	// NotFinite stores in at the index of x's first NaN or infinity, -1 when there is
	// none. The host may read it after Wait.
	NotFinite(at *int, x Buffer)
}

// Product is one of several matrix products of the same input: Y[n][W.Rows] = x·Wᵀ.
type Product struct {
	Y Buffer
	W Matrix
}

// Expert is one routed expert applied to some rows:
// Out[i] = W2 · SiTU(W1·z[Rows[i]], W3·z[Rows[i]]).
type Expert struct {
	W1, W3, W2 Matrix
	Rows       []int32
	Out        Buffer // [len(Rows)][W2.Rows]
}

// MLAShape gives multi-head latent attention's sizes. The cache is a list of
// blocks of LatentBlock positions, each position KVRank+Rope floats.
type MLAShape struct {
	Heads, Nope, Rope, V, KVRank int
	Scale                        float32 // of a score: (Nope+Rope)^-½
}

// LatentBlock is the number of positions in a block of the latent cache, and in
// a block of the sum over positions, which is counted from position 0.
const LatentBlock = 64
