package labhealthtest_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// imported is the response to importBody, with words in capitals instead of IDs.
const imported = `{
	"status": "success",
	"message": "Order created successfully",
	"order": {
		"id": "ORDER", "user_id": "USER", "team_id": "TEAM",
		"patient_details": {
			"dob": "1990-01-31T00:00:00+00:00", "gender": "female", "first_name": "Ada", "last_name": "Example",
			"phone_number": "+14155550123", "email": "ada@example.com", "medical_proxy": null, "race": "asian",
			"ethnicity": null, "sexual_orientation": null, "gender_identity": null
		},
		"patient_address": {
			"receiver_name": "Ada Example", "first_line": "1 Main Street", "second_line": null, "city": "San Francisco",
			"state": "CA", "zip": "94105", "country": "US", "access_notes": null, "phone_number": null
		},
		"lab_test": {
			"id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "slug": "lipid-panel-testkit", "name": "Lipid Panel Testkit",
			"sample_type": "dried_blood_spot", "method": "testkit", "price": 45.00, "is_active": true, "status": "active",
			"fasting": false,
			"lab": {
				"id": 27, "slug": "quest", "name": "Example Laboratories", "first_line_address": "1 Lab Way",
				"city": "Reno", "zipcode": "89501",
				"collection_methods": ["testkit", "walk_in_test", "at_home_phlebotomy", "on_site_collection"],
				"sample_types": ["dried_blood_spot", "serum"]
			},
			"markers": [
				{
					"id": 901, "name": "Total Cholesterol", "slug": "total-cholesterol", "description": null, "lab_id": 27,
					"provider_id": "P-901", "type": "biomarker", "unit": "mg/dL", "price": "10.00", "aoe": null,
					"a_la_carte_enabled": true, "common_tat_days": 3, "worst_case_tat_days": 7, "is_orderable": true
				},
				{
					"id": 902, "name": "HDL Cholesterol", "slug": "hdl-cholesterol", "description": null, "lab_id": 27,
					"provider_id": "P-902", "type": "biomarker", "unit": "mg/dL", "price": "N/A", "aoe": null,
					"a_la_carte_enabled": true, "common_tat_days": 3, "worst_case_tat_days": 7, "is_orderable": true
				}
			],
			"is_delegated": false, "auto_generated": false, "has_collection_instructions": true,
			"common_tat_days": 3, "worst_case_tat_days": 7
		},
		"details": {"type": "testkit", "data": {
			"id": "DETAILS", "shipment": null,
			"created_at": "2025-03-04T12:00:00+00:00", "updated_at": "2025-03-04T12:00:00+00:00"
		}},
		"sample_id": "SAMPLE-1", "notes": null, "clinical_notes": null,
		"created_at": "2025-03-04T12:00:00+00:00", "updated_at": "2025-03-04T12:00:00+00:00",
		"events": [
			{"id": 1, "created_at": "2025-03-04T12:00:00+00:00", "status": "received.testkit.ordered", "status_detail": null},
			{"id": 2, "created_at": "2025-03-04T12:00:00+00:00", "status": "received.testkit.requisition_bypassed", "status_detail": null}
		],
		"status": "received",
		"last_event": {"id": 2, "created_at": "2025-03-04T12:00:00+00:00", "status": "received.testkit.requisition_bypassed", "status_detail": null},
		"physician": {"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890"},
		"health_insurance_id": null, "requisition_form_url": null, "priority": false, "shipping_details": null,
		"activate_by": null, "passthrough": null, "billing_type": "client_bill", "icd_codes": null, "has_abn": false,
		"interpretation": null, "has_missing_results": null, "expected_result_by_date": null,
		"worst_case_result_by_date": null, "origin": "initial",
		"order_transaction": {"id": "TRANSACTION", "status": "active", "orders": [{
			"id": "ORDER", "created_at": "2025-03-04T12:00:00.000000Z", "updated_at": "2025-03-04T12:00:00.000000Z",
			"low_level_status": "requisition_bypassed", "low_level_status_created_at": "2025-03-04T12:00:00.000000Z",
			"origin": "initial", "parent_id": null
		}]}
	}
}`

func TestImport(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	got := do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, user))
	o := decode[placed](t, got).Order
	want := strings.NewReplacer(
		"USER", user.String(), "TEAM", srv.TeamID.String(), "ORDER", o.ID.String(),
		"TRANSACTION", o.Transaction.ID.String(), "DETAILS", o.Details.Data["id"].(string),
	).Replace(imported)
	check(t, got, 200, want)

	_, want, _ = strings.Cut(want, `"order": `)
	want = strings.TrimSuffix(strings.TrimSpace(want), "}")
	check(t, do(t, srv, "GET", "/v3/order/"+o.ID.String(), ""), 200, want)
	check(t, do(t, srv, "GET", "/orders", ""), 200, `{"orders":[`+want+`],"total":1,"page":1,"size":50}`)
	check(t, do(t, srv, "GET", "/v3/orders", ""), 200, `{"orders":[`+want+`],"total":1,"page":1,"size":50}`)

	// The status of an imported order does not allow changes.
	check(t, do(t, srv, "PATCH", "/v3/order/"+o.ID.String(), `{"activate_by":"2025-03-05"}`), 400,
		`{"detail":"Order can not be modified in its current status"}`)
	check(t, do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, user)), 400,
		`{"detail":"An order with this sample_id already exists"}`)
	if n := len(srv.Orders()); n != 1 {
		t.Errorf("%d orders", n)
	}
}

func TestImportRejected(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	for _, test := range []struct {
		name, old, new, detail string
		status                 int
	}{
		{"user", user.String(), "00000000-0000-4000-8000-000000000000", "User not found", 404},
		{"lab test", "bdc7f01", "bdc7f99", "Test does not exist", 400},
		{"inactive lab test", "bdc7f01", "bdc7f07", "Test is not active", 400},
		{"no test", `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"`, "", "order_set must contain lab_test_ids or an add_on", 400},
		{"two labs", `"5b41f610`, `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f05","5b41f610`, "All tests of an order must belong to the same lab", 400},
		{"unsupported collection method", "bdc7f01", "bdc7f05", "Cannot set collection_method to TESTKIT", 400},
		{"add-on without ids", `{"lab_test_ids"`, `{"add_on":{},"lab_test_ids"`, "add_on must contain marker_ids or provider_ids", 400},
		{"add-on with both ids", `{"lab_test_ids"`, `{"add_on":{"marker_ids":[901],"provider_ids":["P-902"]},"lab_test_ids"`,
			"add_on must not contain both marker_ids and provider_ids", 400},
		{"marker", `{"lab_test_ids"`, `{"add_on":{"marker_ids":[1]},"lab_test_ids"`, "Marker does not exist", 400},
		{"marker by provider id", `{"lab_test_ids"`, `{"add_on":{"provider_ids":["1"]},"lab_test_ids"`, "Marker does not exist", 400},
		{"marker of another lab", `{"lab_test_ids"`, `{"add_on":{"marker_ids":[903]},"lab_test_ids"`,
			"All tests of an order must belong to the same lab", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := replaceOnce(t, bodyFor(t, importBody, user), test.old, test.new)
			check(t, do(t, srv, "POST", "/v3/order/import", body), test.status, fmt.Sprintf(`{"detail":%q}`, test.detail))
		})
	}
	if n := len(srv.Orders()); n != 0 {
		t.Errorf("%d orders", n)
	}
}

func TestImportClosedBeta(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	srv.RejectImports(403, `{"detail":"Not enabled"}`)
	// The rejection precedes the validation.
	check(t, do(t, srv, "POST", "/v3/order/import", `{}`), 403, `{"detail":"Not enabled"}`)
	srv.RejectImports(400, "Not enabled")
	got := do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, user))
	if got.status != 400 || got.body != "Not enabled" || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%+v", got)
	}
	srv.RejectImports(0, "")
	if got := do(t, srv, "POST", "/v3/order/import", bodyFor(t, importBody, user)); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

func TestImportCombined(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	for i, test := range []struct{ set, method, name string }{
		{`"lab_test_ids":["5b41f610-ebc5-4803-8f0c-a61c3bdc7f01","5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"]`, "walk_in_test", "Lipid Panel Testkit + Lipid Panel"},
		{`"add_on":{"marker_ids":[902]}`, "on_site_collection", "HDL Cholesterol"},
		{`"add_on":{"provider_ids":["P-903"]},"lab_test_ids":["5b41f610-ebc5-4803-8f0c-a61c3bdc7f05"]`, "walk_in_test", "Glucose + Glucose"},
	} {
		body := replaceOnce(t, bodyFor(t, importBody, user), `"lab_test_ids": ["5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"]`, test.set)
		body = replaceOnce(t, body, `"collection_method": "testkit"`, `"collection_method": "`+test.method+`"`)
		body = replaceOnce(t, body, "SAMPLE-1", fmt.Sprint("SAMPLE-", i))
		o := decode[placed](t, do(t, srv, "POST", "/v3/order/import", body)).Order
		if o.LabTest.Name != test.name || !o.LabTest.AutoGenerated || o.Details.Type != test.method ||
			o.LastEvent.Status != "received."+test.method+".requisition_bypassed" {
			t.Errorf("%+v", o)
		}
	}
}

func TestValidation(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	const pattern = `^([a-zA-Z0-9]{1})([a-zA-Z0-9-.,']*(\\s[a-zA-Z0-9-.,']+)*[a-zA-Z0-9-.,']?)$`
	const proxy = `"race": "asian", "medical_proxy": {"first_name":"Eve","last_name":"Example","phone_number":"+14155550123",
		"address":{"first_line":"1 Main Street","country":"US","zip":"94105","city":"San Francisco","state":"CA"}}`
	long := strings.Repeat("é", 1001)
	name := func(in, typ, msg, ctx string) string {
		return fmt.Sprintf(`{"type":%q,"loc":["body","patient_details","first_name"],"msg":"%s","input":%s,"ctx":%s}`, typ, msg, in, ctx)
	}
	mismatch := name(`%s`, "string_pattern_mismatch", "String should match pattern '"+pattern+"'", `{"pattern":"`+pattern+`"}`)
	for _, test := range []struct {
		name, old, new string
		want           string // validation errors, or empty if the order is valid
	}{
		{"name of one character", `"Ada"`, `"A"`, ""},
		{"name of 50 characters", `"Ada"`, `"` + strings.Repeat("a", 50) + `"`, ""},
		{"name with punctuation", `"Ada"`, `"Ada M. O'Neil-Example, 3"`, ""},
		{"name empty", `"Ada"`, `""`, name(`""`, "string_too_short", "String should have at least 1 character", `{"min_length":1}`)},
		{"name of 51 characters", `"Ada"`, `"` + strings.Repeat("é", 51) + `"`,
			name(`"`+strings.Repeat("é", 51)+`"`, "string_too_long", "String should have at most 50 characters", `{"max_length":50}`)},
		{"name with an accent", `"Ada"`, `"Zoé"`, strings.Replace(mismatch, "%s", `"Zoé"`, 1)},
		{"name with leading space", `"Ada"`, `" Ada"`, strings.Replace(mismatch, "%s", `" Ada"`, 1)},
		{"name with trailing space", `"Ada"`, `"Ada "`, strings.Replace(mismatch, "%s", `"Ada "`, 1)},
		{"name with two spaces", `"Ada"`, `"Ada  B"`, strings.Replace(mismatch, "%s", `"Ada  B"`, 1)},
		{"name with a line break", `"Ada"`, `"Ada\n"`, strings.Replace(mismatch, "%s", `"Ada\n"`, 1)},
		{"name with leading hyphen", `"Ada"`, `"-Ada"`, strings.Replace(mismatch, "%s", `"-Ada"`, 1)},
		{"name a number", `"Ada"`, `7.50`,
			`{"type":"string_type","loc":["body","patient_details","first_name"],"msg":"Input should be a valid string","input":7.50}`},
		{"name null", `"Ada"`, `null`,
			`{"type":"string_type","loc":["body","patient_details","first_name"],"msg":"Input should be a valid string","input":null}`},
		{"field name in another case", `"race": "asian"`, `"First_Name": 3`, ""},
		{"duplicate field", `"race": "asian"`, `"race": 3, "race": "asian"`, ""},
		{"missing field", `"sample_id": "SAMPLE-1"`, `"x": "<&>"`, `{"type":"missing","loc":["body","sample_id"],"msg":"Field required","input":BODY}`},
		{"missing nested field", `{"first_name": "Jane", "last_name"`, `{"last_name"`,
			`{"type":"missing","loc":["body","physician","first_name"],"msg":"Field required","input":{"last_name":"Doctor","npi":"1234567890"}}`},
		{"optional object null", `{"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890"}`, `null`, ""},
		{"object a list", `{"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890"}`, `[]`,
			`{"type":"model_attributes_type","loc":["body","physician"],"msg":"Input should be a valid dictionary or object to extract fields from","input":[]}`},
		{"uuid with an invalid character", `bdc7f01"`, `bdc7f0g"`,
			`{"type":"uuid_parsing","loc":["body","order_set","lab_test_ids",0],"msg":"Input should be a valid UUID, invalid character","input":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f0g","ctx":{"error":"invalid character"}}`},
		{"uuid in braces", `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"`, `"{5b41f610-ebc5-4803-8f0c-a61c3bdc7f01}"`,
			`{"type":"uuid_parsing","loc":["body","order_set","lab_test_ids",0],"msg":"Input should be a valid UUID, invalid length: expected length 32 for simple format, found 38","input":"{5b41f610-ebc5-4803-8f0c-a61c3bdc7f01}","ctx":{"error":"invalid length: expected length 32 for simple format, found 38"}}`},
		{"uuid without hyphens", `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"`, `"5b41f610ebc548038f0ca61c3bdc7f01"`, ""},
		{"uuid a number", `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"`, `7`,
			`{"type":"uuid_type","loc":["body","order_set","lab_test_ids",0],"msg":"UUID input should be a string, bytes or UUID object","input":7}`},
		{"list an object", `["5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"]`, `{}`,
			`{"type":"list_type","loc":["body","order_set","lab_test_ids"],"msg":"Input should be a valid list","input":{}}`},
		{"enumeration", `"client_bill"`, `"barter"`,
			`{"type":"enum","loc":["body","billing_type"],"msg":"Input should be 'client_bill', 'commercial_insurance', 'patient_bill_passthrough' or 'patient_bill'","input":"barter","ctx":{"expected":"'client_bill', 'commercial_insurance', 'patient_bill_passthrough' or 'patient_bill'"}}`},
		{"date", `"1990-01-31"`, `"31/01/1990"`,
			`{"type":"date_from_datetime_parsing","loc":["body","patient_details","dob"],"msg":"Input should be a valid date or datetime, input is not a date or datetime","input":"31/01/1990","ctx":{"error":"input is not a date or datetime"}}`},
		{"date-time for a date", `"1990-01-31"`, `"1990-01-31T22:20:26.796Z"`,
			`{"type":"date_from_datetime_inexact","loc":["body","patient_details","dob"],"msg":"Datetimes provided to dates should have zero time - e.g. be exact dates","input":"1990-01-31T22:20:26.796Z"}`},
		{"midnight for a date", `"1990-01-31"`, `"1990-01-31T00:00:00Z"`, ""},
		{"date a number", `"1990-01-31"`, `19900131`,
			`{"type":"date_type","loc":["body","patient_details","dob"],"msg":"Input should be a valid date","input":19900131}`},
		{"dob today", `"1990-01-31"`, `"2025-03-04"`,
			`{"type":"value_error","loc":["body","patient_details","medical_proxy"],"msg":"Value error, medical_proxy is required for a minor","input":null,"ctx":{"error":{}}}`},
		{"dob tomorrow", `"1990-01-31"`, `"2025-03-05"`,
			`{"type":"value_error","loc":["body","patient_details","dob"],"msg":"Value error, dob must not be in the future","input":"2025-03-05","ctx":{"error":{}}}`},
		{"adult since today", `"1990-01-31"`, `"2007-03-04"`, ""},
		{"minor until tomorrow", `"1990-01-31"`, `"2007-03-05"`,
			`{"type":"value_error","loc":["body","patient_details","medical_proxy"],"msg":"Value error, medical_proxy is required for a minor","input":null,"ctx":{"error":{}}}`},
		{"medical proxy", `"race": "asian"`, proxy, ""},
		{"medical proxy incomplete", `"race": "asian"`, `"medical_proxy":{"first_name":"Eve","last_name":"Example","phone_number":"+14155550123"}`,
			`{"type":"missing","loc":["body","patient_details","medical_proxy","address"],"msg":"Field required","input":{"first_name":"Eve","last_name":"Example","phone_number":"+14155550123"}}`},
		{"phone with letters", `"+14155550123"`, `"call me 4155550123"`,
			`{"type":"value_error","loc":["body","patient_details","phone_number"],"msg":"Value error, Phone number is not correct","input":"call me 4155550123","ctx":{"error":{}}}`},
		{"phone a number", `"+14155550123"`, `14155550123`,
			`{"type":"string_type","loc":["body","patient_details","phone_number"],"msg":"Input should be a valid string","input":14155550123}`},
		{"email null", `"ada@example.com"`, `null`,
			`{"type":"string_type","loc":["body","patient_details","email"],"msg":"Input should be a valid string","input":null}`},
		{"email", `"ada@example.com"`, `"ada"`,
			`{"type":"value_error","loc":["body","patient_details","email"],"msg":"value is not a valid email address: An email address must have a name, an @-sign and a domain.","input":"ada","ctx":{"reason":"An email address must have a name, an @-sign and a domain."}}`},
		{"integer a fraction", `"household_size": 3`, `"household_size": 3.5`,
			`{"type":"int_from_float","loc":["body","patient_details","household_size"],"msg":"Input should be a valid integer, got a number with a fractional part","input":3.5}`},
		{"integer with a point", `"household_size": 3`, `"household_size": 3.0`, ""},
		{"integer text", `"household_size": 3`, `"household_size": "three"`,
			`{"type":"int_parsing","loc":["body","patient_details","household_size"],"msg":"Input should be a valid integer, unable to parse string as an integer","input":"three"}`},
		{"integer a list", `"household_size": 3`, `"household_size": []`,
			`{"type":"int_type","loc":["body","patient_details","household_size"],"msg":"Input should be a valid integer","input":[]}`},
		{"integer null", `"household_size": 3`, `"household_size": null`, ""},
		{"number out of range", `"household_size": 3`, `"whatever": 1e999`, ""},
		{"access notes of 1000 characters", `"country": "US"`, `"country": "US", "access_notes": "` + strings.Repeat("é", 1000) + `"`, ""},
		{"access notes of 1001 characters", `"country": "US"`, `"country": "US", "access_notes": "` + long + `"`,
			`{"type":"string_too_long","loc":["body","patient_address","access_notes"],"msg":"String should have at most 1000 characters","input":"` + long + `","ctx":{"max_length":1000}}`},
		{"zip is not validated", `"94105"`, `"SW1A 1AA"`, ""},
		{"signature", `"1234567890"`, `"1234567890", "signature_image": {"content": "AAAA", "content_type": "image/png"}`, ""},
		{"signature of another type", `"1234567890"`, `"1234567890", "signature_image": {"content": "AAAA", "content_type": "image/gif"}`,
			`{"type":"enum","loc":["body","physician","signature_image","content_type"],"msg":"Input should be 'image/jpeg' or 'image/png'","input":"image/gif","ctx":{"expected":"'image/jpeg' or 'image/png'"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := replaceOnce(t, bodyFor(t, importBody, user), test.old, test.new)
			body = strings.Replace(body, "SAMPLE-1", test.name, 1)
			got := do(t, srv, "POST", "/v3/order/import", body)
			if test.want == "" {
				if got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
				}
				return
			}
			check(t, got, 422, `{"detail":[`+strings.Replace(test.want, "BODY", body, 1)+`]}`)
		})
	}
}

func TestUnreadableBodies(t *testing.T) {
	srv := newServer(t)
	const missing = `{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]}`
	for _, test := range []struct {
		name, body, contentType string
		status                  int
		want                    string
	}{
		{"none", "", "application/json", 422, missing},
		{"null", " null ", "application/json", 422, missing},
		{"list", "[1, 2]", "application/json", 422, `{"detail":[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":[1,2]}]}`},
		{"invalid JSON", `{"a":}`, "application/json", 422, `{"detail":[{"type":"json_invalid","loc":["body",5],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting value"}}]}`},
		{"truncated", `{"a":1`, "application/json; charset=utf-8", 422, `{"detail":[{"type":"json_invalid","loc":["body",5],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting value"}}]}`},
		{"form", `a=1`, "application/x-www-form-urlencoded", 422, `{"detail":[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":"a=1"}]}`},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "application/json", 400, `{"detail":"There was an error parsing the body"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			check(t, do(t, srv, "POST", "/v3/order/import", test.body, "Content-Type", test.contentType), test.status, test.want)
		})
	}
}

func TestCreate(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	body := bodyFor(t, createBody, user)
	o := decode[placed](t, do(t, srv, "POST", "/v3/order", body))
	if o.Status != "success" || o.Message != "Order created successfully" || o.Order.ActivateBy != nil ||
		!cmp.Equal(o.Order.statuses(), []string{"received.walk_in_test.ordered"}) || o.Order.Details.Type != "walk_in_test" {
		t.Errorf("%+v", o)
	}
	check(t, do(t, srv, "PATCH", "/v3/order/"+o.Order.ID.String(), `{"activate_by":"2025-03-05"}`), 400,
		`{"detail":"Order was created for immediate processing and can not be rescheduled"}`)

	for _, test := range []struct{ name, old, new, status, detail string }{
		{"deprecated lab_test_id", `"order_set": {"lab_test_ids": ["5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"]}`,
			`"lab_test_id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f04"`, "received.on_site_collection.ordered", ""},
		{"collection_method", `"order_set"`, `"collection_method": "at_home_phlebotomy", "order_set"`, "received.at_home_phlebotomy.ordered", ""},
		{"scheduled for today", `"order_set"`, `"activate_by": "2025-03-04", "order_set"`, "received.walk_in_test.ordered", ""},
		{"everything", `"order_set"`, `"collection_method": null, "priority": true, "billing_type": "patient_bill", "icd_codes": ["E11.9"],
			"consents": [{"consentType": "terms-of-use", "timeOfConsent": "2025-03-04T10:00:00Z"}], "passthrough": "p",
			"clinical_notes": "n", "lab_account_id": null, "aoe_answers": [], "order_set"`, "received.walk_in_test.ordered", ""},
		{"answered question", `["5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"]}`, `["5b41f610-ebc5-4803-8f0c-a61c3bdc7f06"]},
			"aoe_answers": [{"marker_id": 904, "question_id": 1234567890251, "answer": "I"}]`, "received.walk_in_test.ordered", ""},
		{"unanswered question", "bdc7f02", "bdc7f06", "", "Missing required questions for marker 904: [1234567890251]"},
		{"yesterday", `"order_set"`, `"activate_by": "2025-03-03", "order_set"`, "", "activate_by must be today or a future date"},
		{"no test", `"order_set"`, `"set"`, "", "order_set must contain lab_test_ids or an add_on"},
		{"add-on without method", `{"lab_test_ids": `, `{"add_on": {"marker_ids": [901]}, "lab_test_ids": `, "", "collection_method is required with an add_on"},
		{"two methods", `"5b41f610`, `"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01","5b41f610`, "", "Tests of an order have different collection methods, collection_method is required"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := do(t, srv, "POST", "/v3/order", replaceOnce(t, body, test.old, test.new))
			if test.detail != "" {
				check(t, got, 400, fmt.Sprintf(`{"detail":%q}`, test.detail))
			} else if status := decode[placed](t, got).Order.LastEvent.Status; status != test.status {
				t.Errorf("status %s, want %s", status, test.status)
			}
		})
	}

	check(t, do(t, srv, "POST", "/v3/order", replaceOnce(t, replaceOnce(t, body, `"94105"`, `"9410"`), `"order_set"`, `"priority": "yes", "consents": [{"timeOfConsent": "now"}], "order_set"`)), 422, `{"detail":[
		{"type":"string_pattern_mismatch","loc":["body","patient_address","zip"],"msg":"String should match pattern '^\\d{5}(-\\d{4})?$'","input":"9410","ctx":{"pattern":"^\\d{5}(-\\d{4})?$"}},
		{"type":"bool_type","loc":["body","priority"],"msg":"Input should be a valid boolean","input":"yes"},
		{"type":"missing","loc":["body","consents",0,"consentType"],"msg":"Field required","input":{"timeOfConsent":"now"}},
		{"type":"datetime_from_date_parsing","loc":["body","consents",0,"timeOfConsent"],"msg":"Input should be a valid datetime or date, input is not a datetime","input":"now","ctx":{"error":"input is not a datetime"}}]}`)
}

func TestIdempotency(t *testing.T) {
	var hours atomic.Int64
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return noon.Add(time.Duration(hours.Load()) * time.Hour) }))
	user := srv.AddUser("ada")
	body := bodyFor(t, createBody, user)
	unknown := bodyFor(t, createBody, uuid.New())
	invalid := replaceOnce(t, body, `"Ada"`, `""`)
	post := func(body string, header ...string) response { return do(t, srv, "POST", "/v3/order", body, header...) }
	is := func(name string, got response, status, orders int) {
		t.Helper()
		if got.status != status || len(srv.Orders()) != orders {
			t.Errorf("%s: status %d, %d orders; want %d, %d", name, got.status, len(srv.Orders()), status, orders)
		}
	}

	is("invalid", post(invalid, "X-Idempotency-Key", "a"), 422, 0)
	first := post(body, "X-Idempotency-Key", "a")
	is("first", first, 200, 1)
	repeated := post(body, "X-Idempotency-Key", "a")
	is("repeated", repeated, 200, 1)
	if repeated.body != first.body {
		t.Error("the second response differs")
	}
	is("other key", post(body, "X-Idempotency-Key", "b"), 200, 2)
	is("no key", post(body), 200, 3)
	is("no key again", post(body), 200, 4)

	is("failure", post(unknown, "X-Idempotency-Key", "c"), 404, 4)
	is("stored failure", post(body, "X-Idempotency-Key", "c"), 404, 4)
	is("failure with no-cache", post(unknown, "X-Idempotency-Key", "d", "X-Idempotency-Error", "no-cache"), 404, 4)
	is("success after no-cache", post(body, "X-Idempotency-Key", "d", "X-Idempotency-Error", "no-cache"), 200, 5)
	is("success is stored", post(body, "X-Idempotency-Key", "d", "X-Idempotency-Error", "no-cache"), 200, 5)

	hours.Store(23)
	is("after 23 hours", post(body, "X-Idempotency-Key", "a"), 200, 5)
	hours.Store(24)
	is("after 24 hours", post(body, "X-Idempotency-Key", "a"), 200, 6)
}

func TestUpdate(t *testing.T) {
	srv := newServer(t)
	user := srv.AddUser("ada")
	scheduled := replaceOnce(t, bodyFor(t, createBody, user), `"order_set"`, `"activate_by": "2025-04-01", "order_set"`)
	id := decode[placed](t, do(t, srv, "POST", "/v3/order", scheduled)).Order.ID
	path := "/v3/order/" + id.String()
	patch := func(body string) response { return do(t, srv, "PATCH", path, body) }

	check(t, patch(`{"activateBy":"2025-04-02"}`), 422, `{"detail":[{"type":"missing","loc":["body","activate_by"],"msg":"Field required","input":{"activateBy":"2025-04-02"}}]}`)
	check(t, patch(`{"activate_by":"2025-03-03"}`), 400, `{"detail":"activate_by must be today or a future date"}`)
	for _, date := range []string{"2025-03-04", "2025-12-31"} {
		got := decode[placed](t, patch(`{"activate_by":"`+date+`"}`))
		if got.Message != "order updated" || got.Status != "success" || *got.Order.ActivateBy != date || len(got.Order.Events) != 1 {
			t.Errorf("%+v", got)
		}
	}
	got := decode[placed](t, patch(`{"activate_by":null}`))
	if got.Order.ActivateBy != nil || got.Order.LastEvent.Status != "received.walk_in_test.requisition_created" {
		t.Errorf("%+v", got)
	}
	check(t, patch(`{"activate_by":null}`), 400, `{"detail":"Order can not be modified in its current status"}`)

	// A testkit that awaits registration is not dispatched.
	id = decode[placed](t, do(t, srv, "POST", "/v3/order", replaceOnce(t, scheduled, "bdc7f02", "bdc7f01"))).Order.ID
	path = "/v3/order/" + id.String()
	noError(t, srv.SetStatus(id, "received.testkit.awaiting_registration"))
	got = decode[placed](t, patch(`{"activate_by":null}`))
	if got.Order.ActivateBy != nil || got.Order.LastEvent.Status != "received.testkit.awaiting_registration" {
		t.Errorf("%+v", got)
	}

	path = "/v3/order/00000000-0000-4000-8000-000000000000"
	check(t, patch(`{"activate_by":null}`), 404, `{"detail":"This order doesn't exist"}`)
	check(t, do(t, srv, "GET", path, ""), 404, `{"detail":"This order doesn't exist"}`)
	check(t, do(t, srv, "GET", "/v3/order/x", ""), 422, `{"detail":[{"type":"uuid_parsing","loc":["path","order_id"],"msg":"Input should be a valid UUID, invalid length: expected length 32 for simple format, found 1","input":"x","ctx":{"error":"invalid length: expected length 32 for simple format, found 1"}}]}`)
	path = "/v3/order/import"
	check(t, patch(`{"activate_by":"soon"}`), 422, `{"detail":[
		{"type":"uuid_parsing","loc":["path","order_id"],"msg":"Input should be a valid UUID, invalid length: expected length 32 for simple format, found 6","input":"import","ctx":{"error":"invalid length: expected length 32 for simple format, found 6"}},
		{"type":"date_from_datetime_parsing","loc":["body","activate_by"],"msg":"Input should be a valid date or datetime, input is not a date or datetime","input":"soon","ctx":{"error":"input is not a date or datetime"}}]}`)
}

type orderPage struct {
	Orders            []order
	Total, Page, Size int
}

func TestListOrders(t *testing.T) {
	var now atomic.Pointer[time.Time]
	set := func(s string) {
		at, err := time.Parse(time.DateTime, s)
		noError(t, err)
		now.Store(&at)
	}
	set("2025-03-01 12:00:00")
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return *now.Load() }))
	users := srv.AddUsers(2)
	// Orders a to d are a testkit, a walk-in, an at-home and an on-site order of the patients Ada,
	// Grace, Alan and Ada. Their users alternate.
	ids := srv.AddOrders(3)
	set("2025-03-02 23:59:59")
	ids = append(ids, srv.AddOrders(1)...)
	set("2025-03-04 12:00:00")
	body := replaceOnce(t, bodyFor(t, createBody, users[1]), `"order_set"`, `"activate_by": "2025-03-05", "order_set"`)
	ids = append(ids, decode[placed](t, do(t, srv, "POST", "/v3/order", body)).Order.ID)
	ids = append(ids, decode[placed](t, do(t, srv, "POST", "/v3/order", replaceOnce(t, body, "2025-03-05", "2025-03-04"))).Order.ID)
	// Order g was imported after the clock was set back.
	set("2025-02-01 00:00:00")
	ids = append(ids, decode[placed](t, do(t, srv, "POST", "/v3/order/import",
		replaceOnce(t, bodyFor(t, importBody, users[0]), `"last_name": "Example"`, `"last_name": "Zeta"`))).Order.ID)
	set("2025-03-04 12:00:00")
	noError(t, srv.SetInterpretation(ids[0], "abnormal"))
	noError(t, srv.SetInterpretation(ids[1], "critical"))
	noError(t, srv.SetInterpretation(ids[2], "normal"))
	noError(t, srv.SetInterpretation(ids[2], ""))
	noError(t, srv.SetStatus(ids[3], "completed.on_site_collection.completed"))
	transaction := getOrder(t, srv, ids[2]).Transaction.ID

	for _, test := range []struct{ query, want string }{
		{"", "fedcbag"},
		{"order_direction=asc", "gabcdef"},
		{"order_direction=desc&order_key=created_at", "fedcbag"},
		{"order_key=patient_name&order_direction=asc", "adefgcb"},
		{"order_key=patient_name", "bcgfeda"},
		{"order_key=last_status&order_direction=asc", "dcagbef"},
		{"user_id=" + users[0].String(), "cag"},
		{"user_id=00000000-0000-4000-8000-000000000000", ""},
		{"order_ids=" + ids[3].String() + "&order_ids=" + ids[1].String() + "&order_ids=" + ids[3].String(), "db"},
		{"order_ids[]=" + ids[0].String() + "&order_ids=" + users[0].String(), "a"},
		{"order_ids=" + ids[0].String() + "&user_id=" + users[1].String(), ""},
		{"order_transaction_id=" + transaction.String(), "c"},
		{"status=requisition_bypassed&status=completed", "dg"},
		{"status[]=ordered", "fecba"},
		{"order_type=testkit&order_type=on_site_collection", "dag"},
		{"interpretation=abnormal", "a"},
		{"interpretation=unknown", ""},
		{"is_critical=true", "b"},
		{"is_critical=0", "fedcag"},
		{"order_activation_types=current", "dcbag"},
		{"order_activation_types=scheduled", "e"},
		{"order_activation_types=scheduled&order_activation_types=current", "edcbag"},
		{"start_date=2025-03-02", "fed"},
		{"end_date=2025-03-02", "dcbag"},
		{"end_date=2025-03-02T00:00:00Z", "cbag"},
		{"start_date=2025-03-01T14:00:00%2B02:00&end_date=2025-03-01T12:00:00", "cba"},
		{"updated_start_date=2025-03-04", "fedcba"},
		{"updated_end_date=2025-03-03", "g"},
		{"patient_name=ada%20ex", "feda"},
		{"search_input=GRACE", "b"},
		{"search_input=sample-1", "g"},
		{"search_input=" + ids[2].String(), "c"},
		{"search_input=" + users[1].String(), "fedb"},
		{"shipping_recipient_name=ada", ""},
		{"size=3", "fed"},
		{"size=3&page=2", "cba"},
		{"size=3&page=3", "g"},
		{"size=3&page=4", ""},
		{"size=3&page=1&page=3", "g"},
		{"size=7&page=2", ""},
		{fmt.Sprint("size=2&page=", math.MaxInt), ""},
		{"size=2&page=2&order_direction=asc", "bc"},
		{"size=2&page=2&user_id=" + users[1].String(), "db"},
		{"unknown=1", "fedcbag"},
	} {
		t.Run(test.query, func(t *testing.T) {
			page := decode[orderPage](t, do(t, srv, "GET", "/v3/orders?"+test.query, ""))
			var got strings.Builder
			for _, o := range page.Orders {
				got.WriteByte("abcdefg"[slices.Index(ids, o.ID)])
			}
			if got.String() != test.want {
				t.Errorf("orders %s, want %s", got.String(), test.want)
			}
			if !strings.Contains(test.query, "size") && page.Total != len(test.want) {
				t.Errorf("total %d", page.Total)
			}
		})
	}
	check(t, do(t, srv, "GET", "/orders?size=3&page=4", ""), 200, `{"orders":[],"total":7,"page":4,"size":3}`)
}

func TestListOrdersInvalid(t *testing.T) {
	srv := newServer(t)
	const integer = "Input should be a valid integer, unable to parse string as an integer"
	for _, test := range []struct{ query, want string }{
		{"page=0", `{"type":"greater_than_equal","loc":["query","page"],"msg":"Input should be greater than or equal to 1","input":"0","ctx":{"ge":1}}`},
		{"size=0", `{"type":"greater_than_equal","loc":["query","size"],"msg":"Input should be greater than or equal to 1","input":"0","ctx":{"ge":1}}`},
		{"size=101", `{"type":"less_than_equal","loc":["query","size"],"msg":"Input should be less than or equal to 100","input":"101","ctx":{"le":100}}`},
		{"size=1.5", `{"type":"int_parsing","loc":["query","size"],"msg":"` + integer + `","input":"1.5"}`},
		{"status=ordered&status=lost%20it", ""},
		{"order_direction=up", `{"type":"enum","loc":["query","order_direction"],"msg":"Input should be 'asc' or 'desc'","input":"up","ctx":{"expected":"'asc' or 'desc'"}}`},
		{"interpretation=fine", `{"type":"enum","loc":["query","interpretation"],"msg":"Input should be 'normal', 'abnormal', 'critical' or 'unknown'","input":"fine","ctx":{"expected":"'normal', 'abnormal', 'critical' or 'unknown'"}}`},
		{"is_critical=maybe", `{"type":"bool_parsing","loc":["query","is_critical"],"msg":"Input should be a valid boolean, unable to interpret input","input":"maybe"}`},
		{"start_date=2025-03-01T00:00:00+00:00", `{"type":"date_from_datetime_parsing","loc":["query","start_date"],"msg":"Input should be a valid date or datetime, input is not a date or datetime","input":"2025-03-01T00:00:00 00:00","ctx":{"error":"input is not a date or datetime"}}`},
		{"user_id=5b41f610-ebc5-4803-8f0c-a61c3bdc7f0x", `{"type":"uuid_parsing","loc":["query","user_id"],"msg":"Input should be a valid UUID, invalid character","input":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f0x","ctx":{"error":"invalid character"}}`},
	} {
		t.Run(test.query, func(t *testing.T) {
			got := do(t, srv, "GET", "/orders?"+test.query, "")
			if test.want != "" {
				check(t, got, 422, `{"detail":[`+test.want+`]}`)
			} else if got.status != 422 || !strings.Contains(got.body, `"loc":["query","status",1]`) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

func TestManyOrders(t *testing.T) {
	srv := newServer(t)
	srv.AddUsers(100)
	ids := srv.AddOrders(100_000)
	page := decode[orderPage](t, do(t, srv, "GET", "/orders?page=1000&size=100", ""))
	if page.Total != 100_000 || len(page.Orders) != 100 || page.Orders[99].ID != ids[0] {
		t.Errorf("total %d, %d orders", page.Total, len(page.Orders))
	}
}
