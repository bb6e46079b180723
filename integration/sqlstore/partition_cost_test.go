package sqlstore_test

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// partitioned is a store whose samples are in a number of monthly partitions, with one connection.
type partitioned struct {
	partitions int // 0 for a table that is not partitioned
	store      *sqlstore.Store
	db         *sql.DB
	stat       string // file with the CPU time of the server process of the connection
	costs      map[string][]float64
}

func newPartitioned(t *testing.T, driver string, partitions int) *partitioned {
	d := postgres(t)
	d.driver = driver
	p := &partitioned{partitions: partitions, db: d.open(t), costs: map[string][]float64{}}
	p.db.SetMaxOpenConns(1)
	var err error
	if p.store, err = sqlstore.Open(p.db, d.dialect); err != nil {
		t.Fatal(err)
	}
	if err := p.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	definition := `PARTITION BY RANGE (at)`
	if partitions == 0 {
		definition = ``
	}
	statements := []string{
		`CREATE TABLE plain (LIKE labhealth_samples INCLUDING ALL) ` + definition, `DROP TABLE labhealth_samples CASCADE`,
		`ALTER TABLE plain RENAME TO labhealth_samples`,
	}
	if partitions > 0 {
		statements = append(statements, `CREATE TABLE labhealth_samples_default PARTITION OF labhealth_samples DEFAULT`)
	}
	for i := range partitions - 1 {
		from := time.Date(2025, time.Month(3+2-i), 1, 0, 0, 0, 0, time.UTC)
		statements = append(statements, fmt.Sprintf(`CREATE TABLE labhealth_samples_%d PARTITION OF labhealth_samples FOR VALUES FROM (%d) TO (%d)`,
			i, from.UnixNano(), from.AddDate(0, 1, 0).UnixNano()))
	}
	for _, s := range statements {
		if _, err := p.db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	var pid int
	if err := p.db.QueryRow(`SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	p.stat = fmt.Sprintf("/proc/%d/schedstat", pid)
	return p
}

// cpu returns the CPU time that the server process has used.
func (p *partitioned) cpu(t *testing.T) (nanoseconds float64) {
	text, err := os.ReadFile(p.stat)
	if err != nil {
		t.Skip(err)
	}
	if _, err := fmt.Sscan(string(text), &nanoseconds); err != nil {
		t.Fatal(err)
	}
	return nanoseconds
}

func (p *partitioned) measure(t *testing.T, what string, deliveries []webhooks.Delivery) {
	before := p.cpu(t)
	if _, err := p.store.ApplyAll(t.Context(), deliveries); err != nil {
		t.Fatal(err)
	}
	p.costs[what] = append(p.costs[what], p.cpu(t)-before)
}

// TestPartitionCost measures the CPU time of the server for a transaction of 100 samples, by the
// number of partitions. It never fails for speed.
func TestPartitionCost(t *testing.T) {
	if os.Getenv("LABHEALTH_TEST_THROUGHPUT") == "" {
		t.Skip("LABHEALTH_TEST_THROUGHPUT is not set")
	}
	for _, driver := range []string{"pgx", "postgres"} {
		var all []*partitioned
		for _, n := range []int{0, 1, 12, 17, 60, 200} {
			all = append(all, newPartitioned(t, driver, n))
		}
		var names []string
		for round := range 110 {
			for _, deliveries := range []int{100, 1} {
				batch := make([]webhooks.RawDelivery, deliveries)
				for i := range batch {
					samples := make([]string, 100/deliveries)
					for k := range samples {
						at := noon.AddDate(0, 0, -round%28).Add(time.Duration(round*100+i+k) * time.Second)
						samples[k] = fmt.Sprintf(`{"timestamp":%q,"unit":"bpm","value":%d}`, at.Format(time.RFC3339), 50+k)
					}
					batch[i] = webhooks.RawDelivery{ID: fmt.Sprint(round, i), ReceivedAt: noon, Body: []byte(fmt.Sprintf(
						`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"provider":"ring"},"data":[%s]}}`,
						user(1000*deliveries+i), strings.Join(samples, ",")))}
				}
				for _, what := range []string{"new", "repeated", "updated"} {
					if what == "updated" {
						for i := range batch {
							batch[i].Body = []byte(strings.ReplaceAll(string(batch[i].Body), `"value":`, `"value":1`))
							batch[i].ReceivedAt = noon.Add(time.Minute)
						}
					}
					parsed := parse(t, batch)
					name := fmt.Sprintf("%3d deliveries of %3d samples, %s", deliveries, 100/deliveries, what)
					if round == 0 {
						names = append(names, name)
					}
					for i := range all {
						p := all[(i+round)%len(all)]
						p.measure(t, name, parsed)
						if round < 10 {
							p.costs[name] = nil // connections prepare statements, and users are new
						}
					}
				}
			}
		}
		for _, name := range names {
			line := ""
			var base float64
			for _, p := range all {
				costs := p.costs[name]
				slices.Sort(costs)
				median := costs[len(costs)/2]
				if p.partitions == 0 {
					base = median
				}
				line += fmt.Sprintf("  %d: %.0f µs (%+.0f %%)", p.partitions, median/1000, 100*(median/base-1))
			}
			t.Logf("%-8s %s%s", driver, name, line)
		}
	}
}
