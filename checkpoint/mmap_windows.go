package checkpoint

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapFile maps f read-only. The mapping outlives f.
func mapFile(f *os.File, size int64) (data []byte, release func() error, err error) {
	if size == 0 {
		return nil, func() error { return nil }, nil
	}
	section, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, uint32(uint64(size)>>32), uint32(size), nil)
	if err != nil {
		return nil, nil, os.NewSyscallError("CreateFileMapping", err)
	}
	defer windows.CloseHandle(section) // the view keeps it
	address, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is not memory of Go's, so the collector does not mind.
	view := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	return unsafe.Slice((*byte)(view), size), func() error {
		return os.NewSyscallError("UnmapViewOfFile", windows.UnmapViewOfFile(address))
	}, nil
}

// syncDir does nothing: Windows has no such call, and its renames are logged.
func syncDir(string) error { return nil }
