package cpu

import "deltafin/metal"

func (q *queue) Latent(cache []metal.Buffer, first int, kv, w metal.Buffer, n int, s metal.MLAShape, eps float32) {
	width := s.KVRank + s.Rope
	q.each(n, n*width, func(i int) {
		row := kv.F[i*width : (i+1)*width]
		out := latent(cache, first+i, width)
		q.d.kernels.rmsNorm(out[:s.KVRank], row[:s.KVRank], w.F, eps)
		copy(out[s.KVRank:], row[s.KVRank:])
	})
}

// latent is the cached row of a position.
func latent(cache []metal.Buffer, position, width int) []float32 {
	at := position % metal.LatentBlock * width
	return cache[position/metal.LatentBlock].F[at : at+width]
}

func (q *queue) MLA(o, qs metal.Buffer, cache []metal.Buffer, first int, kvB metal.Matrix, n int, s metal.MLAShape) {
	width, head := s.KVRank+s.Rope, s.Nope+s.Rope
	cost := n * s.Heads * (s.KVRank*(s.Nope+s.V) + (first+n)*2*width)
	q.each(n*s.Heads, cost, func(task int) {
		i, h := task/s.Heads, task%s.Heads
		query := qs.F[(i*s.Heads+h)*head : (i*s.Heads+h+1)*head]
		row := make([]float32, s.KVRank)

		// Fold the keys' half of kv_b into the query.
		folded := make([]float32, width)
		for j := range s.Nope {
			widen(row, &kvB, h*(s.Nope+s.V)+j)
			q.d.kernels.axpy(folded[:s.KVRank], query[j], row)
		}
		copy(folded[s.KVRank:], query[s.Nope:])

		mean := q.d.kernels.attend(folded, cache, first+i, s)

		// The values' half takes the mean latent to the head's output.
		out := o.F[(i*s.Heads+h)*s.V : (i*s.Heads+h+1)*s.V]
		first := h*(s.Nope+s.V) + s.Nope
		q.d.kernels.matRows(out, s.V, &kvB, first, first+s.V, mean, 1, row)
	})
}

// attend is the softmax-weighted mean of the latents at positions 0 … last, by the
// scores folded·[c|r]·scale. Each block of LatentBlock positions, counted from
// position 0, is summed by itself against its own maximum; blocks then merge in order.
func (k *kernels) attend(folded []float32, cache []metal.Buffer, last int, s metal.MLAShape) []float32 {
	width := len(folded)
	var top, total float32
	mean, part := make([]float32, s.KVRank), make([]float32, s.KVRank)
	var p [metal.LatentBlock]float32
	for b := 0; b*metal.LatentBlock <= last; b++ {
		n := min(metal.LatentBlock, last+1-b*metal.LatentBlock)
		rows := cache[b].F
		k.dots(p[:], 1, folded, rows, width, n)
		for i := range n {
			p[i] = float32(p[i] * s.Scale)
		}
		blockTop := p[0]
		for _, v := range p[1:n] {
			blockTop = max(blockTop, v)
		}
		var sum float32
		clear(part)
		for i := range n {
			p[i] = exp(p[i] - blockTop)
			sum += p[i]
			k.axpy(part, p[i], rows[i*width:i*width+s.KVRank])
		}
		if b == 0 {
			top, total = blockTop, sum
			copy(mean, part)
			continue
		}
		newTop := max(top, blockTop)
		old, add := exp(top-newTop), exp(blockTop-newTop)
		total = float32(total*old) + float32(sum*add)
		for j := range mean {
			mean[j] = float32(mean[j]*old) + float32(part[j]*add)
		}
		top = newTop
	}
	for j := range mean {
		mean[j] /= total
	}
	return mean
}
