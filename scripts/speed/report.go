package main

import (
	"fmt"
	"math"
	"strings"
)

// work is a row: one work, done by this module and by others. The benchmark of each is that of the work, a slash and its name.
type work struct {
	name, suite, bench string
	suffix             string // of the names of the others
}

// works are the rows of the report. Those with a short name are in the README too.
var works = []struct {
	work
	short string
}{
	{work{"event with 1 sample, uniform", "compare", "Parse/uniform/1", ""}, "`webhooks.Parse`, 1 sample"},
	{work{"event with 100 samples, uniform", "compare", "Parse/uniform/100", ""}, "`webhooks.Parse`, 100 samples"},
	{work{"the same, others into values", "compare", "Parse/uniform/100", "-values"}, ""},
	{work{"event with 10,000 samples, uniform", "compare", "Parse/uniform/10000", ""}, "`webhooks.Parse`, 10,000 samples"},
	{work{"the same, others into values", "compare", "Parse/uniform/10000", "-values"}, ""},
	{work{"event with 1 sample, mixed", "compare", "Parse/mixed/1", ""}, ""},
	{work{"event with 100 samples, mixed", "compare", "Parse/mixed/100", ""}, ""},
	{work{"the same, others into values", "compare", "Parse/mixed/100", "-values"}, ""},
	{work{"event with 10,000 samples, mixed", "compare", "Parse/mixed/10000", ""}, "`webhooks.Parse`, 10,000 mixed samples"},
	{work{"the same, others into values", "compare", "Parse/mixed/10000", "-values"}, ""},
	{work{"type and ids of an event with 1 sample", "compare", "Route/1", ""}, ""},
	{work{"type and ids of an event with 100 samples", "compare", "Route/100", ""}, "`webhooks.ParseEnvelope`, 100 samples"},
	{work{"type and ids of an event with 10,000 samples", "compare", "Route/10000", ""}, ""},
	{work{"page of 50 orders", "compare", "OrderPage", ""}, "a page of 50 orders through the client"},
	{work{"one call, order by id", "call", "Call", ""}, "one call on this machine"},
	{work{"all of 100,000 users", "users", "Users/100000", ""}, "`Users.All`, 100,000 users"},
}

// others are the columns, as the benchmarks call them.
var others = []struct{ bench, name string }{
	{"encoding", "encoding/json"}, {"goccy", "goccy/go-json"}, {"sonic", "sonic"}, {"jx", "jx by hand"},
}

// report is what docs/speed.md shows.
func (m *measurement) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured: %s; sonic runs %s.\n\n| work | ours | MB/s |", m.about, m.keys["sonic"])
	for _, o := range others {
		fmt.Fprintf(&b, " %s |", o.name)
	}
	b.WriteString(" allocations |\n|---|--:|--:|--:|--:|--:|--:|---|\n")
	for _, w := range works {
		ours := w.bench + "/ours"
		if w.suffix != "" {
			fmt.Fprintf(&b, "| %s | | |", w.name)
		} else {
			fmt.Fprintf(&b, "| %s | %s | %s |", w.name, duration(m.of(w.suite, ours, "ns/op")), number(m.of(w.suite, ours, "MB/s")))
		}
		var allocs []string
		if w.suffix == "" {
			allocs = append(allocs, "ours "+count(m.of(w.suite, ours, "allocs/op")))
		}
		for _, o := range others {
			bench := w.bench + "/" + o.bench + w.suffix
			r := m.ratio(w.suite, bench, ours)
			if r == 0 {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %s, **%s** |", duration(m.of(w.suite, bench, "ns/op")), times(r))
			allocs = append(allocs, o.bench+" "+count(m.of(w.suite, bench, "allocs/op")))
		}
		fmt.Fprintf(&b, " %s |\n", strings.Join(allocs, ", "))
	}

	b.WriteString("\n| `Latest.Apply`, 10,000,000 samples of 10,000 users | one core | two cores | | heap of a stored sample |\n|---|--:|--:|--:|--:|\n")
	for _, l := range []struct{ name, bench, one string }{
		{"batches of 100, in order", "Latest/ordered/10000000/", "one"},
		{"batches of 100, shuffled", "Latest/shuffled/10000000/", "one"},
		{"one sample to a delivery, in order (1,000,000 samples)", "Latest/single-ordered/1000000/", "single"},
		{"one sample to a delivery, shuffled (1,000,000 samples)", "Latest/single-shuffled/1000000/", "single"},
	} {
		one, two := m.of(l.one, l.bench+"1", "Msamples/s"), m.of("two", l.bench+"2", "Msamples/s")
		fmt.Fprintf(&b, "| %s | %s million/s |", l.name, number(one))
		if two > 0 {
			fmt.Fprintf(&b, " %s million/s | **%s** |", number(two), times(m.ratioOf(l.one, l.bench+"1", "two", l.bench+"2")))
		} else {
			b.WriteString(" | |")
		}
		fmt.Fprintf(&b, " %.1f bytes |\n", m.of(l.one, l.bench+"1", "B/sample"))
	}

	b.WriteString("\n| heap over the empty program, all users in pages of 500 | ours | alive | bare loop | alive | time of the loop |\n|---|--:|--:|--:|--:|--:|\n")
	for _, u := range []struct{ name, suite, bench string }{
		{"100,000 users", "users", "Users/100000/"}, {"1,000,000 users", "million", "Users/1000000/"},
	} {
		fmt.Fprintf(&b, "| %s |", u.name)
		for _, who := range []string{"ours", "encoding"} {
			fmt.Fprintf(&b, " %.1f MiB | %.1f MiB |", m.of(u.suite, u.bench+who, "MiB"), m.of(u.suite, u.bench+who, "MiB-live"))
		}
		fmt.Fprintf(&b, " **%s** |\n", times(m.ratio(u.suite, u.bench+"encoding", u.bench+"ours")))
	}

	fmt.Fprintf(&b, "\nThe transport alone, over a `RoundTripper` that answers at once: %s and %s allocations a call.\n",
		duration(m.of("transport", "Transport", "ns/op")), count(m.of("transport", "Transport", "allocs/op")))

	b.WriteString("\n| 10,000 samples, MB/s | uniform | mixed |\n|---|--:|--:|\n")
	for _, s := range []struct{ name, bench, who string }{
		{"`webhooks.Parse`", "Parse/%s/10000/", "ours"},
		{"stepping over the data and checking it: `webhooks.ParseEnvelope`", "Scan/%s/", "ours"},
		{"checking only: the scanner of answers", "Scan/%s/", "ours-general"},
		{"checking only: jx", "Scan/%s/", "jx"},
		{"checking only: sonic, with vector instructions", "Scan/%s/", "sonic"},
		{"checking only: encoding/json", "Scan/%s/", "encoding"},
	} {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, form := range []string{"uniform", "mixed"} {
			fmt.Fprintf(&b, " %s |", number(m.of("compare", fmt.Sprintf(s.bench, form)+s.who, "MB/s")))
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// summary is what the README shows.
func (m *measurement) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nHow many times longer the others take for the same\n(%s):\n\n"+
		"| work | time | encoding/json | goccy/go-json | sonic | allocations |\n|---|--:|--:|--:|--:|--:|\n", m.about)
	for _, w := range works {
		if w.short == "" {
			continue
		}
		ours := w.bench + "/ours"
		fmt.Fprintf(&b, "| %s | %s |", w.short, duration(m.of(w.suite, ours, "ns/op")))
		for _, o := range others[:3] {
			if r := m.ratio(w.suite, w.bench+"/"+o.bench, ours); r > 0 {
				fmt.Fprintf(&b, " %s |", times(r))
			} else {
				b.WriteString(" |")
			}
		}
		fmt.Fprintf(&b, " %s |\n", count(m.of(w.suite, ours, "allocs/op")))
	}
	fmt.Fprintf(&b, "\n`webhooks.Latest` stores %s million samples a second on one core (%s million shuffled), in at most %.0f bytes each. The others keep\n"+
		"neither the bytes that came nor members without a field, and sonic does not check what it skips:\n"+
		"[the rules, all figures, and how cost grows](docs/speed.md).\n\n",
		number(m.of("one", "Latest/ordered/10000000/1", "Msamples/s")), number(m.of("one", "Latest/shuffled/10000000/1", "Msamples/s")),
		math.Ceil(m.of("one", "Latest/shuffled/10000000/1", "B/sample")))
	return b.String()
}

func times(r float64) string { return number(r) + "×" }

// number writes three digits or as many as there are before the point.
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

// count writes a whole number, with commas.
func count(f float64) string {
	text := fmt.Sprintf("%.0f", f)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
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
