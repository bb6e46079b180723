package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/fatih/color"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// deliveryPrinter prints one line for each delivery, when it was responded to.
type deliveryPrinter struct {
	*app
	good  *color.Color
	bad   *color.Color
	faint *color.Color

	mu      sync.Mutex
	printed map[int64]bool
	highest int64
}

func newDeliveryPrinter(a *app) *deliveryPrinter {
	p := &deliveryPrinter{app: a, printed: map[int64]bool{},
		good: color.New(color.FgGreen), bad: color.New(color.FgRed), faint: color.New(color.Faint)}
	for _, c := range []*color.Color{p.good, p.bad, p.faint} {
		if a.colored(a.out) {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
	}
	return p
}

// printDeliveries prints the deliveries of [inspect.Inspector.Watch] that are shown, until ctx is
// done.
func (a *app) printDeliveries(ctx context.Context, inspector *inspect.Inspector, deliveries iter.Seq[int64], isShown func(*inspect.Delivery) bool) {
	printer := newDeliveryPrinter(a)
	for number := range deliveries {
		if d, ok, err := inspector.Get(ctx, number); err == nil && ok && isShown(&d) {
			printer.print(&d)
		}
	}
}

// deliveryLine is a delivery in JSON: no patient data.
type deliveryLine struct {
	Number      int64          `json:"number"`
	ID          string         `json:"id,omitempty"`
	ReceivedAt  time.Time      `json:"received_at"`
	Attempt     int            `json:"attempt"`
	Size        int            `json:"size"`
	Type        string         `json:"type,omitempty"`
	UserID      string         `json:"user_id,omitempty"`
	OrderID     string         `json:"order_id,omitempty"`
	About       string         `json:"about,omitempty"`
	Verdict     string         `json:"verdict"`
	Reason      string         `json:"reason,omitempty"`
	Malformed   int            `json:"malformed,omitempty"`
	Unknown     int            `json:"unknown,omitempty"`
	DuplicateOf int64          `json:"duplicate_of,omitempty"`
	ReplayOf    int64          `json:"replay_of,omitempty"`
	Forward     *forwardResult `json:"forward,omitempty"`
	Status      int            `json:"status"`
	Finding     string         `json:"finding,omitempty"`
}

type forwardResult struct {
	StatusCode int    `json:"status_code,omitempty"`
	Took       int64  `json:"took_ms"`
	Error      string `json:"error,omitempty"`
}

func newDeliveryLine(d *inspect.Delivery) deliveryLine {
	line := deliveryLine{
		Number: d.Number, ID: d.ID, ReceivedAt: d.ReceivedAt, Attempt: d.Attempt, Size: d.Size, Type: d.Type, About: d.About,
		Verdict: string(d.Verdict), Reason: d.Reason, Malformed: d.Malformed, Unknown: d.Unknown, DuplicateOf: d.DuplicateOf, ReplayOf: d.ReplayOf,
		Status: d.StatusCode, Finding: d.Finding(),
	}
	if d.UserID != [16]byte{} {
		line.UserID = d.UserID.String()
	}
	if d.OrderID != [16]byte{} {
		line.OrderID = d.OrderID.String()
	}
	if f := d.Forward; f != nil {
		line.Forward = &forwardResult{f.StatusCode, f.Took.Milliseconds(), f.Err}
	}
	return line
}

// print prints a delivery once, when it has a response.
func (p *deliveryPrinter) print(d *inspect.Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.StatusCode == 0 || p.printed[d.Number] {
		return
	}
	p.printed[d.Number] = true
	p.highest = max(p.highest, d.Number)
	if len(p.printed) > 10_000 {
		for number := range p.printed {
			if number < p.highest-5000 {
				delete(p.printed, number)
			}
		}
	}
	if p.app.json {
		_ = p.app.printJSON(newDeliveryLine(d)) // whoever reads it may be gone
		return
	}
	fmt.Fprintln(p.app.out, p.line(d))
}

// line is a delivery for people.
func (p *deliveryPrinter) line(d *inspect.Delivery) string {
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
	verdict, status := p.good, p.good
	if d.Verdict == inspect.Rejected {
		verdict = p.bad
	}
	result := fmt.Sprint(d.StatusCode)
	if d.StatusCode < 200 || d.StatusCode > 299 {
		status = p.bad
	}
	if d.Forward != nil {
		result += fmt.Sprintf(" in %d ms", d.Forward.Took.Milliseconds())
	}
	line := fmt.Sprintf("%s %s %-28s %s -> %s", p.faint.Sprintf("%s %5d", d.ReceivedAt.Format("15:04:05"), d.Number),
		verdict.Sprintf("%-8s", d.Verdict), d.Type, d.About, status.Sprint(result))
	if len(notes) > 0 {
		line += "  " + p.faint.Sprint(strings.Join(notes, "; "))
	}
	return line
}
