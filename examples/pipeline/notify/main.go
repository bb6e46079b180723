// Notify says once that the results of an order are there, although most of its events are lost:
//
//	go run ./notify
//
// An embedded service stands for the real one. In a program of yours, keep receive, and replace the
// message that it prints.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// receive returns a handler of events. It keeps orders in a file, reads from the service what was
// never delivered, and prints a message when results are there.
func receive(ctx context.Context, client *labhealth.Client, file string, out io.Writer) (http.Handler, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(db, sqlstore.SQLite)
	if err != nil {
		return nil, err
	}
	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactResults}
	if err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	react := func(ctx context.Context, r sqlstore.Reaction) error {
		order, _, err := store.Order(ctx, r.OrderID)
		if err == nil && order.Results == sqlstore.ResultsFinal {
			// After an error or a crash it is called again with the same ID, by which a mail
			// service, for example, recognizes a message that it has sent.
			_, err = fmt.Fprintf(out, "message %s: the results of order %s are there\n", r.ID, r.OrderID)
		}
		return err
	}
	go (&sqlstore.Worker{Store: store}).Run(ctx)                     // applies events
	go (&sqlstore.Reactor{Store: store, React: react}).Run(ctx)      // calls react after the commit
	go (&sqlstore.Reconciler{Store: store, Client: client}).Run(ctx) // finds what was lost
	return webhooks.NewRawHandler(webhooks.Unsigned, store.Receive)  // or webhooks.NewVerifier(secret)
}
