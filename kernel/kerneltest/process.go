package kerneltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"deltafin/kernel"
)

// Connection makes a connection on free ports of the loopback interface, with a new
// key.
func Connection() (kernel.Connection, error) {
	c := kernel.Connection{Transport: "tcp", IP: "127.0.0.1", Key: NewID(), SignatureScheme: "hmac-sha256"}
	for _, port := range []*int{&c.ShellPort, &c.ControlPort, &c.StdinPort, &c.IOPubPort, &c.HBPort} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return c, err
		}
		defer l.Close() // all are held until all are chosen
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return c, nil
}

// Process is a kernel in a process of its own.
type Process struct {
	Connection kernel.Connection
	cmd        *exec.Cmd
	dir        string
	log        *tail
	done       chan struct{} // closed when the process has ended
	err        error         // how; after done
}

// Start runs argv, in which "{connection_file}" stands for the path of a connection
// file, as Jupyter does. environment is added to this process's.
func Start(ctx context.Context, argv []string, environment ...string) (*Process, error) {
	connection, err := Connection()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kernel")
	if err != nil {
		return nil, err
	}
	p := &Process{Connection: connection, dir: dir, log: new(tail), done: make(chan struct{})}
	file := filepath.Join(dir, "connection.json")
	b, err := json.Marshal(connection)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = strings.ReplaceAll(a, "{connection_file}", file)
	}
	p.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), environment...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		os.RemoveAll(dir)
		close(p.done)
	}()
	return p, nil
}

// Dial connects a client; an end of the process ends the attempt.
func (p *Process) Dial(ctx context.Context, o Options) (*Client, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	o.Key = p.Connection.Key
	c, err := Dial(ctx, ZeroMQ(p.Connection), o)
	if err != nil {
		return nil, fmt.Errorf("%w; the kernel said: %s", err, p.Log())
	}
	return c, nil
}

// Log is the end of what the process wrote to its standard streams.
func (p *Process) Log() string { return p.log.String() }

// Wait waits for the process to end and returns its exit error.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("kerneltest: the kernel still runs: %w", ctx.Err())
	}
}

// Kill ends the process and waits for it.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// tail keeps the last bytes written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 16 << 10

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailBytes {
		t.b = bytes.Clone(t.b[len(t.b)-tailBytes:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b[max(0, len(t.b)-tailBytes):])
}
