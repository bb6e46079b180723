package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Applied is what became of a delivery.
type Applied struct {
	Changes webhooks.Changes // zero if nothing was applied
	// Err says why the delivery is for [Store.DeadLetter]. [webhooks.ErrUnreadable]: some of it cannot be read, and the rest was applied.
	// Otherwise nothing was applied: [webhooks.ErrNoUser], [webhooks.ErrNoID], or that it has no event, or one that a program made and
	// that cannot be written as JSON. It is the same each time, and matches [webhooks.ErrPermanent].
	Err error
}

// isUnreadable reports whether a part of the delivery was applied, and a part cannot be read.
func (a Applied) isUnreadable() bool { return errors.Is(a.Err, webhooks.ErrUnreadable) }

// permanentError is an error of a delivery that is the same each time.
type permanentError string

func (e permanentError) Error() string { return string(e) }

func (permanentError) Is(target error) bool { return target == webhooks.ErrPermanent }

const errNoEvent = permanentError("sqlstore: the delivery has no event")

// Apply keeps what an event carries, where it is the newest version, in a transaction of its own. What is the newest, and what the
// changes mean, is as [webhooks.Latest] has it, and the changes are exact whatever other processes apply meanwhile. The error is
// that of [Applied]; or an [*Error] of the database, and nothing is kept then.
func (s *Store) Apply(ctx context.Context, d webhooks.Delivery) (webhooks.Changes, error) {
	all, err := s.ApplyAll(ctx, []webhooks.Delivery{d})
	if err != nil {
		return webhooks.Changes{}, err
	}
	return all[0].Changes, all[0].Err
}

// ApplyAll applies deliveries in one transaction, with the result of applying one after the other: much faster, since a
// transaction costs more than a sample. It returns one element for each delivery. A delivery that cannot be applied fails
// neither the others nor the call. The error is an [*Error], and nothing is kept then.
func (s *Store) ApplyAll(ctx context.Context, deliveries []webhooks.Delivery) ([]Applied, error) {
	b := s.batch(deliveries)
	if len(b.users) == 0 {
		return b.applied, nil
	}
	var applied []Applied
	err := s.transact(ctx, "apply", func(tx *sql.Tx) (err error) {
		applied, err = b.apply(ctx, s, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.shapes.keep(b.shapeIDs)
	return applied, nil
}

// batch is what deliveries say, before the database is asked.
type batch struct {
	applied   []Applied // what is known so far: errors, and samples that are repeated or have no key
	users     []string  // in ascending order
	series    []webhooks.Series
	samples   []sampleEntry
	summaries []summaryEntry
	slots     []sampleSlot // one for each key of a sample
	places    []summarySlot
	shapeIDs  map[shape]int32
}

// sampleEntry is a sample of a delivery.
type sampleEntry struct {
	content
	version  int64
	slot     int32
	delivery int32
	index    int32 // in the delivery
}

// sampleSlot is a key of a sample and what the database has there.
type sampleSlot struct {
	at      int64
	series  int32 // in the batch
	last    int32 // the last entry
	found   bool  // there is a version
	dirty   bool  // and it is to be written
	own     bool  // addAll has written it
	version int64
	content content
}

type summaryEntry struct {
	version  int64
	text     string
	slot     int32
	delivery int32
}

type summarySlot struct {
	id      uuid.UUID
	series  int32
	found   bool
	dirty   bool
	version int64
	text    string
}

func (s *Store) version(d webhooks.Delivery) int64 {
	if s.Version != nil {
		return s.Version(d)
	}
	if n, ok := nanos(d.Event.ReceivedAt); ok {
		return n
	}
	return math.MinInt64
}

// batch reads deliveries.
func (s *Store) batch(deliveries []webhooks.Delivery) *batch {
	b := &batch{applied: make([]Applied, len(deliveries))}
	numbers := map[webhooks.Series]int32{}
	seriesOf := func(of webhooks.Series) int32 {
		n, ok := numbers[of]
		if !ok {
			n = int32(len(b.series))
			numbers[of] = n
			b.series = append(b.series, of)
		}
		return n
	}
	type sampleKey struct {
		at     int64
		series int32
	}
	type summaryKey struct {
		id     uuid.UUID
		series int32
	}
	slots, places := map[sampleKey]int32{}, map[summaryKey]int32{}
	for i, d := range deliveries {
		if d.Event == nil {
			b.applied[i].Err = errNoEvent
			continue
		}
		keys, err := d.Event.Keys()
		if err != nil {
			b.applied[i].Err = err
			continue
		}
		b.applied[i].Err = d.Event.Err()
		switch data := d.Event.Data.(type) {
		case *webhooks.Samples:
			contents := make([]content, len(data.Data))
			for k := range data.Data {
				if keys.Samples[k] == (webhooks.SampleKey{}) {
					continue
				}
				if contents[k], err = contentOf(&data.Data[k], keys.Samples[k].UnixNano); err != nil {
					break
				}
			}
			if err != nil {
				b.applied[i].Err = err
				continue
			}
			version := s.version(d)
			var series webhooks.Series // the last one
			var number int32 = -1
			for k := range data.Data {
				key := keys.Samples[k]
				if key == (webhooks.SampleKey{}) {
					b.applied[i].Changes.Keyless++
					continue
				}
				if of := key.Series(); number < 0 || of != series {
					series, number = of, seriesOf(of)
				}
				at := sampleKey{key.UnixNano, number}
				now := sampleEntry{contents[k], version, 0, int32(i), int32(k)}
				n, known := slots[at]
				if !known {
					n = int32(len(b.slots))
					slots[at] = n
					b.slots = append(b.slots, sampleSlot{at: at.at, series: number})
				}
				now.slot = n
				if slot := &b.slots[n]; known && b.samples[slot.last].delivery == now.delivery {
					b.applied[i].Changes.Repeated++
					b.samples[slot.last] = now
				} else {
					slot.last = int32(len(b.samples))
					b.samples = append(b.samples, now)
				}
			}
		case *webhooks.Activity, *webhooks.Summary:
			text, err := data.MarshalJSON()
			if err != nil {
				b.applied[i].Err = errUnwritable
				continue
			}
			number := seriesOf(webhooks.Series{UserID: keys.Summary.UserID, Resource: keys.Summary.Resource})
			key := summaryKey{keys.Summary.ID, number}
			n, known := places[key]
			if !known {
				n = int32(len(b.places))
				places[key] = n
				b.places = append(b.places, summarySlot{id: key.id, series: number})
			}
			b.summaries = append(b.summaries, summaryEntry{s.version(d), string(text), n, int32(i)})
		case *webhooks.LabOrder, *webhooks.WorkoutStreamNotice, *webhooks.ProviderConnection, *webhooks.HistoricalPull, *webhooks.Unknown:
		}
	}
	for _, of := range b.series {
		b.users = append(b.users, of.UserID.String())
	}
	slices.Sort(b.users)
	b.users = slices.Compact(b.users)
	return b
}

// apply does the batch in a transaction: it locks the users, always in the same order, so that what it reads stays true until it
// has written; reads what there is; decides; and writes.
func (b *batch) apply(ctx context.Context, s *Store, tx *sql.Tx) ([]Applied, error) {
	applied := slices.Clone(b.applied)
	if len(b.users) == 0 {
		return applied, nil
	}
	if err := s.number(ctx, tx, b); err != nil {
		return nil, err
	}
	if err := s.lockUsers(ctx, tx, b.users); err != nil {
		return nil, err
	}
	b.forget()
	if s.dialect == PostgreSQL && len(b.places) == 0 {
		// Most samples are new: if all are, this is all.
		b.decide(applied)
		if all, err := b.addAll(ctx, tx); err != nil || all {
			return applied, err
		}
		b.forget()
		applied = slices.Clone(b.applied)
	}
	series, err := s.readSamples(ctx, tx, b)
	if err != nil {
		return nil, err
	}
	b.decide(applied)
	if err := s.writeSamples(ctx, tx, b, series); err != nil {
		return nil, err
	}
	if err := s.readSummaries(ctx, tx, b.places, series); err != nil {
		return nil, err
	}
	for i := range b.summaries {
		b.summaries[i].put(&b.places[b.summaries[i].slot], &applied[b.summaries[i].delivery].Changes)
	}
	if err := s.writeSummaries(ctx, tx, b.places, series); err != nil {
		return nil, err
	}
	return applied, nil
}

// forget makes the slots as if the database had nothing.
func (b *batch) forget() {
	for i := range b.slots {
		b.slots[i].found, b.slots[i].dirty, b.slots[i].own = false, false, false
	}
	for i := range b.places {
		b.places[i].found, b.places[i].dirty = false, false
	}
}

// decide goes through the samples in order of their deliveries.
func (b *batch) decide(applied []Applied) {
	for i := range b.samples {
		e := &b.samples[i]
		e.put(&b.slots[e.slot], &applied[e.delivery].Changes)
	}
	for i := range applied {
		slices.Sort(applied[i].Changes.Samples)
	}
}

// put decides between what is there and what came.
func (e *sampleEntry) put(slot *sampleSlot, c *webhooks.Changes) {
	switch {
	case !slot.found:
		c.Added++
	case e.version < slot.version:
		c.Older++
		return
	case e.content == slot.content:
		c.Same++
		slot.dirty = slot.dirty || slot.version != e.version
		slot.version = e.version
		return
	case e.version == slot.version && e.json(slot.at) < slot.content.json(slot.at):
		c.Older++
		return
	default:
		c.Updated++
	}
	c.Samples = append(c.Samples, int(e.index))
	slot.found, slot.dirty, slot.version, slot.content = true, true, e.version, e.content
}

func (e *summaryEntry) put(slot *summarySlot, c *webhooks.Changes) {
	switch {
	case !slot.found:
		c.Added = 1
	case e.version < slot.version, e.version == slot.version && e.text < slot.text:
		c.Older = 1
		return
	case e.text == slot.text:
		c.Same = 1
		slot.dirty = slot.dirty || slot.version != e.version
		slot.version = e.version
		return
	default:
		c.Updated = 1
	}
	slot.found, slot.dirty, slot.version, slot.text = true, true, e.version, e.text
}

// plansByIndex makes PostgreSQL plan each statement of the package once for a connection, and by the index. Left alone it plans them
// anew each time, at a third of the cost of the whole, or keeps a plan made for tables as small as they are at first, which reads all of
// them. plansAsBefore ends that. Both last no longer than the transaction.
const (
	plansByIndex  = `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`
	plansAsBefore = `set_config('plan_cache_mode', NULL, true), set_config('enable_seqscan', NULL, true)`
)

// lockUsers keeps other transactions from the data of the users until this one ends. They are in ascending order: two transactions
// that took locks in different order would wait for each other.
func (s *Store) lockUsers(ctx context.Context, tx *sql.Tx, users []string) error {
	if s.dialect == SQLite { // of which a transaction has the whole
		for _, u := range users {
			if _, err := tx.ExecContext(ctx, `INSERT INTO labhealth_users (user_id) VALUES (?) ON CONFLICT DO NOTHING`, u); err != nil {
				return err
			}
		}
		return nil
	}
	var ids array
	for _, u := range users {
		ids.text(u)
	}
	// A row that is there is locked although it is not updated.
	_, err := tx.ExecContext(ctx, `
		INSERT INTO labhealth_users (user_id) SELECT u FROM unnest($1::uuid[]) AS u, (SELECT `+plansByIndex+`) AS plans ORDER BY u
		ON CONFLICT (user_id) DO UPDATE SET user_id = excluded.user_id WHERE false`, ids.String())
	return err
}

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls read with every row of a query.
func each(ctx context.Context, q queryer, read func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	return scanEach(rows, read)
}

func scanEach(rows *sql.Rows, read func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// stored is a row of labhealth_samples.
type stored struct {
	at, version int64
	value       float64
	shape       int32
	seconds     sql.NullInt32
	text        sql.NullString
}

const storedColumns = `s.at, s.version, s.value, s.shape_id, s.seconds, s.text`

func (r *stored) scan() []any {
	return []any{&r.at, &r.version, &r.value, &r.shape, &r.seconds, &r.text}
}

// content returns what a row holds. Its shape is left for later.
func (r *stored) content() content {
	if r.text.Valid {
		return content{text: r.text.String}
	}
	return content{value: r.value, seconds: r.seconds.Int32}
}

// readSamples returns the ids of the series, which it makes if there are none, and fills the slots with what the database has.
func (s *Store) readSamples(ctx context.Context, tx *sql.Tx, b *batch) (series []int64, err error) {
	series = make([]int64, len(b.series))
	shapes := make([]int32, len(b.slots))
	found := func(i int32, r *stored) {
		slot := &b.slots[i]
		slot.found, slot.version, slot.content, shapes[i] = true, r.version, r.content(), r.shape
	}
	if s.dialect == SQLite {
		if err = findSeries(ctx, tx, b.series, series); err == nil {
			err = b.readInChunks(ctx, tx, series, found)
		}
	} else {
		if err = b.readAtOnce(ctx, tx, series, found); err == nil {
			err = addSeries(ctx, tx, b.series, series)
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range b.slots {
		if c := &b.slots[i].content; b.slots[i].found && c.text == "" {
			if c.shape, err = s.shape(ctx, tx, shapes[i]); err != nil {
				return nil, err
			}
		}
	}
	return series, nil
}

// sorted returns the numbers of slots in the order of their keys.
func (b *batch) sorted(series []int64) []int32 {
	order := make([]int32, len(b.slots))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		one, other := &b.slots[i], &b.slots[j]
		return cmp.Or(cmp.Compare(series[one.series], series[other.series]), cmp.Compare(one.at, other.at))
	})
	return order
}

// readAtOnce reads ids and samples from PostgreSQL with one statement. What addAll has written is not what was there.
func (b *batch) readAtOnce(ctx context.Context, tx *sql.Tx, series []int64, found func(int32, *stored)) error {
	var keys, of, at array
	for _, s := range b.series {
		keys.bytes(seriesKey(s))
	}
	for i := range b.slots {
		of.int(int64(b.slots[i].series + 1))
		at.int(b.slots[i].at)
	}
	return each(ctx, tx, func(rows *sql.Rows) error {
		var slot, number int32
		var id int64
		var own bool
		var r stored
		if err := rows.Scan(append([]any{&slot, &number, &id, &own}, r.scan()...)...); err != nil {
			return err
		}
		switch {
		case slot == 0:
			series[number-1] = id
		case own:
			b.slots[slot-1].own = true
		default:
			found(slot-1, &r)
		}
		return nil
	}, `WITH `+seriesIDs("$1")+`
		SELECT 0, r.n, r.id, false, 0, 0, 0, 0, NULL, NULL FROM r
		UNION ALL
		SELECT i.slot, 0, 0, s.writer = txid_current() % 4294967296, `+storedColumns+`
		FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS i (n, at, slot) JOIN r ON r.n = i.n
		CROSS JOIN LATERAL (SELECT *, xmin::text::bigint AS writer FROM labhealth_samples WHERE series_id = r.id AND at = i.at LIMIT 1) AS s`,
		keys.String(), of.String(), at.String())
}

// addSeries makes those series in PostgreSQL that have no id. Nobody else can: their users are locked.
func addSeries(ctx context.Context, tx *sql.Tx, series []webhooks.Series, ids []int64) error {
	numbers := map[string]int{}
	var keys, users, resources, providers, types array
	for i, of := range series {
		if ids[i] == 0 {
			key := seriesKey(of)
			numbers[string(key)] = i
			keys.bytes(key)
			users.text(of.UserID.String())
			resources.text(escape(of.Resource))
			providers.text(escape(of.Provider))
			types.text(escape(of.SourceType))
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	return each(ctx, tx, func(rows *sql.Rows) error {
		var key []byte
		var id int64
		if err := rows.Scan(&key, &id); err != nil {
			return err
		}
		ids[numbers[string(key)]] = id
		return nil
	}, `INSERT INTO labhealth_series (key, user_id, resource, provider, source_type)
		SELECT * FROM unnest($1::bytea[], $2::uuid[], $3::text[], $4::text[], $5::text[])
		RETURNING key, id`, keys.String(), users.String(), resources.String(), providers.String(), types.String())
}

// findSeries finds or makes series in SQLite.
func findSeries(ctx context.Context, tx *sql.Tx, series []webhooks.Series, ids []int64) error {
	for i, of := range series {
		key := seriesKey(of)
		err := tx.QueryRowContext(ctx, `SELECT id FROM labhealth_series WHERE key = ?`, key).Scan(&ids[i])
		if errors.Is(err, sql.ErrNoRows) {
			err = tx.QueryRowContext(ctx, `INSERT INTO labhealth_series (key, user_id, resource, provider, source_type)
				VALUES (?, ?, ?, ?, ?) RETURNING id`,
				key, of.UserID.String(), escape(of.Resource), escape(of.Provider), escape(of.SourceType)).Scan(&ids[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inChunk is how many samples SQLite reads or writes with one statement.
const inChunk = 32

// readInChunks reads samples from SQLite.
func (b *batch) readInChunks(ctx context.Context, tx *sql.Tx, series []int64, found func(int32, *stored)) error {
	if len(b.slots) == 0 {
		return nil
	}
	statement, err := tx.PrepareContext(ctx, `SELECT `+storedColumns+` FROM labhealth_samples AS s
		WHERE s.series_id = ? AND s.at IN (?`+strings.Repeat(", ?", inChunk-1)+`)`)
	if err != nil {
		return err
	}
	defer statement.Close()
	args := make([]any, 1+inChunk)
	for rest := b.sorted(series); len(rest) > 0; {
		of := b.slots[rest[0]].series
		n := 1
		for n < len(rest) && n < inChunk && b.slots[rest[n]].series == of {
			n++
		}
		args[0] = series[of]
		for k := range inChunk {
			args[1+k] = b.slots[rest[min(k, n-1)]].at
		}
		rows, err := statement.QueryContext(ctx, args...)
		if err != nil {
			return err
		}
		err = scanEach(rows, func(rows *sql.Rows) error {
			var r stored
			if err := rows.Scan(r.scan()...); err != nil {
				return err
			}
			k, ok := slices.BinarySearchFunc(rest[:n], r.at, func(i int32, at int64) int { return cmp.Compare(b.slots[i].at, at) })
			if ok {
				found(rest[k], &r)
			}
			return nil
		})
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// writeSamples writes slots in ascending order of their keys.
func (s *Store) writeSamples(ctx context.Context, tx *sql.Tx, b *batch, series []int64) error {
	order := slices.DeleteFunc(b.sorted(series), func(i int32) bool { return !b.slots[i].dirty || b.slots[i].own })
	if len(order) == 0 {
		return nil
	}
	const columns = `INSERT INTO labhealth_samples AS s (series_id, at, version, value, shape_id, seconds, text) `
	const newestWins = ` ON CONFLICT (series_id, at) DO UPDATE SET version = excluded.version, value = excluded.value,
		shape_id = excluded.shape_id, seconds = excluded.seconds, text = excluded.text WHERE excluded.version >= s.version`
	if s.dialect == SQLite {
		const row = `(?, ?, ?, ?, ?, ?, ?)`
		write := func(statement *sql.Stmt, rows []int32) error {
			args := make([]any, 0, 7*inChunk)
			for _, i := range rows {
				slot := &b.slots[i]
				var seconds, text any
				if slot.content.shape.seconds == itsOwn {
					seconds = slot.content.seconds
				}
				if slot.content.text != "" {
					text = slot.content.text
				}
				args = append(args, series[slot.series], slot.at, slot.version, slot.content.value, b.shapeID(&slot.content), seconds, text)
			}
			_, err := statement.ExecContext(ctx, args...)
			return err
		}
		for len(order) > 0 {
			rows := min(len(order), inChunk)
			statement, err := tx.PrepareContext(ctx, columns+`VALUES `+row+strings.Repeat(", "+row, rows-1)+newestWins)
			if err != nil {
				return err
			}
			defer statement.Close()
			for ; len(order) >= rows; order = order[rows:] {
				if err := write(statement, order[:rows]); err != nil {
					return err
				}
				if len(order) == rows {
					return nil
				}
			}
		}
		return nil
	}
	_, err := tx.ExecContext(ctx, columns+`SELECT * FROM `+unnested+newestWins, b.arrays(order, series)...)
	return err
}

// unnested is what arrays returns, as rows.
const unnested = `unnest($1::integer[], $2::bigint[], $3::bigint[], $4::double precision[], $5::integer[], $6::integer[], $7::text[])`

// arrays returns slots in columns for PostgreSQL.
func (b *batch) arrays(order []int32, series []int64) []any {
	var of, at, versions, values, shapes, seconds, texts array
	someSeconds, someText := false, false
	for _, i := range order {
		someSeconds = someSeconds || b.slots[i].content.shape.seconds == itsOwn
		someText = someText || b.slots[i].content.text != ""
	}
	for _, i := range order {
		slot := &b.slots[i]
		of.int(series[slot.series])
		at.int(slot.at)
		versions.int(slot.version)
		values.float(slot.content.value)
		shapes.int(int64(b.shapeID(&slot.content)))
		switch { // unnest fills an array that is shorter than the others with NULL
		case slot.content.shape.seconds == itsOwn:
			seconds.int(int64(slot.content.seconds))
		case someSeconds:
			seconds.null()
		}
		switch {
		case slot.content.text != "":
			texts.text(slot.content.text)
		case someText:
			texts.null()
		}
	}
	return []any{of.String(), at.String(), versions.String(), values.String(), shapes.String(), seconds.String(), texts.String()}
}

// addAll writes to PostgreSQL those samples that are new and whose series is not, and reports whether these are all.
func (b *batch) addAll(ctx context.Context, tx *sql.Tx) (all bool, err error) {
	var keys array
	numbers := make([]int64, len(b.series))
	for i, of := range b.series {
		keys.bytes(seriesKey(of))
		numbers[i] = int64(i + 1)
	}
	order := make([]int32, len(b.slots)) // any: the ids are not known yet
	for i := range order {
		order[i] = int32(i)
	}
	result, err := tx.ExecContext(ctx, `WITH `+seriesIDs("$8")+`
		INSERT INTO labhealth_samples (series_id, at, version, value, shape_id, seconds, text)
		SELECT r.id, i.at, i.version, i.value, i.shape_id, i.seconds, i.text
		FROM `+unnested+` AS i (n, at, version, value, shape_id, seconds, text) JOIN r ON r.n = i.n
		ORDER BY r.id, i.at ON CONFLICT (series_id, at) DO NOTHING`, append(b.arrays(order, numbers), keys.String())...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == int64(len(b.slots)), err
}

// seriesIDs is a part of a statement for PostgreSQL: r are the ids of the series whose keys are in an array, numbered from 1. LIMIT
// has every key looked up in the index: the planner, which knows little of tables that are new, would else read them as a whole.
func seriesIDs(keys string) string {
	return `r AS MATERIALIZED (SELECT k.n, r.id FROM unnest(` + keys + `::bytea[]) WITH ORDINALITY AS k (key, n)
		CROSS JOIN LATERAL (SELECT id FROM labhealth_series WHERE key = k.key LIMIT 1) AS r)`
}

func (s *Store) readSummaries(ctx context.Context, tx *sql.Tx, slots []summarySlot, series []int64) error {
	if len(slots) == 0 {
		return nil
	}
	if s.dialect == SQLite {
		for i := range slots {
			slot := &slots[i]
			err := tx.QueryRowContext(ctx, `SELECT version, text FROM labhealth_summaries WHERE series_id = ? AND id = ?`,
				series[slot.series], slot.id.String()).Scan(&slot.version, &slot.text)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			slot.found = err == nil
		}
		return nil
	}
	var of, ids array
	for i := range slots {
		of.int(series[slots[i].series])
		ids.text(slots[i].id.String())
	}
	return each(ctx, tx, func(rows *sql.Rows) error {
		var n int
		var version int64
		var text string
		if err := rows.Scan(&n, &version, &text); err != nil {
			return err
		}
		slot := &slots[n-1]
		slot.found, slot.version, slot.text = true, version, text
		return nil
	}, `SELECT i.n, s.version, s.text FROM unnest($1::integer[], $2::uuid[]) WITH ORDINALITY AS i (series_id, id, n)
		CROSS JOIN LATERAL (SELECT * FROM labhealth_summaries WHERE series_id = i.series_id AND id = i.id LIMIT 1) AS s`, of.String(), ids.String())
}

func (s *Store) writeSummaries(ctx context.Context, tx *sql.Tx, slots []summarySlot, series []int64) error {
	const columns = `INSERT INTO labhealth_summaries AS s (series_id, id, version, text) `
	const newestWins = ` ON CONFLICT (series_id, id) DO UPDATE SET version = excluded.version, text = excluded.text
		WHERE excluded.version >= s.version`
	var of, ids, versions, texts array
	for i := range slots {
		slot := &slots[i]
		switch {
		case !slot.dirty:
		case s.dialect == SQLite:
			_, err := tx.ExecContext(ctx, columns+`VALUES (?, ?, ?, ?)`+newestWins, series[slot.series], slot.id.String(), slot.version, slot.text)
			if err != nil {
				return err
			}
		default:
			of.int(series[slot.series])
			ids.text(slot.id.String())
			versions.int(slot.version)
			texts.text(slot.text)
		}
	}
	if len(of) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, columns+`SELECT * FROM unnest($1::integer[], $2::uuid[], $3::bigint[], $4::text[])`+newestWins,
		of.String(), ids.String(), versions.String(), texts.String())
	return err
}
