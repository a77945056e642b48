package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"deltafin/rig"
	"deltafin/tokenizer"
)

type tokenizeCmd struct {
	Text   *string `arg:"" optional:"" help:"The text (with --decode: ids such as 1,2,3); - reads standard input."`
	Decode bool    `help:"Turn ids into text."`
	Pieces bool    `help:"Show the pieces too, the split before merging."`
	JSONL  bool    `name:"jsonl" help:"Read {\"text\": …} lines from standard input, write {\"ids\": […]} lines (with --decode the other way)."`
	JSON   bool    `name:"json" help:"Print one JSON object: ids and, with --pieces, pieces; with --decode, text."`
	Model  string  `placeholder:"DIR" help:"Directory of a K3 snapshot (default: DELTAFIN_MODEL, or the embedded nano-k3)."`
}

func (tokenizeCmd) Help() string {
	return `Special tokens are never recognised in the text. Examples:

    deltafin tokenize "The capital of France is"
    deltafin tokenize --decode 1046,1326,289,6434,277
    deltafin tokenize --jsonl --pieces < texts.jsonl > ids.jsonl`
}

// tokenized is an answer of tokenize, and a line of its --jsonl output.
type tokenized struct {
	IDs    []int    `json:"ids"`
	Pieces []string `json:"pieces,omitempty"`
}

type detokenized struct {
	Text string `json:"text"`
}

func (c tokenizeCmd) Run(p *process) error {
	switch {
	case c.JSONL && c.Text != nil && *c.Text != "-":
		return usagef("--jsonl reads standard input; leave the text out")
	case !c.JSONL && c.Text == nil:
		return usagef("no text: give one in quotes, - to read standard input, or --jsonl")
	case c.Decode && c.Pieces:
		return usagef("--pieces shows how a text is split; it does not go with --decode")
	}
	var input string
	var ids []int
	if !c.JSONL {
		text, err := readText(p, *c.Text)
		if err != nil {
			return err
		}
		input = text
		if c.Decode && strings.TrimSpace(text) != "" {
			if ids, err = parseIDs(text); err != nil {
				return err
			}
		}
	}
	options, err := modelFlags{Model: c.Model}.options(p)
	if err != nil {
		return err
	}
	t, err := rig.LoadTokenizer(options)
	if err != nil {
		return err
	}
	if c.JSONL {
		return c.lines(p, t)
	}
	if c.Decode {
		if err := checkIDs(t, ids); err != nil {
			return err
		}
		answer := detokenized{t.Decode(ids)}
		if c.JSON {
			return p.printJSON(answer)
		}
		p.print(answer.Text + "\n")
		return nil
	}
	answer := c.encode(t, input)
	if c.JSON {
		return p.printJSON(answer)
	}
	for i, id := range answer.IDs {
		if i > 0 {
			p.print(",")
		}
		p.print(strconv.Itoa(id))
	}
	p.print("\n")
	for _, piece := range answer.Pieces {
		p.printf("%q\n", piece)
	}
	return nil
}

func (c tokenizeCmd) encode(t *tokenizer.Tokenizer, text string) tokenized {
	answer := tokenized{IDs: t.Encode(text)}
	if answer.IDs == nil {
		answer.IDs = []int{}
	}
	if c.Pieces {
		answer.Pieces = t.Pieces(text)
	}
	return answer
}

// checkIDs refuses ids that the vocabulary does not have.
func checkIDs(t *tokenizer.Tokenizer, ids []int) error {
	for _, id := range ids {
		if id < 0 || id >= t.VocabSize() {
			return usagef("there is no token %d; this model has 0 to %d", id, t.VocabSize()-1)
		}
	}
	return nil
}

// lines answers each line of standard input with a line. A bad line ends it, with
// the answers of those before it written.
func (c tokenizeCmd) lines(p *process, t *tokenizer.Tokenizer) error {
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	in := bufio.NewReader(p.stdin)
	for number := 1; ; number++ {
		line, readErr := in.ReadBytes('\n')
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return fmt.Errorf("standard input: %w", readErr)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			answer, err := c.line(t, line)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if err := encoder.Encode(answer); err != nil {
				return err
			}
			if in.Buffered() == 0 { // whoever writes the lines may wait for the answer
				out.Flush()
			}
		}
		if readErr != nil {
			return nil
		}
	}
}

func (c tokenizeCmd) line(t *tokenizer.Tokenizer, line []byte) (any, error) {
	var asked struct {
		Text *string `json:"text"`
		IDs  *[]int  `json:"ids"`
	}
	want := `{"text": "…"}`
	if c.Decode {
		want = `{"ids": [1, 2, 3]}`
	}
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, fmt.Errorf("want %s: %w", want, err)
	}
	switch {
	case c.Decode && asked.IDs != nil:
		if err := checkIDs(t, *asked.IDs); err != nil {
			return nil, errors.New(err.Error()) // input, not usage
		}
		return detokenized{t.Decode(*asked.IDs)}, nil
	case !c.Decode && asked.Text != nil:
		return c.encode(t, *asked.Text), nil
	}
	return nil, fmt.Errorf("want %s, got %s", want, shorten(string(bytes.TrimSpace(line))))
}

// shorten cuts what an error quotes to a line's worth.
func shorten(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
