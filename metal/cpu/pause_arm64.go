//go:build !noasm

package cpu

// pause lets n short moments of a spin pass; n is at least 1.
func pause(n int)
