package engine

import "deltafin/metal"

// MLA is multi-head latent attention without positions. Its cache holds kv_a's
// latent and shared key for each position; kv_b is folded into query and output.
type MLA struct {
	Index          int // among the model's MLA layers
	Shape          metal.MLAShape
	QAProj, QBProj metal.Matrix // [q_lora, hidden], [heads·(nope+rope), q_lora]
	QALayernorm    metal.Buffer // [q_lora]
	KVAProjWithMQA metal.Matrix // [kv_lora+rope, hidden]
	KVALayernorm   metal.Buffer // [kv_lora]
	KVBProj        metal.Matrix // [heads·(nope+v), kv_lora], head by head: nope rows, then v rows
	GProj, OProj   metal.Matrix // [heads·v, hidden], [hidden, heads·v]
}

func (a *MLA) forward(p *pass, out, x metal.Buffer) {
	s := a.Shape
	cache := p.latents(a.Index)

	low, kv, gate := p.rows(a.QAProj.Rows), p.rows(a.KVAProjWithMQA.Rows), p.rows(s.Heads*s.V)
	p.matMuls(x, into(low, a.QAProj), into(kv, a.KVAProjWithMQA), into(gate, a.GProj))
	p.q.Latent(cache, p.first, kv, a.KVALayernorm, p.n, s, mlaNormEps)

	q, o := p.rows(a.QBProj.Rows), p.rows(s.Heads*s.V)
	p.q.RMSNorm(low, low, a.QALayernorm, p.n, a.QAProj.Rows, mlaNormEps)
	p.q.MatMul(q, low, a.QBProj, p.n)
	p.q.MLA(o, q, cache, p.first, a.KVBProj, p.n, s)
	p.q.MulSigmoid(o, gate)
	p.q.MatMul(out, o, a.OProj, p.n)
}
