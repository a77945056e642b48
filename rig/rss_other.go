//go:build !linux && !darwin

package rig

// residentBytes tells nothing on this system.
func residentBytes() (now, peak int64) { return 0, 0 }
