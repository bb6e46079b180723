package compare

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/bytedance/sonic"
	gojson "github.com/goccy/go-json"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/plain"
	"github.com/labhealth/labhealth-go/webhooks"
)

// BenchmarkWrite encodes requests, and values that were received, as they were and changed. This
// module writes received values with every field that was received ("ours"), also through
// encoding/json, which validates and copies the result ("ours-json"). The others write the fields
// of the struct. A request is written from the same struct by all.
func BenchmarkWrite(b *testing.B) {
	for _, w := range writings(b) {
		b.Run(w.name, func(b *testing.B) { compare(b, w.comparison) })
	}
}

// TestEncoders checks that all encoders write the same.
func TestEncoders(t *testing.T) {
	for _, w := range writings(t) {
		t.Run(w.name, func(t *testing.T) { w.check(t) })
	}
}

// writing compares encoders of one value.
type writing struct {
	name string
	comparison[any]
}

func writings(t testing.TB) []writing {
	order := []byte(plain.OrderJSON(7))
	user := []byte(`{"user_id":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01","team_id":"6b41f610-ebc5-4803-8f0c-a61c3bdc7f02","client_user_id":"ada",` +
		`"created_on":"2025-03-04T05:06:07.123456Z","connected_sources":[{"source":{"name":"Oura","slug":"oura","logo":"https://example.com/oura.png"},` +
		`"created_on":"2025-04-04T05:06:07Z"}],"fallback_time_zone":{"id":"Europe/London","source_slug":"oura","updated_at":"2025-04-04T05:06:07Z"}}`)
	list := []writing{
		request("import", importBody()),
		request("user", labhealth.CreateUserBody{ClientUserID: "ada", FallbackTimeZone: new("Europe/London")}),
		received(t, "order/unchanged", order, func(*labhealth.Order) {}, func(*plain.Order) {}),
		received(t, "order/changed", order, func(o *labhealth.Order) { o.Notes = new("changed") }, func(o *plain.Order) { o.Notes = new("changed") }),
		received(t, "user/unchanged", user, func(*labhealth.User) {}, func(*plainUser) {}),
		received(t, "user/changed", user, func(u *labhealth.User) { u.ClientUserID = "grace" }, func(u *plainUser) { u.ClientUserID = "grace" }),
		received(t, "page/unchanged", plain.OrderPageJSON(50), func(*labhealth.OrderPage) {}, func(*plain.OrderPage) {}),
		received(t, "page/changed", plain.OrderPageJSON(50), func(p *labhealth.OrderPage) { p.Orders[7].Notes = new("changed") },
			func(p *plain.OrderPage) { p.Orders[7].Notes = new("changed") }),
	}
	for _, n := range []int{1, 100, 10_000} {
		document := plain.EventJSON(n, "uniform")
		list = append(list,
			received(t, fmt.Sprintf("event/%d/unchanged", n), document, func(*webhooks.Event) {}, func(*plainEvent) {}),
			received(t, fmt.Sprintf("event/%d/changed", n), document, func(e *webhooks.Event) { e.Data.(*webhooks.Samples).Data[0].Unit = "changed" },
				func(e *plainEvent) { e.Data.Data[0].Unit = "changed" }))
	}
	return list
}

// plainUser is a user as a plain struct.
type plainUser struct {
	UserID           uuid.UUID `json:"user_id"`
	TeamID           uuid.UUID `json:"team_id"`
	ClientUserID     string    `json:"client_user_id"`
	CreatedOn        time.Time `json:"created_on"`
	ConnectedSources []struct {
		Source    plain.Source `json:"source"`
		CreatedOn time.Time    `json:"created_on"`
	} `json:"connected_sources"`
	FallbackTimeZone *struct {
		ID         string    `json:"id"`
		SourceSlug string    `json:"source_slug"`
		UpdatedAt  time.Time `json:"updated_at"`
	} `json:"fallback_time_zone"`
}

// plainEvent is an event with uniform samples as a plain struct, without times that they do not
// have.
type plainEvent struct {
	plain.IDs
	Data struct {
		UserID   uuid.UUID    `json:"user_id"`
		Source   plain.Source `json:"source"`
		SourceID int          `json:"source_id"`
		Data     []struct {
			Timestamp      time.Time `json:"timestamp"`
			TimezoneOffset *int      `json:"timezone_offset"`
			Type           *string   `json:"type"`
			Unit           string    `json:"unit"`
			Value          float64   `json:"value"`
		} `json:"data"`
	} `json:"data"`
}

func importBody() labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID: uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"), BillingType: labhealth.BillingPatientBillPassthrough,
		CollectionMethod: labhealth.CollectionMethodTestkit, SampleID: "SAMPLE-1",
		OrderSet: labhealth.OrderSetRequest{
			LabTestIDs: []uuid.UUID{uuid.MustParse("6b41f610-ebc5-4803-8f0c-a61c3bdc7f02")},
			AddOn:      &labhealth.AddOnOrder{MarkerIDs: []int64{901, 902}, ProviderIDs: []string{"P-903"}},
		},
		Physician: &labhealth.PhysicianCreateRequest{FirstName: "Jane", LastName: "Doctor", NPI: "1234567890", LicensedStates: []string{"CA", "NV"}},
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1950, Month: time.January, Day: 31},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com", Race: new(labhealth.RaceAsian),
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", SecondLine: new("Apt 4"), City: "San Francisco",
			State: "CA", Zip: "94105", Country: "US", AccessNotes: new("ring twice"),
		},
	}
}

// request compares encoders of a request body.
func request[T any](name string, body T) writing {
	return encoders("request/"+name, func() ([]byte, error) { return jsonread.MarshalPlain(&body) }, encoder{}, &body)
}

// received compares encoders of a value that was decoded from a document, into O and into the plain
// struct P, and then changed.
func received[O, P any](t testing.TB, name string, document []byte, change func(*O), changePlain func(*P)) writing {
	ours, others := new(O), new(P)
	for _, v := range []any{ours, others} {
		if err := json.Unmarshal(document, v); err != nil {
			t.Fatal(name, err)
		}
	}
	change(ours)
	changePlain(others)
	viaJSON := encoder{"ours-json", func() ([]byte, error) { return json.Marshal(ours) }}
	return encoders(name, any(ours).(json.Marshaler).MarshalJSON, viaJSON, others)
}

type encoder struct {
	name   string
	encode func() ([]byte, error)
}

// encoders compares ours, and more unless it is zero, with other libraries, which encode others.
func encoders(name string, ours func() ([]byte, error), more encoder, others any) writing {
	var list []decoder
	for _, e := range []encoder{
		{"encoding", func() ([]byte, error) { return json.Marshal(others) }},
		{"ours", ours},
		more,
		{"goccy", func() ([]byte, error) { return gojson.Marshal(others) }},
		{"sonic", func() ([]byte, error) { return sonic.ConfigFastest.Marshal(others) }},
	} {
		if e.encode != nil {
			list = append(list, decoder{e.name, func([]byte) (any, error) { return e.encode() }})
		}
	}
	document, _ := ours() // for its size
	return writing{name, comparison[any]{document, list, func(v any) any { return content(nil, json.RawMessage(v.([]byte))) }, reflect.DeepEqual}}
}
