package sqlstore_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// inUnit returns a delivery of one sample whose value is the number in its unit.
func inUnit(u, unit int, at, received time.Time) webhooks.RawDelivery {
	return webhooks.RawDelivery{ReceivedAt: received, Body: fmt.Appendf(nil,
		`{"event_type":"daily.data.glucose.created","user_id":%q,"data":{"source":{"slug":"ring"},"data":[
		{"timestamp":%q,"unit":"unit %d","value":%d}]}}`, user(u), at.Format(time.RFC3339), unit, unit)}
}

// checkUnits returns how many samples an iterator has. Each must have its own unit.
func checkUnits(t *testing.T, all iter.Seq2[sqlstore.StoredSample, error]) (n int) {
	t.Helper()
	for s, err := range all {
		if err != nil {
			t.Error(errors.Unwrap(err), err)
			return n
		}
		if want := fmt.Sprintf("unit %v", s.Sample.Value); s.Sample.Unit != want {
			t.Errorf("a sample in %s has %q", want, s.Sample.Unit)
		}
		n++
	}
	return n
}

// churn writes samples of few users in few units, reads them and deletes users, so that units come
// and go.
func churn(t *testing.T, store *sqlstore.Store, seed int) {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	rounds := 60
	if long {
		rounds = 1000
	}
	for n := range rounds {
		u := r.IntN(4)
		switch r.IntN(4) {
		case 0:
			if err := store.DeleteUser(t.Context(), user(u)); err != nil {
				t.Error(err)
			}
		case 1:
			checkUnits(t, store.UserSamples(t.Context(), user(u), "", time.Time{}, time.Time{}))
		default:
			var all []webhooks.RawDelivery
			for range 1 + r.IntN(4) {
				all = append(all, inUnit(r.IntN(4), r.IntN(6), noon.Add(time.Duration(r.IntN(5))*time.Minute), noon.Add(time.Duration(n)*time.Second)))
			}
			if _, err := store.ApplyAll(t.Context(), parse(t, all)); err != nil {
				t.Error(errors.Unwrap(err), err)
			}
		}
	}
}

// While processes write and delete, no sample has the unit of another one or none, and in the end
// no unit is left that only deleted users had.
func TestShapesAreDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		var processes sync.WaitGroup
		for seed := range 4 {
			processes.Go(func() {
				if out, err := child(t.Context(), d, "churn", seed).Output(); err != nil {
					t.Errorf("%v %s", err, out)
				}
			})
		}
		churn(t, store, 99)
		processes.Wait()
		apply := func(all ...webhooks.RawDelivery) {
			t.Helper()
			if _, err := store.ApplyAll(t.Context(), parse(t, all)); err != nil {
				t.Fatal(err)
			}
		}
		apply(inUnit(0, 7, noon, noon.Add(time.Hour)), inUnit(9, 7, noon, noon))
		checkUnits(t, store.Samples(t.Context()))
		for u := range 4 {
			if err := store.DeleteUser(t.Context(), user(u)); err != nil {
				t.Fatal(err)
			}
		}
		if n := checkUnits(t, store.Samples(t.Context())); n != 1 {
			t.Errorf("%d samples", n)
		}
		for table, left := range map[string]int{"labhealth_shapes": 1, "labhealth_series": 1} {
			if n := count(t, db, table); n != left {
				t.Errorf("%d in %s", n, table)
			}
		}
		// A version that is not stored leaves nothing either.
		apply(inUnit(9, 8, noon, noon.Add(-time.Hour)))
		if err := store.DeleteUser(t.Context(), user(9)); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, "labhealth_shapes"); n != 0 {
			t.Errorf("%d shapes", n)
		}
	})
}

// What another store deleted is written again.
func TestDeletedShape(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, other := d.store(t), d.store(t)
		apply := func(store *sqlstore.Store, raw webhooks.RawDelivery) {
			t.Helper()
			if _, err := store.Apply(t.Context(), parse(t, []webhooks.RawDelivery{raw})[0]); err != nil {
				t.Fatal(err)
			}
		}
		apply(store, inUnit(1, 1, noon, noon))
		apply(store, inUnit(2, 2, noon, noon))
		if err := other.DeleteUser(t.Context(), user(1)); err != nil {
			t.Fatal(err)
		}
		apply(other, inUnit(3, 3, noon, noon))
		apply(store, inUnit(2, 1, noon.Add(time.Minute), noon))
		apply(store, inUnit(4, 1, noon, noon))
		for _, reader := range []*sqlstore.Store{store, other, d.store(t)} {
			if n := checkUnits(t, reader.Samples(t.Context())); n != 4 {
				t.Errorf("%d samples", n)
			}
		}
	})
}
