//go:build linux

package sqlstore_test

import (
	"database/sql"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/integration/internal/cputime"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// TestCost measures the size of samples, and the processor time of deliveries: that of this
// process, and that of its sessions on the server, which must be on this machine. It fails for
// nothing but errors. 20,000 users have a series each.
func TestCost(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" {
		t.Skip("LABHEALTH_TEST_THROUGHPUT is not set")
	}
	t.Run("SQLite", func(t *testing.T) { measureCost(t, sqliteFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		d := postgres(t)
		d.source += "&application_name=" + t.Name()
		measureCost(t, d)
	})
}

func measureCost(t *testing.T, d database) {
	store, db := d.store(t), d.open(t)
	apply := func(all []webhooks.RawDelivery) {
		applied, err := store.ApplyAll(t.Context(), parse(t, all))
		if err != nil || applied[0].Err != nil {
			t.Fatal(err, applied)
		}
	}
	receive := func(all []webhooks.RawDelivery) {
		for _, delivery := range all {
			if err := store.Receive(t.Context(), delivery); err != nil {
				t.Fatal(err)
			}
		}
		worker := &sqlstore.Worker{Store: store}
		for left := len(all); left > 0; {
			step, err := worker.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			left -= step.Applied
		}
	}
	l := load{size: 1}
	take := func(n int) (all []webhooks.RawDelivery) {
		for range n {
			all = append(all, l.take())
		}
		return all
	}
	for range walUsers / 1000 {
		apply(take(1000))
	}
	if d.dialect == sqlstore.PostgreSQL {
		execute(t, db, "ANALYZE labhealth_samples", "ANALYZE labhealth_series", "ANALYZE labhealth_shapes")
	}
	for _, c := range []struct {
		name             string
		size, atOnce, in int
		process          func([]webhooks.RawDelivery)
	}{
		{"ApplyAll of 100 deliveries of 100 samples", 100, 100, 20, apply},
		{"ApplyAll of 100 deliveries of 1 sample", 1, 100, 30, apply},
		{"ApplyAll of 1 delivery of 1 sample", 1, 1, 1000, apply},
		{"Receive, and Step of 100 deliveries of 100 samples", 100, 100, 20, receive},
		{"Receive, and Step of 100 deliveries of 1 sample", 1, 100, 30, receive},
	} {
		l.size = c.size
		var batches [][]webhooks.RawDelivery
		for range c.in {
			batches = append(batches, take(c.atOnce))
		}
		client, server := cputime.Now(), serverTime(t, d, db)
		for _, all := range batches {
			c.process(all)
		}
		n := time.Duration(c.in * c.atOnce)
		client, server = (cputime.Now()-client)/n, (serverTime(t, d, db)-server)/n
		t.Logf("%-52s %8v per delivery, %8v of the program and %8v of the server", c.name, client+server, client, server)
	}
	var size float64
	execute(t, db, specificsOf[d.dialect].compact)
	if err := db.QueryRow(specificsOf[d.dialect].size).Scan(&size); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f bytes per sample, with the index", size/float64(count(t, db, "labhealth_samples")))
}

// serverTime returns the processor time of the sessions of a test.
func serverTime(t *testing.T, d database, db *sql.DB) (sum time.Duration) {
	if d.dialect == sqlstore.SQLite {
		return 0
	}
	var all string
	if err := db.QueryRow("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE application_name = $1", t.Name()).Scan(&all); err != nil {
		t.Fatal(err)
	}
	for pid := range strings.FieldsSeq(all) {
		stat, err := os.ReadFile("/proc/" + pid + "/schedstat")
		if err != nil {
			t.Skip("the server is not on this machine: ", err)
		}
		ns, err := strconv.ParseInt(strings.Fields(string(stat))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}
