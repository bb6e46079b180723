// Takes reactions with a lease, settles them, lists and requeues those that were given up.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"
)

// wakeReactor wakes an idle reactor of this store.
func (s *Store) wakeReactor() {
	select {
	case s.queued <- struct{}{}:
	default: // one is being woken
	}
}

// givenUp is the due of reactions that have failed for good.
const givenUp = forever

// addReactions queues reactions. One that is queued already stays as it is.
func (s *Store) addReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, queued int64) error {
	_, err := s.exec(ctx, tx, `INSERT INTO labhealth_reactions (slot, id, due, kind, user_id, order_id, at, queued, attempts, body)
		SELECT {slot}, k.id, $1::bigint, k.kind, k.user_id, k.order_id, k.at, $1::bigint, 0, k.body
		FROM {k: slot smallint, id uuid, kind text, user_id uuid, order_id uuid, at bigint, body text} WHERE {here} ON CONFLICT (slot, id) DO NOTHING`,
		queued, rowList{len(rows), func(i int) []any {
			r := &rows[i]
			return []any{Slot(r.user), r.id, string(r.kind), r.user, orNull(r.order.UUID), r.at, r.body}
		}})
	if err == nil {
		for i := range rows {
			s.reactions.found(place{int64(Slot(rows[i].user)), queued})
		}
	}
	return err
}

// reactionTake takes reactions in a transaction.
type reactionTake struct {
	s     *Store
	limit int   // reactions to take: of each order, one
	now   int64 // what is due can be taken
	lease int64 // the due of what is taken: until then, no other reactor takes it
	slot  int64 // the only one to look at, or anySlot

	seen  []reactionRow // whatever was looked at: the cursor has passed it
	taken []reactionRow
	moved bool // rows were taken, or delayed because another one of their order is
	more  bool // there may be more to see
}

// run takes reactions. Of each order the first one is taken, unless one of them is being called or
// has failed and waits: all others are delayed until the same time.
func (t *reactionTake) run(ctx context.Context, tx *sql.Tx) error {
	if t.limit > 0 {
		if err := t.look(ctx, tx); err != nil {
			return err
		}
	}
	lease, orders := []reactionRow(nil), []orderKey(nil)
	for _, r := range t.seen {
		if r.order.Valid {
			orders = append(orders, r.orderKey())
		} else {
			t.taken, lease = append(t.taken, r), append(lease, r)
		}
	}
	if len(orders) > 0 {
		heads, all, err := t.takeOrders(ctx, tx, orders)
		if err != nil {
			return err
		}
		t.taken, lease = append(t.taken, heads...), append(lease, all...)
	}
	if len(lease) == 0 {
		return nil
	}
	t.moved = true
	return t.s.moveReactions(ctx, tx, lease, t.lease)
}

// countCalls returns how many of the rows can be called at the same time: one of each order.
func countCalls(rows []reactionRow) (n int) {
	orders := map[orderKey]bool{}
	for i := range rows {
		if !rows[i].order.Valid {
			n++
		} else {
			orders[rows[i].orderKey()] = true
		}
	}
	return n + len(orders)
}

// look reads and locks rows that are due and that no other reactor has, until there are limit ones
// that can be called at the same time, or there were several statements.
func (t *reactionTake) look(ctx context.Context, tx *sql.Tx) error {
	const statements = 4
	for range statements {
		rest, full := t.limit-countCalls(t.seen), false
		if rest <= 0 {
			return nil
		}
		err := t.s.reactions.take(t.slot, func(scan *scan) (places []place, _ bool, err error) {
			rows, err := t.read(ctx, tx, scan, rest)
			rows = slices.DeleteFunc(rows, func(r reactionRow) bool {
				return slices.ContainsFunc(t.seen, func(seen reactionRow) bool { return seen.id == r.id && seen.user == r.user })
			})
			for i := range rows {
				places = append(places, rows[i].place())
			}
			t.seen, full = append(t.seen, rows...), len(rows) == rest
			return places, full, err
		})
		if t.more = full; err != nil || !full {
			return err
		}
	}
	return nil
}

// read reads and locks up to limit rows of a scan that are due.
func (t *reactionTake) read(ctx context.Context, tx *sql.Tx, scan *scan, limit int) (all []reactionRow, err error) {
	for chunk := range slices.Chunk(scan.slots, t.s.listSize()) {
		rows, err := t.s.scanReactions(ctx, tx, `SELECT `+reactionColumns+` FROM {k: slot smallint, due bigint}
			{each r: {row}, r.* | labhealth_reactions | r.slot = {slot} AND r.due >= k.due AND r.due <= $1::bigint | ORDER BY r.due, r.id LIMIT $2::integer{skip}}
			LIMIT $2::integer`, t.now, limit-len(all), rowList{len(chunk), func(i int) []any { return []any{chunk[i], scan.from[chunk[i]]} }})
		if all = append(all, rows...); err != nil || len(all) >= limit {
			return all, err
		}
	}
	return all, nil
}

// takeOrders returns the first reaction of each order, and all that are to be leased with it. An
// order of which another reactor has locked a reaction is left to it.
func (t *reactionTake) takeOrders(ctx context.Context, tx *sql.Tx, orders []orderKey) (heads, lease []reactionRow, err error) {
	slices.SortFunc(orders, compareOrders)
	orders = slices.Compact(orders)
	locked, err := t.s.reactionsOf(ctx, tx, orders, `{skip}`)
	if err != nil {
		return nil, nil, err
	}
	waiting, err := t.s.reactionsOf(ctx, tx, orders, ``) // those that are locked, and what others have
	if err != nil {
		return nil, nil, err
	}
	counts := map[orderKey]int{}
	for i := range waiting {
		counts[waiting[i].orderKey()]++
	}
	for _, order := range byOrder(locked) {
		if counts[order[0].orderKey()] != len(order) {
			continue
		}
		later := slices.MaxFunc(order, func(a, b reactionRow) int { return cmp.Compare(a.due, b.due) }).due
		if later <= t.now {
			heads, lease = append(heads, order[0]), append(lease, order...)
			continue
		}
		order = slices.DeleteFunc(order, func(r reactionRow) bool { return r.due > t.now })
		if len(order) == 0 {
			continue
		}
		t.moved = true
		if err := t.s.moveReactions(ctx, tx, order, later); err != nil {
			return nil, nil, err
		}
	}
	return heads, lease, nil
}

// reactionsOf reads the reactions of orders that wait, and locks them as lock says.
func (s *Store) reactionsOf(ctx context.Context, tx *sql.Tx, orders []orderKey, lock string) ([]reactionRow, error) {
	return s.scanReactions(ctx, tx, `SELECT `+reactionColumns+` FROM {k: slot smallint, user_id uuid, order_id uuid}
		{each r: {row}, r.* | labhealth_reactions | r.slot = {slot} AND r.user_id = k.user_id AND r.order_id = k.order_id AND r.failed_at IS NULL | ORDER BY r.id`+lock+`}`,
		rowList{len(orders), func(i int) []any { return []any{Slot(orders[i].user), orders[i].user, orders[i].order} }})
}

// byOrder returns the rows of each order, sorted by their place in it.
func byOrder(rows []reactionRow) (orders [][]reactionRow) {
	sortReactions(rows)
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].orderKey() == rows[0].orderKey() {
			n++
		}
		orders, rows = append(orders, rows[:n:n]), rows[n:]
	}
	return orders
}

// sortReactions sorts rows by order, and those of an order by the place among them. Transitions of
// the same time have the order of the timeline.
func sortReactions(rows []reactionRow) {
	slices.SortFunc(rows, func(a, b reactionRow) int {
		c := cmp.Or(compareOrders(a.orderKey(), b.orderKey()), cmp.Compare(a.at, b.at))
		if c == 0 && a.kind == ReactTransition && b.kind == ReactTransition {
			c = compareTransitions(a.reaction().Transition, b.reaction().Transition)
		}
		return cmp.Or(c, cmp.Compare(a.queued, b.queued), slices.Compare(a.id[:], b.id[:]))
	})
}

// giveBackReactions moves the cursor back to rows that can be taken again.
func (s *Store) giveBackReactions(rows []reactionRow) {
	for i := range rows {
		s.reactions.found(rows[i].place())
	}
}

// settlement is what becomes of a reaction that was taken.
type settlement struct {
	reactionRow        // as it was taken: its due is the lease
	isDone      bool   // it is deleted
	next        int64  // its due otherwise
	failedAt    int64  // when it has failed for good; 0 if it has not
	reason      string // of that
	hasFailed   bool   // an attempt is counted
	others      int64  // due of the others of the order: 0 if the next one may be called
}

// settle writes what becomes of reactions, except those that another reactor has taken since, or
// that are deleted. It returns the others of their orders that can be taken now.
func (s *Store) settle(ctx context.Context, tx *sql.Tx, all []settlement, now int64) (released []reactionRow, err error) {
	waiting, err := s.lockSettled(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	byKey := map[orderKey][]reactionRow{}
	for _, r := range waiting {
		byKey[r.orderKey()] = append(byKey[r.orderKey()], r)
	}
	var done []reactionRow
	for _, one := range all {
		order := byKey[one.orderKey()]
		n := slices.IndexFunc(order, func(r reactionRow) bool { return r.id == one.id && r.due == one.due })
		if n < 0 { // taken by another reactor, or deleted
			continue
		}
		if one.isDone {
			done = append(done, order[n])
		} else if err := s.settleOne(ctx, tx, order[n], one); err != nil {
			return nil, err
		}
		if !one.order.Valid {
			continue
		}
		due := cmp.Or(one.others, now)
		others := slices.DeleteFunc(slices.Clone(order), func(r reactionRow) bool { return r.id == one.id || r.due == due })
		if err := s.moveReactions(ctx, tx, others, due); err != nil {
			return nil, err
		}
		for i := range others {
			if others[i].due = due; one.others == 0 {
				released = append(released, others[i])
			}
		}
	}
	_, err = s.exec(ctx, tx, `DELETE FROM labhealth_reactions WHERE {in: slot} AND {row} IN {any: tid}`, reactionSlots(done), reactionPlaces(done))
	return released, err
}

// lockSettled locks the reactions that are settled, and those of the same orders.
func (s *Store) lockSettled(ctx context.Context, tx *sql.Tx, all []settlement) ([]reactionRow, error) {
	var orders []orderKey
	var single []reactionRow
	for i := range all {
		if all[i].order.Valid {
			orders = append(orders, all[i].orderKey())
		} else {
			single = append(single, all[i].reactionRow)
		}
	}
	slices.SortFunc(orders, compareOrders)
	slices.SortFunc(single, func(a, b reactionRow) int { return slices.Compare(a.id[:], b.id[:]) })
	waiting, err := s.reactionsOf(ctx, tx, slices.Compact(orders), `{lock}`)
	if err != nil {
		return nil, err
	}
	rest, err := s.scanReactions(ctx, tx, `SELECT `+reactionColumns+` FROM {k: slot smallint, id uuid}
		{find r: {row}, r.* | labhealth_reactions | r.slot = {slot} AND r.id = k.id | {lock}}`,
		rowList{len(single), func(i int) []any { return []any{single[i].place().slot, single[i].id} }})
	return append(waiting, rest...), err
}

func (s *Store) settleOne(ctx context.Context, tx *sql.Tx, row reactionRow, one settlement) error {
	attempts := row.attempts
	if one.hasFailed {
		attempts++
	}
	_, err := s.exec(ctx, tx, `UPDATE labhealth_reactions SET due = $3::bigint, attempts = $4::integer, failed_at = $5::bigint, reason = $6::text
		WHERE slot = $1::smallint AND id = $2::uuid`, row.place().slot, row.id.String(), one.next, attempts, orNull(one.failedAt), orNull(one.reason))
	return err
}

// moveReactions changes the due of rows that are locked.
func (s *Store) moveReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, due int64) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := s.exec(ctx, tx, `UPDATE labhealth_reactions SET due = $1::bigint WHERE {in: slot} AND {row} IN {any: tid}`,
		due, reactionSlots(rows), reactionPlaces(rows))
	return err
}

func reactionSlots(rows []reactionRow) inList {
	slots := make([]int64, len(rows))
	for i := range rows {
		slots[i] = rows[i].place().slot
	}
	slices.Sort(slots)
	return anyOf(slices.Compact(slots))
}

func reactionPlaces(rows []reactionRow) inList {
	places := make([]string, len(rows))
	for i := range rows {
		places[i] = rows[i].row
	}
	return anyOf(places)
}

// lockUserReactions locks the reactions of a user, in the order in which all do.
func (s *Store) lockUserReactions(ctx context.Context, tx *sql.Tx, user userKey) error {
	_, err := s.scanReactions(ctx, tx, `SELECT `+reactionColumns+` FROM labhealth_reactions AS r
		WHERE r.slot = $1::smallint AND r.user_id = $2::uuid ORDER BY r.order_id, r.id{lock}`, user.slot, user.id)
	return err
}

// FailedReaction is a reaction that was given up. Printed or logged, it shows no health data.
type FailedReaction struct {
	Reaction Reaction  // as it was passed to the function; its ID identifies it in [Store.RequeueReaction]
	Attempts int       // number of attempts
	FailedAt time.Time // time of the last attempt
	Reason   string    // a fixed phrase, with the SQLSTATE if there is one; no part of the error
}

// FailedReactions iterates over the reactions that a [Reactor] has given up. It holds neither a
// transaction nor a connection between elements, so the program may requeue them in the loop. It
// stops after an error.
func (s *Store) FailedReactions(ctx context.Context) iter.Seq2[FailedReaction, error] {
	const limit = 1000
	return func(yield func(FailedReaction, error) bool) {
		if err := s.usable(ctx); err != nil {
			yield(FailedReaction{}, err)
			return
		}
		slots, err := s.slotsWith(ctx, s.db, `labhealth_reactions | o.slot = k.slot AND o.due = $1::bigint`, int64(givenUp))
		var streams []*stream[FailedReaction]
		for _, slot := range slots {
			streams = append(streams, &stream[FailedReaction]{size: limit, read: func(ctx context.Context, last *FailedReaction) ([]FailedReaction, error) {
				after := uuid.Nil
				if last != nil {
					after = last.Reaction.ID
				}
				return s.failedReactions(ctx, slot, after, limit)
			}})
		}
		for f, failure := range merged(ctx, streams, nil) {
			if err = failure; err != nil || !yield(*f, nil) {
				break
			}
		}
		if err != nil {
			yield(FailedReaction{}, s.failed(ctx, "failed reactions", err))
		}
	}
}

func (s *Store) failedReactions(ctx context.Context, slot int64, after uuid.UUID, limit int) (page []FailedReaction, err error) {
	err = s.query(ctx, s.db, func(rows *sql.Rows) error {
		var f FailedReaction
		var failed int64
		r, err := scanReaction(rows, &failed, &f.Reason)
		f.Reaction, f.Attempts, f.FailedAt = r.reaction(), r.attempts, time.Unix(0, failed).UTC()
		f.Reaction.Attempt = r.attempts
		page = append(page, f)
		return err
	}, `SELECT `+reactionColumns+`, coalesce(r.failed_at, 0), coalesce(r.reason, '') FROM labhealth_reactions AS r
		WHERE r.slot = $1::smallint AND r.due = $2::bigint AND r.id > $3::uuid ORDER BY r.id LIMIT $4::integer`, slot, int64(givenUp), after.String(), limit)
	return page, err
}

// RequeueReaction makes a reaction that was given up wait again, as if it had just been queued. Its
// ID is unchanged. It returns false if there is none with that ID.
func (s *Store) RequeueReaction(ctx context.Context, id uuid.UUID) (found bool, err error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	var row place
	found, err = s.queryRow(ctx, s.db, into{&row.slot}, `SELECT r.slot FROM labhealth_reactions AS r WHERE r.slot IN {any: smallint} AND r.id = $1::uuid
		AND r.failed_at IS NOT NULL`, id.String(), anyOf(allSlots))
	if err != nil || !found {
		return false, s.failed(ctx, "requeue reaction", err)
	}
	row.due = s.now().UnixNano()
	n, err := s.change(ctx, "requeue reaction", `UPDATE labhealth_reactions SET due = $3::bigint, attempts = 0, failed_at = NULL, reason = NULL
		WHERE slot = $1::smallint AND id = $2::uuid AND failed_at IS NOT NULL`, row.slot, id.String(), row.due)
	if err != nil || n == 0 {
		return false, err
	}
	s.reactions.found(row)
	s.wakeReactor()
	return true, nil
}
