package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Worker takes deliveries out of the inbox, oldest first, and applies them. Any number of workers may run, in any number of
// processes: a delivery is in the hands of one at a time. To take a batch out, to apply it and to call Apply is one transaction, so
// a worker that dies at any moment has either done all of it or nothing, and nothing is done twice.
//
// A batch that fails by its content is done again one delivery at a time. One that fails then is tried again later, and after
// Attempts becomes a dead letter; the others go on. A body that is not an event, and an event that cannot be applied or not read whole
// (see [Applied]), is a dead letter at once, in the transaction in which what can be read of it is applied. While the database is away or full, nothing is counted and nothing is lost.
//
// Oldest first is no promise of order: several workers, and deliveries that failed, overtake each other. The result is the same.
type Worker struct {
	// Store is where the inbox is, and where deliveries are applied. It must be given.
	Store *Store
	// Apply, if it is not nil, is called with each delivery after those of the batch were applied, in the transaction: what it writes
	// by tx is committed together with the rest or not at all. It is also called for events that change nothing here, such as those of
	// orders, and for those of which some cannot be read ([webhooks.Event.Err]), again when such a dead letter is put back. It must not use the Store, whose operations are transactions of their own, and must not end tx; the deliveries of a
	// user wait for each other, in all processes, until it is through. An error or a panic is a failure of the delivery, also if
	// another service is away that the function needs; not if the database is.
	Apply func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error

	Batch    int           // deliveries in a transaction; 0 means 100
	Attempts int           // after which a delivery that fails is a dead letter; 0 means 10
	Delay    time.Duration // after the first failure, doubled after each further one, at most an hour; 0 means 5 s
	Poll     time.Duration // how often an empty inbox is looked at for what other processes put in; 0 means 1 s
	// Observe, if it is not nil, is called by Run after each step that did something or failed. The error is an [*Error].
	Observe func(Step, error)
}

// Step is what a step of a worker did.
type Step struct {
	Applied int              // deliveries that were applied and have left the inbox
	Delayed int              // deliveries that failed and will be tried again later
	Dead    int              // deliveries that became dead letters
	Changes webhooks.Changes // the sum of those applied, in part too; Samples is nil
}

func (s *Step) add(other Step) {
	s.Applied += other.Applied
	s.Delayed += other.Delayed
	s.Dead += other.Dead
	s.count(other.Changes)
}

func (s *Step) count(c webhooks.Changes) {
	s.Changes.Added += c.Added
	s.Changes.Updated += c.Updated
	s.Changes.Same += c.Same
	s.Changes.Older += c.Older
	s.Changes.Repeated += c.Repeated
	s.Changes.Keyless += c.Keyless
}

// Run does one step after the other until ctx ends, and returns the error of ctx. Between steps that find nothing it waits for
// what comes, and after failures for longer and longer, up to 10 s.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	poll := w.Poll
	if poll == 0 {
		poll = time.Second
	}
	failures, pruned := 0, time.Time{}
	for {
		step, err := w.Step(ctx)
		if err == nil && time.Since(pruned) > time.Hour {
			if err = w.Store.Prune(ctx); err == nil {
				pruned = time.Now()
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		idle := step.Applied+step.Delayed+step.Dead == 0
		if w.Observe != nil && (err != nil || !idle) {
			w.Observe(step, err)
		}
		switch {
		case err != nil:
			failures++
			longest := min(50*time.Millisecond<<min(failures, 10), 10*time.Second)
			pause(ctx, longest/2+rand.N(longest/2))
			continue
		case idle:
			timer := time.NewTimer(poll)
			select {
			case <-w.Store.arrived:
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		}
		failures = 0
	}
}

func (w *Worker) check() error {
	if w.Store == nil {
		return errors.New("sqlstore: the Worker needs a Store")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"Batch", int64(w.Batch)}, {"Attempts", int64(w.Attempts)}, {"Delay", int64(w.Delay)}, {"Poll", int64(w.Poll)}} {
		if f.value < 0 {
			return fmt.Errorf("sqlstore: Worker.%s must not be negative", f.name)
		}
	}
	return nil
}

// letter is a row of the inbox.
type letter struct {
	webhooks.RawDelivery
	number   int64
	user     sql.Null[string]
	attempts int
}

// functionError is an error of the application's function.
type functionError struct {
	error
	away bool // it is the database's own trouble
}

func (e *functionError) Unwrap() error { return e.error }

// isBlamed reports whether an error is the deliveries' fault, or that of what the application does with them.
func isBlamed(err error) bool {
	if function := (*functionError)(nil); errors.As(err, &function) {
		return !function.away
	}
	if errors.Is(err, sql.ErrTxDone) { // the function ended the transaction
		return true
	}
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Refused
}

// Step takes a batch out of the inbox, if there is one, and applies it. The error is an [*Error]; what it did before stays done, and
// what it did not stays in the inbox.
func (w *Worker) Step(ctx context.Context) (Step, error) {
	if err := w.check(); err != nil {
		return Step{}, err
	}
	atOnce := w.Batch
	if atOnce == 0 {
		atOnce = 100
	}
	step, letters, err := w.try(ctx, `due <= ? ORDER BY number LIMIT ?`, w.Store.now().UnixNano(), atOnce)
	if err == nil || ctx.Err() != nil || !isBlamed(err) {
		return step, err
	}
	for _, l := range letters {
		// Another worker may have had it meanwhile, and have delayed it.
		const ifDue = `number = ? AND due <= ?`
		one, _, err := w.try(ctx, ifDue, l.number, w.Store.now().UnixNano())
		if err != nil && ctx.Err() == nil && isBlamed(err) {
			one, err = w.charge(ctx, err, ifDue, l.number, w.Store.now().UnixNano())
		}
		if err != nil {
			return step, err
		}
		step.add(one)
	}
	return step, nil
}

// errIdle ends a transaction that has nothing to do, without a commit.
var errIdle = errors.New("sqlstore: the inbox is empty")

// try takes letters and applies them in a transaction.
func (w *Worker) try(ctx context.Context, where string, args ...any) (step Step, letters []letter, err error) {
	var b *batch
	err = w.Store.transact(ctx, "step", func(tx *sql.Tx) (err error) {
		letters, err = w.Store.take(ctx, tx, where, args...)
		if err == nil && len(letters) == 0 {
			err = errIdle
		}
		if err == nil {
			step, b, err = w.do(ctx, tx, letters)
		}
		return err
	})
	if errors.Is(err, errIdle) {
		return Step{}, nil, nil
	}
	if err != nil {
		return Step{}, letters, err
	}
	if b != nil {
		w.Store.shapes.keep(b.shapeIDs)
	}
	return step, letters, nil
}

// take reads letters that no other worker has, and locks them. It stops after a good many bytes.
func (s *Store) take(ctx context.Context, tx *sql.Tx, where string, args ...any) ([]letter, error) {
	const mostBytes = 32 << 20
	query := s.sql(`SELECT number, delivery_id, received_at, user_id, attempts, body FROM labhealth_inbox WHERE ` + where)
	if s.dialect == PostgreSQL {
		query += ` FOR UPDATE SKIP LOCKED`
		if _, err := tx.ExecContext(ctx, `SELECT `+plansByIndex); err != nil {
			return nil, err
		}
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var letters []letter
	for size := 0; size < mostBytes && rows.Next(); {
		var l letter
		var id sql.Null[string]
		var received int64
		if err := rows.Scan(&l.number, &id, &received, &l.user, &l.attempts, &l.Body); err != nil {
			return nil, err
		}
		l.ID, l.ReceivedAt = unescape(id.V), time.Unix(0, received).UTC()
		letters = append(letters, l)
		size += len(l.Body)
	}
	if err := rows.Close(); err != nil {
		return nil, err
	}
	return letters, rows.Err()
}

// do applies letters and takes them out of the inbox.
func (w *Worker) do(ctx context.Context, tx *sql.Tx, letters []letter) (step Step, b *batch, err error) {
	defer func() {
		if recover() != nil { // with a value that may hold anything
			err = &functionError{error: errPanicked}
		}
	}()
	s := w.Store
	var deliveries []webhooks.Delivery
	var readable []letter
	for _, l := range letters {
		d, err := l.Parse()
		if err != nil {
			if err := s.bury(ctx, tx, l.RawDelivery, l.user, l.attempts+1, reasonOf(err)); err != nil {
				return step, nil, err
			}
			step.Dead++
			continue
		}
		deliveries, readable = append(deliveries, d), append(readable, l)
	}
	b = s.batch(deliveries)
	applied, err := b.apply(ctx, s, tx)
	if err != nil {
		return step, nil, err
	}
	for i, l := range readable {
		if err := applied[i].Err; err != nil {
			if err := s.bury(ctx, tx, l.RawDelivery, l.user, l.attempts+1, reasonOf(err)); err != nil {
				return step, nil, err
			}
			step.Dead++
		} else {
			step.Applied++
		}
		step.count(applied[i].Changes)
	}
	if err := s.discard(ctx, tx, letters); err != nil || w.Apply == nil {
		return step, b, err
	}
	if s.dialect == PostgreSQL {
		if _, err := tx.ExecContext(ctx, `SELECT `+plansAsBefore); err != nil {
			return step, nil, err
		}
	}
	for i := range readable {
		if applied[i].Err != nil && !applied[i].isUnreadable() {
			continue
		}
		if err := w.Apply(ctx, tx, deliveries[i], applied[i].Changes); err != nil {
			return step, nil, &functionError{err, isAway(err) && (!isBroken(err) || isLost(ctx, tx))}
		}
	}
	return step, b, nil
}

// discard takes letters out of the inbox.
func (s *Store) discard(ctx context.Context, tx *sql.Tx, letters []letter) error {
	if s.dialect == PostgreSQL {
		var numbers array
		for _, l := range letters {
			numbers.int(l.number)
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM labhealth_inbox WHERE number = ANY($1::bigint[])`, numbers.String())
		return err
	}
	for some := range slices.Chunk(letters, inPage) { // A statement takes 32,766 parameters.
		args := make([]any, len(some))
		for i, l := range some {
			args[i] = l.number
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM labhealth_inbox WHERE number IN (?`+strings.Repeat(", ?", len(args)-1)+`)`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// charge counts a failed attempt at the one letter that where finds.
func (w *Worker) charge(ctx context.Context, cause error, where string, args ...any) (step Step, err error) {
	s := w.Store
	most, delay := w.Attempts, w.Delay
	if most == 0 {
		most = 10
	}
	if delay == 0 {
		delay = 5 * time.Second
	}
	err = s.transact(ctx, "charge", func(tx *sql.Tx) error {
		step = Step{}
		letters, err := s.take(ctx, tx, where, args...)
		if err != nil || len(letters) == 0 {
			return err
		}
		l := letters[0]
		l.attempts++
		if l.attempts >= most {
			step.Dead++
			if err := s.bury(ctx, tx, l.RawDelivery, l.user, l.attempts, reasonOf(cause)); err != nil {
				return err
			}
			return s.discard(ctx, tx, letters)
		}
		step.Delayed++
		delay := delay
		for range l.attempts - 1 {
			delay = min(2*delay, time.Hour)
		}
		_, err = tx.ExecContext(ctx, s.sql(`UPDATE labhealth_inbox SET attempts = ?, due = ? WHERE number = ?`),
			l.attempts, s.now().Add(delay).UnixNano(), l.number)
		return err
	})
	return step, err
}
