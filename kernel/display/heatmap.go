package display

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// Heatmap shows counts by row and column on a logarithmic colour scale, for the
// load of experts: rows are layers, columns experts. Cells of zero are left out.
//
// 92 × 896 cells make a notebook output of about 0.5 MB.
type Heatmap struct {
	Title     string // a first line, and after a newline a second, smaller one
	Row       string // what the rows are, such as "layer"
	Column    string // what the columns are, such as "expert"
	Value     string // what is counted, such as "tokens"; "" is "count"
	RowLabels []int  // numbers of the rows, ascending; nil numbers them from 0
	Counts    [][]int64
	// Total is what a cell's share is of, in the tooltip: the tokens, when counts
	// are of tokens. 0 means the sum of the cell's row.
	Total int64
}

// viridis is the colour map of that name (van der Walt and Smith) at 17 even
// steps from low to high; colours between are interpolated.
var viridis = [17]color.RGBA{
	{0x44, 0x01, 0x54, 255}, {0x48, 0x18, 0x6a, 255}, {0x47, 0x2d, 0x7b, 255}, {0x42, 0x40, 0x86, 255},
	{0x3b, 0x52, 0x8b, 255}, {0x33, 0x63, 0x8d, 255}, {0x2c, 0x72, 0x8e, 255}, {0x26, 0x82, 0x8e, 255},
	{0x21, 0x91, 0x8c, 255}, {0x1f, 0xa0, 0x88, 255}, {0x28, 0xae, 0x80, 255}, {0x3f, 0xbc, 0x73, 255},
	{0x5e, 0xc9, 0x62, 255}, {0x84, 0xd4, 0x4b, 255}, {0xad, 0xdc, 0x30, 255}, {0xd8, 0xe2, 0x19, 255},
	{0xfd, 0xe7, 0x25, 255},
}

// viridisAt returns the colour at v, 0 to 1.
func viridisAt(v float64) color.RGBA {
	at := float64(min(max(v, 0), 1) * float64(len(viridis)-1))
	i := min(int(at), len(viridis)-2)
	a, b, f := viridis[i], viridis[i+1], at-float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + float64(f*(float64(b)-float64(a))))) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// DisplayBundle gives Vega-Lite with a tooltip for each cell, SVG, and a text of
// shaded blocks. A map that can't be drawn displays as the reason.
func (h Heatmap) DisplayBundle() Bundle {
	if err := h.check(); err != nil {
		return Text(err.Error())
	}
	h.Value = orElse(h.Value, "count")
	if h.RowLabels == nil {
		for i := range h.Counts {
			h.RowLabels = append(h.RowLabels, i)
		}
	}
	alt := altText(h.Title, fmt.Sprintf("heat map of %s, %d %ss by %d %ss; at most %d", h.Value,
		len(h.Counts), orElse(h.Row, "row"), len(h.Counts[0]), orElse(h.Column, "column"), h.largest()))
	return chartBundle(h.text(), h.vega(), h.svg(alt), alt)
}

func (h Heatmap) check() error {
	if len(h.Counts) == 0 || len(h.Counts[0]) == 0 {
		return fmt.Errorf("display: want counts for a heat map, got none")
	}
	n := len(h.Counts[0])
	if len(h.Counts)*n > maxCells {
		return fmt.Errorf("display: want at most %d cells in a heat map, got %d × %d", maxCells, len(h.Counts), n)
	}
	if h.RowLabels != nil && len(h.RowLabels) != len(h.Counts) {
		return fmt.Errorf("display: want a label for each of %d rows, got %d", len(h.Counts), len(h.RowLabels))
	}
	for i, row := range h.Counts {
		if len(row) != n {
			return fmt.Errorf("display: want rows of one length, got %d in row 0 and %d in row %d", n, len(row), i)
		}
		for j, v := range row {
			if v < 0 {
				return fmt.Errorf("display: want counts, got %d in row %d, column %d", v, i, j)
			}
		}
	}
	return nil
}

func (h Heatmap) largest() int64 {
	most := int64(1)
	for _, row := range h.Counts {
		for _, v := range row {
			most = max(most, v)
		}
	}
	return most
}

// cellHeight is the height of a row in the charts, in pixels.
func (h Heatmap) cellHeight() int { return min(max(360/len(h.Counts), 4), 24) }

func (h Heatmap) vega() map[string]any {
	var records []any
	for i, counts := range h.Counts {
		total := h.Total
		if total == 0 {
			for _, v := range counts {
				total += v
			}
		}
		records = append(records, map[string]any{"row": h.RowLabels[i], "n": counts, "total": total})
	}
	row, column := orElse(h.Row, "row"), orElse(h.Column, "column")
	transform := []any{
		map[string]any{"calculate": fmt.Sprintf("sequence(%d)", len(h.Counts[0])), "as": "column"},
		map[string]any{"flatten": []string{"column", "n"}},
		map[string]any{"filter": "datum.n > 0"},
		map[string]any{"calculate": "datum.column - 0.5", "as": "from"},
		map[string]any{"calculate": "datum.column + 0.5", "as": "to"},
		map[string]any{"calculate": "datum.n / datum.total", "as": "share"},
	}
	spec := vegaSpec(h.Title, [2]any{plotWidth, h.cellHeight() * len(h.Counts)}, records, transform)
	spec["config"].(map[string]any)["view"] = map[string]any{"stroke": nil, "fill": gray, "fillOpacity": 0.12}
	spec["mark"] = map[string]any{"type": "rect", "strokeWidth": 0}
	spec["encoding"] = map[string]any{
		"x": map[string]any{"field": "from", "type": "quantitative", "title": column,
			"scale": map[string]any{"domain": []float64{-0.5, float64(len(h.Counts[0])) - 0.5}, "nice": false, "padding": 0}, "axis": map[string]any{"grid": false, "format": "d", "values": columnTicks(len(h.Counts[0]))}},
		"x2": map[string]any{"field": "to"},
		"y": map[string]any{"field": "row", "type": "ordinal", "title": row,
			"scale": map[string]any{"domain": h.RowLabels, "padding": 0}, "axis": map[string]any{"labelOverlap": true}},
		"color": map[string]any{"field": "n", "type": "quantitative", "title": h.Value,
			"scale":  map[string]any{"type": "log", "scheme": "viridis", "domain": []int64{1, max(2, h.largest())}},
			"legend": map[string]any{"format": ",d", "values": logTicks(h.largest())}},
		"tooltip": []any{
			map[string]any{"field": "row", "type": "ordinal", "title": row},
			map[string]any{"field": "column", "type": "quantitative", "title": column},
			map[string]any{"field": "n", "type": "quantitative", "title": h.Value},
			map[string]any{"field": "share", "type": "quantitative", "title": "share", "format": ".2%"},
		},
	}
	return spec
}

// logTicks are a few round figures from 1 to most.
func logTicks(most int64) []int64 {
	var ticks []int64
	steps := []int64{1, 2, 5}
	if most > 1000 {
		steps = steps[:1]
	}
	for power := int64(1); power <= most && power > 0; power *= 10 {
		for _, s := range steps {
			if s*power <= most {
				ticks = append(ticks, s*power)
			}
		}
		if power > math.MaxInt64/10 {
			break
		}
	}
	return ticks
}

// level is where a count stands on the colour scale, 0 to 1.
func level(v, most int64) float64 {
	return math.Log(float64(v)) / math.Log(float64(max(2, most)))
}

// svg places the cells as a PNG of a pixel a cell, which viewers scale up without
// smoothing, and draws axes and legend around it.
func (h Heatmap) svg(alt string) string {
	rows, cols, most := len(h.Counts), len(h.Counts[0]), h.largest()
	const right = 96
	cells := image.NewPaletted(image.Rect(0, 0, cols, rows), color.Palette{color.RGBA{}})
	for i := range 255 {
		cells.Palette = append(cells.Palette, viridisAt(float64(i)/254))
	}
	for i, row := range h.Counts {
		for j, v := range row {
			if v > 0 {
				cells.SetColorIndex(j, i, 1+uint8(math.Round(254*level(v, most))))
			}
		}
	}
	labels := make([]string, rows)
	for i, n := range h.RowLabels {
		labels[i] = strconv.Itoa(n)
	}
	f := newFrame(h.Title, alt, nil, leftOf(labels), right, h.cellHeight()*rows)
	fmt.Fprintf(f, `<rect x="%d" y="%d" width="%d" height="%d" fill-opacity="0.12"/>`, f.left, f.top, f.width, f.height)
	f.image(cells, f.left, f.top, f.width, f.height)
	x, y := axis{title: orElse(h.Column, "column"), to: float64(cols)}, axis{title: orElse(h.Row, "row"), to: float64(rows)}
	for _, i := range labelled(rows, firstNumber(labels), 14, float64(h.cellHeight())) {
		y.label(float64(i)+0.5, labels[i])
	}
	for _, j := range columnTicks(cols) {
		x.label(float64(j)+0.5, strconv.Itoa(j))
	}
	axes := newPlot(x, y, f.height)
	axes.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
	f.draw(axes)

	// The legend: the colour scale from most down to 1.
	scale := image.NewPaletted(image.Rect(0, 0, 1, 128), cells.Palette)
	for y := range 128 {
		scale.SetColorIndex(0, y, 255-uint8(y*2))
	}
	left, height := f.left+f.width+24, min(max(f.height-24, 40), 200)
	fmt.Fprintf(f, `<text x="%d" y="%d">%s</text>`, left, f.top+10, escapeXML(cut(h.Value, 12)))
	f.image(scale, left, f.top+18, 14, height)
	free := math.Inf(1)
	for _, tick := range logTicks(most) {
		y := float64(f.top+18) + float64(float64(height)*(1-level(tick, most)))
		if free-y < 13 {
			continue
		}
		free = y
		fmt.Fprintf(f, `<text x="%d" y="%s">%d</text>`, left+20, px(y+4), tick)
	}
	return f.end()
}

// image places a picture, scaled without smoothing.
func (f *frame) image(m image.Image, x, y, width, height int) {
	var buf bytes.Buffer
	if err := png.Encode(&buf, m); err != nil {
		return // a buffer takes it, and the sizes are checked
	}
	fmt.Fprintf(f, `<image x="%d" y="%d" width="%d" height="%d" preserveAspectRatio="none" style="image-rendering:pixelated" xlink:href="data:image/png;base64,%s"/>`,
		x, y, width, height, base64.StdEncoding.EncodeToString(buf.Bytes()))
}

// columnTicks are about eight of n columns, from 0: multiples of a power of two,
// as numbers of experts are, or of 1, 2 or 5 × 10ⁿ where n ends in a zero.
func columnTicks(n int) []int {
	step := 1
	for step*8 < n {
		step *= 2
	}
	if n%step != 0 && n%10 == 0 {
		step = 1
		for i := 0; step*8 < n; i++ {
			step = step / []int{1, 2, 5}[i%3] * []int{2, 5, 10}[i%3]
		}
	}
	var ticks []int
	for j := 0; j < n; j += step {
		ticks = append(ticks, j)
	}
	return ticks
}

// text draws the map in 80 columns, shaded by the largest count of the cells that
// share a character.
func (h Heatmap) text() string {
	const most = 32 // rows
	shades := []rune(" ░▒▓█")
	rows, cols, top := len(h.Counts), len(h.Counts[0]), h.largest()
	label := textWidth(strconv.Itoa(h.RowLabels[rows-1]))
	width := min(cols, columns-label-2)
	perRow := (rows + most - 1) / most
	var out []string
	if h.Title != "" {
		out = append(out, textTitle(h.Title))
	}
	for i := 0; i < rows; i += perRow {
		line := make([]rune, width)
		for c := range line {
			var v int64
			for _, row := range h.Counts[i:min(i+perRow, rows)] {
				for _, n := range row[c*cols/width : (c+1)*cols/width] {
					v = max(v, n)
				}
			}
			line[c] = ' '
			if v > 0 {
				line[c] = shades[1+min(3, int(level(v, top)*4))]
			}
		}
		out = append(out, pad(strconv.Itoa(h.RowLabels[i]), label, true)+" ▏"+strings.TrimRight(string(line), " "))
	}
	out = append(out, fmt.Sprintf("%s: %ss down, %ss across 0 to %d", visible(h.Value), visible(orElse(h.Row, "row")), visible(orElse(h.Column, "column")), cols-1))
	key := "  "
	for i, s := range shades[1:] { // each from the first count that has it
		low := int64(math.Ceil(math.Pow(float64(max(2, top)), float64(i)/4) - 1e-9))
		if 1+min(3, int(level(low, top)*4)) == i+1 && low <= top {
			key += fmt.Sprintf("%c %d+  ", s, low)
		}
	}
	return strings.Join(append(out, strings.TrimRight(key, " ")), "\n")
}
