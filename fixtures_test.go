package labhealth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jarcoal/httpmock"
)

// fixtures are answers with what is odd about them in their names. Each is read as the literal value beside it, which names
// what does not fit, and is written back with every member that came.
var fixtures = []struct {
	file      string
	want      any
	malformed []Malformed
}{
	{
		file: "order_dob_is_a_date.json",
		want: &Order{
			ID:             uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			UserID:         uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
			TeamID:         uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
			PatientDetails: &OrderPatientDetails{DOB: Date{1990, time.January, 31}, Gender: "female"},
			CreatedAt:      time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC),
			UpdatedAt:      time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC),
			Events:         []OrderEvent{},
			BillingType:    "client_bill",
		},
	},
	{
		file: "order_dob_is_a_date_time.json",
		want: &Order{
			ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			PatientDetails: &OrderPatientDetails{
				DOB: Date{1990, time.January, 31}, // as written, although it was the 30th in London
				MedicalProxy: &GuarantorDetails{
					FirstName:   "Grace",
					LastName:    "Example",
					Address:     Address{FirstLine: "1 Sample Street", Country: "US", Zip: "94105", City: "Springfield", State: "CA", SecondLine: new("")},
					PhoneNumber: "+14155550123",
				},
				Gender: "female",
			},
			BillingType: "client_bill",
			ActivateBy:  &Date{2025, time.July, 6},
		},
	},
	{
		file: "order_times_in_every_form.json",
		want: &Order{
			ID:        uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC),
			UpdatedAt: time.Date(2025, 3, 1, 9, 30, 0, 250_000_000, time.UTC),
			Events: []OrderEvent{
				{ID: 1, CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC), Status: "received.testkit.ordered"},
				{ID: 2, CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 123_000_000, time.UTC), Status: "received.testkit.requisition_created"},
				{ID: 3, CreatedAt: time.Date(2025, 3, 1, 17, 30, 0, 123_456_000, time.UTC), Status: "collecting_sample.testkit.transit_customer"},
				{ID: 4, CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC), Status: "collecting_sample.testkit.with_customer"},
				{ID: 5, CreatedAt: time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), Status: "collecting_sample.testkit.transit_lab"},
			},
			BillingType: "client_bill",
			OrderTransaction: &OrderTransaction{
				ID:     uuid.MustParse("5c0d9e81-7a36-4f2b-8e4d-3b6a1f7c9d05"),
				Status: "active",
				Orders: []OrderInTransaction{{
					ID:                      uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
					CreatedAt:               time.Date(2025, 3, 1, 9, 30, 0, 1000, time.UTC),
					UpdatedAt:               time.Date(2025, 3, 1, 9, 30, 0, 1000, time.UTC),
					LowLevelStatus:          new(OrderLowLevelStatus("transit_lab")),
					LowLevelStatusCreatedAt: new(time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC)),
					Origin:                  new(OrderOrigin("initial")),
				}},
			},
		},
	},
	{
		file: "order_update_answer_is_reduced.json",
		want: &PostOrderResponse{
			Order: Order{
				ID:          uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
				UserID:      uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
				TeamID:      uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
				ActivateBy:  &Date{2025, time.September, 1},
				Status:      new(OrderTopLevelStatus("received")),
				BillingType: "client_bill",
			},
			Status:  "success",
			Message: "order updated",
		},
	},
	{
		file: "order_required_members_are_missing.json",
		want: &PostOrderResponse{
			Order: Order{
				ID:       uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
				UserID:   uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
				TeamID:   uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
				LabTest:  LabTest{Name: "Basic lipids", Method: "testkit"},
				Details:  OrderDetails{Type: "testkit"},
				SampleID: new("S-0001"),
				Events: []OrderEvent{
					{ID: 1, CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC), Status: "received.testkit.ordered"},
					{ID: 2, CreatedAt: time.Date(2025, 3, 1, 9, 30, 1, 0, time.UTC), Status: "received.testkit.requisition_bypassed"},
				},
				BillingType: "client_bill",
			},
			Status: "success",
		},
	},
	{
		file: "order_null_everywhere.json",
		want: &Order{
			ID:             uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			PatientDetails: &OrderPatientDetails{},
			PatientAddress: &OrderPatientAddress{},
			Details: OrderDetails{
				Type: "testkit",
				Data: &TestkitOrder{Shipment: &Shipment{ID: uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06")}},
			},
			Events:           []OrderEvent{{}, {}},
			BillingType:      "client_bill",
			OrderTransaction: &OrderTransaction{Orders: []OrderInTransaction{{}}},
		},
	},
	{
		file: "order_enum_values_outside_the_enums.json",
		want: &Order{
			ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			PatientDetails: &OrderPatientDetails{
				DOB:               Date{1990, time.January, 31},
				Gender:            "male | female",
				Race:              new(Race("Martian")),
				Ethnicity:         new(Ethnicity("")),
				SexualOrientation: new(SexualOrientation("Prefer not to say")),
				GenderIdentity:    new(GenderIdentity("two_spirit")),
			},
			LabTest: LabTest{
				SampleType: "dried blood spot",
				Method:     "at_home_phlebomoty",
				Status:     "retired",
				Markers:    []Marker{{ID: 1, Type: new(MarkerType("ratio")), IsOrderable: new(true)}},
			},
			Details: OrderDetails{
				Type: "on_site_collection",
				Data: &OnSiteCollectionOrder{ID: uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06")},
			},
			Events: []OrderEvent{
				{ID: 1, Status: "received.testkit.testkit_registered", StatusDetail: new(OrderStatusDetail("lost_in_space"))},
				{ID: 2, Status: "collecting_sample.on_site_collection.draw_completed"},
				{ID: 3, Status: "completed.walk_in_test.partial_results"},
			},
			Status:         new(OrderTopLevelStatus("on_hold")),
			LastEvent:      OrderEvent{ID: 3, Status: "completed"},
			BillingType:    "barter",
			Interpretation: new(Interpretation("borderline")),
			Origin:         new(OrderOrigin("reflex")),
			OrderTransaction: &OrderTransaction{
				Status: "paused",
				Orders: []OrderInTransaction{{
					LowLevelStatus: new(OrderLowLevelStatus("testkit_registered")),
					Origin:         new(OrderOrigin("reflex")),
				}},
			},
		},
	},
	{
		file: "order_details_of_an_unknown_type.json",
		want: &Order{
			ID:          uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			Details:     OrderDetails{Type: "drone_pickup", Data: &UnknownOrderDetails{}},
			BillingType: "client_bill",
		},
	},
	{
		file: "order_unknown_members_at_every_depth.json",
		want: &PostOrderResponse{
			Order: Order{
				ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
				PatientDetails: &OrderPatientDetails{
					DOB:          Date{1990, time.January, 31},
					Gender:       "female",
					MedicalProxy: &GuarantorDetails{FirstName: "Grace", Address: Address{City: "Springfield", SecondLine: new("")}},
				},
				PatientAddress: &OrderPatientAddress{City: "Springfield"},
				LabTest: LabTest{
					Name: "Basic lipids",
					Lab:  &Lab{ID: 27},
					Markers: []Marker{{
						ID:          101,
						AoE:         &AoE{Questions: []AoEQuestion{{ID: 5, Answers: []AoEAnswerOption{{ID: 6}}}}},
						IsOrderable: new(true),
					}},
				},
				Details: OrderDetails{
					Type: "testkit",
					Data: &TestkitOrder{
						ID:       uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06"),
						Shipment: &Shipment{ID: uuid.MustParse("9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c07")},
					},
				},
				Events:           []OrderEvent{{ID: 1}},
				LastEvent:        OrderEvent{ID: 2},
				Physician:        &OrderPhysician{NPI: "1234567893"},
				ShippingDetails:  &ShippingAddress{Zip: "94105"},
				BillingType:      "client_bill",
				OrderTransaction: &OrderTransaction{Orders: []OrderInTransaction{{Origin: new(OrderOrigin("redraw"))}}},
			},
			Message: "Order created successfully",
		},
	},
	{
		file: "order_malformed_values.json",
		want: &Order{
			PatientDetails: &OrderPatientDetails{Email: new("ada@example.com")},
			LabTest: LabTest{
				Markers: []Marker{{IsOrderable: new(true)}, {}, {ID: 102, Price: new("N/A"), IsOrderable: new(true)}},
			},
			Details:  OrderDetails{Type: "walk_in_test"},
			Events:   []OrderEvent{{ID: 1, Status: "received.walk_in_test.ordered"}, {}, {}},
			ICDCodes: []string{"E78.5", "", "R73.03"},
		},
		malformed: []Malformed{
			{"id", "uuid"},
			{"user_id", "uuid"},
			{"team_id", "uuid"},
			{"patient_details.dob", "date"},
			{"patient_details.gender", "string"},
			{"patient_details.first_name", "string"},
			{"patient_address", "object"},
			{"lab_test.id", "uuid"},
			{"lab_test.price", "number"},
			{"lab_test.is_active", "boolean"},
			{"lab_test.markers.0.id", "integer"},
			{"lab_test.markers.0.price", "string"},
			{"lab_test.markers.1", "object"},
			{"details.data", "object"},
			{"sample_id", "string"},
			{"created_at", "date-time"},
			{"updated_at", "date-time"},
			{"events.1", "object"},
			{"events.2.id", "integer"},
			{"events.2.created_at", "date-time"},
			{"last_event", "object"},
			{"priority", "boolean"},
			{"activate_by", "date"},
			{"billing_type", "string"},
			{"icd_codes.1", "string"},
			{"has_abn", "boolean"},
			{"expected_result_by_date", "date"},
		},
	},
	{
		file: "order_misspelt_and_legacy_members.json",
		want: &Order{
			ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			Details: OrderDetails{
				Type: "at_home_phlebotomy",
				Data: &AtHomePhlebotomyOrder{ID: uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06")},
			},
			BillingType: "client_bill",
		},
	},
	{
		file: "orders_elements_that_are_not_orders.json",
		want: &OrderPage{
			Orders: []Order{
				{ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"), Events: []OrderEvent{{ID: 1}, {}}, BillingType: "client_bill"},
				{}, {}, {}, {},
				{ID: uuid.MustParse("6c4f9d85-ba30-4ead-8f44-8b5aad237e04"), BillingType: "client_bill"},
			},
			Page: new(int64(1)),
			Size: new(int64(50)),
		},
		malformed: []Malformed{
			{"orders.0.events.1", "object"},
			{"orders.1", "object"},
			{"orders.2", "object"},
			{"orders.4", "object"},
			{"orders.5.details", "object"},
			{"total", "integer"},
		},
	},
	{
		file: "lab_tests_prices_and_ids.json",
		want: &LabTestPage{
			Data: []LabTest{
				{
					ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c01"), Slug: "lipids", Name: "Basic lipids", SampleType: "serum", Method: "walk_in_test",
					Price: "45", IsActive: true, Status: "active",
					Markers: []Marker{
						{ID: 1234567890251, Name: "Cholesterol", Slug: "cholesterol", Price: new("10.00"), IsOrderable: new(true)},
						{ID: 2, Name: "Triglycerides", Slug: "triglycerides", Price: new("N/A"), ALaCarteEnabled: true},
					},
				},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c02"), Price: "0.0"},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c03"), Price: "10.10", Markers: []Marker{}},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c04"), Fasting: true},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c05"), Price: "123456789012345678.90", Lab: &Lab{ID: 27}},
			},
			Pricing: json.RawMessage(`{"currency": "USD"}`),
		},
		malformed: []Malformed{{"data.3.price", "number"}},
	},
	{
		file: "lab_test_questions_at_order_entry.json",
		want: &LabTest{
			ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c01"),
			Markers: []Marker{
				{
					ID: 1, Name: "Glucose", Slug: "glucose", IsOrderable: new(true),
					AoE: &AoE{Questions: []AoEQuestion{
						{
							ID: 1234567890251, Code: "FSTING", Value: "Has the patient fasted?", Required: new(true),
							Type: new(AoEQuestionType("choice")), Sequence: new(int64(1)), Default: new("N"),
							Answers: []AoEAnswerOption{{ID: 9876543210987, Code: "Y", Value: "Yes"}, {ID: 2, Code: "N", Value: "No"}},
						},
						{ID: 3, Code: "WEIGHT", Value: "Weight in pounds", Type: new(AoEQuestionType("numeric")), Answers: []AoEAnswerOption{}},
						{ID: 4, Code: "DRUGS", Value: "Medication", Type: new(AoEQuestionType("multiple_choice"))},
						{ID: 5, Code: "NOTE", Value: "Anything else"},
					}},
				},
				{ID: 2, Name: "Insulin", Slug: "insulin", IsOrderable: new(true)},
			},
		},
	},
	{
		file: "users_with_little_known.json",
		want: &UserPage{
			Users: []User{
				{
					UserID:       uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
					TeamID:       uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
					ClientUserID: "3Zru4O8cBEiwGTsXgUQGaQ==",
					CreatedOn:    time.Date(2025, 3, 1, 9, 30, 0, 123_456_000, time.UTC),
					ConnectedSources: []ConnectedSource{
						{
							CreatedOn: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC),
							Source:    Source{Name: "Example Ring", Slug: "example_ring", Logo: "logo_url"},
							Provider:  &Source{Name: "Example Ring", Slug: "example_ring", Logo: "https://example.com/ring.png"},
						},
						{Source: Source{Slug: "example_watch"}},
						{},
					},
					FallbackBirthDate: &FallbackBirthDate{Value: Date{1990, time.January, 31}, SourceSlug: "example_ring", UpdatedAt: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC)},
					FallbackTimeZone:  &FallbackTimeZone{ID: "Europe/London", SourceSlug: "example_ring", UpdatedAt: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC)},
					IngestionStart:    &Date{2024, time.January, 1},
				},
				{UserID: uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e703"), ClientUserID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
				{},
				{UserID: uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e705"), FallbackBirthDate: &FallbackBirthDate{}},
			},
			Total: 4,
		},
		malformed: []Malformed{
			{"users.0.connected_sources.2", "object"},
			{"users.2.user_id", "uuid"},
			{"users.3.client_user_id", "string"},
			{"users.3.fallback_birth_date.value", "date"},
		},
	},
	{
		file: "results_as_the_lab_wrote_them.json",
		want: &OrderResults{
			Metadata: ResultsMetadata{DOB: "18/08/1993", Patient: "Ada Example", SpecimenNumber: "S-0001", DateReported: "2025-03-05", CLIA: new("12D4567890"), Status: "final"},
			Results: []Result{
				{
					Name: "Glucose", Slug: "glucose", Result: "90", Type: new(ResultType("numeric")), Value: new(json.Number("90")), Unit: new("mg/dL"),
					MinRangeValue: new(70.0), Interpretation: "normal",
				},
				{Name: "Lead", Slug: "lead", Result: "<0.5", ResultType: new(ResultType("range")), Interpretation: "normal"},
			},
			SampleInformation: map[string]json.RawMessage{"S-0001": json.RawMessage(`{"received": "2025-03-04"}`), "S-0002": nil},
		},
		malformed: []Malformed{{"metadata.age", "string"}, {"results.1.value", "number"}},
	},
}

func TestFixtures(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range fixtures {
		seen[f.file] = true
		t.Run(f.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", f.file))
			if err != nil {
				t.Fatal(err)
			}
			got := newOf(f.want)
			if err := json.Unmarshal(text, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(f.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			kept := got.(interface {
				RawJSON() json.RawMessage
				Malformed() []Malformed
			})
			if diff := cmp.Diff(f.malformed, kept.Malformed()); diff != "" {
				t.Errorf("malformed (-want +got)\n%s", diff)
			}
			if raw := kept.RawJSON(); string(raw) != string(bytes.TrimSpace(text)) {
				t.Errorf("RawJSON is not what came:\n%s", raw)
			}
			sameData(t, text, mustEncode(t, got))
			if b, err := got.(json.Marshaler).MarshalJSON(); err != nil || string(b) != string(bytes.TrimSpace(text)) {
				t.Errorf("not written byte for byte: %v\n%s", err, b)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(fixtures) {
		t.Errorf("%d files for %d fixtures: %v", len(files), len(fixtures), err)
	}
	for _, file := range files {
		if !seen[filepath.Base(file)] {
			t.Errorf("%s is not read", file)
		}
	}
}

// sameData fails if the two texts do not stand for the same JSON value, digits of numbers included.
func sameData(t testing.TB, want, got []byte) {
	t.Helper()
	read := func(text []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return v
	}
	if diff := cmp.Diff(read(want), read(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func newOf(example any) any {
	switch example.(type) {
	case *Order:
		return new(Order)
	case *PostOrderResponse:
		return new(PostOrderResponse)
	case *OrderPage:
		return new(OrderPage)
	case *LabTest:
		return new(LabTest)
	case *LabTestPage:
		return new(LabTestPage)
	case *UserPage:
		return new(UserPage)
	case *OrderResults:
		return new(OrderResults)
	}
	panic("no such type")
}

// What is unknown keeps its bytes.
func TestUnknownDetailsKeepTheirBytes(t *testing.T) {
	text, err := os.ReadFile("testdata/order_details_of_an_unknown_type.json")
	if err != nil {
		t.Fatal(err)
	}
	var order Order
	mustDecode(t, text, &order)
	unknown := order.Details.Data.(*UnknownOrderDetails)
	const want = `{"id": "8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06", "drone": {"callsign": "Kestrel", "altitude": 1.20e2}}`
	if got := string(unknown.RawJSON()); got != want {
		t.Errorf("got %s", got)
	}
	sameData(t, []byte(want), mustEncode(t, unknown))
}

// The status of an answer that names none in the usual place.
func TestCurrentStatus(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2025, 3, day, 0, 0, 0, 0, time.UTC) }
	tests := []struct {
		order Order
		want  OrderStatus
	}{
		{Order{}, ""},
		{Order{LastEvent: OrderEvent{Status: "a.b.c"}, Events: []OrderEvent{{CreatedAt: at(9), Status: "d.e.f"}}}, "a.b.c"},
		{Order{Events: []OrderEvent{{CreatedAt: at(1), Status: "a.b.c"}, {CreatedAt: at(3), Status: "d.e.f"}, {CreatedAt: at(2), Status: "g.h.i"}}}, "d.e.f"},
		{Order{Events: []OrderEvent{{CreatedAt: at(1), Status: "a.b.c"}, {CreatedAt: at(1), Status: "d.e.f"}}}, "d.e.f"},
		{Order{Events: []OrderEvent{{Status: "a.b.c"}, {Status: "d.e.f"}, {}}}, "d.e.f"},
		{Order{Events: []OrderEvent{{CreatedAt: at(1), Status: "a.b.c"}, {CreatedAt: at(2)}}}, "a.b.c"},
	}
	for _, test := range tests {
		if got := test.order.CurrentStatus(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// answering returns a client whose every request gets the same answer.
func answering(t *testing.T, status int, contentType, body string) *Client {
	t.Helper()
	mock := httpmock.NewMockTransport()
	mock.RegisterNoResponder(func(*http.Request) (*http.Response, error) {
		r := httpmock.NewStringResponse(status, body)
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		return r, nil
	})
	client, err := NewClient("sk_test_0123456789", WithBaseURL("https://api.example.com"),
		WithHTTPClient(&http.Client{Transport: mock}), WithRetry(RetryPolicy{MaxAttempts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const (
	readableAnswer = `{"order":{"id":"3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01","notes":"Ada Example"},"status":"success","message":"m"}`
	htmlPage       = "<!DOCTYPE html>\n<html><body>Ada Example: Bad gateway</body></html>"
	jsonType       = "application/json"
)

// Answers that come with an odd wrapping are read; what shows no order is a DecodeError that quotes nothing.
func TestAnswersOfAnImport(t *testing.T) {
	const isHTML = "it is HTML, not JSON; something between here and the service may have sent it"
	tests := []struct {
		name, contentType, body string
		reason                  string // empty if it is read
	}{
		{"as documented", jsonType, readableAnswer, ""},
		{"no content type", "", readableAnswer, ""},
		{"an odd content type", "text/plain; charset=iso-8859-1", readableAnswer, ""},
		{"spaces around", jsonType, " \r\n" + readableAnswer + "\n\t ", ""},
		{"in a list of one", jsonType, "[" + readableAnswer + "]", ""},
		{"an HTML page", "text/html; charset=utf-8", htmlPage, isHTML},
		{"an HTML page that says it is JSON", jsonType, htmlPage, isHTML},
		{"JSON that says it is an HTML page", "Text/HTML", readableAnswer, isHTML},
		{"nothing", jsonType, "", "it is empty"},
		{"nothing but spaces", jsonType, " \r\n\t", "it is empty"},
		{"two documents", jsonType, readableAnswer + "\n" + readableAnswer, "it is not valid JSON at byte 111: data after the JSON value"},
		{"text after the document", jsonType, readableAnswer + "Ada", "it is not valid JSON at byte 110: data after the JSON value"},
		{"cut short", jsonType, readableAnswer[:80], "it is not valid JSON at byte 80: unexpected end of JSON"},
		{"invalid UTF-8", jsonType, strings.Replace(readableAnswer, "Ada", "Ad\xe4", 1), "it is not valid JSON at byte 65: invalid UTF-8"},
		{"a byte order mark", jsonType, "\ufeff" + readableAnswer, "it is not valid JSON at byte 0: unexpected character"},
		{"text", "text/plain", "Ada Example", "it is not valid JSON at byte 0: unexpected character"},
		{"null", jsonType, "null", "it is not a JSON object"},
		{"a string", jsonType, `"Success"`, "it is not a JSON object"},
		{"a list of two", jsonType, "[" + readableAnswer + "," + readableAnswer + "]", "it is not a JSON object"},
		{"an empty list", jsonType, "[]", "it is not a JSON object"},
		{"no order", jsonType, `{"status":"success"}`, "it has no readable order id"},
		{"a bad order id", jsonType, strings.Replace(readableAnswer, "3f1c", "3g1c", 1), "it has no readable order id"},
		{"an order of another kind", jsonType, `{"order":"3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"}`, "it has no readable order id"},
		{"nested too deeply", jsonType, `{"a":` + strings.Repeat("[", 2000), "it is not valid JSON at byte 1004: nested too deeply"},
	}
	for _, test := range tests {
		got, err := answering(t, 200, test.contentType, test.body).Orders.Import(context.Background(), goodImport())
		if test.reason == "" {
			if err != nil || got.Order.ID.String() != "3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01" || got.Status != "success" || string(got.RawJSON()) != readableAnswer {
				t.Errorf("%s: %v, %v", test.name, got, err)
			}
			continue
		}
		var e *DecodeError
		if !errors.As(err, &e) || e.Reason != test.reason || got != nil {
			t.Errorf("%s: got %v, want %s", test.name, err, test.reason)
			continue
		}
		if string(e.Body()) != test.body {
			t.Errorf("%s: the body is not what came", test.name)
		}
		if text := err.Error(); strings.Contains(text, "Ada") || strings.Contains(text, "3f1c") {
			t.Errorf("%s: quoted by %s", test.name, text)
		}
	}
}

// Lists come bare, and their elements wrapped.
func TestAnswersOfLists(t *testing.T) {
	ctx := context.Background()
	const user = `{"user_id":"7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702","new":1}`
	users, err := answering(t, 200, jsonType, "["+user+"]").Users.List(ctx, ListUsersParams{})
	if err != nil || len(users.Users) != 1 || users.Users[0].UserID != someUser || users.Total != 1 {
		t.Errorf("%v, %v", users, err)
	}
	const lipids = `{"id":"1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c01","name":"Basic lipids","new":1}`
	for _, body := range []string{"[" + lipids + "]", `{"data":[` + lipids + `]}`, `{"data":[{"lab_test":` + lipids + `}],"next_cursor":null}`, `[{"lab_test":` + lipids + `}]`} {
		page, err := answering(t, 200, jsonType, body).LabTests.List(ctx, ListLabTestsParams{})
		if err != nil || len(page.Data) != 1 || page.Data[0].ID != someTest || page.Data[0].Name != "Basic lipids" {
			t.Errorf("%s: %v, %v", body, page, err)
			continue
		}
		sameData(t, []byte(lipids), mustEncode(t, page.Data[0]))
	}
	// What is neither an object nor a list is no page. A page without its list does not say that there is nothing: a program that
	// looks for a lost order there would import it again.
	if _, err := answering(t, 200, jsonType, `"users"`).Users.List(ctx, ListUsersParams{}); err == nil {
		t.Error("a string is a page of users")
	}
	for _, body := range []string{`{}`, `{"orders":null,"users":null}`, `{"message":"maintenance"}`} {
		var unreadable *DecodeError
		if page, err := answering(t, 200, jsonType, body).Orders.List(ctx, ListOrdersParams{}); page != nil || !errors.As(err, &unreadable) || unreadable.Reason != "it has no list" {
			t.Errorf("%s: %v, %v", body, page, err)
		}
		if page, err := answering(t, 200, jsonType, body).Users.List(ctx, ListUsersParams{}); page != nil || !errors.As(err, &unreadable) || unreadable.Reason != "it has no list" {
			t.Errorf("%s: %v, %v", body, page, err)
		}
	}
	if page, err := answering(t, 200, jsonType, `{"orders":[]}`).Orders.List(ctx, ListOrdersParams{}); err != nil || len(page.Orders) != 0 {
		t.Errorf("%v, %v", page, err)
	}
}

// The detail of an error comes in every form, and so does the body. No text of an error repeats it.
func TestAnswersThatAreErrors(t *testing.T) {
	tests := []struct {
		name        string
		status      int
		contentType string
		body        string
		detail      string // as it came
		fields      []FieldError
		text        string
	}{
		{"detail is a string", 400, jsonType, `{"detail":"Ada Example is unknown"}`, `"Ada Example is unknown"`, nil, "labhealth: POST /v3/order/import: 400 Bad Request"},
		{"detail is an object", 400, jsonType, `{"detail": {"error_type": "INVALID_REQUEST", "error_message": "Ada"}}`,
			`{"error_type": "INVALID_REQUEST", "error_message": "Ada"}`, nil, "labhealth: POST /v3/order/import: 400 Bad Request"},
		{"detail is a list", 422, jsonType, `{"detail":[{"type":"string_too_long","loc":["body","patient_details","first_name"],"msg":"Ada","input":"Ada","ctx":{}},{"type":"enum","loc":["body","events",3],"msg":"x"}]}`,
			`[{"type":"string_too_long","loc":["body","patient_details","first_name"],"msg":"Ada","input":"Ada","ctx":{}},{"type":"enum","loc":["body","events",3],"msg":"x"}]`,
			[]FieldError{{[]string{"body", "patient_details", "first_name"}, "string_too_long", "Ada"}, {[]string{"body", "events", "3"}, "enum", "x"}},
			"labhealth: POST /v3/order/import: 422 Unprocessable Entity: body.patient_details.first_name (string_too_long), body.events.3 (enum)"},
		{"detail is a list with broken elements", 422, jsonType, `{"detail":["Ada",7,{"loc":["body",{}],"msg":"m"},{"loc":[],"type":5}]}`,
			`["Ada",7,{"loc":["body",{}],"msg":"m"},{"loc":[],"type":5}]`, []FieldError{{Loc: []string{"body", "{}"}, Msg: "m"}},
			"labhealth: POST /v3/order/import: 422 Unprocessable Entity: body.? (invalid)"},
		{"detail is absent", 409, jsonType, `{"error":"Conflict","message":"Ada","status_code":409}`, "", nil, "labhealth: POST /v3/order/import: 409 Conflict"},
		{"detail is a number", 400, jsonType, `{"detail":7}`, "7", nil, "labhealth: POST /v3/order/import: 400 Bad Request"},
		{"the body is a list", 400, jsonType, `[{"detail":"Ada"}]`, "", nil, "labhealth: POST /v3/order/import: 400 Bad Request"},
		{"the body is HTML", 502, "text/html", htmlPage, "", nil, "labhealth: POST /v3/order/import: 502 Bad Gateway"},
		{"the body is text", 500, "text/plain", "Internal Server Error: Ada", "", nil, "labhealth: POST /v3/order/import: 500 Internal Server Error"},
		{"the body is empty", 404, "", "", "", nil, "labhealth: POST /v3/order/import: 404 Not Found"},
		{"the body is cut short", 422, jsonType, `{"detail":[{"loc":["body","Ada"`, "", nil, "labhealth: POST /v3/order/import: 422 Unprocessable Entity"},
		{"the body is invalid UTF-8", 400, jsonType, "{\"detail\":\"Ad\xe4\"}", "", nil, "labhealth: POST /v3/order/import: 400 Bad Request"},
	}
	for _, test := range tests {
		_, err := answering(t, test.status, test.contentType, test.body).Orders.Import(context.Background(), goodImport())
		var e *APIError
		if !errors.As(err, &e) || e.StatusCode != test.status {
			t.Errorf("%s: got %v", test.name, err)
			continue
		}
		if err.Error() != test.text {
			t.Errorf("%s: got %q, want %q", test.name, err, test.text)
		}
		if string(e.Detail()) != test.detail || string(e.Body()) != test.body {
			t.Errorf("%s: detail %s, body %s", test.name, e.Detail(), e.Body())
		}
		if diff := cmp.Diff(test.fields, e.Fields()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}
