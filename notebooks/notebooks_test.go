// Package notebooks holds worked notebooks; its tests execute them through the real
// kernel, as a front end does.
package notebooks

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
	"deltafin/kernel/wire"
)

// binary builds deltafin.
func binary(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "deltafin")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", name, "deltafin").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return name
}

// connect starts a kernel and a front end for it.
func connect(t *testing.T, ctx context.Context) (*kerneltest.Process, *kerneltest.Client) {
	t.Helper()
	process, err := kerneltest.Start(ctx, []string{binary(t), "kernel", "--connection-file", "{connection_file}"},
		"DELTAFIN_STATE="+t.TempDir(), "DELTAFIN_MODEL=")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	client, err := process.Dial(ctx, kerneltest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return process, client
}

// shown is all text that a code cell shows, streams and plain results.
func shown(cell *kerneltest.NotebookCell) string {
	var b strings.Builder
	for _, output := range cell.Outputs {
		b.WriteString(output.Text)
		if plain, ok := output.Data["text/plain"].(string); ok {
			b.WriteString(plain)
		}
	}
	return b.String()
}

func TestQuickstart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process, client := connect(t, ctx)
	book, err := kerneltest.ReadNotebook("01-quickstart.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	if err := book.Run(ctx, client); err != nil {
		t.Fatalf("%v\nthe kernel said: %s", err, process.Log())
	}

	// What each code cell must show, by how it begins.
	wants := []struct {
		cell  string
		texts []string
		mime  string
	}{
		{"g := Generate(", []string{" Paris. The Eiffel Tower is located in Paris. The Louvre Museum", "23 tokens", "stopped at the limit"}, ""},
		{"g.Text", []string{" Paris. The Eiffel Tower is located in Paris. The Louvre Museum"}, ""},
		{"words :=", []string{"23 tokens, 11 words, 2 of them Paris\n"}, ""},
		{"again :=", []string{"loading took 0.0 s of it, 5 of 14 prompt tokens were kept\n"}, ""},
		{"answer :=", []string{"The capital of Italy is Rome."}, ""},
		{"type guess", nil, ""},
		{"for _, country", []string{"{Country:France City:Paris}\n{Country:Italy City:Rome}\n{Country:Egypt City:Cairo}\n"}, ""},
		{"trace := TraceRouter", []string{"27 tokens · 16 layers × 64 experts, top 8"}, "application/vnd.vegalite.v5+json"},
		{"fmt.Printf(\"a token", []string{"a token finds 24 % of its experts"}, ""},
		{"PrefetchStats()", []string{"experts needed", "10311", "stall"}, "text/html"},
		{"Logits(", []string{`" Par"`, "0.997"}, "image/svg+xml"},
		{"last :=", []string{"1"}, ""},
	}
	var cells []*kerneltest.NotebookCell
	for _, cell := range book.Cells {
		if cell.Type == "code" {
			cells = append(cells, cell)
		}
	}
	if len(cells) != len(wants) {
		t.Fatalf("%d code cells, and checks for %d", len(cells), len(wants))
	}
	for i, want := range wants {
		cell := cells[i]
		if !strings.HasPrefix(cell.Source, want.cell) {
			t.Errorf("code cell %d begins with %.20q, want %q", i, cell.Source, want.cell)
			continue
		}
		for _, text := range want.texts {
			if !strings.Contains(shown(cell), text) {
				t.Errorf("%s: want %q in what it shows:\n%s", want.cell, text, shown(cell))
			}
		}
		if want.mime != "" && !slices.ContainsFunc(cell.Outputs, func(o *kerneltest.NotebookOutput) bool { return o.Data[want.mime] != nil }) {
			t.Errorf("%s: no output of type %s", want.cell, want.mime)
		}
	}
	for _, fault := range client.Faults() {
		t.Error(fault)
	}

	if x, err := client.Request(ctx, kernel.Control, "shutdown_request", map[string]any{"restart": false}); err != nil || x.Status() != "ok" {
		t.Errorf("shutdown: %v %v", x.Content(), err)
	}
	if err := process.Wait(ctx); err != nil {
		t.Errorf("the kernel's end: %v\n%s", err, process.Log())
	}
}

// A cell that takes its process with it costs the variables, never the engine.
func TestEngineOutlivesCells(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process, client := connect(t, ctx)
	run := func(code string) *kerneltest.Exchange {
		t.Helper()
		x, err := client.Execute(ctx, code)
		if err != nil {
			t.Fatalf("%s: %v\nthe kernel said: %s", code, err, process.Log())
		}
		return x
	}
	loads := `g := Generate("The capital of France is", Params{MaxTokens: 2, Quiet: true}); fmt.Print(g.Stats.Loads, g.Text)`
	if x := run(loads); x.Stream("stdout") != "1 Paris" {
		t.Fatalf("first: %q, %v", x.Stream("stdout"), x.Content())
	}
	for _, deadly := range []string{
		"os.Exit(3)",
		"panic(\"here\")",
		"go func() { panic(\"there\") }(); time.Sleep(time.Second)",
		"var f func(int) int; f = func(n int) int { return f(n+1) + 1 }; f(0)",
		"time.AfterFunc(0, func() { panic(\"elsewhere\") }); time.Sleep(time.Second)",
	} {
		x := run(deadly)
		if deadly != "os.Exit(3)" && x.Status() != "error" {
			t.Errorf("%s: status %q, want an error", deadly, x.Status())
		}
		if x := run(loads); x.Stream("stdout") != "1 Paris" {
			t.Errorf("after %s: %q, %v", deadly, x.Stream("stdout"), x.Content())
		}
	}
}

// An interrupted generation gives its text so far, and the next cell runs.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, client := connect(t, ctx)
	x, err := client.Send(kernel.Shell, "execute_request", kerneltest.Cell(`g := Generate("Once upon a time", Params{MaxTokens: 100000})`), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Until(ctx, func(outputs []*wire.Message) bool {
		said := kerneltest.Collect(outputs, nil)
		return len(said) > 0 && strings.Contains(said[0].Text, "when the file")
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Request(ctx, kernel.Control, "interrupt_request", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := x.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	y, err := client.Execute(ctx, `fmt.Print(Last().Finish, Last().Text[:14])`)
	if err != nil {
		t.Fatal(err)
	}
	if got := y.Stream("stdout"); got != "interrupted when the file" {
		t.Errorf("after the interrupt: %q, %v", got, y.Content())
	}
}
