package powercut_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/labhealth/labhealth-go/integration/powercut/cutfs"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// PostgreSQL loses nothing that Receive acknowledged, before and after a Worker has applied it, and
// applies nothing twice. With fsync off, it does.
func TestPostgreSQL(t *testing.T) {
	disk, dir := newServerDisk(t)
	system := newInbox(t, dir)
	var template *cutfs.Image
	for _, e := range []experiment{
		{name: "fsync=on", cuts: 2, many: 1000},
		{name: "fsync=off", cuts: 20, many: 20, unsafe: true},
	} {
		t.Run(e.name, func(t *testing.T) {
			system.server.options = []string{e.name}
			e.disk, e.system, e.span, e.template = disk, system, 3000, template
			e.name = "PostgreSQL, " + e.name
			e.run(t)
			template = e.template
		})
	}
}

// newServerDisk mounts a disk with the rules of ext4, which servers rely on: they do not sync the
// folders of new files. Tests that mount and change users need root.
func newServerDisk(t *testing.T) (disk *cutfs.Disk, dir string) {
	t.Helper()
	skipShort(t)
	if os.Getuid() != 0 {
		t.Skip("only root can mount a file system for other users")
	}
	dir = publicDir(t)
	disk = cutfs.New(cutfs.Ext4)
	unmount, err := disk.Mount(dir)
	if err != nil {
		t.Skipf("FUSE cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		disk.Off()
		if err := unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return disk, dir
}

// publicDir returns a temporary folder that other users can read.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "labhealth-powercut")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fixedPort returns a port that is free, and that no outgoing connection takes while the server is
// down.
func fixedPort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20000 + rand.IntN(10000))
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// postgresServer is a PostgreSQL server. Its processes are a PID namespace, so that all are gone
// when the first one is, and have their own shared memory, which goes with them.
type postgresServer struct {
	program string
	data    string
	port    string
	options []string // of the configuration
	account *syscall.Credential

	running     *server
	checkpoints int // that were complete, as the servers have logged until they were stopped
	emptyLocks  int // starts that needed an administrator: see emptyLock
}

// newPostgres returns a server with its data in a folder. It skips the test if PostgreSQL is not
// installed.
func newPostgres(t *testing.T, dir string, options ...string) *postgresServer {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if path, err := exec.LookPath("postgres"); err == nil {
		found = append(found, path)
	}
	account, err := user.Lookup("postgres")
	if len(found) == 0 || err != nil {
		t.Skip("PostgreSQL is not installed")
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	return &postgresServer{program: found[0], data: filepath.Join(dir, "postgres"), port: fixedPort(t), options: options,
		account: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func (s *postgresServer) url() string {
	return "postgres://postgres@127.0.0.1:" + s.port + "/postgres?sslmode=disable&connect_timeout=5"
}

// create makes the data directory. Nothing is synced: see [cutfs.Disk.Save].
func (s *postgresServer) create(ctx context.Context) error {
	if err := os.Mkdir(s.data, 0o700); err != nil {
		return err
	}
	if err := os.Chown(s.data, int(s.account.Uid), int(s.account.Gid)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(s.program), "initdb"),
		"-D", s.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--wal-segsize=1", "--no-sync", "--no-instructions")
	cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: s.account}, "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// start starts a server that does not run, and waits until it accepts connections. Checkpoints are
// frequent.
func (s *postgresServer) start(ctx context.Context, db *sql.DB) (err error) {
	if s.running.runs() {
		return nil
	}
	s.stop()
	args := []string{"-D", s.data, "-p", s.port}
	for _, option := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "dynamic_shared_memory_type=sysv",
		"shared_buffers=16MB", "max_connections=40", "min_wal_size=2MB", "max_wal_size=2MB", "log_checkpoints=on", "checkpoint_flush_after=0"}, s.options...) {
		args = append(args, "-c", option)
	}
	cmd := exec.Command(s.program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC}
	if s.running, err = launch("PostgreSQL", cmd); err != nil {
		return err
	}
	err = s.running.until(ctx, func() error { return db.PingContext(ctx) })
	if err != nil && strings.Contains(s.running.log.String(), emptyLock) {
		s.stop()
		s.emptyLocks++
		if err := os.Remove(filepath.Join(s.data, "postmaster.pid")); err != nil {
			return err
		}
		return s.start(ctx, db)
	}
	return err
}

// emptyLock is what PostgreSQL prints if the power went while it started. An administrator has to
// remove the file, and the data is not affected.
const emptyLock = `lock file "postmaster.pid" is empty`

func (s *postgresServer) kill() { s.running.kill() }

// stop kills the server, if it runs, and waits for the end of its processes.
func (s *postgresServer) stop() {
	if s.running != nil {
		s.running.end()
		s.checkpoints += strings.Count(s.running.log.String(), "checkpoint complete")
		s.running = nil
	}
}

// shutDown stops the server as an administrator does, so that it starts without a recovery.
func (s *postgresServer) shutDown() error {
	if err := s.running.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	<-s.running.exited
	s.running = nil
	return nil
}

// inbox is a store in PostgreSQL, which receives and applies.
type inbox struct {
	t        *testing.T
	server   *postgresServer
	db       *sql.DB
	store    *sqlstore.Store
	stopWork func() // ends the worker and waits
}

func newInbox(t *testing.T, dir string) *inbox {
	t.Helper()
	s := &inbox{t: t, server: newPostgres(t, dir), stopWork: func() {}}
	s.connect()
	t.Cleanup(func() {
		s.stop()
		_ = s.db.Close() // the server is gone
		t.Logf("%d checkpoints were complete; %d times a lock file was empty", s.server.checkpoints, s.server.emptyLocks)
	})
	return s
}

// connect makes new connections. The old ones belong to a server that is gone.
func (s *inbox) connect() {
	db, err := sql.Open("pgx", s.server.url())
	if err == nil {
		db.SetMaxOpenConns(2 * clients)
		db.SetMaxIdleConns(2 * clients)
		s.db = db
		s.store, err = sqlstore.Open(db, sqlstore.PostgreSQL)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// workerTable has a row for each call of Worker.Apply that was committed.
const workerTable = "CREATE TABLE powercut_applied (delivery_id text)"

func (s *inbox) prepare(ctx context.Context) error {
	if err := s.server.create(ctx); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, workerTable); err != nil {
		return err
	}
	return errors.Join(s.db.Close(), s.server.shutDown())
}

func (s *inbox) start(ctx context.Context) error {
	if !s.server.running.runs() {
		s.stop()
		s.connect()
	}
	if err := s.server.start(ctx, s.db); err != nil {
		return err
	}
	return s.store.Migrate(ctx)
}

func (s *inbox) serve(context.Context) error {
	ctx, cancel := context.WithCancel(s.t.Context())
	stopped := make(chan struct{})
	// A delivery that a killed worker was to apply alone is due again after twice the timeout.
	worker := &sqlstore.Worker{Store: s.store, Batch: 10, Poll: 10 * time.Millisecond, Timeout: 10 * time.Second,
		Apply: func(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO powercut_applied VALUES ($1)", d.ID)
			return err
		}}
	go func() {
		defer close(stopped)
		_ = worker.Run(ctx) // the error of ctx
	}()
	s.stopWork = func() {
		cancel()
		<-stopped
	}
	return nil
}

func (s *inbox) kill() { s.server.kill() }

func (s *inbox) stop() {
	s.server.stop()
	s.stopWork()
	s.stopWork = func() {}
	_ = s.db.Close() // the server is gone
}

func (s *inbox) deliver(ctx context.Context, n int) error {
	if n%150 == 149 { // in addition to those that the size of the log causes
		db := s.db
		go func() { _, _ = db.ExecContext(ctx, "CHECKPOINT") }() // the power may go meanwhile
	}
	return s.store.Receive(ctx, webhooks.RawDelivery{ID: idOf(n), ReceivedAt: time.Now(), Body: sampleOf(n, 0)})
}

// firstSample is when the sample of delivery 0 was measured. That of the next one is a second
// later.
var firstSample = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// sampleOf is the event of a delivery: a sample, with the number as its value. padding is the size
// of a field that nobody knows.
func sampleOf(n, padding int) []byte {
	at := firstSample.Add(time.Duration(n) * time.Second).Format(time.RFC3339)
	return fmt.Appendf(nil, `{"event_type":"daily.data.heartrate.created","user_id":"00000000-0000-4000-8000-%012d","padding":%q,`+
		`"data":{"source":{"provider":"oura"},"data":[{"timestamp":%q,"unit":"bpm","value":%d}]}}`, n%7, bytes.Repeat([]byte("x"), padding), at, n)
}

// storedInbox is every place at which a delivery is stored. A worker has applied a delivery if both
// its sample and its row of [workerTable] are there: one without the other is an error.
const (
	storedInbox = `SELECT delivery_id FROM labhealth_inbox UNION ALL SELECT delivery_id FROM powercut_applied`
	halfApplied = `SELECT count(*) FROM powercut_applied a FULL JOIN labhealth_samples s ON substr(a.delivery_id, 5)::int = s.value
		WHERE a.delivery_id IS NULL OR s.value IS NULL`
	deadLetters = `SELECT count(*) FROM labhealth_dead_letters`
)

func (s *inbox) stored(ctx context.Context, _ int) (map[int]int, error) {
	for _, query := range []string{halfApplied, deadLetters} {
		var n int
		if err := s.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
			return nil, err
		}
		if n > 0 {
			return nil, fmt.Errorf("%d rows of %s", n, query)
		}
	}
	rows, err := s.db.QueryContext(ctx, storedInbox)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stored := map[int]int{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		n, err := numberOf(id)
		if err != nil {
			return nil, err
		}
		stored[n]++
	}
	return stored, rows.Err()
}

func (s *inbox) finish(ctx context.Context, first int) (map[int]int, error) {
	err := poll(ctx, func() (bool, error) {
		var n int
		err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM labhealth_inbox").Scan(&n)
		return err == nil && n == 0, err
	})
	if err != nil {
		return nil, err
	}
	return s.stored(ctx, first)
}
