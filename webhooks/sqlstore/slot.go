// The slot of a user, by which users are spread.

package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Slots is the number of slots over which [Slot] spreads users.
const Slots = 256

// Slot returns the slot of a user, from 0 to 255. It is the first byte of the SHA-256 digest of the
// 16 bytes of the ID, so other programs can compute it, and it never changes. In PostgreSQL:
//
//	get_byte(sha256(uuid_send(user_id)), 0)
//
// It leads every key of the tables: a database that distributes tables can do so by their column
// slot, and a program can give each of several databases a part of the users. Deliveries without a
// readable user belong to the slot of [uuid.Nil].
func Slot(userID uuid.UUID) int {
	return int(sha256.Sum256(userID[:])[0])
}

// allSlots is the list of all slots.
var allSlots = slices.Collect(func(yield func(int64) bool) {
	for slot := int64(0); slot < Slots && yield(slot); slot++ {
	}
})

// listSize is the number of slots that one statement with a row for each of them has.
func (s *Store) listSize() int {
	switch {
	case s.name == SQLite:
		return sqliteChunk
	case s.OneSlot:
		return 1
	}
	return Slots
}

// slotsWith returns the slots that have a row of a table. from is the table, as o, and the
// condition of its rows for a slot k. If slots may fail, it returns those that may have one.
func (s *Store) slotsWith(ctx context.Context, q queryer, from string, params ...any) (slots []int64, err error) {
	err = s.query(ctx, q, func(rows *sql.Rows) error {
		var slot int64
		err := rows.Scan(&slot)
		slots = append(slots, slot)
		return err
	}, `SELECT k.slot FROM labhealth_slots AS k {some o: `+from+`} ORDER BY k.slot`, params...)
	if err != nil && s.OneSlot && ctx.Err() == nil && !isMissingTables(failed("", err)) {
		return allSlots, nil
	}
	return slots, err
}

const anySlot = -1

// failingSlots are slots whose transactions fail, with [Store.OneSlot]: they are not tried for a
// while, so that others go on.
type failingSlots struct {
	mu    sync.Mutex
	waits map[int64]wait
}

type wait struct {
	length time.Duration // doubled with each failure
	until  time.Time
}

// note records whether a transaction of a slot failed.
func (f *failingSlots) note(slot int64, hasFailed bool) {
	const shortest, longest = 100 * time.Millisecond, 10 * time.Second
	f.mu.Lock()
	defer f.mu.Unlock()
	if !hasFailed {
		delete(f.waits, slot)
		return
	}
	if f.waits == nil {
		f.waits = map[int64]wait{}
	}
	length := max(shortest, min(longest, 2*f.waits[slot].length))
	f.waits[slot] = wait{length, time.Now().Add(length)}
}

// without returns the slots that may be tried now, the first of them at random.
func (f *failingSlots) without(slots []int64) (rest []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for _, slot := range slots {
		if now.After(f.waits[slot].until) {
			rest = append(rest, slot)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	n := rand.IntN(len(rest))
	return slices.Concat(rest[n:], rest[:n])
}

// slotFailures is the number of failures in a row that may be those of some slots, so that others
// are tried at once.
func (s *Store) slotFailures() int {
	if s.OneSlot && s.name == PostgreSQL {
		return 8
	}
	return 0
}

// waitingSlots returns the slots with deliveries that can be taken, except failing ones.
func (s *Store) waitingSlots(ctx context.Context) ([]int64, error) {
	slots, err := s.slotsWith(ctx, s.db, `labhealth_inbox | o.slot = k.slot AND (o.part = 0 OR o.due <= $1::bigint)`, s.now().UnixNano())
	return s.failing.without(slots), err
}
