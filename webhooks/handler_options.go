// The options of a handler.

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// HandlerOption configures a [Handler]. [NewHandler] and [NewRawHandler] return an error for an
// option with an invalid value.
type HandlerOption func(*Handler) error

// WithBodyLimit limits the size of a body, in bytes. The default is 16 MiB.
func WithBodyLimit(n int64) HandlerOption {
	return func(h *Handler) error {
		if n <= 0 {
			return errors.New("WithBodyLimit must be positive")
		}
		h.maxBody = n
		return nil
	}
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
	return func(h *Handler) error {
		if n <= 0 {
			return errors.New("WithInFlightLimit must be positive")
		}
		h.maxBytes = n
		return nil
	}
}

// WithDeadline sets the time from the arrival of a request to its response. It covers reading the
// body and the call of your function. The default is 10 s; it must be below the 15 s that the
// sender waits. While the body is read, it replaces the server's ReadTimeout.
func WithDeadline(d time.Duration) HandlerOption {
	return func(h *Handler) error {
		if d <= 0 || d >= senderTimeout {
			return fmt.Errorf("WithDeadline must be above 0 and below the %s that the sender waits", senderTimeout)
		}
		h.timeout = d
		return nil
	}
}

// WithDeadLetter sets the function for bodies that cannot be applied: verified bodies that [Parse]
// cannot read, and events for which your function returns an error that matches [ErrPermanent]. By
// returning nil, f acknowledges the delivery. It may keep the body. Without a dead-letter function
// the response is 400 for an unreadable body and 503 for a permanent failure.
func WithDeadLetter(f func(ctx context.Context, body []byte) error) HandlerOption {
	return func(h *Handler) error {
		if f == nil {
			return errors.New("WithDeadLetter needs a function")
		}
		h.deadLetter = f
		return nil
	}
}

// WithDeduplicator sets the store of delivery IDs, for example one that several processes share.
func WithDeduplicator(d Deduplicator) HandlerOption {
	return func(h *Handler) error {
		if d == nil {
			return errors.New("WithDeduplicator needs a Deduplicator")
		}
		h.deduplicator = d
		return nil
	}
}

// WithDuplicateWindow limits the number and the age of the IDs that a handler keeps without
// [WithDeduplicator]. Once the number is reached, a new ID replaces the oldest one. The default is
// 72 hours and 1,000,000 IDs, which use 65 to 95 MB. While its ID is kept, an event that a person
// sends again is not processed: see [Handler].
func WithDuplicateWindow(ids int, age time.Duration) HandlerOption {
	return func(h *Handler) error {
		if ids <= 0 || age <= 0 {
			return errors.New("WithDuplicateWindow must be positive")
		}
		h.maxIDs, h.maxAge = ids, age
		return nil
	}
}

// WithDeliveryContext calls f with each request, before it is verified. The context that f returns
// is that of your function and of the observers, and must be derived from ctx, the context of the
// request. Together with [WithObserver] it traces deliveries. f must not read the body or change
// the request. The option may be given more than once. A panic of f is recovered.
func WithDeliveryContext(f func(ctx context.Context, r *http.Request) context.Context) HandlerOption {
	return func(h *Handler) error {
		if f == nil {
			return errors.New("WithDeliveryContext needs a function")
		}
		h.contexts = append(h.contexts, f)
		return nil
	}
}

// WithObserver calls f after each response, in the goroutine of the request or of the late call.
// The option may be given more than once. A panic of f is recovered.
func WithObserver(f func(context.Context, DeliveryResult)) HandlerOption {
	return func(h *Handler) error {
		if f == nil {
			return errors.New("WithObserver needs a function")
		}
		h.observers = append(h.observers, f)
		return nil
	}
}

// WithLogger logs each delivery to l, instead of warnings to [slog.Default]: 2xx responses at debug
// level, [ReasonPermanent] at error level, and everything else, also dead letters, at warning
// level. The record holds only the fields of [DeliveryResult], with the type as [Event.LogValue]
// shows it.
func WithLogger(l *slog.Logger) HandlerOption {
	if l == nil {
		return func(*Handler) error { return errors.New("WithLogger needs a logger") }
	}
	observe := WithObserver(func(ctx context.Context, r DeliveryResult) {
		l.LogAttrs(ctx, r.level(), "webhook delivery",
			slog.String("delivery_id", r.DeliveryID), slog.String("type", string(printable(r.Type))),
			slog.Int("status", r.StatusCode), slog.String("reason", string(r.Reason)),
			slog.Bool("duplicate", r.Duplicate), slog.Bool("late", r.Late), slog.String("panic", r.Panic),
			slog.Time("received_at", r.ReceivedAt), slog.Duration("duration", r.Duration))
	})
	return func(h *Handler) error {
		h.warnings = nil
		return observe(h)
	}
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
	return func(h *Handler) error {
		if now == nil {
			return errors.New("WithClock needs a clock")
		}
		h.now = now
		return nil
	}
}
