package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchmarkOutput returns the output of a round in which encoding/json takes ten times as long as
// this module.
func benchmarkOutput(slowdown int) []byte {
	return fmt.Appendf(nil, `goos: linux
cpu: Example 3000
BenchmarkParse/uniform/100/encoding         	     489	    %[1]d ns/op	  47.03 MB/s	   50720 B/op	     431 allocs/op
BenchmarkParse/uniform/100/ours-2           	    6524	     %[2]d ns/op	 665.41 MB/s	   31400 B/op	       5 allocs/op
BenchmarkPage/full/encoding                 	     489	    %[1]d ns/op	  47.03 MB/s	   50720 B/op	     431 allocs/op
BenchmarkPage/full/ours                     	    6524	     %[2]d ns/op	 665.41 MB/s	   31400 B/op	       5 allocs/op
PASS
`, 1000*slowdown, 100*slowdown)
}

func TestReport(t *testing.T) {
	m := newMeasurement("go1.27.4")
	for _, slowdown := range []int{1, 50, 3} { // a slow round changes no ratio
		for _, suite := range []string{"events", "pages"} {
			if err := m.add(suite, benchmarkOutput(slowdown)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m.properties["cpu"] != "Example 3000" {
		t.Errorf("properties %q", m.properties)
	}
	want := `
| reading an event | this module | MB/s | encoding/json | allocations |
|---|--:|--:|--:|--:|
| 100 samples, uniform | 300 ns | 665 | 3.00 µs, **10.0×** | this module 5, encoding 431 |
| the same, others without pointers |  |  |  |  |

| reading a page | this module | MB/s | encoding/json | allocations |
|---|--:|--:|--:|--:|
| 50 full orders, client | 300 ns | 665 | 3.00 µs, **10.0×** | this module 5, encoding 431 |
`
	if report := m.report(); report != want {
		t.Errorf("%s, want %s", report, want)
	}
	want = "`webhooks.Parse` reads 100 samples in 300 ns; relative times: encoding/json 10.0×.\n" +
		"A page of 50 full orders takes 300 ns; relative times: encoding/json 10.0×,\n" +
		"one of 50 typical orders –; relative times: \n(go1.27.4, [all figures](docs/speed.md)).\n"
	if summary := m.summary(); summary != want {
		t.Errorf("summary %s, want %s", summary, want)
	}
	if err := m.add("events", []byte("PASS\n")); err == nil {
		t.Error("no error for a suite without results")
	}
}

func TestGrowthChart(t *testing.T) {
	m := newMeasurement("go1.27.4")
	m.suites["samples"] = samples{}
	for n := 10; n <= 1_000_000; n *= 10 {
		m.suites["samples"][fmt.Sprintf("Parse/uniform/%d/ours", n)] = map[string][]float64{"ns/op": {float64(150 * n)}}
		m.suites["samples"][fmt.Sprintf("Parse/uniform/%d/jx", n)] = map[string][]float64{"ns/op": {float64(300*n + 400)}}
	}
	svg := string(m.growthChart())
	dots := 0
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			dots++
		}
	}
	// A constant time per sample is a horizontal line from the smallest to the largest size.
	if dots != 12 || !strings.Contains(svg, `d="M52.0 230.6L130.0 230.6L208.0 230.6L286.0 230.6L364.0 230.6L442.0 230.6"`) {
		t.Error(dots, svg)
	}
}

func TestReplaceSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	for _, c := range []struct{ file, want string }{
		{"a\n<!-- speed -->\nold\n<!-- /speed -->\nb\n", "a\n<!-- speed -->\nnew\n<!-- /speed -->\nb\n"},
		{"a\n", "a\n"},
		{"a\n<!-- speed -->\n", "a\n<!-- speed -->\n"},
	} {
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		err := replaceSection(path, "new\n")
		if got, _ := os.ReadFile(path); string(got) != c.want || (err == nil) != (c.file != c.want) {
			t.Errorf("%q: %q, %v", c.file, got, err)
		}
	}
}
