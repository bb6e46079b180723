package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
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

// courier is the body of an event that changes nothing in the store, so that a step costs what the
// inbox costs.
const courier = `{"event_type":"labtest.courier.called","data":{"id":"00000000-0000-4000-8000-000000000001","filler":"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"}}`

// fill adds n deliveries of courier to the inbox. Those with a due time have failed once.
func fill(t testing.TB, db *sql.DB, n int, due time.Time) {
	t.Helper()
	attempts, part, at := 0, 0, time.Now().UnixNano()
	if !due.IsZero() {
		attempts, part, at = 1, 1, due.UnixNano()
	}
	_, err := db.ExecContext(t.Context(), fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO labhealth_inbox (slot, part, due, id, received_at, user_id, attempts, body)
		SELECT %d, %d, %d + i, i, %d + i, '%s', %d, cast('%s' AS %s) FROM n`,
		n, sqlstore.Slot(uuid.Nil), part, at, noon.UnixNano(), uuid.Nil, attempts, courier, specificsOf[dialectOf(db)].blob))
	if err != nil {
		t.Fatal(err)
	}
}

func dialectOf(db *sql.DB) sqlstore.Dialect {
	if fmt.Sprintf("%T", db.Driver()) == "*sqlite.Driver" {
		return sqlstore.SQLite
	}
	return sqlstore.PostgreSQL
}

// snapshot keeps the rows that are deleted from now on from being vacuumed.
func snapshot(t testing.TB, d database) {
	t.Helper()
	tx, err := d.open(t).BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), "SELECT count(*) FROM labhealth_schema"); err != nil {
		t.Fatal(err)
	}
}

// ownDatabase returns a database whose snapshots do not affect others.
func ownDatabase(t testing.TB) database {
	t.Helper()
	source := os.Getenv("LABHEALTH_TEST_POSTGRES")
	admin := database{sqlstore.PostgreSQL, "pgx", source}.open(t)
	name := "labhealth_" + uuid.NewString()[:8]
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := admin.ExecContext(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal("LABHEALTH_TEST_POSTGRES is not a URL")
	}
	u.Path = "/" + name
	return database{sqlstore.PostgreSQL, "pgx", u.String()}
}

// inboxState is the state of an inbox whose speed is measured.
type inboxState struct {
	name                   string
	dead, delayed, waiting int // rows that were deleted under an old snapshot, that are not due, and that are
	workers                []*sqlstore.Worker
	rates                  []float64
}

func (s *inboxState) open(t testing.TB) {
	d := ownDatabase(t)
	db := d.open(t)
	stores := []*sqlstore.Store{d.store(t), d.store(t)}
	for n := range 4 {
		s.workers = append(s.workers, &sqlstore.Worker{Store: stores[n%2]})
	}
	fill(t, db, max(s.delayed, 1), time.Now().Add(24*time.Hour))
	if s.dead > 0 {
		fill(t, db, s.dead, time.Time{})
		snapshot(t, d)
		if _, err := db.Exec("DELETE FROM labhealth_inbox WHERE attempts = 0"); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, db, s.waiting, time.Time{})
	if s.dead == 0 {
		for _, statement := range []string{"VACUUM labhealth_inbox", "CHECKPOINT"} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// measure drains n deliveries.
func (s *inboxState) measure(t testing.TB, n int64) {
	var applied atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for _, w := range s.workers {
		all.Go(func() {
			for applied.Load() < n {
				step, err := w.Step(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				applied.Add(int64(step.Applied))
			}
		})
	}
	all.Wait()
	s.rates = append(s.rates, float64(applied.Load())/time.Since(began).Seconds())
}

// TestInboxSpeed measures the speed at which the inbox is drained in several states, in turns. It
// never fails for speed.
func TestInboxSpeed(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" || os.Getenv("LABHEALTH_TEST_POSTGRES") == "" {
		t.Skip("LABHEALTH_TEST_THROUGHPUT and LABHEALTH_TEST_POSTGRES are not both set")
	}
	const rounds, each = 5, 10_000
	states := []*inboxState{
		{name: "no history", waiting: rounds*each + 10_000},
		{name: "200,000 deleted under an old snapshot", waiting: rounds*each + 10_000, dead: 200_000},
		{name: "500,000 delayed", waiting: rounds*each + 10_000, delayed: 500_000},
		{name: "1,000,000 waiting", waiting: 1_000_000},
		{name: "all of these", waiting: 1_000_000, dead: 200_000, delayed: 500_000},
	}
	for _, s := range states {
		s.open(t)
	}
	for range rounds {
		for _, s := range states {
			s.measure(t, each)
		}
	}
	for _, s := range states {
		var ratios []float64
		for i, rate := range s.rates {
			ratios = append(ratios, rate/states[0].rates[i])
		}
		slices.Sort(s.rates)
		slices.Sort(ratios)
		began := time.Now()
		backlog, err := s.workers[0].Store.Backlog(t.Context())
		first := time.Since(began)
		if err == nil {
			_, err = s.workers[0].Store.Backlog(t.Context())
		}
		t.Logf("Backlog takes %v, and again %v: %+v %v", first, time.Since(began)-first, backlog, err)
		t.Logf("%-40s %6.0f deliveries/s (%.0f to %.0f), %.2f of the speed without a history", s.name,
			s.rates[rounds/2], s.rates[0], s.rates[rounds-1], ratios[rounds/2])
	}
}

// visits counts what the transactions of a connection read of the inbox: index entries, which
// include those of deleted rows, and blocks. It is the Apply of a worker.
type visits struct {
	entries, blocks int   // until now, of this connection
	steps           []int // entries by step
	blocksOf        []int
}

func (v *visits) apply(ctx context.Context, tx *sql.Tx, _ webhooks.Delivery, _ webhooks.Changes) error {
	var entries, blocks int
	err := tx.QueryRowContext(ctx, `SELECT pg_stat_get_xact_tuples_returned('labhealth_inbox_pkey'::regclass),
		pg_stat_get_xact_blocks_fetched('labhealth_inbox_pkey'::regclass) + pg_stat_get_xact_blocks_fetched('labhealth_inbox'::regclass)`).
		Scan(&entries, &blocks)
	if entries < v.entries { // the server has moved the counters on
		v.entries, v.blocks = 0, 0
	}
	if n := entries - v.entries; n > 0 { // else it is not the first call of a step
		v.steps, v.blocksOf = append(v.steps, n), append(v.blocksOf, blocks-v.blocks)
	}
	v.entries, v.blocks = entries, blocks
	return err
}

// Neither delayed deliveries nor deleted ones that an old snapshot keeps cost a step anything,
// apart from the scans of the whole inbox.
func TestInboxVisits(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.store(t)
	db := d.open(t)
	const some, steps = 10_000, 30
	fill(t, db, some, time.Now().Add(time.Hour))
	fill(t, db, some, time.Time{})
	snapshot(t, d)
	if _, err := db.Exec("DELETE FROM labhealth_inbox WHERE attempts = 0"); err != nil {
		t.Fatal(err)
	}
	fill(t, db, steps*100, time.Time{})

	one := d.open(t)
	one.SetMaxOpenConns(1)
	store, err := sqlstore.Open(one, d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	var v visits
	worker := &sqlstore.Worker{Store: store, Apply: v.apply}
	for range steps {
		if step, err := worker.Step(t.Context()); err != nil || step.Applied != 100 {
			t.Fatalf("%+v %v", step, err)
		}
	}
	if v.steps[0] < some {
		t.Errorf("the first step read %d entries: nothing is in its way", v.steps[0])
	}
	// A step reads its own entries twice, to take and to delete them, and a rescan those of earlier
	// steps.
	few := 0
	for i, n := range v.steps {
		if n > some+2*100*steps {
			t.Errorf("step %d read %d entries: it passed those that are not due", i, n)
		}
		if n < 600 && v.blocksOf[i] < 3000 {
			few++
		}
	}
	if few < 3 { // how often there is a scan of the whole inbox depends on the machine
		t.Errorf("only %d of %d steps read few entries: %d, blocks %d", few, len(v.steps), v.steps, v.blocksOf)
	}
}

// The statements that take and delete deliveries use the index, with the generic plan, in a
// database without statistics.
func TestInboxPlans(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.store(t)
	var f faults
	store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	var statements []string
	f.set(func(operation string) error {
		if strings.Contains(operation, "labhealth_inbox") && !slices.Contains(statements, operation) {
			statements = append(statements, operation)
		}
		return nil
	}, nil)
	receive(t, store, heartrates("one", 1, "60"))
	fails := true
	worker := &sqlstore.Worker{Store: store, Delay: time.Nanosecond, Apply: func(context.Context, *sql.Tx, webhooks.Delivery, webhooks.Changes) error {
		if fails {
			fails = false
			return errors.New("once")
		}
		return nil
	}}
	db := d.open(t)
	for count(t, db, "labhealth_inbox") > 0 { // the first time alone, then with others
		if _, err := worker.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		fails = fails && count(t, db, "labhealth_inbox WHERE attempts > 0") == 0
	}
	if _, err := store.Backlog(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.set(nil, nil)
	if len(statements) < 5 {
		t.Errorf("only %d statements: %q", len(statements), statements)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run := func(statement string) (plan string) {
		t.Helper()
		rows, err := conn.QueryContext(t.Context(), statement)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan += line + "\n"
		}
		return plan
	}
	run("SELECT set_config('plan_cache_mode', 'force_generic_plan', false)")
	for i, statement := range statements {
		if strings.Contains(statement, "INSERT INTO labhealth_inbox") {
			continue
		}
		if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("PREPARE s%d AS %s", i, statement)); err != nil {
			t.Fatal(err)
		}
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", parameters(statement)), ", ")
		call := fmt.Sprintf("EXPLAIN EXECUTE s%d", i)
		if nulls != "" {
			call += "(" + nulls + ")"
		}
		plan := run(call)
		if strings.Contains(plan, "Seq Scan on labhealth_inbox") || strings.Contains(plan, "Sort") ||
			(!strings.Contains(plan, "Index Cond: ") || !strings.Contains(plan, "labhealth_inbox_pkey")) && !strings.Contains(plan, "TID Cond: ") {
			t.Errorf("%s\n%s", statement, plan)
		}
	}
}

// Deliveries that failed and are due are applied although others arrive all the time, and the other
// way round.
func TestDelayedAndFresh(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		const most = 300 // steps
		for _, batch := range []int{1, 8} {
			fill(t, db, 5*batch, time.Now().Add(-time.Hour))
			worker := &sqlstore.Worker{Store: store, Batch: batch}
			for steps := 0; count(t, db, "labhealth_inbox WHERE part = 1") > 0; steps++ {
				if fill(t, db, batch, time.Time{}); steps > most {
					t.Fatalf("%d are delayed still", count(t, db, "labhealth_inbox WHERE part = 1"))
				}
				if _, err := worker.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.Exec("DELETE FROM labhealth_inbox"); err != nil {
				t.Fatal(err)
			}
			fill(t, db, 5*batch, time.Time{})
			for steps := 0; count(t, db, "labhealth_inbox WHERE part = 0") > 0; steps++ {
				if fill(t, db, batch, time.Now().Add(-time.Hour)); steps > most {
					t.Fatalf("%d wait still", count(t, db, "labhealth_inbox WHERE part = 0"))
				}
				if _, err := worker.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			drain(t, worker, db)
		}
	})
}

// A receipt that is committed after later ones were applied is applied too, and so is a batch that
// another process returns.
func TestLateReceipt(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	fill(t, db, 20_000, time.Time{})
	snapshot(t, d)
	if _, err := db.Exec("DELETE FROM labhealth_inbox"); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 10, time.Time{})
	late, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer late.Rollback()
	if _, err := late.Exec("INSERT INTO labhealth_inbox (slot, part, due, id, received_at, user_id, attempts, body) VALUES ($1, 0, $2, 0, 1, $3, 0, $4)",
		sqlstore.Slot(uuid.Nil), time.Now().UnixNano(), uuid.Nil.String(), []byte(courier)); err != nil {
		t.Fatal(err)
	}
	other, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.Exec("SELECT FROM labhealth_inbox ORDER BY due LIMIT 5 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 200, time.Time{})
	worker := &sqlstore.Worker{Store: store, Batch: 20}
	for count(t, db, "labhealth_inbox") > 5 {
		if _, err := worker.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for count(t, db, "labhealth_inbox") > 0 {
		if step, err := worker.Step(ctx); err != nil {
			t.Fatal(step, err)
		}
	}
}

func TestBacklog(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		want := func(want sqlstore.Backlog) {
			t.Helper()
			got, err := store.Backlog(t.Context())
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		}
		want(sqlstore.Backlog{})
		fill(t, db, 3, time.Now().Add(time.Hour))
		want(sqlstore.Backlog{Delayed: 3, Oldest: noon.Add(1)})
		fill(t, db, 2, time.Now().Add(-time.Hour))
		want(sqlstore.Backlog{Waiting: 2, Delayed: 3, Oldest: noon.Add(1)})
		receive(t, store, heartrates("first", 1, "60"), heartrates("second", 2, "60"))
		want(sqlstore.Backlog{Waiting: 4, Delayed: 3, Oldest: noon})
		receive(t, store, webhooks.RawDelivery{Body: []byte("[]"), ReceivedAt: noon.Add(-time.Hour)}) // the next of its slot
		want(sqlstore.Backlog{Waiting: 5, Delayed: 3, Oldest: noon.Add(-time.Hour)})
		worker := &sqlstore.Worker{Store: store, Batch: 2}
		for count(t, db, "labhealth_dead_letters") == 0 {
			if _, err := worker.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for count(t, db, "labhealth_inbox WHERE attempts = 0") > 0 {
			if _, err := worker.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		fill(t, db, 10_500, time.Time{})
		for range 100 { // until those that were due are applied
			if count(t, db, "labhealth_inbox WHERE attempts = 1") == 3 {
				break
			}
			if _, err := worker.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want(sqlstore.Backlog{Waiting: count(t, db, "labhealth_inbox") - 3, Delayed: 3, DeadLetters: 1, Oldest: noon.Add(1)})
	})
}

// A lock of the samples does not delay the numbers.
func TestBacklogWhileLocked(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	if err := store.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	receive(t, store, heartrates("first", 1, "60"))
	want, err := store.Backlog(t.Context())
	if err != nil || want.Waiting != 1 {
		t.Fatalf("%+v %v", want, err)
	}
	for _, statement := range []string{
		"LOCK TABLE labhealth_samples IN ACCESS EXCLUSIVE MODE",
	} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(statement); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it would wait forever
		got, err := store.Backlog(ctx)
		cancel()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(statement, err, diff)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}
