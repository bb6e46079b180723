package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"strconv"
	"strings"
)

// postgres runs the statements of PostgreSQL. It passes lists as arrays, so that a statement costs
// one round trip for any number of rows.
type postgres struct{ db *sql.DB }

func openPostgres(db *sql.DB) dialect { return &postgres{db} }

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
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (*postgres) confirm(context.Context) error { return nil } // what is visible was committed

func (d *postgres) migrate(ctx context.Context, f func(*sql.Tx) error) error {
	return d.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('labhealth_schema ' || coalesce(current_schema(), '')))`)
		if err != nil {
			return err
		}
		// IF NOT EXISTS needs the privilege to create tables even if there is nothing to create.
		exists := false
		err = tx.QueryRowContext(ctx, `SELECT to_regclass(quote_ident(current_schema()) || '.labhealth_schema') IS NOT NULL`).Scan(&exists)
		if err == nil && !exists {
			_, err = tx.ExecContext(ctx, schemaTable)
		}
		if err != nil {
			return err
		}
		return f(tx)
	})
}

// planByIndex makes PostgreSQL plan each statement of the package once for a connection, and by the
// index. Otherwise it plans them each time, which is a third of the total cost, or keeps a plan
// that was created for small tables and scans them. resetPlans undoes that. Both end with the
// transaction.
const (
	planByIndex = `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`
	resetPlans  = `set_config('plan_cache_mode', NULL, true), set_config('enable_seqscan', NULL, true)`
)

func (*postgres) preferIndexes(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT `+planByIndex)
	return err
}

func (*postgres) defaultPlans(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT `+resetPlans)
	return err
}

// Samples and summaries

func (*postgres) lockUsers(ctx context.Context, tx *sql.Tx, users []string) error {
	var ids array
	for _, u := range users {
		ids.text(u)
	}
	// An existing row is locked although it is not updated.
	_, err := tx.ExecContext(ctx, `
		INSERT INTO labhealth_users (user_id) SELECT u FROM unnest($1::uuid[]) AS u, (SELECT `+planByIndex+`) AS plans ORDER BY u
		ON CONFLICT (user_id) DO UPDATE SET user_id = excluded.user_id WHERE false`, ids.String())
	return err
}

// hasShapes compares the rows. After a failover to a standby that was behind, an ID may belong to
// no shape or to another one, and a sample would get the unit of that one.
func (*postgres) hasShapes(ctx context.Context, tx *sql.Tx, shapes map[shape]int32) (bool, error) {
	var ids, keys array
	want, got := 0, 0
	for sh, id := range shapes {
		if id != 0 {
			want++
			ids.int(int64(id))
			keys.bytes(sh.key())
		}
	}
	if want == 0 {
		return true, nil
	}
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM unnest($1::integer[], $2::bytea[]) AS k (id, key)
		JOIN labhealth_shapes AS s ON s.id = k.id AND s.key = k.key`, ids.String(), keys.String()).Scan(&got)
	return got == want, err
}

// withSeries is the start of a statement: the table r has the IDs of the series whose keys are in
// an array, numbered from 1. LIMIT makes every key a lookup in the index. Otherwise the planner,
// which has no statistics of new tables, would scan them completely.
func withSeries(keys string) string {
	return `WITH r AS MATERIALIZED (SELECT k.n, r.id FROM unnest(` + keys + `::bytea[]) WITH ORDINALITY AS k (key, n)
		CROSS JOIN LATERAL (SELECT id FROM labhealth_series WHERE key = k.key LIMIT 1) AS r)`
}

// unnestSamples has the columns of sampleArrays as rows.
const unnestSamples = `unnest($1::integer[], $2::bigint[], $3::bigint[], $4::double precision[], $5::integer[], $6::integer[], $7::text[])`

// insertNew writes the new samples of existing series.
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
	result, err := tx.ExecContext(ctx, withSeries("$8")+`
		INSERT INTO labhealth_samples (series_id, at, version, value, shape_id, seconds, text)
		SELECT r.id, i.at, i.version, i.value, i.shape_id, i.seconds, i.text
		FROM `+unnestSamples+` AS i (n, at, version, value, shape_id, seconds, text) JOIN r ON r.n = i.n
		ORDER BY r.id, i.at ON CONFLICT (series_id, at) DO NOTHING`, append(b.sampleArrays(all, numbers), keys.String())...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == int64(len(all)), err
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
	for i := range b.sampleSlots {
		of.int(int64(b.sampleSlots[i].series + 1))
		at.int(b.sampleSlots[i].at)
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
			b.seriesIDs[number-1] = id
		case inserted:
			b.sampleSlots[slot-1].inserted = true
		default:
			b.sampleSlots[slot-1].store(&row)
		}
		return nil
	}, withSeries("$1")+`
		SELECT 0, r.n, r.id, false, 0, 0, 0, 0, NULL, NULL FROM r
		UNION ALL
		SELECT i.slot, 0, 0, s.writer = txid_current() % 4294967296, `+sampleColumns+`
		FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS i (n, at, slot) JOIN r ON r.n = i.n
		CROSS JOIN LATERAL (SELECT *, xmin::text::bigint AS writer FROM labhealth_samples WHERE series_id = r.id AND at = i.at LIMIT 1) AS s`,
		keys.String(), of.String(), at.String())
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
	}, `SELECT i.n, s.version, s.text FROM unnest($1::integer[], $2::uuid[]) WITH ORDINALITY AS i (series_id, id, n)
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
		shapes.int(int64(b.shapeID(&slot.content)))
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
	_, err := tx.ExecContext(ctx, insertSummaries+`SELECT * FROM unnest($1::integer[], $2::uuid[], $3::bigint[], $4::text[])`+updateSummaries,
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
			_, err := d.db.ExecContext(ctx, insertInbox+`VALUES ($1, $2, $3, $4)`, r.row...)
			return err
		}
		_, err := d.db.ExecContext(ctx, `WITH new AS (INSERT INTO labhealth_deliveries AS d (id, at) VALUES ($5, $6)
			ON CONFLICT (id) DO UPDATE SET at = excluded.at WHERE d.at < $7 RETURNING 1) `+
			insertInbox+`SELECT $1::text, $2::bigint, $3::uuid, $4::bytea FROM new`, append(r.row, r.id...)...)
		return err
	})
}

func (*postgres) discard(ctx context.Context, tx *sql.Tx, numbers []int64) error {
	var all array
	for _, n := range numbers {
		all.int(n)
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM labhealth_inbox WHERE number = ANY($1::bigint[])`, all.String())
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
