//go:build unix && !linux

package cell

// inputBytes asks how many bytes a pipe holds.
const inputBytes = 0x4004667f // FIONREAD
