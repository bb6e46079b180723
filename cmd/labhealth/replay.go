package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// replayFlags are the flags of the command replay.
type replayFlags struct {
	storeFlags
	to      string
	filter  inspect.Filter
	shuffle bool
	reverse bool
	edit    string
	inspect.Replay
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

After an interruption, the command says how many were sent, and which was the last. After kill -9, the
latest rows of labhealth listen that are a "replay of" a delivery say how far it came.`,
		Example: `  labhealth replay 17 --to http://localhost:3000/webhooks
  labhealth replay 100-200 --shuffle --copies 2
  labhealth replay --order 3fa85f64-5717-4562-b3fc-2c963f66afa6 --reverse
  labhealth replay 17 --edit body.json`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd.Context(), f, args) },
	}
	f.add(cmd, "send without signatures")
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "URL of your application (default that of the latest labhealth listen)")
	flags.StringVar(&f.filter.Query, "query", "", `words and terms, as in the console, such as "type:glucose is:failed"`)
	idFlag(flags, &f.filter.OrderID, "order", "ID of an order: all of its deliveries")
	idFlag(flags, &f.filter.UserID, "user", "ID of a user: all of its deliveries")
	timeFlag(flags, &f.filter.From, "since", "received at this time or later: a date, a date-time with an offset, or a duration before now such as 2h")
	timeFlag(flags, &f.filter.To, "until", "received before this time, as --since")
	flags.BoolVar(&f.shuffle, "shuffle", false, "in random order")
	flags.BoolVar(&f.reverse, "reverse", false, "latest first")
	flags.BoolVar(&f.NewID, "new-ids", false, "with new IDs, so that they are no duplicates")
	flags.IntVar(&f.Copies, "copies", 1, "how often each is sent")
	flags.DurationVar(&f.Delay, "delay", 0, "wait between deliveries, such as 500ms")
	flags.StringVar(&f.edit, "edit", "", "file with the body to send in place of the stored one, - for stdin; needs one NUMBER")
	flags.BoolVar(&f.DryRun, "dry-run", false, "print what would be sent")
	return cmd
}

// replay sends deliveries, and prints a line for each.
func (a *app) replay(ctx context.Context, f replayFlags, args []string) (err error) {
	if err := a.checkReplay(&f, args); err != nil {
		return err
	}
	inspector, err := f.inspector(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inspector.Close()) }()
	sent, failed, last := 0, 0, int64(0)
	f.Sent = func(d inspect.Delivery) {
		sent, last = sent+1, d.ReplayOf
		if !f.DryRun && d.StatusCode/100 != 2 {
			failed++
		}
		a.printDelivery(&d)
	}
	_, err = inspector.Replay(ctx, f.Replay)
	switch {
	case err != nil && ctx.Err() != nil && (f.DryRun || sent == 0):
		return &exitError{exitInterrupted, "interrupted: nothing was sent"}
	case err != nil && ctx.Err() != nil:
		return &exitError{exitInterrupted, fmt.Sprintf("interrupted: %s sent, the last is that of %d. To continue, select those that are not listed above",
			plural(sent, "delivery was", "deliveries were"), last)}
	case err != nil:
		return fmt.Errorf("after %s: %w", plural(sent, "delivery", "deliveries"), err)
	case sent == 0:
		return errors.New("no deliveries are selected")
	case failed > 0:
		return fmt.Errorf("the application did not accept %d of %d deliveries", failed, sent)
	}
	return nil
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
	if !f.DryRun {
		if c.Secrets, err = f.secrets(ctx, a); err != nil {
			return nil, err
		}
	}
	i, err := inspect.Open(ctx, c)
	if err != nil {
		return nil, invalid(err)
	}
	if f.to != "" || f.DryRun {
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

// checkReplay checks the arguments and flags, and completes the replay that they describe.
func (a *app) checkReplay(f *replayFlags, args []string) (err error) {
	switch {
	case f.Copies < 1:
		return usagef("--copies must be at least 1")
	case f.Delay < 0:
		return usagef("--delay must not be negative")
	case f.shuffle && f.reverse:
		return usagef("--reverse and --shuffle cannot be combined")
	case f.shuffle:
		f.Order = "shuffled"
	case f.reverse:
		f.Order = "reversed"
	}
	if err := f.selectNumbers(args); err != nil || f.edit == "" {
		return err
	}
	if len(f.Numbers) != 1 {
		return usagef("--edit needs exactly one NUMBER")
	}
	f.Body, err = a.readInput(f.edit)
	return err
}

// selectNumbers sets the numbers or the filter.
func (f *replayFlags) selectNumbers(args []string) error {
	filtered := f.filter != inspect.Filter{}
	if first, last, ok := strings.Cut(strings.Join(args, " "), "-"); ok && len(args) == 1 {
		from, err1 := parseNumber(first)
		to, err2 := parseNumber(last)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		f.filter.After, f.filter.Before, filtered, args = from-1, to+1, true, nil
	}
	switch {
	case len(args) > 0 && filtered:
		return usagef("give either NUMBERs or flags that select deliveries; one range FIRST-LAST can be combined with them")
	case filtered:
		f.Filter = &f.filter
	case len(args) == 0:
		return usagef("nothing is selected: give NUMBERs, or --order, --user, --query, --since or --until")
	}
	for _, arg := range args {
		number, err := parseNumber(arg)
		if err != nil {
			return err
		}
		f.Numbers = append(f.Numbers, number)
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
