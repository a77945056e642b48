package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"deltafin/kernel"
	"deltafin/kernel/cell"
	"deltafin/kernel/lab"
	"deltafin/rig"
)

type kernelCmd struct {
	ConnectionFile string `required:"" placeholder:"F" help:"Where to listen, as Jupyter writes it."`
	modelFlags
}

func (kernelCmd) Help() string {
	return `Jupyter starts it with the arguments that deltafin install wrote. Logs go to standard error. Example:

    deltafin kernel --connection-file kernel-1234.json --model ~/models/k3`
}

// Run serves one kernel. The engine loads in the background, so that the kernel
// answers at once and only the first cell that needs the engine waits for it.
func (c kernelCmd) Run(p *process) error {
	connection, err := kernel.ReadConnectionFile(c.ConnectionFile)
	if err != nil {
		return err
	}
	options, err := c.options(p)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
	history := "" // in memory
	if state, err := p.stateDir(); err == nil {
		history = filepath.Join(state, "history")
	} else {
		log.Warn("the cells are kept in memory only", "error", err)
	}
	for _, risk := range kernel.Risks(c.ConnectionFile, connection) {
		log.Warn("anyone on this machine or its network may run cells here", "error", risk)
	}
	engine := lab.NewServer(func(ctx context.Context) (lab.Engine, error) {
		r, err := rig.Open(ctx, options)
		if err != nil {
			return lab.Engine{}, err
		}
		template, err := lab.NewTemplate(r.Tokenizer())
		if err != nil {
			return lab.Engine{}, errors.Join(err, r.Close())
		}
		return lab.Engine{Rig: r, Tokenizer: r.Tokenizer(), Template: template}, nil
	})
	modules := "" // in the system's temporary directory
	if cache, err := p.cacheDir(); err == nil {
		modules = filepath.Join(cache, "modules")
	}
	host := cell.New(cell.Options{
		MemoryLimit: memoryForCells(),
		Modules:     modules,
		Services:    engine,
		Language:    language(),
	})
	parent, _ := strconv.Atoi(p.env("JPY_PARENT_PID")) // absent: nobody to watch
	server, err := kernel.Listen(kernel.Options{
		Connection:  connection,
		Interpreter: host,
		History:     history,
		Log:         log,
		ParentPID:   parent,
	})
	if err != nil {
		return errors.Join(err, host.Close(), engine.Close())
	}

	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	served := make(chan struct{})
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		for {
			select {
			case <-interrupts:
				server.Interrupt()
			case <-served:
				return
			}
		}
	}()
	err = server.Serve(ctx)
	signal.Stop(interrupts)
	close(served)
	<-listening
	return errors.Join(err, engine.Close())
}

func language() kernel.Language {
	v := readVersion()
	return kernel.Language{
		Implementation:        "deltafin",
		ImplementationVersion: v.Version,
		Banner: "deltafin " + v.Version + ": cells are Go, and the engine stays warm.\n" +
			`Try Generate("The capital of France is")`,
		HelpLinks: []kernel.HelpLink{
			{Text: "Go language", URL: "https://go.dev/ref/spec"},
			{Text: "Go standard library", URL: "https://pkg.go.dev/std"},
		},
	}
}

// memoryForCells is what the cells' process may allocate: half of the memory that
// there is, so that a cell's mistake can't take the engine's. 0 is no limit, where
// the system doesn't tell.
func memoryForCells() int64 { return machineMemory() / 2 }
