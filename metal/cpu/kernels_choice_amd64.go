//go:build !noasm

package cpu

import "golang.org/x/sys/cpu"

//go:generate go -C asm run .

var (
	avx2 = kernels{
		name:     "AVX2",
		bf16Rows: bf16RowsAVX2, bf12Rows: bf12RowsAVX2, bf12Group: 4, bf16Block: bf16BlockAVX2, mx4Rows: mx4RowsAVX2,
		bf16Widen: bf16WidenAVX2, bf12Widen: bf12WidenAVX2, mx4Widen: mx4WidenAVX2, unzip: unzipAVX2,
		tile:      []tileFunc{tile1AVX2, tile2AVX2, tile3AVX2},
		mixTile:   []mixFunc{mix1AVX2, mix2AVX2, mix3AVX2},
		axpyWhole: axpyAVX2,
		vectors:   avx2Vectors,
	}
	avx512 = kernels{
		name:     "AVX-512",
		bf16Rows: bf16RowsAVX512, bf12Rows: bf12RowsAVX512, bf12Group: 8, bf16Block: bf16BlockAVX512, mx4Rows: mx4RowsAVX512,
		bf16Widen: bf16WidenAVX512, bf12Widen: bf12WidenAVX512, mx4Widen: mx4WidenAVX512, unzip: unzipAVX512,
		tile:      []tileFunc{tile1AVX512, tile2AVX512, tile3AVX512, tile4AVX512, tile5AVX512, tile6AVX512},
		mixTile:   []mixFunc{mix1AVX512, mix2AVX512, mix3AVX512, mix4AVX512, mix5AVX512, mix6AVX512},
		axpyWhole: axpyAVX512,
		vectors:   avx512Vectors,
	}
)

// levels are the kernels that this CPU can run, from the definition to the fastest.
func levels() []kernels {
	l := []kernels{portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		l = append(l, avx2)
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
			l = append(l, avx512)
		}
	}
	return l
}
