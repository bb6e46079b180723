package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/newest"
)

// StoredOrder is the latest state of an order. It holds patient data. Printed or logged, it shows
// the IDs and the status.
type StoredOrder struct {
	Order *labhealth.Order // the latest version, which the caller owns
	// UserID is the service's ID of the user; zero if no version names one.
	UserID uuid.UUID
	Status labhealth.OrderStatus // the current status; empty if unknown
	Since  time.Time             // when the order reached Status, by the service's clock; zero if unknown
	// Results says which results the service has, by the status. They are stored when a
	// [Reconciler] has read them: see [Store.OrderResults].
	Results ResultsState
	// ParentID is the order that this one redraws or recreates; zero if there is none or it is
	// unknown. Order.Origin says which, and Order.OrderTransaction names all orders of the chain.
	ParentID uuid.UUID
	// ChangedAt is when the stored state last changed, by the clock of the process that changed it.
	ChangedAt time.Time
	// MissingSince is when a [Reconciler] found that the service does not have the order anymore;
	// zero if it has. A later read of a Reconciler, and an event that is newer than the stored
	// version by the service's clock, show that it has.
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
	OrderID uuid.UUID // the order
	// ID is the service's ID of the entry or, if it has none, made from its status and time. It is
	// unique within the order.
	ID     string
	At     time.Time                   // when the order reached Status, by the service's clock
	Status labhealth.OrderStatus       // the status that the order reached
	Detail labhealth.OrderStatusDetail // empty if there is none
}

// OrderFilter selects orders. Zero fields select all.
type OrderFilter struct {
	UserID        uuid.UUID               // orders of one user
	TransactionID uuid.UUID               // an order with its redraws and recreations
	Status        []labhealth.OrderStatus // one of these is the current status
	Results       []ResultsState          // one of these is the state of the results
	ChangedSince  time.Time               // compared with StoredOrder.ChangedAt
}

// Order returns the latest state of an order; ok is false if none is stored.
func (s *Store) Order(ctx context.Context, orderID uuid.UUID) (order StoredOrder, ok bool, err error) {
	if err := s.usable(ctx); err != nil {
		return StoredOrder{}, false, err
	}
	err = query(ctx, s.db, func(rows *sql.Rows) (err error) {
		ok = true
		order, _, err = scanStoredOrder(rows)
		return err
	}, s.dialect.bind(`SELECT `+orderColumns+`, o.text FROM labhealth_orders AS o WHERE o.order_id = ?`), orderID.String())
	if err != nil {
		return StoredOrder{}, false, s.failed(ctx, "order", err)
	}
	return order, ok, nil
}

func scanStoredOrder(rows *sql.Rows) (StoredOrder, *orderRow, error) {
	r := new(orderRow)
	if err := scanOrder(rows, r, &r.document); err != nil {
		return StoredOrder{}, r, err
	}
	o := decodeOrder(r.document)
	o.ID = r.id
	return StoredOrder{
		Order: o, UserID: r.user, Status: labhealth.OrderStatus(r.status), Since: timeOf(r.since), Results: r.results,
		ParentID: r.parent, ChangedAt: timeOf(r.changed), MissingSince: timeOf(r.missing),
	}, r, nil
}

// orderPageSize is the number of orders that are read at a time. Each can have many kilobytes.
const orderPageSize = 200

// orderCursor is the last order of a page.
type orderCursor struct {
	changed int64
	id      uuid.UUID
}

// Orders iterates over orders, by their IDs or, if the filter has a ChangedSince, in the order in
// which they changed: one that changes meanwhile may be returned again. It holds neither a
// transaction nor a connection between elements. It stops after an error.
func (s *Store) Orders(ctx context.Context, filter OrderFilter) iter.Seq2[StoredOrder, error] {
	where, args := filter.where()
	order := `o.order_id`
	if !filter.ChangedSince.IsZero() {
		order = `o.changed, o.order_id`
	}
	first := orderCursor{changed: math.MinInt64}
	if !filter.ChangedSince.IsZero() {
		first.changed = newest.ClampUnixNano(filter.ChangedSince)
	}
	return pages(orderPageSize, first, func(last orderCursor) (page []StoredOrder, _ orderCursor, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, last, err
		}
		after, key := `o.order_id > ?`, []any{last.id.String()}
		if !filter.ChangedSince.IsZero() {
			after, key = `o.changed >= ? AND (o.changed > ? OR o.order_id > ?)`, []any{last.changed, last.changed, last.id.String()}
		}
		err = query(ctx, s.db, func(rows *sql.Rows) error {
			stored, row, err := scanStoredOrder(rows)
			page, last = append(page, stored), orderCursor{row.changed, row.id}
			return err
		}, s.dialect.bind(`SELECT `+orderColumns+`, o.text FROM labhealth_orders AS o WHERE `+after+where+` ORDER BY `+order+` LIMIT ?`),
			slices.Concat(key, args, []any{orderPageSize})...)
		return page, last, s.failed(ctx, "orders", err)
	})
}

// where returns the conditions of a filter.
func (f *OrderFilter) where() (conditions string, args []any) {
	if f.UserID != uuid.Nil {
		conditions, args = ` AND o.user_id = ?`, append(args, f.UserID.String())
	}
	if f.TransactionID != uuid.Nil {
		conditions, args = conditions+` AND o.transaction_id = ?`, append(args, f.TransactionID.String())
	}
	if len(f.Status) > 0 {
		conditions += ` AND o.status IN (?` + strings.Repeat(", ?", len(f.Status)-1) + `)`
		for _, status := range f.Status {
			args = append(args, escape(string(status)))
		}
	}
	if len(f.Results) > 0 {
		conditions += ` AND o.results IN (?` + strings.Repeat(", ?", len(f.Results)-1) + `)`
		for _, state := range f.Results {
			args = append(args, string(state))
		}
	}
	return conditions, args
}

// Timeline returns every status that an order has reached, each once, in the order of time.
func (s *Store) Timeline(ctx context.Context, orderID uuid.UUID) ([]Transition, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	all := []Transition{}
	err := query(ctx, s.db, func(rows *sql.Rows) error {
		t, err := scanTransition(rows, orderID)
		all = append(all, t)
		return err
	}, s.dialect.bind(`SELECT id, at, status, detail FROM labhealth_order_events WHERE order_id = ?`), orderID.String())
	if err != nil {
		return nil, s.failed(ctx, "timeline", err)
	}
	slices.SortFunc(all, compareTransitions)
	return all, nil
}

// scanTransition scans the columns of labhealth_order_events except order_id, after others.
func scanTransition(rows *sql.Rows, orderID uuid.UUID, more ...any) (Transition, error) {
	var id, status, detail string
	var at int64
	if err := rows.Scan(append(more, &id, &at, &status, &detail)...); err != nil {
		return Transition{}, err
	}
	return newTransition(orderID, id, at, status, detail), nil
}

func newTransition(orderID uuid.UUID, id string, at int64, status, detail string) Transition {
	return Transition{OrderID: orderID, ID: unescape(id), At: timeOf(at), Status: labhealth.OrderStatus(unescape(status)),
		Detail: labhealth.OrderStatusDetail(unescape(detail))}
}

// OrderResults returns the latest stored results of an order; ok is false if none are stored.
func (s *Store) OrderResults(ctx context.Context, orderID uuid.UUID) (results *labhealth.OrderResults, ok bool, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, false, err
	}
	var document string
	err = s.db.QueryRowContext(ctx, s.dialect.bind(`SELECT text FROM labhealth_order_results WHERE order_id = ?`), orderID.String()).Scan(&document)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, s.failed(ctx, "order results", err)
	}
	results = new(labhealth.OrderResults)
	if results.UnmarshalJSON([]byte(document)) != nil { // not written by this package
		results = new(labhealth.OrderResults)
	}
	return results, true, nil
}

// resultsChange says that the stored results of an order have changed.
type resultsChange struct {
	orderID, userID uuid.UUID
	revision        int64
	digest          []byte // of the document
}

const (
	errNoOrder   = permanentError("sqlstore: ApplyResults needs an order with an ID")
	errNoResults = permanentError("sqlstore: ApplyResults needs results that can be encoded as JSON")
)

// ApplyResults stores the results of an order that were read at a time, just before the request,
// unless newer ones are stored. It reports whether the stored results changed. The order need not
// be stored: its results are then, and [StoredOrder.Results] follows when it is. The error matches
// [webhooks.ErrPermanent] if order or results are missing or cannot be encoded; otherwise it is an
// [*Error], after which nothing is stored.
func (s *Store) ApplyResults(ctx context.Context, order *labhealth.Order, results *labhealth.OrderResults, readAt time.Time) (changed bool, err error) {
	return s.storeResults(ctx, order, results, readAt, false)
}

func (s *Store) storeResults(ctx context.Context, order *labhealth.Order, results *labhealth.OrderResults, readAt time.Time, needsOrder bool) (changed bool, err error) {
	if order == nil || order.ID == uuid.Nil {
		return false, errNoOrder
	}
	if results == nil {
		return false, errNoResults
	}
	document, err := results.MarshalJSON()
	if err != nil {
		return false, errNoResults
	}
	r := receivedResults{
		orderID: order.ID, userID: order.UserID, version: newest.ClampUnixNano(readAt), status: results.Metadata.Status, document: string(document), needsOrder: needsOrder,
	}
	err = s.transact(ctx, "apply results", func(tx *sql.Tx) (err error) {
		changed, err = s.applyResults(ctx, tx, r)
		return err
	})
	if err != nil {
		return false, err
	}
	if changed {
		s.wakeReactor()
	}
	return changed, nil
}
