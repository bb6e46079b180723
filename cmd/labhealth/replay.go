package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// replayFlags are the flags of the command replay.
type replayFlags struct {
	storeFlags
	to      string
	query   string
	order   string
	user    string
	from    string
	until   string
	shuffle bool
	reverse bool
	newIDs  bool
	copies  int
	delay   time.Duration
	edit    string
	dryRun  bool
}

func newReplay(a *app) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [NUMBER | FIRST-LAST]...",
		Short: "Send stored webhooks again",
		Long: `Send deliveries again that labhealth listen has stored, without a browser, while it runs or not.

Each has a new timestamp and signature, so that your application accepts it, and the ID that it had:
an application that has processed it must do nothing. With --new-ids, the IDs are new too. What is
sent is stored as a new delivery.

Select deliveries by their numbers, or by flags, which can be combined. Rejected deliveries, which
may be forged, are sent only if they are selected by number or with --query is:rejected.

After an interruption, the command says how many were sent and how to continue. After kill -9, the
latest rows of labhealth listen that are a "replay of" a delivery say how far it came.`,
		Example: `  labhealth replay 17 --to http://localhost:3000/webhooks
  labhealth replay 100-200 --shuffle --copies 2
  labhealth replay --order 3fa85f64-5717-4562-b3fc-2c963f66afa6 --reverse
  labhealth replay 17 --edit body.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd.Context(), f, args) },
	}
	f.add(cmd, "sign with the secret of the running sandbox, or of the one with this base URL", "send without signatures")
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "URL of your application (default that of the latest labhealth listen)")
	flags.StringVar(&f.query, "query", "", `words and terms, as in the console, such as "type:glucose is:failed"`)
	flags.StringVar(&f.order, "order", "", "ID of an order: all of its deliveries")
	flags.StringVar(&f.user, "user", "", "ID of a user: all of its deliveries")
	flags.StringVar(&f.from, "since", "", "received at this time or later: a date, a date-time with an offset, or a duration before now such as 2h")
	flags.StringVar(&f.until, "until", "", "received before this time, as --since")
	flags.BoolVar(&f.shuffle, "shuffle", false, "in random order")
	flags.BoolVar(&f.reverse, "reverse", false, "latest first")
	flags.BoolVar(&f.newIDs, "new-ids", false, "with new IDs, so that they are no duplicates")
	flags.IntVar(&f.copies, "copies", 1, "how often each is sent")
	flags.DurationVar(&f.delay, "delay", 0, "wait between deliveries, such as 500ms")
	flags.StringVar(&f.edit, "edit", "", "file with the body to send in place of the stored one, - for stdin; needs one NUMBER")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be sent")
	cmd.MarkFlagsMutuallyExclusive("shuffle", "reverse")
	return cmd
}

// replay sends deliveries, and prints a line for each.
func (a *app) replay(ctx context.Context, f replayFlags, args []string) (err error) {
	r, err := f.replay(args, a.in)
	if err != nil {
		return err
	}
	inspector, err := f.inspector(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inspector.Close()) }()
	sent, failed, last, copies := 0, 0, int64(0), 0
	printer := newDeliveryPrinter(a)
	r.Sent = func(d inspect.Delivery) {
		sent++
		if !f.dryRun && (d.StatusCode < 200 || d.StatusCode > 299) {
			failed++
		}
		if copies++; d.ReplayOf != last {
			last, copies = d.ReplayOf, 1
		}
		printer.print(&d)
	}
	r.DryRun = f.dryRun
	_, err = inspector.Replay(ctx, r)
	switch {
	case err != nil && ctx.Err() != nil:
		return &exitError{exitInterrupted, interruptedReplay(r, sent, last, copies)}
	case err != nil:
		return fmt.Errorf("after %s: %w", plural(sent, "delivery", "deliveries"), err)
	case sent == 0:
		return errors.New("no deliveries are selected")
	case failed > 0:
		return fmt.Errorf("the application did not accept %d of %d deliveries", failed, sent)
	}
	return nil
}

// interruptedReplay says what was sent before an interruption, and how to send the rest.
func interruptedReplay(r inspect.Replay, sent int, last int64, copies int) string {
	if r.DryRun || sent == 0 {
		return "interrupted: nothing was sent"
	}
	text := fmt.Sprintf("interrupted: %s sent, the last is that of %d", plural(sent, "delivery was", "deliveries were"), last)
	if r.Copies > 1 && r.Order != "shuffled" {
		text += fmt.Sprintf(", %d of %d times", copies, r.Copies)
	}
	switch {
	case r.Filter == nil || r.Order == "shuffled":
		return text + ". To continue, select those that are not listed above"
	case r.Order == "reversed":
		return text + fmt.Sprintf(". To continue, use the range %d-%d", r.Filter.After+1, last-1)
	}
	return text + fmt.Sprintf(". To continue, use a range that starts with %d, and ends with the last that was selected", last+1)
}

// inspector opens the file. Its application is that of --to or of the latest labhealth listen.
func (f *replayFlags) inspector(ctx context.Context, a *app) (*inspect.Inspector, error) {
	file, err := f.path()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); err != nil {
		return nil, usagef("no deliveries are stored: %v", pathError(err))
	}
	// The retention is that of labhealth listen.
	c := inspect.Config{File: file, Forward: f.to, Keep: inspect.KeepAll, Problem: a.problem}
	if !f.dryRun {
		if c.Secrets, _, err = f.secrets(ctx, a); err != nil {
			return nil, err
		}
	}
	i, err := inspect.Open(ctx, c)
	if err != nil {
		return nil, invalid(err)
	}
	if f.to != "" || f.dryRun {
		return i, nil
	}
	url, err := i.LastForward(ctx)
	if err == nil && url == "" {
		err = usagef("there is no application to send to: use --to")
	}
	if err == nil {
		err = i.SetForward(url)
	}
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// replay returns what the arguments and the flags select.
func (f *replayFlags) replay(args []string, in io.Reader) (r inspect.Replay, err error) {
	r = inspect.Replay{Copies: f.copies, Delay: f.delay, NewID: f.newIDs}
	switch {
	case f.copies < 1:
		return r, usagef("--copies must be at least 1")
	case f.delay < 0:
		return r, usagef("--delay must not be negative")
	case f.shuffle:
		r.Order = "shuffled"
	case f.reverse:
		r.Order = "reversed"
	}
	filter, err := f.filter()
	if err != nil {
		return r, err
	}
	if err := selectNumbers(&r, filter, args); err != nil {
		return r, err
	}
	if f.edit != "" {
		if len(r.Numbers) != 1 {
			return r, usagef("--edit needs exactly one NUMBER")
		}
		r.Body, err = readEdited(f.edit, in)
	}
	return r, err
}

// selectNumbers sets the numbers or the filter of a replay.
func selectNumbers(r *inspect.Replay, filter *inspect.Filter, args []string) (err error) {
	selected := *filter != inspect.Filter{}
	if first, last, ok := strings.Cut(strings.Join(args, " "), "-"); ok && len(args) == 1 {
		from, err1 := parseNumber(first)
		to, err2 := parseNumber(last)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		filter.After, filter.Before, selected, args = from-1, to+1, true, nil
	}
	switch {
	case len(args) > 0 && selected:
		return usagef("give either NUMBERs or flags that select deliveries; one range FIRST-LAST can be combined with them")
	case len(args) == 0 && !selected:
		return usagef("nothing is selected: give NUMBERs, or --order, --user, --query, --since or --until")
	case len(args) == 0:
		r.Filter = filter
		return nil
	}
	r.Numbers = make([]int64, len(args))
	for n, arg := range args {
		if r.Numbers[n], err = parseNumber(arg); err != nil {
			return err
		}
	}
	return nil
}

func parseNumber(s string) (int64, error) {
	number, err := strconv.ParseInt(s, 10, 64)
	if err != nil || number < 1 {
		return 0, usagef("%q is not the number of a delivery, or a range such as 100-200", s)
	}
	return number, nil
}

func readEdited(name string, in io.Reader) (body []byte, err error) {
	if name == "-" {
		body, err = io.ReadAll(in)
	} else {
		body, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, usagef("--edit: %v", pathError(err))
	}
	if len(body) == 0 {
		return nil, usagef("--edit: the body is empty")
	}
	return body, nil
}

func (f *replayFlags) filter() (filter *inspect.Filter, err error) {
	filter = &inspect.Filter{Query: f.query}
	if filter.OrderID, err = optionalID("--order", f.order); err != nil {
		return nil, err
	}
	if filter.UserID, err = optionalID("--user", f.user); err != nil {
		return nil, err
	}
	if filter.From, err = parseTime("--since", f.from); err != nil {
		return nil, err
	}
	filter.To, err = parseTime("--until", f.until)
	return filter, err
}
