package display

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// words writes a plot's labels in the viewer's sans-serif font, which isn't known
// here. So widths are a terminal's, and the viewer aligns: the name of a font
// variant, which vgsvg writes into a text's style, says how. Heights are left to the
// axes' padding, which keeps the data where the frame says.
type words struct{ text.Plain }

const capHeight = 8 // of letters in fontSize

var anchors = map[text.XAlignment]font.Variant{draw.XLeft: "start", draw.XCenter: "middle", draw.XRight: "end"}

func newWords() words {
	var faces font.Collection
	for _, v := range anchors {
		faces = append(faces, font.Face{Font: font.Font{Variant: v}, Face: liberation.Collection()[0].Face})
	}
	return words{text.Plain{Fonts: font.NewCache(faces)}}
}

func (w words) Extents(font.Font) font.Extents { return font.Extents{} }

func (w words) Box(s string, _ font.Font) (width, height, depth vg.Length) {
	return vg.Length(letter * float64(textWidth(s))), 0, 0
}

func (w words) Draw(c vg.Canvas, s string, style text.Style, at vg.Point) {
	style.Font.Variant = anchors[style.XAlign]
	at.Y += vg.Length(style.YAlign) * capHeight
	c.SetColor(style.Color)
	c.Push()
	if style.Rotation != 0 {
		c.Translate(at)
		c.Rotate(style.Rotation)
		at = vg.Point{}
	}
	c.FillString(w.Fonts.Lookup(style.Font, fontSize), at, s)
	c.Pop()
}

// dropStyle drops what vgsvg writes of each text's style and the frame says of all;
// the quotes around a style are none in a text, which has them escaped.
func dropStyle(svg string) string {
	var pairs []string
	for _, v := range anchors {
		pairs = append(pairs, fmt.Sprintf("\n\tstyle=\"font-family:Liberation Serif;font-variant:%s;font-weight:normal;font-style:normal;font-size:%dpx;fill:%s\"", v, fontSize, strings.ToUpper(gray)),
			fmt.Sprintf(` text-anchor="%s"`, v))
	}
	return strings.NewReplacer(pairs...).Replace(svg)
}

// stroke is a line's style, in a colour written #rrggbb.
func stroke(hex string, width vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: rgb(hex, 255), Width: width}
}

func rgb(hex string, alpha uint8) color.Color {
	c := color.NRGBA{A: alpha}
	fmt.Sscanf(hex, "#%02x%02x%02x", &c.R, &c.G, &c.B)
	return c
}

// axis is a side of a plot.
type axis struct {
	title    string
	from, to float64
	ticks    plot.ConstantTicks
	grid     bool // lines through the plot at the ticks
}

// label adds a tick.
func (a *axis) label(at float64, s string) {
	a.ticks = append(a.ticks, plot.Tick{Value: at, Label: visible(s)})
}

// axis is the axis of a scale.
func (s scale) axis(title string) axis {
	a := axis{title: title, from: s.from, to: s.to, grid: true}
	for i, l := range s.labels() {
		a.label(s.ticks[i], l)
	}
	return a
}

// newPlot is a plot without data, of so many pixels' height.
func newPlot(x, y axis, height int) *plot.Plot {
	p, grid, words := plot.New(), &plotter.Grid{}, newWords()
	p.BackgroundColor = nil
	for _, s := range []struct {
		*plot.Axis
		axis
		grid  *draw.LineStyle
		title int // cut to so many letters
	}{{&p.X, x, &grid.Vertical, 100}, {&p.Y, y, &grid.Horizontal, int(float64(height)/letter) + 4}} {
		s.Min, s.Max, s.Padding, s.Axis.Width = s.from, s.to, 0, 0
		for _, t := range []*text.Style{&s.Label.TextStyle, &s.Tick.Label} {
			t.Color, t.Font.Size, t.Handler = rgb(gray, 255), fontSize, words
		}
		s.Label.Text = visible(cut(s.axis.title, s.title))
		s.Tick.Marker, s.Tick.LineStyle = s.ticks, stroke(gray, 1)
		if s.axis.grid {
			*s.grid = draw.LineStyle{Color: rgb(gray, 64), Width: 1}
		}
	}
	p.X.Tick.Length, p.X.Tick.Label.YAlign, p.X.Label.Padding = tickSize, -1.5, 31
	p.Y.Tick.Length, p.Y.Label.Padding = 0, 10
	p.Add(grid)
	return p
}

// draw draws a plot into the frame, its data in the frame's plot.
func (f *frame) draw(p *plot.Plot) {
	height := vg.Length(f.bottom() + bottomEdge)
	svg := vgsvg.New(vg.Length(f.left+f.width), height)
	c := draw.New(svg)
	want := vg.Rectangle{Min: vg.Point{X: vg.Length(f.left), Y: bottomEdge}, Max: vg.Point{X: vg.Length(f.left + f.width), Y: height - vg.Length(f.top)}}
	for range 2 { // what stands around the data is known once its place is
		got := p.DataCanvas(c)
		c.Min, c.Max = c.Min.Add(want.Min.Sub(got.Min)), c.Max.Add(want.Max.Sub(got.Max))
	}
	p.Draw(c)
	var buf bytes.Buffer
	if _, err := svg.WriteTo(&buf); err != nil {
		return // a buffer takes it
	}
	_, body, _ := strings.Cut(buf.String(), "xlink\">\n")
	fmt.Fprintf(f, `<g stroke-linecap="round" stroke-linejoin="round">%s</g>`, dropStyle(strings.TrimSuffix(body, "</svg>\n")))
}

// svg draws the bars in a plot of their own.
func (c Bars) svg(p chart) string {
	if c.Horizontal {
		return p.across()
	}
	return p.upright()
}

// upright draws bars from the bottom up; of several that share a pixel, the longest.
func (p chart) upright() string {
	low, high := p.sums()
	values := newScale(slices.Min(low), slices.Max(high))
	n := len(p.labels)
	step := (n + plotWidth - 1) / plotWidth
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
	f := newFrame(p.title, p.alt, p.names(), leftOf(values.labels()), rightEdge, plotHeight)
	names := axis{title: p.label, from: -0.5, to: float64(len(shown)) - 0.5}
	band := float64(f.width) / float64(len(shown))
	for _, i := range labelled(n, firstNumber(p.labels), widestLabel(p.labels), band/float64(step)) {
		names.label((float64(i)+0.5)/float64(step)-0.5, p.labels[i])
	}
	to := newPlot(names, values.axis(p.value), f.height)
	width := band
	if band >= 4 {
		width = 0.7 * band
	}
	p.bars(to, shown, plotter.BarChart{Width: vg.Length(width)})
	to.Add(&plotter.Line{XYs: plotter.XYs{{X: names.from}, {X: names.to}}, LineStyle: stroke(gray, 1)})
	f.draw(to)
	return f.end()
}

// across draws bars from the left to the right, as many as a table has rows.
func (p chart) across() string {
	const row, bar = 22, 14
	low, high := p.sums()
	values := newScale(slices.Min(low), slices.Max(high))
	var labels []string
	var shown []int
	for i, l := range p.labels[:min(len(p.labels), htmlRows)] {
		labels, shown = append(labels, l), append(shown, i)
	}
	if more := len(p.labels) - htmlRows; more > 0 {
		labels = append(labels, fmt.Sprintf("… %d more", more))
	}
	f := newFrame(p.title, p.alt, p.names(), leftOf(labels), rightEdge, row*len(labels))
	names := axis{title: p.label, from: -0.5, to: float64(len(labels)) - 0.5}
	for i, l := range labels {
		names.label(float64(i), l)
	}
	to := newPlot(values.axis(p.value), names, f.height)
	to.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
	p.bars(to, shown, plotter.BarChart{Width: bar, Horizontal: true})
	to.Add(&plotter.Line{XYs: plotter.XYs{{Y: names.from}, {Y: names.to}}, LineStyle: stroke(gray, 1)})
	f.draw(to)
	return f.end()
}

// bars adds the series' bars of the labels shown, like one that has its width and
// direction: what is positive stacked upwards from 0, what is negative downwards.
func (p chart) bars(to *plot.Plot, shown []int, like plotter.BarChart) {
	var tops [2]*plotter.BarChart
	for k, series := range p.series {
		parts := [2]plotter.Values{make(plotter.Values, len(shown)), make(plotter.Values, len(shown))}
		for at, i := range shown {
			if v := series.Values[i]; drawn(v) {
				parts[0][at], parts[1][at] = max(v, 0), min(v, 0)
			}
		}
		for side, values := range parts {
			if slices.Max(values) == 0 && slices.Min(values) == 0 {
				continue
			}
			b := like
			b.Values, b.Color = values, rgb(palette[k], 255)
			if tops[side] != nil {
				b.StackOn(tops[side])
			}
			to.Add(&b)
			tops[side] = &b
		}
	}
}

// svg draws each series as a line, broken where values are missing.
func (c Lines) svg(p chart) string {
	n, low, high := len(p.labels), math.Inf(1), math.Inf(-1)
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
	values := newScale(low, high)
	f := newFrame(p.title, p.alt, p.names(), leftOf(values.labels()), rightEdge, plotHeight)
	x := axis{title: p.label, to: float64(n - 1)}
	if n == 1 {
		x.from, x.to = -0.5, 0.5
	}
	need := widestLabel(p.labels)
	if p.numbered {
		need = max(need, 56) // as sparse as a scale of values
	}
	for _, i := range labelled(n, firstNumber(p.labels), need, float64(f.width)/float64(max(1, n-1))) {
		x.label(float64(i), p.labels[i])
	}
	to := newPlot(x, values.axis(p.value), f.height)
	to.X.LineStyle = stroke(gray, 1)
	for k, series := range p.series {
		var points plotter.XYs
		for _, i := range append(extremes(series.Values, 2*f.width), n) {
			if i < n && drawn(series.Values[i]) {
				points = append(points, plotter.XY{X: float64(i), Y: series.Values[i]})
				continue
			}
			if len(points) == 1 {
				points = append(points, points[0]) // a dot
			}
			if points != nil {
				to.Add(&plotter.Line{XYs: points, LineStyle: stroke(palette[k], 1.5)})
			}
			points = nil
		}
	}
	f.draw(to)
	return f.end()
}
