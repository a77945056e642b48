package kernel_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
)

func TestConnectionFile(t *testing.T) {
	good := kernel.Connection{
		Transport: "tcp", IP: "127.0.0.1", ShellPort: 1, ControlPort: 2, StdinPort: 3, IOPubPort: 4, HBPort: 5,
		Key: "k", SignatureScheme: "hmac-sha256", KernelName: "x",
	}
	with := func(change func(*kernel.Connection)) string {
		c := good
		change(&c)
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct{ name, content, want string }{
		{"good", with(func(c *kernel.Connection) {}), ""},
		{"ipc", with(func(c *kernel.Connection) { c.Transport, c.IP = "ipc", "/tmp/x" }), ""},
		{"all addresses", with(func(c *kernel.Connection) { c.IP = "*" }), ""},
		{"cut", `{"shell_port": 1234, "ip": `, "unexpected end"},
		{"no ports", `{"transport": "tcp", "ip": "127.0.0.1"}`, "shell_port: want 1 to 65535, got none"},
		{"port", with(func(c *kernel.Connection) { c.HBPort = 70000 }), "hb_port: want 1 to 65535, got 70000"},
		{"twice", with(func(c *kernel.Connection) { c.IOPubPort = 1 }), "iopub_port: want a port of its own, got 1, which is also shell_port"},
		{"transport", with(func(c *kernel.Connection) { c.Transport = "pigeon" }), `transport: want tcp or ipc, got "pigeon"`},
		{"ip", with(func(c *kernel.Connection) { c.IP = "nowhere" }), `ip: want an IP address, got "nowhere"`},
		{"ipc without path", with(func(c *kernel.Connection) { c.Transport, c.IP = "ipc", "" }), "ip: want the path"},
		{"long path", with(func(c *kernel.Connection) { c.Transport, c.IP = "ipc", strings.Repeat("p", 200) }), "ip: want a path of at most"},
		{"scheme", with(func(c *kernel.Connection) { c.SignatureScheme = "hmac-md5" }), `signature_scheme: want hmac-sha256, got "hmac-md5"`},
		{"type", `{"shell_port": "one"}`, "cannot unmarshal string"},
		{"huge", strings.Repeat(" ", 2<<20), "want a few hundred bytes"},
	} {
		path := filepath.Join(t.TempDir(), "connection.json")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := kernel.ReadConnectionFile(path)
		var ce *kernel.ConnectionError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &ce) || ce.File != path || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: want an error with %q, got %v", c.name, c.want, err)
		}
	}
	if _, err := kernel.ReadConnectionFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := kerneltest.Connection()
	if err != nil {
		t.Fatal(err)
	}
	c.IOPubPort = l.Addr().(*net.TCPAddr).Port
	if _, err := kernel.Listen(kernel.Options{Connection: c, Interpreter: newFake()}); err == nil || !strings.Contains(err.Error(), "bind iopub") {
		t.Errorf("got %v", err)
	}
	// The other ports are free again.
	network, address := c.Address(kernel.Shell)
	again, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
