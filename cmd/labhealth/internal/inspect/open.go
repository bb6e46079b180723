package inspect

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/owner"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

const defaultKeep = 7 * 24 * time.Hour

// Open opens the file, or creates it.
func Open(ctx context.Context, c Config) (*Inspector, error) {
	if c.Keep < 0 && c.Keep != KeepAll {
		return nil, errors.New("inspect: Keep must not be negative")
	}
	if c.Keep == 0 {
		c.Keep = defaultKeep
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Admit == nil {
		c.Admit = func(*http.Request) error { return nil }
	}
	if c.Problem == nil {
		c.Problem = func(text string) { slog.Warn("inspect: " + text) }
	}
	i := &Inspector{config: c, problems: problems{report: c.Problem}, instance: rand.Text(), forwarder: newForwarder(nil), patience: forwardTimeout,
		watchers: watchers{all: map[*watcher]bool{}, woken: make(chan struct{}, 1)}}
	i.connected, i.hangUp = context.WithCancel(context.Background())
	if err := i.SetSecrets(c.Secrets...); err != nil {
		return nil, err
	}
	if err := i.SetForward(c.Forward); err != nil {
		return nil, err
	}
	if err := i.open(ctx); err != nil {
		return nil, fmt.Errorf("inspect: %w", errors.Join(i.explain(err), i.closeFiles()))
	}
	i.start()
	if err := i.saveForward(); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// open opens the databases and creates the tables.
func (i *Inspector) open(ctx context.Context) error {
	file, synchronous := i.config.File, "FULL"
	if file == "" {
		dir, err := os.MkdirTemp("", "labhealth-")
		if err != nil {
			return err
		}
		i.temporary, file, synchronous = dir, filepath.Join(dir, "deliveries.db"), "OFF"
	}
	if err := createFile(file); err != nil {
		return err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	// auto_vacuum has an effect only before the first table is created.
	query := url.Values{"_pragma": {"busy_timeout(10000)", "auto_vacuum(2)", "journal_mode(WAL)", "synchronous(" + synchronous + ")",
		"secure_delete(1)", "temp_store(2)", "cache_size(-8000)", "journal_size_limit(16777216)"}}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query.Encode()}
	if i.db, err = sql.Open("sqlite", name.String()); err != nil {
		return err
	}
	i.path = path
	i.db.SetMaxOpenConns(8)
	i.db.SetConnMaxIdleTime(time.Minute)
	query.Set("_txlock", "immediate")
	name.RawQuery = query.Encode()
	single, err := sql.Open("sqlite", name.String())
	if err != nil {
		return err
	}
	single.SetMaxOpenConns(1)
	i.writer = &writer{db: single}
	if i.Store, err = sqlstore.Open(i.db, sqlstore.SQLite); err != nil {
		return err
	}
	if err := i.createTables(ctx, single); err != nil {
		return err
	}
	if err := i.Store.Migrate(ctx); err != nil {
		return err
	}
	i.writer.watchFiles(path)
	return i.db.QueryRowContext(ctx, `SELECT rev FROM delivery_state`).Scan(&i.opened)
}

// createFile creates the file with mode 0600, whatever the umask is, or checks that nobody else can
// read it. SQLite gives the same mode to the files that it creates beside it.
func createFile(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Close(), checkFiles(file))
		if err != nil {
			_ = os.Remove(file) // the error says what is wrong
		}
		return err
	}
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	return checkFiles(file)
}

// checkFiles checks the file, and those that SQLite has beside it: another user may have put them
// there to read what is written.
func checkFiles(file string) error {
	for _, name := range []string{file, file + "-wal", file + "-shm", file + "-journal"} {
		if err := checkFile(name); err != nil && (name == file || !errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	return nil
}

func checkFile(file string) error {
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link: name the file itself", file)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", file)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be accessed by other users (mode %04o): it holds patient data. Run chmod 600 on it", file, info.Mode().Perm())
	}
	return owner.Check(file, info)
}

// start starts what runs until Close.
func (i *Inspector) start() {
	ctx, cancel := context.WithCancel(context.Background())
	i.stop = cancel
	i.worker = &sqlstore.Worker{Store: i.Store, Apply: i.applied, Poll: time.Second,
		Observe: sqlstore.StepObserver{End: func(_ context.Context, s sqlstore.Step, _ error) { i.stepped(ctx, s) }}}
	i.running.Go(func() { i.warn(ctx, "apply deliveries", i.worker.Run(ctx)) })
	i.running.Go(func() { i.watch(ctx) })
	i.running.Go(func() { i.maintain(ctx) })
}

// warn reports what failed, unless it was stopped.
func (i *Inspector) warn(ctx context.Context, what string, err error) {
	if err == nil || ctx.Err() == nil {
		i.problems.note(what, i.explain(err))
	}
}

// HangUp ends requests to the application that are in flight, as if it did not respond, and those
// that follow, so that Close does not wait for them.
func (i *Inspector) HangUp() { i.hangUp() }

// Close waits for the deliveries in progress and closes the file.
func (i *Inspector) Close() error {
	i.mu.Lock()
	closed := i.closed
	i.closed = true
	i.mu.Unlock()
	if closed {
		return nil
	}
	i.requests.Wait()
	i.stop()
	i.running.Wait()
	i.hangUp()
	i.forwarder.CloseIdleConnections()
	i.problems.close()
	return i.closeFiles()
}

func (i *Inspector) closeFiles() error {
	var errs []error
	if i.writer != nil {
		errs = append(errs, i.writer.db.Close())
	}
	if i.db != nil {
		errs = append(errs, i.db.Close())
	}
	if i.temporary != "" {
		errs = append(errs, os.RemoveAll(i.temporary))
	}
	return errors.Join(errs...)
}

// enter reports whether a delivery may be received. The caller calls requests.Done.
func (i *Inspector) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	i.requests.Add(1)
	return true
}

// SetSecrets changes the secrets that verify and sign deliveries. Without any, every delivery is
// accepted as unsigned.
func (i *Inspector) SetSecrets(secrets ...string) error {
	verifier := webhooks.Unsigned
	if len(secrets) > 0 {
		var err error
		if verifier, err = webhooks.NewVerifier(secrets...); err != nil {
			return err
		}
	}
	i.secrets.Store(&secrets)
	i.verifier.Store(verifier)
	return nil
}

// SetForward changes the URL of the application; empty stops forwarding.
func (i *Inspector) SetForward(target string) error {
	if target != "" {
		u, err := url.Parse(target)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("inspect: the URL of the application must be like http://localhost:3000/webhooks")
		}
	}
	i.target.Store(&target)
	if i.writer != nil {
		return i.saveForward()
	}
	return nil
}

// saveForward stores the URL of the application for LastForward.
func (i *Inspector) saveForward() error {
	target := i.Forward()
	if target == "" || i.config.Keep == KeepAll {
		return nil
	}
	return i.exec(`UPDATE delivery_state SET forward = ?`, target)
}

// LastForward returns the latest URL of an application that any program has set which uses the
// file, except those with KeepAll, or "".
func (i *Inspector) LastForward(ctx context.Context) (url string, err error) {
	err = i.db.QueryRowContext(ctx, `SELECT forward FROM delivery_state`).Scan(&url)
	return url, err
}

// Forward returns the URL of the application, or "".
func (i *Inspector) Forward() string { return *i.target.Load() }

// Transport returns a transport that passes deliveries to the inspector without a connection, for
// labhealthtest.WithTransport.
func (i *Inspector) Transport() http.RoundTripper { return transport{i} }
