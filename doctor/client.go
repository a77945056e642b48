package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"deltafin/kernel"
	"deltafin/kernel/wire"
	"deltafin/kernel/zmtp"
)

// client is the least front end: one request at a time. It belongs to one goroutine;
// its context's end closes its connections, which ends what waits for them.
type client struct {
	codec   *wire.Codec
	session string
	conns   map[kernel.Channel]*zmtp.Conn
	stop    func() bool
}

// dial connects to a kernel that may not listen yet, and waits until it has welcomed
// the subscription, so that no output is missed.
func dial(ctx context.Context, connection kernel.Connection) (*client, error) {
	c := &client{codec: wire.NewCodec(connection.Key), session: newID(), conns: map[kernel.Channel]*zmtp.Conn{}}
	for ch, kind := range map[kernel.Channel]zmtp.SocketType{kernel.Shell: zmtp.Dealer, kernel.Control: zmtp.Dealer, kernel.IOPub: zmtp.Sub} {
		network, address := connection.Address(ch)
		conn, err := zmtp.Dial(ctx, network, address, kind, c.session, zmtp.Limits{})
		if err != nil {
			c.close()
			return nil, fmt.Errorf("%v: %w", ch, err)
		}
		c.conns[ch] = conn
	}
	c.stop = context.AfterFunc(ctx, c.disconnect)
	if err := c.write(kernel.IOPub, [][]byte{{1}}); err != nil {
		c.close()
		return nil, err
	}
	for {
		m, err := c.read(kernel.IOPub)
		if err != nil {
			c.close()
			return nil, fmt.Errorf("%v: %w", kernel.IOPub, err)
		}
		if m.Header.MsgType == "iopub_welcome" {
			return c, nil
		}
	}
}

func (c *client) close() {
	if c.stop != nil {
		c.stop()
	}
	c.disconnect()
}

func (c *client) disconnect() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

func (c *client) write(ch kernel.Channel, frames [][]byte) error {
	if err := c.conns[ch].Write(frames); err != nil {
		return err
	}
	return c.conns[ch].Flush()
}

func (c *client) read(ch kernel.Channel) (*wire.Message, error) {
	frames, err := c.conns[ch].Read()
	if err != nil {
		return nil, err
	}
	return c.codec.Decode(frames)
}

func (c *client) send(ch kernel.Channel, kind string, content any) (id string, err error) {
	m := wire.Message{Header: wire.Header{
		MsgID: newID(), Session: c.session, Username: "doctor", MsgType: kind, Version: wire.ProtocolVersion,
		Date: time.Now().UTC().Format(time.RFC3339Nano),
	}}
	if content != nil {
		m.Content = wire.JSON(content)
	}
	return m.Header.MsgID, c.write(ch, c.codec.Encode(&m))
}

// reply waits for the answer to a request.
func (c *client) reply(ch kernel.Channel, id string) (*wire.Message, error) {
	for {
		m, err := c.read(ch)
		if err != nil || m.ParentHeader().MsgID == id {
			return m, err
		}
	}
}

// ask sends a request and waits for its reply, which must be "ok".
func (c *client) ask(ch kernel.Channel, kind string, content any) (*wire.Message, error) {
	id, err := c.send(ch, kind, content)
	if err != nil {
		return nil, err
	}
	m, err := c.reply(ch, id)
	if err != nil {
		return nil, err
	}
	return m, failed(m)
}

// failed is the error that a reply tells of.
func failed(m *wire.Message) error {
	var v struct{ Status, Ename, Evalue string }
	if err := json.Unmarshal(m.Content, &v); err != nil {
		return err
	}
	if v.Status != "ok" {
		return fmt.Errorf("it answered %s %s: %s", v.Status, v.Ename, v.Evalue)
	}
	return nil
}

// execute runs a cell that no history keeps and gives its result as text.
func (c *client) execute(code string) (result string, err error) {
	id, err := c.send(kernel.Shell, "execute_request", map[string]any{
		"code": code, "silent": false, "store_history": false, "allow_stdin": false, "stop_on_error": true, "user_expressions": map[string]any{},
	})
	if err != nil {
		return "", err
	}
	for idle := false; !idle; {
		m, err := c.reply(kernel.IOPub, id)
		if err != nil {
			return "", err
		}
		var v struct {
			State string         `json:"execution_state"`
			Data  map[string]any `json:"data"`
		}
		json.Unmarshal(m.Content, &v)
		if m.Header.MsgType == "execute_result" {
			result, _ = v.Data["text/plain"].(string)
		}
		idle = m.Header.MsgType == "status" && v.State == "idle"
	}
	m, err := c.reply(kernel.Shell, id)
	if err != nil {
		return "", err
	}
	return result, failed(m)
}
