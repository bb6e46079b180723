package main

import (
	"fmt"
	"slices"
	"strings"
)

// task is a row of a table of the libraries. The benchmark of each library is named bench, a slash
// and the library.
type task struct {
	name, suite, bench string
	ours               string // the benchmark of this module
	suffix             string // of the names of the other libraries; with one, the row omits this module
}

// tables compare the libraries.
var tables = []struct {
	title string
	tasks []task
}{
	{"reading an event", []task{
		{"1 sample, uniform", "events", "Parse/uniform/1", "ours", ""},
		{"100 samples, uniform", "events", "Parse/uniform/100", "ours", ""},
		{"the same, others without pointers", "events", "Parse/uniform/100", "ours", "-values"},
		{"10,000 samples, uniform", "events", "Parse/uniform/10000", "ours", ""},
		{"the same, others without pointers", "events", "Parse/uniform/10000", "ours", "-values"},
		{"1 sample, mixed", "events", "Parse/mixed/1", "ours", ""},
		{"100 samples, mixed", "events", "Parse/mixed/100", "ours", ""},
		{"the same, others without pointers", "events", "Parse/mixed/100", "ours", "-values"},
		{"10,000 samples, mixed", "events", "Parse/mixed/10000", "ours", ""},
		{"the same, others without pointers", "events", "Parse/mixed/10000", "ours", "-values"},
		{"envelope, 1 sample", "events", "Route/1", "ours", ""},
		{"envelope, 100 samples", "events", "Route/100", "ours", ""},
		{"envelope, 10,000 samples", "events", "Route/10000", "ours", ""},
	}},
	{"reading a page", []task{
		{"50 full orders, client", "pages", "Page/full", "ours", ""},
		{"50 full orders, `UnmarshalJSON`", "pages", "Page/full", "ours-direct", ""},
		{"50 typical orders, client", "pages", "Page/typical", "ours", ""},
		{"50 typical orders, `UnmarshalJSON`", "pages", "Page/typical", "ours-direct", ""},
		{"100 users, client", "pages", "Page/users", "ours", ""},
		{"100 users, `UnmarshalJSON`", "pages", "Page/users", "ours-direct", ""},
		{"50 lab tests, client", "pages", "Page/lab-tests", "ours", ""},
		{"50 lab tests, `UnmarshalJSON`", "pages", "Page/lab-tests", "ours-direct", ""},
		{"30 results, client", "pages", "Page/results", "ours", ""},
		{"30 results, `UnmarshalJSON`", "pages", "Page/results", "ours-direct", ""},
	}},
	{"writing", []task{
		{"request that imports an order", "write", "Write/request/import", "ours", ""},
		{"received order, unchanged", "write", "Write/order/unchanged", "ours", ""},
		{"received order, changed", "write", "Write/order/changed", "ours", ""},
		{"the same with `json.Marshal`", "write", "Write/order/changed", "ours-json", ""},
		{"page of 50 orders, unchanged", "write", "Write/page/unchanged", "ours", ""},
		{"page of 50 orders, one changed", "write", "Write/page/changed", "ours", ""},
		{"event with 100 samples, unchanged", "write", "Write/event/100/unchanged", "ours", ""},
		{"event with 100 samples, one changed", "write", "Write/event/100/changed", "ours", ""},
	}},
	{"calling a local service", []task{
		{"an order by its ID", "call", "Call", "ours", ""},
		{"all of 100,000 users", "users", "Users/100000", "ours", ""},
	}},
}

type library struct{ bench, name string }

// libraries are the columns of the tables.
var libraries = []library{
	{"encoding", "encoding/json"}, {"goccy", "goccy/go-json"}, {"sonic", "sonic"}, {"jx", "jx, handwritten"},
}

// report returns the tables of docs/speed.md of one Go version. It omits what was not measured.
func (m *measurement) report() string {
	var b strings.Builder
	for _, table := range tables {
		m.writeTasks(&b, table.title, table.tasks)
	}
	m.writeRetained(&b)
	m.writeLatest(&b)
	m.writeUsers(&b)
	m.writeScans(&b)
	if t := m.median("transport", "Transport", "ns/op"); t > 0 {
		fmt.Fprintf(&b, "\nThe transport alone, over a `RoundTripper` that responds at once: %s and %s allocations per call.\n",
			duration(t), count(m.median("transport", "Transport", "allocs/op")))
	}
	return b.String()
}

// writeTable writes a table, unless it has no rows.
func writeTable(b *strings.Builder, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| %s |\n|---|%s\n", strings.Join(head, " | "), strings.Repeat("--:|", len(head)-1))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// writeTasks writes a table with the columns of the libraries that have one of the tasks.
func (m *measurement) writeTasks(b *strings.Builder, title string, tasks []task) {
	head := []string{title, "this module", "MB/s"}
	columns := slices.DeleteFunc(slices.Clone(libraries), func(l library) bool {
		return !slices.ContainsFunc(tasks, func(t task) bool { return m.ratio(t.suite, t.bench+"/"+l.bench, t.bench+"/"+t.ours) > 0 })
	})
	for _, l := range columns {
		head = append(head, l.name)
	}
	var rows [][]string
	for _, t := range tasks {
		if m.median(t.suite, t.bench+"/"+t.ours, "ns/op") > 0 {
			rows = append(rows, m.taskRow(t, columns))
		}
	}
	writeTable(b, append(head, "allocations"), rows)
}

func (m *measurement) taskRow(t task, columns []library) []string {
	row := []string{t.name, "", ""}
	var allocs []string
	ours := t.bench + "/" + t.ours
	if t.suffix == "" {
		row[1], row[2] = duration(m.median(t.suite, ours, "ns/op")), number(m.median(t.suite, ours, "MB/s"))
		allocs = append(allocs, "this module "+count(m.median(t.suite, ours, "allocs/op")))
	}
	for _, l := range columns {
		bench := t.bench + "/" + l.bench + t.suffix
		ratio := m.ratio(t.suite, bench, ours)
		if ratio == 0 {
			row = append(row, "")
			continue
		}
		row = append(row, duration(m.median(t.suite, bench, "ns/op"))+", **"+times(ratio)+"**")
		allocs = append(allocs, l.bench+" "+count(m.median(t.suite, bench, "allocs/op")))
	}
	return append(row, strings.Join(allocs, ", "))
}

// writeRetained writes what a program retains of a page per element of its list.
func (m *measurement) writeRetained(b *strings.Builder) {
	var rows [][]string
	for _, page := range []struct{ name, bench string }{
		{"full order", "full"}, {"typical order", "typical"}, {"user", "users"}, {"lab test", "lab-tests"}, {"result", "results"},
	} {
		row := []string{page.name}
		for _, library := range []string{"ours", "encoding", "goccy", "sonic"} {
			bench := "Retained/" + page.bench + "/" + library
			row = append(row, count(m.median("retained", bench, "B/element"))+", "+count(m.median("retained", bench, "B/element-of-page")))
		}
		if m.median("retained", "Retained/"+page.bench+"/ours", "B/element") > 0 {
			rows = append(rows, row)
		}
	}
	writeTable(b, []string{"bytes retained per element of a page: list kept, page kept", "this module", "encoding/json", "goccy/go-json", "sonic"}, rows)
}

func (m *measurement) writeLatest(b *strings.Builder) {
	var rows [][]string
	for _, row := range []struct{ name, suite, bench string }{
		{"batches of 100, in order", "one", "Latest/ordered/10000000/1"},
		{"batches of 100, shuffled", "one", "Latest/shuffled/10000000/1"},
		{"one sample per delivery, in order, 1,000,000 samples of 1,000 users", "single", "Latest/single-ordered/1000000/1"},
		{"one sample per delivery, shuffled, 1,000,000 samples of 1,000 users", "single", "Latest/single-shuffled/1000000/1"},
		{"one sample per delivery, shuffled, 1,000,000 samples of as many users", "series", "Series/1"},
		{"one sample per delivery, shuffled, 4,000,000 samples of 1,000,000 users", "series", "Series/4"},
	} {
		rate := m.median(row.suite, row.bench, "Msamples/s")
		if rate == 0 {
			continue
		}
		cells := []string{row.name, number(rate) + " million/s", "", "", ""}
		two := strings.TrimSuffix(row.bench, "1") + "2"
		if both := m.median("two", two, "Msamples/s"); both > 0 {
			cells[2], cells[3] = number(both)+" million/s", "**"+times(m.ratioAcross(row.suite, row.bench, "two", two))+"**"
		}
		if bytes := m.median(row.suite, row.bench, "B/sample"); bytes > 0 {
			cells[4] = fmt.Sprintf("%.1f bytes", bytes)
		}
		rows = append(rows, cells)
	}
	writeTable(b, []string{"`Latest.Apply`, 10,000,000 samples of 10,000 users", "one core", "two cores", "", "heap per stored sample"}, rows)
}

func (m *measurement) writeUsers(b *strings.Builder) {
	var rows [][]string
	for _, row := range []struct{ name, suite, bench string }{
		{"100,000 users", "users", "Users/100000/"}, {"1,000,000 users", "million", "Users/1000000/"},
	} {
		ratio := m.ratio(row.suite, row.bench+"encoding", row.bench+"ours")
		if ratio == 0 {
			continue
		}
		cells := []string{row.name}
		for _, library := range []string{"ours", "encoding"} {
			for _, unit := range []string{"MiB", "MiB-live"} {
				cells = append(cells, fmt.Sprintf("%.1f MiB", m.median(row.suite, row.bench+library, unit)))
			}
		}
		rows = append(rows, append(cells, "**"+times(ratio)+"**"))
	}
	writeTable(b, []string{"largest heap above that of an empty program, all users in pages of 500", "this module", "of it live", "plain loop", "of it live", "time of the plain loop"}, rows)
}

func (m *measurement) writeScans(b *strings.Builder) {
	var rows [][]string
	for _, row := range []struct{ name, bench, library string }{
		{"`webhooks.Parse`", "Parse/%s/10000/", "ours"},
		{"skipping and validating the data: `webhooks.ParseEnvelope`", "Scan/%s/", "ours"},
		{"validating only: the scanner of responses", "Scan/%s/", "ours-general"},
		{"validating only: jx", "Scan/%s/", "jx"},
		{"validating only: sonic, with vector instructions", "Scan/%s/", "sonic"},
		{"validating only: encoding/json", "Scan/%s/", "encoding"},
	} {
		cells := []string{row.name}
		for _, kind := range []string{"uniform", "mixed"} {
			cells = append(cells, number(m.median("events", fmt.Sprintf(row.bench, kind)+row.library, "MB/s")))
		}
		if cells[1] != "" {
			rows = append(rows, cells)
		}
	}
	writeTable(b, []string{"10,000 samples, MB/s", "uniform", "mixed"}, rows)
}

// summary returns the section of README.md.
func (m *measurement) summary() string {
	return m.sentence("`webhooks.Parse` reads 100 samples in", "events", "Parse/uniform/100") + ".\n" +
		m.sentence("A page of 50 full orders takes", "pages", "Page/full") + ",\n" +
		m.sentence("one of 50 typical orders", "pages", "Page/typical") + "\n(" + m.version + ", [all figures](docs/speed.md)).\n"
}

// sentence compares one task with the other JSON libraries.
func (m *measurement) sentence(subject, suite, bench string) string {
	var ratios []string
	for _, library := range libraries {
		if ratio := m.ratio(suite, bench+"/"+library.bench, bench+"/ours"); ratio > 0 && library.bench != "jx" {
			ratios = append(ratios, library.name+" "+times(ratio))
		}
	}
	return fmt.Sprintf("%s %s; relative times: %s",
		subject, duration(m.median(suite, bench+"/ours", "ns/op")), strings.Join(ratios, ", "))
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
