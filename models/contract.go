package models

// Contract for now; the author of models replaces this file.

// Unpack makes the embedded model name ("nano-k3", "nano-dspark", "nano-qwen") an ordinary
// snapshot directory under cacheDir (once; later calls only check it) and returns that directory.
func Unpack(cacheDir, name string) (dir string, err error) { panic("contract only") }
