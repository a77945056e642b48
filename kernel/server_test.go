package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
	"deltafin/kernel/wire"
)

// running is a kernel under test.
type running struct {
	t          testing.TB
	ctx        context.Context
	fake       *fake
	server     *kernel.Server
	connection kernel.Connection
	dial       kerneltest.Dialer
	log        *syncBuffer
	served     chan error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// transports are those that every test of the protocol runs on.
var transports = []string{"memory", "tcp", "ipc"}

// overTransports runs a test once for each transport, with a kernel of its own.
func overTransports(t *testing.T, test func(t *testing.T, k *running)) {
	for _, name := range transports {
		t.Run(name, func(t *testing.T) {
			if name == "ipc" && runtime.GOOS == "windows" {
				t.Skip("front ends on Windows use tcp")
			}
			test(t, start(t, name, kernel.Options{}))
		})
	}
}

// start serves a fake on a transport. The kernel is stopped, and must end well, when
// the test ends.
func start(t testing.TB, transport string, o kernel.Options) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	k := &running{t: t, ctx: ctx, fake: newFake(), log: new(syncBuffer), served: make(chan error, 1)}
	c, err := kerneltest.Connection()
	if err != nil {
		t.Fatal(err)
	}
	switch transport {
	case "memory":
		if o.Transport != nil {
			break
		}
		m := new(kernel.Memory)
		o.Transport = m
		k.dial = kerneltest.InMemory(m)
	case "ipc":
		c.Transport, c.IP = "ipc", filepath.Join(t.TempDir(), "k")
		fallthrough
	default:
		k.dial = kerneltest.ZeroMQ(c)
	}
	k.connection = c
	o.Connection, o.Interpreter = c, k.fake
	o.Log = slog.New(slog.NewTextHandler(k.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if k.server, err = kernel.Listen(o); err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	go func() { k.served <- k.server.Serve(serving) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-k.served:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve does not return")
		}
		cancel()
		if !k.fake.closed {
			t.Error("the interpreter was not closed")
		}
	})
	return k
}

func (k *running) client(o kerneltest.Options) *kerneltest.Client {
	k.t.Helper()
	o.Key = k.connection.Key
	c, err := kerneltest.Dial(k.ctx, k.dial, o)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		c.Close()
		if f := c.Faults(); len(f) > 0 {
			k.t.Errorf("broken messages from the kernel: %v", f)
		}
	})
	return c
}

// run executes a cell to its end.
func (k *running) run(c *kerneltest.Client, code string) *kerneltest.Exchange {
	k.t.Helper()
	return k.wait(k.send(c, kernel.Shell, "execute_request", kerneltest.Cell(code), ""))
}

func (k *running) send(c *kerneltest.Client, ch kernel.Channel, msgType string, content any, subshell string) *kerneltest.Exchange {
	k.t.Helper()
	x, err := c.Send(ch, msgType, content, subshell)
	if err != nil {
		k.t.Fatal(err)
	}
	return x
}

func (k *running) wait(x *kerneltest.Exchange) *kerneltest.Exchange {
	k.t.Helper()
	if err := x.Wait(k.ctx); err != nil {
		k.t.Fatalf("%v; have %v", err, x.Kinds())
	}
	return x
}

func (k *running) request(c *kerneltest.Client, ch kernel.Channel, msgType string, content any) map[string]any {
	k.t.Helper()
	x := k.wait(k.send(c, ch, msgType, content, ""))
	if _, on := x.Reply(); on != ch {
		k.t.Errorf("%s on %v: the reply came on %v", msgType, ch, on)
	}
	return x.Content()
}

// begin submits a cell and waits until it has printed "begun".
func (k *running) begin(c *kerneltest.Client, code, subshell string) *kerneltest.Exchange {
	k.t.Helper()
	x := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print begun\n"+code), subshell)
	if err := x.Until(k.ctx, func(outputs []*wire.Message) bool {
		return slices.ContainsFunc(outputs, func(m *wire.Message) bool { return m.Header.MsgType == "stream" })
	}); err != nil {
		k.t.Fatal(err)
	}
	return x
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestExecute(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		cell := kerneltest.Cell("print hello\nstderr oh\nshow pic id7\nresult 42")
		cell.UserExpressions = map[string]string{"good": "x", "bad": "bad"}
		x := k.wait(k.send(c, kernel.Shell, "execute_request", cell, ""))
		equal(t, "iopub", x.Kinds(), []string{"busy", "execute_input", "stream", "stream", "display_data", "execute_result", "idle"})
		equal(t, "stdout", x.Stream("stdout"), "hello\n")
		equal(t, "stderr", x.Stream("stderr"), "oh\n")
		equal(t, "result", x.Result(), "42")
		equal(t, "reply", x.Content(), map[string]any{
			"status": "ok", "execution_count": 1.0, "payload": []any{},
			"user_expressions": map[string]any{
				"good": map[string]any{"status": "ok", "data": map[string]any{"text/plain": "value of x"}, "metadata": map[string]any{}},
				"bad":  map[string]any{"status": "error", "ename": "undefined", "evalue": "bad", "traceback": []any{}},
			},
		})
		for _, m := range x.Outputs() {
			if len(m.Identities) != 1 || len(m.Identities[0]) == 0 {
				t.Errorf("%s: topic frames %q", m.Header.MsgType, m.Identities)
			}
			if m.Header.MsgType == "display_data" && !strings.Contains(string(m.Content), `"transient":{"display_id":"id7"}`) {
				t.Errorf("display_data without its id: %s", m.Content)
			}
		}

		// Neither a silent cell nor one outside the history is counted.
		silent := cell
		silent.Silent, silent.StoreHistory = true, true
		x = k.wait(k.send(c, kernel.Shell, "execute_request", silent, ""))
		equal(t, "iopub of a silent cell", x.Kinds(), []string{"busy", "idle"})
		equal(t, "count in a silent cell's reply", x.Content()["execution_count"], 1.0)
		unstored := kerneltest.Cell("print x")
		unstored.StoreHistory = false
		x = k.wait(k.send(c, kernel.Shell, "execute_request", unstored, ""))
		equal(t, "count in an unstored cell's reply", x.Content()["execution_count"], 1.0)
		equal(t, "next count", k.run(c, "print x").Content()["execution_count"], 2.0)
		equal(t, "next count", k.run(c, "print x").Content()["execution_count"], 3.0)
	})
}

func TestCellError(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		x := k.run(c, "print before\nfail sorry")
		equal(t, "iopub", x.Kinds(), []string{"busy", "execute_input", "stream", "error", "idle"})
		equal(t, "reply", x.Content(), map[string]any{
			"status": "error", "ename": "failure", "evalue": "sorry", "traceback": []any{"line 1", "sorry"},
			"execution_count": 1.0, "payload": []any{}, "user_expressions": map[string]any{},
		})
		equal(t, "after a panic in the interpreter", k.run(c, "panic").Status(), "error")
		equal(t, "later cell", k.run(c, "result 1").Status(), "ok")
	})
}

func TestErrorAbortsQueue(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		for _, stop := range []bool{true, false} {
			gate := fmt.Sprint("gate", stop)
			cell := kerneltest.Cell("print begun\nawait " + gate + "\nfail sorry")
			cell.StopOnError = stop
			failing := k.send(c, kernel.Shell, "execute_request", cell, "")
			var queued []*kerneltest.Exchange
			for range 3 {
				queued = append(queued, k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print ran"), ""))
			}
			info := k.send(c, kernel.Shell, "kernel_info_request", map[string]any{}, "")
			k.request(c, kernel.Control, "kernel_info_request", nil) // so that the others have come too
			equal(t, "a request that runs no cell", k.wait(info).Status(), "ok")
			close(k.fake.gate(gate))
			equal(t, "failing cell", k.wait(failing).Status(), "error")
			want, kinds := "ok", []string{"busy", "execute_input", "stream", "idle"}
			if stop {
				want, kinds = "aborted", []string{"busy", "idle"}
			}
			for _, x := range queued {
				equal(t, "queued cell", k.wait(x).Status(), want)
				equal(t, "its iopub", x.Kinds(), kinds)
			}
			equal(t, "later cell", k.run(c, "print ran").Stream("stdout"), "ran\n")
		}
	})
}

func TestInterrupt(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		interrupts := map[string]func(){
			"message": func() { equal(t, "reply", k.request(c, kernel.Control, "interrupt_request", nil)["status"], "ok") },
			"signal":  k.server.Interrupt,
		}
		for how, interrupt := range interrupts {
			interrupt() // of nothing: it must not touch the next cell
			x := k.begin(c, "block", "")
			queued := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print ran"), "")
			// The queued cell has come once a later request on its connection has.
			k.wait(k.send(c, kernel.Shell, "kernel_info_request", nil, "nosuch"))
			interrupt()
			equal(t, how+": interrupted cell", k.wait(x).Content()["ename"], "interrupted")
			equal(t, how+": queued cell", k.wait(queued).Status(), "aborted")
			equal(t, how+": next cell", k.run(c, "print ran").Stream("stdout"), "ran\n")
		}
	})
}

// TestInterruptWithoutCell: where no cell runs, what the comms started is meant.
func TestInterruptWithoutCell(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	interrupts := func() int {
		k.request(c, kernel.Control, "interrupt_request", nil)
		k.fake.mu.Lock()
		defer k.fake.mu.Unlock()
		return k.fake.interrupts
	}
	x := k.begin(c, "block", "")
	equal(t, "during a cell", interrupts(), 0)
	k.wait(x)
	equal(t, "without", interrupts(), 1)
}

func TestStdin(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		var asked []string
		c := k.client(kerneltest.Options{Input: func(prompt string, password bool) string {
			asked = append(asked, fmt.Sprint(prompt, password))
			return "answer\xff" + prompt
		}})
		x := k.run(c, "print before\ninput name\npassword secret")
		equal(t, "stdout", x.Stream("stdout"), "before\ngot answer\uFFFDname\ngot answer\uFFFDsecret\n")
		equal(t, "asked", asked, []string{"namefalse", "secrettrue"})
		cell := kerneltest.Cell("input name")
		cell.AllowStdin = false
		x = k.wait(k.send(c, kernel.Shell, "execute_request", cell, ""))
		equal(t, "not allowed", x.Content()["ename"], "input")
		equal(t, "asked", len(asked), 2)
	})
}

// A front end may answer without naming the question, and interrupt instead.
func TestStdinWithoutParent(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	blocked := make(chan struct{})
	c := k.client(kerneltest.Options{Input: func(prompt string, password bool) string { <-blocked; return "late" }})
	x := k.begin(c, "input name", "")
	_, stale := c.Message("input_reply", map[string]string{"value": "stale"}, nil)
	stale[3] = []byte(`{"msg_id":"of another question"}`) // as parent, unsigned: dropped
	if err := c.SendFrames(kernel.Stdin, stale); err != nil {
		t.Fatal(err)
	}
	_, answer := c.Message("input_reply", map[string]string{"value": "direct"}, nil)
	if err := c.SendFrames(kernel.Stdin, answer); err != nil {
		t.Fatal(err)
	}
	equal(t, "stdout", k.wait(x).Stream("stdout"), "begun\ngot direct\n")
	x = k.begin(c, "input name", "")
	k.server.Interrupt()
	equal(t, "interrupted", k.wait(x).Status(), "error")
	close(blocked)
	equal(t, "next cell", k.run(c, "print ran").Stream("stdout"), "ran\n")
}

func TestOutputOrder(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		x := k.run(c, strings.Repeat("print a\nstderr b\nshow c \nclear\n", 20))
		var got []string
		for _, m := range x.Outputs() {
			switch {
			case m.Header.MsgType == "clear_output":
				got = append(got, "clear")
			case m.Header.MsgType == "stream":
				got = append(got, string(m.Content[12:15]))
			case m.Header.MsgType == "display_data":
				got = append(got, "show")
			}
		}
		equal(t, "order", got, slices.Repeat([]string{"out", "err", "show", "clear"}, 20))
	})
}

func TestOutputText(t *testing.T) {
	k := start(t, "tcp", kernel.Options{})
	c := k.client(kerneltest.Options{})
	x := k.run(c, `write "a\r1\r2"`+"\n"+`write "\xff\xc3"`+"\n"+`write "\xa9\x00\"\\\u2028"`)
	equal(t, "stdout", x.Stream("stdout"), "a\r1\r2\uFFFDé\x00\"\\\u2028")
	x = k.run(c, `write "\xc3"`)
	equal(t, "half a character", x.Stream("stdout"), "\uFFFD")
	x = k.run(c, `write "\xf0\x9f"`+"\nshow x \n"+`write "\xa6\x88"`)
	equal(t, "a character cut by a display", x.Stream("stdout"), "\uFFFD\uFFFD\uFFFD\uFFFD")

	x = k.run(c, "lines 100000")
	var want strings.Builder
	for i := range 100000 {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if got := x.Stream("stdout"); got != want.String() {
		t.Errorf("100,000 lines: got %d bytes, want %d", len(got), want.Len())
	}
	if n := len(x.Outputs()); n > 1000 {
		t.Errorf("100,000 lines came as %d messages; they must be gathered", n)
	}
}

func TestNaN(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	x := k.run(c, "nan")
	for _, m := range x.Outputs() {
		if m.Header.MsgType != "execute_result" {
			continue
		}
		var v struct{ Data map[string]any }
		if err := json.Unmarshal(m.Content, &v); err != nil {
			t.Fatal(err)
		}
		equal(t, "data", v.Data, map[string]any{
			"text/plain":       "NaN\uFFFD",
			"application/json": map[string]any{"x": nil, "y": []any{1.0, nil}, "z": "ok\uFFFD"},
			"bad/thing":        nil,
		})
		return
	}
	t.Errorf("no result: %v", x.Kinds())
}

// What a goroutine prints after its cell belongs to that cell.
func TestLateOutput(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		first := k.run(c, "late gate owl")
		second := k.begin(c, "await end", "")
		close(k.fake.gate("gate"))
		if err := first.Until(k.ctx, func(outputs []*wire.Message) bool {
			return outputs[len(outputs)-1].Header.MsgType == "stream"
		}); err != nil {
			t.Fatal(err)
		}
		close(k.fake.gate("end"))
		equal(t, "first cell", first.Stream("stdout"), "owl\n")
		equal(t, "second cell", k.wait(second).Stream("stdout"), "begun\n")
	})
}

func TestRequests(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		for _, ch := range []kernel.Channel{kernel.Shell, kernel.Control} {
			info := k.request(c, ch, "kernel_info_request", map[string]any{})
			equal(t, "protocol_version", info["protocol_version"], "5.5")
			equal(t, "implementation", info["implementation"], "fake")
			equal(t, "supported_features", info["supported_features"], []any{"kernel subshells"})
			equal(t, "file_extension", info["language_info"].(map[string]any)["file_extension"], ".fake")
		}
		reply := k.request(c, kernel.Shell, "complete_request", map[string]any{"code": "é🎉", "cursor_pos": 99})
		equal(t, "complete_reply", reply, map[string]any{
			"status": "ok", "matches": []any{"upto2"}, "cursor_start": 0.0, "cursor_end": 2.0,
			"metadata": map[string]any{"_jupyter_types_experimental": []any{
				map[string]any{"text": "upto2", "type": "function", "signature": "f()", "start": 0.0, "end": 2.0},
			}},
		})
		reply = k.request(c, kernel.Shell, "inspect_request", map[string]any{"code": "x", "cursor_pos": -3, "detail_level": 1})
		equal(t, "inspect_reply", reply, map[string]any{
			"status": "ok", "found": true, "data": map[string]any{"text/plain": "detail 1 at 0"}, "metadata": map[string]any{},
		})
		reply = k.request(c, kernel.Shell, "inspect_request", map[string]any{"code": "nothing", "cursor_pos": 0})
		equal(t, "inspect_reply", reply, map[string]any{"status": "ok", "found": false, "data": map[string]any{}, "metadata": map[string]any{}})
		equal(t, "is_complete_reply", k.request(c, kernel.Shell, "is_complete_request", map[string]any{"code": "f {"}),
			map[string]any{"status": "incomplete", "indent": "\t"})
		equal(t, "is_complete_reply", k.request(c, kernel.Shell, "is_complete_request", map[string]any{"code": "f"}),
			map[string]any{"status": "complete"})
	})
}

// Bad requests get an error reply between busy and idle.
func TestBadRequests(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	for _, bad := range []struct {
		ch      kernel.Channel
		msgType string
		content any
	}{
		{kernel.Shell, "execute_request", map[string]any{}},
		{kernel.Shell, "execute_request", map[string]any{"code": 12}},
		{kernel.Shell, "execute_request", map[string]any{"code": nil, "silent": "no"}},
		{kernel.Shell, "complete_request", map[string]any{"code": []int{1}}},
		{kernel.Shell, "history_request", map[string]any{"hist_access_type": "elsewhere"}},
		{kernel.Shell, "no_such_request", nil},
		{kernel.Shell, "interrupt_request", nil},
		{kernel.Control, "execute_request", map[string]any{"code": "print x"}},
		{kernel.Control, "delete_subshell_request", map[string]any{"subshell_id": "nosuch"}},
		{kernel.Control, "delete_subshell_request", map[string]any{"subshell_id": ""}},
	} {
		x := k.wait(k.send(c, bad.ch, bad.msgType, bad.content, ""))
		if x.Status() != "error" || x.Content()["evalue"] == "" {
			t.Errorf("%s %v: reply %v", bad.msgType, bad.content, x.Content())
		}
		equal(t, bad.msgType, x.Kinds(), []string{"busy", "idle"})
	}
	x := k.wait(k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print x"), "nosuch"))
	equal(t, "unknown subshell", x.Status(), "error")
	equal(t, "later cell", k.run(c, "print x").Status(), "ok")
}

// Messages that aren't well formed, signed and new are dropped with a line in the
// log.
func TestDroppedMessages(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		good := func() [][]byte {
			_, frames := c.Message("execute_request", kerneltest.Cell("print forged"), nil)
			return frames
		}
		replayed := good()
		if err := c.SendFrames(kernel.Shell, replayed); err != nil {
			t.Fatal(err)
		}
		k.run(c, "print after it")
		altered := good()
		altered[5] = bytes.Replace(altered[5], []byte("forged"), []byte("forgee"), 1)
		unsigned := good()
		unsigned[1] = nil
		bad := [][][]byte{
			{{}}, {[]byte("garbage"), {0xff}}, {[]byte(wire.Delimiter)}, good()[:4], altered, unsigned, replayed,
			slices.Repeat([][]byte{[]byte("x")}, 1000),
		}
		for _, ch := range []kernel.Channel{kernel.Shell, kernel.Control, kernel.Stdin} {
			for _, frames := range bad {
				if err := c.SendFrames(ch, frames); err != nil {
					t.Fatal(err)
				}
			}
		}
		equal(t, "later cell", k.run(c, "print fine").Stream("stdout"), "fine\n")
		equal(t, "control", k.request(c, kernel.Control, "kernel_info_request", nil)["status"], "ok")
		equal(t, "cells that ran", len(k.fake.cells), 3)
		for _, want := range []string{"doesn't fit the connection file's key", "it came before", "without it"} {
			if !strings.Contains(k.log.String(), want) {
				t.Errorf("no log line with %q in:\n%s", want, k.log)
			}
		}
	})
}

// Clients of one session, such as a manager and its client, may use the same msg_id
// for different messages; over one connection it is a replay.
func TestSharedMessageIDs(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		a, b := k.client(kerneltest.Options{}), k.client(kerneltest.Options{})
		same := func(h *wire.Header) { h.MsgID = "session_1_0" }
		for i, c := range []*kerneltest.Client{a, b, a} {
			_, frames := c.Message("execute_request", kerneltest.Cell("print same"), same)
			if err := c.SendFrames(kernel.Shell, frames); err != nil {
				t.Fatal(err)
			}
			k.run(c, "print other")
			if got, want := len(k.fake.cells), []int{2, 4, 5}[i]; got != want {
				t.Errorf("message %d: %d cells have run, want %d", i, got, want)
			}
		}
	})
}

func TestUnsignedKernel(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	k.connection.Key = ""
	// The server took the key at its start; one without a key takes any signature.
	m := new(kernel.Memory)
	f := newFake()
	s, err := kernel.Listen(kernel.Options{Transport: m, Interpreter: f})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(k.ctx)
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	c, err := kerneltest.Dial(k.ctx, kerneltest.InMemory(m), kerneltest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	equal(t, "stdout", k.run(c, "print unsigned").Stream("stdout"), "unsigned\n")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTwoClients(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		a, b := k.client(kerneltest.Options{}), k.client(kerneltest.Options{})
		x := k.run(a, "print mine")
		equal(t, "replies", x.Replies(), 1)
		k.run(b, "print yours")
		var types []string
		for _, m := range b.Strays() {
			types = append(types, m.Header.MsgType)
		}
		equal(t, "what the other sees", types, []string{"status", "execute_input", "stream", "status"})
	})
}

// A front end that comes back with its identity gets the reply, whether it was there
// or not when the cell ended.
func TestReconnect(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		watcher := k.client(kerneltest.Options{})
		gone := 1 // connections to shell that have ended, by the log
		for _, back := range []string{"before", "after"} {
			first := k.client(kerneltest.Options{Identity: "front-end-7"})
			x := k.begin(first, "await "+back, "")
			first.Close()
			for strings.Count(k.log.String(), "channel=shell") < gone {
				time.Sleep(time.Millisecond)
			}
			gone += 2
			var second *kerneltest.Client
			if back == "before" {
				second = k.client(kerneltest.Options{Identity: "front-end-7"})
			}
			close(k.fake.gate(back))
			// The cell has ended when the watcher's has.
			k.run(watcher, "print x")
			if second == nil {
				second = k.client(kerneltest.Options{Identity: "front-end-7"})
			}
			k.run(second, "print y") // its reply comes after the other
			found := false
			for _, m := range second.Strays() {
				found = found || m.Header.MsgType == "execute_reply" && m.ParentHeader().MsgID == x.ID
			}
			if !found {
				t.Errorf("reconnected %s the cell's end: no reply", back)
			}
			second.Close()
			for strings.Count(k.log.String(), "channel=shell") < gone-1 {
				time.Sleep(time.Millisecond)
			}
		}
	})
}

func TestSubshells(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		open := func() string {
			reply := k.request(c, kernel.Control, "create_subshell_request", nil)
			id, _ := reply["subshell_id"].(string)
			if reply["status"] != "ok" || id == "" {
				t.Fatalf("create_subshell_reply %v", reply)
			}
			return id
		}
		a, b := open(), open()
		equal(t, "list", k.request(c, kernel.Control, "list_subshell_request", nil)["subshell_id"], []any{a, b})
		main := k.begin(c, "await main", "")
		in := k.wait(k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print beside"), a))
		equal(t, "beside a busy main shell", in.Stream("stdout"), "beside\n")

		// Each is interrupted by itself.
		inA, inB := k.begin(c, "block", a), k.begin(c, "await b", b)
		equal(t, "reply", k.request(c, kernel.Control, "interrupt_request", map[string]any{"subshell_id": a})["status"], "ok")
		equal(t, "interrupted subshell", k.wait(inA).Status(), "error")
		close(k.fake.gate("b"))
		equal(t, "other subshell", k.wait(inB).Status(), "ok")
		inA = k.begin(c, "await a", a)
		close(k.fake.gate("main"))
		equal(t, "main shell", k.wait(main).Status(), "ok")
		close(k.fake.gate("a"))
		k.wait(inA)

		// With an idle main shell, an interrupt is for the subshells.
		inA = k.begin(c, "block", a)
		k.server.Interrupt()
		equal(t, "interrupted subshell", k.wait(inA).Status(), "error")

		// Deleting ends what runs and aborts what waits.
		inA = k.begin(c, "block", a)
		queued := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print ran"), a)
		k.wait(k.send(c, kernel.Shell, "kernel_info_request", nil, "nosuch"))
		equal(t, "delete", k.request(c, kernel.Control, "delete_subshell_request", map[string]any{"subshell_id": a})["status"], "ok")
		equal(t, "running", k.wait(inA).Status(), "error")
		equal(t, "queued", k.wait(queued).Status(), "aborted")
		equal(t, "list", k.request(c, kernel.Control, "list_subshell_request", nil)["subshell_id"], []any{b})
		k.fake.mu.Lock()
		equal(t, "the interpreter's", k.fake.shells, map[string]bool{b: true})
		k.fake.mu.Unlock()
	})
}

// However many are asked for at once, no more subshells open than may be.
func TestSubshellsAreBounded(t *testing.T) {
	const most = 256
	k := start(t, "memory", kernel.Options{})
	k.fake.opening = make(chan struct{})
	c := k.client(kerneltest.Options{})
	var asked []*kerneltest.Exchange
	for range most + 3 {
		asked = append(asked, k.send(c, kernel.Control, "create_subshell_request", nil, ""))
	}
	for range asked {
		<-k.fake.opening
	}
	close(k.fake.gate("open"))
	refused := 0
	for _, x := range asked {
		if content := k.wait(x).Content(); content["status"] != "ok" {
			refused++
			equal(t, "evalue", content["evalue"], "256 subshells are open; delete one first")
		}
	}
	equal(t, "refused", refused, 3)
	equal(t, "open in the kernel", len(k.request(c, kernel.Control, "list_subshell_request", nil)["subshell_id"].([]any)), most)
	k.fake.mu.Lock()
	equal(t, "open in the interpreter", len(k.fake.shells), most)
	k.fake.mu.Unlock()
}

// A subshell that opens while the kernel ends is closed again, and holds nothing up.
func TestSubshellOpensDuringShutdown(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	k.fake.opening = make(chan struct{})
	c := k.client(kerneltest.Options{})
	k.send(c, kernel.Control, "create_subshell_request", nil, "")
	<-k.fake.opening
	k.send(c, kernel.Control, "shutdown_request", map[string]any{"restart": false}, "") // the fake's Close opens the gate
	err := <-k.served
	k.served <- err // for start
	equal(t, "open in the interpreter", len(k.fake.shells), 0)
}

func TestComms(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		idle := func(x *kerneltest.Exchange) *kerneltest.Exchange {
			t.Helper()
			if err := x.Until(k.ctx, func(outputs []*wire.Message) bool {
				return len(outputs) > 0 && bytes.Contains(outputs[len(outputs)-1].Content, []byte("idle"))
			}); err != nil {
				t.Fatal(err)
			}
			return x
		}
		x := k.run(c, "comm w1 widget")
		equal(t, "iopub", x.Kinds(), []string{"busy", "execute_input", "comm_open", "idle"})
		equal(t, "buffers", x.Outputs()[2].Buffers, [][]byte{{0, 255}})
		x = idle(k.send(c, kernel.Shell, "comm_open", map[string]any{"comm_id": "f1", "target_name": "front", "data": map[string]any{"n": 1}}, ""))
		equal(t, "iopub", x.Kinds(), []string{"busy", "idle"})
		x = idle(k.send(c, kernel.Shell, "comm_open", map[string]any{"comm_id": "f2", "target_name": "unknown", "data": map[string]any{}}, ""))
		equal(t, "iopub", x.Kinds(), []string{"busy", "comm_close", "idle"})
		x = idle(k.send(c, kernel.Shell, "comm_msg", map[string]any{"comm_id": "w1", "data": map[string]any{"v": "é"}}, ""))
		equal(t, "echo", string(x.Outputs()[1].Content), `{"comm_id":"w1","data":{"v":"é"}}`)
		idle(k.send(c, kernel.Shell, "comm_msg", map[string]any{"comm_id": "nobody", "data": map[string]any{}}, ""))
		info := func(content any) any { return k.request(c, kernel.Shell, "comm_info_request", content)["comms"] }
		w1, f1 := map[string]any{"target_name": "widget"}, map[string]any{"target_name": "front"}
		equal(t, "comm_info", info(nil), map[string]any{"w1": w1, "f1": f1})
		equal(t, "comm_info", info(map[string]any{"target_name": "widget"}), map[string]any{"w1": w1})
		idle(k.send(c, kernel.Shell, "comm_close", map[string]any{"comm_id": "w1", "data": map[string]any{}}, ""))
		equal(t, "comm_info", info(nil), map[string]any{"f1": f1})
		k.fake.mu.Lock()
		defer k.fake.mu.Unlock()
		var types []string
		for _, m := range k.fake.comms {
			types = append(types, m.Type+" "+m.ID)
		}
		equal(t, "what the interpreter saw", types, []string{"comm_open f1", "comm_open f2", "comm_msg w1", "comm_close w1"})
	})
}

// TestQuestionsDuringCell: what doesn't run code is answered while a cell runs, and
// the last state that front ends hear is the cell's.
func TestQuestionsDuringCell(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		k.run(c, "comm w1 widget")
		cell := k.begin(c, "await gate", "")
		questions := []struct {
			msgType string
			content any
			busy    int // how often the cell has been said to be busy after it
		}{
			{"complete_request", map[string]any{"code": "ab", "cursor_pos": 2}, 2},
			{"inspect_request", map[string]any{"code": "ab", "cursor_pos": 2}, 3},
			{"is_complete_request", map[string]any{"code": "ab"}, 4},
			{"history_request", map[string]any{"hist_access_type": "tail", "n": 3}, 5},
			{"kernel_info_request", nil, 6},
			{"comm_info_request", nil, 7},
		}
		for _, q := range questions {
			x := k.wait(k.send(c, kernel.Shell, q.msgType, q.content, ""))
			equal(t, q.msgType, x.Kinds(), []string{"busy", "idle"})
			if err := cell.Until(k.ctx, func(outputs []*wire.Message) bool { return len(outputs) == 2+q.busy }); err != nil {
				t.Fatalf("%s: the cell isn't busy again: %v", q.msgType, cell.Kinds())
			}
		}
		x := k.send(c, kernel.Shell, "comm_msg", map[string]any{"comm_id": "w1", "data": map[string]any{}}, "")
		if err := x.Until(k.ctx, func(outputs []*wire.Message) bool { return len(outputs) == 3 }); err != nil {
			t.Errorf("comm_msg waits for the cell: %v", err)
		}
		close(k.fake.gate("gate"))
		k.wait(cell)
		equal(t, "status", cell.Status(), "ok")
		kinds := cell.Kinds()
		equal(t, "the last state", kinds[len(kinds)-1], "idle")
		equal(t, "states after the cell", k.wait(k.send(c, kernel.Shell, "kernel_info_request", nil, "")).Kinds(), []string{"busy", "idle"})
		if n := len(cell.Outputs()); n != len(kinds) {
			t.Errorf("the cell is said to be busy after its end: %v", cell.Kinds())
		}
	})
}

// TestCellSeesEarlierComms: a cell begins when the comm messages that came before it
// have been handled.
func TestCellSeesEarlierComms(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	k.run(c, "comm w1 widget")
	moved := k.send(c, kernel.Shell, "comm_msg", map[string]any{"comm_id": "w1", "data": map[string]any{"Await": "moved"}}, "")
	cell := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print x"), "")
	k.request(c, kernel.Shell, "is_complete_request", map[string]any{"code": "x"})
	if got := cell.Kinds(); len(got) > 0 {
		t.Errorf("the cell began before the comm message was handled: %v", got)
	}
	close(k.fake.gate("moved"))
	k.wait(cell)
	equal(t, "comm_msg", moved.Kinds(), []string{"busy", "comm_msg", "idle"})
	equal(t, "cell", cell.Stream("stdout"), "x\n")
}

// An interpreter that doesn't answer one question keeps none waiting that the server
// answers by itself.
func TestQuestionThatHangs(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	hung := k.send(c, kernel.Shell, "complete_request", map[string]any{"code": "hang", "cursor_pos": 4}, "")
	if err := hung.Until(k.ctx, func(outputs []*wire.Message) bool { return len(outputs) == 1 }); err != nil {
		t.Fatal(err)
	}
	for _, ch := range []kernel.Channel{kernel.Shell, kernel.Control} {
		equal(t, "kernel_info", k.request(c, ch, "kernel_info_request", nil)["status"], "ok")
	}
	equal(t, "is_complete", k.request(c, kernel.Shell, "is_complete_request", map[string]any{"code": "x"})["status"], "complete")
	equal(t, "history", k.request(c, kernel.Shell, "history_request", map[string]any{"hist_access_type": "tail", "n": 1})["status"], "ok")
	close(k.fake.gate("hang"))
	equal(t, "complete", k.wait(hung).Status(), "ok")
}

// A comm message whose handling doesn't end is interrupted, with and without a cell that
// waits for it.
func TestInterruptOfComm(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	k.run(c, "comm w1 widget")
	for _, cell := range []bool{false, true} {
		stuck := k.send(c, kernel.Shell, "comm_msg", map[string]any{"comm_id": "w1", "data": map[string]any{"Await": "never"}}, "")
		if err := stuck.Until(k.ctx, func(outputs []*wire.Message) bool { return len(outputs) == 1 }); err != nil {
			t.Fatal(err)
		}
		var waits *kerneltest.Exchange
		if cell {
			waits = k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("block"), "")
		}
		for len(stuck.Kinds()) < 3 { // it counts as stuck after a while
			k.request(c, kernel.Control, "interrupt_request", nil)
		}
		if cell {
			k.wait(waits)
		}
		equal(t, "next cell", k.run(c, "print ran").Stream("stdout"), "ran\n")
	}
}

// What a front end sends after the reply to its interrupt runs, also when the
// interrupted cell takes its time to end.
func TestCellAfterInterrupt(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	x := k.begin(c, "stubborn gate", "")
	queued := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print ran"), "")
	k.request(c, kernel.Shell, "kernel_info_request", nil)
	k.request(c, kernel.Control, "interrupt_request", nil)
	later := k.send(c, kernel.Shell, "execute_request", kerneltest.Cell("print ran"), "")
	k.request(c, kernel.Shell, "kernel_info_request", nil)
	close(k.fake.gate("gate"))
	equal(t, "interrupted cell", k.wait(x).Content()["ename"], "interrupted")
	equal(t, "queued cell", k.wait(queued).Status(), "aborted")
	equal(t, "later cell", k.wait(later).Stream("stdout"), "ran\n")
}

// So does what it sends after the reply of a cell that a signal interrupted.
func TestCellAfterSignal(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	for range 20 {
		x := k.begin(c, "block", "")
		done := make(chan struct{})
		go func() { defer close(done); k.server.Interrupt() }()
		equal(t, "interrupted cell", k.wait(x).Content()["ename"], "interrupted")
		equal(t, "next cell", k.run(c, "print ran").Stream("stdout"), "ran\n")
		<-done
	}
}

// TestFirstSubscriber: who subscribes first hears what was published before, after the
// welcome; who comes later doesn't.
func TestFirstSubscriber(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		early := k.client(kerneltest.Options{Topics: []string{}})
		x := k.send(early, kernel.Shell, "execute_request", kerneltest.Cell("print early"), "")
		for x.Replies() == 0 {
			if k.ctx.Err() != nil {
				t.Fatal("no reply")
			}
			time.Sleep(time.Millisecond)
		}
		if err := early.SendFrames(kernel.IOPub, [][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
		k.wait(x)
		equal(t, "iopub", x.Kinds(), []string{"busy", "execute_input", "stream", "idle"})
		late := k.client(kerneltest.Options{})
		k.run(late, "print late")
		if s := late.Strays(); len(s) > 0 {
			t.Errorf("the second subscriber heard of what was before it: %s", s[0].Content)
		}
	})
}

// TestPayload: what the front end is to do comes with the reply.
func TestPayload(t *testing.T) {
	k := start(t, "memory", kernel.Options{})
	c := k.client(kerneltest.Options{})
	equal(t, "none", k.run(c, "print x").Content()["payload"], []any{})
	x := k.run(c, "page help text\nexit")
	equal(t, "iopub", x.Kinds(), []string{"busy", "execute_input", "idle"})
	equal(t, "payload", x.Content()["payload"], []any{
		map[string]any{"source": "page", "start": 0.0, "data": map[string]any{"text/plain": "help text"}, "metadata": map[string]any{}},
		map[string]any{"source": "ask_exit", "keepkernel": false},
	})
}

func TestHeartbeat(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		conn, err := k.dial(k.ctx, kernel.Heartbeat, "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := k.client(kerneltest.Options{})
		k.begin(c, "await end", "")
		for _, payload := range [][]byte{[]byte("ping"), bytes.Repeat([]byte{0xff}, 70000)} {
			sent := [][]byte{{}, payload}
			if err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
			if err := conn.Flush(); err != nil {
				t.Fatal(err)
			}
			got, err := conn.Read()
			if err != nil || !reflect.DeepEqual(got, sent) {
				t.Errorf("echo of %d bytes: %d frames, %v", len(payload), len(got), err)
			}
		}
		close(k.fake.gate("end"))
	})
}

// Every subscription is welcomed, also a second one of the same topic elsewhere, and
// brings only its topic.
func TestSubscriptions(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		all := k.client(kerneltest.Options{})
		k.client(kerneltest.Options{})
		streams := k.client(kerneltest.Options{Topics: []string{"stream"}})
		nothing := k.client(kerneltest.Options{Topics: []string{}})
		k.run(all, "print a\nshow b ")
		last := k.send(streams, kernel.Shell, "execute_request", kerneltest.Cell("print c"), "")
		if err := last.Until(k.ctx, func(outputs []*wire.Message) bool { return len(outputs) > 0 }); err != nil {
			t.Fatal(err)
		}
		var types []string
		for _, m := range streams.Strays() {
			types = append(types, m.Header.MsgType)
		}
		equal(t, "streams only", types, []string{"stream"})
		equal(t, "kernel_info without a subscription", func() any {
			x := k.send(nothing, kernel.Control, "kernel_info_request", nil, "")
			for x.Replies() == 0 {
				time.Sleep(time.Millisecond)
			}
			return x.Status()
		}(), "ok")
		equal(t, "strays", len(nothing.Strays()), 0)
	})
}

func TestShutdown(t *testing.T) {
	for _, transport := range transports {
		for _, ch := range []kernel.Channel{kernel.Shell, kernel.Control} {
			for _, restart := range []bool{false, true} {
				t.Run(fmt.Sprint(transport, ch, restart), func(t *testing.T) {
					before := runtime.NumGoroutine()
					k := start(t, transport, kernel.Options{})
					c := k.client(kerneltest.Options{})
					if ch == kernel.Control {
						k.begin(c, "block", "") // control doesn't wait for the cell
					}
					x := k.wait(k.send(c, ch, "shutdown_request", map[string]any{"restart": restart}, ""))
					equal(t, "reply", x.Content(), map[string]any{"status": "ok", "restart": restart})
					_, on := x.Reply()
					equal(t, "channel", on, ch)
					equal(t, "iopub", x.Kinds(), []string{"busy", "shutdown_reply", "idle"})
					select {
					case err := <-k.served:
						k.served <- err
					case <-time.After(patience):
						t.Fatal("Serve does not return")
					}
					c.Close()
					// Every goroutine has ended.
					for range 100 {
						if runtime.NumGoroutine() <= before+1 {
							return
						}
						time.Sleep(20 * time.Millisecond)
					}
					buf := make([]byte, 1<<16)
					t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
				})
			}
		}
	}
}
