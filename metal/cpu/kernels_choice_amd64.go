//go:build !noasm

package cpu

import "golang.org/x/sys/cpu"

//go:generate go -C asm run .

// levels are the kernels that this CPU can run, from the definition to the fastest.
func levels() []kernels {
	l := []kernels{portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		l = append(l, kernels{name: "AVX2", bf16Dot4: bf16Dot4AVX2, mx4Dot4: mx4Dot4AVX2, f32Dot1x4: f32Dot1x4AVX2, axpyWhole: axpyAVX2, vectors: avx2Vectors})
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
			l = append(l, kernels{name: "AVX-512", bf16Dot4: bf16Dot4AVX512, mx4Dot4: mx4Dot4AVX512, f32Dot1x4: f32Dot1x4AVX512, axpyWhole: axpyAVX512, vectors: avx512Vectors})
		}
	}
	return l
}
