package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/mattn/go-isatty"
)

// process is what a command may know of the process that it runs in.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	out            *checkedWriter // behind stdout
	env            func(string) string

	talks    bool // standard input is a terminal: a person can converse
	watched  bool // standard error is a terminal: show progress
	coloured bool // standard error is a terminal that wants colours
}

func newProcess() *process {
	out := &checkedWriter{w: os.Stdout}
	return &process{
		stdin:    os.Stdin,
		stdout:   out,
		stderr:   os.Stderr,
		out:      out,
		env:      os.Getenv,
		talks:    isTerminal(os.Stdin),
		watched:  isTerminal(os.Stderr),
		coloured: isTerminal(os.Stderr) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

func isTerminal(f *os.File) bool {
	return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd())
}

// checkedWriter remembers the first failed write, so that a full disk is not
// mistaken for success.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(b)
	c.err = err
	return n, err
}

func (p *process) print(text string)                 { io.WriteString(p.stdout, text) }
func (p *process) printf(format string, args ...any) { fmt.Fprintf(p.stdout, format, args...) }

// printJSON writes v as one line.
func (p *process) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// count is n with the noun, in the plural where it is due.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// faint marks text for standard error as secondary, on a terminal with colours.
func (p *process) faint(text string) string {
	if !p.coloured {
		return text
	}
	return "\x1b[2m" + text + "\x1b[0m"
}

// interruptible returns a context that Ctrl-C cancels; a second Ctrl-C ends the
// process at once. The caller calls stop.
func (p *process) interruptible() (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// stateDir is where deltafin keeps what should outlive it, such as history.
func (p *process) stateDir() (string, error) {
	if dir := p.env("DELTAFIN_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	if runtime.GOOS == "linux" {
		if dir := p.env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "deltafin"), nil
		}
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for state: %w; set DELTAFIN_STATE to a directory", err)
		}
		return filepath.Join(home, ".local", "state", "deltafin"), nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no place for state: %w; set DELTAFIN_STATE to a directory", err)
	}
	return filepath.Join(dir, "deltafin"), nil
}

// cacheDir is where deltafin keeps what it can make again, such as the unpacked
// embedded models.
func (p *process) cacheDir() (string, error) {
	if dir := p.env("DELTAFIN_STATE"); dir != "" {
		abs, err := filepath.Abs(dir)
		return filepath.Join(abs, "cache"), err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for unpacked models: %w; set DELTAFIN_STATE to a directory", err)
	}
	return filepath.Join(dir, "deltafin"), nil
}
