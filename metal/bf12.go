package metal

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
)

// BF12 is BF16 in three quarters of its size, without loss. A trained matrix uses a
// few exponents only: the 16 that are most frequent in it get codes of four bits.
// A block of 32 weights whose exponents aren't all among them is kept aside as it is.
//
// A block is 48 bytes: sign and mantissa of its even weights, then of its odd ones,
// a byte each, the sign in the highest bit; then 16 bytes of codes, an even weight's in the low
// half, the next odd one's in the high half. Aside are the exponents of the
// 16 codes, a byte each; then rows+1 numbers of 32 bits, little-endian: row r's blocks
// aside are those from number r to number r+1; then those blocks in order, each its
// number in the row, 32 bits, and its 64 bytes of BF16. What a block aside has in Data means nothing.
const (
	BF12Block      = 32 // weights; a row is a multiple of it
	BF12BlockBytes = 48
	bf12AsideBytes = 4 + 2*BF12Block
)

// PackBF12 packs rows × cols BF16 weights. cols must be a multiple of BF12Block.
func PackBF12(rows, cols int, bf16 []byte) (data, aside []byte) {
	if cols%BF12Block != 0 || len(bf16) != 2*rows*cols {
		panic(fmt.Sprintf("metal: BF12 of %d×%d weights in %d bytes: want rows of a multiple of %d weights, 2 bytes each", rows, cols, len(bf16), BF12Block))
	}
	var count [256]int
	for i := 1; i < len(bf16); i += 2 {
		count[exponent(bf16[i-1], bf16[i])]++
	}
	var code [256]int // of an exponent; 16 for one that has none
	for e := range code {
		code[e] = 16
	}
	aside = make([]byte, 16+4*(rows+1))
	for c := range 16 {
		best := -1
		for e, n := range count {
			if code[e] == 16 && (best < 0 || n > count[best]) {
				best = e
			}
		}
		code[best], aside[c] = c, byte(best)
	}
	data = make([]byte, rows*BF12.RowBytes(cols))
	// Rows in parallel; what each share keeps aside follows the one before.
	shares := min(rows, runtime.GOMAXPROCS(0))
	kept := make([][]byte, shares)
	var wg sync.WaitGroup
	for i := range shares {
		wg.Go(func() {
			for r := rows * i / shares; r < rows*(i+1)/shares; r++ {
				row, out := bf16[2*r*cols:2*(r+1)*cols], data[r*BF12.RowBytes(cols):]
				n := 0
				for b := range cols / BF12Block {
					block := row[2*b*BF12Block : 2*(b+1)*BF12Block]
					if !packBlock(out[b*BF12BlockBytes:(b+1)*BF12BlockBytes], block, &code) {
						kept[i] = binary.LittleEndian.AppendUint32(kept[i], uint32(b))
						kept[i] = append(kept[i], block...)
						n++
					}
				}
				binary.LittleEndian.PutUint32(aside[20+4*r:], uint32(n))
			}
		})
	}
	wg.Wait()
	for r := range rows { // from each row's number to where the next begins
		n := binary.LittleEndian.Uint32(aside[16+4*r:]) + binary.LittleEndian.Uint32(aside[20+4*r:])
		binary.LittleEndian.PutUint32(aside[20+4*r:], n)
	}
	for _, k := range kept {
		aside = append(aside, k...)
	}
	return data, aside
}

// exponent is the eight bits of it in a BF16 value's two bytes.
func exponent(low, high byte) byte { return high<<1 | low>>7 }

// packBlock packs a block to 48 bytes of zeros, and says whether every exponent in it
// has a code: without one, what it wrote means nothing.
func packBlock(to, bf16 []byte, code *[256]int) bool {
	all := true
	for i := range BF12Block {
		low, high := bf16[2*i], bf16[2*i+1]
		c := code[exponent(low, high)]
		if c == 16 {
			all, c = false, 0
		}
		to[i/2+i%2*16] = high&0x80 | low&0x7f
		to[32+i/2] |= byte(c << (i % 2 * 4))
	}
	return all
}

// CheckBF12 says what is wrong with the Scales of a BF12 matrix of that size; the
// methods of BF12Aside trust them.
func CheckBF12(rows, cols int, aside []byte) error {
	head := 16 + 4*(rows+1)
	if cols%BF12Block != 0 || len(aside) < head || (len(aside)-head)%bf12AsideBytes != 0 {
		return fmt.Errorf("metal: BF12 of %d×%d: %d bytes aside: want a multiple of %d columns, %d bytes and %d for each block aside", rows, cols, len(aside), BF12Block, head, bf12AsideBytes)
	}
	a := bf12Aside(rows, aside)
	if first := binary.LittleEndian.Uint32(a.starts); first != 0 {
		return fmt.Errorf("metal: BF12 of %d×%d: the first row's blocks aside begin with number %d: want 0", rows, cols, first)
	}
	total := len(a.blocks) / bf12AsideBytes
	for r := range rows {
		lo, hi := a.Row(r)
		if hi < lo || hi > total || r == rows-1 && hi != total {
			return fmt.Errorf("metal: BF12 of %d×%d: row %d's blocks aside are from number %d to %d: want ascending ones of %d", rows, cols, r, lo, hi, total)
		}
		for i, last := lo, -1; i < hi; i++ {
			b := a.Block(i)
			if b <= last || b >= cols/BF12Block {
				return fmt.Errorf("metal: BF12 of %d×%d: row %d keeps block %d aside: want ascending numbers under %d", rows, cols, r, b, cols/BF12Block)
			}
			last = b
		}
	}
	return nil
}

// BF12Aside is what a BF12 matrix keeps beside its blocks.
type BF12Aside struct {
	Exponents      []byte // of the 16 codes
	starts, blocks []byte
}

// Aside reads a BF12 matrix's Scales.
func (w *Matrix) Aside() BF12Aside { return bf12Aside(w.Rows, w.Scales) }

func bf12Aside(rows int, b []byte) BF12Aside {
	head := 16 + 4*(rows+1)
	return BF12Aside{b[:16], b[16:head], b[head:]}
}

// Row is the numbers of row r's blocks aside: lo … hi-1.
func (a *BF12Aside) Row(r int) (lo, hi int) {
	return int(binary.LittleEndian.Uint32(a.starts[4*r:])), int(binary.LittleEndian.Uint32(a.starts[4*r+4:]))
}

// None says whether n rows from r keep no block aside.
func (a *BF12Aside) None(r, n int) bool {
	return binary.LittleEndian.Uint32(a.starts[4*r:]) == binary.LittleEndian.Uint32(a.starts[4*(r+n):])
}

// Block is the place in its row of block number i, in blocks.
func (a *BF12Aside) Block(i int) int {
	return int(binary.LittleEndian.Uint32(a.blocks[i*bf12AsideBytes:]))
}

// BF16 is the weights of block number i.
func (a *BF12Aside) BF16(i int) []byte {
	return a.blocks[i*bf12AsideBytes+4 : (i+1)*bf12AsideBytes]
}

// UnpackBF12 writes row r as BF16, in order, to 2·w.Cols bytes.
func UnpackBF12(bf16 []byte, w *Matrix, r int) {
	a := w.Aside()
	size := w.Format.RowBytes(w.Cols)
	for b, row := 0, w.Data[r*size:(r+1)*size]; b < len(row); b += BF12BlockBytes {
		block, out := row[b:b+BF12BlockBytes], bf16[b/BF12BlockBytes*2*BF12Block:]
		for i := range BF12Block {
			raw := block[i/2+i%2*16]
			e := a.Exponents[block[32+i/2]>>(i%2*4)&15]
			out[2*i], out[2*i+1] = raw&0x7f|e<<7, raw&0x80|e>>1
		}
	}
	lo, hi := a.Row(r)
	for i := lo; i < hi; i++ {
		copy(bf16[a.Block(i)*2*BF12Block:], a.BF16(i))
	}
}
