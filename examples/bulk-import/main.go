// Bulk-import imports existing orders from a file. The import can be interrupted at any point and
// resumed:
//
//	go run . -in orders.jsonl -journal run.journal
//
// Without -live it imports into an embedded service, which stops with the program, and generates a
// file of invented orders if there is none. With -live it imports into a deployment:
//
//	LABHEALTH_BASE_URL=https://… LABHEALTH_API_KEY=… \
//	  go run . -live -in orders.jsonl -journal run.journal
//
// When started again with the same file and journal, it resumes the import. Its exit status is 0
// when the import is finished, 3 when another run has to resume it, and 1 or 2 when it could not
// start.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	terminal := term.IsTerminal(int(os.Stderr.Fd()))
	os.Exit(run(ctx, stop, os.Args[1:], os.Stdout, os.Stderr, terminal))
}

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitResume = 3
)

// config holds the flags.
type config struct {
	in, journal, rejected string
	live                  bool
	count                 int
	opts                  bulk.Options
	failures              failures
	csv                   csvFlags
}

func parseFlags(args []string, stderr io.Writer) (*config, error) {
	c := new(config)
	flags := flag.NewFlagSet("bulk-import", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.in, "in", "orders.jsonl", "file of orders: JSON Lines, or CSV with a header if its name ends in .csv")
	flags.StringVar(&c.journal, "journal", "run.journal", "file that stores the state of the import")
	flags.StringVar(&c.rejected, "rejected", "",
		"files for the records without an order, with the reasons: this name and .csv for people, and .jsonl (default: the journal's name and .rejected)")
	flags.BoolVar(&c.opts.KeepMessages, "messages", false, "add the service's text to the files of -rejected and to the journal; it may quote the patient")
	flags.BoolVar(&c.opts.Reconcile, "reconcile", false, "look for existing orders first, because the journal was lost")
	flags.BoolVar(&c.opts.DryRun, "dry-run", false, "check the file of orders and send nothing")
	flags.BoolVar(&c.live, "live", false, "import into the deployment at LABHEALTH_BASE_URL with LABHEALTH_API_KEY")
	flags.IntVar(&c.count, "n", 10_000, "number of orders to invent if there is no file of orders; not with -live")
	flags.IntVar(&c.opts.Concurrency, "concurrency", 4, "number of concurrent imports")
	flags.Float64Var(&c.opts.Rate, "rate", 0, "maximum number of requests per second, 0 for no limit")
	flags.DurationVar(&c.opts.Settle, "settle", 2*time.Minute, "how long an import with an unknown outcome may still take effect")
	flags.BoolVar(&c.opts.RetryRejected, "retry-rejected", false, "resend records that the service rejected before")
	flags.IntVar(&c.opts.RejectionLimit, "rejection-limit", 10, "stop after so many records if all are rejected with the same status; negative for no limit")
	flags.BoolVar(&c.opts.TrustJournal, "trust-journal", false, "resume without reading the list of orders first")
	flags.BoolVar(&c.opts.ListByUser, "list-by-user", false, "look up lost orders by user; the deployment must honor user_id in GET /orders")
	c.csv.add(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if c.rejected == "" {
		c.rejected = c.journal + ".rejected"
	}
	return c, nil
}

// run runs the program and returns its exit status. It calls interrupted when ctx has ended: from
// then on another signal kills the program.
func run(ctx context.Context, interrupted func(), args []string, stdout, stderr io.Writer, terminal bool) int {
	c, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitUsage
	}
	stopWaiting := context.AfterFunc(ctx, func() {
		interrupted()
		fmt.Fprintln(stderr, "\ninterrupted: finishing the imports in progress (repeat to kill)")
	})
	report, err := c.importFile(ctx, stderr, terminal)
	stopWaiting()
	if report == nil {
		fmt.Fprintln(stderr, "bulk-import:", err)
		return exitFailed
	}
	c.printReport(stdout, report)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "bulk-import:", err)
	}
	if c.opts.DryRun || err == nil && report.Done() {
		return exitDone
	}
	fmt.Fprintln(stdout, "to resume, start the program again with the same -in and -journal")
	return exitResume
}

// importFile runs the import. The report is nil if it could not start.
func (c *config) importFile(ctx context.Context, stderr io.Writer, terminal bool) (*bulk.Report, error) {
	client, target, closeService, err := connect(c, stderr)
	if err != nil {
		return nil, err
	}
	defer closeService()
	c.opts.Target = target

	orders, err := os.Open(c.in)
	if err != nil {
		return nil, err
	}
	defer orders.Close()
	var journal bulk.Journal
	if _, err := os.Stat(c.journal); !c.opts.DryRun || err == nil {
		file, err := bulk.OpenFile(c.journal)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		journal = file
	}
	source, err := c.source(ctx, client, orders)
	if err != nil {
		return nil, err
	}
	lines, err := createOutput(c.rejected + ".jsonl")
	if err != nil {
		return nil, err
	}
	defer lines.discard()
	table, err := createOutput(c.rejected + ".csv")
	if err != nil {
		return nil, err
	}
	defer table.discard()
	c.opts.Rejections, c.opts.RejectionsCSV, c.opts.OnError = lines, table, c.failures.add

	var finish func()
	c.opts.Progress, finish = showProgress(stderr, terminal)
	report, err := bulk.Run(ctx, client, source, journal, c.opts)
	finish()
	if report == nil {
		return nil, err
	}
	if err := errors.Join(lines.finish(), table.finish()); err != nil {
		return nil, err
	}
	return report, err
}

// source returns the records of the file.
func (c *config) source(ctx context.Context, client *labhealth.Client, orders io.ReadSeeker) (bulk.Source, error) {
	if strings.EqualFold(filepath.Ext(c.in), ".csv") {
		return c.csv.source(ctx, client, orders, c.opts)
	}
	return bulk.JSONLines(orders), nil
}

func (c *config) printReport(stdout io.Writer, report *bulk.Report) {
	fmt.Fprintln(stdout, report)
	if report.Sent > 0 {
		fmt.Fprintf(stdout, "sent %d requests in %v\n", report.Sent, report.Duration.Round(100*time.Millisecond))
	}
	if report.Found > 0 {
		fmt.Fprintf(stdout, "%d orders existed already or had lost their response, and were found\n", report.Found)
	}
	c.failures.print(stdout)
	if n := report.Records - report.Applied - report.Duplicates; n > 0 && !c.opts.DryRun || report.Invalid > 0 {
		fmt.Fprintf(stdout, "records without an order, and why: %s.csv\n", c.rejected)
	}
}

// connect returns a client of the deployment, or of an embedded service that closeService stops.
func connect(c *config, stderr io.Writer) (client *labhealth.Client, target string, closeService func(), err error) {
	if c.live {
		target = os.Getenv("LABHEALTH_BASE_URL")
		client, err = labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(target))
		return client, target, func() {}, err
	}
	// The seed determines the users, so that the file can be used again, also with the sandbox.
	service, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		return nil, "", nil, err
	}
	users := service.AddUsers(20)
	if _, err := os.Stat(c.in); errors.Is(err, fs.ErrNotExist) {
		if err := generate(c.in, c.count, users, service.LabTests); err != nil {
			service.Close()
			return nil, "", nil, err
		}
		fmt.Fprintf(stderr, "invented %d orders in %s\n", c.count, c.in)
	}
	client, err = labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	return client, "the embedded service", service.Close, err
}
