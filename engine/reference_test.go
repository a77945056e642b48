package engine_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"deltafin/checkpoint"
	"deltafin/engine"
)

// reference is docs/k3.md in float64, one token after the other, with nothing folded,
// cached or shared with the engine: what the engine is held against.
type reference struct {
	c engine.Config
	s *checkpoint.Snapshot

	conv   map[string][][]float64 // projected rows so far, by layer and projection
	state  map[int][][][]float64  // KDA: layer → head → key × value
	keys   map[int][][][]float64  // MLA: layer → head → position → key
	values map[int][][][]float64
}

// step is what one token's pass shows.
type step struct {
	logits   []float64
	residual [][]float64 // by layer
	routes   [][]int     // by MoE layer, ascending
	weights  [][]float64
}

func newReference(c engine.Config, s *checkpoint.Snapshot) *reference {
	return &reference{c: c, s: s, conv: map[string][][]float64{}, state: map[int][][][]float64{}, keys: map[int][][][]float64{}, values: map[int][][][]float64{}}
}

func (r *reference) w(name string) []float64 {
	t, ok := r.s.Tensor("language_model." + name)
	if !ok {
		panic("reference: no tensor " + name)
	}
	var out []float64
	switch t.DType {
	case "BF16":
		for i := 0; i < len(t.Data); i += 2 {
			out = append(out, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[i:]))<<16)))
		}
	case "F32":
		for i := 0; i < len(t.Data); i += 4 {
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[i:]))))
		}
	case "U8":
		for _, b := range t.Data {
			out = append(out, float64(b))
		}
	}
	return out
}

func matvec(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for i := range y {
		y[i] = inner(w[i*len(x):(i+1)*len(x)], x)
	}
	return y
}

func inner(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func (r *reference) linear(name string, x []float64) []float64 { return matvec(r.w(name+".weight"), x) }

func (r *reference) rms(x []float64, name string, eps float64) []float64 {
	w, y := r.w(name+".weight"), make([]float64, len(x))
	for i := range x {
		y[i] = w[i] * x[i] / math.Sqrt(inner(x, x)/float64(len(x))+eps)
	}
	return y
}

func σ(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softmaxOf(s []float64) []float64 {
	top, sum, p := slices.Max(s), 0.0, make([]float64, len(s))
	for i := range s {
		p[i] = math.Exp(s[i] - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func (r *reference) attnRes(prefix []float64, blocks [][]float64, at string) []float64 {
	norm, proj := r.w(at+"_norm.weight"), r.w(at+"_proj.weight")
	vs := append(slices.Clone(blocks), prefix)
	scores := make([]float64, len(vs))
	for j, v := range vs {
		for i := range v {
			scores[j] += v[i] / math.Sqrt(inner(v, v)/float64(len(v))+r.c.RMSNormEps) * norm[i] * proj[i]
		}
	}
	y := make([]float64, len(prefix))
	for j, p := range softmaxOf(scores) {
		for i := range y {
			y[i] += p * vs[j][i]
		}
	}
	return y
}

func (r *reference) next(id int) step {
	var out step
	h := r.c.HiddenSize
	prefix := r.w("model.embed_tokens.weight")[id*h : (id+1)*h]
	var blocks [][]float64
	add := func(a, b []float64) []float64 {
		y := make([]float64, len(a))
		for i := range y {
			y[i] = a[i] + b[i]
		}
		return y
	}
	for l := range r.c.NumHiddenLayers {
		at := fmt.Sprintf("model.layers.%d.", l)
		x := prefix
		if len(blocks) > 0 {
			x = r.attnRes(prefix, blocks, at+"self_attention_res")
		}
		fresh := l%r.c.AttnResBlockSize == 0
		if fresh {
			blocks = append(blocks, prefix)
		}
		x = r.rms(x, at+"input_layernorm", r.c.RMSNormEps)
		var a []float64
		if r.c.IsKDA(l) {
			a = r.kda(l, at+"self_attn.", x)
		} else {
			a = r.mla(l, at+"self_attn.", x)
		}
		if fresh {
			prefix = a
		} else {
			prefix = add(prefix, a)
		}
		x = r.rms(r.attnRes(prefix, blocks, at+"mlp_res"), at+"post_attention_layernorm", r.c.RMSNormEps)
		if r.c.IsMoE(l) {
			f, ids, weights := r.moe(at+"block_sparse_moe.", x)
			prefix = add(prefix, f)
			out.routes, out.weights = append(out.routes, ids), append(out.weights, weights)
		} else {
			prefix = add(prefix, r.mlp(at+"mlp.", x))
		}
		out.residual = append(out.residual, prefix)
	}
	x := r.rms(r.attnRes(prefix, blocks, "model.output_attn_res"), "model.norm", r.c.RMSNormEps)
	out.logits = r.linear("lm_head", x)
	return out
}

func (r *reference) kda(l int, at string, x []float64) []float64 {
	heads, d := r.c.LinearAttn.NumHeads, r.c.LinearAttn.HeadDim
	conv := func(n string) []float64 {
		key := at + n
		r.conv[key] = append(r.conv[key], r.linear(at+n+"_proj", x))
		w, rows, y := r.w(at+n+"_conv1d.weight"), r.conv[key], make([]float64, heads*d)
		for ch := range y {
			s := 0.0
			for tap := range 4 {
				if row := len(rows) - 4 + tap; row >= 0 {
					s += w[ch*4+tap] * rows[row][ch]
				}
			}
			y[ch] = s * σ(s)
		}
		return y
	}
	q, k, v := conv("q"), conv("k"), conv("v")
	f := matvec(r.w(at+"f_b_proj.weight"), r.linear(at+"f_a_proj", x))
	beta, gate := r.linear(at+"b_proj", x), r.linear(at+"g_proj", x)
	alog, dt, onorm := r.w(at+"A_log"), r.w(at+"dt_bias"), r.w(at+"o_norm.weight")
	if r.state[l] == nil {
		r.state[l] = make([][][]float64, heads)
		for hd := range heads {
			for range d {
				r.state[l][hd] = append(r.state[l][hd], make([]float64, d))
			}
		}
	}
	out := make([]float64, heads*d)
	for hd := range heads {
		in := func(v []float64) []float64 { return v[hd*d : (hd+1)*d] }
		unit := func(v []float64, scale float64) []float64 {
			y := make([]float64, d)
			for i := range y {
				y[i] = v[i] / math.Sqrt(inner(v, v)+1e-6) * scale
			}
			return y
		}
		qh, kh, vh, S := unit(in(q), 1/math.Sqrt(float64(d))), unit(in(k), 1), in(v), r.state[l][hd]
		for i := range d {
			g := r.c.LinearAttn.GateLowerBound * σ(math.Exp(alog[hd])*(in(f)[i]+in(dt)[i]))
			for j := range d {
				S[i][j] *= math.Exp(g)
			}
		}
		o := make([]float64, d)
		for j := range d {
			t := 0.0
			for i := range d {
				t += S[i][j] * kh[i]
			}
			u := σ(beta[hd]) * (vh[j] - t)
			for i := range d {
				S[i][j] += kh[i] * u
				o[j] += S[i][j] * qh[i]
			}
		}
		for j := range d {
			out[hd*d+j] = onorm[j] * o[j] / math.Sqrt(inner(o, o)/float64(d)+r.c.RMSNormEps) * σ(gate[hd*d+j])
		}
	}
	return r.linear(at+"o_proj", out)
}

func (r *reference) mla(l int, at string, x []float64) []float64 {
	c := &r.c
	heads, nope, rope, vd := c.NumAttentionHeads, c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim
	q := r.linear(at+"q_b_proj", r.rms(r.linear(at+"q_a_proj", x), at+"q_a_layernorm", 1e-6))
	kv := r.linear(at+"kv_a_proj_with_mqa", x)
	b := r.linear(at+"kv_b_proj", r.rms(kv[:c.KVLoRARank], at+"kv_a_layernorm", 1e-6))
	gate := r.linear(at+"g_proj", x)
	if r.keys[l] == nil {
		r.keys[l], r.values[l] = make([][][]float64, heads), make([][][]float64, heads)
	}
	out := make([]float64, heads*vd)
	for h := range heads {
		own := b[h*(nope+vd) : (h+1)*(nope+vd)]
		r.keys[l][h] = append(r.keys[l][h], slices.Concat(own[:nope], kv[c.KVLoRARank:]))
		r.values[l][h] = append(r.values[l][h], own[nope:])
		scores := make([]float64, len(r.keys[l][h]))
		for t, key := range r.keys[l][h] {
			scores[t] = inner(q[h*(nope+rope):(h+1)*(nope+rope)], key) / math.Sqrt(float64(nope+rope))
		}
		for t, p := range softmaxOf(scores) {
			for j := range vd {
				out[h*vd+j] += p * r.values[l][h][t][j]
			}
		}
	}
	for i := range out {
		out[i] *= σ(gate[i])
	}
	return r.linear(at+"o_proj", out)
}

func (r *reference) situ(g, u []float64) []float64 {
	y := make([]float64, len(g))
	for i := range y {
		y[i] = r.c.SiTUBeta * math.Tanh(g[i]/r.c.SiTUBeta) * σ(g[i]) * r.c.SiTULinearBeta * math.Tanh(u[i]/r.c.SiTULinearBeta)
	}
	return y
}

func (r *reference) mlp(at string, x []float64) []float64 {
	return r.linear(at+"down_proj", r.situ(r.linear(at+"gate_proj", x), r.linear(at+"up_proj", x)))
}

func (r *reference) moe(at string, x []float64) (y []float64, ids []int, weights []float64) {
	s, bias := r.linear(at+"gate", x), r.w(at+"gate.e_score_correction_bias")
	order := make([]int, len(s))
	for e := range s {
		s[e], order[e] = σ(s[e]), e
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s[b]+bias[b], s[a]+bias[a]) })
	ids = order[:r.c.NumExpertsPerToken]
	slices.Sort(ids)
	sum := 0.0
	for _, e := range ids {
		sum += s[e]
	}
	z := r.linear(at+"routed_expert_down_proj", x)
	latent := make([]float64, len(z))
	for _, e := range ids {
		w := s[e] / (sum + 1e-20) * r.c.RoutedScalingFactor
		weights = append(weights, w)
		name := fmt.Sprintf("%sexperts.%d.", at, e)
		for i, v := range r.mx4(name+"w2", r.situ(r.mx4(name+"w1", z), r.mx4(name+"w3", z))) {
			latent[i] += w * v
		}
	}
	y = r.linear(at+"routed_expert_up_proj", r.rms(latent, at+"routed_expert_norm", r.c.RMSNormEps))
	for i, v := range r.mlp(at+"shared_experts.", x) {
		y[i] += v
	}
	return y, ids, weights
}

func (r *reference) mx4(name string, x []float64) []float64 {
	values := []float64{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}
	codes, scales := r.w(name+".weight_packed"), r.w(name+".weight_scale")
	w := make([]float64, 2*len(codes))
	for i := range w {
		c := int(codes[i/2]) >> (4 * (i % 2)) & 15
		w[i] = values[c] * math.Exp2(scales[i/32]-127)
	}
	return matvec(w, x)
}
