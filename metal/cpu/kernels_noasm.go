//go:build (!amd64 && !arm64) || noasm

package cpu

// levels are the kernels that this CPU can run: the definition.
func levels() []kernels { return []kernels{portable} }
