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
	chart     bool   // only the chart, which shows the newest Go version, uses it
}

// suites holds all suites by the name that the report uses. With one CPU, the garbage collector
// runs on that CPU too.
var suites = map[string]suite{
	"events":    {"integration/compare", `^BenchmarkParse$//^(1|100|10000)$|^Benchmark(Route|Scan)$`, "80ms", 1, 0, false},
	"pages":     {"integration/compare", `^BenchmarkPage$`, "80ms", 1, 0, false},
	"retained":  {"integration/compare", `^BenchmarkRetained$`, "1x", 1, 1, false},
	"write":     {"integration/compare", `^BenchmarkWrite$//^(import|unchanged|changed|100)$`, "50ms", 1, 0, false},
	"call":      {"integration/compare", `^BenchmarkCall$`, "200ms", 2, 0, false},
	"transport": {"internal/conformance", `^BenchmarkTransport$`, "60ms", 1, 0, false},
	"one":       {"webhooks", `^BenchmarkLatest$/^(ordered|shuffled)$/^10000000$/^1$`, "1x", 1, 3, false},
	"two":       {"webhooks", `^BenchmarkLatest$/^(ordered|shuffled)$/^10000000$/^2$`, "1x", 2, 3, false},
	"single":    {"webhooks", `^BenchmarkLatest$/^single/^1000000$/^1$`, "1x", 1, 5, false},
	"series":    {"integration/compare", `^BenchmarkSeries$`, "1x", 1, 3, false},
	"users":     {"integration/compare", `^BenchmarkUsers$/^100000$`, "1x", 2, 0, false},
	"million":   {"integration/compare", `^BenchmarkUsers$/^1000000$`, "1x", 2, 3, false},

	"samples":    {"integration/compare", `^BenchmarkParse$/^uniform$/^10+$/^(encoding|ours|goccy|sonic|jx)$`, "50ms", 1, 3, true},
	"keys":       {"webhooks", `^BenchmarkLatest$//^10{3,6}$/^1$`, "50ms", 1, 3, true},
	"most":       {"webhooks", `^BenchmarkLatest$//^10000000$/^1$`, "1x", 1, 1, true},
	"goroutines": {"integration/compare", `^BenchmarkGoroutines$`, "100ms", 2, 3, true},
	"appliers":   {"webhooks", `^BenchmarkLatest$/ordered$/^1000000$`, "1x", 2, 3, true},
}

// samples holds one value for each round, by benchmark and unit.
type samples map[string]map[string][]float64

// measurement holds the results of all suites with one Go version.
type measurement struct {
	version    string
	suites     map[string]samples
	properties map[string]string // what the benchmarks print about the machine, such as "cpu"
}

func newMeasurement(version string) *measurement {
	return &measurement{version, map[string]samples{}, map[string]string{}}
}

// measure runs the suites whose names match in rounds, with each Go version.
func measure(versions []string, names *regexp.Regexp, rounds int, quick bool) ([]*measurement, error) {
	dir, err := os.MkdirTemp("", "speed")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	selected := slices.DeleteFunc(slices.Sorted(maps.Keys(suites)), func(name string) bool { return !names.MatchString(name) })
	if len(selected) == 0 {
		return nil, fmt.Errorf("no suite matches %s", names)
	}
	all, err := compile(dir, versions, selected)
	if err != nil {
		return nil, err
	}
	for round := range rounds {
		for i, m := range all {
			for _, name := range selected {
				s := suites[name]
				if s.maxRounds > 0 && round >= s.maxRounds || quick && s.benchtime == "1x" || s.chart && i > 0 {
					continue
				}
				fmt.Fprintf(os.Stderr, "\rround %d of %d: %s %-12s", round+1, rounds, m.version, name)
				if err := m.run(name, s, filepath.Join(dir, m.version), quick); err != nil {
					return nil, err
				}
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return all, nil
}

// compile compiles the tests of the suites with each Go version, and returns empty measurements.
func compile(dir string, versions, names []string) (all []*measurement, err error) {
	for _, version := range versions {
		all = append(all, newMeasurement(version))
		for _, name := range names {
			if err := suites[name].compile(filepath.Join(dir, version), version); err != nil {
				return nil, fmt.Errorf("compiling %s with %s: %w", name, version, err)
			}
		}
	}
	return all, nil
}

// run runs a suite once.
func (m *measurement) run(name string, s suite, dir string, quick bool) error {
	if quick {
		s.benchtime = "2ms"
	}
	output, err := s.run(dir)
	if err == nil {
		err = m.add(name, output)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	return nil
}

// binary returns the path of the suite's test binary in dir.
func (s suite) binary(dir string) string {
	return filepath.Join(dir, filepath.Base(s.dir)+".test")
}

// compile compiles the tests of the suite's package into dir, unless another suite has done so.
func (s suite) compile(dir, version string) error {
	if _, err := os.Stat(s.binary(dir)); err == nil {
		return nil
	}
	build := exec.Command("go", "test", "-c", "-o", s.binary(dir), ".")
	build.Dir, build.Stderr, build.Env = s.dir, os.Stderr, append(os.Environ(), "GOTOOLCHAIN="+version)
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
