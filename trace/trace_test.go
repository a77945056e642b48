package trace

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// random makes a trace with every part filled in.
func random(seed uint64, tokens int, layers []int, experts, topK int) *Trace {
	r := rand.New(rand.NewPCG(seed, 1))
	tr := &Trace{Model: "test <&> \u2028 model", Layers: layers, Experts: experts, TopK: topK}
	for t := range tokens {
		tr.Tokens = append(tr.Tokens, Token{ID: r.IntN(1000), Text: fmt.Sprintf("t\n\"%d\" é", t), Generated: t > tokens/2})
		for range layers {
			ids := r.Perm(experts)[:topK]
			slices.Sort(ids)
			for _, id := range ids {
				tr.IDs = append(tr.IDs, int32(id))
				tr.Weights = append(tr.Weights, float32(r.NormFloat64())*1e-3)
			}
		}
	}
	return tr
}

func TestRoundTrip(t *testing.T) {
	plain := random(3, 5, []int{0, 1, 2}, 4, 4)
	plain.Weights = nil
	for _, tr := range []*Trace{
		random(1, 7, []int{1, 2, 5}, 16, 4),
		random(2, 1, []int{0}, 1, 1),
		plain,
		{Model: "empty", Layers: []int{3}, Experts: 2, TopK: 1},
	} {
		var b bytes.Buffer
		if err := tr.Write(&b); err != nil {
			t.Fatal(err)
		}
		got, err := Read(bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatalf("%s: %v\n%s", tr.Model, err, b.Bytes())
		}
		if d := cmp.Diff(tr, got); d != "" {
			t.Error(d)
		}
		var again bytes.Buffer
		if err := got.Write(&again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Errorf("written again: %v, %d bytes, want %d", err, again.Len(), b.Len())
		}
	}
}

func TestReadHeaderless(t *testing.T) {
	tr, err := Read(strings.NewReader(`{"tok": 0, "layers": [[0, 3], [1, 2]]}` + "\r\n" + `{"tok": 1, "layers": [[3, 7], [1, 5]]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Trace{Layers: []int{0, 1}, Experts: 8, TopK: 2, Tokens: make([]Token, 2), IDs: []int32{0, 3, 1, 2, 3, 7, 1, 5}}
	if d := cmp.Diff(want, tr); d != "" {
		t.Error(d)
	}
	if err := tr.Check(); err != nil {
		t.Error(err)
	}
	if _, w := tr.Route(1, 1); w != nil {
		t.Errorf("weights %v of a trace without", w)
	}
}

func TestReadErrors(t *testing.T) {
	const head = `{"deltafin_trace":1,"model":"m","layers":[4,5],"experts":8,"top_k":2}` + "\n"
	for _, c := range []struct{ in, want string }{
		{"", "line 1: the file: want a trace, got nothing"},
		{"hello", "line 1: token line"},
		{"\n", "line 1: token line"},
		{"null", `line 1: "tok": want 0, got none`},
		{`{"deltafin_trace":2,"model":"m","layers":[4],"experts":8,"top_k":2}`, "want version 1, got 2"},
		{`{"deltafin_trace":1,"model":"m","layers":[],"experts":8,"top_k":2}`, "line 1: layers: want 1 to 4096 of them, got 0"},
		{`{"deltafin_trace":1,"model":"m","layers":[5,4],"experts":8,"top_k":2}`, "want ascending layer numbers, got [5 4]"},
		{`{"deltafin_trace":1,"model":"m","layers":[4],"experts":8,"top_k":9}`, "line 1: top_k: want 1 to 8, the number of experts, got 9"},
		{`{"deltafin_trace":1,"model":"m","layers":[4],"experts":2000000000,"top_k":9}`, "line 1: experts: want 1 to 65536, got 2000000000"},
		{`{"deltafin_trace":1,"model":"m","layers":[4],"experts":8,"top_k":2,"x":1}`, `line 1: header: want`},
		{head + `{"tok":1,"layers":[[0,1],[0,1]]}`, `line 2: "tok": want 0, got 1`},
		{head + `{"tok":0,"layers":[[0,1]]}`, "line 2: token 0: want 2 layers, got 1"},
		{head + `{"tok":0,"layers":[[0,1],[0]]}`, "line 2: token 0, layer 5: want 2 experts, got 1"},
		{head + `{"tok":0,"layers":[[0,1],[1,1]]}`, "line 2: token 0, layer 5: want ascending expert ids, got [1 1]"},
		{head + `{"tok":0,"layers":[[0,8],[0,1]]}`, "line 2: token 0, layer 4: want experts below 8, got 8"},
		{head + `{"tok":0,"layers":[[-1,3],[0,1]]}`, "line 2: token 0, layer 4: want experts below 8, got -1"},
		{head + `{"tok":0,"layers":[[0,1],[0,1]],"weights":[[1,2]]}`, "line 2: token 0: want weights of 2 layers, got 1"},
		{head + `{"tok":0,"layers":[[0,1],[0,1]],"weights":[[1,2],[]]}`, "line 2: token 0, layer 5: want 2 weights, got 0"},
		{head + `{"tok":0,"layers":[[0,1],[0,1]],"weights":[[1,2],null]}`, "line 2: token 0, layer 5: want 2 weights, got 0"},
		{head + `{"tok":0,"layers":[[0,1],[0,1]]}` + "\n" + `{"tok":1,"layers":[[0,1],[0,1]],"weights":[[1,2],[1,2]]}`, "line 3: token 1: want weights in every line or in none"},
		{head + `{"tok":0,"layers":[[0,1],[0,1]]} {}`, "more after the object"},
		{head + `{"tok":0,"layers":[[0,1],[0,1]],"who":1}`, `unknown field "who"`},
		{head + strings.Repeat(" ", maxLine+1), "line 2: the line: want at most 8388608 bytes, got more"},
	} {
		_, err := Read(strings.NewReader(c.in))
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s:\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Trace){
		"short":     func(tr *Trace) { tr.IDs = tr.IDs[1:] },
		"weights":   func(tr *Trace) { tr.Weights = tr.Weights[1:] },
		"nan":       func(tr *Trace) { tr.Weights[3] = float32(math.NaN()) },
		"order":     func(tr *Trace) { tr.IDs[0], tr.IDs[1] = tr.IDs[1], tr.IDs[0] },
		"range":     func(tr *Trace) { tr.Experts = 1 },
		"no layers": func(tr *Trace) { tr.Layers = nil },
	} {
		tr := random(1, 3, []int{1, 2}, 8, 2)
		spoil(tr)
		var b bytes.Buffer
		var fe *FormatError
		if err := tr.Write(&b); !errors.As(err, &fe) || b.Len() != 0 {
			t.Errorf("%s: error %v after %d bytes", name, err, b.Len())
		}
	}
}

// four tokens, two layers, top 2 of 4 experts
func example() *Trace {
	return &Trace{Layers: []int{1, 2}, Experts: 4, TopK: 2, Tokens: make([]Token, 4), IDs: []int32{
		0, 1, 0, 1,
		0, 1, 2, 3,
		0, 2, 0, 1,
		0, 2, 2, 3,
	}}
}

func TestAnalyses(t *testing.T) {
	tr := example()
	check := func(name string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	check("Counts", tr.Counts(), [][]int64{{4, 2, 2, 0}, {2, 2, 2, 2}})
	check("Distinct", tr.Distinct(), []int{3, 4})
	check("Reuse", tr.Reuse(), []float64{5.0 / 6, 0})
	check("Entropy", tr.Entropy(), []float64{1.5, 2})
	check("Top", tr.Top(2), []Load{{1, 0, 4, 1}, {1, 1, 2, 0.5}})
	check("Top(99)", len(tr.Top(99)), 7)
	check("Top(-1)", len(tr.Top(-1)), 0)
	layer, err := tr.Layer(2)
	if err != nil {
		t.Fatal(err)
	}
	check("Layer", layer, &Trace{Layers: []int{2}, Experts: 4, TopK: 2, Tokens: make([]Token, 4), IDs: []int32{0, 1, 2, 3, 0, 1, 2, 3}})
	token, err := tr.Token(2)
	if err != nil {
		t.Fatal(err)
	}
	check("Token", token, &Trace{Layers: []int{1, 2}, Experts: 4, TopK: 2, Tokens: make([]Token, 1), IDs: []int32{0, 2, 0, 1}})
	var re *RangeError
	if _, err := tr.Layer(3); !errors.As(err, &re) || err.Error() != "trace: no layer 3: the trace has layers 1 to 2" {
		t.Error(err)
	}
	if _, err := tr.Token(-1); !errors.As(err, &re) {
		t.Error(err)
	}
}

func TestDiff(t *testing.T) {
	a, b := example(), example()
	d, err := a.Diff(b)
	if err != nil || d.FirstToken != -1 || !slices.Equal(d.Same, []float64{1, 1}) {
		t.Errorf("equal traces: %+v, %v", d, err)
	}
	b = b.Slice(0, 3)
	b.IDs = slices.Clone(b.IDs)
	b.IDs[5] = 3 // token 1, layer 1: experts 0 and 3
	d, err = a.Diff(b)
	want := &Difference{
		Layers: []int{1, 2}, Compared: 3, Same: []float64{5.0 / 6, 1}, FirstToken: 1, FirstLayer: 1,
		Counts: [][]int64{{-1, -1, -1, 1}, {0, 0, -1, -1}},
	}
	if err != nil || cmp.Diff(want, d) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, d))
	}
	b.TopK = 1
	var se *ShapeError
	if _, err := a.Diff(b); !errors.As(err, &se) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := random(1, 2, []int{1, 2}, 4, 2).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"tok": 0, "layers": [[0, 3], [1, 2]]}` + "\n" + `{"tok": 1, "layers": [[3, 7], [1, 5]]}`))
	f.Add([]byte(`{"deltafin_trace":1,"layers":[0],"experts":1,"top_k":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Read(bytes.NewReader(data))
		if err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := tr.Check(); err != nil {
			t.Fatalf("read what Check refuses: %v", err)
		}
		var b bytes.Buffer
		if err := tr.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&b)
		if err != nil || cmp.Diff(tr, again) != "" {
			t.Fatalf("%v %s", err, cmp.Diff(tr, again))
		}
	})
}
