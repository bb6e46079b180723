//go:build unix

package sqlstore_test

import (
	"context"
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

	"github.com/labhealth/labhealth-go/internal/postgrestest"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// Of two servers that hold the users of half of the slots each, one is killed and started again
// while deliveries are applied to both. Nothing is lost, and the other one goes on meanwhile.
func TestKilledServers(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_SERVERS") == "" {
		t.Skip("LABHEALTH_TEST_SERVERS is not set")
	}
	kills := 3
	if long {
		kills = 20
	}
	half := func(d webhooks.Delivery) int { return sqlstore.Slot(d.Event.UserID) * 2 / sqlstore.Slots }
	var servers [2]*postgrestest.Server
	var stores [2]*sqlstore.Store
	var all [2][]webhooks.Delivery
	for _, d := range parse(t, history(rand.New(rand.NewPCG(33, 1)), 2000)) {
		all[half(d)] = append(all[half(d)], d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var progress [2]atomic.Int64
	var done sync.WaitGroup
	for n := range servers {
		servers[n] = postgrestest.New(t)
		stores[n] = database{sqlstore.PostgreSQL, "pgx", servers[n].URL}.store(t)
		if len(all[n]) == 0 {
			t.Fatal("a server has no users")
		}
		done.Go(func() { // once all of them, and then again until the kills are over
			for first := true; first || ctx.Err() == nil; first = false {
				for batch := range slices.Chunk(all[n], 10) {
					if !applyUntilUp(t, stores[n], batch) {
						return
					}
					progress[n].Add(1)
				}
			}
		})
	}
	for k := range kills {
		down, up := k%2, 1-k%2
		before := progress[down].Load()
		eventually(t, "progress", func() bool { return progress[down].Load() > before+5 })
		servers[down].Kill()
		before = progress[up].Load()
		eventually(t, "the other server to go on", func() bool { return progress[up].Load() > before+20 })
		servers[down].Start(t)
		before = progress[down].Load()
		eventually(t, "the server to go on", func() bool { return progress[down].Load() > before+5 })
	}
	cancel()
	done.Wait()
	for n, store := range stores {
		if diff := cmp.Diff(latestOf(all[n]), contentsOf(t, store)); diff != "" {
			t.Errorf("server %d: %s", n, diff)
		}
	}
}

// applyUntilUp applies a batch again until the database is available. It reports whether that is
// why it failed before.
func applyUntilUp(t *testing.T, store *sqlstore.Store, batch []webhooks.Delivery) bool {
	for {
		limited, stop := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := store.ApplyAll(limited, batch)
		stop()
		if err == nil {
			return true
		}
		if failure := (*sqlstore.Error)(nil); !errors.As(err, &failure) || failure.Rejected {
			t.Error(err)
			return false
		}
		time.Sleep(10 * time.Millisecond) // the server is down
	}
}

// A server that a crash can damage is reported once, with the settings to change, and one with the
// defaults is not.
func TestWeakServer(t *testing.T) {
	t.Parallel()
	d := database{sqlstore.PostgreSQL, "pgx", postgrestest.New(t).URL}
	db := d.open(t)
	db.SetMaxOpenConns(1)
	for _, value := range []string{"on", "off"} {
		execute(t, db, "ALTER SYSTEM SET fsync = "+value, "ALTER SYSTEM SET full_page_writes = "+value, "SELECT pg_reload_conf()")
		eventually(t, "the settings", func() bool {
			var fsync, pages string
			err := db.QueryRow("SELECT current_setting('fsync'), current_setting('full_page_writes')").Scan(&fsync, &pages)
			return err == nil && fsync == value && pages == value
		})
		store, err := sqlstore.Open(db, d.dialect)
		if err != nil {
			t.Fatal(err)
		}
		log := logTo(t, store)
		for range 3 {
			if err := store.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.Count(log.String(), "\n")
		switch {
		case value == "on" && lines > 0:
			t.Error(log)
		case value == "off" && (lines != 1 || !strings.Contains(log.String(), `settings="fsync, full_page_writes"`)):
			t.Error(log)
		}
	}
}
