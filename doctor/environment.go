package doctor

import (
	"context"
	"net"
	"sync"

	"deltafin/kernelspec"
)

// Environment is what the checks look at.
type Environment struct {
	System  kernelspec.System
	Binary  string // this program's file, as it was when the process began
	Version string // as "deltafin version" says it
	Device  string // what computes, and with which code
	Dir     string // where the program was started; "" is not looked at

	State, Cache       string // folders; "" where none is known
	StateErr, CacheErr error  // why
	Unpacked           int64  // bytes that the embedded model takes in Cache

	Model           string                                                // that a kernel takes whose spec names none
	Inspect         func(model string) (dir string, bytes int64, _ error) // reads a model's headers
	Memory          int64                                                 // bytes that this process may have; 0 is unknown
	MemoryAvailable int64                                                 // bytes of it that are free; 0 is unknown
	LookPath        func(program string) (string, error)
	// Output runs a program and gives its standard output; the error may be an
	// *exec.ExitError, with the standard error.
	Output func(ctx context.Context, program string, args ...string) ([]byte, error)
	Listen func(network, address string) (net.Listener, error)

	// Kernel is the command of the kernel that is started; "{connection_file}" stands
	// for the connection file.
	Kernel []string
}

// Checks are all checks, in the order in which one thing needs another.
func Checks(e Environment) []Check {
	var once sync.Once
	var found []python
	pythons := func(ctx context.Context) []python {
		once.Do(func() { found = e.pythons(ctx) })
		return found
	}
	return []Check{
		{"binary", func(context.Context) []Finding { return e.binary() }},
		{"cpu", func(context.Context) []Finding { return []Finding{okf("%s", e.Device)} }},
		{"descriptors", func(context.Context) []Finding { return e.descriptors(descriptorLimit()) }},
		{"state", func(context.Context) []Finding { return e.state() }},
		{"cache", func(context.Context) []Finding { return e.cache() }},
		{"memory", func(context.Context) []Finding { return e.memory() }},
		{"loopback", func(context.Context) []Finding { return e.loopback() }},
		{"jupyter", func(ctx context.Context) []Finding { return e.jupyter(ctx, pythons(ctx)) }},
		{"runtime", func(ctx context.Context) []Finding { return e.runtime(pythons(ctx)) }},
		{"kernelspec", func(ctx context.Context) []Finding { return e.kernelspecs(ctx, pythons(ctx)) }},
		{"kernel", func(ctx context.Context) []Finding { return e.kernel(ctx) }},
	}
}
