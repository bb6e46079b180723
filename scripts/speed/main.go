// Command speed measures this module beside encoding/json, goccy/go-json, sonic and jx, and how cost grows. It writes what it found
// between the marks <!-- speed --> and <!-- /speed --> of docs/speed.md and README.md, and draws docs/growth.svg.
//
//	go run ./scripts/speed            all of it: some six minutes, on a machine that does nothing else
//	go run ./scripts/speed -quick     a short look at everything, printed only; its figures mean nothing
//
// It compiles the benchmarks of the packages in suites and runs them in rounds, one after the other, so that what disturbs a round
// disturbs all who are compared. A figure is the median of the rounds, and a ratio the median of the ratios within a round.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is benchmarks of one package that run together.
type suite struct {
	dir    string // of the package
	bench  string // which
	time   string // how long each
	cpus   int    // GOMAXPROCS
	rounds int    // at most; 0 for all
}

// suites are what is measured, by the names that the report uses. A program that is measured on one processor collects its
// garbage on the same one.
var suites = map[string]suite{
	"compare":   {"integration/compare", `^BenchmarkParse$//^(1|100|10000)$|^Benchmark(Route|Scan|OrderPage)$`, "80ms", 1, 0},
	"call":      {"integration/compare", `^BenchmarkCall$`, "200ms", 2, 0},
	"transport": {"internal/conformance", `^BenchmarkTransport$`, "60ms", 1, 0},
	"one":       {"webhooks", `^BenchmarkLatest$/^(ordered|shuffled)$/^10000000$/^1$`, "1x", 1, 0},
	"two":       {"webhooks", `^BenchmarkLatest$/^(ordered|shuffled)$/^10000000$/^2$`, "1x", 2, 0},
	"single":    {"webhooks", `^BenchmarkLatest$/^single/^1000000$/^1$`, "1x", 1, 0},
	"users":     {"integration/compare", `^BenchmarkUsers$/^100000$`, "1x", 2, 0},
	"million":   {"integration/compare", `^BenchmarkUsers$/^1000000$`, "1x", 2, 5},

	"samples":    {"integration/compare", `^BenchmarkParse$/^uniform$/^10+$/^(encoding|ours|goccy|sonic|jx)$`, "50ms", 1, 3},
	"keys":       {"webhooks", `^BenchmarkLatest$//^10{3,6}$/^1$`, "50ms", 1, 3},
	"most":       {"webhooks", `^BenchmarkLatest$//^10000000$/^1$`, "1x", 1, 1},
	"goroutines": {"integration/compare", `^BenchmarkGoroutines$`, "100ms", 2, 3},
	"appliers":   {"webhooks", `^BenchmarkLatest$/ordered$/^1000000$`, "1x", 2, 3},
}

// results are what the rounds of a suite measured: by benchmark and unit, one value for each round.
type results map[string]map[string][]float64

func main() {
	rounds := flag.Int("rounds", 11, "how many rounds")
	quick := flag.Bool("quick", false, "one round, 5 ms for each benchmark, without what takes long; writes nothing")
	flag.Parse()
	if err := run(*rounds, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(rounds int, quick bool) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return errors.New("run it in the repository")
	}
	if err := os.Chdir(strings.TrimSpace(string(root))); err != nil {
		return err
	}
	if quick {
		rounds = 1
	}
	began, load := time.Now(), loadNow()
	m, err := measure(rounds, quick)
	if err != nil {
		return err
	}
	m.about = fmt.Sprintf("medians of %d rounds, %s, %s %s/%s, %d × %s, load %s before and %s after",
		rounds, began.Format("2 January 2006"), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), m.keys["cpu"], load, loadNow())
	long, short := m.report(), m.summary()
	fmt.Printf("%s\n%s", long, short)
	if quick {
		return nil
	}
	if err := os.WriteFile("docs/growth.svg", m.growth(), 0o644); err != nil {
		return err
	}
	return errors.Join(insert("docs/speed.md", long), insert("README.md", short))
}

// measurement is all results, and what the machine says of itself.
type measurement struct {
	suites map[string]results
	keys   map[string]string
	about  string
}

// measure runs all suites, round by round.
func measure(rounds int, quick bool) (*measurement, error) {
	bin, err := os.MkdirTemp("", "speed")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	m := &measurement{map[string]results{}, map[string]string{}, ""}
	names := make([]string, 0, len(suites))
	for name, s := range suites {
		m.suites[name] = results{}
		names = append(names, name)
		test := filepath.Join(bin, filepath.Base(s.dir)+".test")
		if _, err := os.Stat(test); err == nil {
			continue
		}
		build := exec.Command("go", "test", "-c", "-o", test, ".")
		build.Dir, build.Stderr = s.dir, os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("compiling the tests of %s: %w", s.dir, err)
		}
	}
	slices.Sort(names)
	for round := range rounds {
		for _, name := range names {
			s := suites[name]
			if s.rounds > 0 && round >= s.rounds {
				continue
			}
			if quick {
				if s.time == "1x" {
					continue
				}
				s.time = "2ms"
			}
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-12s", round+1, rounds, name)
			test := exec.Command(filepath.Join(bin, filepath.Base(s.dir)+".test"), "-test.run", "^$", "-test.bench", s.bench,
				"-test.benchtime", s.time, "-test.cpu", strconv.Itoa(s.cpus), "-test.timeout", "10m")
			test.Dir, test.Stderr = s.dir, os.Stderr
			out, err := test.Output()
			if err == nil {
				err = m.add(name, out)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, out)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return m, nil
}

var line = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// add reads what the benchmarks printed.
func (m *measurement) add(name string, out []byte) error {
	found := false
	for text := bufio.NewScanner(bytes.NewReader(out)); text.Scan(); {
		if key, value, ok := strings.Cut(text.Text(), ": "); ok && !strings.Contains(key, " ") {
			m.keys[key] = value
			continue
		}
		parts := line.FindStringSubmatch(text.Text())
		if parts == nil {
			continue
		}
		found = true
		units := m.suites[name][parts[1]]
		if units == nil {
			units = map[string][]float64{}
			m.suites[name][parts[1]] = units
		}
		fields := strings.Fields(parts[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return err
			}
			units[fields[i+1]] = append(units[fields[i+1]], value)
		}
	}
	if !found {
		return errors.New("no benchmark has this name")
	}
	return nil
}

// of returns the median of what was measured, 0 if it was not.
func (m *measurement) of(suite, bench, unit string) float64 {
	return median(m.suites[suite][bench][unit])
}

// ratio returns the median of how many times more a takes than b, 0 if one was not measured.
func (m *measurement) ratio(suite, a, b string) float64 {
	return m.ratioOf(suite, a, suite, b)
}

func (m *measurement) ratioOf(suiteA, a, suiteB, b string) float64 {
	const unit = "ns/op"
	left, right := m.suites[suiteA][a][unit], m.suites[suiteB][b][unit]
	ratios := make([]float64, min(len(left), len(right)))
	for i := range ratios {
		ratios[i] = left[i] / right[i]
	}
	return median(ratios)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	switch n := len(list); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (list[n/2-1] + list[n/2]) / 2
	default:
		return list[n/2]
	}
}

// loadNow is how many programs wanted a processor during the last minute.
func loadNow() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	now, _, _ := strings.Cut(string(text), " ")
	return now
}

const beginMark, endMark = "<!-- speed -->", "<!-- /speed -->"

// insert puts text between the marks of a file.
func insert(path, text string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(file), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !ok || !ends {
		return fmt.Errorf("%s has no lines %s and %s; nothing was written to it", path, beginMark, endMark)
	}
	return os.WriteFile(path, []byte(before+beginMark+"\n"+text+endMark+after), 0o644)
}
