package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// curve is points of one colour.
type curve struct {
	name, class string
	points      [][2]float64
}

// panel is one of the pictures.
type panel struct {
	title, x string
	linear   bool // whether y is, from 0 on; else it is logarithmic, as x is
	curves   []curve
}

// Sizes, in points.
const (
	panelWidth, panelHeight = 470, 330
	left, right             = 52, 28
	top, bottom             = 66, 44
)

// style has colours for light and dark. The picture paints its own ground, because the page need not be as dark as the system.
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

// growth draws how cost grows.
func (m *measurement) growth() []byte {
	classes := []string{"a", "b", "c", "d", "e"}
	parse := panel{title: "Reading an event: nanoseconds a sample", x: "samples in the event"}
	for i, who := range []string{"ours", "encoding", "goccy", "sonic", "jx"} {
		parse.curves = append(parse.curves, curve{who, classes[i], m.points("ns/op", 10, 1_000_000, 10, func(n float64) []string {
			return []string{"samples", fmt.Sprintf("Parse/uniform/%.0f/%s", n, who)}
		}, func(ns, n float64) float64 { return ns / n })})
	}
	apply := panel{title: "Latest: nanoseconds a sample", x: "samples stored in the end"}
	memory := panel{title: "Latest: bytes of heap a sample", x: "samples stored in the end", linear: true}
	for i, form := range []string{"ordered", "shuffled", "single-ordered", "single-shuffled"} {
		name := strings.Replace(form, "-", ", ", 1)
		of := func(n float64) []string {
			if n > 1_000_000 {
				return []string{"most", fmt.Sprintf("Latest/%s/%.0f/1", form, n)}
			}
			return []string{"keys", fmt.Sprintf("Latest/%s/%.0f/1", form, n)}
		}
		apply.curves = append(apply.curves, curve{name, classes[i], m.points("ns/op", 1000, 10_000_000, 10, of, func(ns, n float64) float64 { return ns / n })})
		memory.curves = append(memory.curves, curve{name, classes[i], m.points("B/sample", 1000, 10_000_000, 10, of, func(bytes, _ float64) float64 { return bytes })})
	}
	gain := panel{title: fmt.Sprintf("Times the work of one goroutine, on %d cores", suites["goroutines"].cpus), x: "goroutines", linear: true}
	for i, c := range []struct{ name, suite, bench, unit string }{
		{"Parse", "goroutines", "Goroutines/parse/%.0f/ours", "turns/s"},
		{"call", "goroutines", "Goroutines/call/%.0f/ours", "turns/s"},
		{"bare call", "goroutines", "Goroutines/call/%.0f/encoding", "turns/s"},
		{"Latest", "appliers", "Latest/ordered/1000000/%.0f", "Msamples/s"},
		{"Latest, single", "appliers", "Latest/single-ordered/1000000/%.0f", "Msamples/s"},
	} {
		one := m.of(c.suite, fmt.Sprintf(c.bench, 1.0), c.unit)
		gain.curves = append(gain.curves, curve{c.name, classes[i], m.points(c.unit, 1, 64, 2, func(n float64) []string {
			return []string{c.suite, fmt.Sprintf(c.bench, n)}
		}, func(rate, _ float64) float64 { return rate / one })})
	}

	panels := []panel{parse, apply, memory, gain}
	var b strings.Builder
	width, height := 2*panelWidth, 2*panelHeight
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%[1]d\" height=\"%d\" role=\"img\">\n"+
		"<title>How cost grows with the samples of an event, the samples stored and the goroutines</title>\n", width, height)
	fmt.Fprintf(&b, "%s<rect class=\"ground\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", style, width, height)
	for i, p := range panels {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%2*panelWidth, i/2*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	return []byte(b.String() + "</svg>\n")
}

// points are the medians of the benchmarks for from, from times step and so on.
func (m *measurement) points(unit string, from, to, step float64, bench func(n float64) []string, y func(v, n float64) float64) (list [][2]float64) {
	for n := from; n <= to; n *= step {
		at := bench(n)
		if v := m.of(at[0], at[1], unit); v > 0 {
			list = append(list, [2]float64{n, y(v, n)})
		}
	}
	return list
}

// scale is an axis, logarithmic unless it begins at 0.
type scale struct{ from, to, at, size float64 }

func (s scale) place(v float64) float64 {
	if s.from == 0 {
		return s.at + s.size*v/s.to
	}
	return s.at + s.size*math.Log(v/s.from)/math.Log(s.to/s.from)
}

func (p *panel) draw(b *strings.Builder) {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{}
	for _, c := range p.curves {
		for _, at := range c.points {
			for i := range at {
				lo[i], hi[i] = min(lo[i], at[i]), max(hi[i], at[i])
			}
		}
	}
	if hi[0] <= lo[0] {
		return
	}
	ticks := ticksAround(lo[1], hi[1])
	if p.linear {
		ticks = ticksFromZero(hi[1])
	}
	x := scale{lo[0], hi[0], left, panelWidth - left - right}
	y := scale{ticks[0], ticks[len(ticks)-1], panelHeight - bottom, -(panelHeight - top - bottom)}
	fmt.Fprintf(b, "<text class=\"title\" x=\"16\" y=\"24\">%s</text>\n", p.title)
	for _, v := range ticks {
		at := y.place(v)
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			left, at, panelWidth-right, left-8, at+4, short(v))
	}
	marks := []float64{}
	for _, c := range p.curves {
		for _, at := range c.points {
			marks = append(marks, at[0])
		}
	}
	slices.Sort(marks)
	for _, v := range slices.Compact(marks) {
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x.place(v), panelHeight-bottom+18, short(v))
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", left+(panelWidth-left-right)/2, panelHeight-8, p.x)
	at := 16
	for _, c := range p.curves {
		fmt.Fprintf(b, "<path class=\"line %s\" d=\"M%d 44h14\"/><text x=\"%d\" y=\"48\">%s</text>\n", c.class, at, at+18, c.name)
		at += 34 + 13*len(c.name)/2
	}
	for _, c := range slices.Backward(p.curves) { // the first lies on top
		var path strings.Builder
		for i, v := range c.points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x.place(v[0]), y.place(v[1]))
		}
		fmt.Fprintf(b, "<path class=\"line %s\" d=\"%s\"/>\n", c.class, &path)
		for _, v := range c.points {
			fmt.Fprintf(b, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", c.class, x.place(v[0]), y.place(v[1]))
		}
	}
}

// ticksAround are round numbers from one that is not over lo to one that is not under hi.
func ticksAround(lo, hi float64) (list []float64) {
	steps := []float64{1, 2, 5}
	if hi/lo > 100 {
		steps = []float64{1}
	}
	var all []float64
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi))+1; e++ {
		for _, s := range steps {
			all = append(all, s*math.Pow(10, e))
		}
	}
	first, last := 0, len(all)-1
	for all[first+1] <= lo {
		first++
	}
	for all[last-1] >= hi {
		last--
	}
	return all[first : max(last, first+1)+1]
}

// ticksFromZero are round numbers from 0 to one that is not under hi: four to nine of them.
func ticksFromZero(hi float64) (list []float64) {
	step := math.Pow(10, math.Floor(math.Log10(hi)))
	if hi/step < 3 {
		step /= 2
	}
	for v := 0.0; v < hi+step; v += step {
		list = append(list, v)
	}
	return list
}

// short writes a number with k for thousand and M for million.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
