package conformance

import (
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	labTestResponse = `{"id":"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01","slug":"lead","name":"Lead","sample_type":"serum","method":"walk_in_test",` +
		`"price":21.00,"is_active":true,"status":"active","fasting":true,"lab":` + labResponse + `,"markers":[` + markerResponse + `],` +
		`"is_delegated":false,"auto_generated":true,"has_collection_instructions":true,"common_tat_days":3,"worst_case_tat_days":7}`
	labResponse = `{"id":27,"slug":"example-lab","name":"Example Laboratories","first_line_address":"1 Lab Way","city":"Reno","zipcode":"89501",` +
		`"collection_methods":["walk_in_test","testkit"],"sample_types":["serum"],"logo_url":"https://example.com/lab.png"}`
	markerFields = `"id":904,"name":"Lead, Blood","slug":"lead-blood","description":"Lead in whole blood","lab_id":27,"provider_id":"P-904",` +
		`"type":"biomarker","unit":"ug/dL","price":"21.00","aoe":{"questions":[{"id":1234567890251,"required":true,"code":"PURPOSE",` +
		`"value":"Purpose of the test","type":"choice","sequence":1,"answers":[{"id":1,"code":"I","value":"Initial"}],` +
		`"constraint":"one","default":"I"}]},"a_la_carte_enabled":true,"common_tat_days":3,"worst_case_tat_days":7,"is_orderable":false`
	markerResponse = `{` + markerFields + `}`
	listedMarker   = `{` + markerFields + `,"expected_results":[{"id":5,"name":"Lead","slug":"lead","lab_id":27,"provider_id":"R-904",` +
		`"required":true,"loinc":{"id":9,"name":"Lead [Mass/volume] in Blood","slug":"lead-blood","code":"5671-3","unit":"ug/dL"}}]}`
	markerList         = `[` + listedMarker + `]`
	markerPageResponse = `{"markers":` + markerList + `,"total":1,"page":1,"size":50,"pages":1,` +
		`"pricing":{"currency":"USD","data":{"904":` + pricingResponse + `}}}`
	pricingResponse = `{"base_amount_minor":2100,"modifiers":[` +
		`{"delta_amount_minor":{"minimum":500,"maximum":500},"conditions":{"us_state":{"any_of":["NY"]},"reflex":null}},` +
		`{"delta_amount_minor":{"minimum":100,"maximum":900},"conditions":{"us_state":null,"reflex":{}}}]}`
	labTestPageResponse = `{"data":[` + labTestResponse + `],"next_cursor":"bmV4dA==","pricing":{"currency":"USD","data":{` +
		`"5b41f610-ebc5-4803-8f0c-a61c3bdc7f01":{"pricing":` + pricingResponse + `,"marker_breakdown":{"904":{"unspecified":"price_unavailable"}}}}}}`
	labAccountResponse = `{"id":"0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31","lab":"example-lab","org_id":"0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b32",` +
		`"status":"active","delegated_flow":"order_delegated","provider_account_id":"A-1","account_name":"Main","default_clinical_notes":"none",` +
		`"business_units":["north"],"allowed_billing":{"client_bill":["CA","NV"],"patient_bill":[]},` +
		`"team_id_allowlist":["0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b33"]}`
)

var (
	callAccount  = uuid.MustParse("0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31")
	callOrderSet = labhealth.OrderSetRequest{
		LabTestIDs:   []uuid.UUID{labTestID},
		AddOn:        &labhealth.AddOnOrder{MarkerIDs: []int64{904}, ProviderIDs: []string{"P-901"}},
		LabAccountID: &callAccount,
	}
)

const callOrderSetBody = `{"lab_test_ids":["5b41f610-ebc5-4803-8f0c-a61c3bdc7f01"],"add_on":{"marker_ids":[904],"provider_ids":["P-901"]},` +
	`"lab_account_id":"0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"}`

var labTestCalls = []apiCall{
	{
		method: "LabTests.List", op: "GET /v3/lab_test", response: labTestPageResponse,
		url: "/v3/lab_test?collection_method=testkit&generation_method=auto&include_pricing=true&lab_account_id=0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31&" +
			"lab_slug=example-lab&lab_test_limit=9&marker_ids=901&marker_ids=904&name=Lipid+%26+more&next_cursor=c%3D&order_direction=desc&" +
			"order_key=updated_at&provider_ids=P-901&status=pending_approval",
		args: []any{labhealth.ListLabTestsParams{
			LabTestLimit: 9, NextCursor: "c=", IncludePricing: true, LabAccountID: callAccount, GenerationMethod: labhealth.LabTestGenerationAuto,
			LabSlug: "example-lab", CollectionMethod: labhealth.CollectionMethodTestkit, Status: labhealth.LabTestStatusPendingApproval,
			MarkerIDs: []int64{901, 904}, ProviderIDs: []string{"P-901"}, Name: "Lipid & more", OrderKey: "updated_at", OrderDirection: "desc",
		}},
	},
	{
		method: "LabTests.Get", op: "GET /v3/lab_tests/{lab_test_id}", response: labTestResponse,
		url:  "/v3/lab_tests/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01?lab_account_id=0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31",
		args: []any{labTestID, labhealth.GetLabTestParams{LabAccountID: callAccount}},
	},
	{
		method: "LabTests.Create", op: "POST /v3/lab_tests", response: labTestResponse,
		url: "/v3/lab_tests",
		body: `{"marker_ids":[904],"provider_ids":["P-901"],"name":"Lead","method":"walk_in_test","description":"Lead in blood","fasting":true,` +
			`"lab_account_id":"0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31","lab_slug":"example-lab"}`,
		args: []any{labhealth.CreateLabTestBody{
			MarkerIDs: []int64{904}, ProviderIDs: []string{"P-901"}, Name: "Lead", Method: labhealth.CollectionMethodWalkInTest,
			Description: "Lead in blood", Fasting: true, LabAccountID: &callAccount, LabSlug: new("example-lab"),
		}},
	},
	{
		method: "LabTests.Update", op: "PATCH /v3/lab_tests/{lab_test_id}", response: labTestResponse,
		url: "/v3/lab_tests/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", body: `{"name":"Lead","active":false}`,
		args: []any{labTestID, labhealth.UpdateLabTestBody{Name: new("Lead"), Active: new(false)}},
	},
	{
		method: "LabTests.CollectionInstructionsPDF", op: "GET /v3/lab_test/{lab_test_id}/collection_instruction_pdf",
		url: "/v3/lab_test/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01/collection_instruction_pdf", response: onePDF, want: onePDFAsJSON,
		args: []any{labTestID},
	},
	{
		method: "LabTests.Markers", op: "GET /v3/lab_tests/markers", response: markerPageResponse,
		url: "/v3/lab_tests/markers?a_la_carte_enabled=false&include_pricing=true&lab_account_id=0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31&" +
			"lab_id=27&lab_id=31&lab_slug=example-lab&name=Lead%2C&page=2&size=100",
		args: []any{labhealth.ListMarkersParams{
			LabIDs: []int64{27, 31}, LabSlug: "example-lab", Name: "Lead,", ALaCarteEnabled: new(false), IncludePricing: true,
			LabAccountID: callAccount, Page: 2, Size: 100,
		}},
	},
	{
		method: "LabTests.AllMarkers", op: "GET /v3/lab_tests/markers", response: markerPageResponse, want: markerList,
		url:  "/v3/lab_tests/markers?lab_slug=example-lab&page=1",
		args: []any{labhealth.ListMarkersParams{LabSlug: "example-lab"}},
	},
	{
		method: "LabTests.MarkersOfTest", op: "GET /v3/lab_tests/{lab_test_id}/markers", response: markerPageResponse,
		url:  "/v3/lab_tests/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01/markers?lab_account_id=0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31&page=2&size=10",
		args: []any{labTestID, labhealth.ListMarkersOfTestParams{LabAccountID: callAccount, Page: 2, Size: 10}},
	},
	{
		method: "LabTests.AllMarkersOfTest", op: "GET /v3/lab_tests/{lab_test_id}/markers", response: markerPageResponse, want: markerList,
		url:  "/v3/lab_tests/5b41f610-ebc5-4803-8f0c-a61c3bdc7f01/markers?page=1&size=10",
		args: []any{labTestID, labhealth.ListMarkersOfTestParams{Size: 10}},
	},
	{
		method: "LabTests.MarkersOfOrderSet", op: "POST /v3/lab_tests/list_order_set_markers", response: markerPageResponse,
		url: "/v3/lab_tests/list_order_set_markers?page=2&size=10", body: callOrderSetBody,
		args: []any{callOrderSet, labhealth.ListMarkersOfOrderSetParams{Page: 2, Size: 10}},
	},
	{
		method: "LabTests.AllMarkersOfOrderSet", op: "POST /v3/lab_tests/list_order_set_markers", response: markerPageResponse, want: markerList,
		url: "/v3/lab_tests/list_order_set_markers?page=1", body: callOrderSetBody,
		args: []any{callOrderSet, labhealth.ListMarkersOfOrderSetParams{}},
	},
	{
		method: "LabTests.Marker", op: "GET /v3/lab_tests/{lab_id}/markers/{provider_id}", response: markerResponse,
		url:  "/v3/lab_tests/27/markers/P%2F904?lab_account_id=0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31",
		args: []any{27, "P/904", labhealth.GetMarkerParams{LabAccountID: callAccount}},
	},
	{
		method: "LabTests.Labs", op: "GET /v3/lab_tests/labs", response: `[` + labResponse + `]`,
		url: "/v3/lab_tests/labs",
	},
	{
		method: "LabTests.LabAccounts", op: "GET /v3/lab_test/lab_account", response: `{"data":[` + labAccountResponse + `]}`, want: `[` + labAccountResponse + `]`,
		url:  "/v3/lab_test/lab_account?lab_account_id=0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31&status=suspended",
		args: []any{labhealth.ListLabAccountsParams{LabAccountID: callAccount, Status: labhealth.LabAccountStatusSuspended}},
	},
}
