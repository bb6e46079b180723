package sqlstore

import "strings"

// sqliteMigrations creates the tables. A step that was released never changes.
var sqliteMigrations = []string{`
-- One row for each user with data.
CREATE TABLE labhealth_users (
    user_id TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Samples of one series differ in time only. key is a digest of the other columns. Summaries belong
-- to the series of their resource that has neither provider nor source type. shapes are the IDs of
-- all shapes that samples of the series may have, as in {1,2}.
CREATE TABLE labhealth_series (
    id          INTEGER PRIMARY KEY,
    key         BLOB NOT NULL UNIQUE,
    user_id     TEXT NOT NULL,
    resource    TEXT NOT NULL,
    provider    TEXT NOT NULL,
    source_type TEXT NOT NULL,
    shapes      TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX labhealth_series_user ON labhealth_series (user_id);

-- What many samples have in common. key is a digest of the other columns. seconds is the length of
-- an interval that starts at the timestamp, NULL without an interval, and -1 if each sample has its
-- own. east is the offset of the received timestamp, in seconds.
CREATE TABLE labhealth_shapes (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    key             BLOB NOT NULL UNIQUE,
    seconds         INTEGER,
    has_value       INTEGER NOT NULL,
    timezone_offset INTEGER,
    east            INTEGER NOT NULL,
    type            TEXT NOT NULL,
    unit            TEXT NOT NULL
);

-- The shapes of the series once more, to find a shape that no series has.
CREATE TABLE labhealth_shape_series (
    shape_id  INTEGER NOT NULL,
    series_id INTEGER NOT NULL,
    PRIMARY KEY (shape_id, series_id)
) WITHOUT ROWID;

-- The latest version of every sample. at is its time in nanoseconds since 1970, and version the time
-- at which it was received. seconds is the length of an interval if the shape does not have it. A
-- sample that does not fit these columns has its JSON in text, and shape 0.
CREATE TABLE labhealth_samples (
    series_id INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    value     REAL NOT NULL,
    shape_id  INTEGER NOT NULL,
    seconds   INTEGER,
    text      TEXT,
    PRIMARY KEY (series_id, at)
) WITHOUT ROWID;

-- The latest version of every summary, as JSON.
CREATE TABLE labhealth_summaries (
    series_id INTEGER NOT NULL,
    id        TEXT NOT NULL,
    version   INTEGER NOT NULL,
    text      TEXT NOT NULL,
    PRIMARY KEY (series_id, id)
);

-- IDs of deliveries that were stored or processed, and when: the start of an ID and a digest.
CREATE TABLE labhealth_deliveries (
    id BLOB PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX labhealth_deliveries_at ON labhealth_deliveries (at);

-- Deliveries that wait for a worker. due is when one that failed may be attempted again, and 0 if it
-- has not failed. It is between 1 and 4503599627370496 if a batch with the delivery exceeded a time limit:
-- it is to be tried alone, in the order of due.
CREATE TABLE labhealth_inbox (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    delivery_id TEXT,
    received_at INTEGER NOT NULL,
    user_id     TEXT,
    attempts    INTEGER NOT NULL DEFAULT 0,
    due         INTEGER NOT NULL DEFAULT 0,
    body        BLOB NOT NULL
);
CREATE INDEX labhealth_inbox_due ON labhealth_inbox (due, number);

-- Deliveries that cannot be processed. reason is a fixed phrase.
CREATE TABLE labhealth_dead_letters (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    delivery_id TEXT UNIQUE,
    received_at INTEGER NOT NULL,
    user_id     TEXT,
    attempts    INTEGER NOT NULL,
    failed_at   INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    body        BLOB NOT NULL
);

-- The latest state of every order. updated is the time of the version by the service's clock, and
-- version the time at which it was received: the greater pair wins. status is the current one, and
-- since when it was reached. results is none, partial, final or corrected. changed is when the row
-- was last written, and missing when the service was found not to have the order. check_at is when
-- to read the order again, and results_at when to read its results.
CREATE TABLE labhealth_orders (
    order_id       TEXT PRIMARY KEY,
    user_id        TEXT NOT NULL,
    updated        INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    created        INTEGER NOT NULL,
    status         TEXT NOT NULL,
    since          INTEGER NOT NULL,
    results        TEXT NOT NULL,
    transaction_id TEXT,
    parent_id      TEXT,
    changed        INTEGER NOT NULL,
    missing        INTEGER,
    check_at       INTEGER,
    results_at     INTEGER,
    text           TEXT NOT NULL
);
CREATE INDEX labhealth_orders_user ON labhealth_orders (user_id, order_id);
CREATE INDEX labhealth_orders_status ON labhealth_orders (status, order_id);
CREATE INDEX labhealth_orders_changed ON labhealth_orders (changed, order_id);
CREATE INDEX labhealth_orders_created ON labhealth_orders (created, order_id);
CREATE INDEX labhealth_orders_transaction ON labhealth_orders (transaction_id) WHERE transaction_id IS NOT NULL;
CREATE INDEX labhealth_orders_check ON labhealth_orders (check_at) WHERE check_at IS NOT NULL;
CREATE INDEX labhealth_orders_results ON labhealth_orders (results_at) WHERE results_at IS NOT NULL;

-- Every status that an order has reached, once. id is the ID of the service's event or, if it has
-- none, its status and time.
CREATE TABLE labhealth_order_events (
    order_id TEXT NOT NULL,
    id       TEXT NOT NULL,
    at       INTEGER NOT NULL,
    status   TEXT NOT NULL,
    detail   TEXT NOT NULL,
    PRIMARY KEY (order_id, id)
);

-- The latest results of an order, as JSON. revision counts their versions, and status is that of
-- their metadata. The order need not be stored.
CREATE TABLE labhealth_order_results (
    order_id TEXT PRIMARY KEY,
    user_id  TEXT NOT NULL,
    version  INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    status   TEXT NOT NULL,
    text     TEXT NOT NULL
);
CREATE INDEX labhealth_order_results_user ON labhealth_order_results (user_id);

-- Reactions that wait. due is 0 for a new one, and otherwise when one may be attempted: while one is
-- attempted, and after it has failed, it is in the future, also for the others of the same order.
-- One that has failed for good has the greatest due, and failed_at and reason. at orders those of
-- one order, and queued is when one was queued.
CREATE TABLE labhealth_reactions (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    id        TEXT NOT NULL,
    kind      TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    order_id  TEXT,
    at        INTEGER NOT NULL,
    queued    INTEGER NOT NULL,
    due       INTEGER NOT NULL DEFAULT 0,
    attempts  INTEGER NOT NULL DEFAULT 0,
    failed_at INTEGER,
    reason    TEXT,
    body      TEXT NOT NULL
);
CREATE INDEX labhealth_reactions_due ON labhealth_reactions (due, number);
CREATE INDEX labhealth_reactions_user ON labhealth_reactions (user_id, order_id);

-- Users that were compared with the service: when, since when the service does not have them, and
-- when DeleteUser has deleted them.
CREATE TABLE labhealth_reconciled_users (
    user_id TEXT PRIMARY KEY,
    at      INTEGER NOT NULL,
    missing INTEGER,
    deleted INTEGER
);

-- Where the comparison with the service goes on.
CREATE TABLE labhealth_reconciled (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
` + sqliteViews + sqliteOrderViews}

// sqliteViews creates what other programs read. JSON that SQLite cannot read gives NULL, and not an
// error that would end a query.
const sqliteViews = `
-- A row for each sample. A condition on at is a condition on time that the index serves.
CREATE VIEW labhealth_readings AS
SELECT r.user_id,
    replace(r.resource, '\\', '\') AS resource, replace(r.provider, '\\', '\') AS provider, replace(r.source_type, '\\', '\') AS source_type,
    strftime('%Y-%m-%dT%H:%M:%S', s.at / 1000000000 - (s.at % 1000000000 < 0), 'unixepoch') ||
        printf('.%06dZ', (s.at % 1000000000 + 1000000000) % 1000000000 / 1000) AS time,
    CASE WHEN s.text IS NULL THEN CASE WHEN f.has_value THEN s.value END
        WHEN NOT json_valid(s.text) THEN NULL
        WHEN json_type(s.text, '$.value') IN ('integer', 'real')
        THEN CASE WHEN abs(CAST(json_extract(s.text, '$.value') AS REAL)) < 9e999 THEN CAST(json_extract(s.text, '$.value') AS REAL) END END AS value,
    CASE WHEN s.text IS NULL THEN replace(f.unit, '\\', '\') WHEN json_valid(s.text) THEN coalesce(json_extract(s.text, '$.unit'), '') ELSE '' END AS unit,
    CASE WHEN s.text IS NULL THEN replace(f.type, '\\', '\') WHEN json_valid(s.text) THEN coalesce(json_extract(s.text, '$.type'), '') ELSE '' END AS type,
    CASE WHEN f.seconds >= 0 THEN f.seconds ELSE s.seconds END AS seconds,
    CASE WHEN s.text IS NULL THEN f.timezone_offset
        WHEN NOT json_valid(s.text) THEN NULL
        WHEN json_type(s.text, '$.timezone_offset') = 'integer' AND json_extract(s.text, '$.timezone_offset') BETWEEN -2147483648 AND 2147483647
        THEN json_extract(s.text, '$.timezone_offset') END AS timezone_offset,
    s.at, s.text AS document
FROM labhealth_samples AS s JOIN labhealth_series AS r ON r.id = s.series_id LEFT JOIN labhealth_shapes AS f ON f.id = s.shape_id;

-- A row for each summary.
CREATE VIEW labhealth_reports AS
SELECT r.user_id, replace(r.resource, '\\', '\') AS resource, m.id, m.version, m.text AS document
FROM labhealth_summaries AS m JOIN labhealth_series AS r ON r.id = m.series_id;
`

// sqliteOrderViews creates what other programs read of orders.
var sqliteOrderViews = `
-- A row for each order. Times that are unknown are NULL.
CREATE VIEW labhealth_order_states AS
SELECT o.order_id, o.user_id, replace(o.status, '\\', '\') AS status, ` + sqliteTime("o.since") + ` AS since, o.results,
    o.transaction_id, o.parent_id,
    CASE WHEN json_valid(o.text) THEN json_extract(o.text, '$.origin') END AS origin,
    CASE WHEN json_valid(o.text) THEN json_extract(o.text, '$.sample_id') END AS sample_id,
    ` + sqliteTime("o.created") + ` AS created, ` + sqliteTime("o.updated") + ` AS updated,
    ` + sqliteTime("o.changed") + ` AS changed, ` + sqliteTime("o.missing") + ` AS missing, o.text AS document
FROM labhealth_orders AS o;

-- A row for each status that an order has reached.
CREATE VIEW labhealth_order_timeline AS
SELECT e.order_id, o.user_id, ` + sqliteTime("e.at") + ` AS at, replace(e.status, '\\', '\') AS status, replace(e.detail, '\\', '\') AS detail
FROM labhealth_order_events AS e JOIN labhealth_orders AS o ON o.order_id = e.order_id;
`

// sqliteTime returns a column in nanoseconds since 1970 as text, and NULL for 0.
func sqliteTime(column string) string {
	return strings.ReplaceAll(`CASE WHEN @ <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', @ / 1000000000 - (@ % 1000000000 < 0), 'unixepoch') ||
        printf('.%06dZ', (@ % 1000000000 + 1000000000) % 1000000000 / 1000) END`, "@", column)
}
