package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Copied counts what [Copy] or [Move] has transferred.
type Copied struct {
	Users      int // users that have any data in the source
	Samples    int // samples that were written to the target
	Summaries  int // summaries that were written to the target
	Orders     int // orders that were written to the target
	Unchanged  int // samples, summaries and orders of which the target had this version, or a newer one
	Deliveries int // deliveries that left the inbox or the dead letters of the source; zero after Copy
}

func (c *Copied) add(changes webhooks.Changes, written *int) {
	*written += changes.Added + changes.Updated
	c.Unchanged += changes.Same + changes.Older
}

// Copy copies the samples, summaries and orders of users from one store to another, with their
// versions, and the timelines and results of the orders. A version that is newer in the target
// stays, so Copy can be interrupted, and run again at any time, while programs write to both. It
// queues no reactions in the target. The databases may be of different dialects. Both need the
// tables: see [Store.Migrate]. [Store.Version] of the two must be the same function.
//
// users selects users by ID; nil means all. It is called with the IDs in ascending order, each
// before its data is copied, so a program can report progress there. Copy holds a few thousand
// samples in memory, however many there are.
//
// It also copies all IDs of deliveries that are still within [Store.DuplicateWindow], whoever they
// belong to. It does not copy deliveries that wait in the inbox, dead letters or reactions: see
// [Move].
//
// The error is an [*Error], or says that both stores use the same tables or that the target does
// not return what was copied. The counts are valid after an error too.
func Copy(ctx context.Context, from, to *Store, users func(uuid.UUID) bool) (Copied, error) {
	return transfer(ctx, from, to, users, copyUser)
}

// Move moves the data of users from one store to another: samples, summaries, orders, waiting
// deliveries, dead letters and reactions. It does what [Copy] does, and then removes the data from
// the source. It takes one user at a time, and locks the user in the source until the target has
// everything, has committed it, and has returned the same content when it was read again. So at any
// time, also after a crash, the data of a user is complete in the source or in the target, and
// running Move again goes on where it stopped. A delivery that waits in the inbox is moved once,
// and applied once if the workers of the source are stopped, also while a Move that was killed is
// run again.
//
// First let new deliveries of these users go to the target, and stop programs that apply them to
// the source. What a program writes to the source after its user was moved is not lost: another
// Move takes it to the target. Move until one moves no users. Do not move the same users in the
// opposite direction at the same time: the two can wait for each other, and writers of a user whom
// they have locked wait too, until one of them fails after a minute. After a Move that failed or
// was killed, finish it before moving these users back: else a waiting delivery can be in both
// databases.
//
// While a user is moved, deliveries of this user wait in the source. In SQLite all writes wait: run
// Copy first to see how long Move will take. Deliveries and orders without a readable user have
// [uuid.Nil], the first ID with which users is called.
func Move(ctx context.Context, from, to *Store, users func(uuid.UUID) bool) (Copied, error) {
	return transfer(ctx, from, to, users, moveUser)
}

const (
	copySamples    = 5000 // in a transaction
	copyDocuments  = 100  // summaries or deliveries in a transaction, which can be large
	copyUsers      = 1000 // read at a time
	copyIDs        = 1000 // IDs of deliveries in a transaction
	errSameTables  = storeError("sqlstore: source and target of Copy or Move use the same tables")
	errNotVerified = storeError("sqlstore: the target does not return what was copied to it")
)

type storeError string

func (e storeError) Error() string { return string(e) }

type transferUser func(ctx context.Context, from, to *Store, user uuid.UUID) (Copied, error)

func transfer(ctx context.Context, from, to *Store, users func(uuid.UUID) bool, one transferUser) (all Copied, err error) {
	if err := checkTransfer(ctx, from, to); err != nil {
		return all, err
	}
	if err := transferIDs(ctx, from, to); err != nil {
		return all, err
	}
	for user, err := range from.userIDs(ctx) {
		if err != nil {
			return all, err
		}
		if users != nil && !users(user) {
			continue
		}
		n, err := one(ctx, from, to, user)
		all.Samples += n.Samples
		all.Summaries += n.Summaries
		all.Orders += n.Orders
		all.Unchanged += n.Unchanged
		all.Deliveries += n.Deliveries
		if err != nil {
			return all, err
		}
		if n != (Copied{}) {
			all.Users++
		}
	}
	return all, nil
}

// checkTransfer returns an error if a store is unusable, or if both use the same tables, in which
// Move would delete what it has just copied. Different URLs can lead to the same database.
func checkTransfer(ctx context.Context, from, to *Store) error {
	for _, s := range []*Store{from, to} {
		if err := s.usable(ctx); err != nil {
			return err
		}
	}
	// The time is that of an ID that is not in use: another Copy does not take it elsewhere, and
	// Maintain deletes it.
	mark := digest("copy", uuid.NewString())
	err := to.transact(ctx, "copy, target", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, to.dialect.bind(`INSERT INTO labhealth_deliveries (id, at) VALUES (?, 0)`), mark)
		return err
	})
	if err != nil {
		return err
	}
	same := 0
	err = from.db.QueryRowContext(ctx, from.dialect.bind(`SELECT count(*) FROM labhealth_deliveries WHERE id = ?`), mark).Scan(&same)
	if err == nil && same > 0 {
		return errSameTables
	}
	return from.failed(ctx, "copy, source", err)
}

// userTables are the tables that name users, except that of the locks.
var userTables = []string{"labhealth_series", "labhealth_inbox", "labhealth_dead_letters", "labhealth_orders", "labhealth_order_results", "labhealth_reactions"}

// userIDs iterates over the users with data, in ascending order. It starts with uuid.Nil.
func (s *Store) userIDs(ctx context.Context) func(yield func(uuid.UUID, error) bool) {
	return func(yield func(uuid.UUID, error) bool) {
		if !yield(uuid.Nil, nil) {
			return
		}
		const some = ` WHERE user_id > ?`
		var tables []string
		for _, name := range userTables {
			tables = append(tables, `SELECT user_id FROM `+name+some)
		}
		statement := s.dialect.bind(`SELECT user_id FROM (` + strings.Join(tables, ` UNION `) + `) AS u ORDER BY user_id LIMIT ?`)
		for user, err := range pages(copyUsers, uuid.Nil, func(cursor uuid.UUID) (page []uuid.UUID, last uuid.UUID, err error) {
			after := cursor.String()
			err = query(ctx, s.db, func(rows *sql.Rows) error {
				if err := rows.Scan(&last); err != nil {
					return err
				}
				page = append(page, last)
				return nil
			}, statement, append(slices.Repeat([]any{after}, len(userTables)), copyUsers)...)
			return page, last, s.failed(ctx, "users", err)
		}) {
			if !yield(user, err) {
				return
			}
		}
	}
}

// transferIDs copies the IDs of deliveries, so that the target does not receive one again.
func transferIDs(ctx context.Context, from, to *Store) error {
	type row struct {
		id []byte
		at int64
	}
	read := from.dialect.bind(`SELECT id, at FROM labhealth_deliveries WHERE id > ? AND at >= ? ORDER BY id LIMIT ?`)
	for cursor := []byte{}; ; {
		var page []row
		err := query(ctx, from.db, func(rows *sql.Rows) error {
			var r row
			if err := rows.Scan(&r.id, &r.at); err != nil {
				return err
			}
			page = append(page, r)
			return nil
		}, read, cursor, from.oldest(), copyIDs)
		if err != nil || len(page) == 0 {
			return from.failed(ctx, "copy, source", err)
		}
		var args []any
		for _, r := range page {
			args = append(args, r.id, r.at)
		}
		err = to.transact(ctx, "copy, target", func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, to.dialect.bind(`INSERT INTO labhealth_deliveries AS d (id, at) VALUES (?, ?)`+
				strings.Repeat(`, (?, ?)`, len(page)-1)+` ON CONFLICT (id) DO UPDATE SET at = excluded.at WHERE d.at < excluded.at`), args...)
			return err
		})
		if err != nil || len(page) < copyIDs {
			return err
		}
		cursor = page[len(page)-1].id
	}
}

func copyUser(ctx context.Context, from, to *Store, user uuid.UUID) (Copied, error) {
	t := transferring{from: from, to: to, user: user, q: from.db}
	err := t.content(ctx)
	return t.n, err
}

func moveUser(ctx context.Context, from, to *Store, user uuid.UUID) (n Copied, err error) {
	err = from.transact(ctx, "move, source", func(tx *sql.Tx) error {
		t := transferring{from: from, to: to, user: user, q: tx, verify: true}
		defer func() { n = t.n }()
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(id), '') FROM labhealth_database`).Scan(&t.database); err != nil {
			return err
		}
		// As in DeleteUser: wait for workers, which lock a delivery before its user, and for
		// Requeue, and look again where they may have stored something.
		for _, table := range []deliveryTable{deadLetterTable, inboxTable, deadLetterTable} {
			if err := t.deliveries(ctx, tx, table); err != nil {
				return err
			}
		}
		if err := from.dialect.lockUsers(ctx, tx, []string{user.String()}); err != nil {
			return err
		}
		if err := t.content(ctx); err != nil {
			return err
		}
		if err := t.reactions(ctx, tx); err != nil {
			return err
		}
		return from.deleteContent(ctx, tx, user.String())
	})
	return n, err
}

// transferring copies the data of one user. q reads the source.
type transferring struct {
	from, to *Store
	user     uuid.UUID
	q        queryer
	verify   bool
	n        Copied
	database string // ID of the source, to move deliveries
}

// content copies the samples, summaries and orders.
func (t *transferring) content(ctx context.Context) error {
	type row struct {
		id int64
		of webhooks.Series
	}
	var all []row
	err := query(ctx, t.q, func(rows *sql.Rows) error {
		r := row{of: webhooks.Series{UserID: t.user}}
		if err := rows.Scan(&r.id, &r.of.Resource, &r.of.Provider, &r.of.SourceType); err != nil {
			return err
		}
		r.of.Resource, r.of.Provider, r.of.SourceType = unescape(r.of.Resource), unescape(r.of.Provider), unescape(r.of.SourceType)
		all = append(all, r)
		return nil
	}, t.from.dialect.bind(`SELECT id, resource, provider, source_type FROM labhealth_series WHERE user_id = ?`), t.user.String())
	if err != nil {
		return t.from.failed(ctx, "copy, source", err)
	}
	for _, r := range all {
		if err := t.samples(ctx, r.id, r.of); err != nil {
			return err
		}
		if err := t.summaries(ctx, r.id, r.of); err != nil {
			return err
		}
	}
	if err := t.results(ctx); err != nil {
		return err
	}
	return t.orders(ctx)
}

// newBatch returns a batch for some series.
func (t *transferring) newBatch(of ...webhooks.Series) *batch {
	return &batch{applied: make([]Applied, 1), users: []string{t.user.String()}, series: of, silent: true}
}

func (t *transferring) samples(ctx context.Context, id int64, of webhooks.Series) error {
	statement := t.from.dialect.bind(`SELECT ` + sampleColumns + ` FROM labhealth_samples AS s
		WHERE s.series_id = ? AND s.at >= ? ORDER BY s.at LIMIT ?`)
	for next := int64(math.MinInt64); ; {
		var page []sampleRow
		err := query(ctx, t.q, func(rows *sql.Rows) error {
			var r sampleRow
			if err := rows.Scan(r.scan()...); err != nil {
				return err
			}
			page = append(page, r)
			return nil
		}, statement, id, next, copySamples)
		if err != nil || len(page) == 0 {
			return t.from.failed(ctx, "copy, source", err)
		}
		b := t.newBatch(of)
		for i := range page {
			r := &page[i]
			c := r.content()
			if c.document == "" {
				if c.shape, err = t.from.shape(ctx, t.q, r.shapeID); err != nil {
					return t.from.failed(ctx, "copy, source", err)
				}
			}
			b.samples = append(b.samples, received[content]{content: c, version: r.version, slot: int32(i), index: int32(i)})
			b.sampleSlots = append(b.sampleSlots, sampleSlot{at: r.at, last: int32(i)})
		}
		if err := t.write(ctx, b, &t.n.Samples); err != nil {
			return err
		}
		last := page[len(page)-1].at
		if len(page) < copySamples || last == math.MaxInt64 {
			return nil
		}
		next = last + 1
	}
}

func (t *transferring) summaries(ctx context.Context, id int64, of webhooks.Series) error {
	statement := t.from.dialect.bind(`SELECT id, version, text FROM labhealth_summaries WHERE series_id = ? AND id > ? ORDER BY id LIMIT ?`)
	for cursor, first := uuid.Nil, true; ; first = false {
		b := t.newBatch(of)
		read := statement
		if first { // a summary may have the smallest ID
			read = strings.Replace(statement, "id > ", "id >= ", 1)
		}
		err := query(ctx, t.q, func(rows *sql.Rows) error {
			r := received[string]{slot: int32(len(b.summaries))}
			if err := rows.Scan(&cursor, &r.version, &r.content); err != nil {
				return err
			}
			b.summaries = append(b.summaries, r)
			b.summarySlots = append(b.summarySlots, summarySlot{id: cursor})
			return nil
		}, read, id, cursor.String(), copyDocuments)
		if err != nil || len(b.summaries) == 0 {
			return t.from.failed(ctx, "copy, source", err)
		}
		if err := t.write(ctx, b, &t.n.Summaries); err != nil || len(b.summaries) < copyDocuments {
			return err
		}
	}
}

// transferLimit is a variable for tests.
var transferLimit = time.Minute

// inTarget runs f in a transaction of the target, for a limited time: the source may hold locks
// that another Move in the other direction waits for, which neither database can detect.
func (t *transferring) inTarget(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	return t.to.transact(ctx, "copy, target", func(tx *sql.Tx) error { return f(ctx, tx) })
}

// write writes a batch to the target.
func (t *transferring) write(ctx context.Context, b *batch, written *int) error {
	var applied []Applied
	apply := func() error {
		return t.inTarget(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			applied, err = t.to.apply(ctx, tx, b)
			return err
		})
	}
	if err := apply(); err != nil {
		return err
	}
	t.to.shapes.add(b.shapeIDs)
	t.n.add(applied[0].Changes, written)
	if c := applied[0].Changes; !t.verify || c.Added+c.Updated+applied[0].Transitions == 0 {
		return nil // the target had it before
	}
	// Applying it again changes nothing if the target has it. The target may have deleted samples
	// that are older than Keep in the meantime.
	for range 3 {
		if err := apply(); err != nil {
			return err
		}
		c := applied[0].Changes
		if c.Same+c.Older == len(b.samples)+len(b.summaries)+len(b.orders) && applied[0].Transitions == 0 {
			return nil
		}
	}
	return errNotVerified
}

// deliveryTable is a table of deliveries. Its columns are those of deliveryRow.
type deliveryTable struct{ name, columns string }

var (
	inboxTable      = deliveryTable{"labhealth_inbox", "delivery_id, received_at, user_id, attempts, body, due"}
	deadLetterTable = deliveryTable{"labhealth_dead_letters", "delivery_id, received_at, user_id, attempts, body, failed_at, reason"}
)

// deliveryRow is a row of the inbox or of the dead letters.
type deliveryRow struct {
	number   int64
	id, user sql.Null[string]
	received int64
	attempts int
	body     []byte
	time     int64 // due or failed_at
	reason   string
}

// columns returns the destinations, or the arguments, of the first n columns of a table.
func (r *deliveryRow) columns(n int) []any {
	return []any{&r.id, &r.received, &r.user, &r.attempts, &r.body, &r.time, &r.reason}[:n]
}

// digest identifies the row among all that were moved, from any database: a delivery that is moved
// there and back can have the same number in several.
func (r *deliveryRow) digest(database, table string) []byte {
	return digest("moved from "+table, database, strconv.FormatInt(r.number, 10), r.id.V, strconv.FormatInt(r.received, 10), string(r.body))
}

// deliveries moves the deliveries of the user in one table. The source deletes them when tx ends.
// The target stores a digest of each among the IDs of deliveries, so that it is not moved twice if
// that does not happen.
func (t *transferring) deliveries(ctx context.Context, tx *sql.Tx, table deliveryTable) error {
	where, args := "user_id = ?", []any{t.user.String(), copyDocuments}
	if t.user == uuid.Nil {
		where, args = "user_id IS NULL", args[1:]
	}
	columns := 1 + strings.Count(table.columns, ",")
	remove := t.from.dialect.bind(`DELETE FROM ` + table.name + ` WHERE number IN (SELECT number FROM ` + table.name +
		` WHERE ` + where + ` ORDER BY number LIMIT ?) RETURNING number, ` + table.columns)
	insert := t.to.dialect.bind(`INSERT INTO ` + table.name + ` (` + table.columns + `) VALUES (?` +
		strings.Repeat(", ?", columns-1) + `) ON CONFLICT DO NOTHING`)
	for {
		var page []*deliveryRow
		err := query(ctx, tx, func(rows *sql.Rows) error {
			r := &deliveryRow{}
			page = append(page, r)
			return rows.Scan(append([]any{&r.number}, r.columns(columns)...)...)
		}, remove, args...)
		if err != nil || len(page) == 0 {
			return err
		}
		slices.SortFunc(page, func(a, b *deliveryRow) int { return cmp.Compare(a.number, b.number) })
		err = t.inTarget(ctx, func(ctx context.Context, tx *sql.Tx) error {
			for _, r := range page {
				if err := t.insertDelivery(ctx, tx, insert, r.digest(t.database, table.name), r.columns(columns)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		t.n.Deliveries += len(page)
	}
}

func (t *transferring) insertDelivery(ctx context.Context, tx *sql.Tx, insert string, digest []byte, row []any) error {
	result, err := tx.ExecContext(ctx, t.to.dialect.bind(insertID), digest, t.to.now().UnixNano(), t.to.oldest())
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, insert, row...)
	return err
}
