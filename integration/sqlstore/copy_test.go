package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// onPairs runs a test with every pair of databases; with those that matter most if it is slow.
func onPairs(t *testing.T, slow bool, f func(t *testing.T, from, to database)) {
	t.Parallel()
	for name, open := range map[string][2]func(testing.TB) database{
		"SQLite to PostgreSQL":     {sqliteFile, postgres},
		"PostgreSQL to SQLite":     {postgres, sqliteFile},
		"PostgreSQL to PostgreSQL": {postgres, postgres},
		"SQLite to SQLite":         {sqliteFile, sqliteFile},
	} {
		t.Run(name, func(t *testing.T) {
			if slow && !long && strings.HasSuffix(name, "to SQLite") {
				t.Skip("LABHEALTH_TEST_LONG is not set")
			}
			t.Parallel()
			f(t, open[0](t), open[1](t))
		})
	}
}

// ofUsers returns the lines of contents of some users.
func (c contents) ofUsers(users ...int) (some contents) {
	for _, line := range c {
		for _, n := range users {
			if strings.HasPrefix(line, user(n).String()) {
				some = append(some, line)
			}
		}
	}
	return some
}

func is(users ...int) func(uuid.UUID) bool {
	return func(id uuid.UUID) bool {
		return slices.ContainsFunc(users, func(n int) bool { return user(n) == id })
	}
}

// apply applies deliveries in batches.
func apply(t testing.TB, store *sqlstore.Store, all []webhooks.Delivery) {
	t.Helper()
	for batch := range slices.Chunk(all, 20) {
		if _, err := store.ApplyAll(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

func latestOf(all []webhooks.Delivery) contents {
	var latest webhooks.Latest
	for _, d := range all {
		latest.Apply(d)
	}
	return contentsOfLatest(&latest)
}

// A user whose deliveries were applied partly to one database and partly to another has, after a
// move, all of it in the target as if they had been applied there, and nothing in the source. The
// others stay.
func TestMove(t *testing.T) {
	onPairs(t, false, func(t *testing.T, from, to database) {
		all := parse(t, history(rand.New(rand.NewPCG(8, 8)), 900))
		source, target := from.store(t), to.store(t)
		apply(t, source, all[:500])
		apply(t, target, all[400:])
		want := latestOf(all).ofUsers(1, 2)
		rest := contentsOf(t, source).ofUsers(0)
		other := contentsOf(t, target).ofUsers(0)

		copied, err := sqlstore.Copy(t.Context(), source, target, is(1, 2))
		if err != nil || copied.Samples == 0 || copied.Summaries == 0 || copied.Unchanged == 0 || copied.Users != 2 || copied.Deliveries != 0 {
			t.Errorf("%+v, %v", copied, err)
		}
		if diff := cmp.Diff(want, contentsOf(t, target).ofUsers(1, 2)); diff != "" {
			t.Errorf("after Copy: %s", diff)
		}
		again, err := sqlstore.Copy(t.Context(), source, target, is(1, 2))
		if want := (sqlstore.Copied{Users: 2, Unchanged: copied.Samples + copied.Summaries + copied.Unchanged}); err != nil || again != want {
			t.Errorf("the second time: %+v, want %+v, %v", again, want, err)
		}

		moved, err := sqlstore.Move(t.Context(), source, target, is(1, 2))
		if err != nil || moved != again {
			t.Errorf("%+v, want %+v, %v", moved, again, err)
		}
		if diff := cmp.Diff(append(slices.Clone(other), want...), contentsOf(t, target)); diff != "" {
			t.Errorf("the target after Move: %s", diff)
		}
		if diff := cmp.Diff(rest, contentsOf(t, source)); diff != "" {
			t.Errorf("the source after Move: %s", diff)
		}
		if n := count(t, from.open(t), "labhealth_series WHERE user_id <> '"+user(0).String()+"'"); n != 0 {
			t.Errorf("%d series are left", n)
		}
		if moved, err := sqlstore.Move(t.Context(), source, target, is(1, 2)); err != nil || moved != (sqlstore.Copied{}) {
			t.Errorf("nothing is left: %+v, %v", moved, err)
		}
	})
}

// Samples of more than one page keep their versions.
func TestMovePages(t *testing.T) {
	onPairs(t, true, func(t *testing.T, from, to database) {
		values := make([]string, 10_001)
		for i := range values {
			values[i] = fmt.Sprint(i % 200)
		}
		all := parse(t, []webhooks.RawDelivery{heartrates("msg", 1, values...)})
		for n := range 250 {
			d := webhooks.RawDelivery{ReceivedAt: noon, Body: fmt.Appendf(nil, `{"event_type":"daily.data.sleep.created","user_id":%q,"data":{"id":"00000000-0000-0000-0000-%012x"}}`, user(1), n)}
			all = append(all, parse(t, []webhooks.RawDelivery{d})...)
		}
		source, target := from.store(t), to.store(t)
		apply(t, source, all)
		want := contentsOf(t, source)
		n, err := sqlstore.Move(t.Context(), source, target, nil)
		if want := (sqlstore.Copied{Users: 1, Samples: 10_001, Summaries: len(want) - 10_001}); err != nil || n != want {
			t.Errorf("%+v, want %+v, %v", n, want, err)
		}
		if diff := cmp.Diff(want, contentsOf(t, target)); diff != "" || len(want) < 10_200 {
			t.Errorf("%d: %s", len(want), diff)
		}
		older := parse(t, []webhooks.RawDelivery{heartrates("msg", 1, "7")})
		older[0].Event.ReceivedAt = noon.Add(-1)
		if applied, err := target.ApplyAll(t.Context(), older); err != nil || applied[0].Changes.Older != 1 {
			t.Errorf("%+v, %v", applied, err)
		}
	})
}

// Deliveries that wait, dead letters and IDs go along. Those without a user go if uuid.Nil does.
func TestMoveDeliveries(t *testing.T) {
	onPairs(t, false, func(t *testing.T, from, to database) {
		source, target := from.store(t), to.store(t)
		waiting := []webhooks.RawDelivery{heartrates("a", 1, "1"), heartrates("b", 2, "2"), heartrates("", 1, "3"), heartrates("", 1, "3")}
		receive(t, source, waiting...)
		receive(t, source, webhooks.RawDelivery{ID: "none", Body: []byte(`[]`), ReceivedAt: noon})
		cause := errors.New("no")
		for _, d := range []webhooks.RawDelivery{heartrates("c", 1, "1"), heartrates("", 1, "2"), heartrates("d", 2, "3"), {ID: "e", Body: []byte(`{}`), ReceivedAt: noon}} {
			if err := source.DeadLetter(t.Context(), d, cause); err != nil {
				t.Fatal(err)
			}
		}
		n, err := sqlstore.Move(t.Context(), source, target, is(1))
		if want := (sqlstore.Copied{Users: 1, Deliveries: 5}); err != nil || n != want {
			t.Errorf("%+v, want %+v, %v", n, want, err)
		}
		left, gone := from.open(t), to.open(t)
		counts := []int{count(t, left, "labhealth_inbox"), count(t, left, "labhealth_dead_letters"), count(t, gone, "labhealth_inbox"), count(t, gone, "labhealth_dead_letters")}
		if want := []int{2, 2, 3, 2}; !slices.Equal(counts, want) {
			t.Errorf("%v, want %v", counts, want)
		}
		receive(t, target, waiting[0]) // repeated by the service
		if n := count(t, gone, "labhealth_inbox"); n != 3 {
			t.Errorf("%d: a delivery was received again", n)
		}
		for d, err := range target.DeadLetters(t.Context()) {
			if err != nil || d.Reason != "the application failed" || d.Attempts != 1 || !strings.Contains(string(d.Delivery.Body), user(1).String()) || !d.Delivery.ReceivedAt.Equal(noon) {
				t.Errorf("%v %v", d, err)
			}
		}
		n, err = sqlstore.Move(t.Context(), source, target, func(id uuid.UUID) bool { return id == uuid.Nil })
		if want := (sqlstore.Copied{Users: 1, Deliveries: 2}); err != nil || n != want {
			t.Errorf("without a user: %+v, want %+v, %v", n, want, err)
		}
		ledger(t, to)
		worker := &sqlstore.Worker{Store: target, Apply: record}
		drain(t, worker, gone)
		want := latestOf(parse(t, waiting)).ofUsers(1)
		if diff := cmp.Diff(want, contentsOf(t, target)); diff != "" {
			t.Error(diff)
		}
	})
}

// A move that dies before any operation, or after it without its result, on either side, loses
// nothing, and the next one finishes it. No delivery is in the inbox twice.
func TestMoveCrashAnywhere(t *testing.T) {
	onPairs(t, true, func(t *testing.T, from, to database) {
		all := history(rand.New(rand.NewPCG(4, 4)), 12)
		deliveries := parse(t, all)
		source, target := from.store(t), to.store(t)
		var f faults
		var faulty [2]*sqlstore.Store
		for i, d := range []database{from, to} {
			var err error
			if faulty[i], err = sqlstore.Open(d.openFaulty(t, &f), d.dialect); err != nil {
				t.Fatal(err)
			}
		}
		want := latestOf(deliveries)
		step := 71
		if long {
			step = 1
		}
		for n, done := 0, false; !done; n += step {
			clear(t, from)
			clear(t, to)
			apply(t, source, deliveries)
			receive(t, source, heartrates("waiting", 1, "1"), heartrates("", 1, "2"))
			for _, d := range []webhooks.RawDelivery{heartrates("dead", 2, "1"), heartrates("", 2, "2")} {
				if err := source.DeadLetter(t.Context(), d, errCrash); err != nil {
					t.Fatal(err)
				}
			}
			operations := 0
			crash := func(string) error {
				if operations++; operations == n+1 {
					return errCrash
				}
				return nil
			}
			if n%2 == 0 {
				f.set(crash, nil)
			} else {
				f.set(nil, crash)
			}
			_, err := sqlstore.Move(t.Context(), faulty[0], faulty[1], nil)
			f.set(nil, nil)
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Fatalf("the driver's text: %v", err)
			}
			done = operations <= n
			union := append(contentsOf(t, source), contentsOf(t, target)...) // a user that is moved may be in both
			slices.Sort(union)
			if diff := cmp.Diff(want, slices.Compact(union)); diff != "" {
				t.Fatalf("operation %d: %s", n, diff)
			}
			if _, err := sqlstore.Move(t.Context(), source, target, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, contentsOf(t, target)); diff != "" || len(contentsOf(t, source)) > 0 {
				t.Fatalf("operation %d: %s", n, diff)
			}
			db, was := to.open(t), from.open(t)
			counts := []int{count(t, db, "labhealth_inbox"), count(t, db, "labhealth_dead_letters"), count(t, was, "labhealth_inbox"), count(t, was, "labhealth_dead_letters")}
			if want := []int{2, 2, 0, 0}; !slices.Equal(counts, want) {
				t.Fatalf("operation %d: deliveries %v, want %v", n, counts, want)
			}
			db.Close()
			was.Close()
			if done && n < 100 {
				t.Errorf("only %d operations", operations)
			}
		}
	})
}

// While programs write to both databases, a move loses nothing: what is written to the source after
// it, another one takes.
func TestMoveWhileWriting(t *testing.T) {
	onPairs(t, true, func(t *testing.T, from, to database) {
		all := parse(t, history(rand.New(rand.NewPCG(6, 6)), 400))
		source, target := from.store(t), to.store(t)
		var writers sync.WaitGroup
		for n, part := range slices.Collect(slices.Chunk(all, 100)) {
			writers.Go(func() {
				for batch := range slices.Chunk(part, 5) {
					if _, err := []*sqlstore.Store{source, target}[n%2].ApplyAll(t.Context(), batch); err != nil {
						t.Error(err)
					}
				}
			})
		}
		ctx, stop := context.WithCancel(t.Context())
		var mover sync.WaitGroup
		mover.Go(func() {
			for ctx.Err() == nil {
				if _, err := sqlstore.Move(t.Context(), source, target, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
		writers.Wait()
		stop()
		mover.Wait()
		if _, err := sqlstore.Move(t.Context(), source, target, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(latestOf(all), contentsOf(t, target)); diff != "" || len(contentsOf(t, source)) > 0 {
			t.Error(diff)
		}
	})
}

// Two stores of the same tables are an error, whatever URLs lead there: Move would delete
// everything.
func TestMoveToItself(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		all := parse(t, history(rand.New(rand.NewPCG(2, 2)), 50))
		source, target := d.store(t), d.store(t)
		apply(t, source, all)
		for name, transfer := range map[string]func(context.Context, *sqlstore.Store, *sqlstore.Store, func(uuid.UUID) bool) (sqlstore.Copied, error){"Copy": sqlstore.Copy, "Move": sqlstore.Move} {
			if n, err := transfer(t.Context(), source, target, nil); n != (sqlstore.Copied{}) || err == nil || !strings.Contains(err.Error(), "the same tables") {
				t.Errorf("%s: %+v, %v", name, n, err)
			}
			if _, err := transfer(t.Context(), source, nil, nil); err == nil {
				t.Errorf("%s to nil", name)
			}
		}
		if diff := cmp.Diff(latestOf(all), contentsOf(t, source)); diff != "" {
			t.Error(diff)
		}
	})
}

// A copy in the other direction does not make two databases look like one.
func TestCopyInBothDirections(t *testing.T) {
	onPairs(t, false, func(t *testing.T, from, to database) {
		source, target := from.store(t), to.store(t)
		both := 0
		f := faults{before: func(operation string) error {
			if strings.HasPrefix(operation, "SELECT count(*) FROM labhealth_deliveries WHERE id") {
				both++
				_, err := sqlstore.Copy(t.Context(), target, source, nil)
				return err
			}
			return nil
		}}
		watched, err := sqlstore.Open(from.openFaulty(t, &f), from.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Copy(t.Context(), watched, target, nil); err != nil || both != 1 {
			t.Errorf("%d copies back, %v", both, err)
		}
	})
}

// transferLimit is how long a Move waits for the target.
//
//go:linkname transferLimit github.com/labhealth/labhealth-go/webhooks/sqlstore.transferLimit
var transferLimit time.Duration

// Moves of the same user in opposite directions, of which each has locked what the other one waits
// for, end. The user is complete in one of the databases, and another Move finishes.
func TestMoveInBothDirections(t *testing.T) { // not in parallel with other moves
	transferLimit = time.Second
	defer func() { transferLimit = time.Minute }()
	for _, open := range [][2]func(testing.TB) database{{postgres, postgres}, {sqliteFile, sqliteFile}, {sqliteFile, postgres}} {
		t.Run("", func(t *testing.T) {
			all := parse(t, history(rand.New(rand.NewPCG(6, 6)), 100))
			var plain, watched [2]*sqlstore.Store
			var arrive [2]func() // a move has its lock, or has ended without
			var locked sync.WaitGroup
			locked.Add(2)
			for i := range open {
				d := open[i](t)
				d.source = strings.Replace(d.source, "busy_timeout%2810000%29", "busy_timeout%28100%29", 1)
				plain[i] = d.store(t)
				arrive[i] = sync.OnceFunc(locked.Done)
				f := &faults{after: func(operation string) error {
					if strings.Contains(operation, "INSERT INTO labhealth_users") {
						arrive[i]()
						locked.Wait()
					}
					return nil
				}}
				var err error
				if watched[i], err = sqlstore.Open(d.openFaulty(t, f), d.dialect); err != nil {
					t.Fatal(err)
				}
			}
			apply(t, plain[0], all[:60])
			apply(t, plain[1], all[40:])
			var errs [2]error
			var moves sync.WaitGroup
			for i := range errs {
				moves.Go(func() {
					_, errs[i] = sqlstore.Move(t.Context(), watched[i], plain[1-i], is(1))
					arrive[i]()
				})
			}
			moves.Wait()
			// A move that SQLite does not let wait for the other one ends without a lock.
			e := (*sqlstore.Error)(nil)
			if !errors.As(errors.Join(errs[:]...), &e) || !e.TimedOut && !strings.Contains(e.Error(), "database is locked") {
				t.Errorf("%v, %v", errs[0], errs[1])
			}
			if _, err := sqlstore.Move(t.Context(), plain[0], plain[1], nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(latestOf(all), contentsOf(t, plain[1])); diff != "" || len(contentsOf(t, plain[0])) > 0 {
				t.Error(diff)
			}
		})
	}
}

// A delivery that is moved there and back, several times, is in one inbox all the time, also if it
// has the same number in both.
func TestMoveDeliveriesBack(t *testing.T) {
	onPairs(t, false, func(t *testing.T, from, to database) {
		stores := []*sqlstore.Store{from.store(t), to.store(t)}
		dbs := []*sql.DB{from.open(t), to.open(t)}
		receive(t, stores[0], heartrates("waiting", 1, "1"), heartrates("", 1, "2"))
		if err := stores[0].DeadLetter(t.Context(), heartrates("dead", 1, "3"), errCrash); err != nil {
			t.Fatal(err)
		}
		for n := range 4 {
			if _, err := sqlstore.Move(t.Context(), stores[n%2], stores[1-n%2], nil); err != nil {
				t.Fatal(err)
			}
			for i, want := range []int{0, 2} {
				wantCount(t, dbs[(n+i)%2], "labhealth_inbox", want)
				wantCount(t, dbs[(n+i)%2], "labhealth_dead_letters", want/2)
			}
		}
	})
}
