//go:build unix

package main

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// expired has samples of March 2023, which retention drops in the middle of the run.
var expired = uuid.New()

const expiredSamples = 20_000

// deliverExpired delivers more samples of one month than the default partition keeps.
func (s *soak) deliverExpired(*testing.T) error {
	first := int(time.Date(2023, 3, 2, 0, 0, 0, 0, time.UTC).Sub(day) / time.Minute)
	for n := 0; n < expiredSamples; n += 100 {
		minutes := make([]int, 100)
		for i := range minutes {
			minutes[i] = first + n + i
		}
		if !s.deliver(message{fmt.Sprintf("msg_expired_%d", n), batch(expired, minutes, func(i int) float64 { return float64(i) })}) {
			return fmt.Errorf("expired samples from %d on are not acknowledged", n)
		}
	}
	return nil
}

// makePartition makes the partition of the expired samples.
func (s *soak) makePartition(t *testing.T) error {
	if err := s.maintain(t.Context(), 0); err != nil {
		return err
	}
	n, err := s.countExpired(t.Context())
	if err == nil && n != expiredSamples {
		err = fmt.Errorf("%d expired samples, want %d, before they are dropped", n, expiredSamples)
	}
	if err != nil {
		return err
	}
	if has, err := s.hasPartition(t.Context()); err != nil || !has {
		return fmt.Errorf("no partition was made for the expired samples: %v", err)
	}
	return nil
}

// dropPartition drops it.
func (s *soak) dropPartition(t *testing.T) error {
	if err := s.maintain(t.Context(), 2*365*24*time.Hour); err != nil {
		return err
	}
	n, err := s.countExpired(t.Context())
	if err == nil && n != 0 {
		err = fmt.Errorf("%d expired samples after they were dropped", n)
	}
	if err != nil {
		return err
	}
	if has, err := s.hasPartition(t.Context()); err != nil || has {
		return fmt.Errorf("the partition of the expired samples was not dropped: %v", err)
	}
	return nil
}

// countExpired counts in both databases: the user may be moved.
func (s *soak) countExpired(ctx context.Context) (n int, err error) {
	err = persist(func() error {
		n = 0
		for _, db := range []*sql.DB{s.at.db, s.other.db} {
			some := 0
			err := db.QueryRowContext(ctx, "select count(*) from labhealth_samples s join labhealth_series r on r.id = s.series_id where r.user_id = $1 and s.at < $2",
				expired, day.UnixNano()).Scan(&some)
			if err != nil {
				return err
			}
			n += some
		}
		return nil
	})
	return n, err
}

// maintain maintains both databases. Samples are kept for the time of keep, or for ever.
func (s *soak) maintain(ctx context.Context, keep time.Duration) error {
	return persist(func() error {
		for _, db := range []*sql.DB{s.at.db, s.other.db} {
			store, err := sqlstore.Open(db, sqlstore.PostgreSQL)
			if err != nil {
				return err
			}
			store.Keep = keep
			if err := store.Maintain(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// hasPartition reports whether one of the databases has the partition of the expired samples.
func (s *soak) hasPartition(ctx context.Context) (has bool, err error) {
	err = persist(func() error {
		has = false
		for _, db := range []*sql.DB{s.at.db, s.other.db} {
			one := false
			err := db.QueryRowContext(ctx, "select exists (select from pg_inherits where inhparent = 'labhealth_samples'::regclass and inhrelid::regclass::text like '%2023_03')").Scan(&one)
			if err != nil {
				return err
			}
			has = has || one
		}
		return nil
	})
	return has, err
}

// persist repeats f for as long as the database may be restarting.
func persist(f func() error) (err error) {
	for range 120 {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
