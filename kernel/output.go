package kernel

import (
	"encoding/json"
	"sync"
	"time"

	"deltafin/kernel/display"
	"deltafin/kernel/wire"
)

const (
	// The first write of a pause goes out at once; later ones are gathered for
	// flushEvery or until flushBytes have come.
	flushEvery = 50 * time.Millisecond
	flushBytes = 128 << 10
)

// origin is what the outputs of a request need of it. They may outlive it by far, so
// they don't hold its content.
func (r *request) origin() *request {
	identities := make([][]byte, len(r.Identities))
	copy(identities, r.Identities)
	return &request{
		Message:     &wire.Message{Header: r.Header, RawHeader: r.RawHeader, Identities: identities},
		channel:     r.channel,
		identity:    r.identity,
		interrupted: r.interrupted,
	}
}

// output is the Output of one request: all of it is published with that request as
// parent, however late it comes.
type output struct {
	server     *Server
	request    *request
	silent     bool // nothing is shown
	allowStdin bool
	count      int // execution_count of a result

	mu      sync.Mutex
	stream  string // name of the stream that text belongs to
	text    []byte // not yet published
	armed   bool   // the flusher will come by
	last    time.Time
	ended   bool   // the request has been replied to
	result  string // text/plain of the result, for the history
	payload []any  // of the reply
}

// Stream implements Output.
func (o *output) Stream(name, text string) {
	if o.silent || text == "" {
		return
	}
	if name != "stderr" {
		name = "stdout"
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if name != o.stream {
		o.flush(true)
		o.stream = name
	}
	for len(o.text)+len(text) >= flushBytes {
		n := flushBytes - len(o.text)
		o.text = append(o.text, text[:n]...)
		text = text[n:]
		o.flush(false)
	}
	if text == "" && len(o.text) == 0 {
		return
	}
	o.text = append(o.text, text...)
	if o.armed {
		return
	}
	if now := time.Now(); now.Sub(o.last) >= flushEvery {
		o.flush(false)
	}
	if len(o.text) > 0 {
		o.armed = true
		o.server.flusher.add(o)
	}
}

// flush publishes the gathered text; all false keeps back the first bytes of a
// character whose rest may still come. o.mu is held.
func (o *output) flush(all bool) {
	n := len(o.text)
	if !all {
		n -= wire.Unfinished(o.text)
	}
	if n == 0 {
		return
	}
	content := make([]byte, 0, n+n/16+64)
	content = append(content, `{"name":"`...)
	content = append(content, o.stream...)
	content = append(content, `","text":`...)
	content = wire.AppendString(content, o.text[:n])
	content = append(content, '}')
	o.text = append(o.text[:0], o.text[n:]...)
	o.last = time.Now()
	o.server.publish("stream."+o.stream, "stream", o.request, content, nil, false)
}

// tick is the flusher's visit.
func (o *output) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed = false
	n := len(o.text)
	o.flush(n == wire.Unfinished(o.text)) // the rest had its time to come
	if len(o.text) > 0 {
		o.armed = true
		o.server.flusher.add(o)
	}
}

// show publishes a message after the text that came before it.
func (o *output) show(msgType string, content json.RawMessage) {
	if o.silent {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(true)
	o.server.publish("", msgType, o.request, content, nil, false)
}

// bundle encodes the data and metadata of a MIME bundle, entry by entry, so that
// one bad entry doesn't take the others with it.
func bundle(b display.Bundle) map[string]any {
	entries := func(m map[string]any) map[string]json.RawMessage {
		out := make(map[string]json.RawMessage, len(m))
		for k, v := range m {
			out[k] = wire.JSON(v)
		}
		return out
	}
	return map[string]any{"data": entries(b.Data), "metadata": entries(b.Metadata)}
}

func displayContent(b display.Bundle, id string) json.RawMessage {
	content := bundle(b)
	transient := map[string]any{}
	if id != "" {
		transient["display_id"] = id
	}
	content["transient"] = transient
	return wire.JSON(content)
}

// Display implements Output.
func (o *output) Display(b display.Bundle, id string) {
	o.show("display_data", displayContent(b, id))
}

// Update implements Output.
func (o *output) Update(b display.Bundle, id string) {
	o.show("update_display_data", displayContent(b, id))
}

// Result implements Output.
func (o *output) Result(b display.Bundle) {
	content := bundle(b)
	content["execution_count"] = o.count
	if text, ok := b.Data["text/plain"].(string); ok {
		o.mu.Lock()
		o.result = text
		o.mu.Unlock()
	}
	o.show("execute_result", wire.JSON(content))
}

// Clear implements Output.
func (o *output) Clear(wait bool) {
	o.show("clear_output", wire.JSON(map[string]any{"wait": wait}))
}

// Page implements Output. It goes with the reply; what comes later is displayed.
func (o *output) Page(b display.Bundle) {
	page := bundle(b)
	page["source"], page["start"] = "page", 0
	if !o.reply(page) {
		o.Display(b, "")
	}
}

// Exit implements Output.
func (o *output) Exit(keep bool) {
	o.reply(map[string]any{"source": "ask_exit", "keepkernel": keep})
}

// reply adds to the payload of the reply, unless that is gone.
func (o *output) reply(item map[string]any) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return false
	}
	if !o.silent && len(o.payload) < maxPayload {
		o.payload = append(o.payload, item)
	}
	return true
}

// maxPayload bounds the items of a reply's payload.
const maxPayload = 256

// fail publishes the error of a cell.
func (o *output) fail(e *CellError) { o.show("error", wire.JSON(errorContent(e))) }

// end publishes what is left before the reply is sent, and returns the result's
// text and the reply's payload.
func (o *output) end() (result string, payload []any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(true)
	o.ended = true
	payload = o.payload
	if payload == nil {
		payload = []any{}
	}
	return o.result, payload
}

// errorContent is what an error message and an error reply have in common.
func errorContent(e *CellError) map[string]any {
	traceback := e.Traceback
	if traceback == nil {
		traceback = []string{}
	}
	return map[string]any{"ename": e.Name, "evalue": e.Value, "traceback": traceback}
}

// flusher visits outputs flushEvery after they asked for it. Its run method is a
// goroutine of the server.
type flusher struct {
	mu    sync.Mutex
	due   []dueOutput // in order of time
	added chan struct{}
}

type dueOutput struct {
	at     time.Time
	output *output
}

func newFlusher() *flusher { return &flusher{added: make(chan struct{}, 1)} }

func (f *flusher) add(o *output) {
	f.mu.Lock()
	f.due = append(f.due, dueOutput{time.Now().Add(flushEvery), o})
	f.mu.Unlock()
	select {
	case f.added <- struct{}{}:
	default:
	}
}

func (f *flusher) run(done <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f.mu.Lock()
		wait := time.Hour
		var o *output
		if len(f.due) > 0 {
			if wait = time.Until(f.due[0].at); wait <= 0 {
				o = f.due[0].output
				f.due = f.due[1:]
			}
		}
		f.mu.Unlock()
		if o != nil {
			o.tick()
			continue
		}
		timer.Reset(wait)
		select {
		case <-f.added:
		case <-timer.C:
		case <-done:
			return
		}
	}
}
