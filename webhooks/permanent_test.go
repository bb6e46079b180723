package webhooks

import (
	"errors"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// Err reports an event with unreadable data, and the readable data is applied. New data is not an
// error.
func TestUnreadableDataIsReported(t *testing.T) {
	const (
		summary = `"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11"`
		sample  = `{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":1}`
	)
	samples := func(list string) string { return `{"source":{"slug":"ring"},"data":[` + list + `]}` }
	for _, test := range []struct {
		name, kind, data string
		want             error
		changes          Changes
	}{
		{"samples", "daily.data.heartrate.created", samples(sample), nil, Changes{Added: 1, Samples: []int{0}}},
		{"no samples", "daily.data.heartrate.created", samples(``), nil, Changes{}},
		{"another field", "daily.data.heartrate.created", samples(`{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":1,"new":{}}`), nil, Changes{Added: 1, Samples: []int{0}}},
		{"other time", "daily.data.heartrate.created", samples(`{"timestamp":1740830400,"unit":"bpm","value":1}`), ErrUnreadable, Changes{Keyless: 1}},
		{"renamed time", "daily.data.heartrate.created", samples(`{"time":"2025-03-01T12:00:00Z","unit":"bpm","value":1},` + sample), ErrUnreadable, Changes{Added: 1, Keyless: 1, Samples: []int{1}}},
		{"far time", "daily.data.heartrate.created", samples(`{"timestamp":"2500-01-01T00:00:00Z","unit":"bpm","value":1}`), ErrUnreadable, Changes{Keyless: 1}},
		{"other value", "daily.data.heartrate.created", samples(`{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","value":{"avg":1}}`), ErrUnreadable, Changes{Added: 1, Samples: []int{0}}},
		{"other offset", "daily.data.heartrate.created", samples(`{"timestamp":"2025-03-01T12:00:00Z","timezone_offset":"+01:00","unit":"bpm","value":1}`), ErrUnreadable, Changes{Added: 1, Samples: []int{0}}},
		{"numbers", "daily.data.heartrate.created", samples(`[1740830400,1]`), ErrUnreadable, Changes{Keyless: 1}},
		{"null", "daily.data.heartrate.created", samples(`null`), ErrUnreadable, Changes{Keyless: 1}},
		{"other source", "daily.data.heartrate.created", `{"source":"ring","data":[` + sample + `]}`, ErrUnreadable, Changes{Added: 1, Samples: []int{0}}},
		{"list", "daily.data.heartrate.created", `[` + sample + `]`, ErrUnreadable, Changes{}},
		{"string", "daily.data.heartrate.created", `"packed"`, ErrUnreadable, Changes{}},
		{"no data", "daily.data.heartrate.created", `null`, nil, Changes{}},
		{"no list", "daily.data.heartrate.created", `{"source":{"slug":"ring"}}`, nil, Changes{}},
		{"no summary", "daily.data.sleep.created", `null`, nil, Changes{}},
		{"renamed list", "daily.data.heartrate.created", `{"samples":[` + sample + `]}`, ErrNoID, Changes{}},
		{"summary", "daily.data.sleep.created", `{` + summary + `}`, nil, Changes{Added: 1}},
		{"other summary", "daily.data.sleep.created", `{` + summary + `,"calendar_date":7}`, ErrUnreadable, Changes{Added: 1}},
		{"activity", "daily.data.activity.created", `{` + summary + `,"steps":1}`, nil, Changes{Added: 1}},
		{"other activity", "daily.data.activity.created", `{` + summary + `,"steps":"many"}`, ErrUnreadable, Changes{Added: 1}},
		{"order", "labtest.order.created", `{` + summary + `}`, nil, Changes{}},
		{"order without an id", "labtest.order.created", `{"order":{` + summary + `}}`, ErrUnreadable, Changes{}},
		{"other order", "labtest.order.created", `{` + summary + `,"created_at":7}`, ErrUnreadable, Changes{}},
		{"other appointment", "labtest.appointment.created", `[1]`, ErrUnreadable, Changes{}},
		{"not modelled", "raw.example_ring.sleep", `[1]`, nil, Changes{}},
		{"new", "moon.landed", `7`, nil, Changes{}},
		{"connection", "provider.connection.created", `{}`, nil, Changes{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := mustParse(t, wrap(0, EventType(test.kind), test.data))
			var l Latest
			changes, err := l.Apply(received(e, 1))
			if diff := gocmp.Diff(test.changes, changes); err != test.want || diff != "" {
				t.Errorf("%v, want %v %s", err, test.want, diff)
			}
			if got := e.Err(); got != test.want && test.want != ErrNoID {
				t.Errorf("Err: %v, want %v", got, test.want)
			}
			if errors.Is(err, ErrPermanent) != (test.want != nil) {
				t.Errorf("%v is permanent: %t", err, test.want == nil)
			}
		})
	}
	for body, want := range map[string]error{
		`{"type":"message.attempt.failing","data":{}}`: nil,
		`{"event_type":"","type":"x"}`:                 nil,
		`{"event_type":7,"data":{}}`:                   ErrUnreadable,
		`{"type":{"name":"x"},"data":{}}`:              ErrUnreadable,
		`{"event":"daily.data.sleep.created"}`:         ErrUnreadable,
		`{}`:                                           ErrUnreadable,
	} {
		if err := mustParse(t, []byte(body)).Err(); err != want {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
	if err := (&Event{}).Err(); err != nil {
		t.Error(err)
	}
}

func TestPermanentErrors(t *testing.T) {
	_, unreadable := Parse([]byte(`[]`))
	var l Latest
	_, noEvent := l.Apply(Delivery{})
	for _, err := range []error{ErrPermanent, ErrNoUser, ErrNoID, ErrUnreadable, unreadable, noEvent, fmt.Errorf("ours: %w", ErrPermanent)} {
		if !errors.Is(err, ErrPermanent) || !errors.Is(fmt.Errorf("wrapped: %w", err), ErrPermanent) {
			t.Errorf("%v is not permanent", err)
		}
	}
	for _, err := range []error{nil, errors.New("unavailable"), ErrSignature, errNotReceived} {
		if errors.Is(err, ErrPermanent) {
			t.Errorf("%v is permanent", err)
		}
	}
	if errors.Is(ErrNoUser, ErrNoID) || errors.Is(ErrPermanent, ErrNoUser) {
		t.Error("one error is another")
	}
}
