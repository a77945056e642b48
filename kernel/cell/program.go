package cell

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/traefik/yaegi/stdlib"
)

// beProgram gives package flag and os.Args what they have when a program begins.
func beProgram() {
	os.Args = []string{"cell"}
	flag.CommandLine = newFlags(flag.ExitOnError)
}

// newFlags are no flags of the command line.
func newFlags(handling flag.ErrorHandling) *flag.FlagSet {
	flags := flag.NewFlagSet(os.Args[0], handling)
	flags.Usage = func() { flag.Usage() }
	return flags
}

// flagSymbols are names of package flag for cells. A function that defines a flag of the
// command line replaces one of the same name, which an earlier cell, or the same cell when
// it ran before, has defined.
func (c *child) flagSymbols() map[string]reflect.Value {
	symbols := map[string]reflect.Value{
		"CommandLine": reflect.ValueOf(&flag.CommandLine).Elem(),
		"Parse":       reflect.ValueOf(func() { c.parseFlags(flag.CommandLine, os.Args[1:]) }),
	}
	for _, name := range []string{
		"Bool", "BoolFunc", "BoolVar", "Duration", "DurationVar", "Float64", "Float64Var", "Func", "Int", "Int64", "Int64Var",
		"IntVar", "String", "StringVar", "TextVar", "Uint", "Uint64", "Uint64Var", "UintVar", "Var",
	} {
		define := stdlib.Symbols["flag/flag"][name]
		at := 0 // the parameter that is the flag's name
		for define.Type().In(at) != reflect.TypeFor[string]() {
			at++
		}
		symbols[name] = reflect.MakeFunc(define.Type(), func(args []reflect.Value) []reflect.Value {
			if name := args[at].String(); flag.Lookup(name) != nil {
				flag.CommandLine = flagsWithout(name)
			}
			return define.Call(args)
		})
	}
	return symbols
}

// flagsWithout are the flags of the command line but for one.
func flagsWithout(name string) *flag.FlagSet {
	flags := newFlags(flag.CommandLine.ErrorHandling())
	flags.SetOutput(flag.CommandLine.Output())
	flag.VisitAll(func(f *flag.Flag) {
		if f.Name != name {
			flags.Var(f.Value, f.Name, f.Usage)
			flags.Lookup(f.Name).DefValue = f.DefValue
		}
	})
	return flags
}

// setArguments gives os.Args, and the command line's flags their defaults, as when a
// program begins.
func setArguments(args ...string) {
	os.Args = append([]string{"cell"}, args...)
	flag.CommandLine = flagsWithout("")
	flag.VisitAll(func(f *flag.Flag) {
		if g, ok := f.Value.(flag.Getter); ok { // a flag of another kind may do something when it is set
			g.Set(f.DefValue)
		}
	})
}

// parseFlags is (*flag.FlagSet).Parse for cells: where it would end the process, it ends
// the cell.
func (c *child) parseFlags(f *flag.FlagSet, args []string) error {
	if f.ErrorHandling() != flag.ExitOnError {
		return f.Parse(args)
	}
	f.Init(f.Name(), flag.ContinueOnError)
	err := f.Parse(args)
	f.Init(f.Name(), flag.ExitOnError)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.exit(0)
	case err != nil:
		c.exit(2)
	}
	return err
}

// started is a command that a method is called of: one that is to have os.Stdin gets
// none, for nobody would know that it waits for input.
func started(cmd *exec.Cmd) *exec.Cmd {
	if cmd != nil && cmd.Process == nil && stdinPiped && cmd.Stdin == os.Stdin {
		cmd.Stdin = nil
	}
	return cmd
}

// handlers are what cells have http.DefaultServeMux do. A cell that is run again handles
// its patterns again.
type handlers struct{ by sync.Map } // pattern → *handler

type handler struct{ now atomic.Pointer[http.Handler] }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*h.now.Load()).ServeHTTP(w, r) }

func (m *handlers) handle(pattern string, h http.Handler) {
	if h == nil {
		http.Handle(pattern, nil) // which panics
	}
	x := &handler{}
	x.now.Store(&h)
	if old, ok := m.by.Load(pattern); ok {
		old.(*handler).now.Store(&h)
		return
	}
	http.Handle(pattern, x)
	m.by.Store(pattern, x)
}

func (m *handlers) symbols() map[string]reflect.Value {
	return map[string]reflect.Value{
		"Handle": reflect.ValueOf(m.handle),
		"HandleFunc": reflect.ValueOf(func(pattern string, f func(http.ResponseWriter, *http.Request)) {
			if f == nil {
				http.HandleFunc(pattern, nil) // which panics
			}
			m.handle(pattern, http.HandlerFunc(f))
		}),
	}
}
