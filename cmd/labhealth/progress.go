package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/labhealth/labhealth-go/bulk"
)

// progress returns a function that shows the progress of an import on stderr: a bar in a terminal,
// otherwise a line at each phase and every five seconds.
func (a *app) progress() (show func(bulk.Progress), finish func()) {
	if !isTerminal(a.err) {
		return a.progressLines(), func() {}
	}
	theme := progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: "", BarEnd: ""}
	bar := progressbar.NewOptions64(1, progressbar.OptionSetWriter(a.err), progressbar.OptionSetWidth(30), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetTheme(theme))
	drawn := false
	show = func(p bulk.Progress) {
		if p.Phase == bulk.PhaseChecking || p.Records == 0 {
			return
		}
		drawn = true
		bar.ChangeMax64(p.Records)
		bar.Describe(fmt.Sprintf("%-9s", p.Phase))
		_ = bar.Set64(p.Done)
		fmt.Fprint(a.err, strings.TrimPrefix(rate(p), ", "), "\x1b[K")
	}
	return show, func() {
		if drawn {
			fmt.Fprintln(a.err)
		}
	}
}

func (a *app) progressLines() func(bulk.Progress) {
	var last time.Time
	var phase bulk.Phase
	return func(p bulk.Progress) {
		if p.Phase == phase && time.Since(last) < 5*time.Second {
			return
		}
		phase, last = p.Phase, time.Now()
		switch p.Phase {
		case bulk.PhaseChecking:
			fmt.Fprintf(a.err, "%s: %d records read%s\n", p.Phase, p.Records, rate(p))
		case bulk.PhaseListing:
			fmt.Fprintf(a.err, "%s: %d of %d orders%s\n", p.Phase, p.Listed, p.Orders, rate(p))
		default:
			fmt.Fprintf(a.err, "%s: %d of %d%s\n", p.Phase, p.Done, p.Records, rate(p))
		}
	}
}

// rate formats the rate, the remaining time and what the run waits for.
func rate(p bulk.Progress) string {
	var b strings.Builder
	if p.Rate > 0 {
		fmt.Fprintf(&b, ", %.0f/s", p.Rate)
	}
	if left := max(p.Left, p.LeftInTotal); left > 0 {
		fmt.Fprintf(&b, ", %v left", left.Round(time.Second))
	}
	if p.Waiting != "" {
		fmt.Fprintf(&b, ", waiting for %s", p.Waiting)
	}
	return b.String()
}
