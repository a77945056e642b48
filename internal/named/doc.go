// Package named makes defined types at run time: reflect types with a name, a
// package path, fields of any names, and methods that are Go functions. Package
// reflect makes none: its StructOf and FuncOf give types without names, and no
// method can be added to any.
//
// What it makes is what the compiler would have written, so that everything that
// asks a value for its type finds what the name promises: type assertions and
// switches, package fmt, encoders, errors.As, maps with keys of interface types.
//
// # How
//
// A type is a block of the layout that internal/abi describes, on the heap. Its
// names, types and method code are known to the runtime by the negative offsets of
// reflect.addReflectOff, which package reflect uses for the types that it makes. A
// method's code is one of a fixed table of stubs in assembly, each of which jumps
// to the closure in its own place of a table; the closures are those of
// reflect.MakeFunc, which know how to take arguments from registers.
//
// Types are never freed, as the runtime keeps no count of who refers to them. A
// method takes one or two of the stubs, of which there are Stubs.
//
// The layouts are those of Go 1.26; a test compares them with what the compiler
// writes.
package named
