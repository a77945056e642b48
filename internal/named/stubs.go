//go:build amd64 || arm64

package named

import "unsafe"

// Stubs is how many stubs there are: one a method that only a pointer has, two a
// method of a value.
const Stubs = 8192

// closures has what the stubs jump to.
var closures [Stubs]unsafe.Pointer

// firstStub is the code of all stubs, each of stubBytes.
func firstStub() unsafe.Pointer

// stub is the code of the i-th stub.
func stub(i int) unsafe.Pointer { return unsafe.Add(firstStub(), i*stubBytes) }
