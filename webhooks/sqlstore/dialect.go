package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Dialect identifies the database. The zero value is invalid.
type Dialect int

// The databases that a [Store] supports.
const (
	SQLite     Dialect = iota + 1 // 3.35 or newer
	PostgreSQL                    // 12 or newer, and databases that are compatible with it
)

// dialects holds the properties of each dialect that do not depend on a database.
var dialects = map[Dialect]struct {
	name       string
	migrations []string // the steps from an empty database to the current schema
	open       func(*sql.DB) dialect
}{
	SQLite:     {"SQLite", sqliteMigrations, openSQLite},
	PostgreSQL: {"PostgreSQL", postgresMigrations, openPostgres},
}

// String returns the name of the dialect.
func (d Dialect) String() string {
	if known, ok := dialects[d]; ok {
		return known.name
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// dialect runs the statements that differ between databases. Its errors are those of the driver.
type dialect interface {
	// bind returns a statement with the placeholders of the database in place of question marks.
	bind(statement string) string
	// skipLocked ends a SELECT of rows to change: it locks them and skips those that are locked.
	skipLocked() string

	// transact runs f in a transaction in which each statement sees the transactions committed
	// before it, and whose writes cannot conflict with its reads.
	transact(ctx context.Context, f func(*sql.Tx) error) error
	// beginRead begins a transaction whose statements see the same content.
	beginRead(ctx context.Context) (*sql.Tx, error)
	// confirm returns when everything that was read so far is durable.
	confirm(ctx context.Context) error
	// migrate creates labhealth_schema if necessary, and runs f in a transaction that excludes
	// other migrations.
	migrate(ctx context.Context, f func(*sql.Tx) error) error

	// lockUsers locks the data of users, which are in ascending order, until tx ends.
	lockUsers(ctx context.Context, tx *sql.Tx, users []string) error
	// hasShapes reports whether the rows of labhealth_shapes with these IDs hold these shapes. An
	// ID of 0 is not looked up.
	hasShapes(ctx context.Context, tx *sql.Tx, ids map[shape]int64) (bool, error)
	// lockShapes makes tx the only one that deletes shapes, or shares the right to use new ones.
	lockShapes(ctx context.Context, tx *sql.Tx, shared bool) error
	// addShapes stores that series have shapes, in pairs that are not stored yet.
	addShapes(ctx context.Context, tx *sql.Tx, pairs []seriesShape) error
	// insertNew tries to write the samples of a batch without reading the stored ones. It reports
	// whether all of them were new and are written now.
	insertNew(ctx context.Context, tx *sql.Tx, b *batch) (bool, error)
	// read finds or creates the series of a batch, and reads the stored versions into its slots.
	read(ctx context.Context, tx *sql.Tx, b *batch) error
	// write writes the changed slots of a batch in ascending order of their keys.
	write(ctx context.Context, tx *sql.Tx, b *batch) error

	// readOrders locks the stored orders of slots, which are in the order of their IDs, and reads
	// them. It reads the document of those that a received version is not newer than.
	readOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error
	// writeOrders writes slots and their transitions. It returns a conflict if an order that was
	// not found exists now.
	writeOrders(ctx context.Context, tx *sql.Tx, slots []*orderSlot) error

	// receive writes a delivery to the inbox, unless its ID is stored already.
	receive(ctx context.Context, r *receipt) error
	// change runs a DELETE or UPDATE of the inbox, which has no condition yet, for rows of one
	// part, in its order.
	change(ctx context.Context, tx *sql.Tx, rows []inboxRow, statement string, args ...any) error

	// addReactions queues reactions, of orders for the stored users of these.
	addReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, queued int64) error
	// tryOrder is a condition that locks the order of a reaction r, unless another transaction has
	// locked it.
	tryOrder() string
	// lockReactions waits for the locks of orders, and of users for reactions without an order.
	lockReactions(ctx context.Context, tx *sql.Tx, ids []uuid.UUID) error
	// ofOrders reads the reactions of orders, which are locked, that wait.
	ofOrders(ctx context.Context, tx *sql.Tx, orders []orderKey) ([]reactionRow, error)
	// changeReactions runs a DELETE or UPDATE of labhealth_reactions, which has no condition yet,
	// for those rows that nobody has changed since they were read.
	changeReactions(ctx context.Context, tx *sql.Tx, rows []reactionRow, statement string, args ...any) error

	// partition makes the partitions of samples that are needed now, and those of a number of past
	// months, if the database has partitions. It drops those with only samples before a time, and
	// calls dropped after each.
	partition(ctx context.Context, now time.Time, past int, before int64, dropped func(span)) error
	// partitionedUntil returns the time until which partitions follow each other from now on. It is
	// zero if the database has no partitions.
	partitionedUntil(ctx context.Context, now time.Time) (time.Time, error)
	// oldSamples returns two statements. The first returns the first series from an ID on that has
	// samples before a time, or NULL. The second deletes samples of the series from an ID on and
	// before another one, before a time, up to a number of rows.
	oldSamples() (find, remove string)

	// preferIndexes makes the plans of tx use the indexes, regardless of the statistics;
	// defaultPlans undoes that.
	preferIndexes(ctx context.Context, tx *sql.Tx) error
	defaultPlans(ctx context.Context, tx *sql.Tx) error
	// beginStep calls preferIndexes, and makes a statement of tx that waits longer for a lock fail
	// with an error of its own.
	beginStep(ctx context.Context, tx *sql.Tx, limit time.Duration) error
}
