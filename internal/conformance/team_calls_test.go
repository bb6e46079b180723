//lint:file-ignore SA1019 Deprecated names are tested until they are removed.

package conformance

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// teamCalls are the methods that orders_test.go and users_test.go do not have, with their requests.
var teamCalls = []struct {
	name, op, url string
	call          func(context.Context, *labhealth.Client, ...labhealth.CallOption) (value bool, err error)
}{
	{"Orders.Results", "GET /v3/order/{order_id}/result", "/v3/order/0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b/result",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.Orders.Results(ctx, orderID, opts...)
			return v != nil, err
		}},
	{"LabTests.List", "GET /v3/lab_test", "/v3/lab_test",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.LabTests.List(ctx, labhealth.ListLabTestsParams{}, opts...)
			return v != nil, err
		}},
	{"LabTests.List with every parameter", "GET /v3/lab_test", "/v3/lab_test?collection_method=testkit&generation_method=all&include_pricing=true&" +
		"lab_account_id=aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee&lab_slug=a%26b&lab_test_limit=7&marker_ids=901&marker_ids=1234567890251&" +
		"name=Lipid+%2F+panel&next_cursor=%2B%3D%25&order_direction=desc&order_key=price&provider_ids=P-1&provider_ids=P+2&status=active",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.LabTests.List(ctx, labhealth.ListLabTestsParams{
				LabTestLimit: 7, NextCursor: "+=%", IncludePricing: true, LabAccountID: teamID, GenerationMethod: "all", LabSlug: "a&b",
				CollectionMethod: labhealth.CollectionMethodTestkit, Status: labhealth.LabTestStatusActive, MarkerIDs: []int64{901, 1234567890251},
				ProviderIDs: []string{"P-1", "P 2"}, Name: "Lipid / panel", OrderKey: "price", OrderDirection: "desc",
			}, opts...)
			return v != nil, err
		}},
	{"LabTests.All", "GET /v3/lab_test", "/v3/lab_test?lab_slug=x&next_cursor=c",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (value bool, err error) {
			var v *labhealth.LabTest
			for v, err = range c.LabTests.All(ctx, labhealth.ListLabTestsParams{LabSlug: "x", NextCursor: "c"}, opts...) {
				break
			}
			return v != nil, err
		}},
	{"LabTests.ListDeprecated", "GET /v3/lab_tests", "/v3/lab_tests?name=x",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.LabTests.ListDeprecated(ctx, labhealth.ListLabTestsParams{Name: "x"}, opts...)
			return v != nil, err
		}},
	{"Workouts.Stream", "GET /v2/timeseries/workouts/{workout_id}/stream", "/v2/timeseries/workouts/6d1f2c3b-4a59-4687-9b7c-8d9e0f1a2b3c/stream",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.Workouts.Stream(ctx, workoutID, opts...)
			return v != nil, err
		}},
	{"Users.Get", "GET /v2/user/{user_id}", "/v2/user/11111111-2222-4333-8444-555555555555",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.Users.Get(ctx, userID, opts...)
			return v != nil, err
		}},
	{"Users.Resolve", "GET /v2/user/resolve/{client_user_id}", "/v2/user/resolve/3Zru4O8c%2F+%3FEi%20wG==",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.Users.Resolve(ctx, "3Zru4O8c/+?Ei wG==", opts...)
			return v != nil, err
		}},
	{"Users.Delete", "DELETE /v2/user/{user_id}", "/v2/user/11111111-2222-4333-8444-555555555555",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.Users.Delete(ctx, userID, opts...)
			return v != nil, err
		}},
	{"Users.UndoDelete", "POST /v2/user/undo_delete", "/v2/user/undo_delete?client_user_id=a%26+%3D%2B",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.Users.UndoDelete(ctx, labhealth.UndoDeleteParams{ClientUserID: "a& =+"}, opts...)
			return v != nil, err
		}},
	{"Users.HistoricalPulls", "GET /v2/introspect/historical_pull",
		"/v2/introspect/historical_pull?next_cursor=a%2Bb&provider=oura&user_id=11111111-2222-4333-8444-555555555555&user_limit=5",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (bool, error) {
			v, err := c.Users.HistoricalPulls(ctx, labhealth.ListHistoricalPullsParams{UserID: userID, Provider: "oura", UserLimit: 5, NextCursor: "a+b"}, opts...)
			return v != nil, err
		}},
	{"Users.AllHistoricalPulls", "GET /v2/introspect/historical_pull", "/v2/introspect/historical_pull",
		func(ctx context.Context, c *labhealth.Client, opts ...labhealth.CallOption) (value bool, err error) {
			var v *labhealth.UserHistoricalPulls
			for v, err = range c.Users.AllHistoricalPulls(ctx, labhealth.ListHistoricalPullsParams{}, opts...) {
				break
			}
			return v != nil, err
		}},
}

// Every rejection becomes an error with its class and outcome.
func TestTeamCallsRejected(t *testing.T) {
	for _, c := range teamCalls {
		for _, r := range rejections {
			t.Run(c.name+"/"+r.name, func(t *testing.T) {
				client, s := respondingWith(t, r.status, r.body, r.header...)
				value, err := c.call(t.Context(), client)
				if value {
					t.Error("a value beside an error")
				}
				equal(t, "labhealth: "+c.op+": "+r.text, errorText(err))
				e := apiError(t, err)
				equal(t, c.op, e.Op)
				equal(t, r.body, string(e.Body()))
				equal(t, r.outcome(), labhealth.OutcomeOf(err))
				method, _, _ := cutOp(c.op)
				equal(t, sent{Method: method, URL: testURL + c.url, Header: readHeader}, s.only(t))
			})
		}
	}
}

// The error of an unreadable response names the operation and quotes nothing.
func TestTeamCallsUnreadable(t *testing.T) {
	for _, c := range teamCalls {
		for name, test := range map[string]struct{ body, contentType, text string }{
			"HTML":      {"<html>Ada Example</html>", "text/html", "it is HTML, not JSON; something between here and the service may have sent it"},
			"empty":     {"", "application/json", "it is empty"},
			"null":      {"null", "application/json", "it is not a JSON object"},
			"text":      {`"Ada Example"`, "application/json", "it is not a JSON object"},
			"cut":       {`{"data":[{"id":"`, "application/json", "it is not valid JSON at byte 16: unexpected end of JSON"},
			"two":       {`{}{}`, "application/json", "it is not valid JSON at byte 2: data after the JSON value"},
			"not UTF-8": {"{\"a\":\"\xff\"}", "application/json", "it is not valid JSON at byte 6: invalid UTF-8"},
		} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				client, _ := respondingWith(t, 200, test.body, "Content-Type", test.contentType)
				value, err := c.call(t.Context(), client)
				if value {
					t.Error("a value beside an error")
				}
				equal(t, "labhealth: "+c.op+": the response (status 200) could not be read: "+test.text, errorText(err))
			})
		}
	}
}

// Reads are repeated, the two writes are not.
func TestTeamCallsRepeated(t *testing.T) {
	for _, c := range teamCalls {
		method, _, _ := cutOp(c.op)
		for _, r := range []reply{{status: 502}, {err: io.ErrUnexpectedEOF}} {
			client, s := scripted(t, []reply{r, r, r}, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 3, BaseWait: time.Nanosecond, MaxWait: time.Nanosecond}))
			_, err := c.call(t.Context(), client)
			want := 3
			if method != "GET" {
				want = 1
			}
			equal(t, want, len(s.sent))
			equal(t, labhealth.OutcomeUnknown, labhealth.OutcomeOf(err))
		}
	}
}

// Calls with invalid IDs and parameters are not sent.
func TestInvalidTeamCalls(t *testing.T) {
	const dots = " must not be empty, a dot segment or hold control characters"
	const none = " must not be the nil UUID"
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
		{get(client.Users.Get(ctx, userID, labhealth.WithIdempotencyKey("k"))), "GET /v2/user/{user_id}: not sent: WithIdempotencyKey is for Orders.Create only; an import is identified by its sample id"},
	} {
		equal(t, "labhealth: "+test.want, errorText(test.err))
		equal(t, labhealth.OutcomeNotSent, labhealth.OutcomeOf(test.err))
	}
	equal(t, 0, len(s.sent))
}
