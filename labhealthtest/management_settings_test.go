package labhealthtest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Fields of the brand information that a request omits are unchanged, and null clears one.
func TestBrandInformation(t *testing.T) {
	srv := newServer(t)
	type team struct {
		Sandbox, Production struct {
			Brand map[string]any `json:"brand_information"`
		}
	}
	patch := func(body string) (sandbox, production string) {
		t.Helper()
		got := manageOrg(t, srv, "PATCH", "ORG/team/TEAM", body)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		changed := decode[team](t, got)
		return fmt.Sprint(changed.Sandbox.Brand), fmt.Sprint(changed.Production.Brand)
	}
	const before = "map[brand_color:#0a0 company_address:1 Example Street company_name:Clinic company_website:https://example.com support_contact:+14155550123 support_email:help@example.com]"
	const none = "map[]"
	for _, step := range []struct{ brand, want string }{
		{`{"company_name":"Clinic","company_website":"https://example.com","support_email":"help@example.com","support_contact":"+14155550123",
			"company_address":"1 Example Street","brand_color":"#0a0"}`, before},
		{`{}`, before},
		{`{"brand_color":"#00f"}`, strings.Replace(before, "#0a0", "#00f", 1)},
		{`{"company_name":null,"company_website":null,"support_email":null,"support_contact":null,"company_address":null,"brand_color":null}`,
			"map[brand_color: company_address: company_name:Clinic company_website: support_contact:<nil>]"},
		{`null`, none},
	} {
		if sandbox, production := patch(`{"sandbox":{"brand_information":` + step.brand + `}}`); sandbox != step.want || production != none {
			t.Errorf("%s: %s, %s", step.brand, sandbox, production)
		}
	}
	check(t, manageOrg(t, srv, "PATCH", "ORG/team/TEAM", `{"production":{"brand_information":{"brand_color":"#00f"}}}`), 422,
		`{"detail":[{"type":"missing","loc":["body","production","brand_information","company_name"],"msg":"Field required","input":null}]}`)
	if _, production := patch(`{"sandbox":null,"production":{"patient_experience":true,"brand_information":{"company_name":"Clinic"}}}`); production == none {
		t.Error("the brand information of production is not set")
	}
}

func TestTeamLimits(t *testing.T) {
	srv := newServer(t)
	id := createTeam(t, srv, `{"id":"3f0e6a52-94d1-4c7b-8a65-1d2e3f405162","name":"Zürich (2), O’Neill: A&B","region":"us"}`)
	if id.String() != "3f0e6a52-94d1-4c7b-8a65-1d2e3f405162" {
		t.Errorf("ID %s", id)
	}
	check(t, manageOrg(t, srv, "POST", "ORG/team", fmt.Sprintf(`{"id":%q,"name":"Other","region":"us"}`, id)), 409, fmt.Sprintf(`{"team_id":%q}`, id))
	for _, body := range []string{
		`{"name":"a;b"}`, `{"name":"` + strings.Repeat("a", 81) + `"}`, `{"integration_team_id":"` + strings.Repeat("a", 257) + `"}`,
		`{"sandbox":{"logo_url":""}}`, `{"sandbox":{"brand_information":{"support_email":"x"}}}`, `{"sandbox":{"new":1}}`,
	} {
		if got := manageOrg(t, srv, "PATCH", "ORG/team/TEAM", body); got.status != 422 {
			t.Errorf("%.40s: %d", body, got.status)
		}
	}
	if got := manageOrg(t, srv, "GET", "ORG/team?search_query=%3B", ""); got.status != 422 {
		t.Errorf("%d", got.status)
	}
	check(t, manageOrg(t, srv, "PATCH", "ORG", `{"name":"a;b"}`), 422, `{"detail":[{"type":"string_pattern_mismatch","loc":["body","name"],
		"msg":"String should match pattern '^[A-Za-zÀ-ÖØ-öø-ÿ0-9(),/:'|&_\\- ’]{0,80}$'","input":"a;b","ctx":{"pattern":"^[A-Za-zÀ-ÖØ-öø-ÿ0-9(),/:'|&_\\- ’]{0,80}$"}}]}`)
}

// Requirements are kept for each team and provider.
func TestScopeRequirements(t *testing.T) {
	srv := newServer(t)
	second := createTeam(t, srv, `{"name":"Second","region":"us"}`).String()
	const path = "ORG/team/TEAM/scope_requirements"
	check(t, manageOrg(t, srv, "GET", path, ""), 200, `{"requirements":[]}`)
	check(t, manageOrg(t, srv, "POST", path, `{"oura":{"user_must_grant":["daily"],"user_may_grant":["heartrate","email"]},
		"fitbit":{"user_must_grant":[],"user_may_grant":["sleep"]},"strava":null}`), 200, `{"success":true}`)
	check(t, manageOrg(t, srv, "POST", path, `{"oura":{"user_must_grant":["daily"],"user_may_grant":[]},"fitbit":null}`), 200, `{"success":true}`)
	fitbit := fmt.Sprintf(`{"user_must_grant":[],"user_may_grant":["sleep"],"team_id":%q,"provider":"fitbit"}`, srv.TeamID)
	oura := fmt.Sprintf(`{"user_must_grant":["daily"],"user_may_grant":[],"team_id":%q,"provider":"oura"}`, srv.TeamID)
	check(t, manageOrg(t, srv, "GET", path, ""), 200, `{"requirements":[`+fitbit+`,`+oura+`]}`)
	check(t, manageOrg(t, srv, "GET", path+"?provider=oura", ""), 200, `{"requirements":[`+oura+`]}`)
	check(t, manageOrg(t, srv, "GET", "ORG/team/"+second+"/scope_requirements", ""), 200, `{"requirements":[]}`)
	for _, body := range []string{`{"oura":{"user_must_grant":["sleep"],"user_may_grant":[]}}`, `{"oura":{"user_must_grant":[]}}`, `{"wahoo":1}`} {
		if got := manageOrg(t, srv, "POST", path, body); got.status != 422 {
			t.Errorf("%s: %d", body, got.status)
		}
	}
	if got := manageOrg(t, srv, "GET", path+"?provider=apple_health_kit", ""); got.status != 422 {
		t.Errorf("%d", got.status)
	}
}

// Preferences are kept, paged and deleted, and decide the length of later historical pulls.
func TestDataPullPreferences(t *testing.T) {
	srv := newServer(t)
	second := createTeam(t, srv, `{"name":"Second","region":"us"}`)
	const path = "ORG/team_data_pull_preferences/sandbox/us"
	element := func(team uuid.UUID, providers string) string {
		return fmt.Sprintf(`{"team_id":%q,"providers":{%s}}`, team, providers)
	}
	page := func(next string, elements ...string) string {
		return `{"data_pull_preferences":[` + strings.Join(elements, ",") + `],"next_cursor":` + next + `}`
	}
	const oura = `"oura":{"default":{"historical_days_to_pull":30,"historical_days_to_pull_limit":365},
		"resource_overrides":{"sleep":{"historical_days_to_pull":7,"historical_days_to_pull_limit":365}}}`
	const fitbit = `"fitbit":{"default":{"historical_days_to_pull":1,"historical_days_to_pull_limit":365},"resource_overrides":null}`
	check(t, manageOrg(t, srv, "POST", path, fmt.Sprintf(`{"team_ids":["%s",%q],"providers":{
		"oura":{"default":{"historical_days_to_pull":30},"resource_overrides":{"sleep":{"historical_days_to_pull":7}}}}}`, srv.TeamID, second)), 200,
		page("null", element(srv.TeamID, oura), element(second, oura)))
	check(t, manageOrg(t, srv, "POST", path, fmt.Sprintf(`{"team_ids":[%q],"providers":{"fitbit":{"default":{"historical_days_to_pull":1}}}}`, second)), 200,
		page("null", element(second, oura+","+fitbit)))

	ada := srv.AddUser("ada")
	noError(t, srv.Connect(ada, "oura"))
	got := do(t, srv, "GET", "/v2/introspect/historical_pull?user_id="+ada.String(), "").body
	for _, day := range []string{`"days_with_data":30`, `"days_with_data":7`, `"range_start":"2025-02-25T12:00:00+00:00"`} {
		if !strings.Contains(got, day) {
			t.Errorf("no %s in %s", day, got)
		}
	}

	type pages struct {
		NextCursor *string `json:"next_cursor"`
	}
	first := manageOrg(t, srv, "GET", path+"?limit=1", "")
	next := *decode[pages](t, first).NextCursor
	check(t, first, 200, page(fmt.Sprintf("%q", next), element(srv.TeamID, oura)))
	check(t, manageOrg(t, srv, "GET", path+"?limit=1&next_cursor="+next, ""), 200, page("null", element(second, oura+","+fitbit)))
	check(t, manageOrg(t, srv, "GET", path+"?provider=fitbit&provider=polar", ""), 200, page("null", element(second, fitbit)))
	check(t, manageOrg(t, srv, "GET", path+"?team_id=TEAM", ""), 200, page("null", element(srv.TeamID, oura)))
	check(t, manageOrg(t, srv, "GET", "ORG/team_data_pull_preferences/production/us", ""), 200, page("null"))

	check(t, manageOrg(t, srv, "DELETE", path+"?provider=oura&team_id="+second.String(), ""), 200, `{"success":true}`)
	check(t, manageOrg(t, srv, "GET", path, ""), 200, page("null", element(srv.TeamID, oura), element(second, fitbit)))
	check(t, manageOrg(t, srv, "DELETE", path+"?team_id=TEAM", ""), 200, `{"success":true}`)
	check(t, manageOrg(t, srv, "GET", path, ""), 200, page("null", element(second, fitbit)))
	noError(t, srv.Connect(ada, "fitbit"))
	if got := do(t, srv, "GET", "/v2/introspect/historical_pull?provider=fitbit", ""); !strings.Contains(got.body, `"days_with_data":90`) {
		t.Error(got.body)
	}
	for _, body := range []string{
		`{"team_ids":[],"providers":{"fax":{"default":{"historical_days_to_pull":1}}}}`, `{"team_ids":[]}`, `{"team_ids":[],"providers":[]}`,
		`{"team_ids":[],"providers":{"oura":{"default":{"historical_days_to_pull":366}}}}`, `{"team_ids":[],"providers":{"oura":{}}}`,
		`{"team_ids":[],"providers":{"oura":{"default":{"historical_days_to_pull":1},"resource_overrides":{"sleep":{"historical_days_to_pull":-1}}}}}`,
	} {
		if got := manageOrg(t, srv, "POST", path, body); got.status != 422 {
			t.Errorf("%s: %d", body, got.status)
		}
	}
	check(t, manageOrg(t, srv, "DELETE", "ORG/team/"+second.String(), ""), 200, `{"success":true}`)
	check(t, manageOrg(t, srv, "GET", path, ""), 200, page("null"))
}

// A team sees the accounts whose allowlist has it.
func TestLabAccounts(t *testing.T) {
	srv := newServer(t)
	second := createTeam(t, srv, `{"name":"Second","region":"us"}`)
	key := decode[struct{ Value string }](t, manageOrg(t, srv, "POST", "ORG/team_api_keys/sandbox/us", fmt.Sprintf(`{"label":"X","team_id":%q}`, second))).Value
	type account struct {
		ID      uuid.UUID
		TeamIDs []uuid.UUID `json:"team_id_allowlist"`
	}
	type list struct{ Data []account }
	const path = "ORG/lab_account/sandbox/us"
	count := func(query string) int { return len(decode[list](t, manageOrg(t, srv, "GET", path+query, "")).Data) }
	visible := func(key string) int {
		return len(decode[list](t, do(t, srv, "GET", "/v3/lab_test/lab_account", "", "x-service-api-key", key)).Data)
	}
	all := decode[list](t, manageOrg(t, srv, "GET", path, "")).Data
	if len(all) != 3 || visible(srv.APIKey) != 3 || visible(key) != 0 || count("?status=active") != 1 || count("?team_id=TEAM") != 3 ||
		count("?lab_account_id="+all[1].ID.String()) != 1 || count("?team_id="+second.String()) != 0 {
		t.Errorf("%+v", all)
	}
	check(t, manageOrg(t, srv, "GET", "ORG/lab_account/production/us", ""), 200, `{"data":[]}`)
	changed := decode[struct {
		Account account `json:"lab_account"`
	}](t, manageOrg(t, srv, "PATCH", path+"/"+all[0].ID.String(), fmt.Sprintf(`{"team_id_allowlist":[%q]}`, second))).Account
	if changed.ID != all[0].ID || len(changed.TeamIDs) != 1 || visible(srv.APIKey) != 2 || visible(key) != 1 {
		t.Errorf("%+v", changed)
	}
	check(t, manageOrg(t, srv, "DELETE", "ORG/team/"+second.String(), ""), 200, `{"success":true}`)
	if left := decode[list](t, manageOrg(t, srv, "GET", path, "")).Data[0].TeamIDs; len(left) != 0 {
		t.Errorf("the allowlist has a deleted team: %v", left)
	}
	for request, status := range map[string]int{
		"/" + uuid.NewString() + ` {"team_id_allowlist":[]}`:                             404,
		"/" + all[0].ID.String() + ` {"team_id_allowlist":["` + uuid.NewString() + `"]}`: 404,
		"/" + all[0].ID.String() + ` {}`:                                                 422,
		"/x {}":                                                                          422,
	} {
		rest, body, _ := strings.Cut(request, " ")
		if got := manageOrg(t, srv, "PATCH", path+rest, body); got.status != status {
			t.Errorf("%s: %d %s", request, got.status, got.body)
		}
	}
	if got := manageOrg(t, srv, "GET", path+"?status=closed", ""); got.status != 422 {
		t.Errorf("%d", got.status)
	}
}

// The metric counts the attempts that were made.
func TestEventDeliveryMetric(t *testing.T) {
	now := &clock{}
	now.Set(time.Date(2025, 3, 4, 12, 0, 0, 0, time.UTC))
	srv := newServer(t, labhealthtest.WithClock(now.Now))
	receiver, rejecting := newReceiver(t), newReceiver(t)
	rejecting.statusCode = http.StatusInternalServerError
	noError(t, srv.DeliverTo(receiver.URL))
	noError(t, srv.DeliverTo(rejecting.URL))
	ada := srv.AddUser("ada")
	for range 3 {
		noError(t, srv.Connect(ada, "oura"))
	}
	noError(t, srv.Flush(t.Context()))
	now.Set(now.Now().Add(3 * time.Hour))
	noError(t, srv.Connect(ada, "oura"))
	noError(t, srv.Flush(t.Context()))

	type metric struct {
		Status string
		Data   struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	get := func(env, query string) metric {
		return decode[metric](t, manageOrg(t, srv, "GET", "ORG/team/TEAM/"+env+"/event_delivery_metric"+query, ""))
	}
	got := get("sandbox", "")
	if got.Status != "success" || got.Data.ResultType != "matrix" || len(got.Data.Result) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, status := range []string{"success", "failure"} {
		series := got.Data.Result[i]
		values := fmt.Sprint(series.Values[len(series.Values)-4:])
		if series.Metric["status"] != status || values != "[[1.7410896e+09 3] [1.7410932e+09 0] [1.7410968e+09 0] [1.7411004e+09 1]]" {
			t.Errorf("%v %s", series.Metric, values)
		}
	}
	if n := len(get("sandbox", "?interval=5m").Data.Result[0].Values); n != 24 {
		t.Errorf("%d samples", n)
	}
	if got := get("production", "?interval=1d"); len(got.Data.Result) != 0 {
		t.Errorf("%+v", got)
	}
	if got := manageOrg(t, srv, "GET", "ORG/team/TEAM/sandbox/event_delivery_metric?interval=2h", ""); got.status != 422 {
		t.Errorf("%d", got.status)
	}
}
