//go:build unix

package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
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

// These tests spread users over three databases: schemas of the server at LABHEALTH_TEST_POSTGRES,
// or, with LABHEALTH_TEST_SERVERS=1, three PostgreSQL servers that the tests start, and kill.

// shardSet is several databases with the users of history: one each.
type shardSet struct {
	databases []database
	servers   []*postgrestest.Server // nil without LABHEALTH_TEST_SERVERS
}

func newShardSet(t *testing.T) *shardSet {
	t.Helper()
	s := &shardSet{}
	for range 3 {
		if os.Getenv("LABHEALTH_TEST_SERVERS") == "" {
			s.databases = append(s.databases, postgres(t))
			continue
		}
		c := postgrestest.New(t)
		s.servers = append(s.servers, c)
		s.databases = append(s.databases, database{sqlstore.PostgreSQL, "pgx", c.URL})
	}
	return s
}

// shards opens the databases with open, so that each has one of the users 0 to 2.
func (s *shardSet) shards(t testing.TB, open func(n int, d database) *sql.DB) *sqlstore.Shards {
	t.Helper()
	slots := []int{sqlstore.Slot(user(0)), sqlstore.Slot(user(1)), sqlstore.Slot(user(2))}
	slices.Sort(slots)
	var all []sqlstore.Shard
	for n, last := range []int{slots[0], slots[1], sqlstore.Slots - 1} {
		store, err := sqlstore.Open(open(n, s.databases[n]), sqlstore.PostgreSQL)
		if err != nil {
			t.Fatal(err)
		}
		first := 0
		if n > 0 {
			first = all[n-1].Last + 1
		}
		all = append(all, sqlstore.Shard{First: first, Last: last, Store: store})
	}
	shards, err := sqlstore.NewShards(all...)
	if err != nil {
		t.Fatal(err)
	}
	if err := shards.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shards
}

func (s *shardSet) open(t testing.TB) *sqlstore.Shards {
	return s.shards(t, func(_ int, d database) *sql.DB { return d.open(t) })
}

// The shards have the content, the changes and the errors of Latest, and a user's data is in one of
// them.
func TestShardsSameAsLatest(t *testing.T) {
	t.Parallel()
	s := newShardSet(t)
	shards := s.open(t)
	r := rand.New(rand.NewPCG(31, 1))
	var latest webhooks.Latest
	for rest := parse(t, history(r, 600)); len(rest) > 0; {
		n := min(1+r.IntN(30), len(rest))
		applied, err := shards.ApplyAll(t.Context(), rest[:n])
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range rest[:n] {
			changes, err := latest.Apply(d)
			if diff := cmp.Diff(changes, applied[i].Changes); diff != "" || err != applied[i].Err {
				t.Fatalf("errors %v, %v, changes %s", err, applied[i].Err, diff)
			}
		}
		rest = rest[n:]
	}
	want := contentsOfLatest(&latest)
	if diff := cmp.Diff(want, contentsOf(t, shards)); diff != "" || len(want) < 100 {
		t.Errorf("%d lines: %s", len(want), diff)
	}
	for n := range 3 {
		if diff := cmp.Diff(want.ofUsers(n), contentsOf(t, shards.Store(user(n)))); diff != "" {
			t.Errorf("the database of user %d: %s", n, diff)
		}
	}
}

// Deliveries that several goroutines receive are applied by the workers of each database, as
// workers of one database do.
func TestShardsWorkers(t *testing.T) {
	t.Parallel()
	s := newShardSet(t)
	shards := s.open(t)
	all := history(rand.New(rand.NewPCG(32, 1)), 300)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var workers, receivers sync.WaitGroup
	var dbs []*sql.DB
	for n := range 3 {
		dbs = append(dbs, ledger(t, s.databases[n]))
		worker := &sqlstore.Worker{Store: shards.Store(userIn(shards, s, n)), Apply: record, Batch: 5, Poll: time.Millisecond}
		workers.Go(func() { worker.Run(ctx) })
	}
	for n := range 3 {
		receivers.Go(func() {
			for _, i := range rand.New(rand.NewPCG(uint64(n), 2)).Perm(len(all)) {
				if err := shards.Receive(ctx, all[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	receivers.Wait()
	for _, db := range dbs {
		for count(t, db, "labhealth_inbox") > 0 {
			time.Sleep(time.Millisecond) // until the workers are through
		}
	}
	cancel()
	workers.Wait()
	want, applied, dead := reference(t, all)
	if diff := cmp.Diff(want, contentsOf(t, shards)); diff != "" {
		t.Error(diff)
	}
	inLedger, deadLetters := 0, 0
	for _, db := range dbs {
		inLedger += count(t, db, "ledger")
		deadLetters += count(t, db, "labhealth_dead_letters")
	}
	if inLedger != len(applied) || deadLetters != len(dead) {
		t.Errorf("%d applied, want %d; %d dead letters, want %d", inLedger, len(applied), deadLetters, len(dead))
	}
}

// userIn returns a user of database n.
func userIn(shards *sqlstore.Shards, s *shardSet, n int) uuid.UUID {
	slots := map[int]int{}
	for u := range 3 {
		slots[sqlstore.Slot(user(u))] = u
	}
	order := []int{sqlstore.Slot(user(0)), sqlstore.Slot(user(1)), sqlstore.Slot(user(2))}
	slices.Sort(order)
	return user(slots[order[n]])
}

// While a database fails, deliveries of its users are not applied and say so; those of the others
// are applied.
func TestShardUnavailable(t *testing.T) {
	t.Parallel()
	s := newShardSet(t)
	var f faults
	shards := s.shards(t, func(n int, d database) *sql.DB {
		if n == 1 {
			return d.openFaulty(t, &f)
		}
		return d.open(t)
	})
	down := userIn(shards, s, 1)
	f.set(func(string) error { return stateError("57P03") }, nil)
	all := parse(t, []webhooks.RawDelivery{heartrates("a", 0, "60"), heartrates("b", 1, "61"), heartrates("c", 2, "62"), {ID: "d", Body: []byte(`{"event_type":"daily.data.heartrate.created","data":{"data":[{"timestamp":"2026-01-01T00:00:00Z","value":5}]}}`)}})
	applied, err := shards.ApplyAll(t.Context(), all)
	failure := (*sqlstore.Error)(nil)
	if !errors.As(err, &failure) || failure.Rejected || failure.SQLState != "57P03" || strings.Contains(err.Error(), "canary") || len(applied) != 4 {
		t.Fatalf("%v %+v", err, applied)
	}
	for u := range 3 {
		switch a := applied[u]; {
		case user(u) == down && (!errors.Is(a.Err, failure) || errors.Is(a.Err, webhooks.ErrPermanent) || a.Changes.Added != 0):
			t.Errorf("user %d, whose database is down: %+v", u, a)
		case user(u) != down && (a.Err != nil || a.Changes.Added != 1):
			t.Errorf("user %d: %+v", u, a)
		}
	}
	if !errors.Is(applied[3].Err, webhooks.ErrNoUser) && !errors.As(applied[3].Err, &failure) {
		t.Errorf("without a user: %+v", applied[3])
	}
	if err := shards.Receive(t.Context(), heartrates("e", 0, "1")); (err != nil) != (user(0) == down) {
		t.Error(err)
	}
	f.set(nil, nil)
	applied, err = shards.ApplyAll(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for u := range 3 {
		if c := applied[u].Changes; (c.Added == 1) != (user(u) == down) || c.Added+c.Same != 1 {
			t.Errorf("user %d, the second time: %+v", u, c)
		}
	}
}

// A server that is killed and brought back while deliveries are applied loses nothing, and the
// users of the others go on meanwhile.
func TestShardKilled(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_SERVERS") == "" {
		t.Skip("LABHEALTH_TEST_SERVERS is not set")
	}
	s := newShardSet(t)
	shards := s.open(t)
	kills := 3
	if long {
		kills = 20
	}
	all := parse(t, history(rand.New(rand.NewPCG(33, 1)), 2000))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var progress [3]atomic.Int64
	var done sync.WaitGroup
	for n := range 3 {
		of := userIn(shards, s, n)
		var mine []webhooks.Delivery
		for _, d := range all {
			if d.Event.UserID == of {
				mine = append(mine, d)
			}
		}
		done.Go(func() { // once all of them, and then again until the kills are over
			for first := true; first || ctx.Err() == nil; first = false {
				for batch := range slices.Chunk(mine, 10) {
					for {
						limited, stop := context.WithTimeout(t.Context(), 2*time.Second)
						_, err := shards.ApplyAll(limited, batch)
						stop()
						if err == nil {
							break
						}
						if failure := (*sqlstore.Error)(nil); !errors.As(err, &failure) || failure.Rejected {
							t.Errorf("%v", err)
							return
						}
						time.Sleep(10 * time.Millisecond) // the server is down
					}
					progress[n].Add(1)
				}
			}
		})
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for began := time.Now(); !holds(); time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatalf("waited a minute for %s", what)
			}
		}
	}
	for k := range kills {
		n := k % 3
		c := s.servers[n]
		before := [3]int64{progress[0].Load(), progress[1].Load(), progress[2].Load()}
		until("progress", func() bool { return progress[n].Load() > before[n]+5 })
		c.Kill()
		before = [3]int64{progress[0].Load(), progress[1].Load(), progress[2].Load()}
		until("the others to go on", func() bool {
			return progress[(n+1)%3].Load() > before[(n+1)%3]+20 && progress[(n+2)%3].Load() > before[(n+2)%3]+20
		})
		c.Start(t)
		until("the server to go on", func() bool { return progress[n].Load() > before[n]+5 })
	}
	cancel()
	done.Wait()
	if diff := cmp.Diff(latestOf(all), contentsOf(t, shards)); diff != "" {
		t.Error(diff)
	}
	t.Logf("%d kills; batches of the databases: %d, %d, %d", kills, progress[0].Load(), progress[1].Load(), progress[2].Load())
}

// Each slot belongs to one shard.
func TestNewShards(t *testing.T) {
	store := sqliteFile(t).store(t)
	for want, shards := range map[string][]sqlstore.Shard{
		"slot 0 must":                   {},
		"slot 128 must":                 {shard(0, 127, store)},
		"slot 100 must":                 {shard(0, 127, store), shard(100, 255, store)},
		"slots 0 to 256":                {shard(0, 256, store)},
		"slots 5 to 4":                  {shard(5, 4, store)},
		"slots 0 to 255 has no Store":   {shard(0, 255, nil)},
		"slots 128 to 255 has no Store": {shard(0, 127, store), shard(128, 255, &sqlstore.Store{})},
	} {
		if _, err := sqlstore.NewShards(shards...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	shards, err := sqlstore.NewShards(sqlstore.Shard{First: 200, Last: 255, Store: store}, sqlstore.Shard{First: 0, Last: 199, Store: store})
	if err != nil || shards.Store(uuid.New()) != store {
		t.Error(err)
	}
	for range shards.Samples(t.Context()) {
		t.Error("a sample")
	}
}

func shard(first, last int, store *sqlstore.Store) sqlstore.Shard {
	return sqlstore.Shard{First: first, Last: last, Store: store}
}
