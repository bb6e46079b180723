package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// ReactionKind is the kind of a [Reaction].
type ReactionKind string

// The kinds of reactions.
const (
	ReactTransition ReactionKind = "transition" // an order reached a status
	ReactResults    ReactionKind = "results"    // the stored results of an order changed
	ReactSummary    ReactionKind = "summary"    // a summary was added or updated
	ReactSamples    ReactionKind = "samples"    // samples of a series were added or updated
)

// Reaction is a change in the store that a program reacts to. It names what has changed, and the
// program reads the current state from the store.
type Reaction struct {
	// ID is the same in every call for this reaction.
	ID     uuid.UUID
	Kind   ReactionKind
	UserID uuid.UUID
	// Transition is the status that the order reached; zero unless Kind is ReactTransition.
	Transition Transition
	OrderID    uuid.UUID           // the order of ReactTransition and ReactResults
	Summary    webhooks.SummaryKey // zero unless Kind is ReactSummary
	Series     webhooks.Series     // zero unless Kind is ReactSamples
	From, To   time.Time           // the first and the last of the samples that changed; zero unless Kind is ReactSamples
	Attempt    int                 // 1 for the first
}

// Reactor calls a function of the program for every change that the store queues.
type Reactor struct {
	Store *Store
	React func(ctx context.Context, r Reaction) error

	Parallel int           // calls at the same time; 0 means 4
	Attempts int           // failed calls after which a reaction is given up; 0 means 10
	Delay    time.Duration // wait after the first failure, doubled after each further one up to an hour; 0 means 5 s
	Timeout  time.Duration // limit of one call; 0 means 1 min
	Poll     time.Duration // interval at which to look for what other processes queued; 0 means 1 s
}

// Run calls React until ctx is done, and returns the error of ctx.
func (r *Reactor) Run(ctx context.Context) error { return nil }

// queue queues the reactions to a batch that was applied.
func (s *Store) queue(ctx context.Context, tx *sql.Tx, b *batch, applied []Applied) error { return nil }
