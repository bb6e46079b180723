// Reactor: calls your function for queued changes.

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

	"github.com/labhealth/labhealth-go/internal/warn"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Reactor calls your function for every change that a [Store] queues: see [Store.Reactions]. Any
// number of reactors may run, in any number of processes.
//
// A queued change is a reaction. React is called for it at least once, after the change was
// committed and outside of any transaction. When React returns nil, the reaction is deleted. If the
// process is killed before that, React is called again, with the same ID. To avoid doing things
// twice, store the IDs of what was done, or pass them on as idempotency keys. For results, see
// docs/store.md.
//
// When React returns an error or panics, the reaction is called again later, and given up after
// Attempts failures, or at once if the error matches [webhooks.ErrPermanent]: see
// [Store.FailedReactions]. While the database is unavailable, no attempts are counted.
//
// The reactions of one order are called one at a time: first transitions, in the order of the
// timeline, then results. A transition that is received late is called late. A failed reaction
// delays those behind it until it is given up: with the defaults up to 43 minutes, plus the time of
// its calls. All other reactions are called in no order, several at the same time, also those of
// one user.
//
// A reaction that a process with a wrong clock has delayed for more than an hour is called within a
// minute. If Delay or twice Timeout is longer, it replaces the hour, and all reactors of a database
// need the same value.
//
// Only reactions of the same order wait for React. A slow call takes one of Parallel.
type Reactor struct {
	// Store is the store whose reactions are called. It is required.
	Store *Store
	// React is called for each reaction. It is required. It may use the Store. It must return when
	// ctx is done: otherwise, a few seconds later, the call counts as failed, and another reaction
	// takes its place. Until it returns, further attempts of this reaction by this Reactor fail
	// without a call. If 100 such calls have not returned, Run returns an error.
	React func(ctx context.Context, r Reaction) error

	Parallel int           // calls at the same time; 0 means 4
	Attempts int           // failed calls after which a reaction is given up; 0 means 10
	Delay    time.Duration // wait after the first failure, doubled after each further one up to an hour; 0 means 5 s
	// Timeout is the limit of one call; 0 means 1 min. A reaction whose process was killed is
	// called again after twice that time, and up to 10 s more if the database is slow.
	Timeout time.Duration
	Poll    time.Duration // interval at which to look for what other processes queued; 0 means 1 s
	Grace   time.Duration // how long calls may go on when the context of Run is done; 0 means 5 s
	// Observe observes the calls.
	Observe ReactionObserver
}

// ReactionObserver observes a [Reactor]. The functions may be nil, and are called concurrently.
type ReactionObserver struct {
	// Start is called before each call. The context that it returns is that of React and End, and
	// must be derived from ctx.
	Start func(ctx context.Context, r Reaction) context.Context
	// End is called after each call, with the context that Start returned and the error of React,
	// whose text can contain anything. A call that ignores its context is observed as failed when
	// it is given up, with [context.DeadlineExceeded].
	End func(ctx context.Context, r Reaction, result ReactionResult, err error)
	// Fail is called with each error of the database, which is an [*Error].
	Fail func(ctx context.Context, err error)
}

// ReactionResult is what becomes of a [Reaction] after a call.
type ReactionResult string

// The values of [ReactionResult].
const (
	ReactionDone     ReactionResult = "done"
	ReactionDelayed  ReactionResult = "delayed"  // it failed and will be called again
	ReactionFailed   ReactionResult = "failed"   // it was given up: see [Store.FailedReactions]
	ReactionCanceled ReactionResult = "canceled" // it failed because the Reactor stops, and will be called again
)

// maxAhead is the number of reactions that are taken before their calls can start, and maxHung that
// of abandoned calls after which a Reactor stops: each keeps a goroutine and what it waits for.
const maxAhead, maxHung = 100, 100

var errHung = errors.New("sqlstore: 100 calls of Reactor.React ignore their contexts and do not return")

// Run calls React until ctx is done, and returns the error of ctx, or a permanent error: an invalid
// field, tables that are missing for five seconds or of a newer version, or 100 calls that do not
// return. Calls in flight then have Grace to end, before their contexts are canceled. Run does not
// wait for calls that ignore that. After other failures of the database it waits, longer each time,
// up to 10 s. All failures are written to [Store.Logger], also the returned one.
func (r *Reactor) Run(ctx context.Context) error {
	err := r.run(ctx)
	if r != nil {
		r.Store.logEnd(ctx, "the Reactor", err)
	}
	return err
}

func (r *Reactor) run(ctx context.Context) error {
	run, err := r.start(ctx)
	if err != nil {
		return err
	}
	defer run.close()
	failures := 0
	var corrected time.Time
	var unhealed patience
	for ctx.Err() == nil {
		if time.Since(corrected) >= time.Minute {
			corrected = time.Now()
			longest := max(time.Hour, r.Delay, 2*run.timeout+maxSlow)
			_ = r.Store.correctDue(ctx, `labhealth_reactions`, `failed_at IS NULL`, longest) // it is called again
		}
		run.collect() // before counting how many to take
		more, err := run.turn(ctx, run.want())
		if err == nil && len(run.hung) >= maxHung {
			err = errHung
		}
		if err == errHung || unhealed.isOver(err) { //nolint:errorlint // it is never wrapped
			run.stop(ctx)
			return err
		}
		if err != nil {
			failures++
			run.wait(ctx, backoff(50*time.Millisecond, max(1, failures-r.Store.slotFailures()), 10*time.Second), false)
			continue
		}
		failures = 0
		if !more {
			run.wait(ctx, run.poll, true)
		}
	}
	run.stop(ctx)
	return ctx.Err()
}

// Step takes up to Parallel reactions, calls React for them, and returns how many calls had each
// result when all have ended. The error is an [*Error] or that of ctx.
func (r *Reactor) Step(ctx context.Context) (map[ReactionResult]int, error) {
	run, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	defer run.close()
	_, err = run.turn(ctx, run.parallel)
	for err == nil && ctx.Err() == nil && len(run.calling) > 0 {
		run.wait(ctx, run.poll, true)
		_, err = run.turn(ctx, 0)
	}
	if ctx.Err() != nil {
		run.stop(ctx)
		err = ctx.Err()
	}
	return run.results, err
}

func (r *Reactor) start(ctx context.Context) (*reacting, error) {
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	run := &reacting{
		Reactor: r, ctx: ctx, calls: calls, cancel: cancel, began: time.Now(), results: map[ReactionResult]int{},
		calling: map[*reactionCall]bool{}, hung: map[uuid.UUID]bool{},
		parallel: orDefault(r.Parallel, 4), timeout: orDefault(r.Timeout, time.Minute), poll: orDefault(r.Poll, time.Second),
	}
	run.jobs = make(chan *reactionCall, run.parallel+maxAhead)
	run.ended = make(chan *reactionCall, 2*run.parallel+maxAhead+maxHung)
	for range run.parallel {
		run.workers.Go(run.work)
	}
	return run, nil
}

func (r *Reactor) check(ctx context.Context) error {
	switch {
	case r == nil || r.Store == nil:
		return errors.New("sqlstore: the Reactor needs a Store")
	case r.React == nil:
		return errors.New("sqlstore: the Reactor needs a function React")
	}
	if err := r.Store.usable(ctx); err != nil {
		return err
	}
	if err := r.Store.fixReactions(); err != nil {
		return err
	}
	if len(r.Store.selected()) == 0 {
		return errors.New("sqlstore: Store.Reactions is empty: nothing is queued for the Reactor")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"Parallel", int64(r.Parallel)}, {"Attempts", int64(r.Attempts)}, {"Delay", int64(r.Delay)}, {"Timeout", int64(r.Timeout)},
		{"Poll", int64(r.Poll)}, {"Grace", int64(r.Grace)}} {
		if f.value < 0 {
			return fmt.Errorf("sqlstore: Reactor.%s must not be negative", f.name)
		}
	}
	return nil
}

// reacting is a running Reactor. Its own goroutine takes reactions and settles them, and parallel
// others call React.
type reacting struct {
	*Reactor
	ctx      context.Context
	calls    context.Context // parent of the contexts of calls
	cancel   context.CancelFunc
	began    time.Time
	parallel int
	timeout  time.Duration
	poll     time.Duration
	workers  sync.WaitGroup
	jobs     chan *reactionCall // taken and not called
	ended    chan *reactionCall

	calling  map[*reactionCall]bool // taken and not ended
	hung     map[uuid.UUID]bool     // reactions of calls that ignore their contexts
	finished []*reactionCall        // ended and not settled
	slow     time.Duration          // how long the transaction of the last turn took
	fast     int                    // calls that end in the time that is worth taking reactions ahead for
	results  map[ReactionResult]int
}

// reactionCall is a reaction that was taken.
type reactionCall struct {
	row      reactionRow // its due is the lease
	was      int64       // due before it was taken
	reaction Reaction
	observed context.Context // of the observer; valid if started is not 0
	hangs    bool            // an earlier call has not returned, so React is not called
	started  atomic.Int64    // when React was called, in nanoseconds since the start of the Reactor; 0 before
	took     atomic.Int64    // how long the call took, in nanoseconds; 0 before it has ended
	over     atomic.Int32    // callEnded, or callAbandoned because it ignores its context; 0 before

	// Valid after it has ended:
	result ReactionResult // empty if it was not called
	reason string
}

// The values of reactionCall.over.
const (
	callEnded = iota + 1
	callAbandoned
)

// work calls React, in one of the goroutines. One whose call was abandoned ends with the call:
// another one has taken its place.
func (r *reacting) work() {
	var c *reactionCall
	defer func() {
		if c != nil && c.over.Load() != callAbandoned { // React has ended its goroutine with runtime.Goexit
			r.workers.Go(r.work)
		}
	}()
	for c = range r.jobs {
		if r.perform(c); c.over.Load() == callAbandoned {
			return
		}
	}
	c = nil
}

func (r *reacting) perform(c *reactionCall) {
	defer func() { r.ended <- c }()
	// With less left of the lease, another reactor could take it before the call has ended.
	if r.ctx.Err() != nil || time.Duration(c.row.due-r.Store.now().UnixNano()) < r.abandonAfter() {
		return
	}
	started := time.Now()
	r.call(c)
	c.took.Store(int64(max(time.Since(started), 1)))
}

// abandonAfter is the time after which a call has ignored its context.
func (r *reacting) abandonAfter() time.Duration { return r.timeout + min(r.timeout/4, 5*time.Second) }

func (r *reacting) call(c *reactionCall) {
	err := error(&functionError{error: errPanicked}) // unless React returns
	var deadline error
	defer func() {
		if v := recover(); v != nil { // which may contain anything
			r.Store.warn("sqlstore: the function of a Reactor or a Receiver panicked", slog.String("panic", warn.Stack(v)))
		}
		r.end(c, err, deadline)
	}()
	c.observed = r.calls
	if r.Observe.Start != nil {
		if observed := r.Observe.Start(r.calls, c.reaction); observed != nil {
			c.observed = observed
		}
	}
	if c.hangs { // another call would occupy another goroutine
		err, deadline = context.DeadlineExceeded, context.DeadlineExceeded
		return
	}
	ctx, cancel := context.WithTimeout(c.observed, r.timeout)
	defer func() {
		deadline = ctx.Err()
		cancel()
	}()
	c.started.Store(int64(max(time.Since(r.began), 1)))
	err = r.React(ctx, c.reaction)
}

// end records the result of a call, unless the call was given up before. deadline is the error of
// its context.
func (r *reacting) end(c *reactionCall, err, deadline error) {
	if !c.over.CompareAndSwap(0, callEnded) {
		return
	}
	c.result, c.reason = r.result(c, err, deadline)
	if err != nil {
		r.warnOfCall(c, err)
	}
	if r.Observe.End != nil {
		r.Observe.End(c.observed, c.reaction, c.result, err)
	}
}

// warnOfCall writes a warning about a call that failed.
func (r *reacting) warnOfCall(c *reactionCall, err error) {
	attrs := []slog.Attr{slog.String("kind", string(c.reaction.Kind)), slog.String("reason", c.reason), warn.Cause(err)}
	if c.result == ReactionFailed {
		r.Store.warn("sqlstore: a reaction was given up: see Store.FailedReactions", attrs...)
	} else if c.result == ReactionDelayed {
		r.Store.warn("sqlstore: the function of a Reactor or a Receiver fails: it is called again, and given up after Attempts failures: log its errors in it", attrs...)
	}
}

// result returns what becomes of a reaction, and the reason of a failure as a fixed phrase.
func (r *reacting) result(c *reactionCall, err, deadline error) (ReactionResult, string) {
	reason := "it took too long"
	isPermanent := errors.Is(err, webhooks.ErrPermanent)
	switch {
	case err == nil:
		return ReactionDone, ""
	case isPermanent:
		reason = "the application rejected it"
	case deadline == nil:
		reason = reasonOf(&functionError{error: err})
	case r.calls.Err() != nil:
		return ReactionCanceled, ""
	}
	if isPermanent || c.row.attempts+1 >= orDefault(r.Attempts, 10) {
		return ReactionFailed, reason
	}
	return ReactionDelayed, reason
}

// want returns how many reactions to take: as many as can be called now, and those to take ahead.
func (r *reacting) want() int {
	return r.parallel + r.fast - len(r.calling)
}

// measure estimates how many calls end in a tenth of a second or, if that is longer, in the time of
// a transaction, from the time that those took that have ended: otherwise calls would wait for slow
// transactions. The lease leaves at least half of Timeout for those that wait.
func (r *reacting) measure() {
	took, n := time.Duration(0), 0
	for _, c := range r.finished {
		switch {
		case c.took.Load() > 0:
			took += time.Duration(c.took.Load())
		case c.result != "": // it was given up
			took += r.timeout
		default: // it was not called, which says nothing
			continue
		}
		n++
	}
	if n > 0 {
		ahead := min(max(r.slow, 100*time.Millisecond), max(r.timeout/2, 100*time.Millisecond))
		r.fast = int(min(maxAhead, float64(r.parallel*n)*float64(ahead)/float64(took)))
	}
}

// leaseAt returns when the lease of reactions ends that are taken now. The time of a transaction is
// added: otherwise calls could not start if transactions take most of the lease.
func (r *reacting) leaseAt(now time.Time) time.Time {
	return now.Add(2*r.timeout + min(r.slow, maxSlow))
}

// maxSlow limits the time of a transaction that is added to a lease.
const maxSlow = 10 * time.Second

// turn settles the calls that have ended and takes up to limit reactions, in one transaction. more
// says that there is more to do.
func (r *reacting) turn(ctx context.Context, limit int) (more bool, err error) {
	r.collect()
	r.measure()
	if limit <= 0 && len(r.finished) == 0 {
		return false, nil
	}
	began := time.Now()
	defer func() { r.slow = time.Since(began) }()
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if r.Store.OneSlot && r.Store.name == PostgreSQL {
		return r.turnSlots(limited, limit)
	}
	return r.turnIn(limited, anySlot, limit, r.finished)
}

// turnSlots is a turn in one transaction for each slot: those of the calls that have ended, and
// those with reactions that are due. A slot that fails does not stop the others.
func (r *reacting) turnSlots(ctx context.Context, limit int) (more bool, failure error) {
	slots, err := r.Store.slotsWith(ctx, r.Store.db, `labhealth_reactions | o.slot = k.slot AND o.due <= $1::bigint`, r.Store.now().UnixNano())
	if err != nil {
		return false, failed("react", err)
	}
	finished := map[int64][]*reactionCall{}
	for _, c := range r.finished {
		slot := c.row.place().slot
		finished[slot] = append(finished[slot], c)
		slots = append(slots, slot)
	}
	slices.Sort(slots)
	calling := len(r.calling)
	for _, slot := range r.Store.failing.without(slices.Compact(slots)) {
		n := max(0, limit-(len(r.calling)-calling))
		if n == 0 && len(finished[slot]) == 0 {
			continue
		}
		again, err := r.turnIn(ctx, slot, n, finished[slot])
		r.Store.failing.note(slot, err != nil)
		more, failure = more || again, cmp.Or(failure, err)
	}
	return more, failure
}

// turnIn settles calls and takes reactions of one slot, or of any.
func (r *reacting) turnIn(ctx context.Context, slot int64, limit int, finished []*reactionCall) (more bool, err error) {
	var take *reactionTake
	var released []reactionRow
	err = r.Store.transact(ctx, "react", func(tx *sql.Tx) (err error) {
		if take != nil { // after a conflict
			r.Store.giveBackReactions(take.seen)
		}
		now := r.Store.now()
		take = &reactionTake{
			s: r.Store, slot: slot, limit: limit, now: now.UnixNano(), lease: r.leaseAt(now).UnixNano(),
		}
		if released, err = r.Store.settle(ctx, tx, r.settlements(finished, now), now.UnixNano()); err == nil {
			err = take.run(ctx, tx)
		}
		if err == nil && len(finished) == 0 && !take.moved {
			err = errIdle
		}
		return err
	})
	if err != nil && !errors.Is(err, errIdle) {
		if take != nil {
			r.Store.giveBackReactions(take.seen)
		}
		if !isEnding(ctx) {
			r.Store.checkDatabase(calling, err)
		}
		if r.Observe.Fail != nil && r.ctx.Err() == nil {
			r.Observe.Fail(ctx, err)
		}
		return false, err
	}
	if err == nil { // an idle turn writes nothing
		r.Store.checkDatabase(calling, nil)
	}
	r.committed(take, finished, released)
	return take.more && take.moved, nil
}

// committed records what a turn has settled and taken.
func (r *reacting) committed(take *reactionTake, finished []*reactionCall, released []reactionRow) {
	var back []reactionRow
	for _, c := range finished {
		r.results[c.result]++
		if c.result == "" || c.result == ReactionCanceled {
			row := c.row
			row.due = c.was
			back = append(back, row)
		}
	}
	delete(r.results, "")
	r.finished = slices.DeleteFunc(r.finished, func(c *reactionCall) bool { return slices.Contains(finished, c) })
	r.Store.giveBackReactions(append(back, released...))
	for _, row := range take.taken {
		c := &reactionCall{row: row, was: row.due, reaction: row.reaction(), hangs: r.hung[row.id] || r.isCalled(row.id)}
		c.row.due = take.lease
		r.calling[c] = true
		r.jobs <- c
	}
}

// isCalled reports whether a call for a reaction has outlasted its lease here, as on a machine that
// stood still, and is about to be abandoned.
func (r *reacting) isCalled(id uuid.UUID) bool {
	for c := range r.calling {
		if c.row.id == id && c.started.Load() != 0 && c.over.Load() == 0 {
			return true
		}
	}
	return false
}

// settlements returns what to write for calls that have ended.
func (r *reacting) settlements(finished []*reactionCall, now time.Time) (all []settlement) {
	for _, c := range finished {
		one := settlement{reactionRow: c.row}
		switch c.result {
		case ReactionDone:
			one.isDone = true
		case ReactionFailed:
			one.hasFailed, one.next, one.failedAt, one.reason = true, givenUp, now.UnixNano(), c.reason
		case ReactionDelayed:
			one.hasFailed, one.next = true, now.Add(delayAfter(orDefault(r.Delay, 5*time.Second), c.row.attempts)).UnixNano()
			one.others = one.next
		default: // it is given back
			one.next = c.was
		}
		all = append(all, one)
	}
	return all
}

// collect collects calls that have ended, and gives up those that ignore their contexts.
func (r *reacting) collect() {
	for {
		select {
		case c := <-r.ended:
			r.collectOne(c)
		default:
			r.abandon()
			return
		}
	}
}

func (r *reacting) collectOne(c *reactionCall) {
	if !r.calling[c] { // it was given up, and has ended now
		delete(r.hung, c.row.id)
		return
	}
	r.remove(c)
}

func (r *reacting) remove(c *reactionCall) {
	delete(r.calling, c)
	r.finished = append(r.finished, c)
}

func (r *reacting) abandon() {
	for c := range r.calling {
		started := time.Duration(c.started.Load())
		if started == 0 || time.Since(r.began)-started < r.abandonAfter() || !c.over.CompareAndSwap(0, callAbandoned) {
			continue
		}
		c.result, c.reason = r.result(c, context.DeadlineExceeded, context.DeadlineExceeded)
		r.hung[c.row.id] = true
		r.remove(c)
		r.workers.Go(r.work)
		r.Store.warn("sqlstore: the function of a Reactor or a Receiver ignores its context and does not return: it is abandoned, and its goroutine is kept until it returns",
			slog.String("kind", string(c.reaction.Kind)), slog.Int("hanging", len(r.hung)))
		if r.Observe.End != nil {
			r.Observe.End(c.observed, c.reaction, c.result, context.DeadlineExceeded)
		}
	}
}

// wait returns when a call has ended, when there may be something to take, or after a time.
func (r *reacting) wait(ctx context.Context, limit time.Duration, wake bool) {
	if len(r.calling) > 0 {
		limit = min(limit, r.timeout/4)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var queued chan struct{}
	var ended chan *reactionCall
	if wake {
		ended = r.ended
		if r.want() > 0 {
			queued = r.Store.queued
		}
	}
	select {
	case c := <-ended:
		r.collectOne(c)
	case <-queued:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// stop waits for the calls in flight, gives back the others, and settles what has ended.
func (r *reacting) stop(ctx context.Context) {
	for _, grace := range []time.Duration{orDefault(r.Grace, 5*time.Second), time.Second} {
		timer := time.NewTimer(grace)
		for expired := false; !expired && len(r.calling) > 0; {
			select {
			case c := <-r.jobs:
				r.remove(c)
			case c := <-r.ended:
				r.collectOne(c)
			case <-timer.C:
				expired = true
			}
		}
		timer.Stop()
		r.cancel()
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, _ = r.turn(settling, 0) // observed
}

// close ends the goroutines that do not call React anymore.
func (r *reacting) close() {
	r.cancel()
	close(r.jobs)
	if len(r.hung)+len(r.calling) == 0 {
		r.workers.Wait()
	}
}
