//go:build unix

package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
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

	"github.com/labhealth/labhealth-go/internal/postgrestest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// splitStep returns the statements of docs/scaling.md for a step, which their first line names.
func splitStep(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(page), "```sql\n-- "+name+"\n")
	block, _, _ = strings.Cut(block, "```")
	if !ok {
		t.Fatalf("docs/scaling.md has no step %q", name)
	}
	var statements []string
	for statement := range strings.SplitSeq(block, ";\n") {
		if strings.TrimSpace(statement) != "" {
			statements = append(statements, statement)
		}
	}
	return statements
}

// halves are the stores of a program for the lower and the upper slots.
type halves [2]atomic.Pointer[sqlstore.Store]

// receive stores a delivery as a receiver does, and reports whether it is acknowledged.
func (h *halves) receive(ctx context.Context, d webhooks.RawDelivery) bool {
	e, err := webhooks.ParseEnvelope(d.Body)
	if err != nil {
		e.UserID = uuid.Nil
	}
	return h[sqlstore.Slot(e.UserID)*len(h)/sqlstore.Slots].Load().Receive(ctx, d) == nil
}

// An operator splits a database in two by the steps of docs/scaling.md, while deliveries arrive and
// are applied. Receivers never stop: for a moment, the deliveries of half of the users are rejected
// and repeated. Nothing is lost, the checksums are equal, and each server has its own users in the
// end.
func TestSplitByReplication(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two servers")
	}
	before, after := postgrestest.New(t, "-c", "wal_level=logical"), postgrestest.New(t)
	var dbs [2]*sql.DB
	var stores [2]*sqlstore.Store
	for i, server := range []*postgrestest.Server{before, after} {
		d := database{sqlstore.PostgreSQL, "pgx", server.URL}
		dbs[i], stores[i] = d.open(t), d.store(t)
		stores[i].Reactions = allKinds
	}
	all := history(rand.New(rand.NewPCG(41, 1)), 1500)
	for i := range all { // of users of many slots in place of three
		n := 3 * (i % 40)
		all[i].Body = []byte(strings.NewReplacer(user(0).String(), user(n).String(), user(1).String(), user(n+1).String(),
			user(2).String(), user(n+2).String()).Replace(string(all[i].Body)))
	}
	for u := range 60 {
		order := orderEvent(u, u, 1, 2)
		order.ID, order.Body = fmt.Sprint("order_", u), fmt.Appendf(nil, `{"user_id":%q,%s`, user(u), order.Body[1:])
		all = slices.Insert(all, 20*u, order)
	}
	var place halves
	place[0].Store(stores[0])
	place[1].Store(stores[0])

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running, senders sync.WaitGroup
	worker := func(ctx context.Context, store *sqlstore.Store) {
		w := &sqlstore.Worker{Store: store, Batch: 10, Poll: 5 * time.Millisecond}
		running.Go(func() { w.Run(ctx) })
	}
	old, stopOld := context.WithCancel(ctx)
	worker(old, stores[0])
	var received, waited atomic.Int64
	for part := range 3 {
		senders.Go(func() {
			for i := part; i < len(all); i += 3 {
				for !place.receive(ctx, all[i]) && ctx.Err() == nil { // the service repeats it
					waited.Add(1)
					time.Sleep(20 * time.Millisecond)
				}
				received.Add(1)
				time.Sleep(rand.N(20 * time.Millisecond)) // the load is to last for the whole split
			}
		})
	}
	arrived := func(n int64) func() bool { return func() bool { return received.Load() >= n } }
	eventually(t, "the first deliveries", arrived(200))

	run(t, dbs[0], splitStep(t, "old server: publish")...)
	checkPublication(t, dbs[0])
	source, err := url.Parse(before.URL)
	if err != nil {
		t.Fatal(err)
	}
	connection := fmt.Sprintf("host=%s port=%s dbname=postgres user=postgres", source.Hostname(), source.Port())
	for _, statement := range splitStep(t, "new server: subscribe") {
		run(t, dbs[1], strings.ReplaceAll(statement, "host=old.example dbname=labhealth user=replicator password=…", connection))
	}
	copied := splitStep(t, "new server: is 0 when everything is copied")[0]
	eventually(t, "the copy", func() bool { return scalar(t, dbs[1], copied) == "0" })
	eventually(t, "deliveries after the copy", arrived(received.Load()+100))

	stopOld()
	running.Wait()
	run(t, dbs[0], splitStep(t, "old server: reject")...)
	eventually(t, "deliveries that wait", func() bool { return waited.Load() > 0 })
	position := scalar(t, dbs[0], splitStep(t, "old server: the position to wait for")[0])
	reached := strings.ReplaceAll(splitStep(t, "old server: is true when the new server has it")[0], "0/0", position)
	eventually(t, "the last changes", func() bool { return scalar(t, dbs[0], reached) == "true" })
	sums := splitStep(t, "both servers: compare")[0]
	if diff := cmp.Diff(column(t, dbs[0], sums), column(t, dbs[1], sums)); diff != "" {
		t.Errorf("checksums (-old +new): %s", diff)
	}
	run(t, dbs[1], splitStep(t, "new server: unsubscribe")...)
	run(t, dbs[0], splitStep(t, "old server: empty the queues")...)
	place[1].Store(stores[1])
	worker(ctx, stores[0])
	worker(ctx, stores[1])
	run(t, dbs[0], splitStep(t, "old server: delete")...)
	senders.Wait()
	eventually(t, "everything to be applied", func() bool {
		return count(t, dbs[0], "labhealth_inbox")+count(t, dbs[1], "labhealth_inbox") == 0
	})
	cancel()
	running.Wait()
	checkSplit(t, all, stores, dbs)
}

func scalar(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	return strings.Join(column(t, db, query), "\n")
}

// checkPublication checks that everything is published but the schema and the locks of users.
func checkPublication(t *testing.T, db *sql.DB) {
	t.Helper()
	missing := column(t, db, `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'labhealth%'
		AND tablename NOT IN (SELECT tablename FROM pg_publication_tables WHERE pubname = 'upper') ORDER BY tablename`)
	if want := []string{"labhealth_schema", "labhealth_users"}; !slices.Equal(missing, want) {
		t.Errorf("not published: %v, want %v", missing, want)
	}
}

// checkSplit checks that the databases have what was delivered: each user is in one of them, and
// no delivery is received again.
func checkSplit(t *testing.T, all []webhooks.RawDelivery, stores [2]*sqlstore.Store, dbs [2]*sql.DB) {
	t.Helper()
	want, _, dead := reference(t, all)
	var halves [2]contents
	for _, line := range want {
		id, _, _ := strings.Cut(line, " ")
		n := sqlstore.Slot(uuid.MustParse(id)) * 2 / sqlstore.Slots
		halves[n] = append(halves[n], line)
	}
	letters := 0
	for i, store := range stores {
		if diff := cmp.Diff(halves[i], contentsOf(t, store)); diff != "" || len(halves[i]) < 100 {
			t.Errorf("database %d, %d lines: %s", i, len(halves[i]), diff)
		}
		letters += count(t, dbs[i], "labhealth_dead_letters")
		own := map[int]string{0: "slot >= 128", 1: "slot < 128"}[i]
		for _, table := range []string{"samples", "series", "shapes", "summaries", "orders", "order_events", "reactions", "dead_letters", "users"} {
			wantCount(t, dbs[i], "labhealth_"+table+" WHERE "+own, 0)
		}
	}
	if n := count(t, dbs[0], "labhealth_orders") + count(t, dbs[1], "labhealth_orders"); n != 60 {
		t.Errorf("%d orders, want 60", n)
	}
	if letters != len(dead) {
		t.Errorf("%d dead letters, want %d", letters, len(dead))
	}
	for _, d := range all {
		e, err := webhooks.ParseEnvelope(d.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := stores[sqlstore.Slot(e.UserID)*2/sqlstore.Slots].Receive(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, dbs[0], "labhealth_inbox") + count(t, dbs[1], "labhealth_inbox"); n != 0 {
		t.Errorf("%d deliveries were received again", n)
	}
}
