package kernel_test

import (
	"testing"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
)

// From execute_request to reply and idle, over loopback.
func BenchmarkRoundTrip(b *testing.B) {
	k := start(b, "tcp", kernel.Options{})
	c := k.client(kerneltest.Options{})
	for b.Loop() {
		k.run(c, "print x")
	}
}

// What a cell writes until the front end has it, signed and in JSON.
func BenchmarkFlood(b *testing.B) {
	k := start(b, "tcp", kernel.Options{})
	c := k.client(kerneltest.Options{})
	b.SetBytes(16 << 20)
	for b.Loop() {
		k.run(c, "flood 16")
	}
}
