package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"sync"
)

// shapes is what a store knows of labhealth_shapes, from which no row is ever removed: what was committed once stays true, unless the
// database loses what it has committed. See areThere.
type shapes struct {
	mu      sync.RWMutex
	numbers map[shape]int32
	shapes  map[int32]shape
}

func (s *shapes) keep(numbers map[shape]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.numbers == nil {
		s.numbers, s.shapes = map[shape]int32{}, map[int32]shape{}
	}
	for sh, n := range numbers {
		s.numbers[sh], s.shapes[n] = n, sh
	}
}

func (s *shapes) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers, s.shapes = nil, nil
}

// areThere asks PostgreSQL whether shapes still have the numbers that the store remembers. If a standby took over that was behind, they
// may be nobody's, or another's: a sample would get the unit of that one.
func areThere(ctx context.Context, tx *sql.Tx, numbers map[shape]int32) (bool, error) {
	var ids, keys array
	want, got := 0, 0
	for sh, n := range numbers {
		if n != 0 {
			want++
			ids.int(int64(n))
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

// number gives numbers to the shapes of a batch. New ones are written in ascending order of their keys, before anything is
// locked: another transaction that writes one of them too waits for this one, and this one for none that waits.
func (s *Store) number(ctx context.Context, tx *sql.Tx, b *batch) error {
	b.shapeIDs = map[shape]int32{}
	var unknown []shape
	s.shapes.mu.RLock()
	var last shape
	for i := range b.samples {
		c := &b.samples[i].content
		if c.text != "" || i > 0 && c.shape == last {
			continue
		}
		last = c.shape
		if _, ok := b.shapeIDs[last]; ok {
			continue
		}
		b.shapeIDs[last] = s.shapes.numbers[last]
		if b.shapeIDs[last] == 0 {
			unknown = append(unknown, last)
		}
	}
	s.shapes.mu.RUnlock()
	if s.dialect == PostgreSQL {
		there, err := areThere(ctx, tx, b.shapeIDs)
		if err != nil {
			return err
		}
		if !there {
			s.shapes.forget()
			unknown = slices.Collect(maps.Keys(b.shapeIDs))
		}
	}
	slices.SortFunc(unknown, func(a, b shape) int { return bytes.Compare(a.key(), b.key()) })
	find := s.sql(`SELECT id FROM labhealth_shapes WHERE key = ?`)
	insert := s.sql(`INSERT INTO labhealth_shapes (key, seconds, has_value, timezone_offset, east, type, unit) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO NOTHING`)
	for _, sh := range unknown {
		var id int32
		err := tx.QueryRowContext(ctx, find, sh.key()).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = tx.ExecContext(ctx, insert, sh.key(), sql.NullInt32{Int32: sh.seconds, Valid: sh.interval}, sh.hasValue,
				sql.NullInt32{Int32: sh.offset, Valid: sh.hasOffset},
				sh.east, escape(sh.kind), escape(sh.unit))
			if err != nil {
				return err
			}
			err = tx.QueryRowContext(ctx, find, sh.key()).Scan(&id)
		}
		if err != nil {
			return err
		}
		b.shapeIDs[sh] = id
	}
	return nil
}

func (b *batch) shapeID(c *content) int32 {
	if c.text != "" {
		return 0
	}
	return b.shapeIDs[c.shape]
}

// shape returns the shape of a number.
func (s *Store) shape(ctx context.Context, q queryer, number int32) (shape, error) {
	s.shapes.mu.RLock()
	sh, ok := s.shapes.shapes[number]
	s.shapes.mu.RUnlock()
	if ok {
		return sh, nil
	}
	read := map[shape]int32{}
	err := each(ctx, q, func(rows *sql.Rows) error {
		var seconds, offset sql.NullInt32
		if err := rows.Scan(&seconds, &sh.hasValue, &offset, &sh.east, &sh.kind, &sh.unit); err != nil {
			return err
		}
		sh.interval, sh.seconds, sh.hasOffset, sh.offset = seconds.Valid, seconds.Int32, offset.Valid, offset.Int32
		sh.kind, sh.unit = unescape(sh.kind), unescape(sh.unit)
		read[sh] = number
		return nil
	}, s.sql(`SELECT seconds, has_value, timezone_offset, east, type, unit FROM labhealth_shapes WHERE id = ?`), number)
	if err == nil && len(read) == 0 {
		err = errNoShape
	}
	if err != nil {
		return shape{}, err
	}
	s.shapes.keep(read)
	return sh, nil
}

var errNoShape = errors.New("sqlstore: a sample has a shape that is not in labhealth_shapes")
