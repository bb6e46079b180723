package sqlstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// measured returns the samples of 20 users, one a minute, in deliveries of 100. With scattered, a
// delivery has samples from all times.
func measured(t testing.TB, n int, scattered, interval bool) []webhooks.RawDelivery {
	const users, size = 20, 100
	minutes := make([][]int, users)
	for u := range minutes {
		for m := range n / users {
			minutes[u] = append(minutes[u], m)
		}
		if scattered {
			rand.New(rand.NewPCG(uint64(u), 1)).Shuffle(len(minutes[u]), func(i, j int) { minutes[u][i], minutes[u][j] = minutes[u][j], minutes[u][i] })
		}
	}
	all := make([]webhooks.RawDelivery, n/size)
	for i := range all {
		samples := make([]string, size)
		for k := range samples {
			m := minutes[i%users][i/users*size+k]
			at := noon.Add(time.Duration(m) * time.Minute)
			samples[k] = fmt.Sprintf(`{"timestamp":%q,"timezone_offset":3600,"unit":"bpm","value":%d`, at.Format(time.RFC3339), 50+m%100)
			if interval {
				samples[k] += fmt.Sprintf(`,"start":%q,"end":%q`, at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339))
			}
			samples[k] += "}"
		}
		all[i] = webhooks.RawDelivery{
			ID: fmt.Sprint("msg_", i), ReceivedAt: noon.Add(time.Duration(i) * time.Second),
			Body: []byte(fmt.Sprintf(`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"provider":"ring","type":"watch"},"data":[%s]}}`,
				user(i%users), strings.Join(samples, ","))),
		}
	}
	return all
}

// TestThroughput compares the store with one statement for each sample, and measures the size of a
// sample. It never fails for speed: the machine may be busy.
func TestThroughput(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" {
		t.Skip("LABHEALTH_TEST_THROUGHPUT is not set")
	}
	for _, open := range []func(testing.TB) database{sqliteFile, postgres} {
		d := open(t)
		t.Run(d.dialect.String(), func(t *testing.T) {
			ctx := t.Context()
			store, db := d.store(t), d.open(t)
			state := func(what string, n int, f func()) (each float64) {
				began := time.Now()
				f()
				each = time.Since(began).Seconds() / float64(n)
				t.Logf("%-55s %9.0f samples/s", what, 1/each)
				return each
			}
			apply := func(deliveries []webhooks.Delivery, atOnce int) func() {
				return func() {
					for part := range slices.Chunk(deliveries, atOnce) {
						if _, err := store.ApplyAll(ctx, part); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			raw := measured(t, 200_000, false, false)
			all := parse(t, raw)
			apply(all[:100], 1)()
			statement, err := db.PrepareContext(ctx, placeholders(d.dialect, `INSERT INTO labhealth_samples AS s (slot, series, at, version, value, shape)
				VALUES (0, ?, ?, ?, ?, ?) ON CONFLICT (slot, series, at) DO UPDATE SET version = excluded.version, value = excluded.value,
				shape = excluded.shape WHERE excluded.version >= s.version`))
			if err != nil {
				t.Fatal(err)
			}
			defer statement.Close()
			var ratios, singles []float64
			for round := range 7 {
				batch := state("a transaction for each delivery of 100 samples", 10_000, apply(all[100+100*round:][:100], 1))
				single := state("one statement for each sample, by known ids", 1000, func() {
					for i := range 1000 {
						if _, err := statement.ExecContext(ctx, 1000+i%20, 1000*round+i, i, 1.5, 1); err != nil {
							t.Fatal(err)
						}
					}
				})
				ratios, singles = append(ratios, single/batch), append(singles, single)
			}
			slices.Sort(ratios)
			slices.Sort(singles)
			t.Logf("batches of 100 are %.0f times as fast as one statement for each sample (%.0f to %.0f in 7 rounds)",
				ratios[3], ratios[0], ratios[6])

			clear(t, d)
			together := state("a transaction for 100 deliveries of 100 samples", 200_000, apply(all, 100))
			t.Logf("that is %.0f times as fast as one statement for each sample", singles[3]/together)
			if d.driver == "pgx" {
				clear(t, d)
				state("COPY, 10,000 at a time", 200_000, func() { copied(t, d) })
			}
			clear(t, d)
			received := state("receiving into the inbox, 16 at a time", 200_000, func() {
				var senders sync.WaitGroup
				for n := range 16 {
					senders.Go(func() {
						for i := n; i < len(raw); i += 16 {
							if err := store.Receive(ctx, raw[i]); err != nil {
								t.Error(err)
							}
						}
					})
				}
				senders.Wait()
			})
			worked := state("a worker that takes them out and applies them", 200_000, func() { drain(t, &sqlstore.Worker{Store: store}, db) })
			t.Logf("receiving and working: %.2f of the speed of applying alone", together/(received+worked))

			for _, form := range []struct {
				name                string
				scattered, interval bool
				times               int
			}{
				{"in order", false, false, 1}, {"shuffled", true, false, 1}, {"shuffled, with start and end", true, true, 1},
				{"shuffled, each received twice", true, false, 2},
			} {
				clear(t, d)
				deliveries := parse(t, measured(t, 200_000, form.scattered, form.interval))
				for range form.times {
					apply(deliveries, 100)()
					for i := range deliveries {
						deliveries[i].Event.ReceivedAt = deliveries[i].Event.ReceivedAt.Add(time.Hour)
					}
				}
				if _, err := db.ExecContext(ctx, specificsOf[d.dialect].compact); err != nil {
					t.Fatal(err)
				}
				var bytes int
				if err := db.QueryRowContext(ctx, specificsOf[d.dialect].size).Scan(&bytes); err != nil {
					t.Fatal(err)
				}
				t.Logf("%-55s %9.1f bytes a sample", form.name, float64(bytes)/float64(count(t, db, "labhealth_samples")))
			}
		})
	}
}

// copied measures COPY into the table of samples.
func copied(t *testing.T, d database) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.source)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	const n = 200_000
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = []any{int32(i % 20), int64(i), int64(i), 1.5, int16(1), int16(0)}
	}
	for rest := rows; len(rest) > 0; rest = rest[10_000:] {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"labhealth_samples"}, []string{"series", "at", "version", "value", "shape", "slot"},
			pgx.CopyFromRows(rest[:10_000]))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// placeholders returns a statement with the placeholders of a dialect in place of question marks.
func placeholders(d sqlstore.Dialect, statement string) string {
	parts := strings.Split(statement, "?")
	for n := 1; n < len(parts); n++ {
		parts[n] = specificsOf[d].placeholder(n) + parts[n]
	}
	return strings.Join(parts, "")
}
