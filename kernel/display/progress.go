package display

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Progress is how far long work has come. Shown once, and then again in place
// under the same display id, it is a progress bar; as text it is one line.
type Progress struct {
	Title   string
	Unit    string // what is counted, such as "rows"
	Done    int64
	Total   int64 // 0 when it is not known
	Elapsed time.Duration
}

// DisplayBundle gives text/html and text/plain.
func (p Progress) DisplayBundle() Bundle {
	var b strings.Builder
	b.WriteString(`<div style="font-variant-numeric:tabular-nums">`)
	if p.Title != "" {
		b.WriteString(escapeHTML(p.Title) + " ")
	}
	if p.Total > 0 {
		fmt.Fprintf(&b, `<span style="display:inline-block;vertical-align:middle;width:240px;height:8px;border-radius:4px;background:rgba(128,128,128,0.25)">`+
			`<span style="display:block;width:%.1f%%;height:8px;border-radius:4px;background:%s"></span></span> `, 100*p.share(), palette[0])
	}
	b.WriteString(escapeHTML(p.figures()) + "</div>")

	text := p.figures()
	if p.Total > 0 {
		const cells = 24
		bar := eighths(p.share() * cells)
		text = "▕" + pad(bar, cells, false) + "▏ " + text
	}
	if p.Title != "" {
		text = visible(p.Title) + " " + text
	}
	return bundle(text, MIMEHTML, b.String())
}

func (p Progress) share() float64 {
	return min(1, max(0, float64(p.Done)/float64(p.Total)))
}

// figures is the line beside the bar: counts, rate, time left.
func (p Progress) figures() string {
	unit := p.Unit
	if unit != "" {
		unit = " " + visible(unit)
	}
	s := fmt.Sprintf("%d%s", p.Done, unit)
	if p.Total > 0 {
		s = fmt.Sprintf("%3.0f %%  %d of %d%s", math.Floor(100*p.share()), p.Done, p.Total, unit)
	}
	if p.Done > 0 && p.Elapsed > 0 {
		rate := float64(p.Done) / p.Elapsed.Seconds()
		s += fmt.Sprintf(", %s/s", number(rate))
		if left := float64(p.Total-p.Done) / rate; p.Total > 0 && left > 0 && left < 1e6 {
			s += ", " + time.Duration(left*float64(time.Second)).Round(time.Second).String() + " left"
		} else if p.Done >= p.Total {
			s += ", took " + Duration(p.Elapsed)
		}
	}
	return s
}
