// Reads summaries, samples, ranges and series.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
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
	found, err := s.queryRow(ctx, s.db, into{&document}, `SELECT m.text FROM labhealth_series AS r JOIN labhealth_summaries AS m ON m.slot = r.slot AND m.series = r.series
		WHERE r.slot = $1::smallint AND r.user_id = $2::uuid AND r.key = $3::bytea AND m.id = $4::uuid`,
		Slot(key.UserID), key.UserID.String(), seriesKey(webhooks.Series{UserID: key.UserID, Resource: key.Resource}), key.ID.String())
	if err != nil || !found {
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
	err = s.query(ctx, s.db, func(rows *sql.Rows) error {
		of := webhooks.Series{UserID: userID}
		err := rows.Scan(unescaped{&of.Resource}, unescaped{&of.Provider}, unescaped{&of.SourceType})
		all = append(all, of)
		return err
	}, `SELECT r.resource, r.provider, r.source_type FROM labhealth_series AS r WHERE r.slot = $1::smallint AND r.user_id = $2::uuid
		AND EXISTS (SELECT 1 FROM labhealth_samples AS s WHERE s.slot = $1::smallint AND s.series = r.series)`, Slot(userID), userID.String())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b webhooks.Series) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.SourceType, b.SourceType))
	})
	return all, nil
}
