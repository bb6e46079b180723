package labhealthtest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

func TestManagementKeys(t *testing.T) {
	srv := newServer(t)
	team, err := srv.AddTeamManagementKey(srv.TeamID)
	noError(t, err)
	const missing, invalid = `{"detail":"Missing management key"}`, `{"detail":"Invalid management key"}`
	for _, test := range []struct {
		name   string
		header []string
		status int
		body   string
	}{
		{"none", []string{"x-service-api-key", ""}, 401, missing},
		{"team API key in its own header", nil, 401, missing},
		{"team API key", []string{"X-Management-Key", srv.APIKey}, 401, invalid},
		{"wrong", []string{"X-Management-Key", srv.OrgKey[:20]}, 401, invalid},
		{"deprecated header", []string{"X-Service-Org-Key", srv.OrgKey}, 200, ""},
		{"right", []string{"X-Management-Key", srv.OrgKey}, 200, ""},
		{"team management key", []string{"X-Management-Key", team}, 403, `{"detail":"The management key has no permission for this"}`},
	} {
		got := do(t, srv, "GET", "/v1/org/"+srv.OrgID.String(), "", test.header...)
		want := test.body
		if want == "" {
			want = fmt.Sprintf(`{"id":%q,"name":"Example Organisation","expires_at":null}`, srv.OrgID)
		}
		check(t, got, test.status, want)
		if t.Failed() {
			t.Fatal(test.name)
		}
	}
	check(t, do(t, srv, "GET", "/v1/org/"+srv.TeamID.String(), "", "X-Management-Key", srv.OrgKey), 403,
		`{"detail":"The management key has no permission for this"}`)
	// Management keys are invalid for the team API.
	for _, key := range []string{srv.OrgKey, team} {
		check(t, do(t, srv, "GET", "/v2/user", "", "x-service-api-key", key), 401, `{"detail":"Invalid token"}`)
		check(t, do(t, srv, "GET", "/v2/user", "", "x-service-api-key", "", "X-Management-Key", key), 401, `{"detail":"Missing token"}`)
		check(t, do(t, srv, "GET", "/v2/user", "", "x-service-api-key", "", "Authorization", "Bearer "+key), 401, `{"detail":"Invalid token"}`)
	}
	for _, r := range srv.Requests() {
		if text := fmt.Sprint(r.Header); strings.Contains(text, srv.OrgKey) || strings.Contains(text, team) {
			t.Error("the request log contains a key")
		}
	}
	if _, err := srv.AddTeamManagementKey(); err == nil {
		t.Error("AddTeamManagementKey succeeds without a team")
	}
	if _, err := srv.AddTeamManagementKey(uuid.New()); err == nil {
		t.Error("AddTeamManagementKey succeeds for an unknown team")
	}
}

// teamManagementKey creates a Team Management Key for two teams and returns its ID and the key.
func teamManagementKey(t testing.TB, srv *labhealthtest.Server, one, two uuid.UUID) (id uuid.UUID, key string) {
	t.Helper()
	created := decode[struct {
		ID      uuid.UUID
		Key     string
		Creator map[string]string
	}](t, manageOrg(t, srv, "POST", "ORG/management_key", fmt.Sprintf(
		`{"label":"Two","role":"team_admin","team_role_bindings":[{"team_id":%q},{"team_id":%q}]}`, one, two)))
	if created.Creator["type"] != "management_key" {
		t.Errorf("creator %v", created.Creator)
	}
	return created.ID, created.Key
}

// A Team Management Key is rejected for the organisation and for teams that it is not bound to.
func TestTeamManagementKeyRejected(t *testing.T) {
	srv := newServer(t)
	second := createTeam(t, srv, `{"name":"Second","region":"us"}`)
	other := createTeam(t, srv, `{"name":"Other","region":"us","integration_team_id":"other"}`).String()
	id, key := teamManagementKey(t, srv, srv.TeamID, second)
	for _, test := range []struct{ request, body string }{
		{"GET ORG", ""},
		{"PATCH ORG", `{"name":"X"}`},
		{"GET ORG/management_key", ""},
		{"POST ORG/management_key", `{"label":"X","role":"org_admin"}`},
		{"PATCH ORG/management_key/" + id.String(), `{"label":"X"}`},
		{"DELETE ORG/management_key/" + id.String(), ""},
		{"POST ORG/team", `{"name":"X","region":"us"}`},
		{"DELETE ORG/team/TEAM", ""},
		{"GET ORG/team/" + uuid.NewString(), ""},
		{"GET ORG/team/" + other, ""},
		{"PATCH ORG/team/" + other, `{"name":"X"}`},
		{"POST ORG/team/" + other + "/create_api_access_token", `{"env":"sandbox"}`},
		{"GET ORG/team/" + other + "/sandbox/webhook", ""},
		{"POST ORG/team/" + other + "/sandbox/webhook", `{"url":"https://example.com"}`},
		{"GET ORG/team/" + other + "/sandbox/webhook/ep_1/secret", ""},
		{"POST ORG/team_api_keys/sandbox/us", `{"label":"X","team_id":"` + other + `"}`},
		{"POST ORG/team_custom_credentials/sandbox/us", `{"provider":"oura","team_id":"` + other + `"}`},
		{"GET ORG/team/" + other + "/scope_requirements", ""},
		{"POST ORG/team/" + other + "/scope_requirements", `{}`},
		{"GET ORG/team/" + other + "/sandbox/event_delivery_metric", ""},
		{"POST ORG/team_data_pull_preferences/sandbox/us", `{"team_ids":["` + other + `"],"providers":{}}`},
		{"GET ORG/lab_account/sandbox/us", ""},
		{"PATCH ORG/lab_account/sandbox/us/" + uuid.NewString(), `{"team_id_allowlist":[]}`},
	} {
		method, path, _ := strings.Cut(test.request, " ")
		check(t, manage(t, srv, key, method, path, test.body), 403,
			`{"detail":"The management key has no permission for this"}`)
	}
	check(t, manage(t, srv, key, "POST", "ORG/resolve_team", `{"integration_team_id":"other"}`), 404, `{"detail":"Team not found"}`)
}

// A Team Management Key can list and change the teams that it is bound to, and their API keys.
func TestTeamManagementKey(t *testing.T) {
	srv := newServer(t)
	second := createTeam(t, srv, `{"name":"Second","region":"us"}`)
	other := createTeam(t, srv, `{"name":"Other","region":"us"}`)
	keyID, key := teamManagementKey(t, srv, srv.TeamID, second)
	for _, id := range []uuid.UUID{srv.TeamID, second} {
		if got := manage(t, srv, key, "PATCH", "ORG/team/"+id.String(), `{"name":"Renamed"}`); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	type teams struct{ Teams []struct{ Name string } }
	if got := decode[teams](t, manage(t, srv, key, "GET", "ORG/team", "")); len(got.Teams) != 2 || got.Teams[1].Name != "Renamed" {
		t.Errorf("%+v", got)
	}
	if got := decode[teams](t, manageOrg(t, srv, "GET", "ORG/team?search_query=OTH&region=us&region=eu", "")); len(got.Teams) != 1 || got.Teams[0].Name != "Other" {
		t.Errorf("%+v", got)
	}
	manageOrg(t, srv, "POST", "ORG/team_api_keys/sandbox/us", fmt.Sprintf(`{"label":"X","team_id":%q}`, other))
	type keys struct {
		APIKeys []struct{ Label string } `json:"api_keys"`
	}
	if got := decode[keys](t, manage(t, srv, key, "GET", "ORG/team_api_keys/sandbox/us", "")); len(got.APIKeys) != 1 || got.APIKeys[0].Label != "Default" {
		t.Errorf("%+v", got)
	}
	bindings := fmt.Sprintf(`{"team_role_bindings":[{"team_id":%q}]}`, second)
	if got := manageOrg(t, srv, "PATCH", "ORG/management_key/"+keyID.String(), bindings); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := decode[teams](t, manage(t, srv, key, "GET", "ORG/team", "")); len(got.Teams) != 1 {
		t.Errorf("bound to one team: %+v", got)
	}
}

func TestManagementKeyLifecycle(t *testing.T) {
	srv := newServer(t)
	type key struct {
		ID    uuid.UUID
		Label string
		Role  string
		Key   string
	}
	type page struct {
		Data       []key
		NextCursor *string `json:"next_cursor"`
	}
	created := decode[key](t, manageOrg(t, srv, "POST", "ORG/management_key", `{"label":"Robot","role":"org_admin"}`))
	if !strings.HasPrefix(created.Key, "mk_org_") {
		t.Errorf("key %q", created.Key)
	}
	if got := manage(t, srv, created.Key, "GET", "ORG", ""); got.status != 200 {
		t.Errorf("a new key: %d", got.status)
	}
	path := "ORG/management_key/" + created.ID.String()
	check(t, manageOrg(t, srv, "PATCH", path, `{"label":"Robot 2"}`), 200, fmt.Sprintf(
		`{"id":%q,"label":"Robot 2","role":"org_admin","team_role_bindings":[],"created_at":"2025-03-04T12:00:00+00:00",
		"creator":{"type":"management_key"}}`, created.ID))
	listed := decode[page](t, manageOrg(t, srv, "GET", "ORG/management_key", ""))
	if len(listed.Data) != 2 || listed.Data[0].Key != "" || listed.Data[1].Key != "" || listed.Data[1].Label != "Robot 2" {
		t.Errorf("%+v", listed)
	}
	if n := len(decode[page](t, manageOrg(t, srv, "GET", "ORG/management_key?team_id=TEAM", "")).Data); n != 0 {
		t.Errorf("%d keys are bound to the team", n)
	}
	if got := manageOrg(t, srv, "DELETE", path, ""); got.status != 200 || strings.Contains(got.body, created.Key) {
		t.Errorf("%d %s", got.status, got.body)
	}
	check(t, manage(t, srv, created.Key, "GET", "ORG", ""), 401, `{"detail":"Invalid management key"}`)
	check(t, manageOrg(t, srv, "DELETE", path, ""), 404, `{"detail":"Management key not found"}`)
	check(t, manageOrg(t, srv, "PATCH", "ORG", `{"name":"Renamed"}`), 200, fmt.Sprintf(`{"id":%q,"name":"Renamed","expires_at":null}`, srv.OrgID))
	for _, body := range []string{
		`{"label":"X","role":"team_admin"}`, `{"label":"X","role":"org_admin","team_role_bindings":[{"team_id":"` + srv.TeamID.String() + `"}]}`,
		`{"label":"X","role":"owner"}`, `{"role":"org_admin"}`,
	} {
		if got := manageOrg(t, srv, "POST", "ORG/management_key", body); got.status != 422 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for range 60 {
		manageOrg(t, srv, "POST", "ORG/management_key", `{"label":"Many","role":"org_admin"}`)
	}
	first := decode[page](t, manageOrg(t, srv, "GET", "ORG/management_key", ""))
	rest := decode[page](t, manageOrg(t, srv, "GET", "ORG/management_key?next_cursor="+*first.NextCursor, ""))
	if len(first.Data) != 50 || len(rest.Data) != 11 || rest.NextCursor != nil {
		t.Errorf("pages of %d and %d", len(first.Data), len(rest.Data))
	}
	check(t, manageOrg(t, srv, "GET", "ORG/management_key?next_cursor=x", ""), 400, `{"detail":"Invalid cursor"}`)
}

func TestManagementErrors(t *testing.T) {
	srv := newServer(t)
	for _, test := range []struct {
		request, body string
		status        int
	}{
		{"GET ORG/nowhere", "", 404},
		{"DELETE ORG", "", 405},
		{"GET ORG/team/" + uuid.NewString(), "", 404},
		{"GET ORG/team/x", "", 422},
		{"GET ORG/team/TEAM/moon/webhook", "", 422},
		{"GET ORG/team_api_keys/sandbox/moon", "", 422},
		{"GET ORG/team/TEAM/sandbox/webhook?limit=0", "", 422},
		{"GET ORG/team/TEAM/sandbox/webhook/ep_1", "", 404},
		{"POST ORG/team", `{"name":"X","region":"us","unheard_of":1}`, 422},
		{"POST ORG/team", `{"name":"X","region":"moon"}`, 422},
		{"POST ORG/team", `{"name":"X","region":"us","minor_ordering_enabled":"yes"}`, 422},
		{"PATCH ORG/team/TEAM", `{"sandbox":{"unheard_of":1}}`, 422},
		{"DELETE ORG/team/TEAM", "", 400},
		{"POST ORG/team_api_keys/production/eu", `{"label":"X","team_id":"` + srv.TeamID.String() + `"}`, 400},
		{"DELETE ORG/team_api_keys/sandbox/us", "", 422},
		{"DELETE ORG/team_api_keys/sandbox/us?api_key_id=x", "", 422},
		{"POST ORG/team/TEAM/sandbox/webhook", `{"url":"/events"}`, 422},
		{"POST ORG/team/TEAM/sandbox/webhook", `{"url":"https://example.com","secret":"whsec_short"}`, 422},
		{"POST ORG/team_etl_pipelines/sandbox/us", `{"team_ids":[],"preferences":{}}`, 422},
	} {
		method, path, _ := strings.Cut(test.request, " ")
		if got := manageOrg(t, srv, method, path, test.body); got.status != test.status {
			t.Errorf("%s %s: %d %s", test.request, test.body, got.status, got.body)
		} else if strings.Contains(got.body, "whsec_short") {
			t.Error("the response contains the secret")
		}
	}
	if got := manageOrg(t, srv, "DELETE", "ORG", ""); got.header.Get("Allow") != "GET, PATCH" {
		t.Errorf("Allow: %s", got.header.Get("Allow"))
	}
}

func TestTeams(t *testing.T) {
	srv := newServer(t)
	id := createTeam(t, srv, `{"name":"Second","region":"us","integration_team_id":"two","minor_ordering_enabled":true,"brand_information":{"company_name":"Two"}}`)
	const settings = `{"lab_tests_patient_sms_communication_enabled":true,"lab_tests_patient_email_communication_enabled":true,
		"critical_result_notification_email":null,"brand_information":{"company_name":"Two","company_website":"",
		"support_contact":"","company_address":"","brand_color":""},"logo_url":null,"reject_duplicate_connection":false,
		"sdk_per_device_activity_timeseries":false,"partial_webhooks_enabled":false,"minor_ordering_enabled":true}`
	team := func(sandbox, production string) string {
		return fmt.Sprintf(`{"id":%q,"name":"Second","created_on":"2025-03-04T12:00:00+00:00","region":"us","integration_team_id":"two",
			"environments":["sandbox","production"],"sandbox":%s,"production":%s}`, id, sandbox, production)
	}
	path := "ORG/team/" + id.String()
	check(t, manageOrg(t, srv, "GET", "ORG/team?search_query=Second", ""), 200, fmt.Sprintf(`{"next_cursor":null,"teams":[
		{"id":%q,"name":"Second","created_on":"2025-03-04T12:00:00+00:00","region":"us","integration_team_id":"two"}]}`, id))
	check(t, manageOrg(t, srv, "GET", path, ""), 200, team("null", "null"))
	check(t, manageOrg(t, srv, "GET", path+"?include_environment=sandbox", ""), 200, team(settings, "null"))
	check(t, manageOrg(t, srv, "POST", "ORG/resolve_team", `{"integration_team_id":"two"}`), 200, team("null", "null"))
	changed := strings.Replace(strings.Replace(settings, `"company_name":"Two"`, `"company_name":"2"`, 1), `"logo_url":null`, `"logo_url":"https://example.com/l"`, 1)
	check(t, manageOrg(t, srv, "PATCH", path, `{"sandbox":{"brand_information":{"company_name":"2"},"logo_url":"https://example.com/l","minor_ordering_enabled":null}}`),
		200, team(changed, settings))
	check(t, manageOrg(t, srv, "PATCH", path, `{"sandbox":{"brand_information":{"company_name":"Two"},"logo_url":null}}`), 200, team(settings, settings))

	// integration_team_id is unique.
	conflict := fmt.Sprintf(`{"team_id":%q}`, id)
	check(t, manageOrg(t, srv, "POST", "ORG/team", `{"name":"Third","region":"us","integration_team_id":"two"}`), 409, conflict)
	check(t, manageOrg(t, srv, "PATCH", "ORG/team/TEAM", `{"integration_team_id":"two"}`), 409, conflict)
	check(t, manageOrg(t, srv, "PATCH", path, `{"integration_team_id":"two"}`), 200, team(settings, settings))
}

// Each team has its own users, orders, keys and events.
func TestTeamServers(t *testing.T) {
	srv := newServer(t)
	srv.AddUser("ada")
	id := createTeam(t, srv, `{"name":"Second","region":"us"}`)
	path := "ORG/team/" + id.String()
	type apiKey struct {
		ID    uuid.UUID
		Value string
	}
	newKey := func(env string) apiKey {
		return decode[apiKey](t, manageOrg(t, srv, "POST", "ORG/team_api_keys/"+env+"/us", fmt.Sprintf(`{"label":"X","team_id":%q}`, id)))
	}
	key, closed := newKey("sandbox"), newKey("production")
	if !strings.HasPrefix(key.Value, "sk_us_") || !strings.HasPrefix(closed.Value, "pk_us_") {
		t.Errorf("keys %s, %s", key.Value, closed.Value)
	}
	as := func(key string) []string { return []string{"x-service-api-key", key} }
	check(t, do(t, srv, "GET", "/v2/user", "", as(closed.Value)...), 401, `{"detail":"Invalid token"}`)
	check(t, do(t, srv, "GET", "/v2/user", "", as(key.Value)...), 200, `{"users":[],"total":0,"offset":0,"limit":100}`)
	user := decode[struct {
		UserID uuid.UUID `json:"user_id"`
		TeamID uuid.UUID `json:"team_id"`
	}](t, do(t, srv, "POST", "/v2/user", `{"client_user_id":"ada"}`, as(key.Value)...))
	if user.TeamID != id {
		t.Errorf("the user's team is %s", user.TeamID)
	}
	two := srv.Team(id)
	if two == nil || two.URL != srv.URL || two.TeamID != id || two.APIKey != "" || srv.Team(srv.TeamID) != srv || srv.Team(uuid.New()) != nil {
		t.Fatal("Team returns the wrong server")
	}
	two.AddUsers(2)
	total := func(key string) int {
		return decode[struct{ Total int }](t, do(t, srv, "GET", "/v2/user", "", as(key)...)).Total
	}
	if one, other := total(srv.APIKey), total(key.Value); one != 1 || other != 3 {
		t.Errorf("%d and %d users", one, other)
	}
	check(t, do(t, srv, "GET", "/v2/user/"+user.UserID.String(), ""), 404, `{"detail":"User not found"}`)

	// A token is valid for ten minutes.
	token := decode[struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}](t, manageOrg(t, srv, "POST", path+"/create_api_access_token", `{"env":"sandbox"}`))
	got := do(t, srv, "GET", "/v2/user", "", "x-service-api-key", "", "Authorization", "Bearer "+token.AccessToken)
	if got.status != 200 || !strings.Contains(got.body, `"total":3`) || token.ExpiresIn != 600 {
		t.Errorf("%d %s, expires in %d", got.status, got.body, token.ExpiresIn)
	}

	check(t, manageOrg(t, srv, "DELETE", "ORG/team_api_keys/sandbox/us?api_key_id="+key.ID.String()+"&api_key_id="+closed.ID.String(), ""), 200,
		fmt.Sprintf(`{"success":[%q],"failure":[],"not_found":[%q]}`, key.ID, closed.ID))
	check(t, do(t, srv, "GET", "/v2/user", "", as(key.Value)...), 401, `{"detail":"Invalid token"}`)
	last := newKey("sandbox")
	check(t, manageOrg(t, srv, "DELETE", path, ""), 200, `{"success":true}`)
	check(t, manageOrg(t, srv, "GET", path, ""), 404, `{"detail":"Team not found"}`)
	for _, header := range [][]string{as(last.Value), {"x-service-api-key", "", "Authorization", "Bearer " + token.AccessToken}} {
		check(t, do(t, srv, "GET", "/v2/user", "", header...), 401, `{"detail":"Invalid token"}`)
	}
}

func TestAccessTokenExpires(t *testing.T) {
	now := noon
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return now }))
	token := decode[struct {
		AccessToken string `json:"access_token"`
	}](t, manageOrg(t, srv, "POST", "ORG/team/TEAM/create_access_token", `{"env":"sandbox"}`)).AccessToken
	open := func() int {
		return do(t, srv, "GET", "/v2/user", "", "x-service-api-key", "", "Authorization", "Bearer "+token).status
	}
	now = noon.Add(9 * time.Minute)
	before := open()
	now = noon.Add(10 * time.Minute)
	if after := open(); before != 200 || after != 401 {
		t.Errorf("%d before, %d after", before, after)
	}
}

// describe returns the type of an event, whether secret verifies it, and a header of the webhook.
func describe(t testing.TB, e receivedEvent, secret string) string {
	t.Helper()
	var decoded struct {
		Type string `json:"event_type"`
	}
	json.Unmarshal([]byte(e.body), &decoded)
	verifier, err := webhooks.NewVerifier(secret)
	noError(t, err)
	seconds, err := strconv.ParseInt(e.header.Get("svix-timestamp"), 10, 64)
	noError(t, err)
	verified := verifier.VerifyAt([]byte(e.body), e.header, time.Unix(seconds, 0)) == nil
	return strings.TrimSpace(fmt.Sprintf("%s %v %s", decoded.Type, verified, e.header.Get("X-Test")))
}

func TestWebhooks(t *testing.T) {
	now := noon
	srv := newServer(t, labhealthtest.WithClock(func() time.Time { return now }))
	user := srv.AddUser("ada")
	secrets := make([]string, 3)
	for i := range secrets {
		secrets[i] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune('a'+i)), 32)))
	}
	rec := newReceiver(t)
	const path = "ORG/team/TEAM/sandbox/webhook"
	connect := func() {
		t.Helper()
		noError(t, srv.Connect(user, "oura"))
		noError(t, srv.Flush(t.Context()))
	}
	expect := func(secret string, want ...string) {
		t.Helper()
		var got []string
		for _, e := range rec.take() {
			got = append(got, describe(t, e, secret))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	got := manageOrg(t, srv, "POST", path, fmt.Sprintf(`{"url":%q,"secret":%q}`, rec.URL, secrets[0]))
	hook := decode[struct{ ID string }](t, got)
	webhook := func(rest string) string {
		return fmt.Sprintf(`{"id":%q,"url":%q,"created_at":"2025-03-04T12:00:00+00:00","updated_at":"2025-03-04T12:00:00+00:00",%s}`, hook.ID, rec.URL, rest)
	}
	plain := webhook(`"description":"","rate_limit":null,"disabled":false,"filter_types":null`)
	check(t, got, 200, plain)
	one := path + "/" + hook.ID
	check(t, manageOrg(t, srv, "GET", one, ""), 200, plain)
	check(t, manageOrg(t, srv, "GET", path, ""), 200, `{"data":[`+plain+`],"next_cursor":null}`)
	check(t, manageOrg(t, srv, "GET", one+"/secret", ""), 200, fmt.Sprintf(`{"key":%q}`, secrets[0]))
	// A webhook of another environment receives no events.
	check(t, manageOrg(t, srv, "GET", "ORG/team/TEAM/production/webhook/"+hook.ID, ""), 404, `{"detail":"Webhook not found"}`)
	manageOrg(t, srv, "POST", "ORG/team/TEAM/production/webhook", fmt.Sprintf(`{"url":%q}`, rec.URL))
	connect()
	expect(secrets[0], "provider.connection.created true")

	// Headers.
	noContent := func(r response) {
		t.Helper()
		if r.status != 204 || r.body != "" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	noContent(manageOrg(t, srv, "PUT", one+"/headers", `{"headers":{"X-Test":"1","Authorization":"Bearer x"}}`))
	check(t, manageOrg(t, srv, "GET", one+"/headers", ""), 200, `{"headers":{"X-Test":"1"},"sensitive":["Authorization"]}`)
	connect()
	expect(secrets[0], "provider.connection.created true 1")
	noContent(manageOrg(t, srv, "PUT", one+"/headers", `{"headers":{}}`))

	// A filter, with events of Send.
	check(t, manageOrg(t, srv, "PATCH", one, `{"filter_types":["daily.data.steps.created"],"rate_limit":5,"description":"d"}`), 200,
		webhook(`"description":"d","rate_limit":5,"disabled":false,"filter_types":["daily.data.steps.created"]`))
	noError(t, srv.Send([]byte(`{"event_type":"daily.data.steps.created"}`)))
	noError(t, srv.Send([]byte(`no event`)))
	connect()
	expect(secrets[0], "daily.data.steps.created true")
	check(t, manageOrg(t, srv, "PATCH", one, `{"filter_types":null,"rate_limit":null,"description":"","url":null}`), 200, plain)

	// Rotation: the new secret signs the next delivery, and for a day the old one signs too.
	noContent(manageOrg(t, srv, "POST", one+"/secret/rotate", fmt.Sprintf(`{"key":%q}`, secrets[1])))
	check(t, manageOrg(t, srv, "GET", one+"/secret", ""), 200, fmt.Sprintf(`{"key":%q}`, secrets[1]))
	connect()
	expect(secrets[1], "provider.connection.created true")
	connect()
	expect(secrets[0], "provider.connection.created true")
	now = noon.Add(24 * time.Hour)
	connect()
	expect(secrets[0], "provider.connection.created false")
	connect()
	expect(secrets[1], "provider.connection.created true")
	noContent(manageOrg(t, srv, "POST", one+"/secret/rotate", ""))
	created := decode[struct{ Key string }](t, manageOrg(t, srv, "GET", one+"/secret", "")).Key
	connect()
	expect(created, "provider.connection.created true")

	// Disable, enable, delete.
	manageOrg(t, srv, "PATCH", one, `{"disabled":true}`)
	connect()
	expect(created)
	manageOrg(t, srv, "PATCH", one, `{"disabled":false}`)
	connect()
	expect(created, "provider.connection.created true")
	noContent(manageOrg(t, srv, "DELETE", one, ""))
	check(t, manageOrg(t, srv, "GET", one, ""), 404, `{"detail":"Webhook not found"}`)
	connect()
	expect(created)
}

// Deleting a webhook drops events that wait for another attempt.
// An invalid body is rejected before the webhook is looked for.
func TestWebhookBodies(t *testing.T) {
	srv := newServer(t)
	for _, c := range []struct{ method, path, body, loc string }{
		{"PATCH", "", `{"rate_limit":"x"}`, `["body","rate_limit"]`},
		{"PUT", "/headers", `{}`, `["body","headers"]`},
		{"POST", "/secret/rotate", `{"key":{}}`, `["body","key"]`},
	} {
		path := "ORG/team/TEAM/sandbox/webhook/unknown" + c.path
		got := manageOrg(t, srv, c.method, path, c.body)
		if got.status != 422 || !strings.Contains(got.body, `"loc":`+c.loc) {
			t.Errorf("%s %s: %+v", c.method, path, got)
		}
		if got = manageOrg(t, srv, c.method, path, `{"headers":{}}`); got.status != 404 {
			t.Errorf("%s %s: %+v", c.method, path, got)
		}
	}
}

func TestDeletedWebhook(t *testing.T) {
	srv := newServer(t)
	rec := newReceiver(t)
	rec.statusCode = 500
	hook := decode[struct{ ID string }](t, manageOrg(t, srv, "POST", "ORG/team/TEAM/sandbox/webhook", fmt.Sprintf(`{"url":%q}`, rec.URL)))
	noError(t, srv.Connect(srv.AddUser("ada"), "oura"))
	noError(t, srv.Connect(srv.AddUser("bob"), "oura"))
	manageOrg(t, srv, "DELETE", "ORG/team/TEAM/sandbox/webhook/"+hook.ID, "")
	noError(t, srv.Flush(t.Context()))
}

// Webhooks receive the events of their team.
func TestWebhooksOfTeams(t *testing.T) {
	srv := newServer(t)
	id := createTeam(t, srv, `{"name":"Second","region":"us"}`)
	eu := createTeam(t, srv, `{"name":"EU","region":"eu"}`)
	one, two, none := newReceiver(t), newReceiver(t), newReceiver(t)
	for path, url := range map[string]string{"TEAM": one.URL, id.String(): two.URL, eu.String(): none.URL} {
		if got := manageOrg(t, srv, "POST", "ORG/team/"+path+"/sandbox/webhook", fmt.Sprintf(`{"url":%q}`, url)); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	second, abroad := srv.Team(id), srv.Team(eu)
	noError(t, srv.Connect(srv.AddUser("ada"), "oura"))
	for range 2 {
		noError(t, second.Connect(second.AddUser("bob"), "fitbit"))
	}
	noError(t, abroad.Connect(abroad.AddUser("eve"), "fitbit"))
	noError(t, srv.Flush(t.Context()))
	noError(t, second.Flush(t.Context()))
	noError(t, abroad.Flush(t.Context()))
	if a, b, c := len(one.take()), len(two.take()), len(none.take()); a != 1 || b != 2 || c != 0 {
		t.Errorf("%d, %d and %d events", a, b, c)
	}
}

func TestCustomCredentials(t *testing.T) {
	srv := newServer(t)
	const path = "ORG/team_custom_credentials/sandbox/us"
	body := fmt.Sprintf(`{"team_id":%q,"provider":"oura","client_id":"c","client_secret":"hunter2","details":{"fitbit":{"workout_verify_token":"w","sleep_verify_token":"s","body_verify_token":"b"}}}`, srv.TeamID)
	got := manageOrg(t, srv, "POST", path, body)
	created := decode[struct {
		ID   uuid.UUID
		Hash string `json:"client_secret_hash"`
	}](t, got)
	check(t, got, 200, fmt.Sprintf(`{"id":%q,"team_id":%q,"source":"oura","client_id":"c","client_secret_hash":%q,"created_at":"2025-03-04T12:00:00+00:00",
		"updated_at":"2025-03-04T12:00:00+00:00","details":{"fitbit":{"workout_verify_token":"w","sleep_verify_token":"s","body_verify_token":"b","is_hr_enabled":false,"foods_verify_token":null}},"app_url":null,"redirect_url_override":null}`, created.ID, srv.TeamID, created.Hash))
	if strings.Contains(got.body, "hunter2") || len(created.Hash) != 64 {
		t.Error(got.body)
	}
	if second := manageOrg(t, srv, "POST", path, body); second.body != got.body {
		t.Errorf("second upsert: %s", second.body)
	}
	check(t, manageOrg(t, srv, "GET", path, ""), 200, `{"credentials":[`+got.body+`],"next_cursor":null}`)
	for query, want := range map[string]string{
		"provider=oura": got.body, "provider=fitbit": "", "team_id=TEAM&team_id=" + uuid.NewString(): got.body, "team_id=" + uuid.NewString(): "",
	} {
		check(t, manageOrg(t, srv, "GET", path+"?"+query, ""), 200, `{"credentials":[`+want+`],"next_cursor":null}`)
	}
	check(t, manageOrg(t, srv, "GET", "ORG/team_custom_credentials/production/us", ""), 200, `{"credentials":[],"next_cursor":null}`)
	check(t, manageOrg(t, srv, "DELETE", path+"?credential_id="+created.ID.String(), ""), 200, fmt.Sprintf(`{"success":[%q],"failure":[],"not_found":[]}`, created.ID))
	const prepare = "ORG/prepare_team_custom_credentials/sandbox/us"
	check(t, manageOrg(t, srv, "POST", prepare, fmt.Sprintf(`{"team_id":%q,"provider":"garmin"}`, srv.TeamID)), 200, `{"status":"no_action_needed","preparation_steps":[]}`)
	if got := manageOrg(t, srv, "POST", prepare, fmt.Sprintf(`{"team_id":%q,"provider":"oura"}`, srv.TeamID)); !strings.Contains(got.body, "preparations_required") {
		t.Error(got.body)
	}
}

func TestPipelines(t *testing.T) {
	srv := newServer(t)
	second := createTeam(t, srv, `{"name":"Second","region":"us"}`)
	const path = "ORG/team_etl_pipelines/sandbox/us"
	const hub = `{"connection_string":"Endpoint=x","default_event_hub":"rest","event_hub_matchers":[{"event_type_prefix":"daily.",
		"event_type_regex":null,"event_hub":null,"blob_storage":{"connection_string":"Blob=x","container_name":"daily"}}],"compression":"auto"}`
	pipeline := func(team uuid.UUID, raw bool) string {
		return fmt.Sprintf(`{"team_id":%q,"preferences":{"preferred":"azure_amqp","enabled":["azure_amqp"]},"push_historical_data":false,"provider_raw_data":%v,
			"cloud_pubsub":null,"rabbitmq":null,"svix":null,"azure_amqp":%s,"event_type_prefixes":null}`, team, raw, hub)
	}
	body := func(raw bool) string {
		return fmt.Sprintf(`{"team_ids":[%q,%q],"preferences":{"preferred":"azure_amqp","enabled":["azure_amqp"]},"provider_raw_data":%v,
			"azure_amqp":{"connection_string":"Endpoint=x","default_event_hub":"rest","event_hub_matchers":[{"event_type_prefix":"daily.",
			"blob_storage":{"connection_string":"Blob=x","container_name":"daily"}}]}}`, srv.TeamID, second, raw)
	}
	check(t, manageOrg(t, srv, "POST", path, body(false)), 200, `[`+pipeline(srv.TeamID, false)+`,`+pipeline(second, false)+`]`)
	manageOrg(t, srv, "POST", path, body(true))
	check(t, manageOrg(t, srv, "GET", path, ""), 200, `{"pipelines":[`+pipeline(srv.TeamID, true)+`,`+pipeline(second, true)+`],"next_cursor":null}`)
	check(t, manageOrg(t, srv, "GET", path+"?team_id="+second.String(), ""), 200, `{"pipelines":[`+pipeline(second, true)+`],"next_cursor":null}`)
	check(t, manageOrg(t, srv, "DELETE", path+"?team_id=TEAM", ""), 200, `[`+pipeline(srv.TeamID, true)+`]`)
	check(t, manageOrg(t, srv, "DELETE", path+"?team_id=TEAM", ""), 200, `[]`)
	manageOrg(t, srv, "POST", path, body(true))
	check(t, manageOrg(t, srv, "DELETE", path+"?team_id="+second.String()+"&team_id=TEAM", ""), 200, `[`+pipeline(srv.TeamID, true)+`,`+pipeline(second, true)+`]`)
	check(t, manageOrg(t, srv, "POST", path, fmt.Sprintf(`{"team_ids":[%q],"rabbitmq":{"uri":"amqps://example.com","exchange":"e"},"svix":{}}`, second)), 200,
		fmt.Sprintf(`[{"team_id":%q,"preferences":{"preferred":"rabbitmq","enabled":["rabbitmq","svix"]},"push_historical_data":false,"provider_raw_data":false,
			"cloud_pubsub":null,"rabbitmq":{"uri":"amqps://example.com","exchange":"e"},"svix":{"regional":true},"azure_amqp":null,"event_type_prefixes":null}]`, second))
	for body, status := range map[string]int{
		`{"team_ids":["TEAM"]}`: 422, `{}`: 400, `{"svix":{},"preferences":{"enabled":[]}}`: 422, `{"azure_amqp":{"connection_string":"x"}}`: 422,
		`{"cloud_pubsub":{"project":"p"}}`: 422, `{"preferences":{"preferred":"fax","enabled":[]}}`: 422,
	} {
		if got := manageOrg(t, srv, "POST", path, body); got.status != status {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// The IDs and keys of the organisation depend on the seed.
func TestManagementSeed(t *testing.T) {
	a, b, c := newServer(t), newServer(t), newServer(t, labhealthtest.WithSeed(2))
	if a.OrgID != b.OrgID || a.OrgKey != b.OrgKey || a.OrgID == c.OrgID || a.OrgKey == c.OrgKey {
		t.Error("the organisation does not depend on the seed")
	}
	body := `{"name":"Second","region":"us"}`
	if x, y := createTeam(t, a, body), createTeam(t, b, body); x != y {
		t.Errorf("teams %s and %s", x, y)
	}
	if x, y := createTeam(t, a, body), createTeam(t, a, body); x == y {
		t.Error("two teams have the same ID")
	}
}
