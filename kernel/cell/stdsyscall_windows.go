package cell

import "reflect"

// systemSyscalls are those of syscallSymbols that not every system has.
func systemSyscalls() map[string]reflect.Value { return nil }
