package conformance

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// An order without results, an unknown order and a wrong path all respond with 404.
func TestNoResults(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	client, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL))
	noErr(t, err)
	wrong, err := labhealth.NewClient(srv.APIKey, labhealth.WithBaseURL(srv.URL+"/api"))
	noErr(t, err)
	order, err := srv.AddOrder(srv.AddUser("ada"), srv.LabTests.WalkIn)
	noErr(t, err)
	const path = "GET /v3/order/{order_id}/result"
	const none = ": 404 Not Found: rejected (no results yet: see Order.HasResults)"
	check := func(err error, noResults bool, want string) {
		t.Helper()
		text, _, _ := strings.Cut(errorText(err), " (request ")
		equal(t, []any{"labhealth: " + want, true, noResults}, []any{text, errors.Is(err, labhealth.ErrNotFound), errors.Is(err, labhealth.ErrNoResults)})
	}
	_, err = client.Orders.Results(t.Context(), order)
	check(err, true, path+none)
	_, err = client.Orders.ResultsMetadata(t.Context(), order)
	check(err, true, path+"/metadata"+none)
	_, err = client.Orders.ResultsPDF(t.Context(), order, io.Discard)
	check(err, true, path+"/pdf"+none)
	_, err = client.Orders.Results(t.Context(), orderID)
	check(err, false, path+": 404 Not Found: rejected (no such order: check the ID and the environment)")
	_, err = wrong.Orders.Results(t.Context(), order)
	check(err, false, path+": 404 Not Found: rejected (no such path: check the base URL, which must not repeat a version such as /v3, and WithPath)")
	_, err = client.Orders.Get(t.Context(), orderID)
	check(err, false, "GET /v3/order/{order_id}: 404 Not Found: rejected (no such order: check the ID and the environment)")
	_, err = wrong.Orders.List(t.Context(), labhealth.ListOrdersParams{})
	check(err, false, `GET /orders: 404 Not Found: rejected (no such path: try WithPath("GET /orders", "/v3/orders"), or check the base URL)`)

	for body, want := range map[string]bool{
		`{"detail":"No results found for this order"}`: true, `{"detail":"Results are not available yet"}`: true, "Result not ready": true,
		`{"detail":"Not Found"}`: false, `{"detail":"This order doesn't exist"}`: false, `{"detail":"User is scheduled for deletion"}`: false,
		"": false, "<html>no results</html>": false, `{"detail":"no"}`: false,
	} {
		client, _ := respondingWith(t, 404, body)
		_, err := client.Orders.Results(t.Context(), orderID)
		equal(t, fmt.Sprint(body, want), fmt.Sprint(body, errors.Is(err, labhealth.ErrNoResults)))
		client, _ = respondingWith(t, 404, body)
		_, err = client.OrderTransactions.Results(t.Context(), orderID)
		equal(t, fmt.Sprint(body, want), fmt.Sprint(body, errors.Is(err, labhealth.ErrNoResults)))
		client, _ = respondingWith(t, 404, body)
		_, err = client.Orders.Get(t.Context(), orderID)
		equal(t, false, errors.Is(err, labhealth.ErrNoResults))
	}
}

// Whatever a service echoes, and wherever, no text of the error has it.
func TestEchoes(t *testing.T) {
	const name = "Adalovelace" // looks like a name, a code and an ID
	for _, body := range []string{
		`{"detail":%q}`, `{"detail":{"error_type":%q,"error_message":%[1]q}}`, `{"detail":[{"loc":["body",%q],"type":%[1]q,"msg":%[1]q}]}`,
		`{"detail":[{"loc":[%q,19570315,"94105",4155550123],"type":"missing"}]}`, `{"error":%q,"message":%[1]q,"status_code":400}`, `{"state":"error","error":%q}`,
		`{"error":{"message":%q}}`, `%q`, `[%q]`, `%s`, `%s: Test does not exist`, `<html>%s</html>`, `{"detail":"%s scheduled for deletion"}`,
		`{"detail":[{"loc":["body","patient_details",%q],"type":"value_error","msg":"Value error, Phone number is not correct"}]}`,
		`{"success":false,"user_id":%q,"error":%[1]q,"failed_sources":[%[1]q]}`,
	} {
		for _, status := range []int{200, 302, 400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 500, 503} {
			client, _ := respondingWith(t, status, fmt.Sprintf(body, name))
			_, imported := client.Orders.Import(t.Context(), importBody())
			client, _ = respondingWith(t, status, fmt.Sprintf(body, name))
			_, results := client.Orders.Results(t.Context(), orderID)
			client, _ = respondingWith(t, status, fmt.Sprintf(body, name))
			_, user := client.Users.Create(t.Context(), labhealth.CreateUserBody{ClientUserID: name})
			for _, err := range []error{imported, results, user} {
				if err == nil {
					continue
				}
				for _, text := range []string{err.Error(), fmt.Sprintf("%v %+v %#v %q", err, err, err, err)} {
					for _, echo := range []string{name, strings.ToLower(name), "1957", "94105", "4155550123", "\n"} {
						if strings.Contains(text, echo) {
							t.Errorf("%d %s: %s", status, body, text)
						}
					}
				}
			}
		}
	}
}

// A message is one short line of printable text.
func TestMessage(t *testing.T) {
	for _, test := range []struct{ name, body, want string }{
		{"message before error_message", `{"error_message":"b","message":"a"}`, "a"},
		{"detail first", `{"message":"a","detail":"b"}`, "b"},
		{"object in error", `{"error":{"code":401,"message":"a"}}`, "a"},
		{"empty detail", `{"detail":"","message":"a"}`, "a"},
		{"list of texts", `{"detail":["a","b"]}`, "a; b"},
		{"field errors", `{"detail":[{"loc":["body","zip"],"type":"t","msg":"m"},{"loc":["query",0],"msg":"n"}]}`, "body.zip: m; query.0: n"},
		{"JSON text", `"a"`, "a"},
		{"plain text", "  upstream\r\n connect error ", "upstream connect error"},
		{"control characters", "a\x1b[31mb\u202ec", "a [31mb c"},
		{"too deep", `{"detail":{"detail":{"detail":{"detail":{"detail":"a"}}}}}`, ""},
		{"long", strings.Repeat("é", 2000), strings.Repeat("é", 500) + "…"},
		{"number", "7", ""}, {"null", "null", ""}, {"HTML", "<p>a</p>", ""}, {"PDF", "%PDF-1.4", ""}, {"binary", "a\x00b", ""}, {"none", "", ""},
	} {
		client, _ := respondingWith(t, 400, test.body)
		_, err := client.Orders.Import(t.Context(), importBody())
		got := apiError(t, err).Message()
		equal(t, test.name+": "+test.want, test.name+": "+got)
		equal(t, true, utf8.ValidString(got))
	}
	equal(t, "", (*labhealth.APIError)(nil).Message())
}

// A response is the service's own word only in one of its forms: what a proxy or a gateway says is
// not about the resource.
func TestFromService(t *testing.T) {
	for _, test := range []struct {
		body string
		want bool
	}{
		{`{"state":"error","error":"e"}`, true},
		{`{"detail":{"message":"m"}}`, true},
		{`{"detail":"d","code":"c"}`, true},
		{"\ufeff\r\n{\"detail\":\"d\"}", true},
		{`{"detail":[` + strings.Repeat(`{"loc":["body"],"type":"missing","msg":"m","input":"`+strings.Repeat("x", 1000)+`"},`, 100) + `{}]}`, true}, // cut at 64 KiB
		{" {\n \"detail\" : \"" + strings.Repeat("x", 100_000) + `"}`, true},
		{`{"message":"` + strings.Repeat("x", 100_000) + `","detail":"d"}`, false},
		{`{"detail":null,"a":"` + strings.Repeat("x", 100_000) + `"}`, false},
		{`{"details":"` + strings.Repeat("x", 100_000) + `"}`, false},
		{`{"a":{"detail":"` + strings.Repeat("x", 100_000) + `"}}`, false},
		{`{"detail":"` + strings.Repeat("x", 10_000), false}, // cut by another
		{`{"detail":""}`, false}, {`{"detail":[]}`, false}, {`{"detail":{}}`, false}, {`{"detail":404}`, false}, {`{"detail":false}`, false}, {`{"detail":"  "}`, false},
		{`{"Detail":"d"}`, false}, {`{"DETAIL":"d"}`, false}, {`{"errorType":"t","errorMessage":"m"}`, false},

		{`{"message":"Forbidden"}`, false}, {`{"Message":"User is not authorized to access this resource"}`, false}, {`{"__type":"ThrottlingException","message":"m"}`, false}, // AWS
		{`{"message":"Unauthorized","request_id":"r"}`, false},                                                               // Kong
		{`{"statusCode":404,"message":"Resource not found"}`, false}, {`{"error":{"code":"NotFound","message":"m"}}`, false}, // Azure
		{`{"code":5,"message":"Not Found","details":[]}`, false}, {`{"code":404,"message":"m"}`, false}, // Envoy, gRPC
		{`{"success":false,"errors":[{"code":1015,"message":"m"}],"messages":[],"result":null}`, false}, // Cloudflare
		{`{"type":"https://example.com/1015","title":"t","status":404,"detail":"d","error_code":1015,"cloudflare_error":true}`, false},
		{`{"fault":{"faultstring":"f","detail":{"errorcode":"messaging.adaptors.http.flow.ApplicationNotFound"}}}`, false},                                     // Apigee
		{`{"timestamp":"t","path":"/","status":404,"error":"Not Found","requestId":"r"}`, false}, {`{"error":"invalid_token","error_description":"d"}`, false}, // Spring
		{`{"type":"about:blank","detail":"d"}`, false}, {`{"detail":"d","instance":"/"}`, false}, {`{"detail":"d","status":404}`, false}, {`{"title":"t","detail":"d"}`, false},
		{`{"type":"about:blank","error_type":"t","detail":"d"}`, false},
		{`{"success":false,"error":"Not Found"}`, false}, {`{"success":false,"message":"m"}`, false},
		{`{"error":"not_found","status_code":404}`, false},
		{`{"http_status_code":404,"message":"m"}`, false}, {`{"error":"API not found"}`, false}, // Gravitee, Tyk

		{`{"detail":"This order doesn't exist"}`, true},
		{` {"detail":{"error_type":"INVALID_REQUEST","error_message":"m","user_id":"u"}}`, true},
		{`{"detail":[{"loc":["body","zip"],"type":"missing","msg":"m"}]}`, true},
		{`{"error_type":"t","error_message":"m","error_code":"c"}`, true},
		{`{"error":"e","message":"m","status_code":404}`, true},
		{`{"success":false,"user_id":"u","error":"e","failed_sources":[]}`, true},
		{`{"state":"error","error_type":"t","error":"e"}`, true},

		{`{"message":"Not Found"}`, false},
		{`{"message":"no Route matched with those values","request_id":"r"}`, false},
		{`{"error":"not found"}`, false},
		{`{"error":"e","message":"m","status_code":500}`, false},
		{`{"error":"Not Found","message":"m","statusCode":404}`, false},
		{`{"timestamp":"2026-01-31","status":404,"error":"Not Found","path":"/"}`, false},
		{`{"type":"about:blank","title":"Not Found","status":404,"detail":"d"}`, false},
		{`{"success":true,"error":"e"}`, false},
		{`{"detail":null}`, false}, {`{"error_type":""}`, false}, {`{}`, false},
		{`{"detail":"cut`, false}, {`{"detail":"a"}x`, false}, {`[{"detail":"a"}]`, false},
		{`"detail"`, false}, {"not found", false}, {"<html>not found</html>", false}, {"", false},
	} {
		client, _ := respondingWith(t, 404, test.body)
		_, err := client.Orders.Import(t.Context(), importBody())
		if got := apiError(t, err).FromService(); got != test.want {
			t.Errorf("%s: %v", test.body, got)
		}
	}
	for status, want := range map[int]bool{400: true, 409: true, 404: false} {
		for _, body := range []string{`{"user_id":"` + orderID.String() + `","created_on":"2026-01-31T00:00:00Z"}`, `{"team_id":"` + orderID.String() + `"}`} {
			client, _ := respondingWith(t, status, body)
			_, err := client.Orders.Get(t.Context(), orderID)
			equal(t, fmt.Sprint(status, body, want), fmt.Sprint(status, body, apiError(t, err).FromService()))
		}
	}
	for label, want := range map[string]bool{
		"application/problem+json": false, "Application/Problem+JSON; charset=utf-8": false, "application/problem+xml": false,
		"application/json": true, "text/html": true, "text/plain; charset=utf-8": true, "": true,
	} {
		client, _ := respondingWith(t, 404, `{"detail":"d"}`, "Content-Type", label)
		_, err := client.Orders.Get(t.Context(), orderID)
		equal(t, fmt.Sprint(label, want), fmt.Sprint(label, apiError(t, err).FromService()))
	}
	equal(t, false, (*labhealth.APIError)(nil).FromService())
	equal(t, false, new(labhealth.APIError).FromService())
}
