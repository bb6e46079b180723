package inspect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	selected, err := i.selected(ctx, &r)
	if err != nil {
		return nil, err
	}
	for n, number := range selected {
		if n > 0 && r.Delay > 0 && !r.DryRun {
			if err := sleep(ctx, r.Delay); err != nil {
				return numbers, err
			}
		}
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
			d, err := i.stored(context.WithoutCancel(ctx), sent)
			if err != nil {
				return numbers, err
			}
			d.Header, d.Body = nil, nil
			r.Sent(d)
		}
	}
	return numbers, nil
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

// selected returns the numbers of the deliveries to send, in order and with copies.
func (i *Inspector) selected(ctx context.Context, r *Replay) (all []int64, err error) {
	numbers := slices.Clone(r.Numbers)
	if r.Filter != nil {
		if numbers, err = i.filtered(ctx, *r.Filter); err != nil {
			return nil, err
		}
	}
	if r.Order != "" {
		slices.Sort(numbers)
	}
	if r.Order == "reversed" {
		slices.Reverse(numbers)
	}
	copies := max(1, r.Copies)
	if len(numbers)*copies > maxReplay {
		return nil, fmt.Errorf("inspect: at most %d deliveries can be sent at once", maxReplay)
	}
	for _, number := range numbers {
		all = append(all, slices.Repeat([]int64{number}, copies)...)
	}
	if r.Order == "shuffled" {
		mathrand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	}
	return all, nil
}

// filtered returns the numbers of the deliveries that a filter selects now.
func (i *Inspector) filtered(ctx context.Context, f Filter) ([]int64, error) {
	q := f.statement()
	if !f.asksFor("rejected") {
		q.add(`d.verdict <> 'rejected'`)
	}
	return queryNumbers(ctx, i.db, `SELECT d.number`+q.from+q.where()+` ORDER BY d.number LIMIT ?`, append(q.args, maxReplay+1)...)
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
	d, err := i.stored(ctx, number)
	if err != nil {
		return 0, err
	}
	if r.Body != nil {
		d.Body, d.Size = r.Body, len(r.Body)
	}
	if r.NewID || r.Body != nil || d.ID == "" && i.verifier.Load() != webhooks.Unsigned {
		d.ID = newID()
	}
	a, err := i.signed(&d)
	if err != nil {
		return 0, err
	}
	a.replayOf = number
	sent, _, err = i.receive(context.WithoutCancel(ctx), a)
	return sent, err
}

// stored returns a delivery to send again.
func (i *Inspector) stored(ctx context.Context, number int64) (Delivery, error) {
	d, ok, err := i.Get(ctx, number)
	if err == nil && !ok {
		err = fmt.Errorf("inspect: there is no delivery %d: it may be older than the retention", number)
	}
	return d, err
}

// Signed returns the header and the body that a replay of a delivery would have now: the same ID, a
// new timestamp and a new signature. It stores and sends nothing.
func (i *Inspector) Signed(ctx context.Context, number int64) (http.Header, []byte, error) {
	d, err := i.stored(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	a, err := i.signed(&d)
	return a.header, a.body, err
}

// signed returns a stored delivery with a new timestamp and signature.
func (i *Inspector) signed(d *Delivery) (arrival, error) {
	if d.Body == nil && d.Size > 0 {
		return arrival{}, fmt.Errorf("inspect: the body of delivery %d was too large to be kept", d.Number)
	}
	a := arrival{header: d.Header, body: d.Body, at: i.config.Now(), start: time.Now()}
	if a.header == nil {
		a.header = http.Header{}
	}
	return a, sign(a.header, i.verifier.Load(), d.ID, a.at, a.body)
}

func newID() string { return "msg_" + rand.Text() }

// NewHeader returns the headers of a new delivery. Without a verifier they have no signature.
func NewHeader(v *webhooks.Verifier, at time.Time, body []byte) (http.Header, error) {
	header := http.Header{"Content-Type": {"application/json"}}
	if v == nil {
		return header, nil
	}
	return header, sign(header, v, newID(), at, body)
}

// sign replaces the signature headers, with the names that the sender used.
func sign(header http.Header, v *webhooks.Verifier, id string, at time.Time, body []byte) (err error) {
	var prefixes []string
	for _, prefix := range signatureNames {
		if len(header[prefix+"Id"]) > 0 {
			prefixes = append(prefixes, prefix)
		}
		for _, part := range signatureParts {
			delete(header, prefix+part)
		}
	}
	if len(prefixes) == 0 {
		prefixes = []string{"Svix-"}
	}
	if id == "" {
		return nil
	}
	signature := ""
	if v != webhooks.Unsigned {
		if signature, err = v.Sign(id, at, body); err != nil {
			return err
		}
	}
	for _, prefix := range prefixes {
		header.Set(prefix+"Id", id)
		header.Set(prefix+"Timestamp", strconv.FormatInt(at.Unix(), 10))
		if signature != "" {
			header.Set(prefix+"Signature", signature)
		}
	}
	return nil
}
