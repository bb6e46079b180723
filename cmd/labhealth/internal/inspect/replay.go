package inspect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

const (
	maxCopies = 1000
	maxReplay = 1_000_000 // deliveries of one replay
)

// replayPage is the number of deliveries that are read at once.
var replayPage = 500

// check returns an error for what cannot be replayed.
func (r *Replay) check() error {
	switch {
	case (len(r.Numbers) == 0) == (r.Filter == nil):
		return errors.New("inspect: Replay needs either Numbers or a Filter")
	case r.Order != "" && r.Order != "received" && r.Order != "reversed" && r.Order != "shuffled":
		return errors.New("inspect: Replay.Order must be received, reversed or shuffled")
	case r.Copies < 0 || r.Copies > maxCopies:
		return fmt.Errorf("inspect: Replay.Copies must be 1 to %d", maxCopies)
	case r.Delay < 0:
		return errors.New("inspect: Replay.Delay must not be negative")
	case r.Body != nil && len(r.Numbers) != 1:
		return errors.New("inspect: Replay.Body needs exactly one number")
	case len(r.Body) > maxBody:
		return fmt.Errorf("inspect: Replay.Body has more than %d MiB", maxBody>>20)
	}
	return nil
}

// Replay sends deliveries again and returns the numbers of the new deliveries, of those that were
// sent before an error. Each one is signed with the current secrets and time and is received like a
// new delivery: it is stored, applied unless it is a duplicate, and forwarded. A failure of the
// application is not an error of Replay: see Delivery.Forward.
//
// Without Order, Numbers are sent in their own order. A Filter selects what is stored when Replay
// is called, except rejected deliveries, which may be forged, unless it asks for them
// (is:rejected).
func (i *Inspector) Replay(ctx context.Context, r Replay) (numbers []int64, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	first := true
	for number, err := range i.replayed(ctx, &r) {
		if err != nil {
			return numbers, err
		}
		if !first && r.Delay > 0 && !r.DryRun {
			if err := sleep(ctx, r.Delay); err != nil {
				return numbers, err
			}
		}
		first = false
		if err := ctx.Err(); err != nil {
			return numbers, err
		}
		sent := number
		if !r.DryRun {
			if sent, err = i.replayOne(ctx, number, &r); err != nil {
				return numbers, err
			}
			numbers = append(numbers, sent)
		}
		if r.Sent != nil {
			if err := i.report(ctx, sent, r.Sent); err != nil {
				return numbers, err
			}
		}
	}
	return numbers, nil
}

// report calls f with a delivery.
func (i *Inspector) report(ctx context.Context, number int64, f func(Delivery)) error {
	d, ok, err := i.Get(context.WithoutCancel(ctx), number)
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("inspect: there is no delivery %d", number))
	}
	d.Header, d.Body = nil, nil
	f(d)
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replayed returns the numbers of the deliveries to send, in order and with copies.
func (i *Inspector) replayed(ctx context.Context, r *Replay) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		source := i.selected(ctx, r)
		if r.Order == "shuffled" {
			all, err := collect(source, max(1, r.Copies))
			if err != nil {
				yield(0, err)
				return
			}
			mathrand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
			for _, number := range all {
				if !yield(number, nil) {
					return
				}
			}
			return
		}
		for number, err := range source {
			for range max(1, r.Copies) {
				if !yield(number, err) || err != nil {
					return
				}
			}
		}
	}
}

func collect(source iter.Seq2[int64, error], copies int) (all []int64, err error) {
	for number, err := range source {
		if err != nil {
			return nil, err
		}
		if len(all)+copies > maxReplay {
			return nil, fmt.Errorf("inspect: at most %d deliveries can be shuffled", maxReplay)
		}
		for range copies {
			all = append(all, number)
		}
	}
	return all, nil
}

// selected returns the numbers of the deliveries of a replay, each once.
func (i *Inspector) selected(ctx context.Context, r *Replay) iter.Seq2[int64, error] {
	if r.Filter != nil {
		return i.filtered(ctx, *r.Filter, r.Order == "reversed")
	}
	numbers := r.Numbers
	if r.Order == "received" || r.Order == "reversed" {
		numbers = slices.Sorted(slices.Values(numbers))
	}
	if r.Order == "reversed" {
		slices.Reverse(numbers)
	}
	return func(yield func(int64, error) bool) {
		for _, number := range numbers {
			if !yield(number, nil) {
				return
			}
		}
	}
}

// filtered returns the numbers of the deliveries that a filter selects now. It reads a page at a
// time.
func (i *Inspector) filtered(ctx context.Context, f Filter, reversed bool) iter.Seq2[int64, error] {
	order, rejected := "ASC", f.asksFor("rejected")
	if reversed {
		order = "DESC"
	}
	return func(yield func(int64, error) bool) {
		var newest int64
		err := i.db.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) FROM deliveries`).Scan(&newest)
		if f.Before == 0 || f.Before > newest+1 {
			f.Before = newest + 1 // not what the replay adds
		}
		for list := make([]Delivery, replayPage); err == nil && len(list) == replayPage; {
			list, err = i.list(ctx, f, order, replayPage)
			for n := range list {
				number := list[n].Number
				if list[n].Verdict == Rejected && !rejected {
					continue
				}
				if !yield(number, nil) {
					return
				}
			}
			if len(list) > 0 {
				f.goOn(list[len(list)-1].Number, reversed)
			}
		}
		if err != nil {
			yield(0, err)
		}
	}
}

// goOn continues behind a delivery.
func (f *Filter) goOn(number int64, reversed bool) {
	if reversed {
		f.Before = number
	} else {
		f.After = number
	}
}

// asksFor reports whether a filter names a state.
func (f *Filter) asksFor(state string) bool {
	_, is := parseQuery(f.Query)
	return f.Is == state || slices.Contains(is, state)
}

// replayOne receives a stored delivery again.
func (i *Inspector) replayOne(ctx context.Context, number int64, r *Replay) (sent int64, err error) {
	if !i.enter() {
		return 0, errClosed
	}
	defer i.requests.Done()
	d, ok, err := i.Get(ctx, number)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, fmt.Errorf("inspect: there is no delivery %d: it may be older than the retention", number)
	case d.Body == nil && d.Size > 0 && r.Body == nil:
		return 0, fmt.Errorf("inspect: delivery %d cannot be replayed: its body was too large to be kept", number)
	}
	a := arrival{header: d.Header, body: d.Body, at: i.config.Now(), start: time.Now(), replayOf: number}
	id := d.ID
	if r.Body != nil {
		a.body = r.Body
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	if r.NewID || r.Body != nil || id == "" && i.verifier.Load() != webhooks.Unsigned {
		id = "msg_" + rand.Text()
	}
	if err := i.sign(&a, id); err != nil {
		return 0, err
	}
	sent, _, err = i.receive(context.WithoutCancel(ctx), a)
	return sent, err
}

// sign replaces the signature headers, with the names that the sender used.
func (i *Inspector) sign(a *arrival, id string) error {
	prefixes := []string{}
	for _, prefix := range signatureNames {
		if len(a.header[prefix+"Id"]) > 0 {
			prefixes = append(prefixes, prefix)
		}
		for _, part := range []string{"Id", "Timestamp", "Signature"} {
			delete(a.header, prefix+part)
		}
	}
	if len(prefixes) == 0 {
		prefixes = []string{"Svix-"}
	}
	if id == "" {
		return nil
	}
	signature := ""
	if verifier := i.verifier.Load(); verifier != webhooks.Unsigned {
		var err error
		if signature, err = verifier.Sign(id, a.at, a.body); err != nil {
			return err
		}
	}
	for _, prefix := range prefixes {
		a.header.Set(prefix+"Id", id)
		a.header.Set(prefix+"Timestamp", strconv.FormatInt(a.at.Unix(), 10))
		if signature != "" {
			a.header.Set(prefix+"Signature", signature)
		}
	}
	return nil
}

var _ http.Handler = (*Inspector)(nil)
