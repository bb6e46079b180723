package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// suite selects benchmarks of one package that run together.
type suite struct {
	dir       string // directory of the package
	bench     string // pattern for -test.bench
	benchtime string // for -test.benchtime
	cpus      int    // GOMAXPROCS
	maxRounds int    // 0 for no limit
}

// suites holds all suites by the name that the report uses. With one CPU, the garbage collector
// runs on that CPU too.
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

// samples holds one value for each round, by benchmark and unit.
type samples map[string]map[string][]float64

// measurement holds the results of all suites.
type measurement struct {
	suites     map[string]samples
	properties map[string]string // what the benchmarks print about the machine, such as "cpu"
	conditions string            // when, where and how it was measured
}

func newMeasurement() *measurement {
	return &measurement{suites: map[string]samples{}, properties: map[string]string{}}
}

// measure runs all suites in rounds.
func measure(rounds int, quick bool) (*measurement, error) {
	dir, err := os.MkdirTemp("", "speed")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, s := range suites {
		if err := s.compile(dir); err != nil {
			return nil, fmt.Errorf("compiling %s: %w", name, err)
		}
	}
	m := newMeasurement()
	for round := range rounds {
		for _, name := range slices.Sorted(maps.Keys(suites)) {
			s := suites[name]
			if s.maxRounds > 0 && round >= s.maxRounds || quick && s.benchtime == "1x" {
				continue
			}
			if quick {
				s.benchtime = "2ms"
			}
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-12s", round+1, rounds, name)
			output, err := s.run(dir)
			if err == nil {
				err = m.add(name, output)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, output)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return m, nil
}

// binary returns the path of the suite's test binary in dir.
func (s suite) binary(dir string) string {
	return filepath.Join(dir, filepath.Base(s.dir)+".test")
}

// compile compiles the tests of the suite's package into dir, unless another suite has done so.
func (s suite) compile(dir string) error {
	if _, err := os.Stat(s.binary(dir)); err == nil {
		return nil
	}
	build := exec.Command("go", "test", "-c", "-o", s.binary(dir), ".")
	build.Dir, build.Stderr = s.dir, os.Stderr
	return build.Run()
}

// run runs the benchmarks once and returns what they print.
func (s suite) run(dir string) ([]byte, error) {
	test := exec.Command(s.binary(dir), "-test.run", "^$", "-test.bench", s.bench,
		"-test.benchtime", s.benchtime, "-test.cpu", strconv.Itoa(s.cpus), "-test.timeout", "10m")
	test.Dir, test.Stderr = s.dir, os.Stderr
	return test.Output()
}

var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// add adds the output of one round of a suite.
func (m *measurement) add(suite string, output []byte) error {
	if m.suites[suite] == nil {
		m.suites[suite] = samples{}
	}
	found := false
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ": "); ok && !strings.Contains(key, " ") {
			m.properties[key] = value
			continue
		}
		match := benchmarkLine.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		found = true
		if err := m.suites[suite].add(match[1], strings.Fields(match[2])); err != nil {
			return err
		}
	}
	if !found {
		return errors.New("no benchmark matches")
	}
	return nil
}

// add adds the values of a benchmark, which alternate with their units.
func (s samples) add(bench string, fields []string) error {
	if s[bench] == nil {
		s[bench] = map[string][]float64{}
	}
	for i := 0; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return err
		}
		s[bench][fields[i+1]] = append(s[bench][fields[i+1]], value)
	}
	return nil
}

// median returns the median of a benchmark's values, or 0 if there are none.
func (m *measurement) median(suite, bench, unit string) float64 {
	return median(m.suites[suite][bench][unit])
}

// ratio returns the median of how many times as long bench takes as base, or 0 if one was not
// measured.
func (m *measurement) ratio(suite, bench, base string) float64 {
	return m.ratioAcross(suite, bench, suite, base)
}

// ratioAcross is ratio for benchmarks of two suites.
func (m *measurement) ratioAcross(suite, bench, baseSuite, base string) float64 {
	values, bases := m.suites[suite][bench]["ns/op"], m.suites[baseSuite][base]["ns/op"]
	ratios := make([]float64, min(len(values), len(bases)))
	for i := range ratios {
		ratios[i] = values[i] / bases[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	default:
		return sorted[n/2]
	}
}
