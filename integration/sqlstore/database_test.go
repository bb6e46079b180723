// Package sqlstore_test runs the store of webhooks/sqlstore on real databases. SQLite is always there; PostgreSQL is where
// LABHEALTH_TEST_POSTGRES says, such as postgres://postgres@127.0.0.1:5432/test?sslmode=disable. LABHEALTH_TEST_LONG=1 runs longer
// forms, and LABHEALTH_TEST_THROUGHPUT=1 measures.
package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

var long = os.Getenv("LABHEALTH_TEST_LONG") != ""

// database is a database of a test's own. What another process needs to open it are these three.
type database struct {
	dialect sqlstore.Dialect
	driver  string
	address string
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// store returns a store that has its tables.
func (d database) store(t testing.TB) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(d.open(t), d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// sqliteFile is a database in a folder of the test's own. LABHEALTH_TEST_DIR names a folder on the disk to be tested, where the
// temporary one is in memory.
func sqliteFile(t testing.TB) database {
	dir := t.TempDir()
	if base := os.Getenv("LABHEALTH_TEST_DIR"); base != "" {
		var err error
		if dir, err = os.MkdirTemp(base, "sqlstore"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	pragmas := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	return database{sqlstore.SQLite, "sqlite", "file:" + (&url.URL{Path: filepath.Join(dir, "labhealth.db")}).EscapedPath() + "?" + pragmas.Encode()}
}

// postgres is a schema of the test's own.
func postgres(t testing.TB) database {
	t.Helper()
	address := os.Getenv("LABHEALTH_TEST_POSTGRES")
	if address == "" {
		t.Skip("LABHEALTH_TEST_POSTGRES is not set: this test needs a PostgreSQL server")
	}
	schema := "labhealth_" + uuid.NewString()[:8]
	admin := database{sqlstore.PostgreSQL, "pgx", address}.open(t)
	if _, err := admin.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := admin.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("LABHEALTH_TEST_POSTGRES is not a URL")
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return database{sqlstore.PostgreSQL, "pgx", u.String()}
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, f func(*testing.T, database)) {
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); f(t, sqliteFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); f(t, postgres(t)) })
}

// onAll runs a test with every driver.
func onAll(t *testing.T, f func(*testing.T, database)) {
	onBoth(t, f)
	t.Run("PostgreSQL by lib pq", func(t *testing.T) {
		t.Parallel()
		d := postgres(t)
		d.driver = "postgres"
		f(t, d)
	})
}

// count returns how many rows a table has.
func count(t testing.TB, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

var noon = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

func user(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }
