// Package xtml is Kimi K3's chat template (docs/xtml.md): Render turns a conversation
// into segments to encode, and a Parser turns the tokens of the answer back into
// thinking, response and tool calls. It knows no tokenizer: special ids and a text
// decoder are given to the Parser.
package xtml

// Segment is a piece of a rendered conversation. Segments are encoded one by one,
// never joined; only markup may hold special tokens.
type Segment struct {
	Text   string // never empty
	Markup bool
}
