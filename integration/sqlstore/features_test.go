package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// feature is something that statements of the package need and that not every SQL database has.
type feature struct {
	used  string // regular expression of statements that need it
	probe string // statements that need it, on the table probe (k, v)
}

// features has an entry for each line of the list in docs/scaling.md.
var features = map[string]feature{
	"`ON CONFLICT … DO UPDATE … WHERE`":       {`(?is)ON CONFLICT \(.*DO UPDATE.*WHERE`, `INSERT INTO probe AS p (k, v) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = excluded.v WHERE excluded.v >= p.v`},
	"`ON CONFLICT … DO NOTHING`":              {`(?is)ON CONFLICT.*DO NOTHING`, `INSERT INTO probe (k, v) VALUES (1, 3) ON CONFLICT (k) DO NOTHING`},
	"`RETURNING`":                             {`(?i)\bRETURNING\b`, `INSERT INTO probe (k, v) VALUES (2, 2) RETURNING k`},
	"array literals and `unnest`":             {`(?i)unnest\(`, `SELECT * FROM unnest('{1,2}'::bigint[], '{a,NULL}'::text[]) AS u (a, b)`},
	"`= ANY(array)`":                          {`(?i)= ANY\(`, `SELECT k FROM probe WHERE k = ANY('{1,2}'::bigint[])`},
	"`WITH ORDINALITY`":                       {`(?i)WITH ORDINALITY`, `SELECT * FROM unnest('{1,2}'::bigint[]) WITH ORDINALITY AS u (a, n)`},
	"`CROSS JOIN LATERAL`":                    {`(?i)LATERAL`, `SELECT p.k, q.v FROM probe AS p CROSS JOIN LATERAL (SELECT v FROM probe WHERE k = p.k LIMIT 1) AS q`},
	"`FOR UPDATE` in a subquery with `LIMIT`": {`(?i)LIMIT (1|\$\d::integer) FOR UPDATE`, `SELECT p.k, q.v FROM probe AS p CROSS JOIN LATERAL (SELECT v FROM probe WHERE k = p.k LIMIT 1 FOR UPDATE) AS q`},
	"`FOR UPDATE SKIP LOCKED`":                {`(?i)SKIP LOCKED`, `SELECT k FROM probe FOR UPDATE SKIP LOCKED`},
	"comparison of rows":                      {`\(s\.slot, s\.series, s\.at\) >`, `SELECT k FROM probe WHERE (k, v) > (1, 1)`},
	"`set_config`":                            {`(?i)set_config\(`, `SELECT set_config('lock_timeout', '1s', true)`},
	"the `ctid` column":                       {`ctid`, `SELECT ctid FROM probe WHERE ctid = ANY('{"(0,1)"}'::tid[])`},
	"`to_regclass`":                           {`(?i)to_regclass`, `SELECT to_regclass('probe') IS NOT NULL`},
	"storage parameters and `SET STORAGE`":    {`(?i)SET STORAGE|WITH \((autovacuum|fillfactor)`, `CREATE TABLE probe_storage (v bytea) WITH (autovacuum_vacuum_threshold = 1000, vacuum_truncate = false); ALTER TABLE probe_storage ALTER COLUMN v SET STORAGE EXTERNAL`},
	"views with `jsonb`, `to_timestamp`":      {`(?i)::jsonb|to_timestamp`, `SELECT '{}'::jsonb, to_timestamp(0)`},
	"unlogged tables":                         {`(?i)UNLOGGED`, `CREATE UNLOGGED TABLE probe_unlogged (k bigint)`},
	"PL/pgSQL":                                {`(?i)plpgsql|\bDO \$`, `DO $$ BEGIN PERFORM 1; END $$`},
	"`WITH RECURSIVE`":                        {`(?i)WITH RECURSIVE`, `WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r`},
}

// docs/scaling.md lists what the statements of the package need, no more and no less. The
// statements are those that the package sends while every function of it is used. Each feature has
// a probe of its own, so that on another database the test says what it lacks.
func TestFeatures(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	var mu sync.Mutex
	sent := map[string]bool{sqlstore.Schema(sqlstore.PostgreSQL): true}
	f := faults{before: func(operation string) error {
		mu.Lock()
		defer mu.Unlock()
		sent[operation] = true
		return nil
	}}
	store, err := sqlstore.Open(d.openFaulty(t, &f), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	useAll(t, store)

	used := map[string]bool{}
	for name, of := range features {
		for statement := range sent {
			if regexp.MustCompile(of.used).MatchString(statement) {
				used[name] = true
			}
		}
	}
	page, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "<!-- features -->\n")
	list, _, _ = strings.Cut(list, "<!-- end -->")
	var documented []string
	for line := range strings.Lines(list) {
		documented = append(documented, strings.TrimSpace(strings.TrimPrefix(line, "- ")))
	}
	slices.Sort(documented)
	if want := slices.Sorted(maps.Keys(used)); !slices.Equal(want, documented) {
		t.Errorf("docs/scaling.md lists\n%s\nwant\n- %s", strings.Join(documented, "\n"), strings.Join(want, "\n- "))
	}

	db := d.open(t)
	if _, err := db.Exec("CREATE TABLE probe (k bigint PRIMARY KEY, v bigint)"); err != nil {
		t.Fatal(err)
	}
	for name := range used {
		t.Run(name, func(t *testing.T) {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			for statement := range strings.SplitSeq(probes(features[name].probe), "\x00") {
				if _, err := tx.Exec(statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
			}
		})
	}
}

// probes separates statements by zero bytes.
func probes(list string) string {
	if strings.Contains(list, "$$") {
		return list
	}
	return strings.ReplaceAll(list, "; ", "\x00")
}

// useAll uses every function of a store.
func useAll(t *testing.T, store *sqlstore.Store) {
	t.Helper()
	ctx := t.Context()
	no := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	no(store.Migrate(ctx))
	all := history(rand.New(rand.NewPCG(50, 1)), 200)
	deliveries := parse(t, all)
	for range 2 {
		apply(t, store, deliveries)
	}
	for _, v := range randomVersions(rand.New(rand.NewPCG(50, 2)), 3) {
		_, err := store.ApplyAll(ctx, []webhooks.Delivery{v.delivery(t)})
		no(err)
		_, err = store.ApplyResults(ctx, &labhealth.Order{ID: orderID(v.order)}, &labhealth.OrderResults{}, noon)
		no(err)
	}
	for _, f := range []sqlstore.OrderFilter{{}, {ChangedSince: noon, UserID: user(1), TransactionID: orderID(1), Status: []labhealth.OrderStatus{ordered}, Results: []sqlstore.ResultsState{"none"}}} {
		for o, err := range store.Orders(ctx, f) {
			no(err)
			_, err = store.Timeline(ctx, o.Order.ID)
			no(err)
			_, _, err = store.OrderResults(ctx, o.Order.ID)
			no(err)
		}
	}
	receive(t, store, all[:50]...)
	_, err := store.Seen(ctx, "x")
	no(err)
	no(store.MarkSeen(ctx, "x"))
	worker := &sqlstore.Worker{Store: store, Attempts: 1, Apply: func(_ context.Context, _ *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
		if strings.HasSuffix(d.ID, "7") {
			return errors.New("no")
		}
		return nil
	}}
	for range 5 {
		_, err := worker.Step(ctx)
		no(err)
	}
	letters := 0
	for d, err := range store.DeadLetters(ctx) {
		no(err)
		if letters++; letters == 1 {
			_, err = store.Requeue(ctx, d.ID)
			no(err)
		}
	}
	if letters == 0 {
		t.Error("no dead letters")
	}
	contentsOf(t, store)
	_, err = store.Series(ctx, user(0))
	no(err)
	_, err = store.Backlog(ctx)
	no(err)
	no(store.Maintain(ctx))
	no(store.DeleteUser(ctx, user(0)))
}
