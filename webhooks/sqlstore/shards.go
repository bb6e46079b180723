package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Shard is a database that holds the users of a range of slots: see [Slot].
type Shard struct {
	First, Last int    // slots, from 0 to 255, both included
	Store       *Store // holds all data of their users
}

// Shards spreads users over several databases. All data of a user is in one of them, so nothing of
// what a [Store] guarantees is different, and no transaction crosses databases. It is safe for
// concurrent use.
//
// Use the Store of a user for what concerns one user:
//
//	samples, err := shards.Store(userID).Range(ctx, series, from, to)
//
// Run a [Worker] for the Store of each Shard. To change which database holds a slot, see [Move].
type Shards struct {
	shards []Shard
	of     [Slots]int // index in shards
}

// NewShards returns a Shards. Each slot must belong to exactly one shard; several shards may have
// the same Store.
func NewShards(shards ...Shard) (*Shards, error) {
	all := &Shards{shards: slices.Clone(shards)}
	slices.SortFunc(all.shards, func(a, b Shard) int { return cmp.Compare(a.First, b.First) })
	next := 0
	for i, shard := range all.shards {
		switch {
		case shard.Store == nil || shard.Store.db == nil:
			return nil, fmt.Errorf("sqlstore: the Shard of slots %d to %d has no Store that was made by Open", shard.First, shard.Last)
		case shard.First > shard.Last || shard.Last >= Slots:
			return nil, fmt.Errorf("sqlstore: a Shard has slots %d to %d: 0 to %d are allowed, in ascending order", shard.First, shard.Last, Slots-1)
		case shard.First != next:
			return nil, fmt.Errorf("sqlstore: slot %d must belong to exactly one Shard", min(next, shard.First))
		}
		for ; next <= shard.Last; next++ {
			all.of[next] = i
		}
	}
	if next < Slots {
		return nil, fmt.Errorf("sqlstore: slot %d must belong to exactly one Shard", next)
	}
	return all, nil
}

// Store returns the store that holds the data of a user. It is nil if s was not made by NewShards.
func (s *Shards) Store(userID uuid.UUID) *Store {
	if s == nil || len(s.shards) == 0 {
		return nil
	}
	return s.shards[s.of[Slot(userID)]].Store
}

// Migrate calls [Store.Migrate] for every database. It goes on after an error, and returns all.
func (s *Shards) Migrate(ctx context.Context) error {
	return errors.Join(s.each(s.stores(), func(store *Store) error { return store.Migrate(ctx) })...)
}

// Receive stores a delivery in the inbox of the database of its user, as [Store.Receive] does. A
// delivery without a readable user goes to the database of [uuid.Nil].
func (s *Shards) Receive(ctx context.Context, d webhooks.RawDelivery) error {
	e, err := webhooks.ParseEnvelope(d.Body)
	if err != nil {
		e.UserID = uuid.Nil
	}
	return s.Store(e.UserID).Receive(ctx, d)
}

// ApplyAll applies deliveries as [Store.ApplyAll] does, in one transaction for each database that
// holds some of the users. The transactions run at the same time and do not depend on each other: a
// database that is unavailable affects its own users only, except that ApplyAll returns when the
// last one has ended. Set a deadline in ctx for that, or apply the deliveries of each database
// separately.
//
// It returns one element for each delivery, also after an error. The error joins those of the
// databases that failed. Nothing of their deliveries is stored, and Applied.Err of these is the
// *[Error] of the database, which does not match [webhooks.ErrPermanent]. All other deliveries are
// stored. To repeat all of them is safe, and changes nothing for those that are stored.
func (s *Shards) ApplyAll(ctx context.Context, deliveries []webhooks.Delivery) ([]Applied, error) {
	if s.Store(uuid.Nil) == nil {
		return (*Store)(nil).ApplyAll(ctx, deliveries)
	}
	parts := map[*Store][]int{} // indexes in deliveries
	for i, d := range deliveries {
		user := uuid.Nil
		if d.Event != nil {
			user = d.Event.UserID
		}
		store := s.Store(user)
		parts[store] = append(parts[store], i)
	}
	stores := slices.DeleteFunc(s.stores(), func(store *Store) bool { return len(parts[store]) == 0 })
	applied := make([]Applied, len(deliveries))
	err := errors.Join(s.each(stores, func(store *Store) error {
		part := make([]webhooks.Delivery, len(parts[store]))
		for n, i := range parts[store] {
			part[n] = deliveries[i]
		}
		results, err := store.ApplyAll(ctx, part)
		for n, i := range parts[store] {
			if err != nil {
				applied[i] = Applied{Err: err}
			} else {
				applied[i] = results[n]
			}
		}
		return err
	})...)
	return applied, err
}

// Samples iterates over the latest versions of all samples, one database after the other: see
// [Store.Samples]. It stops after an error. While users are moved, a sample may be returned twice
// or not at all.
func (s *Shards) Samples(ctx context.Context) iter.Seq2[StoredSample, error] {
	return inTurn(s.stores(), func(store *Store) iter.Seq2[StoredSample, error] { return store.Samples(ctx) })
}

// Summaries iterates over the latest versions of all summaries as [Shards.Samples] does.
func (s *Shards) Summaries(ctx context.Context) iter.Seq2[StoredSummary, error] {
	return inTurn(s.stores(), func(store *Store) iter.Seq2[StoredSummary, error] { return store.Summaries(ctx) })
}

// Order returns the latest state of an order, which it looks for in every database, as
// [Store.Order] does. For its timeline and results, use the Store of its user.
func (s *Shards) Order(ctx context.Context, orderID uuid.UUID) (order StoredOrder, ok bool, err error) {
	stores := s.stores()
	found := make([]StoredOrder, len(stores))
	isFound := make([]bool, len(stores))
	failures := s.each(stores, func(store *Store) (err error) {
		i := slices.Index(stores, store)
		found[i], isFound[i], err = store.Order(ctx, orderID)
		return err
	})
	if i := slices.Index(isFound, true); i >= 0 {
		return found[i], true, nil
	}
	return StoredOrder{}, false, errors.Join(failures...)
}

// Orders iterates over orders as [Shards.Samples] does over samples: see [Store.Orders].
func (s *Shards) Orders(ctx context.Context, filter OrderFilter) iter.Seq2[StoredOrder, error] {
	return inTurn(s.stores(), func(store *Store) iter.Seq2[StoredOrder, error] { return store.Orders(ctx, filter) })
}

// stores returns each store once. If there are none, it returns a nil one, which returns an error.
func (s *Shards) stores() (all []*Store) {
	if s.Store(uuid.Nil) == nil {
		return []*Store{nil}
	}
	for _, shard := range s.shards {
		if !slices.Contains(all, shard.Store) {
			all = append(all, shard.Store)
		}
	}
	return all
}

// each calls f for stores at the same time, and returns their errors.
func (*Shards) each(stores []*Store, f func(*Store) error) []error {
	failures := make([]error, len(stores))
	var all sync.WaitGroup
	for i, store := range stores {
		all.Go(func() { failures[i] = f(store) })
	}
	all.Wait()
	return failures
}

func inTurn[T any](stores []*Store, all func(*Store) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, store := range stores {
			for v, err := range all(store) {
				if !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
}
