package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"deltafin/metal"
)

// Times adds up how long each operation took. Its methods may be called from any
// goroutine.
type Times struct {
	mu sync.Mutex
	by map[string]*OpTime
}

// OpTime is one operation's time. A matrix product is told from others by its
// matrix.
type OpTime struct {
	Op      string  `json:"op"`
	Calls   int     `json:"calls"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"` // of the time that the caller gives List
}

func (t *Times) add(op string, began time.Time) {
	spent := time.Since(began).Seconds()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]*OpTime{}
	}
	o := t.by[op]
	if o == nil {
		o = &OpTime{Op: op}
		t.by[op] = o
	}
	o.Calls++
	o.Seconds += spent
}

// Reset forgets all times.
func (t *Times) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by = nil
}

// merge adds other's times.
func (t *Times) merge(other *Times) {
	other.mu.Lock()
	defer other.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]*OpTime{}
	}
	for op, o := range other.by {
		if t.by[op] == nil {
			t.by[op] = &OpTime{Op: op}
		}
		t.by[op].Calls += o.Calls
		t.by[op].Seconds += o.Seconds
	}
}

// List is the operations' times since the last Reset, the longest first, with their
// shares of total; what no operation took is the engine's own.
func (t *Times) List(total time.Duration) []OpTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	list, rest := []OpTime{}, total.Seconds()
	for _, o := range t.by {
		list = append(list, *o)
		rest -= o.Seconds
	}
	list = append(list, OpTime{Op: "the engine's own", Seconds: max(rest, 0)})
	for i := range list {
		list[i].Share = list[i].Seconds / total.Seconds()
	}
	slices.SortFunc(list, func(a, b OpTime) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Op, b.Op))
	})
	return list
}

// Watch returns d with every operation timed: d must run an operation when it is
// called, as the CPU does.
func (t *Times) Watch(d metal.Device) metal.Device { return watchedDevice{d, t} }

type watchedDevice struct {
	metal.Device
	times *Times
}

func (d watchedDevice) Begin(ctx context.Context) metal.Queue {
	return watchedQueue{d.Device.Begin(ctx), d.times}
}

type watchedQueue struct {
	metal.Queue
	times *Times
}

func (q watchedQueue) Embed(y metal.Buffer, table metal.Matrix, ids []int) {
	defer q.times.add("Embed", time.Now())
	q.Queue.Embed(y, table, ids)
}

func (q watchedQueue) MatMul(y, x metal.Buffer, w metal.Matrix, n int) {
	defer q.times.add(fmt.Sprintf("MatMul %v %d×%d", w.Format, w.Rows, w.Cols), time.Now())
	q.Queue.MatMul(y, x, w, n)
}

func (q watchedQueue) MatMuls(products []metal.Product, x metal.Buffer, n int) {
	defer q.times.add(productsName(products), time.Now())
	q.Queue.MatMuls(products, x, n)
}

// productsName has the sizes of several products: those of equal ones, once.
func productsName(products []metal.Product) string {
	name := fmt.Sprintf("MatMuls %v", products[0].W.Format)
	for i := 0; i < len(products); {
		w, n := &products[i].W, 1
		for i+n < len(products) && products[i+n].W.Rows == w.Rows {
			n++
		}
		name += fmt.Sprintf(" %d·%d", n, w.Rows)
		i += n
	}
	return fmt.Sprintf("%s×%d", name, products[0].W.Cols)
}

func (q watchedQueue) RMSNorm(y, x, w metal.Buffer, n, dim int, eps float32) {
	defer q.times.add("RMSNorm", time.Now())
	q.Queue.RMSNorm(y, x, w, n, dim, eps)
}

func (q watchedQueue) AttnRes(y metal.Buffer, vs []metal.Buffer, normProj metal.Buffer, n, dim int, eps float32) {
	defer q.times.add("AttnRes", time.Now())
	q.Queue.AttnRes(y, vs, normProj, n, dim, eps)
}

func (q watchedQueue) Zero(y metal.Buffer) {
	defer q.times.add("Zero", time.Now())
	q.Queue.Zero(y)
}

func (q watchedQueue) Add(y, x metal.Buffer) {
	defer q.times.add("Add", time.Now())
	q.Queue.Add(y, x)
}

func (q watchedQueue) MulSigmoid(y, g metal.Buffer) {
	defer q.times.add("MulSigmoid", time.Now())
	q.Queue.MulSigmoid(y, g)
}

func (q watchedQueue) Sigmoid(y, x metal.Buffer) {
	defer q.times.add("Sigmoid", time.Now())
	q.Queue.Sigmoid(y, x)
}

func (q watchedQueue) SiTU(y, g, u metal.Buffer, beta, lambda float32) {
	defer q.times.add("SiTU", time.Now())
	q.Queue.SiTU(y, g, u, beta, lambda)
}

func (q watchedQueue) ShortConv(y, next, x, prev, w metal.Buffer, n, c int) {
	defer q.times.add("ShortConv", time.Now())
	q.Queue.ShortConv(y, next, x, prev, w, n, c)
}

func (q watchedQueue) KDAGate(y, x, aLog, dtBias metal.Buffer, lower float32, n, heads, dim int) {
	defer q.times.add("KDAGate", time.Now())
	q.Queue.KDAGate(y, x, aLog, dtBias, lower, n, heads, dim)
}

func (q watchedQueue) KDA(o, to, from, qs, k, v, g, beta metal.Buffer, n, heads, dim int) {
	defer q.times.add("KDA", time.Now())
	q.Queue.KDA(o, to, from, qs, k, v, g, beta, n, heads, dim)
}

func (q watchedQueue) Latent(cache []metal.Buffer, first int, kv, w metal.Buffer, n int, s metal.MLAShape, eps float32) {
	defer q.times.add("Latent", time.Now())
	q.Queue.Latent(cache, first, kv, w, n, s, eps)
}

func (q watchedQueue) MLA(o, qs metal.Buffer, cache []metal.Buffer, first int, kvB metal.Matrix, n int, s metal.MLAShape) {
	defer q.times.add("MLA", time.Now())
	q.Queue.MLA(o, qs, cache, first, kvB, n, s)
}

func (q watchedQueue) Route(ids []int32, weights []float32, logits, bias metal.Buffer, n, experts, k int, renormalize bool, scale float32) {
	defer q.times.add("Route", time.Now())
	q.Queue.Route(ids, weights, logits, bias, n, experts, k, renormalize, scale)
}

func (q watchedQueue) Experts(z metal.Buffer, jobs []metal.Expert, beta, lambda float32) {
	defer q.times.add("Experts", time.Now())
	q.Queue.Experts(z, jobs, beta, lambda)
}

func (q watchedQueue) AddRows(y, x metal.Buffer, rows []int32, weights []float32, dim int) {
	defer q.times.add("AddRows", time.Now())
	q.Queue.AddRows(y, x, rows, weights, dim)
}

func (q watchedQueue) NotFinite(at *int, x metal.Buffer) {
	defer q.times.add("NotFinite", time.Now())
	q.Queue.NotFinite(at, x)
}
