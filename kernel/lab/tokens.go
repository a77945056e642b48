package lab

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"deltafin/kernel/display"
	"deltafin/rig"
)

// Token is one entry of the vocabulary.
type Token struct {
	ID   int    `json:"id"`   // its number
	Text string `json:"text"` // what it says; bytes of a part of a character read ⟨c3⟩
}

// Tokens is a text in tokens. A cell that ends in one shows them as coloured
// pieces, with their ids.
type Tokens []Token

// IDs gives the ids alone.
func (ts Tokens) IDs() []int {
	ids := make([]int, len(ts))
	for i, t := range ts {
		ids[i] = t.ID
	}
	return ids
}

// DisplayBundle shows the tokens as coloured pieces.
func (ts Tokens) DisplayBundle() display.Bundle {
	pieces := make(display.Pieces, len(ts))
	for i, t := range ts {
		pieces[i] = display.Piece{Text: t.Text, Note: strconv.Itoa(t.ID)}
	}
	return pieces.DisplayBundle()
}

// Tokenize cuts a text into the model's tokens. Special tokens written in the text
// are text.
func (l *Lab) Tokenize(text string) Tokens {
	needText("Tokenize", "text", text)
	return call[tokensOf](l, l.session.Context(), "Tokenize", "tokenize", textOf{text}, nil).Tokens
}

// Detokenize is the text of tokens.
func (l *Lab) Detokenize(ids []int) string {
	return call[textOf](l, l.session.Context(), "Detokenize", "detokenize", idsOf{ids}, nil).Text
}

// Distribution is what the model expects next after a prompt.
type Distribution struct {
	Prompt string          // what was asked
	Top    []rig.TokenProb // the likeliest tokens, the likeliest first
	Logits []float32       // of every token of the vocabulary, by id
}

// Entropy is the distribution's entropy in bits: 0 where the next token is
// certain, log₂ of the vocabulary where all are as likely.
func (d *Distribution) Entropy() float64 {
	largest := math.Inf(-1)
	for _, v := range d.Logits {
		largest = math.Max(largest, float64(v))
	}
	var sum, weighted float64
	for _, v := range d.Logits {
		x := float64(v) - largest
		sum += math.Exp(x)
		weighted += float64(math.Exp(x) * x)
	}
	if sum == 0 {
		return 0
	}
	return (math.Log(sum) - weighted/sum) / math.Ln2
}

// DisplayBundle shows the likeliest tokens as bars.
func (d *Distribution) DisplayBundle() display.Bundle {
	b := display.Bars{Title: "next token", Label: "token", Value: "probability", Horizontal: true, Labels: []string{}, Series: []display.Series{{Name: "probability"}}}
	for _, t := range d.Top {
		b.Labels = append(b.Labels, strconv.Quote(t.Text))
		b.Series[0].Values = append(b.Series[0].Values, t.Prob)
	}
	return b.DisplayBundle()
}

// Logits computes what comes next after a prompt: the n likeliest tokens, 20
// unless said otherwise, and the logits of all.
func (l *Lab) Logits(prompt string, n ...int) *Distribution {
	needText("Logits", "prompt", prompt)
	q := request{Prompt: prompt, Top: 20}
	if len(n) > 0 {
		q.Top = n[0]
	}
	r := call[distribution](l, l.session.Context(), "Logits", "logits", q, nil)
	if len(r.Row)%4 != 0 {
		fail("Logits", fmt.Errorf("want 4 bytes a logit, got %d bytes", len(r.Row)))
	}
	d := &Distribution{Prompt: prompt, Top: r.Top, Logits: make([]float32, len(r.Row)/4)}
	for i := range d.Logits {
		d.Logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.Row[4*i:]))
	}
	return d
}
