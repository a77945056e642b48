package cell

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unsafe"
)

// What the two halves say to each other. The first comment names who sends it.
const (
	opHello              = "hello"               // parent: helloData, once, first
	opReady              = "ready"               // child: it takes cells from now on
	opExecute            = "execute"             // parent: ID is the cell, executeData
	opDone               = "done"                // child: the cell ID ended, doneData
	opInterrupt          = "interrupt"           // parent: stop the request ID
	opInterruptCallbacks = "interrupt_callbacks" // parent: stop the widgets' callbacks
	opRequest            = "request"             // parent: Name says which, answered by opAnswer with the same ID
	opAnswer             = "answer"              // child
	opStream             = "stream"              // child: Name is stdout or stderr, Text what was written; Cell's output
	opDisplay            = "display"             // child: Data is a bundle, Name the display id
	opUpdate             = "update"              // child: likewise
	opResult             = "result"              // child: Data is a bundle
	opClear              = "clear"               // child: Name is "wait" or ""
	opCommOut            = "comm"                // child: Data is a kernel.CommMessage
	opPage               = "page"                // child: Data is a bundle
	opExit               = "exit"                // child: the front end is to leave
	opAck                = "ack"                 // parent: Count bytes of the cell's output have been shown
	opInput              = "input"               // child: Text is the prompt, Name "password" or ""
	opInputReply         = "input_reply"         // parent: Text is the line, or Error
	opCall               = "call"                // child: Services.Call, Name is the method, Data its parameters
	opEvent              = "event"               // parent: one event of the call ID
	opEventAck           = "event_ack"           // child: it has taken one event of the call ID
	opReturn             = "return"              // parent: the call's result, or Error
	opCancel             = "cancel"              // child: cancel the call ID
)

// maxFrame bounds one frame, in bytes. What is larger is refused by the
// sender with a text, and ends the connection when it arrives.
const maxFrame = 64 << 20

// streamWindow is how many bytes of a cell's output may be on their way to the
// front ends before the cell waits.
const streamWindow = 1 << 20

// eventWindow is how many events of one call may wait for the cell to take them.
const eventWindow = 256

// A frame is one message, either way.
type frame struct {
	Op    string          `json:"op"`
	ID    uint64          `json:"id,omitempty"`
	Cell  uint64          `json:"cell,omitempty"`
	Name  string          `json:"name,omitempty"`
	Text  string          `json:"-"` // follows the JSON as it is
	Count int             `json:"count,omitempty"`
	Error string          `json:"error,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// helloData is the child's part of Options.
type helloData struct {
	MemoryLimit int64  `json:"memory_limit"`
	Modules     string `json:"modules"`
}

type executeData struct {
	Code     string `json:"code"`
	Count    int    `json:"count"`
	Subshell string `json:"subshell,omitempty"`
	Silent   bool   `json:"silent,omitempty"`
	Stdin    bool   `json:"stdin,omitempty"`
}

type doneData struct {
	Error *errorData `json:"error,omitempty"`
}

type errorData struct {
	Name      string   `json:"name"`
	Value     string   `json:"value"`
	Traceback []string `json:"traceback"`
}

// FrameError is a frame that can't be sent or understood.
type FrameError struct {
	Op     string
	Size   int
	Reason string
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("cell: frame %q of %d bytes: %s", e.Op, e.Size, e.Reason)
}

// A link sends and receives frames: the lengths of the JSON and of the text, four
// bytes each, big-endian, then the two. The text is not in the JSON, for a cell's
// 100 MB of output pass through here: escaping and parsing them took three times as
// long as everything else. send may be called from any goroutine; receive from one.
type link struct {
	r io.Reader

	mu  sync.Mutex // guards what follows
	w   io.Writer
	buf bytes.Buffer
	err error // the first failure to write
}

func newLink(r io.Reader, w io.Writer) *link { return &link{r: r, w: w} }

func (l *link) send(f frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.buf.Reset()
	l.buf.Write(make([]byte, headBytes))
	enc := json.NewEncoder(&l.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		return &FrameError{Op: f.Op, Size: len(f.Data), Reason: err.Error()}
	}
	n := l.buf.Len() - headBytes
	if n+len(f.Text) > maxFrame {
		l.buf = bytes.Buffer{}
		return &FrameError{Op: f.Op, Size: n + len(f.Text), Reason: fmt.Sprintf("want at most %d bytes", maxFrame)}
	}
	l.buf.WriteString(f.Text)
	b := l.buf.Bytes()
	binary.BigEndian.PutUint32(b, uint32(n))
	binary.BigEndian.PutUint32(b[4:], uint32(len(f.Text)))
	_, l.err = l.w.Write(b)
	if l.buf.Cap() > 1<<20 {
		l.buf = bytes.Buffer{}
	}
	return l.err
}

// receive returns the next frame, or io.EOF when the other half closed the pipe
// between two frames.
func (l *link) receive() (frame, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(l.r, head[:]); err != nil {
		return frame{}, err
	}
	n, text := int64(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint32(head[4:]))
	if n+text > maxFrame {
		return frame{}, &FrameError{Size: int(n + text), Reason: fmt.Sprintf("want at most %d bytes", maxFrame)}
	}
	body, err := l.read(n)
	if err != nil {
		return frame{}, err
	}
	var f frame
	if err := json.Unmarshal(body, &f); err != nil {
		return frame{}, &FrameError{Size: int(n), Reason: err.Error()}
	}
	if body, err = l.read(text); err != nil {
		return frame{}, err
	}
	f.Text = unsafe.String(unsafe.SliceData(body), len(body)) // nothing else holds it
	return f, nil
}

const (
	// headBytes is the size of a frame's two lengths.
	headBytes = 8
	// trustedBytes is how much is allocated because a length says so.
	trustedBytes = 1 << 20
)

// read takes n bytes. Beyond trustedBytes, memory grows with what arrives, so that a
// wrong length can't ask for it.
func (l *link) read(n int64) ([]byte, error) {
	b := make([]byte, min(n, trustedBytes))
	_, err := io.ReadFull(l.r, b)
	if err == nil && n > trustedBytes {
		rest := bytes.NewBuffer(b)
		_, err = io.CopyN(rest, l.r, n-trustedBytes)
		b = rest.Bytes()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// mustJSON marshals values of this package's own types, which always can be.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
