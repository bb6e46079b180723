package sqlstore

import "database/sql"

// sampleRow is a row of labhealth_samples without its series.
type sampleRow struct {
	at, version int64
	value       float64
	shapeID     int64
	seconds     sql.NullInt32
	document    sql.NullString
}

const sampleColumns = `s.at, s.version, s.value, s.shape_id, s.seconds, s.text`

// scan returns the destinations of sampleColumns.
func (r *sampleRow) scan() []any {
	return []any{&r.at, &r.version, &r.value, &r.shapeID, &r.seconds, &r.document}
}

// content returns the content of the row, without its shape.
func (r *sampleRow) content() content {
	if r.document.Valid {
		return content{document: r.document.String}
	}
	return content{value: r.value, seconds: r.seconds.Int32}
}

// store stores what the database has.
func (s *sampleSlot) store(r *sampleRow) {
	s.found, s.version, s.content, s.shapeID = true, r.version, r.content(), r.shapeID
}

// Statements that all dialects understand, with the rows in the middle. A newer version is never
// overwritten, regardless of earlier reads.
const (
	insertSamples = `INSERT INTO labhealth_samples AS s (series_id, at, version, value, shape_id, seconds, text) `
	updateSamples = ` ON CONFLICT (series_id, at) DO UPDATE SET version = excluded.version, value = excluded.value,
		shape_id = excluded.shape_id, seconds = excluded.seconds, text = excluded.text WHERE excluded.version >= s.version`

	insertSummaries = `INSERT INTO labhealth_summaries AS s (series_id, id, version, text) `
	updateSummaries = ` ON CONFLICT (series_id, id) DO UPDATE SET version = excluded.version, text = excluded.text
		WHERE excluded.version >= s.version`

	insertInbox = `INSERT INTO labhealth_inbox (delivery_id, received_at, user_id, body) `

	// insertID stores the digest of a delivery's ID and the time, unless it is stored since the
	// time of the last parameter. It changes a row only if it was not stored.
	insertID = `INSERT INTO labhealth_deliveries AS d (id, at) VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET at = excluded.at WHERE d.at < ?`
)
