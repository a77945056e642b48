package engine

import "deltafin/metal"

// MLP is a feed-forward network with the SiTU activation: down(SiTU(gate x, up x)).
// It is layer 0's, and the shared experts of the others.
type MLP struct {
	GateProj, UpProj, DownProj metal.Matrix
	Beta, Lambda               float32
}

func (f *MLP) forward(p *pass, out, x metal.Buffer) error {
	gate, up := p.rows(f.GateProj.Rows), p.rows(f.UpProj.Rows)
	p.matMuls(x, into(gate, f.GateProj), into(up, f.UpProj))
	p.q.SiTU(gate, gate, up, f.Beta, f.Lambda)
	p.q.MatMul(out, gate, f.DownProj, p.n)
	return nil
}
