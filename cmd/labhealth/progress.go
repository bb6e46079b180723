package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/bulk"
)

// progress returns a function that shows the progress of an import on stderr: in a terminal one
// line that changes, otherwise a line at each phase and every five seconds.
func (a *app) progress() (show func(bulk.Progress), finish func()) {
	var last time.Time
	var phase bulk.Phase
	show = func(p bulk.Progress) {
		switch {
		case isTerminal(a.err):
			fmt.Fprint(a.err, "\r"+progressText(p)+"\x1b[K")
		case p.Phase == phase && time.Since(last) < 5*time.Second:
			return
		default:
			fmt.Fprintln(a.err, progressText(p))
		}
		phase, last = p.Phase, time.Now()
	}
	return show, func() {
		if isTerminal(a.err) && !last.IsZero() {
			fmt.Fprintln(a.err)
		}
	}
}

// progressText has the counts, the rate, the remaining time and what the run waits for.
func progressText(p bulk.Progress) string {
	var b strings.Builder
	switch p.Phase {
	case bulk.PhaseChecking:
		fmt.Fprintf(&b, "%s: %d records read", p.Phase, p.Records)
	case bulk.PhaseListing:
		fmt.Fprintf(&b, "%s: %d of %d orders", p.Phase, p.Listed, p.Orders)
	default:
		fmt.Fprintf(&b, "%s: %d of %d", p.Phase, p.Done, p.Records)
	}
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
