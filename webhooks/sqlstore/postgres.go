package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// postgres runs the statements of PostgreSQL. It passes lists as arrays, so that a statement costs
// one round trip for any number of rows.
type postgres struct {
	db       *sql.DB
	planMode atomic.Pointer[string] // see planByIndex
}

func openPostgres(db *sql.DB) dialect { return &postgres{db: db} }

func (*postgres) bind(statement string) string {
	var bound strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(statement, "?")
		bound.WriteString(before)
		if !found {
			return bound.String()
		}
		bound.WriteString("$" + strconv.Itoa(n))
		statement = after
	}
}

func (*postgres) skipLocked() string { return ` FOR UPDATE SKIP LOCKED` }

// Transactions

func (d *postgres) transact(ctx context.Context, f func(*sql.Tx) error) error {
	// Each statement sees the transactions committed before it, even after it has waited for a
	// lock.
	return inTx(ctx, d.db, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func (d *postgres) beginRead(ctx context.Context) (*sql.Tx, error) {
	return d.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

func (*postgres) confirm(context.Context) error { return nil } // what is visible was committed

// migrate tries a read-only transaction first, because a standby rejects others. There is nothing
// to write if the tables are current.
func (d *postgres) migrate(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := d.beginRead(ctx)
	if err != nil {
		return err
	}
	err = d.migrateIn(ctx, tx, f)
	if rollback := tx.Rollback(); err == nil {
		err = rollback
	}
	if sqlState(err) != readOnly {
		return err
	}
	return d.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('labhealth_schema ' || coalesce(current_schema(), '')))`)
		if err != nil {
			return err
		}
		return d.migrateIn(ctx, tx, f)
	})
}

func (*postgres) migrateIn(ctx context.Context, tx *sql.Tx, f func(*sql.Tx) error) error {
	// IF NOT EXISTS needs the privilege to create tables even if there is nothing to create.
	exists, encoding := false, ""
	err := tx.QueryRowContext(ctx, `SELECT to_regclass(quote_ident(current_schema()) || '.labhealth_schema') IS NOT NULL,
		current_setting('server_encoding')`).Scan(&exists, &encoding)
	if err == nil && encoding != "UTF8" {
		err = fmt.Errorf("%w %s: UTF8 is needed", errEncoding, encoding)
	}
	if err == nil && !exists {
		_, err = tx.ExecContext(ctx, schemaTable)
	}
	if err != nil {
		return err
	}
	return f(tx)
}

const resetPlans = `set_config('plan_cache_mode', NULL, true), set_config('enable_seqscan', NULL, true)`

// planByIndex returns what a SELECT calls so that PostgreSQL plans each statement of the package
// once for a connection, and by the index. Otherwise it plans them each time, which is a third of
// the total cost, or keeps a plan that was created for small tables and scans them. Statements of a
// driver that does not prepare them are planned each time anyway: then for their values, so that
// the number of partitions does not matter. resetPlans undoes that. Both end with the transaction.
func (d *postgres) planByIndex(ctx context.Context, tx *sql.Tx) (string, error) {
	mode := d.planMode.Load()
	if mode == nil {
		// The driver is the same for all connections, and asking in each transaction would cost a
		// twentieth of it. A driver that prepares statements has prepared this one.
		mode = new(string)
		err := tx.QueryRowContext(ctx, `SELECT CASE WHEN EXISTS (SELECT FROM pg_prepared_statements)
			THEN 'force_generic_plan' ELSE 'force_custom_plan' END`).Scan(mode)
		if err != nil {
			return "", err
		}
		d.planMode.Store(mode)
	}
	return `set_config('plan_cache_mode', '` + *mode + `', true), set_config('enable_seqscan', 'off', true)`, nil
}

func (d *postgres) preferIndexes(ctx context.Context, tx *sql.Tx) error {
	plans, err := d.planByIndex(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `SELECT `+plans)
	return err
}

func (*postgres) defaultPlans(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT `+resetPlans)
	return err
}

// beginStep keeps a lower limit of the connection.
func (d *postgres) beginStep(ctx context.Context, tx *sql.Tx, limit time.Duration) error {
	plans, err := d.planByIndex(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `SELECT `+plans+`, set_config('lock_timeout', CASE WHEN current_setting('lock_timeout') = '0'
		OR current_setting('lock_timeout')::interval > $1::text::interval THEN $1::text ELSE current_setting('lock_timeout') END, true)`,
		strconv.FormatInt(max(1, limit.Milliseconds()), 10)+"ms")
	return err
}

// Samples and summaries

func (d *postgres) lockUsers(ctx context.Context, tx *sql.Tx, users []string) error {
	plans, err := d.planByIndex(ctx, tx)
	if err != nil {
		return err
	}
	var ids array
	for _, u := range users {
		ids.text(u)
	}
	// An existing row is locked although it is not updated.
	_, err = tx.ExecContext(ctx, `
		INSERT INTO labhealth_users (user_id) SELECT u FROM unnest($1::uuid[]) AS u, (SELECT `+plans+`) AS plans ORDER BY u
		ON CONFLICT (user_id) DO UPDATE SET user_id = excluded.user_id WHERE false`, ids.String())
	return err
}

// hasShapes compares the rows. After a failover to a standby that was behind, an ID may belong to
// no shape or to another one, and a sample would get the unit of that one.
func (*postgres) hasShapes(ctx context.Context, tx *sql.Tx, shapes map[shape]int64) (bool, error) {
	var ids, keys array
	want, got := 0, 0
	for sh, id := range shapes {
		if id != 0 {
			want++
			ids.int(id)
			keys.bytes(sh.key())
		}
	}
	if want == 0 {
		return true, nil
	}
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM unnest($1::bigint[], $2::bytea[]) AS k (id, key)
		JOIN labhealth_shapes AS s ON s.id = k.id AND s.key = k.key`, ids.String(), keys.String()).Scan(&got)
	return got == want, err
}

// lockShapes locks all shapes for the rest of the transaction: no shape is deleted while
// transactions share them.
func (*postgres) lockShapes(ctx context.Context, tx *sql.Tx, shared bool) error {
	mode := ""
	if shared {
		mode = "_shared"
	}
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock`+mode+`(hashtext('labhealth_shapes ' || coalesce(current_schema(), '')))`)
	return err
}

func (*postgres) addShapes(ctx context.Context, tx *sql.Tx, pairs []seriesShape) error {
	var series, shapes array
	for _, p := range pairs {
		series.int(p.seriesID)
		shapes.int(p.shapeID)
	}
	_, err := tx.ExecContext(ctx, `WITH p AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS p (series_id, shape_id)),
		new AS (INSERT INTO labhealth_shape_series (shape_id, series_id) SELECT shape_id, series_id FROM p ON CONFLICT DO NOTHING)
		UPDATE labhealth_series AS r SET shapes = r.shapes || n.shapes
		FROM (SELECT series_id, array_agg(shape_id) AS shapes FROM p GROUP BY series_id) AS n WHERE r.id = n.series_id`,
		series.String(), shapes.String())
	return err
}

// withSeries is the start of a statement: the table r has the IDs of the series whose keys are in
// an array, numbered from 1. LIMIT makes every key a lookup in the index. Otherwise the planner,
// which has no statistics of new tables, would scan them completely.
func withSeries(keys string) string {
	return `WITH r AS MATERIALIZED (SELECT k.n, r.id, r.shapes FROM unnest(` + keys + `::bytea[]) WITH ORDINALITY AS k (key, n)
		CROSS JOIN LATERAL (SELECT id, shapes FROM labhealth_series WHERE key = k.key LIMIT 1) AS r)`
}

// unnestSamples has the columns of sampleArrays as rows.
const unnestSamples = `unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::double precision[], $5::bigint[], $6::integer[], $7::text[])`

// insertNew writes the new samples of existing series, in shapes that the series have. It looks for
// stored ones first, because ON CONFLICT writes a second record to the WAL for each row. No other
// transaction can store them in the meantime: their users are locked.
func (*postgres) insertNew(ctx context.Context, tx *sql.Tx, b *batch) (bool, error) {
	var keys array
	numbers := make([]int64, len(b.series))
	for i, of := range b.series {
		keys.bytes(seriesKey(of))
		numbers[i] = int64(i + 1)
	}
	all := make([]int32, len(b.sampleSlots)) // in any order: the IDs are not known yet
	for i := range all {
		all[i] = int32(i)
	}
	first, last := b.span()
	result, err := tx.ExecContext(ctx, withSeries("$8")+`
		INSERT INTO labhealth_samples (series_id, at, version, value, shape_id, seconds, text)
		SELECT r.id, i.at, i.version, i.value, i.shape_id, i.seconds, i.text
		FROM `+unnestSamples+` AS i (n, at, version, value, shape_id, seconds, text)
		JOIN r ON r.n = i.n AND (i.shape_id = 0 OR i.shape_id = ANY (r.shapes))
		WHERE (SELECT true FROM labhealth_samples WHERE series_id = r.id AND at = i.at AND at BETWEEN $9 AND $10 LIMIT 1) IS NULL
		ORDER BY r.id, i.at`, append(b.sampleArrays(all, numbers), keys.String(), first, last)...)
	if sqlState(err) == uniqueViolation { // by a program that does not lock users
		return false, foreignWrite{err}
	}
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == int64(len(all)), err
}

const uniqueViolation = "23505"

// foreignWrite is the error of a transaction in which another program has stored a sample after
// this one looked for it. It is a conflict: the next attempt finds the sample.
type foreignWrite struct{ error }

func (foreignWrite) SQLState() string { return "40001" }

func (e foreignWrite) Unwrap() error { return e.error }

// span returns the first and the last time of the samples.
func (b *batch) span() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for i := range b.sampleSlots {
		first, last = min(first, b.sampleSlots[i].at), max(last, b.sampleSlots[i].at)
	}
	return first, last
}

func (d *postgres) read(ctx context.Context, tx *sql.Tx, b *batch) error {
	if err := d.readSamples(ctx, tx, b); err != nil {
		return err
	}
	if err := d.addSeries(ctx, tx, b); err != nil {
		return err
	}
	return d.readSummaries(ctx, tx, b)
}

// readSamples reads the IDs of the series and the stored samples with one statement. What insertNew
// has written in this transaction was not stored before.
func (*postgres) readSamples(ctx context.Context, tx *sql.Tx, b *batch) error {
	var keys, of, at array
	for _, s := range b.series {
		keys.bytes(seriesKey(s))
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range b.sampleSlots {
		slot := &b.sampleSlots[i]
		of.int(int64(slot.series + 1))
		at.int(slot.at)
		first, last = min(first, slot.at), max(last, slot.at)
	}
	return query(ctx, tx, func(rows *sql.Rows) error {
		var slot, number int32
		var id int64
		var inserted bool
		var row sampleRow
		if err := rows.Scan(append([]any{&slot, &number, &id, &inserted}, row.scan()...)...); err != nil {
			return err
		}
		switch {
		case slot == 0:
			b.seriesIDs[number-1], b.seriesShapes[number-1] = id, row.document.String
		case inserted:
			b.sampleSlots[slot-1].inserted = true
		default:
			b.sampleSlots[slot-1].store(&row)
		}
		return nil
	}, withSeries("$1")+`
		SELECT 0, r.n, r.id, false, 0, 0, 0, 0, NULL, r.shapes::text FROM r
		UNION ALL
		SELECT i.slot, 0, 0, s.writer = txid_current() % 4294967296, `+sampleColumns+`
		FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS i (n, at, slot) JOIN r ON r.n = i.n
		CROSS JOIN LATERAL (SELECT *, xmin::text::bigint AS writer FROM labhealth_samples
			WHERE series_id = r.id AND at = i.at AND at BETWEEN $4 AND $5 LIMIT 1) AS s`,
		keys.String(), of.String(), at.String(), first, last)
}

// addSeries creates the series that have no ID. No other transaction can: their users are locked.
func (*postgres) addSeries(ctx context.Context, tx *sql.Tx, b *batch) error {
	indexes := map[string]int{}
	var keys, users, resources, providers, types array
	for i, of := range b.series {
		if b.seriesIDs[i] == 0 {
			key := seriesKey(of)
			indexes[string(key)] = i
			keys.bytes(key)
			users.text(of.UserID.String())
			resources.text(escape(of.Resource))
			providers.text(escape(of.Provider))
			types.text(escape(of.SourceType))
		}
	}
	if len(indexes) == 0 {
		return nil
	}
	return query(ctx, tx, func(rows *sql.Rows) error {
		var key []byte
		var id int64
		if err := rows.Scan(&key, &id); err != nil {
			return err
		}
		b.seriesIDs[indexes[string(key)]] = id
		return nil
	}, `INSERT INTO labhealth_series (key, user_id, resource, provider, source_type)
		SELECT * FROM unnest($1::bytea[], $2::uuid[], $3::text[], $4::text[], $5::text[])
		RETURNING key, id`, keys.String(), users.String(), resources.String(), providers.String(), types.String())
}

func (*postgres) readSummaries(ctx context.Context, tx *sql.Tx, b *batch) error {
	if len(b.summarySlots) == 0 {
		return nil
	}
	var of, ids array
	for i := range b.summarySlots {
		of.int(b.seriesIDs[b.summarySlots[i].series])
		ids.text(b.summarySlots[i].id.String())
	}
	return query(ctx, tx, func(rows *sql.Rows) error {
		var n int
		var version int64
		var document string
		if err := rows.Scan(&n, &version, &document); err != nil {
			return err
		}
		slot := &b.summarySlots[n-1]
		slot.found, slot.version, slot.content = true, version, document
		return nil
	}, `SELECT i.n, s.version, s.text FROM unnest($1::bigint[], $2::uuid[]) WITH ORDINALITY AS i (series_id, id, n)
		CROSS JOIN LATERAL (SELECT * FROM labhealth_summaries WHERE series_id = i.series_id AND id = i.id LIMIT 1) AS s`,
		of.String(), ids.String())
}

func (d *postgres) write(ctx context.Context, tx *sql.Tx, b *batch) error {
	if changed := b.changed(); len(changed) > 0 {
		_, err := tx.ExecContext(ctx, insertSamples+`SELECT * FROM `+unnestSamples+updateSamples, b.sampleArrays(changed, b.seriesIDs)...)
		if err != nil {
			return err
		}
	}
	return d.writeSummaries(ctx, tx, b)
}

// sampleArrays returns slots as columns. seriesIDs are those of batch.series.
func (b *batch) sampleArrays(slots []int32, seriesIDs []int64) []any {
	var of, at, versions, values, shapes, seconds, documents array
	someSeconds, someDocuments := false, false
	for _, i := range slots {
		someSeconds = someSeconds || b.sampleSlots[i].content.shape.seconds == perSample
		someDocuments = someDocuments || b.sampleSlots[i].content.document != ""
	}
	for _, i := range slots {
		slot := &b.sampleSlots[i]
		of.int(seriesIDs[slot.series])
		at.int(slot.at)
		versions.int(slot.version)
		values.float(slot.content.value)
		shapes.int(b.shapeID(&slot.content))
		switch { // unnest fills an array that is shorter than the others with NULL
		case slot.content.shape.seconds == perSample:
			seconds.int(int64(slot.content.seconds))
		case someSeconds:
			seconds.null()
		}
		switch {
		case slot.content.document != "":
			documents.text(slot.content.document)
		case someDocuments:
			documents.null()
		}
	}
	return []any{of.String(), at.String(), versions.String(), values.String(), shapes.String(), seconds.String(), documents.String()}
}

func (*postgres) writeSummaries(ctx context.Context, tx *sql.Tx, b *batch) error {
	var of, ids, versions, documents array
	for i := range b.summarySlots {
		slot := &b.summarySlots[i]
		if slot.dirty {
			of.int(b.seriesIDs[slot.series])
			ids.text(slot.id.String())
			versions.int(slot.version)
			documents.text(slot.content)
		}
	}
	if len(of) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, insertSummaries+`SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[])`+updateSummaries,
		of.String(), ids.String(), versions.String(), documents.String())
	return err
}

// Inbox

// receive writes a delivery with one statement, which is a transaction.
func (d *postgres) receive(ctx context.Context, r *receipt) error {
	// The default isolation level of the database may be stricter than READ COMMITTED, so that one
	// of two statements with the same ID fails.
	return retry(ctx, "receive", func() error {
		if r.id == nil {
			return d.exec(ctx, insertInbox+`VALUES ($1, $2, $3, $4)`, r.row...)
		}
		return d.exec(ctx, `WITH new AS (INSERT INTO labhealth_deliveries AS d (id, at) VALUES ($5, $6)
			ON CONFLICT (id) DO UPDATE SET at = excluded.at WHERE d.at < $7 RETURNING 1) `+
			insertInbox+`SELECT $1::text, $2::bigint, $3::uuid, $4::bytea FROM new`, append(r.row, r.id...)...)
	})
}

func (d *postgres) exec(ctx context.Context, statement string, args ...any) error {
	return onConn(ctx, d.db, func(conn *sql.Conn) (begun bool, err error) {
		_, err = conn.ExecContext(ctx, statement, args...)
		return false, err
	})
}

// change uses the index with any plan. It has no list of the times of delayed rows: the database
// would look for each of them with each number.
func (d *postgres) change(ctx context.Context, tx *sql.Tx, rows []inboxRow, statement string, args ...any) error {
	var numbers array
	for i := range rows {
		numbers.int(rows[i].number)
	}
	if first, last := rows[0].due, rows[len(rows)-1].due; last == 0 {
		statement += ` WHERE due = 0 AND number = ANY(?::bigint[])`
	} else {
		statement, args = statement+` WHERE due BETWEEN ? AND ? AND number + 0 = ANY(?::bigint[])`, append(args, first, last)
	}
	_, err := tx.ExecContext(ctx, d.bind(statement), append(args, numbers.String())...)
	return err
}

// array is the literal of a PostgreSQL array, the only form that every driver accepts.
type array []byte

func (a *array) next() {
	if len(*a) == 0 {
		*a = append(*a, '{')
		return
	}
	*a = append(*a, ',')
}

func (a *array) null() {
	a.next()
	*a = append(*a, "NULL"...)
}

func (a *array) int(n int64) {
	a.next()
	*a = strconv.AppendInt(*a, n, 10)
}

func (a *array) float(f float64) {
	a.next()
	*a = strconv.AppendFloat(*a, f, 'g', -1, 64)
}

func (a *array) bytes(b []byte) {
	a.next()
	*a = append(*a, `"\\x`...)
	*a = hex.AppendEncode(*a, b)
	*a = append(*a, '"')
}

func (a *array) text(s string) {
	a.next()
	*a = append(*a, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			*a = append(*a, '\\')
		}
		*a = append(*a, s[i])
	}
	*a = append(*a, '"')
}

// String returns the whole array.
func (a array) String() string {
	if len(a) == 0 {
		return "{}"
	}
	return string(a) + "}"
}
