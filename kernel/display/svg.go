package display

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The layout that SVG charts share, in pixels. Charts below each other begin at
// the same left edge where their labels allow it.
const (
	leastLeft  = 64  // of the plot, for the side's labels and title
	rightEdge  = 24  // beside the plot, for half of the last label below it
	bottomEdge = 44  // below the plot, for labels and title
	fontSize   = 11  // of all text but the title
	letter     = 6.4 // wide, of a terminal's cell of text in that size, about
	tickSize   = 5
)

// frame is a chart's SVG and what surrounds every plot: title, axes, keys. It has
// a size of its own, which viewers that place it without one need.
type frame struct {
	strings.Builder
	left, top, width, height int // of the plot
}

// newFrame begins a chart whose plot has the usual width: below the title's lines
// and a row of keys, one for each name, in the palette's colours. alt says in a
// sentence what the chart shows, for who doesn't see it.
func newFrame(title, alt string, names []string, left, right, height int) *frame {
	f := &frame{left: left, top: 12, width: plotWidth, height: height}
	var lines []string
	if title != "" {
		lines = strings.Split(title, "\n")
		f.top = 16 + 18*len(lines)
	}
	var keys strings.Builder
	x, baseline := float64(left), f.top+10
	for i, name := range names {
		name = cut(visible(name), 24)
		width := 22 + float64(letter*float64(textWidth(name))) + 8
		if i > 0 && x+width > float64(left+plotWidth) {
			x, baseline = float64(left), baseline+18
		}
		fmt.Fprintf(&keys, `<rect x="%s" y="%d" width="10" height="10" fill="%s"/><text x="%s" y="%d">%s</text>`, px(x), baseline-9, palette[i], px(x+15), baseline, escapeXML(name))
		x += width
	}
	if len(names) > 0 {
		f.top = baseline + 16
	}
	first, _, _ := strings.Cut(title, "\n")
	fmt.Fprintf(f, `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" width="%d" height="%d" font-family="sans-serif" font-size="%d" fill="%s">`,
		left+plotWidth+right, f.top+height+bottomEdge, fontSize, gray)
	fmt.Fprintf(f, `<title>%s</title><desc>%s</desc>`, escapeXML(orElse(first, "chart")), escapeXML(alt))
	for i, line := range lines {
		size := ""
		if i == 0 {
			size = ` font-size="13" font-weight="600"`
		}
		fmt.Fprintf(f, `<text x="%d" y="%d"%s>%s</text>`, left, 18+18*i, size, escapeXML(cut(line, 100)))
	}
	f.WriteString(keys.String())
	return f
}

func (f *frame) bottom() int { return f.top + f.height }

// end gives the whole.
func (f *frame) end() string {
	f.WriteString("</svg>")
	return f.String()
}

// titles names the axes: below is the one from left to right.
func (f *frame) titles(below, side string) {
	if below != "" {
		fmt.Fprintf(f, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, f.left+f.width/2, f.bottom()+36, escapeXML(cut(below, 100)))
	}
	if side != "" {
		fmt.Fprintf(f, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`, f.top+f.height/2, escapeXML(cut(side, int(float64(f.height)/letter)+4)))
	}
}

// below writes a label with a tick under the plot, at x.
func (f *frame) below(x float64, label string) {
	fmt.Fprintf(f, `<path d="M%s %dv%d" stroke="%s"/><text x="%s" y="%d" text-anchor="middle">%s</text>`, px(x), f.bottom(), tickSize, gray, px(x), f.bottom()+17, escapeXML(label))
}

// beside writes a label to the left of the plot, at y.
func (f *frame) beside(y float64, label string) {
	fmt.Fprintf(f, `<text x="%d" y="%s" text-anchor="end">%s</text>`, f.left-6, px(y+4), escapeXML(label))
}

// grid draws faint lines through the plot: each from left to right at y, or with
// upright from top to bottom at x.
func (f *frame) grid(at []float64, upright bool) {
	f.WriteString(`<path d="`)
	for _, v := range at {
		if upright {
			fmt.Fprintf(f, "M%s %dv%d", px(v), f.top, f.height)
		} else {
			fmt.Fprintf(f, "M%d %sh%d", f.left, px(v), f.width)
		}
	}
	fmt.Fprintf(f, `" stroke="%s" stroke-opacity="0.25"/>`, gray)
}

// px writes a coordinate.
func px(v float64) string {
	return strconv.FormatFloat(float64(math.Round(v*10))/10, 'f', -1, 64)
}

// escapeXML escapes text for an SVG element.
func escapeXML(s string) string { return escapeHTML(visible(s)) }

// leftOf is where a plot begins that has such labels at its left side.
func leftOf(labels []string) int {
	widest := 0
	for _, l := range labels {
		widest = max(widest, textWidth(l))
	}
	return max(leastLeft, 32+int(math.Ceil(letter*float64(widest))))
}

// scale is an axis of values.
type scale struct {
	from, to float64
	ticks    []float64
}

func newScale(low, high float64) scale {
	from, to, n := niceRange(low, high)
	s := scale{from: from, to: to}
	for i := range n {
		s.ticks = append(s.ticks, from+float64((to-from)*(float64(i)/float64(n-1))))
	}
	return s
}

// at is where v stands from the axis's beginning, 0, to its end, 1.
func (s scale) at(v float64) float64 { return (v - s.from) / (s.to - s.from) }

func (s scale) labels() []string {
	labels := make([]string, len(s.ticks))
	for i, v := range s.ticks {
		labels[i] = number(v)
	}
	return labels
}

// niceRange widens low to high to multiples of 1, 2 or 5 × 10ⁿ, four to eight of
// them, and counts the ticks. A range of one value is widened to 0, or to 1.
func niceRange(low, high float64) (from, to float64, ticks int) {
	if width := high - low; width <= 1e-9*max(math.Abs(low), math.Abs(high)) { // its steps would be too fine for floats
		low, high = min(low, 0), max(high, 0)
	}
	if low == high {
		return 0, 1, 2
	}
	if width := high - low; width < 1e-300 || math.IsInf(width, 1) { // a step of it would be 0 or infinite
		return low, high, 2
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	switch over := (high - low) / 4 / step; {
	case over >= 5:
		step *= 5
	case over >= 2:
		step *= 2
	}
	first, last := math.Floor(low/step), math.Ceil(high/step)
	return first * step, last * step, int(last-first) + 1
}

// labelled says which of n labels, each room pixels from the last, to write where
// one takes need pixels: all, every second, fifth, tenth and so on, counted so that
// labels which are numbers, from first upwards, are multiples of that.
func labelled(n, first int, need, room float64) []int {
	step := 1
	for i := 0; float64(step)*room < need && step < n; i++ {
		step = step / []int{1, 2, 5}[i%3] * []int{2, 5, 10}[i%3]
	}
	var at []int
	for i := range n {
		if (first+i)%step == 0 {
			at = append(at, i)
		}
	}
	if at == nil {
		at = []int{0}
	}
	return at
}

// firstNumber is the first label of those that are numbers, each one more than the
// last, and 0 of others.
func firstNumber(labels []string) int {
	first, err := strconv.Atoi(labels[0])
	if err != nil || first < 0 {
		return 0
	}
	for i, l := range labels {
		if l != strconv.Itoa(first+i) {
			return 0
		}
	}
	return first
}

// widestLabel is the room that the widest label takes, with a gap.
func widestLabel(labels []string) float64 {
	widest := 0
	for _, l := range labels {
		widest = max(widest, textWidth(l))
	}
	return letter*float64(widest) + 8
}

// sums gives, for each label, how far the bars reach below and above 0.
func (p plot) sums() (low, high []float64) {
	low, high = make([]float64, len(p.labels)), make([]float64, len(p.labels))
	for _, s := range p.series {
		for i, v := range s.Values {
			if drawn(v) {
				low[i] += min(v, 0)
				high[i] += max(v, 0)
			}
		}
	}
	return low, high
}

// names are the series' names for keys: of one series there are none.
func (p plot) names() []string {
	if len(p.series) == 1 {
		return nil
	}
	var names []string
	for _, s := range p.series {
		names = append(names, s.Name)
	}
	return names
}

// svg draws each series' bars as one path.
func (c Bars) svg(p plot) string {
	low, high := p.sums()
	s := newScale(slices.Min(low), slices.Max(high))
	if c.Horizontal {
		return p.across(s)
	}
	return p.upright(s, low, high)
}

// upright draws bars from the bottom up.
func (p plot) upright(s scale, low, high []float64) string {
	n := len(p.labels)
	f := newFrame(p.title, p.alt, p.names(), leftOf(s.labels()), rightEdge, plotHeight)
	y := func(v float64) float64 { return float64(f.bottom()) - float64(s.at(v)*float64(f.height)) }
	var lines []float64
	for _, v := range s.ticks {
		lines = append(lines, y(v))
		f.beside(y(v), number(v))
	}
	f.grid(lines, false)
	band := float64(f.width) / float64(n)
	// Where several bars share a pixel, the longest of them is drawn.
	step := (n + f.width - 1) / f.width
	var shown []int
	for i := 0; i < n; i += step {
		longest := i
		for j := i; j < min(i+step, n); j++ {
			if high[j]-low[j] > high[longest]-low[longest] {
				longest = j
			}
		}
		shown = append(shown, longest)
	}
	below, above := make([]float64, n), make([]float64, n)
	for k, series := range p.series {
		fmt.Fprintf(f, `<path fill="%s" d="`, palette[k])
		for at, i := range shown {
			v := series.Values[i]
			if !drawn(v) || v == 0 {
				continue
			}
			from := &above[i]
			if v < 0 {
				from = &below[i]
			}
			x, width := float64(f.left)+float64((float64(i)+0.15)*band), 0.7*band
			if band < 4 {
				x, width = float64(f.left)+float64(float64(at*step)*band), band*float64(step)
			}
			fmt.Fprintf(f, "M%s %sH%sV%sH%sz", px(x), px(y(*from)), px(x+width), px(y(*from+v)), px(x))
			*from += v
		}
		f.WriteString(`"/>`)
	}
	fmt.Fprintf(f, `<path d="M%d %sh%d" stroke="%s"/>`, f.left, px(y(0)), f.width, gray)
	for _, i := range labelled(n, firstNumber(p.labels), widestLabel(p.labels), band) {
		f.below(float64(f.left)+float64((float64(i)+0.5)*band), p.labels[i])
	}
	f.titles(p.label, p.value)
	return f.end()
}

// across draws bars from the left to the right, as many as a table has rows.
func (p plot) across(s scale) string {
	const row, bar = 22, 14
	n := min(len(p.labels), htmlRows)
	labels := p.labels[:n:n]
	if more := len(p.labels) - n; more > 0 {
		labels = append(labels, fmt.Sprintf("… %d more", more))
	}
	f := newFrame(p.title, p.alt, p.names(), leftOf(labels), rightEdge, row*len(labels))
	x := func(v float64) float64 { return float64(f.left) + float64(s.at(v)*float64(f.width)) }
	var lines []float64
	for _, v := range s.ticks {
		lines = append(lines, x(v))
		f.below(x(v), number(v))
	}
	f.grid(lines, true)
	below, above := make([]float64, n), make([]float64, n)
	for k, series := range p.series {
		fmt.Fprintf(f, `<path fill="%s" d="`, palette[k])
		for i, v := range series.Values[:n] {
			if !drawn(v) || v == 0 {
				continue
			}
			from := &above[i]
			if v < 0 {
				from = &below[i]
			}
			fmt.Fprintf(f, "M%s %dH%sv%dH%sz", px(x(*from)), f.top+row*i+(row-bar)/2, px(x(*from+v)), bar, px(x(*from)))
			*from += v
		}
		f.WriteString(`"/>`)
	}
	fmt.Fprintf(f, `<path d="M%s %dv%d" stroke="%s"/>`, px(x(0)), f.top, f.height, gray)
	for i, l := range labels {
		f.beside(float64(f.top+row*i+row/2), l)
	}
	f.titles(p.value, p.label)
	return f.end()
}

// svg draws each series as one path, broken where values are missing.
func (c Lines) svg(p plot) string {
	n := len(p.labels)
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		for _, v := range s.Values {
			if drawn(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low > high {
		low, high = 0, 0
	}
	s := newScale(low, high)
	f := newFrame(p.title, p.alt, p.names(), leftOf(s.labels()), rightEdge, plotHeight)
	y := func(v float64) float64 { return float64(f.bottom()) - float64(s.at(v)*float64(f.height)) }
	room := float64(f.width) / float64(max(1, n-1))
	x := func(i int) float64 { return float64(f.left) + float64(float64(i)*room) }
	if n == 1 {
		x = func(int) float64 { return float64(f.left + f.width/2) }
	}
	var lines []float64
	for _, v := range s.ticks {
		lines = append(lines, y(v))
		f.beside(y(v), number(v))
	}
	f.grid(lines, false)
	for k, series := range p.series {
		fmt.Fprintf(f, `<path fill="none" stroke="%s" stroke-width="1.5" stroke-linejoin="round" stroke-linecap="round" d="`, palette[k])
		command := "M"
		for _, i := range extremes(series.Values, 2*f.width) {
			v := series.Values[i]
			if !drawn(v) {
				command = "M"
				continue
			}
			fmt.Fprintf(f, "%s%s %s", command, px(x(i)), px(y(v)))
			if command == "M" {
				f.WriteString("h0") // a dot, where no line follows
			}
			command = "L"
		}
		f.WriteString(`"/>`)
	}
	fmt.Fprintf(f, `<path d="M%d %dh%d" stroke="%s"/>`, f.left, f.bottom(), f.width, gray)
	need := widestLabel(p.labels)
	if p.numbered {
		need = max(need, 56) // as sparse as a scale of values
	}
	for _, i := range labelled(n, firstNumber(p.labels), need, room) {
		f.below(x(i), p.labels[i])
	}
	f.titles(p.label, p.value)
	return f.end()
}

// extremes picks the positions of at most about n values that draw the same line:
// all, or of each run of equal length the least and the greatest, and one that is
// missing.
func extremes(values []float64, n int) []int {
	var at []int
	run := max(1, 2*len(values)/n)
	if len(values) <= n {
		run = 1
	}
	for from := 0; from < len(values); from += run {
		low, high, missing := -1, -1, -1
		for i := from; i < min(from+run, len(values)); i++ {
			switch v := values[i]; {
			case !drawn(v):
				missing = i
			case low < 0:
				low, high = i, i
			case v < values[low]:
				low = i
			case v > values[high]:
				high = i
			}
		}
		picked := []int{low, high, missing}
		slices.Sort(picked)
		for _, i := range slices.Compact(picked) {
			if i >= 0 {
				at = append(at, i)
			}
		}
	}
	return at
}
