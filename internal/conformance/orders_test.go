//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// fullCreateBody is a creation with every field.
func fullCreateBody() labhealth.CreateOrderBody {
	b := createBody()
	b.PatientAddress.ReceiverName = "Ada Example"
	b.PatientAddress.PhoneNumber = new("+14155550123")
	b.LabTestID = &labTestID
	b.CollectionMethod = labhealth.CollectionMethodWalkInTest
	b.Priority = true
	b.BillingType = labhealth.BillingClientBill
	b.ICDCodes = []string{"E78.5"}
	b.Consents = []labhealth.Consent{
		{ConsentType: labhealth.ConsentHIPAAAuthorization},
		{ConsentType: labhealth.ConsentPrivacyPolicy, Version: "2.0", TimeOfConsent: new(time.Date(2025, time.March, 4, 12, 0, 0, 0, time.FixedZone("", 3600)))},
	}
	b.HealthInsurance = insurance()
	b.ActivateBy = &future
	b.AoEAnswers = []labhealth.AoEAnswer{{MarkerID: 904, QuestionID: 1234567890251, Answer: "I"}}
	b.Passthrough = new("ours")
	b.ClinicalNotes = new("fasting")
	b.LabAccountID = &teamID
	b.CreatorMemberID = &teamID
	return b
}

const fullCreateJSON = `{
	"user_id": "11111111-2222-4333-8444-555555555555",
	"patient_details": {
		"first_name": "Ada", "last_name": "Example", "dob": "1950-01-31", "gender": "female", "phone_number": "+14155550123",
		"email": "ada@example.com"
	},
	"patient_address": {
		"receiver_name": "Ada Example", "first_line": "1 Main Street", "city": "San Francisco", "state": "CA", "zip": "94105",
		"country": "US", "phone_number": "+14155550123"
	},
	"order_set": {"lab_test_ids": ["5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"]},
	"lab_test_id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01",
	"collection_method": "walk_in_test",
	"priority": true,
	"billing_type": "client_bill",
	"icd_codes": ["E78.5"],
	"consents": [
		{"consentType": "hipaa-authorization"},
		{"consentType": "privacy-policy", "version": "2.0", "timeOfConsent": "2025-03-04T12:00:00+01:00"}
	],
	"health_insurance": ` + insuranceJSON + `,
	"activate_by": "2999-12-31",
	"aoe_answers": [{"marker_id": 904, "question_id": 1234567890251, "answer": "I"}],
	"passthrough": "ours",
	"clinical_notes": "fasting",
	"lab_account_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
	"creator_member_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
}`

// Updates without a change, with an invalid date or without an order ID are not sent.
func TestInvalidUpdates(t *testing.T) {
	client, s := scripted(t, nil)
	yesterday := labhealth.DateOf(time.Now().UTC().AddDate(0, 0, -2))
	for _, test := range []struct {
		id   uuid.UUID
		body labhealth.UpdateOrderBody
		want string
	}{
		{orderID, labhealth.UpdateOrderBody{}, "body.activate_by must be set: a date, or Null to release the order"},
		{orderID, labhealth.UpdateOrderBody{ActivateBy: labhealth.Value(labhealth.Date{})}, "body.activate_by is required: a date"},
		{orderID, labhealth.UpdateOrderBody{ActivateBy: labhealth.Value(labhealth.Date{Year: 2999, Month: 2, Day: 29})}, "body.activate_by must be a date that exists"},
		{orderID, labhealth.UpdateOrderBody{ActivateBy: labhealth.Value(yesterday)}, "body.activate_by must be today or later"},
		{uuid.Nil, labhealth.UpdateOrderBody{ActivateBy: labhealth.Null[labhealth.Date]()}, "path.order_id must not be the nil UUID"},
	} {
		_, err := client.Orders.Update(t.Context(), test.id, test.body)
		equal(t, "labhealth: PATCH /v3/order/{order_id}: not sent: "+test.want, errorText(err))
		if !errors.Is(err, labhealth.ErrValidation) || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent {
			t.Error("not a validation error")
		}
	}
	_, err := client.Orders.Get(t.Context(), uuid.Nil)
	equal(t, "labhealth: GET /v3/order/{order_id}: not sent: path.order_id must not be the nil UUID", errorText(err))
	equal(t, 0, len(s.sent))
}

// The error names all invalid fields, by the paths of the service's own errors.
func TestInvalidImports(t *testing.T) {
	client, s := scripted(t, nil)
	body := importBody()
	body.SampleID = ""
	body.PatientDetails.FirstName = ""
	body.PatientDetails.MedicalProxy = nil
	body.PatientDetails.DOB = labhealth.DateOf(time.Now().UTC())
	body.PatientAddress.Zip = ""
	body.OrderSet.LabTestIDs = []uuid.UUID{labTestID, uuid.Nil}
	_, err := client.Orders.Import(t.Context(), body)
	var invalid *labhealth.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	equal(t, []labhealth.FieldError{
		{Loc: []string{"body", "order_set", "lab_test_ids", "1"}, Type: "uuid", Msg: "must be left out or be a UUID that is not nil"},
		{Loc: []string{"body", "patient_details", "first_name"}, Type: "string_too_short", Msg: "is required: 1 to 50 characters"},
		{Loc: []string{"body", "patient_details", "medical_proxy"}, Type: "missing", Msg: "is required for a patient under 18"},
		{Loc: []string{"body", "patient_address", "zip"}, Type: "missing", Msg: "is required"},
		{Loc: []string{"body", "sample_id"}, Type: "missing", Msg: "is required"},
	}, invalid.Fields)
	equal(t, "labhealth: POST /v3/order/import: not sent: body.order_set.lab_test_ids.1 must be left out or be a UUID that is not nil; "+
		"body.patient_details.first_name is required: 1 to 50 characters; body.patient_details.medical_proxy is required for a patient under 18; "+
		"body.patient_address.zip is required; body.sample_id is required", errorText(err))
	equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(err))

	// A value that cannot be encoded is named by its path, without the value.
	body = importBody()
	body.PatientAddress.City = "San Fran\xff"
	_, err = client.Orders.Import(t.Context(), body)
	equal(t, "labhealth: POST /v3/order/import: not sent: body.patient_address.city must be valid UTF-8", errorText(err))
	equal(t, 0, len(s.sent))
}

func TestListOrders(t *testing.T) {
	t.Run("bare response", func(t *testing.T) {
		client, _ := respondingWith(t, 200, `{"orders":[]}`)
		got, err := client.Orders.List(t.Context(), labhealth.ListOrdersParams{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, &labhealth.OrderPage{Orders: []labhealth.Order{}}, got)
	})
	t.Run("invalid", func(t *testing.T) {
		client, s := scripted(t, nil)
		for want, params := range map[string]labhealth.ListOrdersParams{
			"query.page must be at least 0":                                       {Page: -1},
			"query.size must be between 0 and 100":                                {Size: 101},
			"query.page must be at least 0; query.size must be between 0 and 100": {Page: -1, Size: -1},
		} {
			_, err := client.Orders.List(t.Context(), params)
			equal(t, "labhealth: GET /orders: not sent: "+want, errorText(err))
			for o, err := range client.Orders.All(t.Context(), params) {
				if o != nil || labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent {
					t.Errorf("%v, %v", o, err)
				}
			}
		}
		equal(t, 0, len(s.sent))
	})
}

// An order that was created without a date cannot be rescheduled, although its status can be
// updated.
func TestReschedulable(t *testing.T) {
	for _, test := range []struct {
		order string
		want  bool
	}{
		{`{"activate_by":"2099-01-31","last_event":{"status":"received.testkit.ordered"}}`, true},
		{`{"activate_by":"2099-01-31","last_event":{"status":"received.testkit.awaiting_registration"}}`, true},
		{`{"activate_by":"2099-01-31","events":[{"status":"received.testkit.ordered"}]}`, true},
		{`{"activate_by":null,"last_event":{"status":"received.testkit.ordered"}}`, false},
		{`{"last_event":{"status":"received.testkit.ordered"}}`, false},
		{`{"activate_by":"2099-01-31","last_event":{"status":"collecting_sample.testkit.with_customer"}}`, false},
		{`{"activate_by":"2099-01-31","status":"received"}`, false},
		{`{}`, false},
	} {
		var o labhealth.Order
		if err := json.Unmarshal([]byte(test.order), &o); err != nil {
			t.Fatal(err)
		}
		if got := o.Reschedulable(); got != test.want {
			t.Errorf("%s: %v, want %v", test.order, got, test.want)
		}
	}
}

// The second line of an address is empty by default, and null stays null. Both are encoded as
// received, and a request omits nil.
func TestSecondLineOfAnAddress(t *testing.T) {
	for text, want := range map[string]*string{
		`{"first_line":"1 Example Street"}`: new(""), `{"second_line":null}`: nil, `{"second_line":""}`: new(""), `{"second_line":"Apt 4"}`: new("Apt 4"),
	} {
		var a labhealth.Address
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		equal(t, want, a.SecondLine)
		equal(t, text, mustEncode(t, a))
	}
	equal(t, `{"first_line":"","country":"","zip":"","city":"","state":""}`, mustEncode(t, labhealth.Address{}))
	equal(t, `{"first_line":"","second_line":"","country":"","zip":"","city":"","state":""}`,
		mustEncode(t, labhealth.Address{SecondLine: new("")}))
}

// A zero date must not become the null that releases an order.
func TestZeroDateDoesNotRelease(t *testing.T) {
	client, s := scripted(t, nil)
	for _, opts := range [][]labhealth.CallOption{nil, {labhealth.WithoutValidation()}} {
		_, err := client.Orders.Reschedule(t.Context(), uuid.New(), labhealth.Date{}, opts...)
		if labhealth.OutcomeOf(err) != labhealth.OutcomeNotSent || !errors.Is(err, labhealth.ErrValidation) {
			t.Errorf("%v", err)
		}
	}
	equal(t, 0, len(s.sent))
	if b, err := json.Marshal(labhealth.UpdateOrderBody{ActivateBy: labhealth.Value(labhealth.Date{})}); err == nil {
		t.Errorf("encoded as %s", b)
	}
	if b, err := json.Marshal(labhealth.UpdateOrderBody{ActivateBy: labhealth.Null[labhealth.Date]()}); err != nil || string(b) != `{"activate_by":null}` {
		t.Errorf("%s, %v", b, err)
	}
}
