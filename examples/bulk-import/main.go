// Bulk-import imports orders that exist already, from a file, in a way that can be interrupted and killed:
//
//	go run . -in orders.jsonl -journal run.journal
//
// Without -live it imports into an embedded service, which ends with the program, and makes up the file of orders if there is
// none. With -live it imports into a deployment:
//
//	LABHEALTH_BASE_URL=https://… LABHEALTH_API_KEY=… go run . -live -in orders.jsonl -journal run.journal
//
// Started again with the same file and journal, it goes on where it was. Its exit status is 0 when nothing is left to do, 3 when
// another run has to go on, and 1 or 2 when it could not begin.
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

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status := run(ctx, stop, os.Args[1:], os.Stdout, os.Stderr, term.IsTerminal(int(os.Stderr.Fd())))
	os.Exit(status)
}

// run does what the arguments say. interrupted is called when ctx has ended: from then on another signal kills the program.
func run(ctx context.Context, interrupted func(), args []string, out, said io.Writer, terminal bool) int {
	flags := flag.NewFlagSet("bulk-import", flag.ContinueOnError)
	flags.SetOutput(said)
	in := flags.String("in", "orders.jsonl", "file of orders: JSON Lines, or CSV with a header if its name ends in .csv")
	journalFile := flags.String("journal", "run.journal", "file that remembers what was done")
	refusedFile := flags.String("refused", "", "file that is written at the end: records that have no order, and why (default: the journal's name and .refused.jsonl)")
	dryRun := flags.Bool("dry-run", false, "check the file of orders and send nothing")
	live := flags.Bool("live", false, "import into the deployment at LABHEALTH_BASE_URL with LABHEALTH_API_KEY")
	count := flags.Int("n", 10_000, "how many orders to make up if there is no file of orders; not with -live")
	var opts bulk.Options
	flags.IntVar(&opts.Concurrency, "concurrency", 4, "imports at a time")
	flags.Float64Var(&opts.Rate, "rate", 0, "requests per second at most, 0 for no limit")
	flags.DurationVar(&opts.Settle, "settle", 2*time.Minute, "how long an import of unknown outcome may still take effect")
	flags.BoolVar(&opts.RetryRefused, "retry-refused", false, "send again what the service refused before")
	flags.IntVar(&opts.RejectionLimit, "rejection-limit", 10, "stop if so many records are all rejected in the same way and none is accepted; negative for no limit")
	flags.BoolVar(&opts.TrustJournal, "trust-journal", false, "go on without reading the list of orders first")
	flags.BoolVar(&opts.ListByUser, "list-by-user", false, "look for lost orders user by user; the deployment must honour user_id in GET /orders")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintln(said, "bulk-import:", err)
		return 1
	}
	if *refusedFile == "" {
		*refusedFile = *journalFile + ".refused.jsonl"
	}
	opts.DryRun = *dryRun

	client, target, end, err := connect(*live, *in, *count, said)
	if err != nil {
		return fail(err)
	}
	defer end()
	opts.Target = target

	orders, err := os.Open(*in)
	if err != nil {
		return fail(err)
	}
	defer orders.Close()
	source := bulk.JSONLines(orders)
	if strings.EqualFold(filepath.Ext(*in), ".csv") {
		source = bulk.CSV(orders, nil)
	}
	var journal bulk.Journal
	if _, err := os.Stat(*journalFile); !*dryRun || err == nil {
		file, err := bulk.OpenFile(*journalFile)
		if err != nil {
			return fail(err)
		}
		defer file.Close()
		journal = file
	}
	// The file of refusals takes its name when it is complete.
	refused, err := os.CreateTemp(filepath.Dir(*refusedFile), ".refused-*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(refused.Name())
	defer refused.Close()
	opts.Refusals = refused

	var finish func()
	opts.Progress, finish = show(said, terminal)
	finished := context.AfterFunc(ctx, func() {
		interrupted()
		fmt.Fprintln(said, "\ninterrupted: finishing what is under way (once more to kill)")
	})
	report, err := bulk.Run(ctx, client, source, journal, opts)
	finished()
	finish()
	if report == nil {
		return fail(err)
	}
	if err := errors.Join(refused.Sync(), refused.Close(), os.Rename(refused.Name(), *refusedFile)); err != nil {
		return fail(err)
	}
	fmt.Fprintln(out, report)
	if report.Sent > 0 {
		fmt.Fprintf(out, "sent %d requests in %v", report.Sent, report.Duration.Round(100*time.Millisecond))
		if report.Found > 0 {
			fmt.Fprintf(out, "; %d orders whose answer was lost were found", report.Found)
		}
		fmt.Fprintln(out)
	}
	if n := report.Records - report.Applied - report.Duplicates; n > 0 && !*dryRun || report.Invalid > 0 {
		fmt.Fprintln(out, "records without an order, and why:", *refusedFile)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(said, "bulk-import:", err)
	}
	if *dryRun || err == nil && report.Done() {
		return 0
	}
	fmt.Fprintln(out, "to go on, start the program again with the same -in and -journal")
	return 3
}

// connect returns a client of the deployment, or of an embedded service that ends with end.
func connect(live bool, in string, count int, said io.Writer) (client *labhealth.Client, target string, end func(), err error) {
	if live {
		target = os.Getenv("LABHEALTH_BASE_URL")
		client, err = labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(target))
		return client, target, func() {}, err
	}
	// The same seed gives the same users, so that the file can be used again, also with labhealthd.
	service, err := labhealthtest.Start(labhealthtest.WithSeed(1))
	if err != nil {
		return nil, "", nil, err
	}
	users := service.AddUsers(20)
	if _, err := os.Stat(in); errors.Is(err, fs.ErrNotExist) {
		if err := generate(in, count, users, service.LabTests); err != nil {
			service.Close()
			return nil, "", nil, err
		}
		fmt.Fprintf(said, "made up %d orders in %s\n", count, in)
	}
	client, err = labhealth.NewClient(service.APIKey, labhealth.WithBaseURL(service.URL))
	return client, "the embedded service", service.Close, err
}

// show returns a function that shows progress: as a bar in a terminal, otherwise as a line every five seconds.
func show(w io.Writer, terminal bool) (progress func(bulk.Progress), finish func()) {
	if !terminal {
		var last time.Time
		var phase bulk.Phase
		return func(p bulk.Progress) {
			if p.Phase != phase || time.Since(last) >= 5*time.Second {
				phase, last = p.Phase, time.Now()
				if p.Phase == bulk.PhaseChecking {
					fmt.Fprintf(w, "%s: %d records read\n", p.Phase, p.Records)
				} else {
					fmt.Fprintf(w, "%s: %d of %d%s\n", p.Phase, p.Done, p.Records, pace(p))
				}
			}
		}, func() {}
	}
	bar := progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(30), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: "", BarEnd: ""}))
	return func(p bulk.Progress) {
		if p.Phase != bulk.PhaseChecking && p.Records > 0 {
			bar.ChangeMax64(p.Records)
			bar.Describe(fmt.Sprintf("%-9s", p.Phase))
			bar.Set64(p.Done)
			fmt.Fprint(w, strings.TrimPrefix(pace(p), ", "), "\x1b[K")
		}
	}, func() { fmt.Fprintln(w) }
}

// pace says how fast it goes and how long it takes.
func pace(p bulk.Progress) string {
	var text string
	if p.Rate > 0 {
		text = fmt.Sprintf(", %.0f/s", p.Rate)
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", %v left", p.Left.Round(time.Second))
	}
	return text
}
