//go:build unix && !linux

package cell

const inputBytes = 0x4004667f // FIONREAD
