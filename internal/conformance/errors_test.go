package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

// rejection is a response that is not 2xx, with the error that it makes.
type rejection struct {
	name   string
	status int
	body   string
	header []string
	text   string // of the error, after the operation
	class  error
	detail string // empty: none
	// message is the text that APIError.Message returns.
	message string
	fields  []labhealth.FieldError
}

// outcome returns the outcome of a request with this response.
func (r rejection) outcome() labhealth.Outcome {
	if r.status >= 500 || r.status == 408 {
		return labhealth.OutcomeUnknown
	}
	return labhealth.OutcomeRejected
}

// textOf returns the text of the error of an operation, after the operation. It differs from that
// of an import in what is known about the operation.
func (r rejection) textOf(op string) string {
	text := ofOperation(op, r.text)
	switch {
	case r.name == "refresh" && op == "POST /v2/user/refresh/{user_id}":
		return "400 Bad Request: rejected (no source was refreshed: see UserRefreshError.FailedSources)"
	case r.name == "refresh" && (op == "PATCH /v2/user/{user_id}" || op == "POST /v2/user"):
		return "400 Bad Request: rejected (the client user ID belongs to a user: use Users.GetOrCreate)"
	case strings.Contains(op, "/result"):
		text = strings.Replace(text, "the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment",
			"no such order, or no results yet: see Order.HasResults", 1)
	case strings.Contains(op, "/psc/"):
		text = strings.Replace(text, "overloaded or under maintenance", "overloaded, or walk-in scheduling is not enabled for the team", 1)
	}
	const look = "check whether it took effect before you repeat it"
	switch {
	case !readsOnly(op):
	case r.status == 408:
		text = strings.Replace(text, "; "+look, "", 1)
	default:
		text = strings.Replace(text, look, "try again later", 1)
	}
	return text
}

// readsOnly reports whether an operation changes nothing. Some of them are a POST.
func readsOnly(op string) bool {
	return strings.HasPrefix(op, "GET ") || slices.Contains([]string{
		"POST /v3/order/phlebotomy/appointment/availability", "POST /v3/order/psc/appointment/availability",
		"POST /v3/lab_tests/list_order_set_markers", "POST /v3/insurance/search/payor", "POST /v3/insurance/validate_icd_codes",
		"POST /v1/org/{org_id}/resolve_team",
	}, op)
}

// unreadableText returns the message of the *DecodeError of an operation after one attempt.
func unreadableText(op, reason string, err error) string {
	outcome, next := "outcome unknown", "; check whether it took effect before you repeat it"
	if labhealth.OutcomeOf(err) == labhealth.OutcomeApplied {
		outcome, next = "applied", "; it took effect: do not repeat it"
	}
	if readsOnly(op) {
		next = ""
	}
	return ofOperation(op, "labhealth: "+op+": 200 OK, but the response could not be read: "+outcome+" ("+reason+next+")")
}

// ofOperation returns the text of an error: a failed read has no unknown outcome.
func ofOperation(op, text string) string {
	if readsOnly(op) {
		return strings.Replace(text, ": outcome unknown", "", 1)
	}
	return text
}

// rejections are the error responses that are documented or were observed.
var rejections = []rejection{
	{name: "detail text", status: 400, body: `{"detail":"Ada Example can not be modified"}`, text: "400 Bad Request: rejected (APIError.Message has the service's text)", message: "Ada Example can not be modified",
		detail: `"Ada Example can not be modified"`},
	{name: "detail object", status: 400, body: `{"detail":{"error_type":"INVALID_REQUEST","error_message":"too many users"}}`, text: "400 Bad Request: rejected (APIError.Message has the service's text)", message: "too many users",
		detail: `{"error_type":"INVALID_REQUEST","error_message":"too many users"}`},
	{name: "detail list", status: 422, class: labhealth.ErrValidation,
		body: `{"detail":[{"type":"string_too_short","loc":["body","patient_details","first_name"],"msg":"String should have at least 1 character",
			"input":"Ada Example","ctx":{"min_length":1}},{"type":"uuid_parsing","loc":["body","order_set","lab_test_ids",0],"msg":"no","input":"x"}]}`,
		text: "422 Unprocessable Entity: rejected: body.patient_details.first_name (string_too_short), body.order_set.lab_test_ids.0 (uuid_parsing)", message: "body.patient_details.first_name: String should have at least 1 character; body.order_set.lab_test_ids.0: no",
		detail: `[{"type":"string_too_short","loc":["body","patient_details","first_name"],"msg":"String should have at least 1 character",
			"input":"Ada Example","ctx":{"min_length":1}},{"type":"uuid_parsing","loc":["body","order_set","lab_test_ids",0],"msg":"no","input":"x"}]`,
		fields: []labhealth.FieldError{
			{Loc: []string{"body", "patient_details", "first_name"}, Type: "string_too_short", Msg: "String should have at least 1 character"},
			{Loc: []string{"body", "order_set", "lab_test_ids", "0"}, Type: "uuid_parsing", Msg: "no"},
		}},
	{name: "detail list of five", status: 422, class: labhealth.ErrValidation,
		body: `{"detail":[{"loc":["a"],"type":"b"},{"loc":["c"],"type":"d"},{"loc":["e"],"type":"f"},{"loc":["g"],"type":"h"},{"loc":["i"],"type":"j"}]}`,
		text: "422 Unprocessable Entity: rejected: ? (invalid), ? (invalid), ? (invalid), 2 more", message: "a; c; e; g; i",
		detail: `[{"loc":["a"],"type":"b"},{"loc":["c"],"type":"d"},{"loc":["e"],"type":"f"},{"loc":["g"],"type":"h"},{"loc":["i"],"type":"j"}]`,
		fields: []labhealth.FieldError{
			{Loc: []string{"a"}, Type: "b"}, {Loc: []string{"c"}, Type: "d"}, {Loc: []string{"e"}, Type: "f"}, {Loc: []string{"g"}, Type: "h"}, {Loc: []string{"i"}, Type: "j"},
		}},
	// Names and codes of the response are shown only if they look like ones.
	{name: "detail list with patient data", status: 422, class: labhealth.ErrValidation,
		body: `{"detail":[{"type":"Ada Example","loc":["body","Ada Example","ada@example.com"],"msg":"m"},{"loc":null,"type":7,"msg":null},null,"x",{}]}`,
		text: "422 Unprocessable Entity: rejected: body.?.? (invalid)", message: "body.Ada Example.ada@example.com: m; x",
		detail: `[{"type":"Ada Example","loc":["body","Ada Example","ada@example.com"],"msg":"m"},{"loc":null,"type":7,"msg":null},null,"x",{}]`,
		fields: []labhealth.FieldError{{Loc: []string{"body", "Ada Example", "ada@example.com"}, Type: "Ada Example", Msg: "m"}}},
	{name: "detail list with escapes", status: 422, class: labhealth.ErrValidation,
		body: `{"detail":[{"type":"a\u0062","loc":["bo\u0064y","x\"y",1.5]}]}`,
		text: "422 Unprocessable Entity: rejected: body.?.? (invalid)", message: `body.x"y.1.5`, detail: `[{"type":"a\u0062","loc":["bo\u0064y","x\"y",1.5]}]`,
		fields: []labhealth.FieldError{{Loc: []string{"body", `x"y`, "1.5"}, Type: "ab"}}},
	{name: "detail list with broken elements", status: 422, class: labhealth.ErrValidation,
		body: `{"detail":["Ada Example",7,{"loc":["body",{}],"msg":"m"},{"loc":[],"type":5}]}`,
		text: "422 Unprocessable Entity: rejected: body.? (invalid)", message: "Ada Example; body.{}: m",
		detail: `["Ada Example",7,{"loc":["body",{}],"msg":"m"},{"loc":[],"type":5}]`,
		fields: []labhealth.FieldError{{Loc: []string{"body", "{}"}, Msg: "m"}}},
	{name: "detail number", status: 400, body: `{"detail":7}`, text: "400 Bad Request: rejected (see APIError.Body)", detail: "7"},
	{name: "detail text with 422", status: 422, class: labhealth.ErrValidation, body: `{"detail":"bad"}`, text: "422 Unprocessable Entity: rejected (APIError.Message has the service's text)", message: "bad", detail: `"bad"`},
	{name: "detail object with 422", status: 422, class: labhealth.ErrValidation, body: `{"detail":{"a":[1]}}`, text: "422 Unprocessable Entity: rejected (see APIError.Body)", detail: `{"a":[1]}`},
	{name: "detail null", status: 422, class: labhealth.ErrValidation, body: `{"detail":null}`, text: "422 Unprocessable Entity: rejected (see APIError.Body)"},
	{name: "error message status", status: 400, body: `{"error":"Bad Request","message":"Ada Example","status_code":400}`, text: "400 Bad Request: rejected (APIError.Message has the service's text)", message: "Ada Example"},
	{name: "refresh", status: 400, body: `{"success":false,"user_id":"11111111-2222-4333-8444-555555555555","error":"x","failed_sources":[]}`, text: "400 Bad Request: rejected (APIError.Message has the service's text)", message: "x"},
	{name: "legacy", status: 400, body: `{"error_type":"a","error_message":"b","error_code":"c"}`, text: "400 Bad Request: rejected (APIError.Message has the service's text)", message: "b"},
	{name: "unauthorized", status: 401, class: labhealth.ErrUnauthorized, body: `{"detail":"Invalid token"}`, text: "401 Unauthorized: rejected (the key is invalid, expired, or of another region, environment or API)", message: "Invalid token", detail: `"Invalid token"`},
	{name: "forbidden", status: 403, class: labhealth.ErrForbidden, body: `{"detail":"no"}`, text: "403 Forbidden: rejected (the team or the key has no access to this; APIError.Message has the service's text)", message: "no", detail: `"no"`},
	{name: "not found", status: 404, class: labhealth.ErrNotFound, body: `{"detail":"This order doesn't exist"}`, text: "404 Not Found: rejected (no such order: check the ID and the environment)", message: "This order doesn't exist",
		detail: `"This order doesn't exist"`},
	{name: "conflict", status: 409, class: labhealth.ErrConflict, body: `{}`, text: "409 Conflict: rejected (see APIError.Body)"},
	{name: "closed beta in plain text", status: 403, class: labhealth.ErrForbidden, body: "This endpoint is in closed beta.",
		header: []string{"Content-Type", "text/plain"}, text: "403 Forbidden: rejected (the team is not enabled for this closed beta: ask the service for access)", message: "This endpoint is in closed beta."},
	{name: "HTML", status: 404, class: labhealth.ErrNotFound, body: "<html><body>Ada Example</body></html>", header: []string{"Content-Type", "text/html"}, text: "404 Not Found: rejected (the response is HTML: a proxy sent it, or the base URL is wrong)"},
	{name: "empty", status: 418, text: "418 I'm a teapot: rejected (no reason given)"},
	{name: "status without a name", status: 499, body: `[]`, text: "499: rejected (see APIError.Body)"},
	{name: "not JSON", status: 400, body: `{"detail":`, text: "400 Bad Request: rejected (see APIError.Body)"},
	{name: "not UTF-8", status: 400, body: "{\"detail\":\"\xff\"}", text: "400 Bad Request: rejected (see APIError.Body)"},
	{name: "list", status: 400, body: `[{"detail":"x"}]`, text: "400 Bad Request: rejected (APIError.Message has the service's text)", message: "x"},
	{name: "request id", status: 404, class: labhealth.ErrNotFound, header: []string{"Traceresponse", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"},
		text: "404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment) (request 00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01)"},
	{name: "another request id", status: 404, class: labhealth.ErrNotFound, header: []string{"X-Request-Id", "req_1.2-3", "Traceresponse", "Ada Example"},
		text: "404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment) (request req_1.2-3)"},
	{name: "request id that is none", status: 404, class: labhealth.ErrNotFound, header: []string{"X-Request-Id", strings.Repeat("x", 129)}, text: "404 Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment)"},
	{name: "rate limited", status: 429, class: labhealth.ErrRateLimited, body: `{"detail":"slow down"}`, header: []string{"Retry-After", "5"},
		text: "429 Too Many Requests: rejected (the rate limit is reached: see WithRateLimit; APIError.Message has the service's text; try again in 5s)", message: "slow down", detail: `"slow down"`},
	{name: "server error in plain text", status: 500, class: labhealth.ErrServer, body: "Internal Server Error", header: []string{"Content-Type", "text/plain; charset=utf-8"},
		text: "500 Internal Server Error: outcome unknown (the service failed; check whether it took effect before you repeat it)", message: "Internal Server Error"},
	{name: "bad gateway", status: 502, class: labhealth.ErrServer, body: "<html>", header: []string{"Content-Type", "text/html"}, text: "502 Bad Gateway: outcome unknown (the response is HTML: a proxy sent it, or the base URL is wrong; check whether it took effect before you repeat it)"},
	{name: "unavailable", status: 503, class: labhealth.ErrServer, body: `{"detail":"PSC scheduling is off"}`, text: "503 Service Unavailable: outcome unknown (overloaded or under maintenance; APIError.Message has the service's text; check whether it took effect before you repeat it)", message: "PSC scheduling is off", detail: `"PSC scheduling is off"`},
	{name: "timeout", status: 504, class: labhealth.ErrServer, text: "504 Gateway Timeout: outcome unknown (check whether it took effect before you repeat it)"},
	{name: "server error without a name", status: 599, class: labhealth.ErrServer, text: "599: outcome unknown (check whether it took effect before you repeat it)"},
	{name: "request timeout", status: 408, text: "408 Request Timeout: outcome unknown (the service did not receive the request in time; check whether it took effect before you repeat it)"},
}

func TestAPIError(t *testing.T) {
	classes := []error{
		labhealth.ErrUnauthorized, labhealth.ErrForbidden, labhealth.ErrNotFound, labhealth.ErrConflict, labhealth.ErrValidation,
		labhealth.ErrRateLimited, labhealth.ErrServer,
	}
	for _, r := range rejections {
		t.Run(r.name, func(t *testing.T) {
			client, _ := respondingWith(t, r.status, r.body, r.header...)
			_, err := client.Orders.Import(t.Context(), importBody())
			e := apiError(t, err)
			equal(t, "labhealth: POST /v3/order/import: "+r.text, e.Error())
			equal(t, []any{"POST /v3/order/import", r.status, 1}, []any{e.Op, e.StatusCode, e.Attempts})
			for _, class := range classes {
				if errors.Is(err, class) != (class == r.class) {
					t.Errorf("errors.Is(%v): %v", class, class != r.class)
				}
			}
			equal(t, r.message, e.Message())
			equal(t, r.detail, string(e.Detail()))
			if (e.Detail() == nil) != (r.detail == "") {
				t.Errorf("Detail: %q", e.Detail())
			}
			equal(t, r.fields, e.Fields())
			equal(t, r.body, string(e.Body()))
			for i := 0; i+1 < len(r.header); i += 2 {
				equal(t, r.header[i+1], e.Header().Get(r.header[i]))
			}
			equal(t, r.outcome(), labhealth.OutcomeOf(err))

			// Neither the text nor the JSON of the error shows the body.
			shown := fmt.Sprintf("%v %+v %#v %s %q %x", e, e, e, e, e, e) + fmt.Sprintf("%v %+v %#v", *e, *e, *e) + fmt.Sprintf("%+v", e.Fields())
			text, _ := json.Marshal(e)
			if shown += string(text); strings.Contains(shown, "Ada Example") || strings.Contains(shown, fmt.Sprintf("%x", "Ada Example")) {
				t.Errorf("patient data in %s", shown)
			}

			// The caller gets copies.
			if len(r.body) > 0 {
				e.Body()[0] = 'x'
				e.Header().Set("Content-Type", "x")
				equal(t, r.body, string(e.Body()))
			}
		})
	}
}

// An error keeps the first 64 KiB of its body.
func TestLargeErrorBody(t *testing.T) {
	client, _ := respondingWith(t, 404, strings.Repeat("x", 100_000))
	_, err := client.Orders.Get(t.Context(), orderID)
	equal(t, 65536, len(apiError(t, err).Body()))
}

func TestUserConflict(t *testing.T) {
	existing := uuid.MustParse("11111111-2222-4333-8444-555555555555")
	created := time.Date(2024, time.March, 1, 8, 30, 0, 0, time.UTC)
	for _, test := range []struct {
		name, body string
		status     int
		want       uuid.UUID
		created    time.Time
		reason     string // empty: the client user ID belongs to a user
	}{
		{"within detail", `{"detail":{"error_type":"INVALID_REQUEST","error_message":"Client user id already exists.",
			"user_id":"11111111-2222-4333-8444-555555555555","created_on":"2024-03-01T08:30:00+00:00"}}`, 400, existing, created, ""},
		{"at the top", `{"user_id":"11111111-2222-4333-8444-555555555555","created_on":"2024-03-01T08:30:00Z"}`, 400, existing, created, ""},
		{"at the top, beside a text", `{"detail":"exists","user_id":"11111111-2222-4333-8444-555555555555","created_on":"2024-03-01T08:30:00Z"}`, 400, existing, created, ""},
		{"409", `{"detail":{"user_id":"11111111-2222-4333-8444-555555555555","created_on":"2024-03-01T08:30:00Z"}}`, 409, existing, created, ""},
		{"no date", `{"detail":{"user_id":"11111111-2222-4333-8444-555555555555"}}`, 400, existing, time.Time{}, ""},
		{"odd date", `{"detail":{"user_id":"11111111-2222-4333-8444-555555555555","created_on":7}}`, 400, existing, time.Time{}, ""},
		{"no user", `{"detail":{"error_type":"INVALID_REQUEST","error_message":"quota"}}`, 400, uuid.Nil, time.Time{}, "APIError.Message has the service's text"},
		{"odd user", `{"detail":{"user_id":"Ada Example"}}`, 400, uuid.Nil, time.Time{}, "see APIError.Body"},
		{"text", `{"detail":"Ada Example"}`, 400, uuid.Nil, time.Time{}, "APIError.Message has the service's text"},
		{"not JSON", `Ada Example`, 400, uuid.Nil, time.Time{}, "APIError.Message has the service's text"},
		{"another status", `{"detail":{"user_id":"11111111-2222-4333-8444-555555555555"}}`, 403, uuid.Nil, time.Time{}, "the team or the key has no access to this"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := respondingWith(t, test.status, test.body)
			user, err := client.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "Ada Example"})
			if user != nil {
				t.Error("a value beside an error")
			}
			e := apiError(t, err)
			equal(t, test.status, e.StatusCode)
			equal(t, test.body, string(e.Body()))
			equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))
			text := fmt.Sprintf("labhealth: POST /v2/user: %d %s: rejected (%s)", test.status, http.StatusText(test.status),
				cmp.Or(test.reason, "the client user ID belongs to a user: use Users.GetOrCreate"))
			var conflict *labhealth.UserConflictError
			equal(t, test.want != uuid.Nil, errors.As(err, &conflict))
			if conflict != nil {
				equal(t, test.want, conflict.UserID)
				equal(t, test.created, conflict.CreatedOn)
				equal(t, text, fmt.Sprintf("%#v", conflict))
			}
			equal(t, text, errorText(err))
			equal(t, test.want != uuid.Nil || test.status == 409, errors.Is(err, labhealth.ErrConflict))
			s.only(t)
		})
	}
	// Other operations have no user conflicts.
	client, _ := respondingWith(t, 400, `{"user_id":"11111111-2222-4333-8444-555555555555"}`)
	_, err := client.Orders.Import(t.Context(), importBody())
	var conflict *labhealth.UserConflictError
	equal(t, false, errors.As(err, &conflict))
}

func TestOutcomeOf(t *testing.T) {
	call := func(r reply) error {
		client, _ := scripted(t, []reply{r})
		_, err := client.Orders.Import(t.Context(), importBody())
		return err
	}
	rejected := call(reply{status: 404})
	unknown := call(reply{status: 502})
	for _, test := range []struct {
		name string
		err  error
		want labhealth.Outcome
	}{
		{"no error", nil, labhealth.OutcomeApplied},
		{"foreign", errors.New("x"), labhealth.OutcomeUnknown},
		{"context", context.Canceled, labhealth.OutcomeUnknown},
		{"success", call(reply{status: 200, body: placedJSON}), labhealth.OutcomeApplied},
		{"404", rejected, labhealth.OutcomeRejected},
		{"wrapped", fmt.Errorf("import: %w", rejected), labhealth.OutcomeRejected},
		{"joined", errors.Join(io.EOF, rejected), labhealth.OutcomeRejected},
		{"502", unknown, labhealth.OutcomeUnknown},
		{"no response", call(reply{err: io.ErrUnexpectedEOF}), labhealth.OutcomeUnknown},
		{"redirected write", call(reply{status: 307, header: []string{"Location", "/v3/order"}}), labhealth.OutcomeUnknown},
		{"cut short", call(reply{status: 200, body: `{"order":`}), labhealth.OutcomeApplied},
		{"empty", call(reply{status: 200}), labhealth.OutcomeUnknown},
		{"Validate", labhealth.ImportOrderBody{}.Validate(), labhealth.OutcomeNotSent},
	} {
		equal(t, test.name+": "+test.want.String(), test.name+": "+labhealth.OutcomeOf(test.err).String())
	}
	equal(t, labhealth.OutcomeUnknown, *new(labhealth.Outcome))
	equal(t, "unknown not sent rejected applied unknown", fmt.Sprint(labhealth.OutcomeUnknown, labhealth.OutcomeNotSent,
		labhealth.OutcomeRejected, labhealth.OutcomeApplied, labhealth.Outcome(9)))
}

// Errors wrap their causes, and no text quotes a URL, a name or a response.
func TestErrorChains(t *testing.T) {
	t.Run("transport", func(t *testing.T) {
		cause := errors.New("dial tcp api.example.com: Ada Example")
		client, _ := scripted(t, []reply{{err: cause}})
		_, err := client.Orders.Import(t.Context(), importBody())
		var e *labhealth.TransportError
		if !errors.As(err, &e) || !errors.Is(err, cause) {
			t.Fatalf("%T: %v", err, err)
		}
		const text = "labhealth: POST /v3/order/import: the http.RoundTripper failed: outcome unknown (see TransportError.Cause; check whether it took effect before you repeat it)"
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			equal(t, text, fmt.Sprintf(verb, e))
			equal(t, text, fmt.Sprintf(verb, *e))
		}
	})
	t.Run("redirect", func(t *testing.T) {
		client, s := respondingWith(t, 301, "", "Location", "https://evil.example.com/v3/order?name=Ada")
		_, err := client.Orders.Get(t.Context(), orderID)
		var e *labhealth.RedirectError
		if !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		equal(t, labhealth.RedirectError{Op: "GET /v3/order/{order_id}", StatusCode: 301, Host: "evil.example.com"}, *e)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
			equal(t, e.Error(), fmt.Sprintf(verb, e))
			equal(t, e.Error(), fmt.Sprintf(verb, *e))
		}
		s.only(t)
	})
	t.Run("last response", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, _ := scripted(t, []reply{{status: 503, body: `{"detail":"later"}`}, {err: io.ErrUnexpectedEOF}})
			_, err := client.Orders.Get(t.Context(), orderID, labhealth.WithCallRetry(labhealth.RetryPolicy{MaxAttempts: 2}))
			equal(t, "labhealth: GET /v3/order/{order_id}: the connection was closed while waiting for the response (2 attempts)", errorText(err))
			if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, labhealth.ErrServer) {
				t.Error("one of the two is missing in the chain")
			}
			equal(t, `"later"`, string(apiError(t, err).Detail()))
		})
	})
	t.Run("unreadable", func(t *testing.T) {
		client, _ := respondingWith(t, 200, `Ada Example`)
		_, err := client.Orders.Import(t.Context(), importBody())
		if shown := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(shown, "Ada") {
			t.Error(shown)
		}
		text, _ := json.Marshal(err)
		if strings.Contains(string(text), "Ada") {
			t.Errorf("%s", text)
		}
	})
}

func TestFieldError(t *testing.T) {
	f := labhealth.FieldError{Loc: []string{"body", "aoe_answers", "0", "answer"}, Type: "missing", Msg: "Ada Example"}
	equal(t, "body.aoe_answers.0.answer", f.Path())
	equal(t, "body.aoe_answers.0.answer (missing)", fmt.Sprintf("%v", f))
	equal(t, "[body.aoe_answers.0.answer (missing)]", fmt.Sprintf("%+v", []labhealth.FieldError{f}))
	equal(t, " (invalid)", fmt.Sprintf("%#v", labhealth.FieldError{}))
}

// The zero values of errors that wrap another one have a message too.
func TestZeroErrors(t *testing.T) {
	for _, err := range []error{
		&labhealth.UserConflictError{}, &labhealth.TeamConflictError{}, &labhealth.APIError{}, &labhealth.DecodeError{},
		&labhealth.ValidationError{}, &labhealth.TransportError{}, &labhealth.RedirectError{},
	} {
		if !strings.HasPrefix(err.Error(), "labhealth: ") || !strings.HasPrefix(fmt.Sprintf("%#v", err), "labhealth: ") && !strings.HasPrefix(fmt.Sprintf("%#v", err), "&labhealth.ValidationError") {
			t.Errorf("%T: %q, %#v", err, err.Error(), err)
		}
	}
}

// The causes of a TransportError are not printed, also under a verb that is not for errors.
func TestPrintedCauses(t *testing.T) {
	client := must[*labhealth.Client](t)(labhealth.NewClient(testKey, labhealth.WithBaseURL(testURL),
		labhealth.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Get", URL: "Ada", Err: quotingError{"Ada"}}
		})})))
	err := client.Do(t.Context(), "GET", "/x", nil, nil)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%t", "%x"} {
		if text := fmt.Sprintf(verb, fmt.Errorf("wrapped: %w", err)); strings.Contains(text, "Ada") {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

// quotingError is not a pointer, so that fmt would print what it holds.
type quotingError struct{ text string }

func (e quotingError) Error() string { return e.text }

// A look-up by POST changes nothing: its errors do not say that it took effect.
func TestErrorsOfLookUps(t *testing.T) {
	admin := func(r reply) *management.Client {
		return must[*management.Client](t)(management.NewClient(testOrg, managementKey, labhealth.WithBaseURL(managementURL),
			labhealth.WithHTTPClient(&http.Client{Transport: &script{replies: []reply{r}}})))
	}
	type client = labhealth.Client
	lookUps := map[string]func(*client, reply) error{
		"LabTests.MarkersOfOrderSet": func(c *client, _ reply) error {
			_, err := c.LabTests.MarkersOfOrderSet(t.Context(), labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{orderID}}, labhealth.ListMarkersOfOrderSetParams{})
			return err
		},
		"LabTests.AllMarkersOfOrderSet": func(c *client, _ reply) error {
			for _, err := range c.LabTests.AllMarkersOfOrderSet(t.Context(), labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{orderID}}, labhealth.ListMarkersOfOrderSetParams{}) {
				return err
			}
			return nil
		},
		"Appointments.AtHomeAvailability": func(c *client, _ reply) error {
			_, err := c.Appointments.AtHomeAvailability(t.Context(), labhealth.USAddress{}, labhealth.AtHomeAvailabilityParams{}, labhealth.WithoutValidation())
			return err
		},
		"Appointments.WalkInAvailability": func(c *client, _ reply) error {
			_, err := c.Appointments.WalkInAvailability(t.Context(), labhealth.WalkInAvailabilityParams{}, labhealth.WithoutValidation())
			return err
		},
		"Teams.Resolve": func(_ *client, r reply) error {
			_, err := admin(r).Teams.Resolve(t.Context(), "a")
			return err
		},
	}
	for name, call := range lookUps {
		for _, r := range []reply{
			{status: 200, body: `{"data":`}, {status: 200, body: `<html>`}, {status: 503}, {err: io.EOF}, {status: 302, header: []string{"Location", "https://example.com/"}},
		} {
			c, _ := scripted(t, []reply{r})
			err := call(c, r)
			if err == nil || strings.Contains(err.Error(), "took effect") || strings.Contains(err.Error(), "repeat it") {
				t.Errorf("%s, %d: %v", name, r.status, err)
			}
		}
	}
	// What changes something keeps the warning.
	c, _ := respondingWith(t, 200, `{"order":`)
	_, err := c.Orders.Import(t.Context(), importBody())
	equal(t, true, strings.Contains(errorText(err), "it took effect: do not repeat it"))
}
