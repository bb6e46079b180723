package sqlstore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/warn"
)

// Warnings about the database, in words that name what to change.
const (
	tablesMissing  = "sqlstore: the tables are missing: call Store.Migrate"
	tablesNewer    = "sqlstore: the tables were made by a newer version of this package: update it"
	databaseFailed = "sqlstore: the database fails"
)

// databaseAdvice has the other ones, by the first characters of the SQLSTATE or a phrase of SQLite.
// The first match counts.
var databaseAdvice = []struct{ state, phrase, message string }{
	{"25006", "attempt to write a readonly database", "sqlstore: the database is read-only: is it a standby, or a file without permission to write?"},
	{"53100", "database or disk is full", "sqlstore: the disk of the database is full"},
	{"53300", "", "sqlstore: the database has too many connections: see sql.DB.SetMaxOpenConns"},
	{"28", "", "sqlstore: the database rejects the user or the password"},
	{"3D000", "unable to open database file", "sqlstore: the database does not exist or cannot be opened"},
	{"42501", "", "sqlstore: the user of the database lacks a privilege"},
	{"57P", "", "sqlstore: the database is starting up or shutting down"},
	{"", "database is locked", "sqlstore: another connection holds the lock of the SQLite database: is busy_timeout set?"},
}

const (
	unreachable = "sqlstore: the database cannot be reached"
	tooSlow     = "sqlstore: the database takes too long"
)

// warnings are all messages about the database.
var databaseWarnings = func() []string {
	list := []string{tablesMissing, tablesNewer, databaseFailed, unreachable, tooSlow}
	for _, advice := range databaseAdvice {
		list = append(list, advice.message)
	}
	return list
}()

// warningOf returns the message for an error of the database.
func warningOf(err error) string {
	switch {
	case isMissingTables(err):
		return tablesMissing
	case errors.Is(err, errNewer):
		return tablesNewer
	}
	state := sqlState(err)
	cause := err
	if e := (*Error)(nil); errors.As(err, &e) && e.err != nil {
		cause = e.err
	}
	for _, advice := range databaseAdvice {
		if state != "" && advice.state != "" && len(state) >= len(advice.state) && state[:len(advice.state)] == advice.state ||
			state == "" && advice.phrase != "" && mentions(cause, advice.phrase) {
			return advice.message
		}
	}
	switch {
	case isBroken(err):
		return unreachable
	case isTimeout(err):
		return tooSlow
	}
	return databaseFailed
}

// isMissingTables reports whether the tables were not made.
func isMissingTables(err error) bool {
	const undefinedTable = "42P01"
	e := (*Error)(nil)
	return errors.As(err, &e) && e.err != nil &&
		(mentions(e.err, "no such table: labhealth_") || e.SQLState == undefinedTable && mentions(e.err, `relation "labhealth_`))
}

// warn writes a warning to the log of the store.
func (s *Store) warn(message string, attrs ...slog.Attr) {
	s.warnings.Warn(s.Logger, message, attrs...)
}

// checkDatabase writes a warning about an error of the database, or that it works again.
func (s *Store) checkDatabase(err error) {
	switch {
	case err == nil:
		s.warnings.Resolved(s.Logger, databaseWarnings...)
	case !errors.Is(err, context.Canceled):
		s.warn(warningOf(err), warn.Cause(err))
	}
}

// logEnd logs why Run returned, unless its context ended. go worker.Run(ctx) drops the error.
func (s *Store) logEnd(ctx context.Context, what string, err error) {
	if err == nil || ctx != nil && ctx.Err() != nil {
		return
	}
	logger := slog.Default()
	if s != nil && s.Logger != nil {
		logger = s.Logger
	}
	logger.LogAttrs(context.Background(), slog.LevelError, "sqlstore: "+what+" has stopped", slog.String("error", err.Error()))
}

const (
	backlogInterval = time.Minute
	backlogWait     = 5 * time.Minute
	backlogGrows    = "sqlstore: deliveries wait for more than five minutes to be applied: run more workers, or see what slows Worker.Apply and the database"
)

// checkBacklog writes a warning if deliveries wait for long.
func (s *Store) checkBacklog(ctx context.Context) {
	b, err := s.Backlog(ctx)
	switch {
	case err != nil:
		s.checkDatabase(err)
	case b.Waiting > 0 && s.now().Sub(b.Oldest) > backlogWait:
		s.warn(backlogGrows, slog.Int("waiting", b.Waiting), slog.Duration("oldest", s.now().Sub(b.Oldest).Round(time.Second)))
	default:
		s.warnings.Resolved(s.Logger, backlogGrows)
	}
}

// patience decides when Run returns an error that does not heal by itself.
type patience struct{ since time.Time }

const (
	tablesPatience = 5 * time.Second // another process may be creating them
	keyPatience    = time.Minute     // it may be replaced
)

// isOver reports whether an error has lasted that waiting does not heal.
func (p *patience) isOver(err error) bool {
	limit := tablesPatience
	switch {
	case isMissingTables(err), errors.Is(err, errNewer):
	case errors.Is(err, labhealth.ErrUnauthorized):
		limit = keyPatience
	case errors.As(err, new(*labhealth.TransportError)): // says nothing about the key
		return false
	default:
		p.since = time.Time{}
		return false
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	return time.Since(p.since) >= limit
}
