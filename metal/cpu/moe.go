package cpu

import "deltafin/metal"

func (q *queue) Route(ids []int32, weights []float32, logits, bias metal.Buffer, n, experts, k int, renormalize bool, scale float32) {
	q.each(n, n*experts*16, func(i int) {
		q.d.route(ids[i*k:(i+1)*k], weights[i*k:(i+1)*k], logits.F[i*experts:(i+1)*experts], bias.F, renormalize, scale)
	})
}

func (d *Device) route(ids []int32, weights, logits, bias []float32, renormalize bool, scale float32) {
	experts := len(logits)
	s := d.scratch.get(2 * experts)
	defer d.scratch.put(s)
	score, choice := s.take(experts), s.take(experts)
	d.kernels.sigmoids(score, logits)
	copy(choice, score)
	d.kernels.adds(choice, bias[:experts])
	// The k-th largest choice, ties to the lower id, by insertion: k is small, and once
	// there are k, few come above the last.
	best := ids[:0]
	for e := 0; e < experts; e++ {
		if len(best) == len(ids) {
			e += d.kernels.above(choice[e:], choice[best[len(best)-1]])
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

func (q *queue) Experts(z metal.Buffer, jobs []metal.Expert, beta, lambda float32) {
	// A task is some outputs of one expert's w1 and w3, then of its w2; one barrier
	// between the two steps serves all experts.
	x, gate, up := make([][]float32, len(jobs)), make([][]float32, len(jobs)), make([][]float32, len(jobs))
	var first, second []part
	cost := 0
	for j := range jobs {
		job := &jobs[j]
		n := len(job.Rows)
		x[j] = gather(z.F, job.Rows, job.W1.Cols)
		gate[j], up[j] = make([]float32, n*job.W1.Rows), make([]float32, n*job.W1.Rows)
		first = appendParts(first, j, job.W1.Rows, 2*n*job.W1.Cols)
		second = appendParts(second, j, job.W2.Rows, n*job.W2.Cols)
		cost += n * (2*job.W1.Rows*job.W1.Cols + job.W2.Rows*job.W2.Cols)
	}
	k := &q.d.kernels
	q.each(len(first), cost, func(t int) {
		p := first[t]
		job := &jobs[p.job]
		n, inter := len(job.Rows), job.W1.Rows
		g, u, scratch := gate[p.job], up[p.job], make([]float32, job.W1.Cols)
		k.matRows(g[p.lo:], inter, &job.W1, p.lo, p.hi, x[p.job], n, scratch)
		k.matRows(u[p.lo:], inter, &job.W3, p.lo, p.hi, x[p.job], n, scratch)
		for i := range n {
			lo, hi := i*inter+p.lo, i*inter+p.hi
			k.situ(g[lo:hi], g[lo:hi], u[lo:hi], beta, lambda)
		}
	})
	q.each(len(second), cost, func(t int) {
		p := second[t]
		job := &jobs[p.job]
		k.matRows(job.Out.F[p.lo:], job.W2.Rows, &job.W2, p.lo, p.hi, gate[p.job], len(job.Rows), make([]float32, job.W2.Cols))
	})
}

// gather is the given rows of z, one after the other; a single row is not copied.
func gather(z []float32, rows []int32, width int) []float32 {
	at := func(r int32) []float32 { return z[int(r)*width : (int(r)+1)*width] }
	if len(rows) == 1 {
		return at(rows[0])
	}
	x := make([]float32, 0, len(rows)*width)
	for _, r := range rows {
		x = append(x, at(r)...)
	}
	return x
}

// part is some output rows of one job.
type part struct{ job, lo, hi int }

func appendParts(parts []part, job, rows, cost int) []part {
	tasks, bounds := span(rows, (max(1, min(rows, (64<<10)/max(cost, 1)))+3)&^3)
	for i := range tasks {
		lo, hi := bounds(i)
		parts = append(parts, part{job, lo, hi})
	}
	return parts
}
