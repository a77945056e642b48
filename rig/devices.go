package rig

import "deltafin/metal/cpu"

// Devices names what can compute on this machine, the default first, and says why one
// doesn't use all CPUs.
func Devices() []string {
	device := cpu.Open(cpu.Options{})
	defer device.Close()
	name := device.Name()
	if _, why := cpu.Processors(); why != "" {
		name += " (" + why + ")"
	}
	return []string{name}
}
