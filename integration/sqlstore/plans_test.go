package sqlstore_test

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// wholeSlots are parts of the statements that read all rows of a table or a slot.
var wholeSlots = []string{
	"SELECT count(*) FROM (SELECT 1 FROM labhealth_dead_letters LIMIT",
	"DELETE FROM labhealth_dead_letters WHERE slot = ? AND user_id = ?", // both are short
	"DELETE FROM labhealth_inbox WHERE slot = ? AND user_id = ?",
	"AS o WHERE o.slot = k.slot) ORDER BY k.slot", // whether a slot has a row
	"UPDATE labhealth_orders AS o SET results_at = ?",
	"INSERT INTO labhealth_reconciled_users (slot, user_id, at) SELECT DISTINCT",
}

// SQLite has no statistics of the tables, and must use more of a key than the slot all the same:
// otherwise a statement for one order reads all orders.
func TestSQLitePlans(t *testing.T) {
	t.Parallel()
	d := sqliteFile(t)
	var mu sync.Mutex
	var sent []string
	f := faults{before: func(operation string) error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(sent, operation) {
			sent = append(sent, operation)
		}
		return nil
	}}
	store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	store.Reactions = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults, sqlstore.ReactSamples}
	useAll(t, store)
	react := func(_ context.Context, r sqlstore.Reaction) error {
		if r.Kind == sqlstore.ReactSamples {
			return webhooks.ErrPermanent
		}
		return nil
	}
	if _, err := (&sqlstore.Reactor{Store: store, React: react, Parallel: 100}).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	for failed, err := range store.FailedReactions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.RequeueReaction(t.Context(), failed.Reaction.ID); err != nil {
			t.Fatal(err)
		}
	}
	srv := newTruth(t)
	member := srv.AddUsers(1)[0]
	id, err := srv.AddOrder(member, srv.LabTests.WalkIn)
	if err != nil {
		t.Fatal(err)
	}
	r := &sqlstore.Reconciler{Store: store, Client: srv.client}
	for _, read := range []func() (sqlstore.Reconciled, error){
		func() (sqlstore.Reconciled, error) { return r.Since(t.Context(), time.Time{}) },
		func() (sqlstore.Reconciled, error) { return r.Since(t.Context(), time.Now().Add(-time.Hour)) },
		func() (sqlstore.Reconciled, error) { return r.User(t.Context(), member, time.Now(), time.Time{}) },
		func() (sqlstore.Reconciled, error) { return r.Order(t.Context(), id) },
		func() (sqlstore.Reconciled, error) {
			srv.set(func() { srv.hidden[id] = true })
			return r.Order(t.Context(), id)
		},
	} {
		if _, err := read(); err != nil {
			t.Fatal(err)
		}
	}

	db := d.open(t)
	for _, table := range queryColumn(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'labhealth%'`) {
		if table != "labhealth_schema" && table != "labhealth_slots" {
			execute(t, db, "DELETE FROM "+table)
		}
	}
	kind := regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE)\b`)
	whole := regexp.MustCompile(`(?m)^.*(SCAN \w|\(slot=\?\)).*$`)
	explained := 0
	for _, statement := range sent {
		if !kind.MatchString(statement) || strings.Contains(statement, "labhealth_schema") {
			continue
		}
		explained++
		nulls := make([]any, strings.Count(statement, "?"))
		plan := strings.Join(queryColumn(t, db, "EXPLAIN QUERY PLAN "+statement, nulls...), "\n")
		for _, line := range whole.FindAllString(plan, -1) {
			if !strings.Contains(line, "labhealth") { // rows that are parameters
				continue
			}
			if !slices.ContainsFunc(wholeSlots, func(part string) bool { return strings.Contains(statement, part) }) {
				t.Errorf("%s\n%s\n%s", statement, line, plan)
			}
		}
	}
	if explained < 60 {
		t.Errorf("only %d statements were sent", explained)
	}
}

// queryColumn returns the last column of a query.
func queryColumn(t testing.TB, db *sql.DB, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var text string
		into := make([]any, len(columns))
		for i := range into {
			into[i] = new(any)
		}
		into[len(into)-1] = &text
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}
