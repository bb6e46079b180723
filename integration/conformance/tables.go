package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// page is a document with a table between <!-- name --> and <!-- /name -->.
type page struct{ file, marker, content string }

// The tables with all results.
const (
	resultsFile   = "conformance/README.md"
	resultsMarker = "results"
)

// measurement has the results of each built-in client, in the order of the cases.
type measurement struct {
	suite   *suite
	cases   []testCase
	results [][]result
}

// measure runs every built-in client in every case, all of them at the same time. Results that
// differ from the documented ones are measured again.
func measure(ctx context.Context, s *suite, documented string, parallel int) (*measurement, error) {
	m := &measurement{suite: s, cases: s.cases(regexp.MustCompile("")), results: make([][]result, len(clients))}
	cells := cellsOf(documented)
	var running sync.WaitGroup
	for j, c := range clients {
		running.Go(func() {
			results := runAll(ctx, c, m.cases, parallel)
			m.results[j] = results
			runAgain(ctx, c, m.cases, results, parallel, func(i int) bool {
				line, ok := cells[m.cases[i].call+" "+m.cases[i].Name]
				return !ok || j >= len(line) || results[i].err == nil && line[j] == results[i].cell()
			})
		})
	}
	running.Wait()
	for j, c := range clients {
		for i, r := range m.results[j] {
			if r.err != nil {
				return nil, fmt.Errorf("%s: %s: %w", c.label, m.cases[i], r.err)
			}
		}
	}
	return m, nil
}

// cellsOf returns the cells of the documented tables by call and name of a row.
func cellsOf(documented string) map[string][]string {
	cells, call := map[string][]string{}, ""
	for line := range strings.Lines(documented) {
		fields := strings.Split(strings.Trim(line, "| \n"), " | ")
		if slices.Contains(callNames, fields[0]) {
			call = fields[0]
		}
		cells[call+" "+fields[0]] = fields[1:]
	}
	return cells
}

// cell returns a result as a cell of a table: in bold if it violates its row.
func (r result) cell() string {
	if len(r.violations) > 0 {
		return "**" + r.String() + "**"
	}
	return r.String()
}

// pages returns the tables of the documentation.
func (m *measurement) pages(versions string) []page {
	return []page{
		{"docs/safety.md", "orders", m.ordersTable() + "\n" + versions + "\n"},
		{resultsFile, resultsMarker, m.summaryTable() + "\n" + versions + "\n" + m.callTables()},
	}
}

// shortTable are the rows of the table of docs/safety.md. The last one shows what is sent to
// another host.
var shortTable = []string{
	"the response is lost: the connection is closed",
	"the response is lost: the connection is reset",
	"the response is lost on a kept-alive connection",
	"no response until the deadline",
	"a proxy responds with 502",
	"503 to every request",
	"the response is truncated",
	"a redirect (307) to another host",
}

// shortClients are its columns.
var shortClients = []string{"labhealth", "nethttp", "nethttp-key", "retryablehttp", "resty", "resty-v2", "req"}

// ordersTable returns the numbers of orders that one import creates.
func (m *measurement) ordersTable() string {
	head := []string{"orders created by one import"}
	for _, c := range clients {
		if slices.Contains(shortClients, c.flag) {
			head = append(head, c.label)
		}
	}
	lines := [][]string{head}
	for _, name := range shortTable {
		i := m.find(name, "import")
		toOther := name == shortTable[len(shortTable)-1]
		line := []string{name}
		if toOther {
			line[0] += ": data sent to it"
		}
		for j, c := range clients {
			if slices.Contains(shortClients, c.flag) {
				line = append(line, ordersCell(m.results[j][i], toOther))
			}
		}
		lines = append(lines, line)
	}
	return table(lines)
}

func ordersCell(r result, toOther bool) string {
	switch {
	case toOther && len(r.leaked) == 0:
		return "nothing"
	case toOther:
		return "**" + strings.Join(r.leaked, ", ") + "**"
	case r.commits > 1:
		return fmt.Sprintf("**%d**", r.commits)
	case r.Outcome != "":
		return fmt.Sprintf("%d, %s", r.commits, r.Outcome)
	}
	return fmt.Sprint(r.commits)
}

// find returns the index of a case.
func (m *measurement) find(name, call string) int {
	i := slices.IndexFunc(m.cases, func(c testCase) bool { return c.Name == name && c.call == call })
	if i < 0 {
		panic("there is no row " + name)
	}
	return i
}

// summaryTable returns how often each client does what it must not do.
func (m *measurement) summaryTable() string {
	lines := [][]string{{fmt.Sprintf("of %d cases", len(m.cases)), "passed", "two or more orders", "data sent to another host", "too many requests"}}
	for j, c := range clients {
		passed, twice, leaked, requests := 0, 0, 0, 0
		for i, r := range m.results[j] {
			count := func(n *int, condition bool) {
				if condition {
					*n++
				}
			}
			count(&passed, len(r.violations) == 0)
			count(&twice, r.commits > 1)
			count(&leaked, len(r.leaked) > 0)
			count(&requests, r.requests > m.cases[i].Expect[m.cases[i].call].MaxRequests)
		}
		lines = append(lines, []string{c.label, fmt.Sprint(passed), fmt.Sprint(twice), fmt.Sprint(leaked), fmt.Sprint(requests)})
	}
	return table(lines)
}

// callTables returns what every client does in every case: one table for each call.
func (m *measurement) callTables() string {
	var b strings.Builder
	for _, call := range callNames {
		head := []string{call}
		for _, c := range clients {
			head = append(head, c.label)
		}
		lines := [][]string{head}
		for _, r := range m.suite.Rows {
			i := m.find(r.Name, call)
			line := []string{r.Name}
			for j := range clients {
				line = append(line, m.results[j][i].cell())
			}
			lines = append(lines, line)
		}
		b.WriteString("\n" + table(lines))
	}
	return b.String()
}

// table returns a Markdown table.
func table(lines [][]string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(line)) + "|\n")
		}
	}
	return b.String()
}

// versions names the versions of the other libraries, which integration/go.mod has.
func versions(root string) (string, error) {
	modules, err := os.ReadFile(root + "/integration/go.mod")
	if err != nil {
		return "", err
	}
	var list []string
	for _, c := range clients {
		if c.module == "" {
			continue
		}
		match := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(c.module) + ` v(\S+)$`).FindSubmatch(modules)
		if match == nil {
			return "", fmt.Errorf("integration/go.mod has no version of %s", c.module)
		}
		if text := strings.Fields(strings.Split(c.label, " v")[0])[0] + " " + string(match[1]); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return "Measured with Go 1.26 and 1.27, " + strings.Join(list, ", ") + ".", nil
}

// old returns what a file has between the markers of a page, and the rest of the file around it.
func (p page) old(root string) (before, between, after string, err error) {
	text, err := os.ReadFile(root + "/" + p.file)
	if err != nil {
		return "", "", "", err
	}
	before, rest, found := strings.Cut(string(text), "<!-- "+p.marker+" -->\n")
	between, after, closed := strings.Cut(rest, "<!-- /"+p.marker+" -->\n")
	if !found || !closed {
		return "", "", "", errors.New(p.file + " has no marker " + p.marker)
	}
	return before, between, after, nil
}

// write replaces what a file has between the markers of a page.
func (p page) write(root string) error {
	before, _, after, err := p.old(root)
	if err != nil {
		return err
	}
	text := before + "<!-- " + p.marker + " -->\n" + p.content + "<!-- /" + p.marker + " -->\n" + after
	return os.WriteFile(root+"/"+p.file, []byte(text), 0o644)
}

// writeTables measures all built-in clients and writes the tables of the documentation.
func writeTables(root string, s *suite, parallel int) error {
	text, err := versions(root)
	if err != nil {
		return err
	}
	_, documented, _, err := page{file: resultsFile, marker: resultsMarker}.old(root)
	if err != nil {
		return err
	}
	m, err := measure(context.Background(), s, documented, parallel)
	if err != nil {
		return err
	}
	for _, p := range m.pages(text) {
		if err := p.write(root); err != nil {
			return err
		}
	}
	return nil
}
