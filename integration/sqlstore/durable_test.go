package sqlstore_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// SQLite has synced what it acknowledges, also what it found: a process that was killed may have
// left it in the cache of the operating system, and only a commit syncs it.
func TestSQLiteCommitsWhatItAcknowledges(t *testing.T) {
	d := sqliteFile(t)
	store, ctx := d.store(t), t.Context()
	raw := heartrates("msg_1", 1, "60")
	delivery := parse(t, []webhooks.RawDelivery{raw})[0]
	receive(t, store, raw)
	if err := store.DeadLetter(ctx, raw, webhooks.ErrNoUser); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(ctx, delivery); err != nil {
		t.Fatal(err)
	}

	again := d.store(t) // as after a restart
	db := d.open(t)
	db.SetMaxOpenConns(1)
	version := func() (n int) { // a number that each commit of another connection changes
		t.Helper()
		if err := db.QueryRow("PRAGMA data_version").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"migrate", func() error { return again.Migrate(ctx) }},
		{"receive", func() error { return again.Receive(ctx, raw) }},
		{"seen", func() error {
			seen, err := again.Seen(ctx, "msg_1")
			if !seen {
				t.Error("the ID is not stored")
			}
			return err
		}},
		{"mark seen", func() error { return again.MarkSeen(ctx, "msg_1") }},
		{"dead letter", func() error { return again.DeadLetter(ctx, raw, webhooks.ErrNoUser) }},
		{"apply", func() error { _, err := again.Apply(ctx, delivery); return err }},
		{"delete user", func() error { return again.DeleteUser(ctx, user(2)) }},
	} {
		before := version()
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if version() == before {
			t.Errorf("%s acknowledges without a commit", c.name)
		}
	}

	// An operation that confirms nothing writes nothing.
	before := version()
	if seen, err := again.Seen(ctx, "msg_2"); seen || err != nil {
		t.Error(seen, err)
	}
	if _, err := db.Exec("DELETE FROM labhealth_inbox"); err != nil {
		t.Fatal(err)
	}
	if step, err := (&sqlstore.Worker{Store: again}).Step(ctx); err != nil || step.Applied != 0 {
		t.Error(step, err)
	}
	if version() != before {
		t.Error("an empty inbox was committed")
	}
	if n := count(t, db, "labhealth_schema"); n != 1 {
		t.Errorf("%d rows of the schema's version", n)
	}
}

// A delivery is acknowledged when its commit is over, and not before. If the commit fails, it is
// not acknowledged.
func TestReceiveAcknowledgesAfterCommit(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		d.store(t)
		var f faults
		store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		handler, err := webhooks.NewRawHandler(webhooks.Unsigned, store.Receive)
		if err != nil {
			t.Fatal(err)
		}
		for n, c := range []struct {
			id     string
			fails  bool
			status int
			stored int
		}{{"", false, 204, 1}, {"msg_1", false, 204, 2}, {"msg_2", true, 503, 2}} {
			responded, commits := make(chan struct{}), 0
			f.set(func(operation string) error {
				if operation != "commit" {
					return nil
				}
				commits++
				select {
				case <-responded:
					t.Errorf("%d: a response before the commit", n)
				case <-time.After(100 * time.Millisecond): // it would be there by now
				}
				if c.fails {
					return stateError("58030")
				}
				return nil
			}, nil)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(heartrates("", n, "60").Body))
			if c.id != "" {
				r.Header.Set("webhook-id", c.id)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			close(responded)
			f.set(nil, nil)
			if stored := count(t, d.open(t), "labhealth_inbox"); w.Code != c.status || stored != c.stored || commits != 1 {
				t.Errorf("%d: %d, %d deliveries, %d commits", n, w.Code, stored, commits)
			}
		}
	})
}
