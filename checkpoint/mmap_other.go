//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package checkpoint

import (
	"io"
	"os"
)

// mapFile reads f where there is no mapping.
func mapFile(f *os.File, size int64) (data []byte, release func() error, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, func() error { return nil }, err
}

func syncDir(string) error { return nil }
