// The tables, Migrate, and the schema as a script.

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
)

const schemaTable = `CREATE TABLE IF NOT EXISTS labhealth_schema (version integer NOT NULL)`

// migrations are the steps from an empty database to the current schema, for both dialects. A step
// that was released never changes. Views come after the tables.
//
// The slot of the user leads every key and index: whatever a transaction about a user touches is in
// the place of that slot, however a database distributes it. IDs are made from the content, or by
// the counter of the slot.
var migrations = []string{`
-- One row for each user with data. A transaction that writes data of a user locks it. The rows are
-- nothing but locks: unlogged, a lock writes no WAL, and a crash, which empties the table, ends the
-- transactions that hold one.
CREATE {pg: UNLOGGED }TABLE labhealth_users (
    slot    smallint NOT NULL,
    user_id uuid NOT NULL,
    PRIMARY KEY (slot, user_id)
){large}{lite:  WITHOUT ROWID};

-- One row for each slot, with the number of its last series.
CREATE TABLE labhealth_slots (
    slot   smallint NOT NULL PRIMARY KEY,
    series integer NOT NULL
){lite:  WITHOUT ROWID};
INSERT INTO labhealth_slots (slot, series) WITH RECURSIVE s (slot) AS (SELECT 0 UNION ALL SELECT slot + 1 FROM s WHERE slot < 255) SELECT slot, 0 FROM s;

-- Samples of one series differ in time only. key is a digest of resource, provider and source type.
-- Summaries belong to the series of their resource that has neither provider nor source type. A
-- number of a series is unique within its slot, and never used again.
CREATE TABLE labhealth_series (
    slot        smallint NOT NULL,
    user_id     uuid NOT NULL,
    key         bytea NOT NULL,
    series      integer NOT NULL,
    resource    text NOT NULL,
    provider    text NOT NULL,
    source_type text NOT NULL,
    PRIMARY KEY (slot, user_id, key),
    UNIQUE (slot, series)
){large};

-- What many samples of a series have in common. seconds is the length of an interval that starts at
-- the timestamp, NULL without an interval, and -1 if each sample has its own. east is the offset of
-- the received timestamp, in seconds.
CREATE TABLE labhealth_shapes (
    slot            smallint NOT NULL,
    series          integer NOT NULL,
    shape           smallint NOT NULL,
    seconds         integer,
    has_value       boolean NOT NULL,
    timezone_offset integer,
    east            integer NOT NULL,
    type            text NOT NULL,
    unit            text NOT NULL,
    PRIMARY KEY (slot, series, shape)
){large}{lite:  WITHOUT ROWID};

-- The latest version of every sample. at is its time in nanoseconds since 1970, and version the time
-- at which it was received. seconds is the length of an interval if the shape does not have it. A
-- sample that does not fit these columns has its JSON in text, and shape 0. The samples of a series
-- arrive in the order of the key: pages of the index that are filled completely stay so.
CREATE TABLE IF NOT EXISTS labhealth_samples (
    at      bigint NOT NULL,
    version bigint NOT NULL,
    value   double precision NOT NULL,
    series  integer NOT NULL,
    slot    smallint NOT NULL,
    shape   smallint NOT NULL,
    seconds integer,
    text    text,
    PRIMARY KEY (slot, series, at){pg:  WITH (fillfactor = 100)}
){large}{lite:  WITHOUT ROWID};

-- The latest version of every summary, as JSON.
CREATE TABLE labhealth_summaries (
    slot    smallint NOT NULL,
    series  integer NOT NULL,
    id      uuid NOT NULL,
    version bigint NOT NULL,
    text    text NOT NULL,
    PRIMARY KEY (slot, series, id)
){large};

-- IDs of deliveries that were stored or processed, and when: the start of an ID and a digest, in the
-- slot of the digest.
CREATE TABLE labhealth_deliveries (
    slot smallint NOT NULL,
    id   bytea NOT NULL,
    at   bigint NOT NULL,
    PRIMARY KEY (slot, id)
){large}{lite:  WITHOUT ROWID};
CREATE INDEX labhealth_deliveries_at ON labhealth_deliveries (slot, at);

-- Deliveries that wait for a worker, in the slot of their user, which is the zero ID if the body
-- names none. part is 1 for those that failed, or were in a batch that exceeded a time limit, and 0
-- for others. due is when one was received or may be tried. id distinguishes those of the same time.
-- Those that exceeded a limit are tried alone.
CREATE TABLE labhealth_inbox (
    slot        smallint NOT NULL,
    part        smallint NOT NULL,
    due         bigint NOT NULL,
    id          integer NOT NULL,
    received_at bigint NOT NULL,
    user_id     uuid NOT NULL,
    attempts    integer NOT NULL,
    alone       boolean NOT NULL DEFAULT false,
    delivery_id text,
    body        bytea NOT NULL,
    PRIMARY KEY (slot, part, due, id)
){queue};
{pg: ALTER TABLE labhealth_inbox ALTER COLUMN body SET STORAGE EXTERNAL;
}
-- Deliveries that cannot be processed. id is made from the ID of the delivery. reason is a fixed
-- phrase.
CREATE TABLE labhealth_dead_letters (
    slot        smallint NOT NULL,
    id          uuid NOT NULL,
    delivery_id text,
    received_at bigint NOT NULL,
    user_id     uuid NOT NULL,
    attempts    integer NOT NULL,
    failed_at   bigint NOT NULL,
    reason      text NOT NULL,
    body        bytea NOT NULL,
    PRIMARY KEY (slot, id)
);

-- The latest state of every order. updated is the time of the version by the service's clock, and
-- version the time at which it was received: the greater pair wins. status is the current one, and
-- since when it was reached. results is none, partial, final or corrected. changed is when the row
-- was last written, and missing when the service was found not to have the order. results_at is when
-- to read its results again.
CREATE TABLE labhealth_orders (
    slot           smallint NOT NULL,
    user_id        uuid NOT NULL,
    order_id       uuid NOT NULL,
    updated        bigint NOT NULL,
    version        bigint NOT NULL,
    created        bigint NOT NULL,
    status         text NOT NULL,
    since          bigint NOT NULL,
    results        text NOT NULL,
    transaction_id uuid,
    parent_id      uuid,
    changed        bigint NOT NULL,
    missing        bigint,
    results_at     bigint,
    text           text NOT NULL,
    PRIMARY KEY (slot, user_id, order_id)
){large};
CREATE INDEX labhealth_orders_id ON labhealth_orders (slot, order_id, user_id);
CREATE INDEX labhealth_orders_status ON labhealth_orders (slot, status);
CREATE INDEX labhealth_orders_changed ON labhealth_orders (slot, changed, user_id, order_id);
CREATE INDEX labhealth_orders_created ON labhealth_orders (slot, created, user_id, order_id);
CREATE INDEX labhealth_orders_transaction ON labhealth_orders (slot, transaction_id) WHERE transaction_id IS NOT NULL;
CREATE INDEX labhealth_orders_results ON labhealth_orders (slot, results_at) WHERE results_at IS NOT NULL;

-- Every status that an order has reached, once. id is the ID of the service's event or, if it has
-- none, its status and time.
CREATE TABLE labhealth_order_events (
    slot     smallint NOT NULL,
    user_id  uuid NOT NULL,
    order_id uuid NOT NULL,
    id       text NOT NULL,
    at       bigint NOT NULL,
    status   text NOT NULL,
    detail   text NOT NULL,
    PRIMARY KEY (slot, user_id, order_id, id)
){large};

-- The latest results of an order, as JSON. revision counts their versions, and status is that of
-- their metadata. The order need not be stored.
CREATE TABLE labhealth_order_results (
    slot     smallint NOT NULL,
    user_id  uuid NOT NULL,
    order_id uuid NOT NULL,
    version  bigint NOT NULL,
    revision integer NOT NULL,
    status   text NOT NULL,
    text     text NOT NULL,
    PRIMARY KEY (slot, user_id, order_id)
){large};
CREATE INDEX labhealth_order_results_id ON labhealth_order_results (slot, order_id);

-- Reactions that wait. id is made from the change. due is when one was queued or may be called:
-- while one is called, and after it has failed, it is in the future, also for the others of the same
-- order. One that has failed for good has the greatest due, and failed_at and reason. at orders
-- those of one order.
CREATE TABLE labhealth_reactions (
    slot      smallint NOT NULL,
    id        uuid NOT NULL,
    due       bigint NOT NULL,
    kind      text NOT NULL,
    user_id   uuid NOT NULL,
    order_id  uuid,
    at        bigint NOT NULL,
    queued    bigint NOT NULL,
    attempts  integer NOT NULL,
    failed_at bigint,
    reason    text,
    body      text NOT NULL,
    PRIMARY KEY (slot, id)
){queue};
CREATE INDEX labhealth_reactions_due ON labhealth_reactions (slot, due, id);
CREATE INDEX labhealth_reactions_user ON labhealth_reactions (slot, user_id, order_id);

-- Users that were compared with the service: when, since when the service does not have them, and
-- when DeleteUser has deleted them.
CREATE TABLE labhealth_reconciled_users (
    slot    smallint NOT NULL,
    user_id uuid NOT NULL,
    at      bigint NOT NULL,
    missing bigint,
    deleted bigint,
    PRIMARY KEY (slot, user_id)
);

-- Where the comparison with the service goes on. The slot is 0.
CREATE TABLE labhealth_reconciled (
    slot  smallint NOT NULL,
    name  text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (slot, name)
);
`}

// tableOptions are the marks of the schema that only PostgreSQL replaces by something. It vacuums
// and analyzes tables when they have some pages, and queues that were emptied keep their pages:
// otherwise it would plan statements for almost empty tables, by scans, and keep these plans when
// the tables have grown.
var tableOptions = strings.NewReplacer(
	"{large}", "{pg:  WITH (autovacuum_vacuum_threshold = 3000, autovacuum_vacuum_insert_threshold = 3000, autovacuum_analyze_threshold = 3000)}",
	"{queue}", "{pg:  WITH (autovacuum_vacuum_threshold = 3000, autovacuum_analyze_threshold = 3000, autovacuum_vacuum_scale_factor = 0, vacuum_truncate = false)}",
)

// sqliteTypes are the names of types that SQLite knows by others.
var sqliteTypes = strings.NewReplacer(" uuid", " TEXT", " bytea", " BLOB", " double precision", " REAL")

// steps returns the migrations of a dialect.
func (d Dialect) steps() []string {
	steps := make([]string, len(migrations))
	for i, step := range migrations {
		step = tableOptions.Replace(step)
		if d == SQLite {
			step = sqliteTypes.Replace(step)
		}
		steps[i] = form{lite: d == SQLite}.build(step, 0).text + views[i][d]
	}
	return steps
}

// Schema returns the statements that [Store.Migrate] runs on an empty database, as a script for the
// command-line client of the database. Use it to review the schema, or to migrate with other tools:
// run the whole script in one transaction. Migrate then changes nothing and, with PostgreSQL, does
// not need the privilege to create tables. Schema returns "" for an invalid dialect.
func Schema(dialect Dialect) string {
	if dialectNames[dialect] == "" {
		return ""
	}
	script := schemaTable + ";\n"
	for i, step := range dialect.steps() {
		script += step + fmt.Sprintf("\nINSERT INTO labhealth_schema (version) VALUES (%d);\n", i+1)
	}
	return script
}

// Migrate creates the tables, or updates those of an older version of this package, in one
// transaction. It changes nothing if they are current, and any number of processes may call it at
// the same time. With PostgreSQL, the tables are in the first schema of the search_path. Their
// names start with labhealth_. A table labhealth_samples that exists already, such as a partitioned
// one, is used as it is.
//
// It returns an error if the database is too old or of another dialect, if its encoding is not
// UTF8, or if the tables are of a newer version of this package. If the settings of the database
// let acknowledged deliveries be lost in a crash, it writes a warning to [Store.Logger].
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := s.checkVersion(ctx); err != nil {
		return err
	}
	return retry(ctx, "migrate", func() error {
		current, err := s.checkServer(ctx)
		if err != nil || current {
			return err
		}
		if s.name == SQLite { // its transactions need the table
			if _, err := s.db.ExecContext(ctx, schemaTable); err != nil {
				return err
			}
		}
		err = s.runTx(ctx, func(tx *sql.Tx) error { return s.migrate(ctx, tx) })
		if state := sqlState(err); state == uniqueViolation || state == duplicateTable {
			err = conflictOf{err} // with another process that creates the tables
		}
		return err
	})
}

// migrate runs the steps that were not run.
func (s *Store) migrate(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, schemaTable); err != nil {
		return err
	}
	// The lock excludes others that run later steps.
	if err := s.query(ctx, tx, func(*sql.Rows) error { return nil }, `SELECT version FROM labhealth_schema{lock}`); err != nil {
		return err
	}
	steps := s.name.steps()
	version, err := schemaVersion(ctx, tx, len(steps))
	if err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		for statement := range strings.SplitAfterSeq(steps[version], ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO labhealth_schema (version) VALUES (%d)`, version+1)); err != nil {
			return err
		}
	}
	return nil
}

// schemaVersion returns the number of steps that were run.
func schemaVersion(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, supported int) (version int, err error) {
	err = q.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM labhealth_schema`).Scan(&version)
	if err == nil && version > supported {
		err = fmt.Errorf("%w: %d, and this version of the package supports %d", errNewer, version, supported)
	}
	return version, err
}

// checkServer checks the settings and, with PostgreSQL, reports whether the tables are current. It
// writes nothing there: a standby, and a user without the privilege to create tables, may call
// Migrate too.
func (s *Store) checkServer(ctx context.Context) (current bool, err error) {
	if s.name == SQLite {
		s.checkFile(ctx)
		return false, nil
	}
	exists, encoding, weak := false, "", sql.Null[string]{}
	err = s.db.QueryRowContext(ctx, `SELECT to_regclass(quote_ident(current_schema()) || '.labhealth_schema') IS NOT NULL, current_setting('server_encoding'),
		(SELECT string_agg(name, ', ' ORDER BY name) FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) AS name WHERE current_setting(name, true) = 'off')`).
		Scan(&exists, &encoding, &weak)
	if err == nil && encoding != "UTF8" {
		err = fmt.Errorf("%w %s: UTF8 is needed", errEncoding, encoding)
	}
	if err == nil && weak.Valid {
		s.warn(weakSettings, slog.String("settings", weak.V))
	}
	if err != nil || !exists {
		return false, err
	}
	steps := len(migrations)
	version, err := schemaVersion(ctx, s.db, steps)
	return version == steps, err
}

// checkFile writes a warning if acknowledged deliveries are not durable with SQLite. An error is
// ignored: what uses the database next has it too.
func (s *Store) checkFile(ctx context.Context) {
	var file, journal string
	var synchronous int
	err := s.db.QueryRowContext(ctx, `SELECT d.file, j.journal_mode, y.synchronous
		FROM pragma_database_list AS d, pragma_journal_mode AS j, pragma_synchronous AS y WHERE d.name = 'main'`).Scan(&file, &journal, &synchronous)
	const full = 2
	switch {
	case err != nil:
	case file == "":
		s.warn("sqlstore: the SQLite database is in memory: acknowledged deliveries are lost with the process, or with its connection: use a file")
	case journal != "wal" || synchronous < full:
		s.warn("sqlstore: the SQLite database can lose acknowledged deliveries in a power failure: set journal_mode to WAL and synchronous to FULL",
			slog.String("journal_mode", journal), slog.Int("synchronous", synchronous))
	}
}

const weakSettings = "sqlstore: the database can lose acknowledged deliveries in a crash: settings of the server are off that make commits durable"

const (
	uniqueViolation = "23505"
	duplicateTable  = "42P07"
)

// conflictOf is an error of a transaction that can succeed when it is run again.
type conflictOf struct{ error }

func (conflictOf) SQLState() string { return "40001" }

func (e conflictOf) Unwrap() error { return e.error }
