//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// The response of an order's results with every field.
const wholeResultsJSON = `{
	"metadata": {
		"age": "35", "dob": "18/08/1990", "clia_#": "99D0000000", "patient": "Ada Example", "provider": "Jane Doctor",
		"laboratory": "Example Laboratories", "date_reported": "2025-03-04T12:00:00+00:00", "date_collected": "03/03/2025",
		"date_received": "04/03/2025", "specimen_number": "SPECIMEN-1", "status": "partial", "interpretation": "critical", "patient_id": "P-1",
		"account_id": "A-1"
	},
	"results": [{
		"name": "Total Cholesterol", "slug": "total-cholesterol", "result": "412", "result_type": "numeric", "type": "numeric", "value": 412.0,
		"unit": "mg/dL", "timestamp": "2025-03-04T12:00:00+00:00", "notes": "fasting", "reference_range": "0-200", "min_range_value": 0,
		"max_range_value": 200, "is_above_max_range": true, "is_below_min_range": false, "interpretation": "critical", "loinc": "2093-3",
		"loinc_slug": "cholesterol", "source_interpretation": "N", "provider_id": "P-901", "performing_laboratory": "Example Laboratories",
		"source_sample_id": "SAMPLE-1",
		"source_markers": [{"marker_id": 901, "name": "Total Cholesterol", "slug": "total-cholesterol", "provider_id": "P-901"}]
	}],
	"missing_results": [{
		"name": "HDL Cholesterol", "slug": "hdl", "inferred_failure_type": "quantity_not_sufficient_failure", "note": "too little",
		"loinc": "2085-9", "loinc_slug": "hdl", "provider_id": "P-902", "source_markers": []
	}],
	"sample_information": {"SAMPLE-1": {
		"sample_id": "SAMPLE-1", "control_number": "C-1", "date_received": "03/04/2025", "date_reported": null,
		"date_collected": {"timestamp": "2025-03-03T12:00:00+00:00", "timezone_offset": -18000},
		"performing_laboratories": {"EL": {"name": "Example Laboratories", "phone_number": "+14155550124", "medical_director": "Jane Doctor",
			"address": {"first_line": "1 Lab Way", "second_line": "", "country": "US", "zip": "89501", "city": "Reno", "state": "NV",
				"access_notes": null}}},
		"clinical_information": {"fasting": true, "notes": "none", "information": "fasting", "total_volume": "2 mL"}
	}},
	"order_transaction": {"id": "6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c", "status": "completed", "orders": []}
}`

const (
	lastPullsJSON = `{"data": [{"user_id": "11111111-2222-4333-8444-555555555555", "provider": {"oura": {
		"pulled": {"sleep": {"status": "retrying", "range_start": "2024-12-04T00:00:00+00:00", "range_end": "2025-03-04T12:00:00.123456+00:00",
			"timeline": {"scheduled_at": "2025-03-04T12:00:00+00:00", "started_at": "2025-03-04T12:00:05+00:00", "ended_at": null},
			"days_with_data": 12, "release": "2025-05-09", "trace_id": "0af7651916cd43dd", "error_details": "provider_rate_limit_exceeded"}},
		"not_pulled": ["workouts", "body"]}}}], "next_cursor": null}`
	testsOnlyJSON = `{"data": [` + testOnlyJSON + `], "next_cursor": null}`
	testOnlyJSON  = `{"id": "5b41f610-ebc5-4803-8f0c-a61c3bdc7f01", "slug": "lipid-panel", "name": "Lipid Panel", "sample_type": "serum",
		"method": "walk_in_test", "price": 45.0, "is_active": true, "status": "active", "fasting": true, "lab": null, "markers": null,
		"is_delegated": false, "auto_generated": true, "has_collection_instructions": true, "common_tat_days": 3, "worst_case_tat_days": 5}`
	shortStreamJSON = `{"time": [1741089590, 1741089591], "heartrate": [null, 131], "cadence": [1, 2], "altitude": [3, null], "lat": [37.77491, null],
		"lng": [], "power": [200], "distance": [0, 8.5], "velocity_smooth": [8.5, null], "resistance": [1], "temperature": [20.5]}`
)

// teamCalls are calls of operations that the interface specification names.
var teamCalls = []apiCall{
	{
		method: "Orders.Results", op: "GET /v3/order/{order_id}/result", url: "/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b/result",
		response: wholeResultsJSON,
		args:     []any{orderID},
	},
	{
		method: "LabTests.List", op: "GET /v3/lab_test", url: "/v3/lab_test", response: testsOnlyJSON,
		args: []any{labhealth.ListLabTestsParams{}},
	},
	{
		method: "LabTests.List", op: "GET /v3/lab_test", url: "/v3/lab_test?collection_method=testkit&generation_method=all&" +
			"lab_account_id=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee&lab_slug=a%26b&lab_test_limit=7&marker_ids=901&marker_ids=1234567890251&" +
			"name=Lipid+%2F+panel&next_cursor=%2B%3D%25&order_direction=desc&order_key=price&provider_ids=P-1&provider_ids=P+2&status=active",
		response: testsOnlyJSON,
		args: []any{labhealth.ListLabTestsParams{
			LabTestLimit: 7, NextCursor: "+=%", LabAccountID: teamID, GenerationMethod: "all", LabSlug: "a&b",
			CollectionMethod: labhealth.CollectionMethodTestkit, Status: labhealth.LabTestStatusActive, MarkerIDs: []int64{901, 1234567890251},
			ProviderIDs: []string{"P-1", "P 2"}, Name: "Lipid / panel", OrderKey: "price", OrderDirection: "desc",
		}},
	},
	{
		method: "LabTests.All", op: "GET /v3/lab_test", url: "/v3/lab_test?lab_slug=x&next_cursor=c",
		response: testsOnlyJSON, want: "[" + testOnlyJSON + "]",
		args: []any{labhealth.ListLabTestsParams{LabSlug: "x", NextCursor: "c"}},
	},
	{
		method: "LabTests.ListDeprecated", op: "GET /v3/lab_tests", url: "/v3/lab_tests?name=x",
		response: testsOnlyJSON, want: "[" + testOnlyJSON + "]",
		args: []any{labhealth.ListLabTestsParams{Name: "x"}},
	},
	{
		method: "Workouts.Stream", op: "GET /v2/timeseries/workouts/{workout_id}/stream",
		url: "/v2/timeseries/workouts/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c/stream", response: shortStreamJSON,
		args: []any{workoutID},
	},
	{
		method: "Users.Get", op: "GET /v2/user/{user_id}", url: "/v2/user/11111111-2222-4333-8444-555555555555", response: userJSON,
		args: []any{userID},
	},
	{
		method: "Users.Resolve", op: "GET /v2/user/resolve/{client_user_id}", url: "/v2/user/resolve/3Zru4O8c%2F+%3FEi%20wG==", response: userJSON,
		args: []any{"3Zru4O8c/+?Ei wG=="},
	},
	{
		method: "Users.Delete", op: "DELETE /v2/user/{user_id}", url: "/v2/user/11111111-2222-4333-8444-555555555555", response: `{"success":true}`,
		args: []any{userID},
	},
	{
		method: "Users.UndoDelete", op: "POST /v2/user/undo_delete", url: "/v2/user/undo_delete?user_id=11111111-2222-4333-8444-555555555555",
		response: `{"success":true}`,
		args:     []any{labhealth.UndoDeleteParams{UserID: userID}},
	},
	{
		method: "Users.UndoDelete", op: "POST /v2/user/undo_delete", url: "/v2/user/undo_delete?client_user_id=a%26+%3D%2B",
		response: `{"success":true}`,
		args:     []any{labhealth.UndoDeleteParams{ClientUserID: "a& =+"}},
	},
	{
		method: "Users.HistoricalPulls", op: "GET /v2/introspect/historical_pull",
		url:      "/v2/introspect/historical_pull?next_cursor=a%2Bb&provider=oura&user_id=11111111-2222-4333-8444-555555555555&user_limit=5",
		response: lastPullsJSON,
		args:     []any{labhealth.ListHistoricalPullsParams{UserID: userID, Provider: "oura", UserLimit: 5, NextCursor: "a+b"}},
	},
	{
		method: "Users.AllHistoricalPulls", op: "GET /v2/introspect/historical_pull", url: "/v2/introspect/historical_pull",
		response: `{"data": [{"user_id": "11111111-2222-4333-8444-555555555555", "provider": {}}]}`,
		want:     `[{"user_id": "11111111-2222-4333-8444-555555555555", "provider": {}}]`,
		args:     []any{labhealth.ListHistoricalPullsParams{}},
	},
}

// Calls with invalid IDs and parameters are not sent.
func TestInvalidTeamCalls(t *testing.T) {
	const dots = " must not be empty, or hold dot segments or control characters"
	const none = " must not be the nil UUID"
	const instant = " must be in the years 0 to 9999 and less than 24 hours from UTC"
	client, s := scripted(t, nil)
	ctx := t.Context()
	get := func(_ any, err error) error { return err }
	resolve := func(id string) error { return get(client.Users.Resolve(ctx, id)) }
	all := func(p labhealth.ListLabTestsParams) (err error) {
		for _, err = range client.LabTests.All(ctx, p) {
		}
		return err
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{get(client.Orders.Results(ctx, uuid.Nil)), "GET /v3/order/{order_id}/result: not sent: path.order_id" + none},
		{get(client.Orders.RequisitionPDF(ctx, uuid.Nil, io.Discard)), "GET /v3/order/{order_id}/requisition/pdf: not sent: path.order_id" + none},
		{get(client.Workouts.Stream(ctx, uuid.Nil)), "GET /v2/timeseries/workouts/{workout_id}/stream: not sent: path.workout_id" + none},
		{get(client.Users.Delete(ctx, uuid.Nil)), "DELETE /v2/user/{user_id}: not sent: path.user_id" + none},
		{resolve(""), "GET /v2/user/resolve/{client_user_id}: not sent: path.client_user_id" + dots},
		{resolve(".."), "GET /v2/user/resolve/{client_user_id}: not sent: path.client_user_id" + dots},
		{resolve("a\nb"), "GET /v2/user/resolve/{client_user_id}: not sent: path.client_user_id" + dots},
		{get(client.LabTests.List(ctx, labhealth.ListLabTestsParams{LabTestLimit: -1})), "GET /v3/lab_test: not sent: query.lab_test_limit must be at least 0"},
		{all(labhealth.ListLabTestsParams{LabTestLimit: -1}), "GET /v3/lab_test: not sent: query.lab_test_limit must be at least 0"},
		{get(client.LabTests.ListDeprecated(ctx, labhealth.ListLabTestsParams{LabTestLimit: 1})), "GET /v3/lab_tests: not sent: query.lab_test_limit is for the paged list only"},
		{get(client.LabTests.ListDeprecated(ctx, labhealth.ListLabTestsParams{NextCursor: "x"})), "GET /v3/lab_tests: not sent: query.next_cursor is for the paged list only"},
		{get(client.LabTests.ListDeprecated(ctx, labhealth.ListLabTestsParams{IncludePricing: true, LabAccountID: userID})),
			"GET /v3/lab_tests: not sent: query.include_pricing is for the paged list only; query.lab_account_id is for the paged list only"},
		{get(client.LabTests.Get(ctx, uuid.Nil, labhealth.GetLabTestParams{})), "GET /v3/lab_tests/{lab_test_id}: not sent: path.lab_test_id" + none},
		{get(client.LabTests.Create(ctx, labhealth.CreateLabTestBody{LabAccountID: &uuid.Nil})), "POST /v3/lab_tests: not sent: " +
			"body.name is required; body.method is required; body.description is required; " +
			"body.lab_account_id must be left out or be a UUID that is not nil"},
		{get(client.LabTests.Markers(ctx, labhealth.ListMarkersParams{Page: -1, Size: 101})),
			"GET /v3/lab_tests/markers: not sent: query.page must be at least 0; query.size must be between 0 and 100"},
		{get(client.LabTests.MarkersOfTest(ctx, userID, labhealth.ListMarkersOfTestParams{Size: -1})),
			"GET /v3/lab_tests/{lab_test_id}/markers: not sent: query.size must be between 0 and 100"},
		{get(client.LabTests.MarkersOfOrderSet(ctx, labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{userID, uuid.Nil}}, labhealth.ListMarkersOfOrderSetParams{Size: 101})),
			"POST /v3/lab_tests/list_order_set_markers: not sent: query.size must be between 0 and 100; " +
				"body.lab_test_ids.1 must be left out or be a UUID that is not nil"},
		{get(client.LabTests.Marker(ctx, 27, "..", labhealth.GetMarkerParams{})), "GET /v3/lab_tests/{lab_id}/markers/{provider_id}: not sent: path.provider_id" + dots},
		{get(client.Users.HistoricalPulls(ctx, labhealth.ListHistoricalPullsParams{UserLimit: -1})), "GET /v2/introspect/historical_pull: not sent: query.user_limit must be at least 0"},
		{get(client.Users.Resolve(ctx, "a/../b")), "GET /v2/user/resolve/{client_user_id}: not sent: path.client_user_id" + dots},
		{get(client.Users.Disconnect(ctx, userID, "../"+labhealth.Provider(labTestID.String()))), "DELETE /v2/user/{user_id}/{provider}: not sent: path.provider" + dots},
		{get(client.Team.UpdateSourcePriorities(ctx, json.RawMessage(`[{"a":`))), "PATCH /v2/team/source/priorities: not sent: body must be valid JSON in UTF-8"},
		{get(client.Team.UpdateSourcePriorities(ctx, json.RawMessage("[\"\xff\"]"))), "PATCH /v2/team/source/priorities: not sent: body must be valid JSON in UTF-8"},
		{get(client.Team.SearchUsers(ctx, labhealth.SearchUsersParams{QueryID: "ab\xff"})), "GET /v2/team/users/search: not sent: query.query_id must be valid UTF-8"},
		{get(client.Users.UndoDelete(ctx, labhealth.UndoDeleteParams{ClientUserID: "\xff"})), "POST /v2/user/undo_delete: not sent: query.client_user_id must be valid UTF-8"},
		{get(client.Users.Get(ctx, userID, labhealth.WithQuery("\xff", "a"), labhealth.WithoutValidation())), "GET /v2/user/{user_id}: not sent: query.? must be valid UTF-8"},
		{get(client.Orders.List(ctx, labhealth.ListOrdersParams{
			OrderIDs: []uuid.UUID{userID, uuid.Nil}, StartDate: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
			EndDate: time.Date(2025, 1, 1, 0, 0, 0, 0, time.FixedZone("", 24*3600)),
		})), "GET /orders: not sent: query.order_ids.1 is required: a UUID that is not nil; query.start_date" + instant + "; query.end_date" + instant},
		{get(client.Wearables.Samples(ctx, userID, "glucose", labhealth.ListSamplesParams{StartDate: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)})),
			"GET /v2/timeseries/{user_id}/{resource}/grouped: not sent: query.start_date" + instant},
		{get(client.Orders.LabelsPDF(ctx, userID, labhealth.LabelsPDFParams{CollectionDate: time.Date(20250, 1, 1, 0, 0, 0, 0, time.UTC)}, io.Discard)),
			"GET /v3/order/{order_id}/labels/pdf: not sent: query.collection_date" + instant},
		{get(client.Users.Get(ctx, userID, labhealth.WithIdempotencyKey("k"))), "GET /v2/user/{user_id}: not sent: WithIdempotencyKey is for Orders.Create, Orders.CreateTestkit, and Appointments.Book with AppointmentWalkIn; after an unknown outcome of another operation, check whether it took effect before you repeat it"},
	} {
		equal(t, "labhealth: "+test.want, errorText(test.err))
		equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(test.err))
	}
	equal(t, 0, len(s.sent))
}
