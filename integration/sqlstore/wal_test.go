package sqlstore_test

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// The load that TestWriteVolume measures: each user sends a sample a minute, in round robin, and
// the checkpoints come after as many minutes of samples as they would by checkpoint_timeout. So the
// figures do not depend on the speed of the machine.
const (
	walUsers      = 20_000
	walSamples    = 1150 // of a user on average, before the measurement: more than 2 GB of all
	walPhases     = 300  // the users start at different minutes, so that their index pages are not filled at the same time
	walIDs        = 10_000_000
	walCheckpoint = 5 // minutes: the default of checkpoint_timeout
)

// TestWriteVolume measures the WAL for each sample, on a cluster of its own with shared_buffers of
// 128 MB. It fails for nothing but errors. LABHEALTH_TEST_WAL is a directory with 10 GB of space,
// in which the filled cluster stays for the next run. LABHEALTH_TEST_WAL_PORT is its port.
func TestWriteVolume(t *testing.T) {
	filled := newCluster(t, "filled")
	if _, err := os.Stat(filled.data); err != nil {
		filled.fill(t)
	}
	for _, c := range []struct {
		name        string
		size        int // samples per delivery
		atOnce      int // deliveries per transaction
		minutes     int // between checkpoints
		checkpoints int
		options     string
		inbox       bool
	}{
		{"1 sample per delivery, 1 delivery per transaction", 1, 1, walCheckpoint, 2, "", false},
		{"1 sample per delivery, 10 deliveries per transaction", 1, 10, walCheckpoint, 3, "", false},
		{"1 sample per delivery, 100 deliveries per transaction", 1, 100, walCheckpoint, 3, "", false},
		{"the same with a checkpoint each minute", 1, 100, 1, 5, "", false},
		{"the same with a checkpoint each 30 minutes", 1, 100, 30, 1, "", false},
		{"the same with wal_compression=pglz", 1, 100, walCheckpoint, 3, "-c wal_compression=pglz", false},
		{"the same with wal_compression=lz4", 1, 100, walCheckpoint, 3, "-c wal_compression=lz4", false},
		{"the same with wal_compression=zstd", 1, 100, walCheckpoint, 3, "-c wal_compression=zstd", false},
		{"the same with lz4 and a checkpoint each 30 minutes", 1, 100, 30, 1, "-c wal_compression=lz4", false},
		{"100 samples per delivery, 1 delivery per transaction", 100, 1, walCheckpoint, 3, "", false},
		{"100 samples per delivery, 10 deliveries per transaction", 100, 10, walCheckpoint, 3, "", false},
		{"100 samples per delivery, 100 deliveries per transaction", 100, 100, walCheckpoint, 3, "", false},
		{"inbox, 1 sample per delivery", 1, 1, walCheckpoint, 2, "", true},
		{"inbox, the same with wal_compression=lz4", 1, 1, walCheckpoint, 2, "-c wal_compression=lz4", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			variant := filled.copy(t, c.options)
			load := load{minute: walSamples + walPhases, size: c.size, atOnce: c.atOnce}
			variant.measure(t, c.checkpoints, c.minutes, load, c.inbox)
		})
	}
	t.Run("vacuum after it was filled", func(t *testing.T) {
		variant := filled.copy(t, "")
		db := variant.database().open(t)
		from := lsn(t, db)
		execute(t, db, "CHECKPOINT", "VACUUM (FREEZE) labhealth_samples")
		variant.report(t, db, from, lsn(t, db), walUsers*walSamples, "")
	})
}

// A crash of the server empties labhealth_users and nothing else. The next transactions create the
// rows that they lock.
func TestCrashOfServer(t *testing.T) {
	c := newCluster(t, "crash")
	c.remove(t)
	c.initialize(t)
	defer c.remove(t)
	c.start(t, "")
	store := c.database().store(t)
	apply := func(id, value string) webhooks.Changes {
		t.Helper()
		changes, err := store.Apply(t.Context(), parse(t, []webhooks.RawDelivery{heartrates(id, 1, value, "70")})[0])
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	apply("msg_1", "60")
	c.stop(t, "immediate")
	c.start(t, "")
	defer c.stop(t, "fast")
	db := c.database().open(t)
	wantCount(t, db, "labhealth_users", 0)
	wantCount(t, db, "labhealth_samples", 2)
	eventually(t, "the store connects again", func() bool { return store.Migrate(t.Context()) == nil })
	if changes := apply("msg_2", "61"); changes.Updated != 1 || changes.Same != 1 {
		t.Error(changes)
	}
	wantCount(t, db, "labhealth_users", 1)
}

// cluster is a cluster of databases of one test.
type cluster struct{ bin, data, port string }

// newCluster returns a cluster in a directory of LABHEALTH_TEST_WAL, which may exist.
func newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	directory := os.Getenv("LABHEALTH_TEST_WAL")
	if directory == "" {
		t.Skip("LABHEALTH_TEST_WAL is not set to a directory")
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("initdb is not installed: this test needs the server programs of PostgreSQL")
	}
	return &cluster{filepath.Dir(found[len(found)-1]), filepath.Join(directory, name), cmp.Or(os.Getenv("LABHEALTH_TEST_WAL_PORT"), "54320")}
}

func (c *cluster) initialize(t *testing.T) {
	t.Helper()
	c.command(t, c.bin+"/initdb", "-D", c.data, "-U", "postgres", "-A", "trust", "-N")
}

// command runs a program as the user postgres, because the server refuses to run as root.
func (c *cluster) command(t *testing.T, name string, args ...string) {
	t.Helper()
	all := append([]string{name}, args...)
	if os.Getuid() == 0 {
		all = append([]string{"runuser", "-u", "postgres", "--"}, all...)
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), all[0], all[1:]...)
	command.Dir = "/"
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", all, err, out)
	}
}

// start starts the server. What is not synced has the same WAL.
func (c *cluster) start(t *testing.T, options string) {
	t.Helper()
	c.command(t, c.bin+"/pg_ctl", "-D", c.data, "-w", "-t", "300", "-l", c.data+"/log", "-o",
		"-p "+c.port+" -k "+c.data+" -c listen_addresses=127.0.0.1 -c fsync=off -c autovacuum=off "+options, "start")
}

func (c *cluster) stop(t *testing.T, mode string) {
	t.Helper()
	c.command(t, c.bin+"/pg_ctl", "-D", c.data, "-w", "-t", "300", "-m", mode, "stop")
}

// copy starts a copy of a stopped cluster, until the test ends. It keeps its WAL for pg_waldump.
func (c *cluster) copy(t *testing.T, options string) *cluster {
	t.Helper()
	variant := newCluster(t, "variant")
	variant.remove(t)
	variant.command(t, "cp", "-a", c.data, variant.data)
	t.Cleanup(func() { variant.remove(t) })
	variant.start(t, "-c shared_buffers=128MB -c wal_keep_size=20GB "+options)
	t.Cleanup(func() { variant.stop(t, "fast") })
	return variant
}

func (c *cluster) remove(t *testing.T) {
	t.Helper()
	c.command(t, "rm", "-rf", c.data)
}

func (c *cluster) database() database {
	return database{sqlstore.PostgreSQL, "pgx", "postgres://postgres@127.0.0.1:" + c.port + "/postgres?sslmode=disable"}
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(s, err)
		}
	}
}

// walStart is the time of the first sample. It is not long ago, as that of most samples.
var walStart = time.Now().UTC().Truncate(24 * time.Hour).Add(-48 * time.Hour)

// load makes deliveries of the users, in round robin and in a fixed order that is not that of their
// series.
type load struct {
	minute int // of the next sample
	size   int // samples per delivery
	atOnce int // deliveries per transaction
	next   int // user
}

// take returns the next delivery.
func (l *load) take() webhooks.RawDelivery {
	const prime = 7919
	var samples []string
	for m := range l.size {
		at := walStart.Add(time.Duration(l.minute+m) * time.Minute)
		samples = append(samples, fmt.Sprintf(`{"timestamp":%q,"unit":"bpm","value":%d}`, at.Format(time.RFC3339), 50+(l.next*7+l.minute+m)%100))
	}
	u := l.next * prime % walUsers
	if l.next++; l.next == walUsers {
		l.next, l.minute = 0, l.minute+l.size
	}
	at := walStart.Add(time.Duration(l.minute)*time.Minute + time.Duration(l.next)*time.Minute/walUsers)
	return webhooks.RawDelivery{
		// An ID that starts with its second, as a KSUID does, and is random otherwise.
		ID:         "msg_" + strconv.FormatInt(at.Unix(), 36) + strconv.FormatUint(rand.Uint64(), 36),
		ReceivedAt: at,
		Body: []byte(fmt.Sprintf(`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"provider":"ring","type":"watch"},"data":[%s]}}`,
			user(u), strings.Join(samples, ","))),
	}
}

// fill makes a cluster with the tables and more than 2 GB of samples. They arrive in parts of 50
// minutes, so that the pages of the index are filled as they would be by samples in round robin.
func (c *cluster) fill(t *testing.T) {
	started := time.Now()
	c.initialize(t)
	c.start(t, "-c shared_buffers=4GB -c full_page_writes=off -c max_wal_size=4GB")
	defer func() {
		c.stop(t, "fast")
		c.command(t, c.bin+"/pg_resetwal", "-D", c.data) // so that the copies are small
	}()
	store, db := c.database().store(t), c.database().open(t)
	first := load{size: 1}
	for range walUsers / 1000 {
		var all []webhooks.RawDelivery
		for range 1000 {
			all = append(all, first.take())
		}
		if _, err := store.ApplyAll(t.Context(), parse(t, all)); err != nil {
			t.Fatal(err)
		}
	}
	for minute := 1; minute < walSamples+walPhases; minute += 50 {
		execute(t, db, fmt.Sprintf(`INSERT INTO labhealth_samples (slot, series, at, version, value, shape)
			SELECT slot, series, at + m * 60000000000, version + m * 60000000000, value + m %% 40, shape
			FROM labhealth_samples, generate_series(%d, %d) AS m WHERE at = %d AND m > series * 131 %% (2 * %d)
			ORDER BY slot, series, m`, minute, min(minute+49, walSamples+walPhases-1), walStart.UnixNano(), walPhases))
	}
	execute(t, db,
		// The index of random IDs is as full as if they had been inserted one after the other.
		`ALTER TABLE labhealth_deliveries DROP CONSTRAINT labhealth_deliveries_pkey`,
		fmt.Sprintf(`INSERT INTO labhealth_deliveries (slot, id, at) SELECT get_byte(sha256(n::text::bytea), 20), substr(sha256(n::text::bytea), 1, 16), %d + n FROM generate_series(1, %d) AS n`,
			walStart.UnixNano(), walIDs),
		`ALTER TABLE labhealth_deliveries ADD PRIMARY KEY (slot, id) WITH (fillfactor = 70)`,
		`VACUUM (FREEZE, ANALYZE) labhealth_deliveries`, `ANALYZE`, `CHECKPOINT`)
	t.Logf("%d samples filled in %v", count(t, db, "labhealth_samples"), time.Since(started))
}

func lsn(t *testing.T, db *sql.DB) (lsn string) {
	t.Helper()
	if err := db.QueryRow("SELECT pg_current_wal_insert_lsn()").Scan(&lsn); err != nil {
		t.Fatal(err)
	}
	return lsn
}

// measure applies the load with four workers, directly or through the inbox, and reports its WAL.
func (c *cluster) measure(t *testing.T, checkpoints, minutes int, l load, inbox bool) {
	db := c.database().open(t)
	db.SetMaxIdleConns(20)
	store, err := sqlstore.Open(db, sqlstore.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	var before, size int64
	const total = `SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname LIKE 'labhealth_samples%' AND relkind = 'r'`
	if err := db.QueryRow(total).Scan(&before); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d users, %.2f GB of samples with their index", walUsers, float64(before)/1e9)
	from, samples := lsn(t, db), 0
	execute(t, db, "SELECT pg_stat_reset_shared('wal')")
	for range checkpoints {
		execute(t, db, "CHECKPOINT")
		deliveries := walUsers * minutes / l.size
		samples += deliveries * l.size
		applyLoad(t, store, &l, deliveries, inbox)
	}
	if err := db.QueryRow(total).Scan(&size); err != nil {
		t.Fatal(err)
	}
	to := lsn(t, db)
	db.Close() // reports the statistics of its sessions
	c.report(t, c.database().open(t), from, to, samples, fmt.Sprintf(", %.1f stored", float64(size-before)/float64(samples)))
}

// applyLoad applies deliveries with four workers.
func applyLoad(t *testing.T, store *sqlstore.Store, l *load, deliveries int, inbox bool) {
	var mu sync.Mutex
	left := deliveries
	take := func() (all []webhooks.RawDelivery) {
		mu.Lock()
		defer mu.Unlock()
		for len(all) < l.atOnce && left > 0 {
			all = append(all, l.take())
			left--
		}
		return all
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for all := take(); len(all) > 0; all = take() {
				if inbox {
					if err := store.Receive(t.Context(), all[0]); err != nil {
						t.Error(err)
					}
					continue
				}
				applied, err := store.ApplyAll(t.Context(), parse(t, all))
				if err != nil || applied[0].Changes.Added != l.size {
					t.Error(err, applied)
				}
			}
		})
	}
	workers.Wait()
	if !inbox {
		return
	}
	for range 2 {
		workers.Go(func() {
			worker := &sqlstore.Worker{Store: store}
			for {
				step, err := worker.Step(t.Context())
				if err != nil {
					t.Error(err)
				}
				if err != nil || step.Applied == 0 {
					return
				}
			}
		})
	}
	workers.Wait()
}

// walRecord is a line of pg_waldump.
var walRecord = regexp.MustCompile(`^rmgr: (\S+)\s+len \(rec/tot\):\s*(\d+)/\s*(\d+),.* desc: (\S+)`)

var walBlock = regexp.MustCompile(`rel \d+/\d+/(\d+)`)

// written counts the WAL of one kind of record and relation.
type written struct{ records, pages, bytes, pageBytes int }

// report logs the WAL for each sample: what the server counts, and of which records it consists.
func (c *cluster) report(t *testing.T, db *sql.DB, from, to string, samples int, stored string) {
	t.Helper()
	var records, pages, bytes, difference float64
	if err := db.QueryRow("SELECT wal_records, wal_fpi, wal_bytes, pg_wal_lsn_diff($1, $2) FROM pg_stat_wal", to, from).Scan(&records, &pages, &bytes, &difference); err != nil {
		t.Fatal(err)
	}
	n := float64(samples)
	t.Logf("pg_stat_wal: %.0f bytes per sample%s; %.2f records, %.3f full-page images per sample; %.0f bytes by LSN; %d samples",
		bytes/n, stored, records/n, pages/n, difference/n, samples)
	kinds := c.kinds(t, relations(t, db), from, to)
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return cmp.Compare(kinds[b].bytes, kinds[a].bytes) })
	for _, name := range names[:min(len(names), 14)] {
		k := kinds[name]
		t.Logf("  %-60s %8.1f bytes, of which %8.1f in %.4f images; %.3f records", name,
			float64(k.bytes)/n, float64(k.pageBytes)/n, float64(k.pages)/n, float64(k.records)/n)
	}
}

// relations returns the names of relations by the names of their files.
func relations(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	names := map[string]string{}
	rows, err := db.Query("SELECT pg_relation_filenode(oid)::text, relname FROM pg_class WHERE relfilenode <> 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var file, name string
		if err := rows.Scan(&file, &name); err != nil {
			t.Fatal(err)
		}
		names[file] = name
	}
	return names
}

// kinds counts the records between two positions.
func (c *cluster) kinds(t *testing.T, relations map[string]string, from, to string) map[string]*written {
	t.Helper()
	command := exec.CommandContext(t.Context(), c.bin+"/pg_waldump", "-p", c.data+"/pg_wal", "-s", from, "-e", to)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = io.Discard // it reports the end of the log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]*written{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := walRecord.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		name := m[1] + " " + m[4]
		if block := walBlock.FindStringSubmatch(lines.Text()); block != nil {
			name += " " + relations[block[1]]
		}
		if kinds[name] == nil {
			kinds[name] = &written{}
		}
		size, _ := strconv.Atoi(m[2])
		total, _ := strconv.Atoi(m[3])
		kinds[name].records++
		kinds[name].pages += strings.Count(lines.Text(), " FPW")
		kinds[name].bytes += total
		kinds[name].pageBytes += total - size
	}
	command.Wait()
	return kinds
}
