// Errors of the database, without the driver's message, and which of them are retried.

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Error reports an error of the database. Its message never includes that of the driver, which can
// quote the data.
type Error struct {
	Op string // the failed operation, such as "apply"
	// SQLState is PostgreSQL's code of five characters, such as 53100 for a full disk; empty if the
	// driver has none.
	SQLState string
	// Rejected reports whether the database rejected the data, and would reject it again. Apply the
	// deliveries of such a batch one at a time, and pass those that still fail to
	// [Store.DeadLetter], unless TimedOut is true. If Rejected is false, the error is temporary and
	// nothing was written: wait, and apply the same deliveries again.
	Rejected bool
	// TimedOut reports whether a time limit was exceeded: the deadline of the context, or a limit
	// of the database (SQLSTATE 57014, 55P03, 25P03 or 25P04). Apply fewer deliveries at a time. A
	// delivery that exceeds the limit alone may do so each time, or may have waited for a lock:
	// pass it to [Store.DeadLetter] only after several attempts. Rejected is also true for 57014.
	TimedOut bool

	err error
}

// Format prints the error message under every verb, so that %#v does not print the driver's error.
func (e Error) Format(s fmt.State, _ rune) { fmt.Fprint(s, e.Error()) }

// Error returns the failed operation and the SQLSTATE, or a known reason of SQLite, in fixed
// phrases.
func (e *Error) Error() string {
	if e == nil || e.err == nil {
		return "sqlstore: no error of the database"
	}
	text := "sqlstore: " + e.Op + ": "
	switch {
	case errors.Is(e.err, context.Canceled):
		return text + context.Canceled.Error()
	case errors.Is(e.err, context.DeadlineExceeded):
		return text + context.DeadlineExceeded.Error()
	case errors.Is(e.err, errNewer), errors.Is(e.err, errEncoding):
		return text + e.err.Error()
	case e.TimedOut:
		text += "a time limit of the database was exceeded"
	case e.Rejected:
		text += "the database rejected the content"
	default:
		text += "the database failed" + knownReason(e.err)
	}
	if e.SQLState != "" {
		text += " (SQLSTATE " + e.SQLState + ")"
	}
	return text
}

// knownReason returns the fixed phrases in an error.
func knownReason(err error) (text string) {
	if mentions(err, "no such table: labhealth_") || mentions(err, `relation "labhealth_`) {
		text += ": tables are missing, see Store.Migrate"
	}
	for _, c := range sqliteErrors {
		if c.class&outage != 0 && mentions(err, c.phrase) {
			text += ": " + c.phrase
		}
	}
	return text
}

// Unwrap returns an error with the text of e, with which errors.Is and errors.As find the driver's
// error.
func (e *Error) Unwrap() error {
	if e == nil || e.err == nil {
		return nil
	}
	return &hidden{e.Error(), func() error { return e.err }}
}

// Cause returns the driver's error. Its message can contain health data: show it to someone who may
// know, but do not log it.
func (e *Error) Cause() error {
	if e == nil {
		return nil
	}
	return e.err
}

// hidden is an error with another text. Its cause is behind a function, because fmt prints
// unexported fields.
type hidden struct {
	text  string
	cause func() error
}

func (h *hidden) Error() string        { return h.text }
func (h *hidden) Is(target error) bool { return errors.Is(h.cause(), target) }
func (h *hidden) As(target any) bool   { return errors.As(h.cause(), target) }

var (
	errNewer    = errors.New("the tables have a newer version")
	errEncoding = errors.New("the encoding of the database is")
)

// failed returns an error of the driver as an *Error, and an *Error unchanged.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*Error); ok { //nolint:errorlint // an error of the application that wraps one has its own text
		return err
	}
	return &Error{Op: op, SQLState: sqlState(err), Rejected: isRejection(err), TimedOut: exceedsLimit(err), err: err}
}

// failed returns the error of a statement outside of a transaction as an *Error.
func (s *Store) failed(ctx context.Context, op string, err error) error {
	if unusable := s.usable(ctx); unusable != nil {
		return unusable
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return failed(op, err)
}

// class classifies the errors of the database.
type class uint8

const (
	conflict  class = 1 << iota // the same transaction can succeed when it is run again
	rejection                   // the content cannot be written
	outage                      // the database is not available, or not for writing
)

// sqlStates are the SQLSTATEs of PostgreSQL, by their first characters. The first match counts.
var sqlStates = []struct {
	prefix string
	class  class
}{
	{"40001", conflict | outage}, // serialization failure
	{"40P01", conflict | outage}, // deadlock
	{"57014", rejection},         // statement timeout
	{readOnly, outage},           // a standby, or a session of a primary that has become one
	{"55P03", outage},            // lock not available
	{"22", rejection},            // data
	{"23", rejection},            // constraints
	{"54", rejection},            // limits of the program
	{"08", outage},               // connection
	{"40", outage},               // rollback
	{"25P03", outage},            // timeout between statements, which ends the session
	{"25P04", outage},            // transaction timeout, which does the same
	{"53", outage},               // resources
	{"57", outage},               // operator intervention
	{"58", outage},               // system
}

// sqliteErrors are phrases of SQLite. Its drivers do not share an error type.
var sqliteErrors = []struct {
	phrase string
	class  class
}{
	{"database is locked", conflict | outage},
	{"database table is locked", conflict | outage},
	{"database or disk is full", outage},
	{"disk I/O error", outage},
	{"unable to open database file", outage},
	{"attempt to write a readonly database", outage},
	{"constraint failed", rejection},
	{"datatype mismatch", rejection},
	{"string or blob too big", rejection},
}

// rolledBack are phrases of the errors of a commit that rolled back, because the application's
// function ignored an error of one of its statements. They have no SQLSTATE. The first two are of
// pgx and pq, the last one is of SQLite.
var rolledBack = []string{"commit unexpectedly resulted in rollback", "failed transaction", "no transaction is active"}

// isRolledBack reports whether the application's function has ended or spoiled the transaction.
func isRolledBack(err error) bool {
	if e := (*Error)(nil); errors.As(err, &e) {
		err = e.err // that of the driver
	}
	if err == nil {
		return false
	}
	return errors.Is(err, sql.ErrTxDone) || sqlState(err) == "" && slices.ContainsFunc(rolledBack, func(phrase string) bool { return mentions(err, phrase) })
}

func classOf(err error) (all class) {
	if function := (*functionError)(nil); errors.As(err, &function) && !function.outage {
		return 0 // its text may be that of another database
	}
	if state := sqlState(err); state != "" {
		for _, c := range sqlStates {
			if strings.HasPrefix(state, c.prefix) {
				return c.class
			}
		}
		return 0
	}
	for _, c := range sqliteErrors {
		if mentions(err, c.phrase) {
			all |= c.class
		}
	}
	return all
}

// sqlState returns the SQLSTATE of an error, which the PostgreSQL drivers return from a method of
// that name; empty if there is none.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		if s := e.SQLState(); len(s) == 5 && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			return s
		}
	}
	return ""
}

func mentions(err error, phrase string) bool { return strings.Contains(err.Error(), phrase) }

// isConflict reports whether the same transaction can succeed when it is run again.
func isConflict(err error) bool { return classOf(err)&conflict != 0 }

func isRejection(err error) bool { return classOf(err)&rejection != 0 }

// isOutage reports whether an error of the application's function is caused by the database and not
// by the delivery. An error of a broken connection counts only if it is the connection of the
// transaction.
func isOutage(err error) bool { return isBroken(err) || classOf(err)&outage != 0 }

// isOutage reports whether an error of the application's function is caused by the database. Those
// of SQLite have no SQLSTATE, and those of PostgreSQL have one unless the connection is broken.
func (s *Store) isOutage(err error) bool {
	return isBroken(err) || (sqlState(err) != "") == (s.name == PostgreSQL) && isOutage(err)
}

// timeouts are the SQLSTATEs of limits of the database: of a statement, which is also the state of
// one that the operator cancels, of waiting for a lock, between statements, and of a transaction.
var timeouts = []string{"57014", lockNotAvailable, "25P03", "25P04"}

const lockNotAvailable = "55P03"

const (
	readOnly     = "25006" // the transaction is read-only
	notSupported = "0A000"
)

// isReadOnly reports whether a connection cannot write. On a standby, lib/pq fails to begin a
// transaction, with notSupported. A connection of SQLite stays read-only if the file was when it
// was opened.
func isReadOnly(err error, begun bool) bool {
	if err == nil {
		return false
	}
	state := sqlState(err)
	return state == readOnly || state == notSupported && !begun || state == "" && mentions(err, "attempt to write a readonly database")
}

func exceedsLimit(err error) bool {
	if function := (*functionError)(nil); errors.As(err, &function) {
		return slices.Contains(timeouts, sqlState(err)) // its context may be its own
	}
	return slices.Contains(timeouts, sqlState(err)) || errors.Is(err, context.DeadlineExceeded)
}

// isTimeout reports whether a transaction exceeded a time limit.
func isTimeout(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.TimedOut
}

// isLocked reports whether a transaction waited too long for a lock.
func isLocked(err error) bool { return sqlState(err) == lockNotAvailable }

// isBroken reports whether an error is caused by a broken connection, to the database or to another
// service that the application's function uses.
func isBroken(err error) bool {
	for _, e := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	network := (*net.OpError)(nil)
	return errors.As(err, &network)
}

// isDisconnected reports whether a transaction has lost its connection: the database does not
// respond to a statement.
func isDisconnected(ctx context.Context, tx *sql.Tx) bool {
	_, err := tx.ExecContext(ctx, `SELECT 1`)
	return err != nil && sqlState(err) == "" && !errors.Is(err, sql.ErrTxDone)
}

var errPanicked = errors.New("sqlstore: the application panicked")

// reasons are errors whose own text is the reason of a dead letter.
var reasons = []error{webhooks.ErrNoUser, webhooks.ErrNoID, webhooks.ErrUnreadable, errUnencodable}

// reasonOf returns the fixed phrase that a dead letter stores for an error.
func reasonOf(err error) string {
	var function *functionError
	var database *Error
	phrase := "the application failed"
	switch {
	case errors.Is(err, errPanicked):
		return "the application panicked"
	case isTimeout(err):
		phrase = "it took too long"
	case errors.As(err, &function), isRolledBack(err):
	case knownText(err) != "":
		return knownText(err)
	case errors.As(err, &database):
		phrase = "the database rejected the content"
	}
	if state := sqlState(err); state != "" {
		phrase += " (SQLSTATE " + state + ")"
	}
	return phrase
}

// kindOf returns the reason without what differs between deliveries, for counters.
func kindOf(err error) string {
	if unreadable := (*webhooks.ParseError)(nil); reasonOf(err) == knownText(err) && errors.As(err, &unreadable) {
		return "not an event"
	}
	return reasonOf(err)
}

// knownText returns the text of an error that never quotes the delivery, without its package.
func knownText(err error) string {
	known := error(nil)
	if unreadable := (*webhooks.ParseError)(nil); errors.As(err, &unreadable) {
		known = unreadable
	}
	for _, reason := range reasons {
		if known == nil && errors.Is(err, reason) {
			known = reason
		}
	}
	if known == nil {
		return ""
	}
	_, text, _ := strings.Cut(known.Error(), ": ")
	return text
}
