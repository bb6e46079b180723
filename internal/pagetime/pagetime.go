// Package pagetime passes the time at which an iterator requested a page from the client to package
// webhooks.
package pagetime

import (
	"context"
	"time"
)

type key struct{}

// Store returns a context for an iterator over pages, which stores the time just before the request
// of a page in requested before it returns the first element of the page. ctx may be nil.
func Store(ctx context.Context, requested *time.Time) context.Context {
	if ctx == nil {
		return nil
	}
	return context.WithValue(ctx, key{}, requested)
}

// Set stores the time in the variable that was passed to Store, if any. ctx may be nil.
func Set(ctx context.Context, requested time.Time) {
	if ctx == nil {
		return
	}
	if t, ok := ctx.Value(key{}).(*time.Time); ok {
		*t = requested
	}
}
