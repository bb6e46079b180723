package conformance

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	addressJSON = `{"first_line": "1 Main Street", "second_line": "Floor 2", "country": "US", "zip": "94105", "city": "San Francisco", "state": "CA",
		"access_notes": "ring twice"}`
	insuredJSON = `{"first_name": "Ada", "last_name": "Example", "gender": "female", "address": ` + addressJSON + `, "dob": "1990-01-31",
		"email": "ada@example.com", "phone_number": "+14155550123"}`
	guarantorJSON = `{"first_name": "Grace", "last_name": "Example", "address": ` + addressJSON + `, "phone_number": "+14155550124",
		"household_income": 50000, "household_size": 3, "email": "grace@example.com"}`
	insuranceFieldsJSON = `"payor_code": "PAY-1", "member_id": "M-1", "group_id": "G-1", "relationship": "Spouse", "insured": ` + insuredJSON + `,
		"guarantor": ` + guarantorJSON + `, "is_primary": false`
	userInsuranceJSON = `{` + insuranceFieldsJSON + `, "company": {"name": "Example Health Plan", "address": ` + addressJSON + `}}`
	payorFieldsJSON   = `"name": "Example Health Plan", "aliases": ["EHP"], "org_address": ` + addressJSON + `, "source": "team"`
	payorJSON         = `{"payor_code": "PAY-1", ` + payorFieldsJSON + `}`

	unmatchedJSON = `{"id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", "status": "resolved", "decision_code": "multiple_demo_match",
		"sub_reason_codes": ["lab_account_mismatch"], "reason": "two orders match",
		"patient": {"first_name": "Ada", "last_name": "Example", "dob": "1990-01-31", "gender": "female"},
		"lab": {"id": 27, "name": "Example Laboratories", "slug": "example"}, "markers": [{"provider_id": "P-901", "name": "Total Cholesterol"}],
		"interpretation": "abnormal", "result_status": "partial", "note": "called the lab", "resolution_action": "accept",
		"resolved_user_id": "11111111-2222-4333-8444-555555555555", "resolved_order_id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
		"allowed_actions": ["reject", "unsure"],
		"candidate_groups": [{"user_id": "11111111-2222-4333-8444-555555555555", "candidates": [{"candidate_type": "order_option",
			"order_id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "order_transaction_id": "55555555-6666-4777-8888-999999999999",
			"last_status": "requisition_created", "confidence_level": "medium", "confidence_score": 0.5,
			"reasons": ["demographic_match", "same_lab"], "marker_overlap": {"matched": 1}, "status_context": {"a": [null]}}]}],
		"created_at": "2025-03-04T12:00:00+00:00", "updated_at": "2025-03-05T12:00:00+00:00", "reviewed_at": "2025-03-05T12:00:00+00:00"}`
	testRunJSON = `{"run_id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", "status": "failed", "stage": "creating_orders", "case": "wrong_lab",
		"order_source": "provided", "result_status": "partial", "orders": {"order": {"order_id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b",
			"user_id": "11111111-2222-4333-8444-555555555555", "order_transaction_id": "55555555-6666-4777-8888-999999999999"}},
		"raw_result_id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "error": {"code": "invalid_status", "message": "wrong status"},
		"created_at": "2025-03-04T12:00:00+00:00", "updated_at": "2025-03-04T12:00:01+00:00", "started_at": "2025-03-04T12:00:01+00:00",
		"completed_at": "2025-03-04T12:00:02+00:00"}`
	parsingJobJSON = `{"id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", "status": "completed", "failure_reason": "low_quality", "needs_human_review": true,
		"is_reviewed": true, "data": {"metadata": {"patient_first_name": "Ada", "patient_last_name": "Example", "dob": "02/01/1990",
			"gender": "female", "lab_name": "Example Laboratories", "date_reported": "1 Mar 2025", "date_collected": "2/28/25",
			"specimen_number": "S-1"},
		"results": [{"test_name": "Glucose", "value": "<90", "sample_type": "serum_plasma_blood", "measurement_kind": "direct", "type": "range",
			"units": "mg/dL", "max_reference_range": 99.5, "min_reference_range": 70, "source_panel_name": "Metabolic", "sensitivity": "sensitive",
			"loinc_matches": [{"loinc_code": "2345-7", "loinc_name": "Glucose", "display_name": "Glucose, serum", "aliases": ["GLU"],
				"confidence_score": 0.9}],
			"loinc_match_status": "auto_match", "interpretation": "normal", "is_above_max_range": false, "is_below_min_range": true}]}}`
	providerLinkJSON = `{"state": "pending_provider_mfa", "redirect_url": "https://example.com/back", "error_type": null, "error": null,
		"provider_mfa": {"method": "sms", "hint": "23"}, "provider": "whoop", "connected": false, "provider_id": "external-1"}`
)

var (
	insuredBody = labhealth.InsuredPerson{
		FirstName: "Ada", LastName: "Example", Gender: labhealth.GenderFemale, Address: fullAddress, DOB: labhealth.Date{Year: 1990, Month: 1, Day: 31},
		Email: "ada@example.com", PhoneNumber: "+14155550123",
	}
	fullAddress = labhealth.Address{
		FirstLine: "1 Main Street", SecondLine: new("Floor 2"), Country: "US", Zip: "94105", City: "San Francisco", State: "CA", AccessNotes: new("ring twice"),
	}
	resultID = uuid.MustParse("6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c")
)

// labCalls are calls of operations on insurance, unmatched results and lab reports.
var labCalls = []apiCall{
	{
		method: "Users.CreateInsurance", op: "POST /v2/user/{user_id}/insurance",
		url: "/v2/user/11111111-2222-4333-8444-555555555555/insurance", body: `{` + insuranceFieldsJSON + `}`, response: userInsuranceJSON,
		args: []any{userID, labhealth.CreateInsuranceBody{
			PayorCode: "PAY-1", MemberID: "M-1", GroupID: new("G-1"), Relationship: labhealth.ResponsibleRelationshipSpouse, Insured: insuredBody,
			Guarantor: &labhealth.GuarantorDetails{
				FirstName: "Grace", LastName: "Example", Address: fullAddress, PhoneNumber: "+14155550124",
				HouseholdIncome: new(int64(50000)), HouseholdSize: new(int64(3)), Email: new("grace@example.com"),
			}, IsPrimary: new(false),
		}},
	},
	{
		method: "Users.LatestInsurance", op: "GET /v2/user/{user_id}/insurance/latest",
		url: "/v2/user/11111111-2222-4333-8444-555555555555/insurance/latest?is_primary=false", response: userInsuranceJSON,
		args: []any{userID, labhealth.LatestInsuranceParams{IsPrimary: new(false)}},
	},
	{
		method: "Insurance.SearchPayors", op: "GET /v3/insurance/search/payor",
		url:      "/v3/insurance/search/payor?insurance_name=A%26B&provider=availity&provider_payor_id=P+1",
		response: "[" + payorJSON + "]",
		args: []any{labhealth.SearchPayorsParams{
			InsuranceName: "A&B", Provider: labhealth.PayorProviderAvaility, ProviderPayorID: "P 1",
		}},
	},
	{
		method: "Insurance.SearchPayorsDeprecated", op: "POST /v3/insurance/search/payor", url: "/v3/insurance/search/payor",
		body: `{"insurance_name": "A&B", "provider": "availity", "provider_id": "P 1"}`, response: `[{"code": "PAY-1", ` + payorFieldsJSON + `}]`,
		args: []any{labhealth.SearchPayorsParams{
			InsuranceName: "A&B", Provider: labhealth.PayorProviderAvaility, ProviderPayorID: "P 1",
		}},
	},
	{
		method: "Insurance.CreatePayor", op: "POST /v3/payor", url: "/v3/payor",
		body:     `{"name": "Example Health Plan", "address": ` + addressJSON + `, "provider": "stedi", "provider_payor_id": "P 1"}`,
		response: payorJSON,
		args: []any{labhealth.CreatePayorBody{
			Name: "Example Health Plan", Address: fullAddress, Provider: new(labhealth.PayorProviderStedi), ProviderPayorID: new("P 1"),
		}},
	},
	{
		method: "Insurance.SearchDiagnoses", op: "GET /v3/insurance/search/diagnosis",
		url: "/v3/insurance/search/diagnosis?diagnosis_query=type+2+%26", response: `[{"diagnosis_code": "E11.9", "description": "Type 2", "is_secondary": true}]`,
		args: []any{"type 2 &"},
	},
	{
		method: "Insurance.ValidateICDCodes", op: "POST /v3/insurance/validate_icd_codes", url: "/v3/insurance/validate_icd_codes",
		body: `{"codes": ["E10.9", "E11.9"]}`,
		response: `{"valid": false, "errors": ["E10.9 excludes E11.9"], "violations": [{"code": "E10.9", "conflicts_with": "E11.9", "type": "excludes1"}],
			"warnings": [{"code": "E78.5", "overlaps_with": "Z00.00", "type": "excludes2"}]}`,
		args: []any{[]string{"E10.9", "E11.9"}},
	},
	{
		method: "UnmatchedResults.List", op: "GET /v3/unmatched_result",
		url: "/v3/unmatched_result?created_at_end=2025-03-31&created_at_start=2025-03-01&decision_code=no_match&lab_slug=x&limit=7&" +
			"next_cursor=a%2Bb&search_input=Ada+E&status=pending_customer_review",
		response: `{"data": [` + unmatchedJSON + `], "next_cursor": "a+c", "total": 12}`,
		args: []any{labhealth.ListUnmatchedResultsParams{
			Limit: 7, NextCursor: "a+b", DecisionCode: labhealth.MatchDecisionNoMatch, LabSlug: "x", Status: labhealth.MatchReviewPendingCustomerReview,
			CreatedAtStart: labhealth.Date{Year: 2025, Month: 3, Day: 1}, CreatedAtEnd: labhealth.Date{Year: 2025, Month: 3, Day: 31}, SearchInput: "Ada E",
		}},
	},
	{
		method: "UnmatchedResults.All", op: "GET /v3/unmatched_result", url: "/v3/unmatched_result",
		response: `{"data": [` + unmatchedJSON + `], "next_cursor": null, "total": 1}`, want: "[" + unmatchedJSON + "]",
		args: []any{labhealth.ListUnmatchedResultsParams{}},
	},
	{
		method: "UnmatchedResults.Get", op: "GET /v3/unmatched_result/{raw_result_id}",
		url: "/v3/unmatched_result/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", response: unmatchedJSON,
		args: []any{resultID},
	},
	{
		method: "UnmatchedResults.Accept", op: "POST /v3/unmatched_result/{raw_result_id}/accept",
		url:  "/v3/unmatched_result/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c/accept",
		body: `{"user_id": "11111111-2222-4333-8444-555555555555", "order_id": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "note": "n"}`, response: orderJSON,
		args: []any{resultID, labhealth.AcceptUnmatchedResultBody{UserID: &userID, OrderID: &orderID, Note: new("n")}},
	},
	{
		method: "UnmatchedResults.Resolve", op: "POST /v3/unmatched_result/{raw_result_id}/resolve",
		url:  "/v3/unmatched_result/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c/resolve",
		body: `{"action": "unsure", "note": "n"}`, response: unmatchedJSON,
		args: []any{resultID, labhealth.ResolveUnmatchedResultBody{Action: labhealth.MatchResolutionUnsure, Note: new("n")}},
	},
	{
		method: "UnmatchedResults.TestCases", op: "GET /v3/unmatched_result_test/case", url: "/v3/unmatched_result_test/case",
		response: `{"data": [{"case": "wrong_lab", "order_roles": ["order"], "required_statuses": {"order": "completed"}, "lab_constraints": ["x"]}]}`,
		want:     `[{"case": "wrong_lab", "order_roles": ["order"], "required_statuses": {"order": "completed"}, "lab_constraints": ["x"]}]`,
	},
	{
		method: "UnmatchedResults.CreateTest", op: "POST /v3/unmatched_result_test", url: "/v3/unmatched_result_test",
		body: `{"case": "wrong_lab", "order_source": "provided", "orders": {"order": "0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"}, "result_status": "partial",
			"interpretation": "critical", "lab_test_id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "wrong_lab_test_id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c"}`,
		response: testRunJSON,
		args: []any{"key-1", labhealth.CreateUnmatchedResultTestBody{
			Case: labhealth.UnmatchedResultTestWrongLab, OrderSource: labhealth.UnmatchedResultTestProvided,
			Orders: map[string]uuid.UUID{"order": orderID}, ResultStatus: labhealth.ResultsStatusPartial, Interpretation: labhealth.InterpretationCritical,
			LabTestID: &labTestID, WrongLabTestID: &resultID,
		}},
	},
	{
		method: "UnmatchedResults.Test", op: "GET /v3/unmatched_result_test/{run_id}",
		url: "/v3/unmatched_result_test/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", response: testRunJSON,
		args: []any{resultID},
	},
	{
		method: "LabReports.Create", op: "POST /lab_report/v1/parser/job", url: "/lab_report/v1/parser/job",
		body: `[{"name": "user_id", "content": "11111111-2222-4333-8444-555555555555"}, {"name": "needs_human_review", "content": "true"},
			{"name": "file", "file": "Bericht \"1\".pdf", "type": "application/pdf", "content": "%PDF-1.7\n"},
			{"name": "file", "file": "page.txt", "type": "text/plain; charset=utf-8", "content": "text"}]`,
		response: parsingJobJSON,
		args: []any{labhealth.CreateParsingJobBody{
			UserID: userID, NeedsHumanReview: true, Files: []labhealth.LabReportFile{
				{Name: `Bericht "1".pdf`, Content: []byte("%PDF-1.7\n")}, {Name: "page.txt", Content: []byte("text")},
			},
		}},
	},
	{
		method: "LabReports.Get", op: "GET /lab_report/v1/parser/job/{job_id}",
		url: "/lab_report/v1/parser/job/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", response: parsingJobJSON,
		args: []any{resultID},
	},
	{
		method: "Users.CreateSignInToken", op: "POST /v2/user/{user_id}/sign_in_token",
		url:      "/v2/user/11111111-2222-4333-8444-555555555555/sign_in_token",
		response: `{"user_id": "11111111-2222-4333-8444-555555555555", "sign_in_token": "sit_1"}`,
		args:     []any{userID},
	},
	{
		method: "Link.ConnectPassword", op: "POST /v2/link/provider/password/{provider}", url: "/v2/link/provider/password/whoop",
		body: `{"username": "ada", "password": "secret", "region": "us"}`, response: providerLinkJSON,
		args: []any{labhealth.ProviderWhoop, labhealth.ConnectPasswordBody{Username: "ada", Password: "secret", Region: new("us")}},
	},
	{
		method: "Link.CompletePasswordMFA", op: "POST /v2/link/provider/password/{provider}/complete_mfa",
		url: "/v2/link/provider/password/whoop/complete_mfa", body: `{"mfa_code": "123456"}`, response: providerLinkJSON,
		args: []any{labhealth.ProviderWhoop, "123456"},
	},
	{
		method: "Link.ConnectEmail", op: "POST /v2/link/provider/email/{provider}", url: "/v2/link/provider/email/freestyle_libre",
		body: `{"email": "ada@example.com", "provider": "freestyle_libre", "region": "de"}`,
		args: []any{labhealth.ProviderFreeStyleLibre, labhealth.ConnectEmailBody{
			Email: "ada@example.com", Provider: new(labhealth.ProviderFreeStyleLibre), Region: new("de"), //lint:ignore SA1019 it is tested
		}},
	},
}

const formType = "multipart/form-data"

// formParts returns the parts of a multipart body as JSON, in their order.
func formParts(t *testing.T, contentType, body string) string {
	t.Helper()
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != formType {
		t.Fatalf("%q is no form: %v", contentType, err)
	}
	list := []map[string]string{}
	parts := multipart.NewReader(strings.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return string(must[[]byte](t)(json.Marshal(list)))
		}
		if err != nil {
			t.Fatal(err)
		}
		p := map[string]string{"name": part.FormName(), "content": string(must[[]byte](t)(io.ReadAll(part)))}
		if part.FileName() != "" {
			p["file"], p["type"] = part.FileName(), part.Header.Get("Content-Type")
		}
		list = append(list, p)
	}
}

// A form is sent again as it was, with the same boundary.
func TestFormIsSentAgain(t *testing.T) {
	client, s := scripted(t, []reply{{status: 429, body: `{}`}, {status: 200, body: parsingJobJSON}},
		labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 2, BaseWait: 1, MaxWait: 1}))
	file := []byte("%PDF-1.7\n" + strings.Repeat("x", 1<<16))
	_, err := client.LabReports.Create(t.Context(), labhealth.CreateParsingJobBody{UserID: userID, Files: []labhealth.LabReportFile{{Name: "r.pdf", Content: file}}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, 2, len(s.sent))
	if s.sent[0].Body != s.sent[1].Body || s.sent[0].Header.Get("Content-Type") != s.sent[1].Header.Get("Content-Type") {
		t.Error("the attempts differ")
	}
	if !bytes.Contains([]byte(s.sent[1].Body), file) {
		t.Error("the file is missing")
	}
}

// An error that comes with status 200 is an error, through the methods and through Do.
func TestLinkErrorsIn200(t *testing.T) {
	const body = `{"state":"error","error_type":"provider_credential_error","error":"Ada's password is wrong","provider":"whoop","connected":true,"provider_id":null}`
	calls := map[string]func(*labhealth.Client) error{
		"POST /v2/link/provider/password/{provider}": func(c *labhealth.Client) error {
			return c.Do(t.Context(), "POST", "/v2/link/provider/password/whoop", map[string]string{"username": "a"}, nil)
		},
		"POST (Do)": func(c *labhealth.Client) error {
			return c.Do(t.Context(), "POST", "/v2/link/another", nil, new(json.RawMessage))
		},
	}
	for _, row := range labCalls {
		if strings.HasPrefix(row.method, "Link.") {
			calls[row.op+" "] = func(c *labhealth.Client) error { _, err := row.call(t.Context(), c); return err }
		}
	}
	equal(t, 5, len(calls))
	for op, call := range calls {
		client, _ := respondingWith(t, 200, body)
		err := call(client)
		e := apiError(t, err)
		equal(t, []any{200, labhealth.OutcomeRejected, strings.TrimSpace(op)}, []any{e.StatusCode, labhealth.OutcomeOf(err), e.Op})
		if strings.Contains(err.Error(), "Ada") || !strings.Contains(err.Error(), "provider_credential_error") && !strings.Contains(err.Error(), "password") {
			t.Error(err)
		}
	}
	// Another path of Do reports no errors that way.
	client, _ := respondingWith(t, 200, body)
	equal(t, nil, client.Do(t.Context(), "GET", "/v2/providers", nil, nil))
}
