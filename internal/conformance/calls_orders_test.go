//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	orderURL       = "/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"
	transactionURL = "/v3/order_transaction/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c"
	onePDF         = "%PDF-1.4\n%%EOF\n"
	onePDFAsJSON   = `"%PDF-1.4\n%%EOF\n"`
)

var transactionID = uuid.MustParse("6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c")

// fullOrderJSON is the response of an operation that changes an order, with every field.
const fullOrderJSON = `{
	"order": {
		"id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
		"user_id": "11111111-2222-4333-8444-555555555555",
		"team_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
		"patient_details": {
			"dob": "1950-01-31T00:00:00+00:00", "gender": "female", "first_name": "Ada", "last_name": "Example",
			"phone_number": "+14155550123", "email": "ada@example.com", "race": "asian", "ethnicity": "other",
			"sexual_orientation": "dont_know", "gender_identity": "female",
			"medical_proxy": {
				"first_name": "Grace", "last_name": "Example", "phone_number": "+14155550124", "household_income": 50000,
				"household_size": 2, "email": "grace@example.com",
				"address": {"first_line": "1 Main Street", "second_line": "", "country": "US", "zip": "94105", "city": "San Francisco",
					"state": "CA", "access_notes": "ring twice"}
			}
		},
		"patient_address": {
			"receiver_name": "Ada Example", "first_line": "1 Main Street", "second_line": "Floor 2", "city": "San Francisco", "state": "CA",
			"zip": "94105", "country": "US", "access_notes": "ring twice", "phone_number": "+14155550123"
		},
		"lab_test": {
			"id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "slug": "lipid", "name": "Lipid Panel", "sample_type": "serum", "method": "testkit",
			"price": 45.10, "is_active": true, "status": "active", "lab": null, "markers": null
		},
		"details": {"type": "testkit", "data": {
			"id": "22222222-3333-4444-8555-666666666666", "created_at": "2025-03-04T12:00:00+00:00", "updated_at": "2025-03-04T12:00:00.250000Z",
			"shipment": {
				"id": "33333333-4444-4555-8666-777777777777", "outbound_tracking_number": "1Z1", "outbound_tracking_url": "https://example.com/1Z1",
				"inbound_tracking_number": "1Z2", "inbound_tracking_url": "https://example.com/1Z2", "outbound_courier": "usps",
				"inbound_courier": "usps", "notes": "fragile"
			}
		}},
		"sample_id": "SAMPLE-1",
		"notes": "by phone",
		"clinical_notes": "fasting",
		"created_at": "2025-03-04T12:00:00+00:00",
		"updated_at": "2025-03-04T12:00:01+00:00",
		"events": [{"id": 1, "created_at": "2025-03-04T12:00:00+00:00", "status": "received.testkit.ordered", "status_detail": "fulfillment_error"}],
		"status": "cancelled",
		"last_event": {"id": 2, "created_at": "2025-03-04T12:00:01+00:00", "status": "cancelled.testkit.cancelled", "status_detail": null},
		"physician": {"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890"},
		"health_insurance_id": "44444444-5555-4666-8777-888888888888",
		"requisition_form_url": "https://example.com/requisition",
		"priority": true,
		"shipping_details": {
			"receiver_name": "Ada Example", "first_line": "1 Main Street", "second_line": "Floor 2", "city": "San Francisco", "state": "CA",
			"zip": "94105", "country": "US", "phone_number": "+14155550123"
		},
		"activate_by": "2999-12-31",
		"passthrough": "ours",
		"billing_type": "commercial_insurance",
		"icd_codes": ["E78.5"],
		"has_abn": true,
		"interpretation": "abnormal",
		"has_missing_results": true,
		"expected_result_by_date": "2025-03-07",
		"worst_case_result_by_date": "2025-03-11",
		"origin": "redraw",
		"order_transaction": {"id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", "status": "active", "orders": [{
			"id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "created_at": "2025-03-04T12:00:00.000000Z", "updated_at": "2025-03-04T12:00:01.000000Z",
			"low_level_status": "cancelled", "low_level_status_created_at": "2025-03-04T12:00:01.000000Z", "origin": "redraw",
			"parent_id": "55555555-6666-4777-8888-999999999999"
		}]}
	},
	"status": "success",
	"message": "order cancelled"
}`

const transactionJSON = `{
	"id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c",
	"team_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
	"status": "completed",
	"orders": [
		{"id": "55555555-6666-4777-8888-999999999999", "origin": "initial", "parent_id": null, "last_status": "sample_error",
			"last_status_created_at": "2025-03-04T12:00:00Z", "updated_at": "2025-03-04T12:00:01Z", "created_at": "2025-03-04T11:00:00Z"},
		{"id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "origin": "redraw", "parent_id": "55555555-6666-4777-8888-999999999999",
			"last_status": "completed", "last_status_created_at": "2025-03-09T12:00:00Z", "updated_at": "2025-03-09T12:00:01Z",
			"created_at": "2025-03-05T11:00:00Z"}
	]
}`

const metadataJSON = `{
	"age": "35", "dob": "18/08/1990", "clia_#": "99D0000000", "patient": "Ada Example", "provider": "Jane Doctor",
	"laboratory": "Example Laboratories", "date_reported": "2025-03-04T12:00:00+00:00", "date_collected": "03/03/2025",
	"specimen_number": "SPECIMEN-1", "date_received": "04/03/2025", "status": "partial", "interpretation": "critical",
	"patient_id": "P-1", "account_id": "A-1"
}`

var callTime = time.Date(2025, time.March, 4, 12, 0, 0, 0, time.FixedZone("", 3600))

var orderCalls = []apiCall{
	{
		method: "Orders.Import", op: "POST /v3/order/import", url: "/v3/order/import", body: importJSON, response: placedJSON,
		args: []any{importBody()},
	},
	{
		method: "Orders.Create", op: "POST /v3/order", url: "/v3/order", body: createJSON, response: placedJSON,
		args: []any{createBody()},
	},
	{
		method: "Orders.Create", op: "POST /v3/order", url: "/v3/order", body: fullCreateJSON, response: placedJSON,
		args: []any{fullCreateBody()},
	},
	{
		method: "Orders.Update", op: "PATCH /v3/order/{order_id}", url: orderURL, body: `{"activate_by":"2999-12-31"}`, response: placedJSON,
		args: []any{orderID, labhealth.UpdateOrderBody{ActivateBy: labhealth.Value(future)}},
	},
	{
		method: "Orders.Reschedule", op: "PATCH /v3/order/{order_id}", url: orderURL, body: `{"activate_by":"2999-12-31"}`, response: placedJSON,
		args: []any{orderID, future},
	},
	{
		method: "Orders.Release", op: "PATCH /v3/order/{order_id}", url: orderURL, body: `{"activate_by":null}`, response: placedJSON,
		args: []any{orderID},
	},
	{
		method: "Orders.Get", op: "GET /v3/order/{order_id}", url: orderURL, response: orderJSON,
		args: []any{orderID},
	},
	{
		method: "Orders.RequisitionPDF", op: "GET /v3/order/{order_id}/requisition/pdf", url: orderURL + "/requisition/pdf",
		response: onePDF, want: onePDFAsJSON,
		args: []any{orderID},
	},
	ordersListed("", labhealth.ListOrdersParams{}),
	ordersListed("?interpretation=abnormal", labhealth.ListOrdersParams{Interpretation: labhealth.InterpretationAbnormal}),
	ordersListed("?interpretation=new+value", labhealth.ListOrdersParams{Interpretation: "new value"}),
	ordersListed("?page=3&size=100", labhealth.ListOrdersParams{Page: 3, Size: 100}),
	ordersListed("?is_critical=false", labhealth.ListOrdersParams{IsCritical: new(false)}),
	ordersListed("?order_activation_types=current&order_activation_types=scheduled&order_ids=0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b&"+
		"order_ids=11111111-2222-4333-8444-555555555555&order_type=testkit&order_type=walk_in_test&status=ordered&status=completed",
		labhealth.ListOrdersParams{
			OrderIDs: []uuid.UUID{orderID, userID}, Status: []labhealth.OrderLowLevelStatus{labhealth.LowLevelOrdered, labhealth.LowLevelCompleted},
			OrderType:            []labhealth.LabTestCollectionMethod{labhealth.CollectionMethodTestkit, labhealth.CollectionMethodWalkInTest},
			OrderActivationTypes: []labhealth.OrderActivationType{"current", "scheduled"},
		}),
	ordersListed("?end_date=2025-03-04T12%3A00%3A00.5%2B01%3A00&is_critical=true&order_direction=asc&order_key=created_at&"+
		"order_transaction_id=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee&patient_name=Ada+Example&search_input=ada+%26+co&shipping_recipient_name=Ada&"+
		"start_date=2025-03-04T12%3A00%3A00Z&updated_end_date=2025-03-06T00%3A00%3A00Z&updated_start_date=2025-03-05T00%3A00%3A00Z&"+
		"user_id=11111111-2222-4333-8444-555555555555",
		labhealth.ListOrdersParams{
			UserID: userID, OrderTransactionID: teamID, IsCritical: new(true),
			StartDate: time.Date(2025, time.March, 4, 12, 0, 0, 0, time.UTC), EndDate: time.Date(2025, time.March, 4, 12, 0, 0, 500_000_000, time.FixedZone("", 3600)),
			UpdatedStartDate: time.Date(2025, time.March, 5, 0, 0, 0, 0, time.UTC), UpdatedEndDate: time.Date(2025, time.March, 6, 0, 0, 0, 0, time.UTC),
			SearchInput: "ada & co", PatientName: "Ada Example", ShippingRecipientName: "Ada", OrderKey: "created_at", OrderDirection: "asc",
		}),
	{
		method: "Orders.Cancel", op: "POST /v3/order/{order_id}/cancel", url: orderURL + "/cancel", response: fullOrderJSON,
		args: []any{orderID},
	},
	{
		method: "Orders.MarkDrawCompleted", op: "PATCH /v3/order/{order_id}/draw_completed", url: orderURL + "/draw_completed", response: placedJSON,
		args: []any{orderID},
	},
	{
		method: "Orders.ResendEvents", op: "POST /v3/order/resend_events", url: "/v3/order/resend_events",
		body: `{"order_ids": ["0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"], "start_at": "2025-03-04T12:00:00+01:00",
			"end_at": "2025-05-03T12:00:00+01:00"}`,
		response: `{"order_ids": ["0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"]}`,
		args:     []any{labhealth.ResendEventsBody{OrderIDs: []uuid.UUID{orderID}, StartAt: &callTime, EndAt: new(callTime.AddDate(0, 0, 60))}},
	},
	{
		method: "Orders.CommunicationSettings", op: "GET /v3/order/{order_id}/communication_settings", url: orderURL + "/communication_settings",
		response: `{"order_id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "sms_enabled": true}`,
		args:     []any{orderID},
	},
	{
		method: "Orders.UpdateCommunicationSettings", op: "PATCH /v3/order/{order_id}/communication_settings", url: orderURL + "/communication_settings",
		body:     `{"sms_enabled": false}`,
		response: `{"order_id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "sms_enabled": false}`,
		args:     []any{orderID, labhealth.UpdateCommunicationSettingsBody{}},
	},
	{
		method: "Orders.Simulate", op: "POST /v3/order/{order_id}/test", body: `{"interpretation": "critical", "result_types": ["range", "comment"], "has_missing_results": false}`,
		url: orderURL + "/test?delay=0&final_status=completed.testkit.corrected",
		args: []any{orderID, labhealth.SimulateParams{
			FinalStatus: labhealth.OrderStatusCompletedTestkitCorrected, Delay: new(int64(0)),
			Flags: labhealth.SimulationFlags{
				Interpretation: labhealth.InterpretationCritical, HasMissingResults: new(false),
				ResultTypes: []labhealth.ResultType{labhealth.ResultTypeRange, labhealth.ResultTypeComment},
			},
		}},
	},
	{
		method: "Orders.Simulate", op: "POST /v3/order/{order_id}/test", url: orderURL + "/test", body: `{}`,
		args: []any{orderID, labhealth.SimulateParams{}},
	},
	{
		method: "Orders.CreateTestkit", op: "POST /v3/order/testkit", url: "/v3/order/testkit", response: placedJSON,
		body: `{
			"user_id": "11111111-2222-4333-8444-555555555555", "lab_test_id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01",
			"shipping_details": {"receiver_name": "Ada Example", "first_line": "1 Main Street", "second_line": "Floor 2", "city": "San Francisco",
				"state": "CA", "zip": "94105-1234", "country": "US", "phone_number": "+14155550123"},
			"passthrough": "ours", "lab_account_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
		}`,
		args: []any{testkitBody()},
	},
	{
		method: "Orders.RegisterTestkit", op: "POST /v3/order/testkit/register", url: "/v3/order/testkit/register", response: placedJSON,
		body: `{
			"user_id": "11111111-2222-4333-8444-555555555555", "sample_id": "KIT-1",
			"patient_details": {"first_name": "Ada", "last_name": "Example", "dob": "1950-01-31", "gender": "female",
				"phone_number": "+14155550123", "email": "ada@example.com"},
			"patient_address": {"first_line": "1 Main Street", "city": "San Francisco", "state": "CA", "zip": "94105", "country": "US"},
			"physician": {"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890", "email": "jane@example.com", "licensed_states": ["CA"]},
			"health_insurance": ` + insuranceJSON + `,
			"consents": [{"consentType": "terms-of-use"}]
		}`,
		args: []any{registrationBody()},
	},
	{
		method: "Orders.ResultsMetadata", op: "GET /v3/order/{order_id}/result/metadata", url: orderURL + "/result/metadata", response: metadataJSON,
		args: []any{orderID},
	},
	{
		method: "Orders.ResultsPDF", op: "GET /v3/order/{order_id}/result/pdf", url: orderURL + "/result/pdf", response: onePDF, want: onePDFAsJSON,
		args: []any{orderID},
	},
	{
		method: "Orders.LabelsPDF", op: "GET /v3/order/{order_id}/labels/pdf", response: onePDF, want: onePDFAsJSON,
		url:  orderURL + "/labels/pdf?collection_date=2025-03-04T12%3A00%3A00%2B01%3A00&number_of_labels=12",
		args: []any{orderID, labhealth.LabelsPDFParams{CollectionDate: callTime, NumberOfLabels: 12}},
	},
	{
		method: "Orders.ABNPDF", op: "GET /v3/order/{order_id}/abn_pdf", url: orderURL + "/abn_pdf", response: onePDF, want: onePDFAsJSON,
		args: []any{orderID},
	},
	{
		method: "Orders.CollectionInstructionsPDF", op: "GET /v3/order/{order_id}/collection_instruction_pdf",
		url: orderURL + "/collection_instruction_pdf", response: onePDF, want: onePDFAsJSON,
		args: []any{orderID},
	},
	{
		method: "OrderTransactions.Get", op: "GET /v3/order_transaction/{transaction_id}", url: transactionURL, response: transactionJSON,
		args: []any{transactionID},
	},
	{
		method: "OrderTransactions.Results", op: "GET /v3/order_transaction/{transaction_id}/result", url: transactionURL + "/result",
		response: `{"metadata": ` + metadataJSON + `, "results": [` + resultJSON + `], "missing_results": null}`,
		args:     []any{transactionID},
	},
	{
		method: "OrderTransactions.ResultsPDF", op: "GET /v3/order_transaction/{transaction_id}/result/pdf",
		url: transactionURL + "/result/pdf", response: onePDF, want: onePDFAsJSON,
		args: []any{transactionID},
	},
}

const resultJSON = `{
	"name": "Total Cholesterol", "slug": "total-cholesterol", "result": "412", "type": "numeric", "value": 412.0, "unit": "mg/dL",
	"timestamp": "2025-03-04T12:00:00+00:00", "notes": "fasting", "reference_range": "0-200", "min_range_value": 0, "max_range_value": 200,
	"is_above_max_range": true, "is_below_min_range": false, "interpretation": "critical", "source_interpretation": "HH",
	"loinc": "2093-3", "loinc_slug": "cholesterol", "provider_id": "P-901", "performing_laboratory": "Example Laboratories",
	"source_sample_id": "SAMPLE-1",
	"source_markers": [{"marker_id": 901, "name": "Total Cholesterol", "slug": "total-cholesterol", "provider_id": "P-901"}]
}`

// testkitBody is the order of a testkit with every field.
func testkitBody() labhealth.CreateTestkitBody {
	return labhealth.CreateTestkitBody{
		UserID: userID, LabTestID: labTestID, Passthrough: new("ours"), LabAccountID: &teamID,
		ShippingDetails: labhealth.ShippingAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Main Street", SecondLine: new("Floor 2"), City: "San Francisco", State: "CA",
			Zip: "94105-1234", Country: "US", PhoneNumber: "+14155550123",
		},
	}
}

// registrationBody is the registration of a testkit with every field.
func registrationBody() labhealth.RegisterTestkitBody {
	create := createBody()
	return labhealth.RegisterTestkitBody{
		UserID: &userID, SampleID: "KIT-1", PatientDetails: create.PatientDetails, PatientAddress: create.PatientAddress,
		Physician: &labhealth.PhysicianCreateRequestBase{
			FirstName: "Jane", LastName: "Doctor", NPI: "1234567890", Email: new("jane@example.com"), LicensedStates: []string{"CA"},
		},
		HealthInsurance: insurance(),
		Consents:        []labhealth.Consent{{ConsentType: labhealth.ConsentTermsOfUse}},
	}
}

func insurance() *labhealth.HealthInsuranceCreateRequest {
	return &labhealth.HealthInsuranceCreateRequest{
		FrontImage: labhealth.NewJPEG([]byte("front")), BackImage: labhealth.NewPNG([]byte("back")),
		PatientSignatureImage: labhealth.NewPNG([]byte("signature")), Subjective: new("tired"), AssessmentPlan: new("lipids"),
		PayorCode: new("P-1"), InsuranceID: new("I-1"), ResponsibleRelationship: new(labhealth.ResponsibleRelationshipSpouse),
		ResponsibleDetails: &labhealth.PersonDetails{
			FirstName: "Grace", LastName: "Example", PhoneNumber: "+14155550124", PhoneType: "Home",
			Address: labhealth.Address{FirstLine: "1 Main Street", Country: "US", Zip: "94105", City: "San Francisco", State: "CA"},
		},
		DiagnosisCodes: []string{"E78.5"},
	}
}

const insuranceJSON = `{
	"front_image": {"content": "ZnJvbnQ=", "content_type": "image/jpeg"}, "back_image": {"content": "YmFjaw==", "content_type": "image/png"},
	"patient_signature_image": {"content": "c2lnbmF0dXJl", "content_type": "image/png"}, "subjective": "tired",
	"assessment_plan": "lipids", "payor_code": "P-1", "insurance_id": "I-1", "responsible_relationship": "Spouse",
	"responsible_details": {
		"first_name": "Grace", "last_name": "Example", "phone_number": "+14155550124", "phone_type": "Home",
		"address": {"first_line": "1 Main Street", "country": "US", "zip": "94105", "city": "San Francisco", "state": "CA"}
	},
	"diagnosis_codes": ["E78.5"]
}`

// ordersListed is a list of orders with a query.
func ordersListed(query string, params labhealth.ListOrdersParams) apiCall {
	return apiCall{
		method: "Orders.List", op: "GET /orders", url: "/orders" + query, response: `{"orders":[` + orderJSON + `],"total":101,"page":3,"size":100}`,
		args: []any{params},
	}
}
