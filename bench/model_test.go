package bench

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"deltafin/engine"
	"deltafin/metal"
	"deltafin/metal/cpu"
	"deltafin/metal/metaltest"
	"deltafin/rig"
)

// A device that is watched owes what every device owes.
func TestWatch(t *testing.T) {
	times := new(Times)
	metaltest.TestDevice(t, func(threads int) metal.Device {
		return times.Watch(cpu.Open(cpu.Options{Threads: threads}))
	})
	all := times.List(1)
	for _, op := range []string{"Embed", "MatMul F32", "MatMul MX4", "RMSNorm", "AttnRes", "Add", "MulSigmoid", "Sigmoid", "SiTU", "ShortConv", "KDAGate", "KDA", "Latent", "MLA", "Route", "Experts"} {
		found := false
		for _, o := range all {
			found = found || strings.HasPrefix(o.Op, op) && o.Calls > 0 && o.Seconds > 0
		}
		if !found {
			t.Errorf("no time for %s", op)
		}
	}
}

func TestModel(t *testing.T) {
	o := ModelOptions{Rig: rig.Options{CacheDir: t.TempDir()}, Threads: []int{1, 2}, Tokens: []int{0, 70}, New: 3, Runs: 2, Ops: true}
	decode, err := Decode(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Tokens = []int{5, 9}
	prefill, err := Prefill(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, report := range []*ModelReport{decode, prefill} {
		if report.Model != "nano-k3" || len(report.Results) != 4 {
			t.Fatalf("%s, %d results", report.Model, len(report.Results))
		}
		for i, r := range report.Results {
			if r.Threads != 1+i/2 || r.Runs != 2 || !(0 < r.TokensPerS.Low && r.TokensPerS.Low <= r.TokensPerS.Median && r.TokensPerS.Median <= r.TokensPerS.High) {
				t.Errorf("%+v", r)
			}
			var shares float64
			calls := map[string]int{}
			for _, op := range r.Ops {
				shares += op.Share
				calls[op.Op] = op.Calls
			}
			if math.Abs(shares-1) > .01 {
				t.Errorf("the operations' shares sum to %g", shares)
			}
			// A pass has one embedding: two runs of three tokens or of one prompt.
			want := 2
			if report == decode {
				want = 6
			}
			if calls["Embed"] != want || calls["KDA"] != 12*want {
				t.Errorf("%d embeddings and %d KDAs, want %d and %d", calls["Embed"], calls["KDA"], want, 12*want)
			}
		}
	}
	if decode.Results[1].Context != 70 || prefill.Results[1].Prompt != 9 {
		t.Errorf("contexts and prompts %+v, %+v", decode.Results[1], prefill.Results[1])
	}

	o.Tokens = []int{1 << 30}
	var long *engine.LengthError
	if _, err := Prefill(t.Context(), o); !errors.As(err, &long) {
		t.Errorf("a prompt that is too long: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Tokens, o.Status = []int{4}, func(string) { cancel() }
	if report, err := Prefill(ctx, o); !errors.Is(err, context.Canceled) || report != nil {
		t.Errorf("cancelled: %v, %v", report, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	o.Status = func(text string) {
		if strings.HasPrefix(text, "run 2") {
			cancel()
		}
	}
	if report, err := Prefill(ctx, o); !errors.Is(err, context.Canceled) || len(report.Results) != 2 || report.Results[1].Runs != 1 {
		t.Errorf("cancelled in the second run: %+v, %v", report, err)
	}
}
