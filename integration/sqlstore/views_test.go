package sqlstore_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// The views show every sample and every summary, whatever it holds.
func TestViews(t *testing.T) {
	const levels = 100_000
	deep := `{"unit":"bpm","value":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + `}` // Parse accepts fewer
	onBoth(t, func(t *testing.T, d database) {
		store, db := d.store(t), d.open(t)
		samples := []string{
			`{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":60.5,"type":"automatic","timezone_offset":3600}`,
			`{"timestamp":"2025-03-01T12:01:00Z","unit":"bpm"}`,
			`{"timestamp":"2025-03-01T12:02:00.123456Z","start":"2025-03-01T12:02:00.123456Z","end":"2025-03-01T12:03:30.123456Z","unit":"%","value":1}`,
			`{"timestamp":"2025-03-01T12:04:00Z","unit":"mmHg","systolic":120,"diastolic":80}`,
			`{"timestamp":"2025-03-01T12:05:00Z","unit":"bpm","value":7,"new":"\u0000 \\u0000 \ud800 ü"}`,
			`{"timestamp":"2025-03-01T12:06:00Z","unit":"bpm","value":8,"new":1e400000}`,
			`{"timestamp":"2025-03-01T12:07:00Z","unit":"bpm","value":9,"new":1}`,
			`{"timestamp":"2025-03-01T12:08:00Z","unit":"bpm","value":"a note\u0000"}`,
			`{"timestamp":"2025-03-01T12:09:00Z","unit":"bpm","value":1e400,"new":1}`,
			`{"timestamp":"2025-03-01T12:10:00Z","unit":"a\\b\u0000","value":1}`,
			`{"timestamp":"1969-12-31T23:59:59.5Z","unit":"","value":2}`,
			`{"timestamp":"1678-01-01T00:00:00Z","unit":"","value":3}`,
			`{"timestamp":"2262-04-11T23:47:10Z","unit":"","value":4}`,
			`{"timestamp":"1900-01-01T00:00:00Z","unit":"","value":-0.0}`,
			`{"timestamp":"2025-03-01T12:11:00Z","unit":"bpm","value":1e-400,"timezone_offset":-3600,"new":1}`,
			`{"timestamp":"2025-03-01T12:12:00Z","unit":"bpm","value":1,"timezone_offset":99999999999}`,
			`{"timestamp":"1969-12-31T23:59:59.999999999Z","unit":"","value":0}`,
		}
		deliveries := []webhooks.RawDelivery{{ID: "1", ReceivedAt: noon, Body: []byte(fmt.Sprintf(
			`{"event_type":"daily.data.heartrate.created","user_id":%q,"data":{"source":{"provider":"a\\b\u0000","type":"watch"},"data":[%s]}}`,
			user(1), strings.Join(samples, ",")))}}
		for i, more := range []string{`"score":80`, `"note":"\u0000"`, `"note":1e400000`} {
			deliveries = append(deliveries, webhooks.RawDelivery{ID: fmt.Sprint("s", i), ReceivedAt: noon, Body: []byte(fmt.Sprintf(
				`{"event_type":"daily.data.sleep.created","user_id":%q,"data":{"id":%q,%s}}`, user(1), user(100+i), more))})
		}
		for _, delivery := range parse(t, deliveries) {
			if c, err := store.Apply(t.Context(), delivery); c.Added == 0 {
				t.Fatal(c, err)
			}
		}
		_, err := db.Exec(placeholders(d.dialect, `UPDATE labhealth_samples SET text = ? WHERE at = ?`), deep, noon.Add(7*time.Minute).UnixNano())
		if err != nil {
			t.Fatal(err)
		}

		text := `CAST(%s AS text)`
		timeText := `CASE WHEN true THEN time END`
		field := `json_extract(CASE WHEN json_valid(document) THEN document END, '$.%s')`
		if d.dialect == sqlstore.PostgreSQL {
			timeText = `to_char(time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
			field = `document ->> '%s'`
		}
		parts := []string{timeText}
		for _, c := range []string{"value", "unit", "type", "seconds", "timezone_offset"} {
			parts = append(parts, `coalesce(`+fmt.Sprintf(text, c)+`, '-')`)
		}
		parts = append(parts, `coalesce(CAST(`+fmt.Sprintf(field, "systolic")+` AS text), '-')`)
		got := column(t, db, `SELECT `+strings.Join(parts, ` || ' ' || `)+` FROM labhealth_readings WHERE resource = 'heartrate'
			AND provider = 'a\b\x00' AND source_type = 'watch' AND user_id = '`+user(1).String()+`' ORDER BY at`)
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], ".0 ", " ") // of a real number in SQLite
		}
		want := []string{
			"1678-01-01T00:00:00.000000Z 3   - - -",
			"1900-01-01T00:00:00.000000Z 0   - - -",
			"1969-12-31T23:59:59.500000Z 2   - - -",
			"1969-12-31T23:59:59.999999Z 0   - - -",
			"2025-03-01T12:00:00.000000Z 60.5 bpm automatic - 3600 -",
			"2025-03-01T12:01:00.000000Z - bpm  - - -",
			"2025-03-01T12:02:00.123456Z 1 %  90 - -",
			"2025-03-01T12:04:00.000000Z - mmHg  - - 120",
			"2025-03-01T12:05:00.000000Z 7 bpm  - - -",
			"2025-03-01T12:06:00.000000Z 8 bpm  - - -",
			"2025-03-01T12:07:00.000000Z -   - - -",
			"2025-03-01T12:08:00.000000Z - bpm  - - -",
			"2025-03-01T12:09:00.000000Z - bpm  - - -",
			"2025-03-01T12:10:00.000000Z 1 a\\b\\x00  - - -",
			"2025-03-01T12:11:00.000000Z 0 bpm  - -3600 -",
			"2025-03-01T12:12:00.000000Z 1 bpm  - - -",
			"2262-04-11T23:47:10.000000Z 4   - - -",
		}
		if d.dialect == sqlstore.PostgreSQL { // jsonb has no such number
			want[9] = "2025-03-01T12:06:00.000000Z -   - - -"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if n := count(t, db, `labhealth_readings WHERE time < '1970-01-01' AND value > 1`); n != 2 {
			t.Errorf("%d before 1970", n)
		}
		all := column(t, db, `SELECT resource || ' ' || CAST(id AS text) || ' ' || coalesce(CAST(document AS text), '-') FROM labhealth_reports ORDER BY id`)
		for i := range all {
			all[i] = strings.ReplaceAll(all[i], " ", "")
		}
		if len(all) != 3 || !strings.HasPrefix(all[0], "sleep"+user(100).String()+"{") || !strings.Contains(all[0], `"score":80`) ||
			!strings.Contains(all[1], `"note":"`) {
			t.Error(all)
		}
	})
}

// A condition on the user and on at reads the index of the partitions of that time only.
func TestViewPlans(t *testing.T) {
	d := postgres(t)
	store, db := d.store(t), d.open(t)
	maintain(t, store)
	for u := range 50 {
		if _, err := store.Apply(t.Context(), parse(t, []webhooks.RawDelivery{samplesAt("x", u, noon, time.Now(), noon)})[0]); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC()
	first := month(now.Year(), now.Month())
	where := fmt.Sprintf(` FROM labhealth_readings WHERE user_id = '%s' AND resource = 'heartrate' AND at BETWEEN %d AND %d`,
		user(1), first.UnixNano(), first.AddDate(0, 1, 0).UnixNano()-1)
	if got := column(t, db, `SELECT value`+where); !slices.Equal(got, []string{"50"}) {
		t.Error(got)
	}
	run(t, db, `ANALYZE labhealth_samples`, `ANALYZE labhealth_series`, `ANALYZE labhealth_shapes`)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), `SET enable_seqscan = off`); err != nil { // the tables are small
		t.Fatal(err)
	}
	plan := explain(t, conn, `EXPLAIN SELECT time, value`+where+` ORDER BY time`)
	if !strings.Contains(plan, "series = r.series) AND (at >=") {
		t.Error(plan)
	}
}

func explain(t *testing.T, conn *sql.Conn, statement string) string {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatal(statement, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	return plan.String()
}
