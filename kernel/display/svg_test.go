package display

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// numbersOf are the groups of all matches of a pattern, in order.
func numbersOf(t *testing.T, pattern, svg string) [][]float64 {
	t.Helper()
	var all [][]float64
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(svg, -1) {
		var row []float64
		for _, s := range m[1:] {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, v)
		}
		all = append(all, row)
	}
	return all
}

func svgOf(t *testing.T, v Value) string {
	t.Helper()
	b := v.DisplayBundle()
	checkBundle(t, b)
	svg, ok := b.Data[MIMESVG].(string)
	if !ok {
		t.Fatal(b.Data[MIMEText])
	}
	if n := strings.Count(svg, "font-family"); n != 1 {
		t.Errorf("%d fonts, want the viewer's own for all text", n)
	}
	return svg
}

const (
	// Left, bottom, top, right; y goes up.
	barPattern   = `d="M([\d.]+),([\d.]+)L[\d.]+,([\d.]+)L([\d.]+),[\d.]+L[\d.]+,[\d.]+Z"`
	belowPattern = `<text x="([\d.]+)" y="[-\d.]+" transform="scale\(1, -1\)" text-anchor="middle">(\d+)</text>`
)

// Each label stands in the middle of its bar, and bars have their values' heights
// on the axis's scale.
func TestBarsAndLabels(t *testing.T) {
	var labels []string
	var values []float64
	for i := range 15 {
		labels = append(labels, fmt.Sprint(i+1))
		values = append(values, float64(i+2))
	}
	svg := svgOf(t, Bars{Title: "t\nsub", Label: "layer", Value: "v", Labels: labels, Series: []Series{{"", values}}})
	bars, below := numbersOf(t, barPattern, svg), numbersOf(t, belowPattern, svg)
	if len(bars) != 15 || len(below) != 15 {
		t.Fatalf("%d bars, %d labels", len(bars), len(below))
	}
	for i, b := range bars {
		if middle := (b[0] + b[3]) / 2; math.Abs(middle-below[i][0]) > 0.11 || below[i][1] != float64(i+1) {
			t.Errorf("bar %d is at %v, label %v at %v", i, middle, below[i][1], below[i][0])
		}
		if height := b[2] - b[1]; math.Abs(height-float64(plotHeight)*values[i]/16) > 0.11 { // the axis ends at 16
			t.Errorf("bar of %v is %v high", values[i], height)
		}
	}
	if strings.Count(svg, `<text x="64" `) != 2 {
		t.Error("title and second line don't begin where the plot does")
	}
}

// Many labels are thinned to multiples of a round number, none over another.
func TestLabelled(t *testing.T) {
	for _, c := range []struct {
		n, first   int
		need, room float64
		want       []int
	}{
		{3, 0, 10, 10, []int{0, 1, 2}},
		{15, 1, 21, 42, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
		{12, 1, 21, 7, []int{4, 9}},
		{30, 0, 19, 1, []int{0, 20}},
		{3, 7, 100, 1, []int{0}},
		{1, 0, 100, 1, []int{0}},
	} {
		if got := labelled(c.n, c.first, c.need, c.room); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, c := range []struct {
		labels string
		want   int
	}{{"7 8 9", 7}, {"7 9", 0}, {"a b", 0}, {"07 08", 0}, {"-1 0", 0}} {
		if got := firstNumber(strings.Fields(c.labels)); got != c.want {
			t.Errorf("%s: %d", c.labels, got)
		}
	}
}

// The parts of a stack stand on each other, what is negative below the axis.
func TestStack(t *testing.T) {
	svg := svgOf(t, Bars{Series: []Series{{"hit", []float64{3}}, {"late", []float64{2}}, {"lost", []float64{-5}}}})
	bars := numbersOf(t, barPattern, svg)
	if len(bars) != 3 || bars[1][1] != bars[0][2] || bars[2][1] != bars[0][1] || !(bars[1][2] > bars[0][2] && bars[2][2] < bars[2][1]) {
		t.Errorf("%v", bars)
	}
	hit, late := strings.Index(svg, `style="fill:#0072B2"`), strings.Index(svg, `style="fill:#E69F00"`)
	if hit < 0 || late < hit {
		t.Errorf("series are not in the palette's order: %d, %d", hit, late)
	}
	for _, name := range []string{"hit", "late", "lost"} {
		if !strings.Contains(svg, ">"+name+"</text>") {
			t.Errorf("no key for %s", name)
		}
	}
}

// Experts are numbered from 0: the last label is one of them.
func TestHeatmapColumns(t *testing.T) {
	h := Heatmap{Column: "expert", Counts: make([][]int64, 2)}
	for i := range h.Counts {
		h.Counts[i] = make([]int64, 64)
		h.Counts[i][63] = 1
	}
	below := numbersOf(t, belowPattern, svgOf(t, h))
	if len(below) != 8 || below[0][0] != leastLeft+5 || below[7][0] != leastLeft+565 || below[7][1] != 56 { // cells of 10 pixels
		t.Errorf("%v", below)
	}
}

// What is larger than the picture is drawn with what a reader can see of it.
func TestLargeCharts(t *testing.T) {
	values := make([]float64, maxCells)
	for i := range values {
		values[i] = 0.25
	}
	values[maxCells/2] = 1
	for _, v := range []Value{Bars{Series: []Series{{"", values}}}, Bars{Series: []Series{{"", values}}, Horizontal: true}, Lines{Series: []Series{{"", values}}}} {
		svg := svgOf(t, v)
		if len(svg) > 200_000 {
			t.Errorf("%T: %d bytes", v, len(svg))
		}
	}
	tallest := 0.0
	for _, b := range numbersOf(t, barPattern, svgOf(t, Bars{Series: []Series{{"", values}}})) {
		tallest = max(tallest, b[2])
	}
	if tallest != bottomEdge+plotHeight {
		t.Errorf("the one long bar is not drawn: %v", tallest)
	}
	picked := extremes(values, 1000)
	if !slices.Contains(picked, maxCells/2) || !slices.IsSorted(picked) || len(picked) > 3000 {
		t.Errorf("%d values picked", len(picked))
	}
	if got := extremes([]float64{1, math.NaN(), 3}, 10); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("%v", got)
	}
}

// A line is broken where a value is missing, and a value alone is a dot.
func TestLineGaps(t *testing.T) {
	svg := svgOf(t, Lines{Series: []Series{{"", []float64{1, math.NaN(), 2, 3}}}})
	if !regexp.MustCompile(`(?s)d="M64,44L64,44".*d="M490.67,174L704,304"`).MatchString(svg) || !strings.Contains(svg, ` stroke-linecap="round"`) {
		t.Error(svg)
	}
}
