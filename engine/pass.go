package engine

import (
	"context"
	"fmt"

	"deltafin/metal"
	"deltafin/prefetch"
)

// A Hook watches forward passes. Nil functions cost nothing. The slices are valid
// during the call only.
type Hook struct {
	// Residual gives prefix[n][hidden] after a layer, for rows first … of the sequence.
	Residual func(layer, first int, prefix []float32)
	// Route gives the chosen experts [n][k], ascending, and their weights.
	Route func(layer, first int, ids []int32, weights []float32)
	// Logits gives logits[n][vocab]. When set, they are computed for every row, not
	// only for the last.
	Logits func(first int, logits []float32)
}

// pass is one run of rows through the layers: its buffers, and the state that it
// will leave behind if it is committed.
type pass struct {
	ctx   context.Context
	m     *Model
	s     *Sequence
	q     metal.Queue
	hook  *Hook
	first int // position of the first row
	n     int // rows

	*scratch
	blocks        []metal.Buffer // the prefixes of the blocks before
	mixed, normed metal.Buffer   // [n][hidden]: AttnRes' and the norm's output
	vs            []metal.Buffer // AttnRes' operands
	products      []metal.Product
}

// rows is a scratch buffer [n][width], not cleared.
func (p *pass) rows(width int) metal.Buffer { return p.floats(p.n * width) }

// matMuls computes products of x[n][…], each into a buffer of its own.
func (p *pass) matMuls(x metal.Buffer, products ...metal.Product) {
	p.products = append(p.products[:0], products...)
	p.q.MatMuls(p.products, x, p.n)
}

func into(y metal.Buffer, w metal.Matrix) metal.Product { return metal.Product{Y: y, W: w} }

// kda is the committed state of the i-th KDA layer, and the one to be written.
func (p *pass) kda(i int) (from, to *kdaState) {
	if p.s.spare[i] == nil {
		p.s.spare[i] = p.m.newKDAState()
	}
	return p.s.kda[i], p.s.spare[i]
}

// latents is the i-th MLA layer's cache, with room for the pass's rows. Rows beyond
// the committed length mean nothing until the commit.
func (p *pass) latents(i int) []metal.Buffer {
	width := p.m.KVLoRARank + p.m.QKRopeHeadDim
	for len(p.s.mla[i])*metal.LatentBlock < p.first+p.n {
		p.s.mla[i] = append(p.s.mla[i], p.m.Device.NewBuffer(metal.LatentBlock*width))
	}
	return p.s.mla[i]
}

// window is how many rows of expert outputs may wait for their turn: all, or in 32 MB
// those of some experts of a long prefill.
func (p *pass) window() int {
	const most = 8 << 20 // floats
	return min(p.n*p.m.NumExpertsPerToken, max(2*p.n, most/p.m.RoutedExpertHiddenSize))
}

// routed waits for the layer's routes and shows them.
func (p *pass) routed(layer int) error {
	if err := p.q.Wait(); err != nil {
		return err
	}
	if p.hook.Route != nil {
		p.hook.Route(layer, p.first, p.routeIDs, p.routeWeights)
	}
	return nil
}

// layerDone ends a layer: a cancelled pass stops here at the latest.
func (p *pass) layerDone(layer int, prefix metal.Buffer) error {
	p.q.NotFinite(&p.notFinite, prefix)
	if err := p.q.Wait(); err != nil {
		return err
	}
	if i := p.notFinite; i >= 0 {
		return &ValueError{Layer: layer, Position: p.first + i/p.m.HiddenSize}
	}
	if p.hook.Residual != nil {
		p.hook.Residual(layer, p.first, prefix.F)
	}
	return nil
}

// A ValueError is a layer's output that is no number: its weights are damaged, for
// K3's own don't give one. Nothing of the pass was committed.
type ValueError struct {
	Layer    int // 0-based; the number of layers stands for lm_head
	Position int // of the token
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("engine: layer %d at token %d: want finite numbers, got NaN or infinity; the weights are damaged: download the snapshot again", e.Layer, e.Position)
}

// scratch is the memory of passes, kept between them. One pass uses it at a time.
type scratch struct {
	device metal.Device
	queue  metal.Queue
	pass   pass
	quiet  Hook // watches nothing
	chunks []metal.Buffer
	chunk  int // the chunk in use
	used   int // floats used of it

	notFinite    int       // index in what was looked at last
	routeIDs     []int32   // [n][k]
	routeWeights []float32 // [n][k]
	byExpert     group
	window       expertWindow
	leases       []prefetch.Lease
}

// begin is the pass of this scratch, with what earlier ones allocated.
func (s *scratch) begin(ctx context.Context, m *Model) *pass {
	if s.queue == nil {
		s.queue = s.device.Begin(ctx)
	} else {
		s.queue.Reset(ctx)
	}
	s.release(mark{})
	p := &s.pass
	p.ctx, p.m, p.q, p.scratch = ctx, m, s.queue, s
	p.blocks = p.blocks[:0]
	return p
}

// end lets go of what was given to this pass alone.
func (p *pass) end() { p.ctx, p.s, p.hook = nil, nil, nil }

// A mark is a place in the scratch, to go back to.
type mark struct{ chunk, used int }

func (s *scratch) mark() mark { return mark{s.chunk, s.used} }

// release frees what was taken since m.
func (s *scratch) release(m mark) { s.chunk, s.used = m.chunk, m.used }

// floats takes n floats, not cleared.
func (s *scratch) floats(n int) metal.Buffer {
	const least = 1 << 16
	for ; s.chunk < len(s.chunks); s.chunk, s.used = s.chunk+1, 0 {
		if c := s.chunks[s.chunk]; s.used+n <= c.Len() {
			s.used += n
			return c.Slice(s.used-n, s.used)
		}
	}
	s.chunks = append(s.chunks, s.device.NewBuffer(max(n, least)))
	s.used = n
	return s.chunks[s.chunk].Slice(0, n)
}
