package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Error is the failure of an operation by the database. Its text never quotes the driver's, which can hold what was to be written.
type Error struct {
	Op string // what failed, such as "apply"
	// SQLState is PostgreSQL's five characters, such as 53100 for a full disk; empty if the driver gave none.
	SQLState string
	// Refused says that the database refused what was to be written, and will again: such a batch should be tried one delivery at
	// a time, and what still fails is for [Store.DeadLetter]; but with SQLState 57014, where a statement took longer than the
	// database lets it, only after several attempts, as it may have waited for a lock. Any other failure goes away with its cause:
	// nothing was written, and it is right to wait and to do the same again.
	Refused bool

	err error
}

// sqlitePhrases are what SQLite says in place of an SQLSTATE.
var sqlitePhrases = []string{
	"database is locked", "database or disk is full", "disk I/O error", "unable to open database file", "attempt to write a readonly database",
}

// Error says what failed, and the SQLSTATE or SQLite's reason if it is a known one, in fixed phrases.
func (e *Error) Error() string {
	text := "sqlstore: " + e.Op + ": "
	switch {
	case errors.Is(e.err, context.Canceled):
		return text + context.Canceled.Error()
	case errors.Is(e.err, context.DeadlineExceeded):
		return text + context.DeadlineExceeded.Error()
	case errors.Is(e.err, errNewer):
		return text + e.err.Error()
	case e.Refused:
		text += "the database refused the content"
	default:
		text += "the database failed"
		if mentions(e.err, "no such table: labhealth_", `relation "labhealth_`) {
			text += ": tables are missing, see Store.Migrate"
		}
		for _, phrase := range sqlitePhrases {
			if mentions(e.err, phrase) {
				text += ": " + phrase
			}
		}
	}
	if e.SQLState != "" {
		text += " (SQLSTATE " + e.SQLState + ")"
	}
	return text
}

// Unwrap returns the driver's error. Its text can hold health data and belongs in no log.
func (e *Error) Unwrap() error { return e.err }

var errNewer = errors.New("the tables are of a newer version")

// failed makes an Error of a driver's error, and leaves one that is of this package as it is.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	// An error of the application's function that wraps one has a text of its own.
	if _, ok := err.(*Error); ok { //nolint:errorlint // it is not to be unwrapped
		return err
	}
	return &Error{Op: op, SQLState: sqlState(err), Refused: isRefusal(err), err: err}
}

// sqlState returns the SQLSTATE in an error, which the PostgreSQL drivers give by a method of that name; empty if there is none.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		if s := e.SQLState(); len(s) == 5 && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			return s
		}
	}
	return ""
}

// The drivers for SQLite have no type in common that tells what failed, but the texts are SQLite's own.

// isConflict reports whether the database gave a transaction up for the sake of others: the same transaction, begun anew, can succeed.
func isConflict(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01":
		return true
	case "":
		return mentions(err, "database is locked", "database table is locked")
	}
	return false
}

// isRefusal reports whether the database refused the content of what this package wrote: values that it does not take.
func isRefusal(err error) bool {
	switch state := sqlState(err); {
	case state == "":
		return mentions(err, "constraint failed", "datatype mismatch", "string or blob too big")
	case state == "57014": // it took longer than the database lets a statement take
		return true
	default:
		return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23") || strings.HasPrefix(state, "54")
	}
}

// isBroken reports whether an error is that of a connection that broke: to the database, or to whatever else the application's
// function talks to or reads from.
func isBroken(err error) bool {
	for _, e := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	network := (*net.OpError)(nil)
	return errors.As(err, &network)
}

// isLost reports whether a transaction has no connection any more: nothing that the database itself says comes over it.
func isLost(ctx context.Context, tx *sql.Tx) bool {
	_, err := tx.ExecContext(ctx, `SELECT 1`)
	return err != nil && sqlState(err) == "" && !errors.Is(err, sql.ErrTxDone)
}

// isAway reports whether an error of the application's function is the database's own trouble and not the delivery's; that of a
// broken connection is, if it was that of the transaction.
func isAway(err error) bool {
	switch state := sqlState(err); {
	case isBroken(err):
		return true
	case state == "":
		return mentions(err, "database is locked", "database table is locked", "database or disk is full", "disk I/O error",
			"unable to open database file", "attempt to write a readonly database")
	case state == "25006", state == "55P03": // a standby, a lock that was not to be had
		return true
	case state == "57014":
		return false
	default: // connection, transaction given up, resources, operator, system
		return strings.Contains("08 40 53 57 58", state[:2])
	}
}

func mentions(err error, texts ...string) bool {
	all := err.Error()
	for _, t := range texts {
		if strings.Contains(all, t) {
			return true
		}
	}
	return false
}

// reasonOf returns the fixed phrase that a dead letter keeps of an error.
func reasonOf(err error) string {
	var unreadable *webhooks.ParseError
	var function *functionError
	var database *Error
	phrase := "the application failed"
	switch {
	case errors.Is(err, errPanicked):
		return "the application panicked"
	case errors.As(err, &function):
	case errors.As(err, &unreadable):
		return strings.TrimPrefix(unreadable.Error(), "webhooks: ")
	case errors.Is(err, webhooks.ErrNoUser):
		return strings.TrimPrefix(webhooks.ErrNoUser.Error(), "webhooks: ")
	case errors.Is(err, webhooks.ErrNoID):
		return strings.TrimPrefix(webhooks.ErrNoID.Error(), "webhooks: ")
	case errors.Is(err, webhooks.ErrUnreadable):
		return strings.TrimPrefix(webhooks.ErrUnreadable.Error(), "webhooks: ")
	case errors.Is(err, errUnwritable):
		return strings.TrimPrefix(errUnwritable.Error(), "sqlstore: ")
	case errors.As(err, &database):
		phrase = "the database refused the content"
	}
	if state := sqlState(err); state != "" {
		phrase += " (SQLSTATE " + state + ")"
	}
	return phrase
}

var errPanicked = errors.New("sqlstore: the application panicked")

const errUnwritable = permanentError("sqlstore: the event cannot be written as JSON")
