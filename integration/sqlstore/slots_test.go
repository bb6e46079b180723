package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// breakSlots makes every statement that writes something of a user or of the inbox fail, as if the
// place of the slot were down, while the slot is in a table.
func breakSlots(t *testing.T, db *sql.DB) {
	t.Helper()
	run(t, db, `CREATE TABLE outages (slot smallint)`, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN IF EXISTS (SELECT FROM outages AS o WHERE o.slot = CASE TG_OP WHEN 'DELETE' THEN old.slot ELSE new.slot END) THEN
			RAISE 'canary' USING ERRCODE = '08006'; END IF;
			RETURN CASE TG_OP WHEN 'DELETE' THEN old ELSE new END; END $$`)
	for _, table := range []string{"users", "samples", "series", "inbox", "deliveries", "reactions", "orders"} {
		run(t, db, `CREATE TRIGGER fail BEFORE INSERT OR UPDATE OR DELETE ON labhealth_`+table+` FOR EACH ROW EXECUTE FUNCTION fail()`)
	}
}

// While the statements of one slot fail, those of all others are received, applied and reacted to.
// Afterwards nothing is lost, and nothing was applied twice.
func TestOneSlotFails(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	outage := 5 * time.Second
	if long {
		outage = time.Minute
	}
	open := func() *sqlstore.Store {
		s := reactive(t, d, sqlstore.ReactSamples)
		s.OneSlot = true
		return s
	}
	store, db := open(), ledger(t, d)
	breakSlots(t, db)
	const users = 60
	down := sqlstore.Slot(user(1))
	isDown := func(u int) bool { return sqlstore.Slot(user(u)) == down }
	var all []webhooks.RawDelivery
	var latest webhooks.Latest
	for n := range 600 {
		raw := heartrates(fmt.Sprint("msg_", n), n%users, fmt.Sprint(50+n%7), fmt.Sprint(60+n%5))
		raw.ReceivedAt = noon.Add(time.Duration(n*7919%600) * time.Second)
		all = append(all, raw)
		for _, delivery := range parse(t, []webhooks.RawDelivery{raw}) {
			if _, err := latest.Apply(delivery); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var reacted sync.Map
	for range 2 {
		own := open()
		worker := &sqlstore.Worker{Store: own, Apply: record, Batch: 10, Poll: 10 * time.Millisecond}
		reactor := &sqlstore.Reactor{Store: own, Poll: 10 * time.Millisecond, React: func(_ context.Context, r sqlstore.Reaction) error {
			reacted.Store(r.UserID, true)
			return nil
		}}
		running.Go(func() { worker.Run(ctx) })
		running.Go(func() { reactor.Run(ctx) })
	}
	run(t, db, fmt.Sprintf(`INSERT INTO outages VALUES (%d)`, down))
	began := time.Now()
	var waiting atomic.Int64 // deliveries that the sender has to repeat
	var senders sync.WaitGroup
	for part := range slices.Chunk(all, 200) {
		senders.Go(func() {
			for _, raw := range part {
				if store.Receive(ctx, raw) == nil {
					continue
				}
				waiting.Add(1)
				senders.Go(func() {
					for store.Receive(ctx, raw) != nil && ctx.Err() == nil { // the sender repeats it
						time.Sleep(100 * time.Millisecond)
					}
				})
			}
		})
	}
	others := 0
	for n := range all {
		if !isDown(n % users) {
			others++
		}
	}
	eventually(t, "the deliveries of other slots to be applied", func() bool { return count(t, db, "ledger") == others })
	if took := time.Since(began); took > outage {
		t.Logf("the others took %v", took)
	}
	time.Sleep(max(0, outage-time.Since(began)))
	if n := count(t, db, "ledger"); n != others || waiting.Load() == 0 {
		t.Errorf("%d of %d others were applied, %d were refused", n, others, waiting.Load())
	}
	run(t, db, `DELETE FROM outages`)
	senders.Wait()
	eventually(t, "all to be applied", func() bool { return count(t, db, "ledger") == len(all) && count(t, db, "labhealth_inbox") == 0 })
	eventually(t, "all to be reacted to", func() bool { return count(t, db, "labhealth_reactions") == 0 })
	cancel()
	running.Wait()
	wantCount(t, db, "labhealth_dead_letters", 0)
	if diff := cmp.Diff(contentsOfLatest(&latest), contentsOf(t, store)); diff != "" {
		t.Error(diff)
	}
	for u := range users {
		if _, ok := reacted.Load(user(u)); !ok {
			t.Errorf("there was no reaction to samples of user %d", u)
		}
	}
}

// With OneSlot, each transaction has rows of one slot only, and the content is the same.
func TestOneSlotTransactions(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	store, db := d.store(t), ledger(t, d)
	store.OneSlot = true
	run(t, db, `CREATE TABLE touched (xid bigint, slot smallint)`, `CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO touched VALUES (txid_current(), CASE TG_OP WHEN 'DELETE' THEN old.slot ELSE new.slot END); RETURN NULL; END $$`)
	for _, table := range []string{"users", "slots", "samples", "series", "shapes", "summaries", "inbox", "deliveries", "reactions", "orders", "order_events", "dead_letters"} {
		run(t, db, `CREATE TRIGGER touch AFTER INSERT OR UPDATE OR DELETE ON labhealth_`+table+` FOR EACH ROW EXECUTE FUNCTION touch()`)
	}
	all := history(rand.New(rand.NewPCG(17, 7)), 150)
	receive(t, store, all...)
	drain(t, &sqlstore.Worker{Store: store, Apply: record}, db)
	check(t, d, store, all)
	apply(t, store, parse(t, all)) // the same, by batches of many users
	check(t, d, store, all)
	if n := count(t, db, `(SELECT xid FROM touched GROUP BY xid HAVING count(DISTINCT slot) > 1) AS several`); n != 0 {
		t.Errorf("%d transactions touched several slots", n)
	}
	if n := count(t, db, `(SELECT DISTINCT slot FROM touched) AS slots`); n < 3 {
		t.Errorf("only %d slots", n)
	}
}
