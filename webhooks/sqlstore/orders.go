package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// StoredOrder is the latest state of an order. It holds patient data. Printed or logged, it shows
// the IDs and the status.
type StoredOrder struct {
	Order *labhealth.Order // the latest version, which the caller owns
	// UserID is the service's ID of the user; zero if no version names one.
	UserID uuid.UUID
	Status labhealth.OrderStatus // the current status; empty if unknown
	Since  time.Time             // when the order reached Status, by the service's clock; zero if unknown
	// Results says which results there are. See [Store.OrderResults].
	Results ResultsState
	// ChangedAt is when the stored state last changed, by the clock of the process that changed it.
	ChangedAt time.Time
	// MissingSince is when a [Reconciler] found that the service does not have the order anymore;
	// zero if it has.
	MissingSince time.Time
}

// ResultsState says which results of an order there are.
type ResultsState string

// The values of [ResultsState].
const (
	ResultsNone      ResultsState = "none"
	ResultsPartial   ResultsState = "partial"
	ResultsFinal     ResultsState = "final"
	ResultsCorrected ResultsState = "corrected"
)

// Transition is an entry in the timeline of an order: a status that the order reached.
type Transition struct {
	OrderID uuid.UUID
	// ID is the service's ID of the entry or, if it has none, made from its status and time. It is
	// unique within the order.
	ID     string
	At     time.Time                   // when the order reached Status, by the service's clock
	Status labhealth.OrderStatus       // the status that the order reached
	Detail labhealth.OrderStatusDetail // empty if there is none
}

// OrderFilter selects orders. Zero fields select all.
type OrderFilter struct {
	UserID        uuid.UUID
	TransactionID uuid.UUID               // an order with its redraws and recreations
	Status        []labhealth.OrderStatus // one of these is the current status
	Results       []ResultsState
	ChangedSince  time.Time // compared with StoredOrder.ChangedAt
}

// Order returns the latest state of an order; ok is false if none is stored.
func (s *Store) Order(ctx context.Context, orderID uuid.UUID) (order StoredOrder, ok bool, err error) {
	return StoredOrder{}, false, nil
}

// Orders iterates over orders. It holds neither a transaction nor a connection between elements. It
// stops after an error.
func (s *Store) Orders(ctx context.Context, filter OrderFilter) iter.Seq2[StoredOrder, error] {
	return func(func(StoredOrder, error) bool) {}
}

// Timeline returns every status that an order has reached, each once, in the order of time.
func (s *Store) Timeline(ctx context.Context, orderID uuid.UUID) ([]Transition, error) {
	return nil, nil
}

// OrderResults returns the latest stored results of an order; ok is false if none are stored.
func (s *Store) OrderResults(ctx context.Context, orderID uuid.UUID) (results *labhealth.OrderResults, ok bool, err error) {
	return nil, false, nil
}

// ApplyResults stores the results of an order that were read at a time, unless newer ones are
// stored. It reports whether the stored results changed.
func (s *Store) ApplyResults(ctx context.Context, order *labhealth.Order, results *labhealth.OrderResults, readAt time.Time) (changed bool, err error) {
	return false, nil
}

// applyOrders writes the orders of a batch, whose users are locked, and adds the new entries of
// their timelines to b.transitions.
func (s *Store) applyOrders(ctx context.Context, tx *sql.Tx, b *batch, applied []Applied) error {
	return nil
}
