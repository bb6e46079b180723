package main

import (
	"fmt"
	"strings"
)

// curveClasses are the CSS classes of the curves of a panel, in order.
var curveClasses = []string{"a", "b", "c", "d", "e"}

// growthChart returns an SVG that shows how cost grows.
func (m *measurement) growthChart() []byte {
	perSample, heap := m.latestPanels()
	return chart("How cost grows with the samples of an event, the stored samples and the goroutines",
		[]panel{m.parsePanel(), perSample, heap, m.goroutinesPanel()})
}

func (m *measurement) parsePanel() panel {
	p := panel{title: "Parse: nanoseconds per sample", xTitle: "samples in the event"}
	for i, library := range []string{"ours", "encoding", "goccy", "sonic", "jx"} {
		p.curves = append(p.curves, curve{library, curveClasses[i], series(10, 1_000_000, 10, func(n float64) float64 {
			return m.median("samples", fmt.Sprintf("Parse/uniform/%.0f/%s", n, library), "ns/op") / n
		})})
	}
	return p
}

func (m *measurement) latestPanels() (perSample, heap panel) {
	perSample = panel{title: "Latest: nanoseconds per sample", xTitle: "stored samples"}
	heap = panel{title: "Latest: bytes of heap per sample", xTitle: "stored samples", linear: true}
	for i, kind := range []string{"ordered", "shuffled", "single-ordered", "single-shuffled"} {
		median := func(n float64, unit string) float64 {
			suite := "keys"
			if n > 1_000_000 {
				suite = "most"
			}
			return m.median(suite, fmt.Sprintf("Latest/%s/%.0f/1", kind, n), unit)
		}
		name := strings.Replace(kind, "-", ", ", 1)
		perSample.curves = append(perSample.curves, curve{name, curveClasses[i], series(1000, 10_000_000, 10, func(n float64) float64 {
			return median(n, "ns/op") / n
		})})
		heap.curves = append(heap.curves, curve{name, curveClasses[i], series(1000, 10_000_000, 10, func(n float64) float64 {
			return median(n, "B/sample")
		})})
	}
	return perSample, heap
}

func (m *measurement) goroutinesPanel() panel {
	p := panel{
		title:  fmt.Sprintf("Throughput relative to one goroutine, %d cores", suites["goroutines"].cpus),
		xTitle: "goroutines", linear: true,
	}
	for i, row := range []struct{ name, suite, bench, unit string }{
		{"Parse", "goroutines", "Goroutines/parse/%.0f/ours", "turns/s"},
		{"call", "goroutines", "Goroutines/call/%.0f/ours", "turns/s"},
		{"plain call", "goroutines", "Goroutines/call/%.0f/encoding", "turns/s"},
		{"Latest", "appliers", "Latest/ordered/1000000/%.0f", "Msamples/s"},
		{"Latest, single", "appliers", "Latest/single-ordered/1000000/%.0f", "Msamples/s"},
	} {
		one := m.median(row.suite, fmt.Sprintf(row.bench, 1.0), row.unit)
		p.curves = append(p.curves, curve{row.name, curveClasses[i], series(1, 64, 2, func(n float64) float64 {
			return m.median(row.suite, fmt.Sprintf(row.bench, n), row.unit) / one
		})})
	}
	return p
}

// series returns the points of a curve from first to last. It omits points without a value.
func series(first, last, factor float64, y func(x float64) float64) (list []point) {
	for x := first; x <= last; x *= factor {
		if v := y(x); v > 0 {
			list = append(list, point{x, v})
		}
	}
	return list
}
