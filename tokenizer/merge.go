package tokenizer

import "math"

const noRank = math.MaxInt32

// scanLimit is the longest piece in bytes whose merges are found by scanning all its
// pairs; longer ones keep the pairs in a heap. Both give the same ids.
const scanLimit = 96

// appendPiece appends the ids of one piece: its rank if it has one as a whole, else
// its bytes merged pairwise, the lowest rank first and the leftmost among equals.
func (t *Tokenizer) appendPiece(ids []int, piece string) []int {
	if len(piece) <= t.longest {
		if r, ok := t.rank[piece]; ok {
			return append(ids, int(r))
		}
	}
	if len(piece) <= scanLimit {
		return t.mergeByScan(ids, piece)
	}
	return t.mergeByHeap(ids, piece)
}

// pairRank gives the rank of a pair's joined bytes, or noRank.
func (t *Tokenizer) pairRank(pair string) int32 {
	if len(pair) <= t.longest {
		if r, ok := t.rank[pair]; ok {
			return r
		}
	}
	return noRank
}

// mergeByScan is the definition of the merge, for 2 to scanLimit bytes.
func (t *Tokenizer) mergeByScan(ids []int, piece string) []int {
	// part i is piece[start[i]:start[i+1]]; rank[i] is that of part i joined with part i+1.
	var starts [scanLimit + 1]uint8
	var ranks [scanLimit]int32
	n := len(piece)
	for i := range n {
		starts[i] = uint8(i)
		ranks[i] = noRank
		if i+2 <= n {
			ranks[i] = t.pairRank(piece[i : i+2])
		}
	}
	starts[n] = uint8(n)
	for n > 1 {
		at := 0
		for i, r := range ranks[:n-1] {
			if r < ranks[at] {
				at = i
			}
		}
		if ranks[at] == noRank {
			break
		}
		copy(starts[at+1:n], starts[at+2:n+1])
		copy(ranks[at+1:n-1], ranks[at+2:n])
		n--
		ranks[n-1] = noRank
		for i := max(at-1, 0); i <= at && i+2 <= n; i++ {
			ranks[i] = t.pairRank(piece[starts[i]:starts[i+2]])
		}
	}
	for i := range n {
		ids = append(ids, int(t.rank[piece[starts[i]:starts[i+1]]]))
	}
	return ids
}

// mergeByHeap merges a piece of n bytes in O(n log n). A part is known by its first
// byte; the heap holds rank<<32|first for pairs, among them some that a later merge
// has changed, which are passed over when they come up.
func (t *Tokenizer) mergeByHeap(ids []int, piece string) []int {
	n := len(piece)
	next := make([]int32, n+1) // first byte of the part after; n after the last
	prev := make([]int32, n+1)
	pair := make([]int32, n+1) // rank of the part joined with the one after; noRank too where no part begins
	heap := make(pairHeap, 0, n)
	for i := range n {
		next[i], prev[i], pair[i] = int32(i+1), int32(i-1), noRank
		if i+2 <= n {
			if pair[i] = t.pairRank(piece[i : i+2]); pair[i] != noRank {
				heap = append(heap, uint64(pair[i])<<32|uint64(i))
			}
		}
	}
	prev[n] = int32(n - 1)
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
			if pair[j] = t.pairRank(piece[j:next[next[j]]]); pair[j] != noRank {
				heap.push(uint64(pair[j])<<32 | uint64(j))
			}
		}
	}
	for i := int32(0); int(i) < n; i = next[i] {
		ids = append(ids, int(t.rank[piece[i:next[i]]]))
	}
	return ids
}

// pairHeap is a binary heap of rank<<32|first, the least on top.
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
