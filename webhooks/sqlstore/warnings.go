// What is written to the log about the database, workers and reactors, and when Run returns.

package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
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
	{"57P", "", "sqlstore: the database is starting up or shutting down, or an administrator has ended the connection"},
	{"42601", "syntax error", wrongDialect},
	{"42883", "no such function", wrongDialect},
	{"", "connection refused", "sqlstore: the database refuses connections: does it run, and are host and port right?"},
	{"", "no such host", "sqlstore: the host of the database is not known"},
	{"", "file is not a database", "sqlstore: the file is not a SQLite database"},
	{"", "database is locked", "sqlstore: another connection holds the lock of the SQLite database: is busy_timeout set?"},
}

const (
	wrongDialect = "sqlstore: the database does not understand a statement: is it SQLite 3.35 or PostgreSQL 12, or newer, and the dialect of the Store the right one?"

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
	preparing databaseUser = iota
	receiving
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
	if s != nil {
		logger = s.logger()
	}
	logger.LogAttrs(context.Background(), slog.LevelError, "sqlstore: "+what+" has stopped", slog.String("error", err.Error()))
}

const (
	backlogInterval = time.Minute
	backlogWait     = 5 * time.Minute
	backlogGrows    = "sqlstore: deliveries wait for more than five minutes to be applied: does a Worker run? Run more of them, or see what slows Worker.Apply and the database"
	reactionsWait   = "sqlstore: reactions wait for more than five minutes: does a Reactor run, and is its function slow or does it fail?"
	otherReactions  = "sqlstore: another process that writes to this database has reactions to other kinds of changes: what it writes is not called for the others: give all processes the same Store.Reactions, or functions of a Receiver"
)

// checkBacklog writes a warning if deliveries or reactions wait for long.
func (s *Store) checkBacklog(ctx context.Context) {
	b, err := s.Backlog(ctx)
	if err != nil { // who uses the database next reports it
		return
	}
	s.warnIfOld(backlogGrows, b.Waiting, b.Oldest)
	s.warnIfOld(reactionsWait, b.Reactions, b.OldestReaction)
}

// warnIfOld writes a warning if a number of things wait, the oldest for long.
func (s *Store) warnIfOld(message string, waiting int, oldest time.Time) {
	if age := s.now().Sub(oldest); waiting > 0 && age > backlogWait {
		s.warn(message, slog.Int("waiting", waiting), slog.Duration("oldest", age.Round(time.Second)))
	} else {
		s.warnings.Resolved(s.Logger, message)
	}
}

// processReactions is the JSON of the row reactions of labhealth_reconciled: what the process
// reacts to that has written it last.
type processReactions struct {
	Kinds []ReactionKind `json:"kinds"`
	At    time.Time      `json:"at"`
}

// checkProcesses writes a warning if another process has written within the last two intervals that
// it reacts to other changes than this one.
func (s *Store) checkProcesses(ctx context.Context) {
	value, err := s.reconciled(ctx, "reactions")
	var other processReactions
	_ = json.Unmarshal([]byte(value), &other) // the zero value is old
	mine := processReactions{Kinds: slices.Sorted(slices.Values(s.selected())), At: s.now().UTC()}
	switch {
	case err != nil:
		return
	case !slices.Equal(mine.Kinds, other.Kinds) && mine.At.Sub(other.At).Abs() < 2*backlogInterval:
		s.warn(otherReactions, slog.Any("this", mine.Kinds), slog.Any("other", other.Kinds))
	default:
		s.warnings.Resolved(s.Logger, otherReactions)
	}
	document, err := json.Marshal(mine)
	if err != nil {
		return
	}
	_ = s.saveReconciled(ctx, "reactions", string(document)) // who uses the database next reports it
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
