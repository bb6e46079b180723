package inspect

import (
	"context"
	"database/sql"
	"fmt"
)

// schemaVersion is the user_version of the file.
const schemaVersion = 1

// schema creates the tables of the inspector. Headers and bodies have a table of their own, so that
// lists do not read them. rev counts the changes of all rows: a row that changes gets the next.
const schema = `
CREATE TABLE deliveries (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    rev            INTEGER NOT NULL,
    id             TEXT NOT NULL,
    received_at    INTEGER NOT NULL,
    attempt        INTEGER NOT NULL,
    size           INTEGER NOT NULL,
    type           TEXT NOT NULL,
    user_id        TEXT NOT NULL,
    client_user_id TEXT NOT NULL,
    order_id       TEXT NOT NULL,
    about          TEXT NOT NULL,
    subject        TEXT NOT NULL,
    verdict        TEXT NOT NULL,
    reason         TEXT NOT NULL,
    checks         TEXT NOT NULL,
    malformed      INTEGER NOT NULL,
    unknown        INTEGER NOT NULL,
    duplicate_of   INTEGER NOT NULL,
    replay_of      INTEGER NOT NULL,
    state          INTEGER NOT NULL, -- see the constants
    added          INTEGER NOT NULL DEFAULT 0,
    updated        INTEGER NOT NULL DEFAULT 0,
    same           INTEGER NOT NULL DEFAULT 0,
    older          INTEGER NOT NULL DEFAULT 0,
    repeated       INTEGER NOT NULL DEFAULT 0,
    keyless        INTEGER NOT NULL DEFAULT 0,
    transitions    INTEGER NOT NULL DEFAULT 0,
    changed        INTEGER NOT NULL DEFAULT 0, -- whether it changed the store
    failed         INTEGER NOT NULL DEFAULT 0, -- whether the application or the store failed
    forward        TEXT NOT NULL DEFAULT '',   -- JSON
    status_code    INTEGER NOT NULL,
    took           INTEGER NOT NULL
);
CREATE INDEX deliveries_rev ON deliveries (rev);
CREATE INDEX deliveries_received ON deliveries (received_at, verdict);
CREATE INDEX deliveries_id ON deliveries (id, number) WHERE id <> '' AND verdict <> 'rejected';
CREATE INDEX deliveries_user ON deliveries (user_id, number) WHERE user_id <> '';
CREATE INDEX deliveries_order ON deliveries (order_id, number) WHERE order_id <> '';
CREATE INDEX deliveries_subject ON deliveries (subject, number) WHERE subject <> '' AND verdict <> 'rejected';
CREATE INDEX deliveries_rejected ON deliveries (number, size) WHERE verdict = 'rejected';
CREATE INDEX deliveries_unsigned ON deliveries (number) WHERE verdict = 'unsigned';
CREATE INDEX deliveries_duplicate ON deliveries (number) WHERE duplicate_of > 0;
CREATE INDEX deliveries_replay ON deliveries (number) WHERE replay_of > 0;
CREATE INDEX deliveries_changed ON deliveries (number) WHERE changed = 1;
CREATE INDEX deliveries_failed ON deliveries (number) WHERE failed = 1;
CREATE INDEX deliveries_waiting ON deliveries (number) WHERE state = 1;
CREATE INDEX deliveries_malformed ON deliveries (number) WHERE malformed > 0;
CREATE INDEX deliveries_unknown ON deliveries (number) WHERE unknown > 0;
CREATE INDEX deliveries_unreadable ON deliveries (number) WHERE state = 3;

CREATE TABLE delivery_bodies (
    number INTEGER PRIMARY KEY,
    header TEXT NOT NULL, -- JSON
    body   BLOB           -- NULL if it was not kept
);

-- The statuses of orders that deliveries have shown, to count new ones.
CREATE TABLE delivery_transitions (
    order_id TEXT NOT NULL,
    entry    TEXT NOT NULL,
    PRIMARY KEY (order_id, entry)
) WITHOUT ROWID;

-- One row: the number of the last change, and how many deliveries are stored.
CREATE TABLE delivery_state (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    rev     INTEGER NOT NULL,
    total   INTEGER NOT NULL,
    forward TEXT NOT NULL -- the last URL of the application
);
INSERT INTO delivery_state VALUES (1, 0, 0, '');

CREATE TRIGGER deliveries_inserted AFTER INSERT ON deliveries BEGIN UPDATE delivery_state SET total = total + 1; END;
CREATE TRIGGER deliveries_deleted AFTER DELETE ON deliveries BEGIN UPDATE delivery_state SET total = total - 1; END;

-- What can be searched. secure-delete removes the words of deleted rows at once.
CREATE VIRTUAL TABLE delivery_search USING fts5 (type, user, orders, id, words, content = '', prefix = '2 3 4', tokenize = 'unicode61');
INSERT INTO delivery_search (delivery_search, rank) VALUES ('secure-delete', 1);
`

// States of a delivery in the store.
const (
	notForStore = 0 // rejected, duplicate
	waiting     = 1
	stored      = 2
	unreadable  = 3 // not, or not completely, readable
)

// createTables creates the tables, if the file has none.
func (i *Inspector) createTables(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	version := 0
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	switch version {
	case 0:
		if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf(`PRAGMA user_version = %d`, schemaVersion)); err != nil {
			return err
		}
	case schemaVersion:
	default:
		return fmt.Errorf("the file is of another version of this program (%d): use another file", version)
	}
	return tx.Commit()
}
