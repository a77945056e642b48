//go:build !noasm

package cpu

// levels are the kernels that this CPU can run, from the definition to the fastest: every
// arm64 has NEON.
func levels() []kernels {
	return []kernels{portable, {name: "NEON", bf16Dot4: bf16Dot4NEON, mx4Dot4: mx4Dot4NEON, f32Dot1x4: f32Dot1x4NEON, axpyWhole: axpyNEON, vectors: neonVectors()}}
}
