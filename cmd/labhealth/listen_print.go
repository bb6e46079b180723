package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/fatih/color"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// printDeliveries prints the deliveries of [inspect.Inspector.Watch] until ctx is done: one line
// for each, when it was responded to.
func (a *app) printDeliveries(ctx context.Context, inspector *inspect.Inspector, deliveries iter.Seq[int64], onlyForwarded bool) {
	printed := map[int64]bool{}
	for number := range deliveries {
		d, ok, err := inspector.Get(ctx, number)
		if err != nil || !ok || d.StatusCode == 0 || onlyForwarded && d.Forward == nil || printed[number] {
			continue
		}
		printed[number] = true
		if len(printed) > 10_000 {
			maps.DeleteFunc(printed, func(old int64, _ bool) bool { return old < number-5000 })
		}
		a.printDelivery(&d)
	}
}

// deliveryLine is a delivery in JSON: no patient data.
type deliveryLine struct {
	*inspect.Delivery

	Forward *forwardResult `json:"forward,omitempty"`
	Finding string         `json:"finding,omitempty"`
}

type forwardResult struct {
	StatusCode int    `json:"status_code,omitempty"`
	Took       int64  `json:"took_ms"`
	Error      string `json:"error,omitempty"`
}

func (a *app) printDelivery(d *inspect.Delivery) {
	if !a.json {
		fmt.Fprintln(a.out, a.deliveryText(d))
		return
	}
	line := deliveryLine{Delivery: d, Finding: d.Finding()}
	if f := d.Forward; f != nil {
		line.Forward = &forwardResult{f.StatusCode, f.Took.Milliseconds(), f.Err}
	}
	_ = a.printJSON(line) // whoever reads it may be gone
}

// deliveryText is a delivery for people.
func (a *app) deliveryText(d *inspect.Delivery) string {
	var notes []string
	if d.DuplicateOf != 0 {
		notes = append(notes, fmt.Sprintf("duplicate of %d", d.DuplicateOf))
	}
	if d.ReplayOf != 0 {
		notes = append(notes, fmt.Sprintf("replay of %d", d.ReplayOf))
	}
	if d.Malformed > 0 {
		notes = append(notes, fmt.Sprintf("%d malformed", d.Malformed))
	}
	if d.Reason != "" {
		notes = append(notes, d.Reason)
	}
	if finding := d.Finding(); finding != "" {
		notes = append(notes, finding)
	}
	verdict, status := green, green
	if d.Verdict == inspect.Rejected {
		verdict = red
	}
	if d.StatusCode/100 != 2 {
		status = red
	}
	result := fmt.Sprint(d.StatusCode)
	if d.Forward != nil {
		result += fmt.Sprintf(" in %d ms", d.Forward.Took.Milliseconds())
	}
	line := fmt.Sprintf("%s %s %-28s %s -> %s", a.paint(color.Faint, fmt.Sprintf("%s %5d", d.ReceivedAt.Format("15:04:05"), d.Number)),
		a.paint(verdict, fmt.Sprintf("%-8s", d.Verdict)), d.Type, d.About, a.paint(status, result))
	if len(notes) > 0 {
		line += "  " + a.paint(color.Faint, strings.Join(notes, "; "))
	}
	return line
}
