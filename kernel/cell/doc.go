// Package cell runs Go cells for the kernel, in a child process of the same
// binary, so that nothing that a cell does can lose the engine.
//
// # Two halves
//
// The parent's half is Host, which implements kernel.Interpreter: it starts the
// child, feeds it cells, hands its outputs to the front ends, serves its calls
// through Services, interrupts it, and starts another when it dies. The child's
// half is ChildMain, which the program's main calls under a hidden command. What
// the cells see beside plain Go comes from Bindings, whose functions reach the
// parent through a Session.
//
// # A cell's way
//
//	split    split.go      cut the text into imports, declarations and statements
//	check    check.go      go/types, against what earlier cells declared (table.go)
//	                       and the standard library (stdapi.go, reflectpkg.go)
//	lower    lower.go      into what the interpreter runs: typed variables,
//	                       constants as values, generic code for its types
//	                       (generics.go), loops over functions (rangefunc.go),
//	                       methods as functions (methods.go), types as reflect
//	                       types that compiled code knows too (rtype.go), and one
//	                       function of the statements
//	run      eval.go       by yaegi; errors.go words compile errors and panics,
//	                       package display values
//
// Packages of modules come from modules.go, which runs the go command for %get, and
// packages.go, which parses and checks them; gotten.go lowers what cells reach of them.
//
// complete.go, inspect.go and iscomplete.go answer front ends without running
// anything, and help.go answers cells such as "name?". They work from a probe of the
// unfinished cell (probe.go, unfinished.go), which go/types checks against the
// outlook that the last cell left (outlook.go), and so never wait for a cell;
// stddoc.go has the standard library's documentation.
//
// The table keeps every version of every name: a later declaration hides an earlier
// one, variables declared again with the same type stay the same variable,
// imports and declarations of different cells replace each other, and functions
// that named what is replaced are compiled again where they still fit.
//
// # Protocol
//
// The halves exchange frames over the child's standard input and output: two
// lengths of four bytes, big-endian, then one JSON object with the fields op, id,
// cell, name, count, error and data, and a text; each op uses some. A frame has at
// most 64 MiB. From the parent:
//
//	hello        once, first: data {memory_limit, modules}
//	execute      id is the cell: data {code, count, subshell, silent, stdin}
//	interrupt    stop the cell or request id
//	interrupt_callbacks      stop the functions that the widgets have called
//	request      evaluate, complete, inspect, comm, open_subshell, close_subshell
//	ack          count bytes of the cell's output have been shown
//	event, return            of the call id
//	input_reply              to the input id
//
// and from the child:
//
//	ready
//	stream, display, update, result, page, clear, comm, exit      output of cell
//	done         the cell id ended: data {error}
//	answer       to the request id: data {value, error}
//	call, event_ack, cancel      of a service call id: name, data
//	input        id: ask the front end
//
// Numbers of cells and requests are the parent's, those of calls and inputs the
// child's. A cell may have 1 MiB of output on its way before it waits for acks,
// and a call 256 events: a slow front end holds the cell that prints and nothing
// else, and neither half's reader ever waits.
//
// The child moves the frames to descriptors of its own and gives the cells pipes:
// a write to descriptor 1, by whatever route, is output of the cell. Descriptor 2
// stays the parent's: what the Go runtime says there when it ends the process
// becomes the cell's error. The child ends when its standard input does.
//
// A goroutine's output belongs to the cell that started it, directly or not, for
// as long as it lives; profiler labels, which goroutines inherit, tell. A timer's
// goroutine has none and prints into the latest cell.
//
// # Interrupts
//
// An interrupt stops the interpreted goroutines of that one cell at their next
// step, ends its sleeps, channel operations and calls of services, and leaves
// variables, closures and the goroutines of other cells alone. Compiled code that
// waits for something else is left behind after 80 ms, and a call of the kernel
// process after 400; it can run no more of the cell. A child that answers nothing is killed after
// Options.InterruptGrace.
//
// An interrupt that finds no cell running ends the functions that widgets have called
// (callback.go), one by one as it ends cells; that of a cell leaves them alone.
//
// An interrupt also ends the programs whose exec.Cmd the cell made, with what they
// started. The others end with the child, however it ends and also when the kernel
// is killed: the child leads a process group, which is killed with it. A program
// that makes a session or group of its own is left alone.
//
// # Limits
//
// A memory limit that the process is held to exists on Linux only. Bytes written
// to the child's own handles are lost on Windows, and programs that cells started
// outlive the child there, where os.Stdin is empty (fmt.Scan and the exported Input
// ask the front end). docs/cells.md lists what Go has and cells haven't.
package cell
