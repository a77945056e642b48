// Package kerneltest is a Jupyter front end in Go: it starts kernels, talks to them
// as a notebook does, and runs notebooks. The kernel's own tests use it, and so does
// the test of the worked notebooks.
package kerneltest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/wire"
	"deltafin/kernel/zmtp"
)

// A Dialer connects to one channel of a kernel.
type Dialer func(ctx context.Context, ch kernel.Channel, identity string) (kernel.Conn, error)

// ZeroMQ dials a kernel's sockets.
func ZeroMQ(c kernel.Connection) Dialer {
	return func(ctx context.Context, ch kernel.Channel, identity string) (kernel.Conn, error) {
		network, address := c.Address(ch)
		kind := zmtp.Dealer
		switch ch {
		case kernel.IOPub:
			kind = zmtp.Sub
		case kernel.Heartbeat:
			kind = zmtp.Req
		}
		return zmtp.Dial(ctx, network, address, kind, identity, zmtp.Limits{})
	}
}

// InMemory dials a kernel of this process.
func InMemory(m *kernel.Memory) Dialer {
	return func(ctx context.Context, ch kernel.Channel, identity string) (kernel.Conn, error) {
		return m.Dial(ch, identity)
	}
}

// Options of a Client. The zero value works with an unsigned kernel.
type Options struct {
	Key      string // the connection file's key
	Identity string // of shell, control and stdin; "" means a new one
	Topics   []string
	// Topics to subscribe to on iopub; nil means everything.

	// Input answers input requests; nil means an empty line. It is called from the
	// goroutine that reads stdin.
	Input func(prompt string, password bool) string
}

// Client is one front end. Its methods may be called from many goroutines. It owns
// a goroutine for each channel; Close ends them.
type Client struct {
	codec   *wire.Codec
	session string
	options Options
	conns   [4]kernel.Conn // shell, control, stdin, iopub
	wg      sync.WaitGroup
	welcome chan struct{}

	send [4]sync.Mutex // one writer for each connection

	mu        sync.Mutex
	change    *sync.Cond
	exchanges map[string]*Exchange
	strays    []*wire.Message // iopub messages of other front ends' requests
	faults    []error
	ended     [4]error // why each connection ended
	closed    bool
}

// Dial connects and waits until the kernel has welcomed the subscription, so that no
// output is missed.
func Dial(ctx context.Context, dial Dialer, o Options) (*Client, error) {
	if o.Identity == "" {
		o.Identity = NewID()
	}
	if o.Topics == nil {
		o.Topics = []string{""}
	}
	c := &Client{
		codec:     wire.NewCodec(o.Key),
		session:   NewID(),
		options:   o,
		welcome:   make(chan struct{}, 1),
		exchanges: map[string]*Exchange{},
	}
	c.change = sync.NewCond(&c.mu)
	for ch := range c.conns {
		conn, err := dial(ctx, kernel.Channel(ch), o.Identity)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("kerneltest: connect %v: %w", kernel.Channel(ch), err)
		}
		c.conns[ch] = conn
	}
	for ch, conn := range c.conns {
		c.wg.Go(func() { c.read(kernel.Channel(ch), conn) })
	}
	for _, t := range o.Topics {
		if err := c.SendFrames(kernel.IOPub, [][]byte{append([]byte{1}, t...)}); err != nil {
			c.Close()
			return nil, err
		}
	}
	if len(o.Topics) > 0 {
		select {
		case <-c.welcome:
		case <-ctx.Done():
			c.Close()
			return nil, fmt.Errorf("kerneltest: no iopub_welcome: %w", ctx.Err())
		}
	}
	return c, nil
}

// NewID is a random identifier.
func NewID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Close ends the connections. Exchanges in progress fail.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, conn := range c.conns {
		if conn != nil {
			conn.Close()
		}
	}
	c.wg.Wait()
	return nil
}

// Faults are the messages from the kernel that broke the wire format.
func (c *Client) Faults() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]error(nil), c.faults...)
}

// Strays are the iopub messages that belong to none of this client's requests.
func (c *Client) Strays() []*wire.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*wire.Message(nil), c.strays...)
}

// Exchange is a request and all that came back for it. Its fields may be read once
// Wait has returned; what comes later, such as output of a goroutine that the cell
// left behind, is added under the client's lock: see Outputs.
type Exchange struct {
	ID      string
	Channel kernel.Channel

	client  *Client
	reply   *wire.Message
	replyOn kernel.Channel
	replies int
	outputs []*wire.Message
	idle    bool
}

// Message makes a signed request; nil content is {}. The function header, which may
// be nil, alters its header.
func (c *Client) Message(msgType string, content any, header func(*wire.Header)) (id string, frames [][]byte) {
	h := wire.Header{
		MsgID: NewID(), Session: c.session, Username: "kerneltest", MsgType: msgType, Version: wire.ProtocolVersion,
		Date: time.Now().UTC().Format(time.RFC3339Nano),
	}
	if header != nil {
		header(&h)
	}
	m := wire.Message{Header: h}
	if content != nil {
		m.Content = wire.JSON(content)
	}
	return h.MsgID, c.codec.Encode(&m)
}

// SendFrames sends a message as it is.
func (c *Client) SendFrames(ch kernel.Channel, frames [][]byte) error {
	c.send[ch].Lock()
	defer c.send[ch].Unlock()
	if err := c.conns[ch].Write(frames); err != nil {
		return err
	}
	return c.conns[ch].Flush()
}

// Send sends a request without waiting; subshell "" is the main shell.
func (c *Client) Send(ch kernel.Channel, msgType string, content any, subshell string) (*Exchange, error) {
	id, frames := c.Message(msgType, content, func(h *wire.Header) { h.SubshellID = subshell })
	x := &Exchange{ID: id, Channel: ch, client: c}
	c.mu.Lock()
	c.exchanges[id] = x
	c.mu.Unlock()
	return x, c.SendFrames(ch, frames)
}

// Request sends a request and waits for its reply and idle.
func (c *Client) Request(ctx context.Context, ch kernel.Channel, msgType string, content any) (*Exchange, error) {
	x, err := c.Send(ch, msgType, content, "")
	if err != nil {
		return x, err
	}
	return x, x.Wait(ctx)
}

// Execute is the content of an execute_request.
type Execute struct {
	Code            string            `json:"code"`
	Silent          bool              `json:"silent"`
	StoreHistory    bool              `json:"store_history"`
	UserExpressions map[string]string `json:"user_expressions"`
	AllowStdin      bool              `json:"allow_stdin"`
	StopOnError     bool              `json:"stop_on_error"`
}

// Cell is an execute_request as a notebook sends it.
func Cell(code string) Execute {
	return Execute{Code: code, StoreHistory: true, AllowStdin: true, StopOnError: true, UserExpressions: map[string]string{}}
}

// Execute runs a cell and waits for its end.
func (c *Client) Execute(ctx context.Context, code string) (*Exchange, error) {
	return c.Request(ctx, kernel.Shell, "execute_request", Cell(code))
}

// read files what comes on one channel.
func (c *Client) read(ch kernel.Channel, conn kernel.Conn) {
	for {
		frames, err := conn.Read()
		if err != nil {
			c.mu.Lock()
			c.ended[ch] = fmt.Errorf("kerneltest: %v ended: %w", ch, err)
			c.change.Broadcast()
			c.mu.Unlock()
			return
		}
		m, err := c.codec.Decode(frames)
		if err != nil {
			c.mu.Lock()
			c.faults = append(c.faults, err)
			c.mu.Unlock()
			continue
		}
		switch {
		case ch == kernel.Stdin:
			c.answer(m)
		case ch == kernel.IOPub && m.Header.MsgType == "iopub_welcome":
			select {
			case c.welcome <- struct{}{}:
			default:
			}
		default:
			c.file(ch, m)
		}
	}
}

func (c *Client) file(ch kernel.Channel, m *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.change.Broadcast()
	x := c.exchanges[m.ParentHeader().MsgID]
	switch {
	case x == nil:
		c.strays = append(c.strays, m)
	case ch != kernel.IOPub:
		x.reply, x.replyOn = m, ch
		x.replies++
	default:
		x.outputs = append(x.outputs, m)
		if m.Header.MsgType == "status" && strings.Contains(string(m.Content), "idle") {
			x.idle = true
		}
	}
}

func (c *Client) answer(request *wire.Message) {
	var q struct {
		Prompt   string `json:"prompt"`
		Password bool   `json:"password"`
	}
	json.Unmarshal(request.Content, &q)
	value := ""
	if c.options.Input != nil {
		value = c.options.Input(q.Prompt, q.Password)
	}
	h := wire.Header{MsgID: NewID(), Session: c.session, MsgType: "input_reply", Version: wire.ProtocolVersion}
	c.SendFrames(kernel.Stdin, c.codec.Encode(&wire.Message{
		Header: h, Parent: request.RawHeader, Content: wire.JSON(map[string]string{"value": value}),
	}))
}

// Wait waits for the reply and for idle.
func (x *Exchange) Wait(ctx context.Context) error {
	return x.Until(ctx, func(outputs []*wire.Message) bool { return x.reply != nil && x.idle })
}

// Until waits until the condition holds of the outputs so far.
func (x *Exchange) Until(ctx context.Context, condition func(outputs []*wire.Message) bool) error {
	c := x.client
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.change.Broadcast()
		c.mu.Unlock()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !condition(x.outputs) {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("kerneltest: %s after %d outputs: %w", x.ID, len(x.outputs), ctx.Err())
		case c.closed:
			return errors.New("kerneltest: the client was closed")
		case c.ended[x.Channel] != nil && x.reply == nil:
			return c.ended[x.Channel]
		case c.ended[kernel.IOPub] != nil && x.reply != nil:
			return c.ended[kernel.IOPub]
		}
		c.change.Wait()
	}
	return nil
}

// Outputs are the iopub messages so far, in order.
func (x *Exchange) Outputs() []*wire.Message {
	x.client.mu.Lock()
	defer x.client.mu.Unlock()
	return append([]*wire.Message(nil), x.outputs...)
}

// Replies is the number of replies so far.
func (x *Exchange) Replies() int {
	x.client.mu.Lock()
	defer x.client.mu.Unlock()
	return x.replies
}

// Reply is the reply, nil when there is none yet, and the channel that it came on.
func (x *Exchange) Reply() (*wire.Message, kernel.Channel) {
	x.client.mu.Lock()
	defer x.client.mu.Unlock()
	return x.reply, x.replyOn
}

// Content decodes the reply's content into a map.
func (x *Exchange) Content() map[string]any {
	m, _ := x.Reply()
	var v map[string]any
	if m != nil {
		json.Unmarshal(m.Content, &v)
	}
	return v
}

// Status is the reply's status, "" when there is none yet.
func (x *Exchange) Status() string {
	s, _ := x.Content()["status"].(string)
	return s
}

// Kinds are the types of the outputs; status messages show as busy and idle.
func (x *Exchange) Kinds() []string {
	var kinds []string
	for _, m := range x.Outputs() {
		kind := m.Header.MsgType
		if kind == "status" {
			var v struct {
				State string `json:"execution_state"`
			}
			json.Unmarshal(m.Content, &v)
			kind = v.State
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// Stream is all text of a stream, "stdout" or "stderr".
func (x *Exchange) Stream(name string) string {
	var b strings.Builder
	for _, m := range x.Outputs() {
		var v struct{ Name, Text string }
		if m.Header.MsgType == "stream" && json.Unmarshal(m.Content, &v) == nil && v.Name == name {
			b.WriteString(v.Text)
		}
	}
	return b.String()
}

// Result is the text/plain of the execute_result, "" when there is none.
func (x *Exchange) Result() string {
	for _, m := range x.Outputs() {
		var v struct {
			Data map[string]any `json:"data"`
		}
		if m.Header.MsgType == "execute_result" && json.Unmarshal(m.Content, &v) == nil {
			s, _ := v.Data["text/plain"].(string)
			return s
		}
	}
	return ""
}
