package sqlstore

// sqliteMigrations creates the tables. A step that was released never changes.
var sqliteMigrations = []string{`
-- One row for each user with data.
CREATE TABLE labhealth_users (
    user_id TEXT PRIMARY KEY
) WITHOUT ROWID;

-- Samples of one series differ in time only. key is a digest of the other columns. Summaries belong
-- to the series of their resource that has neither provider nor source type.
CREATE TABLE labhealth_series (
    id          INTEGER PRIMARY KEY,
    key         BLOB NOT NULL UNIQUE,
    user_id     TEXT NOT NULL,
    resource    TEXT NOT NULL,
    provider    TEXT NOT NULL,
    source_type TEXT NOT NULL
);
CREATE INDEX labhealth_series_user ON labhealth_series (user_id);

-- What many samples have in common. key is a digest of the other columns. seconds is the length of
-- an interval that starts at the timestamp, NULL without an interval, and -1 if each sample has its
-- own. east is the offset of the received timestamp, in seconds.
CREATE TABLE labhealth_shapes (
    id              INTEGER PRIMARY KEY,
    key             BLOB NOT NULL UNIQUE,
    seconds         INTEGER,
    has_value       INTEGER NOT NULL,
    timezone_offset INTEGER,
    east            INTEGER NOT NULL,
    type            TEXT NOT NULL,
    unit            TEXT NOT NULL
);

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

-- Digests of the IDs of deliveries that were stored or processed, and when.
CREATE TABLE labhealth_deliveries (
    id BLOB PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX labhealth_deliveries_at ON labhealth_deliveries (at);

-- Deliveries that wait for a worker. due is when one that failed may be attempted again.
CREATE TABLE labhealth_inbox (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    delivery_id TEXT,
    received_at INTEGER NOT NULL,
    user_id     TEXT,
    attempts    INTEGER NOT NULL DEFAULT 0,
    due         INTEGER NOT NULL DEFAULT 0,
    body        BLOB NOT NULL
);

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
`}
