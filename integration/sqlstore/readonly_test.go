package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// After a failover, the sessions of the old primary are read-only. They leave the pool, so that
// another session is used the next time.
func TestReadOnlySessions(t *testing.T) {
	for _, driver := range []string{"pgx"} { // lib/pq begins transactions as READ WRITE: only a standby rejects them
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			d := postgres(t)
			d.driver = driver
			d.store(t)
			db := d.open(t)
			db.SetMaxOpenConns(1)
			store, err := sqlstore.Open(db, d.dialect)
			if err != nil {
				t.Fatal(err)
			}
			store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition}
			worker := &sqlstore.Worker{Store: store}
			reactor := &sqlstore.Reactor{Store: store, React: func(context.Context, sqlstore.Reaction) error { return nil }}
			for name, use := range map[string]func() error{
				"receive": func() error { return store.Receive(t.Context(), orderEvent(1, 1, 1)) },
				"receive with an ID": func() error {
					d := orderEvent(2, 1, 1)
					d.ID = uuid.NewString()
					return store.Receive(t.Context(), d)
				},
				"mark": func() error { return store.MarkSeen(t.Context(), uuid.NewString()) },
				"work": func() error {
					_, err := worker.Step(t.Context())
					return err
				},
				"react": func() error {
					_, err := reactor.Step(t.Context())
					return err
				},
			} {
				if err := store.Receive(t.Context(), orderEvent(3, 1, 1, 2)); err != nil { // something to do
					t.Fatal(err)
				}
				if _, err := worker.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := store.Receive(t.Context(), orderEvent(4, 1, 1, 2)); err != nil {
					t.Fatal(err)
				}
				if _, err := db.ExecContext(t.Context(), `SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`); err != nil {
					t.Fatal(err)
				}
				var failed *sqlstore.Error
				if err := use(); !errors.As(err, &failed) || failed.SQLState != "25006" || failed.Rejected {
					t.Errorf("%s: %v on a read-only session", name, err)
				}
				if err := use(); err != nil {
					t.Errorf("%s: %v on the next session", name, err)
				}
				db.SetMaxIdleConns(0) // a new session for the next case
				db.SetMaxIdleConns(1)
			}
		})
	}
}

// Connections that the server has closed are not an error of the next transactions, however many.
func TestClosedSessions(t *testing.T) {
	for _, driver := range []string{"pgx"} { // lib/pq begins transactions as READ WRITE: only a standby rejects them
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			d := postgres(t)
			d.driver = driver
			u, err := url.Parse(d.source)
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			q.Set("application_name", q.Get("search_path"))
			u.RawQuery = q.Encode()
			d.source = u.String()
			d.store(t)
			db := d.open(t)
			db.SetMaxIdleConns(10)
			store, err := sqlstore.Open(db, d.dialect)
			if err != nil {
				t.Fatal(err)
			}
			var open []*sql.Conn
			for range 10 {
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, conn)
			}
			for _, conn := range open {
				conn.Close()
			}
			admin := postgres(t).open(t)
			for _, use := range []func() error{
				func() error { return store.Receive(t.Context(), orderEvent(1, 1, 1)) },
				func() error { return store.MarkSeen(t.Context(), "1") },
			} {
				if _, err := admin.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, q.Get("search_path")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond) // the server closes the connections
				if err := use(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A standby rejects every transaction that may write. Migrate needs none if the tables are current.
func TestMigrateStandby(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	d.store(t)
	var f faults
	store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	f.set(func(operation string) error { // as with lib/pq on a standby
		if operation == "begin" {
			return stateError("0A000")
		}
		return nil
	}, nil)
	if err := store.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
}

// A database whose encoding is not UTF-8 cannot store what is delivered.
func TestMigrateEncoding(t *testing.T) {
	for _, driver := range []string{"pgx"} { // lib/pq begins transactions as READ WRITE: only a standby rejects them
		for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
			t.Run(driver+" "+encoding, func(t *testing.T) {
				t.Parallel()
				d := postgres(t)
				admin := d.open(t)
				name := "labhealth_" + strings.ReplaceAll(uuid.NewString(), "-", "")
				if _, err := admin.ExecContext(t.Context(), `CREATE DATABASE `+name+` ENCODING '`+encoding+`' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if _, err := admin.ExecContext(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
						t.Error(err)
					}
				})
				u, err := url.Parse(d.source)
				if err != nil {
					t.Fatal(err)
				}
				q := u.Query()
				q.Del("search_path")
				u.Path, u.RawQuery = "/"+name, q.Encode()
				d = database{d.dialect, driver, u.String()}
				store, err := sqlstore.Open(d.open(t), d.dialect)
				if err != nil {
					t.Fatal(err)
				}
				err = store.Migrate(t.Context())
				if err == nil || !strings.Contains(err.Error(), "the encoding of the database is "+encoding+": UTF8 is needed") {
					t.Error(err)
				}
			})
		}
	}
}

// A server, or a session, whose commits are not durable is reported when the tables are made, and
// nothing else is.
func TestWeakSettings(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{"": "", "&synchronous_commit=off": "synchronous_commit", "&synchronous_commit=local": ""} {
		d := postgres(t)
		d.source += settings
		store, err := sqlstore.Open(d.open(t), d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		log := logTo(t, store)
		for range 2 {
			if err := store.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if want == "" && log.String() != "" {
			t.Errorf("%q: %s", settings, log)
		}
		if want != "" {
			wantLogged(t, log, "level=WARN", "can lose acknowledged deliveries", "settings="+want)
		}
	}
}
