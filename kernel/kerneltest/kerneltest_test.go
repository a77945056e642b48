package kerneltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/display"
	"deltafin/kernel/kerneltest"
)

// serveVariable makes the test's own binary a kernel.
const serveVariable = "KERNELTEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		if err := serve(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serve(file string) error {
	c, err := kernel.ReadConnectionFile(file)
	if err != nil {
		return err
	}
	return kernel.Serve(context.Background(), kernel.Options{Connection: c, Interpreter: calculator{}})
}

// calculator is an interpreter for the notebook of the test: "say TEXT", "show ID
// TEXT", "update ID TEXT", "clear", "ask" and "fail".
type calculator struct{}

func (calculator) Language() kernel.Language { return kernel.Language{Name: "calculator"} }

func (calculator) Execute(ctx context.Context, cell kernel.Cell, out kernel.Output) *kernel.CellError {
	for line := range strings.Lines(cell.Code) {
		command, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, text, _ := strings.Cut(rest, " ")
		switch command {
		case "say":
			out.Stream("stdout", rest+"\n")
		case "show":
			out.Display(display.Text(text), id)
		case "update":
			out.Update(display.Text(text), id)
		case "clear":
			out.Clear(rest == "wait")
		case "value":
			out.Result(display.Text(rest))
		case "ask":
			answer, err := out.Input(ctx, rest, false)
			if err != nil {
				return &kernel.CellError{Name: "input", Value: err.Error()}
			}
			out.Stream("stdout", answer)
		case "fail":
			return &kernel.CellError{Name: "failure", Value: rest}
		}
	}
	return nil
}

func (calculator) Evaluate(context.Context, string, string) (display.Bundle, *kernel.CellError) {
	return display.Bundle{}, nil
}
func (calculator) Complete(context.Context, string, int) kernel.Completions {
	return kernel.Completions{}
}
func (calculator) Inspect(context.Context, string, int, int) (display.Bundle, bool) {
	return display.Bundle{}, false
}
func (calculator) IsComplete(string) kernel.Completeness {
	return kernel.Completeness{Status: "unknown"}
}
func (calculator) Comm(context.Context, kernel.CommMessage, kernel.Output) {}
func (calculator) OpenSubshell(string) error                               { return nil }
func (calculator) CloseSubshell(string) error                              { return nil }
func (calculator) Interrupt()                                              {}
func (calculator) Close() error                                            { return nil }

func notebook(cells ...map[string]any) []byte {
	b, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{"kept": true}, "cells": cells})
	if err != nil {
		panic(err)
	}
	return b
}

func code(source any, tags ...string) map[string]any {
	return map[string]any{
		"cell_type": "code", "id": "x", "source": source, "metadata": map[string]any{"tags": tags}, "execution_count": nil, "outputs": []any{},
	}
}

// A notebook runs in a kernel process, from its start to its shutdown.
func TestNotebookInProcess(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := kerneltest.Start(ctx, []string{self, "{connection_file}"}, serveVariable+"=1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	c, err := p.Dial(ctx, kerneltest.Options{Input: func(prompt string, password bool) string { return "answer to " + prompt }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	path := filepath.Join(t.TempDir(), "n.ipynb")
	if err := os.WriteFile(path, notebook(
		map[string]any{"cell_type": "markdown", "source": "# Title", "metadata": map[string]any{}},
		code([]string{"say a\n", "say b\n", "show d1 before\n", "value 42"}),
		code("say gone\nclear wait\nsay kept\nupdate d1 after"),
		code("  "),
		code("fail expected", "raises-exception"),
		code("ask name"),
		code("say x\nfail unexpected"),
		code("say never"),
	), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := kerneltest.ReadNotebook(path)
	if err != nil {
		t.Fatal(err)
	}
	var failure *kerneltest.CellFailure
	if err := n.Run(ctx, c); !errors.As(err, &failure) || failure.Cell != 6 || failure.Evalue != "unexpected" {
		t.Fatalf("Run: %v", err)
	}
	b, err := n.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata map[string]any
		Cells    []struct {
			Count   *int `json:"execution_count"`
			Outputs []map[string]any
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	stream := func(text string) map[string]any {
		return map[string]any{"output_type": "stream", "name": "stdout", "text": text}
	}
	failed := func(value string) map[string]any {
		return map[string]any{"output_type": "error", "ename": "failure", "evalue": value, "traceback": []any{}}
	}
	want := [][]map[string]any{
		nil,
		{
			stream("a\nb\n"),
			{"output_type": "display_data", "data": map[string]any{"text/plain": "after"}, "metadata": map[string]any{}},
			{"output_type": "execute_result", "data": map[string]any{"text/plain": "42"}, "metadata": map[string]any{}, "execution_count": 1.0},
		},
		{stream("kept\n")},
		{},
		{failed("expected")},
		{stream("answer to name")},
		{stream("x\n"), failed("unexpected")},
		{},
	}
	for i, cell := range got.Cells {
		if !reflect.DeepEqual(cell.Outputs, want[i]) {
			t.Errorf("cell %d: outputs %v, want %v", i, cell.Outputs, want[i])
		}
	}
	if got.Metadata["kept"] != true || got.Cells[3].Count != nil || got.Cells[4].Count == nil || *got.Cells[4].Count != 3 {
		t.Errorf("notebook %s", b)
	}

	if _, err := c.Request(ctx, kernel.Control, "shutdown_request", map[string]any{"restart": false}); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(ctx); err != nil {
		t.Errorf("the kernel ended with %v: %s", err, p.Log())
	}
}

func TestBadNotebooks(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{"{", "unexpected end"},
		{`{"nbformat": 3, "cells": []}`, "nbformat: want 4, got 3"},
		{`{"nbformat": 4, "cells": [{"cell_type": "code", "metadata": {}}]}`, "cell 0: want source"},
		{`{"nbformat": 4, "cells": [{"cell_type": "code", "metadata": {}, "source": 3}]}`, "cell 0: source"},
	} {
		if _, err := kerneltest.ParseNotebook([]byte(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", c.content, c.want, err)
		}
	}
	var ne *kerneltest.NotebookError
	if _, err := kerneltest.ReadNotebook(filepath.Join(t.TempDir(), "none.ipynb")); !errors.As(err, &ne) {
		t.Errorf("missing file: %v", err)
	}
}

// A kernel that ends at once is an error with what it said, not a wait.
func TestKernelThatDies(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := kerneltest.Start(ctx, []string{self, "nowhere.json"}, serveVariable+"=1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Dial(ctx, kerneltest.Options{}); err == nil || !strings.Contains(err.Error(), "nowhere.json") {
		t.Errorf("Dial: %v", err)
	}
	if err := p.Wait(ctx); err == nil {
		t.Error("the process ended well")
	}
}
