package cpu

import "deltafin/metal"

func (q *queue) Route(ids []int32, weights []float32, logits, bias metal.Buffer, n, experts, k int, renormalize bool, scale float32) {
	each := 2 * partsEach * q.d.Threads()
	size := max(1, (n+each-1)/each)
	q.routing = routing{&q.d.kernels, ids, weights, logits.F, bias.F, experts, k, renormalize, scale, n, size}
	q.run((n+size-1)/size, n*experts*16, &q.routing)
	q.routing = routing{}
}

// routing is a Route being run; a part is some rows.
type routing struct {
	kernels      *kernels
	ids          []int32
	weights      []float32
	logits, bias []float32
	experts, k   int
	renormalize  bool
	scale        float32
	n, size      int // rows, of all and of a part
}

func (r *routing) part(i int, s *scratch) {
	k, experts := r.k, r.experts
	for i, hi := i*r.size, min((i+1)*r.size, r.n); i < hi; i++ {
		s.reset()
		r.kernels.route(r.ids[i*k:(i+1)*k], r.weights[i*k:(i+1)*k], r.logits[i*experts:(i+1)*experts], r.bias, r.renormalize, r.scale, s)
	}
}

func (kn *kernels) route(ids []int32, weights, logits, bias []float32, renormalize bool, scale float32, s *scratch) {
	experts := len(logits)
	score, choice := s.floats(experts)[:experts], s.floats(experts)[:experts]
	kn.sigmoids(score, logits)
	copy(choice, score)
	kn.adds(choice, bias[:experts])
	// The k-th largest choice, ties to the lower id, by insertion: k is small, and once
	// there are k, few come above the last.
	best := ids[:0]
	for e := 0; e < experts; e++ {
		if len(best) == len(ids) {
			e += kn.above(choice[e:], choice[best[len(best)-1]])
			if e == experts {
				break
			}
		} else {
			best = best[:len(best)+1]
		}
		at := len(best) - 1
		for at > 0 && choice[e] > choice[best[at-1]] {
			best[at] = best[at-1]
			at--
		}
		best[at] = int32(e)
	}
	// Ascending id, the order in which outputs are summed.
	for i := 1; i < len(ids); i++ {
		for j := i; j > 0 && ids[j] < ids[j-1]; j-- {
			ids[j], ids[j-1] = ids[j-1], ids[j]
		}
	}
	var sum float32
	for i, e := range ids {
		weights[i] = score[e]
		sum += score[e]
	}
	for i := range weights {
		if renormalize {
			weights[i] /= sum + 1e-20
		}
		weights[i] = float32(weights[i] * scale)
	}
}

// Experts computes whole jobs where threads can share them evenly: what an expert's
// first products give, its last finds in a near cache. Else a part is some outputs of
// one expert: of w1 and w3, then of w2. One barrier between the steps serves all experts.
func (q *queue) Experts(z metal.Buffer, jobs []metal.Expert, beta, lambda float32) {
	if len(jobs) == 0 {
		return
	}
	e := &q.experts
	e.k, e.jobs, e.z, e.beta, e.lambda = &q.d.kernels, jobs, z.F, beta, lambda
	e.first, e.second, e.at = e.first[:0], e.second[:0], e.at[:0]
	latent, threads := jobs[0].W1.Cols, q.d.Threads()
	parts := max(1, partsEach*threads/len(jobs))
	floats, cost, gathered, most := 0, 0, 0, 0
	for j := range jobs {
		job := &jobs[j]
		n := len(job.Rows)
		e.at = append(e.at, floats)
		floats += n * (latent + job.W1.Rows)
		gathered += n * latent
		e.first = appendParts(e.first, j, job.W1.Rows, partRows(job.W1.Rows, parts, 2*n*latent, pairs))
		e.second = appendParts(e.second, j, job.W2.Rows, partRows(job.W2.Rows, parts, n*job.W2.Cols, 8))
		work := n * (2*job.W1.Rows*job.W1.Cols + job.W2.Rows*job.W2.Cols)
		cost, most = cost+work, max(most, work)
	}
	e.floats = grow(e.floats, floats)
	if shared := len(jobs)%threads == 0 && most <= 2*cost/len(jobs); (shared || len(jobs) >= partsEach*threads) && most <= wholeJob {
		e.do(q, (*experts).whole, len(jobs), cost)
	} else {
		e.do(q, (*experts).gather, len(jobs), 4*gathered)
		e.do(q, (*experts).gateUp, len(e.first), cost)
		e.do(q, (*experts).down, len(e.second), cost)
	}
	e.jobs, e.z = nil, nil
}

// wholeJob is the multiply-adds of the largest job that is one part, for it to end
// soon after a cancellation.
const wholeJob = 256 << 20

// experts is an Experts being run.
type experts struct {
	k             *kernels
	jobs          []metal.Expert
	beta, lambda  float32
	z             []float32
	floats        []float32 // from at[job]: its rows x[n][latent], then SiTU's outputs [n][inter], both unzipped
	at            []int
	first, second []rowPart
	phase         func(e *experts, i int, s *scratch)
}

func (e *experts) part(i int, s *scratch) { e.phase(e, i, s) }

func (e *experts) do(q *queue, phase func(*experts, int, *scratch), parts, cost int) {
	e.phase = phase
	q.run(parts, cost, e)
}

// rows are a job's inputs and SiTU's outputs.
func (e *experts) rows(j int) (x, act []float32) {
	job := &e.jobs[j]
	n := len(job.Rows)
	f := e.floats[e.at[j]:]
	x, f = f[:n*job.W1.Cols], f[n*job.W1.Cols:]
	return x, f[:n*job.W1.Rows]
}

func (e *experts) whole(j int, s *scratch) {
	job := &e.jobs[j]
	e.gather(j, s)
	// Columns of SiTU's outputs, so many that the products before it stay in a near cache.
	n := len(job.Rows)
	size := max(pairs, min(job.W1.Rows, wholeFloats/n&^(pairs-1)))
	for lo := 0; lo < job.W1.Rows; lo += size {
		e.activations(rowPart{j, lo, min(job.W1.Rows, lo+size)}, s)
		s.reset()
	}
	e.outputs(rowPart{j, 0, job.W2.Rows}, s)
}

const wholeFloats = 16 << 10

func (e *experts) gather(j int, _ *scratch) {
	x, _ := e.rows(j)
	latent := e.jobs[j].W1.Cols
	for i, r := range e.jobs[j].Rows {
		e.k.unzipRows(x[i*latent:(i+1)*latent], e.z[int(r)*latent:(int(r)+1)*latent], latent, 1)
	}
}

func (e *experts) gateUp(i int, s *scratch) { e.activations(e.first[i], s) }

func (e *experts) activations(p rowPart, s *scratch) {
	job := &e.jobs[p.of]
	n, inter, width := len(job.Rows), job.W1.Rows, p.hi-p.lo
	x, act := e.rows(p.of)
	gate, up := s.floats(n * width)[:n*width], s.floats(n * width)[:n*width]
	e.k.product(gate, width, &job.W1, p.lo, p.hi, x, n, s)
	e.k.product(up, width, &job.W3, p.lo, p.hi, x, n, s)
	e.k.situ(gate, gate, up, e.beta, e.lambda)
	for i := range n {
		e.k.unzipRows(act[i*inter+p.lo:i*inter+p.hi], gate[i*width:(i+1)*width], width, 1)
	}
}

func (e *experts) down(i int, s *scratch) { e.outputs(e.second[i], s) }

func (e *experts) outputs(p rowPart, s *scratch) {
	job := &e.jobs[p.of]
	_, act := e.rows(p.of)
	e.k.product(job.Out.F[p.lo:], job.W2.Rows, &job.W2, p.lo, p.hi, act, len(job.Rows), s)
}
