package engine

import (
	"errors"
	"io"

	"deltafin/metal"
	"deltafin/prefetch"
)

// MoE is the latent mixture of experts: the router sees x, the experts its
// projection to the latent width; shared experts see x too.
type MoE struct {
	Layer, Experts, TopK int
	Scale, Eps           float32
	Latent, Inter        int
	Gate                 metal.Matrix // [experts, hidden]
	EScoreCorrectionBias metal.Buffer // [experts]
	RoutedExpertDownProj metal.Matrix // [latent, hidden]
	RoutedExpertNorm     metal.Buffer // [latent]
	RoutedExpertUpProj   metal.Matrix // [hidden, latent]
	SharedExperts        MLP
}

func (f *MoE) forward(p *pass, out, x metal.Buffer) error {
	scores := p.rows(f.Experts)
	p.q.MatMul(scores, x, f.Gate, p.n)
	p.q.Route(p.routeIDs, p.routeWeights, scores, f.EScoreCorrectionBias, p.n, f.Experts, f.TopK, true, f.Scale)
	if err := p.routed(f.Layer); err != nil {
		return err
	}
	g := p.group(f.Experts)
	batch, err := p.m.Source.Demand(p.ctx, f.Layer, g.experts, p.n)
	if err != nil {
		return err
	}
	defer batch.Close()

	// What needs no routed expert, while these are read.
	shared := &f.SharedExperts
	z, gate, up := p.rows(f.Latent), p.rows(shared.GateProj.Rows), p.rows(shared.UpProj.Rows)
	p.matMuls(x, into(z, f.RoutedExpertDownProj), into(gate, shared.GateProj), into(up, shared.UpProj))
	p.q.SiTU(gate, gate, up, shared.Beta, shared.Lambda)
	common := p.rows(shared.DownProj.Rows)
	p.q.MatMul(common, gate, shared.DownProj, p.n)

	y := p.rows(f.Latent)
	if err := f.experts(p, y, z, g, batch); err != nil {
		return err
	}
	p.q.RMSNorm(y, y, f.RoutedExpertNorm, p.n, f.Latent, f.Eps)
	p.q.MatMul(out, y, f.RoutedExpertUpProj, p.n)
	p.q.Add(out, common)
	return nil
}

// experts sums the routed experts' outputs for all rows into y, in ascending expert
// id, whatever the order in which their bytes land. An expert is computed when it
// lands, as long as its output fits the window in which outputs wait for their turn;
// the next in order always fits.
func (f *MoE) experts(p *pass, y, z metal.Buffer, g *group, batch prefetch.Batch) error {
	p.q.Zero(y)
	reserved := p.floats(p.n * f.Latent) // for the next in order when the window is full
	window := p.floats(p.window() * f.Latent)
	w := &p.scratch.window
	w.begin(g)
	p.leases = grow(p.leases, len(g.experts))
	leases := p.leases
	for w.next < len(g.experts) {
		n, err := batch.Next(leases)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // a source that lost an expert
		}
		if err != nil {
			return err
		}
		for _, l := range leases[:n] {
			w.landed[l.Index], w.state[l.Index] = l, landed
		}
		for {
			// Compute what fits, then add what is in order; the window is then free
			// again but for outputs that still wait.
			jobs := w.place(window, reserved, f)
			if len(jobs) == 0 {
				break
			}
			p.q.Experts(z, jobs, f.SharedExperts.Beta, f.SharedExperts.Lambda)
			for w.next < len(g.experts) && w.state[w.next] == computed {
				out, end := w.inOrder(window)
				lo, hi := g.start[w.next], g.start[end]
				p.q.AddRows(y, out, g.rows[lo:hi], g.weights[lo:hi], f.Latent)
				w.next = end
			}
			if err := p.q.Wait(); err != nil {
				return err
			}
			for _, i := range w.placed {
				batch.Release(w.landed[i])
			}
		}
	}
	return nil
}

type expertState uint8

const (
	waiting  expertState = iota // its bytes have not landed
	landed                      // leased, not computed
	computed                    // its output waits for its turn, or was added
)

// expertWindow is the progress of one layer's experts.
type expertWindow struct {
	*group
	landed []prefetch.Lease
	state  []expertState
	out    []output
	next   int            // first expert whose output is not added
	used   int            // floats of the window that hold outputs
	placed []int          // experts of the last call of place
	jobs   []metal.Expert // what they compute
}

// output is where an expert's output is: [its rows][latent], from at on in the window,
// or in the reserved rows, where at is -1.
type output struct {
	metal.Buffer
	at int
}

// inOrder is the output of the next expert, which is computed, with those that lie
// behind it of the computed ones after it, up to end.
func (w *expertWindow) inOrder(window metal.Buffer) (out metal.Buffer, end int) {
	first := w.out[w.next]
	size := first.Len()
	for end = w.next + 1; end < len(w.state) && w.state[end] == computed && first.at >= 0 && w.out[end].at == first.at+size; end++ {
		size += w.out[end].Len()
	}
	if first.at < 0 {
		return first.Buffer, end
	}
	return window.Slice(first.at, first.at+size), end
}

// begin is a window over g in which nothing has landed.
func (w *expertWindow) begin(g *group) {
	n := len(g.experts)
	*w = expertWindow{group: g, landed: grow(w.landed, n), state: grow(w.state, n), out: grow(w.out, n), placed: w.placed, jobs: w.jobs}
	clear(w.state)
}

// place gives landed experts room for their outputs, in ascending order as long as there
// is any, and returns the jobs. The window is reclaimed when no output waits in it.
func (w *expertWindow) place(window, reserved metal.Buffer, f *MoE) []metal.Expert {
	w.placed = w.placed[:0]
	waits := false
	for i := w.next; i < len(w.state); i++ {
		waits = waits || w.state[i] == computed
	}
	if !waits {
		w.used = 0
	}
	w.jobs = w.jobs[:0]
	for i := w.next; i < len(w.state); i++ {
		if w.state[i] != landed {
			continue
		}
		lo, hi := w.start[i], w.start[i+1]
		size := (hi - lo) * f.Latent
		switch {
		case w.used+size <= window.Len():
			w.out[i] = output{window.Slice(w.used, w.used+size), w.used}
			w.used += size
		case i == w.next:
			w.out[i] = output{reserved.Slice(0, size), -1}
		default:
			return w.jobs
		}
		w.state[i] = computed
		w.placed = append(w.placed, i)
		w1, w3, w2 := f.matrices(w.landed[i].Parts)
		w.jobs = append(w.jobs, metal.Expert{W1: w1, W3: w3, W2: w2, Rows: w.rows[lo:hi], Out: w.out[i].Buffer})
	}
	return w.jobs
}

// matrices views an expert's record as its three matrices. A source guarantees the
// parts' sizes, which Load checked.
func (f *MoE) matrices(parts *prefetch.Parts) (w1, w3, w2 metal.Matrix) {
	w1 = metal.Matrix{Format: metal.MX4, Rows: f.Inter, Cols: f.Latent, Data: parts[0], Scales: parts[1]}
	w3 = metal.Matrix{Format: metal.MX4, Rows: f.Inter, Cols: f.Latent, Data: parts[2], Scales: parts[3]}
	w2 = metal.Matrix{Format: metal.MX4, Rows: f.Latent, Cols: f.Inter, Data: parts[4], Scales: parts[5]}
	return w1, w3, w2
}

// group is a pass's routes turned around: for each distinct expert, ascending, the
// rows that use it and their weights for it.
type group struct {
	experts []int
	start   []int // experts[i] has rows[start[i]:start[i+1]]
	rows    []int32
	weights []float32
	count   []int // working memory
}

// group turns the routes of the pass's rows around.
func (p *pass) group(experts int) *group {
	g := &p.byExpert
	g.count = grow(g.count, experts+1)
	count := g.count
	clear(count)
	for _, e := range p.routeIDs {
		count[e+1]++
	}
	g.experts, g.start = g.experts[:0], append(g.start[:0], 0)
	at := 0
	for e := range experts {
		n := count[e+1]
		count[e+1] = at // now where the expert's rows begin
		if n > 0 {
			at += n
			g.experts = append(g.experts, e)
			g.start = append(g.start, at)
		}
	}
	g.rows, g.weights = grow(g.rows, at), grow(g.weights, at)
	k := len(p.routeIDs) / p.n
	for i, e := range p.routeIDs {
		g.rows[count[e+1]], g.weights[count[e+1]] = int32(i/k), p.routeWeights[i]
		count[e+1]++
	}
	return g
}

// grow is s with n elements; what they are is not kept when it must be made anew.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
