package kernel

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

// Connection is the content of a connection file: where the five channels are bound
// and the key that signs their messages.
type Connection struct {
	Transport       string `json:"transport"` // "tcp" or "ipc"; "" means tcp
	IP              string `json:"ip"`        // tcp: an address, "*" for all; ipc: the sockets' common path
	ShellPort       int    `json:"shell_port"`
	IOPubPort       int    `json:"iopub_port"`
	StdinPort       int    `json:"stdin_port"`
	ControlPort     int    `json:"control_port"`
	HBPort          int    `json:"hb_port"`
	Key             string `json:"key"` // "" means unsigned messages
	SignatureScheme string `json:"signature_scheme"`
	KernelName      string `json:"kernel_name,omitempty"`
}

// ConnectionError says what is wrong with a connection file.
type ConnectionError struct {
	File  string // "" when the Connection didn't come from a file
	Field string // "" when the file as a whole is at fault
	Want  string
	Got   string
	Err   error // why the file couldn't be read, or nil
}

func (e *ConnectionError) Error() string {
	s := "kernel: connection"
	if e.File != "" {
		s += " file " + e.File
	}
	if e.Field != "" {
		s += ": " + e.Field
	}
	if e.Err != nil {
		return fmt.Sprintf("%s: %v; a front end writes it and passes its path", s, e.Err)
	}
	return fmt.Sprintf("%s: want %s, got %s", s, e.Want, e.Got)
}

func (e *ConnectionError) Unwrap() error { return e.Err }

// maxConnectionFile bounds a connection file, which has a few hundred bytes.
const maxConnectionFile = 1 << 20

// ReadConnectionFile reads and checks a connection file. The error is a
// *ConnectionError.
func ReadConnectionFile(path string) (Connection, error) {
	var c Connection
	f, err := os.Open(path)
	if err != nil {
		return c, &ConnectionError{File: path, Err: err}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConnectionFile+1))
	if err != nil {
		return c, &ConnectionError{File: path, Err: err}
	}
	if len(b) > maxConnectionFile {
		return c, &ConnectionError{File: path, Want: "a few hundred bytes of JSON", Got: fmt.Sprintf("more than %d", maxConnectionFile)}
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, &ConnectionError{File: path, Err: err}
	}
	if err := c.check(); err != nil {
		err.File = path
		return c, err
	}
	return c, nil
}

// Risks are what about a connection file lets others than its owner run cells; a
// kernel warns of them and starts, since front ends differ in what they can write.
func Risks(path string, c Connection) (risks []*ConnectionError) {
	if info, err := os.Stat(path); err == nil && c.Key != "" && readableByOthers(info) {
		risks = append(risks, &ConnectionError{File: path, Want: "a file that its owner alone can read (mode 0600), for it has the key", Got: info.Mode().String()})
	}
	if c.Key == "" && c.Transport != "ipc" { // a socket's file is its owner's
		risks = append(risks, &ConnectionError{File: path, Field: "key", Want: "a key that signs messages", Got: "none"})
	}
	return risks
}

// maxSocketPath is the longest path that a unix socket can have on every system.
const maxSocketPath = 103

// check returns the first fault.
func (c Connection) check() *ConnectionError {
	switch c.Transport {
	case "", "tcp":
		if c.IP != "*" && c.IP != "localhost" && net.ParseIP(c.IP) == nil {
			return &ConnectionError{Field: "ip", Want: "an IP address", Got: strconv.Quote(c.IP)}
		}
	case "ipc":
		if c.IP == "" {
			return &ConnectionError{Field: "ip", Want: "the path that the sockets' names begin with", Got: `""`}
		}
		if len(c.IP)+len("-65535") > maxSocketPath {
			return &ConnectionError{Field: "ip", Want: fmt.Sprintf("a path of at most %d bytes", maxSocketPath-len("-65535")), Got: fmt.Sprint(len(c.IP))}
		}
	default:
		return &ConnectionError{Field: "transport", Want: "tcp or ipc", Got: strconv.Quote(c.Transport)}
	}
	if c.SignatureScheme != "" && c.SignatureScheme != "hmac-sha256" {
		return &ConnectionError{Field: "signature_scheme", Want: "hmac-sha256", Got: strconv.Quote(c.SignatureScheme)}
	}
	seen := map[int]Channel{}
	for ch := range channels {
		port := c.port(ch)
		field := ch.String() + "_port"
		if port <= 0 || port > 65535 {
			got := strconv.Itoa(port)
			if port == 0 {
				got = "none"
			}
			return &ConnectionError{Field: field, Want: "1 to 65535", Got: got}
		}
		if other, twice := seen[port]; twice {
			return &ConnectionError{Field: field, Want: "a port of its own", Got: fmt.Sprintf("%d, which is also %s_port", port, other)}
		}
		seen[port] = ch
	}
	return nil
}

func (c Connection) port(ch Channel) int {
	return [channels]int{c.ShellPort, c.ControlPort, c.StdinPort, c.IOPubPort, c.HBPort}[ch]
}

// Address gives a channel's network ("tcp", "tcp4" or "unix") and address, as package
// net takes them.
func (c Connection) Address(ch Channel) (network, address string) {
	port := strconv.Itoa(c.port(ch))
	if c.Transport == "ipc" {
		return "unix", c.IP + "-" + port
	}
	ip := c.IP
	switch {
	case ip == "*":
		ip = ""
	case net.ParseIP(ip).To4() != nil:
		return "tcp4", net.JoinHostPort(ip, port) // "tcp" would bind 0.0.0.0 for IPv6 too
	}
	return "tcp", net.JoinHostPort(ip, port)
}
