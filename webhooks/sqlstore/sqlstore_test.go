package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// The module integration tests what needs a database.

var (
	adaID = uuid.MustParse("3fa85f64-5717-4562-b3fc-2c963f66afa6")
	noon  = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
)

func store(t *testing.T, dialect Dialect) *Store {
	db := sql.OpenDB(noDatabase{})
	t.Cleanup(func() { db.Close() })
	s, err := Open(db, dialect)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noDatabase is a database that is unavailable.
type noDatabase struct{}

func (noDatabase) Connect(context.Context) (driver.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("canary")}
}
func (noDatabase) Driver() driver.Driver { return nil }

func TestOpenErrors(t *testing.T) {
	db := sql.OpenDB(noDatabase{})
	defer db.Close()
	const noDialect = "sqlstore: Open needs a dialect, sqlstore.SQLite or sqlstore.PostgreSQL"
	for _, c := range []struct {
		db      *sql.DB
		dialect Dialect
		want    string
	}{{nil, SQLite, "sqlstore: Open needs a database"}, {db, 0, noDialect}, {db, 3, noDialect}} {
		if s, err := Open(c.db, c.dialect); s != nil || err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for want, w := range map[string]*Worker{
		"sqlstore: the Worker needs a Store":             {},
		"sqlstore: Worker.Batch must not be negative":    {Store: store(t, SQLite), Batch: -1},
		"sqlstore: Worker.Attempts must not be negative": {Store: store(t, SQLite), Attempts: -1},
		"sqlstore: Worker.Delay must not be negative":    {Store: store(t, SQLite), Delay: -1},
		"sqlstore: Worker.Poll must not be negative":     {Store: store(t, SQLite), Poll: -1},
	} {
		if _, err := w.Step(t.Context()); err == nil || err.Error() != want {
			t.Error(err)
		}
		if err := w.Run(t.Context()); err == nil || err.Error() != want {
			t.Error(err)
		}
	}
}

func TestSchema(t *testing.T) {
	if Schema(0) != "" {
		t.Error("a schema of no dialect")
	}
	var tables [2][]string
	for i, d := range []Dialect{SQLite, PostgreSQL} {
		for line := range strings.Lines(Schema(d)) {
			fields := strings.Fields(strings.NewReplacer("IF NOT EXISTS ", "", "UNLOGGED ", "").Replace(line))
			if len(fields) > 2 && fields[0] == "CREATE" && (fields[1] == "TABLE" || fields[1] == "VIEW") {
				tables[i] = append(tables[i], fields[2])
			}
		}
	}
	if diff := cmp.Diff(tables[0], tables[1]); diff != "" || len(tables[0]) != 20 {
		t.Errorf("%d tables %s", len(tables[0]), diff)
	}
}

// While the database is unavailable, each operation returns an Error that quotes nothing.
func TestUnavailable(t *testing.T) {
	for _, dialect := range []Dialect{SQLite, PostgreSQL} {
		s := store(t, dialect)
		ctx := t.Context()
		e, err := webhooks.Parse([]byte(`{"event_type":"daily.data.glucose.created","user_id":"` + adaID.String() + `","data":{"data":[{"timestamp":"2025-03-01T12:00:00Z","value":1,"unit":"mmol/L"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		for op, f := range map[string]func() error{
			"migrate":     func() error { return s.Migrate(ctx) },
			"apply":       func() error { _, err := s.Apply(ctx, webhooks.Delivery{Event: e}); return err },
			"summary":     func() error { _, _, err := s.Summary(ctx, webhooks.SummaryKey{}); return err },
			"sample":      func() error { _, _, err := s.Sample(ctx, webhooks.SampleKey{}); return err },
			"series":      func() error { _, err := s.Series(ctx, adaID); return err },
			"delete user": func() error { return s.DeleteUser(ctx, adaID) },
			"seen":        func() error { _, err := s.Seen(ctx, "msg_1"); return err },
			"mark seen":   func() error { return s.MarkSeen(ctx, "msg_1") },
			"maintain":    func() error { return s.Maintain(ctx) },
			"receive":     func() error { return s.Receive(ctx, webhooks.RawDelivery{ID: "msg_1"}) },
			"dead letter": func() error { return s.DeadLetter(ctx, webhooks.RawDelivery{}, nil) },
			"requeue":     func() error { _, err := s.Requeue(ctx, uuid.Nil); return err },
			"step":        func() error { _, err := (&Worker{Store: s}).Step(ctx); return err },
			"range": func() (err error) {
				for _, err = range s.Range(ctx, webhooks.Series{}, noon, noon) {
				}
				return err
			},
			"user samples": func() (err error) {
				for _, err = range s.UserSamples(ctx, adaID, "", noon, noon) {
				}
				return err
			},
			"user summaries": func() (err error) {
				for _, err = range s.UserSummaries(ctx, adaID, "") {
				}
				return err
			},
			"samples": func() (err error) {
				for _, err = range s.Samples(ctx) {
				}
				return err
			},
			"summaries": func() (err error) {
				for _, err = range s.Summaries(ctx) {
				}
				return err
			},
			"dead letters": func() (err error) {
				for _, err = range s.DeadLetters(ctx) {
				}
				return err
			},
		} {
			err := f()
			var database *Error
			if !errors.As(err, &database) || database.Op != op || database.Rejected || err.Error() != "sqlstore: "+op+": the database failed" {
				t.Errorf("%v %s: %v", dialect, op, err)
			}
		}
		// What needs no database works without.
		applied, err := s.ApplyAll(ctx, []webhooks.Delivery{{}, {Event: &webhooks.Event{Data: &webhooks.Samples{}}}, {Event: &webhooks.Event{Data: &webhooks.LabOrder{}}}})
		if err != nil || len(applied) != 3 || applied[0].Err != errNoEvent || applied[1].Err != webhooks.ErrNoUser || applied[2].Err != webhooks.ErrNoID {
			t.Error(applied, err)
		}
	}
}

type state string

func (s state) Error() string    { return "canary" }
func (s state) SQLState() string { return string(s) }

func TestErrorClasses(t *testing.T) {
	for _, c := range []struct {
		err                        error
		conflict, rejected, outage bool
		reason                     string
	}{
		{state("40001"), true, false, true, "the application failed (SQLSTATE 40001)"},
		{fmt.Errorf("x: %w", state("40P01")), true, false, true, "the application failed (SQLSTATE 40P01)"},
		{state("22P05"), false, true, false, "the application failed (SQLSTATE 22P05)"},
		{state("23505"), false, true, false, "the application failed (SQLSTATE 23505)"},
		{state("54000"), false, true, false, "the application failed (SQLSTATE 54000)"},
		{state("57014"), false, true, false, "the application failed (SQLSTATE 57014)"},
		{state("42P01"), false, false, false, "the application failed (SQLSTATE 42P01)"},
		{state("53100"), false, false, true, "the application failed (SQLSTATE 53100)"},
		{state("57P01"), false, false, true, "the application failed (SQLSTATE 57P01)"},
		{state("08006"), false, false, true, "the application failed (SQLSTATE 08006)"},
		{state("25006"), false, false, true, "the application failed (SQLSTATE 25006)"},
		{state("Ada's"), false, false, false, "the application failed"},
		{errors.New("database is locked (5) (SQLITE_BUSY)"), true, false, true, "the application failed"},
		{errors.New("database or disk is full (13)"), false, false, true, "the application failed"},
		{errors.New("constraint failed: NOT NULL constraint failed: t.x (1299)"), false, true, false, "the application failed"},
		{driver.ErrBadConn, false, false, true, "the application failed"},
		{io.ErrUnexpectedEOF, false, false, true, "the application failed"},
		{errors.New("canary"), false, false, false, "the application failed"},
		{webhooks.ErrNoUser, false, false, false, "the event has no readable user id"},
		{fmt.Errorf("canary: %w", webhooks.ErrNoID), false, false, false, "the summary has no readable id"},
		{&functionError{error: errPanicked}, false, false, false, "the application panicked"},
		{&functionError{error: &webhooks.ParseError{Reason: "canary"}}, false, false, false, "the application failed"},
		{failed("step", sql.ErrTxDone), false, false, false, "the application failed"},
		{failed("step", errors.New("commit unexpectedly resulted in rollback")), false, false, false, "the application failed"},
		{failed("step", errors.New("pq: could not complete operation in a failed transaction")), false, false, false, "the application failed"},
		{failed("apply", state("22003")), false, true, false, "the database rejected the content (SQLSTATE 22003)"},
	} {
		if isConflict(c.err) != c.conflict || isRejection(c.err) != c.rejected || isOutage(c.err) != c.outage || reasonOf(c.err) != c.reason {
			t.Errorf("%v: conflict %v, rejected %v, outage %v, %q", c.err, isConflict(c.err), isRejection(c.err), isOutage(c.err), reasonOf(c.err))
		}
	}
}

// SQLite's reason is shown if it is one of those that hold nothing of what was written.
func TestErrorText(t *testing.T) {
	for cause, want := range map[string]string{
		"SQL logic error: no such table: labhealth_schema (1)": "sqlstore: apply: the database failed: tables are missing, see Store.Migrate",
		"database or disk is full (13)":                        "sqlstore: apply: the database failed: database or disk is full",
		"canary Ada":                                           "sqlstore: apply: the database failed",
		"constraint failed: canary Ada":                        "sqlstore: apply: the database rejected the content",
	} {
		driver := errors.New(cause)
		err := failed("apply", driver)
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		// The driver's own text is to be had from Cause alone.
		if unwrapped := errors.Unwrap(err); unwrapped.Error() != want || !errors.Is(err, driver) || err.(*Error).Cause() != driver {
			t.Errorf("unwrapped %q", unwrapped)
		}
		for _, verb := range []string{"%v", "%+v", "%q", "%d"} {
			if out := fmt.Sprintf(verb, errors.Unwrap(err)); strings.Contains(out, "canary") {
				t.Errorf("%s prints %s", verb, out)
			}
		}
	}
}

// An error of the application's function that wraps an Error has a text of the application.
func TestWrappedError(t *testing.T) {
	err := failed("step", &functionError{error: fmt.Errorf("canary: %w", &Error{Op: "apply", err: state("08006")})})
	if want := "sqlstore: step: the database failed (SQLSTATE 08006)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "heartrate": "heartrate", "é✓": "é✓", "a\x00b": `a\x00b`, `a\x00b`: `a\\x00b`, "\xff\\": `\xff\\`, `\`: `\\`, "�": "�",
	} {
		if got := escape(text); got != want || unescape(got) != text {
			t.Errorf("%q: %q, %q", text, got, unescape(got))
		}
	}
	for _, broken := range []string{`\`, `\x`, `\x0`, `\xgg`, `a\b`} { // what somebody wrote into the table by hand
		unescape(broken)
	}
}

func TestArray(t *testing.T) {
	var a array
	if a.String() != "{}" {
		t.Error(a.String())
	}
	a.add(math.MinInt64)
	a.add(0.1)
	a.add(nil)
	a.add([]byte{0, 255})
	a.add("a\"b\\c,{}\nNULL")
	a.add("")
	a.add(nil) // not needed at the end
	const want = `{-9223372036854775808,0.1,NULL,"\\x00ff","a\"b\\c,{}` + "\n" + `NULL",""}`
	if a.String() != want {
		t.Errorf("%s, want %s", a.String(), want)
	}
}

// The decisions are those of Latest, here without a database: everything in one batch.
func TestDecisions(t *testing.T) {
	sample := func(at int, more string) string {
		return fmt.Sprintf(`{"timestamp":"2025-03-01T12:%02d:00Z","unit":"bpm"%s}`, at, more)
	}
	var deliveries []webhooks.Delivery
	var latest webhooks.Latest
	var want []Applied
	for i, d := range []struct {
		seconds int
		samples string
	}{
		{10, sample(2, `,"value":62`) + "," + sample(1, `,"value":61`) + "," + sample(2, `,"value":63`)},
		{20, sample(2, `,"value":63`) + "," + sample(1, `,"value":71`)},
		{15, sample(2, `,"value":99`) + `,{"value":5}`},
		{20, sample(2, `,"value":7`) + "," + sample(1, `,"value":70`)}, // as texts, "7" is greater than "63" and "70" less than "71"
		{20, sample(2, `,"value":7,"tags":[]`)},
		{21, sample(2, `,"value":-0.0`) + "," + sample(3, `,"start":"2025-03-01T12:03:00Z","end":"2100-01-01T00:00:00Z","value":1`)},
		{21, sample(2, `,"value":0`) + "," + sample(3, `,"start":"2025-03-01T12:03:00Z","end":"2025-03-01T12:04:00Z","value":1`)},
	} {
		raw := webhooks.RawDelivery{
			Body: []byte(`{"event_type":"daily.data.heartrate.created","user_id":"` + adaID.String() + `","data":{"source":{"slug":"ring"},"data":[` + d.samples + `]}}`),
			ID:   fmt.Sprint(i), ReceivedAt: noon.Add(time.Duration(d.seconds) * time.Second),
		}
		delivery, err := raw.Parse()
		if err != nil {
			t.Fatal(err)
		}
		changes, err := latest.Apply(delivery)
		deliveries, want = append(deliveries, delivery), append(want, Applied{Changes: changes, Err: err})
	}
	b := newBatch(deliveries, store(t, SQLite).version)
	got := b.decide()
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	for i := range b.sampleSlots {
		slot := &b.sampleSlots[i]
		key := webhooks.SampleKey{UserID: adaID, Resource: "heartrate", Provider: "ring", UnixNano: slot.at}
		want, _ := latest.Sample(key)
		if diff := cmp.Diff(want, slot.content.sample(slot.at)); diff != "" {
			t.Error(diff)
		}
	}
	if len(b.sampleSlots) != 3 {
		t.Errorf("%d keys", len(b.sampleSlots))
	}
}

func TestRedaction(t *testing.T) {
	s := store(t, PostgreSQL)
	raw := webhooks.RawDelivery{ID: "msg_1", Body: []byte("canary")}
	for want, v := range map[string]any{
		"sqlstore.Store{PostgreSQL}": s,
		"sqlstore.StoredSample{00000000-0000-0000-0000-000000000000, redacted}":                                        StoredSample{Sample: webhooks.Sample{Text: "canary"}},
		"sqlstore.StoredSummary{00000000-0000-0000-0000-000000000000 00000000-0000-0000-0000-000000000000, redacted}":  StoredSummary{Data: &webhooks.Unknown{Raw: []byte(`"canary"`)}},
		"sqlstore.DeadLetter{00000000-0000-0000-0000-000000000000 msg_1 2 attempts, the application failed, redacted}": DeadLetter{Delivery: raw, Attempts: 2, Reason: "the application failed"},
	} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
			if got := fmt.Sprintf(format, v); got != want {
				t.Errorf("%s: %s", format, got)
			}
		}
		if text := fmt.Sprintf("%+v %v", []any{v, &v}, &Worker{Store: s}); strings.Contains(text, "canary") {
			t.Error(text)
		}
		if got := v.(slog.LogValuer).LogValue().String(); got != want {
			t.Error(got)
		}
	}
}
