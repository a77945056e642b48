package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
)

// No message but an execute_request makes the interpreter run anything, whatever its
// content says and on whatever channel it comes.
func TestOnlyCellsRun(t *testing.T) {
	overTransports(t, func(t *testing.T, k *running) {
		c := k.client(kerneltest.Options{})
		content := map[string]any{
			"code": "print forged", "cursor_pos": 3, "detail_level": 1, "silent": false, "store_history": true,
			"user_expressions": map[string]string{"x": "print forged"}, "expression": "print forged",
			"hist_access_type": "search", "pattern": "print forged", "value": "print forged", "restart": true,
			"comm_id": "print forged", "target_name": "print forged", "data": map[string]any{"code": "print forged"},
			"subshell_id": "print forged", "command": "evaluate", "arguments": map[string]any{"expression": "print forged"},
		}
		for _, kind := range []string{
			"complete_request", "inspect_request", "is_complete_request", "history_request", "comm_info_request", "kernel_info_request",
			"comm_open", "comm_msg", "comm_close", "debug_request", "list_subshell_request", "connect_request", "eval_request",
			"execute_reply", "execute_input", "execute_result", "input_reply", "usage_request", "apply_request",
		} {
			for _, ch := range []kernel.Channel{kernel.Shell, kernel.Control, kernel.Stdin} {
				if _, err := c.Send(ch, kind, content, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		k.request(c, kernel.Control, "kernel_info_request", nil) // both queues are past them
		k.run(c, "print asked")
		k.fake.mu.Lock()
		defer k.fake.mu.Unlock()
		for _, cell := range k.fake.cells {
			if cell.Code != "print asked" {
				t.Errorf("ran %q", cell.Code)
			}
		}
	})
}

// A kernel warns where its connection lets others than the file's owner in.
func TestRisks(t *testing.T) {
	signed := kernel.Connection{Transport: "tcp", IP: "127.0.0.1", Key: "k"}
	unsigned, socket := signed, signed
	unsigned.Key = ""
	socket.Transport, socket.IP, socket.Key = "ipc", "/tmp/k", ""
	for _, c := range []struct {
		name       string
		mode       os.FileMode
		connection kernel.Connection
		want       string // "" for none
	}{
		{"as jupyter_client writes it", 0o600, signed, ""},
		{"of its group", 0o640, signed, "(mode 0600), for it has the key, got -rw-r-----"},
		{"of all", 0o644, signed, "got -rw-r--r--"},
		{"of all, by write only", 0o622, signed, ""},
		{"unsigned", 0o600, unsigned, "key: want a key that signs messages, got none"},
		{"unsigned, of all", 0o644, unsigned, "key: want a key that signs messages, got none"},
		{"unsigned sockets", 0o600, socket, ""},
	} {
		path := filepath.Join(t.TempDir(), "c.json")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "windows" && strings.Contains(c.want, "-rw") {
			continue // modes say nothing there
		}
		risks := kernel.Risks(path, c.connection)
		if c.want == "" && len(risks) > 0 || c.want != "" && (len(risks) != 1 || !strings.Contains(risks[0].Error(), c.want)) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, risks)
		}
	}
}

// The channels are bound to the address that the connection names and to no other.
func TestBindsOnlyWhatIsGiven(t *testing.T) {
	for _, c := range []struct {
		ip     string
		others []string
	}{
		{"127.0.0.1", []string{"127.0.0.2", "::1"}},
		{"0.0.0.0", []string{"::1"}},
	} {
		k, err := kerneltest.Connection()
		if err != nil {
			t.Fatal(err)
		}
		k.IP = c.ip
		s, err := kernel.Listen(kernel.Options{Connection: k, Interpreter: newFake()})
		if err != nil {
			t.Fatal(err)
		}
		for ch := kernel.Shell; ch <= kernel.Heartbeat; ch++ {
			_, address := k.Address(ch)
			_, port, _ := net.SplitHostPort(address)
			if nc, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port)); err != nil {
				t.Errorf("%s %v: %v", c.ip, ch, err)
			} else {
				nc.Close()
			}
			for _, other := range c.others {
				if nc, err := net.Dial("tcp", net.JoinHostPort(other, port)); err == nil {
					nc.Close()
					t.Errorf("%s: %v answers at %s too", c.ip, ch, other)
				}
			}
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := s.Serve(stopped); err != nil {
			t.Error(err)
		}
	}
}

// A connection file that doesn't end is not read to its end.
func TestEndlessConnectionFile(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no endless file here: ", err)
	}
	var ce *kernel.ConnectionError
	if _, err := kernel.ReadConnectionFile("/dev/zero"); !errors.As(err, &ce) || ce.Want == "" {
		t.Errorf("got %v", err)
	}
}

// What a front end is told of a connection never has its key.
func TestErrorsKeepTheKey(t *testing.T) {
	b, err := json.Marshal(kernel.Connection{Transport: "tcp", IP: "nowhere", Key: "the secret"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kernel.ReadConnectionFile(path); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	for _, r := range kernel.Risks(path, kernel.Connection{Key: "the secret"}) {
		if strings.Contains(r.Error(), "secret") {
			t.Error(r)
		}
	}
}
