package inspect

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"
)

const listColumns = `d.number, d.id, d.received_at, d.attempt, d.size, d.type, d.user_id, d.client_user_id, d.order_id, d.about, d.verdict,
	d.reason, d.checks, d.malformed, d.unknown, d.duplicate_of, d.replay_of, d.state, d.added, d.updated, d.same, d.older, d.repeated,
	d.keyless, d.transitions, d.forward, d.status_code, d.took`

// scanner is a row.
type scanner interface{ Scan(...any) error }

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// query returns what scan reads of each row.
func query[T any](ctx context.Context, q queryer, scan func(scanner, *T) error, statement string, args ...any) (all []T, err error) {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// scanDelivery reads listColumns and further columns.
func scanDelivery(row scanner, d *Delivery, more ...any) error {
	var received, took int64
	var checks, forward string
	var state int
	c := &d.Changes
	err := row.Scan(append([]any{&d.Number, &d.ID, &received, &d.Attempt, &d.Size, &d.Type, &d.UserID, &d.ClientUserID, &d.OrderID, &d.About, &d.Verdict,
		&d.Reason, &checks, &d.Malformed, &d.Unknown, &d.DuplicateOf, &d.ReplayOf, &state, &c.Added, &c.Updated, &c.Same, &c.Older, &c.Repeated,
		&c.Keyless, &d.Transitions, &forward, &d.StatusCode, &took}, more...)...)
	if err != nil {
		return err
	}
	d.ReceivedAt, d.Took = time.Unix(0, received), time.Duration(took)
	d.Applied = state == stored || state == unreadable || d.DuplicateOf > 0
	if err := json.Unmarshal([]byte(checks), &d.Checks); err != nil {
		return err
	}
	if forward != "" {
		return json.Unmarshal([]byte(forward), &d.Forward)
	}
	return nil
}

// List returns the latest deliveries that the filter selects, at most limit, latest first, without
// headers and bodies.
func (i *Inspector) List(ctx context.Context, f Filter, limit int) ([]Delivery, error) {
	q := f.statement()
	return query(ctx, i.db, func(row scanner, d *Delivery) error { return scanDelivery(row, d) },
		`SELECT `+listColumns+q.from+q.where()+` ORDER BY `+q.order+` DESC LIMIT ?`, append(q.args, max(0, limit))...)
}

// Count returns how many deliveries the filter selects.
func (i *Inspector) Count(ctx context.Context, f Filter) (n int, err error) {
	if f.isEmpty() {
		err = i.db.QueryRowContext(ctx, `SELECT total FROM delivery_state`).Scan(&n)
		return n, err
	}
	q := f.statement()
	if q.onlyWords {
		q.from = ` FROM delivery_search AS f`
	}
	err = i.db.QueryRowContext(ctx, `SELECT count(*)`+q.from+q.where(), q.args...).Scan(&n)
	return n, err
}

// Get returns a delivery with its header and body.
func (i *Inspector) Get(ctx context.Context, number int64) (d Delivery, ok bool, err error) {
	d, ok, err = i.get(ctx, ` WHERE d.number = ?`, number)
	i.warn(ctx, "read what was stored", err)
	return d, ok, err
}

// Previous returns the latest earlier accepted delivery about the same thing: the order, the
// summary, or the series of samples. Deliveries with the same ID are the same version and do not
// count.
func (i *Inspector) Previous(ctx context.Context, number int64) (d Delivery, ok bool, err error) {
	var subject, id string
	err = i.db.QueryRowContext(ctx, `SELECT subject, id FROM deliveries WHERE number = ?`, number).Scan(&subject, &id)
	if errors.Is(err, sql.ErrNoRows) || err == nil && subject == "" {
		return d, false, nil
	}
	if err != nil {
		return d, false, err
	}
	return i.get(ctx, ` WHERE d.subject = ? AND d.subject <> '' AND d.number < ? AND d.verdict <> 'rejected' AND (d.id = '' OR d.id <> ?)
		ORDER BY d.number DESC LIMIT 1`, subject, number, id)
}

func (i *Inspector) get(ctx context.Context, where string, args ...any) (d Delivery, ok bool, err error) {
	var header string
	row := i.db.QueryRowContext(ctx, `SELECT `+listColumns+`, b.header, b.body FROM deliveries AS d JOIN delivery_bodies AS b ON b.number = d.number`+where, args...)
	err = scanDelivery(row, &d, &header, &d.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return Delivery{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(header), &d.Header)
	}
	return d, err == nil, err
}

// Bucket counts the deliveries of an interval.
type Bucket struct {
	At       time.Time // when it starts
	Total    int
	Rejected int
}

// Histogram counts the deliveries since a time, in intervals of a length. Intervals without
// deliveries are included, up to now; there are at most 1,000 intervals.
func (i *Inspector) Histogram(ctx context.Context, since time.Time, step time.Duration) ([]Bucket, error) {
	n := int(i.config.Now().Sub(since)/max(step, time.Millisecond)) + 1
	if step <= 0 || n < 1 || n > 1000 {
		return nil, errors.New("inspect: Histogram needs a step that gives 1 to 1,000 intervals until now")
	}
	buckets := make([]Bucket, n)
	for k := range buckets {
		buckets[k].At = since.Add(time.Duration(k) * step)
	}
	_, err := query(ctx, i.db, func(row scanner, _ *struct{}) error {
		var k, total, rejected int
		if err := row.Scan(&k, &total, &rejected); err != nil {
			return err
		}
		if k < n {
			buckets[k].Total, buckets[k].Rejected = total, rejected
		}
		return nil
	}, `SELECT (received_at - ?) / ? AS bucket, count(*), count(*) FILTER (WHERE verdict = 'rejected')
		FROM deliveries INDEXED BY deliveries_received WHERE received_at >= ? GROUP BY bucket`, since.UnixNano(), int64(step), since.UnixNano())
	return buckets, err
}
