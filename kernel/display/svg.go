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

// frame is a chart's SVG with what gonum's plots don't have: a description, a title
// that begins where the data do, keys in a row above them. It has a size of its own,
// which viewers that place it without one need.
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
func (c chart) sums() (low, high []float64) {
	low, high = make([]float64, len(c.labels)), make([]float64, len(c.labels))
	for _, s := range c.series {
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
func (c chart) names() []string {
	if len(c.series) == 1 {
		return nil
	}
	var names []string
	for _, s := range c.series {
		names = append(names, s.Name)
	}
	return names
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
