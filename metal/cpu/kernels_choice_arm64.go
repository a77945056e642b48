//go:build !noasm

package cpu

// levels are the kernels that this CPU can run, from the definition to the fastest: every
// arm64 has NEON.
func levels() []kernels {
	return []kernels{portable, {name: "NEON", axpyWhole: axpyNEON, vectors: neonVectors()}}
}
