package kernelspec

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
)

// The mark: a fin over a wave on a round of deep water. It is defined once, on a
// square of 64 by 64, and drawn as SVG and as PNG.

type point struct{ x, y float64 }

// shape is a closed outline of cubic Bézier curves: a start, then for each curve two
// control points and an end.
type shape struct {
	fill   color.NRGBA
	points []point
}

const logoSide = 64

var logo = []shape{
	{color.NRGBA{0x0c, 0x3b, 0x5a, 0xff}, []point{ // the round, radius 30
		{62, 32}, {62, 48.569}, {48.569, 62}, {32, 62}, {15.431, 62}, {2, 48.569}, {2, 32},
		{2, 15.431}, {15.431, 2}, {32, 2}, {48.569, 2}, {62, 15.431}, {62, 32},
	}},
	{color.NRGBA{0xf3, 0xf8, 0xfa, 0xff}, []point{ // the fin
		{13, 43}, {22, 39}, {29, 24}, {45, 12}, {41, 23}, {43, 34}, {51, 43}, {44, 40.5}, {38, 40.5}, {32, 43}, {26, 45.5}, {20, 45.5}, {13, 43},
	}},
	{color.NRGBA{0x45, 0xb9, 0xd6, 0xff}, []point{ // the wave
		{10, 47}, {18, 50.5}, {25, 50.5}, {32, 47.5}, {39, 44.5}, {46, 44.5}, {54, 47}, {53.2, 48.8}, {52.2, 50.4}, {51.2, 51.6},
		{44, 49.5}, {38, 49.8}, {32, 52.4}, {26, 55}, {19, 55}, {12.8, 51.6}, {11.8, 50.4}, {10.8, 48.8}, {10, 47},
	}},
}

// SVG is the logo as an SVG file.
func SVG() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">`+"\n", logoSide, logoSide)
	for _, s := range logo {
		fmt.Fprintf(&b, `  <path fill="#%02x%02x%02x" d="M%g %g`, s.fill.R, s.fill.G, s.fill.B, s.points[0].x, s.points[0].y)
		for i := 1; i+2 < len(s.points); i += 3 {
			p, q, r := s.points[i], s.points[i+1], s.points[i+2]
			fmt.Fprintf(&b, "C%g %g %g %g %g %g", p.x, p.y, q.x, q.y, r.x, r.y)
		}
		b.WriteString("Z\"/>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// outline is the shape's polygon: each curve as short lines. Its products are rounded
// one by one, so that the PNG has the same bytes on every architecture.
func (s shape) outline() []point {
	const steps = 24
	out := []point{s.points[0]}
	for i := 1; i+2 < len(s.points); i += 3 {
		a, b, c, d := s.points[i-1], s.points[i], s.points[i+1], s.points[i+2]
		for k := 1; k <= steps; k++ {
			t := float64(k) / steps
			u := 1 - t
			w := [4]float64{u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t}
			out = append(out, point{
				float64(w[0]*a.x) + float64(w[1]*b.x) + float64(w[2]*c.x) + float64(w[3]*d.x),
				float64(w[0]*a.y) + float64(w[1]*b.y) + float64(w[2]*c.y) + float64(w[3]*d.y),
			})
		}
	}
	return out
}

// inside says whether p lies in the polygon, by the even-odd rule.
func inside(polygon []point, p point) bool {
	in := false
	for i, j := 0, len(polygon)-1; i < len(polygon); j, i = i, i+1 {
		a, b := polygon[i], polygon[j]
		if (a.y > p.y) != (b.y > p.y) && p.x < (b.x-a.x)*(p.y-a.y)/(b.y-a.y)+a.x {
			in = !in
		}
	}
	return in
}

// PNG is the logo as a PNG file of size by size pixels, transparent around the round.
// A pixel is the mean of 36 samples.
func PNG(size int) []byte {
	const grid = 6
	polygons := make([][]point, len(logo))
	for i, s := range logo {
		polygons[i] = s.outline()
	}
	img := image.NewNRGBA(image.Rect(0, 0, size, size))
	scale := float64(logoSide) / float64(size)
	for y := range size {
		for x := range size {
			var sum [3]int
			hits := 0
			for k := range grid * grid {
				p := point{
					(float64(x) + (float64(k%grid)+0.5)/grid) * scale,
					(float64(y) + (float64(k/grid)+0.5)/grid) * scale,
				}
				for i := len(logo) - 1; i >= 0; i-- {
					if inside(polygons[i], p) {
						c := logo[i].fill
						sum[0] += int(c.R)
						sum[1] += int(c.G)
						sum[2] += int(c.B)
						hits++
						break
					}
				}
			}
			if hits > 0 {
				img.SetNRGBA(x, y, color.NRGBA{
					uint8(sum[0] / hits), uint8(sum[1] / hits), uint8(sum[2] / hits), uint8(255 * hits / (grid * grid)),
				})
			}
		}
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		panic(err) // an image of ours, written to memory
	}
	return buf.Bytes()
}
