//go:build noasm || !(amd64 || arm64)

package cpu

// pause lets n short moments of a spin pass; n is at least 1.
func pause(n int) {
	for range n {
		nothing()
	}
}

//go:noinline
func nothing() {}
