package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// shapeCache caches labhealth_shapes. No row of it is ever changed or removed, so committed rows
// stay valid, unless the database loses committed data: see dialect.hasShapes.
type shapeCache struct {
	mu     sync.RWMutex
	ids    map[shape]int32
	shapes map[int32]shape
}

func (c *shapeCache) add(ids map[shape]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids, c.shapes = map[shape]int32{}, map[int32]shape{}
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

func (c *shapeCache) get(id int32) (shape, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	sh, ok := c.shapes[id]
	return sh, ok
}

// fill sets the shape IDs of a batch and returns the shapes that are not cached.
func (c *shapeCache) fill(b *batch) (missing []shape) {
	b.shapeIDs = map[shape]int32{}
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
func (s *Store) findShape(ctx context.Context, tx *sql.Tx, sh shape) (id int32, err error) {
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
	return id, err
}

var errNoShape = errors.New("sqlstore: a sample has a shape that is not in labhealth_shapes")

// shape returns the shape with an ID.
func (s *Store) shape(ctx context.Context, q queryer, id int32) (shape, error) {
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
	s.shapes.add(map[shape]int32{sh: id})
	return sh, nil
}
