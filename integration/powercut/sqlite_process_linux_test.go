package powercut_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// The parameters of a process with a store.
const (
	dirVariable         = "LABHEALTH_POWERCUT_DIR"
	synchronousVariable = "LABHEALTH_POWERCUT_SYNCHRONOUS"
	reactedVariable     = "LABHEALTH_POWERCUT_REACTED" // the URL that is told of each reaction
	migrateVariable     = "LABHEALTH_POWERCUT_MIGRATE" // whether to migrate a store that is migrated
	checkpointVariable  = "LABHEALTH_POWERCUT_CHECKPOINT"
)

// ledger has a row for each delivery that the worker applied, in the transaction that applied it.
const ledger = `CREATE TABLE IF NOT EXISTS ledger (delivery_id TEXT PRIMARY KEY, times INTEGER NOT NULL)`

// playSQLite is a receiver of webhooks: deliveries come by three ways, and a worker and a reactor
// start when they are asked to. It prints its URL when the store is open.
func playSQLite() error {
	source := "file:" + filepath.Join(os.Getenv(dirVariable), "store.db") +
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(" + os.Getenv(synchronousVariable) + ")"
	if pages := os.Getenv(checkpointVariable); pages != "" {
		source += "&_pragma=wal_autocheckpoint(" + pages + ")"
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := sqlstore.Open(db, sqlstore.SQLite)
	if err != nil {
		return err
	}
	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition}
	if os.Getenv(migrateVariable) != "" || !isMigrated(ctx, db) {
		if err := store.Migrate(ctx); err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, ledger); err != nil {
			return err
		}
	}
	mux := http.NewServeMux()
	if err := handleDeliveries(mux, store); err != nil {
		return err
	}
	mux.HandleFunc("/work", func(http.ResponseWriter, *http.Request) { work(ctx, store) })
	mux.HandleFunc("/content", func(w http.ResponseWriter, r *http.Request) {
		found, err := readContent(r.Context(), db)
		if err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		json.NewEncoder(w).Encode(found)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	return http.Serve(l, mux)
}

// isMigrated reports whether the tables are there. A program that leaves migrations to others
// starts without a commit, which would sync what was left by the one that was killed.
func isMigrated(ctx context.Context, db *sql.DB) bool {
	_, err := db.ExecContext(ctx, `SELECT 1 FROM ledger`) // created last
	return err == nil
}

// The ways of a delivery. Each acknowledges a repetition by other means.
const (
	receiveWay     = "/receive"      // Store.Receive finds the ID
	deduplicateWay = "/deduplicated" // Store.Seen finds it
	applyWay       = "/applied"      // Store.Apply finds the data
)

func handleDeliveries(mux *http.ServeMux, store *sqlstore.Store) error {
	apply := func(ctx context.Context, e *webhooks.Event) error {
		_, err := store.Apply(ctx, webhooks.Delivery{Event: e})
		return err
	}
	received, err := webhooks.NewRawHandler(webhooks.Unsigned, store.Receive)
	if err != nil {
		return err
	}
	deduplicated, err := webhooks.NewRawHandler(webhooks.Unsigned, store.Receive, webhooks.WithDeduplicator(store))
	if err != nil {
		return err
	}
	applied, err := webhooks.NewHandler(webhooks.Unsigned, apply)
	if err != nil {
		return err
	}
	mux.Handle(receiveWay, received)
	mux.Handle(deduplicateWay, deduplicated)
	mux.Handle(applyWay, applied)
	return nil
}

// work starts a worker and a reactor.
func work(ctx context.Context, store *sqlstore.Store) {
	worker := &sqlstore.Worker{Store: store, Batch: 10, Poll: 20 * time.Millisecond,
		Apply: func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO ledger VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1`, d.ID)
			return err
		}}
	reactor := &sqlstore.Reactor{Store: store, Poll: 20 * time.Millisecond, React: tell}
	go worker.Run(ctx)
	go reactor.Run(ctx)
}

// reacted is what a reaction shows outside: it cannot be taken back.
type reacted struct{ Reaction, Order string }

func tell(ctx context.Context, r sqlstore.Reaction) error {
	body, err := json.Marshal(reacted{r.ID.String(), r.OrderID.String()})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv(reactedVariable), bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// content is what a store has.
type content struct {
	Inbox       map[string]int      // how often, by the ID of the delivery
	Ledger      map[string]int      // how often the worker applied it
	Samples     map[string]int      // by their value
	Transitions map[string]int      // by the ID of the event
	PerOrder    map[string]int      // transitions by order
	Reactions   map[string][]string // that are queued, by order
	Orphans     int                 // transitions without an order
	DeadLetters int
}

// readContent reads all tables. It returns an error if the database is damaged.
func readContent(ctx context.Context, db *sql.DB) (c content, err error) {
	var integrity string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&integrity); err != nil {
		return c, err
	}
	if integrity != "ok" {
		return c, errors.New("integrity_check: " + integrity)
	}
	c.Reactions = map[string][]string{}
	read := func(statement string, row func(name string, value string)) {
		if err == nil {
			err = readRows(ctx, db, statement, row)
		}
	}
	counts := func(into *map[string]int, statement string) {
		*into = map[string]int{}
		read(statement, func(name, value string) {
			n := 0
			fmt.Sscan(value, &n)
			(*into)[name] = n
		})
	}
	counts(&c.Inbox, `SELECT delivery_id, count(*) FROM labhealth_inbox GROUP BY 1`)
	counts(&c.Ledger, `SELECT delivery_id, times FROM ledger`)
	counts(&c.Samples, `SELECT CAST(CAST(value AS INTEGER) AS TEXT), count(*) FROM labhealth_samples GROUP BY 1`)
	counts(&c.Transitions, `SELECT id, count(*) FROM labhealth_order_events GROUP BY 1`)
	counts(&c.PerOrder, `SELECT order_id, count(*) FROM labhealth_order_events GROUP BY 1`)
	read(`SELECT order_id, id FROM labhealth_reactions`, func(order, id string) { c.Reactions[order] = append(c.Reactions[order], id) })
	read(`SELECT 'orphans', count(*) FROM labhealth_order_events WHERE order_id NOT IN (SELECT order_id FROM labhealth_orders)`,
		func(_, n string) { fmt.Sscan(n, &c.Orphans) })
	read(`SELECT 'dead letters', count(*) FROM labhealth_dead_letters`, func(_, n string) { fmt.Sscan(n, &c.DeadLetters) })
	return c, err
}

func readRows(ctx context.Context, db *sql.DB, statement string, row func(name, value string)) error {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		row(name, value)
	}
	return rows.Err()
}
