package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// Summary returns the latest version of a summary, such as a [*webhooks.Sleep], which the caller
// owns. ok is false if there is none.
func (s *Store) Summary(ctx context.Context, key webhooks.SummaryKey) (data webhooks.Payload, ok bool, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, false, err
	}
	var document string
	err = s.db.QueryRowContext(ctx, s.dialect.bind(`SELECT m.text FROM labhealth_series AS r JOIN labhealth_summaries AS m ON m.series_id = r.id
		WHERE r.key = ? AND m.id = ?`),
		seriesKey(webhooks.Series{UserID: key.UserID, Resource: key.Resource}), key.ID.String()).Scan(&document)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, s.failed(ctx, "summary", err)
	}
	return payload(key.Resource, document), true, nil
}

// Sample returns the latest version of a sample; ok is false if there is none.
func (s *Store) Sample(ctx context.Context, key webhooks.SampleKey) (sample webhooks.Sample, ok bool, err error) {
	found, err := s.rangePage(ctx, key.Series(), key.UnixNano, key.UnixNano+1, 1)
	if err != nil || len(found) == 0 {
		return webhooks.Sample{}, false, s.failed(ctx, "sample", err)
	}
	return found[0].Sample, true, nil
}

// Series returns the series of a user that have samples, ordered by resource, provider and source
// type.
func (s *Store) Series(ctx context.Context, userID uuid.UUID) ([]webhooks.Series, error) {
	all, err := s.seriesOf(ctx, userID)
	return all, s.failed(ctx, "series", err)
}

func (s *Store) seriesOf(ctx context.Context, userID uuid.UUID) (all []webhooks.Series, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	err = query(ctx, s.db, func(rows *sql.Rows) error {
		of := webhooks.Series{UserID: userID}
		if err := rows.Scan(&of.Resource, &of.Provider, &of.SourceType); err != nil {
			return err
		}
		of.Resource, of.Provider, of.SourceType = unescape(of.Resource), unescape(of.Provider), unescape(of.SourceType)
		all = append(all, of)
		return nil
	}, s.dialect.bind(`SELECT r.resource, r.provider, r.source_type FROM labhealth_series AS r
		WHERE r.user_id = ? AND EXISTS (SELECT 1 FROM labhealth_samples AS s WHERE s.series_id = r.id)`), userID.String())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b webhooks.Series) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SourceType, b.SourceType))
	})
	return all, nil
}
