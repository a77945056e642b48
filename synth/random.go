package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// stream is a tensor's own random numbers: they depend on the seed and the tensor's
// name, so that a tensor's bytes are the same in a model of more layers.
func stream(seed uint64, name string) *rand.PCG {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.NewPCG(seed, h.Sum64())
}

// An alias table draws one of its values with their probabilities from 32 random
// bits: the upper ones choose an entry, the lower cutBits between its two values.
type alias struct {
	shift   int
	entries []aliasEntry
}

type aliasEntry struct {
	cut         uint32 // keep below it, other from it on
	keep, other uint16
}

// cutBits is how finely an entry is divided: a table of 2^13 entries knows
// probabilities to 2^-32.
const cutBits = 19

// newAlias makes the table of values with probabilities in proportion to p.
func newAlias(values []uint16, p []float64) *alias {
	bits := 0
	for 1<<bits < len(values) {
		bits++
	}
	n := 1 << bits
	var sum float64
	for _, v := range p {
		sum += v
	}
	// Each entry takes a share 1/n: from one value that has less than that, filled up
	// from one that has more.
	share := make([]float64, n)
	var less, more []int
	for i := range share {
		if i < len(p) {
			share[i] = p[i] / sum * float64(n)
		}
		if share[i] < 1 {
			less = append(less, i)
		} else {
			more = append(more, i)
		}
	}
	value := func(i int) uint16 { return values[min(i, len(values)-1)] }
	a := &alias{shift: 32 - bits, entries: make([]aliasEntry, n)}
	for len(less) > 0 && len(more) > 0 {
		i, j := less[len(less)-1], more[len(more)-1]
		less = less[:len(less)-1]
		a.entries[i] = aliasEntry{uint32(share[i] * (1 << cutBits)), value(i), value(j)}
		if share[j] -= 1 - share[i]; share[j] < 1 {
			more = more[:len(more)-1]
			less = append(less, j)
		}
	}
	for _, i := range append(less, more...) { // whole, but for rounding
		a.entries[i] = aliasEntry{1 << cutBits, value(i), value(i)}
	}
	return a
}

func (a *alias) draw(random uint32) uint16 {
	e := a.entries[random>>a.shift]
	if random&(1<<cutBits-1) < e.cut {
		return e.keep
	}
	return e.other
}

// below is the probability of a standard normal value below x.
func below(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// normalBF16 draws normal values of the given mean and deviation, rounded to BF16:
// every BF16 value with its own probability, out to 6.5 deviations. Around 0, values
// under 2^-24 deviations become 0.
func normalBF16(mean, deviation float64) *alias {
	var values []uint16
	var p []float64
	smallest := deviation * 0x1p-24
	for bits := range 1 << 15 {
		v := float64(math.Float32frombits(uint32(bits) << 16))
		if v > math.Abs(mean)+6.5*deviation || v < smallest && bits > 0 {
			if v > smallest {
				break
			}
			continue
		}
		// What rounds to v lies between the middles to its neighbours.
		lo := (v + float64(math.Float32frombits(uint32(bits-1)<<16))) / 2
		hi := (v + float64(math.Float32frombits(uint32(bits+1)<<16))) / 2
		lo = max(lo, smallest)
		for sign := range 2 {
			a, b := lo, hi
			if bits == 0 {
				a, b = 0, smallest
			}
			if sign == 1 {
				a, b = -b, -a
			}
			values = append(values, uint16(bits|sign<<15))
			p = append(p, max(0, below((b-mean)/deviation)-below((a-mean)/deviation)))
		}
	}
	return newAlias(values, p)
}

// mx4Tables draw MXFP4 groups as a quantizer makes them of normal weights: the scale
// puts the group's largest value in the code's upper binade, and codes are what values
// under that bound round to.
type mx4Tables struct {
	scale *alias          // draws an index of codes
	codes []*alias        // by scale, draws a byte of two codes
	bytes map[uint16]byte // by scale: the E8M0 byte
}

func newMX4(deviation float64) *mx4Tables {
	t := &mx4Tables{bytes: map[uint16]byte{}}
	var index []uint16
	var p []float64
	// The largest of 32 values lies between 1 and 6.5 deviations but for one group in
	// a hundred thousand.
	low := int(math.Floor(math.Log2(deviation)))
	for e := low; math.Ldexp(1, e) < 6.5*deviation; e++ {
		largest := func(bound float64) float64 { return math.Pow(math.Erf(bound/deviation/math.Sqrt2), 32) }
		n := uint16(len(index))
		index = append(index, n)
		p = append(p, largest(math.Ldexp(1, e+1))-largest(math.Ldexp(1, e)))
		t.bytes[n] = byte(127 + e - 2) // the largest code, 6, is in the binade from 4 on
		t.codes = append(t.codes, mx4Codes(deviation, math.Ldexp(1, e-2)))
	}
	t.scale = newAlias(index, p)
	return t
}

// mx4Codes draws pairs of codes of normal values within ±8 scale.
func mx4Codes(deviation, scale float64) *alias {
	edges := []float64{0, .25, .75, 1.25, 1.75, 2.5, 3.5, 5, 8} // between what codes stand for
	var one [16]float64
	for c := range 8 {
		p := below(edges[c+1]*scale/deviation) - below(edges[c]*scale/deviation)
		one[c], one[c+8] = p, p
	}
	values, p := make([]uint16, 256), make([]float64, 256)
	for b := range values {
		values[b] = uint16(b)
		p[b] = one[b&15] * one[b>>4]
	}
	return newAlias(values, p)
}

// fillBF16 fills b with drawn values.
func fillBF16(b []byte, r *rand.PCG, a *alias) {
	for ; len(b) >= 4; b = b[4:] {
		u := r.Uint64()
		binary.LittleEndian.PutUint32(b, uint32(a.draw(uint32(u)))|uint32(a.draw(uint32(u>>32)))<<16)
	}
	if len(b) >= 2 {
		binary.LittleEndian.PutUint16(b, a.draw(uint32(r.Uint64())))
	}
}

// fillF32 fills b with normal float32s.
func fillF32(b []byte, r *rand.PCG, mean, deviation float64) {
	normal := rand.New(r)
	for ; len(b) >= 4; b = b[4:] {
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(mean+deviation*normal.NormFloat64())))
	}
}
