package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
)

func newOrdersResults(a *app) *cobra.Command {
	return a.aboutOrder(&cobra.Command{
		Use:   "results ORDER",
		Short: "Print the results of an order",
		Long: `Print the results of an order: the values, and the patient only with --show-patient. Notes of the lab
count as patient data.

With --json, it prints the results as the service has them.`,
		Example: `  labhealth orders results 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02
  labhealth orders results 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --json | jq '.results[] | {name, result, unit}'`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		results, err := client.Orders.Results(ctx, id)
		return printResult(a, results, err, a.printResults)
	})
}

const resultRow = "%s  %12s  %-10s  %-16s  %s\n"

func (a *app) printResults(results *labhealth.OrderResults) {
	m := results.Metadata
	lines := [][2]string{{"status", clean(string(m.Status))}}
	if m.Laboratory != nil {
		lines = append(lines, [2]string{"laboratory", clean(*m.Laboratory)})
	}
	if a.showPatient {
		lines = append(lines, [2]string{"patient", clean(m.Patient)}, [2]string{"born", clean(m.DOB)})
	}
	a.fields(lines...)
	if results.LegacyResults() != nil {
		fmt.Fprintln(a.err, "these results have an older form, which --json prints")
		return
	}
	header := fmt.Sprintf(resultRow, pad("NAME", 32), "RESULT", "UNIT", "RANGE", "INTERPRETATION")
	fmt.Fprintf(a.out, "\n%s\n", a.paint(bold, strings.TrimSpace(header)))
	for _, r := range results.Results {
		interpretation := clean(string(r.Interpretation))
		switch {
		case r.Critical():
			interpretation = a.paint(red, interpretation)
		case r.Abnormal():
			interpretation = a.paint(yellow, interpretation)
		}
		fmt.Fprintf(a.out, resultRow, pad(clean(r.Name), 32), clean(r.Result), optional(r.Unit), resultRange(r), interpretation)
	}
	for _, r := range results.MissingResults {
		fmt.Fprintf(a.out, resultRow, pad(clean(r.Name), 32), "missing", "", "", clean(string(r.InferredFailureType)))
	}
}

func optional(text *string) string {
	if text == nil {
		return ""
	}
	return clean(*text)
}

// resultRange formats the normal range.
func resultRange(r labhealth.Result) string {
	format := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	switch {
	case r.ReferenceRange != nil && *r.ReferenceRange != "":
		return clean(*r.ReferenceRange)
	case r.MinRangeValue != nil && r.MaxRangeValue != nil:
		return format(*r.MinRangeValue) + " – " + format(*r.MaxRangeValue)
	case r.MinRangeValue != nil:
		return "≥ " + format(*r.MinRangeValue)
	case r.MaxRangeValue != nil:
		return "≤ " + format(*r.MaxRangeValue)
	}
	return ""
}

// pdfFunc streams a document of an order.
type pdfFunc func(ctx context.Context, orderID uuid.UUID, w io.Writer, opts ...labhealth.CallOption) (int64, error)

func newOrdersPDF(a *app) *cobra.Command {
	kind, output := "results", ""
	cmd := a.aboutOrder(&cobra.Command{
		Use:   "pdf ORDER -o FILE",
		Short: "Save a document of an order",
		Long: `Save a document of an order in a file that only you can read. It shows the patient. - writes it to
stdout, if that is not a terminal. The labels are for a collection now.`,
		Example: "  labhealth orders pdf 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 -o report.pdf",
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		orders := client.Orders
		read := map[string]pdfFunc{
			"results": orders.ResultsPDF, "requisition": orders.RequisitionPDF, "abn": orders.ABNPDF, "instructions": orders.CollectionInstructionsPDF,
			"labels": func(ctx context.Context, id uuid.UUID, w io.Writer, opts ...labhealth.CallOption) (int64, error) {
				return orders.LabelsPDF(ctx, id, labhealth.LabelsPDFParams{CollectionDate: time.Now()}, w, opts...)
			},
		}[kind]
		return a.savePDF(ctx, read, id, kind, output)
	})
	choiceFlag(cmd, &kind, "kind", "results, requisition, labels, abn or instructions", "results", "requisition", "labels", "abn", "instructions")
	cmd.Flags().StringVarP(&output, "output", "o", "", "file, which is replaced if it exists; - for stdout")
	return cmd
}

// savedFile is a file that was written, with --json.
type savedFile struct {
	File  string `json:"file"`
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
}

func (a *app) savePDF(ctx context.Context, read pdfFunc, id uuid.UUID, kind, output string) error {
	switch {
	case output == "":
		return usagef("--output must be a file, or - for stdout")
	case output == "-" && isTerminal(a.out):
		return usagef("--output -: stdout is a terminal: name a file")
	case output == "-":
		_, err := read(ctx, id, a.out)
		return err
	}
	file, err := createFile(output)
	if err != nil {
		return err
	}
	defer file.discard()
	n, err := read(ctx, id, file)
	if err != nil {
		return err
	}
	if err := file.finish(); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(savedFile{output, kind, n})
	}
	fmt.Fprintf(a.out, "%s (%s, %d bytes)\n", output, kind, n)
	return nil
}

func newOrdersWatch(a *app) *cobra.Command {
	var interval, limit time.Duration
	cmd := &cobra.Command{
		Use:   "watch [ORDER]",
		Short: "Print the changes of an order until it is final, or of all orders",
		Long: `Print the timeline of an order and what is added to it, until the order is completed, canceled or
failed. Without an order, print what happens to all orders from now on, until it is interrupted.

With --json, each line is one entry: order_id, status and created_at.`,
		Example: `  labhealth orders watch 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --for 10m
  labhealth orders watch --json --interval 30s`,
		Args:              maximumArgs(1),
		ValidArgsFunction: a.completeOrder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < 100*time.Millisecond {
				return usagef("--interval must be at least 100ms")
			}
			if limit < 0 {
				return usagef("--for must be positive, such as 10m, or 0 for no limit")
			}
			return a.watch(cmd.Context(), args, interval, limit)
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two requests")
	cmd.Flags().DurationVar(&limit, "for", 0, "stop after this time, with exit code 1 if the order is not final; 0 for no limit")
	return cmd
}

func (a *app) watch(ctx context.Context, args []string, interval, limit time.Duration) (err error) {
	w := watcher{app: a, seen: map[uuid.UUID][]int64{}, interval: interval}
	if limit > 0 {
		w.end = time.After(limit)
	}
	var id uuid.UUID
	if len(args) > 0 {
		if id, err = parseID("the ID of the order", args[0]); err != nil {
			return err
		}
	}
	client, _, err := a.client(ctx)
	switch {
	case err != nil:
		return err
	case len(args) == 0:
		return w.all(ctx, client)
	}
	return w.one(ctx, client, id)
}

// watcher prints the entries of timelines that it has not printed before.
type watcher struct {
	*app

	seen     map[uuid.UUID][]int64 // the IDs of the entries of each order
	interval time.Duration
	end      <-chan time.Time // nil without a limit
}

// wait reports whether to go on.
func (w *watcher) wait(ctx context.Context) (bool, error) {
	select {
	case <-ctx.Done():
		return false, &exitError{exitInterrupted, "interrupted"}
	case <-w.end:
		return false, nil
	case <-time.After(w.interval):
		return true, nil
	}
}

func (w *watcher) one(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
	for {
		order, err := client.Orders.Get(ctx, id)
		if err != nil {
			return err
		}
		if err := w.show(order, true); err != nil {
			return err
		}
		if isFinal(order) {
			return nil
		}
		next, err := w.wait(ctx)
		if err != nil {
			return err
		}
		if !next {
			return &exitError{exitFailed, fmt.Sprintf("the order is not final yet: its status is %s", clean(string(order.CurrentStatus())))}
		}
	}
}

// isFinal reports whether nothing is expected to happen to an order.
func isFinal(order *labhealth.Order) bool {
	switch order.CurrentStatus().TopLevel() {
	case labhealth.TopLevelCompleted, labhealth.TopLevelCancelled, labhealth.TopLevelFailed:
		return true
	}
	return false
}

// overlap is how far back each list goes, so that no update is missed between two lists.
const overlap = time.Minute

func (w *watcher) all(ctx context.Context, client *labhealth.Client) error {
	var params labhealth.ListOrdersParams // the first list has all orders, and shows none
	params.Size = 100
	var latest time.Time
	for first := true; ; first = false {
		for order, err := range client.Orders.All(ctx, params) {
			if err != nil {
				return err
			}
			if order.UpdatedAt.After(latest) {
				latest = order.UpdatedAt
			}
			if err := w.show(order, !first); err != nil {
				return err
			}
		}
		if first {
			fmt.Fprintf(w.err, "watching %d orders: interrupt to stop\n", len(w.seen))
		}
		if !latest.IsZero() {
			params.UpdatedStartDate = latest.Add(-overlap)
		}
		if next, err := w.wait(ctx); err != nil || !next {
			return err
		}
	}
}

// watchedEvent is an entry of a timeline, with --json.
type watchedEvent struct {
	OrderID   uuid.UUID `json:"order_id"`
	Status    string    `json:"status"`
	CreatedAt time.Time `json:"created_at"`
}

// show prints the new entries of an order, or only stores them.
func (w *watcher) show(order *labhealth.Order, visible bool) error {
	seen := w.seen[order.ID]
	for _, event := range order.Events {
		if slices.Contains(seen, event.ID) {
			continue
		}
		seen = append(seen, event.ID)
		switch status := clean(string(event.Status)); {
		case !visible:
		case w.json:
			if err := w.printJSON(watchedEvent{order.ID, string(event.Status), event.CreatedAt}); err != nil {
				return err
			}
		default:
			fmt.Fprintf(w.out, "%s  %s  %s\n", stamp(event.CreatedAt), order.ID, w.paintStatus(status, status))
		}
	}
	w.seen[order.ID] = seen
	return nil
}
