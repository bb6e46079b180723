package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// sinceYesterday is a service whose clock starts yesterday. now sets it to the time.
func sinceYesterday(t *testing.T) (s *truth, now func()) {
	var behind atomic.Int64
	behind.Store(int64(24 * time.Hour))
	s = newTruth(t, labhealthtest.WithClock(func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }))
	return s, func() { behind.Store(0) }
}

// received collects what a Receiver calls.
type received struct {
	mu    sync.Mutex
	lines []string    // with the number of the order
	keys  []uuid.UUID // of OnResults
}

func (c *received) add(key uuid.UUID, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if key != uuid.Nil {
		c.keys = append(c.keys, key)
	}
}

func (c *received) all() (lines []string, keys []uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines), slices.Clone(c.keys)
}

// options calls c for results and transitions, as fast as the service responds.
func (c *received) options(s *truth) sqlstore.ReceiverOptions {
	return sqlstore.ReceiverOptions{
		Verifier: webhooks.Unsigned, Client: s.client, RequestsPerSecond: 1e6,
		OnResults: func(_ context.Context, r sqlstore.StoredResults) error {
			c.add(r.Key, fmt.Sprintf("%s %s %s of %d", r.Order.Results, r.Results.Metadata.Status, r.Order.Order.ID, len(r.Results.Results)))
			return nil
		},
		OnTransition: func(_ context.Context, r sqlstore.Reaction) error {
			c.add(uuid.Nil, fmt.Sprintf("%s %s", r.Transition.Status, r.OrderID))
			return nil
		},
	}
}

// runsReceiver runs a Receiver with short intervals until stop is called, which checks how it has
// ended.
func runsReceiver(t *testing.T, d database, o sqlstore.ReceiverOptions) (r *sqlstore.Receiver, w *logRecord, stop func()) {
	t.Helper()
	r, err := sqlstore.NewReceiver(d.open(t), d.dialect, o)
	if err != nil {
		t.Fatal(err)
	}
	w = logTo(t, r.Store)
	r.Worker.Poll, r.Reconciler.Poll, r.Reconciler.Interval, r.Reconciler.Rate = time.Millisecond, time.Millisecond, 50*time.Millisecond, 1e6
	if r.Reactor != nil {
		r.Reactor.Poll, r.Reactor.Delay = time.Millisecond, time.Millisecond
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background()) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(r.Shutdown(ctx), <-ended); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	wantLogged(t, w, "level=INFO", `msg="sqlstore: the Receiver has started"`)
	return r, w, stop
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// complete moves an order to its end.
func (s *truth) complete(t testing.TB, id uuid.UUID) {
	t.Helper()
	for {
		state, _ := s.OrderState(id)
		if strings.HasPrefix(state.Status, "completed.") {
			return
		}
		_, err := s.Advance(id)
		must(t, err)
	}
}

func (s *truth) method(id uuid.UUID) string {
	state, _ := s.OrderState(id)
	return state.Method
}

// No function is called for what 1,000 orders had reached before the first start, neither then nor
// after a restart. What they reach later is called.
func TestReceiverIsSilentAboutThePast(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		s, now := sinceYesterday(t)
		orders := s.AddOrders(1000)
		for _, id := range orders[:990] {
			s.complete(t, id)
		}
		must(t, s.PartialResults(orders[997]))
		now()
		var c received
		db := d.open(t)
		resultsStored := func(n int) func() bool {
			return func() bool {
				return count(t, db, "labhealth_order_results") == n && count(t, db, fmt.Sprintf("labhealth_orders WHERE results_at <= %d", time.Now().UnixNano())) == 0
			}
		}
		_, w, stop := runsReceiver(t, d, c.options(s))
		wantLogged(t, w, "level=INFO", `msg="sqlstore: the Receiver has started" dialect=`+d.dialect.String(), "calls_for=\"[transition results]\" reads=\"orders and results\" requests_per_second=1e+06 calls_for_changes_since=")
		wantLogged(t, w, "level=INFO", `msg="sqlstore: the orders that there were before the first start are stored, without calls for what they had reached" orders=10`) // the last of a page is read again
		eventually(t, "the results to be stored", resultsStored(991))
		stop()
		if n := strings.Count(w.String(), "before the first start are stored"); n != 1 {
			t.Errorf("it says %d times how many orders there were", n)
		}
		_, w, stop = runsReceiver(t, d, c.options(s))
		if lines, _ := c.all(); len(lines) != 0 {
			t.Fatalf("%d calls for the past, such as %s", len(lines), lines[0])
		}
		s.complete(t, orders[997]) // whose partial results are known
		s.complete(t, orders[998])
		must(t, s.SetResults(orders[0], `{"metadata":{"status":"final"},"results":[]}`))
		must(t, s.SetStatus(orders[0], "completed."+s.method(orders[0])+".corrected"))
		eventually(t, "the changes to be called", func() bool { _, keys := c.all(); return len(keys) >= 3 })
		stop()
		if strings.Contains(w.String(), "before the first start are stored") {
			t.Error("it takes over orders again")
		}
		lines, keys := c.all()
		for _, id := range []uuid.UUID{orders[0], orders[997], orders[998]} {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, " final "+id.String()) }) {
				t.Errorf("no call for the results of %s: %q", id, lines)
			}
		}
		for _, line := range lines {
			if !slices.ContainsFunc([]uuid.UUID{orders[0], orders[997], orders[998]}, func(id uuid.UUID) bool { return strings.Contains(line, id.String()) }) {
				t.Errorf("called for %s", line)
			}
		}
		if len(keys) != 3 {
			t.Errorf("%d calls of OnResults, want 3: %q", len(keys), lines)
		}
	})
}

// IncludePast calls the functions for everything.
func TestReceiverIncludesThePast(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		s, now := sinceYesterday(t)
		orders := s.AddOrders(2)
		s.complete(t, orders[0])
		now()
		var c received
		o := c.options(s)
		o.IncludePast, o.OnTransition = true, nil
		runsReceiver(t, d, o)
		eventually(t, "the call", func() bool { lines, _ := c.all(); return len(lines) > 0 })
		if lines, _ := c.all(); len(lines) != 1 || !strings.HasPrefix(lines[0], "final final "+orders[0].String()) {
			t.Error(lines)
		}
	})
}

// OnResults is called for final results and for each correction, with another key, and for partial
// ones only if asked for. A repeated call and a restart have the same key.
func TestReceiverResults(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		s := newTruth(t)
		var c received
		o := c.options(s)
		o.OnTransition = nil
		called := o.OnResults
		fails := 2
		o.OnResults = func(ctx context.Context, r sqlstore.StoredResults) error {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", r, r, &r), "Ada") {
				t.Error("printed results show the patient")
			}
			called(ctx, r)
			if fails--; fails >= 0 {
				return errors.New("canary Ada")
			}
			return nil
		}
		r, _, stop := runsReceiver(t, d, o)
		receiver := httptest.NewServer(r)
		defer receiver.Close()
		must(t, s.DeliverTo(receiver.URL))
		id := s.AddOrders(2)[1] // no testkit
		must(t, s.PartialResults(id))
		must(t, s.Flush(t.Context()))
		eventually(t, "the partial results", func() bool { return count(t, d.open(t), "labhealth_order_results") == 1 })
		s.complete(t, id)
		eventually(t, "three calls", func() bool { _, keys := c.all(); return len(keys) == 3 })
		must(t, s.SetStatus(id, "completed."+s.method(id)+".corrected"))
		must(t, s.SetResults(id, `{"metadata":{"status":"final"},"results":[]}`))
		must(t, s.Flush(t.Context()))
		eventually(t, "the correction", func() bool { lines, _ := c.all(); return strings.HasSuffix(lines[len(lines)-1], "of 0") })
		stop()
		lines, keys := c.all()
		if keys[0] != keys[1] || keys[1] != keys[2] || keys[len(keys)-1] == keys[0] || strings.Contains(strings.Join(lines, "\n"), "partial") {
			t.Errorf("%v %q", keys, lines)
		}

		var partial received
		o = partial.options(s)
		o.OnTransition, o.PartialResults = nil, true
		_, _, stop = runsReceiver(t, d, o)
		id = s.AddOrders(4)[3]
		must(t, s.PartialResults(id))
		eventually(t, "the call for partial results", func() bool { _, keys := partial.all(); return len(keys) == 1 })
		stop()
		if lines, _ := partial.all(); len(lines) != 1 || !strings.HasPrefix(lines[0], "partial partial "+id.String()) {
			t.Errorf("%q", lines)
		}
	})
}

// OnEvent writes in the transaction that applies an event, OnSamples is called for what is
// delivered, and not for what the first pass over the users reads.
func TestReceiverWearables(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		s := newTruth(t)
		userID := s.AddUser("old")
		must(t, s.AddSamples(userID, "glucose", 20, labhealthtest.StartingAt(time.Now().AddDate(0, 0, -3))))
		db := d.open(t)
		_, err := db.ExecContext(t.Context(), `CREATE TABLE events (type TEXT)`)
		must(t, err)
		var called atomic.Int64
		r, _, stop := runsReceiver(t, d, sqlstore.ReceiverOptions{
			Verifier: webhooks.Unsigned, Client: s.client, RequestsPerSecond: 1e6,
			OnSamples: func(context.Context, sqlstore.Reaction) error { called.Add(1); return nil },
			OnEvent: func(ctx context.Context, tx *sql.Tx, event *webhooks.Event) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO events (type) VALUES ("+specificsOf[d.dialect].placeholder(1)+")", string(event.Type))
				return err
			},
		})
		eventually(t, "the user to be compared", func() bool { return count(t, db, "labhealth_reconciled_users WHERE at > 0") == 1 })
		if n := count(t, db, "labhealth_samples"); called.Load() != 0 || n == 0 {
			t.Errorf("%d calls for %d samples of the past", called.Load(), n)
		}
		receive(t, r.Store, heartrates("new", 7, "60"))
		eventually(t, "the call", func() bool { return called.Load() == 1 })
		stop()
		if n := count(t, db, "events"); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
	})
}

// What cannot work is an error of NewReceiver that names the option.
func TestReceiverOptions(t *testing.T) {
	s := newTruth(t)
	db := sqliteFile(t).open(t)
	valid := sqlstore.ReceiverOptions{Secrets: []string{"whsec_" + strings.Repeat("QUJD", 8)}, Client: s.client}
	var got []string
	for _, change := range []func(*sqlstore.ReceiverOptions){
		func(*sqlstore.ReceiverOptions) {},
		func(o *sqlstore.ReceiverOptions) { o.Client = nil },
		func(o *sqlstore.ReceiverOptions) { o.Secrets = nil },
		func(o *sqlstore.ReceiverOptions) { o.Secrets = []string{""} },
		func(o *sqlstore.ReceiverOptions) { o.Verifier = webhooks.Unsigned },
		func(o *sqlstore.ReceiverOptions) { o.RequestsPerSecond = -1 },
		func(o *sqlstore.ReceiverOptions) {
			o.HandlerOptions = []webhooks.HandlerOption{webhooks.WithBodyLimit(0)}
		},
	} {
		o := valid
		change(&o)
		_, err := sqlstore.NewReceiver(db, sqlstore.SQLite, o)
		got = append(got, fmt.Sprint(err))
	}
	_, err := sqlstore.NewReceiver(db, 0, valid)
	got = append(got, fmt.Sprint(err))
	want := []string{
		"<nil>",
		"sqlstore: ReceiverOptions.Client is required: it reads results and what was never delivered",
		"sqlstore: ReceiverOptions.Secrets: webhooks: NewVerifier needs a secret; see Unsigned for a sender that does not sign",
		"sqlstore: ReceiverOptions.Secrets: webhooks: secret 1 of 1 is empty: is its environment variable set?",
		"sqlstore: ReceiverOptions has both Secrets and a Verifier: set one of them",
		"sqlstore: ReceiverOptions.RequestsPerSecond must not be negative: 0 means 5",
		"webhooks: WithBodyLimit must be positive",
		"sqlstore: Open needs a dialect, sqlstore.SQLite or sqlstore.PostgreSQL",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var none *sqlstore.Receiver
	for _, r := range []*sqlstore.Receiver{none, {}} {
		if err := errors.Join(r.Run(t.Context()), r.Shutdown(t.Context())); err == nil {
			t.Error("a Receiver that was not made runs")
		}
		r.ServeHTTP(httptest.NewRecorder(), nil)
	}
}

// A database that cannot be used is what Run returns first, in words that name what to change.
func TestReceiverDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		s := newTruth(t)
		run := func(d database, dialect sqlstore.Dialect) error {
			r, err := sqlstore.NewReceiver(d.open(t), dialect, (&received{}).options(s))
			must(t, err)
			logTo(t, r.Store)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err = r.Run(ctx)
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader("{}")))
			if again := r.Run(ctx); w.Code != 503 || again == nil {
				t.Errorf("after Run: %d, %v", w.Code, again)
			}
			return err
		}
		const isRead = "sqlstore: the database is read-only: is it a standby, or a file without permission to write?"
		other := map[sqlstore.Dialect]sqlstore.Dialect{sqlstore.SQLite: sqlstore.PostgreSQL, sqlstore.PostgreSQL: sqlstore.SQLite}[d.dialect]
		want := fmt.Sprintf("sqlstore: the database is %s, and the dialect that was passed is %s", d.dialect, other)
		if err := run(d, other); err == nil || err.Error() != want {
			t.Error(err)
		}
		readOnly := d
		readOnly.source += map[sqlstore.Dialect]string{sqlstore.SQLite: "&_pragma=query_only(1)", sqlstore.PostgreSQL: "&default_transaction_read_only=on"}[d.dialect]
		if err := run(readOnly, d.dialect); err == nil || !strings.HasPrefix(err.Error(), isRead) {
			t.Error(err)
		}
		d.store(t)
		if err := run(readOnly, d.dialect); err == nil || !strings.HasPrefix(err.Error(), isRead) {
			t.Error(err)
		}
		_, err := d.open(t).ExecContext(t.Context(), `INSERT INTO labhealth_schema (version) VALUES (999)`)
		must(t, err)
		if err := run(d, d.dialect); err == nil || !strings.HasPrefix(err.Error(), "sqlstore: the tables were made by a newer version of this package: update it") {
			t.Error(err)
		}
		unknown, want := d, "sqlstore: the database does not exist or cannot be opened"
		if unknown.source = "file:" + t.TempDir() + "/missing/labhealth.db"; d.dialect == sqlstore.PostgreSQL {
			unknown.source = strings.Replace(d.source, "/test?", "/labhealth_unknown?", 1)
			unknown.source = strings.Replace(unknown.source, "/postgres?", "/labhealth_unknown?", 1)
		}
		if err := run(unknown, d.dialect); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Error(err)
		}
	})
}

// PostgreSQL must store UTF-8.
func TestReceiverEncoding(t *testing.T) {
	t.Parallel()
	d, s := postgres(t), newTruth(t)
	admin, name := d.open(t), "labhealth_"+uuid.NewString()[:8]
	_, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name+" ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	must(t, err)
	t.Cleanup(func() { admin.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(d.source)
	must(t, err)
	u.Path = name
	u.RawQuery = "sslmode=disable"
	r, err := sqlstore.NewReceiver(database{driver: d.driver, source: u.String()}.open(t), d.dialect, (&received{}).options(s))
	must(t, err)
	const want = "sqlstore: migrate: the encoding of the database is SQL_ASCII: UTF8 is needed"
	if err := r.Run(t.Context()); err == nil || err.Error() != want {
		t.Error(err)
	}
}

// Of an order that two users name, each user's results come with the order of that user.
func TestReceiverKeepsUsersApart(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		s := newTruth(t)
		var c received
		o := c.options(s)
		o.OnTransition, o.IncludePast = nil, true
		o.OnResults = func(_ context.Context, r sqlstore.StoredResults) error {
			c.add(r.Key, fmt.Sprintf("%s got %s", r.Order.UserID, r.Results.Results[0].Name))
			return nil
		}
		r, _, stop := runsReceiver(t, d, o)
		apply(t, r.Store, parse(t, raw(orderEvent(1, 1, 1), orderEvent(1, 2, 1, 2))))
		for u := 1; u <= 2; u++ {
			results := resultsOf(t, fmt.Sprintf(`{"metadata":{"status":"final"},"results":[{"name":"of user %d","slug":"x","value":1,"result":"1","type":"numeric"}]}`, u))
			if _, err := r.Store.ApplyResults(t.Context(), &labhealth.Order{ID: orderID(1), UserID: user(u)}, results, noon); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "two calls", func() bool { lines, _ := c.all(); return len(lines) == 2 })
		stop()
		lines, keys := c.all()
		slices.Sort(lines)
		want := []string{user(1).String() + " got of user 1", user(2).String() + " got of user 2"}
		if !slices.Equal(lines, want) || keys[0] == keys[1] {
			t.Errorf("%q %v", lines, keys)
		}
	})
}
