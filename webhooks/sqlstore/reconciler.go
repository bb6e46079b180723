package sqlstore

import (
	"context"
	"time"

	labhealth "github.com/labhealth/labhealth-go"
)

// Reconciler reads from the API what may have been lost, and applies it as if it had been delivered.
type Reconciler struct {
	Store  *Store
	Client *labhealth.Client
}

// Reconciled counts what a [Reconciler] has read and found.
type Reconciled struct {
	Requests int // requests to the service
}

// Run reconciles until ctx is done, and returns the error of ctx.
func (r *Reconciler) Run(ctx context.Context) error { return nil }

// Since reads everything that has changed at the service since a time, once.
func (r *Reconciler) Since(ctx context.Context, since time.Time) (Reconciled, error) {
	return Reconciled{}, nil
}
