package cell

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// beProgram gives package flag and os.Args what they have when a program begins.
func beProgram() {
	os.Args = []string{"cell"}
	flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
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

// flagSymbols are the functions of package flag that define a flag. A cell that is run
// again defines its flags again: the later one takes the earlier one's place.
func flagSymbols() map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for _, f := range []any{
		flag.Bool, flag.BoolFunc, flag.BoolVar, flag.Duration, flag.DurationVar, flag.Float64, flag.Float64Var, flag.Func, flag.Int, flag.Int64, flag.Int64Var,
		flag.IntVar, flag.String, flag.StringVar, flag.TextVar, flag.Uint, flag.Uint64, flag.Uint64Var, flag.UintVar, flag.Var,
	} {
		v := reflect.ValueOf(f)
		name := 0
		for v.Type().In(name).Kind() != reflect.String {
			name++
		}
		_, short, _ := strings.Cut(runtime.FuncForPC(v.Pointer()).Name(), ".")
		out[short] = reflect.MakeFunc(v.Type(), func(in []reflect.Value) []reflect.Value {
			forgetFlag(in[name].String())
			return v.Call(in)
		})
	}
	return out
}

// forgetFlag takes a flag out of flag.CommandLine.
func forgetFlag(name string) {
	set := flag.CommandLine
	if set.Lookup(name) == nil {
		return
	}
	rest := flag.NewFlagSet(set.Name(), set.ErrorHandling())
	rest.SetOutput(set.Output())
	rest.Usage = set.Usage
	set.VisitAll(func(f *flag.Flag) {
		if f.Name != name {
			rest.Var(f.Value, f.Name, f.Usage)
			rest.Lookup(f.Name).DefValue = f.DefValue
		}
	})
	*set = *rest
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
