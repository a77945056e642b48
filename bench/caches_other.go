//go:build !linux

package bench

// caches is what CPUs usually have: here the system isn't asked.
func caches() Caches { return usualCaches }
