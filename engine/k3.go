// Package engine computes Kimi K3: docs/k3.md in Go. A Model holds the weights, a
// Sequence the state of one text; Sequence.Extend is the forward pass.
//
// The engine keeps one promise beside exactness: the same tokens give the same
// logits bit for bit, in whatever chunks, on however many threads, from whatever
// source of experts they are computed.
package engine

import (
	"deltafin/checkpoint"
	"deltafin/metal"
	"deltafin/prefetch"
)

// A Model is K3's weights on a device. It is read-only after Load, and any number
// of Sequences may use it, one at a time.
type Model struct {
	Config
	Device metal.Device
	Source prefetch.Source // of the routed experts

	EmbedTokens   metal.Matrix
	Layers        []Layer
	OutputAttnRes metal.Buffer // norm · proj
	Norm          metal.Buffer
	LMHead        metal.Matrix

	// Size of the weights, from the tensors that were loaded.
	SpineBytes, ExpertsBytes int64
	PackedBytes              int64 // of SpineBytes, those packed as BF12 into memory of their own
	Parameters               int64

	snapshot *checkpoint.Snapshot
	scratch  scratch
}

// A Layer is one of K3's blocks. Fields are named as in the checkpoint; norms
// and residual queries are widened to fp32, matrices stay as stored.
type Layer struct {
	Index                  int // 0-based
	InputLayernorm         metal.Buffer
	PostAttentionLayernorm metal.Buffer
	SelfAttentionRes       metal.Buffer // self_attention_res_norm · self_attention_res_proj
	MLPRes                 metal.Buffer // mlp_res_norm · mlp_res_proj
	Attention              attention    // *KDA or *MLA
	FFN                    ffn          // *MLP or *MoE
}

// An attention writes its output for the pass's rows of x[n][hidden] to out.
type attention interface {
	forward(p *pass, out, x metal.Buffer)
}

// An ffn writes its output for the pass's rows of x[n][hidden] to out.
type ffn interface {
	forward(p *pass, out, x metal.Buffer) error
}

// forward runs the pass's rows through all layers (docs/k3.md, Forward) and returns
// the final residual stream, mixed and normed: the input of lm_head.
func (m *Model) forward(p *pass, ids []int) (metal.Buffer, error) {
	prefix := p.rows(m.HiddenSize)
	p.q.Embed(prefix, m.EmbedTokens, ids)
	for i := range m.Layers {
		l := &m.Layers[i]

		x := prefix
		if len(p.blocks) > 0 {
			x = m.attnRes(p, prefix, l.SelfAttentionRes) // 1
		}
		fresh := l.Index%m.AttnResBlockSize == 0
		if fresh {
			p.blocks = append(p.blocks, prefix) // 2
			prefix = p.rows(m.HiddenSize)
		}

		mark := p.mark()
		a := m.attentionOutput(p, prefix, fresh)
		l.Attention.forward(p, a, m.rmsNorm(p, x, l.InputLayernorm)) // 3
		if !fresh {
			p.q.Add(prefix, a)
		}
		p.release(mark)

		x = m.attnRes(p, prefix, l.MLPRes) // 4

		mark = p.mark()
		f := p.rows(m.HiddenSize)
		if err := l.FFN.forward(p, f, m.rmsNorm(p, x, l.PostAttentionLayernorm)); err != nil { // 5
			return metal.Buffer{}, err
		}
		p.q.Add(prefix, f)
		p.release(mark)

		if err := p.layerDone(l.Index, prefix); err != nil {
			return metal.Buffer{}, err
		}
	}
	return m.rmsNorm(p, m.attnRes(p, prefix, m.OutputAttnRes), m.Norm), nil
}

// attentionOutput is where a layer's attention writes: a fresh prefix itself, or
// rows to be added to the prefix.
func (m *Model) attentionOutput(p *pass, prefix metal.Buffer, fresh bool) metal.Buffer {
	if fresh {
		return prefix
	}
	return p.rows(m.HiddenSize)
}

func (m *Model) attnRes(p *pass, prefix, normProj metal.Buffer) metal.Buffer {
	p.vs = append(append(p.vs[:0], p.blocks...), prefix)
	p.q.AttnRes(p.mixed, p.vs, normProj, p.n, m.HiddenSize, float32(m.RMSNormEps))
	return p.mixed
}

func (m *Model) rmsNorm(p *pass, x, w metal.Buffer) metal.Buffer {
	p.q.RMSNorm(p.normed, x, w, p.n, m.HiddenSize, float32(m.RMSNormEps))
	return p.normed
}
