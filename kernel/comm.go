package kernel

import (
	"context"
	"encoding/json"
	"sync"

	"deltafin/kernel/wire"
)

// comms knows which comms are open, from either side, and their targets.
type comms struct {
	mu   sync.Mutex
	open map[string]string // comm_id → target_name
}

// maxComms bounds the open comms.
const maxComms = 100_000

// note follows one message, from either side; known says whether its comm was open.
func (c *comms) note(m CommMessage) (known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known = c.open[m.ID]
	switch m.Type {
	case "comm_open":
		if len(c.open) < maxComms {
			c.open[m.ID] = m.TargetName
		}
	case "comm_close":
		delete(c.open, m.ID)
	}
	return known
}

// Comm implements Output.
func (o *output) Comm(m CommMessage) {
	o.server.comms.note(m)
	content := map[string]any{"comm_id": m.ID, "data": objectOrEmpty(m.Data)}
	if m.Type == "comm_open" {
		content["target_name"] = m.TargetName
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(true)
	extra := &wire.Message{Metadata: objectOrEmpty(m.Metadata), Buffers: m.Buffers}
	o.server.publish("comm-"+m.ID, m.Type, o.request, wire.JSON(content), extra, false)
}

// objectOrEmpty is a JSON object that is safe to send; what is none becomes {}.
func objectOrEmpty(p json.RawMessage) json.RawMessage {
	if b := wire.JSON(p); len(b) > 0 && b[0] == '{' {
		return b
	}
	return json.RawMessage("{}")
}

// comm passes comm_open, comm_msg and comm_close on to the interpreter.
func (s *Server) comm(ctx context.Context, r *request) (any, error) {
	var q struct {
		ID         string          `json:"comm_id"`
		TargetName string          `json:"target_name"`
		Data       json.RawMessage `json:"data"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	if q.ID == "" {
		return nil, &contentError{"content.comm_id", "a string", "none"}
	}
	m := CommMessage{Type: r.Header.MsgType, ID: q.ID, TargetName: q.TargetName, Data: q.Data, Metadata: r.Metadata, Buffers: r.Buffers}
	if known := s.comms.note(m); !known && m.Type != "comm_open" {
		s.log.Debug("message to an unknown comm", "type", m.Type, "comm_id", m.ID)
		return nil, nil
	}
	out := &output{server: s, request: r.origin()}
	s.interpreter.Comm(ctx, m, out)
	out.end()
	return nil, nil
}

func (s *Server) commInfo(ctx context.Context, r *request) (any, error) {
	var q struct {
		TargetName *string `json:"target_name"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	s.comms.mu.Lock()
	defer s.comms.mu.Unlock()
	found := map[string]any{}
	for id, target := range s.comms.open {
		if q.TargetName == nil || *q.TargetName == "" || *q.TargetName == target {
			found[id] = map[string]any{"target_name": target}
		}
	}
	return map[string]any{"status": "ok", "comms": found}, nil
}
