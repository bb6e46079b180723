package main

import (
	"context"
	"fmt"
	"io"
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
	lines := [][2]string{{"status", clean(string(m.Status))}, {"laboratory", optional(m.Laboratory)}}
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

func optional[T ~string](text *T) string {
	if text == nil {
		return ""
	}
	return clean(string(*text))
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
		return a.printJSON(map[string]any{"file": output, "kind": kind, "bytes": n})
	}
	fmt.Fprintf(a.out, "%s (%s, %d bytes)\n", output, kind, n)
	return nil
}

func newOrdersWatch(a *app) *cobra.Command {
	var interval, limit time.Duration
	cmd := a.aboutOrder(&cobra.Command{
		Use:   "watch ORDER",
		Short: "Print the changes of an order until it is final",
		Long: `Print the timeline of an order and what is added to it, until the order is completed, canceled or
failed. labhealth listen shows what happens to all orders.

With --json, each line is one entry: order_id, status and created_at.`,
		Example: `  labhealth orders watch 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --for 10m
  labhealth orders watch 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --json --interval 30s`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		if interval < 100*time.Millisecond {
			return usagef("--interval must be at least 100ms")
		}
		if limit < 0 {
			return usagef("--for must be positive, such as 10m, or 0 for no limit")
		}
		return a.watch(ctx, client, id, interval, limit)
	})
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two requests")
	cmd.Flags().DurationVar(&limit, "for", 0, "stop after this time, with exit code 1 if the order is not final; 0 for no limit")
	return cmd
}

// watch prints the entries of a timeline, each once, until the order is final.
func (a *app) watch(ctx context.Context, client *labhealth.Client, id uuid.UUID, interval, limit time.Duration) error {
	var end <-chan time.Time // nil without a limit
	if limit > 0 {
		end = time.After(limit)
	}
	seen := map[int64]bool{} // the IDs of the entries
	for {
		order, err := client.Orders.Get(ctx, id)
		if err != nil {
			return err
		}
		for _, event := range order.Events {
			if seen[event.ID] {
				continue
			}
			seen[event.ID] = true
			if err := a.printWatched(id, event); err != nil {
				return err
			}
		}
		if isFinal(order) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return &exitError{exitFailed, fmt.Sprintf("the order is not final yet: its status is %s", clean(string(order.CurrentStatus())))}
		case <-time.After(interval):
		}
	}
}

func (a *app) printWatched(order uuid.UUID, event labhealth.OrderEvent) error {
	if a.json {
		return a.printJSON(map[string]any{"order_id": order, "status": event.Status, "created_at": event.CreatedAt})
	}
	status := clean(string(event.Status))
	fmt.Fprintf(a.out, "%s  %s  %s\n", stamp(event.CreatedAt), order, a.paintStatus(status, status))
	return nil
}

// isFinal reports whether nothing is expected to happen to an order.
func isFinal(order *labhealth.Order) bool {
	switch order.CurrentStatus().TopLevel() {
	case labhealth.TopLevelCompleted, labhealth.TopLevelCancelled, labhealth.TopLevelFailed:
		return true
	}
	return false
}
