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

// printed is what benchmarks print: a round in which this module took a tenth of the time.
func printed(slower int) []byte {
	return fmt.Appendf(nil, `goos: linux
cpu: Example 3000
BenchmarkParse/uniform/100/encoding         	     489	    %d ns/op	  47.03 MB/s	   50720 B/op	     431 allocs/op
BenchmarkParse/uniform/100/ours-2           	    6524	     %d ns/op	 665.41 MB/s	   31400 B/op	       5 allocs/op
PASS
`, 1000*slower, 100*slower)
}

func TestReport(t *testing.T) {
	m := &measurement{map[string]results{"compare": {}, "samples": {}}, map[string]string{}, "Today."}
	for _, slower := range []int{1, 50, 3} { // a round in which the machine was busy changes no ratio
		for suite := range m.suites {
			if err := m.add(suite, printed(slower)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m.keys["cpu"] != "Example 3000" {
		t.Errorf("%q", m.keys)
	}
	want := "| event with 100 samples, uniform | 300 ns | 665 | 3.00 µs, **10.0×** | | | | ours 5, encoding 431 |\n"
	if text := m.report(); !strings.Contains(text, want) {
		t.Errorf("no %sin %s", want, text)
	}
	if text := m.summary(); !strings.Contains(text, "| `webhooks.Parse`, 100 samples | 300 ns | 10.0× | | | 5 |\n") {
		t.Error(text)
	}
	if err := m.add("compare", []byte("PASS\n")); err == nil {
		t.Error("a suite that measured nothing is no error")
	}
}

func TestGrowth(t *testing.T) {
	m := &measurement{map[string]results{"samples": {}}, nil, ""}
	for n := 10; n <= 1_000_000; n *= 10 {
		m.suites["samples"][fmt.Sprintf("Parse/uniform/%d/ours", n)] = map[string][]float64{"ns/op": {float64(150 * n)}}
		m.suites["samples"][fmt.Sprintf("Parse/uniform/%d/jx", n)] = map[string][]float64{"ns/op": {float64(300*n + 400)}}
	}
	text := string(m.growth())
	dots := 0
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
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
	// Equal times at all sizes are a level line, from the first size to the last.
	if dots != 12 || !strings.Contains(text, `d="M52.0 230.6L130.0 230.6L208.0 230.6L286.0 230.6L364.0 230.6L442.0 230.6"`) {
		t.Error(dots, text)
	}
}

func TestInsert(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	for _, c := range []struct{ file, want string }{
		{"a\n<!-- speed -->\nold\n<!-- /speed -->\nb\n", "a\n<!-- speed -->\nnew\n<!-- /speed -->\nb\n"},
		{"a\n", "a\n"},
		{"a\n<!-- speed -->\n", "a\n<!-- speed -->\n"},
	} {
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		err := insert(path, "new\n")
		if got, _ := os.ReadFile(path); string(got) != c.want || (err == nil) != (c.file != c.want) {
			t.Errorf("%q: %q, %v", c.file, got, err)
		}
	}
}
