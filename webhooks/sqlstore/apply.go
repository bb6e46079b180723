// Applies deliveries, many in one transaction.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Applied is the result of applying a delivery.
type Applied struct {
	Changes webhooks.Changes // zero if nothing was applied; orders count as summaries do
	// Err is nil if the delivery was applied completely. Otherwise pass the delivery and Err to
	// [Store.DeadLetter]. With [webhooks.ErrUnreadable], part of the event cannot be decoded and
	// the rest was applied. With any other error nothing was applied: the delivery has no user
	// ([webhooks.ErrNoUser]), no ID ([webhooks.ErrNoID]) or no event, or its event was created by
	// the program and cannot be encoded as JSON. Err matches [webhooks.ErrPermanent]: it recurs
	// each time the delivery is applied.
	Err error
	// Transitions is the number of entries in the timeline of an order that were not stored before.
	Transitions int
}

// isUnreadable reports whether part of the delivery cannot be decoded and the rest was applied.
func (a Applied) isUnreadable() bool { return errors.Is(a.Err, webhooks.ErrUnreadable) }

// permanentError is an error that recurs each time a delivery is applied.
type permanentError string

func (e permanentError) Error() string { return string(e) }

func (permanentError) Is(target error) bool { return target == webhooks.ErrPermanent }

const (
	errNoEvent     = permanentError("sqlstore: the delivery has no event")
	errUnencodable = permanentError("sqlstore: the event cannot be encoded as JSON")
)

// Apply stores the summary, the samples or the order of an event, in its own transaction, except
// those of which a newer version is stored. The rule, and the meaning of the changes, are those of
// [webhooks.Latest]; the package documentation states the rule for orders. The changes are exact
// even if other processes apply deliveries at the same time. The error is the Err of [Applied], or
// an *[Error], after which no part of the event is stored.
func (s *Store) Apply(ctx context.Context, d webhooks.Delivery) (webhooks.Changes, error) {
	all, err := s.ApplyAll(ctx, []webhooks.Delivery{d})
	if err != nil {
		return webhooks.Changes{}, err
	}
	return all[0].Changes, all[0].Err
}

// ApplyAll applies deliveries in one transaction, with the same result as one after the other. That
// is much faster, because a transaction costs more than a sample. It returns one element for each
// delivery. A delivery that cannot be applied fails neither the others nor the call. The error is
// an [*Error], after which nothing is stored.
func (s *Store) ApplyAll(ctx context.Context, deliveries []webhooks.Delivery) ([]Applied, error) {
	return s.applyAll(ctx, deliveries, false, false)
}

// applyAll applies deliveries that were received, or read from the API; silent ones without
// reactions.
func (s *Store) applyAll(ctx context.Context, deliveries []webhooks.Delivery, areRead, silent bool) ([]Applied, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	b := newBatch(deliveries, s.version)
	if len(b.users) == 0 {
		return b.applied, nil
	}
	b.isRead, b.silent = areRead, silent
	for _, o := range b.orders {
		o.isRead = areRead
	}
	if s.OneSlot && s.name == PostgreSQL && b.users[0].slot != b.users[len(b.users)-1].slot {
		return s.applySlots(ctx, deliveries, b, areRead, silent)
	}
	var applied []Applied
	err := s.transact(ctx, "apply", func(tx *sql.Tx) (err error) {
		applied, err = s.apply(ctx, tx, b)
		return err
	})
	if errors.Is(err, errIdle) {
		return s.applyOthers(ctx, deliveries, b)
	}
	if err != nil {
		return nil, err
	}
	s.committed(b)
	return applied, nil
}

// applySlots applies the deliveries of a batch in one transaction for each slot. One that fails
// does not stop the others, which are repeated when the caller applies all again.
func (s *Store) applySlots(ctx context.Context, deliveries []webhooks.Delivery, b *batch, areRead, silent bool) ([]Applied, error) {
	bySlot := map[int][]int{}
	for i := range deliveries {
		slot := Slot(b.of[i])
		bySlot[slot] = append(bySlot[slot], i)
	}
	all, failure := make([]Applied, len(deliveries)), error(nil)
	for _, slot := range slices.Sorted(maps.Keys(bySlot)) {
		failure = cmp.Or(failure, s.applySome(ctx, deliveries, bySlot[slot], all, areRead, silent))
	}
	if failure != nil {
		return nil, failure
	}
	return all, nil
}

// applyOthers applies deliveries that were read from the API and are not of deleted users.
func (s *Store) applyOthers(ctx context.Context, deliveries []webhooks.Delivery, b *batch) ([]Applied, error) {
	var others []int
	for i := range deliveries {
		if !slices.Contains(b.deleted, keyOf(b.of[i])) {
			others = append(others, i)
		}
	}
	all := make([]Applied, len(deliveries))
	if err := s.applySome(ctx, deliveries, others, all, true, b.silent); err != nil {
		return nil, err
	}
	return all, nil
}

// applySome applies the deliveries with these indexes, and sets their results in all.
func (s *Store) applySome(ctx context.Context, deliveries []webhooks.Delivery, indexes []int, all []Applied, areRead, silent bool) error {
	some := make([]webhooks.Delivery, len(indexes))
	for n, i := range indexes {
		some[n] = deliveries[i]
	}
	applied, err := s.applyAll(ctx, some, areRead, silent)
	for n := range applied {
		all[indexes[n]] = applied[n]
	}
	return err
}

// committed uses what the transaction of a batch has committed.
func (s *Store) committed(b *batch) {
	if b.queued {
		s.wakeReactor()
	}
}

// apply applies a batch in a transaction, and queues the reactions to it. It locks the users,
// always in the same order, so that the data it reads does not change until it has written.
func (s *Store) apply(ctx context.Context, tx *sql.Tx, b *batch) ([]Applied, error) {
	if len(b.users) == 0 {
		return b.applied, nil
	}
	if err := s.lockUsers(ctx, tx, b.users); err != nil {
		return nil, err
	}
	if b.isRead {
		var err error
		if b.deleted, err = s.deletedUsers(ctx, tx, b.users); err != nil {
			return nil, err
		}
		if len(b.deleted) > 0 {
			return nil, errIdle
		}
	}
	applied, err := s.applyWearables(ctx, tx, b)
	if err == nil {
		err = s.applyOrders(ctx, tx, b, applied)
	}
	if err == nil && !b.silent {
		err = s.queue(ctx, tx, b)
	}
	return applied, err
}

// applyWearables writes the summaries and samples of a batch.
func (s *Store) applyWearables(ctx context.Context, tx *sql.Tx, b *batch) ([]Applied, error) {
	b.reset()
	if len(b.series) == 0 {
		return slices.Clone(b.applied), nil
	}
	if err := s.readWearables(ctx, tx, b); err != nil {
		return nil, err
	}
	applied := b.decide()
	return applied, s.writeWearables(ctx, tx, b)
}
