package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go"
)

// A 2xx that cannot be read is an error with a fixed reason, and with the outcome that it proves.
func TestUnreadableResponses(t *testing.T) {
	const (
		html    = "it is HTML, not JSON: a proxy sent it, or the base URL is wrong"
		empty   = "it is empty"
		object  = "it is not a JSON object"
		noID    = "it has no readable order id"
		unknown = labhealth.OutcomeUnknown
		applied = labhealth.OutcomeApplied
	)
	for _, test := range []struct {
		name, contentType, body string
		reason                  string
		outcome                 labhealth.Outcome
	}{
		{"empty", "application/json", "", empty, unknown},
		{"spaces", "application/json", " \r\n\t", empty, unknown},
		{"HTML", "text/html; charset=utf-8", "<html>Ada Example</html>", html, unknown},
		{"HTML as JSON", "application/json", " <html>", html, unknown},
		{"text as HTML", "Text/HTML", "Ada Example", html, unknown},
		{"a number as HTML", "text/html", "404", html, unknown},
		{"nothing as HTML", "text/html", "", empty, unknown},
		{"an object of another kind as HTML", "text/html", `{"ok":true}`, noID, unknown},
		{"cut JSON as HTML", "text/html", placedJSON[:40], "it is not valid JSON at byte 40: unexpected end of JSON", unknown},
		{"HTML after a byte order mark", "", "\ufeff<html>", html, unknown},
		{"text", "text/plain", "Ada Example", "it is not valid JSON at byte 0: unexpected character", unknown},
		{"text as JSON", "application/json", "Ada Example", "it is not valid JSON at byte 0: unexpected character", unknown},
		{"cut short", "application/json", placedJSON[:40], "it is not valid JSON at byte 40: unexpected end of JSON", applied},
		{"cut short, odd type", "text/plain", placedJSON[:40], "it is not valid JSON at byte 40: unexpected end of JSON", unknown},
		{"two documents", "application/json", "{} {}", "it is not valid JSON at byte 3: data after the JSON value", unknown},
		{"invalid UTF-8", "application/json", "{\"a\":\"\xff\"}", "it is not valid JSON at byte 6: invalid UTF-8", unknown},
		{"byte order mark", "application/json", "\ufeff", empty, unknown},
		{"byte order mark and space", "application/json", "\ufeff \n", empty, unknown},
		{"byte order mark before text", "application/json", "\ufeffAda", "it is not valid JSON at byte 3: unexpected character", unknown},
		{"two byte order marks", "application/json", "\ufeff\ufeff{}", "it is not valid JSON at byte 3: unexpected character", unknown},
		{"byte order mark after space", "application/json", " \ufeff{}", "it is not valid JSON at byte 1: unexpected character", unknown},
		{"half a byte order mark", "application/json", "\xef\xbb{}", "it is not valid JSON at byte 0: unexpected character", unknown},
		{"byte order mark after the JSON", "application/json", "{}\ufeff", "it is not valid JSON at byte 2: data after the JSON value", unknown},
		{"byte order mark of UTF-16", "application/json", "\xff\xfe{\x00}\x00", "it is not valid JSON at byte 0: unexpected character", unknown},
		{"null", "application/json", "null", object, unknown},
		{"number", "application/json", "1", object, unknown},
		{"text in JSON", "application/json", `"Ada Example"`, object, unknown},
		{"list", "application/json", "[]", object, unknown},
		{"list of two", "application/json", "[" + placedJSON + "," + placedJSON + "]", object, unknown},
		{"list of null", "application/json", "[null]", object, unknown},
		{"no order", "application/json", `{"status":"success","message":"order updated"}`, noID, unknown},
		{"null order", "application/json", `{"order":null}`, noID, unknown},
		{"bad order id", "application/json", `{"order":{"id":"Ada Example"}}`, noID, unknown},
		{"nil order id", "application/json", `{"order":{"id":"00000000-0000-0000-0000-000000000000"}}`, noID, unknown},
		{"order of another type", "application/json", `{"order":"0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"}`, noID, unknown},
		{"more after the document", "application/json", "{}Ada", "it is not valid JSON at byte 2: data after the JSON value", unknown},
		{"nested too deeply", "application/json", `{"a":` + strings.Repeat("[", 2000), "it is not valid JSON at byte 1004: nested too deeply", unknown},
		{"failure with 200", "application/json", `{"state":"error","error_type":"x","error":"Ada Example"}`, noID, unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, s := respondingWith(t, 200, test.body, "Content-Type", test.contentType, "X-Request-Id", "r-1")
			got, err := client.Orders.Import(t.Context(), importBody())
			var e *labhealth.DecodeError
			if got != nil || !errors.As(err, &e) {
				t.Fatalf("%v, %T: %v", got, err, err)
			}
			equal(t, unreadableText("POST /v3/order/import", test.reason, err)+" (request r-1)", errorText(err))
			equal(t, test.outcome, labhealth.OutcomeOf(err))
			equal(t, test.body, string(e.Body()))
			equal(t, []any{"POST /v3/order/import", 200, "r-1", 1, test.reason}, []any{e.Op, e.StatusCode, e.RequestID, e.Attempts, e.Reason})
			s.only(t)
		})
	}
	t.Run("order", func(t *testing.T) {
		client, _ := respondingWith(t, 200, `{}`)
		_, err := client.Orders.Get(t.Context(), orderID)
		equal(t, "labhealth: GET /v3/order/{order_id}: 200 OK, but the response could not be read (it has no readable order id)", errorText(err))
	})
	t.Run("user", func(t *testing.T) {
		client, _ := respondingWith(t, 200, `{"client_user_id":"ada"}`)
		_, err := client.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "ada"})
		equal(t, "labhealth: POST /v2/user: 200 OK, but the response could not be read: outcome unknown (it has no readable user id; check whether it took effect before you repeat it)", errorText(err))
	})
	t.Run("lists", func(t *testing.T) {
		for _, body := range []string{"null", "1", `"x"`, "[1", "true"} {
			client, _ := scripted(t, []reply{{status: 200, body: body}, {status: 200, body: body}, {status: 200, body: body}})
			_, err := client.Users.List(t.Context(), labhealth.ListUsersParams{})
			var e *labhealth.DecodeError
			if !errors.As(err, &e) {
				t.Errorf("users: %s: %v", body, err)
			}
			if _, err = client.Orders.List(t.Context(), labhealth.ListOrdersParams{}); !errors.As(err, &e) {
				t.Errorf("orders: %s: %v", body, err)
			}
			if _, err = client.LabTests.List(t.Context(), labhealth.ListLabTestsParams{}); !errors.As(err, &e) {
				t.Errorf("lab tests: %s: %v", body, err)
			}
		}
	})
	t.Run("Do", func(t *testing.T) {
		for body, want := range map[string]string{
			`{"a":`: "it is not valid JSON at byte 5: unexpected end of JSON", `<p>`: html, "OK": "it is not valid JSON at byte 0: unexpected character",
			`{"a":"Ada Example"}`: "it does not fit the Go type it is to be read into", "": empty,
		} {
			client, _ := respondingWith(t, 200, body)
			var out struct {
				A int `json:"a"`
			}
			err := client.Do(t.Context(), "GET", "/", nil, &out)
			equal(t, unreadableText("GET (Do)", want, err), errorText(err))
		}
	})
}

// A response is read whatever its content type, with space around it, and in a list of one.
func TestReadableResponses(t *testing.T) {
	for name, response := range map[string]reply{
		"no content type":  {body: placedJSON, header: []string{"Content-Type", ""}},
		"odd content type": {body: placedJSON, header: []string{"Content-Type", "text/plain; charset=iso-8859-1"}},
		"space around":     {body: " \r\n" + placedJSON + "\n\t "},
		"list of one":      {body: " [ " + placedJSON + " ] "},
		"labelled as HTML": {body: placedJSON, header: []string{"Content-Type", "Text/HTML; charset=utf-8"}},
		"HTML, list":       {body: "[" + placedJSON + "]", header: []string{"Content-Type", "text/html"}},
		"byte order mark":  {body: "\ufeff" + placedJSON},
		"mark and space":   {body: "\ufeff\r\n " + placedJSON + "\n"},
		"mark and HTML":    {body: "\ufeff" + placedJSON, header: []string{"Content-Type", "text/html"}},
	} {
		response.status = 200
		client, _ := scripted(t, []reply{response})
		got, err := client.Orders.Create(t.Context(), createBody())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		equal(t, orderID, got.Order.ID)
		equal(t, placedJSON, string(got.RawJSON()))
	}
}

// What reads a response in another way reads it with a byte order mark and another label too.
func TestMarkedAndMislabelled(t *testing.T) {
	for _, form := range []struct{ before, label string }{{"\ufeff", "application/json"}, {"", "text/html"}, {"\ufeff", "text/html"}} {
		respond := func(status int, body string) *labhealth.Client {
			client, _ := respondingWith(t, status, form.before+body, "Content-Type", form.label)
			return client
		}
		_, err := respond(404, `{"detail":"This order doesn't exist"}`).Orders.Get(t.Context(), orderID)
		e := apiError(t, err)
		equal(t, []any{"This order doesn't exist", true, `"This order doesn't exist"`, form.before + `{"detail":"This order doesn't exist"}`},
			[]any{e.Message(), e.FromService(), string(e.Detail()), string(e.Body())})
		equal(t, true, strings.Contains(err.Error(), "no such order"))

		_, err = respond(422, `{"detail":[{"loc":["body","zip"],"type":"missing","msg":"m"}]}`).Orders.Get(t.Context(), orderID)
		equal(t, 1, len(apiError(t, err).Fields()))

		_, err = respond(400, `{"detail":{"error_type":"INVALID_REQUEST","error_message":"Client user id already exists.","user_id":"`+orderID.String()+`"}}`).
			Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: "a"})
		var conflict *labhealth.UserConflictError
		equal(t, true, errors.As(err, &conflict))

		_, err = respond(400, `{"success":false,"error":"e","failed_sources":["a"]}`).Users.Refresh(t.Context(), orderID, labhealth.RefreshUserParams{})
		var refresh *labhealth.UserRefreshError
		equal(t, true, errors.As(err, &refresh))

		_, err = respond(200, `{"state":"error","error_type":"duplicate_connection","error":"e"}`).Link.ConnectDemo(t.Context(), labhealth.ConnectDemoBody{UserID: orderID, Provider: "oura"})
		equal(t, labhealth.OutcomeRejected, labhealth.OutcomeOf(err))

		_, err = respond(404, `{"detail":"Results are not available yet"}`).Orders.Results(t.Context(), orderID)
		equal(t, true, errors.Is(err, labhealth.ErrNoResults))

		page, err := respond(200, `[]`).Users.List(t.Context(), labhealth.ListUsersParams{})
		if err != nil || len(page.Users) != 0 {
			t.Errorf("%v: %v, %v", form, page, err)
		}
		equal(t, "", errorText(respond(200, `"Success"`).Orders.Simulate(t.Context(), orderID, labhealth.SimulateParams{})))
		var out map[string]int
		equal(t, "", errorText(respond(200, `{"a":7}`).Do(t.Context(), "GET", "/", nil, &out)))
		equal(t, map[string]int{"a": 7}, out)
	}
	client, _ := respondingWith(t, 200, "\ufeff")
	equal(t, "", errorText(client.Orders.Simulate(t.Context(), orderID, labhealth.SimulateParams{})))
}
