package labhealth

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Attempt describes one attempt of a call to an observer. It holds no URL, key or patient data.
type Attempt struct {
	Op         string        // the operation, such as "POST /v3/order/import"
	Number     int           // 1 for the first attempt
	StatusCode int           // 0 without a response
	Duration   time.Duration // until the response was read
	RequestID  string        // the service's ID of the request; empty if it sent none
	Outcome    Outcome       // of the call so far
}

// WithObserver calls f after each attempt, in the goroutine of the call. It may be given more than
// once.
func WithObserver(f func(context.Context, Attempt)) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("WithObserver needs a function")
		}
		c.core.observers = append(c.core.observers, f)
		return nil
	}
}

// WithLogger logs each attempt: at debug level if the response is 2xx, as a warning otherwise. The
// record holds the fields of [Attempt] and nothing else.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		return func(*config) error { return errors.New("WithLogger needs a logger") }
	}
	return WithObserver(func(ctx context.Context, a Attempt) {
		level := slog.LevelWarn
		if a.StatusCode >= 200 && a.StatusCode <= 299 {
			level = slog.LevelDebug
		}
		l.LogAttrs(ctx, level, "labhealth request",
			slog.String("op", a.Op), slog.Int("attempt", a.Number), slog.Int("status", a.StatusCode),
			slog.Duration("duration", a.Duration), slog.String("request_id", a.RequestID),
			slog.String("outcome", a.Outcome.String()))
	})
}

// operationKey is the context key of the operation of a request.
type operationKey struct{}

// Operation returns the operation of a request of this package from the context of its
// [http.Request], such as "PATCH /v3/order/{order_id}". It is empty for other requests. A transport
// passed to [WithHTTPClient] names spans and metrics with it, because the path of the URL contains
// the IDs of orders and users.
func Operation(ctx context.Context) string {
	op, _ := ctx.Value(operationKey{}).(string)
	return op
}
