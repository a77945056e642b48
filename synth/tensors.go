package synth

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"deltafin/checkpoint"
	"deltafin/engine"
)

// tensor is one tensor of the plan: how its bytes are drawn.
type tensor struct {
	name  string // without the namespace
	dtype checkpoint.DType
	shape []int
	draw  drawing
}

// drawing says how values are distributed.
type drawing struct {
	kind            kind
	mean, deviation float64
	matrix          string // of codes and scales, which go together: what their names have in common
}

type kind uint8

const (
	values kind = iota // normal ones, BF16 or F32 by the tensor's dtype
	packed             // MXFP4 codes
	scales             // their scales
)

func (t *tensor) bytes() int64 {
	n, _ := t.dtype.Size(t.shape)
	return n
}

// plan collects tensors.
type plan struct {
	c       *engine.Config
	tensors []tensor
}

// outer are the tensors that belong to no layer.
func outer(c *engine.Config) []tensor {
	p := &plan{c: c}
	p.normal("model.embed_tokens.weight", 0, 1, c.VocabSize, c.HiddenSize)
	p.linear("lm_head.weight", c.VocabSize, c.HiddenSize)
	p.norm("model.norm.weight", c.HiddenSize)
	p.residual("model.output_attn_res")
	return p.sorted()
}

// layer are the tensors of layer l, from 0.
func layer(c *engine.Config, l int) []tensor {
	p := &plan{c: c}
	at := fmt.Sprintf("model.layers.%d.", l)
	p.norm(at+"input_layernorm.weight", c.HiddenSize)
	p.norm(at+"post_attention_layernorm.weight", c.HiddenSize)
	p.residual(at + "self_attention_res")
	p.residual(at + "mlp_res")
	if c.IsKDA(l) {
		p.kda(at + "self_attn.")
	} else {
		p.mla(at + "self_attn.")
	}
	if c.IsMoE(l) {
		p.moe(at + "block_sparse_moe.")
	} else {
		p.mlp(at+"mlp.", c.IntermediateSize)
	}
	return p.sorted()
}

// sorted is the order of a released shard: by name, so that expert 10 comes before
// expert 2 and a layer's experts don't lie in the order of their use.
func (p *plan) sorted() []tensor {
	slices.SortFunc(p.tensors, func(a, b tensor) int { return cmp.Compare(a.name, b.name) })
	return p.tensors
}

func (p *plan) add(name string, dtype checkpoint.DType, d drawing, shape ...int) {
	p.tensors = append(p.tensors, tensor{name, dtype, shape, d})
}

func (p *plan) normal(name string, mean, deviation float64, shape ...int) {
	p.add(name, "BF16", drawing{mean: mean, deviation: deviation}, shape...)
}

// linear is a matrix whose outputs have about the deviation of its inputs. As in a
// trained model, no two matrices have the same deviation.
func (p *plan) linear(name string, rows, cols int) {
	p.normal(name, 0, spread(name)/math.Sqrt(float64(cols)), rows, cols)
}

// spread is a factor from 0.8 to 1.25 that a matrix's name decides.
func spread(name string) float64 {
	h := fnv.New64a()
	io.WriteString(h, name)
	return math.Exp2(0.322 * (2*rand.New(rand.NewPCG(h.Sum64(), 1)).Float64() - 1))
}

func (p *plan) norm(name string, n int) { p.normal(name, 1, .1, n) }

// residual gives an attention residual scores of deviation 1.
func (p *plan) residual(name string) {
	h := p.c.HiddenSize
	p.norm(name+"_norm.weight", h)
	p.normal(name+"_proj.weight", 0, 1/math.Sqrt(float64(h)), 1, h)
}

func (p *plan) kda(at string) {
	a := &p.c.LinearAttn
	h, d, w := p.c.HiddenSize, a.HeadDim, a.NumHeads*a.HeadDim
	for _, n := range []string{"q", "k", "v"} {
		p.linear(at+n+"_proj.weight", w, h)
		p.normal(at+n+"_conv1d.weight", 0, .5, w, 1, a.ShortConvKernelSize)
	}
	p.linear(at+"g_proj.weight", w, h)
	p.linear(at+"f_a_proj.weight", d, h)
	p.linear(at+"f_b_proj.weight", w, d)
	p.linear(at+"b_proj.weight", a.NumHeads, h)
	p.add(at+"A_log", "F32", drawing{deviation: .5}, d)
	p.add(at+"dt_bias", "F32", drawing{mean: -3, deviation: 1.5}, w) // decays from a few tokens to thousands
	p.norm(at+"o_norm.weight", d)
	p.linear(at+"o_proj.weight", h, w)
}

func (p *plan) mla(at string) {
	c := p.c
	h, n := c.HiddenSize, c.NumAttentionHeads
	p.linear(at+"q_a_proj.weight", c.QLoRARank, h)
	p.norm(at+"q_a_layernorm.weight", c.QLoRARank)
	p.linear(at+"q_b_proj.weight", n*(c.QKNopeHeadDim+c.QKRopeHeadDim), c.QLoRARank)
	p.linear(at+"kv_a_proj_with_mqa.weight", c.KVLoRARank+c.QKRopeHeadDim, h)
	p.norm(at+"kv_a_layernorm.weight", c.KVLoRARank)
	p.linear(at+"kv_b_proj.weight", n*(c.QKNopeHeadDim+c.VHeadDim), c.KVLoRARank)
	p.linear(at+"g_proj.weight", n*c.VHeadDim, h)
	p.linear(at+"o_proj.weight", h, n*c.VHeadDim)
}

func (p *plan) mlp(at string, inter int) {
	p.linear(at+"gate_proj.weight", inter, p.c.HiddenSize)
	p.linear(at+"up_proj.weight", inter, p.c.HiddenSize)
	p.linear(at+"down_proj.weight", p.c.HiddenSize, inter)
}

func (p *plan) moe(at string) {
	c := p.c
	h, latent, inter := c.HiddenSize, c.RoutedExpertHiddenSize, c.MoEIntermediateSize
	p.linear(at+"gate.weight", c.NumExperts, h)
	p.add(at+"gate.e_score_correction_bias", "F32", drawing{deviation: .01}, c.NumExperts)
	p.linear(at+"routed_expert_down_proj.weight", latent, h)
	p.norm(at+"routed_expert_norm.weight", latent)
	p.linear(at+"routed_expert_up_proj.weight", h, latent)
	p.mlp(at+"shared_experts.", c.NumSharedExperts*inter)
	for e := range c.NumExperts {
		p.mx4(fmt.Sprintf("%sexperts.%d.w1", at, e), inter, latent)
		p.mx4(fmt.Sprintf("%sexperts.%d.w2", at, e), latent, inter)
		p.mx4(fmt.Sprintf("%sexperts.%d.w3", at, e), inter, latent)
	}
}

func (p *plan) mx4(name string, rows, cols int) {
	d := drawing{kind: packed, deviation: 1 / math.Sqrt(float64(cols)), matrix: name}
	p.add(name+".weight_packed", "U8", d, rows, cols/2)
	d.kind = scales
	p.add(name+".weight_scale", "U8", d, rows, cols/group)
}

// group is the number of inputs that share an MXFP4 scale.
const group = 32

// writer draws tensors. It belongs to one goroutine.
type writer struct {
	ctx    context.Context
	seed   uint64
	wrote  func(n int)
	mx4    map[float64]*mx4Tables
	scales []byte // of a block of groups
	block  []byte
}

// blockBytes is how much is drawn between two looks at the context: a multiple of a
// group's codes.
const blockBytes = 1 << 18

// write draws the whole of t.
func (w *writer) write(out io.Writer, t *tensor) error {
	name := cmp.Or(t.draw.matrix, t.name)
	r := stream(w.seed, name)
	var table *alias
	if t.draw.kind == values && t.dtype == "BF16" {
		table = normalBF16(t.draw.mean, t.draw.deviation)
	}
	if w.block == nil {
		w.block, w.scales = make([]byte, blockBytes), make([]byte, blockBytes)
	}
	for left := t.bytes(); left > 0; {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		b := w.block[:min(left, blockBytes)]
		switch {
		case t.draw.kind == packed:
			w.groups(r, t.draw.deviation, b, w.scales[:len(b)/(group/2)])
		case t.draw.kind == scales:
			w.groups(r, t.draw.deviation, nil, b)
		case table != nil:
			fillBF16(b, r, table)
		default:
			fillF32(b, r, t.draw.mean, t.draw.deviation)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		left -= int64(len(b))
		w.wrote(len(b))
	}
	return nil
}

// groups draws MXFP4 groups: their scales, and their codes unless that is nil. Both
// tensors of a matrix are drawn from the same numbers, so that they fit each other.
func (w *writer) groups(r *rand.PCG, deviation float64, codes, scales []byte) {
	t := w.mx4[deviation]
	if t == nil {
		t = newMX4(deviation)
		w.mx4[deviation] = t
	}
	var inner rand.PCG
	for g := range scales {
		first := r.Uint64()
		s := t.scale.draw(uint32(first))
		scales[g] = t.bytes[s]
		if codes == nil {
			continue
		}
		inner.Seed(first, uint64(s))
		table, b := t.codes[s], codes[g*group/2:(g+1)*group/2]
		for i := 0; i < len(b); i += 2 {
			u := inner.Uint64()
			b[i], b[i+1] = byte(table.draw(uint32(u))), byte(table.draw(uint32(u>>32)))
		}
	}
}

// streams are tensors as the checkpoint has them.
func (w *writer) streams(tensors []tensor) []checkpoint.Stream {
	list := make([]checkpoint.Stream, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		list[i] = checkpoint.Stream{Name: namespace + t.name, DType: t.dtype, Shape: t.shape, Write: func(out io.Writer) error { return w.write(out, t) }}
	}
	return list
}

// namespace begins the names of the language model's tensors in a released checkpoint.
const namespace = "language_model."
