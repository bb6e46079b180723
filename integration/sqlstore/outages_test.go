package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
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

// post delivers without a signature and returns the status. After a network error it returns
// 204, so that its caller does not repeat it.
func post(t *testing.T, url string, raw webhooks.RawDelivery) int {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(raw.Body))
	if err != nil {
		t.Error(err)
		return http.StatusNoContent
	}
	r.Header.Set("webhook-id", raw.ID)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return http.StatusNoContent
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

// outage receives and applies deliveries while the database of store is unavailable: the response
// is 503, and when the database is available again all are applied once. healthy is a store of the
// same database that always works.
func outage(t *testing.T, d database, store, healthy *sqlstore.Store, cut, restore func(), workerFails bool) {
	db := ledger(t, d)
	handler, err := webhooks.NewRawHandler(webhooks.Unsigned, store.Receive)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	all := history(rand.New(rand.NewPCG(11, 1)), 120)
	for i := range all {
		all[i].Body = append(all[i].Body, bytes.Repeat([]byte(" "), 20_000)...)
	}
	for _, raw := range all[:30] {
		if status := post(t, server.URL, raw); status != http.StatusNoContent {
			t.Fatal(status)
		}
	}
	cut()
	var rejected, failures atomic.Int64
	var senders sync.WaitGroup
	enough := make(chan struct{})
	for n := range 3 {
		senders.Go(func() {
			for i := 30 + n; i < len(all); i += 3 {
				for status := 0; status != http.StatusNoContent; {
					if status = post(t, server.URL, all[i]); status == http.StatusServiceUnavailable {
						if rejected.Add(1) == 10 {
							close(enough)
						}
						time.Sleep(time.Millisecond) // the sender's pause
					} else if status != http.StatusNoContent {
						t.Error(status)
						return
					}
				}
			}
		})
	}
	<-enough
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan struct{})
	worker := &sqlstore.Worker{Store: store, Apply: record, Batch: 10, Poll: time.Millisecond}
	worker.Observe.End = func(_ context.Context, step sqlstore.Step, err error) {
		if step.Delayed > 0 {
			t.Errorf("an attempt was counted: %+v", step)
		}
		if err == nil {
			return
		}
		if strings.Contains(err.Error(), "canary") {
			t.Error(err)
		}
		if failures.Add(1) == 2 {
			close(failed)
		}
	}
	var running sync.WaitGroup
	running.Go(func() { worker.Run(ctx) })
	if workerFails {
		<-failed
	}
	if long {
		time.Sleep(10 * time.Second)
	}
	restore()
	senders.Wait()
	for count(t, db, "labhealth_inbox") > 0 {
		time.Sleep(time.Millisecond) // until the worker is through
	}
	cancel()
	running.Wait()
	t.Logf("%d responses were 503, the worker failed %d times", rejected.Load(), failures.Load())

	checkOutage(t, db, healthy, all)
}

// checkOutage checks that each delivery was applied once. The handler sets the times of receipt, so
// the content differs from the reference's.
func checkOutage(t *testing.T, db *sql.DB, store *sqlstore.Store, all []webhooks.RawDelivery) {
	t.Helper()
	_, applied, dead := reference(t, all)
	if n := count(t, db, "ledger"); n != len(applied) {
		t.Errorf("%d of %d applied", n, len(applied))
	}
	deadLetters := 0
	for letter, err := range store.DeadLetters(t.Context()) {
		if err != nil || !slices.Contains([]string{"the event has no readable user id", "the summary has no readable id", "some of the data cannot be read"}, letter.Reason) {
			t.Error(err, letter)
		}
		deadLetters++
	}
	if deadLetters != len(dead) {
		t.Errorf("%d of %d dead letters", deadLetters, len(dead))
	}
}

func TestDatabaseUnavailable(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	u, err := url.Parse(d.source)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, u.Host)
	u.Host = p.listener.Addr().String()
	store, err := sqlstore.Open(database{d.dialect, d.driver, u.String()}.open(t), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	outage(t, d, store, d.store(t), func() { p.cut(true) }, func() { p.cut(false) }, true)
}

// proxy passes connections on to a server, or does not.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	off      bool
	open     map[net.Conn]bool
}

func newProxy(t *testing.T, to string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, open: map[net.Conn]bool{}}
	t.Cleanup(func() { listener.Close(); p.cut(true) })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", to)
			p.mu.Lock()
			if err != nil || p.off {
				from.Close()
				if err == nil {
					onward.Close()
				}
			} else {
				p.open[from], p.open[onward] = true, true
				for _, pair := range [][2]net.Conn{{from, onward}, {onward, from}} {
					go func() {
						io.Copy(pair[0], pair[1])
						pair[0].Close()
					}()
				}
			}
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *proxy) cut(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = off
	if off {
		for c := range p.open {
			c.Close()
		}
		p.open = map[net.Conn]bool{}
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		d := sqliteFile(t)
		healthy := d.store(t)
		db := d.open(t)
		db.SetMaxOpenConns(1) // the limit is the connection's
		store, err := sqlstore.Open(db, d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		pages := func(n int) func() {
			return func() {
				if _, err := db.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
					t.Error(err)
				}
			}
		}
		outage(t, d, store, healthy, pages(1), pages(1<<30), false)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		d := postgres(t)
		healthy := d.store(t)
		var f faults
		store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		full := func(operation string) error {
			if strings.Contains(operation, "INSERT") {
				return stateError("53100")
			}
			return nil
		}
		outage(t, d, store, healthy, func() { f.set(full, nil) }, func() { f.set(nil, nil) }, true)
	})
}

// Versions of a receiver whose clock is behind lose against those that others received before,
// until its clock passes their times. Where that matters, Version returns versions from the data.
func TestClockBehind(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		id := uuid.MustParse("3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11")
		sleep := func(received time.Time, total int, updated string) webhooks.Delivery {
			e, err := webhooks.Parse([]byte(fmt.Sprintf(
				`{"event_type":"daily.data.sleep.updated","user_id":%q,"data":{"id":%q,"total":%d,"updated_at":%q}}`, user(1), id, total, updated)))
			if err != nil {
				t.Fatal(err)
			}
			e.ReceivedAt = received
			return webhooks.Delivery{Event: e}
		}
		apply := func(d webhooks.Delivery, want webhooks.Changes) {
			t.Helper()
			got, err := store.Apply(t.Context(), d)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		}
		first := sleep(noon, 1, "2025-03-01T11:00:00Z")
		// Ten minutes later, by a clock an hour behind; and an hour later.
		second := sleep(noon.Add(-50*time.Minute), 2, "2025-03-01T12:05:00Z")
		third := sleep(noon.Add(10*time.Minute), 3, "2025-03-01T13:05:00Z")
		apply(first, webhooks.Changes{Added: 1})
		apply(second, webhooks.Changes{Older: 1})
		apply(third, webhooks.Changes{Updated: 1})

		clear(t, d)
		store = d.store(t)
		store.Version = func(d webhooks.Delivery) int64 { return d.Event.UpdatedAt().UnixNano() }
		apply(first, webhooks.Changes{Added: 1})
		apply(second, webhooks.Changes{Updated: 1})
		apply(first, webhooks.Changes{Older: 1})
		apply(third, webhooks.Changes{Updated: 1})
	})
}

// Any number of processes can migrate at the same time.
func TestMigrate(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		migrateAtOnce(t, d)
		db := d.open(t)
		if n := count(t, db, "labhealth_schema"); n != 1 {
			t.Errorf("%d versions", n)
		}
		if _, err := db.Exec("INSERT INTO labhealth_schema (version) VALUES (1000)"); err != nil {
			t.Fatal(err)
		}
		store, err := sqlstore.Open(db, d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		const want = "sqlstore: migrate: the tables have a newer version: 1000, and this version of the package supports 1"
		if err := store.Migrate(t.Context()); err == nil || err.Error() != want {
			t.Error(err)
		}
	})
}

// The processes that create a file of SQLite find it locked at once, without a wait, so that one in
// fifty of these failed.
func TestMigrateNewFiles(t *testing.T) {
	t.Parallel()
	for range 50 {
		t.Run("", func(t *testing.T) { t.Parallel(); migrateAtOnce(t, sqliteFile(t)) })
	}
}

func migrateAtOnce(t *testing.T, d database) {
	var all sync.WaitGroup
	for range 8 {
		db := d.open(t)
		all.Go(func() {
			store, err := sqlstore.Open(db, d.dialect)
			if err == nil {
				err = store.Migrate(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Schema creates the tables that a store uses.
func TestSchema(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		db := d.open(t)
		for statement := range strings.SplitAfterSeq(sqlstore.Schema(d.dialect), ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		if parameter := specificsOf[d.dialect].readOnly; parameter != "" { // it needs no right to create tables
			readOnly := d
			readOnly.source += parameter
			readOnly.store(t)
		}
		store := d.store(t)
		receive(t, store, heartrates("msg_1", 1, "60"))
		drain(t, &sqlstore.Worker{Store: store}, db)
		if samples := samplesOf(t, store.Range(t.Context(), ring(1), noon, noon.Add(time.Second))); len(samples) != 1 {
			t.Error(samples)
		}
	})
}

// A database that lost what it had committed gives the numbers of series to others. A store writes
// no sample with the unit of another, and none that cannot be read.
func TestFailover(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	glucose := func(u int, unit string) webhooks.Delivery {
		t.Helper()
		body := fmt.Sprintf(`{"event_type":"daily.data.glucose.created","user_id":%q,"data":{"source":{"slug":"ring"},"data":[
			{"timestamp":"2025-03-01T12:00:00Z","unit":%q,"value":5}]}}`, user(u), unit)
		return parse(t, []webhooks.RawDelivery{{ID: unit, Body: []byte(body), ReceivedAt: noon}})[0]
	}
	apply := func(store *sqlstore.Store, d webhooks.Delivery) {
		t.Helper()
		if changes, err := store.Apply(t.Context(), d); err != nil || changes.Added != 1 {
			t.Fatal(changes, err)
		}
	}
	apply(store, glucose(1, "mmol/L"))
	if _, err := db.Exec("TRUNCATE labhealth_samples, labhealth_series, labhealth_users, labhealth_shapes; UPDATE labhealth_slots SET series = 0"); err != nil {
		t.Fatal(err)
	}
	apply(d.store(t), glucose(2, "mg/dL"))
	apply(store, glucose(1, "mmol/L"))
	for _, reader := range []*sqlstore.Store{store, d.store(t)} {
		for u, unit := range map[int]string{1: "mmol/L", 2: "mg/dL"} {
			of := webhooks.Series{UserID: user(u), Resource: "glucose", Provider: "ring"}
			if found := samplesOf(t, reader.Range(t.Context(), of, noon, noon.Add(1))); len(found) != 1 || found[0].Unit != unit {
				t.Errorf("user %d: %d samples, want one in %s", u, len(found), unit)
			}
		}
	}
}

// A delivery that is requeued while its user is deleted is deleted too.
func TestDeleteUserWhileRequeued(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		for n := range 50 {
			if err := store.DeadLetter(t.Context(), heartrates("msg", 1, "60"), nil); err != nil {
				t.Fatal(err)
			}
			var id uuid.UUID
			if err := db.QueryRow("SELECT id FROM labhealth_dead_letters").Scan(&id); err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := store.Requeue(t.Context(), id); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				if err := store.DeleteUser(t.Context(), user(1)); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			if count(t, db, "labhealth_inbox") != 0 || count(t, db, "labhealth_dead_letters") != 0 {
				t.Fatalf("round %d: some data of the user is left", n)
			}
		}
	})
}

// DeleteUser deletes everything of a user, wherever it is, and nothing of others. What arrives
// later is new.
func TestDeleteUser(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		ctx := t.Context()
		all := parse(t, crowd())
		if _, err := store.ApplyAll(ctx, all); err != nil {
			t.Fatal(err)
		}
		for u := range 3 {
			receive(t, store, heartrates(fmt.Sprint("in_", u), u, "60"))
			if err := store.DeadLetter(ctx, heartrates(fmt.Sprint("dead_", u), u, "60"), nil); err != nil {
				t.Fatal(err)
			}
		}
		var want contents
		for _, line := range contentsOf(t, store) {
			if !strings.HasPrefix(line, user(1).String()) {
				want = append(want, line)
			}
		}
		if err := store.DeleteUser(ctx, user(1)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, contentsOf(t, store)); diff != "" {
			t.Error(diff)
		}
		for table, left := range map[string]int{"labhealth_inbox": 2, "labhealth_dead_letters": 2, "labhealth_users": 2} {
			if n := count(t, db, table); n != left {
				t.Errorf("%d in %s", n, table)
			}
		}
		var named int
		if err := db.QueryRow(fmt.Sprintf("SELECT count(*) FROM labhealth_series WHERE user_id = '%s'", user(1))).Scan(&named); err != nil || named != 0 {
			t.Error(named, err)
		}
		if err := store.DeleteUser(ctx, user(9)); err != nil {
			t.Error(err)
		}
		// Another store of the process that knew the user's series before.
		late, err := heartrates("late", 1, "61").Parse()
		if err != nil {
			t.Fatal(err)
		}
		if changes, err := store.Apply(ctx, late); err != nil || changes.Added != 1 {
			t.Error(changes, err)
		}
	})
}

// A transaction with a conflict is repeated a few times. The error then reports it and quotes
// nothing.
func TestConflicts(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		healthy := d.store(t)
		var f faults
		store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := heartrates("msg_1", 1, "60", "61").Parse()
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{"40001", "40P01"} {
			clear(t, d)
			left := 3
			f.set(func(operation string) error {
				if strings.Contains(operation, "INTO labhealth_samples") && left > 0 {
					left--
					return stateError(state)
				}
				return nil
			}, nil)
			changes, err := store.Apply(t.Context(), raw)
			if diff := cmp.Diff(webhooks.Changes{Added: 2, Samples: []int{0, 1}}, changes); err != nil || diff != "" || left != 0 {
				t.Error(err, diff, left)
			}
			if n := len(contentsOf(t, healthy)); n != 2 {
				t.Errorf("%d samples", n)
			}
			left = 1000
			f.set(func(operation string) error {
				if strings.Contains(operation, "SELECT") || strings.Contains(operation, "labhealth_schema") {
					left--
					return stateError(state)
				}
				return nil
			}, nil)
			_, err = store.Apply(t.Context(), raw)
			var e *sqlstore.Error
			if !errors.As(err, &e) || e.SQLState != state || e.Rejected || left != 990 {
				t.Errorf("%v, %d times", err, 1000-left)
			}
		}
	})
}

// The error of an operation reports the SQLSTATE, and quotes nothing.
func TestErrors(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		d.store(t)
		var f faults
		store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := heartrates("msg_1", 1, "60", "61").Parse()
		if err != nil {
			t.Fatal(err)
		}
		for state, want := range map[string]string{
			"22021": "sqlstore: apply: the database rejected the content (SQLSTATE 22021)",
			"53100": "sqlstore: apply: the database failed (SQLSTATE 53100)",
			"Ada's": "sqlstore: apply: the database failed",
			"ADA":   "sqlstore: apply: the database failed",
		} {
			f.set(func(string) error { return stateError(state) }, nil)
			_, err := store.Apply(t.Context(), raw)
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v", state, err)
			}
			var log bytes.Buffer
			slog.New(slog.NewJSONHandler(&log, nil)).Info("failed", "err", err, "store", store)
			if text := fmt.Sprintf("%v %+v %#v %q %s", err, err, err, err, log.String()); strings.Contains(text, "canary") {
				t.Error(text)
			}
			var cause stateError
			if !errors.As(err, &cause) {
				t.Error("the driver's error is not wrapped")
			}
		}
		f.set(nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := store.Apply(ctx, raw); !errors.Is(err, context.Canceled) || err.Error() != "sqlstore: apply: context canceled" {
			t.Error(err)
		}
	})
}

// A lock for which SQLite does not wait is a conflict too.
func TestSQLiteBusy(t *testing.T) {
	t.Parallel()
	d := sqliteFile(t)
	other := d.open(t)
	d.store(t)
	d.source = strings.Replace(d.source, "busy_timeout%2810000%29", "busy_timeout%280%29", 1)
	store := d.store(t)
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO labhealth_deliveries (slot, id, at) VALUES (0, x'00', 0)"); err != nil {
		t.Fatal(err)
	}
	var e *sqlstore.Error
	if err := store.Receive(t.Context(), heartrates("msg_1", 1, "60")); !errors.As(err, &e) || e.Rejected {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	receive(t, store, heartrates("msg_1", 1, "60"))
	if n := count(t, other, "labhealth_inbox"); n != 1 {
		t.Errorf("%d in the inbox", n)
	}
}
