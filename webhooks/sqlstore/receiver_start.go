// The start of a Receiver: the database, the past, the plan.

package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/warn"
)

// firstStart is the JSON of the row receiver of labhealth_reconciled: when a Receiver of the
// database was started first.
type firstStart struct {
	At    time.Time `json:"at"`            // by the clock of the process
	Past  time.Time `json:"past,omitzero"` // by the service's clock; zero if nothing is the past
	Known bool      `json:"known"`         // Past is final
}

// start makes the tables and finds out what the past is.
func (r *Receiver) start(ctx context.Context) error {
	s := r.Store
	if err := errors.Join(r.Worker.check(ctx), r.Reconciler.check(ctx)); err != nil {
		return err
	}
	first, value, err := r.prepare(ctx)
	if err == nil && !first.Known {
		first, err = r.findPast(ctx, first, value)
	}
	if err != nil {
		return err
	}
	if !first.Past.IsZero() && !r.options.IncludePast {
		s.past.Store(first.Past.UnixNano())
	}
	r.logPlan(first.Past)
	return nil
}

// logPlan writes what a Receiver is about to do.
func (r *Receiver) logPlan(past time.Time) {
	reads, limit := "orders and results", r.Reconciler.RequestsPerSecond
	if !r.Reconciler.OrdersOnly {
		reads += ", and wearable data of all users: at least 62 requests a day for each"
	}
	attrs := []slog.Attr{slog.String("dialect", r.Store.name.String()), slog.Any("calls_for", r.Store.selected()),
		slog.String("reads", reads), slog.Float64("requests_per_second", limit)}
	if r.Store.past.Load() != 0 {
		attrs = append(attrs, slog.Time("calls_for_changes_since", past))
	}
	r.Store.logger().LogAttrs(context.Background(), slog.LevelInfo, "sqlstore: the Receiver has started", attrs...)
}

// logFirst writes how many orders the first pass over all orders has taken over.
func (p *pass) logFirst() {
	if p.at.IsFirst && p.at.First.IsZero() && !p.ofUsers {
		p.Store.logger().Info("sqlstore: the orders that there were before the first start are stored, without calls for what they had reached", "orders", p.at.Orders)
	}
}

// prepare makes the tables and reads when the first start was. It waits for a database that may
// become available.
func (r *Receiver) prepare(ctx context.Context) (first firstStart, value string, err error) {
	for failures := 0; ; failures++ {
		first, value, err = r.prepareOnce(ctx)
		switch {
		case err == nil:
			r.Store.checkDatabase(preparing, nil)
			return first, value, nil
		case ctx.Err() != nil:
			return first, "", ctx.Err()
		case !heals(err):
			if message := warningOf(err); message != databaseFailed && errors.As(err, new(*Error)) {
				err = fmt.Errorf("%s: %w", message, err)
			}
			return first, "", err
		}
		r.Store.checkDatabase(preparing, err)
		_ = sleep(ctx, backoff(50*time.Millisecond, failures, 10*time.Second))
	}
}

func (r *Receiver) prepareOnce(ctx context.Context) (first firstStart, value string, err error) {
	s := r.Store
	limited, cancel := context.WithTimeout(ctx, 5*time.Second) // else a host that does not respond is not noticed
	defer cancel()
	if err := s.checkVersion(limited); err != nil {
		return first, "", err
	}
	if err := s.Migrate(ctx); err != nil {
		return first, "", err
	}
	at := s.now().UTC().Round(0)
	// A Reconciler has been used before if there is where its passes go on: what is new was called.
	isNew, err := json.Marshal(firstStart{At: at, Known: r.options.IncludePast})
	if err != nil {
		return first, "", err
	}
	isUsed, err := json.Marshal(firstStart{At: at, Known: true})
	if err != nil {
		return first, "", err
	}
	// It also finds out whether the database can be written to.
	_, err = s.change(ctx, "start", `INSERT INTO labhealth_reconciled (slot, name, value)
		SELECT 0, 'receiver', CASE WHEN count(*) = 0 THEN $1::text ELSE $2::text END FROM labhealth_reconciled
		WHERE slot = 0 AND name <> 'reactions' AND name <> 'lease' ON CONFLICT (slot, name) DO NOTHING`, string(isNew), string(isUsed))
	if err != nil {
		return first, "", err
	}
	return s.firstStart(ctx)
}

func (s *Store) firstStart(ctx context.Context) (first firstStart, value string, err error) {
	value, err = s.reconciled(ctx, "receiver")
	if err == nil && json.Unmarshal([]byte(value), &first) != nil { // not written by this package
		first = firstStart{Known: true}
	}
	return first, value, err
}

// findPast stores the time of the first start by the service's clock.
func (r *Receiver) findPast(ctx context.Context, first firstStart, value string) (firstStart, error) {
	now, err := r.ask(ctx)
	if err != nil {
		return first, err
	}
	s := r.Store
	first.Past, first.Known = now.Add(-max(0, s.now().Sub(first.At))).UTC(), true
	known, err := json.Marshal(first)
	if err != nil {
		return first, err
	}
	if _, err := s.change(ctx, "start", `UPDATE labhealth_reconciled SET value = $1::text WHERE slot = 0 AND name = 'receiver' AND value = $2::text`, string(known), value); err != nil {
		return first, err
	}
	first, _, err = s.firstStart(ctx) // another process may have been faster
	return first, err
}

// ask returns the time by the service's clock, when the service responds. It returns an error that
// waiting does not heal.
func (r *Receiver) ask(ctx context.Context) (time.Time, error) {
	var unhealed patience
	for failures := 0; ; failures++ {
		var response labhealth.Response
		limited, cancel := context.WithTimeout(ctx, min(8*time.Second<<min(failures, 10), time.Minute))
		_, err := r.Reconciler.Client.Orders.List(limited, labhealth.ListOrdersParams{Size: 1},
			labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 1}), labhealth.WithResponse(&response))
		cancel()
		switch {
		case err == nil:
			r.Store.warnings.Resolved(r.Store.Logger, notRead)
			return r.Store.compareClocks(response.Header), nil
		case ctx.Err() != nil:
			return time.Time{}, ctx.Err()
		}
		r.Store.warn(notRead, slog.String("pass", "start"), warn.Cause(err))
		if unhealed.isOver(err) {
			return time.Time{}, err
		}
		_ = sleep(ctx, backoff(time.Second, failures, 30*time.Second))
	}
}

const clockDiffers = "sqlstore: the clocks of this machine and of the service differ by minutes: deliveries are rejected, or will be: see NTP"

// compareClocks returns the time of a response by the service's clock, or by that of this machine
// if it has none.
func (s *Store) compareClocks(header http.Header) time.Time {
	now := s.now()
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return now
	}
	if difference := now.Sub(date); difference.Abs() > 4*time.Minute { // signatures are valid for five
		s.warn(clockDiffers, slog.Duration("ahead", difference.Round(time.Second)))
	} else {
		s.warnings.Resolved(s.Logger, clockDiffers)
	}
	return date
}

// heals reports whether waiting can heal an error of the database at the start.
func heals(err error) bool {
	e := (*Error)(nil)
	if !errors.As(err, &e) || isReadOnly(e.err, true) || mentions(e.err, "unable to open database file") {
		return false
	}
	return e.TimedOut || errors.Is(e.err, context.DeadlineExceeded) || isBroken(e.err) || classOf(e.err)&(outage|conflict) != 0
}

// servers are the databases: how each says which version it has, and the oldest that is supported.
var servers = map[Dialect]struct {
	version string
	oldest  int
	number  func(version string) int
}{
	SQLite: {`SELECT sqlite_version()`, 3_035, func(version string) int {
		parts := append(strings.Split(version, "."), "0")
		major, _ := strconv.Atoi(parts[0])
		minor, _ := strconv.Atoi(parts[1])
		return 1000*major + minor
	}},
	PostgreSQL: {`SELECT current_setting('server_version_num')`, 120_000, func(version string) int {
		n, _ := strconv.Atoi(version)
		return n
	}},
}

// checkVersion returns an error if the database is of another dialect, or too old.
func (s *Store) checkVersion(ctx context.Context) error {
	var version string
	read := func(d Dialect) error { return s.db.QueryRowContext(ctx, servers[d].version).Scan(&version) }
	// Of processes that create the file of SQLite at the same time, some find it locked at once.
	err := retry(ctx, "migrate", func() error { return read(s.name) })
	if err != nil && !isBroken(err) && ctx.Err() == nil {
		for other := range servers {
			if other != s.name && read(other) == nil {
				return fmt.Errorf("sqlstore: the database is %s, and the dialect that was passed is %s", other, s.name)
			}
		}
	}
	if err != nil {
		return s.failed(ctx, "migrate", err)
	}
	if server := servers[s.name]; server.number(version) < server.oldest {
		return errors.New("sqlstore: the database is too old: SQLite 3.35 or PostgreSQL 12 is needed, or a newer version")
	}
	return nil
}

// logger returns the logger of the store.
func (s *Store) logger() *slog.Logger { return cmp.Or(s.Logger, slog.Default()) }
