package conformance

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Every error of the embedded service is in one of the service's own forms.
func TestErrorsOfServiceAreItsOwn(t *testing.T) {
	srv := labhealthtest.NewServer(t)
	user := srv.AddUsers(1)[0]
	seen := map[int]int{}
	check := func(method, target, key, body string) {
		header := "x-service-api-key"
		if strings.HasPrefix(target, "/v1/org/") {
			header = "X-Management-Key"
		}
		req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, srv.URL+target, strings.NewReader(body)))
		req.Header.Set(header, key)
		req.Header.Set("Content-Type", "application/json")
		resp := must[*http.Response](t)(http.DefaultClient.Do(req))
		defer resp.Body.Close()
		received := string(must[[]byte](t)(io.ReadAll(resp.Body)))
		if resp.StatusCode < 400 || received == "Internal Server Error" { // which the service was seen to send for some pages
			return
		}
		seen[resp.StatusCode]++
		client, _ := respondingWith(t, resp.StatusCode, received, "Content-Type", resp.Header.Get("Content-Type"))
		_, err := client.Orders.Get(t.Context(), orderID)
		if !apiError(t, err).FromService() {
			t.Errorf("%s %s: %d %s", method, target, resp.StatusCode, received)
		}
	}
	type target struct{ method, url, body string }
	targets := []target{
		{"GET", "/", ""}, {"GET", "/v2/user", ""}, {"POST", "/v2/user", `{"client_user_id":"a"}`}, {"GET", "/v3/order/" + orderID.String(), ""},
		{"POST", "/v3/order/import", importJSON}, {"POST", "/v3/order", `{}`}, {"PATCH", "/v3/order/" + orderID.String(), `{"activate_by":null}`},
		{"DELETE", "/v2/user/" + user.String(), ""}, {"DELETE", "/v2/user/" + user.String(), ""}, {"GET", "/v2/user/" + user.String(), ""},
		{"GET", "/v2/user/not-an-id", ""}, {"GET", "/v3/orders", ""}, {"GET", "/v3/order/" + orderID.String() + "/requisition/pdf", ""},
	}
	for _, c := range apiCalls {
		method, _, _ := strings.Cut(c.op, " ")
		targets = append(targets, target{method, c.url, c.body})
	}
	values := strings.NewReplacer("{org_id}", srv.OrgID.String(), "{team_id}", srv.TeamID.String(), "{environment}", "sandbox", "{env}", "sandbox", "{region}", "us",
		"{webhook_id}", "ep_1", "{key_id}", orderID.String())
	for _, op := range strings.Fields(managementPaths) {
		method, path, _ := strings.Cut(op, ":")
		targets = append(targets, target{method, values.Replace(path), "{}"}, target{method, values.Replace(strings.Replace(path, "{org_id}", orderID.String(), 1)), "{}"})
	}
	targets = append(targets, target{"POST", "/v1/org/" + srv.OrgID.String() + "/team", `{"name":"a","region":"us","integration_team_id":"i"}`})
	for _, v := range targets {
		key := srv.APIKey
		if strings.HasPrefix(v.url, "/v1/org/") {
			key = srv.OrgKey
		}
		for _, k := range []string{key, "", "wrong", srv.APIKey + "x"} {
			check(v.method, v.url, k, v.body)
		}
		for _, body := range []string{"", "{", "{}", "[]", "null", `"x"`, "7", "<p>", `{"a":"\xff"}`, `{"user_id":7}`, strings.Repeat("[", 5000)} {
			if v.method != "GET" || len(body) < 10 {
				check(v.method, v.url, key, body)
			}
		}
		path, query, _ := strings.Cut(v.url, "?")
		for _, q := range []string{"limit=x&page=x&size=x&offset=x&next_cursor=x&status=x&user_id=x", "size=0&limit=0&lab_test_limit=0", "size=-1&limit=501&offset=-1", "%zz", "start_date=x&collection_date=x"} {
			check(v.method, path+"?"+query+"&"+q, key, v.body)
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if method != v.method {
				check(method, path, key, "{}")
				check(method, path+"/more", key, "{}")
			}
		}
		if !strings.Contains(path, "%") {
			check(v.method, strings.ReplaceAll(path, "0", "x"), key, v.body)
		}
		check(v.method, path+"/", key, v.body)
	}
	t.Logf("%v responses by status", seen)
	for _, status := range []int{400, 401, 403, 404, 405, 409, 422} {
		if seen[status] == 0 {
			t.Errorf("no response with status %d", status)
		}
	}
}

const managementPaths = `
GET:/v1/org/{org_id} PATCH:/v1/org/{org_id} GET:/v1/org/{org_id}/team POST:/v1/org/{org_id}/team
GET:/v1/org/{org_id}/team/{team_id} PATCH:/v1/org/{org_id}/team/{team_id} DELETE:/v1/org/{org_id}/team/{team_id}x
POST:/v1/org/{org_id}/resolve_team POST:/v1/org/{org_id}/team/{team_id}/create_api_access_token
GET:/v1/org/{org_id}/team/{team_id}/{environment}/webhook POST:/v1/org/{org_id}/team/{team_id}/{environment}/webhook
GET:/v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id} PATCH:/v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}
DELETE:/v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id} PUT:/v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers
GET:/v1/org/{org_id}/management_key POST:/v1/org/{org_id}/management_key PATCH:/v1/org/{org_id}/management_key/{key_id} DELETE:/v1/org/{org_id}/management_key/{key_id}
GET:/v1/org/{org_id}/team_api_keys/{env}/{region} POST:/v1/org/{org_id}/team_api_keys/{env}/{region} DELETE:/v1/org/{org_id}/team_api_keys/{env}/{region}
GET:/v1/org/{org_id}/team_custom_credentials/{env}/{region} POST:/v1/org/{org_id}/team_custom_credentials/{env}/{region}
POST:/v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region} GET:/v1/org/{org_id}/team_etl_pipelines/{env}/{region}
POST:/v1/org/{org_id}/team_etl_pipelines/{env}/{region} DELETE:/v1/org/{org_id}/team_etl_pipelines/{env}/{region}`
