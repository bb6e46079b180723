// The options of a handler.

package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// HandlerOption configures a [Handler]. [NewHandler] and [NewRawHandler] return an error for an
// option with an invalid value.
type HandlerOption func(*Handler) error

// option returns an option that sets a value, or returns an error if the value is invalid.
func option(valid bool, problem string, set func(*Handler)) HandlerOption {
	return func(h *Handler) error {
		if !valid {
			return errors.New(problem)
		}
		set(h)
		return nil
	}
}

// WithBodyLimit limits the size of a body, in bytes. The default is 16 MiB.
func WithBodyLimit(n int64) HandlerOption {
	return option(n > 0, "WithBodyLimit must be positive", func(h *Handler) { h.maxBody = n })
}

// WithInFlightLimit limits the memory of all bodies that the handler holds, in bytes: bodies being
// received, and bodies passed to your function, until it returns. Deliveries that exceed the limit
// wait, within their deadline, and then get a 503. The minimum is four times the limit of
// [WithBodyLimit]. The default is 256 MiB, or the minimum if that is more. A quarter is reserved
// for bodies of up to 64 KiB, so that large bodies do not block them.
//
// An event that is being applied takes up to three times the size of its body, besides the body.
// Each connection takes about 20 kB: limit their number in the server or a proxy.
func WithInFlightLimit(n int64) HandlerOption {
	return option(n > 0, "WithInFlightLimit must be positive", func(h *Handler) { h.maxBytes = n })
}

// WithDeadline sets the time from the arrival of a request to its response. It covers reading the
// body and the call of your function. The default is 10 s; it must be below the 15 s that the
// sender waits. While the body is read, it replaces the server's ReadTimeout.
func WithDeadline(d time.Duration) HandlerOption {
	return option(d > 0 && d < senderTimeout, "WithDeadline must be above 0 and below the "+senderTimeout.String()+" that the sender waits",
		func(h *Handler) { h.timeout = d })
}

// WithDeadLetter sets the function for bodies that cannot be applied: verified bodies that [Parse]
// cannot read, and events for which your function returns an error that matches [ErrPermanent]. By
// returning nil, f acknowledges the delivery. It may keep the body. Without a dead-letter function
// the response is 400 for an unreadable body and 503 for a permanent failure.
func WithDeadLetter(f func(ctx context.Context, body []byte) error) HandlerOption {
	return option(f != nil, "WithDeadLetter needs a function", func(h *Handler) { h.deadLetter = f })
}

// WithDeduplicator sets the store of delivery IDs, for example one that several processes share.
func WithDeduplicator(d Deduplicator) HandlerOption {
	return option(d != nil, "WithDeduplicator needs a Deduplicator", func(h *Handler) { h.deduplicator = d })
}

// WithDuplicateWindow limits the number and the age of the IDs that a handler keeps without
// [WithDeduplicator]. Once the number is reached, a new ID replaces the oldest one. The default is
// 72 hours and 1,000,000 IDs, which use 65 to 95 MB. While its ID is kept, an event that a person
// sends again is not processed: see [Handler].
func WithDuplicateWindow(ids int, age time.Duration) HandlerOption {
	return option(ids > 0 && age > 0, "WithDuplicateWindow must be positive", func(h *Handler) { h.maxIDs, h.maxAge = ids, age })
}

// WithDeliveryContext calls f with each request, before it is verified. The context that f returns
// is that of your function and of the observers, and must be derived from ctx, the context of the
// request. Together with [WithObserver] it traces deliveries. f must not read the body or change
// the request. The option may be given more than once. A panic of f is recovered.
func WithDeliveryContext(f func(ctx context.Context, r *http.Request) context.Context) HandlerOption {
	return option(f != nil, "WithDeliveryContext needs a function", func(h *Handler) { h.contexts = append(h.contexts, f) })
}

// WithObserver calls f after each response, in the goroutine of the request or of the late call.
// The option may be given more than once. A panic of f is recovered.
func WithObserver(f func(context.Context, DeliveryResult)) HandlerOption {
	return option(f != nil, "WithObserver needs a function", func(h *Handler) { h.observers = append(h.observers, f) })
}

// WithLogger logs each delivery to l, instead of warnings to [slog.Default]: 2xx responses at debug
// level, [ReasonPermanent] at error level, and everything else, also dead letters, at warning
// level. The record holds only the fields of [DeliveryResult], with the type as [Event.LogValue]
// shows it.
func WithLogger(l *slog.Logger) HandlerOption {
	observe := func(ctx context.Context, r DeliveryResult) {
		l.LogAttrs(ctx, r.level(), "webhook delivery",
			slog.String("delivery_id", r.DeliveryID), slog.String("type", string(printable(r.Type))),
			slog.Int("status", r.StatusCode), slog.String("reason", string(r.Reason)),
			slog.Bool("duplicate", r.Duplicate), slog.Bool("late", r.Late), slog.String("panic", r.Panic),
			slog.Time("received_at", r.ReceivedAt), slog.Duration("duration", r.Duration))
	}
	return option(l != nil, "WithLogger needs a logger", func(h *Handler) {
		h.warnings, h.observers = nil, append(h.observers, observe)
	})
}

// WithWarnings writes warnings to l instead of [slog.Default]. nil means slog.Default.
func WithWarnings(l *slog.Logger) HandlerOption {
	return func(h *Handler) error {
		h.logger = l
		return nil
	}
}

// level returns the level at which [WithLogger] logs the result.
func (r DeliveryResult) level() slog.Level {
	switch {
	case r.Reason == ReasonPermanent:
		return slog.LevelError
	case r.Reason != ReasonDeadLettered && r.StatusCode >= 200 && r.StatusCode <= 299:
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// WithClock sets the clock for the arrival of deliveries, the check of their timestamps and the age
// of stored IDs. It is for tests whose sender has its own clock (labhealthtest.WithClock). The
// default is [time.Now]. Deadlines always use the system clock.
func WithClock(now func() time.Time) HandlerOption {
	return option(now != nil, "WithClock needs a clock", func(h *Handler) { h.now = now })
}
