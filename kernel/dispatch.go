package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"deltafin/kernel/display"
	"deltafin/kernel/wire"
)

// request is one message from a front end.
type request struct {
	*wire.Message
	channel  Channel
	identity string // where replies go
	seq      uint64 // order of arrival, over all channels
	over     func() // run before the reply and idle, or nil: nothing is left to interrupt
	after    func() // run after idle, or nil

	// interrupted is done once the request has been interrupted; nil means never. An
	// interrupted cell waits no longer for slow front ends.
	interrupted context.Context
}

// A handler acts on a request and returns the content of the reply, or nil for
// messages that have none. Bad content is a *contentError.
type handler struct {
	channels []Channel
	where    where
	run      func(s *Server, ctx context.Context, r *request) (any, error)
}

// where says which goroutine handles a request.
type where int

const (
	inTurn   where = iota // its channel's or subshell's, in the order of arrival
	apart                 // its own: may take long, and nothing is in order with it
	aside                 // that of the questions: a running cell doesn't keep them waiting
	withComm              // that of the comms: in the order of arrival, beside a running cell
)

// handlers is the one table of what the kernel answers.
func handlers() map[string]handler {
	shell, control := []Channel{Shell}, []Channel{Control}
	both := []Channel{Shell, Control}
	return map[string]handler{
		"kernel_info_request":     {both, aside, (*Server).kernelInfo},
		"execute_request":         {shell, inTurn, (*Server).execute},
		"complete_request":        {shell, aside, settled((*Server).complete)},
		"inspect_request":         {shell, aside, settled((*Server).inspect)},
		"is_complete_request":     {shell, aside, (*Server).isComplete},
		"history_request":         {shell, aside, settled((*Server).historyRequest)},
		"comm_info_request":       {both, withComm, (*Server).commInfo},
		"comm_open":               {both, withComm, (*Server).comm},
		"comm_msg":                {both, withComm, (*Server).comm},
		"comm_close":              {both, withComm, (*Server).comm},
		"interrupt_request":       {control, inTurn, (*Server).interruptRequest},
		"shutdown_request":        {both, inTurn, (*Server).shutdown},
		"create_subshell_request": {control, apart, (*Server).createSubshell},
		"delete_subshell_request": {control, apart, (*Server).deleteSubshell},
		"list_subshell_request":   {control, inTurn, (*Server).listSubshells},
	}
}

// contentError says that a request's content isn't what the protocol has there.
type contentError struct{ field, want, got string }

func (e *contentError) Error() string {
	return fmt.Sprintf("%s: want %s, got %s", e.field, e.want, e.got)
}

// parse decodes a request's content.
func parse[T any](r *request, v *T) error {
	err := json.Unmarshal(r.Content, v)
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return &contentError{"content." + te.Field, te.Type.String(), "a JSON " + te.Value}
	}
	return err
}

// handle runs one request from busy to idle. A panic in a handler or in the
// interpreter becomes an error reply.
func (s *Server) handle(ctx context.Context, r *request) {
	s.status(r, "busy")
	content, err := s.run(ctx, r)
	if r.over != nil {
		r.over()
	}
	switch {
	case err != nil:
		s.drop("request failed", "type", r.Header.MsgType, "error", err)
		if strings.HasSuffix(r.Header.MsgType, "_request") {
			s.replyError(r, "bad request", err)
		}
	case content != nil:
		s.reply(r, content)
	}
	s.status(r, "idle")
	if r.after != nil {
		r.after()
	}
}

func (s *Server) run(ctx context.Context, r *request) (content any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic", "type", r.Header.MsgType, "value", fmt.Sprint(p), "stack", string(debug.Stack()))
			content, err = nil, fmt.Errorf("the kernel failed on this request: %v", p)
		}
	}()
	h, known := s.handlers[r.Header.MsgType]
	if !known {
		return nil, fmt.Errorf("unknown message type %.100q", r.Header.MsgType)
	}
	if !slices.Contains(h.channels, r.channel) {
		return nil, fmt.Errorf("%s belongs on %v, got it on %v", r.Header.MsgType, h.channels[0], r.channel)
	}
	return h.run(s, ctx, r)
}

// header makes the header of a message from the kernel.
func (s *Server) header(msgType string) wire.Header {
	return wire.Header{
		MsgID:    fmt.Sprintf("%s_%d", s.session, s.sent.Add(1)),
		Session:  s.session,
		Username: "kernel",
		Date:     timestamp(),
		MsgType:  msgType,
		Version:  wire.ProtocolVersion,
	}
}

// reply answers on the channel that the request came by.
func (s *Server) reply(r *request, content any) {
	msgType := strings.TrimSuffix(r.Header.MsgType, "_request") + "_reply"
	s.routers[r.channel].send(r.identity, s.codec.Encode(&wire.Message{
		Identities: r.Identities,
		Header:     s.header(msgType),
		Parent:     r.RawHeader,
		Content:    wire.JSON(content),
	}))
}

func (s *Server) replyError(r *request, name string, err error) {
	content := errorContent(&CellError{Name: name, Value: err.Error()})
	content["status"] = "error"
	s.reply(r, content)
}

// settle is how long a question about the session waits for the cells that came
// before it: one that a front end sends right behind a short cell sees what the cell
// did, and one that it sends during a long cell is answered at once.
const settle = 4 * time.Millisecond

func settled(run func(*Server, context.Context, *request) (any, error)) func(*Server, context.Context, *request) (any, error) {
	return func(s *Server, ctx context.Context, r *request) (any, error) {
		if sh := s.shell(r.Header.SubshellID); sh != nil {
			sh.wait(r.seq, settle)
		}
		return run(s, ctx, r)
	}
}

// status publishes busy or idle. Front ends show the last state that they hear of,
// so when a request ends beside a running cell, that cell is said to be busy again.
func (s *Server) status(r *request, state string) {
	s.smu.Lock()
	defer s.smu.Unlock()
	say := func(r *request, state string) {
		s.publish("", "status", r, json.RawMessage(`{"execution_state":"`+state+`"}`), nil, true)
	}
	if r.Header.MsgType == "execute_request" {
		if state == "busy" {
			s.cells = append(s.cells, r)
		} else {
			s.cells = slices.DeleteFunc(s.cells, func(c *request) bool { return c == r })
		}
	}
	say(r, state)
	if state == "idle" && len(s.cells) > 0 {
		say(s.cells[0], "busy")
	}
}

// publish sends a message on iopub with the request as parent; topic "" is the
// message type's own.
func (s *Server) publish(topic, msgType string, r *request, content json.RawMessage, extra *wire.Message, essential bool) {
	if topic == "" {
		topic = "kernel." + s.session + "." + msgType
	}
	m := wire.Message{
		Identities: [][]byte{[]byte(topic)},
		Header:     s.header(msgType),
		Content:    content,
	}
	if r != nil {
		m.Parent = r.RawHeader
	}
	if extra != nil {
		m.Metadata, m.Buffers = extra.Metadata, extra.Buffers
	}
	hurry := context.Background()
	if r != nil && r.interrupted != nil {
		hurry = r.interrupted
	}
	s.iopub.publish(hurry, s.codec.Encode(&m), essential)
}

// kernelInfo answers without the interpreter's process, which may still be starting.
func (s *Server) kernelInfo(ctx context.Context, r *request) (any, error) {
	l := s.interpreter.Language()
	links := l.HelpLinks
	if links == nil {
		links = []HelpLink{}
	}
	return map[string]any{
		"status":                 "ok",
		"protocol_version":       wire.ProtocolVersion,
		"implementation":         l.Implementation,
		"implementation_version": l.ImplementationVersion,
		"banner":                 l.Banner,
		"language_info": map[string]any{
			"name":               l.Name,
			"version":            l.Version,
			"mimetype":           l.MIMEType,
			"file_extension":     l.FileExtension,
			"pygments_lexer":     l.PygmentsLexer,
			"codemirror_mode":    l.CodeMirrorMode,
			"nbconvert_exporter": l.NBConvertExporter,
		},
		"help_links":         links,
		"debugger":           false,
		"supported_features": []string{"kernel subshells"},
	}, nil
}

func (s *Server) complete(ctx context.Context, r *request) (any, error) {
	var q struct {
		Code   string `json:"code"`
		Cursor *int   `json:"cursor_pos"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	c := s.interpreter.Complete(ctx, q.Code, clampCursor(q.Code, q.Cursor))
	matches := make([]string, len(c.Matches))
	types := make([]map[string]any, len(c.Matches))
	for i, m := range c.Matches {
		matches[i] = m.Text
		types[i] = map[string]any{"text": m.Text, "type": m.Type, "signature": m.Signature, "start": c.Start, "end": c.End}
	}
	return map[string]any{
		"status":       "ok",
		"matches":      matches,
		"cursor_start": c.Start,
		"cursor_end":   c.End,
		"metadata":     map[string]any{"_jupyter_types_experimental": types},
	}, nil
}

// clampCursor gives a cursor (code points) that lies within the code; none is the
// end.
func clampCursor(code string, cursor *int) int {
	n := len([]rune(code))
	if cursor == nil {
		return n
	}
	return max(0, min(*cursor, n))
}

func (s *Server) inspect(ctx context.Context, r *request) (any, error) {
	var q struct {
		Code   string `json:"code"`
		Cursor *int   `json:"cursor_pos"`
		Detail int    `json:"detail_level"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	b, found := s.interpreter.Inspect(ctx, q.Code, clampCursor(q.Code, q.Cursor), q.Detail)
	if !found {
		b = display.Bundle{}
	}
	content := bundle(b)
	content["status"] = "ok"
	content["found"] = found
	return content, nil
}

func (s *Server) isComplete(ctx context.Context, r *request) (any, error) {
	var q struct {
		Code string `json:"code"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	c := s.interpreter.IsComplete(q.Code)
	content := map[string]any{"status": c.Status}
	if c.Status == "incomplete" {
		content["indent"] = c.Indent
	}
	return content, nil
}

// shutdown replies on the request's channel and on iopub, then ends the server.
func (s *Server) shutdown(ctx context.Context, r *request) (any, error) {
	var q struct {
		Restart bool `json:"restart"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	content := map[string]any{"status": "ok", "restart": q.Restart}
	s.publish("", "shutdown_reply", r, wire.JSON(content), nil, true)
	r.after = s.stop
	return content, nil
}
