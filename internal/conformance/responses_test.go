//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/labhealth/labhealth-go"
)

// fixtures are odd responses, described by their names. Each decodes to the literal value beside
// it, reports its malformed fields, and encodes to the received JSON.
var fixtures = []struct {
	file      string
	want      any
	malformed []labhealth.Malformed
}{
	{
		file: "order_dob_is_a_date.json",
		want: &labhealth.Order{
			ID:             uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			UserID:         uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
			TeamID:         uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
			PatientDetails: &labhealth.OrderPatientDetails{DOB: labhealth.Date{Year: 1990, Month: time.January, Day: 31}, Gender: "female"},
			CreatedAt:      time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC),
			UpdatedAt:      time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC),
			Events:         []labhealth.OrderEvent{},
			BillingType:    "client_bill",
		},
	},
	{
		file: "order_dob_is_a_date_time.json",
		want: &labhealth.Order{
			ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			PatientDetails: &labhealth.OrderPatientDetails{
				DOB: labhealth.Date{Year: 1990, Month: time.January, Day: 31}, // as written, although it was the 30th in London
				MedicalProxy: &labhealth.GuarantorDetails{
					FirstName:   "Grace",
					LastName:    "Example",
					Address:     labhealth.Address{FirstLine: "1 Sample Street", Country: "US", Zip: "94105", City: "Springfield", State: "CA", SecondLine: new("")},
					PhoneNumber: "+14155550123",
				},
				Gender: "female",
			},
			BillingType: "client_bill",
			ActivateBy:  &labhealth.Date{Year: 2025, Month: time.July, Day: 6},
		},
	},
	{
		file: "order_times_in_every_form.json",
		want: &labhealth.Order{
			ID:        uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC),
			UpdatedAt: time.Date(2025, 3, 1, 9, 30, 0, 250_000_000, time.UTC),
			Events: []labhealth.OrderEvent{
				{ID: 1, CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC), Status: "received.testkit.ordered"},
				{ID: 2, CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 123_000_000, time.UTC), Status: "received.testkit.requisition_created"},
				{ID: 3, CreatedAt: time.Date(2025, 3, 1, 17, 30, 0, 123_456_000, time.UTC), Status: "collecting_sample.testkit.transit_customer"},
				{ID: 4, CreatedAt: time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC), Status: "collecting_sample.testkit.with_customer"},
				{ID: 5, CreatedAt: time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), Status: "collecting_sample.testkit.transit_lab"},
			},
			BillingType: "client_bill",
			OrderTransaction: &labhealth.OrderTransaction{
				ID:     uuid.MustParse("5c0d9e81-7a36-4f2b-8e4d-3b6a1f7c9d05"),
				Status: "active",
				Orders: []labhealth.OrderInTransaction{{
					ID:                      uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
					CreatedAt:               time.Date(2025, 3, 1, 9, 30, 0, 1000, time.UTC),
					UpdatedAt:               time.Date(2025, 3, 1, 9, 30, 0, 1000, time.UTC),
					LowLevelStatus:          new(labhealth.OrderLowLevelStatus("transit_lab")),
					LowLevelStatusCreatedAt: new(time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC)),
					Origin:                  new(labhealth.OrderOrigin("initial")),
				}},
			},
		},
	},
	{
		file: "order_update_response_is_reduced.json",
		want: &labhealth.PostOrderResponse{
			Order: labhealth.Order{
				ID:          uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
				UserID:      uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
				TeamID:      uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
				ActivateBy:  &labhealth.Date{Year: 2025, Month: time.September, Day: 1},
				Status:      new(labhealth.OrderTopLevelStatus("received")),
				BillingType: "client_bill",
			},
			Status:  "success",
			Message: "order updated",
		},
	},
	{
		file: "order_required_fields_are_missing.json",
		want: &labhealth.PostOrderResponse{
			Order: labhealth.Order{
				ID:       uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
				UserID:   uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
				TeamID:   uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
				LabTest:  labhealth.LabTest{Name: "Basic lipids", Method: "testkit"},
				Details:  labhealth.OrderDetails{Type: "testkit"},
				SampleID: new("S-0001"),
				Events: []labhealth.OrderEvent{
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
		want: &labhealth.Order{
			ID:             uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			PatientDetails: &labhealth.OrderPatientDetails{},
			PatientAddress: &labhealth.OrderPatientAddress{},
			Details: labhealth.OrderDetails{
				Type: "testkit",
				Data: &labhealth.TestkitOrder{Shipment: &labhealth.Shipment{ID: uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06")}},
			},
			Events:           []labhealth.OrderEvent{{}, {}},
			BillingType:      "client_bill",
			OrderTransaction: &labhealth.OrderTransaction{Orders: []labhealth.OrderInTransaction{{}}},
		},
	},
	{
		file: "order_enum_values_outside_the_enums.json",
		want: &labhealth.Order{
			ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			PatientDetails: &labhealth.OrderPatientDetails{
				DOB:               labhealth.Date{Year: 1990, Month: time.January, Day: 31},
				Gender:            "male | female",
				Race:              new(labhealth.Race("Martian")),
				Ethnicity:         new(labhealth.Ethnicity("")),
				SexualOrientation: new(labhealth.SexualOrientation("Prefer not to say")),
				GenderIdentity:    new(labhealth.GenderIdentity("two_spirit")),
			},
			LabTest: labhealth.LabTest{
				SampleType: "dried blood spot",
				Method:     "at_home_phlebomoty",
				Status:     "retired",
				Markers:    []labhealth.Marker{{ID: 1, Type: new(labhealth.MarkerType("ratio")), IsOrderable: new(true)}},
			},
			Details: labhealth.OrderDetails{
				Type: "on_site_collection",
				Data: &labhealth.OnSiteCollectionOrder{ID: uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06")},
			},
			Events: []labhealth.OrderEvent{
				{ID: 1, Status: "received.testkit.testkit_registered", StatusDetail: new(labhealth.OrderStatusDetail("lost_in_space"))},
				{ID: 2, Status: "collecting_sample.on_site_collection.draw_completed"},
				{ID: 3, Status: "completed.walk_in_test.partial_results"},
			},
			Status:         new(labhealth.OrderTopLevelStatus("on_hold")),
			LastEvent:      labhealth.OrderEvent{ID: 3, Status: "completed"},
			BillingType:    "barter",
			Interpretation: new(labhealth.Interpretation("borderline")),
			Origin:         new(labhealth.OrderOrigin("reflex")),
			OrderTransaction: &labhealth.OrderTransaction{
				Status: "paused",
				Orders: []labhealth.OrderInTransaction{{
					LowLevelStatus: new(labhealth.OrderLowLevelStatus("testkit_registered")),
					Origin:         new(labhealth.OrderOrigin("reflex")),
				}},
			},
		},
	},
	{
		file: "order_details_of_an_unknown_type.json",
		want: &labhealth.Order{
			ID:          uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			Details:     labhealth.OrderDetails{Type: "drone_pickup", Data: &labhealth.UnknownOrderDetails{}},
			BillingType: "client_bill",
		},
	},
	{
		file: "order_unknown_fields_at_every_depth.json",
		want: &labhealth.PostOrderResponse{
			Order: labhealth.Order{
				ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
				PatientDetails: &labhealth.OrderPatientDetails{
					DOB:          labhealth.Date{Year: 1990, Month: time.January, Day: 31},
					Gender:       "female",
					MedicalProxy: &labhealth.GuarantorDetails{FirstName: "Grace", Address: labhealth.Address{City: "Springfield", SecondLine: new("")}},
				},
				PatientAddress: &labhealth.OrderPatientAddress{City: "Springfield"},
				LabTest: labhealth.LabTest{
					Name: "Basic lipids",
					Lab:  &labhealth.Lab{ID: 27},
					Markers: []labhealth.Marker{{
						ID:              101,
						AoE:             &labhealth.AoE{Questions: []labhealth.AoEQuestion{{ID: 5, Answers: []labhealth.AoEAnswerOption{{ID: 6}}}}},
						IsOrderable:     new(true),
						ExpectedResults: []labhealth.ExpectedResult{{ID: 1}},
					}},
				},
				Details: labhealth.OrderDetails{
					Type: "testkit",
					Data: &labhealth.TestkitOrder{
						ID:       uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06"),
						Shipment: &labhealth.Shipment{ID: uuid.MustParse("9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c07")},
					},
				},
				Events:           []labhealth.OrderEvent{{ID: 1}},
				LastEvent:        labhealth.OrderEvent{ID: 2},
				Physician:        &labhealth.OrderPhysician{NPI: "1234567893"},
				ShippingDetails:  &labhealth.ShippingAddress{Zip: "94105"},
				BillingType:      "client_bill",
				OrderTransaction: &labhealth.OrderTransaction{Orders: []labhealth.OrderInTransaction{{Origin: new(labhealth.OrderOrigin("redraw"))}}},
			},
			Message: "Order created successfully",
		},
	},
	{
		file: "order_malformed_values.json",
		want: &labhealth.Order{
			PatientDetails: &labhealth.OrderPatientDetails{Email: new("ada@example.com")},
			LabTest: labhealth.LabTest{
				Markers: []labhealth.Marker{{IsOrderable: new(true)}, {}, {ID: 102, Price: new("N/A"), IsOrderable: new(true)}},
			},
			Details:  labhealth.OrderDetails{Type: "walk_in_test"},
			Events:   []labhealth.OrderEvent{{ID: 1, Status: "received.walk_in_test.ordered"}, {}, {}},
			ICDCodes: []string{"E78.5", "", "R73.03"},
		},
		malformed: []labhealth.Malformed{
			{Path: "id", Want: "uuid"},
			{Path: "user_id", Want: "uuid"},
			{Path: "team_id", Want: "uuid"},
			{Path: "patient_details.dob", Want: "date"},
			{Path: "patient_details.gender", Want: "string"},
			{Path: "patient_details.first_name", Want: "string"},
			{Path: "patient_address", Want: "object"},
			{Path: "lab_test.id", Want: "uuid"},
			{Path: "lab_test.price", Want: "number"},
			{Path: "lab_test.is_active", Want: "boolean"},
			{Path: "lab_test.markers.0.id", Want: "integer"},
			{Path: "lab_test.markers.0.price", Want: "string"},
			{Path: "lab_test.markers.1", Want: "object"},
			{Path: "details.data", Want: "object"},
			{Path: "sample_id", Want: "string"},
			{Path: "created_at", Want: "date-time"},
			{Path: "updated_at", Want: "date-time"},
			{Path: "events.1", Want: "object"},
			{Path: "events.2.id", Want: "integer"},
			{Path: "events.2.created_at", Want: "date-time"},
			{Path: "last_event", Want: "object"},
			{Path: "priority", Want: "boolean"},
			{Path: "activate_by", Want: "date"},
			{Path: "billing_type", Want: "string"},
			{Path: "icd_codes.1", Want: "string"},
			{Path: "has_abn", Want: "boolean"},
			{Path: "expected_result_by_date", Want: "date"},
		},
	},
	{
		file: "order_misspelt_and_legacy_fields.json",
		want: &labhealth.Order{
			ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"),
			Details: labhealth.OrderDetails{
				Type: "at_home_phlebotomy",
				Data: &labhealth.AtHomePhlebotomyOrder{ID: uuid.MustParse("8e7d6c5b-4a39-4281-9f0e-1d2c3b4a5f06")},
			},
			BillingType: "client_bill",
		},
	},
	{
		file: "orders_elements_that_are_not_orders.json",
		want: &labhealth.OrderPage{
			Orders: []labhealth.Order{
				{ID: uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01"), Events: []labhealth.OrderEvent{{ID: 1}, {}}, BillingType: "client_bill"},
				{}, {}, {}, {},
				{ID: uuid.MustParse("6c4f9d85-ba30-4ead-8f44-8b5aad237e04"), BillingType: "client_bill"},
			},
			Page: new(int64(1)),
			Size: new(int64(50)),
		},
		malformed: []labhealth.Malformed{
			{Path: "orders.0.events.1", Want: "object"},
			{Path: "orders.1", Want: "object"},
			{Path: "orders.2", Want: "object"},
			{Path: "orders.4", Want: "object"},
			{Path: "orders.5.details", Want: "object"},
			{Path: "total", Want: "integer"},
		},
	},
	{
		file: "lab_tests_prices_and_ids.json",
		want: &labhealth.LabTestPage{
			Data: []labhealth.LabTest{
				{
					ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c01"), Slug: "lipids", Name: "Basic lipids", SampleType: "serum", Method: "walk_in_test",
					Price: "45", IsActive: true, Status: "active",
					Markers: []labhealth.Marker{
						{ID: 1234567890251, Name: "Cholesterol", Slug: "cholesterol", Price: new("10.00"), IsOrderable: new(true)},
						{ID: 2, Name: "Triglycerides", Slug: "triglycerides", Price: new("N/A"), ALaCarteEnabled: true},
					},
				},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c02"), Price: "0.0"},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c03"), Price: "10.10", Markers: []labhealth.Marker{}},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c04"), Fasting: true},
				{ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c05"), Price: "123456789012345678.90", Lab: &labhealth.Lab{ID: 27}},
			},
			Pricing: &labhealth.LabTestPricing{Currency: "USD"},
		},
		malformed: []labhealth.Malformed{{Path: "data.3.price", Want: "number"}},
	},
	{
		file: "lab_test_questions_at_order_entry.json",
		want: &labhealth.LabTest{
			ID: uuid.MustParse("1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c01"),
			Markers: []labhealth.Marker{
				{
					ID: 1, Name: "Glucose", Slug: "glucose", IsOrderable: new(true),
					AoE: &labhealth.AoE{Questions: []labhealth.AoEQuestion{
						{
							ID: 1234567890251, Code: "FSTING", Value: "Has the patient fasted?", Required: new(true),
							Type: new(labhealth.AoEQuestionType("choice")), Sequence: new(int64(1)), Default: new("N"),
							Answers: []labhealth.AoEAnswerOption{{ID: 9876543210987, Code: "Y", Value: "Yes"}, {ID: 2, Code: "N", Value: "No"}},
						},
						{ID: 3, Code: "WEIGHT", Value: "Weight in pounds", Type: new(labhealth.AoEQuestionType("numeric")), Answers: []labhealth.AoEAnswerOption{}},
						{ID: 4, Code: "DRUGS", Value: "Medication", Type: new(labhealth.AoEQuestionType("multiple_choice"))},
						{ID: 5, Code: "NOTE", Value: "Anything else"},
					}},
				},
				{ID: 2, Name: "Insulin", Slug: "insulin", IsOrderable: new(true)},
			},
		},
	},
	{
		file: "users_with_few_fields.json",
		want: &labhealth.UserPage{
			Users: []labhealth.User{
				{
					UserID:       uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e702"),
					TeamID:       uuid.MustParse("d2a8f0c4-6e17-4c93-b5a0-91f4e6d83c03"),
					ClientUserID: "3Zru4O8cBEiwGTsXgUQGaQ==",
					CreatedOn:    time.Date(2025, 3, 1, 9, 30, 0, 123_456_000, time.UTC),
					ConnectedSources: []labhealth.ConnectedSource{
						{
							CreatedOn: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC),
							Source:    labhealth.Source{Name: "Example Ring", Slug: "example_ring", Logo: "logo_url"},
							Provider:  &labhealth.Source{Name: "Example Ring", Slug: "example_ring", Logo: "https://example.com/ring.png"},
						},
						{Source: labhealth.Source{Slug: "example_watch"}},
						{},
					},
					FallbackBirthDate: &labhealth.FallbackBirthDate{Value: labhealth.Date{Year: 1990, Month: time.January, Day: 31}, SourceSlug: "example_ring", UpdatedAt: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC)},
					FallbackTimeZone:  &labhealth.FallbackTimeZone{ID: "Europe/London", SourceSlug: "example_ring", UpdatedAt: time.Date(2025, 3, 2, 0, 0, 0, 0, time.UTC)},
					IngestionStart:    &labhealth.Date{Year: 2024, Month: time.January, Day: 1},
				},
				{UserID: uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e703"), ClientUserID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
				{},
				{UserID: uuid.MustParse("7b9e4d10-21c3-4f58-a6d2-0c8f3b51e705"), FallbackBirthDate: &labhealth.FallbackBirthDate{}},
			},
			Total: 4,
		},
		malformed: []labhealth.Malformed{
			{Path: "users.0.connected_sources.2", Want: "object"},
			{Path: "users.2.user_id", Want: "uuid"},
			{Path: "users.3.client_user_id", Want: "string"},
			{Path: "users.3.fallback_birth_date.value", Want: "date"},
		},
	},
	{
		file: "results_as_the_lab_wrote_them.json",
		want: &labhealth.OrderResults{
			Metadata: labhealth.ResultsMetadata{Age: "32", DOB: "18/08/1993", Patient: "Ada Example", SpecimenNumber: "S-0001", DateReported: "2025-03-05", CLIA: new("12D4567890"), Status: "final"},
			Results: []labhealth.Result{
				{
					Name: "Glucose", Slug: "glucose", Result: "90", Type: new(labhealth.ResultType("numeric")), Value: new(json.Number("90")), Unit: new("mg/dL"),
					MinRangeValue: new(70.0), Interpretation: "normal",
				},
				{Name: "Lead", Slug: "lead", Result: "<0.5", ResultType: new(labhealth.ResultType("range")), Interpretation: "normal"},
			},
			SampleInformation: map[string]labhealth.SampleData{"S-0001": {}, "S-0002": {}},
		},
		malformed: []labhealth.Malformed{{Path: "results.1.value", Want: "number"}},
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
				Malformed() []labhealth.Malformed
			})
			if diff := cmp.Diff(f.malformed, kept.Malformed()); diff != "" {
				t.Errorf("malformed (-want +got)\n%s", diff)
			}
			if raw := kept.RawJSON(); string(raw) != string(bytes.TrimSpace(text)) {
				t.Errorf("RawJSON is not the received JSON:\n%s", raw)
			}
			equal(t, jsonData(t, string(text)), jsonData(t, mustEncode(t, got)))
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

func newOf(example any) any {
	switch example.(type) {
	case *labhealth.Order:
		return new(labhealth.Order)
	case *labhealth.PostOrderResponse:
		return new(labhealth.PostOrderResponse)
	case *labhealth.OrderPage:
		return new(labhealth.OrderPage)
	case *labhealth.LabTest:
		return new(labhealth.LabTest)
	case *labhealth.LabTestPage:
		return new(labhealth.LabTestPage)
	case *labhealth.UserPage:
		return new(labhealth.UserPage)
	case *labhealth.OrderResults:
		return new(labhealth.OrderResults)
	}
	panic("no such type")
}

// The current status of orders with and without a last event.
func TestCurrentStatus(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2025, 3, day, 0, 0, 0, 0, time.UTC) }
	tests := []struct {
		order labhealth.Order
		want  labhealth.OrderStatus
	}{
		{labhealth.Order{}, ""},
		{labhealth.Order{LastEvent: labhealth.OrderEvent{Status: "a.b.c"}, Events: []labhealth.OrderEvent{{CreatedAt: at(9), Status: "d.e.f"}}}, "a.b.c"},
		{labhealth.Order{Events: []labhealth.OrderEvent{{CreatedAt: at(1), Status: "a.b.c"}, {CreatedAt: at(3), Status: "d.e.f"}, {CreatedAt: at(2), Status: "g.h.i"}}}, "d.e.f"},
		{labhealth.Order{Events: []labhealth.OrderEvent{{CreatedAt: at(1), Status: "a.b.c"}, {CreatedAt: at(1), Status: "d.e.f"}}}, "d.e.f"},
		{labhealth.Order{Events: []labhealth.OrderEvent{{Status: "a.b.c"}, {Status: "d.e.f"}, {}}}, "d.e.f"},
		{labhealth.Order{Events: []labhealth.OrderEvent{{CreatedAt: at(1), Status: "a.b.c"}, {CreatedAt: at(2)}}}, "a.b.c"},
	}
	for _, test := range tests {
		if got := test.order.CurrentStatus(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// A page without its list does not say that the list is empty: a program that looks for a lost
// order in it would import the order again.
func TestPagesWithoutAList(t *testing.T) {
	for _, body := range []string{`{}`, `{"orders":null,"users":null}`, `{"message":"maintenance"}`} {
		client, _ := scripted(t, []reply{{status: 200, body: body}, {status: 200, body: body}})
		orders, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{})
		var unreadable *labhealth.DecodeError
		if orders != nil || !errors.As(err, &unreadable) || unreadable.Reason != "it has no list" {
			t.Errorf("%s: %v, %v", body, orders, err)
		}
		users, err := client.Users.List(t.Context(), labhealth.ListUsersParams{})
		if users != nil || !errors.As(err, &unreadable) || unreadable.Reason != "it has no list" {
			t.Errorf("%s: %v, %v", body, users, err)
		}
	}
	client, _ := respondingWith(t, 200, `{"orders":[]}`)
	page := must[*labhealth.OrderPage](t)(client.Orders.List(t.Context(), labhealth.ListOrdersParams{}))
	equal(t, 0, len(page.Orders))
}
