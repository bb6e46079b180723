// Orders: the types, the queries and ApplyResults.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
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
	UserID  uuid.UUID // the user of the order; zero if no version names one
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

// Order returns the latest state of an order; ok is false if none is stored. If versions of the
// order name different users, it is an order of each of them, and Order returns the one with the
// latest version. [Store.Orders] has all.
func (s *Store) Order(ctx context.Context, orderID uuid.UUID) (order StoredOrder, ok bool, err error) {
	if err := s.usable(ctx); err != nil {
		return StoredOrder{}, false, err
	}
	return s.latestOrder(ctx, orderKey{order: orderID}, allSlots)
}

// latestOrder returns an order of the user or, of all slots, that of the user with the latest
// version.
func (s *Store) latestOrder(ctx context.Context, of orderKey, slots []int64) (order StoredOrder, ok bool, err error) {
	var latest *orderRow
	err = s.query(ctx, s.db, func(rows *sql.Rows) error {
		stored, row, err := scanStoredOrder(rows)
		if latest == nil || cmp.Or(cmp.Compare(row.updated, latest.updated), cmp.Compare(row.version, latest.version), compareOrders(row.key(), latest.key())) > 0 {
			order, latest = stored, row
		}
		return err
	}, `SELECT `+orderColumns+`, o.text FROM labhealth_orders AS o WHERE o.slot IN {any: smallint} AND o.order_id = $1::uuid
		AND ($2::boolean OR o.user_id = $3::uuid)`, of.order.String(), len(slots) > 1, of.user.String(), anyOf(slots))
	if err != nil {
		return StoredOrder{}, false, s.failed(ctx, "order", err)
	}
	return order, latest != nil, nil
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

// Orders iterates over orders, in an order of its own or, if the filter has a ChangedSince, in the
// order in which they changed: one that changes meanwhile may be returned again. It holds neither a
// transaction nor a connection between elements. It stops after an error.
func (s *Store) Orders(ctx context.Context, filter OrderFilter) iter.Seq2[StoredOrder, error] {
	return func(yield func(StoredOrder, error) bool) {
		slots, err := s.slotsOf(ctx, &filter)
		var streams []*stream[foundOrder]
		for _, slot := range slots {
			streams = append(streams, s.orderStream(&filter, slot))
		}
		var compare func(a, b *foundOrder) int
		if !filter.ChangedSince.IsZero() {
			compare = func(a, b *foundOrder) int {
				return cmp.Or(cmp.Compare(a.row.changed, b.row.changed), compareOrders(a.row.key(), b.row.key()))
			}
		}
		for o, failure := range merged(ctx, streams, compare) {
			if err = failure; err != nil || !yield(o.StoredOrder, nil) {
				break
			}
		}
		if err != nil {
			yield(StoredOrder{}, s.failed(ctx, "orders", err))
		}
	}
}

// foundOrder is an order with its row.
type foundOrder struct {
	StoredOrder
	row *orderRow
}

func (r *orderRow) key() orderKey { return orderKey{r.user, r.id} }

// slotsOf returns the slots that may have orders of a filter.
func (s *Store) slotsOf(ctx context.Context, f *OrderFilter) ([]int64, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if f.UserID != uuid.Nil {
		return []int64{int64(Slot(f.UserID))}, nil
	}
	since := newest.ClampUnixNano(f.ChangedSince)
	where, params := f.where(2)
	if where == "" && f.ChangedSince.IsZero() {
		return allSlots, nil
	}
	return s.slotsWith(ctx, s.db, `labhealth_orders | o.slot = k.slot AND o.changed >= $1::bigint`+where, append([]any{since}, params...)...)
}

// orderStream reads the orders of a filter in a slot.
func (s *Store) orderStream(f *OrderFilter, slot int64) *stream[foundOrder] {
	after, order := ` AND (o.user_id, o.order_id) > ($2::uuid, $3::uuid)`, `o.user_id, o.order_id`
	if !f.ChangedSince.IsZero() {
		after = ` AND o.changed >= $5::bigint AND (o.changed > $5::bigint OR (o.user_id, o.order_id) > ($2::uuid, $3::uuid))`
		order = `o.changed, ` + order
	}
	return &stream[foundOrder]{size: orderPageSize, read: func(ctx context.Context, last *foundOrder) (page []foundOrder, err error) {
		key, changed := orderKey{}, newest.ClampUnixNano(f.ChangedSince)
		if last != nil {
			key, changed = last.row.key(), last.row.changed
		}
		params := []any{slot, key.user.String(), key.order.String(), orderPageSize}
		if !f.ChangedSince.IsZero() {
			params = append(params, changed)
		}
		where, more := f.where(len(params) + 1)
		err = s.query(ctx, s.db, func(rows *sql.Rows) error {
			stored, row, err := scanStoredOrder(rows)
			page = append(page, foundOrder{stored, row})
			return err
		}, `SELECT `+orderColumns+`, o.text FROM labhealth_orders AS o WHERE o.slot = $1::smallint`+after+where+` ORDER BY `+order+` LIMIT $4::integer`,
			append(params, more...)...)
		return page, err
	}}
}

// where returns the conditions of a filter, except the time. n is the number of its first
// parameter.
func (f *OrderFilter) where(n int) (conditions string, params []any) {
	for _, of := range []struct {
		column string
		id     uuid.UUID
	}{{"user_id", f.UserID}, {"transaction_id", f.TransactionID}} {
		if of.id != uuid.Nil {
			conditions += fmt.Sprintf(` AND o.%s = $%d::uuid`, of.column, n+len(params))
			params = append(params, of.id.String())
		}
	}
	if len(f.Status) > 0 {
		all := make([]string, len(f.Status))
		for i, status := range f.Status {
			all[i] = escape(string(status))
		}
		conditions, params = conditions+` AND o.status IN {any: text}`, append(params, anyOf(all))
	}
	if len(f.Results) > 0 {
		all := make([]string, len(f.Results))
		for i, state := range f.Results {
			all[i] = string(state)
		}
		conditions, params = conditions+` AND o.results IN {any: text}`, append(params, anyOf(all))
	}
	return conditions, params
}

// Timeline returns every status that an order has reached, each once, in the order of time. If
// versions of the order name different users, it has those of all of them: see [Store.Order].
func (s *Store) Timeline(ctx context.Context, orderID uuid.UUID) ([]Transition, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	all := []Transition{}
	err := s.query(ctx, s.db, func(rows *sql.Rows) error {
		key := orderKey{order: orderID}
		var id, status, detail string
		var at int64
		err := rows.Scan(&key.user, &id, &at, &status, &detail)
		all = append(all, newTransition(key, id, at, status, detail))
		return err
	}, `SELECT o.user_id, e.id, e.at, e.status, e.detail FROM labhealth_orders AS o
		CROSS JOIN labhealth_order_events AS e WHERE e.slot = o.slot AND e.user_id = o.user_id AND e.order_id = o.order_id
		AND o.slot IN {any: smallint} AND o.order_id = $1::uuid`, orderID.String(), anyOf(allSlots))
	if err != nil {
		return nil, s.failed(ctx, "timeline", err)
	}
	slices.SortFunc(all, compareTransitions)
	return all, nil
}

func newTransition(of orderKey, id string, at int64, status, detail string) Transition {
	return Transition{UserID: of.user, OrderID: of.order, ID: unescape(id), At: timeOf(at), Status: labhealth.OrderStatus(unescape(status)),
		Detail: labhealth.OrderStatusDetail(unescape(detail))}
}

// OrderResults returns the latest stored results of an order; ok is false if none are stored.
func (s *Store) OrderResults(ctx context.Context, orderID uuid.UUID) (results *labhealth.OrderResults, ok bool, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, false, err
	}
	_, results, err = s.latestResults(ctx, orderKey{order: orderID}, allSlots)
	return results, results != nil, err
}

// latestResults returns the latest results of an order, as latestOrder does, and the key of their
// version; nil if there are none.
func (s *Store) latestResults(ctx context.Context, of orderKey, slots []int64) (key uuid.UUID, results *labhealth.OrderResults, err error) {
	var revision int64
	var document string
	found, err := s.queryRow(ctx, s.db, into{&of.user, &revision, &document}, `SELECT r.user_id, r.revision, r.text FROM labhealth_order_results AS r
		WHERE r.slot IN {any: smallint} AND r.order_id = $1::uuid AND ($2::boolean OR r.user_id = $3::uuid) ORDER BY r.version, r.user_id`,
		of.order.String(), len(slots) > 1, of.user.String(), anyOf(slots))
	if err != nil || !found {
		return uuid.Nil, nil, s.failed(ctx, "order results", err)
	}
	results = new(labhealth.OrderResults)
	if results.UnmarshalJSON([]byte(document)) != nil { // not written by this package
		results = new(labhealth.OrderResults)
	}
	return resultsKey(of, revision, digest(document)), results, nil
}

// resultsChange says that the stored results of an order have changed.
type resultsChange struct {
	orderKey
	revision int64
	digest   []byte // of the document
}

const (
	errNoOrder   = permanentError("sqlstore: ApplyResults needs an order with an ID")
	errNoResults = permanentError("sqlstore: ApplyResults needs results that can be encoded as JSON")
)

// ApplyResults stores the results of an order that were read at a time, just before the request,
// unless newer ones are stored. It reports whether the stored results changed. The order need not
// be stored: its results are then, and [StoredOrder.Results] follows when it is. An order without a
// user is that of the stored one. The error matches [webhooks.ErrPermanent] if order or results are
// missing or cannot be encoded; otherwise it is an [*Error], after which nothing is stored.
func (s *Store) ApplyResults(ctx context.Context, order *labhealth.Order, results *labhealth.OrderResults, readAt time.Time) (changed bool, err error) {
	if order == nil || order.ID == uuid.Nil {
		return false, errNoOrder
	}
	key := orderKey{order.UserID, order.ID}
	if key.user == uuid.Nil {
		stored, _, err := s.Order(ctx, order.ID)
		if err != nil {
			return false, err
		}
		key.user = stored.UserID
	}
	return s.storeResults(ctx, key, results, readAt, false)
}

func (s *Store) storeResults(ctx context.Context, of orderKey, results *labhealth.OrderResults, readAt time.Time, needsOrder bool) (changed bool, err error) {
	if results == nil {
		return false, errNoResults
	}
	document, err := results.MarshalJSON()
	if err != nil {
		return false, errNoResults
	}
	r := receivedResults{of, newest.ClampUnixNano(readAt), results.Metadata.Status, string(document), needsOrder}
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
