//go:build !noasm

package cpu

// levels are the kernels that this CPU can run, from the definition to the fastest: every
// arm64 has NEON. Its matrix products widen in Go.
func levels() []kernels {
	return []kernels{portable, {name: "NEON", dotWhole: dotNEON, f32Dot1x4: f32Dot1x4NEON, axpyWhole: axpyNEON, vectors: neonVectors()}}
}
