package cli

import (
	"fmt"
	"io"
	"time"
)

// statusLine is one line of progress on a terminal, rewritten in place. Off a
// terminal it shows nothing. It belongs to one goroutine.
type statusLine struct {
	w     io.Writer // nil off a terminal
	shown bool
	last  time.Time
}

// statusEvery is how often a status line may change: fast enough to look alive.
const statusEvery = 100 * time.Millisecond

func (p *process) status() *statusLine {
	if !p.watched {
		return &statusLine{}
	}
	return &statusLine{w: p.stderr}
}

func (s *statusLine) show(text string) {
	if s.w == nil || s.shown && time.Since(s.last) < statusEvery {
		return
	}
	fmt.Fprintf(s.w, "\r%s\x1b[K", text)
	s.shown, s.last = true, time.Now()
}

func (s *statusLine) clear() {
	if s.shown {
		io.WriteString(s.w, "\r\x1b[K")
		s.shown = false
	}
}

// prefill shows how much of the prompt is computed; began is when it started.
func (s *statusLine) prefill(done, total int, began time.Time) {
	if s.w == nil || done >= total {
		return
	}
	text := fmt.Sprintf("prompt %d of %s", done, count(total, "token"))
	if spent := time.Since(began); done > 0 && spent > time.Second {
		left := time.Duration(float64(spent) * float64(total-done) / float64(done))
		text += fmt.Sprintf(", %.0f tokens/s, %s left", float64(done)/spent.Seconds(), left.Round(time.Second))
	}
	s.show(text)
}

// bytes shows how much of a long write or read is done; began is when it started.
func (s *statusLine) bytes(verb string, done, total int64, began time.Time) {
	if s.w == nil || total == 0 {
		return
	}
	text := fmt.Sprintf("%.1f of %.1f GB %s", float64(done)/1e9, float64(total)/1e9, verb)
	if spent := time.Since(began); done > 0 && spent > time.Second {
		left := time.Duration(float64(spent) * float64(total-done) / float64(done))
		text += fmt.Sprintf(", %.0f MB/s, %s left", float64(done)/1e6/spent.Seconds(), left.Round(time.Second))
	}
	s.show(text)
}
