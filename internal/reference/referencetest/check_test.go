package referencetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// RawObject stands for the type that responses embed.
type RawObject struct{}

func (*RawObject) UnmarshalJSON([]byte) error  { return nil }
func (RawObject) MarshalJSON() ([]byte, error) { return nil, nil }

type (
	answer struct {
		ID        int64  `json:"id"`
		Code      string `json:"code"`
		Value     string `json:"value"`
		RawObject `json:"-"`
	}
	incompleteAnswer struct {
		ID        int64  `json:"id"`
		Code      string `json:"code"`
		RawObject `json:"-"`
	}
	otherAnswer struct {
		ID        float64 `json:"id,omitzero"`
		Code      *string `json:"code"`
		Value     string  `json:"value"`
		More      string  `json:"more"`
		RawObject `json:"-"`
	}
	plainAnswer struct {
		ID    int64  `json:"id"`
		Code  string `json:"code"`
		Value string `json:"value"`
	}
	// Aoe and Booking have optional fields of each direction.
	Aoe struct {
		Numbers   []answer `json:"questions"`
		RawObject `json:"-"`
	}
	Booking struct {
		BookingKey     string  `json:"booking_key"`
		Notes          *string `json:"appointment_notes"`
		Async          bool    `json:"async_confirmation,omitzero"`
		SyncTimeout    int64   `json:"sync_confirmation_timeout_millisecond,omitzero"`
		ConfirmTimeout *int64  `json:"async_confirmation_timeout_millisecond,omitzero"`
	}
	Device struct {
		ID                 uuid.UUID `json:"id"`
		UserID             uuid.UUID `json:"user_id"`
		Provider           string    `json:"provider"`
		SourceType         string    `json:"source_type"`
		AppID              string    `json:"app_id,omitzero"`
		DeviceManufacturer *string   `json:"device_manufacturer"`
		DeviceModel        *string   `json:"device_model,omitzero"`
		DeviceVersion      *string   `json:"device_version,omitzero"`
		DeviceID           *string   `json:"device_id,omitzero"`
		RawObject          `json:"-"`
	}
)

// recorder is a test that keeps its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// Check reports every kind of difference, and nothing else.
func TestCheck(t *testing.T) {
	type components = map[string]any
	for name, test := range map[string]struct {
		area Area
		want []string
	}{
		"no difference": {Area{Components: components{"Answer": answer{}}}, nil},
		"a field too few": {Area{Components: components{"Answer": incompleteAnswer{}}},
			[]string{"referencetest.incompleteAnswer (Answer.value): is missing"}},
		"an intended difference": {Area{Components: components{"Answer": incompleteAnswer{}}, Exceptions: map[string]string{"Answer.value": "x"}}, nil},
		"an exception without a difference": {Area{Components: components{"Answer": answer{}}, Exceptions: map[string]string{"Answer.value": "x"}},
			[]string{`exception "Answer.value" is not needed, or names nothing`}},
		"an exception without a reason": {Area{Components: components{"Answer": incompleteAnswer{}}, Exceptions: map[string]string{"Answer.value": " "}},
			[]string{`exception "Answer.value" has no reason`}},
		"other types and tags": {Area{Components: components{"Answer": otherAnswer{}}}, []string{
			"referencetest.otherAnswer (Answer): the field More (more) is not in the reference",
			"referencetest.otherAnswer (Answer.code): Code *string `json:\"code\"` is required and never null, so it is no pointer",
			"referencetest.otherAnswer (Answer.id): ID float64 `json:\"id,omitzero\"` is required, so it has no omitzero",
			"referencetest.otherAnswer (Answer.id): ID float64: the reference has integer, so the type is int64",
		}},
		"no RawObject": {Area{Components: components{"Answer": plainAnswer{}}}, []string{
			"referencetest.plainAnswer (Answer) has no UnmarshalJSON and MarshalJSON: run go generate",
			`referencetest.plainAnswer (Answer): the last field of a response is an embedded RawObject with the tag json:"-"`,
		}},
		"a list of another type": {Area{Components: components{"AoE": Aoe{}, "Question": Device{}}, Exceptions: map[string]string{"Question": "x"}}, []string{
			"referencetest.Aoe (AoE.questions): Numbers []referencetest.answer: the reference has array of Question, so the type is []referencetest.Device",
			"referencetest.Aoe (AoE.questions): Numbers is not the name questions in Go's spelling",
		}},
		"fields of a request": {Area{Components: components{"AppointmentBookingRequest": Booking{}}}, []string{
			"referencetest.Booking (AppointmentBookingRequest.appointment_notes): Notes *string `json:\"appointment_notes\"` is optional, so it has omitzero",
			"referencetest.Booking (AppointmentBookingRequest.appointment_notes): Notes is not the name appointment_notes in Go's spelling",
			"referencetest.Booking (AppointmentBookingRequest.async_confirmation): Async is not the name async_confirmation in Go's spelling",
			"referencetest.Booking (AppointmentBookingRequest.async_confirmation_timeout_millisecond): ConfirmTimeout is not the name async_confirmation_timeout_millisecond in Go's spelling",
			"referencetest.Booking (AppointmentBookingRequest.sync_confirmation_timeout_millisecond): SyncTimeout int64 `json:\"sync_confirmation_timeout_millisecond,omitzero\"` is optional, so it is a pointer",
			"referencetest.Booking (AppointmentBookingRequest.sync_confirmation_timeout_millisecond): SyncTimeout is not the name sync_confirmation_timeout_millisecond in Go's spelling",
		}},
		"fields of a response": {Area{Components: components{"ClientFacingDevice": Device{}}}, []string{
			"referencetest.Device (ClientFacingDevice.app_id): AppID string `json:\"app_id,omitzero\"` is optional, so it is a pointer",
			"referencetest.Device (ClientFacingDevice.device_manufacturer): DeviceManufacturer *string `json:\"device_manufacturer\"` is optional, so it has omitzero",
		}},
		"a reduced response": {Area{Components: components{"ClientFacingDevice": Device{}}, Reduced: true}, nil},
		"unknown names": {Area{Components: components{"Nothing": answer{}}, Enums: map[string]any{"Nobody": ""}}, []string{
			`referencetest.answer (Nothing): the field Code (code) is not in the reference`,
			`referencetest.answer (Nothing): the field ID (id) is not in the reference`,
			`referencetest.answer (Nothing): the field Value (value) is not in the reference`,
			`the reference has no component "Nothing"`,
			`the reference has no enumeration "Nobody"`,
		}},
	} {
		r := &recorder{TB: t}
		Check(r, test.area)
		slices.Sort(r.errors)
		if !slices.Equal(r.errors, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(r.errors, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// What an exception or a json.RawMessage leads to is not missing.
func TestMissing(t *testing.T) {
	type raw struct {
		Questions json.RawMessage `json:"questions"`
	}
	types := []reference.Type{reference.ParseType("team", "AoE")}
	for _, test := range []struct {
		area Area
		want string
	}{
		{Area{}, "Answer AoE Question QuestionType"},
		{Area{Components: map[string]any{"AoE": Aoe{}}}, "Answer Question QuestionType"},
		{Area{Components: map[string]any{"AoE": Aoe{}}, Exceptions: map[string]string{"Question": "x"}}, ""},
		{Area{Components: map[string]any{"AoE": raw{}}, Exceptions: map[string]string{"AoE.questions": "x"}}, ""},
	} {
		if got := strings.Join(Missing(types, test.area), " "); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestLostFields(t *testing.T) {
	decode := func(text string) (v any) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, test := range []struct{ want, got, lost string }{
		{`{"a":1,"b":null,"c":"2026-01-31T00:00:00"}`, `{"a":1.0,"c":"2026-01-31T00:00:00Z","d":2}`, ""},
		{`{"a":{"b":[1,"x"]}}`, `{"a":{"b":[1,"y"]}}`, "$.a.b.1: y, want x"},
		{`{"a":1}`, `{}`, "$.a: <nil>, want 1"},
		{`[1,2]`, `[1]`, "$: [1], want [1 2]"},
		{`"2026-01-31T10:00:00Z"`, `"2026-01-31T10:00:00+01:00"`, "$: 2026-01-31T10:00:00+01:00, want 2026-01-31T10:00:00Z"},
		{`true`, `false`, "$: false, want true"},
	} {
		if got := strings.Join(LostFields(decode(test.want), decode(test.got)), "; "); got != test.lost {
			t.Errorf("%s, %s: %q, want %q", test.want, test.got, got, test.lost)
		}
	}
}
