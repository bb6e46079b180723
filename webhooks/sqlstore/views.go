// The views that other programs read.

package sqlstore

import "strings"

// views creates what other programs read, for each step of the migrations. The functions of the
// databases for times and JSON differ.
var views = []map[Dialect]string{{PostgreSQL: postgresViews, SQLite: sqliteViews + sqliteOrderViews}}

// postgresViews creates what other programs read. A conversion that fails gives NULL, and not an
// error that would end a query. jsonb has neither \u0000 nor halves of surrogate pairs: they become
// U+FFFD. No line but the last of a statement ends with a semicolon: see migrate.
const postgresViews = `
CREATE FUNCTION labhealth_json(document text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN document::jsonb; EXCEPTION WHEN OTHERS THEN
    BEGIN
        RETURN regexp_replace(replace(document, E'\\\\', E'\\u005c'), E'\\\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', E'\\ufffd', 'g')::jsonb; EXCEPTION WHEN OTHERS THEN
        RETURN NULL; END; END $$;

CREATE FUNCTION labhealth_number(document jsonb) RETURNS double precision LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN CASE WHEN jsonb_typeof(document) = 'number' THEN (document #>> '{}')::double precision END; EXCEPTION WHEN OTHERS THEN
    RETURN CASE WHEN abs((document #>> '{}')::numeric) < 1 THEN 0 END; END $$; -- out of range

CREATE FUNCTION labhealth_integer(document jsonb) RETURNS integer LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN CASE WHEN jsonb_typeof(document) = 'number' THEN (document #>> '{}')::integer END; EXCEPTION WHEN OTHERS THEN
    RETURN NULL; END $$;

-- A row for each sample. A condition on at is a condition on time that the index, and partitions if
-- there are some, serve.
CREATE VIEW labhealth_readings AS
SELECT r.user_id,
    replace(r.resource, E'\\\\', E'\\') AS resource, replace(r.provider, E'\\\\', E'\\') AS provider, replace(r.source_type, E'\\\\', E'\\') AS source_type,
    timestamptz 'epoch' + s.at / 1000000000 * interval '1 second' + (s.at % 1000000000 - CASE WHEN s.at < 0 THEN 999 ELSE 0 END) / 1000 * interval '1 microsecond' AS time,
    CASE WHEN s.text IS NOT NULL THEN labhealth_number(labhealth_json(s.text) -> 'value') WHEN f.has_value THEN s.value END AS value,
    CASE WHEN s.text IS NOT NULL THEN coalesce(labhealth_json(s.text) ->> 'unit', '') ELSE replace(f.unit, E'\\\\', E'\\') END AS unit,
    CASE WHEN s.text IS NOT NULL THEN coalesce(labhealth_json(s.text) ->> 'type', '') ELSE replace(f.type, E'\\\\', E'\\') END AS type,
    CASE WHEN f.seconds >= 0 THEN f.seconds ELSE s.seconds END AS seconds,
    CASE WHEN s.text IS NOT NULL THEN labhealth_integer(labhealth_json(s.text) -> 'timezone_offset') ELSE f.timezone_offset END AS timezone_offset,
    s.at, labhealth_json(s.text) AS document
FROM labhealth_samples AS s JOIN labhealth_series AS r ON r.slot = s.slot AND r.series = s.series
    LEFT JOIN labhealth_shapes AS f ON f.slot = s.slot AND f.series = s.series AND f.shape = s.shape;

-- A row for each summary.
CREATE VIEW labhealth_reports AS
SELECT r.user_id, replace(r.resource, E'\\\\', E'\\') AS resource, m.id, m.version, labhealth_json(m.text) AS document
FROM labhealth_summaries AS m JOIN labhealth_series AS r ON r.slot = m.slot AND r.series = m.series;

CREATE FUNCTION labhealth_time(nanoseconds bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT timestamptz 'epoch' + nanoseconds / 1000000000 * interval '1 second' +
        (nanoseconds % 1000000000 - CASE WHEN nanoseconds < 0 THEN 999 ELSE 0 END) / 1000 * interval '1 microsecond' $$;

-- A row for each order. Times that are unknown are NULL.
CREATE VIEW labhealth_order_states AS
SELECT o.order_id, o.user_id, replace(o.status, E'\\\\', E'\\') AS status, labhealth_time(nullif(o.since, 0)) AS since, o.results,
    o.transaction_id, o.parent_id, labhealth_json(o.text) ->> 'origin' AS origin, labhealth_json(o.text) ->> 'sample_id' AS sample_id,
    labhealth_time(nullif(o.created, 0)) AS created, labhealth_time(nullif(o.updated, 0)) AS updated,
    labhealth_time(o.changed) AS changed, labhealth_time(o.missing) AS missing, labhealth_json(o.text) AS document
FROM labhealth_orders AS o;

-- A row for each status that an order has reached.
CREATE VIEW labhealth_order_timeline AS
SELECT e.order_id, e.user_id, labhealth_time(nullif(e.at, 0)) AS at, replace(e.status, E'\\\\', E'\\') AS status, replace(e.detail, E'\\\\', E'\\') AS detail
FROM labhealth_order_events AS e;
`

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
FROM labhealth_samples AS s JOIN labhealth_series AS r ON r.slot = s.slot AND r.series = s.series
    LEFT JOIN labhealth_shapes AS f ON f.slot = s.slot AND f.series = s.series AND f.shape = s.shape;

-- A row for each summary.
CREATE VIEW labhealth_reports AS
SELECT r.user_id, replace(r.resource, '\\', '\') AS resource, m.id, m.version, m.text AS document
FROM labhealth_summaries AS m JOIN labhealth_series AS r ON r.slot = m.slot AND r.series = m.series;
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
SELECT e.order_id, e.user_id, ` + sqliteTime("e.at") + ` AS at, replace(e.status, '\\', '\') AS status, replace(e.detail, '\\', '\') AS detail
FROM labhealth_order_events AS e;
`

// sqliteTime returns a column in nanoseconds since 1970 as text, and NULL for 0.
func sqliteTime(column string) string {
	return strings.ReplaceAll(`CASE WHEN @ <> 0 THEN strftime('%Y-%m-%dT%H:%M:%S', @ / 1000000000 - (@ % 1000000000 < 0), 'unixepoch') ||
        printf('.%06dZ', (@ % 1000000000 + 1000000000) % 1000000000 / 1000) END`, "@", column)
}
