// Package sqlstore_test runs the store of webhooks/sqlstore on real databases. SQLite is always
// available. LABHEALTH_TEST_POSTGRES is the URL of PostgreSQL, such as
// postgres://postgres@127.0.0.1:5432/test?sslmode=disable. LABHEALTH_TEST_LONG=1 runs longer forms,
// and LABHEALTH_TEST_THROUGHPUT=1 measures. LABHEALTH_TEST_EQUAL is the number of orders of
// TestEqualToService. LABHEALTH_TEST_WAL is a directory for clusters of the tests' own: see
// TestWriteVolume.
package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

var long = os.Getenv("LABHEALTH_TEST_LONG") != ""

// database is the database of one test. Another process can open it with these fields.
type database struct {
	dialect sqlstore.Dialect
	driver  string
	source  string // data source name
}

// specifics are the statements of the tests that differ between databases.
type specifics struct {
	placeholder func(n int) string
	empty       string   // start of a statement that empties a table
	readOnly    string   // parameter of source that makes a connection read-only, if there is one
	reject666   []string // statements that make the database reject samples with that value
	rejected    string   // reason of their dead letters
	notNull     string   // reason of a dead letter whose function violates NOT NULL
	compact     string   // statement before measuring size
	size        string   // query of the size of labhealth_samples in bytes
	blob        string   // type of a body
}

var specificsOf = map[sqlstore.Dialect]specifics{
	sqlstore.SQLite: {
		placeholder: func(int) string { return "?" },
		empty:       "DELETE FROM ",
		reject666: []string{`CREATE TRIGGER reject BEFORE INSERT ON labhealth_samples WHEN new.value = 666
			BEGIN SELECT RAISE(ABORT, 'canary Ada'); END`},
		rejected: "the database rejected the content",
		notNull:  "the application failed",
		compact:  "PRAGMA wal_checkpoint(TRUNCATE)",
		size:     `SELECT sum(pgsize) FROM dbstat WHERE name = 'labhealth_samples'`,
		blob:     "blob",
	},
	sqlstore.PostgreSQL: {
		placeholder: func(n int) string { return fmt.Sprintf("$%d", n) },
		empty:       "DELETE FROM ",
		readOnly:    "&default_transaction_read_only=on",
		reject666: []string{`CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN IF new.value = 666 THEN RAISE 'canary Ada' USING ERRCODE = '22023'; END IF; RETURN new; END $$`,
			`CREATE TRIGGER reject BEFORE INSERT ON labhealth_samples FOR EACH ROW EXECUTE FUNCTION reject()`},
		rejected: "the database rejected the content (SQLSTATE 22023)",
		notNull:  "the application failed (SQLSTATE 23502)",
		compact:  "VACUUM labhealth_samples",
		size:     `SELECT pg_total_relation_size('labhealth_samples')`,
		blob:     "bytea",
	},
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// store returns a store with its tables.
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

// sqliteFile returns a database in a temporary directory. If that is in memory, LABHEALTH_TEST_DIR
// is a directory on the disk to test.
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

// postgres returns a database in a schema of one test.
func postgres(t testing.TB) database {
	t.Helper()
	source := os.Getenv("LABHEALTH_TEST_POSTGRES")
	if source == "" {
		t.Skip("LABHEALTH_TEST_POSTGRES is not set: this test needs a PostgreSQL server")
	}
	schema := "labhealth_" + uuid.NewString()[:8]
	admin := database{sqlstore.PostgreSQL, "pgx", source}.open(t)
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
	u, err := url.Parse(source)
	if err != nil {
		t.Fatal("LABHEALTH_TEST_POSTGRES is not a URL")
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return database{sqlstore.PostgreSQL, "pgx", u.String()}
}

// onBoth runs a test on both databases, in parallel with other tests.
func onBoth(t *testing.T, f func(*testing.T, database)) {
	t.Parallel()
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

// isEmpty reports whether a table has no rows. It is cheap to ask often.
func isEmpty(t testing.TB, db *sql.DB, table string) (empty bool) {
	t.Helper()
	if err := db.QueryRow("SELECT NOT EXISTS (SELECT 1 FROM " + table + ")").Scan(&empty); err != nil {
		t.Fatal(err)
	}
	return empty
}

var noon = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

func user(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

// placeholders returns a statement with the placeholders of a dialect in place of question marks.
func placeholders(d sqlstore.Dialect, statement string) string {
	parts := strings.Split(statement, "?")
	for n := 1; n < len(parts); n++ {
		parts[n] = specificsOf[d].placeholder(n) + parts[n]
	}
	return strings.Join(parts, "")
}
