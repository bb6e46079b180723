package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// logRecord is the log of a store.
type logRecord struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *logRecord) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *logRecord) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// logTo makes a store log to the result, which must not have canaries.
func logTo(t *testing.T, store *sqlstore.Store) *logRecord {
	w := new(logRecord)
	store.Logger = slog.New(slog.NewTextHandler(w, nil))
	t.Cleanup(func() {
		if strings.Contains(w.String(), "Ada") {
			t.Errorf("the log quotes the program or the delivery:\n%s", w)
		}
	})
	return w
}

// wantLogged waits for the parts of a line.
func wantLogged(t *testing.T, w *logRecord, parts ...string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		for line := range strings.Lines(w.String()) {
			missing := false
			for _, part := range parts {
				missing = missing || !strings.Contains(line, part)
			}
			if !missing {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no line with %q in ten seconds:\n%s", parts, w)
		}
	}
}

// What runs without tables says so at once, and returns: go worker.Run(ctx) drops its error.
func TestWarnsOfMissingTables(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store, err := sqlstore.Open(d.open(t), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactResults}
		w := logTo(t, store)
		if err := store.Receive(t.Context(), heartrates("Ada", 1, "60")); err == nil {
			t.Error("received without tables")
		}
		wantLogged(t, w, "level=WARN", `msg="sqlstore: the tables are missing: call Store.Migrate"`, "receive")
		ended := make(chan error, 2)
		worker := &sqlstore.Worker{Store: store}
		reactor := &sqlstore.Reactor{Store: store, React: func(context.Context, sqlstore.Reaction) error { return nil }}
		go func() { ended <- worker.Run(t.Context()) }()
		go func() { ended <- reactor.Run(t.Context()) }()
		for range 2 {
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "tables are missing, see Store.Migrate") {
				t.Error(err)
			}
		}
		wantLogged(t, w, "level=ERROR", `msg="sqlstore: the Worker has stopped" error="sqlstore: step: the database failed: tables are missing, see Store.Migrate`)
		wantLogged(t, w, "level=ERROR", `msg="sqlstore: the Reactor has stopped" error="sqlstore: react: the database failed: tables are missing, see Store.Migrate`)
		if n := strings.Count(w.String(), "\n"); n > 5 {
			t.Errorf("%d lines:\n%s", n, w)
		}
	})
}

// Deliveries and reactions that fail are told, with the stack of a panic, and without their
// content.
func TestWarnsOfFunctions(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := reactive(t, d, sqlstore.ReactSamples)
		w := logTo(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		hang := make(chan struct{})
		defer close(hang)
		worker := &sqlstore.Worker{Store: store, Poll: time.Millisecond, Delay: time.Millisecond, Attempts: 2, Apply: func(_ context.Context, _ *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
			switch d.ID {
			case "fails":
				return errors.New("Ada")
			case "panics":
				panic("Ada")
			}
			return nil
		}}
		reactor := &sqlstore.Reactor{Store: store, Poll: time.Millisecond, Delay: time.Millisecond, Attempts: 2, Timeout: 200 * time.Millisecond, React: func(_ context.Context, r sqlstore.Reaction) error {
			switch r.UserID {
			case user(1):
				return errors.New("Ada")
			case user(2):
				panic("Ada")
			case user(3):
				<-hang
			}
			return nil
		}}
		running.Go(func() { worker.Run(ctx) })
		running.Go(func() { reactor.Run(ctx) })
		receive(t, store, webhooks.RawDelivery{ID: "bad", Body: []byte("Ada")}, heartrates("fails", 4, "60"), heartrates("panics", 5, "60"),
			heartrates("one", 1, "60"), heartrates("two", 2, "60"), heartrates("three", 3, "60"))
		wantLogged(t, w, `msg="sqlstore: deliveries became dead letters: see Store.DeadLetters and Store.Requeue" reasons=`)
		wantLogged(t, w, `msg="sqlstore: deliveries cannot be applied and are attempted again: log the errors in Worker.Apply or OnEvent"`, "the application ")
		wantLogged(t, w, `msg="sqlstore: Worker.Apply or OnEvent panicked" panic="string\n`, "warnings_test.go:")
		wantLogged(t, w, `msg="sqlstore: the function of a Reactor or a Receiver fails: it is called again, and given up after Attempts failures: log its errors in it" kind=samples reason="the application `) // whichever came first
		wantLogged(t, w, `msg="sqlstore: the function of a Reactor or a Receiver panicked" panic="string\n`, "warnings_test.go:")
		wantLogged(t, w, `msg="sqlstore: a reaction was given up: see Store.FailedReactions" kind=samples`)
		wantLogged(t, w, `msg="sqlstore: the function of a Reactor or a Receiver ignores its context and does not return: it is abandoned, and its goroutine is kept until it returns" kind=samples hanging=1`)
	})
}

// What cannot start logs why, and what cannot write says whether it is read-only.
func TestWarnsOfSettings(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := d.store(t)
		w := logTo(t, store)
		reactor := &sqlstore.Reactor{Store: store, React: func(context.Context, sqlstore.Reaction) error { return nil }}
		if err := reactor.Run(t.Context()); err == nil {
			t.Error("a Reactor without reactions runs")
		}
		wantLogged(t, w, `level=ERROR msg="sqlstore: the Reactor has stopped" error="sqlstore: Store.Reactions is empty: nothing is queued for the Reactor"`)
		readOnly := d
		readOnly.source += map[sqlstore.Dialect]string{sqlstore.SQLite: "&_pragma=query_only(1)", sqlstore.PostgreSQL: "&default_transaction_read_only=on"}[d.dialect]
		broken, err := sqlstore.Open(readOnly.open(t), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		broken.Logger = store.Logger
		if err := broken.Receive(t.Context(), heartrates("a", 1, "60")); err == nil {
			t.Error("received into a read-only database")
		}
		wantLogged(t, w, `msg="sqlstore: the database is read-only: is it a standby, or a file without permission to write?"`)
		receive(t, store, heartrates("b", 1, "60"))
	})
}

// What ends with its context, also by a deadline, ends without a warning of the database.
func TestEndsWithoutWarning(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		store := reactive(t, d, sqlstore.ReactSamples)
		w := logTo(t, store)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		worker := &sqlstore.Worker{Store: store, Poll: time.Millisecond}
		reactor := &sqlstore.Reactor{Store: store, Poll: time.Millisecond, React: func(context.Context, sqlstore.Reaction) error { return nil }}
		var running sync.WaitGroup
		running.Go(func() { worker.Run(ctx) })
		running.Go(func() { reactor.Run(ctx) })
		for n := 0; ctx.Err() == nil; n++ {
			receive(t, store, heartrates(fmt.Sprint(n), n, "60"))
		}
		running.Wait()
		if log := w.String(); strings.Contains(log, "the database") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// A file of SQLite whose commits are not durable, or a database in memory, is told when the tables
// are made.
func TestWarnsOfWeakFiles(t *testing.T) {
	const weak = "the SQLite database can lose acknowledged deliveries in a power failure: set journal_mode to WAL and synchronous to FULL"
	for _, row := range []struct{ query, line string }{
		{"journal_mode(WAL)&_pragma=synchronous(FULL)", ""},
		{"journal_mode(WAL)&_pragma=synchronous(EXTRA)", ""},
		{"journal_mode(WAL)&_pragma=synchronous(NORMAL)", weak + `" journal_mode=wal synchronous=1`},
		{"journal_mode(DELETE)&_pragma=synchronous(FULL)", weak + `" journal_mode=delete synchronous=2`},
		{"", "the SQLite database is in memory"},
	} {
		t.Run(row.query, func(t *testing.T) {
			d := database{sqlstore.SQLite, "sqlite", ":memory:"}
			if row.query != "" {
				d.source = "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "labhealth.db")) + "?_pragma=" + row.query
			}
			db := d.open(t)
			db.SetMaxOpenConns(1)
			store, err := sqlstore.Open(db, d.dialect)
			must(t, err)
			w := logTo(t, store)
			must(t, store.Migrate(t.Context()))
			if got := w.String(); row.line == "" && got != "" || !strings.Contains(got, row.line) || strings.Count(got, "\n") > 1 {
				t.Errorf("the log is %q", got)
			}
		})
	}
}

// Deliveries to a Receiver whose Run was not called are stored, and the log says that nothing
// applies them.
func TestWarnsWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, err := labhealthtest.Start(labhealthtest.WithListener(make(noListener)))
		must(t, err)
		defer service.Close()
		d := sqliteFile(t)
		store := d.store(t) // makes the tables
		r, err := sqlstore.NewReceiver(d.open(t), d.dialect, sqlstore.ReceiverOptions{Client: clientOf(t, service, service.APIKey), Verifier: webhooks.Unsigned})
		must(t, err)
		w := logTo(t, r.Store)
		deliver := func(id string) {
			request := httptest.NewRequest(http.MethodPost, "/webhooks", bytes.NewReader(heartrates(id, 1, "60").Body))
			request.Header.Set("svix-id", id)
			response := httptest.NewRecorder()
			r.ServeHTTP(response, request)
			if response.Code != http.StatusNoContent {
				t.Fatal(id, response.Code)
			}
		}
		deliver("early")
		if w.String() != "" {
			t.Errorf("the log is %q before a program can have called Run", w)
		}
		time.Sleep(11 * time.Second)
		deliver("late")
		if !strings.Contains(w.String(), `level=WARN msg="sqlstore: deliveries are stored and not applied: call Receiver.Run"`) {
			t.Errorf("the log is %q", w)
		}
		if b, err := store.Backlog(t.Context()); err != nil || b.Waiting != 2 {
			t.Error(b, err)
		}
	})
}
