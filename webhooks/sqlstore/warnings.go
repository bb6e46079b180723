package sqlstore

import (
	"context"
	"errors"
	"log/slog"
	"strings"
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

// advice is a message for errors with a SQLSTATE that starts so, or without one and with a phrase.
type advice struct{ state, phrase, message string }

func (a advice) matches(state string, err error) bool {
	if state != "" {
		return a.state != "" && strings.HasPrefix(state, a.state)
	}
	return a.phrase != "" && mentions(err, a.phrase)
}

// databaseAdvice has the other ones, by the first characters of the SQLSTATE or a phrase of SQLite.
// The first match counts.
var databaseAdvice = []advice{
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
	tooSlow     = "sqlstore: the database takes too long: is it locked by another process or a long transaction?"

	closedByProgram = "sqlstore: the program has closed the database: stop what uses it before"
)

// databaseWarnings are all messages about the database.
var databaseWarnings = func() []string {
	list := []string{tablesMissing, tablesNewer, databaseFailed, unreachable, tooSlow, closedByProgram}
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
		if advice.matches(state, cause) {
			return advice.message
		}
	}
	switch {
	case mentions(cause, "sql: database is closed"):
		return closedByProgram
	case isBroken(err):
		return unreachable
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
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

// databaseUser is one of those that use the database. What fails for one of them is over when it
// works for the same one: another may only read, or use another table.
type databaseUser int

const (
	receiving databaseUser = iota
	working
	calling
	reconciling
	databaseUsers
)

// isEnding reports whether a context is done, or is in a moment: a driver meets the deadline before
// the context does.
func isEnding(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < 10*time.Millisecond
}

// checkDatabase writes a warning about an error of the database, or that it works again.
func (s *Store) checkDatabase(by databaseUser, err error) {
	switch {
	case err == nil:
		s.failures[by].Resolved(s.Logger, databaseWarnings...)
	case !errors.Is(err, context.Canceled):
		s.failures[by].Warn(s.Logger, warningOf(err), warn.Cause(err))
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
	backlogGrows    = "sqlstore: deliveries wait for more than five minutes to be applied: does a Worker run? Run more of them, or see what slows Worker.Apply and the database"
)

// checkBacklog writes a warning if deliveries wait for long.
func (s *Store) checkBacklog(ctx context.Context) {
	b, err := s.Backlog(ctx)
	switch {
	case err != nil: // who uses the database next reports it
	case b.Waiting > 0 && s.now().Sub(b.Oldest) > backlogWait:
		s.warn(backlogGrows, slog.Int("waiting", b.Waiting), slog.Duration("oldest", s.now().Sub(b.Oldest).Round(time.Second)))
	default:
		s.warnings.Resolved(s.Logger, backlogGrows)
	}
}

// lookAtBacklog calls checkBacklog once a minute, for a program in which no Worker runs.
func (s *Store) lookAtBacklog(ctx context.Context) {
	now := s.now().UnixNano()
	before := s.looked.Load()
	if before == 0 {
		s.looked.CompareAndSwap(0, now)
		return
	}
	if now-before < int64(backlogInterval) || !s.looked.CompareAndSwap(before, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.checkBacklog(ctx)
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
