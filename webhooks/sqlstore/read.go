package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Summary returns the newest version of a summary, an *[webhooks.Activity] or a *[webhooks.Summary] of the caller's own; ok is
// false if there is none.
func (s *Store) Summary(ctx context.Context, key webhooks.SummaryKey) (data webhooks.Payload, ok bool, err error) {
	var text string
	err = s.db.QueryRowContext(ctx, s.sql(`SELECT m.text FROM labhealth_series AS r JOIN labhealth_summaries AS m ON m.series_id = r.id
		WHERE r.key = ? AND m.id = ?`),
		seriesKey(webhooks.Series{UserID: key.UserID, Resource: key.Resource}), key.ID.String()).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, s.failed(ctx, "summary", err)
	}
	return payload(key.Resource, text), true, nil
}

func payload(resource, text string) webhooks.Payload {
	if resource == webhooks.DailyActivityUpdated.Resource() {
		a := &webhooks.Activity{}
		a.UnmarshalJSON([]byte(text)) // it was written by MarshalJSON
		return a
	}
	v := &webhooks.Summary{}
	v.UnmarshalJSON([]byte(text))
	return v
}

// Sample returns the newest version of a sample; ok is false if there is none.
func (s *Store) Sample(ctx context.Context, key webhooks.SampleKey) (sample webhooks.Sample, ok bool, err error) {
	found, err := s.samples(ctx, `WHERE r.key = ? AND s.at = ?`, seriesKey(key.Series()), key.UnixNano)
	if err != nil || len(found) == 0 {
		return webhooks.Sample{}, false, s.failed(ctx, "sample", err)
	}
	return found[0].Sample, true, nil
}

// Range returns the newest versions of the samples of a series that were taken at from or later and before to, by time.
func (s *Store) Range(ctx context.Context, of webhooks.Series, from, to time.Time) ([]webhooks.Sample, error) {
	found, err := s.samples(ctx, `WHERE r.key = ? AND s.at >= ? AND s.at < ? ORDER BY s.at`, seriesKey(of), clamped(from), clamped(to))
	if err != nil {
		return nil, s.failed(ctx, "range", err)
	}
	var samples []webhooks.Sample
	for i := range found {
		samples = append(samples, found[i].Sample)
	}
	return samples, nil
}

// Series returns the series of a user that have samples, by resource, provider and source type.
func (s *Store) Series(ctx context.Context, userID uuid.UUID) ([]webhooks.Series, error) {
	var all []webhooks.Series
	err := each(ctx, s.db, func(rows *sql.Rows) error {
		of := webhooks.Series{UserID: userID}
		if err := rows.Scan(&of.Resource, &of.Provider, &of.SourceType); err != nil {
			return err
		}
		of.Resource, of.Provider, of.SourceType = unescape(of.Resource), unescape(of.Provider), unescape(of.SourceType)
		all = append(all, of)
		return nil
	}, s.sql(`SELECT r.resource, r.provider, r.source_type FROM labhealth_series AS r
		WHERE r.user_id = ? AND EXISTS (SELECT 1 FROM labhealth_samples AS s WHERE s.series_id = r.id)`), userID.String())
	if err != nil {
		return nil, s.failed(ctx, "series", err)
	}
	slices.SortFunc(all, func(a, b webhooks.Series) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SourceType, b.SourceType))
	})
	return all, nil
}

// StoredSample is a sample with its key. It redacts itself when printed.
type StoredSample struct {
	Key    webhooks.SampleKey // what it is a version of
	Sample webhooks.Sample    // the newest version

	series int32
}

// StoredSummary is a summary with its key: an *[webhooks.Activity] or a *[webhooks.Summary]. It redacts itself when printed.
type StoredSummary struct {
	Key  webhooks.SummaryKey // what it is a version of
	Data webhooks.Payload    // the newest version
}

// samples returns what a query finds.
func (s *Store) samples(ctx context.Context, where string, args ...any) ([]StoredSample, error) {
	type row struct {
		stored
		series int32
		key    webhooks.SampleKey
	}
	var found []row
	err := each(ctx, s.db, func(rows *sql.Rows) error {
		var r row
		if err := rows.Scan(append(r.scan(), &r.series, &r.key.UserID, &r.key.Resource, &r.key.Provider, &r.key.SourceType)...); err != nil {
			return err
		}
		found = append(found, r)
		return nil
	}, s.sql(`SELECT `+storedColumns+`, r.id, r.user_id, r.resource, r.provider, r.source_type
		FROM labhealth_samples AS s JOIN labhealth_series AS r ON r.id = s.series_id `+where), args...)
	if err != nil {
		return nil, err
	}
	samples := make([]StoredSample, len(found))
	for i := range found {
		r := &found[i]
		c := r.content()
		if c.text == "" {
			if c.shape, err = s.shape(ctx, s.db, r.shape); err != nil {
				return nil, err
			}
		}
		r.key.Resource, r.key.Provider, r.key.SourceType = unescape(r.key.Resource), unescape(r.key.Provider), unescape(r.key.SourceType)
		r.key.UnixNano = r.at
		samples[i] = StoredSample{r.key, c.sample(r.at), r.series}
	}
	return samples, nil
}

// inPage is how many rows a pass over everything reads at a time.
const inPage = 5000

// Samples goes over the newest versions of all samples, one series after the other and each by time. It reads page by page and
// holds neither a transaction nor a connection while the program deals with a sample; what is applied meanwhile may be seen or not.
// It ends after an error.
func (s *Store) Samples(ctx context.Context) iter.Seq2[StoredSample, error] {
	return func(yield func(StoredSample, error) bool) {
		series, at := int32(math.MinInt32), int64(math.MinInt64)
		for {
			page, err := s.samples(ctx, `WHERE (s.series_id, s.at) > (?, ?) ORDER BY s.series_id, s.at LIMIT ?`, series, at, inPage)
			if err != nil {
				yield(StoredSample{}, s.failed(ctx, "samples", err))
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if len(page) < inPage {
				return
			}
			series, at = page[len(page)-1].series, page[len(page)-1].Key.UnixNano
		}
	}
}

// Summaries goes over the newest versions of all summaries as [Store.Samples] does, by resource and id of a user.
func (s *Store) Summaries(ctx context.Context) iter.Seq2[StoredSummary, error] {
	return func(yield func(StoredSummary, error) bool) {
		series, id := int32(math.MinInt32), uuid.Nil
		for {
			var page []StoredSummary
			err := each(ctx, s.db, func(rows *sql.Rows) error {
				var of StoredSummary
				var text string
				if err := rows.Scan(&series, &of.Key.ID, &text, &of.Key.UserID, &of.Key.Resource); err != nil {
					return err
				}
				of.Key.Resource = unescape(of.Key.Resource)
				of.Data = payload(of.Key.Resource, text)
				id = of.Key.ID
				page = append(page, of)
				return nil
			}, s.sql(`SELECT s.series_id, s.id, s.text, r.user_id, r.resource
				FROM labhealth_summaries AS s JOIN labhealth_series AS r ON r.id = s.series_id
				WHERE (s.series_id, s.id) > (?, ?) ORDER BY s.series_id, s.id LIMIT ?`), series, id.String(), inPage)
			if err != nil {
				yield(StoredSummary{}, s.failed(ctx, "summaries", err))
				return
			}
			for _, of := range page {
				if !yield(of, nil) {
					return
				}
			}
			if len(page) < inPage {
				return
			}
		}
	}
}

// DeleteUser removes everything of a user: samples, summaries, and deliveries in the inbox and among the dead letters whose
// envelope names the user. What a worker has in work it waits for. Ids of deliveries stay remembered; they name nobody.
//
// It leaves no mark: what arrives later for the user is stored as for a new one. So a user is deleted at the service first, and
// here once more when the sender's attempts are over, 28 hours later. A broker in front of the store has deliveries of its own.
func (s *Store) DeleteUser(ctx context.Context, userID uuid.UUID) error {
	user := userID.String()
	return s.transact(ctx, "delete user", func(tx *sql.Tx) error {
		// A worker moves deliveries from the inbox to the dead letters, and Requeue back: who deletes waits for them, and looks again
		// where they may have put something. It locks no user yet, for whom a worker would wait.
		for _, table := range []string{"labhealth_dead_letters", "labhealth_inbox", "labhealth_dead_letters"} {
			if _, err := tx.ExecContext(ctx, s.sql(`DELETE FROM `+table+` WHERE user_id = ?`), user); err != nil {
				return err
			}
		}
		if err := s.lockUsers(ctx, tx, []string{user}); err != nil {
			return err
		}
		for _, where := range []string{
			`labhealth_samples WHERE series_id IN (SELECT id FROM labhealth_series WHERE user_id = ?)`,
			`labhealth_summaries WHERE series_id IN (SELECT id FROM labhealth_series WHERE user_id = ?)`,
			`labhealth_series WHERE user_id = ?`,
			`labhealth_users WHERE user_id = ?`,
		} {
			if _, err := tx.ExecContext(ctx, s.sql(`DELETE FROM `+where), user); err != nil {
				return err
			}
		}
		return nil
	})
}

// failed makes an Error of what a statement outside of a transaction returned.
func (s *Store) failed(ctx context.Context, op string, err error) error {
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return failed(op, err)
}
