// The statements of users, series, shapes, samples and summaries.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// userKey identifies the row that locks a user.
type userKey struct {
	slot int
	id   string
}

func keyOf(id uuid.UUID) userKey { return userKey{Slot(id), id.String()} }

func compareUsers(a, b userKey) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.id, b.id))
}

// lockUsers locks the data of users, which are in ascending order, until tx ends.
func (s *Store) lockUsers(ctx context.Context, tx *sql.Tx, users []userKey) error {
	// An existing row is locked although it is not updated.
	_, err := s.exec(ctx, tx, `INSERT INTO labhealth_users (slot, user_id) SELECT {slot}, k.user_id FROM {k: slot smallint, user_id uuid} WHERE {here}
		ORDER BY 1, 2 ON CONFLICT (slot, user_id) DO UPDATE SET user_id = excluded.user_id WHERE false`,
		rowList{len(users), func(i int) []any { return []any{users[i].slot, users[i].id} }})
	return err
}

// storedSeries is a series in the database, with the shapes of its samples.
type storedSeries struct {
	slot    int
	number  int64 // 0 if there is none
	shapes  []storedShape
	isFirst bool // the sample to look at is stored
	first   sampleRow
}

type storedShape struct {
	shape
	number int64
}

// maxShapes is the number of shapes that a series can have. Samples in others are stored as JSON.
const maxShapes = 255

// findSeries returns the stored series with these keys, which are in ascending order of their
// slots, each with its sample at a time, if at is not nil and has one.
func (s *Store) findSeries(ctx context.Context, q queryer, keys []webhooks.Series, at []sql.Null[int64]) ([]storedSeries, error) {
	found := make([]storedSeries, len(keys))
	if at == nil {
		at = make([]sql.Null[int64], len(keys))
	}
	for i := range keys {
		found[i].slot = Slot(keys[i].UserID)
	}
	for rest := found; len(rest) > 0; {
		n := len(rest)
		for s.OneSlot && rest[0].slot != rest[n-1].slot { // each slot in a statement of its own
			n--
		}
		if err := s.readSeries(ctx, q, keys[:n], at[:n], rest[:n]); err != nil {
			return nil, err
		}
		keys, at, rest = keys[n:], at[n:], rest[n:]
	}
	return found, nil
}

func (s *Store) readSeries(ctx context.Context, q queryer, keys []webhooks.Series, at []sql.Null[int64], found []storedSeries) error {
	var n int
	var series int64
	var number, seconds, offset, east, time sql.Null[int64]
	var hasValue sql.NullBool
	var typ, unit sql.Null[string]
	var first sampleRow
	return s.query(ctx, q, func(rows *sql.Rows) error {
		if err := rows.Scan(&n, &series, &number, &seconds, &hasValue, &offset, &east, &typ, &unit,
			&time, &first.version, &first.value, &first.shape, &first.seconds, &first.document); err != nil {
			return err
		}
		of := &found[n-1]
		of.number, of.isFirst, of.first = series, time.Valid, first
		if !number.Valid {
			return nil
		}
		sh := shape{Shape: newest.Shape{
			HasValue: hasValue.Bool, HasTimezoneOffset: offset.Valid, TimezoneOffset: int32(offset.V), East: int32(east.V),
			Type: unescape(typ.V), Unit: unescape(unit.V),
		}}
		if seconds.Valid {
			sh.Form, sh.seconds = newest.Interval, int32(seconds.V)
		}
		of.shapes = append(of.shapes, storedShape{sh, number.V})
		return nil
	}, `SELECT k.n, r.series, f.shape, f.seconds, f.has_value, f.timezone_offset, f.east, f.type, f.unit,
			s.at, coalesce(s.version, 0), coalesce(s.value, 0), coalesce(s.shape, 0), s.seconds, s.text
		FROM {k: slot smallint, user_id uuid, key bytea, at bigint}
		{find r: series | labhealth_series | r.slot = {slot} AND r.user_id = k.user_id AND r.key = k.key}
		{left s: * | labhealth_samples | s.slot = {slot} AND s.series = r.series AND s.at = k.at}
		{left f: * | labhealth_shapes | f.slot = {slot} AND f.series = r.series}`,
		rowList{len(keys), func(i int) []any { return []any{found[i].slot, keys[i].UserID, seriesKey(keys[i]), at[i]} }})
}

// sampleRow is a row of labhealth_samples without its series.
type sampleRow struct {
	at, version int64
	value       float64
	shape       int64
	seconds     sql.NullInt32
	document    sql.NullString
}

const sampleColumns = `s.at, s.version, s.value, s.shape, s.seconds, s.text`

// scan returns the destinations of sampleColumns.
func (r *sampleRow) scan() []any {
	return []any{&r.at, &r.version, &r.value, &r.shape, &r.seconds, &r.document}
}

// content returns the content of a row of a series. It reports whether the series has its shape.
func (r *sampleRow) content(of *storedSeries) (c content, ok bool) {
	if r.document.Valid {
		return content{document: r.document.String}, true
	}
	n := slices.IndexFunc(of.shapes, func(sh storedShape) bool { return sh.number == r.shape })
	if n < 0 {
		return content{}, false
	}
	return content{value: r.value, seconds: r.seconds.Int32, shape: of.shapes[n].shape}, true
}

var errNoShape = errors.New("sqlstore: a sample has a shape that is not in labhealth_shapes")

// readWearables reads what is stored of a batch, whose users are locked: the first sample of each
// series with the series.
func (s *Store) readWearables(ctx context.Context, tx *sql.Tx, b *batch) (err error) {
	at, first := make([]sql.Null[int64], len(b.series)), make([]int32, len(b.series))
	var samples, summaries []int32 // further ones, then those of series that are stored
	for i := range b.sampleSlots {
		if slot := &b.sampleSlots[i]; at[slot.series].Valid {
			samples = append(samples, int32(i))
		} else {
			at[slot.series], first[slot.series] = sql.Null[int64]{V: slot.at, Valid: true}, int32(i)
		}
	}
	if b.stored, err = s.findSeries(ctx, tx, b.series, at); err != nil {
		return err
	}
	for i := range b.stored {
		if of := &b.stored[i]; of.isFirst {
			if err := b.read(first[i], &of.first); err != nil {
				return err
			}
		}
	}
	samples = slices.DeleteFunc(samples, func(i int32) bool { return b.stored[b.sampleSlots[i].series].number == 0 })
	for i := range b.summarySlots {
		if b.stored[b.summarySlots[i].series].number != 0 {
			summaries = append(summaries, int32(i))
		}
	}
	var n int
	var row sampleRow
	columns := append([]any{&n}, row.scan()...)
	err = s.query(ctx, tx, func(rows *sql.Rows) error {
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		return b.read(samples[n-1], &row)
	}, `SELECT k.n, `+sampleColumns+` FROM {k: slot smallint, series integer, at bigint}
		{find s: * | labhealth_samples | s.slot = {slot} AND s.series = k.series AND s.at = k.at}`,
		rowList{len(samples), func(i int) []any {
			slot := &b.sampleSlots[samples[i]]
			of := &b.stored[slot.series]
			return []any{of.slot, of.number, slot.at}
		}})
	if err != nil {
		return err
	}
	return s.query(ctx, tx, func(rows *sql.Rows) error {
		var n int
		var version int64
		var document string
		if err := rows.Scan(&n, &version, &document); err != nil {
			return err
		}
		slot := &b.summarySlots[summaries[n-1]]
		slot.found, slot.version, slot.content = true, version, document
		return nil
	}, `SELECT k.n, s.version, s.text FROM {k: slot smallint, series integer, id uuid}
		{find s: * | labhealth_summaries | s.slot = {slot} AND s.series = k.series AND s.id = k.id}`,
		rowList{len(summaries), func(i int) []any {
			slot := &b.summarySlots[summaries[i]]
			of := &b.stored[slot.series]
			return []any{of.slot, of.number, slot.id}
		}})
}

// read stores a row in its slot.
func (b *batch) read(i int32, row *sampleRow) error {
	slot := &b.sampleSlots[i]
	c, ok := row.content(&b.stored[slot.series])
	if !ok {
		return errNoShape
	}
	slot.found, slot.stored, slot.version, slot.content = true, true, row.version, c
	return nil
}

// writeWearables writes what has changed of a batch. A newer version is never overwritten,
// regardless of earlier reads.
func (s *Store) writeWearables(ctx context.Context, tx *sql.Tx, b *batch) error {
	if err := s.addSeries(ctx, tx, b); err != nil {
		return err
	}
	if err := s.addShapes(ctx, tx, b); err != nil {
		return err
	}
	added, changed := b.written()
	// Without ON CONFLICT, which writes a second record to the WAL for each row that is new.
	_, err := s.exec(ctx, tx, insertSamples, b.sampleRows(added))
	if sqlState(err) == uniqueViolation { // a program that does not lock users was faster
		return conflictOf{err}
	}
	if err != nil {
		return err
	}
	if _, err := s.exec(ctx, tx, insertSamples+updateSamples, b.sampleRows(changed)); err != nil {
		return err
	}
	var dirty []*summarySlot
	for i := range b.summarySlots {
		if b.summarySlots[i].dirty {
			dirty = append(dirty, &b.summarySlots[i])
		}
	}
	_, err = s.exec(ctx, tx, `INSERT INTO labhealth_summaries AS s (slot, series, id, version, text)
		SELECT {slot}, k.series, k.id, k.version, k.text FROM {k: slot smallint, series integer, id uuid, version bigint, text text} WHERE {here}
		ON CONFLICT (slot, series, id) DO UPDATE SET version = excluded.version, text = excluded.text WHERE excluded.version >= s.version`,
		rowList{len(dirty), func(i int) []any {
			of := &b.stored[dirty[i].series]
			return []any{of.slot, of.number, dirty[i].id, dirty[i].version, dirty[i].content}
		}})
	return err
}

const (
	insertSamples = `INSERT INTO labhealth_samples AS s (slot, series, at, version, value, shape, seconds, text)
		SELECT {slot}, k.series, k.at, k.version, k.value, k.shape, k.seconds, k.text
		FROM {k: slot smallint, series integer, at bigint, version bigint, value double precision, shape smallint, seconds integer, text text} WHERE {here}`
	updateSamples = ` ON CONFLICT (slot, series, at) DO UPDATE SET version = excluded.version, value = excluded.value,
		shape = excluded.shape, seconds = excluded.seconds, text = excluded.text WHERE excluded.version >= s.version`
)

// sampleRows returns slots as rows.
func (b *batch) sampleRows(slots []int32) rowList {
	return rowList{len(slots), func(i int) []any {
		slot := &b.sampleSlots[slots[i]]
		of, c := &b.stored[slot.series], &slot.content
		row := []any{of.slot, of.number, slot.at, slot.version, c.value, slot.shape, nil, nil}
		if c.shape.seconds == perSample {
			row[6] = int64(c.seconds)
		}
		if c.document != "" {
			row[7] = c.document
		}
		return row
	}}
}

// addSeries creates the series of a batch that are not stored. No other transaction can: their
// users are locked. The counters of the slots are locked in ascending order.
func (s *Store) addSeries(ctx context.Context, tx *sql.Tx, b *batch) error {
	var added []int
	counts, last := map[int]int64{}, map[int]int64{}
	for i := range b.stored {
		if b.stored[i].number == 0 {
			added = append(added, i)
			counts[b.stored[i].slot]++
		}
	}
	if len(added) == 0 {
		return nil
	}
	slots := slices.Sorted(maps.Keys(counts))
	err := s.query(ctx, tx, func(rows *sql.Rows) error {
		var slot int
		var series int64
		err := rows.Scan(&slot, &series)
		last[slot] = series
		return err
	}, `INSERT INTO labhealth_slots AS s (slot, series) SELECT {slot}, k.series FROM {k: slot smallint, series integer} WHERE {here} ORDER BY 1
		ON CONFLICT (slot) DO UPDATE SET series = s.series + excluded.series RETURNING slot, series`,
		rowList{len(slots), func(i int) []any { return []any{slots[i], counts[slots[i]]} }})
	if err != nil {
		return err
	}
	for _, i := range added {
		of := &b.stored[i]
		counts[of.slot]--
		of.number = last[of.slot] - counts[of.slot]
	}
	_, err = s.exec(ctx, tx, `INSERT INTO labhealth_series (slot, user_id, key, series, resource, provider, source_type)
		SELECT {slot}, k.user_id, k.key, k.series, k.resource, k.provider, k.source_type
		FROM {k: slot smallint, user_id uuid, key bytea, series integer, resource text, provider text, source_type text} WHERE {here}`,
		rowList{len(added), func(i int) []any {
			of, stored := &b.series[added[i]], &b.stored[added[i]]
			return []any{stored.slot, of.UserID, seriesKey(*of), stored.number, escape(of.Resource), escape(of.Provider), escape(of.SourceType)}
		}})
	return err
}

// addShapes numbers the shapes of the samples that are written, and stores those that their series
// do not have.
func (s *Store) addShapes(ctx context.Context, tx *sql.Tx, b *batch) error {
	added := b.numberShapes()
	_, err := s.exec(ctx, tx, `INSERT INTO labhealth_shapes (slot, series, shape, seconds, has_value, timezone_offset, east, type, unit)
		SELECT {slot}, k.series, k.shape, k.seconds, k.has_value, k.timezone_offset, k.east, k.type, k.unit
		FROM {k: slot smallint, series integer, shape smallint, seconds integer, has_value boolean, timezone_offset integer, east integer, type text, unit text}
		WHERE {here}`, rowList{len(added), func(i int) []any {
		of, sh := &b.stored[added[i].series], &added[i].shape
		seconds := sql.NullInt32{Int32: sh.seconds, Valid: sh.Form == newest.Interval}
		offset := sql.NullInt32{Int32: sh.TimezoneOffset, Valid: sh.HasTimezoneOffset}
		return []any{of.slot, of.number, added[i].number, seconds, sh.HasValue, offset, int64(sh.East), escape(sh.Type), escape(sh.Unit)}
	}})
	return err
}

// seriesShape is a shape of a series of a batch.
type seriesShape struct {
	storedShape
	series int32
}

// numberShapes sets the shapes of the sample slots to write, and returns those that are new.
func (b *batch) numberShapes() (added []seriesShape) {
	for i := range b.sampleSlots {
		slot := &b.sampleSlots[i]
		slot.shape = 0
		if !slot.dirty || slot.content.document != "" {
			continue
		}
		of := &b.stored[slot.series]
		n := slices.IndexFunc(of.shapes, func(sh storedShape) bool { return sh.shape == slot.content.shape })
		switch {
		case n >= 0:
			slot.shape = of.shapes[n].number
		case len(of.shapes) >= maxShapes:
			slot.content = content{document: slot.content.json(slot.at)}
		default:
			slot.shape = int64(len(of.shapes)) + 1
			sh := storedShape{slot.content.shape, slot.shape}
			of.shapes, added = append(of.shapes, sh), append(added, seriesShape{sh, slot.series})
		}
	}
	return added
}

// written returns the indexes of the sample slots that are added and changed, in the order of their
// keys.
func (b *batch) written() (added, changed []int32) {
	for i := range b.sampleSlots {
		switch slot := &b.sampleSlots[i]; {
		case !slot.dirty:
		case slot.stored:
			changed = append(changed, int32(i))
		default:
			added = append(added, int32(i))
		}
	}
	for _, slots := range [][]int32{added, changed} {
		slices.SortFunc(slots, func(i, j int32) int {
			x, y := &b.sampleSlots[i], &b.sampleSlots[j]
			a, c := &b.stored[x.series], &b.stored[y.series]
			return cmp.Or(cmp.Compare(a.slot, c.slot), cmp.Compare(a.number, c.number), cmp.Compare(x.at, y.at))
		})
	}
	return added, changed
}
