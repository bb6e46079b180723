package main

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// adminHandler is for operators, not for the public. /healthz reports that the process is alive.
// /readyz/receive reports whether deliveries can be stored, for a load balancer, and /readyz/work
// whether they are applied. /readyz reports both. They fail when ctx is done, so that a process
// that is stopping gets no new deliveries.
func (p *pipeline) adminHandler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.metrics.handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	for path, checks := range map[string][]func(context.Context) string{
		"/readyz":         {p.cannotReceive, p.cannotWork},
		"/readyz/receive": {p.cannotReceive},
		"/readyz/work":    {p.cannotWork},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			check, cancel := context.WithTimeout(r.Context(), 2*time.Second)
			defer cancel()
			problem := ""
			if ctx.Err() != nil {
				problem = "stopping"
			}
			for _, find := range checks {
				if problem == "" {
					problem = find(check)
				}
			}
			if problem != "" {
				http.Error(w, problem, http.StatusServiceUnavailable)
				return
			}
			w.Write([]byte("ready\n"))
		})
	}
	return mux
}

// cannotReceive returns why deliveries cannot be stored; empty if they can. With a broker, it does
// not depend on the database.
func (p *pipeline) cannotReceive(ctx context.Context) string {
	if !p.receives() {
		return ""
	}
	find := p.databaseProblem
	if p.broker != nil {
		find = p.broker.problem
	}
	if problem := find(ctx); problem != "" {
		return problem
	}
	return p.receipts.problem()
}

// cannotWork returns why deliveries are not applied; empty if they are, or if there are none.
func (p *pipeline) cannotWork(ctx context.Context) string {
	if !p.works() {
		return ""
	}
	if problem := p.databaseProblem(ctx); problem != "" {
		return problem
	}
	if p.broker != nil {
		if err := p.broker.check(ctx); err != nil {
			return brokerProblem(err)
		}
		if err := p.broker.partitioned(); err != nil {
			return err.Error()
		}
	}
	if problem := p.progress.stalled(p.settings.stalled); problem != "" {
		return problem
	}
	if p.broker != nil {
		waiting, removed := p.state.counts()
		if problem := p.drain.stalled(waiting, removed, p.settings.stalled); problem != "" {
			return problem
		}
	}
	problem := p.inbox.stalled(p.settings.stalled)
	if problem == "" {
		return ""
	}
	// Another process may have applied what failed here.
	if backlog, err := p.store.Backlog(ctx); err == nil && backlog.Waiting == 0 {
		p.inbox.idle()
		return ""
	}
	return problem
}

// databaseProblem returns why the database cannot be used; empty if it seems that it can.
func (p *pipeline) databaseProblem(ctx context.Context) string {
	if p.db.PingContext(ctx) != nil {
		return "the database is unavailable"
	}
	if p.postgres == "" {
		return ""
	}
	var readOnly string
	switch err := p.db.QueryRowContext(ctx, "show transaction_read_only").Scan(&readOnly); {
	case err != nil:
		return "the database is unavailable"
	case readOnly == "on":
		return "the database is read-only"
	}
	return ""
}

// problem returns why the broker does not store deliveries; empty if it seems that it does.
func (b *broker) problem(ctx context.Context) string {
	if err := b.admit(ctx); err != nil {
		return brokerProblem(err)
	}
	stream, err := b.find(ctx)
	if err != nil {
		return brokerProblem(err)
	}
	info := stream.CachedInfo()
	if isFull(info.State.Bytes, info.Config.MaxBytes) || isFull(info.State.Msgs, info.Config.MaxMsgs) {
		return "the stream is full"
	}
	return ""
}

// isFull reports whether less than a hundredth of a limit is left.
func isFull(used uint64, limit int64) bool { return float64(used) > 0.99*limitOf(limit) }

// limitOf returns a limit of the broker, of which -1 and 0 mean that there is none.
func limitOf(limit int64) float64 {
	if limit <= 0 {
		return math.Inf(1)
	}
	return float64(limit)
}

// receipts records whether deliveries can be stored.
type receipts struct {
	mu       sync.Mutex
	rejected time.Time // the last delivery that could not be stored, after which none was
	cause    string
}

// retryTime is how long a receiver is not ready after it could not store a delivery. Then a load
// balancer may try again: without deliveries, it cannot find out.
const retryTime = 15 * time.Second

func (r *receipts) set(cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejected, r.cause = time.Now(), cause
	if cause == "" {
		r.rejected = time.Time{}
	}
}

func (r *receipts) problem() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == "" || time.Since(r.rejected) > retryTime {
		return ""
	}
	return "a delivery was not stored: " + r.cause
}

// causeKey is the context key of the cause of a delivery that was not stored, an
// *atomic.Pointer[string].
type causeKey struct{}

func withCause(ctx context.Context, _ *http.Request) context.Context {
	return context.WithValue(ctx, causeKey{}, new(atomic.Pointer[string]))
}

// recorded returns a store function that records the cause of its errors.
func (p *pipeline) recorded(store func(context.Context, webhooks.RawDelivery) error) func(context.Context, webhooks.RawDelivery) error {
	return func(ctx context.Context, d webhooks.RawDelivery) error {
		err := store(ctx, d)
		cause := causeOf(err)
		if cause != causeTooLarge { // the others can be stored
			p.receipts.set(cause)
		}
		if recorded, ok := ctx.Value(causeKey{}).(*atomic.Pointer[string]); ok {
			recorded.Store(&cause)
		}
		return err
	}
}

const causeTooLarge = "it is larger than max_payload of the broker"

// causeOf returns a phrase for an error of the store function, without data of the delivery.
func causeOf(err error) string {
	var store *sqlstore.Error
	var api *jetstream.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &store):
		return store.Error()
	case errors.Is(err, nats.ErrMaxPayload):
		return causeTooLarge
	case errors.As(err, &api):
		return "the broker rejected it, for example because the stream is full (error " + strconv.Itoa(int(api.ErrorCode)) + ")"
	case errors.Is(err, context.DeadlineExceeded):
		return "the broker did not respond in time"
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return "the broker has no stream"
	}
	return brokerProblem(err)
}

// logRefused logs deliveries that get no 2xx, and why. An outage has one record for many.
func (p *pipeline) logRefused(ctx context.Context, r webhooks.DeliveryResult) {
	if r.Late || r.StatusCode >= 200 && r.StatusCode <= 299 {
		return
	}
	cause := string(r.Reason)
	if recorded, ok := ctx.Value(causeKey{}).(*atomic.Pointer[string]); ok {
		if text := recorded.Load(); text != nil && *text != "" {
			cause += ": " + *text
		}
	}
	p.quiet.warn("a delivery was refused", cause, "delivery_id", r.DeliveryID, "status", r.StatusCode, "reason", string(r.Reason))
}
