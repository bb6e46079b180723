package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sqlite runs the statements of SQLite. It has one writer at a time: the goroutines of a process
// take turns in writing, and processes wait for SQLite's own lock.
type sqlite struct {
	db      *sql.DB
	writing chan struct{} // holds a token while a transaction writes

	mu      sync.Mutex
	waiting []*receipt // deliveries for the next transaction
}

func openSQLite(db *sql.DB) dialect { return &sqlite{db: db, writing: make(chan struct{}, 1)} }

func (*sqlite) bind(statement string) string { return statement }

func (*sqlite) skipLocked() string { return "" } // the transaction has the whole database

// Transactions

func (d *sqlite) transact(ctx context.Context, f func(*sql.Tx) error) error {
	select {
	case d.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer d.release()
	return d.writeTx(ctx, f)
}

func (d *sqlite) release() { <-d.writing }

// writeTx runs f in a transaction. The caller holds the write token.
func (d *sqlite) writeTx(ctx context.Context, f func(*sql.Tx) error) error {
	return inTx(ctx, d.db, nil, func(tx *sql.Tx) error {
		// Take the write lock before reading: of two transactions that have both read, only one
		// could write.
		if _, err := tx.ExecContext(ctx, `UPDATE labhealth_schema SET version = version WHERE false`); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		if err := ensureCommit(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// ensureCommit makes a change in a transaction that has changed nothing, so that its commit is
// synced. The data that it read, such as the ID of a delivery, may have been written by a process
// that was killed before it synced the log. Then it is only in the cache of the operating system,
// and a power failure would lose it although it was acknowledged. A commit syncs the whole log. So
// would a checkpoint, but it waits for readers, and would be necessary whenever the last connection
// of all processes was closed.
func ensureCommit(ctx context.Context, tx *sql.Tx) error {
	changed := 0 // by the last statement that changes rows, which takes the lock if there was no other
	if err := tx.QueryRowContext(ctx, `SELECT changes()`).Scan(&changed); err != nil || changed > 0 {
		return err
	}
	for _, statement := range []string{`INSERT INTO labhealth_schema (version) VALUES (0)`, `DELETE FROM labhealth_schema WHERE version = 0`} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (d *sqlite) beginRead(ctx context.Context) (*sql.Tx, error) { return d.db.BeginTx(ctx, nil) }

func (d *sqlite) confirm(ctx context.Context) error {
	return d.transact(ctx, func(*sql.Tx) error { return nil })
}

func (d *sqlite) migrate(ctx context.Context, f func(*sql.Tx) error) error {
	if _, err := d.db.ExecContext(ctx, schemaTable); err != nil { // transactions need it
		return err
	}
	return d.transact(ctx, f)
}

// Samples and summaries

func (*sqlite) lockUsers(ctx context.Context, tx *sql.Tx, users []string) error {
	return inChunks(ctx, tx, users, `INSERT INTO labhealth_users (user_id) VALUES `, `(?)`, ` ON CONFLICT DO NOTHING`,
		func(statement *sql.Stmt, chunk []string) error {
			args := make([]any, len(chunk))
			for i, u := range chunk {
				args[i] = u
			}
			_, err := statement.ExecContext(ctx, args...)
			return err
		})
}

func (*sqlite) hasShapes(ctx context.Context, tx *sql.Tx, shapes map[shape]int64) (bool, error) {
	for sh, id := range shapes {
		if id == 0 {
			continue
		}
		exists := 0
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM labhealth_shapes WHERE id = ? AND key = ?`, id, sh.key()).Scan(&exists)
		if err != nil || exists == 0 {
			return false, err
		}
	}
	return true, nil
}

// lockShapes does nothing: there is one writer.
func (*sqlite) lockShapes(context.Context, *sql.Tx, bool) error { return nil }

func (*sqlite) addShapes(ctx context.Context, tx *sql.Tx, pairs []seriesShape) error {
	for _, p := range pairs {
		_, err := tx.ExecContext(ctx, `INSERT INTO labhealth_shape_series (shape_id, series_id) VALUES (?, ?) ON CONFLICT DO NOTHING`, p.shapeID, p.seriesID)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE labhealth_series
			SET shapes = CASE shapes WHEN '{}' THEN '{' ELSE substr(shapes, 1, length(shapes) - 1) || ',' END || ? || '}' WHERE id = ?`,
			strconv.FormatInt(p.shapeID, 10), p.seriesID)
		if err != nil {
			return err
		}
	}
	return nil
}

// insertNew does nothing: reading first costs little without a network.
func (*sqlite) insertNew(context.Context, *sql.Tx, *batch) (bool, error) { return false, nil }

func (d *sqlite) read(ctx context.Context, tx *sql.Tx, b *batch) error {
	if err := d.findSeries(ctx, tx, b); err != nil {
		return err
	}
	if err := d.readSamples(ctx, tx, b); err != nil {
		return err
	}
	for i := range b.summarySlots {
		slot := &b.summarySlots[i]
		err := tx.QueryRowContext(ctx, `SELECT version, text FROM labhealth_summaries WHERE series_id = ? AND id = ?`,
			b.seriesIDs[slot.series], slot.id.String()).Scan(&slot.version, &slot.content)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		slot.found = err == nil
	}
	return nil
}

func (*sqlite) findSeries(ctx context.Context, tx *sql.Tx, b *batch) error {
	for i, of := range b.series {
		id, key := &b.seriesIDs[i], seriesKey(of)
		err := tx.QueryRowContext(ctx, `SELECT id, shapes FROM labhealth_series WHERE key = ?`, key).Scan(id, &b.seriesShapes[i])
		if errors.Is(err, sql.ErrNoRows) {
			err = tx.QueryRowContext(ctx, `INSERT INTO labhealth_series (key, user_id, resource, provider, source_type)
				VALUES (?, ?, ?, ?, ?) RETURNING id`,
				key, of.UserID.String(), escape(of.Resource), escape(of.Provider), escape(of.SourceType)).Scan(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sqliteChunk is the number of rows that one statement reads or writes.
const sqliteChunk = 32

// inChunks calls f with as many whole chunks as there are, and with the rest. The statement has a
// row of parameters for each element, between head and tail. It is prepared once for all chunks.
func inChunks[E any](ctx context.Context, tx *sql.Tx, all []E, head, row, tail string, f func(*sql.Stmt, []E) error) error {
	whole := len(all) / sqliteChunk * sqliteChunk
	for _, part := range [][]E{all[:whole], all[whole:]} {
		if len(part) == 0 {
			continue
		}
		size := min(len(part), sqliteChunk)
		statement, err := tx.PrepareContext(ctx, head+row+strings.Repeat(", "+row, size-1)+tail)
		if err != nil {
			return err
		}
		defer statement.Close()
		for chunk := range slices.Chunk(part, size) {
			if err := f(statement, chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// queryPrepared calls scan with every row of a prepared query.
func queryPrepared(ctx context.Context, statement *sql.Stmt, scan func(*sql.Rows) error, args []any) error {
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return scanRows(rows, scan)
}

func (d *sqlite) readSamples(ctx context.Context, tx *sql.Tx, b *batch) error {
	if len(b.sampleSlots) == 0 {
		return nil
	}
	statement, err := tx.PrepareContext(ctx, `SELECT `+sampleColumns+` FROM labhealth_samples AS s
		WHERE s.series_id = ? AND s.at IN (?`+strings.Repeat(", ?", sqliteChunk-1)+`)`)
	if err != nil {
		return err
	}
	defer statement.Close()
	for rest := b.keyOrder(); len(rest) > 0; {
		n := 1
		for n < len(rest) && n < sqliteChunk && b.sampleSlots[rest[n]].series == b.sampleSlots[rest[0]].series {
			n++
		}
		if err := d.readChunk(ctx, statement, b, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// readChunk reads the samples of one series, ordered by time.
func (*sqlite) readChunk(ctx context.Context, statement *sql.Stmt, b *batch, slots []int32) error {
	args := make([]any, 1+sqliteChunk)
	args[0] = b.seriesIDs[b.sampleSlots[slots[0]].series]
	for i := range sqliteChunk {
		args[1+i] = b.sampleSlots[slots[min(i, len(slots)-1)]].at
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return scanRows(rows, func(rows *sql.Rows) error {
		var row sampleRow
		if err := rows.Scan(row.scan()...); err != nil {
			return err
		}
		n, found := slices.BinarySearchFunc(slots, row.at, func(i int32, at int64) int { return cmp.Compare(b.sampleSlots[i].at, at) })
		if found {
			b.sampleSlots[slots[n]].store(&row)
		}
		return nil
	})
}

func (d *sqlite) write(ctx context.Context, tx *sql.Tx, b *batch) error {
	if err := d.writeSamples(ctx, tx, b); err != nil {
		return err
	}
	for i := range b.summarySlots {
		slot := &b.summarySlots[i]
		if !slot.dirty {
			continue
		}
		_, err := tx.ExecContext(ctx, insertSummaries+`VALUES (?, ?, ?, ?)`+updateSummaries,
			b.seriesIDs[slot.series], slot.id.String(), slot.version, slot.content)
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *sqlite) writeSamples(ctx context.Context, tx *sql.Tx, b *batch) error {
	return inChunks(ctx, tx, b.changed(), insertSamples+`VALUES `, `(?, ?, ?, ?, ?, ?, ?)`, updateSamples,
		func(statement *sql.Stmt, slots []int32) error { return d.writeChunk(ctx, statement, b, slots) })
}

func (*sqlite) writeChunk(ctx context.Context, statement *sql.Stmt, b *batch, slots []int32) error {
	args := make([]any, 0, 7*sqliteChunk)
	for _, i := range slots {
		slot := &b.sampleSlots[i]
		var seconds, document any
		if slot.content.shape.seconds == perSample {
			seconds = slot.content.seconds
		}
		if slot.content.document != "" {
			document = slot.content.document
		}
		args = append(args, b.seriesIDs[slot.series], slot.at, slot.version, slot.content.value, b.shapeID(&slot.content), seconds, document)
	}
	_, err := statement.ExecContext(ctx, args...)
	return err
}

// Inbox

// receive writes a delivery together with those that wait, or waits until another goroutine has
// written it.
func (d *sqlite) receive(ctx context.Context, r *receipt) error {
	d.mu.Lock()
	d.waiting = append(d.waiting, r)
	d.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done(): // It may be in flight and written all the same. Then the next attempt finds its ID.
		d.mu.Lock()
		d.waiting = slices.DeleteFunc(d.waiting, func(other *receipt) bool { return other == r })
		d.mu.Unlock()
		return ctx.Err()
	case d.writing <- struct{}{}:
	}
	d.mu.Lock()
	all := d.waiting
	d.waiting = nil
	d.mu.Unlock()
	if len(all) > 0 { // else another goroutine has taken r
		d.receiveAll(ctx, all)
	}
	d.release()
	<-r.done
	return r.err
}

// receiveAll writes deliveries and wakes their goroutines. The caller holds the write token.
func (d *sqlite) receiveAll(ctx context.Context, all []*receipt) {
	// ctx belongs to one of the deliveries only.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := retry(ctx, "receive", func() error {
		return d.writeTx(ctx, func(tx *sql.Tx) error {
			for _, r := range all {
				if err := d.receiveOne(ctx, tx, r); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for _, r := range all {
		r.err = err
		close(r.done)
	}
}

func (*sqlite) receiveOne(ctx context.Context, tx *sql.Tx, r *receipt) error {
	if r.id != nil {
		result, err := tx.ExecContext(ctx, insertID, r.id...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, insertInbox+`VALUES (?, ?, ?, ?)`, r.row...)
	return err
}

// sqliteParameters is less than the 32,766 parameters that a statement can have.
const sqliteParameters = 5000

func (*sqlite) change(ctx context.Context, tx *sql.Tx, rows []inboxRow, statement string, args ...any) error {
	for chunk := range slices.Chunk(rows, sqliteParameters) {
		all := slices.Clone(args)
		for i := range chunk {
			all = append(all, chunk[i].number)
		}
		_, err := tx.ExecContext(ctx, statement+` WHERE number IN (?`+strings.Repeat(", ?", len(chunk)-1)+`)`, all...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Maintenance

func (*sqlite) partition(context.Context, time.Time, int, int64, func(span)) error { return nil }

func (*sqlite) partitionedUntil(context.Context, time.Time) (until time.Time, err error) {
	return until, nil
}

// oldSamples visits one series after the other, because no index has the time alone.
func (*sqlite) oldSamples() (find, remove string) {
	return `SELECT (SELECT r.id FROM labhealth_series AS r WHERE r.id >= ? AND
			EXISTS (SELECT 1 FROM labhealth_samples AS s WHERE s.series_id = r.id AND s.at < ?) ORDER BY r.id LIMIT 1)`,
		`DELETE FROM labhealth_samples WHERE (series_id, at) IN (SELECT s.series_id, s.at
			FROM labhealth_series AS r CROSS JOIN labhealth_samples AS s ON s.series_id = r.id
			WHERE r.id >= ? AND r.id < ? AND s.at < ? LIMIT ?)`
}

func (*sqlite) preferIndexes(context.Context, *sql.Tx) error { return nil }

func (*sqlite) defaultPlans(context.Context, *sql.Tx) error { return nil }

// beginStep does nothing: the transaction has the only lock.
func (*sqlite) beginStep(context.Context, *sql.Tx, time.Duration) error { return nil }
