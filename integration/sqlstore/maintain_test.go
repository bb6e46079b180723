package sqlstore_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// samplesAt is a delivery with a sample at each time.
func samplesAt(id string, u int, received time.Time, times ...time.Time) webhooks.RawDelivery {
	samples := make([]string, len(times))
	for i, at := range times {
		samples[i] = fmt.Sprintf(`{"timestamp":%q,"unit":"bpm","value":%d}`, at.Format(time.RFC3339Nano), 50+i)
	}
	return webhooks.RawDelivery{ID: id, ReceivedAt: received, Body: []byte(fmt.Sprintf(
		`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"slug":"ring"},"data":[%s]}}`, user(u), strings.Join(samples, ",")))}
}

func maintain(t *testing.T, store *sqlstore.Store) {
	t.Helper()
	if err := store.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, err)
		}
	}
}

// strings of a query with one column.
func column(t testing.TB, db *sql.DB, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func month(year int, m time.Month) time.Time { return time.Date(year, m, 1, 0, 0, 0, 0, time.UTC) }

// The samples that are older than Keep are deleted, and no others.
func TestKeep(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		first := month(2024, 5)
		store.Keep = time.Since(first.Add(-time.Minute))
		apply := func(id string, times ...time.Time) {
			t.Helper()
			for u := range 2 {
				if c, err := store.Apply(t.Context(), parse(t, []webhooks.RawDelivery{samplesAt(id, u, noon, times...)})[0]); err != nil || c.Added != len(times) {
					t.Fatal(c, err)
				}
			}
		}
		old := []time.Time{first.Add(-time.Hour), first.AddDate(0, -1, 0), first.AddDate(0, -5, 0), month(1900, 1), time.Unix(0, 0), time.Unix(0, -1), month(1678, 1)}
		apply("kept", first, first.Add(1), first.AddDate(0, 0, 10), time.Now(), month(2261, 12))
		apply("old", old...)
		for i := range 15_000 {
			old = append(old, first.AddDate(0, -2, 0).Add(time.Duration(i)*time.Second))
		}
		apply("many", old[7:]...)
		summary := webhooks.RawDelivery{ID: "sleep", ReceivedAt: noon, Body: []byte(fmt.Sprintf(
			`{"event_type":"daily.data.sleep.created","user_id":%q,"data":{"id":%q,"date":"1990-01-01"}}`, user(1), uuid.Max))}
		if _, err := store.Apply(t.Context(), parse(t, []webhooks.RawDelivery{summary})[0]); err != nil {
			t.Fatal(err)
		}
		wantCount(t, db, "labhealth_samples", 2*(5+7+15_000))
		maintain(t, store)
		wantCount(t, db, "labhealth_samples", 2*5)
		apply("late", old[:8]...)
		maintain(t, store)
		wantCount(t, db, "labhealth_samples", 2*5)
		wantCount(t, db, "labhealth_summaries", 1)
		for u := range 2 {
			kept := samplesOf(t, store.Range(t.Context(), ring(u), time.Time{}, month(2262, 1)))
			if len(kept) != 5 || !kept[0].Timestamp.Equal(first) {
				t.Error(len(kept))
			}
		}
		store.Keep = -1
		const want = "sqlstore: Store.Keep must not be negative: 0 keeps samples for ever"
		if err := store.Maintain(t.Context()); err == nil || err.Error() != want {
			t.Error(err)
		}
	})
}

// A transaction deletes a bounded number of samples, of one slot, and others apply samples at the
// same time: what is kept is that of Latest.
func TestKeepWhileApplied(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, other := d.store(t), d.store(t)
		cutoff := month(2020, 1)
		store.Keep, other.Keep = time.Since(cutoff), time.Since(cutoff)
		r := rand.New(rand.NewPCG(1, 1))
		var latest webhooks.Latest
		var all []webhooks.Delivery
		for i := range 60 {
			var times []time.Time
			for range 20 {
				times = append(times, cutoff.AddDate(0, r.IntN(24)-12, 1+r.IntN(20)))
			}
			all = append(all, parse(t, []webhooks.RawDelivery{samplesAt(fmt.Sprint(i), r.IntN(12), noon.Add(time.Duration(r.IntN(100))*time.Second), times...)})...)
		}
		for _, d := range all {
			if _, err := latest.Apply(d); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		for n := range 2 {
			both.Go(func() {
				for _, i := range rand.New(rand.NewPCG(uint64(n), 3)).Perm(len(all)) {
					if _, err := store.Apply(t.Context(), all[i]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for _, s := range []*sqlstore.Store{store, other} {
			both.Go(func() {
				for range 5 {
					if err := s.Maintain(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		both.Wait()
		maintain(t, store)
		var kept contents
		for key, s := range latest.Samples() {
			if key.UnixNano >= cutoff.UnixNano() {
				kept = append(kept, sampleLine(key, s))
			}
		}
		slices.Sort(kept)
		if diff := cmp.Diff(kept, contentsOf(t, store)); diff != "" || len(kept) == 0 {
			t.Error(diff)
		}
	})
}

// partitionedSamples is what an administrator runs before Migrate to have the samples partitioned
// by time: see docs/store.md.
const partitionedSamples = `CREATE TABLE labhealth_samples (at bigint NOT NULL, version bigint NOT NULL, value double precision NOT NULL,
	series integer NOT NULL, slot smallint NOT NULL, shape smallint NOT NULL, seconds integer, text text, PRIMARY KEY (slot, series, at)) PARTITION BY RANGE (at)`

// A table of samples that an administrator has partitioned is used as it is, and dropping a
// partition is all that it takes to delete samples.
func TestPartitionedByAdministrator(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	db := d.open(t)
	run(t, db, partitionedSamples, `CREATE TABLE labhealth_samples_rest PARTITION OF labhealth_samples DEFAULT`)
	for n := range 12 {
		run(t, db, fmt.Sprintf(`CREATE TABLE labhealth_samples_%d PARTITION OF labhealth_samples FOR VALUES FROM (%d) TO (%d)`,
			n, month(2025, 1).AddDate(0, n, 0).UnixNano(), month(2025, 2).AddDate(0, n, 0).UnixNano()))
	}
	store := d.store(t)
	all := history(rand.New(rand.NewPCG(8, 8)), 200)
	want, _, _ := reference(t, all)
	apply(t, store, parse(t, all))
	if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" {
		t.Error(diff)
	}
	if n := count(t, db, "labhealth_samples_2"); n == 0 {
		t.Error("no sample is in the partition of March 2025")
	}
	run(t, db, `DROP TABLE labhealth_samples_2`)
	for of, err := range store.Samples(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if at := of.Key.UnixNano; at >= month(2025, 3).UnixNano() && at < month(2025, 4).UnixNano() {
			t.Error("a sample of March 2025 is left")
		}
	}
	apply(t, store, parse(t, all)) // into the default partition
	if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" {
		t.Error(diff)
	}
}

// Whoever may not create tables can do everything else, if they exist.
func TestWithoutPrivileges(t *testing.T) {
	d := postgres(t)
	d.store(t)
	db := d.open(t)
	role := "labhealth_" + uuid.NewString()[:8]
	schema := column(t, db, `SELECT current_schema()`)[0]
	run(t, db, `CREATE ROLE `+role, `GRANT USAGE ON SCHEMA `+schema+` TO `+role, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA `+schema+` TO `+role)
	t.Cleanup(func() { run(t, d.open(t), `DROP OWNED BY `+role, `DROP ROLE `+role) })
	u, err := url.Parse(d.source)
	if err != nil {
		t.Fatal(err)
	}
	values := u.Query()
	values.Set("role", role)
	u.RawQuery = values.Encode()
	weak := database{d.dialect, d.driver, u.String()}
	store := weak.store(t)
	if who := column(t, weak.open(t), `SELECT current_user::text`)[0]; who != role {
		t.Fatal(who)
	}
	for range 2 {
		maintain(t, store)
		receive(t, store, heartrates("", 1, "60"), samplesAt("", 2, noon, month(2015, 2), month(1900, 1), time.Now()))
		drain(t, &sqlstore.Worker{Store: store}, db)
		wantCount(t, db, "labhealth_dead_letters", 0)
	}
	store.Keep = 20 * 24 * time.Hour
	maintain(t, store)
	wantCount(t, db, "labhealth_samples", 2) // of now
}
