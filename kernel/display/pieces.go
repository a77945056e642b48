package display

import (
	"fmt"
	"strings"
)

// Piece is a part of a text with something to say about it.
type Piece struct {
	Text string
	Note string // shown when the pointer rests on the piece, and under it in Pieces' text form
}

// Pieces shows a text cut into pieces, in turns of four background colours, as
// tokens are shown. Newlines and tabs are drawn as signs and still break lines.
type Pieces []Piece

// DisplayBundle gives text/html and text/plain: there the pieces stand between
// bars, the notes on a line of their own.
func (ps Pieces) DisplayBundle() Bundle {
	tints := []string{"rgba(0,114,178,0.28)", "rgba(230,159,0,0.28)", "rgba(0,158,115,0.28)", "rgba(204,121,167,0.28)"}
	var b strings.Builder
	b.WriteString(`<div style="white-space:pre-wrap;font-family:monospace;line-height:1.7">`)
	texts, notes := make([]string, len(ps)), make([]string, len(ps))
	for i, p := range ps {
		texts[i], notes[i] = visible(p.Text), visible(p.Note)
		fmt.Fprintf(&b, `<span title="%s" style="background:%s;border-radius:3px;padding:0.1em 0">%s</span>`, escapeHTML(p.Note), tints[i%len(tints)], escapeHTML(texts[i]))
		if strings.HasSuffix(p.Text, "\n") {
			b.WriteString("<br>")
		}
	}
	b.WriteString("</div>")
	text := "│" + strings.Join(texts, "│") + "│"
	if len(ps) == 0 {
		text = ""
	}
	if line := strings.Join(notes, " "); strings.TrimSpace(line) != "" {
		text += "\n" + line
	}
	return bundle(text, MIMEHTML, b.String())
}
