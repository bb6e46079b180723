package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
func column(t *testing.T, db *sql.DB, query string, args ...any) (all []string) {
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

func partitions(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return column(t, db, `SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
		WHERE inhparent = 'labhealth_samples'::regclass ORDER BY 1`)
}

// fillMonth writes samples of a series that does not exist into a month, without the package.
func fillMonth(t *testing.T, db *sql.DB, month time.Time, n int) {
	t.Helper()
	run(t, db, fmt.Sprintf(`INSERT INTO labhealth_samples (series_id, at, version, value, shape_id)
		SELECT 1000000, %d + n * 1000000000::bigint, 0, 0, 0 FROM generate_series(0, %d) AS n`, month.UnixNano(), n-1))
}

func month(year int, m time.Month) time.Time { return time.Date(year, m, 1, 0, 0, 0, 0, time.UTC) }

// Every month from a year ago until three months from now has a partition, and so has every other
// one with many samples. Gaps between partitions that somebody else has made are filled.
func TestPartitions(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	run(t, db,
		`CREATE TABLE labhealth_samples_2019_05 (archive integer)`,
		fmt.Sprintf(`CREATE TABLE week PARTITION OF labhealth_samples FOR VALUES FROM (%d) TO (%d)`,
			month(2018, 3).AddDate(0, 0, 7).UnixNano(), month(2018, 3).AddDate(0, 0, 14).UnixNano()),
		fmt.Sprintf(`CREATE TABLE early PARTITION OF labhealth_samples FOR VALUES FROM (MINVALUE) TO (%d)`, month(1800, 1).UnixNano()))
	fillMonth(t, db, month(2019, 5), 10_000)
	fillMonth(t, db, month(2019, 6), 9_999)
	fillMonth(t, db, month(2018, 3), 10_000)
	fillMonth(t, db, month(1969, 12), 10_000)
	fillMonth(t, db, month(2262, 4), 10_000) // int64 has only a part of this month
	var names []string
	for n := -12; n <= 3; n++ {
		year, m, _ := time.Now().UTC().Date()
		names = append(names, "labhealth_samples_"+time.Date(year, m+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Format("2006_01"))
	}
	names = append(names, "labhealth_samples_1969_12", "labhealth_samples_2018_03", "labhealth_samples_2018_03_2",
		"labhealth_samples_2019_05_2", "labhealth_samples_default", "week", "early")
	slices.Sort(names)
	for range 2 {
		maintain(t, store)
		if diff := cmp.Diff(names, partitions(t, db)); diff != "" {
			t.Error(diff)
		}
		for name, want := range map[string]int{
			"labhealth_samples": 49_999, "labhealth_samples_default": 19_999, "labhealth_samples_2019_05_2": 10_000,
			"labhealth_samples_1969_12": 10_000, "labhealth_samples_2018_03": 10_000, "week": 0,
		} {
			wantCount(t, db, name, want)
		}
	}
	backlog, err := store.Backlog(t.Context())
	if end := names[len(names)-3]; err != nil || "labhealth_samples_"+backlog.PartitionedUntil.AddDate(0, -1, 0).Format("2006_01") > end ||
		backlog.PartitionedUntil.Before(time.Now().AddDate(0, 2, 20)) {
		t.Error(backlog.PartitionedUntil, err)
	}
	lite, err := sqliteFile(t).store(t).Backlog(t.Context())
	if err != nil || !lite.PartitionedUntil.IsZero() {
		t.Error(lite, err)
	}
}

// The samples of months that are older than Keep are deleted, however they are stored.
func TestKeep(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		year, m, _ := time.Now().UTC().Date()
		first := month(year-1, m)
		store.Keep = time.Since(first.AddDate(0, 0, 14))
		var rows int64
		var dropped []string // ranges of partitions
		store.Expired = func(from, before time.Time, n int64) {
			if rows += n; !from.IsZero() {
				dropped = append(dropped, from.Format(time.DateOnly)+" "+before.Format(time.DateOnly))
			} else if n == 0 || !before.Equal(first) {
				t.Error(before, n)
			}
		}
		boundary := `SELECT 1`
		if d.dialect == sqlstore.PostgreSQL {
			boundary = fmt.Sprintf(`CREATE TABLE boundary PARTITION OF labhealth_samples FOR VALUES FROM (%d) TO (%d)`,
				first.AddDate(0, -3, 0).UnixNano(), first.AddDate(0, 0, 7).UnixNano())
		}
		run(t, db, boundary)
		apply := func(id string, times ...time.Time) {
			t.Helper()
			for u := range 2 {
				if c, err := store.Apply(t.Context(), parse(t, []webhooks.RawDelivery{samplesAt(id, u, noon, times...)})[0]); err != nil || c.Added != len(times) {
					t.Fatal(c, err)
				}
			}
		}
		old := []time.Time{first.Add(-1), first.AddDate(0, -1, 0), first.AddDate(0, -5, 0), month(1900, 1), time.Unix(0, 0), time.Unix(0, -1), month(1678, 1)}
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
		if rows != 2*(7+15_000) {
			t.Error(rows)
		}
		apply("late", old[:8]...)
		wantCount(t, db, "labhealth_samples", 2*(5+8))
		maintain(t, store)
		wantCount(t, db, "labhealth_samples", 2*5)
		wantCount(t, db, "labhealth_summaries", 1)
		if rows != 2*(7+15_000+8) || dropped != nil {
			t.Error(rows, dropped)
		}
		for u := range 2 {
			kept := samplesOf(t, store.Range(t.Context(), ring(u), time.Time{}, month(2262, 1)))
			if len(kept) != 5 || !kept[0].Timestamp.Equal(first) {
				t.Error(len(kept))
			}
		}
		if d.dialect == sqlstore.PostgreSQL { // a whole partition is dropped
			store.Keep = time.Since(first.AddDate(0, 1, 14))
			maintain(t, store)
			wantCount(t, db, "labhealth_samples", 2*2)
			want := []string{first.AddDate(0, -3, 0).Format(time.DateOnly) + " " + first.AddDate(0, 0, 7).Format(time.DateOnly),
				first.AddDate(0, 0, 7).Format(time.DateOnly) + " " + first.AddDate(0, 1, 0).Format(time.DateOnly)}
			if diff := cmp.Diff(want, dropped); diff != "" {
				t.Error(diff)
			}
			for _, name := range partitions(t, db) {
				if name == "boundary" || name == "labhealth_samples_"+first.Format("2006_01") {
					t.Errorf("%s still exists", name)
				}
			}
		}
		store.Keep = -1
		const want = "sqlstore: Store.Keep must not be negative: 0 keeps samples for ever"
		if err := store.Maintain(t.Context()); err == nil || err.Error() != want {
			t.Error(err)
		}
	})
}

// Partitions are made and dropped while stores of both drivers apply samples of these months and
// others: the content is that of Latest, and no transaction fails.
func TestMaintainWhileApplied(t *testing.T) {
	t.Parallel()
	const months, users = 4, 12
	pgx := postgres(t)
	pq := pgx
	pq.driver = "postgres"
	stores, db := []*sqlstore.Store{pgx.store(t), pq.store(t)}, pgx.open(t)
	r := rand.New(rand.NewPCG(1, 1))
	first := month(2015, 1)
	rare := []time.Time{month(1678, 1), month(1900, 1), time.Unix(0, 0), time.Unix(0, -1), month(2261, 12), time.Now().Truncate(time.Second)}
	var all []webhooks.Delivery
	var latest webhooks.Latest
	for i := range 120 {
		times := []time.Time{rare[r.IntN(len(rare))]}
		for range 8 {
			times = append(times, first.AddDate(0, r.IntN(months), r.IntN(20)).Add(time.Duration(r.IntN(50))*time.Hour))
		}
		d := parse(t, []webhooks.RawDelivery{samplesAt(fmt.Sprint(i), r.IntN(users), noon.Add(time.Duration(r.IntN(100))*time.Second), times...)})[0]
		if _, err := latest.Apply(d); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}

	var during atomic.Int64
	apply := func(f func()) {
		done := make(chan struct{})
		var appliers sync.WaitGroup
		for n := range 4 {
			appliers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-done:
						return
					default:
					}
					part := all[(n*30+i*10)%len(all):][:10]
					applied, err := stores[n%2].ApplyAll(t.Context(), part)
					if err != nil {
						t.Errorf("%v: %v", err, errors.Unwrap(err))
						return
					}
					for _, a := range applied {
						if a.Err != nil {
							t.Error(a.Err)
						}
					}
					during.Add(1)
				}
			})
		}
		f()
		close(done)
		appliers.Wait()
		for i := range all {
			if _, err := stores[i%2].Apply(t.Context(), all[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := func() {
		var two sync.WaitGroup
		for _, store := range stores {
			two.Go(func() {
				if err := store.Maintain(t.Context()); err != nil {
					t.Errorf("%v: %v", err, errors.Unwrap(err))
				}
			})
		}
		two.Wait()
	}

	apply(func() {
		counting, stop := context.WithCancel(t.Context())
		var counter sync.WaitGroup
		reader := pq.open(t) // it plans each query, perhaps while a partition is made
		counter.Go(func() {
			for last, n := 0, 0; counting.Err() == nil; last = n {
				err := reader.QueryRowContext(counting, `SELECT count(*) FROM labhealth_samples`).Scan(&n)
				if counting.Err() == nil && (err != nil || n < last) {
					t.Errorf("%d samples after %d: %v", n, last, err)
				}
			}
		})
		for m := range months {
			fillMonth(t, db, first.AddDate(0, m, 25), 10_000)
			both()
		}
		stop()
		counter.Wait()
	})
	names := strings.Join(partitions(t, db), " ")
	for m := range months {
		if !strings.Contains(names, first.AddDate(0, m, 0).Format("2006_01")) {
			t.Errorf("no partition of month %d in %s", m, names)
		}
	}
	want := contentsOfLatest(&latest)
	if diff := cmp.Diff(want, contentsOf(t, stores[0])); diff != "" {
		t.Error(diff)
	}
	wantCount(t, db, "labhealth_samples", len(want)+months*10_000)

	// The first months are dropped, one after the other.
	apply(func() {
		for m := range months - 1 {
			for _, store := range stores {
				store.Keep = time.Since(first.AddDate(0, m+1, 14))
			}
			both()
		}
	})
	both()
	cutoff := first.AddDate(0, months-1, 0).UnixNano()
	var kept contents
	for key, s := range latest.Samples() {
		if key.UnixNano >= cutoff {
			kept = append(kept, sampleLine(key, s))
		}
	}
	slices.Sort(kept)
	if diff := cmp.Diff(kept, contentsOf(t, stores[1])); diff != "" || len(kept) == 0 {
		t.Error(diff)
	}
	wantCount(t, db, "labhealth_samples", len(kept)+10_000)
	wantCount(t, db, "labhealth_dead_letters", 0)
	t.Logf("%d transactions meanwhile", during.Load())
}

// Whoever may not create tables can do everything else, and old samples are deleted.
func TestWithoutPrivileges(t *testing.T) {
	d := postgres(t)
	owner, db := d.store(t), d.open(t)
	maintain(t, owner)
	run(t, db, `DROP TABLE `+partitions(t, db)[0])
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
	before := partitions(t, db)
	fillMonth(t, db, month(2015, 1), 10_000)
	for range 2 {
		maintain(t, store)
		receive(t, store, heartrates("", 1, "60"), samplesAt("", 2, noon, month(2015, 2), month(1900, 1), time.Now()))
		drain(t, &sqlstore.Worker{Store: store}, db)
		wantCount(t, db, "labhealth_dead_letters", 0)
	}
	if diff := cmp.Diff(before, partitions(t, db)); diff != "" {
		t.Error(diff)
	}
	wantCount(t, db, "labhealth_samples_default", 10_000+3)
	store.Keep = 20 * 24 * time.Hour // months with a partition are older too
	maintain(t, store)
	wantCount(t, db, "labhealth_samples", 2)
	if diff := cmp.Diff(before, partitions(t, db)); diff != "" {
		t.Error(diff)
	}
}

// Maintain does not wait for a long query, and leaves the partition to the next call.
func TestMaintainLocked(t *testing.T) {
	if !long {
		t.Skip("LABHEALTH_TEST_LONG is not set")
	}
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`SELECT count(*) FROM labhealth_samples`); err != nil {
		t.Fatal(err)
	}
	before := len(partitions(t, db))
	var e *sqlstore.Error
	if err := store.Maintain(t.Context()); !errors.As(err, &e) || e.SQLState != "55P03" || e.Op != "maintain" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Maintain(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := len(partitions(t, db)); n != before {
		t.Errorf("%d partitions, want %d", n, before)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	maintain(t, store)
	if n := len(partitions(t, db)); n != before+12 {
		t.Errorf("%d partitions, want %d", n, before+12)
	}
}

// IDs of series and shapes are not limited to 32 bits.
func TestSequences(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		for _, table := range []string{"series", "shapes"} {
			statement := `SELECT setval(pg_get_serial_sequence('labhealth_` + table + `', 'id'), 2147483648)`
			if d.dialect == sqlstore.SQLite { // the next ID is one more than the greatest
				columns := `(id, key, user_id, resource, provider, source_type) VALUES (2147483648, 'x', '', '', '', '')`
				if table == "shapes" {
					columns = `(id, key, has_value, east, type, unit) VALUES (2147483648, 'x', 0, 0, '', '')`
				}
				statement = `INSERT INTO labhealth_` + table + ` ` + columns
			}
			run(t, db, statement)
		}
		for u := range 20 {
			receive(t, store, heartrates(fmt.Sprint(u), u, "60"), heartrates(fmt.Sprint("again", u), u, "61", "62"))
		}
		drain(t, &sqlstore.Worker{Store: store}, db)
		wantCount(t, db, "labhealth_dead_letters", 0)
		wantCount(t, db, "labhealth_samples WHERE series_id > 2147483648 AND shape_id > 2147483648", 40)
		for u := range 20 {
			if samples := samplesOf(t, d.store(t).Range(t.Context(), ring(u), noon, noon.Add(time.Hour))); len(samples) != 2 || samples[1].Unit != "bpm" {
				t.Error(samples)
			}
		}
	})
}
