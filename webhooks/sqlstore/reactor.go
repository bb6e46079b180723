// Reactor: calls the function of the program.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jitter"
	"github.com/labhealth/labhealth-go/internal/warn"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Reactor calls a function of the program for every change that a [Store] queues: see
// [Store.Reactions]. Any number of reactors may run, in any number of processes.
//
// Such a call is a reaction. It is made at least once, after the change was committed and outside
// of any transaction. When React returns nil, the reaction is deleted. If the process is killed
// before that, React is called again, with the same ID. To do nothing twice, store the IDs of what
// was done, or pass them on as idempotency keys. For results, see docs/store.md.
//
// When React returns an error or panics, the reaction is called again later, and given up after
// Attempts failures, or at once if the error matches [webhooks.ErrPermanent]: see
// [Store.FailedReactions]. While the database is unavailable, no attempts are counted.
//
// The reactions of one order are called one at a time: first transitions, in the order of the
// timeline, then results. Of transitions, only those that are queued count: one that is received
// late is called late. A failed reaction delays those behind it until it is given up: with the
// defaults up to 43 minutes, plus the time of its calls. All other reactions are called in no
// order, several at the same time, also those of one user.
//
// If a reaction is due in more than an hour, or Delay or twice Timeout if longer, the clock of
// another process must have been ahead: it is called within a minute. So if Delay or twice Timeout
// is above an hour, all reactors of a database need the same value.
//
// Nothing else waits for React: receiving, workers and other reactions go on. A slow call only
// takes one of Parallel.
type Reactor struct {
	// Store is the store whose reactions are called. It is required.
	Store *Store
	// React is called for each reaction. It is required. It may use the Store. It must return when
	// ctx is done: otherwise, a few seconds later, the call is abandoned and has failed, and
	// another one takes its place. Until it returns, further attempts of this reaction by this
	// Reactor fail without a call. If 100 abandoned calls have not returned, Run returns an error.
	React func(ctx context.Context, r Reaction) error

	Parallel int           // calls at the same time; 0 means 4
	Attempts int           // failed calls after which a reaction is given up; 0 means 10
	Delay    time.Duration // wait after the first failure, doubled after each further one up to an hour; 0 means 5 s
	// Timeout is the limit of one call; 0 means 1 min. A reaction whose process was killed is
	// called again after twice that time and 10 s.
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

// maxHung is the number of abandoned calls after which a Reactor stops: each keeps a goroutine and
// what it waits for.
const maxHung = 100

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
	defer run.cancel()
	failures := 0
	var corrected time.Time
	var unhealed patience
	for ctx.Err() == nil {
		if time.Since(corrected) >= time.Minute {
			corrected = time.Now()
			longest := max(time.Hour, r.Delay, run.lease())
			_ = r.Store.correctDue(ctx, `labhealth_reactions`, `failed_at IS NULL`, longest) // it is called again
		}
		run.collect() // before counting how many to take
		more, err := run.turn(ctx, run.parallel-len(run.calling))
		if err == nil && len(run.hung) >= maxHung {
			err = errHung
		}
		if err == errHung || unhealed.isOver(err) { //nolint:errorlint // it is never wrapped
			run.stop(ctx)
			return err
		}
		if err != nil {
			failures++
			n := max(1, failures-r.Store.slotFailures())
			backoff := min(50*time.Millisecond<<min(n, 10), 10*time.Second)
			run.wait(ctx, backoff/2+jitter.Within(backoff/2), false)
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
	defer run.cancel()
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
		Reactor: r, ctx: ctx, calls: calls, cancel: cancel, results: map[ReactionResult]int{},
		calling: map[*reactionCall]bool{}, hung: map[uuid.UUID]bool{},
		parallel: orDefault(r.Parallel, 4), timeout: orDefault(r.Timeout, time.Minute), poll: orDefault(r.Poll, time.Second),
	}
	run.ended = make(chan *reactionCall, 2*run.parallel+maxHung) // also for those that were abandoned
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

// reacting is a running Reactor. Its own goroutine takes reactions and settles them, and each call
// has another one.
type reacting struct {
	*Reactor
	ctx      context.Context
	calls    context.Context // parent of the contexts of calls
	cancel   context.CancelFunc
	parallel int
	timeout  time.Duration
	poll     time.Duration
	ended    chan *reactionCall

	calling  map[*reactionCall]bool // taken and not ended
	hung     map[uuid.UUID]bool     // reactions of calls that ignore their contexts
	finished []*reactionCall        // ended and not settled
	results  map[ReactionResult]int
}

// reactionCall is a reaction that was taken.
type reactionCall struct {
	row      reactionRow // its due is the lease
	was      int64       // due before it was taken
	reaction Reaction
	hangs    bool // an earlier call has not returned, so React is not called
	began    time.Time
	observed context.Context // of the observer
	state    atomic.Int32

	// Valid after it has ended:
	result ReactionResult // empty if it was not called
	reason string
}

// The values of reactionCall.state.
const (
	callTaken   = iota
	callStarted // observed is set
	callEnded
	callAbandoned // it ignores its context
)

// lease is the time after which others call a reaction that was taken. The transaction that takes
// it may take a while, and a call ends or is abandoned before.
func (r *reacting) lease() time.Duration { return 2*r.timeout + 10*time.Second }

// abandonAfter is the time after which a call has ignored its context.
func (r *reacting) abandonAfter() time.Duration { return r.timeout + min(r.timeout/4, 5*time.Second) }

// call calls React, in a goroutine of its own, which it may end.
func (r *reacting) call(c *reactionCall) {
	defer func() { r.ended <- c }()
	err := error(&functionError{error: errPanicked}) // unless React returns
	var deadline error
	defer func() {
		if v := recover(); v != nil { // which may contain anything
			r.Store.warn("sqlstore: the function of a Reactor or a Receiver panicked", slog.String("panic", warn.Stack(v)))
		}
		r.end(c, err, deadline)
	}()
	if r.Observe.Start != nil {
		if observed := r.Observe.Start(r.calls, c.reaction); observed != nil {
			c.observed = observed
		}
	}
	c.state.Store(callStarted)
	if c.hangs { // another call would occupy another goroutine
		err, deadline = context.DeadlineExceeded, context.DeadlineExceeded
		return
	}
	ctx, cancel := context.WithTimeout(c.observed, r.timeout)
	defer func() {
		deadline = ctx.Err()
		cancel()
	}()
	err = r.React(ctx, c.reaction)
}

// end records the result of a call, unless the call was given up before. deadline is the error of
// its context.
func (r *reacting) end(c *reactionCall, err, deadline error) {
	if c.state.Swap(callEnded) == callAbandoned {
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

// turn settles the calls that have ended and takes up to limit reactions, in one transaction. more
// says that there is more to do.
func (r *reacting) turn(ctx context.Context, limit int) (more bool, err error) {
	r.collect()
	if limit <= 0 && len(r.finished) == 0 {
		return false, nil
	}
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
			s: r.Store, slot: slot, limit: limit, now: now.UnixNano(), lease: now.Add(r.lease()).UnixNano(),
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
		c := &reactionCall{row: row, was: row.due, reaction: row.reaction(), hangs: r.hung[row.id] || r.isCalled(row.id), began: time.Now(), observed: r.calls}
		c.row.due = take.lease
		// With less left of the lease, another reactor could take it before the call has ended.
		if r.ctx.Err() != nil || time.Duration(take.lease-r.Store.now().UnixNano()) < r.abandonAfter() {
			r.finished = append(r.finished, c)
			continue
		}
		r.calling[c] = true
		go r.call(c)
	}
}

// isCalled reports whether a call for a reaction has outlasted its lease here, as on a machine that
// stood still, and is about to be abandoned.
func (r *reacting) isCalled(id uuid.UUID) bool {
	for c := range r.calling {
		if c.row.id == id && c.state.Load() < callEnded {
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
		if time.Since(c.began) < r.abandonAfter() || !c.state.CompareAndSwap(callStarted, callAbandoned) {
			continue
		}
		c.result, c.reason = r.result(c, context.DeadlineExceeded, context.DeadlineExceeded)
		r.hung[c.row.id] = true
		r.remove(c)
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
		if len(r.calling) < r.parallel {
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

// stop waits for the calls in flight, and settles what has ended.
func (r *reacting) stop(ctx context.Context) {
	for _, grace := range []time.Duration{orDefault(r.Grace, 5*time.Second), time.Second} {
		timer := time.NewTimer(grace)
		for expired := false; !expired && len(r.calling) > 0; {
			select {
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
