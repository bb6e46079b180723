package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"iter"
	"math"
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

// reactionPart is one of the parts of the reactions that can be taken: new ones, and those whose
// time has come, which have failed or were taken by a process that was killed.
type reactionPart int

const (
	newReactions reactionPart = iota
	dueReactions
	reactionParts
)

// givenUp is the due of reactions that have failed for good.
const givenUp = math.MaxInt64

// start returns the position before the rows of a part.
func (p reactionPart) start() position {
	return [reactionParts]position{{math.MinInt64, math.MinInt64}, {0, math.MaxInt64}}[p]
}

// until returns the greatest due of the rows of a part that can be taken.
func (p reactionPart) until(now int64) int64 { return [reactionParts]int64{0, now}[p] }

// reactionTake takes reactions in a transaction.
type reactionTake struct {
	s     *Store
	limit int   // reactions to take: of each order, one
	turn  int   // 0 or 1, alternating: which part gets the only one
	now   int64 // what is due can be taken
	lease int64 // the due of what is taken: until then, no other reactor takes it
	// latest is the latest due that a clock can have set that is not ahead.
	latest   int64
	corrects bool // look for later ones

	seen  []reactionRow // whatever was looked at: the cursor has passed it
	taken []reactionRow
	moved bool // rows were taken, or delayed because another one of their order is
	more  bool // there may be more to see

	isCorrect bool // there are no more rows with a due after latest
}

// run takes reactions. Those whose time has come get up to a half, so that neither they nor new
// ones wait for the others. Of each order the first one is taken, unless one of them is being
// called or has failed and waits: all others are delayed until the same time.
func (t *reactionTake) run(ctx context.Context, tx *sql.Tx) error {
	for _, part := range []struct {
		reactionPart
		limit int
	}{{dueReactions, (t.limit + t.turn) / 2}, {newReactions, t.limit}} {
		if n := part.limit - countCalls(t.seen); n > 0 {
			if err := t.look(ctx, tx, part.reactionPart, n); err != nil {
				return err
			}
		}
	}
	if err := t.lookLater(ctx, tx); err != nil {
		return err
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
	return t.s.dialect.changeReactions(ctx, tx, lease, `UPDATE labhealth_reactions SET due = ?`, t.lease)
}

// lookLater reads and locks rows that wait for longer than any delay: the clock of the process that
// took them, or called React in vain, was ahead.
func (t *reactionTake) lookLater(ctx context.Context, tx *sql.Tx) error {
	n := t.limit - countCalls(t.seen)
	if !t.corrects || n <= 0 {
		return nil
	}
	rows, err := scanReactions(ctx, tx, t.s.dialect.bind(`SELECT `+reactionColumns+` FROM labhealth_reactions AS r WHERE r.due > ? AND r.due < ?`+
		t.s.dialect.tryOrder()+firstReactions+t.s.dialect.skipLocked()), t.latest, int64(givenUp), n)
	t.seen, t.isCorrect = append(t.seen, rows...), len(rows) < n
	return err
}

// dueOf returns when a row that waits is due: at once if a clock that was ahead has set the time.
func (t *reactionTake) dueOf(r reactionRow) int64 {
	if r.due > t.latest {
		return 0
	}
	return r.due
}

// countCalls returns how many of the rows can be called at the same time: one of each order.
func countCalls(rows []reactionRow) (n int) {
	orders := map[uuid.UUID]bool{}
	for i := range rows {
		if !rows[i].order.Valid {
			n++
		} else {
			orders[rows[i].order.UUID] = true
		}
	}
	return n + len(orders)
}

// look reads and locks rows of a part that no other reactor has, until there are limit ones that
// can be called at the same time, or there were several statements.
func (t *reactionTake) look(ctx context.Context, tx *sql.Tx, p reactionPart, limit int) error {
	const statements = 4
	for _, idle := range []bool{false, true} {
		scan := t.s.reactionCursors[p].next(time.Now(), idle)
		if idle && !scan.isRescan {
			break
		}
		rows, err := t.read(ctx, tx, p, scan, limit)
		found, full := len(rows) > 0, len(rows) == limit
		for n := 1; err == nil && full && n < statements && countCalls(rows) < limit; n++ {
			rest := limit - countCalls(rows)
			var more []reactionRow
			more, err = t.read(ctx, tx, p, scanBehind(rows), rest)
			rows, full = append(rows, more...), len(more) == rest
		}
		t.seen = append(t.seen, rows...)
		if err != nil || found || scan.whole {
			return err
		}
	}
	return nil
}

// scanBehind returns a scan of what is behind rows that were read.
func scanBehind(rows []reactionRow) scan {
	last := rows[len(rows)-1]
	return scan{from: position{last.due, last.number}}
}

// read reads and locks up to limit rows of a scan.
func (t *reactionTake) read(ctx context.Context, tx *sql.Tx, p reactionPart, scan scan, limit int) ([]reactionRow, error) {
	s := t.s
	rows, err := scanReactions(ctx, tx, s.dialect.bind(`SELECT `+reactionColumns+inReactions+s.dialect.tryOrder()+firstReactions+s.dialect.skipLocked()),
		scan.from.due, scan.from.number, p.until(t.now), limit)
	found, last := err == nil && len(rows) > 0, position{}
	if found {
		last = position{rows[len(rows)-1].due, rows[len(rows)-1].number}
	}
	s.reactionCursors[p].end(scan, time.Now(), last, found, len(rows) == limit)
	t.more = t.more || len(rows) == limit
	return rows, err
}

// inReactions selects the rows of a part behind a position.
const (
	inReactions    = ` FROM labhealth_reactions AS r WHERE (r.due, r.number) > (?, ?) AND r.due <= ?`
	firstReactions = ` ORDER BY r.due, r.number LIMIT ?`
)

// takeOrders returns the first reaction of each order, and all that are to be leased with it.
func (t *reactionTake) takeOrders(ctx context.Context, tx *sql.Tx, orders []orderKey) (heads, lease []reactionRow, err error) {
	slices.SortFunc(orders, func(a, b orderKey) int {
		return slices.Compare(append(a.user[:], a.order[:]...), append(b.user[:], b.order[:]...))
	})
	rows, err := t.s.dialect.ofOrders(ctx, tx, slices.Compact(orders))
	if err != nil {
		return nil, nil, err
	}
	for _, order := range byOrder(rows) {
		later := t.dueOf(slices.MaxFunc(order, func(a, b reactionRow) int { return cmp.Compare(t.dueOf(a), t.dueOf(b)) }))
		if later <= t.now {
			heads, lease = append(heads, order[0]), append(lease, order...)
			continue
		}
		order = slices.DeleteFunc(order, func(r reactionRow) bool { return t.dueOf(r) > t.now })
		if len(order) == 0 {
			continue
		}
		t.moved = true
		if err := t.s.dialect.changeReactions(ctx, tx, order, `UPDATE labhealth_reactions SET due = ?`, later); err != nil {
			return nil, nil, err
		}
	}
	return heads, lease, nil
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

// giveBackReactions moves the cursors back to rows that can be taken again.
func (s *Store) giveBackReactions(rows []reactionRow) {
	for i := range rows {
		p := newReactions
		if rows[i].due > 0 {
			p = dueReactions
		}
		s.reactionCursors[p].giveBack(position{rows[i].due, rows[i].number - 1})
	}
}

// settlement is what becomes of a reaction that was taken.
type settlement struct {
	reactionRow        // as it was taken: its due is the lease
	set         string // the start of a statement
	args        []any
	next        int64 // due of the others of the order: 0 if the next one may be called
}

// settle writes what becomes of reactions, except those that another reactor has taken since, or
// that are deleted. It returns the others of their orders that can be taken now.
func (s *Store) settle(ctx context.Context, tx *sql.Tx, all []settlement) (released []reactionRow, err error) {
	rows, orders := make([]reactionRow, len(all)), []orderKey(nil)
	for i := range all {
		rows[i] = all[i].reactionRow
		if rows[i].order.Valid {
			orders = append(orders, rows[i].orderKey())
		}
	}
	if err := s.dialect.lockReactions(ctx, tx, locksOf(rows)); err != nil {
		return nil, err
	}
	others := map[orderKey][]reactionRow{}
	if len(orders) > 0 {
		waiting, err := s.dialect.ofOrders(ctx, tx, orders)
		if err != nil {
			return nil, err
		}
		for _, order := range byOrder(waiting) {
			others[order[0].orderKey()] = order
		}
	}
	var done []reactionRow
	for _, one := range all {
		if one.set == deleteReaction {
			done = append(done, one.reactionRow)
		} else if err := s.dialect.changeReactions(ctx, tx, []reactionRow{one.reactionRow}, one.set, one.args...); err != nil {
			return nil, err
		}
		more, err := s.settleOthers(ctx, tx, one, others[one.orderKey()])
		if err != nil {
			return nil, err
		}
		released = append(released, more...)
	}
	if len(done) == 0 {
		return released, nil
	}
	return released, s.dialect.changeReactions(ctx, tx, done, deleteReaction)
}

const deleteReaction = `DELETE FROM labhealth_reactions`

// settleOthers changes when the others of an order can be taken, unless the order was taken again.
func (s *Store) settleOthers(ctx context.Context, tx *sql.Tx, one settlement, order []reactionRow) (released []reactionRow, err error) {
	if !slices.ContainsFunc(order, func(r reactionRow) bool { return r.number == one.number && r.due == one.due }) {
		return nil, nil
	}
	others := slices.DeleteFunc(slices.Clone(order), func(r reactionRow) bool { return r.number == one.number || r.due == one.next })
	if len(others) == 0 {
		return nil, nil
	}
	if err := s.dialect.changeReactions(ctx, tx, others, `UPDATE labhealth_reactions SET due = ?`, one.next); err != nil {
		return nil, err
	}
	for i := range others {
		others[i].due = one.next
	}
	if one.next > 0 {
		return nil, nil
	}
	return others, nil
}

// FailedReaction is a reaction that was given up. Printed or logged, it shows no health data.
type FailedReaction struct {
	Number   int64     // identifies it in [Store.RequeueReaction]
	Reaction Reaction  // as it was passed to the function
	Attempts int       // number of attempts
	FailedAt time.Time // time of the last attempt
	Reason   string    // a fixed phrase, with the SQLSTATE if there is one; no part of the error
}

// FailedReactions iterates over the reactions that a [Reactor] has given up, oldest first. It holds
// neither a transaction nor a connection between elements, so the program may requeue them in the
// loop. It stops after an error.
func (s *Store) FailedReactions(ctx context.Context) iter.Seq2[FailedReaction, error] {
	const limit = 1000
	return pages(limit, 0, func(cursor int64) (page []FailedReaction, last int64, err error) {
		if err := s.usable(ctx); err != nil {
			return nil, 0, err
		}
		err = query(ctx, s.db, func(rows *sql.Rows) error {
			var r reactionRow
			var f FailedReaction
			var failed int64
			if err := rows.Scan(&r.number, &r.due, &r.id, &r.kind, &r.user, &r.order, &r.at, &r.attempts, &r.body, &failed, &f.Reason); err != nil {
				return err
			}
			f.Number, f.Reaction, f.Attempts, f.FailedAt = r.number, r.reaction(), r.attempts, time.Unix(0, failed).UTC()
			f.Reaction.Attempt = r.attempts
			page, last = append(page, f), r.number
			return nil
		}, s.dialect.bind(`SELECT `+reactionColumns+`, coalesce(r.failed_at, 0), coalesce(r.reason, '') FROM labhealth_reactions AS r
			WHERE r.due = ? AND r.number > ? ORDER BY r.number LIMIT ?`), int64(givenUp), cursor, limit)
		return page, last, s.failed(ctx, "failed reactions", err)
	})
}

// RequeueReaction makes a reaction that was given up wait again, as if it had just been queued. Its
// ID is unchanged. It returns false if there is none with that number.
func (s *Store) RequeueReaction(ctx context.Context, number int64) (found bool, err error) {
	err = s.transact(ctx, "requeue reaction", func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, s.dialect.bind(`UPDATE labhealth_reactions SET due = 0, attempts = 0, failed_at = NULL, reason = NULL
			WHERE due = ? AND number = ?`), int64(givenUp), number)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		found = n > 0
		return err
	})
	if err != nil || !found {
		return false, err
	}
	s.giveBackReactions([]reactionRow{{number: number}})
	s.wakeReactor()
	return true, nil
}

// userReactions selects the reactions of a user, and those of the orders of the user that were
// queued before the user was known. Its parameters are the user, uuid.Nil, and the user.
const userReactions = ` FROM labhealth_reactions AS r
	WHERE r.user_id = ? OR r.user_id = ? AND r.order_id IN (SELECT order_id FROM labhealth_orders WHERE user_id = ?)`

// lockUserReactions waits until no reactor changes the reactions of a user, who is locked.
func (s *Store) lockUserReactions(ctx context.Context, tx *sql.Tx, user string) error {
	rows, err := scanReactions(ctx, tx, s.dialect.bind(`SELECT `+reactionColumns+userReactions), user, uuid.Nil.String(), user)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.dialect.lockReactions(ctx, tx, locksOf(rows))
}

// deleteReactions deletes the reactions of a user, who is locked.
func (s *Store) deleteReactions(ctx context.Context, tx *sql.Tx, user string) error {
	if err := s.lockUserReactions(ctx, tx, user); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.dialect.bind(`DELETE FROM labhealth_reactions WHERE (due, number) IN (SELECT r.due, r.number`+userReactions+`)`),
		user, uuid.Nil.String(), user)
	return err
}
