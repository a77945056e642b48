package engine

import "deltafin/metal"

// KDA is Kimi delta attention: a gated delta rule with a decay for each channel
// and a state of constant size. H heads of D channels; rows are head-major.
type KDA struct {
	Index                     int // among the model's KDA layers
	Heads, Dim                int
	LowerBound, Eps           float32
	QProj, KProj, VProj       metal.Matrix // [H·D, hidden]
	QConv1D, KConv1D, VConv1D metal.Buffer // [H·D][4]
	FAProj, FBProj            metal.Matrix // [D, hidden], [H·D, D]
	GProj                     metal.Matrix // [H·D, hidden]
	BProj                     metal.Matrix // [H, hidden]
	ALog, DTBias              metal.Buffer // [H], [H·D]
	ONorm                     metal.Buffer // [D]
	OProj                     metal.Matrix // [hidden, H·D]
}

func (a *KDA) forward(p *pass, out, x metal.Buffer) {
	width := a.Heads * a.Dim
	from, to := p.kda(a.Index)

	q, k, v := p.rows(width), p.rows(width), p.rows(width)
	low, beta, gate := p.rows(a.Dim), p.rows(a.Heads), p.rows(width)
	p.matMuls(x, into(q, a.QProj), into(k, a.KProj), into(v, a.VProj), into(low, a.FAProj), into(beta, a.BProj), into(gate, a.GProj))
	p.q.ShortConv(q, to.QConv, q, from.QConv, a.QConv1D, p.n, width)
	p.q.ShortConv(k, to.KConv, k, from.KConv, a.KConv1D, p.n, width)
	p.q.ShortConv(v, to.VConv, v, from.VConv, a.VConv1D, p.n, width)

	decay := p.rows(width)
	p.q.MatMul(decay, low, a.FBProj, p.n)
	p.q.KDAGate(decay, decay, a.ALog, a.DTBias, a.LowerBound, p.n, a.Heads, a.Dim)
	p.q.Sigmoid(beta, beta)

	o := p.rows(width)
	p.q.KDA(o, to.S, from.S, q, k, v, decay, beta, p.n, a.Heads, a.Dim)
	p.q.RMSNorm(o, o, a.ONorm, p.n*a.Heads, a.Dim, a.Eps)
	p.q.MulSigmoid(o, gate)
	p.q.MatMul(out, o, a.OProj, p.n)
}

// kdaState is one KDA layer's state: the last three projected rows of q, k and v
// before the convolution, [3][H·D] each, and S, [H][D][D], key × value.
type kdaState struct {
	QConv, KConv, VConv, S metal.Buffer

	shared bool // another Sequence may hold it: never write
}

func (m *Model) newKDAState() *kdaState {
	h, d := m.LinearAttn.NumHeads, m.LinearAttn.HeadDim
	rows := func() metal.Buffer { return m.Device.NewBuffer((m.LinearAttn.ShortConvKernelSize - 1) * h * d) }
	return &kdaState{QConv: rows(), KConv: rows(), VConv: rows(), S: m.Device.NewBuffer(h * d * d)}
}
