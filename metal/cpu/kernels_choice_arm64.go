//go:build !noasm

package cpu

var neon = kernels{
	name:     "NEON",
	bf16Rows: bf16RowsNEON, bf12Rows: bf12RowsNEON, bf12Group: 4, bf16Block: bf16BlockNEON, mx4Rows: mx4RowsNEON,
	bf16Widen: bf16WidenNEON, bf12Widen: bf12WidenNEON, mx4Widen: mx4WidenNEON, unzip: unzipNEON,
	tile:      []tileFunc{tile1NEON, tile2NEON, tile3NEON, tile4NEON, tile5NEON, tile6NEON},
	mixTile:   []mixFunc{mix1NEON, mix2NEON, mix3NEON, mix4NEON, mix5NEON, mix6NEON},
	axpyWhole: axpyNEON,
	vectors:   neonVectors(),
}

// levels are the kernels that this CPU can run, from the definition to the fastest: every
// arm64 has NEON.
func levels() []kernels { return []kernels{portable, neon} }
