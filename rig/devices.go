package rig

import "deltafin/metal/cpu"

// Devices names what can compute on this machine, the default first.
func Devices() []string {
	device := cpu.Open(cpu.Options{})
	defer device.Close()
	return []string{device.Name()}
}
