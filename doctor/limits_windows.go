package doctor

// descriptorLimit is 0: handles are bounded by memory.
func descriptorLimit() uint64 { return 0 }
