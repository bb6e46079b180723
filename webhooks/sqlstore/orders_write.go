// Applies orders and results in a transaction.

package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// orderKey identifies an order: one that two users name is two.
type orderKey struct{ user, order uuid.UUID }

// ofOrder is the condition for an order, with the parameters of params.
const ofOrder = `slot = $1::smallint AND user_id = $2::uuid AND order_id = $3::uuid`

func (k orderKey) params() []any { return []any{Slot(k.user), k.user.String(), k.order.String()} }

func compareOrders(a, b orderKey) int {
	return cmp.Or(bytes.Compare(a.user[:], b.user[:]), bytes.Compare(a.order[:], b.order[:]))
}

// orderRow is a row of labhealth_orders. Zero times and IDs are NULL where the column may be.
type orderRow struct {
	id, user            uuid.UUID
	updated, version    int64
	created             int64
	status              string
	since               int64
	results             ResultsState
	transaction, parent uuid.UUID
	changed             int64
	missing, resultAt   int64
	document            string // empty if it was not read
}

const orderColumns = `o.order_id, o.user_id, o.updated, o.version, o.created, o.status, o.since, o.results, o.transaction_id, o.parent_id,
	o.changed, o.missing, o.results_at`

// scanOrder scans orderColumns, and other columns after them.
func scanOrder(rows *sql.Rows, r *orderRow, more ...any) error {
	var status string
	var transaction, parent uuid.NullUUID
	var missing, resultAt sql.Null[int64]
	err := rows.Scan(append([]any{&r.id, &r.user, &r.updated, &r.version, &r.created, &status, &r.since, &r.results, &transaction, &parent,
		&r.changed, &missing, &resultAt}, more...)...)
	r.status, r.transaction, r.parent = unescape(status), transaction.UUID, parent.UUID
	r.missing, r.resultAt = missing.V, resultAt.V
	return err
}

// readOrders locks the stored orders of slots, which are in the order of their keys, and reads
// them. It reads the document of those that a received version is not newer than.
func (s *Store) readOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	err := s.query(ctx, tx, func(rows *sql.Rows) error {
		var row orderRow
		var n int
		if err := scanOrder(rows, &row, &row.document, &n); err != nil {
			return err
		}
		slot := slots[n-1]
		slot.row, slot.before, slot.found, slot.isStored = row, row, true, true
		return nil
	}, `SELECT `+orderColumns+`, CASE WHEN o.updated >= k.lowest THEN o.text ELSE '' END, k.n
		FROM {k: slot smallint, user_id uuid, order_id uuid, lowest bigint}
		{find o: * | labhealth_orders | o.slot = {slot} AND o.user_id = k.user_id AND o.order_id = k.order_id | {lock}}`,
		rowList{len(slots), func(i int) []any { return []any{slots[i].slot, slots[i].key.user, slots[i].key.order, slots[i].lowest} }})
	if err != nil {
		return err
	}
	// Another statement sees what was committed while this one waited for the locks.
	return s.query(ctx, tx, func(rows *sql.Rows) error {
		var n int
		var id, status, detail, results sql.Null[string]
		var at sql.Null[int64]
		if err := rows.Scan(&n, &id, &at, &status, &detail, &results); err != nil {
			return err
		}
		slot := slots[n-1]
		slot.stored = labhealth.ResultsStatus(unescape(results.V))
		if id.Valid {
			t := newTransition(slot.key, id.V, at.V, status.V, detail.V)
			slot.timeline[t.ID] = t
		}
		return nil
	}, `SELECT k.n, e.id, e.at, e.status, e.detail, r.status FROM {k: slot smallint, user_id uuid, order_id uuid}
		{left e: * | labhealth_order_events | e.slot = {slot} AND e.user_id = k.user_id AND e.order_id = k.order_id}
		{left r: status | labhealth_order_results | r.slot = {slot} AND r.user_id = k.user_id AND r.order_id = k.order_id}`,
		rowList{len(slots), func(i int) []any { return []any{slots[i].slot, slots[i].key.user, slots[i].key.order} }})
}

// writeOrders writes slots and their transitions. An empty document leaves the stored one.
func (s *Store) writeOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error {
	const insert = `INSERT INTO labhealth_orders AS o (slot, user_id, order_id, updated, version, created, status, since, results,
			transaction_id, parent_id, changed, missing, results_at, text)
		SELECT {slot}, k.user_id, k.order_id, k.updated, k.version, k.created, k.status, k.since, k.results,
			k.transaction_id, k.parent_id, k.changed, k.missing, k.results_at, k.text
		FROM {k: slot smallint, user_id uuid, order_id uuid, updated bigint, version bigint, created bigint, status text, since bigint, results text, transaction_id uuid, parent_id uuid, changed bigint, missing bigint, results_at bigint, text text}
		WHERE {here} ON CONFLICT (slot, user_id, order_id) DO UPDATE SET version = excluded.version,
			text = CASE WHEN excluded.text = '' THEN o.text ELSE excluded.text END`
	const update = `, updated = excluded.updated, created = excluded.created, status = excluded.status, since = excluded.since,
			results = excluded.results, transaction_id = excluded.transaction_id, parent_id = excluded.parent_id,
			changed = excluded.changed, missing = excluded.missing, results_at = excluded.results_at`
	var confirmed, others []*orderSlot
	var transitions []Transition
	for _, slot := range slots {
		if slot.isConfirmed() {
			confirmed = append(confirmed, slot)
		} else {
			others = append(others, slot)
		}
		transitions = append(transitions, sortedTimeline(slot.written)...)
	}
	// SQLite writes every index of a column that is set, also to the same value.
	if _, err := s.exec(ctx, tx, insert, orderRows(confirmed)); err != nil {
		return err
	}
	if _, err := s.exec(ctx, tx, insert+update, orderRows(others)); err != nil {
		return err
	}
	_, err := s.exec(ctx, tx, `INSERT INTO labhealth_order_events AS e (slot, user_id, order_id, id, at, status, detail)
		SELECT {slot}, k.user_id, k.order_id, k.id, k.at, k.status, k.detail
		FROM {k: slot smallint, user_id uuid, order_id uuid, id text, at bigint, status text, detail text} WHERE {here}
		ON CONFLICT (slot, user_id, order_id, id) DO UPDATE SET at = excluded.at, status = excluded.status, detail = excluded.detail`,
		rowList{len(transitions), func(i int) []any {
			t := &transitions[i]
			return []any{Slot(t.UserID), t.UserID, t.OrderID, escape(t.ID), nanoseconds(t.At), escape(string(t.Status)), escape(string(t.Detail))}
		}})
	return err
}

func orderRows(slots []*orderSlot) rowList {
	return rowList{len(slots), func(i int) []any {
		s, r := slots[i], &slots[i].row
		return []any{
			s.slot, s.key.user, s.key.order, r.updated, r.version, r.created, escape(r.status), r.since, string(r.results),
			orNull(r.transaction), orNull(r.parent), r.changed, orNull(r.missing), orNull(r.resultAt), s.newDocument(),
		}
	}}
}

// receivedOrder is a version of an order in a delivery.
type receivedOrder struct {
	slot             *orderSlot
	order            *labhealth.Order
	document         string // JSON
	updated, version int64
	receivedAt       int64
	isRead           bool // from the API: the service has the order
	timeline         []Transition
	delivery         int32
}

// orderSlot holds what is stored of an order, and what to write in its place.
type orderSlot struct {
	key         orderKey
	slot        int   // of the user
	lowest      int64 // the least time of a received version; the greatest int64 if there is none
	resultsSoon bool  // a delivery says that the results are to be read
	now         int64 // the time of the transaction

	found    bool // it is stored, or received
	isStored bool
	before   orderRow // as it is stored
	row      orderRow
	timeline map[string]Transition   // by ID
	stored   labhealth.ResultsStatus // of the stored results; empty if there are none

	isDirty    bool                  // it is to be written
	isReplaced bool                  // with another document
	isNewer    bool                  // with another content
	hasChanged bool                  // with another state
	isBack     bool                  // it was missing
	order      *labhealth.Order      // of row.document; nil until it is needed
	written    map[string]Transition // entries of the timeline that are new, or have other content
	added      []Transition          // those that are new
}

func newReceivedOrder(slot *orderSlot, order *labhealth.Order, document string) *receivedOrder {
	return &receivedOrder{slot: slot, order: order, document: document, updated: updatedAt(order), timeline: transitionsOf(slot.key.user, order)}
}

// orderOf returns the slot of an order.
func (r *batchReader) orderOf(key orderKey) *orderSlot {
	n, isNew := r.orderIndex.of(key)
	if isNew {
		r.orderSlots = append(r.orderSlots, &orderSlot{key: key, slot: Slot(key.user), lowest: math.MaxInt64})
	}
	return r.orderSlots[n]
}

// addOrder adds an order, or what another event says about one.
func (r *batchReader) addOrder(delivery int32, d webhooks.Delivery) error {
	user := d.Event.UserID
	switch data := d.Event.Data.(type) {
	case *webhooks.LabOrder:
		if data.ID == uuid.Nil {
			return webhooks.ErrNoID
		}
		document, err := data.MarshalJSON()
		if err != nil {
			return errUnencodable
		}
		user = cmp.Or(data.UserID, user)
		o := newReceivedOrder(r.orderOf(orderKey{user, data.ID}), &data.Order, string(document))
		o.version, o.delivery = r.version(d), delivery
		o.receivedAt = newest.ClampUnixNano(d.Event.ReceivedAt)
		o.slot.lowest = min(o.slot.lowest, o.updated)
		r.orders = append(r.orders, o)
	case *webhooks.CriticalResult:
		user = cmp.Or(data.UserID, user)
		r.orderOf(orderKey{user, data.OrderID}).resultsSoon = true
	case *webhooks.MatchReview:
		if data.ResolvedOrderID == nil {
			return nil
		}
		if data.ResolvedUserID != nil {
			user = *data.ResolvedUserID
		}
		r.orderOf(orderKey{user, *data.ResolvedOrderID}).resultsSoon = true
	default:
		return nil
	}
	r.of[delivery] = user
	r.users = append(r.users, keyOf(user))
	return nil
}

// applyOrders writes the orders of a batch, whose users are locked, and adds the new entries of
// their timelines to b.transitions.
func (s *Store) applyOrders(ctx context.Context, tx *sql.Tx, b *batch, applied []Applied) error {
	b.transitions = nil
	if len(b.orderSlots) == 0 {
		return nil
	}
	now := s.now().UnixNano()
	b.resetOrders(now)
	if err := s.readOrders(ctx, tx, b.orderSlots); err != nil {
		return err
	}
	return s.writeOrders(ctx, tx, b.decideOrders(applied, now))
}

// resetOrders empties the slots of orders, also after a conflict.
func (b *batch) resetOrders(now int64) {
	for _, slot := range b.orderSlots {
		*slot = orderSlot{key: slot.key, slot: slot.slot, lowest: slot.lowest, resultsSoon: slot.resultsSoon, now: now,
			timeline: map[string]Transition{}, written: map[string]Transition{}}
	}
}

// decideOrders applies the received versions to the slots, and returns those to write.
func (b *batch) decideOrders(applied []Applied, now int64) (write []*orderSlot) {
	for _, r := range b.orders {
		a := &applied[r.delivery]
		outcome, transitions := r.slot.put(r)
		count(&a.Changes, outcome)
		a.Transitions += transitions
	}
	for _, slot := range b.orderSlots {
		slot.settle(now)
		if slot.isDirty {
			write = append(write, slot)
		}
		b.transitions = append(b.transitions, slot.added...)
	}
	return write
}

// put applies a received version. It returns the number of transitions that are new.
func (s *orderSlot) put(r *receivedOrder) (outcome newest.Outcome, transitions int) {
	outcome, wins := newest.Added, true
	if s.found {
		outcome, wins = s.compare(r)
	}
	received := orderRow{id: s.key.order, user: s.key.user, updated: r.updated, version: r.version, created: nanoseconds(r.order.CreatedAt),
		results: ResultsNone, document: r.document}
	received.transaction, received.parent = chainOf(r.order)
	missing := s.missing(r)
	winner, other := s.row, received
	if wins {
		winner, other = other, winner
		s.order, s.isDirty = r.order, true
		s.isReplaced = s.isReplaced || received.document != s.row.document
		s.isNewer = s.isNewer || outcome != newest.Same
		winner.status, winner.since, winner.results = other.status, other.since, cmp.Or(other.results, ResultsNone)
		winner.changed, winner.resultAt = other.changed, other.resultAt
	}
	if winner.missing = missing; missing != s.row.missing {
		s.isDirty, s.hasChanged, s.isBack = true, true, true
	}
	// A version that does not say what never changes, such as the response of an update, has what
	// the others say.
	before := winner
	winner.created = cmp.Or(winner.created, other.created)
	winner.transaction, winner.parent = cmp.Or(winner.transaction, other.transaction), cmp.Or(winner.parent, other.parent)
	s.isDirty = s.isDirty || winner != before
	s.row, s.found = winner, true
	for _, t := range r.timeline {
		if s.addTransition(t) {
			transitions++
		}
	}
	return outcome, transitions
}

// missing returns since when the service does not have the order, after a version was received.
// Only what was read after that, and an event with a newer version, show that the service has it.
func (s *orderSlot) missing(r *receivedOrder) int64 {
	since := s.row.missing
	if since > s.now+int64(maxSkew) { // the clock was ahead: it says nothing
		since = 1
	}
	if r.receivedAt > since && (r.isRead || r.updated > s.row.updated) {
		return 0
	}
	return s.row.missing
}

// compare returns the outcome of a received version, and whether it takes the place of the other.
func (s *orderSlot) compare(r *receivedOrder) (outcome newest.Outcome, wins bool) {
	c := cmp.Or(cmp.Compare(r.updated, s.row.updated), cmp.Compare(r.version, s.row.version))
	if c == 0 {
		c = cmp.Compare(r.document, s.row.document)
	}
	switch {
	case r.updated == s.row.updated && r.version >= s.row.version && isSameOrder(r.document, s.row.document):
		return newest.Same, c > 0
	case c < 0:
		return newest.Older, false
	}
	return newest.Updated, true
}

// addTransition adds an entry to the timeline. It reports whether its ID is new.
func (s *orderSlot) addTransition(t Transition) bool {
	known, found := s.timeline[t.ID]
	if found && t.compareContent(&known) <= 0 {
		return false
	}
	s.timeline[t.ID], s.written[t.ID] = t, t
	s.isDirty, s.hasChanged = true, true
	if !found {
		s.added = append(s.added, t)
		return true
	}
	for i := range s.added {
		if s.added[i].ID == t.ID {
			s.added[i] = t
		}
	}
	return false
}

// settle sets the columns that follow from the winning version, the timeline and the results.
func (s *orderSlot) settle(now int64) {
	if !s.found {
		return
	}
	row := &s.row
	if s.isDirty {
		s.derive(now)
	}
	if s.resultsSoon && (row.resultAt == 0 || row.resultAt > now) {
		row.resultAt, s.isDirty = now, true
	}
	if s.hasChanged || s.isNewer {
		row.changed = now
	}
}

func (s *orderSlot) derive(now int64) {
	if s.order == nil {
		s.order = decodeOrder(s.row.document)
	}
	row := &s.row
	before := *row
	status, since := currentEvent(s.order, s.timeline)
	row.status, row.since, row.results = string(status), since, resultsStateOf(topLevelOf(s.order, status), s.timeline, s.stored)
	isOther := !s.isStored || s.isBack || *row != before
	s.hasChanged = s.hasChanged || isOther
	switch {
	case row.results != ResultsNone && (s.isNewer || s.isBack || slices.ContainsFunc(s.added, hasReported)):
		row.resultAt = now
	case isOther && (row.resultAt == 0 || row.resultAt > now):
		row.resultAt = resultsAt(row.results, s.stored == labhealth.ResultsStatusPartial, status, row.reachedAt(), now)
	}
}

// reachedAt returns when the order reached its status, or the best that is known about it.
func (r *orderRow) reachedAt() int64 { return cmp.Or(r.since, r.updated, r.created, r.changed) }

func hasReported(t Transition) bool { return reports(t.Status) != ResultsNone }

// chainOf returns the transaction of an order and the order that it follows, as far as the order
// says so.
func chainOf(o *labhealth.Order) (transaction, parent uuid.UUID) {
	if o.OrderTransaction == nil {
		return uuid.Nil, uuid.Nil
	}
	for i := range o.OrderTransaction.Orders {
		if other := &o.OrderTransaction.Orders[i]; other.ID == o.ID && other.ParentID != nil {
			parent = *other.ParentID
		}
	}
	return o.OrderTransaction.ID, parent
}

// decodeOrder returns the order of a document. It is empty if this package did not write it.
func decodeOrder(document string) *labhealth.Order {
	o := new(labhealth.Order)
	if o.UnmarshalJSON([]byte(document)) != nil {
		return new(labhealth.Order)
	}
	return o
}

// compareSlots orders slots by the place of their user, and then by their keys.
func compareSlots(a, b *orderSlot) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), compareOrders(a.key, b.key))
}

// receivedResults are results of an order that were read.
type receivedResults struct {
	orderKey
	version    int64
	status     labhealth.ResultsStatus
	document   string // JSON
	needsOrder bool   // they are stored only if the order is
}

// applyResults stores results in a transaction, and queues the reaction to them.
func (s *Store) applyResults(ctx context.Context, tx *sql.Tx, r receivedResults) (changed bool, err error) {
	if err := s.lockUsers(ctx, tx, []userKey{keyOf(r.user)}); err != nil {
		return false, err
	}
	slot := &orderSlot{key: r.orderKey, slot: Slot(r.user), lowest: math.MinInt64, timeline: map[string]Transition{}}
	if err := s.readOrders(ctx, tx, []*orderSlot{slot}); err != nil {
		return false, err
	}
	if r.needsOrder && !slot.found {
		return false, nil
	}
	outcome, revision, document, err := s.compareResults(ctx, tx, &r)
	if err != nil || outcome == newest.Older {
		return false, err
	}
	if changed = outcome != newest.Same; changed {
		revision++
	}
	text := r.document
	if text == document {
		text = "" // the stored one stays
	}
	_, err = s.exec(ctx, tx, `INSERT INTO labhealth_order_results AS r (slot, user_id, order_id, version, revision, status, text)
		VALUES ($1::smallint, $2::uuid, $3::uuid, $4::bigint, $5::integer, $6::text, $7::text)
		ON CONFLICT (slot, user_id, order_id) DO UPDATE SET version = excluded.version, revision = excluded.revision, status = excluded.status,
		text = CASE WHEN excluded.text = '' THEN r.text ELSE excluded.text END`,
		append(r.params(), r.version, revision, escape(string(r.status)), text)...)
	if err != nil {
		return false, err
	}
	isPast := slot.hadResults(r.status, s.past.Load())
	if slot.found {
		slot.stored = r.status
		slot.settleResults(changed, r.version, s.now().UnixNano())
	}
	if slot.row != slot.before {
		if err := s.writeOrders(ctx, tx, []*orderSlot{slot}); err != nil {
			return false, err
		}
	}
	if !changed || isPast {
		return changed, nil
	}
	return true, s.queue(ctx, tx, &batch{results: []resultsChange{{r.orderKey, revision, digest(r.document)}}})
}

// hadResults reports whether a stored order without stored results had reached a status by a time
// that says that there are such results, and none that says so since.
func (s *orderSlot) hadResults(status labhealth.ResultsStatus, past int64) bool {
	least := ResultsFinal
	if status == labhealth.ResultsStatusPartial {
		least = ResultsPartial
	}
	if !s.isStored || s.stored != "" || resultsRank[s.before.results] < resultsRank[least] {
		return false
	}
	last := int64(0)
	for _, t := range s.timeline {
		if hasReported(t) {
			last = max(last, nanoseconds(t.At))
		}
	}
	return cmp.Or(last, s.before.reachedAt()) <= past
}

// compareResults compares results with the stored ones, whose revision and JSON it returns.
func (s *Store) compareResults(ctx context.Context, tx *sql.Tx, r *receivedResults) (outcome newest.Outcome, revision int64, document string, err error) {
	var version int64
	found, err := s.queryRow(ctx, tx, into{&version, &revision, &document}, `SELECT version, revision, text FROM labhealth_order_results WHERE `+ofOrder, r.params()...)
	if err != nil || !found {
		return newest.Added, 0, "", err
	}
	if version > s.now().Add(maxSkew).UnixNano() { // the clock was ahead: it says nothing
		version = math.MinInt64
	}
	outcome = newest.Compare(version, r.version, isSameOrder(document, r.document), func() (string, string) { return document, r.document })
	return outcome, revision, document, nil
}

// settleResults sets the columns that follow from results that were read at a time.
func (s *orderSlot) settleResults(changed bool, readAt, now int64) {
	row, o := &s.row, decodeOrder(s.row.document)
	status, _ := currentEvent(o, s.timeline)
	results := resultsStateOf(topLevelOf(o, status), s.timeline, s.stored)
	if changed || results != row.results {
		row.changed = now
	}
	row.results = results
	if row.resultAt <= readAt || row.resultAt > now { // else there was a reason to read them after that
		row.resultAt = resultsAt(results, s.stored == labhealth.ResultsStatusPartial, status, row.reachedAt(), now)
	}
}

// newDocument returns the document to write, or nothing if the stored one stays.
func (s *orderSlot) newDocument() string {
	if !s.isReplaced {
		return ""
	}
	return s.row.document
}

// isConfirmed reports whether nothing but the version and the document of a stored row is to be
// written.
func (s *orderSlot) isConfirmed() bool {
	before := s.before
	before.version, before.document = s.row.version, s.row.document
	return s.isStored && s.row == before
}
