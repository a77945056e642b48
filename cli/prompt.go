package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"deltafin/rig"
)

// promptFlags take a raw prompt: text, standard input, or token ids.
type promptFlags struct {
	Prompt *string `arg:"" optional:"" help:"The text; - reads standard input."`
	IDs    string  `name:"ids" placeholder:"1,2,3" help:"Token ids instead of a text."`
}

// fill puts the prompt into q.
func (f promptFlags) fill(p *process, q *rig.Request) error {
	given := f.IDs != ""
	switch {
	case given && f.Prompt != nil:
		return usagef("both a prompt and --ids are given; one of them is the prompt")
	case given:
		ids, err := parseIDs(f.IDs)
		q.IDs = ids
		return err
	case f.Prompt == nil:
		return usagef("no prompt: give a text in quotes, - to read standard input, or --ids 1,2,3")
	}
	text, err := readText(p, *f.Prompt)
	if err != nil {
		return err
	}
	if text == "" {
		return usagef("the prompt is empty; the model needs at least one token to continue")
	}
	q.Prompt = text
	return nil
}

// readText is arg, or all of standard input when arg is "-"; it must be UTF-8.
func readText(p *process, arg string) (string, error) {
	text := arg
	if arg == "-" {
		b, err := io.ReadAll(p.stdin)
		if err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
		text = string(b)
	}
	return text, checkUTF8(text)
}

func checkUTF8(text string) error {
	for at, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[at:]); size == 1 {
				return usagef("the text is not UTF-8: byte 0x%02x at offset %d; convert it, or give token ids", text[at], at)
			}
		}
	}
	return nil
}

func parseIDs(list string) ([]int, error) {
	fields := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' })
	if len(fields) == 0 {
		return nil, usagef("no token ids in %q; expected numbers such as 1,2,3", list)
	}
	ids := make([]int, len(fields))
	for i, field := range fields {
		id, err := strconv.Atoi(field)
		if err != nil || id < 0 {
			return nil, usagef("%q is not a token id; expected numbers from 0, such as 1,2,3", field)
		}
		ids[i] = id
	}
	return ids, nil
}

// samplingFlags say how a token is chosen. MaxTokens is each command's own, for
// its default differs.
type samplingFlags struct {
	Temperature float64 `default:"0" help:"Randomness; 0 takes the likeliest token each time."`
	TopP        float64 `default:"1" help:"Choose among the likeliest tokens up to this probability."`
	TopK        int     `default:"0" help:"Choose among this many tokens; 0 means all."`
	Seed        uint64  `default:"0" help:"The same seed gives the same text."`
}

func (f samplingFlags) fill(q *rig.Request, maxTokens int) error {
	switch {
	case maxTokens < 0:
		return usagef("--max-tokens %d: expected 0 (compute the prompt only) or more", maxTokens)
	case !(f.Temperature >= 0) || math.IsInf(f.Temperature, 1):
		return usagef("--temperature %v: expected 0 (greedy) or more", f.Temperature)
	case !(f.TopP > 0 && f.TopP <= 1):
		return usagef("--top-p %v: expected more than 0, and 1 (keep all) at most", f.TopP)
	case f.TopK < 0:
		return usagef("--top-k %d: expected 0 (keep all) or more", f.TopK)
	}
	q.MaxTokens, q.Temperature, q.TopP, q.TopK, q.Seed = maxTokens, f.Temperature, f.TopP, f.TopK, f.Seed
	return nil
}
