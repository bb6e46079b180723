package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// A shape is deleted when no series has it any more: see deleteShapes. Series have all shapes that
// their samples ever had, in labhealth_shape_series and, for a writer, which reads the series
// anyway, in labhealth_series.shapes. Both change with the lock of the user of the series. So a
// sample in a shape that its series has needs no further check; for a new shape of a series,
// useShapes excludes those who delete.

// shapeCache caches labhealth_shapes. No row of it is ever changed, and no ID is used again after a
// row was deleted, unless the database loses committed data: see dialect.hasShapes.
type shapeCache struct {
	mu     sync.RWMutex
	ids    map[shape]int64
	shapes map[int64]shape
}

func (c *shapeCache) add(ids map[shape]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids, c.shapes = map[shape]int64{}, map[int64]shape{}
	}
	for sh, id := range ids {
		c.ids[sh], c.shapes[id] = id, sh
	}
}

func (c *shapeCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids, c.shapes = nil, nil
}

func (c *shapeCache) get(id int64) (shape, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	sh, ok := c.shapes[id]
	return sh, ok
}

// fill sets the shape IDs of a batch and returns the shapes that are not cached.
func (c *shapeCache) fill(b *batch) (missing []shape) {
	b.shapeIDs = map[shape]int64{}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var last shape
	for i := range b.samples {
		of := &b.samples[i].content
		if of.document != "" || i > 0 && of.shape == last {
			continue
		}
		last = of.shape
		if _, ok := b.shapeIDs[last]; ok {
			continue
		}
		b.shapeIDs[last] = c.ids[last]
		if b.shapeIDs[last] == 0 {
			missing = append(missing, last)
		}
	}
	return missing
}

// findShapes sets the shape IDs of a batch. It writes new shapes in ascending order of their keys,
// before it locks anything: a transaction that writes one of them waits for this one, but this one
// never waits for a transaction that waits.
func (s *Store) findShapes(ctx context.Context, tx *sql.Tx, b *batch) error {
	missing := s.shapes.fill(b)
	valid, err := s.dialect.hasShapes(ctx, tx, b.shapeIDs)
	if err != nil {
		return err
	}
	if !valid {
		s.shapes.clear()
		missing = slices.Collect(maps.Keys(b.shapeIDs))
	}
	slices.SortFunc(missing, func(a, b shape) int { return bytes.Compare(a.key(), b.key()) })
	for _, sh := range missing {
		if b.shapeIDs[sh], err = s.findShape(ctx, tx, sh); err != nil {
			return err
		}
	}
	return nil
}

// findShape returns the ID of a shape, and creates it if there is none.
func (s *Store) findShape(ctx context.Context, tx *sql.Tx, sh shape) (id int64, err error) {
	find := s.dialect.bind(`SELECT id FROM labhealth_shapes WHERE key = ?`)
	err = tx.QueryRowContext(ctx, find, sh.key()).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	_, err = tx.ExecContext(ctx, s.dialect.bind(`INSERT INTO labhealth_shapes
		(key, seconds, has_value, timezone_offset, east, type, unit) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`),
		sh.key(), sql.NullInt32{Int32: sh.seconds, Valid: sh.Form == newest.Interval}, sh.HasValue,
		sql.NullInt32{Int32: sh.TimezoneOffset, Valid: sh.HasTimezoneOffset},
		sh.East, escape(sh.Type), escape(sh.Unit))
	if err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, find, sh.key()).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = errShapeDeleted
	}
	return id, err
}

// seriesShape is a row of labhealth_shape_series.
type seriesShape struct{ seriesID, shapeID int64 }

// errShapeDeleted is a conflict with a transaction that deleted a shape.
var errShapeDeleted = errors.New("sqlstore: a shape was deleted")

// useShapes stores which shapes of the batch its series did not have. The users are locked.
func (s *Store) useShapes(ctx context.Context, tx *sql.Tx, b *batch) error {
	pairs := b.newShapes()
	if len(pairs) == 0 {
		return nil
	}
	if err := s.dialect.lockShapes(ctx, tx, true); err != nil {
		return err
	}
	// They may have been deleted since findShapes.
	valid, err := s.dialect.hasShapes(ctx, tx, b.shapeIDs)
	if err == nil && !valid {
		s.shapes.clear()
		err = errShapeDeleted
	}
	if err != nil {
		return err
	}
	return s.dialect.addShapes(ctx, tx, pairs)
}

// newShapes returns the shapes that series of the batch do not have. Those of versions that are not
// stored are included, because findShapes has written them.
func (b *batch) newShapes() (pairs []seriesShape) {
	type pair struct {
		series int32
		shape  int64
	}
	seen := map[pair]bool{}
	var last pair
	for i := range b.samples {
		r := &b.samples[i]
		p := pair{b.sampleSlots[r.slot].series, b.shapeID(&r.content)}
		if p.shape == 0 || p == last || seen[p] {
			continue
		}
		last, seen[p] = p, true
		if !slices.Contains(shapeList(b.seriesShapes[p.series]), p.shape) {
			pairs = append(pairs, seriesShape{b.seriesIDs[p.series], p.shape})
		}
	}
	slices.SortFunc(pairs, func(a, b seriesShape) int {
		return cmp.Or(cmp.Compare(a.shapeID, b.shapeID), cmp.Compare(a.seriesID, b.seriesID))
	})
	return pairs
}

// shapeList returns the IDs in a column shapes.
func shapeList(text string) (ids []int64) {
	for field := range strings.SplitSeq(strings.Trim(text, "{}"), ",") {
		if id, err := strconv.ParseInt(field, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// shapesOf returns the shapes of the series of a user, which is locked.
func (s *Store) shapesOf(ctx context.Context, tx *sql.Tx, user string) (pairs []seriesShape, err error) {
	err = query(ctx, tx, func(rows *sql.Rows) error {
		var id int64
		var shapes string
		err := rows.Scan(&id, &shapes)
		for _, shapeID := range shapeList(shapes) {
			pairs = append(pairs, seriesShape{id, shapeID})
		}
		return err
	}, s.dialect.bind(`SELECT id, CAST(shapes AS text) FROM labhealth_series WHERE user_id = ?`), user)
	return pairs, err
}

// deleteShapes deletes the shapes of deleted series that no other series has.
func (s *Store) deleteShapes(ctx context.Context, tx *sql.Tx, pairs []seriesShape) error {
	if len(pairs) == 0 {
		return nil
	}
	if err := s.dialect.lockShapes(ctx, tx, false); err != nil {
		return err
	}
	unused := map[int64]bool{}
	for _, p := range pairs {
		unused[p.shapeID] = true
		_, err := tx.ExecContext(ctx, s.dialect.bind(`DELETE FROM labhealth_shape_series WHERE shape_id = ? AND series_id = ?`), p.shapeID, p.seriesID)
		if err != nil {
			return err
		}
	}
	for id := range unused {
		_, err := tx.ExecContext(ctx, s.dialect.bind(`DELETE FROM labhealth_shapes
			WHERE id = ? AND NOT EXISTS (SELECT 1 FROM labhealth_shape_series WHERE shape_id = ?)`), id, id)
		if err != nil {
			return err
		}
	}
	return nil
}

var errNoShape = errors.New("sqlstore: a sample has a shape that is not in labhealth_shapes")

// shape returns the shape with an ID.
func (s *Store) shape(ctx context.Context, q queryer, id int64) (shape, error) {
	sh, ok := s.shapes.get(id)
	if ok {
		return sh, nil
	}
	found := false
	err := query(ctx, q, func(rows *sql.Rows) error {
		var seconds, offset sql.NullInt32
		if err := rows.Scan(&seconds, &sh.HasValue, &offset, &sh.East, &sh.Type, &sh.Unit); err != nil {
			return err
		}
		if seconds.Valid {
			sh.Form, sh.seconds = newest.Interval, seconds.Int32
		}
		sh.HasTimezoneOffset, sh.TimezoneOffset = offset.Valid, offset.Int32
		sh.Type, sh.Unit = unescape(sh.Type), unescape(sh.Unit)
		found = true
		return nil
	}, s.dialect.bind(`SELECT seconds, has_value, timezone_offset, east, type, unit FROM labhealth_shapes WHERE id = ?`), id)
	switch {
	case err != nil:
		return shape{}, err
	case !found:
		return shape{}, errNoShape
	}
	s.shapes.add(map[shape]int64{sh: id})
	return sh, nil
}
