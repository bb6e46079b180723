// Reconciler: compares the store with the service, in passes and steps.

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jitter"
	"github.com/labhealth/labhealth-go/internal/transport"
	"github.com/labhealth/labhealth-go/internal/warn"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Reconciler compares the store with the service. It reads from the API what may have been lost,
// applies it as if it had been delivered, and counts the differences that it finds. It never
// changes anything at the service.
//
// [Reconciler.Run] does this continuously, in passes (Poll, Interval, Rate and Walk are fields):
//
//	results  results of the orders that have or may have new ones; within Poll
//	changed  orders that the service has changed since the last time; every Interval
//	walk     all orders, at Rate; every Walk
//	users    the wearable data of all users, at Rate; every Walk
//
// Each pass stores its position after every page and every user, and resumes there after a crash.
// [Reconciler.Since] reads everything once after an outage.
//
// # Which version wins
//
// Of two versions of an order, the one that is newer by the service's clock wins, whether it was
// read or delivered: see the package documentation. Of two versions of a summary or a sample, the
// later receipt wins. What was read counts as received just before the request, so an event that
// arrives during the request wins. The passes over changed orders use only times of the service, so
// a wrong clock of this machine skips nothing.
//
// # Several processes
//
// Run may be called by any number of processes: a lease in the database lets one of them work. If
// that process stops, another one takes over within seconds; if it is killed, within about a
// minute, even if it is restarted at once. The new one resumes where the old one stopped. If two
// work at the same time, because a clock is wrong, they make twice the requests, and the stored
// data is the same.
//
// # Cost
//
// A page of up to 100 orders takes one request, the results of an order one, and the wearable data
// of a user at least 62: see [webhooks.ReadAll]. Results can change without an event and without a
// change of the order. Final ones are therefore read again 1, 7 and 30 days after the order reached
// its status, and then never. That makes four requests for the results of an order, more with
// partial ones. [Reconciler.Since] with the zero time reads the results of every order that has or
// may have some. All requests are subject to RequestsPerSecond and to [labhealth.WithRateLimit] of
// the Client; without these, only the walks are limited, by Rate. A Rate of 1 compares about 1,400
// users a day. OrdersOnly leaves out the users.
type Reconciler struct {
	// Store is the store that is compared. It is required.
	Store *Store
	// Client is the client of the team whose data is in Store. It is required.
	Client *labhealth.Client
	// Owns, if not nil, reports whether Store holds the data of a user. The data of other users is
	// not applied. A program with several databases runs a Reconciler for each Store, such as one
	// with
	//
	//	func(userID uuid.UUID) bool { return sqlstore.Slot(userID) >= 128 }
	//
	// Each reads the lists of all orders and users, and the data of its own users only.
	Owns func(userID uuid.UUID) bool
	// OrdersOnly leaves out the users: no wearable data is read, and missing users are not found.
	OrdersOnly bool
	// Observe, if not nil, observes the steps of passes. A step is a page of orders, one user, or
	// the results of up to 100 orders. An error means that a step failed, for example because the
	// service is unavailable: it is repeated as a whole after a wait that doubles from 1 s up to 5
	// min. An order, user or page that fails alone is counted in Failed and is no error. Steps of
	// the pass "results" that had nothing to do are not observed. Steps of different passes run at
	// the same time.
	Observe func(ctx context.Context, found Reconciled, err error)

	Interval time.Duration // from one pass over changed orders to the next; 0 means 5 min
	Walk     time.Duration // from one walk over all orders or users to the next; 0 means 24 h
	Poll     time.Duration // interval at which to look for results that are due; 0 means 1 s
	Parallel int           // concurrent requests for single orders and for results, and in Since for users; 0 means 4
	Rate     float64       // requests per second of the walks over all orders and users; 0 means 1
	Days     int           // days of wearable data in the first read of a user; 0 means 30
	// RequestsPerSecond limits all requests of this Reconciler together; 0 means no limit.
	RequestsPerSecond float64

	requests spacing // of all passes
}

// These are repeated of what was read the last time, because sources are late: of the changes of
// orders, and of the wearable data of a user.
const (
	overlap     = time.Hour
	overlapDays = 7
)

// Reconciled counts what one or several steps of a [Reconciler] have read and found.
type Reconciled struct {
	// Pass is the pass of the step: results, changed, walk or users for those of Run, and
	// since, user or order for those of the methods of that name.
	Pass     string
	Complete bool // the pass is complete; otherwise more steps follow
	Requests int  // requests to the service, including repeated attempts
	// Read counts what was read.
	Read ReconciledCounts
	// Differences counts what the store did not have: what was lost, or has not been delivered yet.
	Differences ReconciledCounts
	// MissingOrders and MissingUsers count stored orders and users that the service was found not
	// to have anymore. They stay stored: see [StoredOrder.MissingSince], and the column missing of
	// the table labhealth_reconciled_users. Each is counted once.
	MissingOrders, MissingUsers int
	// MissingOrderIDs and MissingUserIDs are their IDs, at most 100 of each.
	MissingOrderIDs, MissingUserIDs []uuid.UUID
	// Failed counts orders, users and pages of lists that could not be read or applied completely,
	// although the service responds to other requests. The others are not delayed. What could not
	// be read is tried again within minutes, each time counted.
	Failed int
	// Unfiltered reports that the service returned orders that a filter excludes. A pass over
	// changed orders then reads all orders, and takes place as often as the walks.
	Unfiltered bool
}

// ReconciledCounts counts data of each kind.
type ReconciledCounts struct {
	Orders      int // versions of orders
	Transitions int // entries in timelines of orders; 0 in Reconciled.Read
	Results     int // of orders, each as a whole
	Summaries   int // versions of summaries
	Samples     int // versions of samples
}

// Total returns the sum.
func (c ReconciledCounts) Total() int {
	return c.Orders + c.Transitions + c.Results + c.Summaries + c.Samples
}

func (c *ReconciledCounts) add(other ReconciledCounts) {
	c.Orders += other.Orders
	c.Transitions += other.Transitions
	c.Results += other.Results
	c.Summaries += other.Summaries
	c.Samples += other.Samples
}

// maxMissingIDs limits the IDs in a Reconciled.
const maxMissingIDs = 100

func (f *Reconciled) add(other Reconciled) {
	f.Requests += other.Requests
	f.Read.add(other.Read)
	f.Differences.add(other.Differences)
	f.MissingOrders += other.MissingOrders
	f.MissingUsers += other.MissingUsers
	f.MissingOrderIDs = appendMissing(f.MissingOrderIDs, other.MissingOrderIDs...)
	f.MissingUserIDs = appendMissing(f.MissingUserIDs, other.MissingUserIDs...)
	f.Failed += other.Failed
	f.Unfiltered = f.Unfiltered || other.Unfiltered
}

func appendMissing(ids []uuid.UUID, more ...uuid.UUID) []uuid.UUID {
	return append(ids, more[:min(len(more), maxMissingIDs-len(ids))]...)
}

// Run reconciles until ctx is done, and returns the error of ctx, or a permanent error: an invalid
// field, tables that are missing for five seconds or of a newer version, or a key that the service
// has rejected for a minute. All failures are written to [Store.Logger], also the returned one.
func (r *Reconciler) Run(ctx context.Context) error {
	err := r.run(ctx)
	if r != nil {
		r.Store.logEnd(ctx, "the Reconciler", err)
	}
	return err
}

func (r *Reconciler) run(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.Store.fixReactions(); err != nil {
		return err
	}
	l := &lease{store: r.Store, holder: uuid.NewString()}
	waits := false
	var unhealed patience
	for ctx.Err() == nil {
		held, err := l.take(ctx)
		if err != nil && !isEnding(ctx) {
			r.Store.checkDatabase(reconciling, err)
		}
		if held {
			waits = false
			r.Store.checkProcesses(ctx)
			err = r.runLeased(ctx, l)
		} else if err == nil && !waits {
			waits = true
			r.Store.logger().Info(leaseIsHeld, "longest", leaseTime)
		}
		if err != nil && ctx.Err() == nil && r.Observe != nil {
			r.Observe(ctx, Reconciled{}, err)
		}
		if unhealed.isOver(err) {
			return err
		}
		_ = sleep(ctx, leaseTime/12+jitter.Within(leaseTime/12))
	}
	return ctx.Err()
}

const leaseIsHeld = "sqlstore: another Reconciler of this database works: this one takes over if it stops, or within a minute if it was killed"

// runLeased runs all passes until ctx is done or the lease is lost. It returns an error that
// waiting does not heal.
func (r *Reconciler) runLeased(ctx context.Context, l *lease) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer l.release(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	rate := &spacing{}
	all.Go(func() { loop(ctx, r.foreground(), cancel) })
	all.Go(func() { loop(ctx, r.background(rate), cancel) })
	l.hold(ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func (r *Reconciler) check(ctx context.Context) error {
	switch {
	case r == nil || r.Store == nil:
		return errors.New("sqlstore: the Reconciler needs a Store")
	case r.Client == nil:
		return errors.New("sqlstore: the Reconciler needs a Client")
	case min(r.Interval, r.Walk, r.Poll) < 0 || min(r.Rate, r.RequestsPerSecond) < 0 || min(r.Days, r.Parallel) < 0:
		return errors.New("sqlstore: the numbers of a Reconciler must not be negative")
	}
	return r.Store.usable(ctx)
}

func (r *Reconciler) owns(userID uuid.UUID) bool { return r.Owns == nil || r.Owns(userID) }

// foreground returns the passes that programs wait for.
func (r *Reconciler) foreground() []*pass {
	interval := orDefault(r.Interval, 5*time.Minute)
	return []*pass{
		{Reconciler: r, name: "results", every: orDefault(r.Poll, time.Second), run: (*pass).readDueResults},
		{Reconciler: r, name: "changed", every: interval, run: (*pass).readChanged, stored: true, began: time.Now()},
	}
}

// background returns the passes that share the rate.
func (r *Reconciler) background(rate *spacing) []*pass {
	walk := orDefault(r.Walk, 24*time.Hour)
	rate.interval = intervalOf(cmp.Or(r.Rate, 1))
	passes := []*pass{{Reconciler: r, name: "walk", every: walk, run: (*pass).walkOrders, stored: true, rate: rate, isFirst: true, repeats: true}}
	if !r.OrdersOnly {
		passes = append(passes, &pass{Reconciler: r, name: "users", every: walk, run: (*pass).walkUsers, stored: true, rate: rate, repeats: true})
	}
	return passes
}

// loop runs steps of passes until ctx is done. Those that have waited longest come first. It ends
// all passes after an error that waiting does not heal.
func loop(ctx context.Context, passes []*pass, end context.CancelCauseFunc) {
	for ctx.Err() == nil {
		next := slices.MinFunc(passes, func(a, b *pass) int { return a.next.Compare(b.next) })
		if wait := time.Until(next.next); wait > 0 {
			_ = sleep(ctx, wait)
			continue
		}
		err := next.step(ctx)
		if (err != nil || next.found.Requests > 0) && next.unhealed.isOver(err) {
			end(err)
		}
		next.schedule(err)
	}
}

// intervalOf returns the time between requests of a rate per second.
func intervalOf(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

// spacing spaces requests.
type spacing struct {
	interval time.Duration
	mu       sync.Mutex
	next     time.Time
}

func (p *spacing) wait(ctx context.Context, interval time.Duration) error {
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	wait := p.next.Sub(now)
	p.next = p.next.Add(interval)
	p.mu.Unlock()
	return sleep(ctx, wait)
}

// pass is a pass over orders or users. It is used by one goroutine.
type pass struct {
	*Reconciler
	name   string        // of Reconciled.Pass, and of the position in the database
	every  time.Duration // from the start of one pass to that of the next
	rate   *spacing      // nil for no limit of its own
	stored bool          // its position is stored
	// isFirst says that it goes on before others: it is short.
	isFirst bool
	// repeats says that it is repeated for what could not be read, before the next one.
	repeats bool
	// ofUsers says that it reads users now, and not orders.
	ofUsers bool
	// run runs one step. It moves the position, which is stored if it returns no error.
	run func(*pass, context.Context) (complete bool, err error)

	at     progress
	loaded bool // at is what is stored
	found  Reconciled
	next   time.Time // when the next step is due

	failures int // steps that failed in a row
	unhealed patience

	cause error // of the latest element that could not be read

	began time.Time // of the hour for which the pass notices that nothing is delivered; zero if it does not
	lost  int       // orders that were not delivered, since the pass was started

	previous map[uuid.UUID]bool // the orders of the page before
	// seen has the orders of a walk that were listed, by the time of creation; of a sorted list
	// only those that are not compared yet.
	seen map[uuid.UUID]int64
}

// step runs one step.
func (p *pass) step(ctx context.Context) error {
	p.found = Reconciled{Pass: p.name}
	if p.stored && !p.loaded {
		if err := p.load(ctx); err != nil {
			return p.end(ctx, err)
		}
		p.loaded = true
	}
	if p.at.Started.IsZero() || !p.at.Finished.IsZero() {
		now := time.Now()
		next, repeats := p.again()
		if p.stored && now.Before(next) {
			p.next = next
			return nil
		}
		start := progress{Started: now, Since: p.at.Since, Outage: p.at.Outage, IsFirst: p.at.IsFirst && (repeats || p.at.Finished.IsZero())}
		if repeats {
			start.Started, start.First = p.at.Started, cmp.Or(p.at.First, p.at.Finished)
		}
		p.at, p.previous, p.seen = start, nil, nil
	}
	complete, err := p.run(p, transport.WithAdmission(ctx, p.admit))
	if err == nil {
		p.at.Orders += p.found.Read.Orders
		if p.found.Complete = complete; complete {
			p.at.Finished = time.Now()
		}
		err = p.save(ctx)
	}
	if err == nil && complete {
		p.logFirst()
	}
	return p.end(ctx, err)
}

// again returns when a complete pass starts again, or is repeated for what could not be read. The
// wait before repetitions becomes longer.
func (p *pass) again() (next time.Time, repeats bool) {
	every := p.every
	if p.at.Unfiltered {
		every = max(every, orDefault(p.Walk, 24*time.Hour))
	}
	next = p.at.Started.Add(every)
	if p.repeats && p.at.Failed > 0 {
		after := cmp.Or(p.at.First, p.at.Finished)
		soon := p.at.Finished.Add(max(retryTime, p.at.Finished.Sub(after)/4))
		if soon.Before(next) {
			return soon, true
		}
	}
	return next, false
}

// admit counts a request, and lets it wait.
func (p *pass) admit(ctx context.Context) error {
	p.found.Requests++
	if p.rate != nil {
		if err := p.rate.wait(ctx, p.rate.interval); err != nil {
			return err
		}
	}
	if p.RequestsPerSecond == 0 {
		return nil
	}
	return p.requests.wait(ctx, intervalOf(p.RequestsPerSecond))
}

// end observes a step.
func (p *pass) end(ctx context.Context, err error) error {
	if err != nil {
		p.loaded, p.previous = false, nil
		if !p.stored {
			p.at = progress{}
		}
	}
	if !isEnding(ctx) {
		p.warn(err)
		p.checkDeliveries(ctx)
	}
	if p.Observe != nil && ctx.Err() == nil && (err != nil || p.found.Requests > 0 || p.stored) {
		p.Observe(ctx, p.found, err)
	}
	return err
}

const (
	notRead   = "sqlstore: the Reconciler cannot read from the service: neither results nor what was lost are read meanwhile"
	itemsFail = "sqlstore: orders, users or pages of lists cannot be read or applied: they are tried again"
)

// warn writes a warning about a step that failed, or that the service is read again.
func (p *pass) warn(err error) {
	database := (*Error)(nil)
	switch {
	case errors.As(err, &database):
		p.Store.checkDatabase(reconciling, err)
	case err != nil:
		p.Store.warn(notRead, slog.String("pass", p.name), warn.Cause(err))
	case p.found.Requests > p.found.Failed:
		p.Store.checkDatabase(reconciling, nil)
		p.Store.warnings.Resolved(p.Store.Logger, notRead)
	}
	if p.found.Failed > 0 {
		attrs := []slog.Attr{slog.String("pass", p.name), slog.Int("failed", p.found.Failed)}
		if p.cause != nil {
			attrs = append(attrs, warn.Cause(p.cause))
		}
		p.Store.warn(itemsFail, attrs...)
	} else if err == nil && p.found.Complete {
		p.Store.warnings.Resolved(p.Store.Logger, itemsFail)
	}
}

const noDeliveries = "sqlstore: orders change at the service, but the Store has received no delivery for an hour: check the URL of the endpoint, its event types and the secret"

// checkDeliveries writes a warning, once an hour, if a pass over changed orders found some that
// were not delivered, and nothing else was.
func (p *pass) checkDeliveries(ctx context.Context) {
	p.lost += p.found.Differences.Orders
	if p.began.IsZero() || !p.found.Complete {
		return
	}
	lost := p.lost
	p.lost = 0
	if lost == 0 || time.Since(p.began) < time.Hour {
		return
	}
	hourAgo := p.Store.now().Add(-time.Hour).UnixNano()
	received, err := p.Store.slotsWith(ctx, p.Store.db, `labhealth_deliveries | o.slot = k.slot AND o.at >= $1::bigint`, hourAgo)
	if err != nil {
		return // the next step meets the same error
	}
	if len(received) == 0 {
		p.Store.warn(noDeliveries, slog.Int("orders", lost))
		p.began = time.Now()
	} else {
		p.Store.warnings.Resolved(p.Store.Logger, noDeliveries)
	}
}

// schedule sets the time of the next step.
func (p *pass) schedule(err error) {
	now := time.Now()
	switch {
	case err != nil:
		wait := backoff(time.Second, p.failures, 5*time.Minute)
		if e, ok := errors.AsType[*labhealth.APIError](err); ok {
			wait = max(wait, min(e.RetryAfter, time.Hour))
		}
		p.failures++
		p.next = now.Add(wait)
		return
	case p.at.Finished.IsZero() && p.isFirst && p.at.First.IsZero():
		p.next = time.Time{}
	case p.at.Finished.IsZero():
		p.next = now
	default:
		p.next, _ = p.again()
	}
	p.failures = 0
}

// once runs all steps of a pass, and returns what they found together.
func (p *pass) once(ctx context.Context) (Reconciled, error) {
	all := Reconciled{Pass: p.name}
	for {
		err := p.step(ctx)
		all.add(p.found)
		if all.Complete = p.found.Complete; err != nil || all.Complete {
			return all, err
		}
	}
}

// apply applies events that were read as if they had been delivered.
func (p *pass) apply(ctx context.Context, events []*webhooks.Event) error {
	deliveries := make([]webhooks.Delivery, 0, len(events))
	for _, e := range events {
		if p.owns(e.UserID) {
			deliveries = append(deliveries, webhooks.Delivery{Event: e})
		}
	}
	if len(deliveries) == 0 {
		return nil
	}
	applied, err := p.Store.applyAll(ctx, deliveries, true, p.at.IsFirst && p.ofUsers)
	if err == nil {
		p.count(deliveries, applied)
		return nil
	}
	if e, ok := errors.AsType[*Error](err); !ok || !e.Rejected || ctx.Err() != nil {
		return err
	}
	if len(deliveries) == 1 {
		p.found.Failed++
		return nil
	}
	for _, d := range deliveries { // the database rejects one of them
		if err := p.apply(ctx, []*webhooks.Event{d.Event}); err != nil {
			return err
		}
	}
	return nil
}

// count counts what was read and applied.
func (p *pass) count(deliveries []webhooks.Delivery, applied []Applied) {
	read, differences := &p.found.Read, &p.found.Differences
	for i, a := range applied {
		differences.Transitions += a.Transitions
		changed := a.Changes.Added + a.Changes.Updated
		switch data := deliveries[i].Event.Data.(type) {
		case *webhooks.LabOrder:
			read.Orders++
			differences.Orders += changed
		case *webhooks.Samples:
			read.Samples += len(data.Data)
			differences.Samples += changed
		default:
			read.Summaries++
			differences.Summaries += changed
		}
		if a.Err != nil {
			p.found.Failed++
		}
	}
}
