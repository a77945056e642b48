package engine

import (
	"fmt"
	"math"
	"strings"

	"deltafin/checkpoint"
	"deltafin/metal"
	"deltafin/prefetch"
)

// Load builds the model of an opened snapshot. Every tensor of the language model
// must be there with its dtype and shape, and no other: a *checkpoint.TensorError
// names the first that isn't so. Weights stay in the snapshot's mapped memory,
// which must outlive the model; with a spine of BF12 its matrices are packed into
// memory of their own. The model's source is Resident.
func Load(c *Config, snapshot *checkpoint.Snapshot, device metal.Device, spine metal.Format) (*Model, error) {
	m := &Model{Config: *c, Device: device, snapshot: snapshot}
	m.scratch.device = device
	l := &loader{m: m, snapshot: snapshot, device: device, used: map[string]bool{}, format: spine}

	m.EmbedTokens = l.matrix("model.embed_tokens.weight", c.VocabSize, c.HiddenSize)
	m.LMHead = l.matrix("lm_head.weight", c.VocabSize, c.HiddenSize)
	m.Norm = l.vector("model.norm.weight", c.HiddenSize)
	m.OutputAttnRes = l.residual("model.output_attn_res", c.HiddenSize)
	experts := make([][]prefetch.Parts, c.NumHiddenLayers)
	kda, mla := 0, 0
	for i := range c.NumHiddenLayers {
		at := fmt.Sprintf("model.layers.%d.", i)
		layer := Layer{
			Index:                  i,
			InputLayernorm:         l.vector(at+"input_layernorm.weight", c.HiddenSize),
			PostAttentionLayernorm: l.vector(at+"post_attention_layernorm.weight", c.HiddenSize),
			SelfAttentionRes:       l.residual(at+"self_attention_res", c.HiddenSize),
			MLPRes:                 l.residual(at+"mlp_res", c.HiddenSize),
		}
		if c.IsKDA(i) {
			layer.Attention = l.kda(at+"self_attn.", kda)
			kda++
		} else {
			layer.Attention = l.mla(at+"self_attn.", mla)
			mla++
		}
		if c.IsMoE(i) {
			layer.FFN = l.moe(at+"block_sparse_moe.", i)
			experts[i] = l.experts(at + "block_sparse_moe.experts.")
		} else {
			mlp := l.mlp(at+"mlp.", c.IntermediateSize)
			layer.FFN = &mlp
		}
		if l.err != nil {
			break
		}
		m.Layers = append(m.Layers, layer)
	}
	l.leftovers()
	if l.err != nil {
		return nil, l.err
	}
	m.Source = prefetch.NewResident(func(k prefetch.Key) (*prefetch.Parts, bool) {
		if k.Layer < 0 || k.Layer >= len(experts) || k.Expert < 0 || k.Expert >= len(experts[k.Layer]) {
			return nil, false
		}
		return &experts[k.Layer][k.Expert], true
	})
	return m, nil
}

func (m *Model) attentionLayers() (kda, mla int) {
	return len(m.LinearAttn.KDALayers), len(m.LinearAttn.FullAttnLayers)
}

// namespace begins the names of the language model's tensors in a K3 checkpoint;
// the vision tower's lie outside it.
const namespace = "language_model."

// loader keeps the first error; later reads return nothing.
type loader struct {
	m        *Model
	snapshot *checkpoint.Snapshot
	device   metal.Device
	used     map[string]bool
	format   metal.Format // of the spine's matrices
	err      error
}

func (l *loader) tensor(name string, dtype checkpoint.DType, shape ...int) []byte {
	if l.err != nil {
		return nil
	}
	t, err := l.snapshot.Want(namespace+name, dtype, shape...)
	if err != nil {
		l.err = err
		return nil
	}
	l.used[t.Name] = true
	return t.Data
}

// stored is a BF16 weight [rows, cols] as it is.
func (l *loader) stored(name string, rows, cols int) metal.Matrix {
	data := l.tensor(name, "BF16", rows, cols)
	if l.err != nil {
		return metal.Matrix{}
	}
	l.spine(rows*cols, len(data))
	return l.device.NewMatrix(metal.BF16, rows, cols, data, nil)
}

// matrix is a BF16 weight [rows, cols] in the spine's format, if its rows allow that.
func (l *loader) matrix(name string, rows, cols int) metal.Matrix {
	w := l.stored(name, rows, cols)
	if l.format != metal.BF12 || cols%metal.BF12Block != 0 || l.err != nil {
		return w
	}
	data, aside := metal.PackBF12(rows, cols, w.Data)
	size := int64(len(data) + len(aside))
	l.m.SpineBytes += size - int64(len(w.Data))
	l.m.PackedBytes += size
	return l.device.NewMatrix(metal.BF12, rows, cols, data, aside)
}

func (l *loader) spine(parameters, bytes int) {
	l.m.Parameters += int64(parameters)
	l.m.SpineBytes += int64(bytes)
}

// vector is a BF16 weight [n], widened.
func (l *loader) vector(name string, n int) metal.Buffer { return l.widen(name, n, n) }

func (l *loader) widen(name string, n int, shape ...int) metal.Buffer {
	data := l.tensor(name, "BF16", shape...)
	if l.err != nil {
		return metal.Buffer{}
	}
	l.spine(n, len(data))
	b := l.device.NewBuffer(n)
	metal.WidenBF16(b.F, data)
	return b
}

// float32s is the first n values of an F32 tensor of the given length.
func (l *loader) float32s(name string, n, length int) metal.Buffer {
	data := l.tensor(name, "F32", length)
	if l.err != nil {
		return metal.Buffer{}
	}
	l.spine(length, len(data))
	b := l.device.NewBuffer(n)
	metal.ReadF32(b.F, data)
	return b
}

// residual is the product of a residual attention's norm and query: exact, since
// both factors have 8 significant bits.
func (l *loader) residual(name string, h int) metal.Buffer {
	norm := l.vector(name+"_norm.weight", h)
	proj := l.widen(name+"_proj.weight", h, 1, h)
	for i := range norm.F {
		norm.F[i] *= proj.F[i]
	}
	return norm
}

func (l *loader) kda(at string, index int) *KDA {
	c := &l.m.Config
	heads, dim, h := c.LinearAttn.NumHeads, c.LinearAttn.HeadDim, c.HiddenSize
	width, taps := heads*dim, c.LinearAttn.ShortConvKernelSize
	conv := func(name string) metal.Buffer { return l.widen(at+name, width*taps, width, 1, taps) }
	return &KDA{
		Index: index, Heads: heads, Dim: dim, LowerBound: float32(c.LinearAttn.GateLowerBound), Eps: float32(c.RMSNormEps),
		QProj:   l.matrix(at+"q_proj.weight", width, h),
		KProj:   l.matrix(at+"k_proj.weight", width, h),
		VProj:   l.matrix(at+"v_proj.weight", width, h),
		QConv1D: conv("q_conv1d.weight"),
		KConv1D: conv("k_conv1d.weight"),
		VConv1D: conv("v_conv1d.weight"),
		FAProj:  l.matrix(at+"f_a_proj.weight", dim, h),
		FBProj:  l.matrix(at+"f_b_proj.weight", width, dim),
		GProj:   l.matrix(at+"g_proj.weight", width, h),
		BProj:   l.matrix(at+"b_proj.weight", heads, h),
		ALog:    l.float32s(at+"A_log", heads, dim), // stored padded to head_dim
		DTBias:  l.float32s(at+"dt_bias", width, width),
		ONorm:   l.vector(at+"o_norm.weight", dim),
		OProj:   l.matrix(at+"o_proj.weight", h, width),
	}
}

func (l *loader) mla(at string, index int) *MLA {
	c := &l.m.Config
	h, heads := c.HiddenSize, c.NumAttentionHeads
	head := c.QKNopeHeadDim + c.QKRopeHeadDim
	return &MLA{
		Index: index,
		Shape: metal.MLAShape{
			Heads: heads, Nope: c.QKNopeHeadDim, Rope: c.QKRopeHeadDim, V: c.VHeadDim, KVRank: c.KVLoRARank,
			Scale: float32(1 / math.Sqrt(float64(head))),
		},
		QAProj:         l.matrix(at+"q_a_proj.weight", c.QLoRARank, h),
		QALayernorm:    l.vector(at+"q_a_layernorm.weight", c.QLoRARank),
		QBProj:         l.matrix(at+"q_b_proj.weight", heads*head, c.QLoRARank),
		KVAProjWithMQA: l.matrix(at+"kv_a_proj_with_mqa.weight", c.KVLoRARank+c.QKRopeHeadDim, h),
		KVALayernorm:   l.vector(at+"kv_a_layernorm.weight", c.KVLoRARank),
		KVBProj:        l.matrix(at+"kv_b_proj.weight", heads*(c.QKNopeHeadDim+c.VHeadDim), c.KVLoRARank),
		GProj:          l.matrix(at+"g_proj.weight", heads*c.VHeadDim, h),
		OProj:          l.matrix(at+"o_proj.weight", h, heads*c.VHeadDim),
	}
}

func (l *loader) mlp(at string, inter int) MLP {
	c := &l.m.Config
	return MLP{
		GateProj: l.matrix(at+"gate_proj.weight", inter, c.HiddenSize),
		UpProj:   l.matrix(at+"up_proj.weight", inter, c.HiddenSize),
		DownProj: l.matrix(at+"down_proj.weight", c.HiddenSize, inter),
		Beta:     float32(c.SiTUBeta), Lambda: float32(c.SiTULinearBeta),
	}
}

func (l *loader) moe(at string, index int) *MoE {
	c := &l.m.Config
	return &MoE{
		Layer: index, Experts: c.NumExperts, TopK: c.NumExpertsPerToken,
		Scale: float32(c.RoutedScalingFactor), Eps: float32(c.RMSNormEps),
		Latent: c.RoutedExpertHiddenSize, Inter: c.MoEIntermediateSize,
		Gate:                 l.matrix(at+"gate.weight", c.NumExperts, c.HiddenSize),
		EScoreCorrectionBias: l.float32s(at+"gate.e_score_correction_bias", c.NumExperts, c.NumExperts),
		RoutedExpertDownProj: l.matrix(at+"routed_expert_down_proj.weight", c.RoutedExpertHiddenSize, c.HiddenSize),
		RoutedExpertNorm:     l.vector(at+"routed_expert_norm.weight", c.RoutedExpertHiddenSize),
		RoutedExpertUpProj:   l.matrix(at+"routed_expert_up_proj.weight", c.HiddenSize, c.RoutedExpertHiddenSize),
		SharedExperts:        l.mlp(at+"shared_experts.", c.NumSharedExperts*c.MoEIntermediateSize),
	}
}

// experts views one layer's routed experts, in the order of an expert's record.
func (l *loader) experts(at string) []prefetch.Parts {
	c := &l.m.Config
	latent, inter := c.RoutedExpertHiddenSize, c.MoEIntermediateSize
	all := make([]prefetch.Parts, c.NumExperts)
	for e := range all {
		for i, w := range []struct {
			name       string
			rows, cols int
		}{{"w1", inter, latent}, {"w3", inter, latent}, {"w2", latent, inter}} {
			name := fmt.Sprintf("%s%d.%s.", at, e, w.name)
			all[e][2*i] = l.tensor(name+"weight_packed", "U8", w.rows, w.cols/2)
			all[e][2*i+1] = l.tensor(name+"weight_scale", "U8", w.rows, w.cols/metal.MX4Group)
			l.m.Parameters += int64(w.rows) * int64(w.cols)
		}
		l.m.ExpertsBytes += all[e].Size()
		if l.err != nil {
			break
		}
	}
	return all
}

// leftovers refuses a tensor of the language model that nothing used: a model that
// has more than K3's tensors computes something else.
func (l *loader) leftovers() {
	for _, name := range l.snapshot.Names() {
		if l.err != nil {
			return
		}
		if strings.HasPrefix(name, namespace) && !l.used[name] {
			t, _ := l.snapshot.Tensor(name)
			l.err = &checkpoint.TensorError{Tensor: name, File: t.File, Want: "no such tensor in a model of this config.json", Got: fmt.Sprintf("%s %v", t.DType, t.Shape)}
		}
	}
}
