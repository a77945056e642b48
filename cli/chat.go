package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"deltafin/engine/xtml"
	"deltafin/rig"
)

type chatCmd struct {
	Prompt   *string `arg:"" optional:"" help:"What you say; - reads standard input. Without it, on a terminal, a conversation."`
	Messages string  `placeholder:"F.json" help:"A conversation: an object with messages and, if wanted, tools, thinking, thinking_effort, tool_choice, response_format; - reads standard input."`
	Render   bool    `help:"Print the rendered conversation as JSON, [[text, is_markup], …], and stop."`
	Thinking *bool   `negatable:"" help:"Let the model think first (default: as --messages says, else no)."`
	Effort   string  `placeholder:"low,high,max" help:"How much to think; goes with thinking."`

	MaxTokens int `default:"512" help:"New tokens at most in an answer."`
	samplingFlags
	JSON bool `name:"json" help:"Print one JSON object: generate's, with text the response, and thinking and message."`
	modelFlags
}

func (chatCmd) Help() string {
	return `What the model thinks goes to standard error, its response to standard output. In a conversation Ctrl-C ends an answer; Ctrl-D, or Ctrl-C at the prompt, ends the conversation. Examples:

    deltafin chat "What is a goroutine?"
    deltafin chat --thinking --effort low "Is 91 a prime?"
    deltafin chat --messages conversation.json --render`
}

// answered is what chat --json prints.
type answered struct {
	rig.Generation
	Thinking string       `json:"thinking"`
	Message  xtml.Message `json:"message"` // to append to the conversation
}

func (c chatCmd) Run(p *process) error {
	var q rig.Request
	if err := c.samplingFlags.fill(&q, c.MaxTokens); err != nil {
		return err
	}
	in, converse, err := c.input(p)
	if err != nil {
		return err
	}
	if c.Render {
		return c.render(p, in)
	}
	ctx, stop := p.interruptible()
	r, err := c.open(ctx, p)
	if err != nil {
		stop()
		return err
	}
	defer r.Close()
	if converse {
		stop() // each turn has its own
		return c.converse(p, r, in, q)
	}
	defer stop()
	_, err = c.answer(ctx, p, r, in, q)
	return err
}

// input is the conversation to answer; converse is true when the user will say it
// line by line.
func (c chatCmd) input(p *process) (in *xtml.Input, converse bool, err error) {
	switch {
	case c.Messages != "" && c.Prompt != nil:
		return nil, false, usagef("both a prompt and --messages are given; one of them is the conversation")
	case c.Messages != "":
		if in, err = readMessages(p, c.Messages); err != nil {
			return nil, false, err
		}
	case c.Prompt != nil:
		text, err := readText(p, *c.Prompt)
		if err != nil {
			return nil, false, err
		}
		if strings.TrimSpace(text) == "" {
			return nil, false, usagef("the prompt is empty; say something")
		}
		in = &xtml.Input{NoThinking: true, Messages: []xtml.Message{xtml.User(text)}}
	case p.talks && !c.JSON && !c.Render:
		in, converse = &xtml.Input{NoThinking: true}, true
	default:
		return nil, false, usagef("no prompt: give a text in quotes, - to read standard input, or --messages F.json; a conversation needs a terminal")
	}
	if c.Thinking != nil {
		in.NoThinking = !*c.Thinking
	}
	if c.Effort != "" {
		in.Effort = c.Effort
		if in.NoThinking {
			return nil, false, usagef("--effort %s: says how much to think, and thinking is off; add --thinking", c.Effort)
		}
		if c.Effort != "low" && c.Effort != "high" && c.Effort != "max" {
			return nil, false, usagef("--effort %s: expected low, high or max", c.Effort)
		}
	}
	return in, converse, nil
}

func readMessages(p *process, name string) (*xtml.Input, error) {
	var b []byte
	var err error
	if name == "-" {
		name = "standard input"
		b, err = io.ReadAll(p.stdin)
	} else {
		b, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err // it names a file
	}
	in, err := xtml.ParseInput(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, nil
}

func (c chatCmd) render(p *process, in *xtml.Input) error {
	segments, err := xtml.Render(in)
	if err != nil {
		return err
	}
	pairs := make([][2]any, len(segments))
	for i, segment := range segments {
		pairs[i] = [2]any{segment.Text, segment.Markup}
	}
	return p.printJSON(pairs)
}

// converse answers line after line until the input ends, or Ctrl-C at the prompt.
func (c chatCmd) converse(p *process, r *rig.Rig, in *xtml.Input, q rig.Request) error {
	lines := readLines(p.stdin)
	for {
		ctx, stop := p.interruptible()
		err := c.turn(ctx, p, r, in, q, lines)
		stop()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line is one of the input's, or what came of reading it.
type line struct {
	text string
	err  error
}

// readLines sends the lines of r as they are taken. The last has an error, at the
// end io.EOF. Nothing can stop a read from a terminal, so the goroutine lives until
// then, or as long as the process.
func readLines(r io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		for in := bufio.NewReader(r); ; {
			text, err := in.ReadString('\n')
			lines <- line{text, err}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// turn asks for a line and answers it. The error is io.EOF when the input has ended,
// and errInterrupted when Ctrl-C came before the line; an answer that is interrupted
// is no error.
func (c chatCmd) turn(ctx context.Context, p *process, r *rig.Rig, in *xtml.Input, q rig.Request, lines <-chan line) error {
	if p.watched {
		io.WriteString(p.stderr, "> ")
	}
	var said line
	select {
	case said = <-lines:
	case <-ctx.Done():
		said.err = errInterrupted
	}
	if said.err != nil && p.watched {
		io.WriteString(p.stderr, "\n") // after the prompt, or what was typed
	}
	text := strings.TrimSpace(said.text)
	if bad := checkUTF8(text); bad != nil {
		fmt.Fprintln(p.stderr, bad)
		text = ""
	}
	if text != "" {
		in.Messages = append(in.Messages, xtml.User(text))
		message, err := c.answer(ctx, p, r, in, q)
		if err != nil && !errors.Is(err, errInterrupted) {
			return err
		}
		in.Messages = append(in.Messages, message)
	}
	return said.err
}

// answer generates the next message of the conversation and prints it as it comes.
func (c chatCmd) answer(ctx context.Context, p *process, r *rig.Rig, in *xtml.Input, q rig.Request) (xtml.Message, error) {
	segments, err := xtml.Render(in)
	if err != nil {
		return xtml.Message{}, err
	}
	q.Segments = segments
	specials, err := xtml.FindSpecials(r.Tokenizer().Special)
	if err != nil {
		return xtml.Message{}, err
	}
	parser := xtml.NewParser(specials, r.Tokenizer().NewDecoder(), in.NoThinking)
	status, began := p.status(), time.Now()
	said, thought := "", "" // the last piece of each
	endThought := func() {
		if thought != "" && !strings.HasSuffix(thought, "\n") {
			io.WriteString(p.stderr, "\n")
		}
		thought = ""
	}
	show := func(events []xtml.Event) {
		if len(events) == 0 || c.JSON {
			return
		}
		status.clear()
		for _, e := range events {
			switch e.Kind {
			case xtml.Thinking:
				thought = e.Text
				io.WriteString(p.stderr, p.faint(e.Text))
			case xtml.Response:
				endThought()
				said = e.Text
				p.print(e.Text)
			case xtml.ToolCall:
				endThought()
				said = "\n"
				p.printf("%s %s\n", e.Call.Name, e.Call.Arguments)
			}
		}
	}
	g, err := r.Generate(ctx, q, func(progress rig.Progress) {
		status.prefill(progress.PrefillDone, progress.PrefillTotal, began)
		if progress.IsToken {
			show(parser.Push(progress.Token))
		}
	})
	status.clear()
	if err != nil {
		endThought()
		return xtml.Message{}, err
	}
	show(parser.Finish())
	endThought()
	message := parser.Message()
	if c.JSON {
		g.Text = message.Text()
		err = p.printJSON(answered{*g, message.Reasoning, message})
	} else {
		if said != "" && !strings.HasSuffix(said, "\n") {
			p.print("\n")
		}
		p.summarize(g)
	}
	if err == nil && g.Finish == rig.FinishInterrupted {
		err = errInterrupted
	}
	return message, err
}
