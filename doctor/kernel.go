package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"deltafin/kernel"
)

// kernelTime bounds the whole life of the kernel that is started.
const kernelTime = 90 * time.Second

// kernel starts one, as Jupyter does, asks it who it is, runs a cell and shuts it down.
func (e Environment) kernel(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, kernelTime)
	defer cancel()
	const want = "a kernel that starts, runs a cell and ends"
	connection, err := freeConnection(e.Listen)
	if err != nil {
		return []Finding{problem(want, "no free ports: "+reason(err), "see the line about loopback")}
	}
	dir, err := os.MkdirTemp("", "deltafin-doctor-")
	if err != nil {
		return []Finding{problem(want, "no folder for its connection file: "+err.Error(), "make the system's temporary folder writable, or set TMPDIR to another")}
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "connection.json")
	content, err := json.Marshal(connection)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		return []Finding{problem(want, err.Error(), "make room in the system's temporary folder")}
	}

	log := filepath.Join(dir, "log")
	run, err := startKernel(ctx, e.Kernel, file, log)
	if err != nil {
		return []Finding{problem(want, err.Error(), "")}
	}
	defer run.kill()
	times, err := run.live(connection)
	if err != nil {
		found := err.Error()
		if text, _ := os.ReadFile(log); len(text) > 0 {
			found += "; it said: " + lastLine(string(text))
		}
		return []Finding{problem(want, found, "start it by hand to see more: deltafin kernel --connection-file F")}
	}
	return []Finding{okf("answered after %s, ran 1+1 in %s, ended in %s", seconds(times[0]), seconds(times[1]), seconds(times[2]))}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// freeConnection makes a connection on free ports of the loopback interface.
func freeConnection(listen func(network, address string) (net.Listener, error)) (kernel.Connection, error) {
	c := kernel.Connection{Transport: "tcp", IP: "127.0.0.1", Key: newID(), SignatureScheme: "hmac-sha256", KernelName: "deltafin"}
	for _, port := range []*int{&c.ShellPort, &c.ControlPort, &c.StdinPort, &c.IOPubPort, &c.HBPort} {
		l, err := listen("tcp", "127.0.0.1:0")
		if err != nil {
			return c, err
		}
		defer l.Close() // all are held until all are chosen
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return c, nil
}

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// running is a kernel's process. Its context ends with it.
type running struct {
	ctx   context.Context
	cmd   *exec.Cmd
	began time.Time
	ended chan struct{} // closed when the process has ended
	err   error         // how; after ended
}

func startKernel(ctx context.Context, argv []string, file, log string) (*running, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = strings.ReplaceAll(a, "{connection_file}", file)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := &running{ctx: ctx, cmd: exec.Command(args[0], args[1:]...), began: time.Now(), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = out, out
	r.cmd.Dir = filepath.Dir(file)
	if err := r.cmd.Start(); err != nil {
		cancel(err)
		return nil, err
	}
	go func() {
		r.err = r.cmd.Wait()
		cancel(fmt.Errorf("it ended too early: %w", cmp.Or(r.err, errors.New("exit status 0"))))
		close(r.ended)
	}()
	return r, nil
}

// kill ends the process, if it hasn't ended, and waits for it.
func (r *running) kill() {
	select {
	case <-r.ended:
	default:
		r.cmd.Process.Kill()
		<-r.ended
	}
}

// live is a kernel's life; times are how long it took to answer, to run a cell and to
// end.
func (r *running) live(connection kernel.Connection) (times [3]time.Duration, err error) {
	fail := func(doing string, err error) ([3]time.Duration, error) {
		if errors.Is(err, io.EOF) || errors.As(err, new(*net.OpError)) { // likely the process has ended
			select {
			case <-r.ended:
			case <-time.After(time.Second):
			}
		}
		if cause := context.Cause(r.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
			if errors.Is(cause, context.DeadlineExceeded) {
				err = fmt.Errorf("nothing happened within %v", kernelTime)
			}
		}
		return times, fmt.Errorf("while %s: %w", doing, err)
	}
	c, err := dial(r.ctx, connection)
	if err != nil {
		return fail("connecting to it", err)
	}
	defer c.close()
	if _, err := c.ask(kernel.Shell, "kernel_info_request", nil); err != nil {
		return fail("asking who it is", err)
	}
	times[0] = time.Since(r.began)

	began := time.Now()
	result, err := c.execute("1+1")
	if err != nil {
		return fail("running 1+1", err)
	}
	if result != "2" {
		return fail("running 1+1", fmt.Errorf("it gave %q", result))
	}
	times[1] = time.Since(began)

	began = time.Now()
	if _, err := c.ask(kernel.Control, "shutdown_request", map[string]any{"restart": false}); err != nil {
		return fail("shutting it down", err)
	}
	select {
	case <-r.ended:
	case <-time.After(10 * time.Second):
		return fail("shutting it down", errors.New("it still runs after 10 s"))
	}
	if r.err != nil {
		return fail("shutting it down", r.err)
	}
	times[2] = time.Since(began)
	return times, nil
}
