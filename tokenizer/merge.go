package tokenizer

import (
	"math"
	"slices"
)

const noRank = math.MaxInt32 // where bytes are no token

// merger finds the ids of pieces. Its room is reused from piece to piece.
type merger struct {
	t *Tokenizer

	// A part of the piece is known by its first byte.
	next []int32 // first byte of the part after; the piece's length after the last
	prev []int32 // of the part before; -1 before the first
	pair []int32 // rank of the part joined with the one after; noRank too where no part begins
	heap pairHeap
}

// appendText appends the ids of text that is already cut (slices).
func (m *merger) appendText(ids []int, text string) []int {
	for len(text) > 0 {
		n := m.t.class.piece(text)
		ids = m.appendPiece(ids, text[:n])
		text = text[n:]
	}
	return ids
}

// rankOf gives the rank of a token, or noRank.
func (m *merger) rankOf(token string) int32 {
	if len(token) <= m.t.longest {
		if r, ok := m.t.rank[token]; ok {
			return r
		}
	}
	return noRank
}

// appendPiece appends the ids of one piece: its rank if it has one as a whole, else
// its bytes merged pairwise, the lowest rank first and the leftmost among equals. For n
// bytes that takes O(n log n): the heap holds the pairs, among them some that a later
// merge has changed, which are passed over when they come up.
func (m *merger) appendPiece(ids []int, piece string) []int {
	if r := m.rankOf(piece); r != noRank {
		return append(ids, int(r))
	}
	n := len(piece)
	next := slices.Grow(m.next[:0], n+1)[:n+1]
	prev := slices.Grow(m.prev[:0], n+1)[:n+1]
	pair := slices.Grow(m.pair[:0], n+1)[:n+1]
	heap := m.heap[:0]
	for i := range n {
		next[i], prev[i], pair[i] = int32(i+1), int32(i-1), noRank
		if i+2 <= n {
			if pair[i] = m.rankOf(piece[i : i+2]); pair[i] != noRank {
				heap = append(heap, uint64(pair[i])<<32|uint64(i))
			}
		}
	}
	prev[n], pair[n] = int32(n-1), noRank
	heap.init()
	for len(heap) > 0 {
		top := heap.pop()
		i, r := int32(top&math.MaxUint32), int32(top>>32)
		if pair[i] != r {
			continue
		}
		gone := next[i]
		pair[gone] = noRank
		next[i] = next[gone]
		prev[next[i]] = i
		for _, j := range [2]int32{prev[i], i} {
			if j < 0 {
				continue
			}
			pair[j] = noRank
			if int(next[j]) == n {
				continue
			}
			if pair[j] = m.rankOf(piece[j:next[next[j]]]); pair[j] != noRank {
				heap.push(uint64(pair[j])<<32 | uint64(j))
			}
		}
	}
	for i := int32(0); int(i) < n; i = next[i] {
		ids = append(ids, int(m.t.rank[piece[i:next[i]]]))
	}
	m.next, m.prev, m.pair, m.heap = next, prev, pair, heap
	return ids
}

// pairHeap is a binary heap of pairs, rank<<32 | first byte, the least on top.
type pairHeap []uint64

func (h pairHeap) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *pairHeap) push(x uint64) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up] <= s[i] {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *pairHeap) pop() uint64 {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	*h = s[:last]
	h.down(0)
	return top
}

func (h pairHeap) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child] < h[least] {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
