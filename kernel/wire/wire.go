// Package wire turns the frames of a multipart message into a Jupyter message and
// back: the layout of the frames, the signature and the JSON. It knows no sockets.
//
// A message is: routing identities (or, on iopub, a topic), the delimiter, the
// signature in hex, four JSON objects (header, parent header, metadata, content)
// and any number of raw buffers. The signature is the HMAC-SHA256 of the four JSON
// frames, one after the other; with an empty key it is empty and not looked at.
package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"sync"
	"unicode/utf8"
)

const (
	// ProtocolVersion is the version of the Jupyter messaging protocol spoken here.
	ProtocolVersion = "5.5"

	// Delimiter ends the routing frames.
	Delimiter = "<IDS|MSG>"

	// MaxIdentities bounds the routing frames before the delimiter.
	MaxIdentities = 64

	// MaxHeader bounds a header and a parent header, in bytes.
	MaxHeader = 1 << 20
)

// Header is a message's header. Front ends may put more into it than these fields;
// an answer therefore carries Message.RawHeader of its request as parent, not this.
type Header struct {
	MsgID      string `json:"msg_id"`
	Session    string `json:"session"`
	Username   string `json:"username"`
	Date       string `json:"date"`
	MsgType    string `json:"msg_type"`
	Version    string `json:"version"`
	SubshellID string `json:"subshell_id,omitempty"`
}

// Message is one Jupyter message. Decode fills every field; its byte slices alias
// the frames, and Digest is their HMAC, also when messages go unsigned. For Encode, Header and RawHeader are alternatives: RawHeader wins.
// Nil JSON parts are written as {}.
type Message struct {
	Identities [][]byte
	Header     Header
	RawHeader  json.RawMessage
	Parent     json.RawMessage
	Metadata   json.RawMessage
	Content    json.RawMessage
	Buffers    [][]byte
	Digest     [sha256.Size]byte
}

// ParentHeader parses the parent header; it is zero when there is none.
func (m *Message) ParentHeader() Header {
	var h Header
	json.Unmarshal(m.Parent, &h)
	return h
}

// Size is the number of bytes in the JSON parts and buffers.
func (m *Message) Size() int {
	n := len(m.RawHeader) + len(m.Parent) + len(m.Metadata) + len(m.Content)
	for _, b := range m.Buffers {
		n += len(b)
	}
	return n
}

// FormatError says that frames don't make a message.
type FormatError struct {
	Part string // "frames", "header", "parent_header", "metadata" or "content"
	Want string
	Got  string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("wire: bad %s: want %s, got %s", e.Part, e.Want, e.Got)
}

// SignatureError says that a message isn't signed with the connection file's key.
type SignatureError struct {
	Got string // the signature frame, shortened
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("wire: signature %q doesn't fit the connection file's key; the sender used another key or none", e.Got)
}

// Codec signs and checks messages with one key. It may be used by many goroutines.
type Codec struct {
	signed bool
	macs   sync.Pool // of hash.Hash
}

// NewCodec returns the codec for a connection file's key; "" means unsigned.
func NewCodec(key string) *Codec {
	c := &Codec{signed: key != ""}
	c.macs.New = func() any { return hmac.New(sha256.New, []byte(key)) }
	return c
}

// digest is the HMAC of the four JSON frames.
func (c *Codec) digest(parts [][]byte) (sum [sha256.Size]byte) {
	mac := c.macs.Get().(hash.Hash)
	mac.Reset()
	for _, p := range parts {
		mac.Write(p)
	}
	mac.Sum(sum[:0])
	c.macs.Put(mac)
	return sum
}

// signature is the signature frame for a digest.
func (c *Codec) signature(digest [sha256.Size]byte) []byte {
	if !c.signed {
		return []byte{}
	}
	return hex.AppendEncode(nil, digest[:])
}

// Decode checks and parses one multipart message. The errors are *FormatError and
// *SignatureError; the signature is compared, in constant time, before any JSON is
// looked at.
func (c *Codec) Decode(frames [][]byte) (*Message, error) {
	at := -1
	for i, f := range frames {
		if string(f) == Delimiter {
			at = i
			break
		}
		if i == MaxIdentities {
			break
		}
	}
	if at < 0 {
		return nil, &FormatError{"frames", "the delimiter " + Delimiter, fmt.Sprintf("%d frames without it", len(frames))}
	}
	rest := frames[at+1:]
	if len(rest) < 5 {
		return nil, &FormatError{"frames", "a signature and four JSON frames", fmt.Sprintf("%d frames after the delimiter", len(rest))}
	}
	parts := rest[1:5]
	digest := c.digest(parts)
	if c.signed && !hmac.Equal(rest[0], c.signature(digest)) {
		return nil, &SignatureError{string(rest[0][:min(len(rest[0]), 2*sha256.Size)])}
	}
	names := [4]string{"header", "parent_header", "metadata", "content"}
	for i, p := range parts {
		if i < 2 && len(p) > MaxHeader {
			return nil, &FormatError{names[i], fmt.Sprintf("at most %d bytes", MaxHeader), fmt.Sprint(len(p))}
		}
		if err := checkObject(names[i], p); err != nil {
			return nil, err
		}
	}
	m := &Message{
		Identities: frames[:at],
		RawHeader:  parts[0],
		Parent:     parts[1],
		Metadata:   parts[2],
		Content:    parts[3],
		Buffers:    rest[5:],
		Digest:     digest,
	}
	if err := json.Unmarshal(parts[0], &m.Header); err != nil {
		return nil, &FormatError{"header", "strings in its fields", err.Error()}
	}
	if m.Header.MsgID == "" || m.Header.MsgType == "" {
		return nil, &FormatError{"header", "msg_id and msg_type", shorten(parts[0])}
	}
	return m, nil
}

// checkObject wants a JSON object in valid UTF-8.
func checkObject(name string, p []byte) error {
	if !utf8.Valid(p) {
		return &FormatError{name, "UTF-8", shorten(p)}
	}
	t := bytes.TrimLeft(p, " \t\r\n")
	if len(t) == 0 || t[0] != '{' || !json.Valid(p) {
		return &FormatError{name, "a JSON object", shorten(p)}
	}
	return nil
}

// shorten quotes the beginning of outside bytes for an error.
func shorten(p []byte) string {
	if len(p) > 60 {
		return fmt.Sprintf("%q… (%d bytes)", p[:60], len(p))
	}
	return fmt.Sprintf("%q", p)
}

// Encode returns the signed frames of a message. The frames are new slices except
// for the identities, the JSON parts and the buffers, which are m's own.
func (c *Codec) Encode(m *Message) [][]byte {
	header := []byte(m.RawHeader)
	if header == nil {
		header = m.Header.appendJSON(make([]byte, 0, 256))
	}
	frames := make([][]byte, 0, len(m.Identities)+6+len(m.Buffers))
	frames = append(frames, m.Identities...)
	frames = append(frames, []byte(Delimiter), nil, header, object(m.Parent), object(m.Metadata), object(m.Content))
	at := len(m.Identities)
	if c.signed {
		frames[at+1] = c.signature(c.digest(frames[at+2:]))
	}
	return append(frames, m.Buffers...)
}

func object(p json.RawMessage) []byte {
	if len(p) == 0 {
		return []byte("{}")
	}
	return p
}

// appendJSON writes the header; it is on the path of every message, hence by hand.
func (h *Header) appendJSON(b []byte) []byte {
	field := func(name, value string) {
		b = append(b, name...)
		b = AppendString(b, value)
	}
	field(`{"msg_id":`, h.MsgID)
	field(`,"session":`, h.Session)
	field(`,"username":`, h.Username)
	field(`,"date":`, h.Date)
	field(`,"msg_type":`, h.MsgType)
	field(`,"version":`, h.Version)
	if h.SubshellID != "" {
		field(`,"subshell_id":`, h.SubshellID)
	}
	return append(b, '}')
}
