// Worker: applies stored deliveries, retries them, and gives up on some.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/internal/warn"
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
// If the transaction of a batch exceeds a time limit, that of Timeout, of a call of Apply or of the
// database, such as statement_timeout or lock_timeout, all workers take its deliveries one at a
// time, small ones first, and the one that Apply was called with after twice Timeout. A delivery
// that exceeds a limit alone has failed. If it waited for a lock of PostgreSQL for a quarter of
// Timeout, or until lock_timeout, the attempt is not counted, and the other deliveries of its user
// that failed are attempted later, too. So a delivery that never ends stops its worker for the
// limit at each attempt, and the users of its batch the first time. Other workers go on.
//
// Deliveries that failed are in batches of their own when they are due, which get about a quarter
// of the time if there are others. So do those of such a batch. One that is due later than an hour,
// or Delay or twice Timeout if that is longer, was delayed by a process whose clock was ahead: Run
// makes it due within a minute. So do not let the workers of one database have different values
// above an hour.
//
// Taking the oldest first does not guarantee an order: workers run concurrently, and failed
// deliveries are attempted later. The stored content is the same in any order. With PostgreSQL, a
// Store does not read the rows again that its workers have deleted, because an old snapshot can
// keep them from being removed. A delivery that becomes visible after later ones were taken,
// because its receipt was committed late or its worker was killed, is found by reading them again,
// which takes a tenth of the time: so within ten times as long as it takes to read the index of the
// inbox with all deleted rows. The first step of a Store reads the whole index: Timeout, and
// statement_timeout if it is set, must be longer than that takes.
type Worker struct {
	// Store is the store whose inbox is processed. It is required.
	Store *Store
	// Apply, if not nil, is called with each delivery of a batch, after the batch was applied to
	// the Store. What it writes to tx is committed together with the batch or not at all. It is
	// also called for events that do not change the Store, such as those of orders, and for events
	// that cannot be decoded completely ([webhooks.Event.Err]). The latter become dead letters, and
	// Apply is called again if they are requeued.
	//
	// It must not use the Store, whose operations are separate transactions, and must not end tx:
	// after a commit of its own, the other deliveries of the batch are not passed to it.
	// [webhooks.DeliveryIDFrom] returns the ID from ctx.
	//
	// It must return when ctx is done: after a tenth of Timeout, or 5 s if that is longer. While it
	// runs, the users of its batch wait and, with SQLite, everything that writes: do slow things
	// in a [Reactor]. A call that has not returned after half as long again is abandoned: it goes
	// on without the transaction, also after Run has returned. Until it returns, the other
	// deliveries of the user wait, in all processes. An error or a panic counts as a failed
	// attempt, even if the cause is an unavailable service that the function needs, but not if the
	// database is unavailable. So does an error of a statement that it ignores, with which
	// PostgreSQL rolls the transaction back.
	Apply func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error

	Batch    int           // deliveries per transaction, few enough that they fit Timeout; 0 means 100
	Attempts int           // failed attempts after which a delivery becomes a dead letter; 0 means 10
	Delay    time.Duration // wait after the first failure, doubled after each further one up to an hour; 0 means 5 s
	Poll     time.Duration // interval at which to look for deliveries received by other processes; 0 means 1 s
	Timeout  time.Duration // limit of one transaction, including the calls of Apply, each of which gets a tenth; 0 means 1 min
	// Observe observes the steps that take deliveries from the inbox or fail.
	Observe StepObserver

	mu   sync.Mutex
	turn time.Time // from when on deliveries that failed come before others
}

// StepObserver observes the steps of a [Worker]. Either function may be nil.
type StepObserver struct {
	// Start is called when a step has taken deliveries from the inbox. The context that it returns
	// is that of Apply, of the statements that follow and of End, and must be derived from ctx.
	Start func(ctx context.Context) context.Context
	// End is called when such a step is over, and when a step or [Store.Maintain] fails, with the
	// context that Start returned. The error is an [*Error]. A step that fails because the context
	// of the worker is canceled is observed only if it has been started.
	End func(ctx context.Context, s Step, err error)
}

// Step counts the deliveries that one step of a [Worker] processed.
type Step struct {
	// Batch is the number of deliveries that were taken. It is also set if the step failed. If it
	// is less than the Batch of the Worker, no more were waiting or a time limit was exceeded.
	Batch   int
	Applied int // deliveries that were applied and have left the inbox
	Delayed int // deliveries that failed and will be attempted again later
	Dead    int // deliveries that became dead letters
	// Reasons counts the delayed and dead deliveries by the reason, which is one of few fixed
	// phrases, as in [DeadLetter] but without offsets. It is nil if there are none.
	Reasons map[string]int
	Changes webhooks.Changes // sum over deliveries that were applied, completely or partly; Samples is nil
}

func (s *Step) isEmpty() bool { return s.Applied+s.Delayed+s.Dead == 0 }

func (s *Step) add(other Step) {
	s.Applied += other.Applied
	s.Delayed += other.Delayed
	s.Dead += other.Dead
	s.addChanges(other.Changes)
	for reason, n := range other.Reasons {
		s.addReason(reason, n)
	}
}

func (s *Step) addReason(reason string, n int) {
	if s.Reasons == nil {
		s.Reasons = map[string]int{}
	}
	s.Reasons[reason] += n
}

func (s *Step) addChanges(c webhooks.Changes) {
	s.Changes.Added += c.Added
	s.Changes.Updated += c.Updated
	s.Changes.Same += c.Same
	s.Changes.Older += c.Older
	s.Changes.Repeated += c.Repeated
	s.Changes.Keyless += c.Keyless
}

// Run runs steps until ctx is done, and returns the error of ctx, or one that waiting does not
// heal: an invalid field, or tables that are missing for five seconds or of a newer version. When
// the inbox is empty it waits for deliveries. After other failures it waits, longer each time, up
// to 10 s. Once an hour it calls [Store.Maintain], or a minute after that has failed.
//
// What fails is written to [Store.Logger]: also the returned error, deliveries that become dead
// letters, and deliveries that wait for longer than five minutes.
func (w *Worker) Run(ctx context.Context) error {
	err := w.run(ctx)
	if w != nil {
		w.Store.logEnd(ctx, "the Worker", err)
	}
	return err
}

func (w *Worker) run(ctx context.Context) error {
	if err := w.check(ctx); err != nil {
		return err
	}
	failures, maintain, look := 0, time.Time{}, time.Now().Add(backlogInterval)
	w.Store.checkProcesses(ctx)
	w.correct(ctx)
	var unhealed patience
	for {
		step, err := w.observedStep(ctx)
		if err == nil && time.Now().After(maintain) {
			maintain = time.Now().Add(w.maintain(ctx))
		}
		if err == nil && time.Now().After(look) {
			look = time.Now().Add(backlogInterval)
			w.Store.checkBacklog(ctx)
			w.Store.checkProcesses(ctx)
			w.correct(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if unhealed.isOver(err) {
			return err
		}
		if err != nil {
			failures++
			if n := failures - w.Store.slotFailures(); n > 0 {
				_ = sleep(ctx, backoff(50*time.Millisecond, n, 10*time.Second))
			}
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
	}{{"Batch", int64(w.Batch)}, {"Attempts", int64(w.Attempts)}, {"Delay", int64(w.Delay)}, {"Poll", int64(w.Poll)},
		{"Timeout", int64(w.Timeout)}} {
		if f.value < 0 {
			return fmt.Errorf("sqlstore: Worker.%s must not be negative", f.name)
		}
	}
	return w.Store.fixReactions()
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
	e := (*Error)(nil)
	return errors.As(err, &e) && (e.Rejected || isRolledBack(err))
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

// maintain calls Store.Maintain, and returns when to call it again. An error of it, such as of a
// lock that it did not get, does not delay deliveries.
func (w *Worker) maintain(ctx context.Context) time.Duration {
	err := w.Store.Maintain(ctx)
	(&observation{StepObserver: w.Observe, ctx: ctx}).end(Step{}, err)
	if err != nil {
		if !isEnding(ctx) {
			w.Store.checkDatabase(working, err)
		}
		return time.Minute
	}
	return time.Hour
}

// Step takes a batch from the inbox, if it is not empty, and applies it. The error is an [*Error].
// Deliveries that were applied before the error stay applied, and the rest stays in the inbox.
func (w *Worker) Step(ctx context.Context) (Step, error) {
	if err := w.check(ctx); err != nil {
		return Step{}, err
	}
	return w.observedStep(ctx)
}

func (w *Worker) observedStep(ctx context.Context) (Step, error) {
	o := &observation{StepObserver: w.Observe, ctx: ctx}
	step, err := w.step(ctx, o)
	o.end(step, err)
	if !isEnding(ctx) && !errors.Is(err, errSlow) && (err != nil || !step.isEmpty()) {
		w.Store.checkDatabase(working, err)
	}
	if step.Dead > 0 {
		w.Store.warn("sqlstore: deliveries became dead letters: see Store.DeadLetters and Store.Requeue", slog.Any("reasons", step.Reasons))
	}
	if step.Delayed > 0 && !isEnding(ctx) {
		w.Store.warn("sqlstore: deliveries cannot be applied and are attempted again: log the errors in Worker.Apply or OnEvent", slog.Any("reasons", step.Reasons))
	}
	return step, err
}

func (w *Worker) step(ctx context.Context, o *observation) (step Step, err error) {
	step, rows, err := w.attemptNext(ctx, o)
	if err != nil {
		// Not earlier: workers of this process would take them before they are delayed.
		defer w.Store.giveBack(rows)
	}
	switch {
	case err == nil || ctx.Err() != nil || len(rows) == 0:
	case isTimeout(err) && len(rows) == 1:
		step, err = w.fail(o.ctx, err, rows[0])
	case !isTimeout(err) && isDeliveryError(err):
		step, err = w.oneAtATime(o, rows)
	}
	step.Batch = len(rows)
	return step, err
}

// attemptNext processes deliveries of any slot or, if a transaction touches one slot only, of the
// first that has some.
func (w *Worker) attemptNext(ctx context.Context, o *observation) (step Step, rows []inboxRow, err error) {
	if !w.Store.OneSlot || w.Store.name == SQLite {
		return w.attemptIn(ctx, o, anySlot)
	}
	slots, err := w.Store.waitingSlots(ctx)
	if err != nil {
		return Step{}, nil, failed("step", err)
	}
	for _, slot := range slots {
		step, rows, err = w.attemptIn(ctx, o, slot)
		w.Store.failing.note(slot, err != nil && !isDeliveryError(err) && !isTimeout(err))
		if err != nil || len(rows) > 0 {
			break
		}
	}
	return step, rows, err
}

// attemptIn processes a batch or, if it is the turn of deliveries that failed or there are no
// others, one of those.
func (w *Worker) attemptIn(ctx context.Context, o *observation, slot int64) (step Step, rows []inboxRow, err error) {
	began := time.Now()
	isTurn := w.isTurn(began)
	if isTurn {
		step, rows, err = w.attemptFailing(ctx, o, slot, began)
	}
	if err == nil && len(rows) == 0 {
		step, rows, err = w.attempt(ctx, o, func(ctx context.Context, tx *sql.Tx) ([]inboxRow, error) {
			return w.Store.take(ctx, tx, fresh, orDefault(w.Batch, 100), slot)
		})
	}
	if err == nil && len(rows) == 0 && !isTurn {
		step, rows, err = w.attemptFailing(ctx, o, slot, began)
	}
	return step, rows, err
}

// attemptFailing processes deliveries that failed and are due. It reserves them first, so that no
// other worker takes them after a time limit and before the attempt is counted. If this worker is
// killed, others take them later.
func (w *Worker) attemptFailing(ctx context.Context, o *observation, slot int64, began time.Time) (step Step, rows []inboxRow, err error) {
	s, timeout := w.Store, orDefault(w.Timeout, time.Minute)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = s.transact(limited, "step", func(tx *sql.Tx) (err error) {
		s.giveBack(rows) // after a conflict
		if rows, err = s.take(limited, tx, failing, orDefault(w.Batch, 100), slot); err != nil || len(rows) == 0 {
			return cmp.Or(err, errIdle)
		}
		if n := slices.IndexFunc(rows, func(r inboxRow) bool { return r.alone }); n >= 0 { // up to it, or it
			s.giveBack(rows[max(n, 1):])
			rows = rows[:max(n, 1)]
		}
		return s.delay(limited, tx, rows, s.now().Add(2*timeout).UnixNano())
	})
	if err == nil {
		step, rows, err = w.attempt(ctx, o, func(ctx context.Context, tx *sql.Tx) ([]inboxRow, error) { return s.takeThese(ctx, tx, rows) })
	} else {
		s.giveBack(rows)
		rows = nil
	}
	w.endTurn(began, len(rows) > 0 || slot != anySlot)
	if errors.Is(err, errIdle) {
		err = nil
	}
	return step, rows, err
}

// isTurn reports whether deliveries that failed come before others.
func (w *Worker) isTurn(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !now.Before(w.turn)
}

// endTurn gives deliveries that failed a quarter of the time: three times as long as one took,
// others come first. The time by which a long batch delayed its turn counts, up to Timeout.
// Otherwise those that are tried alone would get a turn for each batch. If there were
// none, looking again at once would cost more than a tenth of the time.
func (w *Worker) endTurn(began time.Time, found bool) {
	const emptyDelay = 50 * time.Millisecond
	w.mu.Lock()
	defer w.mu.Unlock()
	took := time.Since(began)
	next := began.Add(4 * took)
	if late := began.Sub(w.turn); found && !w.turn.IsZero() && late > 0 {
		next = next.Add(-min(late, orDefault(w.Timeout, time.Minute)))
	}
	if !found {
		next = began.Add(took + emptyDelay)
	}
	w.turn = next
}

// correct makes deliveries due that wait for longer than any delay: the clock of the process that
// delayed them was ahead. An error is ignored: it is called again.
func (w *Worker) correct(ctx context.Context) {
	longest := max(time.Hour, w.Delay, 2*orDefault(w.Timeout, time.Minute))
	_ = w.Store.correctDue(ctx, `labhealth_inbox`, `part = 1`, longest)
}

// oneAtATime processes the rows of a batch that failed.
func (w *Worker) oneAtATime(o *observation, rows []inboxRow) (step Step, err error) {
	ctx := o.ctx
	for _, row := range rows {
		one, _, err := w.attempt(ctx, o, func(ctx context.Context, tx *sql.Tx) ([]inboxRow, error) {
			return w.Store.takeThese(ctx, tx, []inboxRow{row})
		})
		if err != nil && ctx.Err() == nil && (isTimeout(err) || isDeliveryError(err)) {
			one, err = w.fail(ctx, err, row)
		}
		if err != nil {
			return step, err
		}
		step.add(one)
	}
	return step, nil
}

// isolate makes the workers take the rows of a batch alone, the smallest first, and the one that
// Worker.Apply was called with last after twice Timeout. An error is ignored: the batch is taken
// again then, and exceeds the limit again.
func (w *Worker) isolate(ctx context.Context, rows []inboxRow, last *inboxRow) {
	s, timeout := w.Store, orDefault(w.Timeout, time.Minute)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	now := s.now()
	rows = slices.SortedFunc(slices.Values(rows), func(a, b inboxRow) int { return cmp.Compare(len(a.Body), len(b.Body)) })
	err := s.transact(limited, "isolate", func(tx *sql.Tx) error {
		// The transaction that fails holds the rows. All can be changed at once when it ends.
		if err := s.limitLocks(limited, tx, min(timeout/2, 5*time.Second)); err != nil {
			return err
		}
		_, err := s.exec(limited, tx, `UPDATE labhealth_inbox AS i SET part = 1, alone = true, due = k.later FROM {k: slot smallint, part smallint, due bigint, id integer, later bigint}
			WHERE i.slot = {slot} AND i.part = k.part AND i.due = k.due AND i.id = k.id`,
			rowList{len(rows), func(i int) []any {
				later := now.UnixNano() + int64(i)
				if last != nil && rows[i].place() == last.place() && rows[i].id == last.id {
					later += int64(2 * timeout)
				}
				return append(rows[i].key(), later)
			}})
		return err
	})
	if err != nil {
		return
	}
	w.mu.Lock()
	w.turn = time.Time{}
	w.mu.Unlock()
	s.wake()
}

// isolateLater calls isolate shortly before the deadline. The statement then waits for the rows, so
// that no other worker takes them when the transaction that holds them has ended. The caller calls
// stop when it has, which reports whether isolate was called.
func (w *Worker) isolateLater(ctx context.Context, rows []inboxRow, applying *atomic.Pointer[inboxRow], deadline time.Time) (stop func() bool) {
	done := make(chan struct{})
	early := min(orDefault(w.Timeout, time.Minute)/10, time.Second)
	timer := time.AfterFunc(time.Until(deadline)-early, func() {
		defer close(done)
		w.isolate(ctx, rows, applying.Load())
	})
	return func() bool {
		if timer.Stop() {
			return false
		}
		<-done
		return true
	}
}

// errIdle ends a transaction that has nothing to do, without a commit.
var errIdle = errors.New("sqlstore: the inbox is empty")

// attempt takes rows of the inbox and processes them in a transaction. After an error it returns
// the rows that it could not process, and that the caller gives back.
func (w *Worker) attempt(ctx context.Context, o *observation, take func(context.Context, *sql.Tx) ([]inboxRow, error)) (step Step, rows []inboxRow, err error) {
	var b *batch
	var applying atomic.Pointer[inboxRow] // that Apply was called with last
	stop := func() bool { return true }
	limited, cancel := context.WithTimeout(ctx, orDefault(w.Timeout, time.Minute))
	defer cancel()
	deadline, _ := limited.Deadline()
	err = w.Store.transact(limited, "step", func(tx *sql.Tx) (err error) {
		stop()
		w.Store.giveBack(rows) // after a conflict
		rows, stop = nil, func() bool { return true }
		// Else a delivery whose user another one locks until the time limit would fail with it.
		// PostgreSQL waits twice for a row for which others wait, and applies the limit to each.
		if err := w.Store.limitLocks(limited, tx, orDefault(w.Timeout, time.Minute)/4); err != nil {
			return err
		}
		rows, err = take(limited, tx)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return errIdle
		}
		observed, cancel := context.WithDeadline(o.start(), deadline)
		defer cancel()
		if len(rows) > 1 {
			stop = w.isolateLater(o.ctx, rows, &applying, deadline)
		}
		step, b, err = w.process(observed, tx, rows, &applying)
		if err != nil && observed.Err() != nil { // even if limited, which has the same deadline, is not done yet
			err = observed.Err()
		}
		return err
	})
	if !stop() && isTimeout(err) { // by a limit of the database
		w.isolate(o.ctx, rows, applying.Load())
	}
	if errors.Is(err, errIdle) {
		return Step{}, nil, nil
	}
	if err != nil {
		return Step{}, rows, err
	}
	if b != nil {
		w.Store.committed(b)
	}
	return step, rows, nil
}

// process applies rows of the inbox and deletes them.
func (w *Worker) process(ctx context.Context, tx *sql.Tx, rows []inboxRow, applying *atomic.Pointer[inboxRow]) (step Step, b *batch, err error) {
	defer func() {
		if v := recover(); v != nil { // which may contain anything
			w.Store.warn("sqlstore: a delivery cannot be applied, because of a panic", slog.String("panic", warn.Stack(v)))
			err = &functionError{error: errPanicked}
		}
	}()
	s := w.Store
	var deliveries []webhooks.Delivery
	var parsed []inboxRow
	for _, row := range rows {
		d, err := row.Parse()
		if err != nil {
			if err := w.bury(ctx, tx, row, err, &step); err != nil {
				return step, nil, err
			}
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
		if err := w.bury(ctx, tx, row, applied[i].Err, &step); err != nil {
			return step, nil, err
		}
	}
	if err := s.finish(ctx, tx, rows); err != nil {
		return step, nil, err
	}
	return step, b, w.callApply(ctx, tx, deliveries, applied, func(i int) { applying.Store(&parsed[i]) })
}

// callApply calls the application's function with the deliveries that were applied, including
// partly applied ones. It calls starts with the index of each before.
func (w *Worker) callApply(ctx context.Context, tx *sql.Tx, deliveries []webhooks.Delivery, applied []Applied, starts func(int)) error {
	if w.Apply == nil {
		return nil
	}
	for i, d := range deliveries {
		if applied[i].Err != nil && !applied[i].isUnreadable() {
			continue
		}
		starts(i)
		if err := w.call(ctx, tx, d, applied[i].Changes); errors.Is(err, errSlow) {
			return err
		} else if err != nil {
			return &functionError{err, w.Store.isOutage(err) && (!isBroken(err) || isDisconnected(ctx, tx))}
		}
	}
	return nil
}

// slowError is errSlow: to who looks at the error of a step, a time limit was exceeded.
type slowError struct{}

func (slowError) Error() string        { return "sqlstore: Worker.Apply or OnEvent took too long" }
func (slowError) Is(target error) bool { return target == context.DeadlineExceeded }

var errSlow error = slowError{}

// callLimit is the limit of one call of Apply. While one hangs, the users of its batch wait, and
// with SQLite everyone, also who receives, for less than ten seconds.
func (w *Worker) callLimit() time.Duration {
	return max(orDefault(w.Timeout, time.Minute)/10, 5*time.Second)
}

// call calls Apply. It returns errSlow if that takes longer than the limit of a call, and waits for
// half of it, so that a function that ignores ctx does not stop the worker.
func (w *Worker) call(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) (err error) {
	limit, outer := w.callLimit(), ctx
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, newest.DeliveryIDKey{}, d.ID), limit)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && outer.Err() == nil {
			w.Store.warn("sqlstore: Worker.Apply or OnEvent takes too long, and others wait for it: do slow things in another function of the Receiver or in a Reactor", slog.Duration("limit", limit))
			err = errSlow
		}
	}()
	result := make(chan error, 1)
	go func() {
		err := errPanicked // also if the function ends the goroutine
		defer func() {
			if v := recover(); v != nil { // which may contain anything
				w.Store.warn("sqlstore: Worker.Apply or OnEvent panicked", slog.String("panic", warn.Stack(v)))
			}
			result <- err
		}()
		err = w.Apply(ctx, tx, d, c)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	wait := min(limit, orDefault(w.Timeout, time.Minute)) / 2 // ends before the row is due again
	notice := min(wait/2, 5*time.Second)
	for _, limit := range []time.Duration{notice, wait - notice} {
		timer := time.NewTimer(limit)
		select {
		case err := <-result:
			timer.Stop()
			return err
		case <-timer.C:
			w.Store.warn("sqlstore: Worker.Apply or OnEvent ignores its context and does not return: the deliveries of its user wait")
		}
	}
	return ctx.Err()
}

// bury stores a dead letter.
func (w *Worker) bury(ctx context.Context, tx *sql.Tx, row inboxRow, cause error, step *Step) error {
	step.Dead++
	step.addReason(kindOf(cause), 1)
	return w.Store.addDeadLetter(ctx, tx, row, cause)
}

// fail counts a failed attempt for a row, unless another worker has changed it. It waits for the
// row, which the server may hold for the transaction that failed.
func (w *Worker) fail(ctx context.Context, cause error, row inboxRow) (step Step, err error) {
	s := w.Store
	limited, cancel := context.WithTimeout(ctx, orDefault(w.Timeout, time.Minute))
	defer cancel()
	later := row
	later.alone = row.alone || isTimeout(cause)
	if !isLocked(cause) {
		later.attempts++
	}
	err = s.transact(limited, "count attempt", func(tx *sql.Tx) error {
		step = Step{}
		isLast := later.attempts >= orDefault(w.Attempts, 10)
		later.due = s.now().Add(delayAfter(orDefault(w.Delay, 5*time.Second), row.attempts)).UnixNano()
		text, params := `DELETE FROM labhealth_inbox AS i`+atRow, row.key()
		if !isLast {
			text = `UPDATE labhealth_inbox AS i SET part = 1, due = $5::bigint, attempts = $6::integer, alone = $7::boolean` + atRow
			params = append(params, later.due, later.attempts, later.alone)
		}
		changed, err := s.exec(limited, tx, text, params...)
		if err != nil || changed == 0 {
			return err
		}
		if isLast {
			return w.bury(limited, tx, row, cause, &step)
		}
		step.Delayed++
		step.addReason(kindOf(cause), 1)
		if isLocked(cause) && row.user != uuid.Nil {
			return s.delayUser(limited, tx, row.user, later.due-1) // before this one: the user may not be locked then
		}
		return nil
	})
	if err != nil {
		return Step{}, err
	}
	return step, nil
}

// delayAfter returns the delay after a failure, which doubles with each earlier one up to an hour.
func delayAfter(delay time.Duration, earlier int) time.Duration {
	for range earlier {
		delay = min(2*delay, time.Hour)
	}
	return delay
}
