package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// panel is one diagram of the chart. Its x axis is logarithmic.
type panel struct {
	title, xTitle string
	linear        bool // the y axis is linear and starts at 0; otherwise it is logarithmic
	curves        []curve
}

// curve is a line of a panel. Its CSS class sets the color.
type curve struct {
	name, class string
	points      []point
}

type point struct{ x, y float64 }

// Sizes in pixels.
const (
	panelWidth, panelHeight = 470, 330
	left, right             = 52, 28
	top, bottom             = 66, 44
)

// style has colors for the light and the dark scheme. The chart draws its own background, because
// the page may not follow the scheme of the system.
const style = `<style>
text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;font-size:14px;fill:#1f2328}
.ground{fill:#fff}.grid{stroke:#d8dee4;fill:none}.line{fill:none;stroke-width:2}.a{stroke:#0969da;fill:#0969da;stroke-width:3}
.b{stroke:#6e7781;fill:#6e7781}.c{stroke:#bc4c00;fill:#bc4c00}.d{stroke:#1a7f37;fill:#1a7f37}.e{stroke:#a4489b;fill:#a4489b}
.line{fill:none}.dot{stroke:none}
@media(prefers-color-scheme:dark){text{fill:#9ea7b3}.title{fill:#f0f6fc}.ground{fill:#0d1117}.grid{stroke:#30363d}
.a{stroke:#58a6ff;fill:#58a6ff}.b{stroke:#9ea7b3;fill:#9ea7b3}.c{stroke:#f0883e;fill:#f0883e}.d{stroke:#56d364;fill:#56d364}
.e{stroke:#e085d8;fill:#e085d8}.line{fill:none}.dot{stroke:none}}
</style>
`

// chart returns an SVG with the panels in two columns.
func chart(title string, panels []panel) []byte {
	var b strings.Builder
	width, height := 2*panelWidth, (len(panels)+1)/2*panelHeight
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%[1]d\" height=\"%d\" role=\"img\">\n"+
		"<title>%s</title>\n", width, height, title)
	fmt.Fprintf(&b, "%s<rect class=\"ground\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", style, width, height)
	for i, p := range panels {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%2*panelWidth, i/2*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// axis maps values to pixels. It is linear if it starts at 0 and logarithmic otherwise.
type axis struct{ first, last, offset, length float64 }

func (a axis) position(v float64) float64 {
	if a.first == 0 {
		return a.offset + a.length*v/a.last
	}
	return a.offset + a.length*math.Log(v/a.first)/math.Log(a.last/a.first)
}

// draw draws the panel, unless it has fewer than two points.
func (p *panel) draw(b *strings.Builder) {
	var xs, ys []float64
	for _, c := range p.curves {
		for _, at := range c.points {
			xs, ys = append(xs, at.x), append(ys, at.y)
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	if len(xs) < 2 {
		return
	}
	ticks := logTicks(slices.Min(ys), slices.Max(ys))
	if p.linear {
		ticks = linearTicks(slices.Max(ys))
	}
	x := axis{xs[0], xs[len(xs)-1], left, panelWidth - left - right}
	y := axis{ticks[0], ticks[len(ticks)-1], panelHeight - bottom, -(panelHeight - top - bottom)}
	p.drawAxes(b, x, y, xs, ticks)
	p.drawLegend(b)
	for _, c := range slices.Backward(p.curves) { // the first curve is drawn on top
		c.draw(b, x, y)
	}
}

func (p *panel) drawAxes(b *strings.Builder, x, y axis, xs, ticks []float64) {
	fmt.Fprintf(b, "<text class=\"title\" x=\"16\" y=\"24\">%s</text>\n", p.title)
	for _, v := range ticks {
		at := y.position(v)
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			left, at, panelWidth-right, left-8, at+4, short(v))
	}
	for _, v := range xs {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x.position(v), panelHeight-bottom+18, short(v))
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", left+(panelWidth-left-right)/2, panelHeight-8, p.xTitle)
}

func (p *panel) drawLegend(b *strings.Builder) {
	at := 16
	for _, c := range p.curves {
		fmt.Fprintf(b, "<path class=\"line %s\" d=\"M%d 44h14\"/><text x=\"%d\" y=\"48\">%s</text>\n", c.class, at, at+18, c.name)
		at += 34 + 13*len(c.name)/2
	}
}

func (c curve) draw(b *strings.Builder, x, y axis) {
	var path strings.Builder
	for i, at := range c.points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x.position(at.x), y.position(at.y))
	}
	fmt.Fprintf(b, "<path class=\"line %s\" d=\"%s\"/>\n", c.class, &path)
	for _, at := range c.points {
		fmt.Fprintf(b, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", c.class, x.position(at.x), y.position(at.y))
	}
}

// logTicks returns round numbers for a logarithmic axis that covers low to high.
func logTicks(low, high float64) []float64 {
	steps := []float64{1, 2, 5}
	if high/low > 100 {
		steps = []float64{1}
	}
	var ticks []float64
	for exponent := math.Floor(math.Log10(low)); exponent <= math.Ceil(math.Log10(high))+1; exponent++ {
		for _, step := range steps {
			ticks = append(ticks, step*math.Pow(10, exponent))
		}
	}
	first, last := 0, len(ticks)-1
	for ticks[first+1] <= low {
		first++
	}
	for ticks[last-1] >= high {
		last--
	}
	return ticks[first : max(last, first+1)+1]
}

// linearTicks returns four to nine round numbers for a linear axis that covers 0 to high.
func linearTicks(high float64) (ticks []float64) {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	if high/step < 3 {
		step /= 2
	}
	for v := 0.0; v < high+step; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// short formats a number with k for thousands and M for millions.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
