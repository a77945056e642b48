package cell

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestLinkCarriesFrames(t *testing.T) {
	var b bytes.Buffer
	l := newLink(&b, &b)
	sent := []frame{{Op: opStream, Cell: 3, Name: "stdout", Text: "a<b>\u2028\xff"}, {Op: opReady}, {Op: opCall, ID: 9, Name: "say", Data: []byte(`{"n":1}`)}}
	for _, f := range sent {
		if err := l.send(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range sent {
		got, err := l.receive()
		if err != nil {
			t.Fatal(err)
		}
		if got.Op != want.Op || got.ID != want.ID || got.Cell != want.Cell || got.Text != want.Text || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if _, err := l.receive(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestLinkRefusesLargeFrames(t *testing.T) {
	var b bytes.Buffer
	l := newLink(&b, &b)
	var fe *FrameError
	if err := l.send(frame{Op: opStream, Text: strings.Repeat("x", maxFrame)}); !errors.As(err, &fe) || b.Len() != 0 {
		t.Errorf("sent %d bytes: %v", b.Len(), err)
	}
	if err := l.send(frame{Op: opReady}); err != nil {
		t.Errorf("after that: %v", err)
	}
	b.Reset()
	binary.Write(&b, binary.BigEndian, []uint32{maxFrame, 1})
	if _, err := l.receive(); !errors.As(err, &fe) {
		t.Errorf("received: %v", err)
	}
}

// FuzzReceive: bytes from a broken child are an error or a frame.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0e\x00\x00\x00\x02{\"op\":\"ready\"}ab"))
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x00{"))
	f.Add([]byte("\x00\x00\x00\x02\x00\x20\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newLink(bytes.NewReader(b), io.Discard)
		for range len(b) + 1 {
			if _, err := l.receive(); err != nil {
				return
			}
		}
		t.Error("more frames than bytes")
	})
}

func TestExplainDeath(t *testing.T) {
	for _, c := range []struct {
		state, crash string
		killed       bool
		name, value  string
	}{
		{"exit status 2", "fatal error: concurrent map writes\n\ngoroutine 1", false, "fatal error", "concurrent map writes"},
		{"exit status 2", "panic: boom [recovered, repanicked]\n\tpanic: boom", false, "panic", "boom (in a goroutine)"},
		{"exit status 2", "runtime: goroutine stack exceeds 268435456-byte limit\nfatal error: stack overflow", false, "stack overflow", "without end"},
		{"exit status 2", "fatal error: runtime: out of memory", false, "out of memory", "memory limit"},
		{"signal: killed", "", false, "killed", "memory ran out"},
		{"signal: killed", "", true, "interrupted", "did not stop"},
		{"exit status 7", "", false, "process ended", "exit status 7"},
	} {
		e := explainDeath(c.state, c.crash, c.killed)
		if e.Name != c.name || !strings.Contains(e.Value, c.value) || e.Traceback[len(e.Traceback)-1] != gone {
			t.Errorf("%q %q: %+v", c.state, c.crash, e)
		}
	}
}
