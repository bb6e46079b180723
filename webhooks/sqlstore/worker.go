package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Worker takes deliveries from the inbox, oldest first, and applies them. Any number of workers may
// run, in any number of processes; each delivery is processed by one worker at a time. Taking a
// batch, applying it and calling Apply is one transaction. If a worker is killed, the batch is
// either applied completely or not at all, and it is never applied twice.
//
// A batch that the database rejects is repeated one delivery at a time. A delivery that fails again
// is attempted later, and becomes a dead letter after Attempts failures. The others are not
// delayed. A body that is not an event, and an event that cannot be applied or read completely (see
// [Applied]), becomes a dead letter at once, in the transaction that applies the readable part of
// it. While the database is unavailable or full, no attempts are counted and nothing is lost.
//
// Taking the oldest first does not guarantee an order: workers run concurrently, and failed
// deliveries are attempted later. The stored content is the same in any order.
type Worker struct {
	// Store is the store whose inbox is processed. It is required.
	Store *Store
	// Apply, if not nil, is called with each delivery of a batch, after the batch was applied to
	// the Store. What it writes to tx is committed together with the batch or not at all. It is
	// also called for events that do not change the Store, such as those of orders, and for events
	// that cannot be decoded completely ([webhooks.Event.Err]). The latter become dead letters, and
	// Apply is called again if they are requeued.
	//
	// It must not use the Store, whose operations are separate transactions, and must not end tx.
	// Until it returns, the other deliveries of the user wait, in all processes. An error or a
	// panic counts as a failed attempt, even if the cause is an unavailable service that the
	// function needs, but not if the database is unavailable.
	Apply func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error

	Batch    int           // deliveries per transaction; 0 means 100
	Attempts int           // failed attempts after which a delivery becomes a dead letter; 0 means 10
	Delay    time.Duration // wait after the first failure, doubled after each further one up to an hour; 0 means 5 s
	Poll     time.Duration // interval at which to look for deliveries received by other processes; 0 means 1 s
	// Observe observes the steps that take deliveries from the inbox or fail.
	Observe StepObserver
}

// StepObserver observes the steps of a [Worker]. Either function may be nil.
type StepObserver struct {
	// Start is called when a step has taken deliveries from the inbox. The context that it returns
	// is that of Apply, of the statements that follow and of End, and must be derived from ctx.
	Start func(ctx context.Context) context.Context
	// End is called when such a step is over, and when a step or [Store.Prune] fails, with the
	// context that Start returned. The error is an [*Error]. A step that fails because the context
	// of the worker is canceled is observed only if it has been started.
	End func(ctx context.Context, s Step, err error)
}

// Step counts the deliveries that one step of a [Worker] processed.
type Step struct {
	Applied int              // deliveries that were applied and have left the inbox
	Delayed int              // deliveries that failed and will be attempted again later
	Dead    int              // deliveries that became dead letters
	Changes webhooks.Changes // sum over deliveries that were applied, completely or partly; Samples is nil
}

func (s *Step) isEmpty() bool { return s.Applied+s.Delayed+s.Dead == 0 }

func (s *Step) add(other Step) {
	s.Applied += other.Applied
	s.Delayed += other.Delayed
	s.Dead += other.Dead
	s.addChanges(other.Changes)
}

func (s *Step) addChanges(c webhooks.Changes) {
	s.Changes.Added += c.Added
	s.Changes.Updated += c.Updated
	s.Changes.Same += c.Same
	s.Changes.Older += c.Older
	s.Changes.Repeated += c.Repeated
	s.Changes.Keyless += c.Keyless
}

// Run runs steps until ctx is done, and returns the error of ctx. When the inbox is empty it waits
// for deliveries. After failures it waits, longer each time, up to 10 s.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(ctx); err != nil {
		return err
	}
	failures, pruned := 0, time.Time{}
	for {
		step, err := w.Step(ctx)
		if err == nil && time.Since(pruned) > time.Hour {
			if err = w.prune(ctx); err == nil {
				pruned = time.Now()
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failures++
			backoff := min(50*time.Millisecond<<min(failures, 10), 10*time.Second)
			sleep(ctx, backoff/2+rand.N(backoff/2))
			continue
		}
		failures = 0
		if step.isEmpty() {
			w.waitForDelivery(ctx)
		}
	}
}

// waitForDelivery returns when the store has received a delivery, after Poll, or when ctx is done.
func (w *Worker) waitForDelivery(ctx context.Context) {
	timer := time.NewTimer(orDefault(w.Poll, time.Second))
	defer timer.Stop()
	select {
	case <-w.Store.arrived:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// orDefault returns v, or the default for 0.
func orDefault[T int | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

func (w *Worker) check(ctx context.Context) error {
	if w == nil || w.Store == nil {
		return errors.New("sqlstore: the Worker needs a Store")
	}
	if err := w.Store.usable(ctx); err != nil {
		return err
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

// functionError is an error of the application's function.
type functionError struct {
	error
	outage bool // caused by the database
}

func (e *functionError) Unwrap() error { return e.error }

// isDeliveryError reports whether an error is caused by the deliveries, or by the application's
// function.
func isDeliveryError(err error) bool {
	if function := (*functionError)(nil); errors.As(err, &function) {
		return !function.outage
	}
	if errors.Is(err, sql.ErrTxDone) { // the function ended the transaction
		return true
	}
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Rejected
}

// observation is a step that is observed.
type observation struct {
	StepObserver
	ctx     context.Context // of Start
	started bool
}

// start calls Start once, and returns its context.
func (o *observation) start() context.Context {
	if !o.started && o.Start != nil {
		if ctx := o.Start(o.ctx); ctx != nil {
			o.ctx = ctx
		}
	}
	o.started = true
	return o.ctx
}

// end calls End, unless there was nothing to do.
func (o *observation) end(step Step, err error) {
	if o.End != nil && (o.started || err != nil && o.ctx.Err() == nil) {
		o.End(o.start(), step, err)
	}
}

func (w *Worker) prune(ctx context.Context) error {
	err := w.Store.Prune(ctx)
	(&observation{StepObserver: w.Observe, ctx: ctx}).end(Step{}, err)
	return err
}

// Step takes a batch from the inbox, if it is not empty, and applies it. The error is an [*Error].
// Deliveries that were applied before the error stay applied, and the rest stays in the inbox.
func (w *Worker) Step(ctx context.Context) (Step, error) {
	if err := w.check(ctx); err != nil {
		return Step{}, err
	}
	o := &observation{StepObserver: w.Observe, ctx: ctx}
	step, err := w.step(ctx, o)
	o.end(step, err)
	return step, err
}

func (w *Worker) step(ctx context.Context, o *observation) (Step, error) {
	step, rows, err := w.attempt(ctx, o, `due <= ? ORDER BY number LIMIT ?`, w.Store.now().UnixNano(), orDefault(w.Batch, 100))
	if err == nil || ctx.Err() != nil || !isDeliveryError(err) {
		return step, err
	}
	ctx = o.ctx
	for _, row := range rows {
		// Another worker may have processed it in the meantime, and have delayed it.
		const ifDue = `number = ? AND due <= ?`
		one, _, err := w.attempt(ctx, o, ifDue, row.number, w.Store.now().UnixNano())
		if err != nil && ctx.Err() == nil && isDeliveryError(err) {
			one, err = w.fail(ctx, err, ifDue, row.number, w.Store.now().UnixNano())
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

// attempt takes rows of the inbox and processes them in a transaction. After an error it returns
// the rows that it could not process.
func (w *Worker) attempt(ctx context.Context, o *observation, where string, args ...any) (step Step, rows []inboxRow, err error) {
	var b *batch
	err = w.Store.transact(ctx, "step", func(tx *sql.Tx) (err error) {
		rows, err = w.Store.take(ctx, tx, where, args...)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return errIdle
		}
		step, b, err = w.process(o.start(), tx, rows)
		return err
	})
	if errors.Is(err, errIdle) {
		return Step{}, nil, nil
	}
	if err != nil {
		return Step{}, rows, err
	}
	w.Store.shapes.add(b.shapeIDs)
	return step, rows, nil
}

// process applies rows of the inbox and deletes them.
func (w *Worker) process(ctx context.Context, tx *sql.Tx, rows []inboxRow) (step Step, b *batch, err error) {
	defer func() {
		if recover() != nil { // with a value that may contain anything
			err = &functionError{error: errPanicked}
		}
	}()
	s := w.Store
	var deliveries []webhooks.Delivery
	var parsed []inboxRow
	for _, row := range rows {
		d, err := row.Parse()
		if err != nil {
			if err := s.addDeadLetter(ctx, tx, row, err); err != nil {
				return step, nil, err
			}
			step.Dead++
			continue
		}
		deliveries, parsed = append(deliveries, d), append(parsed, row)
	}
	b = newBatch(deliveries, s.version)
	applied, err := s.apply(ctx, tx, b)
	if err != nil {
		return step, nil, err
	}
	for i, row := range parsed {
		step.addChanges(applied[i].Changes)
		if applied[i].Err == nil {
			step.Applied++
			continue
		}
		if err := s.addDeadLetter(ctx, tx, row, applied[i].Err); err != nil {
			return step, nil, err
		}
		step.Dead++
	}
	if err := s.discard(ctx, tx, rows); err != nil {
		return step, nil, err
	}
	return step, b, w.callApply(ctx, tx, deliveries, applied)
}

// callApply calls the application's function with the deliveries that were applied, including
// partly applied ones.
func (w *Worker) callApply(ctx context.Context, tx *sql.Tx, deliveries []webhooks.Delivery, applied []Applied) error {
	if w.Apply == nil {
		return nil
	}
	if err := w.Store.dialect.defaultPlans(ctx, tx); err != nil {
		return err
	}
	for i, d := range deliveries {
		if applied[i].Err != nil && !applied[i].isUnreadable() {
			continue
		}
		if err := w.Apply(ctx, tx, d, applied[i].Changes); err != nil {
			return &functionError{err, isOutage(err) && (!isBroken(err) || isDisconnected(ctx, tx))}
		}
	}
	return nil
}

// fail counts a failed attempt for the row that where selects.
func (w *Worker) fail(ctx context.Context, cause error, where string, args ...any) (step Step, err error) {
	s := w.Store
	err = s.transact(ctx, "count attempt", func(tx *sql.Tx) error {
		step = Step{}
		rows, err := s.take(ctx, tx, where, args...)
		if err != nil || len(rows) == 0 {
			return err
		}
		row := rows[0]
		if row.attempts+1 >= orDefault(w.Attempts, 10) {
			step.Dead++
			if err := s.addDeadLetter(ctx, tx, row, cause); err != nil {
				return err
			}
			return s.discard(ctx, tx, rows)
		}
		step.Delayed++
		due := s.now().Add(delayAfter(orDefault(w.Delay, 5*time.Second), row.attempts))
		_, err = tx.ExecContext(ctx, s.dialect.bind(`UPDATE labhealth_inbox SET attempts = ?, due = ? WHERE number = ?`),
			row.attempts+1, due.UnixNano(), row.number)
		return err
	})
	return step, err
}

// delayAfter returns the delay after a failure, which doubles with each earlier one up to an hour.
func delayAfter(delay time.Duration, earlier int) time.Duration {
	for range earlier {
		delay = min(2*delay, time.Hour)
	}
	return delay
}
