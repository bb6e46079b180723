package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// A receiver that acknowledges what it has stored, with the worker in the same process. A program imports a driver for its side
// effect, here modernc.org/sqlite.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	db, err := sql.Open("sqlite", "file:labhealth.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	store, err := sqlstore.Open(db, sqlstore.SQLite)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Migrate(ctx); err != nil {
		fmt.Println(err)
		return
	}

	verifier, err := webhooks.NewVerifier(os.Getenv("LABHEALTH_WEBHOOK_SECRET"))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := webhooks.NewRawHandler(verifier, store.Receive)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{Addr: ":8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go server.ListenAndServe()

	worker := &sqlstore.Worker{
		Store: store,
		// What this writes is committed together with the samples.
		Apply: func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, c webhooks.Changes) error {
			if c.Added+c.Updated == 0 {
				return nil
			}
			_, err := tx.ExecContext(ctx, `INSERT INTO to_compute (user_id) VALUES (?) ON CONFLICT DO NOTHING`, d.Event.UserID.String())
			return err
		},
		Observe: func(s sqlstore.Step, err error) { fmt.Println(s.Applied, s.Dead, err) },
	}
	worker.Run(ctx) // until the signal

	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	server.Shutdown(ctx)
	handler.Shutdown(ctx)
}

// Applying deliveries that come from a broker. Those of one transaction are acknowledged together after it; a batch that the database
// refuses is done again one at a time, so that the one that is at fault is found.
func ExampleStore_ApplyAll() {
	var store *sqlstore.Store // of Open

	// A nil error acknowledges all. After an [sqlstore.Error] that is Refused they are applied one at a time, after any other later.
	apply := func(ctx context.Context, raw []webhooks.RawDelivery) error {
		deliveries := make([]webhooks.Delivery, len(raw))
		failed := make([]error, len(raw))
		for i := range raw {
			deliveries[i], failed[i] = raw[i].Parse()
		}
		applied, err := store.ApplyAll(ctx, deliveries)
		if err != nil {
			return err
		}
		for i, a := range applied {
			if failed[i] == nil {
				failed[i] = a.Err // such as webhooks.ErrNoUser
			}
			if failed[i] != nil { // it will never be better
				if err := store.DeadLetter(ctx, raw[i], failed[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	_ = apply
}
