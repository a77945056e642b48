package prefetch

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
)

func source() *Resident {
	parts := map[Key]*Parts{}
	for l := 1; l < 4; l++ {
		for e := range 8 {
			parts[Key{l, e}] = &Parts{{byte(l)}, {byte(e)}, {0}, {0, 0}, {0}, {0}}
		}
	}
	return NewResident(func(k Key) (*Parts, bool) { p, ok := parts[k]; return p, ok })
}

func TestResident(t *testing.T) {
	s := source()
	b, err := s.Demand(t.Context(), 2, []int{1, 3, 6}, 5)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	leases := make([]Lease, 2)
	for {
		n, err := b.Next(leases)
		if err == io.EOF {
			break
		} else if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for _, l := range leases[:n] {
			if seen[l.Index] || l.Key != (Key{2, []int{1, 3, 6}[l.Index]}) || l.Parts[1][0] != byte(l.Key.Expert) {
				t.Errorf("lease %+v", l)
			}
			seen[l.Index] = true
			b.Release(l)
		}
	}
	b.Close()
	if len(seen) != 3 {
		t.Errorf("%d of 3 experts delivered", len(seen))
	}

	var missing *MissingError
	if _, err := s.Demand(t.Context(), 2, []int{1, 8}, 1); !errors.As(err, &missing) || missing.Key != (Key{2, 8}) {
		t.Errorf("an expert that isn't there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b, err = s.Demand(ctx, 1, []int{0}, 1)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := b.Next(leases); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	b.Close()
}

// Counters tie up whatever is asked for, by several goroutines.
func TestStatsInvariants(t *testing.T) {
	s := source()
	before := s.Stats()
	var wg sync.WaitGroup
	for g := range uint64(3) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 0))
			for range 200 {
				var experts []int
				for e := range 8 {
					if r.IntN(2) == 0 {
						experts = append(experts, e)
					}
				}
				b, err := s.Demand(context.Background(), 1+r.IntN(3), experts, 1+r.IntN(9))
				if err != nil {
					t.Error(err)
					return
				}
				for leases := make([]Lease, 3); ; {
					if _, err := b.Next(leases); err != nil {
						break
					}
				}
				b.Close()
			}
		})
	}
	wg.Wait()
	for _, st := range []Stats{s.Stats(), s.Stats().Since(before), s.Stats().Since(s.Stats())} {
		var sum LayerStats
		for _, l := range st.Layers {
			if l.Needed != l.Hit+l.InTime+l.Late+l.Demanded {
				t.Errorf("layer %+v", l)
			}
			sum.Rows += l.Rows
			sum.Steps += l.Steps
			sum.Needed += l.Needed
			sum.Hit += l.Hit
			sum.Compute += l.Compute
			sum.Stall += l.Stall
		}
		if st.Needed != st.Hit+st.InTime+st.Late+st.Demanded || st.Needed != sum.Needed || st.Rows != sum.Rows ||
			st.Steps != sum.Steps || st.Hit != sum.Hit || st.Compute != sum.Compute || st.Stall != sum.Stall {
			t.Errorf("totals %+v, layers %+v", st, sum)
		}
		if st.BytesNeeded != 7*st.Needed || st.BytesRead != 0 {
			t.Errorf("bytes %+v", st)
		}
	}
	if st := s.Stats(); st.Steps != 600 || st.BytesDistinct != 7*24 {
		t.Errorf("%d steps, %d distinct bytes", st.Steps, st.BytesDistinct)
	}
}
