package inspect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// StoredUser is a user of whom data is stored.
type StoredUser struct {
	UserID       uuid.UUID
	ClientUserID string    // of the last delivery that has one
	LastSample   time.Time // zero if no sample is stored
}

// Users returns the users of whom data is stored, in the order of their IDs, without ClientUserID.
func (i *Inspector) Users(ctx context.Context) ([]StoredUser, error) {
	return query(ctx, i.db, func(row scanner, u *StoredUser) error {
		var at sql.NullInt64
		err := row.Scan(&u.UserID, &at)
		if at.Valid {
			u.LastSample = time.Unix(0, at.Int64).UTC()
		}
		return err
	}, `SELECT u.user_id,
		(SELECT max((SELECT max(at) FROM labhealth_samples AS s WHERE s.slot = r.slot AND s.series = r.series)) FROM labhealth_series AS r WHERE r.user_id = u.user_id)
		FROM (SELECT user_id FROM labhealth_users UNION SELECT user_id FROM labhealth_orders) AS u ORDER BY u.user_id`)
}

// CountUsers returns the number of users of whom data is stored.
func (i *Inspector) CountUsers(ctx context.Context) (n int, err error) {
	err = i.db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT user_id FROM labhealth_users UNION SELECT user_id FROM labhealth_orders)`).Scan(&n)
	return n, err
}

// CountOrders returns the number of stored orders.
func (i *Inspector) CountOrders(ctx context.Context) (n int, err error) {
	err = i.db.QueryRowContext(ctx, `SELECT count(*) FROM labhealth_orders`).Scan(&n)
	return n, err
}

// ClientUserID returns the application's ID of a user, as the last delivery about the user has it;
// empty if none has.
func (i *Inspector) ClientUserID(ctx context.Context, userID uuid.UUID) (id string, err error) {
	err = i.db.QueryRowContext(ctx, `SELECT client_user_id FROM deliveries
		WHERE user_id = ? AND client_user_id <> '' AND verdict <> 'rejected' ORDER BY number DESC LIMIT 1`, userID.String()).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return id, err
}

// SampleTime is when a sample was measured.
type SampleTime struct {
	At       time.Time
	Offset   time.Duration // of the user from UTC; 0 if it is not known
	Resource string
}

// LastSample returns the last sample of a user before a time; ok is false if there is none.
func (i *Inspector) LastSample(ctx context.Context, userID uuid.UUID, before time.Time) (s SampleTime, ok bool, err error) {
	return i.sampleTime(ctx, `SELECT max(at) FROM labhealth_samples AS s WHERE s.slot = r.slot AND s.series = r.series AND s.at < ?`, `DESC`, userID, before)
}

// FirstSample returns the first sample of a user at or after a time; ok is false if there is none.
func (i *Inspector) FirstSample(ctx context.Context, userID uuid.UUID, from time.Time) (s SampleTime, ok bool, err error) {
	return i.sampleTime(ctx, `SELECT min(at) FROM labhealth_samples AS s WHERE s.slot = r.slot AND s.series = r.series AND s.at >= ?`, `ASC`, userID, from)
}

func (i *Inspector) sampleTime(ctx context.Context, choose, order string, userID uuid.UUID, at time.Time) (s SampleTime, ok bool, err error) {
	var nano int64
	var offset sql.NullInt64
	err = i.db.QueryRowContext(ctx, `SELECT f.resource, f.at, coalesce(h.timezone_offset,
			CASE WHEN s.text IS NOT NULL AND json_valid(s.text) THEN CAST(json_extract(s.text, '$.timezone_offset') AS INTEGER) END)
		FROM (SELECT r.slot, r.series, r.resource, (`+choose+`) AS at FROM labhealth_series AS r WHERE r.user_id = ?) AS f
		JOIN labhealth_samples AS s ON s.slot = f.slot AND s.series = f.series AND s.at = f.at
		LEFT JOIN labhealth_shapes AS h ON h.slot = s.slot AND h.series = s.series AND h.shape = s.shape
		ORDER BY f.at `+order+` LIMIT 1`, clampUnixNano(at), userID.String()).Scan(&s.Resource, &nano, &offset)
	if errors.Is(err, sql.ErrNoRows) {
		return SampleTime{}, false, nil
	}
	if err != nil {
		return SampleTime{}, false, err
	}
	s.At = time.Unix(0, nano).UTC()
	if offset.Valid && offset.Int64 >= -12*3600 && offset.Int64 <= 14*3600 {
		s.Offset = time.Duration(offset.Int64) * time.Second
	}
	return s, true, nil
}

// clampUnixNano returns the time in nanoseconds since 1970, limited to what an int64 can hold.
func clampUnixNano(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, -1<<63)):
		return -1 << 63
	case t.After(time.Unix(0, 1<<63-1)):
		return 1<<63 - 1
	}
	return t.UnixNano()
}

// Versions returns how many versions of a summary were stored of the deliveries that are kept, and
// the number of the last of these deliveries; 0 if there is none.
func (i *Inspector) Versions(ctx context.Context, s sqlstore.StoredSummary) (versions int, number int64, err error) {
	subject := fmt.Sprintf("%T %s %s %s", s.Data, s.Key.UserID, s.Key.Resource, s.Key.ID) // see subjectOf
	err = i.db.QueryRowContext(ctx, `SELECT count(*), coalesce(max(number), 0) FROM deliveries
		WHERE subject = ? AND subject <> '' AND verdict <> 'rejected' AND changed = 1`, subject).Scan(&versions, &number)
	return versions, number, err
}
