package display

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxCells bounds what a chart holds, so that a wrong variable in a cell doesn't
// make a notebook of gigabytes: K3's 92 × 896 experts have 82,432 cells.
const maxCells = 1 << 18

// The size of a chart's plot, in pixels.
const (
	plotWidth  = 640
	plotHeight = 260
)

const gray = "#757c86" // contrast 4.2 on white, 4.5 on #111

// palette is Okabe and Ito's, without black, yellow first to last by contrast.
var palette = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"}

// Series is one named list of values. NaN, infinite ones and those beyond 1e300
// (a stack of which would be infinite) are not drawn.
type Series struct {
	Name   string
	Values []float64
}

func drawn(v float64) bool { return math.Abs(v) <= 1e300 }

// Bars is a bar chart: a bar for each label, on an axis that begins at 0 or at
// the lowest negative value. Several series are stacked.
type Bars struct {
	Title      string
	Label      string   // what the labels are, such as "layer"
	Value      string   // what the values are, with their unit, such as "stall, ms"
	Labels     []string // nil numbers them from 0
	Series     []Series // each with a value for each label
	Horizontal bool     // labels down the left side: for long labels
}

// Lines is a line chart over evenly spaced positions.
type Lines struct {
	Title  string
	Label  string   // what the positions are, such as "token"
	Value  string   // what the values are, with their unit
	Labels []string // a name for each position; nil numbers them from 0
	Series []Series // each with a value for each position
}

// chart is what Bars and Lines have in common, checked.
type chart struct {
	title, label, value string
	labels              []string
	numbered            bool // labels are 0, 1, 2, …
	series              []Series
	alt                 string // what it shows, in a sentence
}

func newChart(kind, title, label, value string, labels []string, series []Series) (chart, error) {
	p := chart{title: title, label: label, value: value, numbered: labels == nil, series: series}
	if len(series) == 0 || len(series[0].Values) == 0 {
		return p, errors.New("display: want values for a chart, got none")
	}
	n := len(series[0].Values)
	if len(series) > len(palette) {
		return p, fmt.Errorf("display: want at most %d series in a chart, got %d", len(palette), len(series))
	}
	if n*len(series) > maxCells {
		return p, fmt.Errorf("display: want at most %d values in a chart, got %d", maxCells, n*len(series))
	}
	for _, s := range series {
		if len(s.Values) != n {
			return p, fmt.Errorf("display: want series of one length, got %d values in %q and %d in %q", n, series[0].Name, len(s.Values), s.Name)
		}
	}
	if labels == nil {
		for i := range n {
			p.labels = append(p.labels, strconv.Itoa(i))
		}
		p.alt = p.describe(kind)
		return p, nil
	}
	if len(labels) != n {
		return p, fmt.Errorf("display: want a label for each of %d values, got %d", n, len(labels))
	}
	seen := map[string]int{}
	for _, l := range labels {
		l = cut(visible(l), 32)
		if seen[l]++; seen[l] > 1 { // a front end would draw equal labels as one
			l = fmt.Sprintf("%s (%d)", l, seen[l])
		}
		p.labels = append(p.labels, l)
	}
	p.alt = p.describe(kind)
	return p, nil
}

// describe says what a chart shows to who doesn't see it.
func (p chart) describe(kind string) string {
	low, high := math.Inf(1), math.Inf(-1)
	var names []string
	for _, s := range p.series {
		if s.Name != "" {
			names = append(names, s.Name)
		}
		for _, v := range s.Values {
			if drawn(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	s := fmt.Sprintf("%s of %s by %s, from %s to %s", kind, orElse(p.value, "values"), orElse(p.label, "position"), p.labels[0], p.labels[len(p.labels)-1])
	if len(names) > 1 {
		s += ", of " + strings.Join(names, ", ")
	}
	if low <= high {
		s += fmt.Sprintf("; values from %s to %s", number(low), number(high))
	}
	return altText(p.title, s)
}

// altText is a chart's title and then what it shows, in one line.
func altText(title, shows string) string {
	if title != "" {
		shows = strings.ReplaceAll(title, "\n", ", ") + ": " + shows
	}
	return visible(shows)
}

// DisplayBundle gives Vega-Lite, SVG and a text of bars. A chart that can't be
// drawn, because its series differ in length, say, displays as the reason.
func (c Bars) DisplayBundle() Bundle {
	p, err := newChart("bar chart", c.Title, c.Label, c.Value, c.Labels, c.Series)
	if err != nil {
		return Text(err.Error())
	}
	labels := map[string]any{"field": "x", "type": "ordinal", "title": c.Label, "sort": nil, "axis": map[string]any{"labelOverlap": true, "labelAngle": 0}}
	values := map[string]any{"field": "y", "type": "quantitative", "title": c.Value, "stack": "zero", "axis": map[string]any{"tickCount": 5}}
	encoding := map[string]any{"x": labels, "y": values}
	size := [2]any{plotWidth, plotHeight}
	if c.Horizontal {
		encoding = map[string]any{"y": labels, "x": values}
		size[1] = map[string]any{"step": 18}
	}
	return chartBundle(c.text(p), p.vega("bar", encoding, size), c.svg(p), p.alt)
}

// DisplayBundle gives Vega-Lite, SVG and a text of one small line a series.
func (c Lines) DisplayBundle() Bundle {
	p, err := newChart("line chart", c.Title, c.Label, c.Value, c.Labels, c.Series)
	if err != nil {
		return Text(err.Error())
	}
	x := map[string]any{"field": "x", "type": "ordinal", "title": c.Label, "sort": nil, "axis": map[string]any{"labelOverlap": true, "labelAngle": 0}}
	if p.numbered {
		x = map[string]any{"field": "x", "type": "quantitative", "title": c.Label, "scale": map[string]any{"nice": false}, "axis": map[string]any{"grid": false, "tickMinStep": 1}}
	}
	y := map[string]any{"field": "y", "type": "quantitative", "title": c.Value, "scale": map[string]any{"zero": false}, "axis": map[string]any{"tickCount": 5}}
	return chartBundle(c.text(p), p.vega("line", map[string]any{"x": x, "y": y}, [2]any{plotWidth, plotHeight}), c.svg(p), p.alt)
}

// chartBundle makes a chart's bundle. alt is for pages that show the SVG as an image,
// which has no text for who doesn't see it.
func chartBundle(text string, vega any, svg, alt string) Bundle {
	return Bundle{
		Data: map[string]any{MIMEText: text, MIMEVegaLite: vega, MIMESVG: svg},
		Metadata: map[string]any{
			MIMEVegaLite: map[string]any{"embed_options": map[string]any{"renderer": "canvas"}},
			MIMESVG:      map[string]any{"alt": alt},
		},
	}
}

// vega completes a Vega-Lite spec of one mark. The data is one record a series,
// two lists that Vega flattens, which is the most compact inline form.
func (p chart) vega(mark string, encoding map[string]any, size [2]any) map[string]any {
	var records []any
	var names, colors []string
	for i, s := range p.series {
		ys := make([]any, len(s.Values))
		for j, v := range s.Values {
			if drawn(v) {
				ys[j] = v
			}
		}
		name := s.Name
		if name == "" {
			name = p.value
		}
		record := map[string]any{"series": name, "order": i, "y": ys}
		if !p.numbered {
			record["x"] = p.labels
		}
		records = append(records, record)
		names = append(names, name)
		colors = append(colors, palette[i])
	}
	transform := []any{}
	if p.numbered {
		transform = append(transform, map[string]any{"calculate": fmt.Sprintf("sequence(%d)", len(p.labels)), "as": "x"})
	}
	transform = append(transform, map[string]any{"flatten": []string{"x", "y"}})
	color := map[string]any{"field": "series", "type": "nominal", "title": nil, "scale": map[string]any{"domain": names, "range": colors}}
	if len(p.series) == 1 {
		color["legend"] = nil
	}
	encoding["color"] = color
	if mark == "bar" {
		encoding["order"] = map[string]any{"field": "order", "type": "quantitative"}
	}
	encoding["tooltip"] = []any{
		map[string]any{"field": "x", "title": orElse(p.label, "label")},
		map[string]any{"field": "y", "type": "quantitative", "title": orElse(p.value, "value")},
		map[string]any{"field": "series"},
	}
	spec := vegaSpec(p.title, size, records, transform)
	spec["mark"] = map[string]any{"type": mark, "strokeWidth": 1.5}
	spec["encoding"] = encoding
	return spec
}

// vegaSpec is the frame of each Vega-Lite spec: size, data, colours of text.
func vegaSpec(title string, size [2]any, values any, transform []any) map[string]any {
	text := map[string]any{"labelColor": gray, "titleColor": gray, "titleFontWeight": "normal"}
	axis := map[string]any{"domainColor": gray, "tickColor": gray, "gridColor": gray, "gridOpacity": 0.25}
	for k, v := range text {
		axis[k] = v
	}
	spec := map[string]any{
		"$schema":    "https://vega.github.io/schema/vega-lite/v5.json",
		"width":      size[0],
		"height":     size[1],
		"background": "transparent",
		"data":       map[string]any{"values": values},
		"transform":  transform,
		"config": map[string]any{
			"axis":   axis,
			"legend": text,
			"title":  map[string]any{"color": gray, "subtitleColor": gray, "anchor": "start", "fontWeight": 600},
			"view":   map[string]any{"stroke": nil},
		},
	}
	if title != "" {
		lines := strings.Split(title, "\n")
		t := map[string]any{"text": lines[0]}
		if len(lines) > 1 {
			t["subtitle"] = lines[1:]
		}
		spec["title"] = t
	}
	return spec
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// text draws a bar a line, and for several series the parts one after the other
// in shades.
func (c Bars) text(p chart) string {
	const most = 40
	shades := []string{"█", "▓", "▒", "░", "▚", "▞"}
	var out []string
	if p.title != "" {
		out = append(out, textTitle(p.title))
	}
	n := len(p.labels)
	total := make([]float64, n)
	largest := 0.0
	for _, s := range p.series {
		for i, v := range s.Values {
			if drawn(v) {
				total[i] += v
			}
		}
	}
	labelWidth, valueWidth := textWidth(c.Label), textWidth(number(0))
	for i := range min(n, most) {
		largest = math.Max(largest, total[i])
		labelWidth = max(labelWidth, textWidth(p.labels[i]))
		valueWidth = max(valueWidth, textWidth(number(total[i])))
	}
	room := float64(columns - labelWidth - valueWidth - 3)
	if c.Label+c.Value != "" {
		out = append(out, strings.TrimRight(pad(visible(c.Label), labelWidth, true)+"  "+visible(c.Value), " "))
	}
	for i := range min(n, most) {
		bar := ""
		if largest > 0 {
			if len(p.series) == 1 {
				bar = eighths(total[i] / largest * room)
			} else {
				sum, done := 0.0, 0
				for k, s := range p.series {
					if v := s.Values[i]; v > 0 && drawn(v) {
						sum += v
					}
					to := int(math.Round(sum / largest * room))
					bar += strings.Repeat(shades[k], max(0, to-done))
					done = max(done, to)
				}
			}
		}
		out = append(out, pad(p.labels[i], labelWidth, true)+" ▏"+bar+strings.Repeat(" ", min(1, len(bar)))+number(total[i]))
	}
	if n > most {
		out = append(out, fmt.Sprintf("… %d more", n-most))
	}
	if len(p.series) > 1 {
		key := "  "
		for k, s := range p.series {
			key += shades[k] + " " + visible(s.Name) + "  "
		}
		out = append(out, strings.TrimRight(key, " "))
	}
	return strings.Join(out, "\n")
}

// text draws each series in one line of eighths of a cell, with its range.
func (c Lines) text(p chart) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	var out []string
	if p.title != "" {
		out = append(out, textTitle(p.title))
	}
	nameWidth := 0
	for _, s := range p.series {
		nameWidth = max(nameWidth, min(20, textWidth(visible(s.Name))))
	}
	for _, s := range p.series {
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range s.Values {
			if drawn(v) {
				low, high = math.Min(low, v), math.Max(high, v)
			}
		}
		ends := "no values"
		if low <= high {
			ends = number(low) + " … " + number(high)
		}
		n := min(len(s.Values), columns-nameWidth-textWidth(ends)-4)
		line := make([]rune, n)
		for i := range line {
			from, to := i*len(s.Values)/n, (i+1)*len(s.Values)/n
			sum, count := 0.0, 0
			for _, v := range s.Values[from:to] {
				if drawn(v) {
					sum += v
					count++
				}
			}
			line[i] = ' '
			if count > 0 {
				level := 0
				if high > low {
					level = int((sum/float64(count) - low) / (high - low) * 7.999)
				}
				line[i] = blocks[min(max(level, 0), 7)]
			}
		}
		out = append(out, strings.TrimSpace(pad(cut(visible(s.Name), 20), nameWidth, false)+"  "+string(line)+"  "+ends))
	}
	if c.Label+c.Value != "" {
		out = append(out, fmt.Sprintf("%s over %s, %d values", visible(orElse(c.Value, "values")), visible(orElse(c.Label, "positions")), len(p.labels)))
	}
	return strings.Join(out, "\n")
}

// textTitle is a title for a terminal: its lines, without what moves the cursor.
func textTitle(title string) string {
	lines := strings.Split(title, "\n")
	for i := range lines {
		lines[i] = visible(lines[i])
	}
	return strings.Join(lines, "\n")
}
