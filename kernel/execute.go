package kernel

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"deltafin/kernel/wire"
)

// How long an error's or an interrupt's reply waits for requests that the front end
// sent before it could know: they may be a moment behind on their way. JupyterLab
// sends a notebook's cells one by one, and where it is busy 1 ms let every fourth
// notebook run past its error, 10 ms one of 40. An interrupt has less time.
const (
	errorSettle     = 20 * time.Millisecond
	interruptSettle = time.Millisecond
)

// settle waits until no request has come for quiet, for at most ten times as long: a
// front end that runs a whole notebook sends a hundred.
func (s *Server) settle(quiet time.Duration) {
	for range 10 {
		n := s.received.Load()
		time.Sleep(quiet)
		if s.received.Load() == n {
			return
		}
	}
}

// execute runs a cell: execute_input, its outputs, its error, and the reply.
func (s *Server) execute(ctx context.Context, r *request) (any, error) {
	var q struct {
		Code            *string           `json:"code"`
		Silent          bool              `json:"silent"`
		StoreHistory    *bool             `json:"store_history"`
		UserExpressions map[string]string `json:"user_expressions"`
		AllowStdin      *bool             `json:"allow_stdin"`
		StopOnError     *bool             `json:"stop_on_error"`
	}
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	if q.Code == nil {
		return nil, &contentError{"content.code", "a string", "none"}
	}
	// Absent fields have the protocol's defaults.
	orTrue := func(b *bool) bool { return b == nil || *b }
	stopOnError := orTrue(q.StopOnError)
	store := orTrue(q.StoreHistory) && !q.Silent && strings.TrimSpace(*q.Code) != ""

	cell := Cell{
		Code:       *q.Code,
		Subshell:   r.Header.SubshellID,
		Silent:     q.Silent,
		AllowStdin: orTrue(q.AllowStdin),
	}
	count, counter := s.countCell(store)
	if !q.Silent {
		cell.ExecutionCount = count
	}
	out := &output{server: s, request: r.origin(), silent: q.Silent, allowStdin: cell.AllowStdin, count: count}
	if !q.Silent {
		s.publish("", "execute_input", r, wire.JSON(map[string]any{"code": cell.Code, "execution_count": count}), nil, false)
	}
	var entry historyEntry
	if store {
		entry = s.history.input(count, cell.Code)
	}

	failed := s.interpreter.Execute(ctx, cell, out)

	content := map[string]any{"status": "ok", "execution_count": counter}
	if failed != nil {
		out.fail(failed)
		maps.Copy(content, errorContent(failed))
		content["status"] = "error"
		content["user_expressions"] = map[string]any{}
	} else {
		content["user_expressions"] = s.userExpressions(ctx, cell.Subshell, q.UserExpressions)
	}
	result, payload := out.end()
	content["payload"] = payload
	if store && result != "" {
		s.history.output(entry, result)
	}
	// What was sent after an interrupt runs: the cells that it aborts are known already.
	if failed != nil && stopOnError && ctx.Err() == nil {
		if ctx.Err() != nil {
			s.settle(interruptSettle)
		} else {
			s.settle(errorSettle)
		}
		if sh := s.shell(cell.Subshell); sh != nil {
			sh.abort(s.received.Load())
		}
	}
	return content, nil
}

// countCell gives a cell its execution_count, and its reply the counter of stored
// cells. Cells that aren't stored show the number that the next stored one will have;
// front ends number their prompts by the reply's, qtconsole by a silent cell's.
func (s *Server) countCell(store bool) (count, counter int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if store {
		s.count++
		return s.count, s.count
	}
	return s.count + 1, s.count
}

func (s *Server) userExpressions(ctx context.Context, subshell string, expressions map[string]string) map[string]any {
	out := make(map[string]any, len(expressions))
	for _, name := range slices.Sorted(maps.Keys(expressions)) {
		b, failed := s.interpreter.Evaluate(ctx, subshell, expressions[name])
		var v map[string]any
		if failed != nil {
			v = errorContent(failed)
			v["status"] = "error"
		} else {
			v = bundle(b)
			v["status"] = "ok"
		}
		out[name] = v
	}
	return out
}

// abortReply answers an execute_request that an error or an interrupt took out of
// the queue.
func (s *Server) abortReply(r *request) {
	s.status(r, "busy")
	s.reply(r, map[string]any{"status": "aborted"})
	s.status(r, "idle")
}
