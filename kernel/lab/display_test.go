package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"deltafin/kernel/display"
	"deltafin/rig"
	"deltafin/trace"
)

// Every type that a cell can end in says itself what it shows, or is plain data,
// which the cell prints field by field.
func TestEveryTypeDisplays(t *testing.T) {
	for name, v := range New(nil).Exports() {
		if v.Kind() == reflect.Func {
			f := v.Type()
			for i := range f.NumOut() {
				if out := f.Out(i); !displays(out) && !plain(out) {
					t.Errorf("%s gives %s, which has neither a display nor only plain fields", name, out)
				}
			}
			continue
		}
		if typ := v.Type().Elem(); !displays(typ) && !displays(v.Type()) && !plain(typ) {
			t.Errorf("%s has neither a display nor only plain fields", name)
		}
	}
	type opaque struct{ n int }
	if plain(reflect.TypeFor[opaque]()) || plain(reflect.TypeFor[func()]()) || !plain(reflect.TypeFor[rig.Stats]()) || displays(reflect.TypeFor[rig.Stats]()) {
		t.Error("the test takes what it must not")
	}
}

func displays(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[display.Value]()) || t.Implements(reflect.TypeFor[fmt.Stringer]()) || t.Implements(reflect.TypeFor[error]()) ||
		t == reflect.TypeFor[display.Bundle]()
}

func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || !plain(f.Type) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		return plain(t.Elem())
	}
	return t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr || t.Kind() == reflect.String
}

// The wait for drives is said of where there are any.
func TestSummaryStall(t *testing.T) {
	for _, c := range []struct {
		stats GenerationStats
		want  bool
	}{{GenerationStats{}, false}, {GenerationStats{ExpertBytesRead: 1}, true}, {GenerationStats{StallSeconds: 0.5}, true}} {
		if s := (&Generation{Stats: c.stats}).Summary(); strings.Contains(s, "stall") != c.want {
			t.Errorf("%+v: %s", c.stats, s)
		}
	}
}

// What a trace of K3's size shows fits a notebook.
func TestK3Trace(t *testing.T) {
	const tokens, layers, experts, topK = 300, 92, 896, 16
	r := rand.New(rand.NewPCG(3, 4))
	routes := &trace.Trace{Model: "k3", Experts: experts, TopK: topK}
	for l := range layers {
		routes.Layers = append(routes.Layers, l+1)
	}
	for i := range tokens {
		routes.Tokens = append(routes.Tokens, trace.Token{ID: i, Text: "word"})
		for range layers {
			taken := map[int32]bool{}
			for len(taken) < topK { // some experts are used much more than others
				taken[int32(experts*math.Pow(r.Float64(), 2))] = true
			}
			routes.IDs = append(routes.IDs, slices.Sorted(maps.Keys(taken))...)
			routes.Weights = append(routes.Weights, slices.Repeat([]float32{1.0 / topK}, topK)...)
		}
	}
	if err := routes.Check(); err != nil {
		t.Fatal(err)
	}
	tr := &Trace{Routes: routes}
	for name, show := range map[string]func() any{
		"the trace": func() any { return tr },
		"a layer":   func() any { return tr.Layer(50) },
		"a token":   func() any { return tr.Token(7) },
		"experts":   func() any { return tr.Experts() },
		"reuse":     func() any { return tr.Reuse() },
		"entropy":   func() any { return tr.Entropy() },
		"top":       func() any { return tr.Top(1000) },
	} {
		began := time.Now()
		b, ok := display.Of(show())
		data, err := json.Marshal(b)
		took := time.Since(began)
		t.Logf("%s: %d bytes in %v", name, len(data), took)
		if !ok || err != nil || len(data) >= 2_000_000 || len(b.Data) < 2 {
			t.Errorf("%s: %d bytes, %d forms, %v", name, len(data), len(b.Data), err)
		}
	}
}
