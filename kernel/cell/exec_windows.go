package cell

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// descendants are the processes that pid started, and those that they started.
func descendants(pid int) []int {
	h, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(h)
	parents := map[int]int{}
	e := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(h, &e); err == nil; err = windows.Process32Next(h, &e) {
		parents[int(e.ProcessID)] = int(e.ParentProcessID)
	}
	return below(pid, parents)
}
