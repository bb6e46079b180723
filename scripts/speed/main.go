// Command speed measures this module against encoding/json, goccy/go-json, sonic and jx, and how
// its cost grows, with the Go versions of .ci/run. It writes the results between the lines
// <!-- speed --> and <!-- /speed --> of docs/speed.md and README.md, and draws docs/growth.svg.
//
//	go run ./scripts/speed               measures everything, on an idle machine
//	go run ./scripts/speed -run pages    measures one suite and prints its figures
//	go run ./scripts/speed -quick        checks that the benchmarks run; prints meaningless figures
//
// It compiles the benchmarks of the packages in suites with each Go version and runs them in
// rounds, one after the other, so that a disturbance affects everything that is compared. A figure
// is the median of the rounds; a ratio is the median of the ratios within each round.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 11, "number of rounds")
	quick := flag.Bool("quick", false, "run each short benchmark for 2 ms, print the figures and write nothing")
	only := flag.String("run", "", "run the suites that match this regular expression, print the figures and write nothing")
	versions := flag.String("go", "", "Go versions, the newest first, such as go1.27.4,go1.26.8; the default is those of .ci/run")
	flag.Parse()
	if err := run(*rounds, *quick, *only, *versions); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(rounds int, quick bool, only, versions string) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return errors.New("not run within the repository")
	}
	if err := os.Chdir(strings.TrimSpace(string(root))); err != nil {
		return err
	}
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	list, err := goVersions(versions)
	if err != nil {
		return err
	}
	if quick {
		rounds = 1
	}
	start, load := time.Now(), loadAverage()
	all, err := measure(list, pattern, rounds, quick)
	if err != nil {
		return err
	}
	report := fmt.Sprintf("\nMeasured: medians of %d rounds, %s, %s/%s, %d × %s, load %s before and %s after; sonic runs %s.\n",
		rounds, start.Format("2 January 2006"), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), all[0].properties["cpu"], load, loadAverage(), all[0].properties["sonic"])
	for _, m := range all {
		report += fmt.Sprintf("\n## Figures with %s\n%s\n", m.version, m.report())
	}
	summary := all[0].summary()
	fmt.Printf("%s\n%s", report, summary)
	fmt.Fprintf(os.Stderr, "measured for %v\n", time.Since(start).Round(time.Second))
	if quick || only != "" {
		return nil
	}
	return errors.Join(
		os.WriteFile("docs/growth.svg", all[0].growthChart(), 0o644),
		replaceSection("docs/speed.md", report),
		replaceSection("README.md", summary),
	)
}

var versionsOfChecks = regexp.MustCompile(`\$\{LABHEALTH_GO_VERSIONS-(.*)\}`)

// goVersions returns the Go versions to measure with, the newest first. It omits those that are not
// installed and cannot be downloaded.
func goVersions(list string) ([]string, error) {
	versions := strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
	if list == "" {
		checks, err := os.ReadFile(".ci/run")
		if err != nil {
			return nil, err
		}
		match := versionsOfChecks.FindSubmatch(checks)
		if match == nil {
			return nil, errors.New(".ci/run has no Go versions")
		}
		versions = strings.Fields(string(match[1]))
		slices.Reverse(versions)
	}
	var found []string
	for _, version := range versions {
		command := exec.Command("go", "version")
		command.Env = append(os.Environ(), "GOTOOLCHAIN="+version)
		if output, err := command.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "without %s: %s", version, output)
			continue
		}
		found = append(found, version)
	}
	if len(found) == 0 {
		return nil, errors.New("no Go version to measure with")
	}
	return found, nil
}

// loadAverage returns the load average of the last minute.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(content), " ")
	return minute
}

const startMark, endMark = "<!-- speed -->", "<!-- /speed -->"

// replaceSection replaces the content between the marks of a file.
func replaceSection(path, section string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, hasStart := strings.Cut(string(file), startMark)
	_, after, hasEnd := strings.Cut(rest, endMark)
	if !hasStart || !hasEnd {
		return fmt.Errorf("%s lacks %s or %s and was not changed", path, startMark, endMark)
	}
	return os.WriteFile(path, []byte(before+startMark+"\n"+section+endMark+after), 0o644)
}
