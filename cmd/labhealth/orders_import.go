package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

const importHelp = `Import existing orders from a file. The import can be interrupted at any point, also by kill -9. The
same command resumes it: no order is created twice.

FILE is one of these, by its name:

  .csv            a spreadsheet with a header; see the flags with "CSV:"
  .json           one order, or a list of orders
  any other       JSON Lines: one order (ImportOrderBody) per line

Beside it, the command writes two files that only you can read:

  FILE.journal        the state of the import. Delete it after the import: it has sample IDs and order IDs
  FILE.rejected.csv   the records without an order: line, field and reason, but no values except sample IDs

If the journal was lost, repeat the command with --reconcile, which finds the orders that exist.

--dry-run sends nothing, creates no users, and prints all problems, and as warnings what the service
or a lab is known to reject. It needs no key, except for a --lab-test by name.

The columns of a CSV file have the names of the fields, such as sample_id or
patient_details.first_name, or get them by --rename. --value replaces a cell by the value that the
service knows, and --compose sets a field from several columns, whose names are in braces. Rows with
client_user_id instead of user_id get the user with that ID, who is created if there is none.

Exit codes: 0 all records have an order, 5 some have none, 2 --dry-run found problems. With --json,
the last line is the report: records, applied, rejected, invalid, duplicates, changed, unknown,
pending, before, found, sent and so on. With --dry-run, one line per invalid record precedes it.`

// importFlags are the flags of orders import.
type importFlags struct {
	opts     bulk.Options
	csv      bulk.CSVOptions
	forCSV   []string // flags that were set and need a CSV file
	journal  string
	rejected string
	labTest  string
}

func newOrdersImport(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import existing orders from a CSV or JSON file",
		Long:  importHelp + "\n\nFields of a CSV file:\n\n  " + strings.Join(bulk.CSVColumns(), "\n  "),
		Example: `  labhealth orders import orders.jsonl --dry-run
  labhealth orders import clinic.csv --separator ';' --date-layout 01/02/2006 \
    --rename DOB=patient_details.dob --rename Sex=patient_details.gender --rename Notes=- \
    --value patient_details.gender:F=female --value patient_details.gender:M=male \
    --compose 'patient_address.receiver_name={First Name} {Last Name}' --lab-test "Lipid Panel" \
    --billing client_bill --collection walk_in_test --country US`,
		Args: exactArgs("a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args[0]); err != nil {
				return err
			}
			return a.importOrders(cmd.Context(), &f, args[0])
		},
	}
	f.add(cmd)
	return cmd
}

func (f *importFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.opts.DryRun, "dry-run", false, "check the file, print all problems and send nothing")
	flags.StringVar(&f.journal, "journal", "", "file that stores the state of the import (default FILE.journal)")
	flags.StringVar(&f.rejected, "rejected", "", "file for the records without an order (default FILE.rejected.csv)")
	flags.BoolVar(&f.opts.KeepMessages, "messages", false, "add the service's texts to the file of rejected records and to the journal; they may quote the patient")
	flags.IntVar(&f.opts.Concurrency, "parallel", 4, "number of concurrent requests")
	flags.Float64Var(&f.opts.Rate, "rate", 0, "maximum number of requests per second; 0 for no limit")
	flags.DurationVar(&f.opts.Settle, "settle", 2*time.Minute, "how long a request with an unknown outcome may still take effect")
	flags.BoolVar(&f.opts.Reconcile, "reconcile", false, "look for existing orders first, because the journal was lost")
	flags.BoolVar(&f.opts.RetryRejected, "retry-rejected", false, "send records again that the service rejected before")
	flags.IntVar(&f.opts.RejectionLimit, "rejection-limit", 10, "stop if the first records, or so many in a row, are all rejected alike; negative for no limit")
	flags.BoolVar(&f.opts.TrustJournal, "trust-journal", false, "resume without reading the list of orders first")
	flags.BoolVar(&f.opts.ListByUser, "list-by-user", false, "look up lost orders by user; the deployment must honor user_id in GET /v3/orders")
	f.addCSV(cmd)
}

// addCSV adds the flags that are for CSV files only.
func (f *importFlags) addCSV(cmd *cobra.Command) {
	f.csv.Rename, f.csv.Compose, f.csv.Values = map[string]string{}, map[string]string{}, map[string]map[string]string{}
	add := func(name, kind, usage string, read func(string) error) {
		cmd.Flags().Var(parsed{kind: kind, read: func(value string) error {
			f.forCSV = append(f.forCSV, "--"+name)
			return read(value)
		}}, name, "CSV: "+usage)
	}
	add("separator", "string", `character between cells, such as ; or \t (default ,)`, func(value string) error {
		separator := []rune(strings.ReplaceAll(value, `\t`, "\t"))
		if len(separator) != 1 {
			return usagef("--separator must be one character, not %q", value)
		}
		f.csv.Comma = separator[0]
		return nil
	})
	add("rename", "stringArray", "COLUMN=FIELD, such as DOB=patient_details.dob, or COLUMN=- to ignore it; can be repeated", func(value string) error {
		i := strings.LastIndex(value, "=")
		if i < 1 || i == len(value)-1 {
			return usagef("--rename must be COLUMN=FIELD, such as DOB=patient_details.dob, or COLUMN=- to ignore the column, not %q", value)
		}
		f.csv.Rename[value[:i]] = value[i+1:]
		return nil
	})
	add("value", "stringArray", "FIELD:CELL=VALUE, such as patient_details.gender:F=female; can be repeated", func(value string) error {
		field, pair, _ := strings.Cut(value, ":")
		cell, known, ok := strings.Cut(pair, "=")
		if !ok || cell == "" || known == "" {
			return usagef("--value must be FIELD:CELL=VALUE, such as patient_details.gender:F=female, not %q", value)
		}
		if f.csv.Values[field] == nil {
			f.csv.Values[field] = map[string]string{}
		}
		f.csv.Values[field][cell] = known
		return nil
	})
	add("compose", "stringArray", "FIELD=TEXT with columns in braces, for rows without the field; can be repeated", func(value string) error {
		field, text, ok := strings.Cut(value, "=")
		if !ok || text == "" {
			return usagef("--compose must be FIELD=TEXT, such as 'patient_address.receiver_name={First Name} {Last Name}', not %q", value)
		}
		f.csv.Compose[field] = text
		return nil
	})
	add("date-layout", "stringArray", "how dates are written, as 2006-01-02 would be: 01/02/2006; can be repeated", func(value string) error {
		f.csv.DateLayouts = append(f.csv.DateLayouts, value)
		return nil
	})
	add("lab-test", "string", "ID or name of the lab test of rows without one", func(value string) error {
		f.labTest = value
		return nil
	})
	rows := &f.csv.Defaults
	billing := []labhealth.Billing{"client_bill", "commercial_insurance", "patient_bill_passthrough", "patient_bill"}
	add("billing", "string", "billing type of rows without one, such as client_bill", func(value string) error {
		rows.BillingType = labhealth.Billing(value)
		return oneOf("--billing", rows.BillingType, billing...)
	})
	add("collection", "string", "collection method of rows without one, such as walk_in_test", func(value string) error {
		rows.CollectionMethod = labhealth.LabTestCollectionMethod(value)
		return oneOf("--collection", rows.CollectionMethod, collectionMethods...)
	})
	add("country", "string", "country of addresses without one, such as US", func(value string) error {
		rows.PatientAddress.Country = value
		return nil
	})
	complete(cmd, "collection", collectionMethods...)
	complete(cmd, "billing", billing...)
}

// check checks the flags and completes them.
func (f *importFlags) check(file string) error {
	switch {
	case f.opts.Concurrency < 1:
		return usagef("--parallel must be at least 1")
	case f.opts.Rate < 0:
		return usagef("--rate must be 0 or more requests per second")
	case file == "-":
		return usagef("the file must be a file: it is read several times, which stdin does not allow")
	case f.opts.Reconcile && f.opts.TrustJournal:
		return usagef("--reconcile and --trust-journal cannot be combined")
	case !isCSV(file) && len(f.forCSV) > 0:
		return usagef("%s needs a .csv file", f.forCSV[0])
	}
	f.journal = cmp.Or(f.journal, file+".journal")
	f.rejected = cmp.Or(f.rejected, file+".rejected.csv")
	return nil
}

func isCSV(file string) bool { return strings.EqualFold(filepath.Ext(file), ".csv") }

func (a *app) importOrders(ctx context.Context, f *importFlags, path string) error {
	client, err := a.importClient(ctx, f)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return usagef("%v", pathError(err))
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return usagef("%s is not a regular file", path)
	}
	source, err := f.source(ctx, client, file)
	if err != nil {
		return err
	}
	var journal bulk.Journal
	// Without a client, a dry run cannot tell whether the journal belongs to the same service.
	if _, err := os.Stat(f.journal); !f.opts.DryRun || err == nil && client != nil {
		opened, err := bulk.OpenFile(f.journal)
		if err != nil {
			return a.importError(err)
		}
		defer opened.Close()
		journal = opened
	}
	if f.opts.DryRun {
		return a.dryRun(ctx, f, client, source, journal)
	}
	return a.runImport(ctx, f, client, source, journal)
}

// importClient returns the client, which a dry run needs only to find a lab test by its name.
func (a *app) importClient(ctx context.Context, f *importFlags) (*labhealth.Client, error) {
	if f.opts.Settle <= a.timeout {
		return nil, usagef("--settle must be longer than --timeout (%v)", a.timeout)
	}
	client, target, err := a.client(ctx)
	f.opts.Target, f.opts.Timeout = target, a.timeout
	if _, notID := uuid.Parse(f.labTest); err != nil && f.opts.DryRun && (f.labTest == "" || notID == nil) {
		return nil, nil //nolint:nilerr // it checks the file only
	}
	return client, err
}

// importError returns an error about the files as a usage error. The names of unknown columns are
// patient data in a file that has its patients in columns. They are for the terminal.
func (a *app) importError(err error) error {
	if unknown, ok := errors.AsType[*bulk.UnknownColumnsError](err); ok && !a.json && (a.showPatient || isTerminal(a.err)) {
		for _, c := range unknown.Columns[:min(len(unknown.Columns), 50)] {
			fmt.Fprintf(a.err, "column %s: %s\n", c.Letters(), clean(c.Name))
		}
	}
	_, ok := errors.AsType[*fs.PathError](err)
	// The file is read to its end before the first record is sent.
	if ok || errors.Is(err, bulk.ErrLocked) || strings.HasPrefix(fmt.Sprint(err), "bulk: the source cannot be read") {
		return usagef("%s", errorText(pathError(err)))
	}
	return err
}

// source returns the records of the file.
func (f *importFlags) source(ctx context.Context, client *labhealth.Client, file *os.File) (bulk.Source, error) {
	switch {
	case isCSV(file.Name()):
		if f.labTest != "" {
			id, err := findLabTest(ctx, client, f.labTest)
			if err != nil {
				return nil, err
			}
			f.csv.Defaults.OrderSet.LabTestIDs = []uuid.UUID{id}
		}
		f.csv.Users = bulk.NewUsers(ctx, client, f.opts)
		return bulk.CSV(file, f.csv), nil
	case strings.EqualFold(filepath.Ext(file.Name()), ".json"):
		lines, err := jsonLines(file)
		return bulk.JSONLines(lines), err
	}
	return bulk.JSONLines(file), nil
}

const maxJSONFile = 256 << 20

// jsonLines returns the objects of a JSON file as lines.
func jsonLines(file *os.File) (io.ReadSeeker, error) {
	content, err := io.ReadAll(io.LimitReader(file, maxJSONFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxJSONFile {
		return nil, usagef("%s is larger than 256 MiB: use JSON Lines", file.Name())
	}
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	var orders []json.RawMessage
	switch start := bytes.TrimSpace(content); {
	case bytes.HasPrefix(start, []byte("[")):
		err = json.Unmarshal(content, &orders)
	case bytes.HasPrefix(start, []byte("{")):
		orders = make([]json.RawMessage, 1)
		err = json.Unmarshal(content, &orders[0])
	default:
		return file, nil // package bulk says what it is instead
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, usagef("%s is not JSON: see line %d", file.Name(), 1+bytes.Count(bytes.TrimRight(content[:syntax.Offset], "\n"), []byte("\n")))
	}
	var lines bytes.Buffer
	for _, order := range orders {
		err = errors.Join(err, json.Compact(&lines, order))
		lines.WriteByte('\n')
	}
	return bytes.NewReader(lines.Bytes()), err
}

// findLabTest returns the ID of the lab test with an ID or a name.
func findLabTest(ctx context.Context, client *labhealth.Client, idOrName string) (found uuid.UUID, _ error) {
	if id, err := uuid.Parse(idOrName); err == nil {
		return id, nil
	}
	count := 0
	for test, err := range client.LabTests.All(ctx, labhealth.ListLabTestsParams{}) {
		if err != nil {
			return uuid.Nil, err
		}
		if strings.EqualFold(test.Name, idOrName) {
			found = test.ID
			count++
		}
	}
	if count != 1 {
		return uuid.Nil, usagef("--lab-test: %d lab tests have the name %q", count, idOrName)
	}
	return found, nil
}

// dryRun prints all problems.
func (a *app) dryRun(ctx context.Context, f *importFlags, client *labhealth.Client, source bulk.Source, journal bulk.Journal) error {
	var rejections bytes.Buffer
	f.opts.Rejections = &rejections
	progress, finish := a.progress()
	f.opts.Progress = progress
	report, err := bulk.Run(ctx, client, source, journal, f.opts)
	finish()
	problems, warnings := a.printProblems(&rejections)
	if report == nil || err != nil && report.Records == 0 {
		return a.importError(err)
	}
	if err := cmp.Or(a.importError(err), a.printReport(report, f, "")); err != nil {
		return err
	}
	if warnings > 0 && !a.json {
		fmt.Fprintf(a.out, "%s a warning: the service or a lab may reject the order\n", plural(warnings, "record has", "records have"))
	}
	if problems > 0 {
		return &exitError{exitUsage, plural(problems, "record is", "records are") + " invalid"}
	}
	return nil
}

// printProblems prints the records of a dry run that are invalid or have warnings, and returns how
// many there are of both.
func (a *app) printProblems(r io.Reader) (problems, warnings int) {
	for decoder := json.NewDecoder(r); ; {
		var rejection bulk.Rejection
		if decoder.Decode(&rejection) != nil {
			return problems, warnings
		}
		switch rejection.Outcome {
		case "pending":
			continue
		case "warning":
			warnings++
		default:
			problems++
		}
		if !a.json {
			a.printProblem(rejection)
			continue
		}
		if !a.showPatient && rejection.SampleID != "" {
			rejection.SampleID = hidden
		}
		_ = a.printJSON(rejection)
	}
}

func (a *app) printProblem(r bulk.Rejection) {
	where := fmt.Sprintf("record %d", r.Record)
	if r.Line > 0 {
		where = fmt.Sprintf("line %d", r.Line)
	}
	color := red
	if r.Outcome == "warning" {
		color = yellow
	}
	if len(r.Fields) == 0 {
		fmt.Fprintf(a.out, "%s: %s: %s\n", where, a.paint(color, r.Outcome), clean(r.Reason))
	}
	for _, p := range r.Fields {
		name := clean(strings.TrimPrefix(p.Path, "body."))
		if p.Column != "" && p.Column != name {
			name = strings.TrimPrefix(fmt.Sprintf("%s (column %s)", name, clean(p.Column)), " ")
		}
		if name != "" {
			name += ": "
		}
		fmt.Fprintf(a.out, "%s: %s: %s%s\n", where, a.paint(color, r.Outcome), name, clean(p.Reason))
	}
}

// runImport imports, and writes the records without an order to their file.
func (a *app) runImport(ctx context.Context, f *importFlags, client *labhealth.Client, source bulk.Source, journal bulk.Journal) error {
	table, err := createFile(f.rejected)
	if err != nil {
		return err
	}
	defer table.discard()
	failed := failures{count: map[string]int{}}
	f.opts.RejectionsCSV, f.opts.OnError = table, failed.add
	progress, finish := a.progress()
	f.opts.Progress = progress
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(a.err, "\ninterrupted: finishing the imports in progress; interrupt again to kill")
	})
	report, err := bulk.Run(ctx, client, source, journal, f.opts)
	stop()
	finish()
	if report == nil || err != nil && ctx.Err() == nil && report.Records == 0 && report.Sent == 0 {
		return a.importError(err)
	}
	if err := table.finish(); err != nil {
		return err
	}
	failed.print(a.err)
	rejected := ""
	if report.Records-report.Applied-report.Duplicates > 0 {
		rejected = f.rejected
	} else {
		_ = os.Remove(f.rejected)
	}
	if err := a.printReport(report, f, rejected); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, "interrupted: the same command resumes the import"}
	case err != nil:
		return err
	case rejected != "" || !report.Done():
		return &exitError{exitIncomplete, plural(int(report.Records-report.Applied-report.Duplicates), "record has", "records have") + " no order"}
	}
	return nil
}

func (a *app) printReport(r *bulk.Report, f *importFlags, rejected string) error {
	if a.json {
		out := map[string]any{
			"records": r.Records, "applied": r.Applied, "rejected": r.Rejected, "invalid": r.Invalid, "duplicates": r.Duplicates, "changed": r.Changed,
			"unknown": r.Unknown, "pending": r.Pending, "before": r.Before, "found": r.Found, "strays": r.Strays, "sent": r.Sent,
			"seconds": r.Duration.Round(time.Millisecond).Seconds(), "done": r.Done(), "dry_run": f.opts.DryRun,
		}
		if !f.opts.DryRun {
			out["journal"] = f.journal
		}
		if rejected != "" {
			out["rejections"] = rejected // the file of the records without an order
		}
		return a.printJSON(out)
	}
	fmt.Fprintln(a.out, r)
	if f.opts.DryRun {
		fmt.Fprintln(a.out, "nothing was sent")
		return nil
	}
	if r.Sent > 0 {
		fmt.Fprintf(a.out, "sent %s in %v\n", plural(int(r.Sent), "request", "requests"), r.Duration.Round(100*time.Millisecond))
	}
	if r.Found > 0 {
		fmt.Fprintf(a.out, "%s found that existed already or had lost the response\n", plural(int(r.Found), "order was", "orders were"))
	}
	if rejected != "" {
		fmt.Fprintf(a.out, "records without an order, and why: %s\n", rejected)
	}
	if r.Done() && rejected != "" {
		fmt.Fprintf(a.out, "correct these records in the file and repeat the command: %s keeps the others from being imported again\n", f.journal)
	} else if r.Done() {
		fmt.Fprintf(a.out, "finished: delete %s when you do not import this file again\n", f.journal)
	} else {
		fmt.Fprintln(a.out, "not finished: the same command resumes the import")
	}
	return nil
}

// failures counts failed attempts by their error.
type failures struct {
	mu    sync.Mutex
	count map[string]int
}

// add is [bulk.Options.OnError]. The message quotes nothing; without the request ID it is the same
// for the same failure.
func (f *failures) add(_ string, err error) {
	message, _, _ := strings.Cut(errorText(err), " (request ")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[message]++
}

// print writes the most frequent failures.
func (f *failures) print(w io.Writer) {
	byCount := func(a, b string) int { return cmp.Or(f.count[b]-f.count[a], strings.Compare(a, b)) }
	messages := slices.SortedFunc(maps.Keys(f.count), byCount)
	for _, message := range messages[:min(len(messages), 5)] {
		fmt.Fprintf(w, "%6d × %s\n", f.count[message], message)
	}
}
