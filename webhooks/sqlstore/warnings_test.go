package sqlstore

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A failure is over when the same part of the store works again, and not when another does: a
// worker that has stopped for want of its tables does not work because deliveries are stored.
func TestResolvedByTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &Store{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		s.checkDatabase(working, failed("step", errors.New("SQL logic error: no such table: labhealth_orders (1)")))
		time.Sleep(time.Hour)
		s.checkDatabase(receiving, nil)
		s.checkDatabase(calling, nil)
		s.checkDatabase(reconciling, nil)
		if strings.Contains(log.String(), "resolved") || !strings.Contains(log.String(), tablesMissing) {
			t.Error(log.String())
		}
		s.checkDatabase(working, nil)
		if strings.Count(log.String(), "resolved: "+tablesMissing) != 1 {
			t.Error(log.String())
		}
	})
}

// The text of a failure of the database names what to change.
func TestWarningOf(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("no such table: labhealth_inbox"), tablesMissing},
		{errNewer, tablesNewer},
		{state("25006"), "sqlstore: the database is read-only: is it a standby, or a file without permission to write?"},
		{errors.New("attempt to write a readonly database (8)"), "sqlstore: the database is read-only: is it a standby, or a file without permission to write?"},
		{state("53100"), "sqlstore: the disk of the database is full"},
		{state("53300"), "sqlstore: the database has too many connections: see sql.DB.SetMaxOpenConns"},
		{state("28P01"), "sqlstore: the database rejects the user or the password"},
		{state("3D000"), "sqlstore: the database does not exist or cannot be opened"},
		{state("42501"), "sqlstore: the user of the database lacks a privilege"},
		{state("57P03"), "sqlstore: the database is starting up or shutting down, or an administrator has ended the connection"},
		{errors.New("dial tcp 127.0.0.1:5433: connect: connection refused"), "sqlstore: the database refuses connections: does it run, and are host and port right?"},
		{errors.New("lookup db.invalid: no such host"), "sqlstore: the host of the database is not known"},
		{state("42601"), wrongDialect},
		{errors.New(`SQL logic error: near "SET": syntax error (1)`), wrongDialect},
		{errors.New("file is not a database (26)"), "sqlstore: the file is not a SQLite database"},
		{errors.New("database is locked (5)"), "sqlstore: another connection holds the lock of the SQLite database: is busy_timeout set?"},
		{errors.New("sql: database is closed"), closedByProgram},
		{state("57014"), tooSlow},
		{errors.New("canary Ada"), databaseFailed},
	} {
		if got := warningOf(failed("step", test.err)); got != test.want {
			t.Errorf("%v: %s", test.err, got)
		}
	}
}

// Versions of servers before those that are supported are known.
func TestServerVersions(t *testing.T) {
	for dialect, versions := range map[Dialect]map[string]bool{
		SQLite:     {"3.34.1": true, "3.35.0": false, "3.50.4": false, "4.0.0": false, "2.8": true, "": true},
		PostgreSQL: {"110022": true, "120000": false, "180000": false},
	} {
		for version, isOld := range versions {
			if server := servers[dialect]; server.number(version) < server.oldest != isOld {
				t.Errorf("%s %s: %d", dialect, version, server.number(version))
			}
		}
	}
}
