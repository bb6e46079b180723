// Receiver: a receiver of one type, made of the parts.

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Receiver is an [http.Handler] that stores deliveries durably. Its method Run applies them, calls
// the functions of [ReceiverOptions] for changes, and reads from the service what was never
// delivered. Create one with [NewReceiver]. Any number of processes may use the same database, with
// the same functions.
//
// # What the functions are called for
//
// Each function is called at least once for each of its changes, after the commit, even if the
// process is killed. After an error or a panic it is called again, later each time, and given up
// after 10 failures, in some 43 minutes: see [Store.FailedReactions]. A call that takes longer than
// a minute has failed; if it still does not return, it is abandoned and the others go on. See
// [Reactor] for the sequence of calls.
//
// No function is called for the past. On its first start, a Receiver stores the service's time.
// What orders had reached by then causes no calls, nor does the wearable data that the first pass
// over all users reads. [ReceiverOptions.IncludePast] calls the functions for both. If a
// [Reconciler] has used the database before, nothing counts as the past.
//
// # Parts
//
// The fields may be changed before Run is called, for example to observe or limit the parts.
type Receiver struct {
	Store      *Store            // stores deliveries and data
	Handler    *webhooks.Handler // receives deliveries; without a deduplicator in memory: the Store has the IDs
	Worker     *Worker           // applies deliveries, and calls OnEvent
	Reactor    *Reactor          // calls the other functions; nil if there are none
	Reconciler *Reconciler       // reads from the service

	options ReceiverOptions
	created time.Time
	started atomic.Bool
	end     sync.Once
	ending  chan struct{} // closed by Shutdown
	ended   chan struct{} // closed when Run has returned
}

// ReceiverOptions configures a [Receiver]. Client, and Secrets or Verifier, are required.
type ReceiverOptions struct {
	// Secrets are the webhook secrets of the endpoint: one, or the old and the new one during a
	// rotation. See [webhooks.NewVerifier].
	Secrets []string
	// Verifier, if not nil, replaces Secrets: [webhooks.Unsigned] is for a service that does not
	// sign.
	Verifier *webhooks.Verifier
	// Client reads results, which no event has, and what was never delivered.
	Client *labhealth.Client

	// OnResults is called for final results of an order and for each correction.
	OnResults func(ctx context.Context, r StoredResults) error
	// PartialResults calls OnResults for partial results, too.
	PartialResults bool
	// OnTransition is called for each status that an order reaches: a [ReactTransition].
	OnTransition func(ctx context.Context, r Reaction) error
	// OnSummary is called for each summary that is added or updated: a [ReactSummary].
	OnSummary func(ctx context.Context, r Reaction) error
	// OnSamples is called for the samples of a series that were added or updated: a [ReactSamples].
	OnSamples func(ctx context.Context, r Reaction) error
	// OnEvent is called with each event that was delivered, in the transaction that applies it:
	// what it writes to tx is written once. Use it for events that the Store does not keep, such as
	// appointments and critical results. [webhooks.DeliveryIDFrom] returns the ID of the delivery.
	// It must not use the Store, and has 6 s: others wait for it. See [Worker].Apply.
	OnEvent func(ctx context.Context, tx *sql.Tx, event *webhooks.Event) error
	// IncludePast calls the functions also for changes before the first start.
	IncludePast bool

	// RequestsPerSecond limits all requests to the service, including repeated attempts; 0 means 5.
	// A Receiver makes one request for 100 orders and one for the results of each order: see Cost
	// at [Reconciler]. With OnSummary or OnSamples it also reads the wearable data of all users,
	// with at least 62 requests a day for each user.
	RequestsPerSecond float64
	// Logger receives warnings and, at the start, what will be read and called; nil means
	// [slog.Default]. No record holds patient data.
	Logger *slog.Logger
	// HandlerOptions are options of the handler, such as an observer.
	HandlerOptions []webhooks.HandlerOption
}

// StoredResults are the latest stored results of an order. They hold patient data. Printed or
// logged, they show the key and the ID of the order.
type StoredResults struct {
	// Key identifies the order and this version of its results: a correction has another key, a
	// repeated call has the same. Use it as an idempotency key, or store it, so that nothing is
	// done twice.
	Key uuid.UUID
	// Order is the order. Its status may be later than that of the results.
	Order   StoredOrder
	Results *labhealth.OrderResults // never nil
}

// LogValue returns the key and the ID of the order.
func (r StoredResults) LogValue() slog.Value {
	id := uuid.Nil
	if r.Order.Order != nil {
		id = r.Order.Order.ID
	}
	return slog.StringValue("sqlstore.StoredResults{" + r.Key.String() + " order " + id.String() + ", redacted}")
}

// Format prints the result of [StoredResults.LogValue] under every verb.
func (r StoredResults) Format(f fmt.State, _ rune) { printLogValue(f, r) }

// LogValue returns the dialect.
func (r *Receiver) LogValue() slog.Value {
	if r == nil || r.Store == nil {
		return slog.StringValue("sqlstore.Receiver{}")
	}
	return slog.StringValue("sqlstore.Receiver{" + r.Store.name.String() + "}")
}

// Format prints the result of [Receiver.LogValue] under every verb.
func (r *Receiver) Format(f fmt.State, _ rune) { printLogValue(f, r) }

// LogValue returns the number of secrets.
func (o ReceiverOptions) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("sqlstore.ReceiverOptions{%d secrets, redacted}", len(o.Secrets)))
}

// Format prints the result of [ReceiverOptions.LogValue] under every verb.
func (o ReceiverOptions) Format(f fmt.State, _ rune) { printLogValue(f, o) }

// NewReceiver returns a receiver that stores in db, which the caller owns and closes. An error
// names the invalid option. NewReceiver runs no statement and sends no request: [Receiver.Run]
// does.
func NewReceiver(db *sql.DB, dialect Dialect, o ReceiverOptions) (*Receiver, error) {
	verifier := o.Verifier
	switch {
	case o.Client == nil:
		return nil, errors.New("sqlstore: ReceiverOptions.Client is required: it reads results and what was never delivered")
	case o.RequestsPerSecond < 0:
		return nil, errors.New("sqlstore: ReceiverOptions.RequestsPerSecond must not be negative: 0 means 5")
	case verifier != nil && len(o.Secrets) > 0:
		return nil, errors.New("sqlstore: ReceiverOptions has both Secrets and a Verifier: set one of them")
	case verifier == nil:
		var err error
		if verifier, err = webhooks.NewVerifier(o.Secrets...); err != nil {
			return nil, fmt.Errorf("sqlstore: ReceiverOptions.Secrets: %w", err)
		}
	}
	o.Secrets = nil // the verifier has them
	if o.RequestsPerSecond == 0 {
		o.RequestsPerSecond = 5
	}
	store, err := Open(db, dialect)
	if err != nil {
		return nil, err
	}
	store.Logger, store.Reactions = o.Logger, o.kinds()
	r := &Receiver{Store: store, options: o, created: time.Now(), ending: make(chan struct{}), ended: make(chan struct{})}
	handlerOptions := append([]webhooks.HandlerOption{webhooks.WithDeduplicator(noDeduplicator{}), webhooks.WithWarnings(o.Logger)}, o.HandlerOptions...)
	if r.Handler, err = webhooks.NewRawHandler(verifier, store.Receive, handlerOptions...); err != nil {
		return nil, err
	}
	r.Worker = &Worker{Store: store}
	if o.OnEvent != nil {
		r.Worker.Apply = func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
			return o.OnEvent(ctx, tx, d.Event)
		}
	}
	if len(store.Reactions) > 0 {
		r.Reactor = &Reactor{Store: store, React: r.react}
	}
	r.Reconciler = &Reconciler{Store: store, Client: o.Client, OrdersOnly: o.OnSummary == nil && o.OnSamples == nil, RequestsPerSecond: o.RequestsPerSecond}
	return r, nil
}

// kinds returns the kinds of changes that have a function.
func (o *ReceiverOptions) kinds() (kinds []ReactionKind) {
	if o.OnTransition != nil {
		kinds = append(kinds, ReactTransition)
	}
	if o.OnResults != nil {
		kinds = append(kinds, ReactResults)
	}
	if o.OnSummary != nil {
		kinds = append(kinds, ReactSummary)
	}
	if o.OnSamples != nil {
		kinds = append(kinds, ReactSamples)
	}
	return kinds
}

// noDeduplicator stores no IDs: [Store.Receive] does, with the delivery.
type noDeduplicator struct{}

func (noDeduplicator) Seen(context.Context, string) (bool, error) { return false, nil }
func (noDeduplicator) MarkSeen(context.Context, string) error     { return nil }

// ServeHTTP receives a delivery: see [webhooks.Handler]. It stores deliveries also before Run is
// called, if the tables exist.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r == nil || r.Handler == nil {
		http.Error(w, errNoReceiver.Error(), http.StatusInternalServerError)
		return
	}
	r.Handler.ServeHTTP(w, req)
	if !r.started.Load() && time.Since(r.created) > patienceForRun {
		r.Store.warn("sqlstore: deliveries are stored and not applied: call Receiver.Run")
	}
}

// patienceForRun is how long a program may take to call Run.
const patienceForRun = 10 * time.Second

var (
	errNoReceiver = errors.New("sqlstore: the Receiver is nil or its zero value: create it with NewReceiver")
	errRunning    = errors.New("sqlstore: Receiver.Run was called before")
)

// Run creates or updates the tables. Then it applies, reacts and reads back until ctx is done or
// Shutdown is called. It returns the error of ctx, nil after Shutdown, or a permanent error: a
// database that is read-only, too old, of another dialect or encoding, or rejects the user; tables
// that are missing or of a newer version; a key that the service has rejected for a minute; 100
// calls of functions that do not return. Other failures are written to the log, at once and then
// ever less often, while Run goes on.
//
// Before it returns, deliveries get a 503, those in flight are stored, and calls in flight have 5 s
// to end. What is left is done after the next start.
func (r *Receiver) Run(ctx context.Context) error {
	switch {
	case r == nil || r.Store == nil || r.ended == nil:
		return errNoReceiver
	case ctx == nil:
		return r.Store.usable(ctx)
	case !r.started.CompareAndSwap(false, true):
		return errRunning
	}
	defer close(r.ended)
	running, stop := context.WithCancel(ctx) // ends with ctx or Shutdown
	defer stop()
	go func() {
		select {
		case <-r.ending:
			stop()
		case <-running.Done():
		}
	}()
	err := r.start(running)
	if err == nil {
		err = r.runParts(running)
	}
	r.closeHandler(ctx)
	if ctx.Err() != nil || running.Err() != nil {
		return ctx.Err()
	}
	r.Store.logEnd(ctx, "the Receiver", err)
	return err
}

// runParts runs all parts until ctx is done or one of them fails, and returns why it has failed.
func (r *Receiver) runParts(ctx context.Context) error {
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	// Asking the service once shows a key or a base URL that is wrong, although nothing may be due.
	ask := func(ctx context.Context) error { _, err := r.ask(ctx); return err }
	parts := []func(context.Context) error{r.Worker.run, r.Reconciler.run, ask}
	if r.Reactor != nil {
		parts = append(parts, r.Reactor.run)
	}
	var all sync.WaitGroup
	for _, run := range parts {
		all.Go(func() {
			if err := run(running); err != nil {
				stop(err)
			}
		})
	}
	select {
	case <-ctx.Done():
	case <-running.Done():
	}
	r.closeHandler(ctx) // first: what it acknowledges is stored, whether or not a Worker runs
	err := context.Cause(running)
	stop(nil)
	all.Wait()
	return err
}

// closeHandler makes the handler reject deliveries, which the sender repeats, and waits for those
// in flight.
func (r *Receiver) closeHandler(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = r.Handler.Shutdown(ctx) // those that are late are repeated, too
}

// Shutdown ends Run as stated there, and waits until it has returned. If ctx ends first, it returns
// the error of ctx, and Run ends later. Shut down the [http.Server] before, and close the database
// afterwards. A Receiver cannot be used again.
func (r *Receiver) Shutdown(ctx context.Context) error {
	switch {
	case r == nil || r.Store == nil || r.ended == nil:
		return errNoReceiver
	case ctx == nil:
		return r.Store.usable(ctx)
	case r.started.CompareAndSwap(false, true): // Run was not called
		close(r.ended)
	}
	r.end.Do(func() { close(r.ending) })
	if err := r.Handler.Shutdown(ctx); err != nil {
		return err
	}
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sqlstore: calls are still in flight: %w", ctx.Err())
	}
}

// errOtherFunctions keeps a reaction that another process has queued for a function that this one
// does not have.
var errOtherFunctions = errors.New("sqlstore: ReceiverOptions has no function for this kind of change")

// react calls the function for a reaction.
func (r *Receiver) react(ctx context.Context, reaction Reaction) error {
	function := map[ReactionKind]func(context.Context, Reaction) error{
		ReactTransition: r.options.OnTransition, ReactSummary: r.options.OnSummary, ReactSamples: r.options.OnSamples,
	}[reaction.Kind]
	switch {
	case reaction.Kind == ReactResults && r.options.OnResults != nil:
		return r.reactToResults(ctx, orderKey{reaction.UserID, reaction.OrderID})
	case function == nil:
		r.Store.warn(otherReactions, slog.Any("this", r.Store.selected()), slog.Any("other", []ReactionKind{reaction.Kind}))
		return errOtherFunctions
	}
	return function(ctx, reaction)
}

// reactToResults calls OnResults with the latest results, and with their key: reactions to results
// that were replaced meanwhile are repetitions.
func (r *Receiver) reactToResults(ctx context.Context, of orderKey) error {
	slot := []int64{int64(Slot(of.user))}
	order, ok, err := r.Store.latestOrder(ctx, of, slot)
	if err != nil || !ok { // it was deleted
		return err
	}
	key, results, err := r.Store.latestResults(ctx, of, slot)
	if err != nil || results == nil {
		return err
	}
	if results.Metadata.Status == labhealth.ResultsStatusPartial && !r.options.PartialResults {
		return nil // the final ones are a change of their own
	}
	return r.options.OnResults(ctx, StoredResults{Key: key, Order: order, Results: results})
}
