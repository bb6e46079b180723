// Command speed measures this module against encoding/json, goccy/go-json, sonic and jx, and how
// its cost grows. It writes the results between the lines <!-- speed --> and <!-- /speed --> of
// docs/speed.md and README.md, and draws docs/growth.svg.
//
//	go run ./scripts/speed          measures everything: about six minutes, on an idle machine
//	go run ./scripts/speed -quick   checks that the benchmarks run; prints meaningless figures
//
// It compiles the benchmarks of the packages in suites and runs them in rounds, one after the
// other, so that a disturbance affects everything that is compared. A figure is the median of the
// rounds; a ratio is the median of the ratios within each round.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 11, "number of rounds")
	quick := flag.Bool("quick", false, "run each short benchmark for 2 ms, print the figures and write nothing")
	flag.Parse()
	if err := run(*rounds, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(rounds int, quick bool) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return errors.New("not run within the repository")
	}
	if err := os.Chdir(strings.TrimSpace(string(root))); err != nil {
		return err
	}
	if quick {
		rounds = 1
	}
	start, load := time.Now(), loadAverage()
	m, err := measure(rounds, quick)
	if err != nil {
		return err
	}
	m.conditions = fmt.Sprintf("medians of %d rounds, %s, %s %s/%s, %d × %s, load %s before and %s after",
		rounds, start.Format("2 January 2006"), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), m.properties["cpu"], load, loadAverage())
	report, summary := m.report(), m.summary()
	fmt.Printf("%s\n%s", report, summary)
	if quick {
		return nil
	}
	return errors.Join(
		os.WriteFile("docs/growth.svg", m.growthChart(), 0o644),
		replaceSection("docs/speed.md", report),
		replaceSection("README.md", summary),
	)
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
