package main

import (
	"fmt"
	"strings"
)

// tasks are the rows of the first table. The benchmark of each library is named bench, a slash and
// the library.
var tasks = []struct {
	name, suite, bench string
	suffix             string // of the names of the other libraries
}{
	{"event with 1 sample, uniform", "compare", "Parse/uniform/1", ""},
	{"event with 100 samples, uniform", "compare", "Parse/uniform/100", ""},
	{"the same, others without pointers", "compare", "Parse/uniform/100", "-values"},
	{"event with 10,000 samples, uniform", "compare", "Parse/uniform/10000", ""},
	{"the same, others without pointers", "compare", "Parse/uniform/10000", "-values"},
	{"event with 1 sample, mixed", "compare", "Parse/mixed/1", ""},
	{"event with 100 samples, mixed", "compare", "Parse/mixed/100", ""},
	{"the same, others without pointers", "compare", "Parse/mixed/100", "-values"},
	{"event with 10,000 samples, mixed", "compare", "Parse/mixed/10000", ""},
	{"the same, others without pointers", "compare", "Parse/mixed/10000", "-values"},
	{"envelope of an event with 1 sample", "compare", "Route/1", ""},
	{"envelope of an event with 100 samples", "compare", "Route/100", ""},
	{"envelope of an event with 10,000 samples", "compare", "Route/10000", ""},
	{"page of 50 orders", "compare", "OrderPage", ""},
	{"one call, order by ID", "call", "Call", ""},
	{"all of 100,000 users", "users", "Users/100000", ""},
}

// libraries are the columns of the first table.
var libraries = []struct{ bench, name string }{
	{"encoding", "encoding/json"}, {"goccy", "goccy/go-json"}, {"sonic", "sonic"}, {"jx", "jx, handwritten"},
}

// report returns the section of docs/speed.md.
func (m *measurement) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured: %s; sonic runs %s.\n\n", m.conditions, m.properties["sonic"])
	m.writeTasks(&b)
	m.writeLatest(&b)
	m.writeUsers(&b)
	fmt.Fprintf(&b, "\nThe transport alone, over a `RoundTripper` that responds at once: %s and %s allocations per call.\n",
		duration(m.median("transport", "Transport", "ns/op")), count(m.median("transport", "Transport", "allocs/op")))
	m.writeScans(&b)
	b.WriteString("\n")
	return b.String()
}

func (m *measurement) writeTasks(b *strings.Builder) {
	b.WriteString("| task | this module | MB/s |")
	for _, library := range libraries {
		fmt.Fprintf(b, " %s |", library.name)
	}
	b.WriteString(" allocations |\n|---|--:|--:|--:|--:|--:|--:|---|\n")
	for _, task := range tasks {
		ours := task.bench + "/ours"
		var allocs []string
		if task.suffix != "" {
			fmt.Fprintf(b, "| %s | | |", task.name)
		} else {
			fmt.Fprintf(b, "| %s | %s | %s |", task.name,
				duration(m.median(task.suite, ours, "ns/op")), number(m.median(task.suite, ours, "MB/s")))
			allocs = append(allocs, "this module "+count(m.median(task.suite, ours, "allocs/op")))
		}
		for _, library := range libraries {
			bench := task.bench + "/" + library.bench + task.suffix
			ratio := m.ratio(task.suite, bench, ours)
			if ratio == 0 {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(b, " %s, **%s** |", duration(m.median(task.suite, bench, "ns/op")), times(ratio))
			allocs = append(allocs, library.bench+" "+count(m.median(task.suite, bench, "allocs/op")))
		}
		fmt.Fprintf(b, " %s |\n", strings.Join(allocs, ", "))
	}
}

func (m *measurement) writeLatest(b *strings.Builder) {
	b.WriteString("\n| `Latest.Apply`, 10,000,000 samples of 10,000 users | one core | two cores | | heap per stored sample |\n" +
		"|---|--:|--:|--:|--:|\n")
	for _, row := range []struct{ name, suite, bench string }{
		{"batches of 100, in order", "one", "Latest/ordered/10000000/"},
		{"batches of 100, shuffled", "one", "Latest/shuffled/10000000/"},
		{"one sample per delivery, in order (1,000,000 samples)", "single", "Latest/single-ordered/1000000/"},
		{"one sample per delivery, shuffled (1,000,000 samples)", "single", "Latest/single-shuffled/1000000/"},
	} {
		fmt.Fprintf(b, "| %s | %s million/s |", row.name, number(m.median(row.suite, row.bench+"1", "Msamples/s")))
		if two := m.median("two", row.bench+"2", "Msamples/s"); two > 0 {
			fmt.Fprintf(b, " %s million/s | **%s** |",
				number(two), times(m.ratioAcross(row.suite, row.bench+"1", "two", row.bench+"2")))
		} else {
			b.WriteString(" | |")
		}
		fmt.Fprintf(b, " %.1f bytes |\n", m.median(row.suite, row.bench+"1", "B/sample"))
	}
}

func (m *measurement) writeUsers(b *strings.Builder) {
	b.WriteString("\n| heap above an empty program, all users in pages of 500 | this module | live | plain loop | live | time of the loop |\n" +
		"|---|--:|--:|--:|--:|--:|\n")
	for _, row := range []struct{ name, suite, bench string }{
		{"100,000 users", "users", "Users/100000/"}, {"1,000,000 users", "million", "Users/1000000/"},
	} {
		fmt.Fprintf(b, "| %s |", row.name)
		for _, library := range []string{"ours", "encoding"} {
			fmt.Fprintf(b, " %.1f MiB | %.1f MiB |",
				m.median(row.suite, row.bench+library, "MiB"), m.median(row.suite, row.bench+library, "MiB-live"))
		}
		fmt.Fprintf(b, " **%s** |\n", times(m.ratio(row.suite, row.bench+"encoding", row.bench+"ours")))
	}
}

func (m *measurement) writeScans(b *strings.Builder) {
	b.WriteString("\n| 10,000 samples, MB/s | uniform | mixed |\n|---|--:|--:|\n")
	for _, row := range []struct{ name, bench, library string }{
		{"`webhooks.Parse`", "Parse/%s/10000/", "ours"},
		{"skipping and validating the data: `webhooks.ParseEnvelope`", "Scan/%s/", "ours"},
		{"validating only: the scanner of responses", "Scan/%s/", "ours-general"},
		{"validating only: jx", "Scan/%s/", "jx"},
		{"validating only: sonic, with vector instructions", "Scan/%s/", "sonic"},
		{"validating only: encoding/json", "Scan/%s/", "encoding"},
	} {
		fmt.Fprintf(b, "| %s |", row.name)
		for _, kind := range []string{"uniform", "mixed"} {
			fmt.Fprintf(b, " %s |", number(m.median("compare", fmt.Sprintf(row.bench, kind)+row.library, "MB/s")))
		}
		b.WriteString("\n")
	}
}

// summary returns the section of README.md.
func (m *measurement) summary() string {
	return m.sentence("`webhooks.Parse` reads 100 samples in", "Parse/uniform/100") + ".\n" +
		m.sentence("A page of 50 orders takes", "OrderPage") + " ([all figures](docs/speed.md)).\n"
}

// sentence compares one task of the suite "compare" with the other JSON libraries.
func (m *measurement) sentence(subject, bench string) string {
	var ratios []string
	for _, library := range libraries {
		if ratio := m.ratio("compare", bench+"/"+library.bench, bench+"/ours"); ratio > 0 && library.bench != "jx" {
			ratios = append(ratios, library.name+" "+times(ratio))
		}
	}
	return fmt.Sprintf("%s %s; relative times: %s",
		subject, duration(m.median("compare", bench+"/ours", "ns/op")), strings.Join(ratios, ", "))
}

func times(ratio float64) string { return number(ratio) + "×" }

// number formats f with three significant digits, or as a whole number if it has more before the
// decimal point. 0 is the empty string.
func number(f float64) string {
	switch {
	case f == 0:
		return ""
	case f < 9.995:
		return fmt.Sprintf("%.2f", f)
	case f < 99.95:
		return fmt.Sprintf("%.1f", f)
	}
	return count(f)
}

// count formats f as a whole number with commas.
func count(f float64) string {
	digits := fmt.Sprintf("%.0f", f)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func duration(ns float64) string {
	switch {
	case ns == 0:
		return "–"
	case ns < 1e3:
		return number(ns) + " ns"
	case ns < 1e6:
		return number(ns/1e3) + " µs"
	case ns < 1e9:
		return number(ns/1e6) + " ms"
	}
	return number(ns/1e9) + " s"
}
