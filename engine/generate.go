package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deltafin/tokenizer"
)

// GenerateOptions says what to generate. The zero value generates nothing.
type GenerateOptions struct {
	MaxTokens int // new tokens at most
	Sampling  Sampling
	StopIDs   []int    // end the text; not part of it
	Stop      []string // end the text where the first of them begins; "" is refused
	Hook      *Hook    // watches the new tokens' passes
}

// Check returns a *SettingError for the first option that is out of range.
func (o *GenerateOptions) Check() error {
	if o.MaxTokens < 0 {
		return &SettingError{"max-tokens", "a count from 0 up", fmt.Sprint(o.MaxTokens)}
	}
	for _, s := range o.Stop {
		if s == "" {
			return &SettingError{"stop", "a string of at least one character", `""`}
		}
	}
	return o.Sampling.Check()
}

// Finish says why a generation ended.
type Finish string

const (
	FinishStop        Finish = "stop"        // the model ended its answer with a stop id
	FinishLength      Finish = "length"      // MaxTokens, or the model's last position
	FinishStopString  Finish = "stop_string" // one of Stop; it is cut from the text
	FinishInterrupted Finish = "interrupted" // the context was cancelled
)

// ErrNoLogits is a sequence that nothing can follow: an empty one, or one whose last
// Extend was interrupted.
var ErrNoLogits = errors.New("engine: the sequence has no logits; extend it by at least one token first")

// Generated is the outcome of Generate.
type Generated struct {
	IDs    []int  // new tokens, without the stop id
	Text   string // their text, cut before a stop string
	Finish Finish
}

// Generate samples new tokens after s, whose last logits must be there, and extends
// s with them. Unless a stop id ended it, the last token is sampled but not computed:
// s ends before it.
//
// emit, which may be nil, is called for every new token with the text that became
// final: it trails the tokens by an incomplete rune, or by what may still become a
// stop string. A last call with id -1 brings the rest, if there is any.
//
// A cancelled context is no error: the outcome holds what there is.
func Generate(ctx context.Context, s *Sequence, tok *tokenizer.Tokenizer, o GenerateOptions, emit func(id int, text string)) (Generated, error) {
	if err := o.Check(); err != nil {
		return Generated{}, err
	}
	if s.Logits() == nil && o.MaxTokens > 0 {
		return Generated{}, ErrNoLogits
	}
	if emit == nil {
		emit = func(int, string) {}
	}
	g := Generated{Finish: FinishLength}
	text := StopFilter{Stop: o.Stop}
	decoder := tok.NewDecoder()
	sampler := Sampler{Sampling: o.Sampling}
	for len(g.IDs) < o.MaxTokens {
		if len(g.IDs) > 0 {
			err := s.Extend(ctx, g.IDs[len(g.IDs)-1:], ExtendOptions{Hook: o.Hook})
			if tooLong := (*LengthError)(nil); errors.As(err, &tooLong) {
				break
			} else if ctx.Err() != nil {
				g.Finish = FinishInterrupted
				break
			} else if err != nil {
				return g, err
			}
		}
		id := sampler.Choose(s.Logits(), s.Len())
		if slices.Contains(o.StopIDs, id) {
			g.Finish = FinishStop
			break
		}
		g.IDs = append(g.IDs, id)
		emit(id, text.Push(decoder.Push(id)))
		if text.Stopped {
			g.Finish = FinishStopString
			break
		}
	}
	if !text.Stopped {
		rest := text.Push(decoder.Flush()) + text.Flush()
		if text.Stopped {
			g.Finish = FinishStopString
		}
		if rest != "" {
			emit(-1, rest)
		}
	}
	g.Text = text.String()
	return g, nil
}

// StopFilter passes text on, holding back what may be the beginning of a stop
// string, until one of them comes; what is from there on stays in it. It belongs to
// one goroutine.
type StopFilter struct {
	Stop    []string // none of them ""
	Stopped bool     // one has come

	final strings.Builder
	held  string
}

// Push takes more text and returns what became final; nothing once Stopped.
func (t *StopFilter) Push(s string) string {
	if t.Stopped {
		return ""
	}
	t.held += s
	at := -1
	for _, stop := range t.Stop {
		if i := strings.Index(t.held, stop); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at >= 0 {
		t.Stopped = true
		return t.release(at)
	}
	keep := 0
	for _, stop := range t.Stop {
		for n := min(len(stop)-1, len(t.held)); n > keep; n-- {
			if strings.HasSuffix(t.held, stop[:n]) {
				keep = n
			}
		}
	}
	return t.release(len(t.held) - keep)
}

// Flush returns what was held back in vain; nothing once Stopped.
func (t *StopFilter) Flush() string {
	if t.Stopped {
		return ""
	}
	return t.release(len(t.held))
}

// String is all that became final.
func (t *StopFilter) String() string { return t.final.String() }

func (t *StopFilter) release(n int) string {
	s := t.held[:n]
	t.held = t.held[n:]
	t.final.WriteString(s)
	return s
}
